// Between two GPUs, in which order a kernel should store over the link, and whether bulk copies by way of shared memory (TMA) are quicker. In one
// process, by kernels alone, no library in the way; every byte of every way is compared before it is timed.
//
//   link_stores      prints one JSON object: {"gpus": N, "rows": [{"way", "towards", "blocks", "threads", "bytes", "us", "gbs"}]}
//
// "towards": a peer's memory is written ("put") or read ("get"). Ways, of words of 16 bytes: "strided N": N words of a thread are a block's or grid's width
// apart, N loads before their stores; "warp N": a warp has N times 512 bytes in a row; "bulk S x C": by one thread of a block, C bytes at a
// time, S on their way. Grids share the bytes in two manners: "parts", each block one piece of them, and "in turns". us: the median of
// rounds of many copies in one stream, each by a launch.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "cuda_must.cuh"
#include "isthmus/device/bulk.cuh"

namespace {

// Where a block's share begins, how much it has, and how far it is to its next one.
struct Shares {
  const char* from;
  char* to;
  std::uint64_t bytes;
  bool parts;
};

template <int kWords>
__device__ void strided(char* to, const char* from, std::uint64_t bytes, std::uint64_t thread, std::uint64_t threads) {
  const auto* const source = reinterpret_cast<const uint4*>(from);
  auto* const target = reinterpret_cast<uint4*>(to);
  const std::uint64_t words = bytes / 16;
  std::uint64_t i = thread;
  for (; i + (kWords - 1) * threads < words; i += kWords * threads) {
    uint4 word[kWords];
#pragma unroll
    for (int n = 0; n < kWords; ++n) word[n] = source[i + n * threads];
#pragma unroll
    for (int n = 0; n < kWords; ++n) target[i + n * threads] = word[n];
  }
  for (; i < words; i += threads) target[i] = source[i];
}

template <int kWords>
__device__ void by_warps(char* to, const char* from, std::uint64_t bytes, std::uint64_t warp, std::uint64_t warps) {
  const auto* const source = reinterpret_cast<const uint4*>(from);
  auto* const target = reinterpret_cast<uint4*>(to);
  const std::uint64_t words = bytes / 16, lane = threadIdx.x % 32;
  for (std::uint64_t first = warp * 32 * kWords; first < words; first += warps * 32 * kWords) {
    uint4 word[kWords];
#pragma unroll
    for (int n = 0; n < kWords; ++n)
      if (first + n * 32 + lane < words) word[n] = source[first + n * 32 + lane];
#pragma unroll
    for (int n = 0; n < kWords; ++n)
      if (first + n * 32 + lane < words) target[first + n * 32 + lane] = word[n];
  }
}

__device__ Shares of_block(const Shares& all) {
  if (!all.parts) return all;
  const std::uint64_t part = all.bytes / gridDim.x / 128 * 128, at = blockIdx.x * part;
  return {all.from + at, all.to + at, blockIdx.x + 1 == gridDim.x ? all.bytes - at : part, true};
}

template <int kWords>
__global__ void strided_kernel(Shares all) {
  const Shares mine = of_block(all);
  if (all.parts)
    strided<kWords>(mine.to, mine.from, mine.bytes, threadIdx.x, blockDim.x);
  else
    strided<kWords>(mine.to, mine.from, mine.bytes, std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x,
                    std::uint64_t{gridDim.x} * blockDim.x);
}
template <int kWords>
__global__ void warps_kernel(Shares all) {
  const Shares mine = of_block(all);
  const std::uint64_t warp = threadIdx.x / 32, warps = blockDim.x / 32;
  if (all.parts)
    by_warps<kWords>(mine.to, mine.from, mine.bytes, warp, warps);
  else
    by_warps<kWords>(mine.to, mine.from, mine.bytes, blockIdx.x * warps + warp, gridDim.x * warps);
}

// ---- bulk copies ----

// Chunks in turns, whichever manner: a part of them lies in a row.
template <int kStages>
__global__ void bulk_kernel(Shares all, std::uint32_t chunk) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  namespace bulk = ist::device::bulk;
  extern __shared__ __align__(128) unsigned char room[];
  __shared__ std::uint64_t full[kStages];
  if (threadIdx.x != 0) return;
  for (int s = 0; s < kStages; ++s) bulk::set_up(&full[s]);
  bulk::fence_of_set_up();
  const Shares mine = of_block(all);
  const std::uint64_t chunks = (mine.bytes + chunk - 1) / chunk, first = all.parts ? 0 : blockIdx.x,
                      step = all.parts ? 1 : gridDim.x;
  const std::uint64_t count = chunks > first ? (chunks - first + step - 1) / step : 0;
  const auto at = [&](std::uint64_t n) { return (first + n * step) * chunk; };
  const auto bytes = [&](std::uint64_t n) {
    const std::uint64_t left = mine.bytes - at(n);
    return static_cast<std::uint32_t>(left < chunk ? left : chunk);
  };
  const auto load = [&](std::uint64_t n) {
    bulk::load(room + n % kStages * chunk, reinterpret_cast<const unsigned char*>(mine.from + at(n)), bytes(n),
               &full[n % kStages]);
  };
  for (std::uint64_t n = 0; n < kStages && n < count; ++n) load(n);
  for (std::uint64_t n = 0; n < count; ++n) {
    bulk::await_load(&full[n % kStages], static_cast<std::uint32_t>(n / kStages % 2));
    bulk::store(reinterpret_cast<unsigned char*>(mine.to + at(n)), room + n % kStages * chunk, bytes(n));
    // The one before has been read out of its place, where the next one that it is for may go.
    if (n > 0 && n - 1 + kStages < count) {
      bulk::await_reads_but_one();
      load(n - 1 + kStages);
    }
  }
  bulk::await_stores();
#endif
}

