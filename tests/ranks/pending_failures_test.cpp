// Kernels that still run, never end, or crash, before the buffers they work on are sent or received.
#include "broken_driver.hpp"

namespace {

using namespace forked_ranks;

constexpr std::size_t kSmall = 5000;
constexpr std::size_t kLarge = (2 << 20) + 1;

// Longer than a send waits for a kernel before it announces itself instead.
constexpr auto kLongerThanPatience = std::chrono::milliseconds(20);

// The same ones in every round: whoever closes what it had open of an old one waits for the kernel.
struct Mixed {
  Buffer late, ready, late_in;

  explicit Mixed(const Here& here) : late(here, kSmall), ready(here, kLarge, IST_KIND_CUDA, 1), late_in(here, kSmall) {}
};

// Rank 0 sends what a kernel still writes, and around it what is ready; its kernel ends only after rank 1 has the rest.
int mixed_sender(const Here& here, Mixed& mixed) {
  Checks check(here);
  Gate gate;
  auto& [late, ready, late_in] = mixed;
  const Data data = random_bytes(kLarge, 3);
  ready.fill(data);
  fill_behind(gate, late, kSmall, 0x42);
  std::vector<ist_request> requests(6);
  std::vector<ist_status> statuses(6);
  // late_in is in the same stream, so that its receive has to wait for the kernel too.
  check.ok(ist_irecv(late_in.get(), kSmall, IST_BYTE, 1, 5, here.comm, &requests[0]), "irecv behind the kernel");
  check.ok(ist_isend(late.get(), kSmall, IST_BYTE, 1, 1, here.comm, &requests[1]), "isend behind the kernel");
  check.ok(ist_isend(ready.get(), 300, IST_BYTE, 1, 2, here.comm, &requests[2]), "isend small, ready");
  check.ok(ist_isend(ready.get(), kLarge, IST_BYTE, 1, 3, here.comm, &requests[3]), "isend large, ready");
  check.ok(ist_isend(late.get(), kSmall, IST_BYTE, 1, 1, here.comm, &requests[4]), "isend again behind the kernel");
  check.ok(ist_irecv(ist_host(nullptr), 0, IST_BYTE, 1, 4, here.comm, &requests[5]), "irecv of the word");
  check.ok(ist_wait(&requests[5], IST_STATUS_IGNORE), "rank 1 has what was ready");
  check.that(!gate.opened_itself(), "what was ready did not wait for the kernel");
  gate.open();
  check.ok(ist_waitall(6, requests.data(), statuses.data()), "the rest");
  check.that(late_in.holds(random_bytes(kSmall, 7)), "what was received behind the kernel");
  return check.wrong();
}

int mixed_receiver(const Here& here, Buffer& large) {
  Checks check(here);
  Data data = random_bytes(kLarge, 3);
  large.fill(Data(kLarge, 0xa5));
  Data in(kSmall, 0xa5);
  ist_status status{};
  const Data back = random_bytes(kSmall, 7);
  check.ok(ist_send(ist_host(back.data()), kSmall, IST_BYTE, 0, 5, here.comm), "send to a buffer behind a kernel");
  check.ok(ist_recv(large.get(), kLarge, IST_BYTE, 0, 3, here.comm, &status), "large, ready");
  check.that(large.holds(data), "large, ready: bytes");
  check.ok(ist_recv(ist_host(in.data()), 300, IST_BYTE, IST_ANY_SOURCE, 2, here.comm, &status), "small, ready");
  data.resize(300);
  check.that(std::equal(data.begin(), data.end(), in.begin()), "small, ready: bytes");
  const bool lends = std::string{std::getenv("ISTHMUS_DEVICE_IPC")} != "never";
  check.that(status.carrier == IST_CARRIER_CELL || lends, "what was ready came in a cell");
  check.ok(ist_send(ist_host(nullptr), 0, IST_BYTE, 0, 4, here.comm), "the word");
  for (int i = 0; i < 2; ++i) {
    in.assign(kSmall, 0xa5);
    check.ok(ist_recv(ist_host(in.data()), kSmall, IST_BYTE, 0, i == 0 ? IST_ANY_TAG : 1, here.comm, &status), "late");
    check.that(status.tag == 1 && in == Data(kSmall, 0x42), "late: what the kernel wrote");
    check.that(status.carrier == IST_CARRIER_RING, "late: it was announced instead of filling a cell");
  }
  return check.wrong();
}

TEST(PendingFailures, AKernelLongerThanPatienceHoldsUpItsOwnMessagesOnly) {
  NEEDS_FAKE_DRIVER();
  // Where devices lend memory, what is small is announced to begin with.
  for (const char* setting : {"never", "auto"}) {
    ::setenv("ISTHMUS_DEVICE_IPC", setting, 1);
    expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
      int wrong = 0;
      Mixed mixed(here);
      for (int round = 0; round < 5; ++round)
        wrong += here.rank == 0 ? mixed_sender(here, mixed) : mixed_receiver(here, mixed.ready);
      return wrong;
    }));
  }
  ::unsetenv("ISTHMUS_DEVICE_IPC");
}

