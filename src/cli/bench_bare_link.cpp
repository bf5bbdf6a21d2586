#include "cli/bench_bare_link.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "cli/bench_bare_queue.hpp"
#include "cli/bench_driver_copies.hpp"
#include "cli/bench_limits.hpp"
#include "cli/bench_timing.hpp"

namespace ist::cli {

namespace {

// Between host memory, page-locked or not.
class HostLink final : public BareLink {
 public:
  explicit HostLink(double cache_line_us) : cache_line_us_(cache_line_us) {}
  double us(std::size_t bytes, BareForm form) override {
    const double gbs = warm_memcpy_gbps(bytes);
    const double copy_us = gbs > 0 ? static_cast<double>(bytes) / (gbs * 1e3) : 0;
    return form == BareForm::single ? std::max(copy_us, cache_line_us_) : copy_us;
  }
  std::string words(BareForm form) const override {
    return std::string{"memcpy of that size, again and again, one thread"} +
           (form == BareForm::single && cache_line_us_ > 0
                ? ", or a cache line from processor to processor, whichever is longer"
                : "");
  }

 private:
  const double cache_line_us_;
};

class CopyLink final : public BareLink {
 public:
  explicit CopyLink(const BareEnds& ends)
      : from_(plain(ends.from)), to_(plain(ends.to)), copies_(DriverCopies::open(from_, to_, ends.most)) {}
  double us(std::size_t bytes, BareForm form) override {
    double least = std::numeric_limits<double>::infinity();
    if (form == BareForm::single) {
      if (ways_.empty()) ways_ = copies_->ways();
      for (const auto& [name, way] : ways_) least = std::min(least, bare_median_us([&, make = &way] { (*make)(bytes); }));
      return least;
    }
    const int window = window_of(bytes);
    const bool back = form == BareForm::both_ways;
    for (const int streams : {1, DriverCopies::kStreams})
      least = std::min(least, bare_median_us([&] {
                         for (int n = 0; n < window; ++n) put(bytes, n % streams, back);
                         copies_->wait();
                       }));
    if (copies_->copies_together()) least = std::min(least, bare_median_us([&] { put_together(bytes, window, back); }));
    return least / window;
  }
  std::string words(BareForm form) const override {
    const std::string where = from_.text() + " to " + to_.text();
    const std::string pageable =
        from_.word == "host" || to_.word == "host" ? ", which takes ordinary host memory through memory of its own" : "";
    if (form == BareForm::single)
      return "one copy of that size by the CUDA driver, " + where + pageable + ", until the processor knows that it is over";
    return "one of 64 copies of that size by the CUDA driver that are in flight together" +
           std::string{form == BareForm::both_ways ? ", and 64 back at the same time, " : ", "} + where + pageable;
  }

 private:
  // Memory of whatever class lies behind the same link.
  static Place plain(Place place) {
    if (place.classed()) place.word = "cuda";
    return place;
  }
  void put(std::size_t bytes, int stream, bool back) {
    copies_->copy(bytes, stream, false);
    if (back) copies_->copy(bytes, stream, true);
  }
  // As bench_device_limits has them.
  void put_together(std::size_t bytes, int window, bool back) {
    constexpr int kTogether = 8;
    constexpr int kStreams = 2;
    const int together = std::min(kTogether, window / kStreams);
    for (int n = 0; n < window / together; ++n) {
      copies_->copy_together(bytes, together, n % kStreams, false);
      if (back) copies_->copy_together(bytes, together, n % kStreams, true);
    }
    copies_->wait();
  }

  const Place from_;
  const Place to_;
  const std::unique_ptr<DriverCopies> copies_;
  std::vector<std::pair<std::string, std::function<void(std::size_t)>>> ways_;  // made once: freeing what they hold may wait
};

// Bytes that no single copy moves: the host lies between, and both parts of the way may be gone at the same time.
class TwoLinks final : public BareLink {
 public:
  TwoLinks(std::unique_ptr<BareLink> out, std::unique_ptr<BareLink> in) : out_(std::move(out)), in_(std::move(in)) {}
  double us(std::size_t bytes, BareForm form) override { return std::max(out_->us(bytes, form), in_->us(bytes, form)); }
  std::string words(BareForm form) const override {
    return "the slower one of two: " + out_->words(form) + "; " + in_->words(form);
  }

 private:
  const std::unique_ptr<BareLink> out_;
  const std::unique_ptr<BareLink> in_;
};

}  // namespace

std::unique_ptr<BareLink> BareLink::open(const BareEnds& ends, const Kinds& kinds) {
  const auto any = [&](ist_kind kind) { return ends.from.kind == kind || ends.to.kind == kind; };
  if (any(IST_KIND_CUDA) && any(IST_KIND_OPENCL)) {
    BareEnds out = ends;
    BareEnds in = ends;
    out.to = in.from = Place::read("pinned");
    return std::make_unique<TwoLinks>(open(out, kinds), open(in, kinds));
  }
  if (any(IST_KIND_CUDA)) return std::make_unique<CopyLink>(ends);
  if (any(IST_KIND_OPENCL)) return open_queue_link(ends, kinds);
  return std::make_unique<HostLink>(ends.cache_line_us);
}

}  // namespace ist::cli
