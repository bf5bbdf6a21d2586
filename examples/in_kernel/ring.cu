// Numbers go round a ring of two PEs, and both learn their sum, in one kernel for each: the processor starts them and waits. One process; two GPUs
// where there are, else the PEs share one, whose two kernels of one block each run side by side. Run: in_kernel_ring
#include <cuda_runtime.h>
#include <isthmus/device.cuh>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using namespace ist::device;

constexpr std::uint64_t kSecond = 1000000000;  // a deadline: with it no mistake keeps a GPU for ever
constexpr int kNumbers = 1000;

void must(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(result));
  std::exit(1);
}

// `mine`: kNumbers numbers, at the same place in every part. Each round takes what the left neighbour had.
__global__ void go_round(ist_team_view view, int* mine, int* sum, Status* ended) {
  const Block crew;
  const int right = (view.pe + 1) % view.pes, left = (view.pe + view.pes - 1) % view.pes;
  Meeting<Block> meeting(crew, view);
  Status status = meeting.meet(kSecond);
  for (std::uint32_t round = 1; round <= static_cast<std::uint32_t>(view.pes) && status == Status::ok; ++round) {
    status = send(crew, view, right, 0, mine, kNumbers * sizeof(int), round, kSecond);
    if (status == Status::ok) status = receive(crew, view, left, 0, mine, kNumbers * sizeof(int), round, kSecond);
    crew.sync();  // each thread reads next what others have received
  }
  if (status == Status::ok) status = allreduce<Sum>(crew, view, sum, mine, 2, kSecond);
  if (crew.thread == 0) *ended = status;
}

struct Pe {
  int device = 0;
  unsigned char* part = nullptr;
  Status* ended = nullptr;
  cudaStream_t stream = nullptr;
};

// On one GPU, or two.
std::vector<Pe> make_parts(int gpus, std::uint64_t bytes) {
  std::vector<Pe> pes(2);
  for (std::size_t i = 0; i < pes.size(); ++i) {
    pes[i].device = static_cast<int>(i) % gpus;
    must(cudaSetDevice(pes[i].device), "cudaSetDevice");
    for (int other = 0; other < gpus; ++other)
      if (other != pes[i].device) must(cudaDeviceEnablePeerAccess(other, 0), "cudaDeviceEnablePeerAccess");
    must(cudaMalloc(&pes[i].part, bytes), "cudaMalloc");
    must(cudaMemset(pes[i].part, 0, bytes), "cudaMemset");
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    must(cudaHostAlloc(&pes[i].ended, sizeof(Status), cudaHostAllocMapped | cudaHostAllocPortable), "cudaHostAlloc");
    must(cudaStreamCreateWithFlags(&pes[i].stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  return pes;
}

}  // namespace

int main() {
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);  // else the second kernel may wait until the first is over, to be loaded
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
    std::printf("SKIPPED: kernels need a CUDA device, and there is none\n");
    return 0;
  }
  // A view has one base and one stride: any two allocations make a team.
  const std::uint64_t sync = IST_TEAM_SYNC_BYTES(2), bytes = sync + 2 * kNumbers * sizeof(int);
  std::vector<Pe> pes = make_parts(gpus > 2 ? 2 : gpus, bytes);
  for (int pe = 0; pe < 2; ++pe) {
    std::vector<int> numbers(kNumbers, pe + 1);
    must(
        cudaMemcpy(pes[static_cast<std::size_t>(pe)].part + sync, numbers.data(), kNumbers * sizeof(int), cudaMemcpyDefault),
        "cudaMemcpy");
  }
  for (int pe = 0; pe < 2; ++pe) {
    const Pe& one = pes[static_cast<std::size_t>(pe)];
    const auto stride = static_cast<std::uint64_t>(pes[1].part - pes[0].part);
    const ist_team_view view{pe, 2, pes[0].part, stride, bytes, 0, sync, nullptr};
    auto* const mine = reinterpret_cast<int*>(one.part + sync);
    must(cudaSetDevice(one.device), "cudaSetDevice");
    go_round<<<1, 128, 0, one.stream>>>(view, mine, mine + kNumbers, one.ended);
    must(cudaGetLastError(), "launch");
  }
  bool right = true;
  for (int pe = 0; pe < 2; ++pe) {
    const Pe& one = pes[static_cast<std::size_t>(pe)];
    must(cudaSetDevice(one.device), "cudaSetDevice");
    must(cudaStreamSynchronize(one.stream), "cudaStreamSynchronize");
    std::vector<int> found(kNumbers + 2);
    must(cudaMemcpy(found.data(), one.part + sync, found.size() * sizeof(int), cudaMemcpyDefault), "cudaMemcpy");
    for (int i = 0; i < kNumbers; ++i) right = right && found[static_cast<std::size_t>(i)] == pe + 1;
    right = right && found[kNumbers] == 3 && *one.ended == Status::ok;
    std::printf("PE %d on GPU %d: has number %d again, sum %d, status %d\n", pe, one.device, found[0], found[kNumbers],
                static_cast<int>(*one.ended));
  }
  return right ? 0 : 1;
}
