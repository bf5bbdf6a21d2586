// Which of the driver's copies wait for another process's turn on a GPU: two processes hand the device to and fro, each in its turn making
// one copy of a kind and waiting for it. Beside it the same by one process alone.
//
//   device_turns      prints one JSON object: rows of {copy, bytes, alone_us, in_turn_us}, medians of 100
//
// An error of a call ends the program, and the other process with it.
#include <cuda.h>

#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "forked_ranks.cuh"

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMost = 4 << 20;
constexpr int kWarmUp = 20;
constexpr int kCopies = 100;
constexpr std::array<std::size_t, 11> kBytes{8, 256, 4096, 16384, 24576, 32766, 32768, 65536, 1 << 20, 2 << 20, 4 << 20};

void must(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "device_turns: %s returned %d\n", call, static_cast<int>(result));
  std::_Exit(1);
}
#define MUST(call) must(call, #call)

// One process's device memory, host memory and stream.
struct Side {
  CUcontext context = nullptr;
  CUdeviceptr one = 0;
  CUdeviceptr other = 0;
  CUdeviceptr locked = 0;
  std::vector<unsigned char> ordinary = std::vector<unsigned char>(kMost, 1);
  CUstream stream = nullptr;
  CUevent event = nullptr;

  Side() {
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuMemAlloc(&one, 2 * kMost));
    MUST(cuMemAlloc(&other, kMost));
    void* host = nullptr;
    MUST(cuMemHostAlloc(&host, kMost, CU_MEMHOSTALLOC_PORTABLE));
    locked = reinterpret_cast<CUdeviceptr>(host);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  }
  CUdeviceptr pageable() const { return reinterpret_cast<CUdeviceptr>(ordinary.data()); }
};

// Rows from host memory into the device, `pitch` bytes from one to the next there.
CUDA_MEMCPY3D rows_of(const Side& side, CUdeviceptr from, std::size_t bytes, std::size_t rows, std::size_t pitch) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = reinterpret_cast<const void*>(from);
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = side.one;
  copy.WidthInBytes = copy.srcPitch = bytes / rows;
  copy.dstPitch = pitch;
  copy.Height = copy.srcHeight = copy.dstHeight = rows;
  copy.Depth = 1;
  return copy;
}

// What one copy does, made ready.
using Copy = std::function<void()>;
using Way = std::function<Copy(const Side&, std::size_t)>;

Copy plain(const Side& s, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return [=, &s] { MUST(cuMemcpyAsync(to, from, bytes, s.stream)); };
}

Copy in_rows(const Side& s, CUdeviceptr from, std::size_t bytes, std::size_t apart) {
  return [=, &s, copy = rows_of(s, from, bytes, 2, bytes / 2 + apart)] { MUST(cuMemcpy3DAsync(&copy, s.stream)); };
}

Copy in_batch(const Side& s, std::size_t bytes) {
  return [=, &s] {
    CUdeviceptr to = s.one;
    CUdeviceptr from = s.locked;
    std::size_t size = bytes;
    CUmemcpyAttributes wanted{};
    wanted.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    wanted.flags = CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE;
    std::size_t first = 0;
#if CUDA_VERSION >= 13000
    MUST(cuMemcpyBatchAsync(&to, &from, &size, 1, &wanted, &first, 1, s.stream));
#else
    std::size_t failed = 0;
    MUST(cuMemcpyBatchAsync(&to, &from, &size, 1, &wanted, &first, 1, &failed, s.stream));
#endif
  };
}

Copy in_graph(const Side& s, std::size_t bytes) {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec ready = nullptr;
  const CUDA_MEMCPY3D copy = rows_of(s, s.locked, bytes, 1, bytes);
  MUST(cuGraphCreate(&graph, 0));
  MUST(cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &copy, s.context));
  MUST(cuGraphInstantiate(&ready, graph, 0));
  return [=, &s] { MUST(cuGraphLaunch(ready, s.stream)); };
}

