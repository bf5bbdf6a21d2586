// The fake driver's insides. Device memory is host memory behind addresses that nobody can dereference; every stream is a
// queue with a thread of its own, so that what is not waited for has not happened yet.
//
// Who calls this : the fake_*.cpp files, which define the driver's own functions.
// Threads        : one lock for everything; operations run without it. So under ThreadSanitizer two operations that touch
//                  the same device memory in no order are a race that is reported.
// Ownership      : the world is never destroyed, because streams may still run when the process ends. Handles are kept after
//                  their end and know it, so that using a dead one is an error as it is in the real driver.
// Errors         : those that a real driver gave in the same situation (H100, driver 580). Where a real one may crash, because
//                  it has given the handle of something destroyed to something else, the fake ends the process.
#pragma once

#pragma GCC visibility push(default)
#include <cuda.h>
extern "C" CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device);
#pragma GCC visibility pop

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

// A place in a stream: reached when that many of its operations are done.
struct FakePoint {
  CUstream stream = nullptr;
  std::uint64_t position = 0;
};

struct FakeOperation {
  std::function<void()> work;
  std::vector<FakePoint> after;
  std::function<void()> skipped;  // in place of the work, where the device is lost
};

struct CUstream_st {
  CUcontext context = nullptr;
  bool blocking = false;  // ordered with the legacy stream
  bool legacy = false;
  bool destroyed = false;
  std::uint64_t last = 0;  // operations ever put in
  std::uint64_t done = 0;
  std::deque<FakeOperation> queue;
  std::condition_variable wake;
  bool running = false;  // has a thread
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id capture_owner;
  std::vector<std::function<void()>> captured;
};

// What was captured in one stream, in its order.
struct CUgraph_st {
  std::vector<std::function<void()>> work;
};
struct CUgraphExec_st {
  std::vector<std::function<void()>> work;
};

struct CUevent_st {
  CUcontext context = nullptr;
  FakePoint point;
  bool destroyed = false;
};

struct CUctx_st {
  CUdevice device = 0;
  unsigned long long id = 0;
  bool primary = false;
  bool destroyed = false;
  CUresult lost = CUDA_SUCCESS;  // once not SUCCESS, every operation answers with it
  CUstream legacy = nullptr;
  std::map<std::thread::id, CUstream> per_thread;
  std::vector<CUstream> streams;  // all of them
};

namespace fake {
struct SharedPool;
}

struct CUmemPoolHandle_st {
  CUdevice device = 0;
  int physical = 0;
  bool exportable = false;
  bool exported = false;
  bool imported = false;
  bool reachable = true;   // imported ones after cuMemPoolSetAccess
  bool destroyed = false;  // goes with the last of its memory
  fake::SharedPool* shared = nullptr;
  int descriptor = -1;
  unsigned given = 0;  // places in shared
};

