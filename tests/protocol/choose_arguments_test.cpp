// What each argument of the choice changes, what each carrier refuses, with a reason of its own, and what is known of the receiver in
// the prices.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "invented_messages.hpp"

namespace ist {
namespace {

using Price = double (*)(const MessageShape&, const MachineProfile&);
constexpr Price kPrices[] = {price::slot, price::cell, price::ring, price::direct, price::device, price::mailbox};

// How the send wants to be over.
const std::vector<Case>& by_operation() {
  static const MachineProfile usual;
  static const std::vector<Case> cases{
      {"a synchronous one hears of its receive", usual, in_mode(shape(8), kSynchronous), IST_CARRIER_RING},
      {"so does nothing at all", usual, in_mode(shape(0), kSynchronous), IST_CARRIER_RING},
      {"to itself", usual, in_mode(shape(8, KindId::host, true), kSynchronous), IST_CARRIER_DIRECT},
      {"a synchronous one of a device", usual, in_mode(shape(8, KindId::cuda), kSynchronous), IST_CARRIER_RING},
      {"whose receiver lends", dear_copies(), in_mode(with_worker(8), kSynchronous), IST_CARRIER_DEVICE},
      {"where there is a mailbox", usual, in_mode(with_mailbox(8), kSynchronous), IST_CARRIER_DEVICE},
      {"who blocks is not shown a receiver's copy", usual, in_mode(shown(65536), kBlocking), IST_CARRIER_SLOT},
      {"nor waits for one", usual, in_mode(shown(65537), kBlocking), IST_CARRIER_RING},
      {"within one process there is no other way", usual, in_mode(shape(65537, KindId::host, true), kBlocking),
       IST_CARRIER_DIRECT},
  };
  return cases;
}

// What is known of both buffers.
const std::vector<Case>& by_memory() {
  static const MachineProfile usual;
  static const std::vector<Case> cases{
      {"page-locked memory into a device that lends", usual, to_device(mebibytes(1).value, MemoryClass::pinned),
       IST_CARRIER_DEVICE},
      {"locked after the fact", usual, to_device(mebibytes(1).value, MemoryClass::registered), IST_CARRIER_DEVICE},
      {"pageable memory", usual, to_device(mebibytes(1).value, MemoryClass::pageable), IST_CARRIER_RING},
      {"memory of which nobody knows", usual, to_device(mebibytes(1).value, MemoryClass::unknown), IST_CARRIER_RING},
      {"page-locked memory into a host's", usual, to_device(mebibytes(1).value, MemoryClass::pinned, KindId::host),
       IST_CARRIER_RING},
      {"little of it into a device", usual, to_device(8, MemoryClass::pinned), IST_CARRIER_SLOT},
      {"into what cudaMalloc gave", usual, into(mebibytes(1).value, MemoryClass::device), IST_CARRIER_DEVICE},
      {"into a pool", usual, into(mebibytes(1).value, MemoryClass::pool), IST_CARRIER_RING},
      {"into a mapping", usual, into(mebibytes(1).value, MemoryClass::vmm), IST_CARRIER_RING},
      {"into managed memory", usual, into(8, MemoryClass::managed), IST_CARRIER_CELL},
  };
  return cases;
}

// Where they are, and how the bytes lie there.
const std::vector<Case>& by_place() {
  static const MachineProfile usual;
  static const std::vector<Case> cases{
      {"within one device, little", usual, on_one_device(8), IST_CARRIER_CELL},
      {"within one device, below 2 MiB", usual, on_one_device(mebibytes(2).value - 1), IST_CARRIER_RING},
      {"within one device, from 2 MiB on", usual, on_one_device(mebibytes(2).value), IST_CARRIER_DEVICE},
      {"where turns cost nothing", with_turn(0), on_one_device(8), IST_CARRIER_DEVICE},
      {"where they cost more", with_turn(1e-3), on_one_device(mebibytes(8).value), IST_CARRIER_RING},
      {"a mailbox on one device", usual, with(with_mailbox(8), [](MessageShape& made) { made.same_device = true; }),
       IST_CARRIER_CELL},
      {"a mailbox into managed memory", usual,
       with(with_mailbox(8),
            [](MessageShape& made) {
              made.to = {KindId::cuda, MemoryClass::managed};
            }),
       IST_CARRIER_CELL},
      {"a link that takes its time", with_link_alpha(15e-6), lent(8), IST_CARRIER_CELL},
      {"and one that does not, where the bus does", with_link_alpha(1e-6), lent(8), IST_CARRIER_DEVICE},
      {"what does not lie in one piece", usual, in_layout(shape(8), MemoryLayout::strided), IST_CARRIER_NONE},
      {"in any pieces, between devices", usual, in_layout(with_mailbox(8), MemoryLayout::listed), IST_CARRIER_NONE},
      {"another node", usual, on_two_nodes(shape(8)), IST_CARRIER_NONE},
      {"a device of another node", usual, on_two_nodes(with_mailbox(8)), IST_CARRIER_NONE},
  };
  return cases;
}

TEST(Choose, FollowsTheOperationTheMemoryAndThePlaceOfBothBuffers) {
  for (const auto* table : {&by_operation(), &by_memory(), &by_place()})
    for (const Case& one : *table) EXPECT_EQ(choose(one.message, one.machine), one.carrier) << one.why;
}

// One argument alone is another, and so is the carrier.
TEST(Choose, EachArgumentDecidesSomewhere) {
  constexpr std::uint64_t kMiB = 1 << 20;
  const auto decides = [](const char* argument, const MessageShape& message, auto change) {
    MessageShape other = message;
    change(other);
    EXPECT_NE(choose(message, MachineProfile{}), choose(other, MachineProfile{})) << argument;
  };
  decides("bytes", shape(8), [](MessageShape& other) { other.bytes = mebibytes(1); });
  decides("the sender's kind", shape(8), [](MessageShape& other) { other.kind = KindId::cuda; });
  decides("the sender's memory", to_device(kMiB, MemoryClass::pinned),
          [](MessageShape& other) { other.memory = MemoryClass::pageable; });
  decides("the receiver's kind", to_device(kMiB, MemoryClass::pinned),
          [](MessageShape& other) { other.to.kind = KindId::host; });
  decides("the receiver's memory", into(kMiB, MemoryClass::device),
          [](MessageShape& other) { other.to.memory = MemoryClass::managed; });
  decides("synchronous", shape(8), [](MessageShape& other) { other.mode.synchronous = true; });
  decides("blocking", shown(65536), [](MessageShape& other) { other.mode.blocking = true; });
  decides("layout", shape(8), [](MessageShape& other) { other.layout = MemoryLayout::strided; });
  decides("same process", shape(kMiB), [](MessageShape& other) { other.same_process = true; });
  decides("same device", lent(kMiB), [](MessageShape& other) { other.same_device = true; });
  decides("same node", shape(8), [](MessageShape& other) { other.same_node = false; });
  decides("lent", lent(8), [](MessageShape& other) { other.lent = false; });
  decides("shown", shown(65536), [](MessageShape& other) { other.shown = false; });
  decides("slots", shape(8), [](MessageShape& other) { other.slot_limit = Bytes{}; });
  decides("one copy that is quicker", shape(8), [](MessageShape& other) { other.slots_up_to = Bytes{7}; });
  decides("cells", shape(4096), [](MessageShape& other) { other.cell_limit = Bytes{}; });
  decides("a mailbox", with_worker(8), [](MessageShape& other) { other.mailbox_limit = Bytes{2048}; });
}

std::string reason(const MessageShape& message, ist_carrier carrier) {
  for (const OfferedCarrier& offer : offers(message, MachineProfile{}))
    if (offer.carrier == carrier) return offer.price.refused() != nullptr ? offer.price.refused() : "possible";
  return "not offered";
}

constexpr std::array kAllCarriers{IST_CARRIER_SLOT,   IST_CARRIER_CELL,   IST_CARRIER_RING,
                                  IST_CARRIER_DIRECT, IST_CARRIER_DEVICE, IST_CARRIER_MAILBOX};

// A message that carrier takes.
MessageShape taken_by(ist_carrier carrier) {
  if (carrier == IST_CARRIER_DIRECT) return shown(8);
  return carrier == IST_CARRIER_DEVICE || carrier == IST_CARRIER_MAILBOX ? with_mailbox(8) : shape(8);
}

TEST(Refusal, EveryCarrierTellsWhatItCannotCarryWhateverElseStandsAgainstIt) {
  for (const ist_carrier carrier : kAllCarriers) {
    const MessageShape good = taken_by(carrier);
    EXPECT_EQ(reason(good, carrier), "possible") << ist_carrier{carrier};
    for (const MemoryLayout layout : {MemoryLayout::strided, MemoryLayout::listed})
      EXPECT_EQ(reason(in_layout(good, layout), carrier), "only contiguous messages are carried so far");
    EXPECT_NE(reason(on_two_nodes(good), carrier).find("node"), std::string::npos) << reason(on_two_nodes(good), carrier);
    EXPECT_EQ(reason(in_layout(on_two_nodes(shape(1ULL << 40)), MemoryLayout::strided), carrier),
              "only contiguous messages are carried so far");
  }
}

TEST(Refusal, EveryReasonIsItsOwn) {
  constexpr std::uint64_t kMiB = 1 << 20;
  const auto says = [](const MessageShape& message, ist_carrier carrier, const char* words) {
    EXPECT_NE(reason(message, carrier).find(words), std::string::npos) << reason(message, carrier) << ", not: " << words;
  };
  says(shape(217), IST_CARRIER_SLOT, "longer than a slot");
  says(shape(8, KindId::cuda), IST_CARRIER_SLOT, "not page-locked");
  says(in_mode(shape(8), kSynchronous), IST_CARRIER_SLOT, "synchronous");
  says(shape(65537), IST_CARRIER_CELL, "eager limit");
  says(in_mode(shape(8), kSynchronous), IST_CARRIER_CELL, "synchronous");
  says(shape(kMiB, KindId::host, true), IST_CARRIER_RING, "with itself");
  says(shape(kMiB), IST_CARRIER_DIRECT, "two processes");
  says(in_mode(shown(kMiB), kBlocking), IST_CARRIER_DIRECT, "who blocks");
  says(in_mode(shape(kMiB), kBlocking), IST_CARRIER_DIRECT, "two processes");
  says(shape(kMiB, KindId::cuda), IST_CARRIER_DEVICE, "cannot open");
  says(into(kMiB, MemoryClass::managed), IST_CARRIER_DEVICE, "receiver's class");
  says(to_device(kMiB, MemoryClass::pageable), IST_CARRIER_DEVICE, "not known to be page-locked");
  says(with(lent(kMiB), [](MessageShape& made) { made.to = {}; }), IST_CARRIER_DEVICE, "not known to be page-locked");
  says(shape(kMiB), IST_CARRIER_DEVICE, "neither side");
  says(in_mode(with_mailbox(8), kSynchronous), IST_CARRIER_MAILBOX, "synchronous");
  says(with_worker(8), IST_CARRIER_MAILBOX, "no open mailbox");
  says(with_mailbox(0), IST_CARRIER_MAILBOX, "nothing to carry");
  says(with_mailbox(2049), IST_CARRIER_MAILBOX, "longer than a place");
  says(with(with_mailbox(8), [](MessageShape& made) { made.memory = MemoryClass::managed; }), IST_CARRIER_MAILBOX,
       "cudaMalloc and pools");
  says(with(with_mailbox(8), [](MessageShape& made) { made.same_device = true; }), IST_CARRIER_MAILBOX, "take turns");
}

// What is not known of the receiver is no reason: its buffer is taken to be as the sender's.
TEST(PriceOf, AnUnknownReceiverIsThatOfOneWithTheSendersKind) {
  const MachineProfile machine;
  for (const KindId kind : {KindId::host, KindId::cuda, KindId::opencl})
    for (const Price price : kPrices)
      for (const std::uint64_t bytes : {0ULL, 8ULL, 65536ULL, 1ULL << 30}) {
        const MessageShape known = with(shape(bytes, kind), [&](MessageShape& made) {
          made.to = {kind, MemoryClass::unknown};
        });
        EXPECT_EQ(price(shape(bytes, kind), machine), price(known, machine)) << bytes;
      }
}

TEST(PriceOf, PageableMemoryAndADeviceHasTheHostsCopyBesideTheDevices) {
  MachineProfile machine;
  machine.host_copy_beta = 1e-9;
  machine.device_copy_beta = 0.1e-9;
  const double bytes = static_cast<double>(mebibytes(1).value);
  const MessageShape pageable = to_device(mebibytes(1).value, MemoryClass::pageable);
  const MessageShape pinned = to_device(mebibytes(1).value, MemoryClass::pinned);
  EXPECT_NEAR(price::ring(pageable, machine) - price::device(pinned, machine), bytes * 0.9e-9, 1e-12);
}

TEST(PaysWithinDevice, FromTwoMebibytesOnWithTheBuiltInNumbersAndAsTheMachinesSay) {
  EXPECT_FALSE(pays_within_device(Bytes{1}, MachineProfile{}));
  EXPECT_FALSE(pays_within_device(Bytes{mebibytes(2).value - 1}, MachineProfile{}));
  EXPECT_TRUE(pays_within_device(mebibytes(2), MachineProfile{}));
  EXPECT_TRUE(pays_within_device(mebibytes(64), MachineProfile{}));
  EXPECT_TRUE(pays_within_device(Bytes{1}, with_turn(0)));
  EXPECT_FALSE(pays_within_device(mebibytes(2), with_turn(300e-6)));
}

}  // namespace
}  // namespace ist
