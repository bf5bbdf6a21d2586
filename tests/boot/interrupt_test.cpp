// A program ends its own wait for ranks that do not come (ist_interrupt_with).
#include <gtest/gtest.h>
#include <isthmus/boot.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "../ranks/forked_ranks.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using forked_ranks::Variables;

struct Asked {
  int times = 0;
  int yes_at = 0;  // 0: never
  static int ask(void* context) {
    auto& self = *static_cast<Asked*>(context);
    return ++self.times == self.yes_at ? 1 : 0;
  }
};

class Interrupt : public testing::TestWithParam<const char*> {};

TEST_P(Interrupt, EndsAWaitForRanksThatDoNotCome) {
  const std::string port = std::to_string(forked_ranks::free_port());
  const Variables job{
      {"RANK", GetParam()}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", port.c_str()}};
  Asked asked{0, 5};
  ist_interrupt_with(Asked::ask, &asked);
  ist_world world = IST_WORLD_NULL;
  const auto begun = Clock::now();
  EXPECT_EQ(IST_CANCELLED, ist_world_create_configured("boot_timeout=30", &world));
  EXPECT_LT(Clock::now() - begun, std::chrono::seconds{5});
  EXPECT_EQ(IST_WORLD_NULL, world);
  EXPECT_NE(std::string::npos, std::string{ist_error_text()}.find("ist_interrupt_with")) << ist_error_text();
  EXPECT_GE(asked.times, 5);
  ist_interrupt_with(nullptr, nullptr);
}
INSTANTIATE_TEST_SUITE_P(OfEitherRank, Interrupt, testing::Values("0", "1"));

TEST(InterruptLater, AsksNobodyOnceTheWorldIsMadeAndChangesNothing) {
  Asked asked;
  ist_interrupt_with(Asked::ask, &asked);
  ist_world world = IST_WORLD_NULL;
  ASSERT_EQ(IST_OK, ist_world_create(&world)) << ist_error_text();
  const int times = asked.times;
  ist_comm comm = IST_COMM_NULL;
  EXPECT_EQ(IST_OK, ist_world_comm(world, &comm));
  EXPECT_EQ(IST_OK, ist_barrier(comm));
  EXPECT_EQ(IST_OK, ist_world_destroy(&world));
  EXPECT_EQ(times, asked.times);
  ist_interrupt_with(nullptr, nullptr);
}

}  // namespace
