// Isthmus's calls in kernels between two GPUs, or between two kernels on one: every byte is compared first, then each call is timed beside a
// bare loop that does the same (in_kernel_bare.cuh), in one run, by turns.
//
//   in_kernel [quick [bulk|no-bulk]]   prints one JSON object: {"gpus": N, "between": W, "gpu": name, "checks": [{"check", "epochs", "wrong", "status"}],
//                   "rows": [{"call", "bytes", "threads", "us", "us_low", "us_high", "bare", "bare_threads", "bare_us", "ratio"}]}
//
// quick: fewer epochs, ISTHMUS_TEST_SHORTER times fewer still, and nothing is timed; bulk: the checks of the copy unit alone, which are all that
// uses shared memory, or all but those. Times are medians over rounds, of one way or one barrier; for each call the threads that are best. Status 1 if anything was wrong.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "in_kernel_bare.cuh"
#include "in_kernel_checks.cuh"
#include "isthmus/launch.cuh"
#include "shorter.hpp"

namespace {

constexpr int kRounds = 5;
constexpr std::uint32_t kIterations = 4000;

void must(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "in_kernel: %s: %s\n", what, cudaGetErrorString(result));
  std::exit(1);
}

// What one iteration does, `n` counting from 1; false: given up. Ours:
template <class Crew, Reuse kReuse>
struct Packets {
  Channel<Crew, kReuse> channel;
  explicit __device__ Packets(const Side& side)
      : channel(Crew(), side.view, side.other(), kReuse == Reuse::credited ? 0 : 1) {}
  __device__ bool step(const Side& side, std::uint32_t n, bool sends) {
    const std::uint32_t sequence = side.sequence + n;
    return (sends ? channel.send(side.area(0), side.bytes, sequence, kDeadline)
                  : channel.receive(side.area(1), side.bytes, sequence, kDeadline)) == Status::ok;
  }
};
template <class Crew>
struct PutSignal {
  explicit __device__ PutSignal(const Side&) {}
  __device__ bool step(const Side& side, std::uint32_t n, bool sends) {
    const Crew crew;
    auto* const word = reinterpret_cast<std::uint64_t*>(side.area(5));
    const std::uint64_t value = side.sequence + n;
    if (sends)
      return put_signal(crew, side.view, side.area(1), side.area(0), side.bytes, word, value, Signal::set, side.other(),
                        kDeadline) == Status::ok;
    Status status = Status::ok;
    if (is_first(crew)) status = wait_until(side.view, word, Compare::greater_equal, value, kDeadline);
    return agreed(crew, side.view, status, kDeadline) == Status::ok;
  }
};
// Bare:
struct BarePackets {
  explicit __device__ BarePackets(const Side&) {}
  __device__ bool step(const Side& side, std::uint32_t n, bool sends) {
    auto* const slot = reinterpret_cast<std::uint64_t*>(side.area(2)) + n % 2 * 4096;
    const int words = side.bytes / 4;
    if (sends)
      return bare::send_ll(peer_ptr(side.view, slot, side.other()), reinterpret_cast<std::uint32_t*>(side.area(0)), words,
                           side.sequence + n);
    return bare::receive_ll(slot, reinterpret_cast<std::uint32_t*>(side.area(1)), words, side.sequence + n);
  }
};
struct BarePairs {
  explicit __device__ BarePairs(const Side&) {}
  __device__ bool step(const Side& side, std::uint32_t n, bool sends) {
    auto* const slot = reinterpret_cast<ulonglong2*>(side.area(3)) + n % 2 * 2048;
    const int words = side.bytes / 8;
    if (sends)
      return bare::send_ll2(peer_ptr(side.view, slot, side.other()), reinterpret_cast<std::uint64_t*>(side.area(0)), words,
                            side.sequence + n);
    return bare::receive_ll2(slot, reinterpret_cast<std::uint64_t*>(side.area(1)), words, side.sequence + n);
  }
};
struct BareFlag {
  explicit __device__ BareFlag(const Side&) {}
  __device__ bool step(const Side& side, std::uint32_t n, bool sends) {
    auto* const flag = reinterpret_cast<std::uint64_t*>(side.area(5) + 1024);
    const std::uint64_t value = side.sequence + n;
    if (!sends) return bare::wait_flag(flag, value);
    return bare::put_flag(peer_ptr(side.view, side.area(1), side.other()), side.area(0), side.bytes,
                          peer_ptr(side.view, flag, side.other()), value);
  }
};

template <class Step>
__global__ void ping_pong(Side side) {
  Step one(side);
  timed(side, [&](std::uint32_t n) { return one.step(side, n, side.view.pe == 0) && one.step(side, n, side.view.pe == 1); });
}

