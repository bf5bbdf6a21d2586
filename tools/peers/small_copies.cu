// Few bytes between host memory and a GPU: which call of the driver is quickest, and what shows soonest that it is over.
//
//   small_copies             prints one JSON object: {"gpu", "shared", "rows": [{"way", "into", "bytes", "median_us", "p10_us", "p90_us", "called_us"}]}
//   small_copies shared      before each round another process has a kernel run there, so that the GPU is the other's turn (device_turns.cpp)
//
// "into": into the device; else out of it. A row is the time from before the call until the processor has seen its end; called_us, until the
// driver's calls have returned. What comes out of the device is compared each time, at once, what goes into it at the end of each row. Ways, what carries the bytes and what shows the end: a copy from page-locked
// or ordinary memory, by the call that says which is which, or by the one for any (any copy), or in two rows; values written by the stream (cuStreamBatchMemOp); a kernel that has the bytes among its parameters, or stores them to page-locked
// memory. A wait for the stream (sync); an event that is asked (event); the stream that is asked (query); a word in page-locked memory that
// the stream or the kernel writes behind the bytes (word); the bytes themselves, where they land in page-locked memory (bytes).
#include <cuda.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr int kRounds = 2000;
constexpr std::size_t kMost = 4096;
constexpr std::size_t kRegistered = 64 << 20;
constexpr std::size_t kStride = 16 << 10;  // a cell
constexpr std::size_t kMostByKernel = 512;
constexpr std::size_t kMostInValues = 64;
constexpr std::array<std::size_t, 8> kSizes{8, 16, 24, 32, 64, 512, 1024, kMost};

void must(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const char* text = "";
  cuGetErrorString(result, &text);
  std::fprintf(stderr, "small_copies: %s: %s\n", call, text);
  std::exit(1);
}
#define MUST(call) must(call, #call)

struct Parameters {
  char bytes[kMostByKernel];
};
__global__ void store_parameters(char* to, Parameters from, unsigned bytes, volatile unsigned* seen, unsigned turn) {
  for (unsigned i = threadIdx.x * 8; i < bytes; i += blockDim.x * 8)
    *reinterpret_cast<std::uint64_t*>(to + i) = *reinterpret_cast<const std::uint64_t*>(from.bytes + i);
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) *seen = turn;
}
__global__ void store(char* to, const char* from, unsigned bytes, volatile unsigned* seen, unsigned turn) {
  for (unsigned i = threadIdx.x * 8; i < bytes; i += blockDim.x * 8)
    *reinterpret_cast<std::uint64_t*>(to + i) = *reinterpret_cast<const std::uint64_t*>(from + i);
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) *seen = turn;
}

__global__ void nothing() {}

using Clock = std::chrono::steady_clock;
double us_since(Clock::time_point begun) { return std::chrono::duration<double, std::micro>(Clock::now() - begun).count(); }

struct Machine {
  CUstream stream{};
  CUevent event{};
  CUdeviceptr device{};
  char* pinned = nullptr;
  std::vector<char> ordinary = std::vector<char>(kMost);
  char* registered = nullptr;  // shared memory of the system's, page-locked after the fact, as that of messages is
  std::size_t at = 0;          // another place in it each time
  volatile unsigned* word = nullptr;
  CUdeviceptr word_there{}, pinned_there{};
  unsigned turn = 0;

  Machine() {
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuMemAlloc(&device, kMost));
    void* memory = nullptr;
    MUST(cuMemHostAlloc(&memory, 2 * kMost, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE));
    pinned = static_cast<char*>(memory);
    MUST(cuMemHostGetDevicePointer(&pinned_there, memory, 0));
    void* const shared = mmap(nullptr, kRegistered, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) std::exit(1);
    registered = static_cast<char*>(shared);
    MUST(cuMemHostRegister(registered, kRegistered, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
    word = reinterpret_cast<volatile unsigned*>(pinned + kMost);
    word_there = pinned_there + kMost;
  }
  void see_event() {
    MUST(cuEventRecord(event, stream));
    called();
    while (cuEventQuery(event) == CUDA_ERROR_NOT_READY) {
    }
  }
  void see_stream() {
    called();
    while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY) {
    }
  }
  void see_sync() {
    called();
    MUST(cuStreamSynchronize(stream));
  }
  void see_word() {
    called();
    while (*word != turn) {
    }
  }
  char* next_registered(std::size_t stride) {
    at = (at + stride) % kRegistered;
    return registered + at;
  }
  // All of them other than they were.
  void see_bytes(const volatile char* place, std::size_t bytes, char before) {
    called();
    for (std::size_t i = 0; i < bytes; ++i)
      while (place[i] == before) {
      }
  }
  void called() { called_at = Clock::now(); }
  Clock::time_point called_at;
};

