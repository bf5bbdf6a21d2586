// Layouts that are packed or unpacked on their way from device to device: by how many kernels and copies on each side, every byte in its
// place, and what becomes of them where something is late, too long, cancelled or broken.
#include <csignal>
#include <tuple>

#include "laid_pairs.hpp"

namespace {

using namespace laid_pairs;

// What the sender has packed in one launch lies in the receiver's memory, without a copy or a kernel there.
TEST(LayoutLinks, PackedByOneKernelIntoTheReceiversMemory) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    Pair pair(here, check);
    const auto words = vector(check, 5000, 4, 12), bytes = vector(check, 3001, 1, 3), wide = vector(check, 40, 4096, 8192),
               some = list(check, 2000, 16, kIrregular), again = lists(check, 100, 16), cells = box(check);
    pair.open(*words, *row(check, 20000), 1, 0);
    for (const auto& [form, name] : {std::pair{words.get(), "words"},
                                     {bytes.get(), "single bytes"},
                                     {wide.get(), "long blocks"},
                                     {some.get(), "a list"},
                                     {again.get(), "a list that comes again"},
                                     {cells.get(), "a box"}}) {
      const auto whole = row(check, count(form->places.size()));
      pair.open(*form, *whole, 1, 0);  // a list is brought to the device first
      expect_moved(check, pair, *form, *whole, 1, 0, name);
    }
    return check.wrong();
  }));
}

// What lies in one piece is taken from there by one launch of the receiver's, while the sender does nothing.
TEST(LayoutLinks, UnpackedByOneKernelOutOfTheSendersMemory) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    Pair pair(here, check);
    const auto words = vector(check, 5000, 4, 12), bytes = vector(check, 3001, 1, 3), wide = vector(check, 40, 4096, 8192),
               some = list(check, 2000, 16, kIrregular), again = lists(check, 100, 16), cells = box(check);
    pair.open(*row(check, 20000), *words, 0, 1);
    for (const auto& [form, name] : {std::pair{words.get(), "words"},
                                     {bytes.get(), "single bytes"},
                                     {wide.get(), "long blocks"},
                                     {some.get(), "a list"},
                                     {again.get(), "a list that comes again"},
                                     {cells.get(), "a box"}}) {
      const auto whole = row(check, count(form->places.size()));
      pair.open(*whole, *form, 0, 1);
      expect_moved(check, pair, *whole, *form, 0, 1, name);
      // A message that is shorter, or longer, than its receive.
      const auto part = row(check, count(form->places.size() / 2)), more = row(check, count(form->places.size() + 77));
      const Carried less = pair.carry(*part, *form, 77);
      check.that(less.moved_by(0, 1) && less.code[1] == IST_OK, std::string{"half of "} + name + ": " + less.text());
      const Carried longer = pair.carry(*more, *form, 78);
      check.that(longer.moved_by(0, 1) && longer.code[0] == IST_OK && longer.code[1] == IST_ERR_TRUNCATE,
                 std::string{"more than "} + name + ": " + longer.text());
    }
    return check.wrong();
  }));
}

// Into the receiver's block, and from there to their places: a kernel on each side.
TEST(LayoutLinks, PackedAndUnpackedByAKernelEach) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    Pair pair(here, check);
    const auto words = vector(check, 5000, 4, 12), others = vector(check, 2500, 8, 40),
               some = list(check, 1250, 16, kIrregular), fewer = vector(check, 1000, 4, 8);
    pair.open(*words, *others, 1, 1);
    const auto again = lists(check, 125, 8);
    for (const auto& [out, in, name] : {std::tuple{words.get(), others.get(), "vector to vector"},
                                        {some.get(), words.get(), "list to vector"},
                                        {others.get(), some.get(), "vector to list"},
                                        {again.get(), some.get(), "a list that comes again to a list"},
                                        {words.get(), again.get(), "vector to a list that comes again"}}) {
      pair.open(*out, *in, 1, 1);  // lists are brought to the devices first
      expect_moved(check, pair, *out, *in, 1, 1, name);
    }
    const Carried longer = pair.carry(*words, *fewer, 79);
    check.that(longer.code[0] == IST_OK && longer.code[1] == IST_ERR_TRUNCATE, "a longer message: " + longer.text());
    return check.wrong();
  }));
}

// What is longer than half a block comes in parts: one is unpacked while the next one is packed, where a device takes its time to unpack.
TEST(LayoutLinks, LongOnesArePackedAndUnpackedPartByPart) {
  NEEDS_FAKE_DRIVER();
  const Variables small_blocks{{"ISTHMUS_BOUNCE_LIMIT", "128KiB"}, {"ISTHMUS_PROFILE", PROFILES "/slow_packing.json"}};
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    Pair pair(here, check);
    const auto apart = vector(check, 5300, 32, 48), closer = vector(check, 5300, 32, 40), some = list(check, 10600, 16),
               whole = row(check, 169600), less = row(check, 169500), half = vector(check, 2048, 32, 40);
    pair.open(*apart, *closer, 3, 3);
    expect_moved(check, pair, *closer, *apart, 3, 3, "the other way round");
    expect_moved(check, pair, *some, *closer, 3, 3, "a list to a vector");
    expect_moved(check, pair, *apart, *some, 3, 3, "a vector to a list");
    pair.open(*apart, *whole, 1, 0);
    pair.open(*less, *apart, 0, 1);
    const Carried longer = pair.carry(*apart, *half, 92);
    check.that(longer.code[0] == IST_OK && longer.code[1] == IST_ERR_TRUNCATE, "a longer message: " + longer.text());
    // The next long ones find a free block.
    pair.open(*apart, *closer, 3, 3);
    return check.wrong();
  }));
}

