// Every collective call on buffers, blocking and not, of the C++ face: for any number of ranks, against a serial result.
#include <array>
#include <vector>

#include "numbers.hpp"

namespace {

using namespace numbers;
using isthmus::Buffer;
using isthmus::in_place;
using isthmus::Kind;
using isthmus::op;
using isthmus::Parts;
using isthmus::World;

// Numbers in memory of a kind that every rank chooses for itself.
class Placed {
 public:
  Placed(const World& world, const Numbers& values)
      : world_(world), size_(values.size()), memory_(world.allocate(kind_of(world), std::max<std::size_t>(size_, 1) * 8)) {
    world.copy(memory_.buffer(), Buffer::host(values.data()), size_ * 8);
  }
  operator Buffer() const { return memory_.buffer(); }  // NOLINT(google-explicit-constructor): stands where a buffer does
  Numbers numbers() const {
    Numbers found(size_, -3);
    world_.copy(Buffer::host(found.data()), memory_.buffer(), size_ * 8);
    return found;
  }

 private:
  // In turn each kind that there is, each rank from another one on.
  static Kind kind_of(const World& world) {
    std::vector kinds{Kind::host};
    for (const Kind kind : {Kind::opencl, Kind::cuda})
      if (world.devices(kind) > 0) kinds.push_back(kind);
    return kinds[number_of(world.rank() + chosen_++) % kinds.size()];
  }
  inline static int chosen_ = 0;
  const World& world_;
  std::size_t size_;
  isthmus::Memory memory_;
};

class BufferCollectives : public OfAllRanks {};

// What one rank has before the calls, and what they write.
struct Case {
  Case(const World& world, int me, std::size_t ranks, std::size_t each)
      : number(static_cast<std::int64_t>(each)),
        counts(ranks, number),
        displs(isthmus::packed(counts)),
        one(each, -1),
        room(ranks * each, -1),
        mine(world, numbers_of(me, each)),
        wide(world, numbers_of(me, ranks * each)),
        roots(world, numbers_of(0, ranks * each)),
        spread(world, me == 0 ? numbers_of(0, each) : one),
        sum(world, numbers_of(me, each)),
        at_root(world, one),
        up_to(world, one),
        before(world, one),
        part(world, one),
        block(world, one),
        own(world, one),
        same(world, one),
        gathered(world, room),
        placed(world, room),
        together(world, room),
        everywhere(world, room),
        swapped(world, room),
        exchanged(world, room) {}
  Parts parts() const { return {counts, displs}; }

