// Receives into a device's memory that are shown to their sender: its copy begins, and ends, without the receiver; the message still goes to
// the receive that it belongs to, whatever else is posted, cancelled or sent meanwhile; and where the copy cannot be started, it comes
// another way.
#include <isthmus/collective.h>

#include <algorithm>
#include <list>
#include <random>

#include "broken_driver.hpp"

namespace {

using namespace forked_ranks;

constexpr std::size_t kRoom = 1 << 20;
constexpr int kTag = 7;

// Two ranks with a device each, of which 0 sends to 1.
class Two {
 public:
  Two(const Here& here, Checks& check) : here_(here), check_(check), buffer_(here, kRoom, IST_KIND_CUDA, here.rank) {}

  Buffer& buffer() { return buffer_; }
  // Until the device carries them: only then are receives shown.
  void open() {
    for (std::uint64_t n = 0; n < 2000; ++n) {
      std::int32_t carried = 0;
      if (here_.rank == 0) {
        check_.ok(ist_send(buffer_.get(), count(kRoom), IST_BYTE, 1, kTag, here_.comm), "a first message");
      } else {
        ist_status status{};
        check_.ok(ist_recv(buffer_.get(), count(kRoom), IST_BYTE, 0, kTag, here_.comm, &status), "a first message");
        carried = status.carrier == IST_CARRIER_DEVICE ? 1 : 0;
      }
      check_.ok(ist_bcast(ist_host(&carried), 1, IST_INT32, 1, here_.comm), "how it came");
      if (carried == 1) return;
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    check_.that(false, "the receiver's memory is opened");
  }
  // Is the request over within that time?
  bool over_within(ist_request& request, std::chrono::seconds most) {
    const auto limit = Clock::now() + most;
    for (int flag = 0; Clock::now() < limit;) {
      check_.ok(ist_test(&request, &flag, IST_STATUS_IGNORE), "test");
      if (flag != 0) return true;
    }
    return false;
  }

 private:
  const Here& here_;
  Checks& check_;
  Buffer buffer_;
};

// Whose receives are shown when the body begins.
std::vector<int> two_ranks(void (*body)(const Here&, Checks&, Two&)) {
  return run_ranks(2, "host,cuda", [body](const Here& here) {
    Checks check(here);
    Two two(here, check);
    two.open();
    body(here, check, two);
    return check.wrong();
  });
}

// The receiver posts, says so in memory of its own, and makes no call until the sender's is over.
void without_the_receiver(const Here& here, Checks& check, Two& two) {
  int stage = 0;
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{8}, std::size_t{4097}, std::size_t{65536}, kRoom}) {
    for (const std::int32_t tag : {std::int32_t{kTag}, IST_ANY_TAG}) {
      const Data data = random_bytes(bytes, bytes + static_cast<std::uint64_t>(stage));
      ist_request request = IST_REQUEST_NULL;
      if (here.rank == 1) two.buffer().fill(Data(kRoom, 0xa5));
      if (here.rank == 0) two.buffer().fill(data);
      check.ok(ist_barrier(here.comm), "filled");
      ++stage;
      if (here.rank == 1) {
        check.ok(ist_irecv(two.buffer().get(), count(kRoom), IST_BYTE, 0, tag, here.comm, &request), "receive");
        here.has_come_to(stage);
        here.wait_for(0, stage);
        ist_status status{};
        check.ok(ist_wait(&request, &status), "what came without this rank");
        check.that(status.source == 0 && status.tag == kTag && status.carrier == IST_CARRIER_DEVICE &&
                       status.bytes == static_cast<std::int64_t>(bytes),
                   "its status");
        check.that(two.buffer().holds(data), std::to_string(bytes) + " bytes");
      } else {
        here.wait_for(1, stage);
        check.ok(ist_isend(two.buffer().get(), count(bytes), IST_BYTE, 1, kTag, here.comm, &request), "send");
        check.that(two.over_within(request, std::chrono::seconds{5}),
                   std::to_string(bytes) + " bytes go to a posted receive without its rank");
        here.has_come_to(stage);
        if (request != IST_REQUEST_NULL) check.ok(ist_wait(&request, IST_STATUS_IGNORE), "the send's end");
      }
    }
  }
}

