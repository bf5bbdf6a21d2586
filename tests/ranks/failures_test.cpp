// A device copy that fails is an error of the operation it belongs to, on both sides, and of nothing else: the next message
// of the pair arrives. Ranks are forked, each with its own fake CUDA driver to break.
#include <sys/resource.h>

#include <cstdlib>

#include "broken_driver.hpp"

namespace {

using namespace forked_ranks;

constexpr std::size_t kLarge = (4 << 20) + 1;
// More than is seen to come: its end is asked for, whatever the ranks' turns on the processors.
constexpr std::size_t kAsked = 1025;

struct Break {
  const char* call;
  const char* name;  // as error texts call it
  int skip;
  bool is_question = false;
};
// Where one copy can fail: when it is started, in two places, and when it is asked for.
constexpr Break kAtOnce[] = {
    {"cuMemcpyAsync", "cuMemcpyAsync", 0}, {"cuEventRecord", "cuEventRecord", 0}, {"cuEventQuery", "cuEventQuery", 0, true}};
constexpr Break kInTheMiddle[] = {
    {"cuMemcpyAsync", "cuMemcpyAsync", 2}, {"cuEventRecord", "cuEventRecord", 3}, {"cuEventQuery", "cuEventQuery", 2, true}};

struct Case {
  std::size_t bytes;
  Break broken;
  bool posted;  // the receive is posted before the send
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const bool posted : {true, false}) {
    for (const Break& broken : kAtOnce)
      for (const std::size_t bytes : {broken.is_question ? kAsked : std::size_t{100}, std::size_t{5000}, std::size_t{16384},
                                      std::size_t{16385}, kLarge})
        all.push_back({bytes, broken, posted});
    for (const Break& broken : kInTheMiddle) all.push_back({kLarge, broken, posted});
  }
  return all;
}

std::string name_of(const Case& one) {
  return std::to_string(one.bytes) + " bytes, " + one.broken.call + " " + std::to_string(one.broken.skip) +
         (one.posted ? ", posted" : ", unexpected");
}

// The message after the failure, with all its bytes.
void expect_next(const Here& here, Checks& check, std::size_t bytes, ist_kind kind, const std::string& what) {
  const Data data = random_bytes(bytes, bytes + 17);
  Buffer buffer(here, bytes, kind);
  if (here.rank == 0) {
    buffer.fill(data);
    check.ok(ist_send(buffer.get(), count(bytes), IST_BYTE, 1, 4, here.comm), what + ", the next send");
  } else {
    check.ok(ist_recv(buffer.get(), count(bytes), IST_BYTE, 0, 4, here.comm, IST_STATUS_IGNORE),
             what + ", the next receive");
    check.that(buffer.holds(data), what + ": the next message's bytes");
  }
}

int sender_fails(const Here& here, const Case& one) {
  Checks check(here);
  const std::string what = name_of(one);
  Buffer buffer(here, one.bytes, here.rank == 0 || one.posted ? IST_KIND_CUDA : IST_KIND_HOST);
  ist_request request = IST_REQUEST_NULL;
  ist_status status{};
  if (here.rank == 0) {
    check.ok(ist_barrier(here.comm), "posted");
    break_call(one.broken.call, one.broken.skip);
    check.ok(ist_isend(buffer.get(), count(one.bytes), IST_BYTE, 1, 4, here.comm, &request), what + ", isend");
    check.ok(ist_barrier(here.comm), "sent");
    check.fails(ist_wait(&request, &status), IST_ERR_DEVICE, {one.broken.name, "CUDA_ERROR_UNKNOWN"}, what + ", the send");
    heal();
  } else {
    if (one.posted) check.ok(ist_irecv(buffer.get(), count(one.bytes), IST_BYTE, 0, 4, here.comm, &request), what);
    check.ok(ist_barrier(here.comm), "posted");
    check.ok(ist_barrier(here.comm), "sent");
    const int code =
        one.posted ? ist_wait(&request, &status)
                   : ist_recv(buffer.get(), count(one.bytes), IST_BYTE, IST_ANY_SOURCE, IST_ANY_TAG, here.comm, &status);
    check.fails(code, IST_ERR_DEVICE, {"rank 0 ", "could not read its buffer"}, what + ", the receive");
    check.that(status.source == 0 && status.tag == 4, what + ": the status tells whose message failed");
  }
  check.that(status.code == IST_ERR_DEVICE && status.bytes == 0, what + ": nothing was delivered");
  expect_next(here, check, one.bytes, IST_KIND_CUDA, what);
  expect_next(here, check, 8, IST_KIND_HOST, what);
  return check.wrong();
}

