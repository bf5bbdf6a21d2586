// Windows of device memory where the driver, a link or a PE fails: all PEs hear of it, by name, and the next window is as it should be. And
// what is mapped for how long.
#include <isthmus/window.h>

#include <chrono>
#include <thread>

#include "broken_driver.hpp"
#include "idle_use.hpp"

namespace {

using namespace forked_ranks;

constexpr std::size_t kBytes = 5001;

// Every byte of a put to the next PE arrives.
void check_window(const Here& here, Checks& check, const Buffer& memory, ist_window window, std::size_t bytes,
                  std::uint64_t seed) {
  const Data mine = random_bytes(bytes, seed * 10 + static_cast<std::uint64_t>(here.rank));
  check.ok(ist_window_put(window, 0, ist_host(mine.data()), bytes, (here.rank + 1) % here.size), "put");
  check.ok(ist_window_quiet(window), "quiet");
  check.ok(ist_barrier(here.comm), "barrier");
  const int from = (here.rank + here.size - 1) % here.size;
  check.that(memory.holds(random_bytes(bytes, seed * 10 + static_cast<std::uint64_t>(from))), "the bytes of the PE before");
  check.ok(ist_barrier(here.comm), "barrier");
}

void check_new_window(const Here& here, Checks& check) {
  const Buffer memory(here, kBytes);
  ist_window window = IST_WINDOW_NULL;
  check.ok(ist_window_create(here.comm, memory.get(), kBytes, &window), "a window");
  check_window(here, check, memory, window, kBytes, 1);
  check.ok(ist_window_free(&window), "free");
}

struct Broken {
  const char* call;
  int code;
  const char* says;
};

class WindowFailures : public testing::TestWithParam<Broken> {};

// At one PE: the other one quotes it.
TEST_P(WindowFailures, OfADriversCallAreHeardByAllAndLeaveNothing) {
  NEEDS_FAKE_DRIVER();
  const Broken broken = GetParam();
  expect_all(run_ranks(2, "host,cuda", [&](const Here& here) {
    Checks check{here};
    check_new_window(here, check);
    {
      const Buffer memory(here, kBytes);
      ist_window window = IST_WINDOW_NULL;
      if (here.rank == 1) break_call(broken.call, 0, CUDA_ERROR_UNKNOWN);
      const int code = ist_window_create(here.comm, memory.get(), kBytes, &window);
      check.fails(code, broken.code, {here.rank == 1 ? "" : "PE 1: ", broken.says}, "create");
      check.that(window == IST_WINDOW_NULL, "no window");
      heal();
    }
    check_new_window(here, check);
    return check.wrong();
  }));
}

INSTANTIATE_TEST_SUITE_P(Calls, WindowFailures,
                         testing::Values(Broken{"cuIpcGetMemHandle", IST_ERR_UNSUPPORTED,
                                                "device memory: other processes cannot open it; register what cudaMalloc"},
                                         Broken{"cuIpcOpenMemHandle_v2", IST_ERR_DEVICE,
                                                "PE 1 cannot reach memory of PE 0: the link between cuda device"},
                                         Broken{"cuPointerGetAttributes", IST_ERR_DEVICE, "cuPointerGetAttributes"}),
                         [](const auto& one) { return std::string{one.param.call}; });

class WindowLinks : public testing::TestWithParam<const char*> {};

constexpr std::uint64_t kServed = 300032;  // bytes that are put, and behind them words

void kernels_are_told(ist_window window, const Here& here, Checks& check, std::vector<std::string> why) {
  const int other = 1 - here.rank;
  why.insert(why.end(), {"does not reach the memory of PE " + std::to_string(other), "IST_KIND_HOST"});
  ist_window_view view{};
  void* remote = &view;
  check.fails(ist_window_view_of(window, &view), IST_ERR_UNREACHABLE, why, "a view");
  check.that(view.bytes[other] == kServed + 64 && view.base[other] == nullptr && view.base[here.rank] != nullptr,
             "sizes, and the own address");
  check.fails(ist_window_pointer(window, 0, other, &remote), IST_ERR_UNREACHABLE, why, "a pointer");
  check.that(remote == nullptr, "null");
  check.ok(ist_window_pointer(window, 0, here.rank, &remote), "the own memory's");
}

// An odd number of bytes there with a signal, and back; and both add to both words.
void put_and_get(ist_window window, std::uint64_t round, const Here& here, Checks& check) {
  constexpr std::size_t kLong = kServed - 25;
  const int other = 1 - here.rank;
  const auto bytes_of = [&](int rank) { return random_bytes(kLong, 10 * round + static_cast<std::uint64_t>(rank)); };
  const Data bytes = bytes_of(here.rank);
  Data found(kLong);
  check.ok(ist_window_put_signal(window, 0, ist_host(bytes.data()), kLong, kServed, 1, IST_SIGNAL_ADD, other), "put_signal");
  check.ok(ist_window_wait_until(window, kServed, IST_UINT64, IST_COMPARE_EQ, static_cast<std::int64_t>(round)), "wait");
  check.ok(ist_window_get(window, ist_host(found.data()), 0, kLong, here.rank), "what came");
  check.that(found == bytes_of(other), "the other PE's bytes are here");
  check.ok(ist_window_get_nbi(window, ist_host(found.data()), 0, kLong, other), "get_nbi");
  check.ok(ist_window_quiet(window), "quiet");
  check.that(found == bytes, "its own bytes come back");
  for (int pe = 0; pe < 2; ++pe) check.ok(ist_window_atomic64(window, IST_ATOMIC_ADD, kServed + 8, 3, nullptr, pe), "add");
  check.ok(ist_barrier(here.comm), "barrier");
}

// What hosts ask for in memory that their device does not reach, the PE whose it is does; kernels are told why before one starts.
void check_served(const Here& here, Checks& check, const std::vector<std::string>& why) {
  Buffer memory(here, kServed + 64, IST_KIND_CUDA, here.rank);
  memory.fill(Data(kServed + 64, 0));
  ist_window window = IST_WINDOW_NULL;
  check.ok(ist_window_create(here.comm, memory.get(), kServed + 64, &window), "a window");
  kernels_are_told(window, here, check, why);
  check.ok(ist_barrier(here.comm), "barrier");
  for (std::uint64_t round = 1; round <= 3; ++round) put_and_get(window, round, here, check);
  const int other = 1 - here.rank;
  std::uint64_t sum = 0;
  check.fails(ist_window_atomic64(window, IST_ATOMIC_ADD, kServed + 4, 3, nullptr, other), IST_ERR_ARGUMENT,
              {"must be a multiple of that"}, "a word between two");
  check.ok(ist_window_atomic64(window, IST_ATOMIC_FETCH, kServed + 8, 0, &sum, other), "fetch");
  check.that(sum == 18, "the sum is " + std::to_string(sum));
  check.ok(ist_window_free(&window), "free");
}

TEST_P(WindowLinks, ThatCannotBeBelievedAreServed) {
  NEEDS_FAKE_DRIVER();
  const Variables links{{"FAKE_CUDA_LINKS", GetParam()}, {"FAKE_CUDA_DEVICES", "2"}};
  expect_all(run_ranks(2, "host,cuda", [&](const Here& here) {
    Checks check{here};
    check_served(here, check, {"the link between cuda device " + std::to_string(here.rank), "is off"});
    return check.wrong();
  }));
}

std::uint64_t opened() { return driver_call<decltype(&::fake_cuda_calls)>("fake_cuda_calls")("cuIpcOpenMemHandle_v2"); }

// Also where one of two PEs alone says so: neither is its memory opened, nor does it open the other one's.
TEST(WindowDevices, AreServedWhereNoMemoryIsToBeOpened) {
  NEEDS_FAKE_DRIVER();
  const Variables set{{"FAKE_CUDA_DEVICES", "2"}};
  for (const int who : {0, 1, 2})
    expect_all(run_ranks(2, "host,cuda", [&](const Here& here) {
      Checks check{here};
      Here there = here;
      const bool never = who == here.rank || who == 2;
      check.ok(ist_world_create_configured(never ? "device_ipc=never" : "", &there.world), "a world");
      check.ok(ist_world_comm(there.world, &there.comm), "its communicator");
      const std::uint64_t before = opened();
      check_served(there, check, {"ISTHMUS_DEVICE_IPC is never, as PE " + std::to_string(who == 2 ? here.rank : who)});
      check.that(opened() == before, "nothing is opened");
      check.ok(ist_world_destroy(&there.world), "destroy");
      return check.wrong();
    }));
}

// How many of nine puts take longer than 4 ms, each after the other PE's service has been idle for long.
int slow_puts(ist_window window, Checks& check) {
  int slow = 0;
  for (std::uint64_t n = 0; n < 9; ++n) {
    std::this_thread::sleep_for(std::chrono::milliseconds{150});
    const auto begun = Clock::now();
    check.ok(ist_window_put(window, 0, ist_host(&n), sizeof n, 1), "put");
    check.ok(ist_window_quiet(window), "quiet");
    if (Clock::now() - begun > std::chrono::milliseconds{4}) ++slow;
  }
  return slow;
}

// With looks every 0.15 ms or so it would go to sleep 1300 times in 200 ms, and have a processor for 30 of them. Who is not rung for looks every
// 20 ms, and four of five puts would be slow; some are where other programs have the processors. PE 1 makes no call.
TEST_P(WindowLinks, AreServedByAThreadThatSleepsUntilItIsRung) {
  NEEDS_FAKE_DRIVER();
  const Variables links{{"FAKE_CUDA_LINKS", GetParam()}, {"FAKE_CUDA_DEVICES", "2"}};
  expect_all(run_ranks(2, "host,cuda", [&](const Here& here) {
    Checks check{here};
    const Buffer memory(here, kBytes, IST_KIND_CUDA, here.rank);
    ist_window window = IST_WINDOW_NULL;
    check.ok(ist_window_create(here.comm, memory.get(), kBytes, &window), "a window");
    check.ok(ist_barrier(here.comm), "barrier");
    const IdleUse use = IdleUse::settled(250);
    check.that(use.naps < 250 && (kSanitized || use.processor < std::chrono::milliseconds{10}),
               use.text() + " in 200 ms in which nobody asked");
    if (here.rank == 1) {
      here.wait_for(0, 1);
    } else {
      const int slow = slow_puts(window, check);
      check.that(slow < 4, std::to_string(slow) + " of nine puts took longer than 4 ms");
      here.has_come_to(1);
    }
    check.ok(ist_barrier(here.comm), "barrier");
    check.ok(ist_window_free(&window), "free");
    return check.wrong();
  }));
}

// No thread of the library's own is allowed then.
TEST(WindowLinksAlone, AreRefusedWhereTheProgramPromisedOneThread) {
  NEEDS_FAKE_DRIVER();
  const Variables set{{"FAKE_CUDA_LINKS", "0-1:refused"}, {"FAKE_CUDA_DEVICES", "2"}, {"ISTHMUS_THREADS", "single"}};
  expect_all(run_ranks(2, "host,cuda", [&](const Here& here) {
    Checks check{here};
    const Buffer memory(here, kBytes, IST_KIND_CUDA, here.rank);
    ist_window window = IST_WINDOW_NULL;
    check.fails(ist_window_create(here.comm, memory.get(), kBytes, &window), IST_ERR_SETTING,
                {"ISTHMUS_THREADS", "IST_KIND_HOST"}, "create");
    check.that(window == IST_WINDOW_NULL, "no window");
    return check.wrong();
  }));
}

INSTANTIATE_TEST_SUITE_P(Kinds, WindowLinks, testing::Values("0-1:spoiled", "0-1:refused"));

// Over PCI Express devices reach each other's memory, and may have no atomic operations there. A PE's own word is no such case.
TEST(WindowDevices, RefuseAtomicsWhereNoneCrossTheLink) {
  NEEDS_FAKE_DRIVER();
  const Variables links{{"FAKE_CUDA_ATOMICS", "0"}, {"FAKE_CUDA_DEVICES", "2"}};
  expect_all(run_ranks(2, "host,cuda", [&](const Here& here) {
    Checks check{here};
    const Buffer memory(here, 64, IST_KIND_CUDA, here.rank);
    ist_window window = IST_WINDOW_NULL;
    const std::vector<std::string> says{"atomic operations do not cross the link between cuda device", "IST_KIND_HOST"};
    check.ok(ist_window_create(here.comm, memory.get(), 64, &window), "a window");
    const int other = 1 - here.rank;
    check.fails(ist_window_atomic64(window, IST_ATOMIC_ADD, 0, 1, nullptr, other), IST_ERR_UNSUPPORTED, says, "atomic");
    check.fails(ist_window_compare_swap32(window, 0, 0, 1, nullptr, other), IST_ERR_UNSUPPORTED, says, "compare_swap");
    const std::uint64_t bytes = 0x1111;
    check.fails(ist_window_put_signal(window, 8, ist_host(&bytes), 8, 0, 1, IST_SIGNAL_ADD, other), IST_ERR_UNSUPPORTED,
                says, "a put whose signal is added");
    check.ok(ist_barrier(here.comm), "barrier");
    check.that(memory.holds({}), "nothing was written");
    check.ok(ist_window_atomic64(window, IST_ATOMIC_ADD, 0, 5, nullptr, here.rank), "its own word");
    check.ok(ist_window_free(&window), "free");
    return check.wrong();
  }));
}

int allocations() { return driver_call<decltype(&::fake_cuda_count)>("fake_cuda_count")("allocations"); }

bool comes_to(int wanted) {
  const auto limit = Clock::now() + std::chrono::seconds(5);
  while (allocations() != wanted && Clock::now() < limit) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return allocations() == wanted;
}

// However little may stay mapped for messages; and not a moment longer.
TEST(WindowDevices, KeepTheirMemoryMappedUntilTheyAreFreed) {
  NEEDS_FAKE_DRIVER();
  const Variables little{{"ISTHMUS_MAPPED_LIMIT", "1MiB"}, {"FAKE_CUDA_DEVICES", "2"}};
  expect_all(run_ranks(2, "host,cuda", [&](const Here& here) {
    Checks check{here};
    constexpr std::size_t kLarge = 3000001;
    constexpr std::size_t kMessage = 600001;
    check_new_window(here, check);
    const Buffer memory(here, kLarge, IST_KIND_CUDA, here.rank);
    const Buffer one(here, kMessage, IST_KIND_CUDA, here.rank), other(here, kMessage, IST_KIND_CUDA, here.rank);
    check.ok(ist_barrier(here.comm), "barrier");
    const int before = allocations();
    ist_window window = IST_WINDOW_NULL;
    check.ok(ist_window_create(here.comm, memory.get(), kLarge, &window), "a window beyond the limit");
    // One more for the word that tells of deaths, which stays for the next window.
    check.that(allocations() > before, "it is mapped");
    const int peer = 1 - here.rank;
    for (std::uint64_t n = 0; n < 8; ++n) {
      const Buffer& from = n % 2 == 0 ? one : other;
      const Buffer& to = n % 2 == 0 ? other : one;
      check.ok(ist_prepare(to.get(), kMessage, IST_BYTE, peer, here.comm), "prepare");
      check.ok(ist_sendrecv(from.get(), kMessage, IST_BYTE, peer, 0, to.get(), kMessage, IST_BYTE, peer, 0, here.comm,
                            IST_STATUS_IGNORE),
               "a message beside it");
      check_window(here, check, memory, window, kLarge, n);
    }
    const int within = allocations();
    check.ok(ist_window_free(&window), "free");
    check.that(comes_to(within - 1), "unmapped: " + std::to_string(allocations()) + " of " + std::to_string(within));
    return check.wrong();
  }));
}

TEST(WindowDevices, HearOfAPeThatDies) {
  NEEDS_FAKE_DRIVER();
  expect_all_but(run_ranks(3, "host,cuda",
                           [](const Here& here) {
                             Checks check{here};
                             const Buffer memory(here, kBytes);
                             ist_window window = IST_WINDOW_NULL;
                             ist_window_view view{};
                             check.ok(ist_window_create(here.comm, memory.get(), kBytes, &window), "a window");
                             check.ok(ist_window_view_of(window, &view), "view");
                             const auto aborted = [&] { return __atomic_load_n(view.abort_word, __ATOMIC_ACQUIRE) != 0; };
                             check.that(!aborted(), "nobody is dead yet");
                             check.ok(ist_barrier(here.comm), "barrier");
                             if (here.rank == 1) die_soon();
                             const auto killed = Clock::now() + kBefore;
                             const int wrong = expect_death("wait_until", here, 1, killed, [&] {
                               return ist_window_wait_until(window, 0, IST_UINT64, IST_COMPARE_EQ, 77);
                             });
                             const auto limit = Clock::now() + std::chrono::seconds(1);
                             while (!aborted() && Clock::now() < limit) std::this_thread::yield();
                             check.that(aborted(), "the abort word");
                             // Whose it hears of first is as may be: the dead, or one that has heard of them.
                             check.that(ist_window_free(&window) == IST_ERR_PEER_DEAD, "free");
                             check.that(window == IST_WINDOW_NULL, "it is gone all the same");
                             return wrong + check.wrong();
                           }),
                 1);
}

// What ist_memory_alloc gives then is malloc's.
TEST(WindowHosts, NeedTheSharedHeap) {
  const Variables off{{"ISTHMUS_SHARED_HEAP", "0"}};
  expect_all(run_ranks(2, "host", [&](const Here& here) {
    Checks check{here};
    const Buffer memory(here, 1 << 20, IST_KIND_HOST);
    ist_window window = IST_WINDOW_NULL;
    check.fails(ist_window_create(here.comm, memory.get(), 1 << 20, &window), IST_ERR_UNSUPPORTED,
                {"private", "unless ISTHMUS_SHARED_HEAP is 0"}, "create");
    return check.wrong();
  }));
}

}  // namespace
