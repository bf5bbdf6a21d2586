// Work that the user has pending in the queue of a buffer is waited for: before a copy reads what that work writes, and
// before a copy writes what that work still reads.
#include <sched.h>

#include <algorithm>

#include "memory/transfer.hpp"
#include "slow_work.hpp"

namespace ist::test {
namespace {

constexpr std::uint64_t kSize = (1 << 20) + 3;

struct Case {
  Place place;
  bool out_of_order;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Place& place : all_places()) {
    const SlowWork* slow = SlowWork::of(place.kind);
    if (slow) all.push_back({place, false});
    if (slow && slow->has_out_of_order()) all.push_back({place, true});
  }
  return all;
}

std::ostream& operator<<(std::ostream& out, const Case& each) {
  return out << each.place << (each.out_of_order ? ", out-of-order queue" : ", in-order queue");
}

class PendingWork : public testing::TestWithParam<Case> {
 protected:
  SlowWork& slow() const { return *SlowWork::of(GetParam().place.kind); }
  Piece queued(const Memory& memory) const { return slow().in_new_queue(memory.piece(), GetParam().out_of_order); }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PendingWork);

void finish(Transfer& transfer) {
  while (!must(transfer.step())) ::sched_yield();
}

TEST_P(PendingWork, a_busy_queue_is_not_ready_before_its_work_is_over) {
  const Memory target{GetParam().place, kSize};
  const Memory shadow{GetParam().place, kSize};
  const Data fresh = random_bytes(kSize);
  write(shadow.piece(), fresh);
  write(target.piece(), random_bytes(kSize));
  const Piece piece = queued(target);
  slow().copy_later(piece, shadow.piece(), piece.queue);
  Ticket ready = must(kinds().ready(piece));
  if (ready.empty()) {
    EXPECT_FALSE(slow().pending()) << "the queue was said to be idle";
  }
  Data seen(kSize, 0xEE);
  wait(must(GetParam().place.get().copy(host_piece(seen.data(), Bytes{kSize}), piece, ready)));
  EXPECT_EQ(seen, fresh) << "a copy after the ticket did not see what the pending work wrote";
  wait(ready);
}

TEST_P(PendingWork, a_transfer_out_of_a_buffer_brings_what_the_pending_work_writes) {
  const Memory source{GetParam().place, kSize};
  const Memory shadow{GetParam().place, kSize};
  for (const Place& other : all_places()) {
    const Data fresh = random_bytes(kSize);
    write(shadow.piece(), fresh);
    write(source.piece(), random_bytes(kSize));
    const Memory to{other, kSize};
    const Piece from = queued(source);
    PinnedPool pool{kinds(), mebibytes(8)};
    slow().copy_later(from, shadow.piece(), from.queue);
    Transfer transfer{kinds(), pool, to.piece(), from};
    finish(transfer);
    EXPECT_EQ(read(to.piece()), fresh) << "to " << other;
    slow().finish(from.queue);
  }
}

TEST_P(PendingWork, a_transfer_into_a_buffer_leaves_the_old_bytes_to_the_pending_work) {
  const Memory target{GetParam().place, kSize};
  const Memory shadow{GetParam().place, kSize};
  for (const Place& other : all_places()) {
    const Data old = random_bytes(kSize);
    const Data fresh = random_bytes(kSize);
    const Memory from{other, kSize};
    write(from.piece(), fresh);
    write(target.piece(), old);
    const Piece to = queued(target);
    PinnedPool pool{kinds(), mebibytes(8)};
    slow().copy_later(shadow.piece(), to, to.queue);
    Transfer transfer{kinds(), pool, to, from.piece()};
    finish(transfer);
    EXPECT_EQ(read(to), fresh) << "from " << other;
    slow().finish(to.queue);
    EXPECT_EQ(read(shadow.piece()), old) << "the transfer from " << other << " overtook work pending on its destination";
  }
}

TEST_P(PendingWork, a_transfer_waits_for_the_work_of_both_sides) {
  for (const Place& other : all_places()) {
    SlowWork* slow_there = SlowWork::of(other.kind);
    if (!slow_there) continue;
    const Memory target{GetParam().place, kSize};
    const Memory target_shadow{GetParam().place, kSize};
    const Memory source{other, kSize};
    const Memory source_shadow{other, kSize};
    const Data old = random_bytes(kSize);
    const Data fresh = random_bytes(kSize);
    write(target.piece(), old);
    write(source.piece(), random_bytes(kSize));
    write(source_shadow.piece(), fresh);
    const Piece to = queued(target);
    const Piece from = slow_there->in_new_queue(source.piece(), GetParam().out_of_order && slow_there->has_out_of_order());
    PinnedPool pool{kinds(), mebibytes(8)};
    slow_there->copy_later(from, source_shadow.piece(), from.queue);
    slow().copy_later(target_shadow.piece(), to, to.queue);
    Transfer transfer{kinds(), pool, to, from};
    finish(transfer);
    EXPECT_EQ(read(to), fresh) << "from " << other;
    slow().finish(to.queue);
    EXPECT_EQ(read(target_shadow.piece()), old) << "from " << other;
    slow_there->finish(from.queue);
  }
}

TEST_P(PendingWork, a_transfer_dropped_in_the_middle_disturbs_nobody) {
  const Memory source{GetParam().place, kSize};
  const Memory shadow{GetParam().place, kSize};
  Data never_read(kSize);
  const Piece from = queued(source);
  for (const Place& other : all_places()) {
    const Memory to{other, kSize};
    PinnedPool pool{kinds(), mebibytes(8)};
    slow().copy_later(from, shadow.piece(), from.queue);
    {
      Transfer transfer{kinds(), pool, to.piece(), from};
      must(transfer.step());
    }
    // Nothing of the dropped one reaches a block of the next.
    const auto block = must(pool.take(mebibytes(1)));
    std::fill_n(block.data(), block.size().value, std::byte{0x5A});
    slow().finish(from.queue);
    transfer(to.piece(), source.piece());
    EXPECT_EQ(std::count(block.data(), block.data() + block.size().value, std::byte{0x5A}),
              static_cast<std::ptrdiff_t>(block.size().value));
  }
}

INSTANTIATE_TEST_SUITE_P(Each, PendingWork, testing::ValuesIn(cases()), [](const auto& each) {
  return name_of(each.param.place) + (each.param.out_of_order ? "_out_of_order" : "_in_order");
});

TEST(PendingWorkCases, every_place_of_a_kind_with_queues_is_tried) {
  const auto all = cases();
  for (const Place& place : all_places()) {
    const bool tried =
        std::any_of(all.begin(), all.end(), [&](const Case& each) { return name_of(each.place) == name_of(place); });
    EXPECT_EQ(tried, place.get().streams() != nullptr) << place;
  }
  if (all.empty())
    GTEST_SKIP() << "SKIPPED: no kind with queues is loaded: install an OpenCL driver such as pocl-opencl-icd";
}

}  // namespace
}  // namespace ist::test
