// Messages with layouts by copies of rows: over a link, between a device and the slots of a ring, and from rows to rows; and by kernels where
// those cost less, or the rows are none, or lie too far apart. Every byte is compared, and kernels and copies are counted.
#include "laid_pairs.hpp"

namespace {

using namespace laid_pairs;

// What the sender's engine has copied lies in the receiver's memory, and no kernel ran.
void expect_rows(Checks& check, Pair& pair, const Form& out, const Form& in, int rows_of_0, int rows_of_1,
                 const std::string& what) {
  Carried last;
  for (std::uint64_t n = 0; n < 2000; ++n) {
    last = pair.carry(out, in, 100 + n, n % 3);
    if (last.launches[0] + last.launches[1] == 0 && last.rows[0] == rows_of_0 && last.rows[1] == rows_of_1 &&
        last.carrier == IST_CARRIER_DEVICE)
      return;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  check.that(false, what + " goes by copies of rows alone: " + last.text());
}

// Planes of rows, as a box of a block of cells has them.
FormPointer planes(Checks& check, std::int64_t count, std::int64_t rows, std::int64_t length, std::int64_t pitch,
                   std::int64_t apart) {
  std::vector<std::size_t> places;
  for (std::int64_t i = 0; i < count * rows * length; ++i)
    places.push_back(static_cast<std::size_t>(i / (rows * length) * apart + i / length % rows * pitch + i % length));
  return std::make_unique<Form>(
      check,
      [&](ist_layout* made) {
        ist_layout plane = IST_LAYOUT_NULL;
        check.ok(ist_layout_hvector(rows, length, pitch, ist_layout_of(IST_BYTE), &plane), "a plane");
        const int code = ist_layout_hvector(count, 1, apart, plane, made);
        check.ok(ist_layout_free(&plane), "free");
        return code;
      },
      std::move(places));
}

TEST(LayoutRows, GoOverALinkByOneCopyOfTheSenders) {
  NEEDS_FAKE_DRIVER();
  const Variables profile{{"ISTHMUS_PROFILE", PROFILES "/good_rows.json"}};
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    Pair pair(here, check);
    const auto words = vector(check, 500, 4, 12), wide = vector(check, 40, 4096, 8192), cells = box(check),
               slabs = planes(check, 6, 11, 300, 320, 320 * 15);
    for (const auto& [form, name] :
         {std::pair{words.get(), "words"}, {wide.get(), "long rows"}, {cells.get(), "a box"}, {slabs.get(), "planes"}}) {
      const auto whole = row(check, count(form->places.size()));
      expect_rows(check, pair, *form, *whole, 1, 0, name);
      expect_rows(check, pair, *whole, *form, 0, 1, std::string{name} + ", by their receiver");
      // Of a shorter message the last row is a part of one; a longer one is cut off.
      const auto part = row(check, count(form->places.size() / 2 + 1)), more = row(check, count(form->places.size() + 77));
      const Carried less = pair.carry(*part, *form, 77);
      check.that(less.code[1] == IST_OK && less.launches[1] == 0, std::string{"half of "} + name + ": " + less.text());
      const Carried longer = pair.carry(*more, *form, 78);
      check.that(longer.code[0] == IST_OK && longer.code[1] == IST_ERR_TRUNCATE,
                 std::string{"more than "} + name + ": " + longer.text());
    }
    return check.wrong();
  }));
}

TEST(LayoutRows, GoToRowsOfTheSameShapeByOneCopyOfTheReceivers) {
  NEEDS_FAKE_DRIVER();
  const Variables profile{{"ISTHMUS_PROFILE", PROFILES "/good_rows.json"}};
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    Pair pair(here, check);
    const auto apart = vector(check, 40, 4096, 8192), closer = vector(check, 40, 4096, 4500),
               others = vector(check, 80, 2048, 4096);
    expect_rows(check, pair, *apart, *closer, 0, 1, "rows to rows");
    expect_rows(check, pair, *closer, *apart, 0, 1, "and back");
    const auto slabs = planes(check, 6, 11, 300, 320, 320 * 15), dense = planes(check, 6, 11, 300, 301, 301 * 12);
    expect_rows(check, pair, *slabs, *dense, 0, 1, "planes to planes");
    pair.open(*apart, *others, 0, 1);  // of another length: a kernel
    return check.wrong();
  }));
}