__global__ void bare_barriers(Side side) {
  auto* const flag = reinterpret_cast<std::uint64_t*>(side.area(5) + 2048);
  timed(side, [&](std::uint32_t n) { return bare::meet(peer_ptr(side.view, flag, side.other()), flag, side.sequence + n); });
}
template <class Crew>
__global__ void reductions(Side side) {
  const Crew crew;
  Calls<Crew> calls(crew, side.view);
  auto* const values = reinterpret_cast<float*>(side.area(0));
  timed(side, [&](std::uint32_t) {
    return calls.template allreduce<Max>(values, values, side.bytes / 4, kDeadline) == Status::ok;
  });
}
// PE 0 alone, one after the other, on PE 1's word.
template <bool kFetching>
__global__ void adds(Side side) {
  auto* const word = reinterpret_cast<std::uint64_t*>(side.area(5) + 3072);
  std::uint64_t found = 0;
  timed(side, [&](std::uint32_t n) {
    if (side.view.pe != 0) return true;
    // Each waits for what the one before it found.
    if (kFetching)
      found = atomic_fetch_add(side.view, word, 1 + (found >> 63), 1);
    else
      atomic_add(side.view, word, std::uint64_t{1}, 1);
    if (!kFetching && n == side.iterations) quiet();
    return true;
  });
}

using Kernel = void (*)(Side);

struct Two {
  int devices[2] = {0, 0};
  Side sides[2] = {};
  cudaStream_t streams[2] = {};
  std::uint32_t* abort_word = nullptr;
  bool apart() const { return devices[0] != devices[1]; }
};

void make(Two& pair) {
  const std::size_t bytes = IST_TEAM_SYNC_BYTES(2) + 6 * kRoom;
  must(cudaHostAlloc(&pair.abort_word, 64, cudaHostAllocMapped | cudaHostAllocPortable), "cudaHostAlloc");
  *pair.abort_word = 0;
  unsigned char* parts[2];
  for (int pe = 0; pe < 2; ++pe) {
    must(cudaSetDevice(pair.devices[pe]), "cudaSetDevice");
    if (pair.apart()) must(cudaDeviceEnablePeerAccess(pair.devices[1 - pe], 0), "cudaDeviceEnablePeerAccess");
    must(cudaMalloc(&parts[pe], bytes), "cudaMalloc");
    must(cudaMemset(parts[pe], 0, bytes), "cudaMemset");
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    must(cudaStreamCreateWithFlags(&pair.streams[pe], cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    must(cudaHostAlloc(&pair.sides[pe].result, sizeof(Result), cudaHostAllocMapped | cudaHostAllocPortable),
         "cudaHostAlloc");
  }
  for (int pe = 0; pe < 2; ++pe)
    pair.sides[pe].view = {
        pe, 2, parts[0], static_cast<std::uint64_t>(parts[1] - parts[0]), bytes, 0, IST_TEAM_SYNC_BYTES(2), pair.abort_word};
}

// The two sides at once; the worse status of the two.
int run(Two& pair, Kernel kernel, std::uint32_t iterations, std::uint32_t sequence, std::uint32_t bytes, unsigned blocks,
        unsigned threads) {
  for (int pe = 0; pe < 2; ++pe) {
    Side& side = pair.sides[pe];
    *side.result = {};
    side.iterations = iterations;
    side.sequence = sequence;
    side.bytes = bytes;
    must(cudaSetDevice(pair.devices[pe]), "cudaSetDevice");
    if (blocks > 1 && pair.apart()) {
      const Launch launch = launch_grid(kernel, blocks, threads, 0, pair.streams[pe], 0, side);
      if (!launch.ok()) std::fprintf(stderr, "in_kernel: %s\n", launch.text.c_str());
      must(launch.error, "launch of a grid");
    } else {
      // On one GPU two grids have to be resident together, which the cooperative launch of one knows nothing of: they are small.
      kernel<<<blocks, threads, 0, pair.streams[pe]>>>(side);
      must(cudaGetLastError(), "launch");
    }
  }
  for (int pe = 0; pe < 2; ++pe) {
    must(cudaSetDevice(pair.devices[pe]), "cudaSetDevice");
    must(cudaStreamSynchronize(pair.streams[pe]), "cudaStreamSynchronize");
  }
  return std::max(pair.sides[0].result->status, pair.sides[1].result->status);
}

#include "in_kernel_rows.hpp"

}  // namespace

int main(int count, char** words) {
  // A kernel that waits must not hold up the loading of the next one.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  int gpus = 0, can = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
    std::printf("SKIPPED: kernels need a CUDA device, and there is none\n");
    return 0;
  }
  const bool quick = count > 1 && std::string(words[1]) == "quick";
  const std::string part = quick && count > 2 ? words[2] : "";
  with_bulk = part != "no-bulk";
  with_others = part != "bulk";
  if (quick) shortened = 50 * heap_kernels::shorter_by();
  Two pair;
  if (gpus > 1) must(cudaDeviceCanAccessPeer(&can, 0, 1), "cudaDeviceCanAccessPeer");
  if (can != 0) pair.devices[1] = 1;
  make(pair);
  cudaDeviceProp properties;
  must(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  std::printf("{\"gpus\": %d, \"between\": \"%s\", \"gpu\": \"%s\", \"checks\": [", gpus,
              pair.apart() ? "two GPUs" : "two kernels on one GPU", properties.name);
  const bool right = check_all(pair);
  std::printf("\n], \"rows\": [");
  const bool timed = right && (quick || measure_all(pair));
  std::printf("\n]}\n");
  return timed ? 0 : 1;
}
