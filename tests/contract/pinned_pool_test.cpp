// The pool of page-locked staging memory: bounded, re-used, locked for kinds in use only.
#include "memory/pinned_pool.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "far_kind.hpp"
#include "memory/host/host_kind.hpp"

namespace ist::test {
namespace {

class Pool : public testing::Test {
 protected:
  Pool() {
    machine_.add("host", std::unique_ptr<MemoryKind>{std::make_unique<HostKind>()});
    machine_.add("far", std::unique_ptr<MemoryKind>{std::make_unique<FarKind>(KindId::cuda)});
  }
  FarKind& far() { return static_cast<FarKind&>(*machine_.find(KindId::cuda)); }

  Kinds machine_;
};

TEST_F(Pool, gives_page_aligned_blocks_of_at_least_the_size_in_powers_of_two) {
  PinnedPool pool{machine_, mebibytes(64)};
  for (const std::uint64_t size : {0ULL, 1ULL, 4095ULL, 4096ULL, 4097ULL, 65536ULL, 65537ULL, 1048577ULL}) {
    const auto block = must(pool.take(Bytes{size}));
    EXPECT_GE(block.size().value, size);
    EXPECT_EQ(block.size().value & (block.size().value - 1), 0U);
    EXPECT_EQ(reinterpret_cast<std::uint64_t>(block.data()) % 4096, 0U);
    std::fill_n(block.data(), block.size().value, std::byte{1});
  }
}

TEST_F(Pool, uses_a_block_again_instead_of_making_another) {
  PinnedPool pool{machine_, mebibytes(1)};
  std::byte* first = nullptr;
  for (int i = 0; i < 1000; ++i) {
    const auto block = must(pool.take(Bytes{100000}));
    if (!first) first = block.data();
    EXPECT_EQ(block.data(), first);
    EXPECT_EQ(pool.held().value, 131072U);
  }
}

TEST_F(Pool, never_holds_more_than_its_limit_and_says_what_was_asked_used_and_allowed) {
  PinnedPool pool{machine_, Bytes{100000}};
  std::vector<PinnedPool::Block> blocks;
  for (int i = 0; i < 24; ++i) blocks.push_back(must(pool.take(Bytes{4000})));
  EXPECT_EQ(pool.held().value, 24U * 4096);
  const auto over = pool.take(Bytes{4001});
  ASSERT_FALSE(over.ok());
  EXPECT_EQ(over.status().code(), IST_ERR_MEMORY);
  for (const char* word : {"4001", "98304", "100000", "ISTHMUS_PINNED_POOL_LIMIT"})
    EXPECT_NE(over.status().text().find(word), std::string::npos) << over.status().text();
  blocks.pop_back();
  EXPECT_TRUE(pool.take(Bytes{4001}).ok());
  EXPECT_FALSE(pool.take(Bytes{100001}).ok());
  EXPECT_FALSE(pool.take(Bytes{~std::uint64_t{0}}).ok());
  EXPECT_LE(pool.held().value, 100000U);
}

TEST_F(Pool, drops_free_blocks_of_other_sizes_before_it_refuses) {
  machine_.mark_used(KindId::cuda);
  PinnedPool pool{machine_, mebibytes(1)};
  { const auto small = must(pool.take(kibibytes(4))); }
  for (int i = 0; i < 3; ++i) {
    { const auto half = must(pool.take(kibibytes(512))); }
    EXPECT_EQ(must(pool.take(mebibytes(1))).size(), mebibytes(1));
    EXPECT_EQ(pool.held(), mebibytes(1));
    EXPECT_EQ(far().locked.size(), 1U);
  }
}

TEST_F(Pool, keeps_free_blocks_beyond_its_limit_while_they_cannot_be_unlocked) {
  machine_.mark_used(KindId::cuda);
  PinnedPool pool{machine_, mebibytes(1)};
  { const auto whole = must(pool.take(mebibytes(1))); }
  far().keep_locks = true;
  for (int i = 0; i < 3; ++i) {
    { const auto part = must(pool.take(kibibytes(64))); }
    { const auto whole = must(pool.take(mebibytes(1))); }
  }
  EXPECT_EQ(pool.held(), mebibytes(1) + kibibytes(64));
  EXPECT_EQ(far().locked.size(), 2U);
  far().keep_locks = false;
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds{10};
  while (pool.held() > mebibytes(1) && std::chrono::steady_clock::now() < patience) {
    const auto part = must(pool.take(kibibytes(64)));
  }
  EXPECT_EQ(pool.held(), kibibytes(64));
  EXPECT_EQ(far().locked.size(), 1U);
}

TEST_F(Pool, unlocks_what_had_to_stay_when_it_ends) {
  machine_.mark_used(KindId::cuda);
  {
    PinnedPool pool{machine_, mebibytes(1)};
    { const auto whole = must(pool.take(mebibytes(1))); }
    far().keep_locks = true;
    { const auto part = must(pool.take(kibibytes(64))); }
    EXPECT_EQ(far().locked.size(), 2U);
  }
  EXPECT_TRUE(far().locked.empty());
}

TEST_F(Pool, moving_a_block_moves_who_gives_it_back) {
  PinnedPool pool{machine_, mebibytes(1)};
  auto first = must(pool.take(Bytes{1}));
  auto second = must(pool.take(Bytes{1}));
  EXPECT_NE(first.data(), second.data());
  std::byte* kept = second.data();
  first = std::move(second);
  EXPECT_EQ(first.data(), kept);
  EXPECT_TRUE(second.empty());  // NOLINT(bugprone-use-after-move): a moved-from block is empty
  const auto third = must(pool.take(Bytes{1}));
  EXPECT_NE(third.data(), kept);
  EXPECT_EQ(pool.held().value, 8192U);
}

TEST_F(Pool, locks_nothing_for_a_kind_that_is_not_in_use) {
  {
    PinnedPool pool{machine_, mebibytes(1)};
    const auto block = must(pool.take(Bytes{1}));
    must(pool.lock(this, Bytes{4096}));
    EXPECT_TRUE(far().locked.empty());
  }
  EXPECT_TRUE(far().locked.empty());
}

TEST_F(Pool, locks_every_block_for_a_kind_that_came_into_use_meanwhile) {
  PinnedPool pool{machine_, mebibytes(1)};
  { const auto block = must(pool.take(Bytes{1})); }
  machine_.mark_used(KindId::cuda);
  const auto block = must(pool.take(Bytes{1}));
  EXPECT_EQ(far().locked.count(block.data()), 1U);
  const auto other = must(pool.take(Bytes{10000}));
  EXPECT_EQ(far().locked.at(other.data()), 16384U);
}

TEST_F(Pool, unlocks_everything_it_locked_when_it_ends) {
  machine_.mark_used(KindId::cuda);
  Data memory(8192);
  {
    PinnedPool pool{machine_, mebibytes(1)};
    { const auto block = must(pool.take(Bytes{1})); }
    must(pool.lock(memory.data(), Bytes{8192}));
    EXPECT_EQ(far().locked.size(), 2U);
  }
  EXPECT_TRUE(far().locked.empty());
}

TEST_F(Pool, locking_again_adds_only_the_kinds_that_came_into_use) {
  PinnedPool pool{machine_, mebibytes(1)};
  Data memory(8192);
  must(pool.lock(memory.data(), Bytes{8192}));
  EXPECT_TRUE(far().locked.empty());
  machine_.mark_used(KindId::cuda);
  must(pool.lock(memory.data(), Bytes{8192}));
  must(pool.lock(memory.data(), Bytes{8192}));
  EXPECT_EQ(far().locked.size(), 1U);
  EXPECT_EQ(pool.lock(memory.data(), Bytes{4096}).code(), IST_ERR_INTERNAL);
  pool.unlock(memory.data());
  pool.unlock(memory.data());
  EXPECT_TRUE(far().locked.empty());
  EXPECT_EQ(pool.held().value, 0U);
}

// Some of them, so that its pages need not be brought again; more than that go back to the system.
TEST_F(Pool, keeps_pageable_blocks_for_re_use_up_to_a_limit) {
  PinnedPool pool{kinds(), mebibytes(1)};
  std::byte* first = nullptr;
  {
    const auto block = must(pool.take_pageable(mebibytes(4)));
    first = block.data();
    std::memset(first, 7, block.size().value);
  }
  {
    const auto again = must(pool.take_pageable(Bytes{(4 << 20) - 1}));
    EXPECT_EQ(again.data(), first) << "of the same rounded size";
    const auto other = must(pool.take_pageable(mebibytes(4)));
    EXPECT_NE(other.data(), first);
    EXPECT_EQ(other.data()[0], std::byte{0}) << "new from the system";
  }
  { const auto large = must(pool.take_pageable(mebibytes(64))); }
  const auto after = must(pool.take_pageable(mebibytes(64)));
  EXPECT_EQ(after.data()[12345], std::byte{0});
  EXPECT_EQ(pool.held(), Bytes{}) << "none counts against the limit";
}

TEST_F(Pool, goes_on_with_pageable_blocks_where_a_driver_refuses_to_lock) {
  machine_.mark_used(KindId::cuda);
  far().refuse_locks = true;
  PinnedPool pool{machine_, mebibytes(1)};
  EXPECT_TRUE(pool.take(Bytes{1}).ok());
  EXPECT_EQ(pool.lock(this, Bytes{4096}).code(), IST_ERR_DEVICE);
  far().refuse_locks = false;
  const auto block = must(pool.take(Bytes{1}));
  EXPECT_EQ(far().locked.count(block.data()), 1U);
}

TEST_F(Pool, gives_no_block_that_kernels_could_not_write) {
  PinnedPool pool{machine_, mebibytes(1)};
  EXPECT_NE(pool.take_locked(Bytes{8}, KindId::cuda).status().text().find("the kind is not in use"), std::string::npos);
  machine_.mark_used(KindId::cuda);
  far().refuse_locks = true;
  const auto refused = pool.take_locked(Bytes{8}, KindId::cuda);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), IST_ERR_DEVICE);
  EXPECT_NE(refused.status().text().find("an invented refusal to lock"), std::string::npos) << refused.status().text();
  far().refuse_locks = false;
  const auto block = must(pool.take_locked(Bytes{8}, KindId::cuda));
  EXPECT_EQ(far().locked.count(block.data()), 1U);
}

