// Messages between two layouts with gaps: by one kernel of the receiver's, out of the sender's memory as it is to where the bytes belong, and by
// a block where that cannot be.
#include <csignal>

#include "laid_pairs.hpp"

namespace {

using namespace laid_pairs;

// Blocks with gaps of one to four blocks, in no order that a strided form has.
FormPointer scattered(Checks& check, std::int64_t blocks, std::int64_t length) {
  std::vector<std::int64_t> displacements;
  std::vector<std::size_t> places;
  std::uint32_t random = 1;
  for (std::int64_t i = 0, at = 0; i < blocks; ++i, at += (2 + (random >> 16) % 4) * length) {
    random = random * 1103515245 + 12345;
    displacements.push_back(at);
    for (std::int64_t b = 0; b < length; ++b) places.push_back(static_cast<std::size_t>(at + b));
  }
  return std::make_unique<Form>(
      check,
      [&](ist_layout* made) {
        return ist_layout_hindexed_block(blocks, length, displacements.data(), ist_layout_of(IST_BYTE), made);
      },
      std::move(places));
}

// What lies in blocks of 64 bytes or more on both sides is moved by the receiver alone.
TEST(LayoutRelays, MoveByOneKernelFromGapsToGaps) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    Pair pair(here, check);
    const auto lines = vector(check, 400, 64, 160), wide = vector(check, 25, 1024, 1040), odd = vector(check, 256, 100, 101),
               narrow = vector(check, 3200, 8, 24), cells = box(check);
    pair.open(*lines, *wide, 0, 1);
    expect_moved(check, pair, *wide, *lines, 0, 1, "the other way round");
    expect_moved(check, pair, *lines, *narrow, 0, 1, "into short blocks");
    expect_moved(check, pair, *odd, *lines, 0, 1, "out of odd blocks");
    expect_moved(check, pair, *lines, *odd, 0, 1, "into odd blocks");
    const Carried less = pair.carry(*lines, *cells, 70);
    check.that(less.moved_by(0, 1) && less.code[0] == IST_OK && less.code[1] == IST_ERR_TRUNCATE,
               "a longer message, into a box: " + less.text());
    const Carried shorter = pair.carry(*vector(check, 11, 64, 128), *wide, 71);
    check.that(shorter.moved_by(0, 1) && shorter.code[1] == IST_OK, "a shorter message: " + shorter.text());
    // What is not worth it is packed by its sender, and one that the receiver has no strides for, too.
    const auto some = scattered(check, 400, 64);
    expect_moved(check, pair, *lines, *list(check, 1600, 16), 0, 1, "into a list that has strides");
    check.that(pair.carry(*narrow, *lines, 72).moved_by(1, 1), "short blocks are packed");
    pair.open(*lines, *some, 1, 1);  // of a list the first one brings the list
    pair.open(*some, *lines, 1, 1);
    check.that(pair.carry(*lines, *wide, 75).moved_by(0, 1), "and the next one needs one kernel again");
    return check.wrong();
  }));
}

// Long ones, of which the receiver has lent half a block, leave that alone.
TEST(LayoutRelays, MoveLongOnesAtOnce) {
  NEEDS_FAKE_DRIVER();
  const Variables small_blocks{{"ISTHMUS_BOUNCE_LIMIT", "128KiB"}, {"ISTHMUS_PROFILE", PROFILES "/slow_packing.json"}};
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    Pair pair(here, check);
    const auto apart = vector(check, 2650, 64, 96), closer = vector(check, 1325, 128, 144),
               short_blocks = vector(check, 5300, 32, 40);
    pair.open(*apart, *closer, 0, 1);
    expect_moved(check, pair, *closer, *apart, 0, 1, "the other way round");
    pair.open(*short_blocks, *closer, 3, 3);  // finds a free block
    return check.wrong();
  }));
}

