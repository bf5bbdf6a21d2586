// NVSHMEM's calls in kernels between two GPUs, timed as tests/device/in_kernel.cu times Isthmus's: one process for each GPU.
//
//   nvshmem_in_kernel      prints one JSON object: {"peer_name": ..., "gpus": N, "gpu": name, "checked_bytes": N,
//                          "rows": [{"call", "by", "bytes", "threads", "us", "us_low", "us_high"}]}
//   nvshmem_in_kernel all  the same of barriers among all GPUs alone (eight at most), as tests/device/in_kernel_team.cu has them
//
// Times are by PE 0's clock, of half a round trip or of one barrier, over 4000 iterations of which the first tenth warms up: the median of
// five rounds and the least and the most of them, and for each call the threads that are best. Every byte that every form of put carries is
// compared before. The two processes find each other by the library's unique id, which lies in memory that they share; NVLink's multicast
// is off unless NVSHMEM_DISABLE_NVLS says otherwise. Whatever waits in vain is ended by an alarm. Status 1 if anything was wrong.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "cuda_must.cuh"
#include "forked_ranks.cuh"

namespace {

constexpr int kRounds = 5;
constexpr std::uint32_t kIterations = 4000;
constexpr std::uint32_t kMostBytes = 65536;
constexpr std::uint32_t kManyBytes = 32 << 20;  // of puts that many blocks make together
constexpr std::uint64_t kPlaces = 64;           // words of one thread, which it stores one after the other
constexpr std::size_t kGuard = 64;              // behind the destination, where nothing may be stored
constexpr unsigned kMostSeconds = 100;          // a run takes some 20

void must(bool fine, const char* what) {
  if (fine) return;
  std::fprintf(stderr, "nvshmem_in_kernel: %s failed\n", what);
  std::exit(1);
}

// What a kernel is given. The numbers of a signal go on from `before`.
struct Side {
  int rank;
  std::uint32_t iterations;
  std::uint64_t before;
  std::uint32_t bytes;
  std::uint32_t places;  // of so many bytes each, which blocks put one after the other
  unsigned char *out, *in;
  std::uint64_t *signal, *counter;
  unsigned char *many_out, *many_in;
  long long* nanoseconds;
  long long *begun, *ended;  // of the first block, and of the last one
  __device__ int other() const { return 1 - rank; }
};

__device__ long long now() {
  long long value;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(value));
  return value;
}

// Every iteration, `n` counting from 1; the first tenth warms up.
template <class Step>
__device__ __forceinline__ void timed(const Side& side, const Step& step) {
  long long begun = 0;
  for (std::uint32_t n = 1; n <= side.iterations; ++n) {
    if (n == side.iterations / 10) begun = now();
    step(n);
  }
  if (threadIdx.x == 0) *side.nanoseconds = now() - begun;
}

// What is sent in one iteration each way, and how the threads that made the call learn that it has come.
struct Signal {
  static __device__ void send(const Side& side, std::uint64_t value) {
    nvshmemx_signal_op(side.signal, value, NVSHMEM_SIGNAL_SET, side.other());
  }
  static __device__ void meet() {}
};
struct PutByThread {
  static __device__ void send(const Side& side, std::uint64_t value) {
    nvshmem_putmem_signal(side.in, side.out, side.bytes, side.signal, value, NVSHMEM_SIGNAL_SET, side.other());
  }
  static __device__ void meet() {}
};
struct PutByWarp {
  static __device__ void send(const Side& side, std::uint64_t value) {
    nvshmemx_putmem_signal_warp(side.in, side.out, side.bytes, side.signal, value, NVSHMEM_SIGNAL_SET, side.other());
  }
  static __device__ void meet() { __syncwarp(); }
};
struct PutByBlock {
  static __device__ void send(const Side& side, std::uint64_t value) {
    nvshmemx_putmem_signal_block(side.in, side.out, side.bytes, side.signal, value, NVSHMEM_SIGNAL_SET, side.other());
  }
  static __device__ void meet() { __syncthreads(); }
};