// A launch that fails costs a copy, and no message.
TEST(LayoutLinks, GoByABlockWhereTheirKernelDoesNotStart) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    Pair pair(here, check);
    const auto words = vector(check, 5000, 4, 12), whole = row(check, 20000);
    for (const int breaks : {0, 1}) {
      const Form& out = breaks == 0 ? *words : *whole;
      const Form& in = breaks == 0 ? *whole : *words;
      pair.open(out, in, 1 - breaks, breaks);
      if (here.rank == breaks) break_call("cuLaunchKernel", 0);
      const Carried carried = pair.carry(out, in, 80);
      heal();
      check.that(carried.code[0] == IST_OK && carried.code[1] == IST_OK && carried.copies[0] > 0,
                 "a kernel that does not start on rank " + std::to_string(breaks) + ": " + carried.text());
      pair.open(out, in, 1 - breaks, breaks);
    }
    return check.wrong();
  }));
}

// Nothing is packed before the user's kernel has filled the buffer, and a receive whose buffer is still used takes its bytes in a block,
// so that its sender does not wait for that kernel.
TEST(LayoutLinks, WaitForTheUsersKernels) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    Pair pair(here, check);
    const auto words = vector(check, 5000, 4, 12), whole = row(check, 20000);
    for (const int late : {0, 1}) {
      const Form& out = late == 0 ? *words : *whole;
      const Form& in = late == 0 ? *whole : *words;
      pair.open(out, in, 1 - late, late);
      expect_waits(here, check, pair, out, in, late);
    }
    return check.wrong();
  }));
}

TEST(LayoutLinks, TellBothOfTheUsersKernelThatCrashes) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    auto& pair = *new Pair(here, check);  // of a device that is lost
    const auto words = vector(check, 5000, 4, 12), whole = row(check, 20000);
    pair.open(*words, *whole, 1, 0);
    pair.buffer.fill(Data(kRoom, 0xa5));
    if (here.rank == 0) {
      Gate gate;
      crash_behind(gate, pair.buffer);
      ist_request request = IST_REQUEST_NULL;
      check.ok(ist_isend_layout(pair.buffer.get(), 1, words->get(), 1, 7, here.comm, &request), "start");
      gate.open();
      check.fails(ist_wait(&request, IST_STATUS_IGNORE), IST_ERR_DEVICE, {}, "the send");
    } else {
      check.fails(ist_recv_layout(pair.buffer.get(), 1, whole->get(), 0, 7, here.comm, IST_STATUS_IGNORE), IST_ERR_DEVICE,
                  {"rank 0"}, "the receive");
      check.that(pair.buffer.holds({}), "nothing was received");
    }
    return check.wrong();
  }));
}

// Whoever packs into, or unpacks out of, the memory of a rank that dies hears of it, and nothing hangs.
TEST(LayoutLinks, EndWhereTheOtherRankDies) {
  NEEDS_FAKE_DRIVER();
  for (const bool gathers : {false, true})
    for (const int victim : {0, 1}) {
      const auto codes = run_ranks(2, "host,cuda", [&](const Here& here) {
        Checks check(here);
        Pair pair(here, check);
        const auto words = vector(check, 5000, 4, 12), whole = row(check, 20000);
        const Form &out = gathers ? *whole : *words, &in = gathers ? *words : *whole;
        pair.open(out, in, gathers ? 0 : 1, gathers ? 1 : 0);
        int code = IST_OK;
        for (int n = 0; code == IST_OK; ++n) {
          if (here.rank == victim && n == 200) ::raise(SIGKILL);
          code = here.rank == 0 ? ist_send_layout(pair.buffer.get(), 1, out.get(), 1, 7, here.comm)
                                : ist_recv_layout(pair.buffer.get(), 1, in.get(), 0, 7, here.comm, IST_STATUS_IGNORE);
        }
        check.fails(code, IST_ERR_PEER_DEAD, {"rank " + std::to_string(victim)}, "what was under way");
        return check.wrong();
      });
      EXPECT_EQ(codes[victim == 0 ? 1 : 0], 0) << "rank " << victim << " dies" << (gathers ? ", unpacking" : ", packing");
    }
}

// Nothing has packed a send that nobody has asked for; taken back it leaves the next one in its place.
TEST(LayoutLinks, CanBeCancelledBeforeTheyArePacked) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    Pair pair(here, check);
    const auto words = vector(check, 5000, 4, 12), whole = row(check, 20000);
    pair.open(*words, *whole, 1, 0);
    if (here.rank == 0) {
      const std::uint64_t launched = calls("cuLaunchKernel");
      ist_request request = IST_REQUEST_NULL;
      ist_status status{};
      check.ok(ist_isend_layout(pair.buffer.get(), 1, words->get(), 1, 7, here.comm, &request), "start");
      check.ok(ist_cancel(request), "cancel");
      check.ok(ist_wait(&request, &status), "wait");
      check.that(status.code == IST_CANCELLED && calls("cuLaunchKernel") == launched, "it is cancelled, and was not packed");
    }
    check.ok(ist_barrier(here.comm), "a barrier, or the receive could have met the send");
    const Carried carried = pair.carry(*words, *whole, 81);
    check.that(carried.moved_by(1, 0), "the next one: " + carried.text());
    return check.wrong();
  }));
}

}  // namespace
