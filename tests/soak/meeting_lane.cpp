// Collective calls in streams: some are enqueued at once on every rank, and looked at when the stream has run.
#include <isthmus/stream.h>

#include <algorithm>

#include "lane.hpp"

namespace soak {
namespace {

enum class Call { barrier, bcast, reduce, allreduce };
constexpr const char* kCalls[] = {"barrier_on", "bcast_on", "reduce_on", "allreduce_on"};
// Beyond the longest that is one launch.
constexpr std::size_t kMost = 600 << 10;

class MeetingLane final : public Lane {
 public:
  MeetingLane(Rank& rank, Tally& tally, int number) : Lane(rank, tally, number, "collective stream") {
    for (const Class one : rank.classes)
      if (fits_streams(one)) classes_.push_back(one);
  }

 private:
  struct Made {
    Call call = Call::barrier;
    int root = 0;
    std::size_t bytes = 0;  // whole numbers of 8
    bool in_place = false;
    Held in;
    Held out;
  };
  bool in_streams() const override { return true; }
  // One for all rounds: what a communicator has for its calls in streams it has until the world ends.
  void open() override {
    if (comm_ == IST_COMM_NULL) SOAK_IST(ist_comm_dup, rank_.comm, &comm_);
  }
  void begin() override { SOAK_IST(ist_prepare_collectives_on, stream(), comm_); }
  void step(std::uint64_t step) override;
  Made make(std::uint64_t number, Dice& mine);
  void enqueue(const Made& one);
  std::vector<unsigned char> wanted(const Made& one, std::uint64_t number) const;
  std::vector<unsigned char> input(std::size_t bytes, int rank, std::uint64_t number) const {
    std::vector<unsigned char> made(bytes);
    make_bytes(made.data(), bytes, seed_of(step_, rank, number));
    return made;
  }

  ist_comm comm_ = IST_COMM_NULL;
  std::vector<Class> classes_;
};

MeetingLane::Made MeetingLane::make(std::uint64_t number, Dice& mine) {
  Dice shared{seed_of(step_, 0, number), 20};
  Made one;
  one.call = static_cast<Call>(shared.below(4));
  one.root = static_cast<int>(shared.below(static_cast<std::uint64_t>(rank_.size)));
  one.bytes = one.call == Call::barrier ? 0 : std::min({some_size(shared, rank_.options.most), kMost}) / 8 * 8;
  one.in_place = one.call == Call::allreduce && mine.one_in(3);
  one.in = hold(mine.of(classes_), one.bytes, mine, 8);
  one.out = hold(mine.of(classes_), one.bytes, mine, 8);
  poison(one.out, mine.one_in(4));
  const bool has_input = one.call != Call::bcast || rank_.rank == one.root;
  const Held& source = one.call == Call::bcast || one.in_place ? one.out : one.in;
  if (has_input) fill(source, one.bytes, seed_of(step_, rank_.rank, number), mine.one_in(4));
  return one;
}

void MeetingLane::enqueue(const Made& one) {
  const auto count = static_cast<std::int64_t>(one.bytes / 8);
  const ist_buffer in = one.in_place ? IST_IN_PLACE : one.in.get(stream());
  const ist_buffer out = one.out.get(stream());
  switch (one.call) {
    case Call::barrier:
      return ok(ist_barrier_on(stream(), comm_), "ist_barrier_on");
    case Call::bcast:
      return ok(ist_bcast_on(stream(), out, count, IST_UINT64, one.root, comm_), "ist_bcast_on");
    case Call::reduce:
      return ok(ist_reduce_on(stream(), in, out, count, IST_UINT64, IST_SUM, one.root, comm_), "ist_reduce_on");
    case Call::allreduce:
      return ok(ist_allreduce_on(stream(), in, out, count, IST_UINT64, IST_SUM, comm_), "ist_allreduce_on");
  }
}

// What its buffer holds afterwards; nothing of a reduction elsewhere than at its root.
std::vector<unsigned char> MeetingLane::wanted(const Made& one, std::uint64_t number) const {
  if (one.call == Call::bcast) return input(one.bytes, one.root, number);
  if (one.call == Call::reduce && rank_.rank != one.root) return {};
  return sum_of(rank_.size, [&](int rank) { return input(one.bytes, rank, number); });
}

void MeetingLane::step(std::uint64_t step) {
  Dice shared{seed_of(step, 0, 0), 21};
  Dice mine{seed_of(step, rank_.rank, 0), 22};
  const std::uint64_t calls = 1 + shared.below(6);
  std::vector<Made> made;
  std::string what = "open:";
  for (std::uint64_t n = 0; n < calls; ++n) {
    const Made& one = made.emplace_back(make(n, mine));
    what += std::string{" ["} + kCalls[static_cast<int>(one.call)] + " of " + std::to_string(one.bytes) + " B, root " +
            std::to_string(one.root) + ", from " + (one.in_place ? "there" : name_of(one.in.memory->of())) + " into " +
            name_of(one.out.memory->of()) + "]";
  }
  working(what);
  {
    // While kernels wait for other ranks' nothing is freed.
    const std::shared_lock nothing_is_freed(rank_.place.frees);
    for (const Made& one : made) enqueue(one);
    stream_->wait();
  }
  for (std::uint64_t n = 0; n < calls; ++n) {
    Made& one = made[n];
    const char* const name = kCalls[static_cast<int>(one.call)];
    check_against(one.out, wanted(one, n),
                  std::string{name} + ", call " + std::to_string(n) + " of " + std::to_string(calls) + " into " +
                      name_of(one.out.memory->of()),
                  std::string{"collective in streams, "} + name);
    give_back(std::move(one.in), mine);
    give_back(std::move(one.out), mine);
  }
}

}  // namespace

std::unique_ptr<Lane> make_meeting_lane(Rank& rank, Tally& tally, int number) {
  return std::make_unique<MeetingLane>(rank, tally, number);
}

}  // namespace soak