template <class Form>
__global__ void ping_pong(Side side) {
  timed(side, [&](std::uint32_t n) {
    for (int leg = 0; leg < 2; ++leg) {
      if (leg == side.rank) {
        Form::send(side, side.before + n);
      } else {
        if (threadIdx.x == 0) nvshmem_signal_wait_until(side.signal, NVSHMEM_CMP_GE, side.before + n);
        Form::meet();
      }
    }
  });
}
__global__ void barriers(Side side) {
  timed(side, [](std::uint32_t) { nvshmemx_barrier_all_block(); });
}
__global__ void syncs(Side side) {
  timed(side, [](std::uint32_t) { nvshmemx_sync_all_block(); });
}
// PE 0 alone, one after the other, on PE 1's word: each waits for what the one before it found.
__global__ void adds(Side side) {
  std::uint64_t found = 0;
  timed(side, [&](std::uint32_t) {
    if (side.rank == 0) found = nvshmem_uint64_atomic_fetch_add(side.counter, 1 + (found >> 63), 1);
  });
}

// The same without an answer, by PE 0, from where its first block begins until nothing is under way any more where the last one ends: a clock of each block
// by itself would leave out how much longer some wait for the link than others. The round before has warmed up.
template <class Step>
__device__ __forceinline__ void timed_by_all(const Side& side, const Step& step) {
  if (side.rank != 0) return;
  const long long begun = now();
  for (std::uint32_t n = 1; n <= side.iterations; ++n) step(n);
  nvshmem_quiet();
  __syncthreads();
  if (threadIdx.x != 0) return;
  atomicMin(reinterpret_cast<unsigned long long*>(side.begun), static_cast<unsigned long long>(begun));
  atomicMax(reinterpret_cast<unsigned long long*>(side.ended), static_cast<unsigned long long>(now()));
}
__global__ void only_adds(Side side) {
  timed_by_all(side, [&](std::uint32_t) { nvshmem_uint64_atomic_add(side.counter + 1, 1, 1); });
}
__global__ void stores(Side side) {
  auto* const words = reinterpret_cast<std::uint64_t*>(side.many_in);
  const std::uint64_t all = gridDim.x * blockDim.x, mine = blockIdx.x * blockDim.x + threadIdx.x;
  timed_by_all(side, [&](std::uint32_t n) { nvshmem_uint64_p(&words[n % kPlaces * all + mine], n, 1); });
}
// Each block puts its part.
__global__ void puts(Side side) {
  const std::uint32_t part = side.bytes / gridDim.x / 16 * 16, at = blockIdx.x * part;
  const std::uint32_t length = blockIdx.x + 1 == gridDim.x ? side.bytes - at : part;
  timed_by_all(side, [&](std::uint32_t n) {
    const std::uint64_t to = std::uint64_t{n} % side.places * side.bytes + at;
    nvshmemx_putmem_nbi_block(side.many_in + to, side.many_out + to, length, 1);
  });
}
// Short ones, each to the next place.
template <unsigned kThreads>
__global__ void small_puts(Side side) {
  timed_by_all(side, [&](std::uint32_t n) {
    unsigned char *const to = side.many_in + n % kPlaces * side.bytes, *const from =
                                                                           side.many_out + n % kPlaces * side.bytes;
    if (kThreads == 1) nvshmem_putmem_nbi(to, from, side.bytes, 1);
    if (kThreads == 32) nvshmemx_putmem_nbi_warp(to, from, side.bytes, 1);
    if (kThreads == 256) nvshmemx_putmem_nbi_block(to, from, side.bytes, 1);
  });
}

struct Board {
  peers::MeetingPlace place;
  nvshmemx_uniqueid_t id;
};

struct Rank {
  Board& board;
  Side side;
  int ranks;
  cudaStream_t stream = nullptr;
  void meet() { board.place.meet(ranks); }
};