namespace fake {

// What the processes that share a pool see of it: who holds each of its pieces.
struct SharedPool {
  static constexpr std::size_t kPieces = 4096;
  static constexpr std::size_t kHolders = 4;
  std::uint64_t magic = 0;
  std::int32_t owner = 0;
  std::int32_t physical = 0;
  std::uint64_t number = 0;
  std::array<std::array<std::atomic<std::int32_t>, kHolders>, kPieces> holders;  // processes, 0: free
};

constexpr std::uint64_t kBlock = 2u << 20;

// Bytes that other processes can be given.
struct Storage {
  int descriptor = -1;
  std::byte* bytes = nullptr;
  std::size_t size = 0;
  Storage(int fd, std::size_t length);
  ~Storage();
};
// Of a device, by its number without CUDA_VISIBLE_DEVICES, which whoever is given the descriptor finds with device_of(); -1: none.
std::shared_ptr<Storage> make_storage(std::size_t size, int physical = -1);
int device_of(int descriptor);

enum class Class { device, pool, managed, pinned, registered, vmm };

struct Allocation {
  Class kind = Class::device;
  std::uint64_t start = 0;
  std::uint64_t size = 0;
  std::uint64_t range_start = 0;  // as reported; the reservation, for VMM
  std::uint64_t range_size = 0;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmemoryPool pool = nullptr;
  unsigned long long id = 0;
  bool ipc = false;       // of another process
  int physical = -1;      // the device's number without CUDA_VISIBLE_DEVICES
  bool reachable = true;  // for a copy
  CUmemGenericAllocationHandle handle = 0;
  bool exportable = false;
  SharedPool* shared = nullptr;  // with its place there
  std::size_t place = 0;
  std::uint64_t origin = 0;  // of an imported piece: the owner's id
  std::shared_ptr<Storage> storage;
  std::uint64_t storage_offset = 0;
  bool host() const { return kind == Class::pinned || kind == Class::registered; }
};

struct Handle {
  std::shared_ptr<Storage> storage;
  CUdevice device = 0;
  int physical = 0;
  bool exportable = false;
  bool imported = false;
  int holds = 1;
};

enum class Link { whole, spoiled, refused };

struct Failure {
  int skip = 0;
  CUresult result = CUDA_SUCCESS;
};

struct World {
  std::mutex lock;
  std::condition_variable changed;  // some operation is done
  int held_up = 0;                  // calls that wait for the device
  bool initialised = false;
  int devices = 2;
  unsigned delay_us = 50;
  unsigned out_us = 0;  // that a copy into host memory takes more
  std::uint64_t memory = 1u << 30;
  bool peer = true;
  bool lazy = false;  // kernels come with their first launch
  bool strict = false;
  std::multimap<std::uint64_t, std::uint64_t> in_flight;  // start to size of what copies still read and write, if strict
  std::map<std::string, std::uint64_t, std::less<>> calls;
  struct Noted {
    const char* call;
    const void* of;
  };
  bool notes = false;
  std::vector<Noted> noted;
  std::multimap<std::string, Failure, std::less<>> failures;
  std::map<CUdevice, std::pair<CUcontext, int>> primary;  // with the number of owners
  std::vector<CUcontext> contexts;                        // all ever made
  std::vector<CUevent> events;
  std::vector<CUmodule> modules;
  int live_events = 0;
  std::map<std::uint64_t, Allocation> allocations;
  std::map<std::uint64_t, std::uint64_t> reservations;  // start to size, all of the arena
  std::map<CUmemGenericAllocationHandle, Handle> handles;
  std::map<std::pair<int, int>, Link> links;  // by physical numbers, the smaller one first; others are whole
  int live_pools = 0;
  std::map<CUdevice, CUmemoryPool> default_pools;
  std::map<CUdevice, std::uint64_t> used;
  unsigned long long next_id = 1;
  std::uint64_t arena = 0;
  std::vector<CUstream> captures;
  std::vector<std::unique_ptr<CUgraph_st>> graphs;  // never destroyed
  std::vector<std::unique_ptr<CUgraphExec_st>> executables;
};

World& world();
// As CU_DEVICE_ATTRIBUTE_MAX_PITCH: FAKE_CUDA_MAX_PITCH, or what devices have.
int longest_pitch();
// With the lock. Where it is strict: ends the process if a copy of that memory has not happened yet, whoever waits for it then.
void check_at_rest(std::uint64_t start, const char* call);
// Without a destructor: static objects, such as a world that is left open, call when what the main thread has is gone already.
class ContextStack {
 public:
  bool empty() const { return count_ == 0; }
  CUcontext back() const { return contexts_[count_ - 1]; }
  void push_back(CUcontext context) {
    if (count_ == contexts_.size()) std::abort();
    contexts_[count_++] = context;
  }
  void pop_back() { --count_; }

 private:
  std::array<CUcontext, 256> contexts_{};
  std::size_t count_ = 0;
};
static_assert(std::is_trivially_destructible_v<ContextStack>);
ContextStack& context_stack();               // of this thread
CUstreamCaptureMode& thread_capture_mode();  // of this thread

// With the lock: of the calls that put work into a stream or look whether it is over, which one, and of which stream or event.
void note(const char* call, const void* of);
// Counts the call, and says how it must fail, if it must.
CUresult enter(const char* call);
// The same for calls that a running capture forbids; makes the capture invalid as the real driver does.
CUresult enter_unsafe(const char* call);

using Lock = std::unique_lock<std::mutex>;

// All of these with the lock held.
CUcontext current();  // null if none
// Ends the process: this call was handed something that lived in a destroyed context.
[[noreturn]] void misused(const char* call);
CUresult usable(CUcontext context);
std::uint64_t reserve(std::uint64_t size);  // addresses; 0 if there are none left
Allocation* find(std::uint64_t address);
// The real place of `size` bytes at an address of any kind; null if they are not all in one allocation.
std::byte* place(std::uint64_t address, std::uint64_t size);
void forget(std::uint64_t start);  // an allocation
// Between a device of this process and one that may be none of it.
int physical(CUdevice device);
CUdevice logical(int physical);  // -1: it cannot be seen here
Link link(CUdevice from, int to);
void check_pieces(const Allocation& freed);  // ends the process if another one still holds it
void let_go_of_piece(const Allocation& imported);
void end_pool_if_unused(CUmemoryPool pool);
bool in_arena(std::uint64_t address);
CUstream make_stream(CUcontext context, bool blocking);
CUcontext make_context(CUdevice device, bool primary);
// The stream behind a handle, special ones included.
CUresult resolve(CUstream handle, CUstream& stream);
void enqueue(CUstream stream, std::function<void()> work, std::vector<FakePoint> after = {},
             std::function<void()> skipped = {});
bool idle(CUstream stream);
void wait_for(Lock& lock, CUstream stream);
void wait_for_all(Lock& lock);
// As a call that takes memory back: nothing gets into any stream meanwhile, whoever would put it there.
void wait_for_device(Lock& lock);
CUresult add_device_memory(CUdeviceptr* address, std::size_t size, Class kind, CUmemoryPool pool);

}  // namespace fake

#define FAKE_ENTER(call)                                                                   \
  do {                                                                                     \
    if (const CUresult failed = fake::enter(#call); failed != CUDA_SUCCESS) return failed; \
  } while (0)
#define FAKE_ENTER_UNSAFE(call)                                                                   \
  do {                                                                                            \
    if (const CUresult failed = fake::enter_unsafe(#call); failed != CUDA_SUCCESS) return failed; \
  } while (0)
