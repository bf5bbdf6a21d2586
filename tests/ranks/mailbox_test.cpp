// Small messages between two devices by the workers of both (IST_CARRIER_MAILBOX): the environment has asked for workers, and each rank has
// a device of its own. Whatever way a message takes, all of it arrives; and where both workers are awake, it is the mailbox.
#include <isthmus/collective.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "device_ranks.hpp"
#include "driver_memory.hpp"
#include "sanitized.hpp"

using namespace rank_test;

namespace {

constexpr std::size_t kLimit = 2048;
constexpr std::array<std::size_t, 22> kSizes{0,  1,  2,   3,   4,   5,   7,    8,    9,    15,     16,
                                             17, 64, 100, 511, 512, 513, 1000, 2046, 2047, kLimit, kLimit + 1};

std::uint64_t carried(int peer) {
  ist_traffic found{};
  found.size = sizeof found;
  EXPECT_EQ(IST_OK, ist_world_traffic(world(), peer, IST_CARRIER_MAILBOX, &found)) << ist_error_text();
  return found.messages_sent + found.messages_received;
}

bool alone() { return own_devices() >= size(); }
int other() { return 1 - rank(); }

#define NEEDS_A_PAIR() \
  NEEDS_DEVICES();     \
  if (rank() > 1) return

// There and back, with bytes that nobody has seen before, from and to an odd address.
void exchange(std::size_t bytes, std::uint64_t seed, std::size_t shift = 0, ist_kind second = IST_KIND_CUDA,
              int* carrier = nullptr) {
  GuardedBuffer buffer(rank() == 0 ? IST_KIND_CUDA : second, bytes + shift);
  const auto data = random_bytes(bytes, seed);
  std::vector<unsigned char> shifted(shift, 0xa5);
  shifted.insert(shifted.end(), data.begin(), data.end());
  const ist_buffer place = ist_buffer_at(buffer.get(), shift);
  const auto count = static_cast<std::int64_t>(bytes);
  ist_status status{};
  for (const int sender : {0, 1}) {
    if (rank() == sender) {
      buffer.fill(shifted);
      IST_OK_OR_FAIL(ist_send(place, count, IST_BYTE, other(), 3, comm()));
    } else {
      buffer.poison();
      IST_OK_OR_FAIL(ist_recv(place, count, IST_BYTE, other(), 3, comm(), &status));
      EXPECT_EQ(count, status.bytes);
      buffer.expect(shifted, std::to_string(bytes) + " bytes, seed " + std::to_string(seed));
    }
  }
  if (carrier != nullptr) *carrier = status.carrier;
}

// Device memory that is filled and looked at by hand, so that between messages nothing else happens.
struct Halves {
  static constexpr std::size_t kHalf = 4 * kLimit;
  Memory memory{"cuda", 2 * kHalf};
  std::vector<unsigned char> mine = random_bytes(kHalf, static_cast<std::uint64_t>(170 + rank()));
  std::vector<unsigned char> theirs = random_bytes(kHalf, static_cast<std::uint64_t>(171 - rank()));
  std::vector<unsigned char> expected;
  Halves() : expected(2 * kHalf, 0xa5) {
    std::copy(mine.begin(), mine.end(), expected.begin());
    memory.fill(expected);
  }
  ist_buffer out(std::size_t at) const { return memory.get(at); }
  ist_buffer in(std::size_t at) const { return memory.get(kHalf + at); }
  void came(std::size_t at, std::size_t from, std::size_t bytes) {
    std::copy_n(theirs.begin() + static_cast<std::ptrdiff_t>(from), bytes,
                expected.begin() + static_cast<std::ptrdiff_t>(kHalf + at));
  }
  void check(const std::string& what) const { EXPECT_EQ(-1, first_difference(expected, memory.read(2 * kHalf))) << what; }
};

std::int64_t count(std::size_t bytes) { return static_cast<std::int64_t>(bytes); }

TEST(Mailbox, MessagesOfEverySizeArriveWholeWhereverTheyLie) {
  NEEDS_A_PAIR();
  std::uint64_t seed = 0;
  for (int round = 0; round < 4; ++round)
    for (const std::size_t shift : {std::size_t{0}, std::size_t{3}})
      for (const std::size_t bytes : kSizes) {
        int carrier = IST_CARRIER_NONE;
        exchange(bytes, seed += 2, shift, IST_KIND_CUDA, &carrier);
        if (bytes == 0 || bytes > kLimit || !alone()) {
          EXPECT_NE(IST_CARRIER_MAILBOX, carrier) << bytes;
        }
      }
}

using Clock = std::chrono::steady_clock;

// There and back, again and again; `least`: not more than the shortest four in a row took.
void many_in_a_row(Halves& halves, Clock::duration& least) {
  constexpr std::size_t kMessages = 4000;
  std::array<Clock::time_point, 4> last{};
  for (std::size_t n = 0; n < kMessages; ++n) {
    const std::size_t bytes = 1 + n % 300;
    const std::size_t at = n * 13 % (Halves::kHalf - 300);
    if ((n % 2 == 0) == (rank() == 0)) {
      IST_OK_OR_FAIL(ist_send(ist_buffer_ready(halves.out(at)), count(bytes), IST_BYTE, other(), 3, comm()));
    } else {
      IST_OK_OR_FAIL(
          ist_recv(ist_buffer_ready(halves.in(at)), count(bytes), IST_BYTE, other(), 3, comm(), IST_STATUS_IGNORE));
      halves.came(at, at, bytes);
    }
    const auto now = Clock::now();
    if (n >= last.size()) least = std::min(least, now - last[n % last.size()]);
    last[n % last.size()] = now;
  }
}

// Rank 0's word for both.
void agree(int& mine) {
  const ist_buffer word = ist_host(&mine);
  if (rank() == 0)
    IST_OK_OR_FAIL(ist_send(word, 1, IST_INT32, 1, 4, comm()));
  else
    IST_OK_OR_FAIL(ist_recv(word, 1, IST_INT32, 0, 4, comm(), IST_STATUS_IGNORE));
}

// A worker is launched behind the third copy within a millisecond and leaves after 100 us without an order. Where others have the processors
// it may take many messages until those of both ranks are awake at once: until then, or for twenty seconds, more are sent. With a
// sanitizer, or where four never take less than a millisecond, they come too far apart for that; and where ranks and workers have no
// processor each, it may never happen beside other programs.
TEST(Mailbox, CarriesSomeOfManyInARow) {
  NEEDS_A_PAIR();
  const bool expected = alone() && !ipc_is_off();
  Halves halves;
  const std::uint64_t before = carried(other());
  const auto begun = Clock::now();
  auto least = Clock::duration::max();
  for (int again = 1; again != 0;) {
    many_in_a_row(halves, least);
    again = expected && !kSanitized && carried(other()) == before && Clock::now() - begun < std::chrono::seconds{20} ? 1 : 0;
    agree(again);
    if (HasFatalFailure()) return;
  }
  halves.check("many in a row");
  const std::uint64_t by_mailbox = carried(other()) - before;
  RecordProperty("by_mailbox", static_cast<int>(by_mailbox));
  const bool crowded = std::thread::hardware_concurrency() < 2U * static_cast<unsigned>(size());
  int too_far_apart = kSanitized || crowded || least > std::chrono::milliseconds{1} ? 1 : 0;
  agree(too_far_apart);
  if (expected && by_mailbox == 0 && too_far_apart != 0)
    GTEST_SKIP() << "SKIPPED: not covered here: messages between devices by mailbox; with a sanitizer, or on processors "
                    "this busy, they come too far apart for two workers to be awake at once; run it without, and alone";
  EXPECT_EQ(expected, by_mailbox > 0) << by_mailbox;
}

// More at once than a mailbox has places, both ways, received in another order than they were sent.
TEST(Mailbox, MoreThanItsPlacesAtOnceInBothDirectionsAndOutOfOrder) {
  NEEDS_A_PAIR();
  constexpr int kAtOnce = 40;
  constexpr std::size_t kEach = Halves::kHalf / kAtOnce;
  Halves halves;
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    std::vector<ist_request> requests(2 * kAtOnce);
    std::vector<int> order(kAtOnce);
    for (int i = 0; i < kAtOnce; ++i) order[static_cast<std::size_t>(i)] = i;
    std::shuffle(order.begin(), order.end(), random);
    const std::size_t bytes = 1 + random() % kEach;
    const bool late = round % 2 == 0;  // the receives come after the messages
    for (int step = 0; step < 2; ++step) {
      if ((step == 0) == late) {
        for (int i = 0; i < kAtOnce; ++i)
          IST_OK_OR_FAIL(ist_isend(halves.out(static_cast<std::size_t>(i) * kEach), count(bytes), IST_BYTE, other(), i,
                                   comm(), &requests[static_cast<std::size_t>(i)]));
        if (late)
          IST_OK_OR_FAIL(ist_sendrecv(ist_host(nullptr), 0, IST_BYTE, other(), 99, ist_host(nullptr), 0, IST_BYTE, other(),
                                      99, comm(), IST_STATUS_IGNORE));
      } else {
        for (int i = 0; i < kAtOnce; ++i) {
          const int tag = order[static_cast<std::size_t>(i)];
          IST_OK_OR_FAIL(ist_irecv(halves.in(static_cast<std::size_t>(tag) * kEach), count(bytes), IST_BYTE,
                                   i % 5 == 0 ? IST_ANY_SOURCE : other(), tag, comm(),
                                   &requests[static_cast<std::size_t>(kAtOnce + i)]));
        }
      }
    }
    IST_OK_OR_FAIL(ist_waitall(2 * kAtOnce, requests.data(), IST_STATUSES_IGNORE));
    for (std::size_t i = 0; i < kAtOnce; ++i) halves.came(i * kEach, i * kEach, bytes);
  }
  halves.check("more than its places");
}

