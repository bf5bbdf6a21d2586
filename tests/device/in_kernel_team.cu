// Isthmus's barriers in kernels among all GPUs of the machine (eight at most): a million with a plane of data before each, every word compared, and then timed beside
// a bare push barrier, in one run, by turns.
//
//   in_kernel_team [quick]   prints one JSON object: {"gpus": N, "between": "N GPUs", "gpu": name, "checks": [{"check", "epochs", "wrong", "first", "status"}],
//                            "rows": [{"call", "by", "bytes", "blocks", "threads", "us", "us_low", "us_high", "bare", "bare_threads", "bare_us", "ratio"}]}
//
// quick: a thousandth of the barriers. Times are by PE 0's clock, of one barrier over 4000 iterations of which the first tenth warms up: the median of five rounds,
// and the least and the most of them. The memory is of the kind that symmetric heaps are made of: mapped at equal distances, by cuMemMap. Status 1 if anything was wrong.
#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "in_kernel_bare.cuh"
#include "in_kernel_checks.cuh"
#include "isthmus/launch.cuh"

namespace {

constexpr int kRounds = 5;
constexpr int kMostGpus = 8;
constexpr std::uint32_t kIterations = 4000;
constexpr std::uint32_t kWords = 64;  // of a block's plane for one PE

void must(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "in_kernel_team: %s: %s\n", what, cudaGetErrorString(result));
  std::exit(1);
}
void must(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "in_kernel_team: %s: status %d\n", what, static_cast<int>(result));
  std::exit(1);
}

// A call of the driver, which is not linked: a machine that has none says that it skips.
template <class Call>
Call* driver(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void* const found = library == nullptr ? nullptr : dlsym(library, name);
  if (found == nullptr) std::fprintf(stderr, "in_kernel_team: the driver has no %s\n", name), std::exit(1);
  return reinterpret_cast<Call*>(found);
}

// The word `at` of the plane that `from` stores into another PE in barrier `n`: a block has a part of it, of two planes by turns.
__device__ std::uint64_t* plane_of(const Side& side, int from, unsigned block, std::uint32_t n) {
  return reinterpret_cast<std::uint64_t*>(side.area(0)) + ((n % 2 * kMostGpus + from) * 16 + block) * kWords;
}
// Each PE stores into every other one what says its number and the barrier's, and behind the barrier compares what all others stored.
template <class Crew>
__global__ void check_barriers(Side side) {
  const Crew crew;
  for (std::uint32_t n = 1; n <= side.iterations; ++n) {
    if (n % 16 == 0) dawdle(side.view.pe, n);
    const std::uint32_t others = static_cast<std::uint32_t>(side.view.pes - 1) * kWords;
    for (std::uint32_t i = threadIdx.x; i < others; i += blockDim.x) {
      const int pe = (side.view.pe + 1 + static_cast<int>(i / kWords)) % side.view.pes;
      peer_ptr(side.view, plane_of(side, side.view.pe, crew.block, n), pe)[i % kWords] =
          mixed(side.view.pe, n, crew.block + i % kWords);
    }
    if (fails(side, barrier(crew, side.view, kDeadline))) return;
    // Another block's part than the own one's.
    const unsigned block = (crew.block + 1) % crew.blocks;
    for (std::uint32_t i = threadIdx.x; i < others; i += blockDim.x) {
      const int pe = (side.view.pe + 1 + static_cast<int>(i / kWords)) % side.view.pes;
      if (const_cast<const volatile std::uint64_t*>(plane_of(side, pe, block, n))[i % kWords] !=
          mixed(pe, n, block + i % kWords))
        count_wrong(side, n);
    }
  }
}

__global__ void bare_barriers(Side side) {
  auto* const flags = reinterpret_cast<std::uint64_t*>(side.area(1));
  const int pe = static_cast<int>(threadIdx.x);
  const bool has_peer = pe < side.view.pes && pe != side.view.pe;
  std::uint64_t* const there = has_peer ? peer_ptr(side.view, flags + 16 * side.view.pe, pe) : nullptr;
  timed(side, [&](std::uint32_t n) { return bare::meet_all(there, flags + 16 * pe, side.sequence + n); });
}

using Kernel = void (*)(Side);

struct Team {
  int gpus = 0;
  Side sides[kMostGpus] = {};
  cudaStream_t streams[kMostGpus] = {};
  std::uint32_t* abort_word = nullptr;
};

