#include "cli/bench_one_sided_host.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>

#include "cli/bench_one_sided_device.hpp"
#include "cli/bench_timing.hpp"
#include "cli/failure.hpp"

namespace ist::cli {
namespace {

using isthmus::Compare;
using isthmus::Heap;

constexpr std::uint64_t kMostInTrade = 4 << 20;
constexpr std::uint64_t kRoom = 64 << 20;
constexpr std::uint64_t kSpins = 2000;  // before a bare wait gives its processor away
constexpr double kPatience = 10e6;      // us

std::atomic_ref<std::uint64_t> shared(std::uint64_t* word) { return std::atomic_ref<std::uint64_t>(*word); }

// Somebody else's store, without the library.
void await(std::uint64_t* word, std::uint64_t value) {
  const auto begin = Clock::now();
  for (std::uint64_t looks = 1; shared(word).load(std::memory_order_acquire) < value; ++looks) {
    if (looks > kSpins) sched_yield();
    if (looks % kSpins == 0 && microseconds_since(begin) > kPatience)
      throw Failure(1, "the other PE has not stored its flag within 10 s: " + std::to_string(value) + " was awaited");
  }
}

class HostSide {
 public:
  explicit HostSide(OneSidedBench& bench)
      : bench_(bench),
        device_number_(own_device(bench)),
        room_(room_for(bench)),
        heap_(bench.world.comm(), bench.kind, 2 * room_ + (4 << 20), 0, device_number_),
        flags_(bench.world.comm(), isthmus::Kind::host, 1 << 20),
        source_(bench.world.allocate(bench.kind, room_, device_number_)),
        dest_(heap_.alloc<unsigned char>(room_)),
        words_(heap_.calloc<std::uint64_t>(64)),
        flag_(flags_.calloc<std::uint64_t>(8)),
        their_flag_(flags_.pointer(flag_, bench.other())),
        theirs_(heap_.pointer(dest_, bench.other())) {
    if (!on_host()) device_ = open_one_sided_device(device_number_);
  }
  void measure() {
    const auto sizes = bench_.sizes(8, kMostInTrade, 2);
    if (bench_.wants("ping-pong"))
      for (const std::uint64_t bytes : sizes) ping_pong(bytes);
    if (bench_.wants("ping-pong"))
      for (const std::uint64_t bytes : bench_.sizes(8, kMostInTrade, 8)) put_and_quiet(bytes);
    if (bench_.wants("bandwidth"))
      for (const bool puts : {true, false})
        for (const std::uint64_t bytes : bench_.sizes(8, kRoom, 8)) bandwidth(bytes, puts);
    if (bench_.wants("rate")) bandwidth(8, true, true);
    if (bench_.wants("atomics")) atomics(true), atomics(false);
    if (bench_.wants("barrier")) barrier();
    heap_.destroy();
    flags_.destroy();
  }

 private:
  static std::uint64_t room_for(const OneSidedBench& bench) {
    return bench.options.sizes.empty() ? kRoom : std::max<std::uint64_t>(bench.options.sizes.back(), 4096);
  }
  bool on_host() const { return bench_.kind == isthmus::Kind::host; }
  unsigned char* source() const {
    const ist_buffer found = source_.buffer().c();
    return reinterpret_cast<unsigned char*>(static_cast<std::uintptr_t>(found.object) + found.offset);
  }
  // The bytes of this rank into its source, and none of them into its part of the heap.
  void prepare(std::uint64_t salt, std::uint64_t bytes) {
    const auto mine = bytes_of_rank(bench_.world.rank(), salt, bytes);
    auto wrong = bytes_of_rank(bench_.other(), salt, bytes);
    for (unsigned char& one : wrong) one = static_cast<unsigned char>(~one);
    bench_.write(source(), mine);
    bench_.write(dest_, wrong);
    heap_.barrier();
  }
  bool has_come(std::uint64_t salt, std::uint64_t bytes) const {
    return bench_.holds(dest_, bytes_of_rank(bench_.other(), salt, bytes));
  }