using Kernel = void (*)(Shares);
struct Way {
  std::string name;
  Kernel kernel = nullptr;
  void (*bulk)(Shares, std::uint32_t) = nullptr;
  int stages = 0;
  std::uint32_t chunk = 0;
};

struct Run {
  unsigned blocks;
  unsigned threads;
};

void launch(const Way& way, const Run& run, const Shares& all, cudaStream_t stream) {
  if (way.kernel != nullptr) {
    way.kernel<<<run.blocks, run.threads, 0, stream>>>(all);
  } else {
    const std::size_t room = static_cast<std::size_t>(way.stages) * way.chunk;
    must(cudaFuncSetAttribute(way.bulk, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(room)),
         "cudaFuncSetAttribute");
    way.bulk<<<run.blocks, 32, room, stream>>>(all, way.chunk);
  }
  must(cudaGetLastError(), way.name.c_str());
}

double median_us(const Way& way, const Run& run, const Shares& all, cudaStream_t stream) {
  const int copies = static_cast<int>(std::clamp<std::uint64_t>((std::uint64_t{256} << 20) / all.bytes, 4, 200));
  cudaEvent_t begun, ended;
  must(cudaEventCreate(&begun), "cudaEventCreate");
  must(cudaEventCreate(&ended), "cudaEventCreate");
  std::vector<float> times;
  for (int round = 0; round < 6; ++round) {
    must(cudaEventRecord(begun, stream), "cudaEventRecord");
    for (int n = 0; n < copies; ++n) launch(way, run, all, stream);
    must(cudaEventRecord(ended, stream), "cudaEventRecord");
    must(cudaEventSynchronize(ended), "cudaEventSynchronize");
    float ms = 0;
    must(cudaEventElapsedTime(&ms, begun, ended), "cudaEventElapsedTime");
    if (round > 0) times.push_back(ms * 1e3F / static_cast<float>(copies));
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

constexpr std::uint64_t kMost = std::uint64_t{256} << 20;

std::vector<unsigned char> random_bytes() {
  std::vector<unsigned char> bytes(kMost);
  std::uint64_t state = 88172645463325252U;
  for (std::uint64_t i = 0; i < kMost; i += 8) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    *reinterpret_cast<std::uint64_t*>(&bytes[i]) = state;
  }
  return bytes;
}

std::vector<Way> all_ways() {
  std::vector<Way> ways{{"strided 1", strided_kernel<1>}, {"strided 4", strided_kernel<4>}, {"strided 8", strided_kernel<8>},
                        {"warp 2", warps_kernel<2>},      {"warp 4", warps_kernel<4>},      {"warp 8", warps_kernel<8>}};
  for (const std::uint32_t chunk : {2048U, 4096U, 8192U, 16384U})
    ways.push_back({"bulk 4 x " + std::to_string(chunk), nullptr, bulk_kernel<4>, 4, chunk});
  ways.push_back({"bulk 8 x 4096", nullptr, bulk_kernel<8>, 8, 4096});
  return ways;
}

// One row for each size, once the bytes of a copy whose size no grid divides have been compared.
struct Bench {
  const std::vector<unsigned char>& bytes;
  std::vector<unsigned char> found;
  cudaStream_t stream;
  const char* comma = "\n";

  void must_be_right(const Way& way, char* to, const char* from, bool parts) {
    constexpr std::uint64_t kOdd = (std::uint64_t{5} << 20) + 48;
    must(cudaMemset(to, 0xa5, kMost), "cudaMemset");
    launch(way, {24, 256}, {from, to, kOdd, parts}, stream);
    must(cudaStreamSynchronize(stream), way.name.c_str());
    must(cudaMemcpy(found.data(), to, kOdd + 64, cudaMemcpyDefault), "cudaMemcpy");
    for (std::uint64_t i = 0; i < kOdd + 64; ++i) {
      if (found[i] == (i < kOdd ? bytes[i] : 0xa5)) continue;
      std::fprintf(stderr, "link_stores: %s, %s: byte %llu is %d\n", way.name.c_str(), parts ? "parts" : "in turns",
                   static_cast<unsigned long long>(i), found[i]);
      std::exit(1);
    }
  }
  void rows(const Way& way, const Run& run, const Shares& shares, bool puts) {
    for (const std::uint64_t size : {std::uint64_t{1} << 20, std::uint64_t{32} << 20}) {
      const double us = median_us(way, run, {shares.from, shares.to, size, shares.parts}, stream);
      std::printf(
          "%s{\"way\": \"%s, %s\", \"towards\": \"%s\", \"blocks\": %u, \"threads\": %u, \"bytes\": %llu, "
          "\"us\": %.3f, \"gbs\": %.1f}",
          comma, way.name.c_str(), shares.parts ? "parts" : "in turns", puts ? "put" : "get", run.blocks,
          way.bulk != nullptr ? 1U : run.threads, static_cast<unsigned long long>(size), us,
          static_cast<double>(size) / us / 1e3);
      comma = ",\n";
    }
  }
};

}  // namespace

