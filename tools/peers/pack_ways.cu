// Which way of sharing units out among threads is quickest: the kernels of src/memory/cuda/pack_protocol.hpp with 1, 2, 4 and 8 units on
// their way in each thread, as many blocks as tiles or 8 or 16 of a multiprocessor, beside kernels by hand as in pack_kernels.cu, for its
// shapes. Every byte is compared first; the times are the device's, without a wait of the processor's. Needs a GPU and nothing of the
// library (nvcc -std=c++20 -O3 -arch=native -fmad=false -Isrc -Iinclude pack_ways.cu).
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <vector>

#include "cuda_must.cuh"
#include "memory/cuda/channel_crew.hpp"
#include "memory/cuda/pack_protocol.hpp"
#include "pack_by_hand.cuh"

namespace {

using namespace ist::packing;
constexpr std::uint64_t kTotal = std::uint64_t{256} << 20, kRoom = std::uint64_t{3} << 30;
constexpr unsigned kThreads = 256;

template <class Word, bool listed, unsigned at_once>
__global__ void __launch_bounds__(kThreads) pack(const __grid_constant__ Work work) {
  move_packed<Word, std::uint32_t, false, at_once>(ist::channel::DeviceCrew{0, gridDim.x}, work, [&](std::uint32_t unit) {
    return listed ? listed_place<Word>(work, unit) : row_place<Word>(work, unit);
  });
}
__global__ void fill(std::uint64_t* memory, std::uint64_t words) {
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < words;
       i += std::uint64_t{gridDim.x} * blockDim.x)
    memory[i] = (i + 1) * 0x9e3779b97f4a7c15;
}
__global__ void compare(const std::uint64_t* left, const std::uint64_t* right, std::uint64_t words, unsigned* differ) {
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < words;
       i += std::uint64_t{gridDim.x} * blockDim.x)
    if (left[i] != right[i]) atomicAdd(differ, 1U);
}

struct Bench {
  std::byte* memory = nullptr;
  std::byte* packed = nullptr;
  std::byte* by_hand = nullptr;
  unsigned* differ = nullptr;
  unsigned multiprocessors = 0;
  cudaEvent_t begin{}, end{};

