// Memory of every class that a program may send from and receive into, as it gets it from the system, the driver or the library.
//
// Who calls this : the lanes, through Shelf.
// Threads        : a Place is everybody's; a Memory and a Shelf belong to one thread.
// Ownership      : a Memory frees what it is; a Shelf keeps some that were given back.
// Errors         : thrown.
#pragma once

#include <isthmus/isthmus.h>

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "driver.hpp"
#include "random.hpp"

namespace soak {

// In the order of the bits in which ranks tell each other what they have.
enum class Class { host, registered, pinned, cuda, vmm, shared_vmm, pool, shared_pool, managed, opencl };
constexpr int kClasses = 10;
const char* name_of(Class one);
inline bool on_device(Class one) { return one >= Class::cuda && one <= Class::managed; }
// Where a message of a stream may live.
inline bool fits_streams(Class one) { return one != Class::host && one != Class::opencl; }

// An error of a call of the library, with its text.
void ok(int code, const char* call);
#define SOAK_IST(name, ...) ::soak::ok(name(__VA_ARGS__), #name)

// What was allocated and freed last, of all lanes: a device that reports an illegal access may be told which memory that was.
class History {
 public:
  void add(const char* what, Class of, CUdeviceptr address, std::size_t bytes);
  // The newest last, with how long ago.
  std::string text() const;

 private:
  struct Event {
    std::chrono::steady_clock::time_point when;
    const char* what;
    Class of;
    CUdeviceptr address;
    std::size_t bytes;
  };
  mutable std::mutex mutex_;
  std::deque<Event> events_;
};

// This process, for all of its lanes.
struct Place {
  ist_world world = IST_WORLD_NULL;
  int device = -1;  // of CUDA; -1: none
  CUcontext context = nullptr;
  CUmemoryPool shared_pool = nullptr;
  // Memory is not freed while a kernel waits for another rank: the driver would wait for the kernel, and hold up the thread that is
  // to start what the other rank's kernel waits for. Work in streams holds it shared, whoever allocates or frees alone.
  std::shared_mutex frees;
  History history;
};
// Classes that this process has, as bits.
unsigned usable(Place& place);
// What usable() made, when the world is over.
void give_back(Place& place);

class Memory {
 public:
  Memory(Place& place, Class of, std::size_t bytes);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  Class of() const { return class_; }
  std::size_t bytes() const { return bytes_; }
  // `stream`: the one that holds work on it, of device memory.
  ist_buffer at(std::size_t offset, CUstream stream) const;
  // Of memory that the processor can write to.
  unsigned char* address() const { return reinterpret_cast<unsigned char*>(address_); }

 private:
  void map();
  void release();
  Place& place_;
  const Class class_;
  const std::size_t bytes_;
  CUdeviceptr address_ = 0;
  std::size_t reserved_ = 0;
  ist_buffer whole_{};  // of OpenCL
};

// What a lane has in its hands: now and then new memory, now and then what another message had.
class Shelf {
 public:
  explicit Shelf(Place& place) : place_(place) {}
  std::unique_ptr<Memory> take(Class of, std::size_t bytes, Dice& dice);
  void give_back(std::unique_ptr<Memory> memory, Dice& dice);
  void clear() { spare_.clear(); }

 private:
  Place& place_;
  std::deque<std::unique_ptr<Memory>> spare_;
};

}  // namespace soak
