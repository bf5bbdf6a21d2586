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

// Copy engines for which rows are as good as bytes in one piece; and of which one row takes as long as a copy.
MachineProfile good_engines() {
  MachineProfile machine;
  machine.device_rows_alpha = machine.device_copy_alpha / 2;
  machine.device_row_each = 0;
  machine.device_rows_beta = machine.device_pack_beta;
  return machine;
}
MachineProfile poor_engines() {
  MachineProfile machine;
  machine.device_row_each = machine.device_copy_alpha;
  return machine;
}
// A device whose memory kernels are slow in, beside a copy engine.
MachineProfile engines_in_memory() {
  MachineProfile machine = slow_memory();
  machine.device_rows_beta = machine.device_pack_beta / 4;
  return machine;
}
PackedShape in_rows(MessageShape message, std::uint64_t block) {
  PackedShape made{message, 16};
  made.rows = static_cast<std::int64_t>((message.bytes.value + block - 1) / block);
  return made;
}
// Between a device and the host, through the pair's slots.
PackedShape to_host(std::uint64_t bytes, std::uint64_t block) {
  return in_rows(with(shape(bytes, KindId::cuda),
                      [](MessageShape& made) {
                        made.to = {KindId::host, MemoryClass::pinned};
                      }),
                 block);
}
PackedShape from_host(std::uint64_t bytes, std::uint64_t block) {
  return in_rows(with(shape(bytes), [](MessageShape& made) { made.to = {KindId::cuda, MemoryClass::device}; }), block);
}

// Whose slots kernels of the device reach.
PackedShape mapped(PackedShape made) {
  made.no_slots = nullptr;
  return made;
}
// Kernels that are slow over the bus; that only load slowly from there.
MachineProfile slow_mapped() {
  MachineProfile machine;
  machine.device_mapped_beta = machine.device_mapped_load_beta = 4 * machine.host_copy_beta;
  return machine;
}
MachineProfile shared_device() {
  MachineProfile machine;
  machine.shares_device = true;
  return machine;
}
MachineProfile slow_mapped_loads() {
  MachineProfile machine;
  machine.device_mapped_beta = machine.device_copy_beta;
  machine.device_mapped_load_beta = 4 * machine.device_copy_beta;
  return machine;
}

std::vector<PackingCase> cases_of_slots() {
  constexpr auto kBlock = PackingWay::block, kLink = PackingWay::link, kSlotRows = PackingWay::slot_rows,
                 kSlots = PackingWay::slots;
  const MachineProfile usual;
  return {
      {"blocks of 4 bytes to the host, whose slots kernels reach", usual, mapped(to_host(mebibytes(16).value, 4)), kSlots,
       kSlots},
      {"the same from a device that another rank has, too", shared_device(), mapped(to_host(mebibytes(16).value, 4)), kBlock,
       kBlock},
      {"blocks of 4 bytes from there", usual, mapped(from_host(mebibytes(16).value, 4)), kSlots, kSlots},
      {"the same over a bus that kernels are slow on", slow_mapped(), mapped(to_host(mebibytes(16).value, 4)), kBlock,
       kBlock},
      {"from there", slow_mapped(), mapped(from_host(mebibytes(16).value, 4)), kBlock, kBlock},
      {"what kernels store quickly and load slowly", slow_mapped_loads(),
       mapped({shape(mebibytes(16).value, KindId::cuda), 16}), kSlots, kBlock},
      {"long rows to the host by an engine that is quicker than kernels", good_engines(),
       mapped(to_host(mebibytes(16).value, 65536)), kSlotRows, kSlotRows},
      {"few bytes, which fit a cell", usual, mapped(to_host(65536, 4)), kBlock, kBlock},
      {"what a device opens, whose slots its kernels reach, too", usual, mapped(packed(mebibytes(1).value)), kLink, kLink},
      {"a list to another process that opens nothing", usual, mapped({shape(kibibytes(256).value, KindId::cuda), 16}),
       kSlots, kSlots},
      {"a longer one, of which the bytes count more than a kernel", usual,
       mapped({shape(mebibytes(16).value, KindId::cuda), 16}), kBlock, kBlock},
      {"such a list in one process", usual,
       mapped({with(shape(mebibytes(1).value, KindId::cuda), [](MessageShape& made) { made.same_process = true; }), 16}),
       kBlock, kBlock},
      {"to another node", usual, mapped({on_two_nodes(shape(mebibytes(1).value, KindId::cuda)), 16}), kBlock, kBlock},
  };
}

