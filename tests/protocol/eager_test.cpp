// One message in one cell, with devices that are late or fail: the cell is posted or given back, always exactly once.
#include "protocol/eager.hpp"

#include <gtest/gtest.h>

#include "../path/test_world.hpp"
#include "late_kind.hpp"

namespace ist::test {
namespace {

constexpr std::uint64_t kCells = 2;

Settings few_cells() {
  Settings settings;
  settings.cells = kCells;
  return settings;
}

class Eager : public testing::Test {
 protected:
  // Cells that rank 0 could fill now.
  std::size_t free_cells() {
    std::vector<Cell> taken;
    while (const auto cell = link_.take_cell()) taken.push_back(*cell);
    for (const Cell& cell : taken) link_.return_cell(cell);
    return taken.size();
  }
  Piece source(const std::vector<std::byte>& bytes) { return late_piece(bytes.data(), Bytes{bytes.size()}); }
  CellSend start(const Piece& piece) {
    auto started = CellSend::start(*side_.kinds, link_, piece, Ticket{});
    EXPECT_TRUE(started.ok()) << started.status().text();
    EXPECT_TRUE(started->has_value());
    return std::move(**started);
  }
  // Fills a cell on rank 0 and takes it on rank 1.
  Arrival arrived(const std::vector<std::byte>& bytes) {
    EXPECT_TRUE(post_in_cell(link_, numbered(0, bytes.size()), bytes));
    auto arrival = world_.path(1).next();
    EXPECT_TRUE(arrival && arrival->in_cell);
    return *arrival;
  }

  TestWorld world_{2, few_cells()};
  Link& link_ = world_.link(0, 1);
  Side side_{1, 20};
};

TEST_F(Eager, ASendPostsItsBytesWhenTheDeviceHasFilledTheCellAndNotBefore) {
  for (const std::uint64_t size : {std::uint64_t{1}, std::uint64_t{217}, std::uint64_t{4097}, link_.cell_limit.value}) {
    const auto bytes = random_bytes(size);
    CellSend send = start(source(bytes));
    const Envelope envelope = numbered(3, size);
    for (;;) {
      const auto posted = send.step(envelope);
      ASSERT_TRUE(posted.ok()) << posted.status().text();
      if (*posted) break;
      EXPECT_FALSE(world_.path(1).next()) << "shown too early";
    }
    const auto arrival = world_.path(1).next();
    ASSERT_TRUE(arrival);
    EXPECT_TRUE(same(arrival->envelope, envelope));
    EXPECT_TRUE(same(arrival->payload, bytes));
    EXPECT_EQ(free_cells(), kCells - 1);
    world_.path(1).release(*arrival);
    EXPECT_EQ(free_cells(), kCells);
  }
}

TEST_F(Eager, ASendThatFindsNoCellStartsNothing) {
  const auto bytes = random_bytes(100);
  CellSend first = start(source(bytes));
  CellSend second = start(source(bytes));
  const auto third = CellSend::start(*side_.kinds, link_, source(bytes), Ticket{});
  ASSERT_TRUE(third.ok());
  EXPECT_FALSE(third->has_value());
  EXPECT_EQ(side_.device->started, 2);
  for (CellSend* send : {&first, &second})
    while (!send->step_unused()) {
    }
  EXPECT_EQ(free_cells(), kCells);
}

TEST_F(Eager, ASendWhoseCopyFailsTellsWhyAndGivesTheCellBack) {
  const auto bytes = random_bytes(100);
  side_.device->fails_at_start = [](int copy) { return copy == 0; };
  side_.device->fails_at_end = [](int copy) { return copy == 1; };
  const auto refused = CellSend::start(*side_.kinds, link_, source(bytes), Ticket{});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().text(), "an invented refusal");
  EXPECT_EQ(free_cells(), kCells);

