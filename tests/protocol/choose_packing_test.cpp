// Where the bytes of a layout come together, on invented machines: each way wins somewhere, and each that cannot be says why.
#include "protocol/choose_packing.hpp"

#include <gtest/gtest.h>

#include <string>

#include "invented_messages.hpp"
#include "protocol/explain_packing.hpp"

namespace ist {
namespace {

struct PackingCase {
  const char* what;
  MachineProfile machine;
  PackedShape shape;
  PackingWay packing;
  PackingWay unpacking;
};

// Kernels that start late: two of them cost more than a kernel, and a copy that starts at once.
MachineProfile dear_link_starts() {
  MachineProfile machine;
  machine.device_link_alpha = 100e-6;
  return machine;
}
MachineProfile slow_loads() {
  MachineProfile machine;
  machine.device_load_factor = 3;
  return machine;
}
// A device whose kernels pack hardly quicker than the link.
MachineProfile slow_memory() {
  MachineProfile machine;
  machine.device_pack_beta = machine.device_link_beta;
  return machine;
}
PackedShape packed(std::uint64_t bytes, std::int64_t width = 16) { return {lent(bytes), width}; }

const std::vector<PackingCase>& cases() {
  constexpr auto kBlock = PackingWay::block, kLink = PackingWay::link;
  static const MachineProfile usual;
  static const std::vector<PackingCase> all{
      {"few bytes", usual, packed(8), kLink, kLink},
      {"many bytes", usual, packed(mebibytes(256).value), kLink, kLink},
      {"many single bytes", usual, packed(mebibytes(256).value, 1), kLink, kLink},
      {"few bytes where what goes over the link starts late", dear_link_starts(), packed(8), kBlock, kBlock},
      {"many bytes there", dear_link_starts(), packed(mebibytes(256).value), kLink, kLink},
      {"few bytes where loads over the link are slow", slow_loads(), packed(4096), kLink, kLink},
      {"many bytes there", slow_loads(), packed(mebibytes(64).value), kLink, kBlock},
      {"many bytes where memory is slow, too", slow_memory(), packed(mebibytes(64).value), kLink, kLink},
      {"what nobody lends", usual, {shape(mebibytes(1).value, KindId::cuda), 16}, kBlock, kBlock},
      {"what lies on one device of both", usual, {on_one_device(mebibytes(16).value), 16}, kBlock, kBlock},
      {"what no other process opens as it is", usual, {into(4096, MemoryClass::managed), 16}, kBlock, kBlock},
      {"within a process",
       usual,
       {with(packed(4096).message, [](MessageShape& made) { made.same_process = true; }), 16},
       kBlock,
       kBlock},
      {"to another node", usual, {on_two_nodes(lent(4096)), 16}, kBlock, kBlock},
      {"of host memory", usual, {shape(4096), 16}, kBlock, kBlock},
      {"of OpenCL memory",
       usual,
       {with(packed(4096).message, [](MessageShape& made) { made.kind = KindId::opencl; }), 16},
       kBlock,
       kBlock},
  };
  return all;
}

TEST(ChoosePacking, IsTheCheapestOfWhatIsPossible) {
  for (const PackingCase& one : cases()) {
    EXPECT_EQ(choose_packing(one.shape, one.machine), one.packing) << one.what;
    EXPECT_EQ(choose_unpacking(one.shape, one.machine), one.unpacking) << one.what;
  }
}

TEST(ChoosePacking, HasTheSamePriceAndTermsForChoosingAndForPeople) {
  for (const PackingCase& one : cases()) {
    const auto packed = packings(one.shape, one.machine), unpacked = unpackings(one.shape, one.machine);
    const double sums[] = {price::pack_in_block(one.shape, one.machine), price::pack_over_link(one.shape, one.machine),
                           price::unpack_from_block(one.shape, one.machine),
                           price::unpack_over_link(one.shape, one.machine)};
    const Bill* const bills[] = {&packed[0].price, &packed[1].price, &unpacked[0].price, &unpacked[1].price};
    ASSERT_EQ(packed[0].way, PackingWay::block);
    ASSERT_EQ(unpacked[1].way, PackingWay::link);
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(sums[i], bills[i]->seconds()) << one.what;
      if (bills[i]->refused() != nullptr) continue;
      double terms = 0;
      for (const Term& term : bills[i]->terms()) terms += term.seconds;
      EXPECT_DOUBLE_EQ(terms, sums[i]) << one.what;
    }
  }
}

// Both sides have gaps.
TEST(ChoosePacking, LendsWhatLiesApartWhereThatSavesAKernel) {
  const MachineProfile usual;
  EXPECT_TRUE(lends_apart(packed(4096), usual));
  EXPECT_TRUE(lends_apart(packed(mebibytes(256).value), usual));
  EXPECT_TRUE(lends_apart(packed(4096), slow_loads())) << "a kernel's start is more than that";
  EXPECT_FALSE(lends_apart(packed(mebibytes(64).value), slow_loads()));
  EXPECT_FALSE(lends_apart({shape(mebibytes(1).value, KindId::cuda), 16}, usual)) << "what nobody lends";
  EXPECT_FALSE(lends_apart({on_one_device(mebibytes(16).value), 16}, usual));
}

// Bytes over a link cost what they did, and units that are narrower cost more, of memory below four bytes alone.
TEST(ChoosePacking, CountsBytesOnceOverTheLinkAndNarrowUnitsMore) {
  const MachineProfile machine;
  const auto of = [&](std::uint64_t bytes, std::int64_t width) {
    return price::pack_over_link(packed(bytes, width), machine) - price::pack_over_link(packed(0, width), machine);
  };
  constexpr double kMany = 1 << 30;
  EXPECT_NEAR(of(1 << 30, 16), kMany * machine.device_link_beta, 1e-9);
  EXPECT_NEAR(of(1 << 30, 4), kMany * machine.device_link_beta, 1e-9);
  EXPECT_GT(of(1 << 30, 2), of(1 << 30, 4));
  EXPECT_GT(of(1 << 30, 1), of(1 << 30, 2));
  const auto apart = [&](std::int64_t width) { return price::unpack_from_block(packed(1 << 30, width), machine); };
  EXPECT_EQ(apart(16), apart(4));
  EXPECT_GT(apart(2), apart(4));
}

TEST(ChoosePacking, IsExplainedWithWhatStandsAgainstEachWay) {
  ExplainedMessage message;
  message.bytes = mebibytes(1);
  message.from = message.to = {KindId::cuda, MemoryClass::device};
  message.slot_limit = kSlotLimit;
  message.cell_limit = kCellLimit;
  const MachineProfile machine;
  EXPECT_EQ(explain_packing(message, 16, machine).choice, "over the link");
  const Explanation unpacking = explain_unpacking(message, 16, machine);
  EXPECT_EQ(unpacking.choice, "over the link");
  EXPECT_NE(text_of(unpacking, "").find("unpacks out of the sender's memory"), std::string::npos) << text_of(unpacking, "");
  const auto refused = [&](const auto& change, const std::string& words) {
    ExplainedMessage other = message;
    change(other);
    const Explanation found = explain_packing(other, 16, machine);
    EXPECT_EQ(found.choice, "in a block") << words;
    ASSERT_EQ(found.ways.size(), 2U);
    EXPECT_NE(found.ways[1].refused.find(words), std::string::npos) << found.ways[1].refused;
  };
  refused([](ExplainedMessage& other) { other.not_lent = "ISTHMUS_DEVICE_IPC is never"; }, "ISTHMUS_DEVICE_IPC is never");
  refused([](ExplainedMessage& other) { other.last_was_lent = false; }, "or not yet");
  refused([](ExplainedMessage& other) { other.same_device = true; }, "take turns on one device");
  refused([](ExplainedMessage& other) { other.same_process = true; }, "one process");
  refused([](ExplainedMessage& other) { other.to.memory = MemoryClass::vmm; }, "of the receiver's class");
  refused([](ExplainedMessage& other) { other.to = {KindId::host, MemoryClass::pinned}; }, "CUDA memory on both sides");
}

}  // namespace
}  // namespace ist
