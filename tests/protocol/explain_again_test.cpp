// What is told of messages that go in slots only where they leave a place that others left lately.
#include <gtest/gtest.h>
#include "path/shm/pair_slot.hpp"
#include "protocol/explain.hpp"

namespace ist::test {
namespace {

constexpr MessageEnd kPageable{KindId::host, MemoryClass::pageable};
constexpr MessageEnd kDevice{KindId::cuda, MemoryClass::device};

ExplainedMessage of(Bytes bytes) {
  ExplainedMessage message;
  message.bytes = bytes;
  message.from = message.to = kPageable;
  message.slot_limit = kibibytes(128);
  message.slot_limit_again = kibibytes(256);
  message.cell_limit = kibibytes(16);
  return message;
}
bool is_told(const ExplainedMessage& message) {
  const Explanation found = explain(message, MachineProfile{});
  EXPECT_EQ(message.bytes <= message.slot_limit && message.mode.synchronous == false, found.carrier == IST_CARRIER_SLOT);
  return std::string{found.remark}.find("left lately") != std::string::npos;
}

TEST(ExplainAgain, BetweenTheTwoLimitsOfASlot) {
  EXPECT_FALSE(is_told(of(kibibytes(128))));
  EXPECT_TRUE(is_told(of(kibibytes(128) + Bytes{1})));
  EXPECT_TRUE(is_told(of(kibibytes(256))));
  EXPECT_FALSE(is_told(of(kibibytes(256) + Bytes{1})));
}

TEST(ExplainAgain, NotWhereItIsNotSo) {
  ExplainedMessage message = of(kibibytes(200));
  message.slots_up_to = kibibytes(96);  // announcing is quicker
  EXPECT_FALSE(is_told(message));
  message = of(kibibytes(200));
  message.mode.synchronous = true;
  EXPECT_FALSE(is_told(message));
  message = of(kibibytes(200));
  message.same_process = true;
  EXPECT_EQ(std::string::npos, std::string{explain(message, MachineProfile{}).remark}.find("left lately"));
  message = of(kibibytes(200));
  MachineProfile one_copy;
  one_copy.two_copies_128k = 1e-9;
  one_copy.one_copy_128k = 1e-11;
  EXPECT_EQ(std::string::npos, std::string{explain(message, one_copy).remark}.find("left lately"));
  message.from = kDevice;
  EXPECT_EQ(std::string::npos, std::string{explain(message, MachineProfile{}).remark}.find("left lately"));
}

}  // namespace
}  // namespace ist::test
