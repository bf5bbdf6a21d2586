// Messages with layouts by kernels that pack into the page-locked slots of a pair's ring, and unpack out of them: every byte is compared, and kernels
// and copies are counted. And by a block where kernels do not reach the slots.
#include "laid_pairs.hpp"

namespace {

using namespace laid_pairs;

constexpr std::size_t kLong = 4 << 20;
constexpr ist_kind kDevice = IST_KIND_CUDA, kHost = IST_KIND_HOST;

struct NamedForm {
  const char* name;
  FormPointer form;
};
// Lists and blocks, of odd lengths, too, all of them longer than one slot is filled.
std::vector<NamedForm> forms(Checks& check) {
  std::vector<NamedForm> all;
  all.push_back({"a list of words", list(check, 90001, 8, kIrregular)});
  all.push_back({"a list of odd runs", list(check, 50001, 13, kIrregular)});
  all.push_back({"a list that comes again", lists(check, 600, 64)});
  all.push_back({"words", vector(check, 180001, 4, 12)});
  all.push_back({"single bytes", vector(check, 700003, 1, 3)});
  all.push_back({"long rows", vector(check, 30, 60000, 70001)});
  return all;
}

// On that side no copy, and a kernel for each of several slots.
bool by_slots(const Carried& carried, int rank) {
  return carried.code[0] == IST_OK && carried.code[1] == IST_OK && carried.launches[rank] > 1 && carried.copies[rank] == 0;
}
bool by_a_block(const Carried& carried, int rank) {
  return carried.code[0] == IST_OK && carried.code[1] == IST_OK && carried.launches[rank] == 1 && carried.copies[rank] > 0;
}

int to_or_from_the_host(const Here& here, int device) {
  Checks check(here);
  Pair pair(here, check, kLong, device == 0 ? kDevice : kHost, device == 0 ? kHost : kDevice);
  for (const auto& [name, form] : forms(check)) {
    const auto whole = row(check, count(form->places.size()));
    const Form &out = device == 0 ? *form : *whole, &in = device == 0 ? *whole : *form;
    // With the first one its list is brought to the device; and of what is received the ring is not here before.
    pair.carry(out, in, 3);
    for (std::uint64_t n = 0; n < 4; ++n) {
      const Carried carried = pair.carry(out, in, 40 + n, n % 3);
      check.that(by_slots(carried, device), std::string{name} + " by kernels alone: " + carried.text());
    }
    // Of a shorter message, and of one that is cut off.
    const auto part = row(check, count(form->places.size() / 2 + 1)), more = row(check, count(form->places.size() + 77));
    const Carried less = device == 0 ? pair.carry(out, *more, 77) : pair.carry(*part, in, 77);
    check.that(by_slots(less, device), std::string{"less of "} + name + ": " + less.text());
    const Carried longer = device == 0 ? pair.carry(out, *part, 78) : pair.carry(*more, in, 78);
    check.that(longer.code[0] == IST_OK && longer.code[1] == IST_ERR_TRUNCATE && longer.copies[device] == 0,
               std::string{"more than "} + name + ": " + longer.text());
  }
  return check.wrong();
}

TEST(LayoutSlots, AreFilledAndEmptiedByKernels) {
  NEEDS_FAKE_DRIVER();
  const Variables profile{{"ISTHMUS_PROFILE", PROFILES "/good_mapped.json"}};
  for (const int device : {0, 1})
    expect_all(run_ranks(2, "host,cuda", [device](const Here& here) { return to_or_from_the_host(here, device); }));
}

// Of which neither opens the other's memory.
TEST(LayoutSlots, AreBetweenTwoDevicesWithoutALink) {
  NEEDS_FAKE_DRIVER();
  const Variables variables{{"ISTHMUS_PROFILE", PROFILES "/good_mapped.json"}, {"ISTHMUS_DEVICE_IPC", "never"}};
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    Pair pair(here, check, kLong);
    const auto all = forms(check);
    for (const auto& [name, form] : all) {
      pair.carry(*form, *form, 2);
      const Carried carried = pair.carry(*form, *form, 50, 1);
      check.that(by_slots(carried, 0) && by_slots(carried, 1), std::string{name} + " without a copy: " + carried.text());
    }
    return check.wrong();
  }));
}

std::string explained(const Here& here, Checks& check, Pair& pair, const Form& form) {
  std::string text(8000, '\0');
  check.ok(ist_explain_layout(pair.buffer.get(), 1, form.get(), 1, here.comm, text.data(), text.size(), nullptr), "explain");
  return text;
}