void sleep_for_long(void*) { std::this_thread::sleep_for(std::chrono::microseconds{2000}); }

// Of the numbers that operations have in envelopes, 4096 follow each other in one place, and one of them is zero.
TEST(PendingFailures, ASendBehindAKernelEndsWhateverNumberItHas) {
  NEEDS_FAKE_DRIVER();
  constexpr int kNumbers = 4096;
  ::setenv("ISTHMUS_DEVICE_IPC", "never", 1);
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    const Buffer late(here, kSmall);
    const auto launch = driver_call<CUresult (*)(CUstream, CUhostFn, void*)>("cuLaunchHostFunc");
    int announced = 0;
    for (int n = 0; n < kNumbers && check.wrong() == 0; ++n) {
      Data in(8, 0xa5);
      ist_status status{};
      if (here.rank == 0) {
        launch(static_cast<CUstream>(late.stream()), sleep_for_long, nullptr);
        check.ok(ist_send(late.get(), 8, IST_BYTE, 1, 1, here.comm), "send number " + std::to_string(n));
      } else {
        check.ok(ist_recv(ist_host(in.data()), 8, IST_BYTE, 0, 1, here.comm, &status),
                 "receive number " + std::to_string(n));
        announced += status.carrier == IST_CARRIER_RING ? 1 : 0;
      }
    }
    check.that(here.rank == 0 || announced > kNumbers / 4, "announced: " + std::to_string(announced));
    return check.wrong();
  }));
  ::unsetenv("ISTHMUS_DEVICE_IPC");
}

TEST(PendingFailures, ACopyThatFailsBehindAnAnnouncedKernelIsTheSendsErrorOnly) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    Gate gate;
    Buffer buffer(here, kSmall);
    if (here.rank == 0) {
      ist_request request = IST_REQUEST_NULL;
      fill_behind(gate, buffer, kSmall, 0x17);
      check.ok(ist_isend(buffer.get(), kSmall, IST_BYTE, 1, 1, here.comm, &request), "isend");
      check.ok(ist_recv(ist_host(nullptr), 0, IST_BYTE, 1, 2, here.comm, nullptr), "rank 1 waits");
      std::this_thread::sleep_for(kLongerThanPatience);
      int completed = 0;
      check.ok(ist_test(&request, &completed, IST_STATUS_IGNORE), "test");
      break_call("cuMemcpyAsync", 0);
      gate.open();
      check.fails(ist_wait(&request, IST_STATUS_IGNORE), IST_ERR_DEVICE, {"cuMemcpyAsync"}, "the send");
      heal();
      buffer.fill(Data(kSmall, 0x18));
      check.ok(ist_send(buffer.get(), kSmall, IST_BYTE, 1, 1, here.comm), "the next send");
    } else {
      check.ok(ist_send(ist_host(nullptr), 0, IST_BYTE, 0, 2, here.comm), "the word");
      check.fails(ist_recv(buffer.get(), kSmall, IST_BYTE, 0, 1, here.comm, nullptr), IST_ERR_DEVICE, {"rank 0 "},
                  "receive");
      check.ok(ist_recv(buffer.get(), kSmall, IST_BYTE, 0, 1, here.comm, nullptr), "the next receive");
      check.that(buffer.holds(Data(kSmall, 0x18)), "the next message's bytes");
    }
    return check.wrong();
  }));
}

