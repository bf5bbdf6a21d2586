// Both ways at once between page-locked host memory and a GPU's memory, by the runtime's copies alone: who makes them, and how, so that one
// way does not halve the other?
//
//   both_ways       prints one JSON object: {"gpus": N, "bytes": B, "rows": [{"way", "in_gbps", "out_gbps", "both_gbps"}]}
//
// In a message the rank with the host memory makes both copies, through a GPU of its own: "device 0" is that one, the memory is the last
// GPU's. "own" is the GPU whose memory it is. A row's figures are GB/s of one way alone, of the other alone, and of both together.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "cuda_must.cuh"

namespace {

constexpr std::size_t kBytes = std::size_t{4} << 20;
constexpr int kWindow = 64;
constexpr int kWindows = 20;
constexpr int kStreams = 4;

__global__ void copy_words(uint4* to, const uint4* from, std::size_t words) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < words;
       i += std::size_t{gridDim.x} * blockDim.x)
    to[i] = from[i];
}

struct Memory {
  char* host_in = nullptr;   // into the device
  char* host_out = nullptr;  // out of it
  char* device_in = nullptr;
  char* device_out = nullptr;
};

// One copy in a stream; in: into the device.
using Copy = std::function<void(bool in, cudaStream_t stream)>;

double gbps(const Copy& copy, const std::vector<cudaStream_t>& in, const std::vector<cudaStream_t>& out, bool inwards,
            bool outwards) {
  double best = 0;
  for (int n = 0; n < kWindows; ++n) {
    const auto start = std::chrono::steady_clock::now();
    for (int k = 0; k < kWindow; ++k) {
      if (inwards) copy(true, in[k % in.size()]);
      if (outwards) copy(false, out[k % out.size()]);
    }
    for (const auto* const streams : {&in, &out})
      for (cudaStream_t const stream : *streams) must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, (int{inwards} + int{outwards}) * double{kBytes} * kWindow / seconds / 1e9);
  }
  return best;
}

int rows = 0;

void row(const std::string& way, int device, int streams, const Copy& copy) {
  must(cudaSetDevice(device), "cudaSetDevice");
  std::vector<cudaStream_t> in(streams), out(streams);
  for (auto* const all : {&in, &out})
    for (cudaStream_t& stream : *all)
      must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  std::printf("%s\n {\"way\": \"%s, %d stream(s) each way\", \"in_gbps\": %.1f, \"out_gbps\": %.1f, \"both_gbps\": %.1f}",
              rows++ ? "," : "", way.c_str(), streams, gbps(copy, in, out, true, false), gbps(copy, in, out, false, true),
              gbps(copy, in, out, true, true));
  for (auto* const all : {&in, &out})
    for (cudaStream_t const stream : *all) must(cudaStreamDestroy(stream), "cudaStreamDestroy");
}

Memory allocate(int owner) {
  Memory memory;
  must(cudaSetDevice(owner), "cudaSetDevice");
  for (char** const one : {&memory.device_in, &memory.device_out}) must(cudaMalloc(one, kBytes), "cudaMalloc");
  must(cudaSetDevice(0), "cudaSetDevice");
  for (char** const one : {&memory.host_in, &memory.host_out})
    must(cudaHostAlloc(one, kBytes, cudaHostAllocPortable), "cudaHostAlloc");
  return memory;
}

void measure(const Memory& memory, const std::string& who, int device) {
  const auto plain = [&](bool in, cudaStream_t stream) {
    must(in ? cudaMemcpyAsync(memory.device_in, memory.host_in, kBytes, cudaMemcpyDefault, stream)
            : cudaMemcpyAsync(memory.host_out, memory.device_out, kBytes, cudaMemcpyDefault, stream),
         "cudaMemcpyAsync");
  };
  const auto as_device = [&](bool in, cudaStream_t stream) {
    must(in ? cudaMemcpyAsync(memory.device_in, memory.host_in, kBytes, cudaMemcpyDeviceToDevice, stream)
            : cudaMemcpyAsync(memory.host_out, memory.device_out, kBytes, cudaMemcpyDeviceToDevice, stream),
         "cudaMemcpyAsync, device to device");
  };
  const auto by_kernel = [&](bool in, cudaStream_t stream, bool in_by_kernel, bool out_by_kernel) {
    if (!(in ? in_by_kernel : out_by_kernel)) return plain(in, stream);
    copy_words<<<16, 512, 0, stream>>>(reinterpret_cast<uint4*>(in ? memory.device_in : memory.host_out),
                                       reinterpret_cast<const uint4*>(in ? memory.host_in : memory.device_out),
                                       kBytes / sizeof(uint4));
    must(cudaGetLastError(), "launch of copy_words");
  };
  for (const int streams : {1, kStreams}) {
    row(who + ", copies", device, streams, plain);
    row(who + ", copies named device to device", device, streams, as_device);
    row(who + ", in by kernels, out by copies", device, streams,
        [&](bool in, cudaStream_t s) { by_kernel(in, s, true, false); });
    row(who + ", in by copies, out by kernels", device, streams,
        [&](bool in, cudaStream_t s) { by_kernel(in, s, false, true); });
  }
}

}  // namespace

int main() {
  int gpus = 0;
  must(cudaGetDeviceCount(&gpus), "cudaGetDeviceCount");
  const int owner = gpus - 1;
  const Memory memory = allocate(owner);
  if (owner != 0) {
    must(cudaSetDevice(0), "cudaSetDevice");
    must(cudaDeviceEnablePeerAccess(owner, 0), "cudaDeviceEnablePeerAccess");
  }
  std::printf("{\"gpus\": %d, \"bytes\": %zu, \"rows\": [", gpus, kBytes);
  measure(memory, "own", owner);
  if (owner != 0) measure(memory, "device 0", 0);
  std::printf("\n]}\n");
  return 0;
}