TEST(Inviting, a_message_goes_to_a_posted_receive_without_its_receiver) {
  NEEDS_FAKE_DRIVER();
  expect_all(two_ranks(without_the_receiver));
}

// Of one sender, in MPI's order: message and receive of each match, by what both sides know.
struct Plan {
  std::vector<std::int32_t> sent;       // tags
  std::vector<std::int32_t> received;   // tags, or any
  std::vector<std::size_t> message_of;  // of each receive
};

Plan plan(std::uint64_t seed) {
  std::mt19937_64 random{seed};
  Plan made;
  const std::size_t messages = 12 + random() % 12;
  for (std::size_t i = 0; i < messages; ++i) made.sent.push_back(static_cast<std::int32_t>(random() % 3));
  std::vector<bool> gone(messages, false);
  for (std::size_t left = messages; left > 0; --left) {
    // The tag of any message that is left, so that each receive gets one.
    std::size_t which = random() % messages;
    while (gone[which]) which = (which + 1) % messages;
    const std::int32_t tag = random() % 3 == 0 ? IST_ANY_TAG : made.sent[which];
    std::size_t first = 0;
    while (gone[first] || (tag != IST_ANY_TAG && made.sent[first] != tag)) ++first;
    gone[first] = true;
    made.received.push_back(tag);
    made.message_of.push_back(first);
  }
  return made;
}

void pause(std::mt19937_64& random) {
  const auto until = Clock::now() + std::chrono::microseconds{random() % 4 == 0 ? random() % 300 : 0};
  while (Clock::now() < until) {
  }
}

std::size_t bytes_of(std::uint64_t seed, std::size_t message) {
  constexpr std::size_t kSizes[] = {8, 70001, 1, 4096, 300, 16385};
  return kSizes[(seed + message) % std::size(kSizes)];
}

// One order of messages and receives, some of the latter into host memory and from any source, with receives in between that nothing is
// for and that are cancelled.
void run_plan(const Here& here, Checks& check, std::uint64_t seed) {
  const Plan planned = plan(seed);
  std::mt19937_64 random{seed * 2 + static_cast<std::uint64_t>(here.rank)};
  const std::size_t n = planned.sent.size();
  std::list<Buffer> buffers;
  std::vector<ist_request> requests(n, IST_REQUEST_NULL);
  for (std::size_t i = 0; i < n; ++i) {
    const bool on_device = here.rank == 0 ? i % 5 != 4 : random() % 5 != 0;
    buffers.emplace_back(here, std::size_t{1} << 17, on_device ? IST_KIND_CUDA : IST_KIND_HOST, on_device ? here.rank : 0);
    if (here.rank == 0) buffers.back().fill(random_bytes(bytes_of(seed, i), seed * 100 + i));
  }
  check.ok(ist_barrier(here.comm), "filled");
  auto buffer = buffers.begin();
  for (std::size_t i = 0; i < n; ++i, ++buffer) {
    pause(random);
    if (here.rank == 0) {
      check.ok(ist_isend(buffer->get(), count(bytes_of(seed, i)), IST_BYTE, 1, planned.sent[i], here.comm, &requests[i]),
               "send");
      continue;
    }
    if (random() % 4 == 0) {
      Buffer nothing(here, 64, IST_KIND_CUDA, here.rank);
      ist_request request = IST_REQUEST_NULL;
      ist_status status{};
      check.ok(ist_irecv(nothing.get(), 64, IST_BYTE, 0, 99, here.comm, &request), "a receive of nothing");
      check.ok(ist_cancel(request), "cancel");
      check.ok(ist_wait(&request, &status), "the cancelled one");
      check.that(status.code == IST_CANCELLED && nothing.holds({}), "a receive that nothing is for is cancelled");
    }
    const std::int32_t source = random() % 4 == 0 ? IST_ANY_SOURCE : 0;
    check.ok(ist_irecv(buffer->get(), 1 << 17, IST_BYTE, source, planned.received[i], here.comm, &requests[i]), "receive");
    // By waiting for some at once, so that the next one is the first that is posted.
    if (random() % 2 == 0) check.ok(ist_wait(&requests[i], IST_STATUS_IGNORE), "one of them");
  }
  check.ok(ist_waitall(static_cast<int>(n), requests.data(), IST_STATUSES_IGNORE), "all of them");
  check.ok(ist_barrier(here.comm), "all have ended");
  buffer = buffers.begin();
  for (std::size_t i = 0; here.rank == 1 && i < n; ++i, ++buffer) {
    const std::size_t message = planned.message_of[i];
    check.that(
        buffer->holds(random_bytes(bytes_of(seed, message), seed * 100 + message)),
        "plan " + std::to_string(seed) + ": receive " + std::to_string(i) + " has message " + std::to_string(message));
  }
}

