// What a message takes, by kind and class of memory on both sides, on one device or two, on invented machines: every way wins
// somewhere, and what does not win says why.
#include "protocol/explain.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "protocol/explain_stream.hpp"

namespace ist {
namespace {

constexpr Bytes kSlotLimit{4096};
constexpr Bytes kCellLimit = kibibytes(16);
constexpr MessageEnd kPageable{};
constexpr MessageEnd kPinned{KindId::host, MemoryClass::pinned};
constexpr MessageEnd kRegistered{KindId::host, MemoryClass::registered};
constexpr MessageEnd kDevice{KindId::cuda, MemoryClass::device};
constexpr MessageEnd kManaged{KindId::cuda, MemoryClass::managed};
constexpr MessageEnd kPool{KindId::cuda, MemoryClass::pool};
constexpr MessageEnd kOpencl{KindId::opencl, MemoryClass::device};

ExplainedMessage between(const MessageEnd& from, const MessageEnd& to, std::uint64_t bytes) {
  ExplainedMessage message;
  message.bytes = Bytes{bytes};
  message.from = from;
  message.to = to;
  message.slot_limit = kSlotLimit;
  message.cell_limit = kCellLimit;
  return message;
}

ExplainedMessage to_itself(const MessageEnd& end, std::uint64_t bytes) {
  ExplainedMessage message = between(end, end, bytes);
  message.same_process = true;
  message.slot_limit = Bytes{216};
  return message;
}

ExplainedMessage on_one_device(const MessageEnd& to, std::uint64_t bytes) {
  ExplainedMessage message = between(kDevice, to, bytes);
  message.same_device = true;
  return message;
}

ExplainedMessage with_workers(ExplainedMessage message, std::uint64_t mailbox = 2048) {
  message.worker_limit = kibibytes(2);
  message.mailbox_limit = Bytes{mailbox};
  return message;
}

ExplainedMessage single(ExplainedMessage message, const char* setting) {
  message.single_copy = setting;
  return message;
}

ExplainedMessage not_lent(ExplainedMessage message) {
  message.not_lent = "the driver said no";
  return message;
}

ExplainedMessage was_not_lent(ExplainedMessage message) {
  message.last_was_lent = false;
  return message;
}

ExplainedMessage unreadable(ExplainedMessage message) {
  message.readable = [] { return Status{IST_ERR_SYSTEM, "the kernel said no"}; };
  return message;
}

constexpr std::uint64_t kMiB = 1 << 20;

struct Case {
  const char* why;
  ExplainedMessage message;
  ist_carrier carrier;
  const char* choice;
};

MachineProfile usual() { return {}; }

const std::vector<Case>& table() {
  static const std::vector<Case> cases{
      {"nothing", between(kPageable, kPageable, 0), IST_CARRIER_SLOT, "slot"},
      {"a slot's worth", between(kPageable, kPageable, 4096), IST_CARRIER_SLOT, "slot"},
      {"one past a slot", between(kPageable, kPageable, 4097), IST_CARRIER_CELL, "cell"},
      {"a cell's worth", between(kPageable, kPageable, 16384), IST_CARRIER_CELL, "cell"},
      {"one past a cell", between(kPageable, kPageable, 16385), IST_CARRIER_RING, "ring or single copy"},
      {"where it is always tried", single(between(kPageable, kPageable, 16385), "always"), IST_CARRIER_SINGLE_COPY,
       "single copy"},
      {"and what needs no announcing", single(between(kPageable, kPageable, 16384), "always"), IST_CARRIER_CELL, "cell"},
      {"where it never is", single(between(kPageable, kPageable, kMiB), "never"), IST_CARRIER_RING, "ring"},
      {"where the kernel refuses", unreadable(between(kPageable, kPageable, kMiB)), IST_CARRIER_RING, "ring"},
      {"even if it is asked for", single(unreadable(between(kPageable, kPageable, kMiB)), "always"), IST_CARRIER_RING,
       "ring"},
      {"little to itself", to_itself(kPageable, 216), IST_CARRIER_SLOT, "slot"},
      {"much to itself", to_itself(kPageable, kMiB), IST_CARRIER_DIRECT, "direct"},
      {"much of a device to itself", to_itself(kDevice, kMiB), IST_CARRIER_DIRECT, "direct"},
      {"two devices, a byte", between(kDevice, kDevice, 1), IST_CARRIER_DEVICE, "device"},
      {"two devices, nothing", between(kDevice, kDevice, 0), IST_CARRIER_CELL, "cell"},
      {"two devices, a byte, workers on both", with_workers(between(kDevice, kDevice, 1)), IST_CARRIER_MAILBOX, "mailbox"},
      {"from a pool", with_workers(between(kPool, kDevice, 100)), IST_CARRIER_MAILBOX, "mailbox"},
      {"more than a place holds", with_workers(between(kDevice, kDevice, 2049)), IST_CARRIER_DEVICE, "device"},
      {"two devices, much", between(kDevice, kDevice, 64 * kMiB), IST_CARRIER_DEVICE, "device"},
      {"from managed memory", between(kManaged, kDevice, kMiB), IST_CARRIER_DEVICE, "device"},
      {"into managed memory", between(kDevice, kManaged, kMiB), IST_CARRIER_BLOCK, "block, else ring"},
      {"into a pool", between(kManaged, kPool, kMiB), IST_CARRIER_BLOCK, "block, else ring"},
      {"little into managed memory", between(kDevice, kManaged, 16384), IST_CARRIER_CELL, "cell"},
      {"one past a cell into managed memory", between(kDevice, kManaged, 16385), IST_CARRIER_BLOCK, "block, else ring"},
      {"within one device, below 2 MiB", on_one_device(kDevice, 2 * kMiB - 1), IST_CARRIER_RING, "ring"},
      {"within one device, little", on_one_device(kDevice, 8), IST_CARRIER_CELL, "cell"},
      {"within one device, from 2 MiB on", on_one_device(kDevice, 2 * kMiB), IST_CARRIER_DEVICE, "device"},
      {"within one device, below 2 MiB, managed", on_one_device(kManaged, 2 * kMiB - 1), IST_CARRIER_RING, "ring"},
      {"within one device, managed", on_one_device(kManaged, 2 * kMiB), IST_CARRIER_BLOCK, "block, else ring"},
      {"devices whose driver refuses", not_lent(between(kDevice, kDevice, kMiB)), IST_CARRIER_RING, "ring"},
      {"devices whose driver refuses, managed", not_lent(between(kDevice, kManaged, kMiB)), IST_CARRIER_RING, "ring"},
      {"after a message that was not lent", was_not_lent(between(kDevice, kDevice, 8)), IST_CARRIER_CELL, "cell"},
      {"a long one then", was_not_lent(between(kDevice, kDevice, kMiB)), IST_CARRIER_DEVICE, "device"},
      {"page-locked into a device", between(kPinned, kDevice, kMiB), IST_CARRIER_DEVICE, "device, else ring"},
      {"registered into a device", between(kRegistered, kDevice, kMiB), IST_CARRIER_DEVICE, "device, else ring"},
      {"a device into page-locked", between(kDevice, kPinned, kMiB), IST_CARRIER_DEVICE, "device, else ring"},
      {"little page-locked into a device", between(kPinned, kDevice, 8), IST_CARRIER_SLOT, "slot"},
      {"a little of a device into page-locked", between(kDevice, kPinned, 8), IST_CARRIER_CELL, "cell"},
      {"page-locked into managed memory", between(kPinned, kManaged, kMiB), IST_CARRIER_RING, "ring"},
      {"page-locked where the driver refuses", not_lent(between(kPinned, kDevice, kMiB)), IST_CARRIER_RING, "ring"},
      {"pageable into a device", between(kPageable, kDevice, kMiB), IST_CARRIER_RING, "ring"},
      {"between two page-locked ones", between(kPinned, kPinned, kMiB), IST_CARRIER_RING, "ring or single copy"},
      {"another kind of device", between(kOpencl, kOpencl, kMiB), IST_CARRIER_RING, "ring"},
      {"one kind to another", between(kDevice, kOpencl, kMiB), IST_CARRIER_RING, "ring"},
      {"little of it", between(kOpencl, kDevice, 8), IST_CARRIER_CELL, "cell"},
  };
  return cases;
}

// The star, the words and the carrier say the same.
TEST(ExplainMessage, WhatWasMeasuredOfOneCopyOrTwoIsSaidAndStarred) {
  const auto message = between(kPageable, kPageable, kMiB);
  for (const bool one_copy : {true, false}) {
    MachineProfile machine = usual();
    machine.one_copy_2m = one_copy ? 0.05e-9 : 0.2e-9;
    machine.two_copies_2m = 0.1e-9;
    const Explanation answer = explain(message, machine);
    EXPECT_EQ(answer.carrier, one_copy ? IST_CARRIER_SINGLE_COPY : IST_CARRIER_RING);
    EXPECT_EQ(answer.choice, one_copy ? "single copy or ring" : "ring or single copy");
    int stars = 0;
    for (const ExplainedWay& way : answer.ways) {
      stars += way.chosen ? 1 : 0;
      if (way.name != std::string{"single copy"}) continue;
      EXPECT_EQ(way.chosen, one_copy);
      EXPECT_EQ(way.meaning.substr(0, 24), "measured on this machine") << way.meaning;
    }
    EXPECT_EQ(stars, 1);
    // What was measured of other sizes says nothing of these.
    for (const std::uint64_t bytes : {kMiB - 1, 4 * kMiB})
      EXPECT_EQ(explain(between(kPageable, kPageable, bytes), machine).choice, "ring or single copy") << bytes;
  }
}

TEST(ExplainMessage, WhatIsTakenForEveryClassOfMemoryOnOneDeviceOrTwo) {
  for (const Case& one : table()) {
    const Explanation found = explain(one.message, usual());
    EXPECT_EQ(one.carrier, found.carrier) << one.why << ": " << found.choice;
    EXPECT_EQ(one.choice, found.choice) << one.why;
  }
}

TEST(ExplainMessage, EveryWayWinsSomewhere) {
  std::set<ist_carrier> winners;
  for (const Case& one : table()) winners.insert(explain(one.message, usual()).carrier);
  for (const ist_carrier carrier : {IST_CARRIER_SLOT, IST_CARRIER_CELL, IST_CARRIER_RING, IST_CARRIER_DIRECT,
                                    IST_CARRIER_DEVICE, IST_CARRIER_MAILBOX, IST_CARRIER_SINGLE_COPY, IST_CARRIER_BLOCK})
    EXPECT_TRUE(winners.contains(carrier)) << carrier_name(carrier);
}

// Slots dear and cells cheap; announcing for nothing; devices that copy at once, and those that copy slowly.
std::vector<MachineProfile> machines() {
  std::vector<MachineProfile> invented(4);
  invented[0].slot_alpha = 5e-6;
  invented[0].cell_alpha = 0.01e-6;
  invented[1].handshake_alpha = 0;
  invented[2].device_copy_alpha = 0;
  invented[3].device_link_beta = 1e-9;
  invented.push_back(usual());
  return invented;
}

// A way is refused with a reason, or has a price that adds up, or tells when it is taken; one is marked.
void expect_sound(const Case& one, const MachineProfile& machine) {
  const Explanation found = explain(one.message, machine);
  EXPECT_EQ(8U, found.ways.size()) << one.why;
  int chosen = 0;
  for (const ExplainedWay& way : found.ways) {
    chosen += way.chosen ? 1 : 0;
    EXPECT_FALSE(way.chosen && !way.refused.empty()) << one.why << ": " << way.name;
    if (way.refused.empty() && way.price) {
      double sum = 0;
      for (const Term& term : way.price->terms()) sum += term.seconds;
      EXPECT_EQ(sum, way.price->seconds()) << one.why << ": " << way.name;
      EXPECT_TRUE(std::isfinite(sum)) << one.why << ": " << way.name;
    } else {
      EXPECT_FALSE(way.refused.empty() && way.meaning.empty()) << one.why << ": " << way.name;
    }
  }
  EXPECT_EQ(1, chosen) << one.why;
}

TEST(ExplainMessage, OnEveryMachineEveryWayHasAPriceOrAReason) {
  for (const MachineProfile& machine : machines())
    for (const Case& one : table()) expect_sound(one, machine);
}

TEST(ExplainMessage, OnAMachineWhereSlotsAreDearCellsWin) {
  EXPECT_EQ(IST_CARRIER_CELL, explain(between(kPageable, kPageable, 8), machines()[0]).carrier);
  EXPECT_EQ(IST_CARRIER_SLOT, explain(between(kPageable, kPageable, 8), machines()[1]).carrier);
}

TEST(ExplainMessage, OnAMachineWhereCopiesBetweenDevicesAreDearTheRingWins) {
  MachineProfile machine;
  machine.device_link_beta = 1e-9;
  EXPECT_EQ(IST_CARRIER_RING, explain(between(kDevice, kDevice, kMiB), machine).carrier);
  EXPECT_EQ(IST_CARRIER_DEVICE, explain(between(kDevice, kDevice, 8), machine).carrier);
}

std::string reason(const ExplainedMessage& message, const std::string& way) {
  for (const ExplainedWay& one : explain(message, usual()).ways)
    if (one.name == way) return one.refused;
  return "there is no such way";
}

TEST(ExplainMessage, WhatStandsAgainstAWayIsSaid) {
  EXPECT_EQ("the driver said no", reason(not_lent(between(kDevice, kDevice, kMiB)), "device"));
  EXPECT_EQ("no worker runs on the sender's device, or not now: ISTHMUS_WORKER starts them",
            reason(between(kDevice, kDevice, 8), "mailbox"));
  EXPECT_EQ("the driver said no", reason(not_lent(with_workers(between(kDevice, kDevice, 8))), "mailbox"));
  EXPECT_EQ("workers carry what cudaMalloc and pools gave, on both sides",
            reason(with_workers(between(kManaged, kDevice, 8)), "mailbox"));
  EXPECT_EQ("the receiver's mailbox is not open (yet)", reason(with_workers(between(kDevice, kDevice, 8), 0), "mailbox"));
  EXPECT_EQ("the message is longer than a place of the mailbox",
            reason(with_workers(between(kDevice, kDevice, 2049)), "mailbox"));
  EXPECT_EQ("the driver said no", reason(not_lent(between(kDevice, kManaged, kMiB)), "block"));
  EXPECT_EQ("the kernel said no", reason(unreadable(between(kPageable, kPageable, kMiB)), "single copy"));
  EXPECT_NE(std::string::npos, reason(between(kDevice, kManaged, kMiB), "device").find("managed"));
  EXPECT_EQ("", reason(on_one_device(kDevice, 8), "device")) << "it has a price, with its share of a turn";
  EXPECT_NE(std::string::npos, reason(on_one_device(kManaged, 65536), "block").find("take turns"));
  EXPECT_NE(std::string::npos, reason(was_not_lent(between(kDevice, kDevice, 8)), "device").find("sixteenth"));
  EXPECT_NE(std::string::npos, reason(to_itself(kDevice, kMiB), "device").find("one process"));
  EXPECT_NE(std::string::npos, reason(between(kPinned, kDevice, 8), "device").find("not announced"));
  EXPECT_EQ("", reason(between(kDevice, kDevice, kMiB), "device"));
  EXPECT_EQ("", reason(between(kDevice, kManaged, kMiB), "block"));
}

TEST(ExplainMessage, ATurnIsATermOfThePriceAndSaidOfAWayThatIsWanted) {
  const Explanation found = explain(on_one_device(kDevice, 8), usual());
  std::string terms;
  for (const ExplainedWay& way : found.ways)
    if (way.name == "device")
      for (const Term& term : way.price->terms()) terms += std::string{term.name} + "\n";
  EXPECT_NE(std::string::npos, terms.find("take turns")) << terms;
  EXPECT_NE(std::string::npos, found.remark.find("take turns")) << found.remark;
  const std::string brief = in_brief(found, IST_CARRIER_DEVICE);
  EXPECT_NE(std::string::npos, brief.find("; not by device: 0.100 telling of the message")) << brief;
  EXPECT_EQ(std::string::npos, in_brief(found, IST_CARRIER_CELL).find("not by")) << "that is the one";
}

TEST(ExplainMessage, ASynchronousOneIsAnnouncedWhateverItsSize) {
  const auto synchronous = [](ExplainedMessage message) {
    message.mode.synchronous = true;
    return message;
  };
  EXPECT_EQ("ring or single copy", explain(synchronous(between(kPageable, kPageable, 8)), usual()).choice);
  EXPECT_EQ("direct", explain(synchronous(to_itself(kPageable, 8)), usual()).choice);
  EXPECT_EQ("device", explain(synchronous(with_workers(between(kDevice, kDevice, 8))), usual()).choice);
  EXPECT_NE(std::string::npos, reason(synchronous(between(kPageable, kPageable, 8)), "slot").find("synchronous"));
  EXPECT_NE(std::string::npos,
            reason(synchronous(with_workers(between(kDevice, kDevice, 8))), "mailbox").find("synchronous"));
}

TEST(ExplainMessage, BetweenHostAndDeviceBothCopiesArePaid) {
  const auto price = [](const MessageEnd& from, const MessageEnd& to, const char* name) {
    for (const ExplainedWay& way : explain(between(from, to, kMiB), usual()).ways)
      if (way.name == std::string{name}) return way.price->seconds();
    return 0.0;
  };
  const MachineProfile machine = usual();
  const double bytes = static_cast<double>(kMiB);
  // The slower of the two copies, and the device's call.
  EXPECT_NEAR(price(kPageable, kDevice, "ring"),
              machine.slot_alpha + machine.handshake_alpha + machine.device_copy_alpha + bytes * machine.host_copy_beta,
              1e-12);
  EXPECT_NEAR(price(kDevice, kPageable, "ring"), price(kPageable, kDevice, "ring"), 1e-12);
}

// It may start processes to find out.
TEST(ExplainMessage, WhetherMemoryCanBeReadIsAskedOnlyWhereItDecides) {
  int asked = 0;
  for (ExplainedMessage message : {between(kPageable, kPageable, 8), between(kPageable, kDevice, kMiB),
                                   single(between(kPageable, kPageable, kMiB), "never"), to_itself(kPageable, kMiB),
                                   between(kPageable, kPageable, kMiB)}) {
    message.readable = [&asked] {
      ++asked;
      return Status{};
    };
    explain(message, usual());
  }
  EXPECT_EQ(1, asked);
}

TEST(ExplainMessage, TheTableNamesEveryWayAndMarksTheChosenOne) {
  Explanation found = explain(between(kPageable, kPageable, 8), usual());
  found.question = "8 bytes";
  const std::string text = text_of(found, "");
  EXPECT_TRUE(text.starts_with("8 bytes: slot\nnumbers: built in")) << text;
  EXPECT_NE(std::string::npos, text.find("\n*      0.102  slot ")) << text;
  EXPECT_NE(std::string::npos,
            text.find("\n           -  direct              refused: sender and receiver are two processes\n"))
      << text;
  EXPECT_NE(std::string::npos, text_of(found, "/a/file").find("numbers: measured, /a/file\n"));
}

// ---- in streams ----

TEST(ExplainInStream, PacketsChunksAndWaitsHaveTheirLengthsAndTheirDevices) {
  const auto choice = [](const ExplainedMessage& message) { return explain_in_stream(message, "", {}).choice; };
  for (const std::uint64_t bytes : {0, 1, 8, 4097, 8192}) EXPECT_EQ("packets", choice(between(kDevice, kDevice, bytes)));
  for (const std::uint64_t bytes : {8193, 65536, 1 << 30}) EXPECT_EQ("chunks", choice(between(kDevice, kPinned, bytes)));
  for (const std::uint64_t bytes : {0, 8, 8193, 1 << 30}) EXPECT_EQ("stream waits", choice(on_one_device(kManaged, bytes)));
  for (const std::uint64_t bytes : {0, 8192, 8193, 1 << 20}) {
    for (const bool same : {false, true}) {
      const ExplainedMessage message = same ? on_one_device(kDevice, bytes) : between(kDevice, kDevice, bytes);
      const Explanation found = explain_in_stream(message, "", {});
      const char* const names[] = {"packets", "chunks", "stream waits"};
      EXPECT_EQ(names[static_cast<int>(choose_in_stream(message.bytes, same))], found.choice);
      ASSERT_EQ(4U, found.ways.size());
      int chosen = 0;
      for (const ExplainedWay& way : found.ways) {
        chosen += way.chosen ? 1 : 0;
        EXPECT_EQ(way.chosen || way.name == "ist_send", way.refused.empty()) << way.name;
        EXPECT_EQ(way.chosen, way.name == found.choice);
      }
      EXPECT_EQ(1, chosen);
    }
  }
}

TEST(ExplainInStream, PricesGrowWithTheBytesAndFollowTheMachine) {
  const auto seconds = [](std::uint64_t bytes, const StreamProfile& machine) {
    for (const ExplainedWay& way : explain_in_stream(between(kDevice, kDevice, bytes), "", {}, machine).ways)
      if (way.chosen) return way.price->seconds();
    return 0.0;
  };
  EXPECT_LT(seconds(8, {}), seconds(8192, {}));
  EXPECT_LT(seconds(16384, {}), seconds(1 << 20, {}));
  StreamProfile slow;
  slow.kernels_alpha = 1;
  EXPECT_NEAR(1, seconds(8, slow), 1e-3);
  // The other call waits for the stream, and then costs what the message costs.
  const Explanation found = explain_in_stream(between(kDevice, kDevice, 8), "", {});
  double message = 0;
  for (const ExplainedWay& way : explain(between(kDevice, kDevice, 8), {}).ways)
    if (way.chosen) message = way.price->seconds();
  EXPECT_NEAR(StreamProfile{}.wait_alpha + message, found.ways.back().price->seconds(), 1e-12);
}

TEST(ExplainInStream, WhatIsNotForKernelsOrIsOffIsAnErrorWithItsReason) {
  for (const auto& [from, to, whose] : {std::tuple{kPageable, kDevice, "the sender's"},
                                        {kDevice, kPageable, "the receiver's"},
                                        {kOpencl, kDevice, "the sender's"}}) {
    const Explanation found = explain_in_stream(between(from, to, 8), "", {});
    EXPECT_TRUE(found.choice.starts_with("an error; there is ist_send")) << found.choice;
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_NE(std::string::npos, found.ways[i].refused.find(whose)) << found.ways[i].refused;
      EXPECT_FALSE(found.ways[i].chosen);
    }
  }
  const Explanation off = explain_in_stream(between(kRegistered, kDevice, 8), "the link is off", {});
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ("the link is off", off.ways[i].refused);
  const std::string text = text_of(off, "/a/file");
  EXPECT_EQ(std::string::npos, text.find("/a/file")) << text;
  EXPECT_NE(std::string::npos, text.find("numbers: built in, of two H200")) << text;
}

TEST(CarrierName, IsKnownForEveryCarrierAndNoneForAnythingElse) {
  for (const auto& [carrier, name] : {std::pair{0, "none"},
                                      {1, "slot"},
                                      {6, "device"},
                                      {16, "single copy"},
                                      {17, "block"},
                                      {7, "mailbox"},
                                      {8, "none"},
                                      {-1, "none"},
                                      {18, "none"}})
    EXPECT_STREQ(name, carrier_name(carrier)) << carrier;
}

}  // namespace
}  // namespace ist