// A kernel that does not start costs another round, and no message.
TEST(LayoutRelays, GoByABlockWhereTheKernelDoesNotStart) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    Pair pair(here, check);
    const auto lines = vector(check, 400, 64, 160), wide = vector(check, 25, 1024, 1040);
    pair.open(*lines, *wide, 0, 1);
    if (here.rank == 1) break_call("cuLaunchKernel", 0);
    const Carried carried = pair.carry(*lines, *wide, 80);
    heal();
    check.that(carried.code[0] == IST_OK && carried.code[1] == IST_OK, "it comes all the same: " + carried.text());
    pair.open(*lines, *wide, 0, 1);
    return check.wrong();
  }));
}

// Nothing is lent before the user's kernel has filled the buffer, and a receive whose buffer is still used takes its bytes in a block.
TEST(LayoutRelays, WaitForTheUsersKernels) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    Pair pair(here, check);
    const auto lines = vector(check, 400, 64, 160), wide = vector(check, 25, 1024, 1040);
    for (const int late : {0, 1}) {
      pair.open(*lines, *wide, 0, 1);
      expect_waits(here, check, pair, *lines, *wide, late);
    }
    return check.wrong();
  }));
}

TEST(LayoutRelays, EndWhereTheOtherRankDies) {
  NEEDS_FAKE_DRIVER();
  for (const int victim : {0, 1}) {
    const auto codes = run_ranks(2, "host,cuda", [&](const Here& here) {
      Checks check(here);
      Pair pair(here, check);
      const auto lines = vector(check, 400, 64, 160), wide = vector(check, 25, 1024, 1040);
      pair.open(*lines, *wide, 0, 1);
      int code = IST_OK;
      for (int n = 0; code == IST_OK; ++n) {
        if (here.rank == victim && n == 200) ::raise(SIGKILL);
        code = here.rank == 0 ? ist_send_layout(pair.buffer.get(), 1, lines->get(), 1, 7, here.comm)
                              : ist_recv_layout(pair.buffer.get(), 1, wide->get(), 0, 7, here.comm, IST_STATUS_IGNORE);
      }
      check.fails(code, IST_ERR_PEER_DEAD, {"rank " + std::to_string(victim)}, "what was under way");
      return check.wrong();
    });
    EXPECT_EQ(codes[victim == 0 ? 1 : 0], 0) << "rank " << victim << " dies";
  }
}

// A send that its receiver was lent is not taken back, and one that nobody has asked for is.
TEST(LayoutRelays, CanBeCancelledBeforeTheyAreLent) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    Pair pair(here, check);
    const auto lines = vector(check, 400, 64, 160), wide = vector(check, 25, 1024, 1040);
    pair.open(*lines, *wide, 0, 1);
    if (here.rank == 0) {
      ist_request request = IST_REQUEST_NULL;
      ist_status status{};
      check.ok(ist_isend_layout(pair.buffer.get(), 1, lines->get(), 1, 7, here.comm, &request), "start");
      check.ok(ist_cancel(request), "cancel");
      check.ok(ist_wait(&request, &status), "wait");
      check.that(status.code == IST_CANCELLED, "it is cancelled");
    }
    check.ok(ist_barrier(here.comm), "a barrier, or the receive could have met the send");
    const Carried carried = pair.carry(*lines, *wide, 81);
    check.that(carried.moved_by(0, 1), "the next one: " + carried.text());
    return check.wrong();
  }));
}

// Where slots are shorter than a loan and a form together.
TEST(LayoutRelays, ArePackedWhereALoanWithItsFormIsTooLong) {
  NEEDS_FAKE_DRIVER();
  const Variables small_slots{{"ISTHMUS_EAGER_LIMIT", "128"}};
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    Pair pair(here, check);
    const auto lines = vector(check, 400, 64, 160), wide = vector(check, 25, 1024, 1040);
    pair.open(*lines, *wide, 1, 1);
    return check.wrong();
  }));
}

}  // namespace
