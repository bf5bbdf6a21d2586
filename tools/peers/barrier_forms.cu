// What a push barrier of two GPUs consists of, and whether another form of it is quicker: by a block of each, in one process, no library in the way.
//
//   barrier_forms    prints one JSON object: {"gpus": N, "gpu": name, "driver": version, "benchmark": "barrier forms",
//                    "rows": [{"form", "threads", "stores", "us", "us_low", "us_high"}]}
//
// Each iteration is one barrier, before which the block has stored `stores` words of 8 bytes into the other GPU's memory. Forms: "release, acquire": each flag is stored with
// release and looked at with acquire, as Isthmus's is; "relaxed looks": vain looks order nothing, and one with acquire follows the one that was not in vain; "relaxed looks,
// fence": a fence takes its place; "one fence": one thread fences for all, and the flag's store orders nothing; "added": the flag is added to with release, by the link's
// atomics; "warp": all by the first warp alone, which meets by itself; "no order": no fence at all, so no barrier for stores; "fence of the GPU": the fence of one device
// in its place, which orders nothing between two; and what one side does by itself: "fence alone", "release alone" (the store of a flag over the link with its fence), in a loop. Medians over 9 rounds of 4000
// by turns, of which the first tenth warms up. A wait in vain ends the program with status 1.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "cuda_must.cuh"

