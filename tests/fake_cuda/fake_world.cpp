#include "fake_world.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace fake {

namespace {
constexpr std::uint64_t kArena = std::uint64_t{512} << 30;  // addresses: four parts of 64 GiB, and whatever else there is

CUresult enter_locked(World& w, std::string_view call) {
  auto counted = w.calls.find(call);
  if (counted == w.calls.end()) counted = w.calls.emplace(call, 0).first;
  ++counted->second;
  const auto [first, last] = w.failures.equal_range(call);
  for (auto failure = first; failure != last; ++failure) {
    if (failure->second.skip-- > 0) continue;
    const CUresult result = failure->second.result;
    w.failures.erase(failure);
    return result;
  }
  if (!w.initialised && call != "cuInit" && call != "cuDriverGetVersion") return CUDA_ERROR_NOT_INITIALIZED;
  return CUDA_SUCCESS;
}

// A child of fork() finds the lock free, whichever thread had it as the child was made.
World* make_world() {
  auto* made = new World;
  ::pthread_atfork([] { world().lock.lock(); }, [] { world().lock.unlock(); }, [] { world().lock.unlock(); });
  return made;
}
}  // namespace

World& world() {
  static World& w = *make_world();
  return w;
}

ContextStack& context_stack() {
  thread_local ContextStack stack;
  return stack;
}

CUstreamCaptureMode& thread_capture_mode() {
  thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

// What a thread that waits for the device holds up, as measured with a real driver; queries are answered.
bool puts_work(std::string_view call) {
  constexpr std::string_view kCalls[] = {"cuLaunchKernel",          "cuGraphLaunch",          "cuLaunchHostFunc",
                                         "cuMemcpyAsync",           "cuMemcpyHtoD_v2",        "cuMemcpyDtoH_v2",
                                         "cuEventRecord",           "cuStreamWaitEvent",      "cuMemsetD8Async",
                                         "cuMemAllocAsync",         "cuStreamWaitValue32_v2", "cuMemFreeAsync",
                                         "cuStreamWriteValue64_v2", "cuStreamWaitValue64_v2", "cuStreamBatchMemOp_v2"};
  return std::find(std::begin(kCalls), std::end(kCalls), call) != std::end(kCalls);
}

void note(const char* call, const void* of) {
  if (world().notes) world().noted.push_back({call, of});
}

CUresult enter(const char* call) {
  World& w = world();
  Lock lock(w.lock);
  if (w.held_up > 0 && puts_work(call)) w.changed.wait(lock, [&w] { return w.held_up == 0; });
  return enter_locked(w, call);
}

CUresult enter_unsafe(const char* call) {
  World& w = world();
  Lock lock(w.lock);
  if (w.held_up > 0 && puts_work(call)) w.changed.wait(lock, [&w] { return w.held_up == 0; });
  if (const CUresult failed = enter_locked(w, call); failed != CUDA_SUCCESS) return failed;
  if (thread_capture_mode() == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  for (CUstream stream : w.captures) {
    const bool mine = stream->capture_owner == std::this_thread::get_id();
    const bool forbids = stream->capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL ||
                         (stream->capture_mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && mine);
    if (!forbids) continue;
    stream->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

void misused(const char* call) {
  std::fprintf(stderr, "fake driver: %s on something of a destroyed context; a real driver may crash\n", call);
  std::abort();
}

CUcontext current() { return context_stack().empty() ? nullptr : context_stack().back(); }

CUresult usable(CUcontext context) {
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (context->destroyed) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return context->lost;
}

Storage::Storage(int fd, std::size_t length) : descriptor(fd), size(length) {
  void* mapped = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) std::abort();
  bytes = static_cast<std::byte*>(mapped);
}

Storage::~Storage() {
  ::munmap(bytes, size);
  ::close(descriptor);
}

std::shared_ptr<Storage> make_storage(std::size_t size, int physical) {
  const int fd = ::memfd_create(("fake_cuda:" + std::to_string(physical)).c_str(), MFD_CLOEXEC);
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(size)) != 0) std::abort();
  return std::make_shared<Storage>(fd, size);
}

int device_of(int descriptor) {
  char text[64] = {};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  if (::readlink(link.c_str(), text, sizeof text - 1) <= 0) return -1;
  const char* number = std::strstr(text, "fake_cuda:");
  return number == nullptr ? -1 : std::atoi(number + std::strlen("fake_cuda:"));
}

bool in_arena(std::uint64_t address) { return address - world().arena < kArena; }

// The lowest gap that is long enough; nobody can read or write there.
std::uint64_t reserve(std::uint64_t size) {
  World& w = world();
  if (w.arena == 0) {
    void* mapped = ::mmap(nullptr, kArena + kBlock, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) std::abort();
    w.arena = (reinterpret_cast<std::uint64_t>(mapped) + kBlock - 1) / kBlock * kBlock;
  }
  size = (size + kBlock - 1) / kBlock * kBlock;
  std::uint64_t at = w.arena;
  for (const auto& [start, length] : w.reservations) {
    if (start - at >= size + kBlock) break;  // a block stays free in front, so that running over the end is seen
    at = start + length + kBlock;
  }
  if (at + size > w.arena + kArena) return 0;
  w.reservations[at] = size;
  return at;
}

Allocation* find(std::uint64_t address) {
  auto& all = world().allocations;
  auto after = all.upper_bound(address);
  if (after == all.begin()) return nullptr;
  Allocation& candidate = std::prev(after)->second;
  return address - candidate.start < candidate.size ? &candidate : nullptr;
}

std::byte* place(std::uint64_t address, std::uint64_t size) {
  Allocation* found = find(address);
  if (found == nullptr) return in_arena(address) ? nullptr : reinterpret_cast<std::byte*>(address);
  const std::uint64_t offset = address - found->start;
  if (!found->reachable) return nullptr;
  if (size > found->size - offset) return found->kind == Class::registered ? reinterpret_cast<std::byte*>(address) : nullptr;
  if (found->host()) return reinterpret_cast<std::byte*>(address);
  return found->storage->bytes + found->storage_offset + offset;
}

}  // namespace fake
