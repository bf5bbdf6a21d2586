// Messages out of host memory of the library's own, which the receiver copies from where it lies. Run as messages_test.cpp is.
#include <isthmus/collective.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <thread>

#include "rank_test.hpp"

namespace {

using namespace rank_test;

constexpr int kTag = 31;
constexpr std::size_t kEager = 16384;  // by default

// In bytes or KiB.
std::size_t eager_limit() {
  const char* given = std::getenv("ISTHMUS_EAGER_LIMIT");
  if (given == nullptr) return kEager;
  char* unit = nullptr;
  const std::size_t number = std::strtoull(given, &unit, 10);
  return std::string{unit} == "KiB" ? number * 1024 : number;
}

// Also where another rank shares none or wants none.
bool off() {
  if (std::getenv("ISTHMUS_TEST_NO_HEAP") != nullptr) return true;
  const char* heap = std::getenv("ISTHMUS_SHARED_HEAP");
  const char* copies = std::getenv("ISTHMUS_SINGLE_COPY");
  return (heap != nullptr && std::string{heap} == "0") || (copies != nullptr && std::string{copies} == "never");
}

class Owned {
 public:
  explicit Owned(std::size_t bytes) : bytes_(bytes) {
    EXPECT_EQ(IST_OK, ist_memory_alloc(world(), IST_KIND_HOST, 0, bytes, &buffer_)) << ist_error_text();
  }
  ~Owned() { EXPECT_EQ(IST_OK, ist_memory_free(world(), buffer_)) << ist_error_text(); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  unsigned char* data() const { return reinterpret_cast<unsigned char*>(buffer_.object); }
  void fill(const std::vector<unsigned char>& bytes, std::size_t at = 0) const {
    ASSERT_LE(at + bytes.size(), bytes_);
    std::copy(bytes.begin(), bytes.end(), data() + at);
  }

 private:
  std::size_t bytes_;
  ist_buffer buffer_{};
};

// Who blocks copies into a slot, or as the receiver does.
void send(const unsigned char* data, std::size_t bytes) {
  ist_request request = IST_REQUEST_NULL;
  IST_OK_OR_FAIL(ist_isend(ist_host(data), static_cast<std::int64_t>(bytes), IST_BYTE, 1, kTag, comm(), &request));
  IST_OK_OR_FAIL(ist_wait(&request, IST_STATUS_IGNORE));
}

bool by_single_copy(int carrier) { return carrier == IST_CARRIER_DIRECT; }

// Shorter ones go so where a message out of that place has gone lately.
constexpr std::size_t kWhatever = 128 << 10;

TEST(Heap, WhatLiesThereTakesOneCopyFromAnyPlaceOfIt) {
  if (size() < 2) GTEST_SKIP() << "not covered here: takes two ranks";
  constexpr std::size_t kRoom = 6 << 20;
  const Owned memory(kRoom + 100);
  std::vector<unsigned char> in(kRoom + 100);
  for (const std::size_t bytes : border_sizes())
    for (const auto& [at, again] :
         {std::pair{std::size_t{0}, false}, {std::size_t{0}, true}, {std::size_t{61}, false}, {std::size_t{61}, true}}) {
      const auto wanted = random_bytes(bytes, 2 * bytes + at + (again ? 1 : 0));
      const auto count = static_cast<std::int64_t>(bytes);
      if (rank() == 0) {
        memory.fill(wanted, at);
        send(memory.data() + at, bytes);
      } else if (rank() == 1) {
        std::fill(in.begin(), in.end(), static_cast<unsigned char>(0xa5));
        ist_status status{};
        IST_OK_OR_FAIL(ist_recv(ist_host(in.data() + at), count, IST_BYTE, 0, kTag, comm(), &status));
        EXPECT_EQ(count, status.bytes);
        std::vector<unsigned char> expected(in.size(), 0xa5);
        std::copy(wanted.begin(), wanted.end(), expected.begin() + static_cast<std::ptrdiff_t>(at));
        EXPECT_EQ(-1, first_difference(expected, in)) << bytes << " bytes at " << at;
        // Above a limit that is lower than the default one slots may be cheaper than one copy that is announced, or not.
        const bool either = (bytes > eager_limit() && bytes <= kEager) || (!again && bytes < kWhatever);
        if (!off() && !either) {
          EXPECT_EQ(bytes > eager_limit(), by_single_copy(status.carrier))
              << bytes << " bytes by " << ist_carrier_name(status.carrier);
        }
      }
    }
}

// What may be just written: its receiver would take it out of the sender's cache.
TEST(Heap, ShortOnesOfManyPlacesGoInSlots) {
  if (size() < 2) GTEST_SKIP() << "not covered here: takes two ranks";
  constexpr std::size_t kPlaces = 20;
  constexpr std::size_t kBytes = 65535;
  const Owned memory(kPlaces * kWhatever);
  std::vector<unsigned char> in(kWhatever);
  const auto one = [&](std::size_t place, std::size_t bytes, std::uint64_t seed, std::optional<bool> direct) {
    const auto wanted = random_bytes(bytes, seed);
    if (rank() == 0) {
      memory.fill(wanted, place * kWhatever);
      send(memory.data() + place * kWhatever, bytes);
    } else if (rank() == 1) {
      std::fill(in.begin(), in.end(), static_cast<unsigned char>(0xa5));
      ist_status status{};
      IST_OK_OR_FAIL(ist_recv(ist_host(in.data()), static_cast<std::int64_t>(bytes), IST_BYTE, 0, kTag, comm(), &status));
      EXPECT_EQ(-1, first_difference(wanted, {in.data(), in.data() + bytes})) << "place " << place;
      if (direct && !off() && eager_limit() == kEager) {
        EXPECT_EQ(*direct, by_single_copy(status.carrier))
            << bytes << " bytes at " << place << " by " << ist_carrier_name(status.carrier);
      }
    }
  };
  // There may have been messages out of the same places before, when they were others' memory. And slots may not take them: because a message has gone into a device, or
  // one copy was measured to be quicker.
  const auto other = random_bytes(kBytes, 400);
  bool slots = true;
  if (rank() == 0) {
    ist_request request = IST_REQUEST_NULL;
    IST_OK_OR_FAIL(ist_isend(ist_host(other.data()), kBytes, IST_BYTE, 1, kTag, comm(), &request));
    IST_OK_OR_FAIL(ist_wait(&request, IST_STATUS_IGNORE));
  } else if (rank() == 1) {
    ist_status status{};
    IST_OK_OR_FAIL(ist_recv(ist_host(in.data()), kBytes, IST_BYTE, 0, kTag, comm(), &status));
    slots = status.carrier == IST_CARRIER_SLOT;
  }
  for (std::size_t place = 0; place < kPlaces; ++place) one(place, kBytes, place, std::nullopt);
  for (std::size_t place = 0; place < kPlaces; ++place) one(place, kBytes, 100 + place, !slots);
  one(kPlaces - 1, kBytes, 300, true);
  one(kPlaces - 1, kWhatever - 1, 301, true);
  one(0, kWhatever - 1, 302, !slots);
  one(1, kWhatever, 303, true);
}

std::uint64_t received_by_single_copy(int from) {
  ist_traffic found{};
  found.size = sizeof found;
  EXPECT_EQ(IST_OK, ist_world_traffic(world(), from, IST_CARRIER_SINGLE_COPY, &found)) << ist_error_text();
  return found.messages_received;
}

// Which no slot may have, or whose sender does not say that its place will be used again.
TEST(Heap, SynchronousOnesAndCollectiveCallsTakeOneCopyFromAnyPlace) {
  if (size() < 2) GTEST_SKIP() << "not covered here: takes two ranks";
  constexpr std::size_t kPlaces = 20;
  constexpr std::size_t kBytes = 100000;
  const Owned memory(kPlaces * kWhatever);
  for (std::size_t place = 0; place < kPlaces; ++place) {
    unsigned char* const here = memory.data() + place * kWhatever;
    const auto wanted = random_bytes(kBytes, 500 + place);
    if (rank() == 0) {
      memory.fill(wanted, place * kWhatever);
      ist_request request = IST_REQUEST_NULL;
      IST_OK_OR_FAIL(ist_issend(ist_host(here), kBytes, IST_BYTE, 1, kTag, comm(), &request));
      IST_OK_OR_FAIL(ist_wait(&request, IST_STATUS_IGNORE));
    } else if (rank() == 1) {
      ist_status status{};
      std::vector<unsigned char> in(kBytes, 0xa5);
      IST_OK_OR_FAIL(ist_recv(ist_host(in.data()), kBytes, IST_BYTE, 0, kTag, comm(), &status));
      EXPECT_EQ(-1, first_difference(wanted, in)) << "place " << place;
      EXPECT_TRUE(off() || by_single_copy(status.carrier))
          << "place " << place << " by " << ist_carrier_name(status.carrier);
    }
    const std::uint64_t before = rank() == 0 ? 0 : received_by_single_copy(0);
    if (rank() != 0) std::fill_n(here, kBytes, static_cast<unsigned char>(0xa5));
    IST_OK_OR_FAIL(ist_bcast(ist_host(here), kBytes, IST_BYTE, 0, comm()));
    EXPECT_EQ(-1, first_difference(wanted, {here, here + kBytes})) << "place " << place;
    if (rank() == 1 && size() == 2 && !off() && eager_limit() == kEager) {
      EXPECT_EQ(before + 1, received_by_single_copy(0)) << "place " << place;
    }
  }
}

// More of them than there are words that say which still are.
TEST(Heap, ManyThatWaitForTheirReceivesAllArrive) {
  if (size() < 2) GTEST_SKIP() << "not covered here: takes two ranks";
  constexpr int kMessages = 1300;
  constexpr std::size_t kBytes = 17000;
  // Out of so few places that a message came out of each lately, but for the first of each.
  constexpr int kPlaces = 8;
  const Owned memory(kPlaces * kBytes);
  std::vector<ist_request> requests;
  if (rank() == 0) {
    for (int place = 0; place < kPlaces; ++place)
      memory.fill(random_bytes(kBytes, static_cast<std::uint64_t>(place)), at(place) * kBytes);
    for (int i = 0; i < kMessages; ++i)
      IST_OK_OR_FAIL(ist_isend(ist_host(memory.data() + at(i % kPlaces) * kBytes), kBytes, IST_BYTE, 1, i % 3, comm(),
                               &requests.emplace_back()));
    IST_OK_OR_FAIL(ist_waitall(kMessages, requests.data(), IST_STATUSES_IGNORE));
  } else if (rank() == 1) {
    std::vector<unsigned char> in(kBytes);
    for (int tag = 2; tag >= 0; --tag)
      for (int i = tag; i < kMessages; i += 3) {
        std::fill(in.begin(), in.end(), static_cast<unsigned char>(0xa5));
        IST_OK_OR_FAIL(ist_recv(ist_host(in.data()), kBytes, IST_BYTE, 0, tag, comm(), IST_STATUS_IGNORE));
        EXPECT_EQ(-1, first_difference(random_bytes(kBytes, static_cast<std::uint64_t>(i % kPlaces)), in))
            << "message " << i;
      }
  }
}

TEST(Heap, MemoryThatIsFreedRightAfterItsMessageIsNeverReadLater) {
  if (size() < 2) GTEST_SKIP() << "not covered here: takes two ranks";
  for (std::uint64_t round = 0; round < 300; ++round) {
    const std::size_t bytes = 17000 + round % 5 * 100000;
    const auto wanted = random_bytes(bytes, round);
    if (rank() == 0) {
      const Owned memory(bytes);
      memory.fill(wanted);
      if (round % 3 == 0)
        IST_OK_OR_FAIL(ist_send(ist_host(memory.data()), static_cast<std::int64_t>(bytes), IST_BYTE, 1, kTag, comm()));
      else
        send(memory.data(), bytes);
      std::fill(memory.data(), memory.data() + bytes, static_cast<unsigned char>(0xee));
    } else if (rank() == 1) {
      const Owned in(bytes);
      IST_OK_OR_FAIL(
          ist_recv(ist_host(in.data()), static_cast<std::int64_t>(bytes), IST_BYTE, 0, kTag, comm(), IST_STATUS_IGNORE));
      EXPECT_EQ(-1, first_difference(wanted, {in.data(), in.data() + bytes})) << "round " << round;
    }
  }
}

// Every rank to every other one, from several threads where the library was told of them.
TEST(Heap, AllRanksAndSeveralThreadsAtOnceKeepApart) {
  if (size() < 2) GTEST_SKIP() << "not covered here: takes two ranks";
  const char* threads_setting = std::getenv("ISTHMUS_THREADS");
  const int kThreads = threads_setting != nullptr && std::string{threads_setting} == "single" ? 1 : 3;
  constexpr std::size_t kBytes = 40001;
  const auto seed = [&](int from, int to, int thread, int round) {
    return static_cast<std::uint64_t>(((from * size() + to) * kThreads + thread) * 1000 + round);
  };
  const auto one = [&](int thread) {
    for (int round = 0; round < 20; ++round) {
      const Owned out(kBytes * at(size()));
      const Owned in(kBytes * at(size()));
      std::vector<ist_request> requests;
      for (int other = 0; other < size(); ++other)
        ASSERT_EQ(IST_OK, ist_irecv(ist_host(in.data() + at(other) * kBytes), kBytes, IST_BYTE, other, thread, comm(),
                                    &requests.emplace_back()));
      for (int other = 0; other < size(); ++other) {
        out.fill(random_bytes(kBytes, seed(rank(), other, thread, round)), at(other) * kBytes);
        ASSERT_EQ(IST_OK, ist_isend(ist_host(out.data() + at(other) * kBytes), kBytes, IST_BYTE, other, thread, comm(),
                                    &requests.emplace_back()));
      }
      ASSERT_EQ(IST_OK, ist_waitall(static_cast<int>(requests.size()), requests.data(), IST_STATUSES_IGNORE));
      for (int other = 0; other < size(); ++other) {
        const unsigned char* const from = in.data() + at(other) * kBytes;
        EXPECT_EQ(-1, first_difference(random_bytes(kBytes, seed(other, rank(), thread, round)), {from, from + kBytes}))
            << "from rank " << other << ", thread " << thread << ", round " << round;
      }
    }
  };
  std::vector<std::thread> threads;
  for (int thread = 1; thread < kThreads; ++thread) threads.emplace_back(one, thread);
  one(0);
  for (auto& thread : threads) thread.join();
}

// The same bytes from the same place by each call that sends and receives them, into each kind.
TEST(Heap, EveryCallThatSendsAndEveryKindThatReceivesGetsTheBytes) {
  if (size() < 2) GTEST_SKIP() << "not covered here: takes two ranks";
  using Send = int (*)(ist_buffer, std::int64_t, ist_type, int, int, ist_comm, ist_request*);
  const Owned memory(600001);
  for (const KindName& kind : usable_kinds())
    for (const std::int64_t bytes : {17001, 600001}) {
      const auto count = static_cast<std::size_t>(bytes);
      GuardedBuffer in(kind.kind, count);
      std::uint64_t seed = count;
      // Each start is another message.
      for (const Send make : {Send{ist_send_init}, Send{ist_ssend_init}}) {
        ist_request request = IST_REQUEST_NULL;
        if (rank() == 0) IST_OK_OR_FAIL(make(ist_host(memory.data()), bytes, IST_BYTE, 1, kTag, comm(), &request));
        if (rank() == 1) IST_OK_OR_FAIL(ist_recv_init(in.get(), bytes, IST_BYTE, 0, kTag, comm(), &request));
        for (int start = 0; start < 5 && rank() < 2; ++start) {
          const auto wanted = random_bytes(count, ++seed);
          if (rank() == 0) memory.fill(wanted);
          if (rank() == 1) in.poison();
          IST_OK_OR_FAIL(ist_start(&request));
          IST_OK_OR_FAIL(ist_wait(&request, IST_STATUS_IGNORE));
          if (rank() == 1) in.expect(wanted, std::string{"a persistent send into "} + kind.name);
        }
        if (rank() < 2) IST_OK_OR_FAIL(ist_request_free(&request));
      }
      const auto wanted = random_bytes(count, 4);
      if (rank() == 0) {
        memory.fill(wanted);
        ist_request requests[2];
        IST_OK_OR_FAIL(ist_issend(ist_host(memory.data()), bytes, IST_BYTE, 1, kTag, comm(), &requests[0]));
        IST_OK_OR_FAIL(ist_isend(ist_host(memory.data()), bytes, IST_BYTE, 1, kTag + 1, comm(), &requests[1]));
        IST_OK_OR_FAIL(ist_waitall(2, requests, IST_STATUSES_IGNORE));
      } else if (rank() == 1) {
        // The second first, which is kept until it is asked for, and set aside.
        ist_message message = IST_MESSAGE_NULL;
        ist_status status{};
        IST_OK_OR_FAIL(ist_mprobe(0, kTag + 1, comm(), &message, &status));
        EXPECT_EQ(bytes, status.bytes);
        for (const bool first : {false, true}) {
          in.poison();
          IST_OK_OR_FAIL(first ? ist_recv(in.get(), bytes, IST_BYTE, 0, kTag, comm(), &status)
                               : ist_mrecv(in.get(), bytes, IST_BYTE, &message, &status));
          in.expect(wanted, std::string{"a probed message into "} + kind.name);
        }
      }
    }
}

TEST(Heap, AMessageLongerThanItsReceiveIsTruncated) {
  if (size() < 2) GTEST_SKIP() << "not covered here: takes two ranks";
  constexpr std::size_t kBytes = kWhatever + 1;
  const Owned memory(kBytes);
  const auto data = random_bytes(kBytes, 4);
  for (const std::size_t room : {std::size_t{0}, std::size_t{1}, std::size_t{20000}, kBytes - 1}) {
    if (rank() == 0) {
      memory.fill(data);
      send(memory.data(), kBytes);
    } else if (rank() == 1) {
      std::vector<unsigned char> in(kBytes, 0xa5);
      ist_status status{};
      EXPECT_EQ(IST_ERR_TRUNCATE,
                ist_recv(ist_host(in.data()), static_cast<std::int64_t>(room), IST_BYTE, 0, kTag, comm(), &status));
      EXPECT_EQ(static_cast<std::int64_t>(room), status.bytes);
      std::vector<unsigned char> expected(kBytes, 0xa5);
      std::copy_n(data.begin(), room, expected.begin());
      EXPECT_EQ(-1, first_difference(expected, in)) << room;
    }
  }
}

}  // namespace
