// What the shared-memory path does about ranks that have left.
#include <array>

#include "path/shm/cell_queue.hpp"
#include "test_world.hpp"

namespace ist::test {
namespace {

TEST(CellQueue, WhatLiesBehindAGapIsKnownAndWhatComesLaterIsNoneOfIt) {
  std::array<CellHeader, 5> headers{};
  const CellTable table({{headers.data(), nullptr, 0}});
  CellQueueShared queue{};
  CellQueueReader reader(&queue, &table);
  const auto cell = [](std::uint64_t index) { return cell_name(0, index); };
  const auto first_step = [&](std::uint64_t index) {
    headers[index].next.store(kNoCell);
    return queue.tail.exchange(cell(index));
  };
  reader.mark();
  EXPECT_EQ(kNoCell, reader.take());
  EXPECT_FALSE(reader.has_gap()) << "an empty queue";
  put_cell(queue, table, cell(0));
  const CellName before = first_step(1);
  ASSERT_EQ(cell(0), before);
  put_cell(queue, table, cell(2));
  reader.mark();
  put_cell(queue, table, cell(3));
  EXPECT_EQ(kNoCell, reader.take()) << "its link is not there yet";
  EXPECT_TRUE(reader.has_gap());
  headers[0].next.store(cell(1));  // the second step
  for (const std::uint64_t index : {0, 1}) EXPECT_EQ(cell(index), reader.take());
  EXPECT_TRUE(reader.has_gap()) << "one that was put before is to come";
  EXPECT_EQ(cell(2), reader.take());
  EXPECT_FALSE(reader.has_gap()) << "what is left came later";
  EXPECT_EQ(cell(3), reader.take());
  // A gap right at the head of an empty queue.
  EXPECT_EQ(kNoCell, first_step(4));
  reader.mark();
  EXPECT_EQ(kNoCell, reader.take());
  EXPECT_TRUE(reader.has_gap());
  queue.head.store(cell(4));
  EXPECT_EQ(cell(4), reader.take());
  EXPECT_FALSE(reader.has_gap());
}

TEST(ShmPath, WhoLeavesTellsOfTheDeathItKnewOf) {
  TestWorld world(4);
  EXPECT_EQ(kNobody, world.path(0).death_told_by(Rank{1}));
  world.path(1).leave(Rank{0});
  world.path(2).leave(Rank{3});
  world.path(3).leave(kNobody);
  EXPECT_EQ(Rank{0}, world.path(0).death_told_by(Rank{1}));
  EXPECT_EQ(Rank{3}, world.path(0).death_told_by(Rank{2}));
  EXPECT_EQ(kNobody, world.path(0).death_told_by(Rank{3}));
  EXPECT_EQ(kNobody, world.path(0).death_told_by(Rank{4}));
  for (const int rank : {1, 2, 3}) EXPECT_TRUE(world.path(0).has_left(Rank{rank})) << rank;
}

TEST(ShmPath, PostingToARankThatIsGoneHarmsNobody) {
  TestWorld world(2);
  const auto payload = random_bytes(1000);
  ASSERT_TRUE(post_in_cell(world.link(1, 0), numbered(0), payload));
  world.path(1).leave(kNobody);
  world.destroy(1);
  while (world.link(0, 1).post(numbered(0), {})) {
  }
  // Cells that nobody will read come back, so that this could go on for ever.
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(post_in_cell(world.link(0, 1), numbered(0), payload)) << i;
  ASSERT_TRUE(world.path(0).has_left(Rank{1}));
  const auto arrival = world.path(0).next();
  ASSERT_TRUE(arrival);
  EXPECT_TRUE(same(arrival->payload, payload));
  world.path(0).release(*arrival);
}

// The last cell in the queue of each, too, whoever posted there before and after.
TEST(ShmPath, EveryCellComesBackFromRanksThatHaveLeft) {
  Settings settings;
  settings.cells = 4;
  TestWorld world(6, settings);
  const auto payload = random_bytes(1000);
  for (int round = 0; round < 3; ++round) {
    for (int gone = 1; gone <= 4; ++gone) {
      for (const int from : round == 0 ? std::vector{0} : round == 1 ? std::vector{5, 0} : std::vector{0, 5})
        ASSERT_TRUE(post_in_cell(world.link(from, gone), numbered(0), payload))
            << "from rank " << from << " to rank " << gone << " in round " << round;
      world.path(gone).leave(kNobody);
    }
    // The only one that has not left; it has none to spare where its own lie with those that have.
    for (const int from : {0, 5}) {
      const int to = 5 - from;
      for (std::uint32_t n = 0; n < 4; ++n)
        EXPECT_TRUE(post_in_cell(world.link(from, to), numbered(n), payload)) << "message " << n << " of rank " << from;
      EXPECT_FALSE(post_in_cell(world.link(from, to), numbered(4), payload)) << "there are no more";
      for (std::uint32_t n = 0; n < 4; ++n) {
        const auto arrival = world.path(to).next();
        ASSERT_TRUE(arrival) << "message " << n << " of rank " << from;
        EXPECT_TRUE(same(arrival->payload, payload));
        world.path(to).release(*arrival);
      }
    }
  }
}

}  // namespace
}  // namespace ist::test