  void ping_pong(std::uint64_t bytes);
  void put_and_quiet(std::uint64_t bytes);
  void bandwidth(std::uint64_t bytes, bool puts, bool rate = false);
  void atomics(bool fetches);
  void barrier();
  void trade_bare(std::uint64_t bytes);
  void meet_bare();

  OneSidedBench& bench_;
  int device_number_;
  std::uint64_t room_;
  Heap heap_;
  Heap flags_;
  isthmus::Memory source_;
  unsigned char* dest_;
  std::uint64_t* words_;
  std::uint64_t* flag_;
  std::uint64_t* their_flag_;
  unsigned char* theirs_;
  std::unique_ptr<OneSidedDevice> device_;
  std::uint64_t number_ = 0;       // of the last signal
  std::uint64_t bare_number_ = 0;  // of the last flag
  std::uint64_t added_ = 0;
};

void HostSide::trade_bare(std::uint64_t bytes) {
  ++bare_number_;
  const auto send = [&] {
    std::memcpy(theirs_, source(), bytes);
    shared(their_flag_).store(bare_number_, std::memory_order_release);
  };
  if (bench_.first()) send();
  await(flag_, bare_number_);
  if (!bench_.first()) send();
}

void HostSide::meet_bare() {
  ++bare_number_;
  shared(their_flag_).store(bare_number_, std::memory_order_seq_cst);
  await(flag_, bare_number_);
}

void HostSide::ping_pong(std::uint64_t bytes) {
  const auto trade = [&] {
    ++number_;
    const auto send = [&] { heap_.put_signal(dest_, bench_.buffer(source()), bytes, words_, number_, bench_.other()); };
    if (bench_.first()) send();
    heap_.wait_until(words_, Compare::greater_equal, number_);
    if (!bench_.first()) send();
  };
  prepare(bytes, bytes);
  trade();
  bench_.must_be_right(has_come(bytes, bytes), "put_signal of " + std::to_string(bytes) + " bytes");
  OneSidedRow row{.operation = "ping-pong", .bytes = bytes, .by = "put_signal and wait_until"};
  if (on_host()) {
    row.limit_is = "memcpy and a flag, awaited";
    row.limit_times = bench_.timed(row, false, 2, [&] { trade_bare(bytes); });
  } else {
    row.limit_is = "a copy by the driver, waited for";
    row.limit_times = bench_.timed(row, false, 1, [&] {
      if (!bench_.first()) return;
      device_->copy(theirs_, source(), bytes);
      device_->wait();
    });
  }
  row.times = bench_.timed(row, false, 2, trade);
  bench_.add(std::move(row));
}

// Of which the other PE learns nothing: the bytes are there when it is over.
void HostSide::put_and_quiet(std::uint64_t bytes) {
  const auto ours = [&] {
    if (!bench_.first()) return;
    heap_.put(dest_, bench_.buffer(source()), bytes, 1);
    heap_.quiet();
  };
  prepare(bytes + 7, bytes);
  ours();
  heap_.barrier();
  bench_.must_be_right(bench_.first() || has_come(bytes + 7, bytes),
                       "a put and quiet of " + std::to_string(bytes) + " bytes");
  OneSidedRow row{.operation = "put and quiet", .bytes = bytes, .by = "put, quiet, one after the other"};
  row.limit_is = on_host() ? "memcpy of the same" : "a copy by the driver, waited for";
  row.limit_times = bench_.timed(row, false, 1, [&] {
    if (!bench_.first()) return;
    if (on_host()) {
      std::memcpy(theirs_, source(), bytes);
    } else {
      device_->copy(theirs_, source(), bytes);
      device_->wait();
    }
  });
  row.times = bench_.timed(row, false, 1, ours);
  bench_.add(std::move(row));
}

void HostSide::bandwidth(std::uint64_t bytes, bool puts, bool rate) {
  const auto window = static_cast<std::uint64_t>(window_of(bytes));
  const std::uint64_t places = std::clamp<std::uint64_t>(room_ / bytes, 1, window), all = places * bytes;
  const auto ours = [&] {
    if (!bench_.first()) return;
    for (std::uint64_t n = 0; n < window; ++n) {
      const std::uint64_t at = n % places * bytes;
      if (puts)
        heap_.put_nbi(dest_ + at, bench_.buffer(source() + at), bytes, 1);
      else
        heap_.get_nbi(bench_.buffer(source() + at), dest_ + at, bytes, 1);
    }
    heap_.quiet();
  };
  const auto bare = [&] {
    if (!bench_.first()) return;
    for (std::uint64_t n = 0; n < window; ++n) {
      const std::uint64_t at = n % places * bytes;
      unsigned char* const to = puts ? theirs_ + at : source() + at;
      const unsigned char* const from = puts ? source() + at : theirs_ + at;
      if (on_host())
        std::memcpy(to, from, bytes);
      else
        device_->copy(to, from, bytes);
    }
    if (!on_host()) device_->wait();
  };
  prepare(bytes + 1, all);
  const auto told = bytes_of_rank(1, bytes + 3, all);
  if (!puts && !bench_.first()) bench_.write(dest_, told);
  heap_.barrier();
  ours();
  heap_.barrier();
  const bool right = puts ? bench_.first() || has_come(bytes + 1, all) : !bench_.first() || bench_.holds(source(), told);
  const std::string name = puts ? "put" : "get";
  bench_.must_be_right(right, name + "s of " + std::to_string(bytes) + " bytes");
  OneSidedRow row{.operation = rate ? "rate of " + name + "s" : name + " bandwidth", .bytes = bytes, .moves = true};
  row.counts = rate;
  row.by = name + "_nbi, windows of " + std::to_string(window) + ", quiet";
  row.limit_is = on_host() ? "memcpy of the same" : "copies by the driver, waited for together";
  row.limit_times = bench_.timed(row, true, static_cast<double>(window), bare);
  row.times = bench_.timed(row, true, static_cast<double>(window), ours);
  bench_.add(std::move(row));
}

void HostSide::atomics(bool fetches) {
  std::uint64_t* const word = words_ + 32;
  const auto ours = [&] {
    if (!bench_.first()) return;
    const std::uint64_t before = added_++;
    if (!fetches) {
      if (const int code = ist_heap_atomic64(heap_.c(), IST_ATOMIC_ADD, word, 1, nullptr, 1); code != IST_OK)
        throw isthmus::Error(code, ist_error_text());
    } else if (heap_.atomic_fetch_add(word, 1, 1) != before) {
      throw Failure(1, "fetch_add found another sum than the " + std::to_string(before) + " that it had made");
    }
  };
  std::uint64_t* const bare_word = flags_.pointer(flag_ + 4, bench_.other());
  OneSidedRow row{.operation = fetches ? "fetch_add" : "add", .bytes = 8, .by = "one after the other", .counts = true};
  row.limit_is = on_host() ? "the processor's own" : "a launch of an empty kernel, waited for";
  row.limit_times = bench_.timed(row, false, 1, [&] {
    if (!bench_.first()) return;
    if (on_host()) {
      shared(bare_word).fetch_add(1);
    } else {
      device_->launch_empty();
      device_->wait();
    }
  });
  row.times = bench_.timed(row, false, 1, ours);
  heap_.barrier();
  const auto wanted = static_cast<std::uint64_t>(bench_.from_first(static_cast<double>(added_)));
  bench_.must_be_right(bench_.first() || bench_.word_at(word) == wanted, "the sum of what was added");
  bench_.add(std::move(row));
}

void HostSide::barrier() {
  OneSidedRow row{.operation = "barrier", .by = "barrier of the heap"};
  row.limit_is = "a flag to each other, awaited";
  row.limit_times = bench_.timed(row, false, 1, [&] { meet_bare(); });
  row.times = bench_.timed(row, false, 1, [&] { heap_.barrier(); });
  bench_.add(std::move(row));
}

}  // namespace

void measure_host_side(OneSidedBench& bench) { HostSide(bench).measure(); }

}  // namespace ist::cli
