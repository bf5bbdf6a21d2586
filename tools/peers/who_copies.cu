// Between two GPUs, should the one copy whose memory is read, or the one whose memory is written, and by which call? By the runtime's copies
// alone, in one process.
//
//   who_copies      prints one JSON object: {"gpus": N, "rows": [{"by", "call", "bytes", "sync_us", "event_us", "window_us"}]}
//
// "by" is the GPU whose stream the copy is in. sync_us: one copy and a wait for the stream; event_us: one copy, an event behind it, and looks at
// that until it has passed; window_us: 64 copies in four streams and a wait for all, divided by 64. Medians.
#include <algorithm>
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

void measure(const Ends& ends, int by, bool by_peer_call, std::size_t bytes, bool first) {
  must(cudaSetDevice(by), "cudaSetDevice");
  cudaStream_t streams[kStreams];
  cudaEvent_t event;
  for (cudaStream_t& stream : streams)
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  must(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  const auto copy = [&](cudaStream_t stream) {
    must(by_peer_call ? cudaMemcpyPeerAsync(ends.target, ends.to, ends.source, ends.from, bytes, stream)
                      : cudaMemcpyAsync(ends.target, ends.source, bytes, cudaMemcpyDefault, stream),
         "the copy");
  };
  const double sync = median_us(kRounds, [&] {
    copy(streams[0]);
    must(cudaStreamSynchronize(streams[0]), "cudaStreamSynchronize");
  });
  const double looked = median_us(kRounds, [&] {
    copy(streams[0]);
    must(cudaEventRecord(event, streams[0]), "cudaEventRecord");
    cudaError_t found;
    while ((found = cudaEventQuery(event)) == cudaErrorNotReady) {
    }
    must(found, "cudaEventQuery");
  });
  const double window = median_us(kRounds / 10, [&] {
    for (int i = 0; i < kWindow; ++i) copy(streams[i % kStreams]);
    for (cudaStream_t const stream : streams) must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  });
  std::printf(
      "%s\n {\"by\": \"%s\", \"call\": \"%s\", \"bytes\": %zu, \"sync_us\": %.2f, \"event_us\": %.2f, \"window_us\": %.2f}",
      first ? "" : ",", by == ends.from ? "the GPU that is read" : "the GPU that is written",
      by_peer_call ? "cudaMemcpyPeerAsync" : "cudaMemcpyAsync", bytes, sync, looked, window / kWindow);
  must(cudaEventDestroy(event), "cudaEventDestroy");
  for (cudaStream_t const stream : streams) must(cudaStreamDestroy(stream), "cudaStreamDestroy");
}

}  // namespace

int main() {
  int gpus = 0;
  must(cudaGetDeviceCount(&gpus), "cudaGetDeviceCount");
  std::printf("{\"gpus\": %d, \"rows\": [", gpus);
  if (gpus > 1) {
    constexpr std::size_t kMost = std::size_t{4} << 20;
    Ends ends{0, 1, nullptr, nullptr};
    for (const int gpu : {0, 1}) {
      must(cudaSetDevice(gpu), "cudaSetDevice");
      must(cudaDeviceEnablePeerAccess(1 - gpu, 0), "cudaDeviceEnablePeerAccess");
      must(cudaMalloc(gpu == ends.from ? &ends.source : &ends.target, kMost), "cudaMalloc");
    }
    bool first = true;
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{64} << 10, std::size_t{1} << 20, kMost})
      for (const int by : {0, 1})
        for (const bool by_peer_call : {false, true}) {
          measure(ends, by, by_peer_call, bytes, first);
          first = false;
        }
  }
  std::printf("\n]}\n");
  return 0;
}