std::vector<PackingCase> other_cases() {
  constexpr auto kBlock = PackingWay::block, kLink = PackingWay::link, kBlockRows = PackingWay::block_rows,
                 kLinkRows = PackingWay::link_rows, kSlotRows = PackingWay::slot_rows;
  const MachineProfile usual;
  return {
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
      {"long rows to the host", usual, to_host(mebibytes(16).value, 65536), kSlotRows, kSlotRows},
      {"blocks of 4 bytes to the host", usual, to_host(mebibytes(16).value, 4), kBlock, kBlock},
      {"few long rows to the host, which fit a cell", usual, to_host(65536, 16384), kBlock, kBlock},
      {"blocks of 4 bytes to the host with such engines", good_engines(), to_host(mebibytes(16).value, 4), kSlotRows,
       kSlotRows},
      {"long rows to the host with other ones", poor_engines(), to_host(mebibytes(16).value, 65536), kBlock, kBlock},
      {"long rows from the host", usual, from_host(mebibytes(16).value, 65536), kSlotRows, kSlotRows},
      {"blocks of 4 bytes from the host", usual, from_host(mebibytes(16).value, 4), kBlock, kBlock},
      {"long rows from device to device", usual, in_rows(lent(mebibytes(64).value), 1 << 20), kLink, kLink},
      {"the same with good engines", good_engines(), in_rows(lent(mebibytes(64).value), 1 << 20), kLinkRows, kLinkRows},
      {"blocks of 4 bytes with others", poor_engines(), in_rows(lent(mebibytes(64).value), 4), kLink, kLink},
      {"long rows within one device of both, by its engine", engines_in_memory(),
       in_rows(on_one_device(mebibytes(16).value), 1 << 20), kBlockRows, kBlockRows},
      {"long rows in one process", engines_in_memory(),
       in_rows(with(lent(mebibytes(16).value), [](MessageShape& made) { made.same_process = true; }), 1 << 20), kBlockRows,
       kBlockRows},
      {"long rows to another node", usual, in_rows(on_two_nodes(shape(mebibytes(16).value, KindId::cuda)), 1 << 20), kBlock,
       kBlock},
  };
}