// One that nobody receives for long holds its place, and the others go on.
TEST(Mailbox, AMessageThatWaitsForItsReceiveHoldsUpNobody) {
  NEEDS_A_PAIR();
  Halves halves;
  constexpr std::size_t kBytes = 200;
  std::vector<ist_request> early(20);
  for (std::size_t i = 0; i < early.size(); ++i)
    IST_OK_OR_FAIL(
        ist_isend(halves.out(i * kBytes), kBytes, IST_BYTE, other(), 900 + static_cast<int>(i), comm(), &early[i]));
  for (int n = 0; n < 300; ++n) {
    if ((n % 2 == 0) == (rank() == 0))
      IST_OK_OR_FAIL(ist_send(halves.out(7000), 50, IST_BYTE, other(), 3, comm()));
    else
      IST_OK_OR_FAIL(ist_recv(halves.in(7000), 50, IST_BYTE, other(), 3, comm(), IST_STATUS_IGNORE));
  }
  halves.came(7000, 7000, 50);
  for (std::size_t i = early.size(); i-- > 0;) {
    ist_status status{};
    IST_OK_OR_FAIL(
        ist_recv(halves.in(i * kBytes), kBytes, IST_BYTE, IST_ANY_SOURCE, 900 + static_cast<int>(i), comm(), &status));
    EXPECT_EQ(other(), status.source);
    halves.came(i * kBytes, i * kBytes, kBytes);
  }
  IST_OK_OR_FAIL(ist_waitall(static_cast<int>(early.size()), early.data(), IST_STATUSES_IGNORE));
  halves.check("after all");
}