struct Way {
  const char* by;
  void (*kernel)(Side);
  unsigned threads;
  unsigned blocks = 0;  // 0: one, which has as much to do as one can
  // As of ours: one that would take a second is never the best; a block that wants more registers than there are cannot be launched.
  bool suits(std::uint32_t bytes) const {
    cudaFuncAttributes attributes;
    must(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
    return (blocks != 0 || bytes / 16 <= 64 * threads) && threads <= static_cast<unsigned>(attributes.maxThreadsPerBlock);
  }
};

// Both ranks at once; nanoseconds of an iteration by this rank's clock.
double run(Rank& r, const Way& way, std::uint32_t bytes, std::uint32_t iterations) {
  r.side.bytes = bytes;
  r.side.places = std::clamp(kManyBytes / std::max(bytes, 1U), 1U, static_cast<std::uint32_t>(kPlaces));
  r.side.iterations = iterations;
  *r.side.nanoseconds = 0;
  *r.side.begun = std::numeric_limits<long long>::max();
  *r.side.ended = 0;
  r.meet();
  way.kernel<<<std::max(way.blocks, 1U), way.threads, 0, r.stream>>>(r.side);
  must(cudaGetLastError(), "launch");
  must(cudaStreamSynchronize(r.stream), "cudaStreamSynchronize");
  r.side.before += iterations;
  if (*r.side.ended != 0) return static_cast<double>(*r.side.ended - *r.side.begun) / iterations;
  return static_cast<double>(*r.side.nanoseconds) / (iterations - iterations / 10 + 1);
}

// Each rank sends bytes that only it knows how to make again, into a destination that holds something else.
std::size_t compare(Rank& r, const Way& way, std::uint32_t bytes) {
  const auto made_by = [&](int rank) {
    std::mt19937_64 random(bytes * 2 + static_cast<unsigned>(rank) + 1000003ULL * way.threads);
    std::vector<unsigned char> made(bytes);
    for (unsigned char& one : made) one = static_cast<unsigned char>(random() >> 56);
    return made;
  };
  const std::vector<unsigned char> mine = made_by(r.side.rank), theirs = made_by(1 - r.side.rank);
  std::vector<unsigned char> poison(bytes + kGuard), found(bytes + kGuard);
  for (std::size_t i = 0; i < poison.size(); ++i) poison[i] = static_cast<unsigned char>(i < bytes ? ~theirs[i] : 0xa5);
  must(cudaMemcpy(r.side.out, mine.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  must(cudaMemcpy(r.side.in, poison.data(), poison.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
  must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  run(r, way, bytes, 1);
  must(cudaMemcpy(found.data(), r.side.in, found.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
  must(std::memcmp(found.data(), theirs.data(), bytes) == 0, "the comparison of the bytes that arrived");
  for (std::size_t i = bytes; i < found.size(); ++i)
    must(found[i] == 0xa5, "the comparison of the bytes behind those that arrived");
  r.meet();  // or the next bytes would come before these are compared
  return bytes;
}

int printed = 0;

// The best of the ways, by their medians over rounds in turn; `legs`: so many in an iteration.
void row(Rank& r, const char* call, std::uint32_t bytes, int legs, const std::vector<Way>& ways,
         std::uint32_t iterations = kIterations) {
  std::vector<std::vector<double>> times(ways.size());
  for (int round = 0; round < kRounds; ++round)
    for (std::size_t k = 0; k < ways.size(); ++k)
      if (ways[k].suits(bytes)) times[k].push_back(run(r, ways[k], bytes, iterations) / 1e3 / legs);
  std::size_t best = ways.size();
  for (std::size_t k = 0; k < ways.size(); ++k) {
    if (times[k].empty()) continue;
    std::sort(times[k].begin(), times[k].end());
    if (best == ways.size() || times[k][kRounds / 2] < times[best][kRounds / 2]) best = k;
  }
  must(best < ways.size(), "finding a way that can be launched");
  if (r.side.rank != 0) return;
  std::printf(
      "%s\n {\"call\": \"%s\", \"by\": \"%s\", \"bytes\": %u, \"threads\": %u, \"us\": %.6f, \"us_low\": %.6f, \"us_high\": "
      "%.6f}",
      printed++ ? "," : "", call, ways[best].by, bytes, ways[best].threads, times[best][kRounds / 2], times[best].front(),
      times[best].back());
}

// One way, by PE 0's threads or blocks: `us` is of one word, or of one put of all blocks together.
void measure_one_way(Rank& r, unsigned multiprocessors) {
  struct Threads {
    const char* by;
    unsigned blocks, threads;
  };
  for (const auto& [by, blocks, threads] :
       {Threads{"a thread", 1, 1}, Threads{"a warp", 1, 32}, Threads{"4 blocks", 4, 256}, Threads{"32 blocks", 32, 256}})
    row(r, "p", 8, static_cast<int>(blocks * threads), {{by, stores, threads, blocks}});
  row(r, "atomic_add", 8, 1, {{"a thread", only_adds, 1}});
  for (const std::uint32_t bytes : {8U, 16U, 64U, 128U, 512U})
    for (const Way& way :
         {Way{"a thread", small_puts<1>, 1}, Way{"a warp", small_puts<32>, 32}, Way{"a block", small_puts<256>, 256}})
      row(r, "put_nbi", bytes, 1, {way});
  must(cudaMemset(r.side.rank == 0 ? r.side.many_out : r.side.many_in, r.side.rank == 0 ? 0x5a : 0, kManyBytes),
       "cudaMemset");
  must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  const std::string all = std::to_string(multiprocessors) + " blocks";
  for (const std::uint32_t bytes : {1U << 16, 1U << 19, 1U << 22, kManyBytes})
    for (const auto& [by, blocks, threads] : {Threads{"1 block", 1, 512}, Threads{"8 blocks", 8, 512},
                                              Threads{"32 blocks", 32, 512}, Threads{all.c_str(), multiprocessors, 512}})
      row(r, "put_nbi", bytes, 1, {{by, puts, threads, blocks}}, std::max(20U, std::min(2000U, (1U << 28) / bytes)));
  r.meet();
  if (r.side.rank == 0) return;
  std::vector<unsigned char> found(kManyBytes);
  must(cudaMemcpy(found.data(), r.side.many_in, found.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
  must(std::all_of(found.begin(), found.end(), [](unsigned char one) { return one == 0x5a; }),
       "the comparison of the bytes that blocks put");
}

void measure_meetings(Rank& r) {
  for (const unsigned threads : {32U, 256U}) row(r, "barrier", 0, 1, {{"a block", barriers, threads}});
  for (const unsigned threads : {32U, 256U}) row(r, "sync", 0, 1, {{"a block", syncs, threads}});
}

void measure(Rank& r) {
  std::vector<Way> puts = {{"a thread", ping_pong<PutByThread>, 1}, {"a warp", ping_pong<PutByWarp>, 32}};
  for (const unsigned threads : {32U, 64U, 128U, 256U, 512U, 1024U})
    puts.push_back({"a block", ping_pong<PutByBlock>, threads});
  const std::vector<std::uint32_t> sizes = {8, 64, 512, 4096, 16384, kMostBytes};
  std::size_t checked = 0;
  for (const std::uint32_t bytes : sizes)
    for (const Way& way : puts)
      if (way.suits(bytes)) checked += compare(r, way, bytes);
  if (r.side.rank == 0) std::printf("\"checked_bytes\": %zu, \"rows\": [", checked);
  row(r, "signal", 8, 2, {{"a thread", ping_pong<Signal>, 1}});
  for (const std::uint32_t bytes : sizes) row(r, "put_signal", bytes, 2, puts);
  measure_meetings(r);
  row(r, "atomic_fetch_add", 8, 1, {{"a thread", adds, 1}});
  cudaDeviceProp properties;
  must(cudaGetDeviceProperties(&properties, r.side.rank), "cudaGetDeviceProperties");
  measure_one_way(r, static_cast<unsigned>(properties.multiProcessorCount));
  r.meet();  // all of PE 0's are done
  std::uint64_t sums[2] = {};
  must(cudaMemcpy(sums, r.side.counter, sizeof sums, cudaMemcpyDeviceToHost), "cudaMemcpy");
  for (const std::uint64_t sum : sums)
    must(sum == (r.side.rank == 0 ? 0 : std::uint64_t{kRounds} * kIterations), "the comparison of what was added");
}

void join(Board& board, int rank, int ranks) {
  nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
  if (rank == 0) {
    must(nvshmemx_get_uniqueid(&id) == 0, "nvshmemx_get_uniqueid");
    board.id = id;
  }
  board.place.meet(ranks);
  id = board.id;
  nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
  must(nvshmemx_set_attr_uniqueid_args(rank, ranks, &id, &attributes) == 0, "nvshmemx_set_attr_uniqueid_args");
  must(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes) == 0, "nvshmemx_init_attr");
}

int be_rank(Board& board, int rank, int ranks) {
  alarm(kMostSeconds);
  int gpus = 0;
  must(cudaGetDeviceCount(&gpus), "cudaGetDeviceCount");
  must(gpus >= ranks, "finding a GPU for each process");
  must(cudaSetDevice(rank), "cudaSetDevice");
  join(board, rank, ranks);
  Rank r{board, Side{rank, 0, 0, 0, 1, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr}, ranks};
  must(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking), "cudaStreamCreate");
  must(cudaHostAlloc(&r.side.nanoseconds, 3 * sizeof(long long), cudaHostAllocMapped), "cudaHostAlloc");
  r.side.begun = r.side.nanoseconds + 1, r.side.ended = r.side.nanoseconds + 2;
  r.side.out = static_cast<unsigned char*>(nvshmem_malloc(kMostBytes));
  r.side.in = static_cast<unsigned char*>(nvshmem_malloc(kMostBytes + kGuard));
  r.side.signal = static_cast<std::uint64_t*>(nvshmem_calloc(1, sizeof(std::uint64_t)));
  r.side.counter = static_cast<std::uint64_t*>(nvshmem_calloc(2, sizeof(std::uint64_t)));
  r.side.many_out = static_cast<unsigned char*>(nvshmem_malloc(kManyBytes));
  r.side.many_in = static_cast<unsigned char*>(nvshmem_malloc(kManyBytes));
  must(r.side.out != nullptr && r.side.in != nullptr && r.side.signal != nullptr && r.side.counter != nullptr &&
           r.side.many_out != nullptr && r.side.many_in != nullptr,
       "nvshmem_malloc");
  nvshmem_barrier_all();
  int major = 0, minor = 0, patch = 0;
  nvshmemx_vendor_get_version_info(&major, &minor, &patch);
  cudaDeviceProp properties;
  must(cudaGetDeviceProperties(&properties, rank), "cudaGetDeviceProperties");
  if (rank == 0)
    std::printf("{\"peer_name\": \"NVSHMEM %d.%d.%d\", \"gpus\": %d, \"gpu\": \"%s\", ", major, minor, patch, gpus,
                properties.name);
  if (ranks == 2) {
    measure(r);
  } else {
    if (rank == 0) std::printf("\"rows\": [");
    measure_meetings(r);
  }
  if (rank == 0) std::printf("\n]}\n");
  std::fflush(stdout);
  r.meet();
  nvshmem_finalize();
  return 0;
}

// Asked in a process of its own: those that are forked later may not have a parent that has touched CUDA.
int gpus_of_another_process() {
  const pid_t child = fork();
  if (child == 0) {
    int gpus = 0;
    _exit(cudaGetDeviceCount(&gpus) == cudaSuccess ? std::min(gpus, 8) : 0);
  }
  int status = 0;
  must(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) > 1, "finding two GPUs");
  return WEXITSTATUS(status);
}

}  // namespace

int main(int count, char** words) {
  // A kernel that waits must not hold up the loading of the next one.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  setenv("NVSHMEM_DISABLE_NVLS", "1", 0);
  Board* const board = peers::shared_board<Board>();
  if (board == nullptr) {
    std::fprintf(stderr, "nvshmem_in_kernel: there is no memory that its two processes could share\n");
    return 2;
  }
  const int ranks = count > 1 && std::string(words[1]) == "all" ? gpus_of_another_process() : 2;
  return peers::fork_ranks(ranks, [=](int rank) { return be_rank(*board, rank, ranks); });
}
