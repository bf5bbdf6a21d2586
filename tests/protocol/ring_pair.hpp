// Both ends of a pipelined ring in one thread, over plain memory, with a user on each side who checks what he is told.
//
// Who calls this : pipelined_test.cpp, pipelined_failures_test.cpp, holding_off_test.cpp.
// Threads        : one; which end moves next is random.
// Ownership      : owns the ring, the messages and both sides' kinds.
// Errors         : an operation reported twice, or never, fails the test; so does a ring that stands still.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "late_kind.hpp"
#include "protocol/pipelined.hpp"

namespace ist::test {

struct RingShape {
  std::uint32_t slots = 4;
  std::uint64_t slot_bytes = 4096;
  std::uint64_t in_flight = 3;
  int latest = 12;  // how many moments a copy may take
  bool strings_first = false;
  bool few_sources = false;  // messages of hosts are sent out of four places by turns
};

class RingPair {
 public:
  struct Message {
    std::vector<std::byte> out;
    std::vector<std::byte> in;  // one poisoned byte more on each side
    Piece from;
    Piece to;
    std::uint64_t fill = 0;
    LapPace<RingWay>::Next by = {RingWay::loops, false, 0};
    bool sent = false;
    bool received = false;
    Finished sender;
    Finished receiver;
  };

  RingPair(unsigned seed, RingShape shape)
      : shape_(shape),
        random_(seed),
        sending_(seed + 1, shape.latest),
        receiving_(seed + 2, shape.latest),
        layout_{shape.slots, Bytes{shape.slot_bytes}},
        memory_(layout_.total().value + 4096),
        writer_(ring_memory(), layout_, nullptr, layout_.total()),
        reader_(ring_memory(), layout_, nullptr),
        sender_(*sending_.kinds, writer_, shape.in_flight),
        receiver_(*receiving_.kinds, shape.in_flight, "rank 7 of the test", shape.strings_first) {
    receiver_.connect(reader_);
  }

  // Expected by the receiver at once, and added to the sender by send().
  std::size_t prepare(std::uint64_t bytes, std::uint64_t fill, bool from_device, bool to_device) {
    Message& message = messages_.emplace_back();
    message.out.resize(bytes);
    for (auto& byte : message.out) byte = static_cast<std::byte>(random_());
    message.in.assign(bytes + 2, kPoison);
    message.fill = fill;
    message.from = from_device ? late_piece(message.out.data(), Bytes{bytes}) : host_piece(message.out.data(), Bytes{bytes});
    if (shape_.few_sources && !from_device) {
      const std::byte* const source = next_source(bytes);
      std::copy_n(source, bytes, message.out.begin());
      message.from = host_piece(source, Bytes{bytes});
    }
    const std::byte* target = message.in.data() + 1;
    message.to = to_device ? late_piece(target, Bytes{bytes}) : host_piece(target, Bytes{bytes});
    receiver_.expect(receiver_op(messages_.size() - 1), message.to, false);
    return messages_.size() - 1;
  }
  // The same between hosts, whose copies go the way that the receiver says.
  std::size_t prepare_of_hosts(std::uint64_t bytes, std::uint64_t fill) {
    const std::size_t number = prepare(bytes, fill, false, false);
    messages_[number].by = receiver_.expect_of_host(receiver_op(number), messages_[number].to, false);
    return number;
  }
  // These bytes in place of random ones.
  void give(std::size_t number, std::span<const std::byte> bytes) {
    std::copy(bytes.begin(), bytes.end(), messages_[number].out.begin());
  }
  // Out of another message's bytes, of which there are as many.
  void share(std::size_t number, std::size_t other) {
    messages_[number].from = messages_[other].from;
    messages_[number].out = messages_[other].out;
  }
  // Out of a place of its own, with bytes of its own, where messages have few sources.
  void own(std::size_t number) {
    Message& message = messages_[number];
    for (std::byte& byte : message.out) byte = static_cast<std::byte>(random_());
    message.from = host_piece(message.out.data(), message.from.size);
  }
  void send(std::size_t number) {
    const Message& message = messages_[number];
    const bool hosts = message.from.kind == KindId::host && message.to.kind == KindId::host;
    sender_.add({sender_op(number), receiver_op(number), message.from, Bytes{message.fill}, hosts, nullptr, message.by.timed,
                 message.by.way});
  }
  void prepare_and_send(std::uint64_t bytes, std::uint64_t fill, bool from_device, bool to_device) {
    send(prepare(bytes, fill, from_device, to_device));
  }

  // One end moves; true if anything did.
  bool step() { return random_() % 2 == 0 ? step_sender() : step_receiver(); }
  bool step_sender(int most = kMostPerStep) {
    std::vector<Finished> ended;
    const bool moved = sender_.step(ended, most);
    note_sent(ended);
    // Between hosts as many as a ring has headers are full and not shown: held back, or behind a copy of a device's.
    EXPECT_LE(writer_.pending(), SlotRingLayout::kHeaders);
    EXPECT_LE(sending_.device->running(), shape_.in_flight);
    return moved;
  }
  bool step_receiver(int most = kMostPerStep) {
    std::vector<Finished> ended;
    const bool moved = receiver_.step(ended, most);
    note_received(ended);
    EXPECT_LE(reader_.pending(), shape_.in_flight);
    EXPECT_LE(receiving_.device->running(), shape_.in_flight);
    return moved;
  }

