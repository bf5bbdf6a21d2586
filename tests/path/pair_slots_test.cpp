// The slots of a pair alone: messages that share one, that have one to themselves, and messages in the room beside them, at every place, with the
// worst bytes there are.
#include <algorithm>
#include <array>
#include <bit>
#include <random>
#include <thread>
#include <tuple>

#include "test_world.hpp"

namespace ist::test {
namespace {

// Few slots for short messages, and many for long ones. Whichever way the reader looks, it finds the same.
class PairSlots : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  const PairSlotShape shape_ = pair_slot_shape(GetParam(), kUsualEager);
  std::vector<PairSlot> slots_ = std::vector<PairSlot>(shape_.in_memory());
  std::atomic<std::uint64_t> consumed_{0};
  PairSlotWriter writer_{slots_.data(), &consumed_, shape_};
  PairSlotReader reader_{slots_.data(), &consumed_, shape_};

  // Bytes of a message at `position`, each word of which is what the reader looks for after it, or has its number.
  static std::vector<std::byte> malicious(std::uint64_t position, std::size_t size, std::uint64_t number);
  bool holds(const PairSlot& slot, std::uint64_t number, const std::vector<std::byte>& bytes) const;
  void pass(std::uint64_t& number, std::size_t size);
  // One that may share a line: its tag and bytes follow from its number.
  bool add(std::uint32_t number, std::uint32_t context, std::size_t size);
  void expect_shared(std::uint32_t number, std::uint32_t context, std::size_t size);
  // How many lines have been begun.
  std::size_t lines() const;
};
INSTANTIATE_TEST_SUITE_P(OfRanks, PairSlots, ::testing::Values(2U, 4U, 32U, 128U, 4096U));

std::vector<std::byte> PairSlots::malicious(std::uint64_t position, std::size_t size, std::uint64_t number) {
  std::vector<std::byte> bytes(size);
  for (std::size_t at = 0; at < size; at += 8) {
    const std::uint64_t shared = number % 2 == 0 ? kSharedBit : 0;
    const std::uint64_t word = at % 64 == 0 ? turn_at(position + 1, shared | number % 217) : number * 8191 + at;
    std::memcpy(bytes.data() + at, &word, std::min<std::size_t>(8, size - at));
  }
  return bytes;
}

bool PairSlots::holds(const PairSlot& slot, std::uint64_t number, const std::vector<std::byte>& bytes) const {
  const auto payload = reader_.payload(slot);
  return reader_.envelope(slot).sequence == static_cast<std::uint32_t>(number) && payload.size() == bytes.size() &&
         std::equal(payload.begin(), payload.end(), bytes.begin());
}

Envelope numbered(std::uint64_t number) {
  Envelope envelope;
  envelope.sequence = static_cast<std::uint32_t>(number);
  return envelope;
}

// One message there and out again, and nothing behind it. Its number counts on.
void PairSlots::pass(std::uint64_t& number, std::size_t size) {
  const auto bytes = malicious(number, size, number);
  ASSERT_TRUE(writer_.post(numbered(number), bytes)) << number;
  const PairSlot* slot = reader_.front();
  ASSERT_NE(nullptr, slot) << number;
  ASSERT_TRUE(holds(*slot, number, bytes)) << number << ", " << size << " bytes";
  reader_.pop();
  ASSERT_FALSE(reader_.ready()) << "after message " << number;
  ASSERT_EQ(nullptr, reader_.front()) << "after message " << number;
  ++number;
}

std::array<std::byte, 8> word_of(std::uint32_t number) {
  return std::bit_cast<std::array<std::byte, 8>>(number * std::uint64_t{0x9e3779b97f4a7c15} + 1);
}

bool PairSlots::add(std::uint32_t number, std::uint32_t context, std::size_t size) {
  return writer_.add(number, context, static_cast<std::int32_t>(number ^ 0x5555), word_of(number).data(), size);
}

void PairSlots::expect_shared(std::uint32_t number, std::uint32_t context, std::size_t size) {
  ASSERT_TRUE(reader_.ready()) << number;
  const PairSlot* slot = number % 3 == 0 ? reader_.front_again() : reader_.front();
  ASSERT_NE(nullptr, slot) << number;
  const Envelope envelope = reader_.envelope(*slot);
  EXPECT_EQ(number, envelope.sequence);
  EXPECT_EQ(context, envelope.context) << number;
  EXPECT_EQ(static_cast<std::int32_t>(number ^ 0x5555), envelope.tag) << number;
  EXPECT_EQ(size, envelope.bytes) << number;
  EXPECT_EQ(EnvelopeType::eager, envelope.type) << number;
  EXPECT_EQ(static_cast<std::uint8_t>(KindId::host), envelope.kind) << number;
  EXPECT_EQ(0, envelope.flags) << number;
  const auto payload = reader_.payload(*slot);
  ASSERT_EQ(size, payload.size()) << number;
  EXPECT_TRUE(std::equal(payload.begin(), payload.end(), word_of(number).begin())) << number;
  reader_.pop();
}

std::size_t PairSlots::lines() const {
  return static_cast<std::size_t>(std::count_if(slots_.begin(), slots_.begin() + static_cast<std::ptrdiff_t>(shape_.slots),
                                                [](const PairSlot& slot) { return slot.turn != 0; }));
}

TEST(PairSlotShape, ManyRanksHaveFewerSlotsEach) {
  EXPECT_EQ(256U, pair_slot_shape(2, kUsualEager).slots);
  EXPECT_EQ(131072U, pair_slot_shape(2, kUsualEager).blocks);
  EXPECT_EQ(mebibytes(8), pair_slot_shape(3, kUsualEager).room());
  EXPECT_EQ(262144U, pair_slot_shape(3, kUsualEager).again);
  EXPECT_EQ(131072U, pair_slot_shape(4, kUsualEager).again);
  EXPECT_EQ(kibibytes(256), pair_slot_shape(16, kUsualEager).room());
  EXPECT_EQ(65536U, pair_slot_shape(4, kUsualEager).blocks);
  EXPECT_EQ(32768U, pair_slot_shape(6, kUsualEager).blocks);
  EXPECT_EQ(16384U, pair_slot_shape(7, kUsualEager).blocks);
  EXPECT_EQ(8192U, pair_slot_shape(9, kUsualEager).blocks);
  EXPECT_EQ(4096U, pair_slot_shape(16, kUsualEager).blocks);
  EXPECT_EQ(131072U, pair_slot_shape(11, kUsualEager).longest);
  EXPECT_EQ(65536U, pair_slot_shape(16, kUsualEager).longest);
  EXPECT_EQ(2048U, pair_slot_shape(17, kUsualEager).blocks);
  EXPECT_EQ(128U, pair_slot_shape(17, kUsualEager).slots);
  EXPECT_EQ(32768U, pair_slot_shape(32, kUsualEager).longest);
  EXPECT_EQ(1024U, pair_slot_shape(64, kUsualEager).blocks);
  EXPECT_EQ(512U, pair_slot_shape(65, kUsualEager).blocks);
  EXPECT_EQ(64U, pair_slot_shape(100000, kUsualEager).slots);
  EXPECT_EQ(512U, pair_slot_shape(100000, kUsualEager).blocks);
  EXPECT_EQ(8192U, pair_slot_shape(100000, kUsualEager).longest);
  // No rank needs more than about 24 MiB for them while it has at most 128 of its host beside it, and up to 16 ranks' rooms take 64 MiB together.
  for (std::uint32_t ranks = 1; ranks <= 128; ++ranks) {
    const PairSlotShape shape = pair_slot_shape(ranks, kUsualEager);
    EXPECT_LE(ranks * shape.in_memory() * sizeof(PairSlot), 25U << 20) << ranks;
    EXPECT_TRUE(ranks > 16 || ranks * (ranks - 1) * shape.room().value <= 64U << 20) << ranks;
  }
}

// Whoever needs little memory says so by what is eager; nothing that is eager goes by a longer way for that.
TEST(PairSlotShape, LessThatIsEagerHasLessRoom) {
  const auto room = [](std::uint32_t ranks, Bytes eager) { return pair_slot_shape(ranks, eager).room(); };
  EXPECT_EQ(mebibytes(4), room(4, mebibytes(1)));
  EXPECT_EQ(mebibytes(4), room(4, kibibytes(8)));
  EXPECT_EQ(mebibytes(2), room(4, kibibytes(4)));
  EXPECT_EQ(kibibytes(512), room(4, kibibytes(1)));
  EXPECT_EQ(kibibytes(256), room(16, kibibytes(8)));
  EXPECT_EQ(kibibytes(32), room(2, Bytes{}));
  for (const std::uint32_t ranks : {2U, 16U, 100U})
    for (const std::uint64_t eager : {0U, 100U, 216U, 1000U, 8192U, 16384U, 1048576U}) {
      const PairSlotShape shape = pair_slot_shape(ranks, Bytes{eager});
      EXPECT_TRUE(std::has_single_bit(shape.blocks)) << eager;
      EXPECT_TRUE(reports_in_time(shape)) << eager;
      EXPECT_EQ(shape.slots, pair_slot_shape(ranks, kUsualEager).slots) << eager;
      EXPECT_EQ(
          pair_slot_limit(Bytes{eager}, ranks),
          eager < 216 ? kAlwaysInSlots : smaller(Bytes{8 * eager}, Bytes{pair_slot_shape(ranks, kUsualEager).longest}));
      EXPECT_EQ(pair_slot_limit_again(Bytes{eager}, ranks),
                ranks == 2 && eager >= 16384 ? kibibytes(256) : pair_slot_limit(Bytes{eager}, ranks));
    }
}

TEST_P(PairSlots, BytesThatLookLikeAMessageAreNone) {
  std::mt19937_64 random{std::random_device{}()};
  for (std::uint64_t number = 0; number < 20000 && !HasFatalFailure();)
    pass(number, random() % (random() % 2 == 0 ? shape_.longest : kAlwaysInSlots.value) + 1);
}

TEST_P(PairSlots, TheLongestMessageGoesThroughFromEveryPlace) {
  std::uint64_t number = 0;
  std::uint64_t block = 0;  // behind the last message
  const auto next = [&](std::size_t size) { return block + blocks_skipped(block, size, shape_.blocks); };
  const std::uint64_t round = std::min(shape_.blocks, kFirstPart);
  for (const std::uint64_t place : {std::uint64_t{0}, std::uint64_t{1}, round - blocks_for(shape_.longest),
                                    round - blocks_for(shape_.longest) + 1, round - 2, round - 1}) {
    // Short ones up to that place.
    for (; next(kBlock) % shape_.blocks != place && !HasFatalFailure(); block = next(kBlock) + 1)
      pass(number, PairSlot::kPayload + 1 + number % 40);
    pass(number, shape_.longest);
    block = next(shape_.longest) + blocks_taken(shape_.longest, shape_.blocks);
    if (HasFatalFailure()) FAIL() << "place " << place;
  }
}

// Each fills the last of what there is to the byte.
TEST_P(PairSlots, SizesAroundASlotAndABlockGoThroughTwoLaps) {
  std::uint64_t number = 0;
  for (std::uint64_t lap = 0; lap < 2 * shape_.slots; ++lap)
    for (const std::size_t size : {0U, 1U, 7U, 8U, 16U, 17U, 23U, 24U, 25U, 63U, 64U, 65U, 128U, 129U}) {
      pass(number, size);
      if (HasFatalFailure()) return;
    }
}

TEST_P(PairSlots, RefusesWhatHasNoRoomAndTellsWhenItHas) {
  const std::vector<std::byte> longest(shape_.longest);
  EXPECT_FALSE(writer_.post({}, std::vector<std::byte>(shape_.again + 1)));
  EXPECT_FALSE(writer_.news());
  std::uint64_t posted = 0;
  while (writer_.post({}, longest)) ++posted;
  // Of a larger room the last one of the first part may end behind that.
  const std::uint64_t each = blocks_taken(shape_.longest, shape_.blocks);
  EXPECT_EQ(shape_.blocks > kFirstPart ? (kFirstPart + each - 1) / each : shape_.blocks / each, posted);
  // A small one still fits, and then no more than that.
  while (writer_.post({}, {})) ++posted;
  EXPECT_FALSE(writer_.post({}, longest));
  EXPECT_FALSE(writer_.news());
  std::uint64_t read = 0;
  while (reader_.front() != nullptr) {
    reader_.pop();
    ++read;
    if (writer_.news()) break;
  }
  EXPECT_TRUE(writer_.post({}, longest)) << "after " << read;
  while (reader_.front() != nullptr) {
    reader_.pop();
    ++read;
  }
  EXPECT_EQ(posted + 1, read);
}

TEST_P(PairSlots, FourShortMessagesShareALineWhateverTheirLengths) {
  std::uint32_t number = 0;
  for (std::size_t first = 0; first <= 8; ++first) {
    for (std::size_t n = 0; n < 4; ++n) ASSERT_TRUE(add(number + static_cast<std::uint32_t>(n), 7, (first + n) % 9));
    EXPECT_EQ(first + 1, lines());
    for (std::size_t n = 0; n < 4; ++n) expect_shared(number++, 7, (first + n) % 9);
    EXPECT_FALSE(reader_.ready());
    EXPECT_EQ(nullptr, reader_.front());
  }
}

TEST_P(PairSlots, AMessageJoinsALineThatTheReaderHasReadAlready) {
  for (std::uint32_t number = 0; number < 4; ++number) {
    ASSERT_TRUE(add(number, 7, 8));
    expect_shared(number, 7, 8);
    EXPECT_FALSE(reader_.ready());
    EXPECT_EQ(nullptr, reader_.front()) << number;
  }
  EXPECT_EQ(1U, lines());
}

// Another communicator, a message in between that went another way, and one that has a line to itself. The sequence wraps.
TEST_P(PairSlots, WhatDoesNotFollowTheOneBeforeBeginsALine) {
  constexpr std::uint32_t kLast = ~std::uint32_t{0};
  ASSERT_TRUE(add(kLast - 1, 7, 8) && add(kLast, 7, 8) && add(0, 7, 8));
  EXPECT_EQ(1U, lines());
  ASSERT_TRUE(add(1, 8, 8) && add(3, 8, 3));
  EXPECT_EQ(3U, lines());
  const std::vector<std::byte> long_one(100);
  ASSERT_TRUE(writer_.post(numbered(4), long_one) && add(5, 8, 0));
  EXPECT_EQ(5U, lines());
  for (const auto& [number, context, size] :
       {std::tuple{kLast - 1, 7U, 8U}, {kLast, 7U, 8U}, {0U, 7U, 8U}, {1U, 8U, 8U}, {3U, 8U, 3U}})
    expect_shared(number, context, size);
  ASSERT_NE(nullptr, reader_.front());
  EXPECT_TRUE(holds(*reader_.front(), 4, long_one));
  reader_.pop();
  expect_shared(5, 8, 0);
  EXPECT_FALSE(reader_.ready());
}

// A context of its own for each, so that the reader leaves every line before it is full: of those, too, it has to tell.
TEST_P(PairSlots, LinesThatWereNeverFullComeBack) {
  for (std::uint32_t number = 0; number < 5 * shape_.slots && !HasFatalFailure(); ++number) {
    // add() does not look how far the reader has come; begin() does.
    ASSERT_TRUE(add(number, number, 8) || (writer_.begin(8) != nullptr && add(number, number, 8))) << number;
    expect_shared(number, number, 8);
  }
}

TEST_P(PairSlots, FullLinesRefuseAndComeBackWithoutAGap) {
  std::uint32_t sent = 0;
  std::uint32_t received = 0;
  for (int lap = 0; lap < 3; ++lap) {
    while (add(sent, 7, 8)) ++sent;
    EXPECT_LE(sent - received, 4 * shape_.slots);
    EXPECT_GE(sent - received, 4 * (shape_.slots - kReportEvery));
    EXPECT_EQ(nullptr, lap == 0 ? writer_.begin(8) : nullptr);
    while (received < sent && !HasFatalFailure()) expect_shared(received++, 7, 8);
    EXPECT_FALSE(reader_.ready());
    ASSERT_NE(nullptr, writer_.begin(8));
  }
}

// As a writer shows it that has come so far.
TEST_P(PairSlots, AMessageIsBegunWithItsFirstPieceAndThereWithItsLast) {
  ASSERT_EQ(nullptr, reader_.front());
  EXPECT_EQ(nullptr, reader_.begun());
  const std::uint64_t longest = shape_.longest;
  slots_[0].whole.envelope = numbered(41);
  slots_[0].turn = begun_at(0, longest / 2);
  EXPECT_FALSE(reader_.ready());
  ASSERT_EQ(nullptr, reader_.front());
  ASSERT_EQ(&slots_[0], reader_.begun());
  EXPECT_EQ(41U, reader_.envelope<false>(slots_[0]).sequence);
  EXPECT_EQ(longest / 2, reader_.look_again(slots_[0]).size());
  slots_[0].turn = turn_at(0, longest);
  EXPECT_EQ(longest, reader_.look_again(slots_[0]).size());
  EXPECT_EQ(nullptr, reader_.begun());
  EXPECT_TRUE(reader_.ready());
  EXPECT_EQ(&slots_[0], reader_.front());
}

TEST_P(PairSlots, AMessageOfAnotherLapIsNotBegun) {
  slots_[0].turn = begun_at(shape_.slots, 8192);
  EXPECT_EQ(nullptr, reader_.front());
  EXPECT_EQ(nullptr, reader_.begun());
}

TEST_P(PairSlots, WhatJoinedALineComesBeforeAMessageThatIsBegunBehindIt) {
  ASSERT_TRUE(add(0, 7, 8));
  expect_shared(0, 7, 8);
  ASSERT_EQ(nullptr, reader_.front());
  ASSERT_TRUE(add(1, 7, 8));
  slots_[1].whole.envelope = numbered(2);
  slots_[1].turn = begun_at(1, 8192);
  expect_shared(1, 7, 8);
  ASSERT_EQ(nullptr, reader_.front());
  ASSERT_EQ(&slots_[1], reader_.begun());
  EXPECT_EQ(2U, reader_.envelope<false>(slots_[1]).sequence);
}

TEST_P(PairSlots, BetweenThreadsEveryByteArrivesInOrder) {
  constexpr std::uint64_t kMessages = 60000;
  const std::uint64_t seed = std::random_device{}();
  std::atomic<bool> wrong{false};
  const auto sizes = [seed, longest = shape_.again] {
    return [longest, random = std::mt19937_64{seed}]() mutable {
      const std::uint64_t drawn = random();
      const std::uint64_t most = drawn % 16 == 0 ? longest : drawn % 16 < 8 ? kAlwaysInSlots.value : PairSlot::kShare;
      return static_cast<std::size_t>(drawn / 16 % (most + 1));
    };
  };
  // As calls do: what is short joins the line before, if it may, and goes the long way where there seems to be no room.
  const auto send = [&](std::uint64_t number, const std::vector<std::byte>& bytes) {
    const auto sequence = static_cast<std::uint32_t>(number);
    if (bytes.size() <= PairSlot::kShare && writer_.add(sequence, sequence / 50, 0, bytes.data(), bytes.size())) return true;
    PairSlot* const slot = writer_.begin(bytes.size());
    if (slot == nullptr) return false;
    slot->whole.envelope = numbered(number);
    writer_.finish(*slot, bytes.data(), bytes.size(), number % 2 == 0);
    return true;
  };
  // What is there of a message that is begun, whenever it is looked at.
  const auto is_begun_well = [&](std::uint64_t number, const std::vector<std::byte>& bytes) {
    const PairSlot* const slot = reader_.begun();
    if (slot == nullptr || number % 3 == 0) return true;
    const auto shown = reader_.look_again(*slot);
    return reader_.envelope<false>(*slot).sequence == static_cast<std::uint32_t>(number) && shown.size() <= bytes.size() &&
           std::equal(shown.begin(), shown.end(), bytes.begin());
  };
  std::thread sender{[&] {
    auto size = sizes();
    for (std::uint64_t number = 0; number < kMessages; ++number) {
      const auto bytes = malicious(number, size(), number);
      while (!wrong && !send(number, bytes)) std::this_thread::yield();
    }
  }};
  auto size = sizes();
  std::uint64_t number = 0;
  for (; number < kMessages && !wrong; ++number) {
    const auto bytes = malicious(number, size(), number);
    const PairSlot* slot = reader_.front();
    for (; slot == nullptr && !wrong; slot = number % 4 < 2 ? reader_.front() : reader_.front_again()) {
      wrong = !is_begun_well(number, bytes);
      std::this_thread::yield();
    }
    wrong = wrong || !holds(*slot, number, bytes);
    reader_.pop();
  }
  sender.join();
  EXPECT_FALSE(wrong) << "message " << number;
  EXPECT_EQ(nullptr, reader_.front());
}

}  // namespace
}  // namespace ist::test
