// ring.c on GPUs, a load that goes round without the processor, twice: in the order of streams, and by one kernel of each PE that puts, signals
// and waits by itself. Then kernels of a team, numbered backwards, add up and meet. Each PE needs a GPU of its own; without that it says so. Run: OSHCXX_CXX=nvcc oshc++ -O2 -std=c++17 ring.cu -o ring_cuda,
// oshrun -n 2 ./ring_cuda [ROUNDS]
#include <cuda_runtime.h>
#include <isthmus/device.cuh>

#include "verdict.h"

namespace {

using namespace ist::device;

constexpr int kLoad = 1000;
constexpr std::uint64_t kDeadline = 10000000000;  // ns: with it no mistake keeps a GPU for ever

void must(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "ring_cuda: %s: %s\n", call, cudaGetErrorString(result));
  shmem_global_exit(1);
}

// In the symmetric heap of the GPUs, the same for all PEs.
struct Symmetric {
  int* load;
  std::uint64_t* turn;
  int* ended;
  std::int64_t* numbers;  // one, and the sum of all
};

__global__ void add_one(int* load) {
  for (int i = static_cast<int>(threadIdx.x); i < kLoad; i += static_cast<int>(blockDim.x)) load[i] += 1;
}

// Nothing here waits but the stream.
void by_stream(const Symmetric& at, std::uint64_t rounds, int next, cudaStream_t stream) {
  const std::size_t bytes = next == shmem_my_pe() ? 0 : kLoad * sizeof(int);  // who is alone has it already
  const auto pass_on = [&](std::uint64_t round) {
    shmemx_putmem_signal_on_stream(at.load, at.load, bytes, at.turn, round, SHMEM_SIGNAL_SET, next, stream);
  };
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    if (shmem_my_pe() == 0) pass_on(round);
    shmemx_signal_wait_until_on_stream(at.turn, SHMEM_CMP_GE, round, stream);
    add_one<<<1, 256, 0, stream>>>(at.load);
    must(cudaGetLastError(), "add_one");
    if (shmem_my_pe() != 0) pass_on(round);
  }
}

// All rounds, from `first` on, by one block.
__global__ void go_round(ist_team_view view, Symmetric at, std::uint64_t first, std::uint64_t rounds) {
  const Block crew;
  const int next = (view.pe + 1) % view.pes;
  Status status = Status::ok;
  for (std::uint64_t round = first; round < first + rounds; ++round) {
    if (view.pe == 0) put_signal(crew, view, at.load, at.load, kLoad * sizeof(int), at.turn, round, Signal::set, next);
    if (crew.thread == 0) status = wait_until(view, at.turn, Compare::greater_equal, round, kDeadline);
    status = agreed(crew, status);
    if (status != Status::ok) break;
    for (unsigned i = crew.thread; i < kLoad; i += crew.threads) at.load[i] += 1;
    crew.sync();
    if (view.pe != 0) put_signal(crew, view, at.load, at.load, kLoad * sizeof(int), at.turn, round, Signal::set, next);
  }
  if (crew.thread == 0) *at.ended = static_cast<int>(status);
}

// By their numbers in the team; each learns the sum.
__global__ void add_up(ist_team_view team, Symmetric at) {
  const Block crew;
  if (crew.thread == 0) at.numbers[0] = team.pe + 1;
  crew.sync();
  Status status = allreduce<Sum>(crew, team, at.numbers + 1, at.numbers, 1, kDeadline);
  if (status == Status::ok) status = barrier(crew, team, kDeadline);
  if (crew.thread == 0) *at.ended = static_cast<int>(status);
}

// What a kernel left when it was not right.
int ended_badly(const Symmetric& at, const char* what) {
  const int status = shmem_int_g(at.ended, shmem_my_pe());
  if (status != 0) std::fprintf(stderr, "ring_cuda: PE %d: %s ended with status %d\n", shmem_my_pe(), what, status);
  return status != 0 ? 1 : 0;
}

int in_team(const Symmetric& at, cudaStream_t stream) {
  const int pes = shmem_n_pes();
  shmem_team_t backwards = SHMEM_TEAM_INVALID;
  shmem_team_split_strided(SHMEM_TEAM_WORLD, pes - 1, -1, pes, nullptr, 0, &backwards);
  void* const area = shmemx_calloc_on(SHMEMX_KIND_CUDA, 1, SHMEMX_TEAM_SYNC_BYTES(pes));
  ist_team_view team;
  if (shmemx_team_view(backwards, SHMEMX_KIND_CUDA, area, &team) != 0) {
    std::fprintf(stderr, "ring_cuda: %s\n", shmemx_error_text());
    shmem_global_exit(1);
  }
  add_up<<<1, 64, 0, stream>>>(team, at);
  must(cudaGetLastError(), "add_up");
  must(cudaStreamSynchronize(stream), "cudaStreamSynchronize of the team's kernel");
  int wrong = ended_badly(at, "the team's kernel");
  if (shmem_int64_g(at.numbers + 1, shmem_my_pe()) != std::int64_t{pes} * (pes + 1) / 2) ++wrong;
  shmem_barrier_all();
  shmem_free(area);
  shmem_team_destroy(backwards);
  return wrong;
}

