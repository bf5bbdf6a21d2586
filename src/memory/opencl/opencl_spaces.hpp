// Symmetric memory of OpenCL devices: each stretch of a PE's part is one buffer of the library's own context.
//
// Who calls this : OpenclKind owns one; face/heap through Spaces; isthmus info asks for the reach.
// Threads        : as spaces.hpp says; reach() from any.
// Ownership      : a space owns its addresses, its buffer and what it has mapped; contexts outlive it.
// Errors         : IST_ERR_MEMORY where the device has no room, with the bytes; else the driver's.
//
// OpenCL hands no memory to other processes. But where a device is the processor itself, a buffer may lie in memory that the program gives
// (CL_MEM_USE_HOST_PTR), and that may be mapped by all: then PEs reach each other's parts by one copy of their own, and nobody has to serve
// anybody. The standard lets a driver keep such a buffer elsewhere between mappings, so that it is tried, once for each device. Elsewhere
// a stretch is a plain buffer, which its PE alone can use, and serves.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "memory/opencl/opencl_contexts.hpp"
#include "memory/spaces.hpp"

namespace ist {

class OpenclSpaces final : public Spaces {
 public:
  OpenclSpaces(const OpenclApi& api, OpenclContexts& contexts) : api_(api), contexts_(contexts) {}
  Bytes page() const override { return kibibytes(4); }
  SpaceReach reach(int device) override;
  Result<std::unique_ptr<Space>> open(const SpaceShape& shape) override;

 private:
  friend class OpenclSpace;
  // Does the device work in memory of the program's, so that either sees at once what the other stored?
  Status shares_memory(int device) const;
  Status try_sharing(int device, cl_mem shared, cl_mem beside, std::byte* bytes) const;

  const OpenclApi& api_;
  OpenclContexts& contexts_;
  std::mutex mutex_;
  std::map<int, SpaceReach> reach_;  // by devices
};

class OpenclSpace final : public Space {
 public:
  OpenclSpace(OpenclSpaces& spaces, const OpenclContexts::Own& home, const SpaceShape& shape,
              std::unique_ptr<Space> addresses)
      : spaces_(spaces), home_(home), shape_(shape), addresses_(std::move(addresses)) {}
  ~OpenclSpace() override;
  OpenclSpace(const OpenclSpace&) = delete;
  OpenclSpace& operator=(const OpenclSpace&) = delete;
  Named named(Offset offset) const override;
  bool in_objects() const override { return true; }
  std::uint64_t queue() const override { return reinterpret_cast<std::uint64_t>(home_.queue); }
  std::byte* base() const override { return addresses_->base(); }
  Result<FileDescriptor> make(Offset from, Bytes size) override;
  Status attach(Pe pe, Offset from, Bytes size, const FileDescriptor& descriptor) override;
  void take_back(Offset from, Bytes size) override;

 private:
  struct Buffer {
    cl_mem memory = nullptr;
    Bytes size;
  };
  Result<cl_mem> create(void* bytes, Offset from, Bytes size);
  Status zero(cl_mem memory, Bytes size) const;
  void release(const Buffer& buffer) const;
  OpenclSpaces& spaces_;
  const OpenclContexts::Own home_;
  const SpaceShape shape_;
  std::unique_ptr<Space> addresses_;         // with host memory behind them where the processor reaches it
  mutable std::mutex mutex_;                 // a thread that serves looks for places while the heap grows
  std::map<std::uint64_t, Buffer> buffers_;  // by where they begin in the part
};

}  // namespace ist
