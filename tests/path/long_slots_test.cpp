// Messages that are longer than others in slots may be, in the room of a pair that has much of it: where they lie, how far ahead they go, and what lies between them.
#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <random>
#include <thread>

#include "path/shm/pair_slots.hpp"
#include "test_world.hpp"

namespace ist::test {
namespace {

class LongSlots : public ::testing::Test {
 protected:
  const PairSlotShape shape_ = pair_slot_shape(2, kUsualEager);
  std::vector<PairSlot> slots_ = std::vector<PairSlot>(shape_.in_memory());
  std::atomic<std::uint64_t> consumed_{0};
  PairSlotWriter writer_{slots_.data(), &consumed_, shape_};
  PairSlotReader reader_{slots_.data(), &consumed_, shape_};

  const std::byte* room() const { return reinterpret_cast<const std::byte*>(slots_.data() + shape_.slots); }
  std::size_t place_of(const PairSlot& slot) const {
    return static_cast<std::size_t>(reader_.payload(slot).data() - room());
  }
  // One there and out again; where its bytes lay.
  std::size_t pass(std::size_t size) {
    EXPECT_TRUE(writer_.post({}, std::vector<std::byte>(size)));
    const PairSlot* const slot = reader_.front();
    if (slot == nullptr) return ~std::size_t{0};
    const std::size_t place = place_of(*slot);
    reader_.pop();
    return place;
  }
};

constexpr std::size_t kFirstPartBytes = kFirstPart * kBlock;

TEST_F(LongSlots, ShortMessagesGoRoundTheFirstPartAndLongOnesRoundAll) {
  std::size_t last = 0;
  for (int i = 0; i < 200; ++i) {
    const std::size_t place = pass(kPairPayload);
    EXPECT_LT(place, kFirstPartBytes);
    EXPECT_TRUE(place == 0 || place > last) << i;
    last = place;
  }
  std::size_t furthest = 0;
  for (int i = 0; i < 200; ++i) furthest = std::max(furthest, pass(kPairPayload + 1));
  EXPECT_GT(furthest, shape_.room().value - kPairPayloadAgain);
}

TEST_F(LongSlots, AShortMessageBehindALongOneInTheRestBeginsTheNextRound) {
  while (pass(kPairPayloadAgain) < kFirstPartBytes) continue;
  EXPECT_EQ(0U, pass(kSkipping));
  // Few bytes leave nothing free.
  while (pass(kPairPayloadAgain) < kFirstPartBytes) continue;
  pass(24);
  EXPECT_GE(pass(kSkipping - 1), kFirstPartBytes);
  EXPECT_GE(pass(kPairPayloadAgain), kFirstPartBytes);
}

// A message that is begun behind a long one in the rest lies where all of it will.
TEST_F(LongSlots, APieceOfAMessageBehindALongOneIsFoundWhereItLies) {
  while (pass(kPairPayloadAgain) < kFirstPartBytes) continue;
  const std::vector<std::byte> bytes(65536, std::byte{0x5a});
  PairSlot* const slot = writer_.begin(bytes.size());
  ASSERT_NE(nullptr, slot);
  slot->whole.envelope = {};
  writer_.finish(*slot, bytes.data(), bytes.size(), true);
  const std::uint64_t whole = slot->turn.load();
  slot->turn = begun_at(whole >> 22U, kPieceShown);
  ASSERT_EQ(nullptr, reader_.front());
  ASSERT_EQ(slot, reader_.begun());
  const auto shown = reader_.look_again(*slot);
  EXPECT_EQ(room(), shown.data());
  ASSERT_EQ(kPieceShown, shown.size());
  EXPECT_EQ(std::byte{0x5a}, shown.back());
  slot->turn = whole;
  ASSERT_EQ(slot, reader_.front());
  EXPECT_EQ(room(), reader_.payload(*slot).data());
}

#if defined(__x86_64__)
// Where a round begins, a reader with nothing behind its message waits for a moment, and no longer.
TEST_F(LongSlots, AReaderThatIsToStayBehindWaitsForAMoment) {
  constexpr std::size_t kSize = 65536;
  constexpr auto kMoment = std::chrono::nanoseconds{4000 + kSize / 32};
  std::vector<std::byte> found(kSize);
  const auto take = [&] {
    EXPECT_TRUE(writer_.post({}, std::vector<std::byte>(kSize)));
    const auto begun = std::chrono::steady_clock::now();
    reader_.copy_out(found.data(), reader_.payload(*reader_.front()));
    reader_.pop();
    return std::chrono::steady_clock::now() - begun;
  };
  auto longest = std::chrono::nanoseconds{0};
  // The first one goes where none went, the next four are the first look, and then there are as many as a verdict has.
  for (std::uint32_t n = 0; n <= KeepingDistance::kLookAfter * (1 + KeepingDistance::kLooks); ++n) take();
  for (int n = 0; n < 3; ++n) longest = std::max(longest, std::chrono::nanoseconds{take()});
  EXPECT_GE(longest, kMoment);
}
#endif

TEST_F(LongSlots, LongMessagesLieNoFurtherAheadThanIsGood) {
  const std::vector<std::byte> longest(kPairPayloadAgain);
  EXPECT_FALSE(writer_.post({}, std::vector<std::byte>(kPairPayloadAgain + 1)));
  std::uint64_t posted = 0;
  while (writer_.post({}, longest)) ++posted;
  EXPECT_EQ(lead_in(shape_.blocks) / blocks_taken(kPairPayloadAgain, shape_.blocks), posted);
  EXPECT_TRUE(writer_.post({}, std::vector<std::byte>(kPairPayload))) << "of which more may lie there";
  EXPECT_FALSE(writer_.post({}, longest));
  EXPECT_FALSE(writer_.news());
  for (std::uint64_t read = 0; !writer_.news(); ++read) {
    ASSERT_LT(read, posted);
    ASSERT_NE(nullptr, reader_.front());
    reader_.pop();
  }
  EXPECT_TRUE(writer_.post({}, longest));
}

// Whatever was sent before, once all is read any message has room; and each is whole.
TEST_F(LongSlots, AnyMixtureArrivesWholeAndEndsNowhere) {
  std::mt19937_64 random{std::random_device{}()};
  const std::array<std::size_t, 10> sizes{
      0, 24, 25, 8193, 32768, 65537, kPairPayload, kPairPayload + 1, 200000, kPairPayloadAgain};
  std::vector<std::byte> bytes(kPairPayloadAgain + sizes.size());
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  for (int round = 0; round < 400 && !HasFailure(); ++round) {
    std::deque<std::size_t> sent;  // what, counted in sizes, which is where in `bytes` it begins, too
    for (std::size_t what = random() % sizes.size(); writer_.post({}, std::span{bytes}.subspan(what, sizes.at(what)));
         what = random() % sizes.size())
      sent.push_back(what);
    ASSERT_FALSE(sent.empty()) << "nothing lies there, and there is no room";
    const std::size_t left = random() % 2 == 0 ? random() % sent.size() : 0;
    for (; sent.size() > left; sent.pop_front()) {
      const PairSlot* const slot = reader_.front();
      ASSERT_NE(nullptr, slot);
      const auto found = reader_.payload(*slot);
      ASSERT_EQ(sizes.at(sent.front()), found.size());
      ASSERT_TRUE(std::equal(found.begin(), found.end(), bytes.begin() + static_cast<std::ptrdiff_t>(sent.front())));
      reader_.pop();
    }
    for (; !sent.empty(); sent.pop_front()) reader_.front(), reader_.pop();
  }
}

// A reader that is to stay behind waits for a writer that goes on, and not for long for one that does not.
TEST_F(LongSlots, AReaderThatStaysBehindGetsAllOfEveryWindow) {
  constexpr std::uint64_t kMessages = 600;
  constexpr std::uint64_t kWindow = 24;
  std::vector<std::byte> source(kPairPayloadAgain);
  const auto mark = [](std::byte* bytes, std::size_t size, std::uint64_t number) {
    std::memcpy(bytes, &number, sizeof number);
    std::memcpy(bytes + size - sizeof number, &number, sizeof number);
  };
  const auto size_of = [](std::uint64_t number) { return number % 3 == 0 ? kPairPayload : kPairPayloadAgain; };
  std::atomic<std::uint64_t> windows{0};
  std::thread sender{[&] {
    for (std::uint64_t number = 0; number < kMessages; ++number) {
      while (number / kWindow > windows.load()) std::this_thread::yield();
      mark(source.data(), size_of(number), number);
      while (!writer_.post({}, std::span{source}.first(size_of(number)))) std::this_thread::yield();
    }
  }};
  std::vector<std::byte> found(kPairPayloadAgain), expected(kPairPayloadAgain);
  std::uint64_t number = 0;
  for (; number < kMessages; ++number) {
    const PairSlot* slot = reader_.front();
    for (; slot == nullptr; slot = reader_.front()) std::this_thread::yield();
    const auto payload = reader_.payload(*slot);
    if (payload.size() != size_of(number)) break;
    reader_.copy_out(found.data(), payload);
    mark(expected.data(), payload.size(), number);
    EXPECT_EQ(0, std::memcmp(expected.data(), found.data(), sizeof number)) << number;
    const std::size_t last = payload.size() - sizeof number;
    EXPECT_EQ(0, std::memcmp(expected.data() + last, found.data() + last, sizeof number)) << number;
    reader_.pop();
    if ((number + 1) % kWindow == 0) ++windows;
  }
  windows = kMessages;
  for (std::uint64_t left = number; left < kMessages; ++left)  // so that the writer ends, whatever was wrong
    while (reader_.front() == nullptr) std::this_thread::yield();
  sender.join();
  EXPECT_EQ(kMessages, number);
}

}  // namespace
}  // namespace ist::test