TEST_F(Pool, one_driver_that_refuses_keeps_no_other_from_locking) {
  machine_.add("other", std::unique_ptr<MemoryKind>{std::make_unique<FarKind>(KindId::opencl)});
  auto& other = static_cast<FarKind&>(*machine_.find(KindId::opencl));
  machine_.mark_used(KindId::cuda);
  machine_.mark_used(KindId::opencl);
  far().refuse_locks = true;
  PinnedPool pool{machine_, mebibytes(1)};
  Data memory(8192);
  EXPECT_EQ(pool.lock(memory.data(), Bytes{8192}).text(), "an invented refusal to lock");
  EXPECT_EQ(other.locked.count(memory.data()), 1U);
  far().refuse_locks = false;
  must(pool.lock(memory.data(), Bytes{8192}));
  EXPECT_EQ(far().locked.count(memory.data()), 1U);
  pool.unlock(memory.data());
  EXPECT_TRUE(far().locked.empty());
  EXPECT_TRUE(other.locked.empty());
}

TEST_F(Pool, serves_threads_without_lending_a_block_twice) {
  machine_.mark_used(KindId::cuda);
  PinnedPool pool{machine_, mebibytes(2)};
  std::atomic<int> torn{0};
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int t = 1; t <= 4; ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < (long_tests() ? 100000 : 2000); ++round) {
        const auto block = pool.take(Bytes{static_cast<std::uint64_t>((round * 37 + t) % 60000)});
        if (!block.ok()) {
          ++refused;
          continue;
        }
        std::fill_n(block->data(), 64, static_cast<std::byte>(t));
        std::this_thread::yield();
        if (std::count(block->data(), block->data() + 64, static_cast<std::byte>(t)) != 64) ++torn;
      }
    });
  for (auto& each : threads) each.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(refused, 0) << "four threads with at most 64 KiB each fit into 2 MiB";
  EXPECT_LE(pool.held(), mebibytes(2));
}

TEST_F(Pool, serves_every_kind_that_is_really_there) {
  for (const auto& kind : kinds().all()) kinds().mark_used(kind->id());
  PinnedPool pool{kinds(), mebibytes(8)};
  for (const Place& place : all_places()) {
    const auto block = must(pool.take(Bytes{1 << 20}));
    const Memory memory{place, 1 << 20};
    const Data bytes = random_bytes(1 << 20);
    std::copy_n(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size(), block.data());
    wait(must(kinds()
                  .copier(memory.piece().kind, KindId::host)
                  ->copy(memory.piece(), host_piece(block.data(), Bytes{1 << 20}), Ticket{})));
    EXPECT_EQ(read(memory.piece()), bytes) << place;
  }
}

}  // namespace
}  // namespace ist::test