int receiver_fails(const Here& here, const Case& one) {
  Checks check(here);
  const std::string what = name_of(one);
  Buffer buffer(here, one.bytes, here.rank == 1 || one.posted ? IST_KIND_CUDA : IST_KIND_HOST);
  ist_request request = IST_REQUEST_NULL;
  ist_status status{};
  if (here.rank == 0) {
    check.ok(ist_barrier(here.comm), "posted");
    check.ok(ist_isend(buffer.get(), count(one.bytes), IST_BYTE, 1, 4, here.comm, &request), what + ", isend");
    check.ok(ist_barrier(here.comm), "sent");
    check.ok(ist_wait(&request, &status), what + ", the send");
  } else {
    if (one.posted) check.ok(ist_irecv(buffer.get(), count(one.bytes), IST_BYTE, 0, 4, here.comm, &request), what);
    // Into a device that another rank has, too, short copies go by another call: the buffer is rank 0's device's.
    const bool in_rows = one.bytes < 1048576 && std::string{one.broken.call} == "cuMemcpyAsync";
    const char* const call = in_rows ? "cuMemcpy3DAsync_v2" : one.broken.call;
    const char* const name = in_rows ? "cuMemcpy3DAsync" : one.broken.name;
    // Odd ones in two calls, of which the second fails.
    const int skip = one.broken.skip + (in_rows && one.bytes % 2 == 1 ? 1 : 0);
    if (one.posted) break_call(call, skip);
    check.ok(ist_barrier(here.comm), "posted");
    check.ok(ist_barrier(here.comm), "sent");
    if (!one.posted) break_call(call, skip);
    const int code = one.posted ? ist_wait(&request, &status)
                                : ist_recv(buffer.get(), count(one.bytes), IST_BYTE, 0, 4, here.comm, &status);
    check.fails(code, IST_ERR_DEVICE, {name, "CUDA_ERROR_UNKNOWN"}, what + ", the receive");
    check.that(status.code == IST_ERR_DEVICE && status.bytes == 0, what + ": nothing is said to be delivered");
    heal();
  }
  expect_next(here, check, one.bytes, IST_KIND_CUDA, what);
  expect_next(here, check, 8, IST_KIND_HOST, what);
  return check.wrong();
}

int for_all_cases(const Here& here, int (*body)(const Here&, const Case&)) {
  int wrong = 0;
  for (const Case& one : cases()) wrong += body(here, one);
  return std::min(wrong, 90);
}

TEST(Failures, ASenderWhoseDeviceCopyFailsTellsItsReceiverAndThePairGoesOn) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) { return for_all_cases(here, sender_fails); }));
}

TEST(Failures, AReceiverWhoseDeviceCopyFailsKeepsItToItselfAndThePairGoesOn) {
  NEEDS_FAKE_DRIVER();
  // The trial of a link would meet the refused copy before the message does.
  ::setenv("ISTHMUS_DEVICE_IPC", "never", 1);
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) { return for_all_cases(here, receiver_fails); }));
  ::unsetenv("ISTHMUS_DEVICE_IPC");
}

TEST(Failures, AMessageThatFailsBetweenOthersFailsInItsTurn) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    constexpr std::size_t kBytes = 3000;
    Checks check(here);
    std::vector<ist_request> requests(3);
    std::vector<ist_status> statuses(3);
    std::vector<std::unique_ptr<Buffer>> buffers;
    for (std::uint64_t i = 0; i < 3; ++i) {
      buffers.push_back(std::make_unique<Buffer>(here, kBytes, i == 1 ? IST_KIND_CUDA : IST_KIND_HOST));
      if (here.rank == 0) buffers.back()->fill(random_bytes(kBytes, i));
    }
    if (here.rank == 0) break_call("cuMemcpyAsync", 0);
    for (std::size_t i = 0; i < 3; ++i) {
      const int code = here.rank == 0
                           ? ist_isend(buffers[i]->get(), kBytes, IST_BYTE, 1, 9, here.comm, &requests[i])
                           : ist_irecv(buffers[i]->get(), kBytes, IST_BYTE, IST_ANY_SOURCE, 9, here.comm, &requests[i]);
      check.ok(code, "start");
    }
    check.that(ist_waitall(3, requests.data(), statuses.data()) == IST_ERR_IN_STATUS, "one of three failed");
    for (std::size_t i = 0; i < 3; ++i) {
      check.that(statuses[i].code == (i == 1 ? IST_ERR_DEVICE : IST_OK), "only the second one, not " + std::to_string(i));
      if (here.rank == 1 && i != 1) check.that(buffers[i]->holds(random_bytes(kBytes, i)), "the others' bytes");
    }
    if (here.rank == 0) heal();
    return check.wrong();
  }));
}

