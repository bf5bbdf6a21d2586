// Collective calls of all ranks in a communicator of their own, blocking and not, each rank's buffers of whatever class.
#include <algorithm>

#include "lane.hpp"

namespace soak {
namespace {

enum class Call { barrier, bcast, allreduce, reduce, allgather, alltoall, reduce_scatter, gather, scatter };
constexpr const char* kCalls[] = {"barrier",  "bcast",          "allreduce", "reduce", "allgather",
                                  "alltoall", "reduce_scatter", "gather",    "scatter"};
constexpr std::size_t kMost = 128 << 10;  // bytes that one rank has for one other

class CollectiveLane final : public Lane {
 public:
  CollectiveLane(Rank& rank, Tally& tally, int number) : Lane(rank, tally, number, "collective") {}

 private:
  void open() override { SOAK_IST(ist_comm_dup, rank_.comm, &comm_); }
  void close() override { SOAK_IST(ist_comm_free, &comm_); }
  void step(std::uint64_t step) override;
  void start(ist_buffer in, ist_buffer out, ist_request* request);
  std::vector<unsigned char> bytes_of(int rank) const;
  std::vector<unsigned char> wanted() const;
  std::vector<unsigned char> sum() const {
    return sum_of(rank_.size, [this](int rank) { return bytes_of(rank); });
  }
  std::size_t whole() const { return each_ * at(rank_.size); }
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  bool here() const { return rank_.rank == root_; }
  std::size_t in_bytes() const;
  std::size_t out_bytes() const;
  Held holding(std::size_t bytes, Dice& dice) { return hold(dice.of(rank_.classes), bytes, dice, 8); }

  ist_comm comm_ = IST_COMM_NULL;
  Call call_ = Call::barrier;
  int root_ = 0;
  std::size_t each_ = 0;  // bytes; whole elements of 8
};

std::size_t CollectiveLane::in_bytes() const {
  switch (call_) {
    case Call::barrier:
      return 0;
    case Call::bcast:
      return here() ? each_ : 0;
    case Call::alltoall:
    case Call::reduce_scatter:
      return whole();
    case Call::scatter:
      return here() ? whole() : 0;
    default:
      return each_;
  }
}

std::size_t CollectiveLane::out_bytes() const {
  switch (call_) {
    case Call::barrier:
      return 0;
    case Call::allgather:
    case Call::alltoall:
      return whole();
    case Call::reduce:
      return here() ? each_ : 0;
    case Call::gather:
      return here() ? whole() : 0;
    default:
      return each_;
  }
}

// What a rank has before the call, as long as any call needs it.
std::vector<unsigned char> CollectiveLane::bytes_of(int rank) const {
  std::vector<unsigned char> made(whole());
  make_bytes(made.data(), made.size(), seed_of(step_, rank, 7));
  return made;
}

std::vector<unsigned char> CollectiveLane::wanted() const {
  const auto part = [&](const std::vector<unsigned char>& of, int which) {
    const auto from = of.begin() + static_cast<std::ptrdiff_t>(each_ * at(which));
    return std::vector<unsigned char>(from, from + static_cast<std::ptrdiff_t>(each_));
  };
  if (call_ == Call::bcast) return part(bytes_of(root_), 0);
  if (call_ == Call::scatter) return part(bytes_of(root_), rank_.rank);
  if (call_ == Call::allreduce || call_ == Call::reduce) return part(sum(), 0);
  if (call_ == Call::reduce_scatter) return part(sum(), rank_.rank);
  std::vector<unsigned char> all;
  for (int rank = 0; rank < rank_.size; ++rank) {
    const auto one = part(bytes_of(rank), call_ == Call::alltoall ? rank_.rank : 0);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

void CollectiveLane::start(ist_buffer in, ist_buffer out, ist_request* request) {
  const auto count = static_cast<std::int64_t>(each_ / 8);
  switch (call_) {
    case Call::barrier:
      return ok(ist_ibarrier(comm_, request), "ist_ibarrier");
    case Call::bcast:
      return ok(ist_ibcast(out, count, IST_UINT64, root_, comm_, request), "ist_ibcast");
    case Call::allreduce:
      return ok(ist_iallreduce(in, out, count, IST_UINT64, IST_SUM, comm_, request), "ist_iallreduce");
    case Call::reduce:
      return ok(ist_ireduce(in, out, count, IST_UINT64, IST_SUM, root_, comm_, request), "ist_ireduce");
    case Call::allgather:
      return ok(ist_iallgather(in, count, out, count, IST_UINT64, comm_, request), "ist_iallgather");
    case Call::alltoall:
      return ok(ist_ialltoall(in, out, count, IST_UINT64, comm_, request), "ist_ialltoall");
    case Call::reduce_scatter:
      return ok(ist_ireduce_scatter_block(in, out, count, IST_UINT64, IST_SUM, comm_, request), "ist_ireduce_scatter_block");
    case Call::gather:
      return ok(ist_igather(in, count, out, count, IST_UINT64, root_, comm_, request), "ist_igather");
    case Call::scatter:
      return ok(ist_iscatter(in, count, out, count, IST_UINT64, root_, comm_, request), "ist_iscatter");
  }
}

void CollectiveLane::step(std::uint64_t step) {
  Dice shared{seed_of(step, 0, 0), 8};
  call_ = static_cast<Call>(shared.below(9));
  root_ = static_cast<int>(shared.below(at(rank_.size)));
  each_ = std::min(some_size(shared, rank_.options.most), kMost) / 8 * 8;
  Dice mine{seed_of(step, rank_.rank, 0), 9};
  Held in = holding(in_bytes(), mine);
  Held out = holding(out_bytes(), mine);
  working(std::string{"i"} + kCalls[static_cast<int>(call_)] + " of " + std::to_string(each_) + " B each, root " +
          std::to_string(root_) + ", from " + name_of(in.memory->of()) + " into " + name_of(out.memory->of()));
  poison(out, false);
  // Of a broadcast the root's buffer holds the bytes, the others' get them.
  const Held& source = call_ == Call::bcast ? out : in;
  const auto seed = seed_of(step, rank_.rank, 7);
  if (call_ != Call::bcast || here()) fill(source, call_ == Call::bcast ? each_ : in_bytes(), seed, mine.one_in(3));
  ist_request request = IST_REQUEST_NULL;
  start(in.get(stream()), out.get(stream()), &request);
  if (mine.one_in(2)) {
    for (int completed = 0; completed == 0;) SOAK_IST(ist_test, &request, &completed, IST_STATUS_IGNORE);
  } else {
    SOAK_IST(ist_wait, &request, IST_STATUS_IGNORE);
  }
  if (out_bytes() > 0) {
    check_against(out, wanted(),
                  std::string{"collective "} + kCalls[static_cast<int>(call_)] + " into " + name_of(out.memory->of()),
                  std::string{"collective "} + kCalls[static_cast<int>(call_)]);
  } else {
    tally_.add(std::string{"collective "} + kCalls[static_cast<int>(call_)], 0);
  }
  give_back(std::move(in), mine);
  give_back(std::move(out), mine);
}

}  // namespace

std::unique_ptr<Lane> make_collective_lane(Rank& rank, Tally& tally, int number) {
  return std::make_unique<CollectiveLane>(rank, tally, number);
}

}  // namespace soak
