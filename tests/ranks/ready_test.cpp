// Buffers that promise that nothing is pending on them (IST_BUFFER_READY): their streams are neither asked nor waited for. Ranks are
// forked, each with the fake CUDA driver, which counts.
#include <isthmus/collective.h>

#include "broken_driver.hpp"

namespace {

using namespace forked_ranks;

constexpr std::size_t kMost = (1 << 20) + 3;

std::uint64_t questions() {
  const auto calls = driver_call<decltype(&::fake_cuda_calls)>("fake_cuda_calls");
  return calls("cuStreamQuery") + calls("cuStreamIsCapturing");
}

// Copies that ask nothing, of what is idle.
void fill(const Here& here, ist_buffer place, const Data& bytes) {
  ist_memory_copy(here.world, ist_buffer_ready(place), ist_host(bytes.data()), bytes.size());
}
Data read(const Here& here, ist_buffer place) {
  Data bytes(kMost);
  ist_memory_copy(here.world, ist_host(bytes.data()), ist_buffer_ready(place), kMost);
  return bytes;
}

// There, with a send that is checked at the other end, and as much of a collective call.
void carry(const Here& here, Checks& check, ist_buffer named, std::size_t bytes, std::uint64_t seed) {
  const std::string what = std::to_string(bytes) + " bytes";
  const Data data = random_bytes(bytes, seed);
  Data whole(kMost, 0xa5);
  std::copy(data.begin(), data.end(), whole.begin());
  fill(here, named, here.rank == 0 ? data : Data(kMost, 0xa5));
  if (here.rank == 0)
    check.ok(ist_send(named, count(bytes), IST_BYTE, 1, 1, here.comm), "send of " + what);
  else
    check.ok(ist_recv(named, count(bytes), IST_BYTE, 0, 1, here.comm, IST_STATUS_IGNORE), "receive of " + what);
  if (here.rank == 1) {
    check.that(first_difference(whole, read(here, named)) < 0, what);
    fill(here, named, Data(kMost, 0xa5));
  }
  check.ok(ist_bcast(named, count(bytes), IST_BYTE, 0, here.comm), "broadcast of " + what);
  if (here.rank == 1) check.that(first_difference(whole, read(here, named)) < 0, what + " by a broadcast");
}

constexpr std::size_t kSizes[] = {0, 1, 7, 512, 16384, 16385, kMost};

TEST(Ready, TheStreamIsNotAskedAndEveryByteArrives) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    Buffer memory(here, kMost, IST_KIND_CUDA, here.rank);
    for (const bool ready : {false, true, false, true}) {
      const std::uint64_t before = questions();
      std::uint64_t seed = 1;
      for (const std::size_t bytes : kSizes)
        carry(here, check, ready ? ist_buffer_ready(memory.get()) : memory.get(), bytes, ++seed);
      const std::uint64_t asked = questions() - before;
      check.that(ready == (asked == 0), std::string{ready ? "ready" : "not ready"} + " and asked " + std::to_string(asked));
    }
    return check.wrong();
  }));
}

// A kernel of the program's that has nothing to do with the buffer, but is in its stream.
TEST(Ready, AMessageDoesNotWaitForWhatItsStreamHolds) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    // Freed at the end: whoever had opened it would close it, and the driver would wait for the kernel.
    Buffer memory(here, kMost, IST_KIND_CUDA, here.rank);
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{5000}, kMost}) {
      Gate gate;
      const Data data = random_bytes(bytes, 7 + bytes);
      if (here.rank == 0) memory.fill(data);
      gate.close(memory.stream());
      const ist_buffer named = ist_buffer_ready(memory.get());
      ist_status status{};
      if (here.rank == 0)
        check.ok(ist_send(named, count(bytes), IST_BYTE, 1, 1, here.comm), "send");
      else
        check.ok(ist_recv(named, count(bytes), IST_BYTE, 0, 1, here.comm, &status), "receive");
      check.that(!gate.opened_itself(), "the kernel was not waited for");
      gate.open();
      check.that(memory.holds(data), std::to_string(bytes) + " bytes");  // behind the kernel, which looks at the gate
      check.ok(ist_barrier(here.comm), "barrier");
    }
    return check.wrong();
  }));
}

// From one buffer to another of the same rank.
struct OneCopy {
  explicit OneCopy(const Here& here) : check(here), from(here, 1000), to(here, 1000) { from.fill(data); }
  Checks check;
  Buffer from;
  Buffer to;
  const Data data = random_bytes(1000, 3);
  Gate gate;
};

TEST(Ready, CopiesWithinAProcessDoNotAskEither) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(1, "host,cuda", [](const Here& here) {
    OneCopy copy(here);
    auto& [check, from, to, data, gate] = copy;
    gate.close(from.stream());
    const std::uint64_t before = questions();
    check.ok(ist_memory_copy(here.world, ist_buffer_ready(to.get()), ist_buffer_ready(from.get()), 1000), "copy");
    check.that(questions() == before && !gate.opened_itself(), "neither stream was asked");
    gate.open();
    check.that(to.holds(data), "every byte");
    return check.wrong();
  }));
}

// One stream for both buffers, and the promise for the source alone: the destination is waited for.
TEST(Ready, ThePromiseIsOfOneBufferAlone) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(1, "host,cuda", [](const Here& here) {
    OneCopy copy(here);
    auto& [check, from, to, data, gate] = copy;
    fill_behind(gate, to, 1000, 0x42);
    ist_buffer source = ist_buffer_ready(from.get());
    source.queue = to.get().queue;
    std::thread opens([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      gate.open();
    });
    check.ok(ist_memory_copy(here.world, to.get(), source, 1000), "copy");
    opens.join();
    check.that(to.holds(data), "the copy came after the fill");
    return check.wrong();
  }));
}

}  // namespace