TEST(Mailbox, TruncatedMessagesGiveTheirFirstBytesAndFreeTheirPlace) {
  NEEDS_A_PAIR();
  Halves halves;
  for (int n = 0; n < 200; ++n) {
    const std::size_t bytes = 2 + static_cast<std::size_t>(n) * 7 % 600;
    const std::size_t room = n % 3 == 0 ? 0 : bytes - 1 - static_cast<std::size_t>(n) % (bytes - 1);
    if ((n % 2 == 0) == (rank() == 0)) {
      IST_OK_OR_FAIL(ist_send(halves.out(0), count(bytes), IST_BYTE, other(), 3, comm()));
    } else {
      ist_status status{};
      EXPECT_EQ(IST_ERR_TRUNCATE, ist_recv(halves.in(0), count(room), IST_BYTE, other(), 3, comm(), &status));
      EXPECT_EQ(count(room), status.bytes);
      halves.came(0, 0, room);
    }
  }
  halves.check("truncated");
}

// The receiver's memory is none that a worker may touch; and one time in many it is.
TEST(Mailbox, IntoHostMemoryAndMemoryOfEveryClass) {
  NEEDS_A_PAIR();
  std::uint64_t seed = 5000;
  for (int n = 0; n < 60; ++n) {
    exchange(1 + static_cast<std::size_t>(n) * 11 % 700, seed += 2, 0, IST_KIND_HOST);
    if (n % 10 == 0) exchange(100, seed += 2);
  }
  for (const char* word : {"managed", "pool", "vmm", "shared_vmm", "shared_pool"}) {
    const Memory memory(word, 4096);
    const Memory plain("cuda", 4096);
    for (std::size_t n = 0; n < 30; ++n) {
      const std::size_t bytes = 1 + n * 31;
      const auto wanted = random_bytes(bytes, n);
      const Memory& own = n % 4 == 3 ? plain : memory;
      if (rank() == 0) {
        plain.fill(wanted);
        IST_OK_OR_FAIL(ist_send(plain.get(), count(bytes), IST_BYTE, 1, 3, comm()));
      } else {
        own.fill(std::vector<unsigned char>(bytes, 0xa5));
        IST_OK_OR_FAIL(ist_recv(own.get(), count(bytes), IST_BYTE, 0, 3, comm(), IST_STATUS_IGNORE));
        EXPECT_EQ(-1, first_difference(wanted, own.read(bytes))) << word << " " << bytes;
      }
    }
  }
}

