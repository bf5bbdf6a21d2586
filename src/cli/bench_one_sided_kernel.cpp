// The kernel side of `isthmus bench one-sided`.
#include <algorithm>
#include <optional>

#include "cli/bench_one_sided_device.hpp"
#include "cli/bench_one_sided_runs.hpp"
#include "cli/bench_timing.hpp"
#include "cli/failure.hpp"

namespace ist::cli {
namespace {

using one_sided::kMostThreads;
using one_sided::kWordPlaces;
using Form = OneSidedForm;
using Numbers = OneSidedNumbers;
using Kernel = OneSidedKernel;

constexpr std::uint64_t kRoomOfKernels = 64 << 20;
constexpr std::uint64_t kMostByPuts = 64 << 10;
constexpr std::uint64_t kLeastOfBandwidth = 64 << 10;
constexpr std::uint64_t kOfBandwidth = 512 << 20;  // bytes that a launch moves
constexpr std::uint64_t kWordBytes = 8;
constexpr unsigned kInBlock = 256;  // threads of a block of those that trade, store or add to words
constexpr unsigned kThreadsOfCopies = 512;

class KernelSide : OneSidedRuns {
 public:
  explicit KernelSide(OneSidedBench& bench);
  void measure();

 private:
  void words();
  void must_come(const std::vector<Form>& forms, std::uint64_t bytes, const std::string& by);
  void messages(std::uint64_t bytes);
  void packets(std::uint64_t bytes);
  void bandwidth(std::uint64_t bytes, bool puts);
  void copies(const OneSidedRow& row, Form form);
  void rate();
  void small_puts();
  void must_hold_last(const Numbers& numbers, std::uint64_t count);
  void atomics();
  void barriers();

  std::optional<std::pair<unsigned, unsigned>> shape_of(std::uint64_t threads);

