// Copies between any two places, in one step or through staging blocks.
#include "memory/transfer.hpp"

#include <sched.h>

#include "far_kind.hpp"
#include "memory/host/host_kind.hpp"
#include "support.hpp"

namespace ist::test {
namespace {

const std::vector<std::uint64_t> kSizes{
    0, 1, 3, 4095, 4096, 4097, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (2 << 20) + 1, (3 << 20) + 5, (8 << 20) + 1};

struct Pair {
  Place to;
  Place from;
};
std::ostream& operator<<(std::ostream& out, const Pair& pair) { return out << pair.from << " to " << pair.to; }

std::vector<Pair> all_pairs() {
  std::vector<Pair> pairs;
  for (const Place& to : all_places())
    for (const Place& from : all_places()) pairs.push_back({to, from});
  return pairs;
}

Status finish(Transfer& transfer) {
  while (true) {
    auto done = transfer.step();
    if (!done.ok()) return done.status();
    if (*done) return {};
    ::sched_yield();
  }
}

class TransferBetween : public testing::TestWithParam<Pair> {};

TEST_P(TransferBetween, moves_exactly_the_bytes_asked_for_at_every_size) {
  constexpr std::uint64_t kGuard = 33;
  PinnedPool pool{kinds(), mebibytes(16)};
  for (const std::uint64_t size : kSizes) {
    const Memory to{GetParam().to, size + 2 * kGuard};
    const Memory from{GetParam().from, size + kGuard};
    const Data source = random_bytes(size + kGuard);
    Data expected = random_bytes(size + 2 * kGuard);
    write(from.piece(), source);
    write(to.piece(), expected);
    Transfer transfer{kinds(), pool, to.part(kGuard, size), from.part(7, size)};
    must(finish(transfer));
    EXPECT_TRUE(must(transfer.step())) << "a finished transfer stays finished";
    std::copy_n(source.begin() + 7, size, expected.begin() + kGuard);
    EXPECT_EQ(read(to.piece()), expected) << size << " bytes";
  }
}

TEST_P(TransferBetween, several_at_once_share_a_pool_too_small_for_all_of_them) {
  constexpr std::uint64_t kSize = (2 << 20) + 9;
  constexpr int kCount = 6;
  PinnedPool pool{kinds(), mebibytes(3)};
  std::vector<Memory> to;
  std::vector<Memory> from;
  std::vector<Data> bytes;
  std::vector<Transfer> transfers;
  for (int i = 0; i < kCount; ++i) {
    to.emplace_back(GetParam().to, kSize);
    from.emplace_back(GetParam().from, kSize);
    bytes.push_back(random_bytes(kSize));
    write(from.back().piece(), bytes.back());
    transfers.emplace_back(kinds(), pool, to.back().piece(), from.back().piece());
  }
  for (int left = kCount; left != 0;) {
    left = kCount;
    for (Transfer& each : transfers) left -= must(each.step()) ? 1 : 0;
    EXPECT_LE(pool.held(), mebibytes(3));
  }
  for (std::size_t i = 0; i < kCount; ++i) EXPECT_EQ(read(to[i].piece()), bytes[i]) << i;
}

INSTANTIATE_TEST_SUITE_P(Each, TransferBetween, testing::ValuesIn(all_pairs()),
                         [](const auto& each) { return name_of(each.param.from) + "_to_" + name_of(each.param.to); });

// Two invented kinds with nothing but host memory in common, so that any machine can take the way through staging.
class StagedTransfer : public testing::Test {
 protected:
  StagedTransfer() {
    far_.add("host", std::unique_ptr<MemoryKind>{std::make_unique<HostKind>()});
    for (const KindId id : {KindId::cuda, KindId::opencl})
      far_.add("far", std::unique_ptr<MemoryKind>{std::make_unique<FarKind>(id)});
  }
  FarKind& source_kind() { return static_cast<FarKind&>(*far_.find(KindId::cuda)); }
  FarKind& target_kind() { return static_cast<FarKind&>(*far_.find(KindId::opencl)); }
  Transfer start(Data& to, const Data& from) {
    return {far_, pool_, FarKind::piece_of(KindId::opencl, to), FarKind::piece_of(KindId::cuda, from)};
  }

