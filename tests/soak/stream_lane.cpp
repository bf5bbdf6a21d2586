// Messages of channels between streams: a batch is enqueued at once on both sides, and looked at when the stream has run.
#include <algorithm>

#include <isthmus/stream.h>

#include "lane.hpp"

namespace soak {
namespace {

constexpr int kFirstTag = 990001;

class StreamLane final : public Lane {
 public:
  StreamLane(Rank& rank, Tally& tally, int number) : Lane(rank, tally, number, "stream") {
    for (const Class one : rank.classes)
      if (fits_streams(one)) classes_.push_back(one);
  }

 private:
  struct Message {
    std::size_t bytes;
    Class from;
    Class to;
    std::uint64_t seed;
  };
  // Two channels, used in turn, and each by one thread.
  int tag() const { return kFirstTag + static_cast<int>(step_ % 2); }
  bool in_streams() const override { return true; }
  void begin() override {
    for (int tag = kFirstTag; tag < kFirstTag + 2; ++tag) {
      SOAK_IST(ist_prepare_on, stream(), rank_.right(), tag, IST_SENDS, rank_.comm);
      SOAK_IST(ist_prepare_on, stream(), rank_.left(), tag, IST_RECEIVES, rank_.comm);
    }
  }
  Message message(int sender, std::uint64_t number, std::size_t most) const {
    Dice dice{seed_of(step_, sender, number), 11};
    Message found{};
    found.bytes = some_size(dice, most);
    found.from = dice.of(classes_);
    found.to = dice.of(classes_);
    found.seed = dice.next();
    return found;
  }
  void enqueue(const std::vector<Held>& from, const std::vector<Held>& into, bool together);
  void step(std::uint64_t step) override;
  static std::int64_t count(std::size_t bytes) { return static_cast<std::int64_t>(bytes); }
  std::vector<Class> classes_;
};

// While it runs nothing is freed. All sends come first where they fit the channel, so that no rank's kernel waits for one that
// another rank has still to start behind a kernel that waits for this one; long messages go both ways in one call.
void StreamLane::enqueue(const std::vector<Held>& from, const std::vector<Held>& into, bool together) {
  const std::shared_lock nothing_is_freed(rank_.place.frees);
  for (std::size_t n = 0; n < from.size() && together; ++n)
    SOAK_IST(ist_sendrecv_on, stream(), from[n].get(stream()), count(from[n].room), IST_BYTE, rank_.right(), tag(),
             into[n].get(stream()), count(into[n].room), IST_BYTE, rank_.left(), tag(), rank_.comm);
  for (std::size_t n = 0; n < from.size() && !together; ++n)
    SOAK_IST(ist_send_on, stream(), from[n].get(stream()), count(from[n].room), IST_BYTE, rank_.right(), tag(), rank_.comm);
  for (std::size_t n = 0; n < into.size() && !together; ++n)
    SOAK_IST(ist_recv_on, stream(), into[n].get(stream()), count(into[n].room), IST_BYTE, rank_.left(), tag(), rank_.comm);
  stream_->wait();
}

void StreamLane::step(std::uint64_t step) {
  Dice shared{seed_of(step, 0, 0), 10};
  const bool together = shared.one_in(2);
  // Apart, so much that a channel takes all of it before any is received: on one device eight short ones, anywhere two of 4 MiB.
  const bool small = shared.one_in(2);
  const std::uint64_t messages = 1 + shared.below(together ? 6 : small ? 8 : 2);
  const std::size_t most = together ? rank_.options.most : small ? 8192 : std::min<std::size_t>(rank_.options.most, 4 << 20);
  Dice mine{seed_of(step, rank_.rank, 0), 12};
  std::vector<Held> from;
  std::vector<Held> into;
  std::string what = together ? "sendrecv_on, open:" : "send_on and recv_on, open:";
  for (std::uint64_t n = 0; n < messages; ++n) {
    const Message out = message(rank_.rank, n, most);
    const Message in = message(rank_.left(), n, most);
    what += " [" + std::to_string(in.bytes) + " B into " + name_of(in.to) + ", " + std::to_string(out.bytes) + " B of " +
            name_of(out.from) + "]";
    from.push_back(hold(out.from, out.bytes, mine));
    into.push_back(hold(in.to, in.bytes, mine));
    // Page-locked host memory belongs to no stream: it is filled here and now.
    fill(from.back(), out.bytes, out.seed, mine.one_in(4));
    poison(into.back(), mine.one_in(4));
  }
  working(what);
  enqueue(from, into, together);
  for (std::uint64_t n = 0; n < messages; ++n) {
    const Message in = message(rank_.left(), n, most);
    check(into[n], in.bytes, in.seed,
          std::string{together ? "sendrecv_on" : "recv_on"} + ", message " + std::to_string(n) + " of " +
              std::to_string(messages) + " of the channel with tag " + std::to_string(tag()) + ", " + name_of(in.from) +
              " to " + name_of(in.to),
          std::string{"in streams, "} + name_of(in.from) + " to " + name_of(in.to));
  }
  for (Held& held : from) give_back(std::move(held), mine);
  for (Held& held : into) give_back(std::move(held), mine);
}

}  // namespace

std::unique_ptr<Lane> make_stream_lane(Rank& rank, Tally& tally, int number) {
  return std::make_unique<StreamLane>(rank, tally, number);
}

}  // namespace soak
