#include "cli/bench_row_limit.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "cli/bench_bare_windows.hpp"
#include "cli/bench_driver_copies.hpp"
#include "cli/failure.hpp"

namespace ist::cli {
namespace {

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();
// Without a byte, and where no cache line is what is waited for.
constexpr std::size_t kLeastBytes = 8;

BareForm form_of(const BenchOptions& options) {
  if (options.bidirectional()) return BareForm::both_ways;
  // Nobody waits for what streams do by themselves.
  const bool awaited = options.one_at_a_time() && !options.stream_latency();
  return awaited || options.timed_call() ? BareForm::single : BareForm::window;
}

// Of a call, what its busiest rank has to send or receive.
std::size_t bytes_of(const Session& session, std::uint64_t bytes) {
  const CollectiveCall* const call = session.options().timed_call();
  const auto size = static_cast<std::size_t>(bytes);
  return call != nullptr ? call->moved.bytes(size, session.size()) : size;
}

}  // namespace

RowLimit::RowLimit(Session& session, const Limits& limits)
    : session_(session), options_(session.options()), limits_(limits) {
  const BareEnds where = ends();
  if (session_.rank() == 0) {
    std::string reason;
    try {
      if (options_.timed_call() && session_.size() == 1) throw Failure(1, "one rank by itself has nobody to send to");
      if (where.from.device == Place::kAnyDevice || where.to.device == Place::kAnyDevice)
        throw Failure(1, "the other rank's device is none that this rank sees");
      link_ = BareLink::open(where, session_.kinds());
      if (options_.rate() && both_hosts()) lines_us_ = cache_lines_us(limits_.other_processor);
    } catch (const Failure& failure) {
      reason = failure.what();
    }
    describe(reason);
  }
  session_.meet_asleep();
}

bool RowLimit::both_hosts() const { return !options_.from.on_device() && !options_.to.on_device() && !options_.into; }

// The other rank may see other devices, or these by other numbers: of CUDA they have names that are the same everywhere.
BareEnds RowLimit::ends() {
  const int other = std::min(session_.other(), session_.size() - 1);
  const Place& own = session_.result_place(session_.rank());
  const DriverUuid mine = own.kind == IST_KIND_CUDA ? driver_uuid(own.device) : DriverUuid{};
  const auto all = session_.from_all(std::span<const DriverUuid>{&mine, 1});
  BareEnds found{session_.place(0), session_.result_place(other), options_.most, options_.bidirectional(),
                 limits_.cache_line_us};
  if (const CollectiveCall* const call = options_.timed_call())
    found.most = std::max(call->moved.bytes(options_.most, session_.size()), kLeastBytes);
  if (found.to.kind == IST_KIND_CUDA) found.to.device = driver_device(all[static_cast<std::size_t>(other)]);
  if (options_.pairs()) {
    std::set<std::pair<DriverUuid, DriverUuid>> links;
    const std::size_t pairs = all.size() / 2;
    for (std::size_t n = 0; n < pairs; ++n) links.emplace(all[n], all[n + pairs]);
    links_ = static_cast<int>(links.size());
  }
  return found;
}

void RowLimit::describe(const std::string& reason) {
  if (!reason.empty()) {
    words_ = "not measured: " + reason;
    return;
  }
  words_ = link_->words(form_of(options_));
  if (const CollectiveCall* const call = options_.timed_call()) {
    if (call->moves_bytes())
      words_ = "what one bare link takes for " + std::string{call->moved.words} +
               ", which the busiest of N ranks has to send " + "or receive by any algorithm; that is " + words_;
    else if (!call->in_stream())
      words_ = "a cache line from processor to processor";
    else
      words_ = "what one bare link takes for 8 bytes; that is " + words_;
    if (options_.overlap()) words_ = "the longer of the computation alone and " + words_;
  } else if (options_.stream_latency()) {
    words_ = "half a round trip of a bare pair of kernels between two devices, of up to 8 KiB; copy_us is " + words_;
  } else if (options_.rate() && both_hosts()) {
    words_ = "one of 64 cache lines that are written one after the other and answered by one, or " + words_ +
             ", whichever is longer";
  } else if (both_hosts() && (options_.pairs() || options_.bidirectional())) {
    words_ += options_.pairs() ? " of each pair at once, for all pairs together" : " of each rank at once";
  } else if (options_.pairs()) {
    words_ += ", divided by the " + std::to_string(links_) + " pair(s) of devices there are";
  }
}

// On rank 0, and nobody else is at work.
double RowLimit::alone_us(std::uint64_t row_bytes, const Row& row) {
  if (!link_) return kNotMeasured;
  const std::size_t bytes = bytes_of(session_, row_bytes);
  const CollectiveCall* const call = options_.timed_call();
  if (call != nullptr && !call->moves_bytes() && !call->in_stream())
    return limits_.cache_line_us > 0 ? limits_.cache_line_us : kNotMeasured;
  double us = link_->us(std::max(bytes, call != nullptr ? kLeastBytes : std::size_t{1}), form_of(options_)) / links_;
  if (options_.overlap()) us = std::max(us, row.added[1]);
  return std::max(us, lines_us_);
}

// Memcpy by one thread of every pair, or of both ranks, while the others do the same.
double RowLimit::together_us(std::uint64_t bytes) {
  const bool copies = options_.bidirectional() || session_.side() == 0;
  session_.meet();
  const double mine = copies ? warm_memcpy_gbps(static_cast<std::size_t>(bytes)) : 0;
  session_.meet_asleep();
  const auto all = session_.from_all(std::span<const double>{&mine, 1});
  double gbs = 0;
  for (const double one : all) gbs += one;
  // Both ways there are two messages in the time of a row.
  return gbs > 0 ? (options_.bidirectional() ? 2 : 1) * static_cast<double>(bytes) / (gbs * 1e3) : kNotMeasured;
}

// The slower of the cache line, for which a message waits that comes alone, and of a memcpy of its size.
void RowLimit::add_memcpy(std::uint64_t bytes, Row& row) const {
  const double gbs = warm_memcpy_gbps(static_cast<std::size_t>(bytes));
  const double copy_us = gbs > 0 ? static_cast<double>(bytes) / (gbs * 1e3) : 0;
  const double limit_us = options_.latency() ? std::max(limits_.cache_line_us, copy_us) : copy_us;
  if (!options_.latency()) {
    const BareWindows bare = measure_bare_windows(static_cast<std::size_t>(bytes), limits_.other_processor, options_.quick);
    for (const double one : {bare.two_copies_gbs, bare.read_gbs, bare.one_copy_gbs})
      row.added.push_back(one > 0 ? one : kNotMeasured);
  }
  row.added.insert(row.added.end(), {gbs, limit_ratio(row.median_us, limit_us)});
}

void RowLimit::add(std::uint64_t bytes, Row& row) {
  if (both_hosts() && (options_.pairs() || options_.bidirectional())) {
    const double us = together_us(bytes);
    if (session_.rank() == 0) row.added.insert(row.added.end(), {us, limit_ratio(row.median_us, us)});
    return;
  }
  if (session_.rank() == 0 && options_.limited_by_memcpy()) {
    add_memcpy(bytes, row);
  } else if (session_.rank() == 0) {
    double us = kNotMeasured;
    try {
      us = alone_us(bytes, row);
    } catch (const Failure& failure) {
      link_.reset();
      words_ = std::string{"not measured in every row: "} + failure.what();
    }
    row.added.insert(row.added.end(), {us, limit_ratio(row.median_us, us)});
  }
  session_.meet_asleep();
}

}  // namespace ist::cli
