// The stream side of `isthmus bench one-sided`: what is put into a CUDA stream and goes on without the processor, by the calls of
// isthmus/heap_stream.h, and copies of the program's own that the library's barrier orders.
#include <isthmus/stream.h>

#include <algorithm>

#include "cli/bench_one_sided_device.hpp"
#include "cli/bench_one_sided_runs.hpp"
#include "cli/bench_timing.hpp"

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
        signals_(numbers(64)),
        comm_(bench.world.comm()),
        theirs_(heap_.pointer(dest_, bench.other())) {
    comm_.barrier_on(kernels_.stream());
    // Before hundreds of them are put there.
    run({OneSidedKernel::meet_bare, 1, kBareThreads, &flags_}, 1);
  }
  void measure() {
    const auto sizes = bench_.sizes(8, kMostInStream, 8);
    if (bench_.wants("ping-pong"))
      for (const std::uint64_t bytes : sizes) exchange(bytes), ping_pong(bytes);
    if (bench_.wants("bandwidth"))
      for (const bool puts : {true, false})
        for (const std::uint64_t bytes : sizes) bandwidth(bytes, puts, false);
    if (bench_.wants("rate")) bandwidth(8, true, true);
    if (bench_.wants("atomics")) add_in_stream();
    if (bench_.wants("barrier")) exchange(0), heap_barrier();
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

  void trade_bare(std::uint64_t bytes, bool has_words);
  void ping_pong(std::uint64_t bytes);
  void bandwidth(std::uint64_t bytes, bool puts, bool rate);
  void add_in_stream();
  void heap_barrier();
  std::string in_a_stream(std::uint64_t count) const { return ", " + std::to_string(count) + " in a stream"; }

  OneSidedNumbers flags_, signals_;
  isthmus::Comm comm_;
  unsigned char* theirs_;
  std::uint64_t bare_ = 0;  // trades by the driver's own calls
};

// The same by the driver's own calls. No wait of the library's: nobody ends it where a PE dies, and of what was stored before the word it
// promises nothing, but on devices that flush what comes from others (CU_STREAM_WAIT_VALUE_FLUSH).
void StreamSide::trade_bare(std::uint64_t bytes, bool has_words) {
  std::uint64_t* const mine = signals_.words + 16;
  std::uint64_t* const theirs = heap_.pointer(mine, bench_.other());
  for (std::uint64_t n = 0; n < kInStream; ++n) {
    ++bare_;
    const auto send = [&] {
      put(bytes);
      if (has_words) kernels_.write(theirs, bare_);
    };
    if (bench_.first()) send();
    if (has_words) kernels_.await(mine, bare_);
    if (!bench_.first()) send();
  }
  kernels_.wait();
}

void StreamSide::ping_pong(std::uint64_t bytes) {
  std::uint64_t* const word = signals_.words;
  const auto trade = [&](std::uint64_t times) {
    void* const stream = kernels_.stream();
    for (std::uint64_t n = 0; n < times; ++n) {
      ++signals_.used;
      const auto send = [&] {
        heap_.put_signal_on(stream, dest_, bench_.buffer(source_), bytes, word, signals_.used, bench_.other());
      };
      if (bench_.first()) send();
      heap_.wait_until_on(stream, word, isthmus::Compare::greater_equal, signals_.used);
      if (!bench_.first()) send();
    }
    kernels_.wait();
  };
  prepare(bytes + 5, bytes);
  trade(1);
  must_have_come(bytes + 5, bytes, "put_signal_on");
  OneSidedRow row{.operation = "ping-pong", .bytes = bytes};
  row.by = "put_signal_on and wait_until_on" + in_a_stream(kInStream);
  const bool has_words = kernels_.has_words();
  row.limit_is = has_words ? "the same copies, and words that the driver writes and waits for" : "the same copies alone";
  row.limit_times = bench_.timed(row, true, 2.0 * kInStream, [&] { trade_bare(bytes, has_words); });
  row.times = bench_.timed(row, true, 2.0 * kInStream, [&] { trade(kInStream); });
  bench_.add(std::move(row));
}

