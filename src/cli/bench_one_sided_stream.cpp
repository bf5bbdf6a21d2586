// The stream side of `isthmus bench one-sided`: what is put into a CUDA stream and goes on without the processor. Copies are the program's own,
// into the other part of a heap; what orders them is the library's.
#include <isthmus/stream.h>

#include "cli/bench_one_sided_device.hpp"
#include "cli/bench_one_sided_runs.hpp"

namespace ist::cli {
namespace {

constexpr std::uint64_t kMostInStream = 4 << 20;
constexpr std::uint64_t kInStream = 100;  // put there before they are waited for
constexpr unsigned kBareThreads = 32;

class StreamSide : OneSidedRuns {
 public:
  explicit StreamSide(OneSidedBench& bench)
      : OneSidedRuns(bench, kMostInStream),
        flags_(numbers(64)),
        comm_(bench.world.comm()),
        theirs_(heap_.pointer(dest_, bench.other())) {
    comm_.barrier_on(kernels_.stream());
    // Before hundreds of them are put there.
    run({OneSidedKernel::meet_bare, 1, kBareThreads, &flags_}, 1);
  }
  void measure() {
    if (bench_.wants("ping-pong"))
      for (const std::uint64_t bytes : bench_.sizes(8, kMostInStream, 8)) exchange(bytes);
    if (bench_.wants("barrier")) exchange(0);
    kernels_.wait();
    heap_.destroy();
  }

 private:
  void put(std::uint64_t bytes) const {
    if (bytes != 0) kernels_.copy(theirs_, source_, bytes);
  }
  // A kernel for each, as a program launches them that has nothing else.
  void meet_bare() {
    one_sided::Work work{};
    work.view = heap_.device_view().team;
    work.ends = kernels_.ends();
    work.words = flags_.words;
    work.trips = 1;
    work.before = flags_.used++;
    kernels_.launch(OneSidedKernel::meet_bare, work, 1, kBareThreads);
  }
  void exchange(std::uint64_t bytes) {
    prepare(bytes, bytes);
    put(bytes);
    comm_.barrier_on(kernels_.stream());
    kernels_.wait();
    must_have_come(bytes, bytes, "a copy and barrier_on");
    OneSidedRow row{.operation = bytes == 0 ? "barrier" : "exchange", .bytes = bytes};
    row.by = std::string{bytes == 0 ? "" : "a copy and "} + "barrier_on, " + std::to_string(kInStream) + " in a stream";
    row.limit_is = std::string{bytes == 0 ? "" : "the same copy and "} + "a bare kernel that meets the other";
    row.limit_times = bench_.timed(row, true, static_cast<double>(kInStream), [&] {
      for (std::uint64_t n = 0; n < kInStream; ++n) put(bytes), meet_bare();
      kernels_.wait();
    });
    row.times = bench_.timed(row, true, static_cast<double>(kInStream), [&] {
      for (std::uint64_t n = 0; n < kInStream; ++n) put(bytes), comm_.barrier_on(kernels_.stream());
      kernels_.wait();
    });
    bench_.add(std::move(row));
  }

  OneSidedNumbers flags_;
  isthmus::Comm comm_;
  unsigned char* theirs_;
};

}  // namespace

void measure_stream_side(OneSidedBench& bench) { StreamSide(bench).measure(); }

}  // namespace ist::cli