// Devices that map no host memory, and a ring whose mapping the driver refuses. As cheap as it would be.
int not_mapped(const Here& here, int device, bool ring_alone) {
  Checks check(here);
  Pair pair(here, check, kLong, device == 0 ? kDevice : kHost, device == 0 ? kHost : kDevice);
  const auto form = list(check, 90001, 8, kIrregular), whole = row(check, 90001 * 8);
  const Form &out = device == 0 ? *form : *whole, &in = device == 0 ? *whole : *form;
  if (ring_alone && here.rank == device) break_call("cuMemHostGetDevicePointer_v2", 0);
  for (std::uint64_t n = 0; n < 4; ++n) {
    const Carried carried = pair.carry(out, in, 60 + n);
    check.that(by_a_block(carried, device), "by a block: " + carried.text());
  }
  heal();
  if (here.rank == 0 && device == 0) {
    const std::string text = explained(here, check, pair, *form);
    check.that(text.find(ring_alone ? "the ring's slots are not page-locked and mapped for the device"
                                    : "the device maps no host memory for its kernels") != std::string::npos,
               "explain says why: " + text);
  }
  check.ok(ist_barrier(here.comm), "rank 1 stays until rank 0 has asked");
  return check.wrong();
}

TEST(LayoutSlots, ThatKernelsDoNotReachAreFilledByCopies) {
  NEEDS_FAKE_DRIVER();
  const Variables profile{{"ISTHMUS_PROFILE", PROFILES "/good_mapped.json"}};
  for (const int device : {0, 1}) {
    expect_all(run_ranks(2, "host,cuda", [device](const Here& here) { return not_mapped(here, device, true); }));
    const Variables none{{"FAKE_CUDA_MAPS_HOST", "0"}};
    expect_all(run_ranks(2, "host,cuda", [device](const Here& here) { return not_mapped(here, device, false); }));
  }
}

TEST(LayoutSlots, AreNotForKernelsThatAreSlowThere) {
  NEEDS_FAKE_DRIVER();
  const Variables profile{{"ISTHMUS_PROFILE", PROFILES "/poor_rows.json"}};
  for (const int device : {0, 1})
    expect_all(run_ranks(2, "host,cuda", [device](const Here& here) {
      Checks check(here);
      Pair pair(here, check, kLong, device == 0 ? kDevice : kHost, device == 0 ? kHost : kDevice);
      const auto form = list(check, 90001, 8, kIrregular), whole = row(check, 90001 * 8);
      for (std::uint64_t n = 0; n < 4; ++n) {
        const Carried carried = device == 0 ? pair.carry(*form, *whole, n) : pair.carry(*whole, *form, n);
        check.that(by_a_block(carried, device), "by a block: " + carried.text());
      }
      return check.wrong();
    }));
}

// A kernel of a slot that cannot be started ends the message on both sides, and the next one is right.
TEST(LayoutSlots, OfWhichOneCannotBePackedEndTheMessageAndNotTheNext) {
  NEEDS_FAKE_DRIVER();
  const Variables profile{{"ISTHMUS_PROFILE", PROFILES "/good_mapped.json"}};
  for (const int device : {0, 1})
    expect_all(run_ranks(2, "host,cuda", [device](const Here& here) {
      Checks check(here);
      Pair pair(here, check, kLong, device == 0 ? kDevice : kHost, device == 0 ? kHost : kDevice);
      const auto form = list(check, 90001, 8, kIrregular), whole = row(check, 90001 * 8);
      const Form &out = device == 0 ? *form : *whole, &in = device == 0 ? *whole : *form;
      pair.carry(out, in, 1);
      if (here.rank == device) break_call("cuLaunchKernel", 1);
      const Carried broken = pair.carry(out, in, 2);
      heal();
      check.that(broken.code[1] == IST_ERR_DEVICE && broken.code[0] == (device == 0 ? IST_ERR_DEVICE : IST_OK),
                 "a kernel that cannot be started: " + broken.text());
      const Carried next = pair.carry(out, in, 3);
      check.that(by_slots(next, device), "the next one: " + next.text());
      return check.wrong();
    }));
}

TEST(LayoutSlots, AreExplainedAsTheyAreChosen) {
  NEEDS_FAKE_DRIVER();
  const Variables variables{{"ISTHMUS_PROFILE", PROFILES "/good_mapped.json"}, {"ISTHMUS_DEVICE_IPC", "never"}};
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    Pair pair(here, check, kLong);
    const auto form = list(check, 90001, 8, kIrregular);
    for (const bool before : {true, false}) {
      if (here.rank == 0) {
        const std::string text = explained(here, check, pair, *form);
        check.that(text.find("by a kernel for each slot straight into the slots of the ring") != std::string::npos &&
                       text.find("packing: in slots") != std::string::npos,
                   std::string{before ? "before" : "behind"} + " the first message: " + text);
      }
      pair.carry(*form, *form, 5);
    }
    return check.wrong();
  }));
}

TEST(LayoutSlots, WaitForTheUsersKernels) {
  NEEDS_FAKE_DRIVER();
  const Variables variables{{"ISTHMUS_PROFILE", PROFILES "/good_mapped.json"}, {"ISTHMUS_DEVICE_IPC", "never"}};
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    Pair pair(here, check);
    const auto words = vector(check, 50000, 4, 12), whole = row(check, 200000);
    pair.carry(*words, *words, 1);
    for (const int late : {0, 1})
      expect_waits(here, check, pair, late == 0 ? *words : *whole, late == 0 ? *whole : *words, late);
    return check.wrong();
  }));
}

}  // namespace