struct Way {
  std::string name;
  bool into;
  std::size_t most;
  std::function<void(Machine&, std::size_t)> go;
};

void write_values(Machine& m, std::size_t bytes, bool with_word) {
  static std::array<CUstreamBatchMemOpParams, kMost / 8 + 1> operations;
  unsigned count = 0;
  for (std::size_t at = 0; at < bytes; at += 8, ++count) {
    CUstreamBatchMemOpParams& one = operations[count];
    one = {};
    one.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    one.writeValue.address = m.device + at;
    std::memcpy(&one.writeValue.value64, &m.ordinary[at], 8);
    one.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
  }
  if (with_word) {
    CUstreamBatchMemOpParams& one = operations[count++];
    one = {};
    one.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    one.writeValue.address = m.word_there;
    one.writeValue.value = ++m.turn;
    one.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
  }
  MUST(cuStreamBatchMemOp(m.stream, count, operations.data(), 0));
}

void two_rows(Machine& m, std::size_t bytes) {
  CUDA_MEMCPY3D rows{};
  rows.srcMemoryType = CU_MEMORYTYPE_HOST;
  rows.srcHost = m.pinned;
  rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.dstDevice = m.device;
  rows.WidthInBytes = rows.srcPitch = rows.dstPitch = bytes / 2;
  rows.Height = rows.srcHeight = rows.dstHeight = 2;
  rows.Depth = 1;
  MUST(cuMemcpy3DAsync(&rows, m.stream));
}

// And from there to where the others come at once.
void out_registered(Machine& m, std::size_t bytes, std::size_t stride) {
  char* const place = m.next_registered(stride);
  std::fill_n(place, bytes, m.pinned[0]);
  const char before = m.pinned[0];
  MUST(cuMemcpyDtoHAsync(place, m.device, bytes, m.stream));
  m.see_bytes(place, bytes, before);
  std::memcpy(m.pinned, place, bytes);
}

Parameters parameters_of(const Machine& m, std::size_t bytes) {
  Parameters all;
  std::memcpy(all.bytes, m.ordinary.data(), bytes);
  return all;
}
unsigned threads_for(std::size_t bytes) {
  return static_cast<unsigned>(std::min<std::size_t>(256, (bytes + 255) / 256 * 32));
}

