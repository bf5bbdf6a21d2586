// A door hands out descriptors to whoever knows its token, and has its keeper tidy up while there is something to tidy.
#include "memory/door.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <thread>

using namespace ist;

namespace {

constexpr std::uint64_t kKnown = 7;
const std::atomic<bool> kGoesOn{false};

bool in_time(const std::function<bool()>& happened) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds{20};
  while (!happened() && std::chrono::steady_clock::now() < limit) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  return happened();
}

// Answers 7 with a file whose first byte is 42, all else with a refusal.
std::optional<Door::Answer> answer(const DoorNote& asked, std::shared_ptr<void>&) {
  if (asked.number != kKnown) return Door::Answer{DoorNote::refusal({IST_ERR_HANDLE, "there is no such number"}), {}};
  FileDescriptor file{::memfd_create("door_test", MFD_CLOEXEC)};
  const char byte = 42;
  EXPECT_EQ(1, ::pwrite(file.get(), &byte, 1, 0));
  return Door::Answer{DoorNote{}, std::move(file)};
}

DoorNote note_of(std::uint64_t number) {
  DoorNote note;
  note.number = number;
  return note;
}

TEST(DoorCalls, ADescriptorComesWithTheAnswer) {
  auto door = Door::open(answer);
  ASSERT_TRUE(door.ok()) << door.status().text();
  auto call = DoorCall::connect((*door)->address(), kGoesOn);
  ASSERT_TRUE(call.ok()) << call.status().text();
  FileDescriptor taken;
  ASSERT_TRUE(call->ask(note_of(kKnown), &taken).ok());
  char byte = 0;
  EXPECT_EQ(1, ::pread(taken.get(), &byte, 1, 0));
  EXPECT_EQ(42, byte);
  const auto refused = call->ask(note_of(8), &taken);
  EXPECT_EQ(IST_ERR_HANDLE, refused.status().code());
  EXPECT_EQ("there is no such number", refused.status().text());
}

TEST(DoorCalls, WhoDoesNotKnowTheTokenIsHungUpOn) {
  auto door = Door::open(answer);
  ASSERT_TRUE(door.ok()) << door.status().text();
  DoorAddress guessed = (*door)->address();
  guessed.token ^= 1;
  auto call = DoorCall::connect(guessed, kGoesOn);
  ASSERT_TRUE(call.ok()) << call.status().text();
  FileDescriptor taken;
  const auto asked = call->ask(note_of(kKnown), &taken);
  EXPECT_EQ(IST_ERR_SYSTEM, asked.status().code());
  EXPECT_FALSE(taken.valid());
}

// Where the system refuses a thread a network of its own, an address that names another one stands for it.
TEST(DoorCalls, FromAnotherNetworkNamespaceTheReasonIsSaid) {
  auto door = Door::open(answer);
  ASSERT_TRUE(door.ok()) << door.status().text();
  Status refused;
  std::thread{[&] {
    DoorAddress address = (*door)->address();
    if (::unshare(CLONE_NEWNET) != 0) ++address.name[0];
    refused = DoorCall::connect(address, kGoesOn).status();
  }}.join();
  EXPECT_EQ(IST_ERR_UNREACHABLE, refused.code());
  EXPECT_NE(std::string::npos, refused.text().find("network namespace")) << refused.text();
  EXPECT_TRUE(DoorCall::connect((*door)->address(), kGoesOn).ok());
}

TEST(DoorTidying, GoesOnAsLongAsThereIsSomethingLeft) {
  std::atomic<int> times{0};
  auto door = Door::open(answer, [&] { return ++times < 3; });
  ASSERT_TRUE(door.ok()) << door.status().text();
  std::this_thread::sleep_for(std::chrono::milliseconds{20});
  EXPECT_EQ(0, times);
  (*door)->will_tidy();
  EXPECT_TRUE(in_time([&] { return times == 3; })) << times;
  (*door)->will_tidy();
  EXPECT_TRUE(in_time([&] { return times == 4; })) << times;
}

TEST(DoorTidying, CallersAreHeardMeanwhile) {
  std::atomic<int> times{0};
  auto door = Door::open(answer, [&] { return ++times > 0; });
  ASSERT_TRUE(door.ok()) << door.status().text();
  (*door)->will_tidy();
  auto call = DoorCall::connect((*door)->address(), kGoesOn);
  ASSERT_TRUE(call.ok()) << call.status().text();
  for (int n = 0; n < 100; ++n) {
    FileDescriptor taken;
    ASSERT_TRUE(call->ask(note_of(kKnown), &taken).ok());
    ASSERT_TRUE(taken.valid());
    (*door)->will_tidy();
  }
  EXPECT_TRUE(in_time([&] { return times > 1; })) << times;
}

}  // namespace