void many_orders(const Here& here, Checks& check, Two&) {
  for (std::uint64_t seed = 1; seed <= 40 && check.wrong() == 0; ++seed) run_plan(here, check, seed);
}

TEST(Inviting, messages_come_to_the_receives_that_they_belong_to) {
  NEEDS_FAKE_DRIVER();
  expect_all(two_ranks(many_orders));
}

// A receive is given up while its message may be on the way: either it has the message, or nothing, for good, and the next receive has it.
void cancelled_in_between(const Here& here, Checks& check, Two&) {
  Buffer given_up(here, 4096, IST_KIND_CUDA, here.rank);
  Buffer next(here, 4096, IST_KIND_CUDA, here.rank);
  std::mt19937_64 random{20261126 + static_cast<std::uint64_t>(here.rank)};
  int times_cancelled = 0;
  constexpr int kTimes = 300;
  for (int n = 0; n < kTimes && check.wrong() == 0; ++n) {
    const Data data = random_bytes(4096, static_cast<std::uint64_t>(n));
    if (here.rank == 0) next.fill(data);
    check.ok(ist_barrier(here.comm), "filled");
    const auto until = Clock::now() + std::chrono::microseconds{random() % 60};
    if (here.rank == 0) {
      while (Clock::now() < until) {
      }
      check.ok(ist_send(next.get(), 4096, IST_BYTE, 1, kTag, here.comm), "send");
      continue;
    }
    given_up.fill(Data(4096, 0xa5));
    ist_request request = IST_REQUEST_NULL;
    ist_status status{};
    check.ok(ist_irecv(given_up.get(), 4096, IST_BYTE, 0, kTag, here.comm, &request), "receive");
    while (Clock::now() < until) {
    }
    check.ok(ist_cancel(request), "cancel");
    check.ok(ist_wait(&request, &status), "what was to be cancelled");
    const bool cancelled = status.code == IST_CANCELLED;
    times_cancelled += cancelled ? 1 : 0;
    if (cancelled) {
      check.ok(ist_recv(next.get(), 4096, IST_BYTE, 0, kTag, here.comm, IST_STATUS_IGNORE), "the next receive");
      check.that(given_up.holds({}), "a cancelled receive has got nothing");
    }
    check.that((cancelled ? next : given_up).holds(data), "message " + std::to_string(n));
  }
  check.that(here.rank == 0 || times_cancelled > 0, "some were cancelled");
}

TEST(Inviting, a_cancelled_receive_gets_its_message_or_nothing) {
  NEEDS_FAKE_DRIVER();
  expect_all(two_ranks(cancelled_in_between));
}

// The copy cannot be started: the message comes all the same, to the same receive, and so do those after it.
void refused_copies(const Here& here, Checks& check, Two& two) {
  for (int n = 0; n < 6; ++n) {
    const Data data = random_bytes(70001, static_cast<std::uint64_t>(n));
    ist_request request = IST_REQUEST_NULL;
    if (here.rank == 0) two.buffer().fill(data);
    if (here.rank == 1) two.buffer().fill(Data(kRoom, 0xa5));
    check.ok(ist_barrier(here.comm), "filled");
    if (here.rank == 1) {
      check.ok(ist_irecv(two.buffer().get(), count(kRoom), IST_BYTE, 0, kTag, here.comm, &request), "receive");
      here.has_come_to(n + 1);
      check.ok(ist_wait(&request, IST_STATUS_IGNORE), "message " + std::to_string(n));
      check.that(two.buffer().holds(data), "its bytes");
    } else {
      here.wait_for(1, n + 1);
      if (n % 2 == 0) break_call("cuMemcpyAsync", 0);
      check.ok(ist_send(two.buffer().get(), 70001, IST_BYTE, 1, kTag, here.comm), "send " + std::to_string(n));
      heal();
    }
  }
}

