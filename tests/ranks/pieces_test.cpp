// Messages that are received while they are written, piece by piece, whose writer is held up in between: by a page of its buffer that cannot be
// read for some milliseconds. Of two ranks.
#include <isthmus/collective.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>

#include "held_memory.hpp"
#include "rank_test.hpp"

using namespace rank_test;
using held_memory::HeldMemory;

namespace {

constexpr int kTag = 5;
constexpr long kHeldUp = 3;  // milliseconds
constexpr std::size_t kPiece = 8192;
constexpr auto kUntilItWaits = std::chrono::microseconds{200};  // and has not given up looking for messages alone

enum class How { blocking, of_any_tag, posted, after_a_short_one };

void send_held(const std::vector<unsigned char>& bytes, std::size_t page, How how) {
  HeldMemory memory(bytes);
  memory.hold(page, kHeldUp);
  IST_OK_OR_FAIL(ist_barrier(comm()));
  const unsigned char word[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  if (how == How::after_a_short_one) {
    IST_OK_OR_FAIL(ist_send(ist_host(word), sizeof word, IST_BYTE, 1, kTag, comm()));
  }
  std::this_thread::sleep_for(kUntilItWaits);
  IST_OK_OR_FAIL(ist_send(ist_host(memory.data()), static_cast<std::int64_t>(bytes.size()), IST_BYTE, 1, kTag, comm()));
}

void receive(GuardedBuffer& in, std::size_t room, std::size_t size, How how) {
  ist_status status{};
  ist_request request = IST_REQUEST_NULL;
  const auto most = static_cast<std::int64_t>(room);
  if (how == How::posted) IST_OK_OR_FAIL(ist_irecv(in.get(), most, IST_BYTE, 0, kTag, comm(), &request));
  IST_OK_OR_FAIL(ist_barrier(comm()));
  unsigned char word[8] = {};
  if (how == How::after_a_short_one) {
    IST_OK_OR_FAIL(ist_recv(ist_host(word), sizeof word, IST_BYTE, 0, kTag, comm(), IST_STATUS_IGNORE));
  }
  if (how == How::posted) {
    IST_OK_OR_FAIL(ist_wait(&request, &status));
  } else {
    IST_OK_OR_FAIL(ist_recv(in.get(), most, IST_BYTE, 0, how == How::of_any_tag ? IST_ANY_TAG : kTag, comm(), &status));
  }
  EXPECT_EQ(0, status.source);
  EXPECT_EQ(kTag, status.tag);
  EXPECT_EQ(static_cast<std::int64_t>(size), status.bytes);
  EXPECT_EQ(IST_CARRIER_SLOT, status.carrier);
}

TEST(Pieces, AMessageWhoseWriterIsHeldUpArrivesWhole) {
  std::uint64_t seed = 0;
  for (const How how : {How::blocking, How::of_any_tag, How::posted, How::after_a_short_one})
    for (const std::size_t size : {kPiece, kPiece + 1, 2 * kPiece, 5 * kPiece - 1, 8 * kPiece, 16 * kPiece})
      for (const std::size_t page :
           {std::size_t{0}, std::size_t{1}, size / 2 / HeldMemory::page_size(), (size - 1) / HeldMemory::page_size()}) {
        const auto bytes = random_bytes(size, ++seed);
        GuardedBuffer in(IST_KIND_HOST, size + 100);
        if (rank() == 0) send_held(bytes, page, how);
        if (rank() == 1) {
          receive(in, size + 100, size, how);
          in.expect(bytes, std::to_string(size) + " bytes, page " + std::to_string(page));
        }
        ASSERT_FALSE(HasFailure());
      }
}

// The bytes behind it are in none of the messages, whichever thread has which: a receive that has begun with the long one gets it.
TEST(Pieces, TwoThreadsThatReceiveHaveEachAMessageAndNothingOfTheOthers) {
  const auto bytes = random_bytes(8 * kPiece, 77);
  const auto few = random_bytes(100, 78);
  for (int round = 0; round < 10; ++round) {
    if (rank() == 0) {
      send_held(bytes, 3, How::blocking);
      IST_OK_OR_FAIL(ist_send(ist_host(few.data()), 100, IST_BYTE, 1, kTag, comm()));
    } else if (rank() == 1) {
      GuardedBuffer first(IST_KIND_HOST, 8 * kPiece);
      GuardedBuffer second(IST_KIND_HOST, 8 * kPiece);
      std::array<ist_status, 2> statuses{};
      IST_OK_OR_FAIL(ist_barrier(comm()));
      std::thread other([&] {
        // What is posted is asked first, of every message that is whole.
        std::this_thread::sleep_for(5 * kUntilItWaits);
        ist_request request = IST_REQUEST_NULL;
        EXPECT_EQ(IST_OK, ist_irecv(second.get(), 8 * kPiece, IST_BYTE, 0, kTag, comm(), &request)) << ist_error_text();
        EXPECT_EQ(IST_OK, ist_wait(&request, &statuses[1])) << ist_error_text();
      });
      EXPECT_EQ(IST_OK, ist_recv(first.get(), 8 * kPiece, IST_BYTE, 0, kTag, comm(), &statuses[0])) << ist_error_text();
      other.join();
      const bool long_first = statuses[0].bytes == static_cast<std::int64_t>(8 * kPiece);
      EXPECT_EQ(long_first ? 100 : static_cast<std::int64_t>(8 * kPiece), statuses[1].bytes);
      (long_first ? first : second).expect(bytes, "the long one");
      (long_first ? second : first).expect(few, "the short one");
    }
    ASSERT_FALSE(HasFailure());
  }
}

// Calls that go by messages, one after the other, receive so, too: 16 KiB, which are as much as that.
TEST(Pieces, CollectiveCallsWhoseRootIsHeldUpArriveWhole) {
  constexpr std::int64_t kBytes = 2 * kPiece;
  const auto mine = random_bytes(kBytes, 79);
  for (const bool gathers : {false, true})
    for (const std::size_t page : {0U, 2U, 3U}) {
      GuardedBuffer in(IST_KIND_HOST, (gathers ? 2U : 1U) * kBytes);
      HeldMemory memory(rank() == 0 ? mine : random_bytes(kBytes, 80));
      if (rank() == 0) memory.hold(page, kHeldUp);
      IST_OK_OR_FAIL(ist_barrier(comm()));
      if (rank() == 0) std::this_thread::sleep_for(kUntilItWaits);
      if (gathers) {
        IST_OK_OR_FAIL(ist_allgather(ist_host(memory.data()), kBytes, in.get(), kBytes, IST_BYTE, comm()));
        auto all = mine;
        const auto others = random_bytes(kBytes, 80);
        all.insert(all.end(), others.begin(), others.end());
        in.expect(all, "an allgather");
      } else if (rank() == 0) {
        IST_OK_OR_FAIL(ist_bcast(ist_host(memory.data()), kBytes, IST_BYTE, 0, comm()));
      } else {
        IST_OK_OR_FAIL(ist_bcast(in.get(), kBytes, IST_BYTE, 0, comm()));
        in.expect(mine, "a broadcast");
      }
    }
}

// Longer than slots take: once loops have gone round all of the ring, its receiver has some go the other way, by the word that it answers with.
TEST(Pieces, OfLongMessagesEveryByteArrivesWhicheverWayTheyGoRoundTheRing) {
  constexpr int kMessages = 80;
  constexpr std::size_t kLong = 16 * kPiece + 1;
  for (int number = 0; number < kMessages; ++number) {
    const std::size_t bytes = kLong + static_cast<std::size_t>(number) * 3;
    const auto wanted = random_bytes(bytes, 1000 + static_cast<std::uint64_t>(number));
    const auto count = static_cast<std::int64_t>(bytes);
    if (rank() == 0) {
      IST_OK_OR_FAIL(ist_send(ist_host(wanted.data()), count, IST_BYTE, 1, kTag, comm()));
      continue;
    }
    GuardedBuffer in(IST_KIND_HOST, bytes + 100);
    IST_OK_OR_FAIL(ist_recv(in.get(), count + 100, IST_BYTE, 0, kTag, comm(), IST_STATUS_IGNORE));
    in.expect(wanted, "message " + std::to_string(number));
    ASSERT_FALSE(HasFailure());
  }
}

}  // namespace