std::vector<Way> ways_into() {
  const auto from_pinned = [](Machine& m, std::size_t n) { MUST(cuMemcpyHtoDAsync(m.device, m.pinned, n, m.stream)); };
  const auto from_ordinary = [](Machine& m, std::size_t n) {
    MUST(cuMemcpyHtoDAsync(m.device, m.ordinary.data(), n, m.stream));
  };
  const auto any = [](Machine& m, std::size_t n) {
    MUST(cuMemcpyAsync(m.device, reinterpret_cast<CUdeviceptr>(m.pinned), n, m.stream));
  };
  return {
      {"copy from page-locked, sync", true, kMost, [=](Machine& m, std::size_t n) { from_pinned(m, n), m.see_sync(); }},
      {"copy from page-locked, event", true, kMost, [=](Machine& m, std::size_t n) { from_pinned(m, n), m.see_event(); }},
      {"copy from page-locked, query", true, kMost, [=](Machine& m, std::size_t n) { from_pinned(m, n), m.see_stream(); }},
      {"any copy from page-locked, event", true, kMost, [=](Machine& m, std::size_t n) { any(m, n), m.see_event(); }},
      {"copy from registered in turn, event", true, kMost,
       [=](Machine& m, std::size_t n) {
         char* const place = m.next_registered(kStride);
         std::memcpy(place, m.pinned, n);
         MUST(cuMemcpyHtoDAsync(m.device, place, n, m.stream));
         m.see_event();
       }},
      {"two rows from page-locked, event", true, kMost, [=](Machine& m, std::size_t n) { two_rows(m, n), m.see_event(); }},
      {"copy from ordinary, sync", true, kMost, [=](Machine& m, std::size_t n) { from_ordinary(m, n), m.see_sync(); }},
      {"copy from ordinary, event", true, kMost, [=](Machine& m, std::size_t n) { from_ordinary(m, n), m.see_event(); }},
      {"copy from ordinary, query", true, kMost, [=](Machine& m, std::size_t n) { from_ordinary(m, n), m.see_stream(); }},
      {"values, sync", true, kMostInValues, [=](Machine& m, std::size_t n) { write_values(m, n, false), m.see_sync(); }},
      {"values, event", true, kMostInValues, [=](Machine& m, std::size_t n) { write_values(m, n, false), m.see_event(); }},
      {"values, query", true, kMostInValues, [=](Machine& m, std::size_t n) { write_values(m, n, false), m.see_stream(); }},
      {"values, word", true, kMostInValues, [=](Machine& m, std::size_t n) { write_values(m, n, true), m.see_word(); }},
      {"kernel with parameters, word", true, kMostByKernel,
       [](Machine& m, std::size_t n) {
         store_parameters<<<1, threads_for(n), 0, m.stream>>>(reinterpret_cast<char*>(m.device), parameters_of(m, n),
                                                              static_cast<unsigned>(n),
                                                              reinterpret_cast<volatile unsigned*>(m.word_there), ++m.turn);
         m.see_word();
       }},
      {"kernel, word", true, kMost,
       [](Machine& m, std::size_t n) {
         store<<<1, threads_for(n), 0, m.stream>>>(reinterpret_cast<char*>(m.device),
                                                   reinterpret_cast<char*>(m.pinned_there), static_cast<unsigned>(n),
                                                   reinterpret_cast<volatile unsigned*>(m.word_there), ++m.turn);
         m.see_word();
       }},
  };
}

std::vector<Way> ways_out() {
  const auto any_out = [](Machine& m, std::size_t n) {
    MUST(cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(m.pinned), m.device, n, m.stream));
  };
  const auto out = [](Machine& m, std::size_t n) { MUST(cuMemcpyDtoHAsync(m.pinned, m.device, n, m.stream)); };
  return {
      {"copy, sync", false, kMost, [=](Machine& m, std::size_t n) { out(m, n), m.see_sync(); }},
      {"copy, event", false, kMost, [=](Machine& m, std::size_t n) { out(m, n), m.see_event(); }},
      {"any copy, event", false, kMost, [=](Machine& m, std::size_t n) { any_out(m, n), m.see_event(); }},
      {"copy, query", false, kMost, [=](Machine& m, std::size_t n) { out(m, n), m.see_stream(); }},
      {"copy, bytes", false, kMost,
       [=](Machine& m, std::size_t n) {
         const char before = m.pinned[0];
         out(m, n), m.see_bytes(m.pinned, n, before);
       }},
      {"copy into registered, bytes", false, kMost, [=](Machine& m, std::size_t n) { out_registered(m, n, 0); }},
      {"copy into registered in turn, bytes", false, kMost,
       [=](Machine& m, std::size_t n) { out_registered(m, n, kStride); }},
      {"kernel, word", false, kMost,
       [](Machine& m, std::size_t n) {
         store<<<1, threads_for(n), 0, m.stream>>>(reinterpret_cast<char*>(m.pinned_there),
                                                   reinterpret_cast<char*>(m.device), static_cast<unsigned>(n),
                                                   reinterpret_cast<volatile unsigned*>(m.word_there), ++m.turn);
         m.see_word();
       }},
  };
}

// Another process with a context on that GPU, which has a kernel run there whenever it is asked to.
class Other {
 public:
  Other() {
    if (pipe(asks_) != 0 || pipe(answers_) != 0) std::exit(1);
    const pid_t child = fork();
    if (child != 0) return;
    close(asks_[1]);
    MUST(cuInit(0));
    CUcontext context{};
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    char asked = 0;
    while (read(asks_[0], &asked, 1) == 1) {
      nothing<<<1, 1>>>();
      MUST(cuStreamSynchronize(nullptr));
      if (write(answers_[1], &asked, 1) != 1) break;
    }
    std::_Exit(0);
  }
  void turn() {
    char word = 0;
    if (write(asks_[1], &word, 1) != 1 || read(answers_[0], &word, 1) != 1) std::exit(1);
  }