  CellSend send = start(source(bytes));
  Result<bool> posted = false;
  while (posted.ok() && !*posted) posted = send.step(numbered(0, 100));
  ASSERT_FALSE(posted.ok());
  EXPECT_EQ(posted.status().text(), "an invented failure on the device");
  EXPECT_EQ(free_cells(), kCells);
  EXPECT_FALSE(world_.path(1).next()) << "a failed message was shown";
}

TEST_F(Eager, AnUnusedCellIsGivenBackWhenItsCopyHasEndedHoweverItEnds) {
  side_.device->fails_at_end = [](int copy) { return copy == 1; };
  for (int round = 0; round < 2; ++round) {
    const auto bytes = random_bytes(5000);
    CellSend send = start(source(bytes));
    EXPECT_EQ(free_cells(), kCells - 1);
    int waited = 0;
    while (!send.step_unused()) {
      EXPECT_EQ(free_cells(), kCells - 1) << "a cell was given back while a copy ran into it";
      ++waited;
    }
    EXPECT_GT(waited, 0);
    EXPECT_EQ(side_.device->running(), 0U);
    EXPECT_EQ(free_cells(), kCells);
    EXPECT_FALSE(world_.path(1).next());
  }
}

TEST_F(Eager, AReceiveReleasesTheCellWhenTheDeviceHasEmptiedItAndNotBefore) {
  for (const std::uint64_t size : {std::uint64_t{1}, std::uint64_t{217}, std::uint64_t{4097}, link_.cell_limit.value}) {
    const auto bytes = random_bytes(size);
    std::vector<std::byte> in(size + 2, std::byte{0xa5});
    const Arrival arrival = arrived(bytes);
    auto receive = CellReceive::start(*side_.kinds, world_.path(1), arrival, late_piece(in.data() + 1, Bytes{size}));
    ASSERT_TRUE(receive.ok());
    for (;;) {
      EXPECT_EQ(free_cells(), kCells - 1) << "released while the device reads it";
      const auto over = receive->step();
      ASSERT_TRUE(over.ok());
      if (*over) break;
    }
    EXPECT_TRUE(same(std::span(in).subspan(1, size), bytes));
    EXPECT_EQ(in.front(), std::byte{0xa5});
    EXPECT_EQ(in.back(), std::byte{0xa5});
    EXPECT_EQ(free_cells(), kCells);
  }
}

TEST_F(Eager, AReceiveThatHasRoomForLessTakesTheFirstBytes) {
  const auto bytes = random_bytes(1000);
  std::vector<std::byte> in(1000, std::byte{0xa5});
  auto receive = CellReceive::start(*side_.kinds, world_.path(1), arrived(bytes), late_piece(in.data(), Bytes{333}));
  ASSERT_TRUE(receive.ok());
  while (!*receive->step()) {
  }
  EXPECT_TRUE(same(std::span(in).first(333), std::span(bytes).first(333)));
  EXPECT_EQ(in[333], std::byte{0xa5});
}

TEST_F(Eager, AReceiveWhoseCopyFailsTellsWhyAndReleasesTheCell) {
  side_.device->fails_at_start = [](int copy) { return copy == 0; };
  side_.device->fails_at_end = [](int copy) { return copy == 1; };
  std::vector<std::byte> in(500);
  const Piece to = late_piece(in.data(), Bytes{500});
  const auto refused = CellReceive::start(*side_.kinds, world_.path(1), arrived(random_bytes(500)), to);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().text(), "an invented refusal");
  EXPECT_EQ(free_cells(), kCells);

  auto receive = CellReceive::start(*side_.kinds, world_.path(1), arrived(random_bytes(500)), to);
  ASSERT_TRUE(receive.ok());
  Result<bool> over = false;
  while (over.ok() && !*over) over = receive->step();
  ASSERT_FALSE(over.ok());
  EXPECT_EQ(over.status().text(), "an invented failure on the device");
  EXPECT_EQ(free_cells(), kCells);
}

TEST_F(Eager, AnEmptyTicketHasFinished) {
  Ticket empty;
  const auto finished = is_finished(empty);
  ASSERT_TRUE(finished.ok());
  EXPECT_TRUE(*finished);
}

}  // namespace
}  // namespace ist::test