TEST(Inviting, a_copy_that_cannot_be_started_leaves_the_message_to_another_way) {
  NEEDS_FAKE_DRIVER();
  expect_all(two_ranks(refused_copies));
}

// The sender's kernel is still to write the buffer: the copy comes behind it, other messages do not wait, and the bytes are the kernel's.
void behind_a_kernel(const Here& here, Checks& check, Two& two) {
  Buffer other(here, 4096, IST_KIND_CUDA, here.rank);
  ist_request request = IST_REQUEST_NULL;
  if (here.rank == 1) {
    two.buffer().fill(Data(kRoom, 0xa5));
    check.ok(ist_irecv(two.buffer().get(), count(kRoom), IST_BYTE, 0, kTag, here.comm, &request), "receive");
    here.has_come_to(1);
    check.ok(ist_recv(other.get(), 4096, IST_BYTE, 0, kTag + 1, here.comm, IST_STATUS_IGNORE), "another one");
    check.that(other.holds(random_bytes(4096, 3)), "what does not wait");
    here.has_come_to(2);
    check.ok(ist_wait(&request, IST_STATUS_IGNORE), "what was behind the kernel");
    check.that(two.buffer().holds(Data(65536, 0x3c)), "the kernel's bytes");
    return;
  }
  Gate gate;
  two.buffer().fill(Data(kRoom, 0));
  other.fill(random_bytes(4096, 3));
  here.wait_for(1, 1);
  fill_behind(gate, two.buffer(), 65536, 0x3c);
  check.ok(ist_isend(two.buffer().get(), 65536, IST_BYTE, 1, kTag, here.comm, &request), "send behind a kernel");
  check.ok(ist_send(ist_buffer_ready(other.get()), 4096, IST_BYTE, 1, kTag + 1, here.comm), "another one");
  here.wait_for(1, 2);
  int flag = 0;
  check.ok(ist_test(&request, &flag, IST_STATUS_IGNORE), "test");
  check.that(flag == 0 && !gate.opened_itself(), "it waits for its kernel");
  gate.open();
  check.ok(ist_wait(&request, IST_STATUS_IGNORE), "its end");
}

TEST(Inviting, a_message_comes_behind_the_senders_kernel_and_holds_up_no_other) {
  NEEDS_FAKE_DRIVER();
  expect_all(two_ranks(behind_a_kernel));
}

// The receiver dies, and the copy waits for a kernel: the sender hears of it all the same.
void death_behind_a_kernel(const Here& here, Checks& check, Two& two) {
  ist_request request = IST_REQUEST_NULL;
  if (here.rank == 1) {
    check.ok(ist_irecv(two.buffer().get(), count(kRoom), IST_BYTE, 0, kTag, here.comm, &request), "receive");
    here.has_come_to(1);
    here.wait_for(0, 2);
    die_soon();
  }
  Gate gate;
  here.wait_for(1, 1);
  fill_behind(gate, two.buffer(), 65536, 0x3c);
  check.ok(ist_isend(two.buffer().get(), 65536, IST_BYTE, 1, kTag, here.comm, &request), "send behind a kernel");
  here.has_come_to(2);
  const auto killed = Clock::now() + kBefore + std::chrono::milliseconds(200);
  check.that(
      expect_death("a send behind a kernel", here, 1, killed, [&] { return ist_wait(&request, IST_STATUS_IGNORE); }) == 0,
      "the sender hears of it");
  check.that(!gate.opened_itself(), "the kernel still waits");
  gate.open();
  // Whoever sends waits for his stream before he frees what it works on.
  driver_call<CUresult (*)(CUstream)>("cuStreamSynchronize")(static_cast<CUstream>(two.buffer().stream()));
}

TEST(Inviting, the_death_of_a_receiver_ends_a_send_whose_kernel_still_runs) {
  NEEDS_FAKE_DRIVER();
  expect_all_but(two_ranks(death_behind_a_kernel), 1);
}

}  // namespace