const std::vector<std::pair<std::string, Way>>& ways() {
  static const std::vector<std::pair<std::string, Way>> all{
      {"out of the device", [](const Side& s, std::size_t n) { return plain(s, s.locked, s.one, n); }},
      {"into it", [](const Side& s, std::size_t n) { return plain(s, s.one, s.locked, n); }},
      {"into it, in a batch that asks for overlap", [](const Side& s, std::size_t n) { return in_batch(s, n); }},
      {"into it, in a graph", [](const Side& s, std::size_t n) { return in_graph(s, n); }},
      {"into it, in two rows", [](const Side& s, std::size_t n) { return in_rows(s, s.locked, n, 0); }},
      {"into it, in two rows apart", [](const Side& s, std::size_t n) { return in_rows(s, s.locked, n, 64); }},
      {"into it, from pageable memory", [](const Side& s, std::size_t n) { return plain(s, s.one, s.pageable(), n); }},
      {"into it, from pageable memory in two rows",
       [](const Side& s, std::size_t n) { return in_rows(s, s.pageable(), n, 0); }},
      {"within it", [](const Side& s, std::size_t n) { return plain(s, s.one, s.other, n); }}};
  return all;
}

// What the processes share.
constexpr std::size_t kMostRows = 256;
struct Board {
  peers::MeetingPlace place;
  std::atomic<int> turn{0};
  std::array<double, kMostRows> alone{};
  std::array<double, kMostRows> in_turn{};
};

// Microseconds, the median.
double time_of(const Side& side, const Copy& copy, std::atomic<int>& turn, int me, int ranks) {
  std::vector<double> took;
  for (int k = 0; k < kWarmUp + kCopies; ++k) {
    while (turn.load() != ranks * k + me) {
    }
    const auto begin = Clock::now();
    copy();
    MUST(cuEventRecord(side.event, side.stream));
    CUresult found = CUDA_ERROR_NOT_READY;
    while ((found = cuEventQuery(side.event)) == CUDA_ERROR_NOT_READY) {
    }
    MUST(found);
    if (k >= kWarmUp) took.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    turn.store(ranks * k + me + 1);
  }
  std::sort(took.begin(), took.end());
  return peers::percentile(took, 0.5);
}

int time_all(Board& board, int me, int ranks) {
  const Side side;
  auto& found = ranks == 1 ? board.alone : board.in_turn;
  std::size_t row = 0;
  for (const auto& [name, way] : ways())
    for (const std::size_t bytes : kBytes) {
      const Copy copy = way(side, bytes);
      board.place.meet(ranks);
      if (me == 0) board.turn.store(0);
      board.place.meet(ranks);
      const double median = time_of(side, copy, board.turn, me, ranks);
      if (me == 0) found.at(row) = median;
      ++row;
    }
  return 0;
}

}  // namespace

int main() {
  auto* const board = peers::shared_board<Board>();
  if (board == nullptr) return 1;
  // A driver that was started does not survive a fork: each part has processes of its own.
  for (const int ranks : {1, 2})
    if (peers::fork_ranks(ranks, [&](int me) { return time_all(*board, me, ranks); }) != 0) return 1;
  MUST(cuInit(0));
  char device[256] = {};
  MUST(cuDeviceGetName(device, sizeof device - 1, 0));
  int version = 0;
  MUST(cuDriverGetVersion(&version));
  std::printf("{\"benchmark\": \"device turns\", \"device\": \"%s\", \"cuda\": %d, \"rows\": [", device, version);
  std::size_t row = 0;
  for (const auto& [name, way] : ways())
    for (const std::size_t bytes : kBytes) {
      std::printf("%s\n {\"copy\": \"%s\", \"bytes\": %zu, \"alone_us\": %.2f, \"in_turn_us\": %.2f}", row == 0 ? "" : ",",
                  name.c_str(), bytes, board->alone.at(row), board->in_turn.at(row));
      ++row;
    }
  std::printf("\n]}\n");
}
