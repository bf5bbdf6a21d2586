// Python's Buffer, a place named by hand, and Memory, one that the library allocated.
//
// Who calls this : region.cpp; module.cpp binds the classes.
// Threads        : the caller holds the GIL.
// Ownership      : a Buffer keeps the object it is told to; Memory is freed when the last reference is dropped, which operations
//                  under way hold.
// Errors         : raised.
#pragma once

#include <memory>
#include <string>

#include "bound.hpp"
#include "region.hpp"
#include "session.hpp"

namespace isthmus_python {

// "host", "cuda", "opencl" or "auto".
ist_kind kind_named(const std::string& name);
const char* name_of(std::uint32_t kind);
// Bytes of one element of "f8", "<i4" and the like.
std::int64_t item_size_of(const std::string& typestr);
bool is_of_other_order(const std::string& typestr);

class Buffer {
 public:
  Buffer(const std::string& kind, std::uint64_t object, std::int64_t count, const std::string& typestr, std::uint64_t offset,
         std::uint64_t queue, bool read_only, nb::object owner, bool ready);
  explicit Buffer(Region region) : region_(std::move(region)) {}
  Region region(nb::handle self) const;
  std::string text() const;

 private:
  Region region_;
};

class Memory {
 public:
  Memory(std::shared_ptr<Session> session, const std::string& kind, std::size_t bytes, int device);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();
  Region region(nb::handle self) const;
  std::size_t bytes() const { return bytes_; }
  const char* kind() const { return name_of(place_.kind); }
  std::uint64_t address() const { return place_.object; }
  std::uint64_t queue() const { return place_.queue; }
  std::string text() const;

 private:
  std::shared_ptr<Session> session_;
  ist_buffer place_{};
  std::size_t bytes_;
};

// Host memory of somebody's, page-locked as long as this is there.
class Registration {
 public:
  Registration(std::shared_ptr<Session> session, nb::handle memory);
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  ~Registration() { release(); }
  // Once; with its world gone, the lock is gone.
  void release();
  std::string text() const;

 private:
  std::shared_ptr<Session> session_;
  Region region_;
  bool held_ = false;
};

void bind_memory(nb::module_& module);

}  // namespace isthmus_python