  // Until both ends have nothing more to do. Copies need some moments, so that a few steps in vain are no standstill.
  void run() {
    for (int in_vain = 0; !sender_.idle() || !receiver_.idle();) {
      in_vain = step() ? 0 : in_vain + 1;
      ASSERT_LT(in_vain, 100 * (shape_.latest + 2)) << "the ring stands still";
    }
    EXPECT_EQ(sending_.device->running(), 0U);
    EXPECT_EQ(receiving_.device->running(), 0U);
    for (std::size_t i = 0; i < messages_.size(); ++i)
      EXPECT_TRUE(messages_[i].sent && messages_[i].received) << "message " << i << " was forgotten";
  }

  // Of the messages from that one on, how many are sent before any of them is received; then all are, whole.
  int sent_ahead(std::size_t first) {
    while (step_sender()) continue;
    int sent = 0;
    for (std::size_t i = first; i < messages_.size(); ++i) sent += messages_[i].sent ? 1 : 0;
    run();
    for (std::size_t i = first; i < messages_.size(); ++i) expect_whole(i);
    return sent;
  }

  // What the slots say that the ring has and gets, which are given back at once, without the receiver.
  template <class Look>  // void(const FullSlot&, how many came before it)
  std::vector<SlotHeader> take_slots(const Look& look) {
    std::vector<SlotHeader> taken;
    while (step_sender()) continue;
    while (const auto slot = reader_.take_next()) {
      look(*slot, taken.size());
      taken.push_back(slot->header);
      reader_.release_oldest();
      while (step_sender()) continue;
    }
    return taken;
  }
  std::vector<SlotHeader> take_slots() {
    return take_slots([](const FullSlot&, std::size_t) {});
  }

  void abandon_sender(const Status& why) {
    std::vector<Finished> ended;
    sender_.abandon(why, ended);
    note_sent(ended);
  }
  void abandon_receiver(const Status& why) {
    std::vector<Finished> ended;
    receiver_.abandon(why, ended);
    note_received(ended);
  }

  void expect_whole(std::size_t number) const {
    const Message& message = messages_[number];
    EXPECT_TRUE(message.sender.status.ok()) << "message " << number << ": " << message.sender.status.text();
    EXPECT_TRUE(message.receiver.status.ok()) << "message " << number << ": " << message.receiver.status.text();
    EXPECT_EQ(message.receiver.bytes.value, message.out.size());
    EXPECT_TRUE(std::equal(message.out.begin(), message.out.end(), message.in.begin() + 1)) << "message " << number;
    expect_guards(number);
  }
  void expect_guards(std::size_t number) const {
    EXPECT_EQ(messages_[number].in.front(), kPoison) << "message " << number;
    EXPECT_EQ(messages_[number].in.back(), kPoison) << "message " << number;
  }

  static std::uint32_t sender_op(std::size_t number) { return static_cast<std::uint32_t>(1000 + number); }
  static std::uint32_t receiver_op(std::size_t number) { return static_cast<std::uint32_t>(5000 + number); }
  std::size_t size() const { return messages_.size(); }
  const Message& operator[](std::size_t number) const { return messages_[number]; }
  LateKind& sending_device() { return *sending_.device; }
  LateKind& receiving_device() { return *receiving_.device; }
  RingSender& sender() { return sender_; }
  RingReceiver& receiver() { return receiver_; }
  SlotRingWriter& writer() { return writer_; }
  SlotRingReader& reader() { return reader_; }
  // Pieces that were shown, and not given back.
  std::uint64_t outstanding() {
    const auto& shared = *std::launder(reinterpret_cast<const SlotRingShared*>(ring_memory()));
    return shared.published.load() - shared.released.load();
  }
  std::uint64_t random(std::uint64_t below) { return random_() % below; }

 private:
  static constexpr std::byte kPoison{0xa5};

  // Each stays where it is, with the bytes that it has.
  const std::byte* next_source(std::uint64_t bytes) {
    constexpr std::uint64_t kLongest = 65536;
    EXPECT_LE(bytes, kLongest);
    std::vector<std::byte>& source = sources_[used_++ % sources_.size()];
    if (source.empty()) {
      source.resize(kLongest);
      for (std::byte& byte : source) byte = static_cast<std::byte>(random_());
    }
    return source.data();
  }
  std::byte* ring_memory() {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    return memory_.data() + (4096 - address % 4096) % 4096;
  }
  void note_sent(const std::vector<Finished>& ended) {
    for (const Finished& end : ended) {
      Message& message = messages_.at(end.operation - sender_op(0));
      EXPECT_FALSE(message.sent) << "the sender was told twice of operation " << end.operation;
      message.sent = true;
      message.sender = end;
      sending_.device->given_back(message.from);
    }
  }
  void note_received(const std::vector<Finished>& ended) {
    for (const Finished& end : ended) {
      Message& message = messages_.at(end.operation - receiver_op(0));
      EXPECT_FALSE(message.received) << "the receiver was told twice of operation " << end.operation;
      message.received = true;
      message.receiver = end;
      receiving_.device->given_back(message.to);
    }
  }

  RingShape shape_;
  std::mt19937 random_;
  Side sending_;
  Side receiving_;
  SlotRingLayout layout_;
  std::vector<std::byte> memory_;
  SlotRingWriter writer_;
  SlotRingReader reader_;
  RingSender sender_;
  RingReceiver receiver_;
  std::deque<Message> messages_;  // addresses stay
  std::array<std::vector<std::byte>, 4> sources_;
  std::size_t used_ = 0;
};

}  // namespace ist::test