const std::vector<PackingCase>& cases() {
  static const std::vector<PackingCase> all = [] {
    std::vector<PackingCase> made = other_cases();
    for (PackingCase& one : cases_of_slots()) made.push_back(std::move(one));
    return made;
  }();
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
    for (const bool packs : {true, false}) {
      const auto offers = packs ? packings(one.shape, one.machine) : unpackings(one.shape, one.machine);
      ASSERT_EQ(offers.size(), 6U);
      for (std::size_t i = 0; i < offers.size(); ++i) {
        const OfferedPacking& offer = offers[i];
        ASSERT_EQ(offer.way, static_cast<PackingWay>(i));
        const double sum =
            packs ? price::packing(offer.way, one.shape, one.machine) : price::unpacking(offer.way, one.shape, one.machine);
        EXPECT_EQ(sum, offer.price.seconds()) << one.what;
        if (offer.price.refused() != nullptr) continue;
        double terms = 0;
        for (const Term& term : offer.price.terms()) terms += term.seconds;
        EXPECT_DOUBLE_EQ(terms, sum) << one.what;
      }
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

TEST(ChoosePacking, OfTwoLayoutsBothPricesAreExplainedAndTheLowerOneIsTaken) {
  ExplainedMessage message;
  message.from = message.to = {KindId::cuda, MemoryClass::device};
  message.slot_limit = kSlotLimit;
  message.cell_limit = kCellLimit;
  int one = 0, two = 0;
  for (const MachineProfile& machine : {MachineProfile{}, slow_loads()})
    for (const std::uint64_t mib : {1, 64, 1024}) {
      message.bytes = mebibytes(mib);
      const Explanation found = explain_apart(message, {}, 64, machine);
      const bool lends = lends_apart(packed(mebibytes(mib).value), machine);
      EXPECT_EQ(found.choice, lends ? "by one kernel" : "by two kernels");
      ASSERT_EQ(found.ways.size(), 2U);
      EXPECT_EQ(found.ways[0].price->seconds() < found.ways[1].price->seconds(), lends) << text_of(found, "");
      EXPECT_EQ(found.ways[0].chosen, lends);
      EXPECT_NE(found.ways[1].chosen, lends);
      ++(lends ? one : two);
    }
  EXPECT_GT(one, 0);
  EXPECT_GT(two, 0);
  message.from.memory = MemoryClass::pool;
  const Explanation pool = explain_apart(message, {}, 64, MachineProfile{});
  EXPECT_NE(pool.ways[0].refused.find("sender's class"), std::string::npos) << text_of(pool, "");
  message.bytes = mebibytes(2048);
  message.from.memory = MemoryClass::device;
  EXPECT_NE(explain_apart(message, {}, 64, MachineProfile{}).ways[0].refused, "");
}

// Bytes over a link cost what they did, and units that are narrower cost more, of memory below four bytes alone.
TEST(ChoosePacking, CountsBytesOnceOverTheLinkAndNarrowUnitsMore) {
  const MachineProfile machine;
  const auto of = [&](std::uint64_t bytes, std::int64_t width) {
    return price::packing(PackingWay::link, packed(bytes, width), machine) -
           price::packing(PackingWay::link, packed(0, width), machine);
  };
  constexpr double kMany = 1 << 30;
  EXPECT_NEAR(of(1 << 30, 16), kMany * machine.device_link_beta, 1e-9);
  EXPECT_NEAR(of(1 << 30, 4), kMany * machine.device_link_beta, 1e-9);
  EXPECT_GT(of(1 << 30, 2), of(1 << 30, 4));
  EXPECT_GT(of(1 << 30, 1), of(1 << 30, 2));
  const auto apart = [&](std::int64_t width) {
    return price::unpacking(PackingWay::block, packed(1 << 30, width), machine);
  };
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
  EXPECT_EQ(explain_packing(message, {}, machine).choice, "over the link");
  const Explanation unpacking = explain_unpacking(message, {}, machine);
  EXPECT_EQ(unpacking.choice, "over the link");
  EXPECT_NE(text_of(unpacking, "").find("unpacks out of the sender's memory"), std::string::npos) << text_of(unpacking, "");
  const auto refused = [&](const auto& change, const std::string& words) {
    ExplainedMessage other = message;
    change(other);
    const Explanation found = explain_packing(other, {}, machine);
    EXPECT_EQ(found.choice, "in a block") << words;
    ASSERT_EQ(found.ways.size(), 6U);
    EXPECT_NE(found.ways[1].refused.find(words), std::string::npos) << found.ways[1].refused;
  };
  refused([](ExplainedMessage& other) { other.not_lent = "ISTHMUS_DEVICE_IPC is never"; }, "ISTHMUS_DEVICE_IPC is never");
  refused([](ExplainedMessage& other) { other.last_was_lent = false; }, "or not yet");
  refused([](ExplainedMessage& other) { other.same_device = true; }, "take turns on one device");
  refused([](ExplainedMessage& other) { other.same_process = true; }, "one process");
  refused([](ExplainedMessage& other) { other.to.memory = MemoryClass::vmm; }, "of the receiver's class");
  refused([](ExplainedMessage& other) { other.to = {KindId::host, MemoryClass::pinned}; }, "CUDA memory on both sides");
}

// Of each step alone what the whole choice says of it.
TEST(ChoosePacking, ComparesStepsAsItDoesMessages) {
  for (const MachineProfile& machine : {MachineProfile{}, good_engines(), poor_engines(), engines_in_memory()})
    for (const std::uint64_t block : {4U, 256U, 4096U, 65536U, 1U << 20}) {
      const PackedShape link = in_rows(lent(mebibytes(16).value), block), host = to_host(mebibytes(16).value, block);
      const auto of = [&](PackingWay way, const PackedShape& shape) { return price::packing(way, shape, machine); };
      EXPECT_EQ(rows_over_link(link, machine), of(PackingWay::link_rows, link) < of(PackingWay::link, link)) << block;
      EXPECT_EQ(rows_within_device(link, machine), of(PackingWay::block_rows, link) < of(PackingWay::block, link)) << block;
      EXPECT_EQ(rows_over_bus(host, machine), of(PackingWay::slot_rows, host) < of(PackingWay::block, host)) << block;
    }
  for (const MachineProfile& machine : {MachineProfile{}, good_engines(), poor_engines(), slow_mapped(), slow_mapped_loads(),
                                        slow_memory(), shared_device()})
    for (const std::uint64_t block : {1U, 4U, 256U, 65536U, 1U << 20})
      for (const bool reached : {false, true})
        for (const KindId other : {KindId::host, KindId::cuda}) {
          PackedShape out = to_host(mebibytes(16).value, block), in = from_host(mebibytes(16).value, block);
          out.message.to.kind = in.message.kind = other;
          out.width = in.width = static_cast<std::int64_t>(std::min<std::uint64_t>(block, 16));
          if (reached) out.no_slots = in.no_slots = nullptr;
          EXPECT_EQ(through_slots(out, other, false, machine), choose_packing(out, machine)) << block << reached;
          EXPECT_EQ(through_slots(in, other, true, machine), choose_unpacking(in, machine)) << block << reached;
        }
  PackedShape none = to_host(mebibytes(16).value, 65536);
  none.rows = 0;
  for (const auto pays : {rows_over_link, rows_within_device, rows_over_bus, rows_of_host})
    EXPECT_FALSE(pays(none, good_engines())) << "what is no rows";
  EXPECT_TRUE(rows_of_host(to_host(mebibytes(16).value, 65536), MachineProfile{}));
  EXPECT_FALSE(rows_of_host(to_host(mebibytes(16).value, 4), MachineProfile{}));
}

// 16 MiB from a device into page-locked memory.
ExplainedMessage out_of_device() {
  ExplainedMessage message;
  message.bytes = mebibytes(16);
  message.from = {KindId::cuda, MemoryClass::device};
  message.to = {KindId::host, MemoryClass::pinned};
  message.slot_limit = kSlotLimit;
  message.cell_limit = kCellLimit;
  return message;
}

TEST(ChoosePacking, TellsOfRowsWhatTheyCostAndWhyThereAreNone) {
  const ExplainedMessage message = out_of_device();
  const MachineProfile machine;
  const Explanation rows = explain_packing(message, {16, 256, ""}, machine);
  EXPECT_EQ(rows.choice, "rows in slots") << text_of(rows, "");
  EXPECT_NE(text_of(rows, "").find("their rows"), std::string::npos) << text_of(rows, "");
  const Explanation words = explain_packing(message, {4, 4 << 20, ""}, machine);
  EXPECT_EQ(words.choice, "in a block") << text_of(words, "");
  EXPECT_TRUE(words.ways[5].refused.empty()) << "priced, and too dear: " << words.ways[5].refused;
  const Explanation list =
      explain_packing(message, {4, 0, "the layout is a list of runs, and no rows of one length"}, machine);
  EXPECT_NE(list.ways[3].refused.find("list of runs"), std::string::npos) << list.ways[3].refused;
}

// Whatever it would cost.
TEST(ChoosePacking, PacksIntoNoSlotsThatKernelsDoNotReach) {
  MachineProfile machine;
  machine.device_mapped_beta = machine.device_mapped_load_beta = 0;
  machine.device_pack_beta = 1;
  for (const PackingCase& one : cases()) {
    PackedShape shape = one.shape;
    shape.no_slots = "they are not mapped";
    EXPECT_NE(choose_packing(shape, machine), PackingWay::slots) << one.what;
    EXPECT_NE(choose_unpacking(shape, machine), PackingWay::slots) << one.what;
    for (const bool unpacks : {false, true})
      EXPECT_NE(through_slots(shape, KindId::host, unpacks, machine), PackingWay::slots) << one.what;
  }
}

TEST(ChoosePacking, TellsOfSlotsWhatKernelsCostThereAndWhyTheyDoNotReachThem) {
  ExplainedMessage message = out_of_device();
  const MachineProfile machine;
  const ExplainedLayout list{8, 0, "the layout is a list", nullptr};
  const Explanation slots = explain_packing(message, list, machine);
  EXPECT_EQ(slots.choice, "in slots") << text_of(slots, "");
  EXPECT_NE(text_of(slots, "").find("kernels that pack into the slots"), std::string::npos) << text_of(slots, "");
  const Explanation block = explain_packing(message, {8, 0, "the layout is a list", "no slot is mapped"}, machine);
  EXPECT_EQ(block.choice, "in a block") << text_of(block, "");
  EXPECT_EQ(block.ways[2].refused, "no slot is mapped");
  std::swap(message.from, message.to);
  const Explanation out = explain_unpacking(message, list, machine);
  EXPECT_EQ(out.choice, "in slots") << text_of(out, "");
  EXPECT_NE(text_of(out, "").find("kernels that unpack out of the slots"), std::string::npos) << text_of(out, "");
}

}  // namespace
}  // namespace ist