TEST(Failures, ASendThatCannotBeginTakesNoPlaceInTheOrder) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    Buffer buffer(here, 5000);
    if (here.rank == 0) {
      for (const char* call : {"cuPointerGetAttributes", "cuStreamIsCapturing"}) {
        ist_request request = IST_REQUEST_NULL;
        break_call(call, 0);
        check.fails(ist_isend(buffer.get(), 5000, IST_BYTE, 1, 4, here.comm, &request), IST_ERR_DEVICE, {call}, call);
        check.that(request == IST_REQUEST_NULL, "no request");
        heal();
        break_call(call, 0);
        check.fails(ist_send(buffer.get(), 5000, IST_BYTE, 1, 4, here.comm), IST_ERR_DEVICE, {call}, call);
        heal();
      }
    }
    expect_next(here, check, 5000, IST_KIND_CUDA, "after sends that never began");
    return check.wrong();
  }));
}

// Announced first, since both ends then ask their streams at the same time.
TEST(Failures, ASendWhoseStreamCannotBeAskedFailsAtBothEndsAndThePairGoesOn) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check(here);
    constexpr std::size_t kBytes = 100000;
    Buffer buffer(here, kBytes, here.rank == 0 ? IST_KIND_CUDA : IST_KIND_HOST);
    for (const bool blocks : {false, true}) {
      if (here.rank == 1) {
        check.fails(ist_recv(buffer.get(), kBytes, IST_BYTE, 0, 4, here.comm, IST_STATUS_IGNORE), IST_ERR_DEVICE,
                    {"rank 0 ", "gave up its send"}, "the receive");
        continue;
      }
      ist_request request = IST_REQUEST_NULL;
      break_call("cuStreamQuery", 0);
      if (!blocks) check.ok(ist_isend(buffer.get(), kBytes, IST_BYTE, 1, 4, here.comm, &request), "isend");
      check.fails(blocks ? ist_send(buffer.get(), kBytes, IST_BYTE, 1, 4, here.comm) : ist_wait(&request, IST_STATUS_IGNORE),
                  IST_ERR_DEVICE, {"cuStreamQuery"}, "the send");
      heal();
    }
    expect_next(here, check, kBytes, IST_KIND_CUDA, "after sends whose stream could not be asked");
    return check.wrong();
  }));
}

TEST(Failures, OfAMessageToItselfFailBothHalves) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(1, "host,cuda", [](const Here& here) {
    Checks check(here);
    for (const std::size_t bytes : {std::size_t{5000}, std::size_t{300000}}) {
      Buffer out(here, bytes);
      Buffer in(here, bytes, IST_KIND_CUDA, 1);
      const Data data = random_bytes(bytes, bytes);
      out.fill(data);
      for (const bool broken : {true, false}) {
        ist_request request = IST_REQUEST_NULL;
        if (broken) break_call("cuMemcpyAsync", 0);
        check.ok(ist_isend(out.get(), count(bytes), IST_BYTE, 0, 1, here.comm, &request), "isend");
        const int received = ist_recv(in.get(), count(bytes), IST_BYTE, 0, 1, here.comm, IST_STATUS_IGNORE);
        const int sent = ist_wait(&request, IST_STATUS_IGNORE);
        check.that(received == (broken ? IST_ERR_DEVICE : IST_OK), "received");
        check.that(sent == (broken ? IST_ERR_DEVICE : IST_OK), "sent");
        heal();
      }
      check.that(in.holds(data), "the bytes of the second try");
    }
    return check.wrong();
  }));
}

TEST(Failures, ALargeMessageFromADeviceIsTruncatedWithBothSizesAndFailsIfItsBytesDo) {
  NEEDS_FAKE_DRIVER();
  // In several copies, of which the second can fail.
  ::setenv("ISTHMUS_DEVICE_IPC", "never", 1);
  const auto statuses = run_ranks(2, "host,cuda", [](const Here& here) {
    constexpr std::size_t kRoom = (3 << 20) + 1;
    Checks check(here);
    for (const bool broken : {false, true}) {
      Data data = random_bytes(kLarge, 5);
      Buffer buffer(here, kLarge);
      if (here.rank == 0) {
        buffer.fill(data);
        if (broken) break_call("cuMemcpyAsync", 1);
        const int code = ist_send(buffer.get(), kLarge, IST_BYTE, 1, 4, here.comm);
        check.that(code == (broken ? IST_ERR_DEVICE : IST_OK), "the send of what is truncated");
        heal();
      } else {
        ist_status status{};
        const int code = ist_recv(buffer.get(), kRoom, IST_BYTE, 0, 4, here.comm, &status);
        if (broken) check.fails(code, IST_ERR_DEVICE, {"rank 0 "}, "worse than truncated");
        if (broken) continue;
        check.fails(code, IST_ERR_TRUNCATE, {std::to_string(kLarge), std::to_string(kRoom), "rank 0 "}, "truncated");
        check.that(status.bytes == count(kRoom), "what was delivered");
        data.resize(kRoom);
        check.that(buffer.holds(data), "the first bytes, and nothing beyond");
      }
    }
    expect_next(here, check, kLarge, IST_KIND_CUDA, "after a truncation");
    return check.wrong();
  });
  ::unsetenv("ISTHMUS_DEVICE_IPC");
  expect_all(statuses);
}

