// Which of the driver's copies wait for another process's turn on a GPU: two processes hand the device to and fro, each in its turn making
// one copy of a kind and waiting for it. Beside it the same by one process alone.
//
//   device_turns      prints one JSON object: rows of {copy, bytes, alone_us, in_turn_us}, medians of 100
//
// An error of a call ends the program.
#include <cuda.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMost = 4 << 20;
constexpr int kWarmUp = 20;
constexpr int kCopies = 100;

void must(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "device_turns: %s returned %d\n", call, static_cast<int>(result));
  std::_Exit(1);
}
#define MUST(call) must(call, #call)

// What the two processes share.
struct Shared {
  std::atomic<int> turn;
  std::atomic<int> met;
};

template <class T>
T* shared_memory(std::size_t bytes) {
  void* const found = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (found == MAP_FAILED) std::_Exit(1);
  return static_cast<T*>(found);
}

// One process's device memory, page-locked memory and stream.
struct Side {
  CUcontext context = nullptr;
  CUdeviceptr one = 0;
  CUdeviceptr other = 0;
  CUdeviceptr host = 0;
  CUstream stream = nullptr;
  CUevent event = nullptr;

  Side() {
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuMemAlloc(&one, kMost));
    MUST(cuMemAlloc(&other, kMost));
    void* locked = nullptr;
    MUST(cuMemHostAlloc(&locked, kMost, CU_MEMHOSTALLOC_PORTABLE));
    host = reinterpret_cast<CUdeviceptr>(locked);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  }
};

void in_batch(const Side& side, std::size_t bytes) {
  CUdeviceptr to = side.one;
  CUdeviceptr from = side.host;
  CUmemcpyAttributes wanted{};
  wanted.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  wanted.flags = CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE;
  std::size_t first = 0;
  MUST(cuMemcpyBatchAsync(&to, &from, &bytes, 1, &wanted, &first, 1, side.stream));
}

void in_two_rows(const Side& side, std::size_t bytes) {
  CUDA_MEMCPY3D rows{};
  rows.srcMemoryType = CU_MEMORYTYPE_HOST;
  rows.srcHost = reinterpret_cast<const void*>(side.host);
  rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.dstDevice = side.one;
  rows.WidthInBytes = rows.srcPitch = rows.dstPitch = bytes / 2;
  rows.Height = rows.srcHeight = rows.dstHeight = 2;
  rows.Depth = 1;
  MUST(cuMemcpy3DAsync(&rows, side.stream));
}

using Copy = std::function<void(const Side&, std::size_t)>;
const std::vector<std::pair<const char*, Copy>>& copies() {
  static const std::vector<std::pair<const char*, Copy>> all{
      {"out of the device", [](const Side& s, std::size_t n) { MUST(cuMemcpyAsync(s.host, s.one, n, s.stream)); }},
      {"into it", [](const Side& s, std::size_t n) { MUST(cuMemcpyAsync(s.one, s.host, n, s.stream)); }},
      {"into it, in a batch that asks for overlap", in_batch},
      {"into it, in two rows", in_two_rows},
      {"within it", [](const Side& s, std::size_t n) { MUST(cuMemcpyAsync(s.one, s.other, n, s.stream)); }}};
  return all;
}

// Microseconds, the median; `shared`: null of one that is alone.
double time_of(const Side& side, const Copy& copy, std::size_t bytes, Shared* shared, int me) {
  std::vector<double> took;
  for (int k = 0; k < kWarmUp + kCopies; ++k) {
    while (shared != nullptr && shared->turn.load() != 2 * k + me) {
    }
    const auto begin = Clock::now();
    copy(side, bytes);
    MUST(cuEventRecord(side.event, side.stream));
    CUresult found = CUDA_ERROR_NOT_READY;
    while ((found = cuEventQuery(side.event)) == CUDA_ERROR_NOT_READY) {
    }
    MUST(found);
    if (k >= kWarmUp) took.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    if (shared != nullptr) shared->turn.store(2 * k + me + 1);
  }
  std::nth_element(took.begin(), took.begin() + kCopies / 2, took.end());
  return took[kCopies / 2];
}

// Both come here before either goes on; `count`: how often so far.
void meet(Shared& shared, int& count) {
  ++count;
  shared.met.fetch_add(1);
  while (shared.met.load() < 2 * count) {
  }
}

std::map<std::pair<std::string, std::size_t>, double> time_all(Shared* shared, int me) {
  const Side side;
  int met = 0;
  std::map<std::pair<std::string, std::size_t>, double> found;
  for (const auto& [name, copy] : copies())
    for (const std::size_t bytes : {8, 256, 4096, 16384, 24576, 32766, 32768, 65536, 1 << 20, 2 << 20, 4 << 20}) {
      if (shared != nullptr) {
        meet(*shared, met);
        if (me == 0) shared->turn.store(0);
        meet(*shared, met);
      }
      found[{name, bytes}] = time_of(side, copy, bytes, shared, me);
    }
  return found;
}

}  // namespace

int main() {
  auto* const shared = shared_memory<Shared>(sizeof(Shared));
  auto* const alone = shared_memory<double>(1 << 16);
  // A driver that was started does not survive a fork: each part has a process of its own.
  if (const pid_t one = ::fork(); one == 0) {
    std::size_t at = 0;
    for (const auto& [what, us] : time_all(nullptr, 0)) alone[at++] = us;
    std::_Exit(0);
  } else {
    ::waitpid(one, nullptr, 0);
  }
  const pid_t other = ::fork();
  if (other == 0) {
    time_all(shared, 1);
    std::_Exit(0);
  }
  const auto in_turn = time_all(shared, 0);
  ::waitpid(other, nullptr, 0);
  char device[256] = {};
  MUST(cuDeviceGetName(device, sizeof device - 1, 0));
  int version = 0;
  MUST(cuDriverGetVersion(&version));
  std::printf("{\"benchmark\": \"device turns\", \"device\": \"%s\", \"cuda\": %d, \"rows\": [", device, version);
  std::size_t at = 0;
  for (const auto& [what, us] : in_turn) {
    std::printf("%s\n {\"copy\": \"%s\", \"bytes\": %zu, \"alone_us\": %.2f, \"in_turn_us\": %.2f}", at == 0 ? "" : ",",
                what.first.c_str(), what.second, alone[at], us);
    ++at;
  }
  std::printf("\n]}\n");
}