int main() {
  int gpus = 0;
  must(cudaGetDeviceCount(&gpus), "cudaGetDeviceCount");
  if (gpus < 2) {
    std::fprintf(stderr, "link_stores: it takes two GPUs, and there is %d\n", gpus);
    return 2;
  }
  char *near = nullptr, *far = nullptr;
  for (const int device : {1, 0}) {
    must(cudaSetDevice(device), "cudaSetDevice");
    must(cudaDeviceEnablePeerAccess(1 - device, 0), "cudaDeviceEnablePeerAccess");
    must(cudaMalloc(device == 0 ? &near : &far, kMost), "cudaMalloc");
  }
  const std::vector<unsigned char> bytes = random_bytes();
  Bench bench{bytes, std::vector<unsigned char>(kMost), nullptr};
  must(cudaStreamCreate(&bench.stream), "cudaStreamCreate");
  std::printf("{\"gpus\": %d, \"rows\": [", gpus);
  for (const bool puts : {true, false}) {
    char *const to = puts ? far : near, *const from = puts ? near : far;
    must(cudaMemcpy(from, bytes.data(), kMost, cudaMemcpyDefault), "cudaMemcpy");
    for (const Way& way : all_ways())
      for (const bool parts : {false, true}) {
        bench.must_be_right(way, to, from, parts);
        for (const unsigned blocks : {8U, 32U, 132U})
          for (const unsigned threads : {512U, 1024U})
            if (way.bulk == nullptr || threads == 512) bench.rows(way, {blocks, threads}, {from, to, 0, parts}, puts);
      }
  }
  std::printf("\n]}\n");
  return 0;
}