TEST(Failures, ARingThatCannotBeMadeEndsBothHalvesAndIsMadeByTheNextMessage) {
  expect_all(run_ranks(2, "host", [](const Here& here) {
    Checks check(here);
    Data data(kLarge, 0);
    if (here.rank == 0) {
      // No file may be as large as a ring. (That no file may be opened would break the sanitizers too.)
      rlimit usual{};
      ::getrlimit(RLIMIT_FSIZE, &usual);
      const rlimit little{1 << 20, usual.rlim_max};
      ::signal(SIGXFSZ, SIG_IGN);
      ::setrlimit(RLIMIT_FSIZE, &little);
      check.fails(ist_send(ist_host(data.data()), kLarge, IST_BYTE, 1, 4, here.comm), IST_ERR_SYSTEM, {"errno 27"},
                  "the send");
      ::setrlimit(RLIMIT_FSIZE, &usual);
    } else {
      check.fails(ist_recv(ist_host(data.data()), kLarge, IST_BYTE, 0, 4, here.comm, IST_STATUS_IGNORE), IST_ERR_DEVICE,
                  {"rank 0 ", "gave up its send"}, "the receive");
    }
    expect_next(here, check, kLarge, IST_KIND_HOST, "after a ring that could not be made");
    return check.wrong();
  }));
}

// Slower, but no reason to fail, and least of all on one side only.
TEST(Failures, MemoryThatCannotBePageLockedStillCarriesMessages) {
  NEEDS_FAKE_DRIVER();
  for (const int victim : {0, 1}) {
    expect_all(run_ranks(2, "host,cuda", [victim](const Here& here) {
      Checks check(here);
      expect_next(here, check, 5000, IST_KIND_CUDA, "cells");
      if (here.rank == victim) break_call("cuMemHostRegister_v2", 0);
      expect_next(here, check, 3 * kLarge, IST_KIND_CUDA, "a ring that is not page-locked");
      heal();
      expect_next(here, check, kLarge, IST_KIND_CUDA, "the same ring again");
      return check.wrong();
    }));
  }
}

// Half a gigabyte, and a second or two.
int one_too_many(const Here& here) {
  constexpr int kMost = 1048576;
  Checks check(here);
  if (here.rank == 1) {
    for (int i = 0; i < kMost + 1 && check.wrong() == 0; ++i)
      check.that(ist_send(ist_host(&i), 1, IST_INT, 0, 1, here.comm) == IST_OK, "a send");
    return check.wrong();
  }
  std::vector<ist_request> requests(kMost);
  std::vector<int> values(kMost, -1);
  for (std::size_t i = 0; i < kMost && check.wrong() == 0; ++i)
    check.that(ist_irecv(ist_host(&values[i]), 1, IST_INT, 1, 1, here.comm, &requests[i]) == IST_OK, "a receive");
  int more = -1;
  ist_request request = IST_REQUEST_NULL;
  check.fails(ist_irecv(ist_host(&more), 1, IST_INT, 1, 1, here.comm, &request), IST_ERR_MEMORY, {"1048576"}, "one more");
  check.that(request == IST_REQUEST_NULL, "no request where nothing was started");
  check.ok(ist_waitall(kMost, requests.data(), IST_STATUSES_IGNORE), "all of them");
  int expected = 0;
  for (const int value : values) expected += value == expected;
  check.that(expected == kMost, "every value in its place");
  check.ok(ist_recv(ist_host(&more), 1, IST_INT, 1, 1, here.comm, IST_STATUS_IGNORE), "the one more, afterwards");
  check.that(more == kMost, "its value");
  return check.wrong();
}

TEST(Failures, OneOperationTooManyIsRefusedAndTheOthersStillComplete) {
  if (std::getenv("ISTHMUS_TEST_LONG") == nullptr) GTEST_SKIP() << "SKIPPED: set ISTHMUS_TEST_LONG=1 for long tests";
  expect_all(run_ranks(2, "host", one_too_many));
}

// What this machine was measured to be would choose other ways for some of the messages here.
TEST(Failures, AreTriedByTheBuiltinProfile) {
  NEEDS_FAKE_DRIVER();
  EXPECT_STREQ("builtin", std::getenv("ISTHMUS_PROFILE")) << "set ISTHMUS_PROFILE=builtin, as ctest does";
}

}  // namespace
