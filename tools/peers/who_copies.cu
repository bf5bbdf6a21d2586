// Between two GPUs, should the one copy whose memory is read, or the one whose memory is written, and by which call? By the runtime's copies
// alone, in one process, and between two, each of which has opened the other's memory by its handle.
//
//   who_copies      prints one JSON object: {"gpus": N, "rows": [{"processes", "by", "call", "bytes", "sync_us", "event_us", "window_us"}]}
//
// "by" is the GPU whose stream the copy is in. "a kernel": one block that loads and stores, and of which event_us is until a word in
// page-locked memory that it writes behind its stores is seen. sync_us: one copy and a wait for the stream; event_us: one copy, an event behind it, and looks at
// that until it has passed; window_us: 64 copies in four streams and a wait for all, divided by 64. Medians.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "cuda_must.cuh"

namespace {

constexpr int kRounds = 400;
constexpr int kWindow = 64;
constexpr int kStreams = 4;

double median_us(int rounds, const std::function<void()>& body) {
  std::vector<double> times;
  for (int i = 0; i < rounds + rounds / 10; ++i) {
    const auto begun = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begun;
    if (i >= rounds / 10) times.push_back(took.count());
  }
  std::nth_element(times.begin(), times.begin() + static_cast<long>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

struct Ends {
  int from = 0, to = 0;  // GPUs
  char* source = nullptr;
  char* target = nullptr;
};

enum class Call { copy, peer_copy, kernel };

struct Way {
  int processes = 1;
  int by = 0;
  Call call = Call::copy;
};

const char* name_of(Call call) {
  return call == Call::copy ? "cudaMemcpyAsync" : call == Call::peer_copy ? "cudaMemcpyPeerAsync" : "a kernel";
}

__global__ void load_and_store(char* to, const char* from, std::size_t words, volatile unsigned* seen, unsigned turn) {
  for (std::size_t i = threadIdx.x; i < words; i += blockDim.x)
    reinterpret_cast<unsigned long long*>(to)[i] = reinterpret_cast<const unsigned long long*>(from)[i];
  if (seen == nullptr) return;
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence_system();
  *seen = turn;
}

class Copies {
 public:
  Copies(const Ends& ends, const Way& way, std::size_t bytes) : ends_(ends), way_(way), bytes_(bytes) {
    for (cudaStream_t& stream : streams_)
      must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    must(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    must(cudaHostAlloc(&seen_, sizeof *seen_, cudaHostAllocMapped), "cudaHostAlloc");
    *seen_ = 0;
  }
  ~Copies() {
    must(cudaFreeHost(seen_), "cudaFreeHost");
    must(cudaEventDestroy(event_), "cudaEventDestroy");
    for (cudaStream_t const stream : streams_) must(cudaStreamDestroy(stream), "cudaStreamDestroy");
  }
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  double sync_us() {
    return median_us(kRounds, [&] {
      start(streams_[0], nullptr);
      must(cudaStreamSynchronize(streams_[0]), "cudaStreamSynchronize");
    });
  }
  double event_us() {
    return median_us(kRounds, [&] {
      if (way_.call == Call::kernel) {
        start(streams_[0], seen_);
        while (*const_cast<volatile unsigned*>(seen_) != turn_) {
        }
        return;
      }
      start(streams_[0], nullptr);
      must(cudaEventRecord(event_, streams_[0]), "cudaEventRecord");
      cudaError_t found;
      while ((found = cudaEventQuery(event_)) == cudaErrorNotReady) {
      }
      must(found, "cudaEventQuery");
    });
  }
  double window_us() {
    return median_us(kRounds / 10,
                     [&] {
                       for (int i = 0; i < kWindow; ++i) start(streams_[i % kStreams], nullptr);
                       for (cudaStream_t const stream : streams_)
                         must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
                     }) /
           kWindow;
  }

 private:
  void start(cudaStream_t stream, unsigned* seen) {
    if (way_.call == Call::peer_copy)
      return must(cudaMemcpyPeerAsync(ends_.target, ends_.to, ends_.source, ends_.from, bytes_, stream), "the copy");
    if (way_.call == Call::copy)
      return must(cudaMemcpyAsync(ends_.target, ends_.source, bytes_, cudaMemcpyDefault, stream), "the copy");
    const int threads = bytes_ <= 4096 ? 32 : 1024;
    load_and_store<<<1, threads, 0, stream>>>(ends_.target, ends_.source, bytes_ / 8, seen, ++turn_);
    must(cudaGetLastError(), "the kernel");
  }

  Ends ends_;
  Way way_;
  std::size_t bytes_;
  cudaStream_t streams_[kStreams];
  cudaEvent_t event_;
  unsigned* seen_ = nullptr;
  unsigned turn_ = 0;
};

void measure(const Ends& ends, const Way& way, std::size_t bytes) {
  static bool first = true;
  must(cudaSetDevice(way.by), "cudaSetDevice");
  Copies copies(ends, way, bytes);
  const double sync = copies.sync_us(), event = copies.event_us(), window = copies.window_us();
  std::printf(
      "%s\n {\"processes\": %d, \"by\": \"%s\", \"call\": \"%s\", \"bytes\": %zu, \"sync_us\": %.2f, \"event_us\": %.2f, "
      "\"window_us\": %.2f}",
      first ? "" : ",", way.processes, way.by == ends.from ? "the GPU that is read" : "the GPU that is written",
      name_of(way.call), bytes, sync, event, window);
  first = false;
}

constexpr std::size_t kMost = std::size_t{4} << 20;
constexpr std::size_t kSizes[] = {8, std::size_t{64} << 10, std::size_t{1} << 20, kMost};

void within_one_process() {
  Ends ends{0, 1, nullptr, nullptr};
  for (const int gpu : {0, 1}) {
    must(cudaSetDevice(gpu), "cudaSetDevice");
    must(cudaDeviceEnablePeerAccess(1 - gpu, 0), "cudaDeviceEnablePeerAccess");
    must(cudaMalloc(gpu == ends.from ? &ends.source : &ends.target, kMost), "cudaMalloc");
  }
  for (const std::size_t bytes : kSizes)
    for (const int by : {0, 1})
      for (const Call call : {Call::copy, Call::peer_copy}) measure(ends, {1, by, call}, bytes);
}

// What two processes see of each other.
struct Shared {
  cudaIpcMemHandle_t handle[2];
  std::atomic<int> given[2];
  std::atomic<int> over;
};

// Process 0 measures on GPU 0, with the memory of GPU 1 that process 1 owns.
void between_two_processes(Shared& shared, int process) {
  must(cudaSetDevice(process), "cudaSetDevice");
  char *mine = nullptr, *theirs = nullptr;
  must(cudaMalloc(&mine, kMost), "cudaMalloc");
  must(cudaIpcGetMemHandle(&shared.handle[process], mine), "cudaIpcGetMemHandle");
  shared.given[process] = 1;
  for (int waited = 0; shared.given[1 - process] == 0 && waited < 60000; ++waited) usleep(1000);
  if (process == 1) {
    for (int waited = 0; shared.over == 0 && waited < 60000; ++waited) usleep(1000);
    return;
  }
  void* opened = nullptr;
  must(cudaIpcOpenMemHandle(&opened, shared.handle[1], cudaIpcMemLazyEnablePeerAccess), "cudaIpcOpenMemHandle");
  theirs = static_cast<char*>(opened);
  const Ends put{0, 1, mine, theirs}, get{1, 0, theirs, mine};
  for (const std::size_t bytes : kSizes)
    for (const Ends& ends : {put, get})
      for (const Call call : {Call::copy, Call::kernel})
        if (call == Call::copy || bytes <= (std::size_t{64} << 10)) measure(ends, {2, 0, call}, bytes);
}

}  // namespace

int main() {
  void* const page = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return 1;
  auto& shared = *static_cast<Shared*>(page);
  const pid_t other = fork();  // before the driver is there
  if (other < 0) return 1;
  int gpus = 0;
  must(cudaGetDeviceCount(&gpus), "cudaGetDeviceCount");
  if (other == 0) {
    if (gpus > 1) between_two_processes(shared, 1);
    _exit(0);
  }
  std::printf("{\"gpus\": %d, \"rows\": [", gpus);
  if (gpus > 1) {
    between_two_processes(shared, 0);
    shared.over = 1;
    within_one_process();
  }
  std::printf("\n]}\n");
  return waitpid(other, nullptr, 0) == other ? 0 : 1;
}