// Through the ring: straight into its slots, and straight out of them.
int through_slots(const Here& here, ist_kind sender, ist_kind receiver, bool by_rows) {
  Checks check(here);
  constexpr std::size_t kLong = 4 << 20;
  Pair pair(here, check, kLong, sender, receiver);
  const int device = sender == IST_KIND_CUDA ? 0 : 1;
  const auto wide = vector(check, 30, 60000, 70001), slabs = planes(check, 5, 12, 20000, 20480, 20480 * 30);
  for (const auto& [form, name] : {std::pair{wide.get(), "rows"}, {slabs.get(), "planes"}}) {
    const auto whole = row(check, count(form->places.size()));
    const Form &out = device == 0 ? *form : *whole, &in = device == 0 ? *whole : *form;
    for (std::uint64_t n = 0; n < 4; ++n) {
      const Carried carried = pair.carry(out, in, 40 + n, n);
      check.that(carried.code[0] == IST_OK && carried.code[1] == IST_OK &&
                     (by_rows ? carried.launches[device] == 0 && carried.rows[device] > 0
                              : carried.launches[device] == 1 && carried.rows[device] == 0),
                 std::string{name} + (by_rows ? " by their slots: " : " by a block: ") + carried.text());
    }
  }
  if (device == 1) {
    const Carried less = pair.carry(*row(check, 500001), *wide, 91), more = pair.carry(*row(check, 1800100), *wide, 92);
    check.that(less.code[1] == IST_OK, "a shorter message: " + less.text());
    check.that(more.code[1] == IST_ERR_TRUNCATE, "a longer message: " + more.text());
  }
  return check.wrong();
}

TEST(LayoutRows, OfLongRowsGoStraightIntoSlotsAndOutOfThem) {
  NEEDS_FAKE_DRIVER();
  const Variables profile{{"ISTHMUS_PROFILE", PROFILES "/no_mapped.json"}};
  for (const bool into : {false, true})
    expect_all(run_ranks(2, "host,cuda", [into](const Here& here) {
      return through_slots(here, into ? IST_KIND_HOST : IST_KIND_CUDA, into ? IST_KIND_CUDA : IST_KIND_HOST, true);
    }));
}

TEST(LayoutRows, AreNotForEnginesThatAreSlow) {
  NEEDS_FAKE_DRIVER();
  const Variables slow{{"ISTHMUS_PROFILE", PROFILES "/poor_rows.json"}};
  for (const bool into : {false, true})
    expect_all(run_ranks(2, "host,cuda", [into](const Here& here) {
      return through_slots(here, into ? IST_KIND_HOST : IST_KIND_CUDA, into ? IST_KIND_CUDA : IST_KIND_HOST, false);
    }));
}

// Whatever an engine would cost: its longest pitch is shorter than that, or it is a list.
TEST(LayoutRows, TooFarApartOrNoRowsAreMovedByKernels) {
  NEEDS_FAKE_DRIVER();
  const Variables variables{{"ISTHMUS_PROFILE", PROFILES "/good_rows.json"}, {"FAKE_CUDA_MAX_PITCH", "8000"}};
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    Pair pair(here, check);
    const auto near = vector(check, 40, 4096, 8000), far = vector(check, 40, 4096, 8001),
               some = list(check, 200, 16, kIrregular);
    expect_rows(check, pair, *near, *row(check, 40 * 4096), 1, 0, "the longest pitch");
    pair.open(*far, *row(check, 40 * 4096), 1, 0);
    pair.open(*row(check, 40 * 4096), *far, 0, 1);
    pair.open(*some, *row(check, 3200), 1, 0);
    return check.wrong();
  }));
}

// A copy that the driver refuses is made by a kernel, and no byte is lost.
TEST(LayoutRows, GoAnotherWayWhereTheDriverRefusesTheCopy) {
  NEEDS_FAKE_DRIVER();
  const Variables profile{{"ISTHMUS_PROFILE", PROFILES "/good_rows.json"}};
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    Pair pair(here, check);
    const auto wide = vector(check, 40, 4096, 8192), whole = row(check, 40 * 4096);
    expect_rows(check, pair, *wide, *whole, 1, 0, "before");
    if (here.rank == 0) break_call("cuMemcpy3DAsync_v2", 0);
    const Carried carried = pair.carry(*wide, *whole, 81);
    heal();
    check.that(carried.code[0] == IST_OK && carried.code[1] == IST_OK && carried.launches[0] == 1,
               "a copy that is refused: " + carried.text());
    expect_rows(check, pair, *wide, *whole, 1, 0, "after");
    return check.wrong();
  }));
}