void StreamSide::bandwidth(std::uint64_t bytes, bool puts, bool rate) {
  const auto count = std::min(static_cast<std::uint64_t>(window_of(bytes)), kInStream);
  void* const stream = kernels_.stream();
  const auto ours = [&] {
    for (std::uint64_t n = 0; n < count && bench_.first(); ++n) {
      if (puts)
        heap_.put_on(stream, dest_, bench_.buffer(source_), bytes, 1);
      else
        heap_.get_on(stream, bench_.buffer(source_), dest_, bytes, 1);
    }
    kernels_.wait();
  };
  const auto bare = [&] {
    for (std::uint64_t n = 0; n < count && bench_.first(); ++n) {
      if (puts)
        kernels_.copy(theirs_, source_, bytes);
      else
        kernels_.copy(source_, theirs_, bytes);
    }
    kernels_.wait();
  };
  prepare(bytes + 1, bytes);
  const auto told = bytes_of_rank(1, bytes + 3, bytes);
  if (!puts && !bench_.first()) bench_.write(dest_, told);
  heap_.barrier();
  ours();
  heap_.barrier();
  const bool right = puts ? bench_.first() || bench_.holds(dest_, bytes_of_rank(0, bytes + 1, bytes))
                          : !bench_.first() || bench_.holds(source_, told);
  const std::string name = puts ? "put" : "get";
  bench_.must_be_right(right, name + "_on of " + std::to_string(bytes) + " bytes");
  OneSidedRow row{.operation = rate ? "rate of " + name + "s" : name + " bandwidth", .bytes = bytes, .moves = true};
  row.counts = rate;
  row.by = name + "_on" + in_a_stream(count);
  row.limit_is = "copies by the driver" + in_a_stream(count);
  row.limit_times = bench_.timed(row, true, static_cast<double>(count), bare);
  row.times = bench_.timed(row, true, static_cast<double>(count), ours);
  bench_.add(std::move(row));
}

// No call in a stream gives a word back: of atomics there is the sum that a signal makes.
void StreamSide::add_in_stream() {
  bench_.leave_out("fetch_add in a stream: no call there gives a word; add is by put_signal_on with IST_SIGNAL_ADD");
  std::uint64_t* const word = signals_.words + 32;
  std::uint64_t added = 0;
  const auto add = [&](std::uint64_t times) {
    for (std::uint64_t n = 0; n < times && bench_.first(); ++n, ++added)
      heap_.put_signal_on(kernels_.stream(), dest_, bench_.buffer(source_), 0, word, 1, 1, isthmus::Signal::add);
    kernels_.wait();
  };
  std::string refused;
  try {
    add(1);
  } catch (const isthmus::Error& error) {
    if (static_cast<int>(error.code()) != IST_ERR_UNSUPPORTED) throw;
    refused = error.what();
  }
  if (bench_.from_first(refused.empty() ? 0 : 1) != 0) return bench_.leave_out("add in a stream: " + refused);
  OneSidedRow row{.operation = "add", .bytes = 8, .counts = true};
  row.by = "put_signal_on of no bytes" + in_a_stream(kInStream);
  row.limit_is = "launches of an empty kernel" + in_a_stream(kInStream);
  row.limit_times = bench_.timed(row, true, static_cast<double>(kInStream), [&] {
    for (std::uint64_t n = 0; n < kInStream && bench_.first(); ++n) kernels_.launch(OneSidedKernel::empty, {}, 1, 1);
    kernels_.wait();
  });
  row.times = bench_.timed(row, true, static_cast<double>(kInStream), [&] { add(kInStream); });
  heap_.barrier();
  const auto wanted = static_cast<std::uint64_t>(bench_.from_first(static_cast<double>(added)));
  bench_.must_be_right(bench_.first() || bench_.word_at(word) == wanted, "the sum of what was added in a stream");
  bench_.add(std::move(row));
}

void StreamSide::heap_barrier() {
  heap_.barrier_on(kernels_.stream());
  kernels_.wait();
  OneSidedRow row{.operation = "barrier"};
  row.by = "barrier_on of the heap" + in_a_stream(kInStream);
  row.limit_is = "a bare kernel that meets the other";
  row.limit_times = bench_.timed(row, true, static_cast<double>(kInStream), [&] {
    for (std::uint64_t n = 0; n < kInStream; ++n) meet_bare();
    kernels_.wait();
  });
  row.times = bench_.timed(row, true, static_cast<double>(kInStream), [&] {
    for (std::uint64_t n = 0; n < kInStream; ++n) heap_.barrier_on(kernels_.stream());
    kernels_.wait();
  });
  bench_.add(std::move(row));
}

}  // namespace

void measure_stream_side(OneSidedBench& bench) { StreamSide(bench).measure(); }

}  // namespace ist::cli