  std::int64_t number;
  Numbers counts, displs, one, room;
  Placed mine, wide, roots;
  Placed spread, sum, at_root, up_to, before, part, block, own, same, gathered, placed, together, everywhere, swapped,
      exchanged;
};

void expect_all(const Case& c, int me, int size, std::size_t each) {
  const auto ranks = static_cast<std::size_t>(size);
  const std::size_t all = ranks * each;
  const Numbers total = sum_before(size, each);
  EXPECT_EQ(c.spread.numbers(), numbers_of(0, each));
  EXPECT_EQ(c.sum.numbers(), total);
  EXPECT_EQ(c.at_root.numbers(), me == 0 ? total : c.one);
  EXPECT_EQ(c.up_to.numbers(), sum_before(me + 1, each));
  EXPECT_EQ(c.before.numbers(), me == 0 ? c.one : sum_before(me, each));
  EXPECT_EQ(c.part.numbers(), part_of(sum_before(size, all), number_of(me) * each, each));
  EXPECT_EQ(c.block.numbers(), c.part.numbers());
  EXPECT_EQ(c.own.numbers(), part_of(numbers_of(0, all), number_of(me) * each, each));
  EXPECT_EQ(c.same.numbers(), c.own.numbers());
  EXPECT_EQ(c.gathered.numbers(), me == 0 ? of_all(size, each, 0, each) : c.room);
  EXPECT_EQ(c.placed.numbers(), c.gathered.numbers());
  EXPECT_EQ(c.together.numbers(), of_all(size, each, 0, each));
  EXPECT_EQ(c.everywhere.numbers(), c.together.numbers());
  EXPECT_EQ(c.swapped.numbers(), of_all(size, all, number_of(me) * each, each));
  EXPECT_EQ(c.exchanged.numbers(), c.swapped.numbers());
}

TEST_F(BufferCollectives, that_block_take_any_kind) {
  for (const std::size_t each : kCounts) {
    const Case c(world, comm.rank(), ranks, each);
    comm.bcast(c.spread, c.number, IST_INT64, 0);
    comm.allreduce(in_place, c.sum, c.number, IST_INT64, op::sum);
    comm.reduce(c.mine, c.at_root, c.number, IST_INT64, op::sum, 0);
    comm.scan(c.mine, c.up_to, c.number, IST_INT64, op::sum);
    comm.exscan(c.mine, c.before, c.number, IST_INT64, op::sum);
    comm.reduce_scatter(c.wide, c.part, c.counts, IST_INT64, op::sum);
    comm.reduce_scatter_block(c.wide, c.block, c.number, IST_INT64, op::sum);
    comm.gather(c.mine, c.number, c.gathered, c.number, IST_INT64, 0);
    comm.scatter(c.roots, c.number, c.own, c.number, IST_INT64, 0);
    comm.allgather(c.mine, c.number, c.together, c.number, IST_INT64);
    comm.alltoall(c.wide, c.swapped, c.number, IST_INT64);
    comm.gatherv(c.mine, c.number, c.placed, c.parts(), IST_INT64, 0);
    comm.scatterv(c.roots, c.parts(), c.same, c.number, IST_INT64, 0);
    comm.allgatherv(c.mine, c.number, c.everywhere, c.parts(), IST_INT64);
    comm.alltoallv(c.wide, c.parts(), c.exchanged, c.parts(), IST_INT64);
    expect_all(c, comm.rank(), comm.size(), each);
  }
}

TEST_F(BufferCollectives, all_under_way_together_take_any_kind) {
  for (const std::size_t each : kCounts) {
    const Case c(world, comm.rank(), ranks, each);
    std::array requests{comm.ibarrier(),
                        comm.ibcast(c.spread, c.number, IST_INT64, 0),
                        comm.iallreduce(in_place, c.sum, c.number, IST_INT64, op::sum),
                        comm.ireduce(c.mine, c.at_root, c.number, IST_INT64, op::sum, 0),
                        comm.iscan(c.mine, c.up_to, c.number, IST_INT64, op::sum),
                        comm.iexscan(c.mine, c.before, c.number, IST_INT64, op::sum),
                        comm.ireduce_scatter(c.wide, c.part, c.counts, IST_INT64, op::sum),
                        comm.ireduce_scatter_block(c.wide, c.block, c.number, IST_INT64, op::sum),
                        comm.igather(c.mine, c.number, c.gathered, c.number, IST_INT64, 0),
                        comm.iscatter(c.roots, c.number, c.own, c.number, IST_INT64, 0),
                        comm.iallgather(c.mine, c.number, c.together, c.number, IST_INT64),
                        comm.ialltoall(c.wide, c.swapped, c.number, IST_INT64),
                        comm.igatherv(c.mine, c.number, c.placed, c.parts(), IST_INT64, 0),
                        comm.iscatterv(c.roots, c.parts(), c.same, c.number, IST_INT64, 0),
                        comm.iallgatherv(c.mine, c.number, c.everywhere, c.parts(), IST_INT64),
                        comm.ialltoallv(c.wide, c.parts(), c.exchanged, c.parts(), IST_INT64)};
    isthmus::wait_all(requests);
    expect_all(c, comm.rank(), comm.size(), each);
  }
}

}  // namespace