// In the middle of a message the rest of it goes by blocks, and later messages go by a block of theirs; which is explained.
int refused_to_the_host(const Here& here, ist_kind sender, ist_kind receiver) {
  Checks check(here);
  Pair pair(here, check, 4 << 20, sender, receiver);
  const int device = sender == IST_KIND_CUDA ? 0 : 1;
  const auto wide = vector(check, 30, 60000, 70001), whole = row(check, count(wide->places.size()));
  const Form &out = device == 0 ? *wide : *whole, &in = device == 0 ? *whole : *wide;
  const auto explained = [&] {
    std::string text(6000, '\0');
    check.ok(ist_explain_layout(pair.buffer.get(), 1, wide->get(), 1, here.comm, text.data(), text.size(), nullptr),
             "explain");
    return text.find("the driver refused copies of rows to or from the host before") != std::string::npos;
  };
  const Carried before = pair.carry(out, in, 51);
  check.that(before.rows[device] > 1 && before.launches[device] == 0, "rows while they are not refused: " + before.text());
  if (here.rank == device) break_call("cuMemcpy3DAsync_v2", 1);
  const Carried failed = pair.carry(out, in, 54);
  heal();
  check.that(failed.code[device] == IST_ERR_DEVICE && failed.launches[device] == 0,
             "another error is told, and no refusal: " + failed.text());
  if (here.rank == 0 && device == 0) check.that(!explained(), "nothing is refused yet");
  const Carried again = pair.carry(out, in, 55);
  check.that(again.code[0] == IST_OK && again.rows[device] > 1 && again.launches[device] == 0,
             "rows go on behind another error: " + again.text());
  if (here.rank == device)
    break_call("cuMemcpy3DAsync_v2", 1, device == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED);
  const Carried refused = pair.carry(out, in, 52);
  heal();
  check.that(refused.code[0] == IST_OK && refused.code[1] == IST_OK && refused.launches[device] > 0,
             "a message of which rows are refused: " + refused.text());
  const Carried after = pair.carry(out, in, 53);
  check.that(after.code[0] == IST_OK && after.code[1] == IST_OK && after.rows[device] == 0 && after.launches[device] == 1,
             "the next one goes by a block: " + after.text());
  if (here.rank == 0 && device == 0) check.that(explained(), "explain says why");
  return check.wrong();
}

TEST(LayoutRows, GoOnByBlocksWhereTheDriverRefusesTheCopyToOrFromTheHost) {
  NEEDS_FAKE_DRIVER();
  const Variables profile{{"ISTHMUS_PROFILE", PROFILES "/no_mapped.json"}};
  for (const bool into : {false, true})
    expect_all(run_ranks(2, "host,cuda", [into](const Here& here) {
      return refused_to_the_host(here, into ? IST_KIND_HOST : IST_KIND_CUDA, into ? IST_KIND_CUDA : IST_KIND_HOST);
    }));
}

// Between a device and the host's memory, whichever of the two the rows lie in.
TEST(LayoutRows, ArePackedAnotherWayWhereTheDriverRefusesTheCopy) {
  NEEDS_FAKE_DRIVER();
  const Variables profile{{"ISTHMUS_PROFILE", PROFILES "/good_rows.json"}};
  for (const bool of_host : {false, true})
    for (const bool unpacks : {false, true})
      expect_all(run_ranks(1, "host,cuda", [of_host, unpacks](const Here& here) {
        Checks check(here);
        const auto form = vector(check, 40, 4096, 8192);
        const std::size_t bytes = form->places.size(), reach = 40 * 8192;
        Data memory(reach);
        check.ok(ist_register(here.world, memory.data(), reach), "page-locked memory");
        const ist_buffer locked = ist_host(memory.data());
        Buffer device(here, reach);
        const Data sent = random_bytes(reach, 5), wrong(reach, 0xa5);
        const ist_buffer laid = of_host ? locked : device.get(), packed = of_host ? device.get() : locked;
        check.ok(ist_memory_copy(here.world, unpacks ? packed : laid, ist_host(sent.data()), reach), "what is there");
        check.ok(ist_memory_copy(here.world, unpacks ? laid : packed, ist_host(wrong.data()), reach), "what is not");
        const std::uint64_t tried = calls("cuMemcpy3DAsync_v2");
        break_call("cuMemcpy3DAsync_v2", 0, CUDA_ERROR_INVALID_VALUE);
        check.ok(unpacks ? ist_unpack(here.world, packed, 0, IST_TO_END, laid, 1, form->get())
                         : ist_pack(here.world, laid, 1, form->get(), 0, IST_TO_END, packed),
                 "a pack whose rows are refused");
        heal();
        check.that(calls("cuMemcpy3DAsync_v2") == tried + 1, std::string{"rows were tried once, of the "} +
                                                                 (of_host ? "host" : "device") +
                                                                 (unpacks ? ", unpacked" : ", packed"));
        Data wanted = wrong, seen(reach);
        for (std::size_t i = 0; i < bytes; ++i)
          unpacks ? wanted[form->places[i]] = sent[i] : wanted[i] = sent[form->places[i]];
        check.ok(ist_memory_copy(here.world, ist_host(seen.data()), unpacks ? laid : packed, reach), "what came");
        check.that(first_difference(wanted, seen) < 0, "every byte is in its place");
        check.ok(ist_unregister(here.world, memory.data()), "unlock");
        return check.wrong();
      }));
}

TEST(LayoutRows, WaitForTheUsersKernels) {
  NEEDS_FAKE_DRIVER();
  const Variables profile{{"ISTHMUS_PROFILE", PROFILES "/good_rows.json"}};
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    Pair pair(here, check);
    const auto words = vector(check, 5000, 4, 12), whole = row(check, 20000);
    for (const int late : {0, 1}) {
      const Form& out = late == 0 ? *words : *whole;
      const Form& in = late == 0 ? *whole : *words;
      expect_rows(check, pair, out, in, 1 - late, late, "before");
      expect_waits(here, check, pair, out, in, late);
    }
    return check.wrong();
  }));
}

}  // namespace
