// The ring alone: running ahead on both sides, publication in order, full and empty.
#include "test_world.hpp"

namespace ist::test {
namespace {

class SlotRing : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  SlotRing() : layout_{GetParam(), Bytes{4097}}, memory_(SlotRingLayout{GetParam(), Bytes{16384}}.total().value + 4096) {
    auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    base_ = memory_.data() + (4096 - address % 4096) % 4096;
    std::memset(base_, 0xee, layout_.total().value);
  }
  SlotRingLayout layout_;
  std::vector<std::byte> memory_;
  std::byte* base_;
};

INSTANTIATE_TEST_SUITE_P(Slots, SlotRing, ::testing::Values(1U, 2U, 3U, 8U, 64U));

TEST_P(SlotRing, PlacesDoNotOverlap) {
  std::map<std::uint64_t, std::uint64_t> places{{0, sizeof(SlotRingShared)}};
  for (std::uint64_t n = 0; n < SlotRingLayout::kHeaders; ++n) places[layout_.header(n).value] = sizeof(SlotHeader);
  for (std::uint64_t n = 0; n < layout_.slots; ++n) {
    places[layout_.slot(n).value] = layout_.slot_bytes.value;
    EXPECT_EQ(layout_.slot(n).value % 4096, 0U);
    EXPECT_EQ(layout_.slot(n), layout_.slot(n + layout_.slots));
  }
  EXPECT_EQ(places.size(), layout_.slots + SlotRingLayout::kHeaders + 1U);
  std::uint64_t end = 0;
  for (const auto& [begin, size] : places) {
    EXPECT_GE(begin, end);
    end = begin + size;
  }
  EXPECT_LE(end, layout_.total().value);
  EXPECT_EQ(layout_.total().value % 4096, 0U);
}

TEST_P(SlotRing, WriterRunsAheadAndOnlyPublishedSlotsAreSeen) {
  SlotRingWriter writer{base_, layout_, nullptr};
  SlotRingReader reader{base_, layout_, nullptr};
  std::vector<Slot> started;
  while (const auto slot = writer.start_next()) started.push_back(*slot);
  EXPECT_EQ(started.size(), layout_.slots);
  EXPECT_EQ(writer.pending(), layout_.slots);
  EXPECT_FALSE(reader.take_next());
  // The copies finish in reverse order; publication stays in order.
  std::vector<std::vector<std::byte>> payloads;
  for (std::size_t i = 0; i < started.size(); ++i) payloads.push_back(random_bytes(layout_.slot_bytes.value - i));
  for (std::size_t i = started.size(); i-- > 0;) std::memcpy(started[i].data, payloads[i].data(), payloads[i].size());
  for (std::uint32_t i = 0; i < layout_.slots; ++i) {
    writer.publish_oldest({i, static_cast<std::uint32_t>(payloads[i].size()), 0, started[i].place, started[i].next});
    const auto full = reader.take_next();
    ASSERT_TRUE(full);
    EXPECT_EQ(full->header.receiver_op, i);
    EXPECT_TRUE(same({full->data, full->header.bytes}, payloads[i]));
    EXPECT_FALSE(reader.take_next());
  }
  EXPECT_EQ(writer.pending(), 0U);
}

TEST_P(SlotRing, ReaderRunsAheadAndOnlyReleasedSlotsAreFilledAgain) {
  SlotRingWriter writer{base_, layout_, nullptr};
  SlotRingReader reader{base_, layout_, nullptr};
  while (writer.start_next()) writer.publish_oldest({});
  std::uint64_t taken = 0;
  while (reader.take_next()) ++taken;
  EXPECT_EQ(taken, layout_.slots);
  EXPECT_EQ(reader.pending(), layout_.slots);
  EXPECT_FALSE(writer.start_next());
  for (std::uint64_t i = 0; i < layout_.slots; ++i) {
    EXPECT_FALSE(writer.start_next());
    reader.release_oldest();
    EXPECT_TRUE(writer.start_next());
  }
  EXPECT_EQ(reader.pending(), 0U);
}

// Three laps of pieces that a slot of two pages takes two of; then of one that it takes only one of.
TEST_P(SlotRing, PiecesOfASlotTakeTurnsAndTheReaderFindsThem) {
  const SlotRingLayout layout{GetParam(), Bytes{8192}};  // of the same size
  ASSERT_EQ(layout_.total(), layout.total());
  SlotRingWriter writer{base_, layout, nullptr, Bytes{std::uint64_t{GetParam()} * 2 * 4096}};
  SlotRingReader reader{base_, layout, nullptr};
  const std::uint64_t slots = layout.slots;
  for (std::uint64_t n = 0; n < 4 * slots; ++n) {
    const Bytes wanted{n < 3 * slots ? 1000U : 4097U};
    const auto slot = writer.start_next(wanted);
    ASSERT_TRUE(slot);
    const std::uint64_t place = wanted.value == 1000 ? n / slots % 2 * 4096 : 0;
    EXPECT_EQ(base_ + layout.slot(n).value + place, slot->data) << n;
    EXPECT_EQ(base_ + layout.slot(0).value + slot->place, slot->data) << n;
    ASSERT_GE(slot->capacity, wanted);
    const auto bytes = random_bytes(wanted.value);
    std::memcpy(slot->data, bytes.data(), bytes.size());
    writer.publish_oldest(
        {static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(bytes.size()), 0, slot->place, slot->next});
    const auto full = reader.take_next();
    ASSERT_TRUE(full);
    EXPECT_TRUE(same({full->data, full->header.bytes}, bytes)) << n;
    reader.release_oldest();
  }
}

// Three rounds of all places, as far ahead of the reader as there are places, or headers.
TEST_P(SlotRing, AWriterThatRunsAheadHasAllPlacesAndTheReaderFindsThem) {
  const SlotRingLayout layout{GetParam(), Bytes{12288}};
  SlotRingWriter writer{base_, layout, nullptr, Bytes{std::uint64_t{GetParam()} * 8192}};
  SlotRingReader reader{base_, layout, nullptr};
  const std::uint64_t most = std::min(2 * std::uint64_t{layout.slots}, SlotRingLayout::kHeaders);
  std::vector<std::vector<std::byte>> sent;
  for (std::uint64_t read = 0; read < 3 * most; ++read) {
    while (const auto slot = writer.start_next(Bytes{4095}, Filling::ahead)) {
      const std::uint64_t n = sent.size();
      EXPECT_EQ(base_ + layout.slot(n).value + n / layout.slots % 2 * 4096, slot->data) << n;
      EXPECT_EQ(slot->capacity, Bytes{4096});
      sent.push_back(random_bytes(4095 - n % 7));
      std::memcpy(slot->data, sent.back().data(), sent.back().size());
      writer.publish_oldest({static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(sent.back().size()), 0, slot->place});
    }
    ASSERT_EQ(sent.size(), read + most);
    const auto full = reader.take_next();
    ASSERT_TRUE(full);
    EXPECT_EQ(full->header.receiver_op, read);
    EXPECT_TRUE(same({full->data, full->header.bytes}, sent[read])) << read;
    reader.release_oldest();
  }
}

// No further than it is told, or than there are slots.
TEST_P(SlotRing, AWriterThatRunsAheadIsNoFurtherThanItIsTold) {
  const SlotRingLayout layout{GetParam(), Bytes{16384}};
  SlotRingWriter writer{base_, layout, nullptr, Bytes{std::uint64_t{GetParam()} * 16384}};
  SlotRingReader reader{base_, layout, nullptr};
  std::uint64_t outstanding = 0;
  for (const std::uint64_t told : {1, 5, 16, 7, 64, 1}) {
    const std::uint64_t most =
        std::max<std::uint64_t>(layout.slots, std::min({told, 4 * std::uint64_t{layout.slots}, SlotRingLayout::kHeaders}));
    for (; outstanding > most; --outstanding) {
      EXPECT_FALSE(writer.start_next(Bytes{4096}, Filling::ahead, told));
      EXPECT_FALSE(writer.news());
      ASSERT_TRUE(reader.take_next());
      reader.release_oldest();
    }
    for (; writer.start_next(Bytes{4096}, Filling::ahead, told); ++outstanding) writer.publish_oldest({});
    EXPECT_EQ(outstanding, most) << told;
    EXPECT_FALSE(writer.news());
    ASSERT_TRUE(reader.take_next());
    reader.release_oldest();
    --outstanding;
    EXPECT_TRUE(writer.news()) << told;
  }
}

// Random bytes that go through a ring, each piece of which is shown as soon as it is started, and compared when it is read.
struct PiecesOfRing {
  SlotRingWriter& writer;
  SlotRingReader& reader;
  std::deque<std::vector<std::byte>> sent = {};  // and not read yet
  std::optional<Slot> start(Bytes bytes, Filling how) {
    const auto slot = writer.start_next(bytes, how);
    if (!slot) return std::nullopt;
    sent.push_back(random_bytes(bytes.value));
    std::memcpy(slot->data, sent.back().data(), bytes.value);
    writer.publish_oldest({0, static_cast<std::uint32_t>(bytes.value), 0, slot->place, slot->next});
    return slot;
  }
  void read() {
    const auto full = reader.take_next();
    ASSERT_TRUE(full);
    EXPECT_TRUE(same({full->data, full->header.bytes}, sent.front()));
    sent.pop_front();
    reader.release_oldest();
  }
};

// What lies elsewhere in the slots, in the first place or as longer pieces, is not written over: until it is released there is one piece for each slot.
TEST_P(SlotRing, AWriterRunsAheadOnceAllIsReleasedThatLiesElsewhere) {
  const SlotRingLayout layout{GetParam(), Bytes{16384}};
  for (const auto& [wanted, filling] : {std::pair{4096U, Filling::in_place}, std::pair{8192U, Filling::by_turns}}) {
    SlotRingWriter writer{base_, layout, nullptr, Bytes{std::uint64_t{GetParam()} * 16384}};
    SlotRingReader reader{base_, layout, nullptr};
    PiecesOfRing pieces{writer, reader};
    const auto start = [&](std::uint32_t bytes, Filling how) { return pieces.start(Bytes{bytes}, how).has_value(); };
    const auto read = [&] { pieces.read(); };
    const auto& sent = pieces.sent;
    while (start(wanted, filling)) continue;
    ASSERT_EQ(layout.slots, sent.size());
    for (std::uint32_t n = 0; n + 1 < layout.slots; ++n) {
      EXPECT_FALSE(start(4096, Filling::ahead)) << n;
      EXPECT_FALSE(writer.news());
      read();
      EXPECT_TRUE(writer.news());
      EXPECT_TRUE(start(4096, Filling::ahead)) << n;
    }
    read();
    while (start(4096, Filling::ahead)) continue;
    EXPECT_EQ(std::min(4 * std::uint64_t{layout.slots}, SlotRingLayout::kHeaders), sent.size());
    EXPECT_FALSE(start(wanted, filling));
    while (sent.size() >= layout.slots) {
      EXPECT_FALSE(start(wanted, filling));
      read();
    }
    EXPECT_TRUE(start(wanted, filling)) << "as far as there are slots again";
    while (!sent.empty()) read();
  }
}

// Pieces of few slots have the first ones alone, and as many are outstanding; they begin where all others are released, as those do behind them.
TEST_P(SlotRing, PiecesOfFewSlotsHaveThoseToThemselves) {
  const SlotRingLayout layout{GetParam(), Bytes{8192}};
  const std::uint64_t few = std::min(SlotRingLayout::kFew, std::uint64_t{layout.slots});
  for (const Filling other : {Filling::in_place, Filling::by_turns, Filling::ahead}) {
    SlotRingWriter writer{base_, layout, nullptr, Bytes{std::uint64_t{GetParam()} * 8192}};
    SlotRingReader reader{base_, layout, nullptr};
    PiecesOfRing pieces{writer, reader};
    const auto& sent = pieces.sent;
    std::uint32_t next = 0;  // place
    const auto start = [&](Filling how, bool alike) {
      const auto slot = pieces.start(Bytes{4096}, how);
      if (!slot) return false;
      EXPECT_TRUE(!alike || next == slot->place);
      next = slot->next;
      EXPECT_TRUE(how != Filling::few || slot->place < few * 8192);
      EXPECT_EQ(base_ + layout.slot(0).value + slot->place, slot->data);
      return true;
    };
    // As many as there can be; then none of the other sort before all of them are read, where the two go round different slots.
    const auto fill_and_turn = [&](Filling one, Filling then) {
      while (start(one, !sent.empty())) continue;
      const std::uint64_t places = one == Filling::ahead ? 2 : 1;
      EXPECT_EQ(one == Filling::few ? few : std::min(places * layout.slots, SlotRingLayout::kHeaders), sent.size());
      for (; !sent.empty(); pieces.read()) {
        if (few == layout.slots) continue;
        EXPECT_FALSE(start(then, false)) << sent.size() << " are left";
        EXPECT_FALSE(writer.news());
      }
      EXPECT_TRUE(writer.news());
    };
    for (int round = 0; round < 3; ++round) {
      fill_and_turn(Filling::few, other);
      fill_and_turn(other, Filling::few);
    }
  }
}

TEST_P(SlotRing, APlaceBeyondTheSlotsLeadsToTheFirst) {
  SlotRingWriter writer{base_, layout_, nullptr};
  SlotRingReader reader{base_, layout_, nullptr};
  const auto room = static_cast<std::uint32_t>(layout_.total().value - layout_.slot(0).value);
  for (const std::uint32_t place : {room, std::uint32_t{1} << 31U, ~std::uint32_t{0}}) {
    const auto slot = writer.start_next();
    ASSERT_TRUE(slot);
    writer.publish_oldest({1, 1, 0, place, place});
    const auto full = reader.take_next();
    ASSERT_TRUE(full);
    EXPECT_EQ(base_ + layout_.slot(0).value, full->data);
    reader.release_oldest();
  }
}

TEST_P(SlotRing, WithoutALapToFillAllBytesBeginTheirSlot) {
  SlotRingWriter writer{base_, layout_, nullptr};
  for (std::uint64_t n = 0; n < layout_.slots; ++n)
    EXPECT_EQ(base_ + layout_.slot(n).value, writer.start_next(Bytes{1})->data);
}

TEST_P(SlotRing, BellRingsOncePerPublicationAndOncePerRelease) {
  int published = 0;
  int released = 0;
  SlotRingWriter writer{base_, layout_, [&] { ++published; }};
  SlotRingReader reader{base_, layout_, [&] { ++released; }};
  for (int i = 1; i <= 10; ++i) {
    writer.start_next();
    EXPECT_EQ(published, i - 1);
    writer.publish_oldest({});
    EXPECT_EQ(published, i);
    reader.take_next();
    EXPECT_EQ(released, i - 1);
    reader.release_oldest();
    EXPECT_EQ(released, i);
  }
}

TEST_P(SlotRing, NewsIsWhatWasRefusedAndCouldBeHadNow) {
  SlotRingWriter writer{base_, layout_, nullptr};
  SlotRingReader reader{base_, layout_, nullptr};
  EXPECT_FALSE(writer.news());
  EXPECT_FALSE(reader.take_next());
  EXPECT_FALSE(reader.news());
  while (writer.start_next()) writer.publish_oldest({});
  EXPECT_FALSE(writer.news());
  EXPECT_TRUE(reader.news());
  EXPECT_FALSE(reader.news());  // told once
  while (reader.take_next()) reader.release_oldest();
  EXPECT_TRUE(writer.news());
  EXPECT_FALSE(writer.news());
}

}  // namespace
}  // namespace ist::test
