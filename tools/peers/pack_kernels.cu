// How long ist_pack and ist_unpack take beside a kernel that was written by hand for the one shape, and beside a copy of as many bytes:
// blocks of 4 bytes to 4 KiB with gaps as long, a face of a cube, and points of a list, each packed to 256 MiB. Every byte is compared
// first. With --json what tools/layout_record.py reads. Needs a GPU; links the library (nvcc -Iinclude pack_kernels.cu -Llib -listhmus).
#include <cuda_runtime.h>
#include <isthmus/layout.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "cuda_must.cuh"
#include "pack_by_hand.cuh"

#define IST(call)                                                   \
  do {                                                              \
    if ((call) != IST_OK) {                                         \
      std::fprintf(stderr, "pack_kernels: %s\n", ist_error_text()); \
      std::exit(1);                                                 \
    }                                                               \
  } while (0)

namespace {

constexpr std::int64_t kTotal = std::int64_t{256} << 20;

double median_of(const std::function<void()>& call) {
  for (int i = 0; i < 3; ++i) call();
  std::vector<double> times;
  for (int i = 0; i < 15; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

struct Bench {
  ist_world world;
  unsigned char* memory;
  unsigned char* packed;
  unsigned char* other;
  bool json;
  mutable bool first = true;

  // What lies behind the packed bytes is as it was in both.
  void compare(const char* what) const {
    std::vector<unsigned char> ours(kTotal), theirs(kTotal);
    must(cudaMemcpy(ours.data(), packed, kTotal, cudaMemcpyDeviceToHost), "cudaMemcpy");
    must(cudaMemcpy(theirs.data(), other, kTotal, cudaMemcpyDeviceToHost), "cudaMemcpy");
    if (ours == theirs) return;
    std::fprintf(stderr, "pack_kernels: %s: WRONG BYTES\n", what);
    std::exit(1);
  }
  void run(const char* what, std::int64_t total, ist_layout layout, const std::function<void()>& by_hand) const {
    IST(ist_layout_commit(layout));
    const ist_buffer from = ist_cuda(memory, nullptr), to = ist_cuda(packed, nullptr);
    const auto pack = [&] { IST(ist_pack(world, from, 1, layout, 0, IST_TO_END, to)); };
    const auto unpack = [&] { IST(ist_unpack(world, to, 0, IST_TO_END, from, 1, layout)); };
    const auto hand = [&] {
      by_hand();
      must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    };
    must(cudaMemset(packed, 0xa5, kTotal), "cudaMemset");
    must(cudaMemset(other, 0xa5, kTotal), "cudaMemset");
    pack();
    hand();
    compare(what);
    const double ours = median_of(pack), back = median_of(unpack), theirs = median_of(hand);
    const double gb = static_cast<double>(total) / 1e9;
    if (json) {
      std::printf("%s  {\"what\": \"%s\", \"bytes\": %lld, \"pack_us\": %.2f, \"unpack_us\": %.2f, \"by_hand_us\": %.2f}",
                  first ? "" : ",\n", what, static_cast<long long>(total), ours * 1e6, back * 1e6, theirs * 1e6);
      first = false;
      return;
    }
    std::printf("%-28s pack %8.1f us %7.1f GB/s   unpack %8.1f us %7.1f GB/s   by hand %8.1f us %7.1f GB/s   ratio %.3f\n",
                what, ours * 1e6, gb / ours, back * 1e6, gb / back, theirs * 1e6, gb / theirs, theirs / ours);
  }
};

template <class Word>
void strided(const Bench& bench, int block, int stride) {
  ist_layout layout = IST_LAYOUT_NULL;
  IST(ist_layout_hvector(kTotal / block, block, stride, ist_layout_of(IST_BYTE), &layout));
  char what[64];
  std::snprintf(what, sizeof what, "vector %d B every %d", block, stride);
  const std::int64_t total = kTotal / block * block;
  const auto words = static_cast<unsigned>(total / static_cast<std::int64_t>(sizeof(Word)));
  bench.run(what, total, layout, [&] {
    pack_by_hand<Word><<<132 * 16, 256>>>(reinterpret_cast<Word*>(bench.other), reinterpret_cast<const Word*>(bench.memory),
                                          words, static_cast<unsigned>(block / sizeof(Word)),
                                          static_cast<unsigned>(stride / sizeof(Word)));
  });
  IST(ist_layout_free(&layout));
}

void listed(const Bench& bench) {
  const auto words = static_cast<std::int64_t>(kTotal / 8);
  std::vector<std::int64_t> places;
  std::vector<int> short_places;
  std::mt19937 random(1);
  for (std::int64_t i = 0, at = 0; i < words; ++i, at += 1 + random() % 7) {
    places.push_back(at);
    short_places.push_back(static_cast<int>(at));
  }
  ist_layout layout = IST_LAYOUT_NULL;
  IST(ist_layout_indexed_block(words, 1, places.data(), ist_layout_of(IST_DOUBLE), &layout));
  int* list = nullptr;
  must(cudaMalloc(&list, short_places.size() * sizeof(int)), "cudaMalloc");
  must(cudaMemcpy(list, short_places.data(), short_places.size() * sizeof(int), cudaMemcpyHostToDevice), "cudaMemcpy");
  bench.run("points of a list, 8 B", kTotal, layout, [&] {
    pack_list_by_hand<<<132 * 16, 256>>>(reinterpret_cast<double*>(bench.other),
                                         reinterpret_cast<const double*>(bench.memory), list, static_cast<unsigned>(words));
  });
  must(cudaFree(list), "cudaFree");
  IST(ist_layout_free(&layout));
}

}  // namespace

int main(int argc, char** argv) {
  Bench bench{};
  bench.json = argc == 2 && std::strcmp(argv[1], "--json") == 0;
  if (argc > 2 || (argc == 2 && !bench.json)) {
    std::fprintf(stderr, "pack_kernels: takes --json or nothing\n");
    return 2;
  }
  IST(ist_world_create(&bench.world));
  const std::size_t room = std::size_t{3} << 30;
  must(cudaMalloc(&bench.memory, room), "cudaMalloc");
  must(cudaMalloc(&bench.packed, kTotal), "cudaMalloc");
  must(cudaMalloc(&bench.other, kTotal), "cudaMalloc");
  std::vector<unsigned> bytes(room / 4);
  std::mt19937 random(7);
  for (unsigned& word : bytes) word = random();
  must(cudaMemcpy(bench.memory, bytes.data(), room, cudaMemcpyHostToDevice), "cudaMemcpy");
  cudaDeviceProp device{};
  must(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  if (!bench.json) std::printf("%s, 256 MiB packed, medians of 15\n", device.name);
  const double copy = median_of([&] {
    must(cudaMemcpy(bench.packed, bench.other, kTotal, cudaMemcpyDeviceToDevice), "cudaMemcpy");
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  });
  if (bench.json)
    std::printf("{\"device\": \"%s\", \"copy_us\": %.2f, \"rows\": [\n", device.name, copy * 1e6);
  else
    std::printf("%-28s %8.1f us %7.1f GB/s\n", "copy of as many bytes", copy * 1e6,
                static_cast<double>(kTotal) / 1e9 / copy);
  strided<unsigned>(bench, 4, 8);
  strided<unsigned>(bench, 4, 32);
  strided<unsigned long long>(bench, 8, 16);
  strided<unsigned long long>(bench, 8, 64);
  strided<uint4>(bench, 16, 32);
  strided<uint4>(bench, 64, 128);
  strided<uint4>(bench, 256, 512);
  strided<uint4>(bench, 4096, 8192);
  strided<unsigned long long>(bench, 24, 40);
  listed(bench);
  if (bench.json) std::printf("\n]}\n");
  IST(ist_world_destroy(&bench.world));
  return 0;
}
