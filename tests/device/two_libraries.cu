// A library with a kernel that includes isthmus/device.cuh, of which two_libraries_test.cpp loads two into one process: nothing of the headers may be there once for all of it.
// Compiled twice, with LIBRARY_PE as the PE that it plays: 0 puts with a signal and awaits the answer, 1 answers, both on one device.
//
// Who calls this : two_libraries_test.cpp.
// Threads        : one.
// Ownership      : make() gives memory for both PEs that lasts as long as the process.
// Errors         : a text, for people; null where all went well.
#include "isthmus/device.cuh"

namespace {

using namespace ist::device;

constexpr std::uint64_t kDeadline = 4000000000;  // ns
constexpr int kEpochs = 1000, kWords = 64;

// A barrier, and words that say which epoch they are of, there and back.
__global__ void exchange(ist_team_view view, int* status) {
  const Block crew;
  auto* const data = reinterpret_cast<std::uint32_t*>(part_of(view, view.pe) + view.sync + view.sync_bytes);
  auto* const flag = reinterpret_cast<std::uint64_t*>(data + 4 * kWords);
  Meeting<Block> meeting(crew, view);
  int wrong = 0;
  for (std::uint32_t n = 1; n <= kEpochs; ++n) {
    for (int turn = 0; turn < 2; ++turn) {
      if (turn == view.pe) {
        for (unsigned i = crew.thread; i < kWords; i += crew.threads) data[i] = n * kWords + i + turn;
        crew.sync();
        put_signal(crew, view, data + kWords, data, kWords * 4, flag, n, Signal::set, 1 - view.pe);
        continue;
      }
      Status come = Status::ok;
      if (crew.thread == 0) come = wait_until(view, flag, Compare::greater_equal, std::uint64_t{n}, kDeadline);
      if (agreed(crew, come) != Status::ok) return;
      for (unsigned i = crew.thread; i < kWords; i += crew.threads)
        if (const_cast<volatile std::uint32_t*>(data)[kWords + i] != n * kWords + i + turn) ++wrong;
    }
    if (meeting.meet(kDeadline) != Status::ok) return;
  }
  if (__syncthreads_or(wrong) == 0 && crew.thread == 0) *status = 1;
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

// Views of both PEs.
EXPORTED const char* make(ist_team_view* views) {
  constexpr std::uint64_t kPart = IST_TEAM_SYNC_BYTES(2) + 4096;
  unsigned char* base = nullptr;
  std::uint32_t* abort_word = nullptr;
  if (cudaMalloc(&base, 2 * kPart) != cudaSuccess || cudaMemset(base, 0, 2 * kPart) != cudaSuccess ||
      cudaHostAlloc(&abort_word, 64, cudaHostAllocMapped) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess)
    return cudaGetErrorString(cudaGetLastError());
  *abort_word = 0;
  for (int pe = 0; pe < 2; ++pe) views[pe] = {pe, 2, base, kPart, kPart, 0, IST_TEAM_SYNC_BYTES(2), abort_word};
  return nullptr;
}

namespace {
cudaStream_t stream = nullptr;
int* status = nullptr;
}  // namespace

// Of every library before any begins: one that is loaded while a kernel waits would wait for that.
EXPORTED const char* prepare() {
  cudaFuncAttributes loaded;
  if (cudaFuncGetAttributes(&loaded, exchange) != cudaSuccess ||
      cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
      cudaHostAlloc(&status, 64, cudaHostAllocMapped) != cudaSuccess)
    return cudaGetErrorString(cudaGetLastError());
  *status = 0;
  return nullptr;
}
EXPORTED const char* begin(const ist_team_view* views) {
  exchange<<<1, 64, 0, stream>>>(views[LIBRARY_PE], status);
  const cudaError_t launched = cudaGetLastError();
  return launched == cudaSuccess ? nullptr : cudaGetErrorString(launched);
}
EXPORTED const char* end() {
  const cudaError_t ended = cudaStreamSynchronize(stream);
  if (ended != cudaSuccess) return cudaGetErrorString(ended);
  return *status == 1 ? nullptr : "its kernel gave up, or found wrong words";
}
EXPORTED int devices() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}