// One range of addresses, of which each GPU has a part that all others may read and write.
CUdeviceptr mapped_parts(int gpus, std::size_t bytes, std::size_t& stride) {
  CUmemAllocationProp wanted = {};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  std::size_t granularity = 0;
  must(driver<decltype(cuMemGetAllocationGranularity)>("cuMemGetAllocationGranularity")(
           &granularity, &wanted, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
       "cuMemGetAllocationGranularity");
  stride = (bytes + granularity - 1) / granularity * granularity;
  CUdeviceptr base = 0;
  must(driver<decltype(cuMemAddressReserve)>("cuMemAddressReserve")(&base, stride * gpus, 0, 0, 0), "cuMemAddressReserve");
  std::vector<CUmemAccessDesc> access(gpus);
  for (int gpu = 0; gpu < gpus; ++gpu)
    access[gpu] = {{CU_MEM_LOCATION_TYPE_DEVICE, gpu}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  for (int gpu = 0; gpu < gpus; ++gpu) {
    wanted.location.id = gpu;
    CUmemGenericAllocationHandle handle = 0;
    must(driver<decltype(cuMemCreate)>("cuMemCreate")(&handle, stride, &wanted, 0), "cuMemCreate");
    must(driver<decltype(cuMemMap)>("cuMemMap")(base + gpu * stride, stride, 0, handle, 0), "cuMemMap");
  }
  must(driver<decltype(cuMemSetAccess)>("cuMemSetAccess")(base, stride * gpus, access.data(), access.size()),
       "cuMemSetAccess");
  return base;
}

void make(Team& team) {
  const std::size_t bytes = IST_TEAM_SYNC_BYTES(team.gpus) + 2 * kRoom;
  for (int pe = 0; pe < team.gpus; ++pe) {
    must(cudaSetDevice(pe), "cudaSetDevice");
    must(cudaStreamCreateWithFlags(&team.streams[pe], cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    must(cudaHostAlloc(&team.sides[pe].result, sizeof(Result), cudaHostAllocMapped | cudaHostAllocPortable),
         "cudaHostAlloc");
  }
  must(cudaHostAlloc(&team.abort_word, 64, cudaHostAllocMapped | cudaHostAllocPortable), "cudaHostAlloc");
  *team.abort_word = 0;
  std::size_t stride = 0;
  auto* const base = reinterpret_cast<unsigned char*>(mapped_parts(team.gpus, bytes, stride));
  for (int pe = 0; pe < team.gpus; ++pe) {
    must(cudaSetDevice(pe), "cudaSetDevice");
    must(cudaMemset(base + pe * stride, 0, bytes), "cudaMemset");
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    team.sides[pe].view = {pe, team.gpus, base, stride, bytes, 0, IST_TEAM_SYNC_BYTES(team.gpus), team.abort_word};
  }
}

// All sides at once; the worst status of them.
int run(Team& team, Kernel kernel, std::uint32_t iterations, std::uint32_t sequence, unsigned blocks, unsigned threads) {
  int worst = 0;
  for (int pe = 0; pe < team.gpus; ++pe) {
    Side& side = team.sides[pe];
    *side.result = {};
    side.iterations = iterations;
    side.sequence = sequence;
    must(cudaSetDevice(pe), "cudaSetDevice");
    if (blocks > 1) {
      const Launch launch = launch_grid(kernel, blocks, threads, 0, team.streams[pe], 0, side);
      if (!launch.ok()) std::fprintf(stderr, "in_kernel_team: %s\n", launch.text.c_str());
      must(launch.error, "launch of a grid");
    } else {
      kernel<<<blocks, threads, 0, team.streams[pe]>>>(side);
      must(cudaGetLastError(), "launch");
    }
  }
  for (int pe = 0; pe < team.gpus; ++pe) {
    must(cudaSetDevice(pe), "cudaSetDevice");
    must(cudaStreamSynchronize(team.streams[pe]), "cudaStreamSynchronize");
    worst = std::max(worst, team.sides[pe].result->status);
  }
  return worst;
}

bool check(Team& team, bool first, const char* name, Kernel kernel, std::uint32_t epochs, unsigned blocks,
           unsigned threads) {
  const int status = run(team, kernel, epochs, 0, blocks, threads);
  unsigned long long wrong = 0, epoch = 0;
  for (int pe = 0; pe < team.gpus; ++pe)
    wrong += team.sides[pe].result->wrong, epoch = std::max(epoch, team.sides[pe].result->first);
  std::printf("%s\n {\"check\": \"%s\", \"epochs\": %u, \"wrong\": %llu, \"first\": %llu, \"status\": %d}", first ? "" : ",",
              name, epochs, wrong, epoch, status);
  std::fflush(stdout);
  return status == 0 && wrong == 0;
}

struct Way {
  const char* call;
  const char* by;
  Kernel kernel;
  unsigned blocks, threads;
};

// Ours and the bare one by turns, of which the better number of threads counts; false where a wait ended in vain.
bool row(Team& team, bool first, const Way& way, std::uint32_t& bare_used) {
  std::vector<double> ours, bare[2];
  bool fine = true;
  const auto one = [&](Kernel kernel, std::uint32_t sequence, unsigned blocks, unsigned threads) {
    fine = run(team, kernel, kIterations, sequence, blocks, threads) == 0 && fine;
    return team.sides[0].result->nanoseconds / 1e3 / (kIterations - kIterations / 10 + 1);
  };
  for (int round = 0; round < kRounds && fine; ++round) {
    ours.push_back(one(way.kernel, 0, way.blocks, way.threads));
    for (int k = 0; k < 2; ++k, bare_used += kIterations)
      bare[k].push_back(one(bare_barriers, bare_used, 1, k == 0 ? 32 : 256));
  }
  if (!fine) return false;
  std::sort(ours.begin(), ours.end());
  for (auto& times : bare) std::sort(times.begin(), times.end());
  const double us = ours[kRounds / 2];
  const int best = bare[0][kRounds / 2] <= bare[1][kRounds / 2] ? 0 : 1;
  const double bare_us = bare[best][kRounds / 2];
  std::printf(
      "%s\n {\"call\": \"%s\", \"by\": \"%s\", \"bytes\": 0, \"blocks\": %u, \"threads\": %u, \"us\": %.3f, \"us_low\": "
      "%.3f, \"us_high\": %.3f, "
      "\"bare\": \"push barrier\", \"bare_threads\": %d, \"bare_us\": %.3f, \"ratio\": %.3f}",
      first ? "" : ",", way.call, way.by, way.blocks, way.threads, us, ours.front(), ours.back(), best == 0 ? 32 : 256,
      bare_us, us / bare_us);
  std::fflush(stdout);
  return true;
}

bool measure(Team& team) {
  const Way ways[] = {{"barrier", "a warp", barriers<Warp, Order::everything>, 1, 32},
                      {"barrier", "a block", barriers<Block, Order::everything>, 1, 32},
                      {"barrier", "a block", barriers<Block, Order::everything>, 1, 256},
                      {"barrier", "a grid", barriers<Grid, Order::everything>, 16, 256},
                      {"sync", "a block", barriers<Block, Order::nothing>, 1, 32},
                      {"sync", "a block", barriers<Block, Order::nothing>, 1, 256}};
  std::uint32_t bare_used = 0;
  bool fine = true, first = true;
  for (const Way& way : ways) fine = fine && row(team, first, way, bare_used), first = false;
  return fine;
}

}  // namespace

int main(int count, char** words) {
  // A kernel that waits must not hold up the loading of the next one.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  Team team;
  if (cudaGetDeviceCount(&team.gpus) != cudaSuccess) team.gpus = 0;
  team.gpus = std::min(team.gpus, kMostGpus);
  for (int a = 0; a < team.gpus; ++a)
    for (int b = 0, can = 1; b < team.gpus; ++b)
      if (a != b && (cudaDeviceCanAccessPeer(&can, a, b) != cudaSuccess || can == 0)) team.gpus = 0;
  if (team.gpus < 2) {
    std::printf("SKIPPED: barriers of several GPUs need two CUDA devices at least, of which each reaches all others\n");
    return 0;
  }
  const bool quick = count > 1 && std::string(words[1]) == "quick";
  make(team);
  cudaDeviceProp properties;
  must(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  std::printf("{\"gpus\": %d, \"between\": \"%d GPUs\", \"gpu\": \"%s\", \"checks\": [", team.gpus, team.gpus,
              properties.name);
  const std::uint32_t epochs = quick ? 1000 : 1000000;
  bool right = check(team, true, "barrier of a block", check_barriers<Block>, epochs, 1, 256);
  right = right && check(team, false, "barrier of a grid of 16 blocks", check_barriers<Grid>, epochs / 4, 16, 128);
  std::printf("\n], \"rows\": [");
  const bool timed = right && (quick || measure(team));
  std::printf("\n]}\n");
  return timed ? 0 : 1;
}