 private:
  int asks_[2], answers_[2];
};

// The source of this round: bytes that are none of the last one's, at any place.
void prepare(Machine& m, const Way& way, std::size_t bytes, int round) {
  const char byte = static_cast<char>(1 + round % 100), before = static_cast<char>(101 + round % 7);
  std::fill_n(m.ordinary.begin(), kMost, byte);
  if (way.into) {
    std::fill_n(m.pinned, kMost, byte);
  } else {
    MUST(cuMemsetD8Async(m.device, static_cast<unsigned char>(byte), bytes, m.stream));
    MUST(cuStreamSynchronize(m.stream));
    std::fill_n(m.pinned, kMost, before);
  }
}

bool compare(Machine& m, const Way& way, std::size_t bytes) {
  MUST(cuStreamSynchronize(m.stream));
  std::vector<char> got(m.pinned, m.pinned + bytes);
  if (way.into) MUST(cuMemcpyDtoH(got.data(), m.device, bytes));
  return std::equal(got.begin(), got.end(), m.ordinary.begin());
}

double at(std::vector<double>& times, double part) {
  const auto place = times.begin() + static_cast<long>(part * static_cast<double>(times.size() - 1));
  std::nth_element(times.begin(), place, times.end());
  return *place;
}

[[noreturn]] void differs(const Way& way) {
  std::fprintf(stderr, "small_copies: %s: other bytes\n", way.name.c_str());
  std::exit(1);
}

void measure(Machine& m, const Way& way, std::size_t bytes, bool first, Other* other) {
  const int rounds = other != nullptr ? kRounds / 20 : kRounds;
  std::vector<double> times, called;
  for (int round = 0; round < rounds + rounds / 10; ++round) {
    prepare(m, way, bytes, round);
    if (other != nullptr) other->turn();
    const Clock::time_point begun = Clock::now();
    way.go(m, bytes);
    const double took = us_since(begun);
    if (!way.into && !std::equal(m.pinned, m.pinned + bytes, m.ordinary.begin())) differs(way);
    if (round < rounds / 10) continue;
    times.push_back(took);
    called.push_back(std::chrono::duration<double, std::micro>(m.called_at - begun).count());
  }
  if (!compare(m, way, bytes)) differs(way);
  std::printf(
      "%s\n {\"way\": \"%s\", \"into\": %s, \"bytes\": %zu, \"median_us\": %.3f, \"p10_us\": %.3f, \"p90_us\": %.3f, "
      "\"called_us\": %.3f}",
      first ? "" : ",", way.name.c_str(), way.into ? "true" : "false", bytes, at(times, 0.5), at(times, 0.1), at(times, 0.9),
      at(called, 0.5));
}

}  // namespace

int main(int count, char** words) {
  const bool shared = count > 1 && std::strcmp(words[1], "shared") == 0;
  std::unique_ptr<Other> other = shared ? std::make_unique<Other>() : nullptr;  // before this process has a context
  MUST(cuInit(0));
  CUdevice device = 0;
  MUST(cuDeviceGet(&device, 0));
  CUcontext context{};
  MUST(cuDevicePrimaryCtxRetain(&context, device));
  MUST(cuCtxSetCurrent(context));
  std::array<char, 128> name{};
  MUST(cuDeviceGetName(name.data(), static_cast<int>(name.size()), device));
  Machine machine;
  std::printf("{\"gpu\": \"%s\", \"shared\": %s, \"rows\": [", name.data(), shared ? "true" : "false");
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  bool first = true;
  std::vector<Way> ways = ways_into();
  for (Way& way : ways_out()) ways.push_back(std::move(way));
  for (const Way& way : ways)
    for (const std::size_t bytes : kSizes)
      if (bytes <= way.most) measure(machine, way, bytes, std::exchange(first, false), other.get());
  std::printf("\n]}\n");
}