  Kinds far_;
  PinnedPool pool_{far_, mebibytes(4)};
};

TEST_F(StagedTransfer, keeps_a_copy_in_and_a_copy_out_in_flight_at_once) {
  const Data from = random_bytes((8 << 20) + 1);
  Data to(from.size(), 0xEE);
  Transfer transfer = start(to, from);
  bool both = false;
  while (!must(transfer.step())) both = both || (source_kind().in_flight() > 0 && target_kind().in_flight() > 0);
  EXPECT_EQ(to, from);
  EXPECT_TRUE(both) << "the two directions took turns";
  EXPECT_LE(pool_.held(), mebibytes(2));
}

TEST_F(StagedTransfer, waits_for_the_pending_work_of_both_sides_on_the_device) {
  const Data from = random_bytes(100);
  Data to(from.size(), 0xEE);
  source_kind().pending_questions = 50;
  target_kind().pending_questions = 90;
  Transfer transfer = start(to, from);
  must(finish(transfer));
  EXPECT_EQ(to, from);
  EXPECT_GE(source_kind().ordered_copies + source_kind().late_copies, 1);
  EXPECT_EQ(source_kind().early_copies + target_kind().early_copies, 0);
}

TEST_F(StagedTransfer, an_error_of_either_side_ends_it_and_is_repeated) {
  for (const bool at_source : {true, false})
    for (const bool at_start : {true, false})
      for (const int number : {1, 2, 3, 5}) {
        FarKind& kind = at_source ? source_kind() : target_kind();
        kind.started = 0;
        (at_start ? kind.fail_at_start : kind.fail_at_end) = number;
        const Data from = random_bytes((5 << 20) + 7);
        Data to(from.size(), 0xEE);
        Transfer transfer = start(to, from);
        const Status status = finish(transfer);
        EXPECT_EQ(status.code(), IST_ERR_DEVICE);
        EXPECT_NE(status.text().find("invented"), std::string::npos) << status.text();
        EXPECT_EQ(source_kind().in_flight() + target_kind().in_flight(), 0) << "told before the other copies were over";
        const auto again = transfer.step();
        EXPECT_EQ(again.status().text(), status.text());
        kind.fail_at_start = kind.fail_at_end = 0;
        Transfer next = start(to, from);
        must(finish(next));
        EXPECT_EQ(to, from) << "the next transfer was disturbed";
      }
}

TEST_F(StagedTransfer, dropped_in_the_middle_its_blocks_are_free_only_when_their_copies_are_over) {
  const Data from = random_bytes(3 << 20);
  Data to(from.size(), 0xEE);
  source_kind().questions_per_copy = 1000;
  {
    Transfer transfer = start(to, from);
    EXPECT_FALSE(must(transfer.step()));
    EXPECT_EQ(source_kind().in_flight(), 1);
  }
  EXPECT_EQ(source_kind().in_flight(), 1);
  EXPECT_EQ(pool_.held(), mebibytes(1));
  const auto other = must(pool_.take(mebibytes(1)));
  EXPECT_EQ(pool_.held(), mebibytes(2)) << "a block was lent twice";
  source_kind().questions_per_copy = 1;
  const auto freed = must(pool_.take(mebibytes(1)));
  EXPECT_EQ(source_kind().in_flight(), 0);
  EXPECT_EQ(pool_.held(), mebibytes(2)) << "the finished blocks were not used again";
}

TEST_F(StagedTransfer, can_be_moved_while_it_runs) {
  const Data from = random_bytes((4 << 20) + 3);
  Data to(from.size(), 0xEE);
  Transfer first = start(to, from);
  must(first.step());
  Transfer second = std::move(first);
  must(second.step());
  first = std::move(second);
  must(finish(first));
  EXPECT_EQ(to, from);
}

// Those who have the blocks may wait for another rank, which waits for this copy.
TEST_F(StagedTransfer, goes_on_through_pageable_memory_where_others_keep_every_block) {
  const std::vector<std::size_t> sizes{1, (64 << 10) - 1, 64 << 10, (64 << 10) + 1, (1 << 20) + 7};
  std::vector<PinnedPool::Block> others;
  for (int i = 0; i < 4; ++i) others.push_back(must(pool_.take(mebibytes(1))));
  for (const std::size_t size : sizes) {
    const Data from = random_bytes(size);
    Data to(from.size(), 0xEE);
    Transfer transfer = start(to, from);
    must(finish(transfer));
    EXPECT_EQ(to, from) << size << " bytes";
    EXPECT_EQ(pool_.held(), mebibytes(4));
  }
  // Also dropped in the middle, and with a block again as soon as one is free.
  source_kind().questions_per_copy = 1000;
  const Data from = random_bytes(3 << 20);
  Data to(from.size(), 0xEE);
  {
    Transfer transfer = start(to, from);
    while (source_kind().in_flight() == 0) must(transfer.step());
  }
  EXPECT_EQ(source_kind().in_flight(), 1);
  source_kind().questions_per_copy = 1;
  others.pop_back();
  Transfer transfer = start(to, from);
  must(finish(transfer));
  EXPECT_EQ(to, from);
  EXPECT_EQ(source_kind().in_flight(), 0);
}

TEST_F(StagedTransfer, a_pool_that_can_never_hold_a_block_is_an_error_and_not_a_wait) {
  PinnedPool tiny{far_, Bytes{3000}};
  const Data from = random_bytes(10000);
  Data to(from.size(), 0xEE);
  Transfer transfer{far_, tiny, FarKind::piece_of(KindId::opencl, to), FarKind::piece_of(KindId::cuda, from)};
  const Status status = finish(transfer);
  EXPECT_EQ(status.code(), IST_ERR_MEMORY);
  EXPECT_NE(status.text().find("3000"), std::string::npos) << status.text();
}

TEST(Transfer, pieces_of_different_sizes_and_kinds_that_are_not_loaded_are_errors) {
  PinnedPool pool{kinds(), mebibytes(4)};
  Data bytes(100);
  Transfer uneven{kinds(), pool, host_piece(bytes.data(), Bytes{100}), host_piece(bytes.data(), Bytes{99})};
  EXPECT_EQ(finish(uneven).code(), IST_ERR_INTERNAL);
  const auto host_only = must(Kinds::load("host"));
  Transfer unknown{*host_only, pool, host_piece(bytes.data(), Bytes{100}), FarKind::piece_of(KindId::opencl, bytes)};
  EXPECT_EQ(finish(unknown).code(), IST_ERR_KIND);
}

}  // namespace
}  // namespace ist::test
