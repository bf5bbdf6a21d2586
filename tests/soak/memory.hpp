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

// What one allocation is.
struct Block {
  Class of = Class::host;
  std::size_t bytes = 0;
  CUdeviceptr address = 0;
  std::size_t reserved = 0;
  ist_buffer whole{};  // of OpenCL
};

// This process, for all of its lanes.
struct Place {
  ist_world world = IST_WORLD_NULL;
  int device = -1;  // of CUDA; -1: none
  CUcontext context = nullptr;
  CUmemoryPool shared_pool = nullptr;
  // What the driver takes back only when all work on the device is over is not freed while a kernel of ours waits for another rank: it would
  // hold up whoever is to start what the other rank's kernel waits for. Work in streams holds this shared, whoever frees alone. Nobody
  // waits for it to free, since a kernel of NCCL's may wait for that thread: what cannot be freed now is freed with the next one.
  std::shared_mutex frees;
  std::mutex unfreed_mutex;
  std::vector<Block> unfreed;
  History history;
};
// Classes that this process has, as bits.
unsigned usable(Place& place);
// Frees what could not be freed when it was to be; nothing runs any more.
void free_rest(Place& place);
// What usable() made, when the world is over.
void give_back(Place& place);

class Memory {
 public:
  Memory(Place& place, Class of, std::size_t bytes);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  Class of() const { return block_.of; }
  std::size_t bytes() const { return block_.bytes; }
  // `stream`: the one that holds work on it, of device memory.
  ist_buffer at(std::size_t offset, CUstream stream) const;
  // Of memory that the processor can write to.
  unsigned char* address() const { return reinterpret_cast<unsigned char*>(block_.address); }

 private:
  void map();
  Place& place_;
  Block block_;
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