  double median_us(const std::function<void()>& launch) const {
    std::vector<float> times;
    for (int i = 0; i < 18; ++i) {
      float milliseconds = 0;
      must(cudaEventRecord(begin), "cudaEventRecord");
      launch();
      must(cudaEventRecord(end), "cudaEventRecord");
      must(cudaEventSynchronize(end), "cudaEventSynchronize");
      must(cudaGetLastError(), "cudaGetLastError");
      must(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
      if (i >= 3) times.push_back(milliseconds);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2] * 1e3;
  }
  void compare_all(const char* what) const {
    unsigned found = 0;
    must(cudaMemset(differ, 0, sizeof found), "cudaMemset");
    compare<<<multiprocessors * 8, 256>>>(reinterpret_cast<const std::uint64_t*>(packed),
                                          reinterpret_cast<const std::uint64_t*>(by_hand), kTotal / 8, differ);
    must(cudaMemcpy(&found, differ, sizeof found, cudaMemcpyDeviceToHost), "cudaMemcpy");
    if (found == 0) return;
    std::fprintf(stderr, "pack_ways: %s: %u of %llu words of 8 bytes are wrong\n", what, found,
                 static_cast<unsigned long long>(kTotal / 8));
    std::exit(1);
  }
  template <class Word, bool listed, unsigned at_once>
  void way(const char* what, const Work& work, double theirs) const {
    const auto tiles = static_cast<unsigned>((work.units + kThreads * at_once - 1) / (kThreads * at_once));
    for (const unsigned most : {0U, 8U, 16U}) {
      const unsigned blocks = most == 0 ? tiles : std::min(tiles, multiprocessors * most);
      must(cudaMemset(packed, 0xa5, kTotal), "cudaMemset");
      must(cudaMemset(by_hand + work.bytes, 0xa5, kTotal - work.bytes), "cudaMemset");
      pack<Word, listed, at_once><<<blocks, kThreads>>>(work);
      compare_all(what);
      const double ours = median_us([&] { pack<Word, listed, at_once><<<blocks, kThreads>>>(work); });
      std::printf("  %u at once, %-16s %8.1f us  %.3f\n", at_once,
                  most == 0   ? "a block a tile"
                  : most == 8 ? "8 blocks an SM"
                              : "16 blocks an SM",
                  ours, theirs / ours);
    }
  }
  template <class Word, bool listed>
  void run(const char* what, Work work, const std::function<void()>& hand) const {
    work.memory = memory;
    work.packed = packed;
    work.units = work.bytes / sizeof(Word);
    hand();
    const double theirs = median_us(hand);
    std::printf("%s: by hand %.1f us, %.0f GB/s\n", what, theirs, static_cast<double>(work.bytes) / theirs / 1e3);
    way<Word, listed, 1>(what, work, theirs);
    way<Word, listed, 2>(what, work, theirs);
    way<Word, listed, 4>(what, work, theirs);
    way<Word, listed, 8>(what, work, theirs);
  }
};

template <class Word>
void strided(const Bench& bench, unsigned block, unsigned stride) {
  char what[64];
  std::snprintf(what, sizeof what, "vector %u B every %u", block, stride);
  Work work;
  work.bytes = kTotal / block * block;
  work.block = block / sizeof(Word);
  work.block_by = divisor(work.block);
  work.stride[3] = stride;
  bench.run<Word, false>(what, work, [&] {
    pack_by_hand<Word><<<132 * 16, 256>>>(reinterpret_cast<Word*>(bench.by_hand),
                                          reinterpret_cast<const Word*>(bench.memory),
                                          static_cast<unsigned>(work.bytes / sizeof(Word)),
                                          static_cast<unsigned>(work.block), static_cast<unsigned>(stride / sizeof(Word)));
  });
}

void listed(const Bench& bench) {
  constexpr std::uint64_t kWords = kTotal / 8;
  std::vector<int> places;
  std::mt19937 random(1);
  for (std::uint64_t i = 0, at = 0; i < kWords; ++i, at += 1 + random() % 7) places.push_back(static_cast<int>(at));
  int* list = nullptr;
  must(cudaMalloc(&list, places.size() * sizeof(int)), "cudaMalloc");
  must(cudaMemcpy(list, places.data(), places.size() * sizeof(int), cudaMemcpyHostToDevice), "cudaMemcpy");
  Work work;
  work.bytes = kTotal;
  work.runs = kWords;
  work.places = list;
  work.scale = 3;
  bench.run<std::uint64_t, true>("points of a list, 8 B", work, [&] {
    pack_list_by_hand<<<132 * 16, 256>>>(reinterpret_cast<double*>(bench.by_hand),
                                         reinterpret_cast<const double*>(bench.memory), list, static_cast<unsigned>(kWords));
  });
  must(cudaFree(list), "cudaFree");
}

}  // namespace

int main() {
  Bench bench;
  cudaDeviceProp device{};
  must(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  bench.multiprocessors = static_cast<unsigned>(device.multiProcessorCount);
  must(cudaMalloc(&bench.memory, kRoom), "cudaMalloc");
  must(cudaMalloc(&bench.packed, kTotal), "cudaMalloc");
  must(cudaMalloc(&bench.by_hand, kTotal), "cudaMalloc");
  must(cudaMalloc(&bench.differ, sizeof(unsigned)), "cudaMalloc");
  must(cudaEventCreate(&bench.begin), "cudaEventCreate");
  must(cudaEventCreate(&bench.end), "cudaEventCreate");
  fill<<<bench.multiprocessors * 8, 256>>>(reinterpret_cast<std::uint64_t*>(bench.memory), kRoom / 8);
  std::printf("%s, 256 MiB packed, medians of 15; behind each time the kernel by hand's by it\n", device.name);
  strided<std::uint32_t>(bench, 4, 8);
  strided<std::uint32_t>(bench, 4, 32);
  strided<std::uint64_t>(bench, 8, 16);
  strided<std::uint64_t>(bench, 8, 64);
  strided<Sixteen>(bench, 16, 32);
  strided<Sixteen>(bench, 64, 128);
  strided<Sixteen>(bench, 256, 512);
  strided<Sixteen>(bench, 4096, 8192);
  strided<std::uint64_t>(bench, 24, 40);
  listed(bench);
  return 0;
}