// Kernels of two processes on one GPU do not run together, and would wait for each other until their deadline. Sets the heap's device.
bool has_own_gpu(const int* in_heap) {
  static unsigned char mine[16], all[64 * sizeof mine];
  cudaPointerAttributes at{};
  cudaDeviceProp gpu{};
  must(cudaPointerGetAttributes(&at, in_heap), "cudaPointerGetAttributes");
  must(cudaSetDevice(at.device), "cudaSetDevice");
  must(cudaGetDeviceProperties(&gpu, at.device), "cudaGetDeviceProperties");
  if (shmem_n_pes() > 64) return false;
  for (std::size_t i = 0; i < sizeof mine; ++i) mine[i] = static_cast<unsigned char>(gpu.uuid.bytes[i]);
  shmem_fcollectmem(SHMEM_TEAM_WORLD, all, mine, sizeof mine);
  for (int pe = 0; pe < shmem_n_pes(); ++pe)
    for (int other = 0; other < pe; ++other) {
      bool same = true;
      for (std::size_t i = 0; i < sizeof mine; ++i)
        same = same &&
               all[static_cast<std::size_t>(pe) * sizeof mine + i] == all[static_cast<std::size_t>(other) * sizeof mine + i];
      if (same) return false;
    }
  return true;
}

// As it begins; all PEs are at it when this returns.
void begin(const Symmetric& at) {
  int load[kLoad];
  const std::uint64_t none = 0;
  for (int i = 0; i < kLoad; ++i) load[i] = shmem_my_pe() == 0 ? i : -1;
  shmem_putmem(at.load, load, sizeof load, shmem_my_pe());
  shmem_putmem(at.turn, &none, sizeof none, shmem_my_pe());
  shmem_barrier_all();
}

// On PE 0, to which the load has come back.
int wrong_numbers(const Symmetric& at, std::uint64_t rounds) {
  int load[kLoad], wrong = 0;
  shmem_getmem(load, at.load, sizeof load, 0);
  for (int i = 0; i < kLoad; ++i) wrong += load[i] != i + static_cast<int>(rounds) * shmem_n_pes();
  return wrong;
}

int run(const Symmetric& at, std::uint64_t rounds) {
  const int me = shmem_my_pe(), next = (me + 1) % shmem_n_pes();
  ist_device_view view;  // of which the team is for all that changes no word by an operation, whatever the links take
  cudaStream_t stream = nullptr;
  if (shmemx_device_view(SHMEMX_KIND_CUDA, &view) != 0) {
    std::fprintf(stderr, "ring_cuda: %s\n", shmemx_error_text());
    shmem_global_exit(1);
  }
  must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  begin(at);
  by_stream(at, rounds, next, stream);
  must(cudaStreamSynchronize(stream), "cudaStreamSynchronize of the streams' rounds");
  int wrong = me == 0 ? wrong_numbers(at, rounds) : 0;
  shmem_barrier_all();
  begin(at);
  // Once with nothing to do, so that it is loaded everywhere before one waits.
  for (const std::uint64_t turns : {std::uint64_t{0}, rounds}) {
    go_round<<<1, 256, 0, stream>>>(view.team, at, 1, turns);
    must(cudaGetLastError(), "go_round");
    must(cudaStreamSynchronize(stream), "cudaStreamSynchronize of the kernel's rounds");
    shmem_barrier_all();
  }
  wrong += ended_badly(at, "the kernel");
  wrong += me == 0 ? wrong_numbers(at, rounds) : 0;
  if (view.desk == nullptr)
    wrong += in_team(at, stream);
  else
    std::printf(
        "ring_cuda: left out, views of teams: some link takes no atomic operations, which a team's view does not tell\n");
  must(cudaStreamDestroy(stream), "cudaStreamDestroy");
  return verdict("ring_cuda", wrong);
}

}  // namespace

int main(int argc, char** argv) {
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);  // else a kernel may wait for one that runs, to be loaded
  const auto rounds = static_cast<std::uint64_t>(argument(argc, argv, 1, 200));
  shmem_init();
  const Symmetric at{static_cast<int*>(shmemx_malloc_on(SHMEMX_KIND_CUDA, kLoad * sizeof(int))),
                     static_cast<std::uint64_t*>(shmemx_calloc_on(SHMEMX_KIND_CUDA, 1, sizeof(std::uint64_t))),
                     static_cast<int*>(shmemx_calloc_on(SHMEMX_KIND_CUDA, 1, sizeof(int))),
                     static_cast<std::int64_t*>(shmemx_calloc_on(SHMEMX_KIND_CUDA, 2, sizeof(std::int64_t)))};
  int status = 0;
  if (at.load == nullptr || at.turn == nullptr || at.ended == nullptr || at.numbers == nullptr) {
    if (shmem_my_pe() == 0) std::printf("SKIPPED: %s\n", shmemx_error_text());
  } else if (!has_own_gpu(at.load)) {
    if (shmem_my_pe() == 0)
      std::printf("SKIPPED: kernels that wait for each other need a GPU for each PE; start fewer PEs\n");
  } else {
    status = run(at, rounds);
  }
  shmem_finalize();
  return status;
}