  Numbers traded_, traded_bare_, signals_, flags_, packets_, packets_bare_, meetings_, meetings_bare_, stored_, stored_bare_,
      sums_, none_;
  std::uint64_t added_ = 0;
};

KernelSide::KernelSide(OneSidedBench& bench)
    : OneSidedRuns(bench, std::max(bench.options.sizes.empty() ? kRoomOfKernels : bench.options.sizes.back(), kMostByPuts)),
      traded_(numbers(kMostThreads)),
      traded_bare_(numbers(kMostThreads)),
      signals_(numbers(64)),
      flags_(numbers(64)),
      packets_(numbers(64)),
      packets_bare_(numbers(one_sided::kBarePacketBytes / 8)),
      meetings_(numbers(64)),
      meetings_bare_(numbers(64)),
      stored_(numbers(kWordPlaces * kMostThreads)),
      stored_bare_(numbers(kWordPlaces * kMostThreads)),
      sums_(numbers(64)),
      none_(numbers(64)) {}

void KernelSide::measure() {
  if (bench_.wants("words")) words();
  if (bench_.wants("ping-pong")) {
    for (const std::uint64_t bytes : bench_.sizes(8, kMostByPuts, 8)) messages(bytes);
    for (const std::uint64_t bytes : bench_.sizes(8, one_sided::kMostInPackets, 8)) packets(bytes);
  }
  if (bench_.wants("bandwidth"))
    for (const bool puts : {true, false})
      for (const std::uint64_t bytes :
           bench_.sizes(bench_.options.sizes.empty() ? kLeastOfBandwidth : kWordBytes, kRoomOfKernels, 8))
        bandwidth(bytes, puts);
  if (bench_.wants("rate")) {
    rate();
    small_puts();
  }
  if (bench_.wants("atomics")) atomics();
  if (bench_.wants("barrier")) barriers();
  heap_.destroy();
}

// Blocks and threads of each, of which all are resident: no more blocks than multiprocessors.
std::optional<std::pair<unsigned, unsigned>> KernelSide::shape_of(std::uint64_t threads) {
  const auto in_block = static_cast<unsigned>(std::min<std::uint64_t>(threads, kInBlock));
  const auto blocks = static_cast<unsigned>(threads / in_block);
  if (blocks <= multiprocessors_) return std::pair{blocks, in_block};
  bench_.leave_out(std::to_string(threads) + " threads, which may not all be resident on " +
                   std::to_string(multiprocessors_) + " multiprocessors");
  return std::nullopt;
}

// Each thread owns a word; as in the paper on global GPU address spaces, up to 8192 of them.
void KernelSide::words() {
  for (std::uint64_t threads = 1; threads <= kMostThreads; threads *= 2) {
    const auto shape = shape_of(threads);
    if (!shape) return;
    OneSidedRow row{.operation = "ping-pong of words", .bytes = kWordBytes * threads, .by = "a word each"};
    row.limit_is = "bare stores and loads";
    row.iterations = trips(2000);
    const auto form = [&](Kernel kernel, Numbers& numbers) {
      return Form{kernel, shape->first, shape->second, &numbers, kWordBytes * threads, threads};
    };
    const std::vector<Form> ours{form(Kernel::words, traded_)}, bare{form(Kernel::words_bare, traded_bare_)};
    race(std::move(row), ours, bare, 2);
  }
}

// By each of the forms, before any is timed.
void KernelSide::must_come(const std::vector<Form>& forms, std::uint64_t bytes, const std::string& by) {
  for (const Form& form : forms) {
    prepare(bytes + form.threads, bytes);
    run(form, 2);
    must_have_come(bytes + form.threads, bytes, by + form.text());
  }
}

void KernelSide::messages(std::uint64_t bytes) {
  std::vector<Form> ours, bare;
  // One that would take a second is never the best.
  const auto suits = [&](unsigned threads) { return bytes / 16 <= std::uint64_t{64} * threads; };
  if (suits(1)) ours.push_back({Kernel::put_by_thread, 1, 1, &signals_, bytes});
  if (suits(32)) ours.push_back({Kernel::put_by_warp, 1, 32, &signals_, bytes});
  if (suits(1)) bare.push_back({Kernel::flag_bare, 1, 1, &flags_, bytes});
  for (unsigned threads = 32; threads <= 1024; threads *= 2)
    if (suits(threads)) {
      ours.push_back({Kernel::put_by_block, 1, threads, &signals_, bytes});
      bare.push_back({Kernel::flag_bare, 1, threads, &flags_, bytes});
    }
  must_come(ours, bytes, "put_signal by ");
  OneSidedRow row{.operation = "ping-pong", .bytes = bytes, .by = "put_signal"};
  row.limit_is = "store, fence, flag";
  row.iterations = trips(2000);
  race(std::move(row), ours, bare, 2);
}

void KernelSide::packets(std::uint64_t bytes) {
  std::vector<Form> ours, bare;
  ours.push_back({Kernel::packets_by_warp, 1, 32, &packets_, bytes});
  for (unsigned threads = 32; threads <= 1024; threads *= 2) {
    ours.push_back({Kernel::packets_by_block, 1, threads, &packets_, bytes});
    bare.push_back({Kernel::packets_bare, 1, threads, &packets_bare_, bytes});
  }
  must_come(ours, bytes, "packets by ");
  OneSidedRow row{.operation = "ping-pong", .bytes = bytes, .by = "packets"};
  row.limit_is = "bare packets";
  row.iterations = trips(2000);
  race(std::move(row), ours, bare, 2);
}

// By stores or loads of kernels, and by their copy units, beside the copy engine.
void KernelSide::bandwidth(std::uint64_t bytes, bool puts) {
  const auto window = static_cast<std::uint64_t>(window_of(bytes));
  const std::uint64_t places = std::clamp<std::uint64_t>(room_ / bytes, 1, window);
  unsigned char* const theirs = heap_.pointer(puts ? dest_ : source_, bench_.other());
  OneSidedRow row{.operation = puts ? "put bandwidth" : "get bandwidth", .bytes = bytes, .moves = true};
  row.limit_is = "the copy engine";
  const auto engine = bench_.timed(row, true, static_cast<double>(window), [&] {
    if (!bench_.first()) return;
    for (std::uint64_t n = 0; n < window; ++n) {
      const std::uint64_t at = n % places * bytes;
      kernels_.copy(puts ? theirs + at : dest_ + at, puts ? source_ + at : theirs + at, bytes);
    }
    kernels_.wait();
  });
  row.iterations = trips(std::clamp<std::uint64_t>(kOfBandwidth / bytes, places, 2000));
  row.limit_times = engine;
  for (const bool bulk : {false, true}) {
    row.by = bulk ? "the copy unit" : "";
    copies(row, {puts   ? bulk ? Kernel::put_bulk : Kernel::put
                 : bulk ? Kernel::get_bulk
                        : Kernel::get,
                 1, bulk ? 1 : kThreadsOfCopies, &none_, bytes, 1, places});
  }
}

// By more and more blocks, each compared before it is timed.
void KernelSide::copies(const OneSidedRow& row, Form form) {
  const bool puts = row.operation.starts_with("put");
  const std::uint64_t all = form.places * form.bytes;
  std::vector<unsigned> tried;
  for (const unsigned wanted : {1U, 8U, 32U, multiprocessors_}) {
    form.blocks = std::min(wanted, multiprocessors_);
    if (std::find(tried.begin(), tried.end(), form.blocks) != tried.end()) continue;
    tried.push_back(form.blocks);
    const std::uint64_t which = form.bytes + form.blocks + form.threads;
    prepare(which, all);
    run(form, form.places);
    heap_.barrier();
    const bool looks = bench_.first() != puts;
    bench_.must_be_right(!looks || bench_.holds(dest_, bytes_of_rank(bench_.other(), which, all)),
                         row.operation.substr(0, 3) + "s by " + form.text() + ", " + std::to_string(form.bytes) + " bytes");
    race(row, {form}, {}, 1);
  }
}

// Slot s of a thread holds the last number n with n % kWordPlaces == s.
void KernelSide::must_hold_last(const Numbers& numbers, std::uint64_t count) {
  heap_.barrier();
  bool right = true;
  if (!bench_.first()) {
    std::vector<std::uint64_t> found(kWordPlaces * count);
    bench_.world.copy(isthmus::Buffer::host(found.data()), bench_.buffer(numbers.words),
                      found.size() * sizeof(std::uint64_t));
    for (std::uint64_t back = 0; back < std::min(kWordPlaces, numbers.used); ++back) {
      const std::uint64_t n = numbers.used - back;
      const auto* const slot = &found[n % kWordPlaces * count];
      right = right && std::all_of(slot, slot + count, [n](std::uint64_t one) { return one == n; });
    }
  }
  bench_.must_be_right(right, "words that " + std::to_string(count) + " threads stored");
}

void KernelSide::rate() {
  for (const std::uint64_t threads : {1U, 32U, 1024U, 8192U}) {
    const auto shape = shape_of(threads);
    if (!shape) return;
    const auto form = [&](Kernel kernel, Numbers& numbers) {
      return Form{kernel, shape->first, shape->second, &numbers, kWordBytes, threads};
    };
    const std::vector<Form> ours{form(Kernel::store, stored_)}, bare{form(Kernel::store_bare, stored_bare_)};
    run(ours[0], kWordPlaces);
    must_hold_last(stored_, threads);
    OneSidedRow row{.operation = "rate of puts", .bytes = kWordBytes, .by = "p", .moves = true, .counts = true};
    row.limit_is = "bare stores";
    row.iterations = trips(2000);
    race(std::move(row), ours, bare, static_cast<double>(threads));
  }
}

// One after the other, each to the next place, by one thread, warp or block.
void KernelSide::small_puts() {
  for (const std::uint64_t bytes : {8U, 16U, 64U, 128U, 512U})
    for (Form form : {Form{Kernel::small_by_thread, 1, 1, &none_}, Form{Kernel::small_by_warp, 1, 32, &none_},
                      Form{Kernel::small_by_block, 1, 256, &none_}}) {
      form.bytes = bytes;
      const std::uint64_t which = bytes + form.threads;
      prepare(which, kWordPlaces * bytes);
      run(form, kWordPlaces);
      heap_.barrier();
      bench_.must_be_right(bench_.first() || bench_.holds(dest_, bytes_of_rank(bench_.other(), which, kWordPlaces * bytes)),
                           "puts by " + form.text() + ", " + std::to_string(bytes) + " bytes");
      OneSidedRow row{.operation = "rate of puts", .bytes = bytes, .by = "put", .moves = true, .counts = true};
      row.limit_is = "bare loads and stores";
      row.iterations = trips(2000);
      Form bare = form;
      bare.kernel = Kernel::small_bare;
      race(std::move(row), {form}, {bare}, 1);
    }
}

void KernelSide::atomics() {
  if (heap_.device_view().desk != nullptr)
    return bench_.leave_out(
        "atomics: the link between these devices has none, so that kernels have none of the other PE's words");
  for (const bool fetches : {true, false})
    for (const std::uint64_t threads : {1U, 32U, 1024U, 8192U}) {
      const auto shape = shape_of(threads);
      if (!shape) return;
      const auto form = [&](Kernel kernel, Numbers& numbers) {
        return Form{kernel, shape->first, shape->second, &numbers, kWordBytes, threads};
      };
      OneSidedRow row{.operation = fetches ? "fetch_add" : "add", .bytes = kWordBytes, .by = "one word", .counts = true};
      row.limit_is = fetches ? "loads of the word" : "bare stores";
      row.iterations = trips(threads == 1 ? 2000 : 200);
      const std::uint64_t before = sums_.used;
      const Form bare = fetches ? form(Kernel::load_bare, none_) : form(Kernel::store_bare, stored_bare_);
      race(std::move(row), {form(fetches ? Kernel::fetch_add : Kernel::add, sums_)}, {bare}, static_cast<double>(threads));
      added_ += (sums_.used - before) * threads;
      heap_.barrier();
      bench_.must_be_right(bench_.first() || bench_.word_at(sums_.words) == added_,
                           "the sum of what " + std::to_string(threads) + " threads added");
    }
}

void KernelSide::barriers() {
  struct Meeting {
    const char* by;
    Form form;
  };
  const unsigned blocks = std::min(16U, multiprocessors_);
  for (const auto& [by, form] : {Meeting{"a warp", {Kernel::meet_by_warp, 1, 32, &meetings_}},
                                 Meeting{"a block", {Kernel::meet_by_block, 1, 32, &meetings_}},
                                 Meeting{"a block", {Kernel::meet_by_block, 1, 256, &meetings_}},
                                 Meeting{"a grid", {Kernel::meet_by_grid, blocks, 256, &meetings_}}}) {
    OneSidedRow row{.operation = "barrier", .by = by};
    row.limit_is = "a push barrier";
    row.iterations = trips(2000);
    race(std::move(row), {form}, {{Kernel::meet_bare, 1, form.threads, &meetings_bare_}}, 1);
  }
}

}  // namespace

void measure_kernel_side(OneSidedBench& bench) { KernelSide(bench).measure(); }

}  // namespace ist::cli