namespace {

constexpr int kRounds = 9;
constexpr std::uint32_t kIterations = 4000;
constexpr unsigned kPolls = 1U << 25;

struct Side {
  std::uint64_t* here;   // flag, and from word 32 on the room for the other's words
  std::uint64_t* there;  // the other GPU's
  std::uint64_t before;
  std::uint32_t stores;
  long long* nanoseconds;  // -1: a wait was in vain
};

enum class Form {
  ordered,
  relaxed_looks,
  relaxed_looks_fence,
  one_fence,
  added,
  warp,
  no_order,
  fence_of_gpu,
  fence_alone,
  release_alone
};

__device__ void store_relaxed(std::uint64_t* to, std::uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}
__device__ void store_release(std::uint64_t* to, std::uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}
__device__ void add_release(std::uint64_t* to, std::uint64_t value) {
  asm volatile("red.release.sys.global.add.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}
__device__ std::uint64_t load_relaxed(const std::uint64_t* from) {
  std::uint64_t value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
  return value;
}
__device__ std::uint64_t load_acquire(const std::uint64_t* from) {
  std::uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
  return value;
}
__device__ void fence() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
__device__ long long now() {
  long long value;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(value));
  return value;
}

template <Form kForm>
__device__ void tell(std::uint64_t* flag, std::uint64_t value) {
  if constexpr (kForm == Form::one_fence) {
    fence();
    store_relaxed(flag, value);
  } else if constexpr (kForm == Form::added) {
    add_release(flag, 1);
  } else if constexpr (kForm == Form::no_order) {
    store_relaxed(flag, value);
  } else if constexpr (kForm == Form::fence_of_gpu) {
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    store_relaxed(flag, value);
  } else {
    store_release(flag, value);
  }
}
template <Form kForm>
__device__ bool hear(const std::uint64_t* flag, std::uint64_t value) {
  constexpr bool kRelaxed = kForm == Form::relaxed_looks || kForm == Form::relaxed_looks_fence || kForm == Form::no_order ||
                            kForm == Form::fence_of_gpu;
  for (unsigned left = kPolls; (kRelaxed ? load_relaxed(flag) : load_acquire(flag)) < value;)
    if (--left == 0) return false;
  if constexpr (kForm == Form::relaxed_looks) (void)load_acquire(flag);
  if constexpr (kForm == Form::relaxed_looks_fence) fence();
  if constexpr (kForm == Form::fence_of_gpu) asm volatile("fence.acq_rel.gpu;" ::: "memory");
  return true;
}

template <Form kForm>
__device__ bool one(const Side& side, std::uint64_t n) {
  for (std::uint32_t i = threadIdx.x; i < side.stores; i += blockDim.x) store_relaxed(&side.there[32 + i], n);
  bool come = true;
  if constexpr (kForm == Form::fence_alone || kForm == Form::release_alone) {
    __syncthreads();
    if (threadIdx.x == 0) kForm == Form::fence_alone ? fence() : store_release(side.there, n);
    __syncthreads();
    return true;
  } else if constexpr (kForm == Form::warp) {
    if (threadIdx.x >= 32) return true;
    __syncwarp();
    if (threadIdx.x == 0) {
      tell<kForm>(side.there, n);
      come = hear<kForm>(side.here, n);
    }
    return __shfl_sync(~0U, come ? 1 : 0, 0) != 0;
  } else {
    __syncthreads();
    if (threadIdx.x == 0) {
      tell<kForm>(side.there, n);
      come = hear<kForm>(side.here, n);
    }
    return __syncthreads_and(come) != 0;
  }
}

template <Form kForm>
__global__ void barriers(Side side) {
  long long begun = 0;
  bool went = true;
  for (std::uint32_t n = 1; n <= kIterations && went; ++n) {
    if (n == kIterations / 10) begun = now();
    went = one<kForm>(side, side.before + n);
  }
  if (threadIdx.x == 0) *side.nanoseconds = went ? now() - begun : -1;
}

struct Way {
  const char* form;
  void (*kernel)(Side);
  unsigned threads;
  std::uint32_t stores;
  bool flags = true;  // one side's flag is left as it was otherwise
  std::vector<double> times = {};
};

std::vector<Way> all_ways() {
  std::vector<Way> ways;
  for (const std::uint32_t stores : {0U, 64U, 1024U})
    for (const unsigned threads : {32U, 256U}) {
      ways.push_back({"release, acquire", barriers<Form::ordered>, threads, stores});
      ways.push_back({"relaxed looks", barriers<Form::relaxed_looks>, threads, stores});
      ways.push_back({"relaxed looks, fence", barriers<Form::relaxed_looks_fence>, threads, stores});
      ways.push_back({"one fence", barriers<Form::one_fence>, threads, stores});
      ways.push_back({"added", barriers<Form::added>, threads, stores});
      if (threads == 32) ways.push_back({"warp", barriers<Form::warp>, threads, stores});
      ways.push_back({"no order", barriers<Form::no_order>, threads, stores});
      ways.push_back({"fence of the GPU", barriers<Form::fence_of_gpu>, threads, stores});
      ways.push_back({"fence alone", barriers<Form::fence_alone>, threads, stores, false});
      ways.push_back({"release alone", barriers<Form::release_alone>, threads, stores});
    }
  return ways;
}

}  // namespace

int main() {
  // A kernel that waits must not hold up the loading of the next one.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  int gpus = 0, can = 0, driver = 0;
  must(cudaGetDeviceCount(&gpus), "cudaGetDeviceCount");
  if (gpus > 1) must(cudaDeviceCanAccessPeer(&can, 0, 1), "cudaDeviceCanAccessPeer");
  if (can == 0) return std::fprintf(stderr, "barrier_forms: two GPUs that reach each other are needed\n"), 1;
  Side sides[2] = {};
  cudaStream_t streams[2];
  for (int gpu = 0; gpu < 2; ++gpu) {
    must(cudaSetDevice(gpu), "cudaSetDevice");
    must(cudaDeviceEnablePeerAccess(1 - gpu, 0), "cudaDeviceEnablePeerAccess");
    must(cudaStreamCreateWithFlags(&streams[gpu], cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    must(cudaMalloc(&sides[gpu].here, 1 << 20), "cudaMalloc");
    must(cudaMemset(sides[gpu].here, 0, 1 << 20), "cudaMemset");
    must(cudaHostAlloc(&sides[gpu].nanoseconds, 64, cudaHostAllocMapped | cudaHostAllocPortable), "cudaHostAlloc");
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  for (int gpu = 0; gpu < 2; ++gpu) sides[gpu].there = sides[1 - gpu].here;
  std::vector<Way> ways = all_ways();
  std::uint64_t before = 0;
  for (int round = 0; round < kRounds; ++round)
    for (Way& way : ways) {
      for (int gpu = 0; gpu < 2; ++gpu) {
        must(cudaSetDevice(gpu), "cudaSetDevice");
        sides[gpu].before = before;
        sides[gpu].stores = way.stores;
        way.kernel<<<1, way.threads, 0, streams[gpu]>>>(sides[gpu]);
        must(cudaGetLastError(), "launch");
      }
      for (int gpu = 0; gpu < 2; ++gpu) must(cudaStreamSynchronize(streams[gpu]), "cudaStreamSynchronize");
      if (way.flags) before += kIterations;
      for (const Side& side : sides)
        if (*side.nanoseconds < 0)
          return std::fprintf(stderr, "barrier_forms: %s, %u threads: a wait was in vain\n", way.form, way.threads), 1;
      way.times.push_back(static_cast<double>(*sides[0].nanoseconds) / 1e3 / (kIterations - kIterations / 10 + 1));
    }
  cudaDeviceProp properties;
  must(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  must(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  std::printf("{\"gpus\": %d, \"gpu\": \"%s\", \"driver\": %d, \"benchmark\": \"barrier forms\", \"rows\": [", gpus,
              properties.name, driver);
  const char* between = "";
  for (Way& way : ways) {
    std::sort(way.times.begin(), way.times.end());
    std::printf(
        "%s\n {\"form\": \"%s\", \"threads\": %u, \"stores\": %u, \"us\": %.3f, \"us_low\": %.3f, \"us_high\": %.3f}",
        between, way.form, way.threads, way.stores, way.times[kRounds / 2], way.times.front(), way.times.back());
    between = ",";
  }
  std::printf("\n]}\n");
  return 0;
}