TEST(Mailbox, ProbesMatchedReceivesPersistentAndSynchronousSendsKeepTheirMeaning) {
  NEEDS_A_PAIR();
  Halves halves;
  ist_request persistent = IST_REQUEST_NULL;
  if (rank() == 0)
    IST_OK_OR_FAIL(ist_send_init(halves.out(0), 100, IST_BYTE, 1, 3, comm(), &persistent));
  else
    IST_OK_OR_FAIL(ist_recv_init(halves.in(0), 100, IST_BYTE, 0, 3, comm(), &persistent));
  for (int n = 0; n < 200; ++n) {
    IST_OK_OR_FAIL(ist_start(&persistent));
    IST_OK_OR_FAIL(ist_wait(&persistent, IST_STATUS_IGNORE));
    if (rank() == 0) {
      ist_request first = IST_REQUEST_NULL;
      IST_OK_OR_FAIL(ist_isend(halves.out(200), 77, IST_BYTE, 1, 4, comm(), &first));
      IST_OK_OR_FAIL(ist_ssend(halves.out(300), 55, IST_BYTE, 1, 5, comm()));
      IST_OK_OR_FAIL(ist_wait(&first, IST_STATUS_IGNORE));
    } else {
      ist_message message = IST_MESSAGE_NULL;
      ist_status status{};
      IST_OK_OR_FAIL(ist_mprobe(IST_ANY_SOURCE, IST_ANY_TAG, comm(), &message, &status));
      EXPECT_EQ(4, status.tag);
      EXPECT_EQ(77, status.bytes);
      IST_OK_OR_FAIL(ist_recv(halves.in(300), 55, IST_BYTE, 0, 5, comm(), IST_STATUS_IGNORE));
      IST_OK_OR_FAIL(ist_mrecv(halves.in(200), 77, IST_BYTE, &message, IST_STATUS_IGNORE));
    }
  }
  IST_OK_OR_FAIL(ist_request_free(&persistent));
  if (rank() == 1) {
    halves.came(0, 0, 100);
    halves.came(200, 200, 77);
    halves.came(300, 300, 55);
  }
  halves.check("persistent, probed and synchronous");
}

// Several threads, each with a communicator of its own; some rest, so that workers leave and come back.
TEST(Mailbox, ManyThreadsAndCommunicatorsWhileWorkersComeAndGo) {
  NEEDS_A_PAIR();
  constexpr int kThreads = 4;
  constexpr int kMessages = 300;
  std::array<ist_comm, kThreads> comms{};
  const std::array<int, 2> pair{0, 1};
  for (int t = 0; t < kThreads; ++t)
    IST_OK_OR_FAIL(ist_comm_create_group(comm(), 2, pair.data(), t, &comms[static_cast<std::size_t>(t)]));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const Memory memory("cuda", 1024);
      const ist_comm own = comms[static_cast<std::size_t>(t)];
      for (int n = 0; n < kMessages; ++n) {
        const std::size_t bytes = 1 + static_cast<std::size_t>(n * 17 + t) % 1024;
        const auto seed = static_cast<std::uint64_t>(t * 100000 + n);
        const auto data = random_bytes(bytes, seed);
        if ((n + t) % 2 == rank()) {
          memory.fill(data);
          wrong += ist_send(memory.get(), count(bytes), IST_BYTE, other(), 3, own) != IST_OK;
        } else {
          memory.fill(std::vector<unsigned char>(bytes, 0xa5));
          wrong += ist_recv(memory.get(), count(bytes), IST_BYTE, other(), 3, own, IST_STATUS_IGNORE) != IST_OK;
          wrong += first_difference(data, memory.read(bytes)) >= 0;
        }
        if (t == 0 && n % 50 == 49) std::this_thread::sleep_for(std::chrono::milliseconds(3));
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(0, wrong.load());
  for (ist_comm& each : comms) IST_OK_OR_FAIL(ist_comm_free(&each));
}

// What a stream still writes is sent, and not what lay there before.
TEST(Mailbox, AMessageIsSentAfterWhatItsStreamHolds) {
  NEEDS_A_PAIR();
  const Memory memory("cuda", 64);
  for (int n = 0; n < 300; ++n) {
    const auto value = static_cast<unsigned char>(n + 1);
    if (rank() == 0) {
      memory.set_later(value, 64);
      IST_OK_OR_FAIL(ist_send(memory.get(), 64, IST_BYTE, 1, 3, comm()));
      IST_OK_OR_FAIL(ist_recv(memory.get(), 1, IST_BYTE, 1, 3, comm(), IST_STATUS_IGNORE));
    } else {
      IST_OK_OR_FAIL(ist_recv(memory.get(), 64, IST_BYTE, 0, 3, comm(), IST_STATUS_IGNORE));
      EXPECT_EQ(std::vector<unsigned char>(64, value), memory.read(64));
      IST_OK_OR_FAIL(ist_send(memory.get(), 1, IST_BYTE, 0, 3, comm()));
    }
  }
}

}  // namespace