// The kernel's crash takes the whole device with it; messages between hosts go on.
int crash(const Here& here, int victim, std::size_t bytes) {
  Checks check(here);
  Gate gate;
  Buffer buffer(here, bytes);
  ist_request request = IST_REQUEST_NULL;
  if (here.rank == victim) crash_behind(gate, buffer);
  check.ok(ist_barrier(here.comm), "before");
  const int started = here.rank == 0 ? ist_isend(buffer.get(), count(bytes), IST_BYTE, 1, 1, here.comm, &request)
                                     : ist_irecv(buffer.get(), count(bytes), IST_BYTE, 0, 1, here.comm, &request);
  check.ok(started, "start");
  gate.open();
  const int code = ist_wait(&request, IST_STATUS_IGNORE);
  if (here.rank == victim) {
    check.fails(code, IST_ERR_DEVICE, {"CUDA_ERROR_ILLEGAL_ADDRESS"}, "the rank whose kernel crashed");
  } else if (here.rank == 1) {
    check.fails(code, IST_ERR_DEVICE, {"rank 0 "}, "the receiver");
  } else {
    check.ok(code, "the sender");
  }
  int value = here.rank == 0 ? 4711 : 0;
  const int host = here.rank == 0 ? ist_send(ist_host(&value), 1, IST_INT, 1, 2, here.comm)
                                  : ist_recv(ist_host(&value), 1, IST_INT, 0, 2, here.comm, IST_STATUS_IGNORE);
  check.ok(host, "between hosts");
  check.that(value == 4711, "between hosts: the value");
  check.ok(ist_barrier(here.comm), "after");
  return check.wrong();
}

TEST(PendingFailures, AKernelThatCrashesFailsItsMessageAndHostsGoOn) {
  NEEDS_FAKE_DRIVER();
  for (const int victim : {0, 1})
    for (const std::size_t bytes : {kSmall, kLarge})
      expect_all(run_ranks(2, "host,cuda", [=](const Here& here) { return crash(here, victim, bytes); }));
}

// The send has not been looked at since before the death, so that its turn to be announced comes after it.
TEST(PendingFailures, ADeathWhileAKernelRunsEndsTheSendAndReceiveBehindIt) {
  NEEDS_FAKE_DRIVER();
  for (const std::size_t bytes : {kSmall, kLarge}) {
    const auto statuses = run_ranks(2, "host,cuda", [bytes](const Here& here) {
      if (here.rank == 1) die_soon();
      Checks check(here);
      Gate gate;
      Buffer out(here, bytes);
      Buffer in(here, bytes);
      fill_behind(gate, out, bytes, 1);
      std::vector<ist_request> requests(2);
      check.ok(ist_isend(out.get(), count(bytes), IST_BYTE, 1, 1, here.comm, &requests[0]), "isend");
      check.ok(ist_irecv(in.get(), count(bytes), IST_BYTE, 1, 1, here.comm, &requests[1]), "irecv");
      std::this_thread::sleep_for(2 * kBefore);
      for (ist_request& request : requests)
        check.that(expect_death("wait", here, 1, Clock::now(), [&] { return ist_wait(&request, nullptr); }) == 0,
                   "the death");
      check.that(!gate.opened_itself(), "the waits were over before the kernel");
      gate.open();
      return check.wrong();
    });
    expect_all_but(statuses, 1);
  }
}

}  // namespace
