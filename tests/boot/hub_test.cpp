// What the hub makes of ranks that give up, in every order of their frames.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "boot/gather_hub.hpp"

namespace ist::test {
namespace {

// As its frames name it.
struct Process {
  std::uint32_t age = 0;
  std::uint64_t number = 0;
};
constexpr std::uint32_t kOld = 600000;

// Frames in an order that no race decides.
class Hub : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    for (int rank = 0; rank < GetParam(); ++rank) {
      int ends[2];
      ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
      hub_.attach(Rank{rank}, FrameSocket{FileDescriptor{ends[0]}});
      ranks_.emplace_back(FileDescriptor{ends[1]});
    }
  }
  void send(int rank, FrameType type, std::uint32_t world, std::uint32_t round, const std::string& payload,
            Process process = {}) {
    ranks_[static_cast<std::size_t>(rank)].queue({type, world, round, 60000, 0, payload, process.age, process.number});
    ranks_[static_cast<std::size_t>(rank)].write_some();
  }
  std::optional<Frame> answer(int rank) {
    FrameSocket& socket = ranks_[static_cast<std::size_t>(rank)];
    socket.read_some();
    return socket.next();
  }
  void expect(int rank, FrameType type, std::uint32_t world, const std::string& text) {
    const auto got = answer(rank);
    ASSERT_TRUE(got) << "rank " << rank << " has no answer";
    EXPECT_EQ(got->type, type) << got->payload;
    EXPECT_EQ(got->world, world);
    EXPECT_NE(got->payload.find(text), std::string::npos) << got->payload;
  }
  GatherHub hub_{GetParam(), "the hub", 0};
  std::vector<FrameSocket> ranks_;
};
class HubOfTwo : public Hub {};
class HubOfThree : public Hub {};
INSTANTIATE_TEST_SUITE_P(Ranks, HubOfTwo, testing::Values(2));
INSTANTIATE_TEST_SUITE_P(Ranks, HubOfThree, testing::Values(3));

TEST_P(HubOfTwo, what_is_no_frame_of_its_version_is_told_once) {
  EXPECT_FALSE(hub_.read_misunderstanding());
  // Magic number and version 1, as a library of that version sends them.
  for (const FrameSocket& rank : ranks_) {
    std::string header("BTsI\1", 5);
    header.resize(48, '\0');
    ASSERT_EQ(::send(rank.descriptor(), header.data(), header.size(), 0), 48);
  }
  hub_.serve();
  const auto told = hub_.read_misunderstanding();
  ASSERT_TRUE(told);
  EXPECT_NE(
      told->find("rank 0 cannot be understood: it speaks version 1 of the start-up protocol where this process speaks " +
                 std::to_string(kFrameVersion)),
      std::string::npos)
      << *told;
  hub_.serve();
  EXPECT_FALSE(hub_.read_misunderstanding());
}

TEST_P(HubOfTwo, a_round_that_was_complete_stays_so) {
  send(0, FrameType::contribution, 1, 1, "zero");
  send(1, FrameType::contribution, 1, 1, "one");
  hub_.serve();
  send(1, FrameType::withdrawal, 1, 1, "too late");
  hub_.serve();
  for (int rank = 0; rank < 2; ++rank) expect(rank, FrameType::gathered, 1, "one");
  EXPECT_FALSE(answer(1)) << "an answer to what was too late";
  send(0, FrameType::contribution, 1, 2, "zero again");
  send(1, FrameType::withdrawal, 1, 2, "in time");
  hub_.serve();
  expect(0, FrameType::failure, 1, "rank 1 gave up creating its world number 1 with the others at the hub: in time");
  expect(1, FrameType::failure, 1, "in time");
}

TEST_P(HubOfTwo, a_withdrawal_behind_its_contribution_takes_that_back) {
  send(1, FrameType::contribution, 1, 1, "one");
  send(0, FrameType::contribution, 1, 1, "zero");
  send(1, FrameType::withdrawal, 1, 1, "sorry");
  send(1, FrameType::contribution, 2, 1, "one again");
  hub_.serve();
  expect(0, FrameType::failure, 1, "sorry");
  expect(1, FrameType::failure, 1, "sorry");
  send(0, FrameType::contribution, 2, 1, "zero again");
  hub_.serve();
  expect(0, FrameType::gathered, 2, "one again");
  expect(1, FrameType::gathered, 2, "zero again");
}

TEST_P(HubOfTwo, a_world_that_nobody_else_had_heard_of_does_not_count) {
  for (std::uint32_t world = 1; world <= 3; ++world) {
    send(0, FrameType::contribution, world, 1, "zero");
    hub_.serve();
    send(0, FrameType::withdrawal, world, 1, "alone");
    hub_.serve();
    expect(0, FrameType::failure, world, "alone");
  }
  for (std::uint32_t world = 1; world <= 2; ++world) {
    send(0, FrameType::contribution, world + 3, 1, "zero");
    send(1, FrameType::contribution, world, 1, "one");
    hub_.serve();
    expect(0, FrameType::gathered, world + 3, "one");
    expect(1, FrameType::gathered, world, "zero");
  }
}

TEST_P(HubOfTwo, the_next_program_of_each_rank_counts_from_the_beginning) {
  for (int program = 0; program < 2; ++program) {
    send(0, FrameType::contribution, 1, 1, "zero");
    hub_.serve();
    send(0, FrameType::withdrawal, 1, 1, "alone");
    hub_.serve();
    expect(0, FrameType::failure, 1, "alone");
    for (std::uint32_t world = 1; world <= 2; ++world) {
      send(0, FrameType::contribution, world + 1, 1, "zero");
      hub_.serve();
      send(1, world == 1 ? FrameType::contribution : FrameType::withdrawal, world, 1, "one");
      hub_.serve();
      for (int rank = 0; rank < 2; ++rank)
        expect(rank, world == 1 ? FrameType::gathered : FrameType::failure, world + (rank == 0 ? 1 : 0), "one");
    }
  }
}

// Rank 2 never came in the first program, and is not told of that one's failure once somebody has begun the next.
TEST_P(HubOfThree, a_failure_ends_with_its_program) {
  send(0, FrameType::contribution, 1, 1, "zero");
  hub_.serve();
  send(1, FrameType::withdrawal, 1, 1, "sorry");
  hub_.serve();
  for (int rank = 0; rank < 2; ++rank) expect(rank, FrameType::failure, 1, "sorry");
  for (int rank = 0; rank < 3; ++rank) {
    send(rank, FrameType::contribution, 1, 1, "the next");
    hub_.serve();
  }
  for (int rank = 0; rank < 3; ++rank) expect(rank, FrameType::gathered, 1, "the next");
}

// The same where rank 2 is the first one there, and its process says that it began when the failure was over.
TEST_P(HubOfThree, a_program_that_began_after_a_failure_does_not_hear_of_it) {
  const Process last{kOld, 1};
  const Process next{1, 2};
  send(0, FrameType::contribution, 1, 1, "zero", last);
  hub_.serve();
  send(1, FrameType::withdrawal, 1, 1, "sorry", last);
  hub_.serve();
  for (int rank = 0; rank < 2; ++rank) expect(rank, FrameType::failure, 1, "sorry");
  std::this_thread::sleep_for(std::chrono::milliseconds{50});
  send(2, FrameType::contribution, 1, 1, "two", next);
  hub_.serve();
  EXPECT_FALSE(answer(2)) << "it heard of the failure";
  // The next one fails as well, and with its own reason, although the same rank withdraws from the same world and round.
  send(1, FrameType::withdrawal, 1, 1, "sorry again", next);
  hub_.serve();
  send(0, FrameType::contribution, 1, 1, "zero", next);
  hub_.serve();
  for (int rank = 0; rank < 3; ++rank) expect(rank, FrameType::failure, 1, "sorry again");
  for (int rank = 0; rank < 3; ++rank) {
    send(rank, FrameType::contribution, 1, 1, "the third", {1, 3});
    hub_.serve();
  }
  for (int rank = 0; rank < 3; ++rank) expect(rank, FrameType::gathered, 1, "the third");
}

TEST_P(HubOfThree, a_process_that_is_older_than_a_failure_hears_of_it) {
  send(0, FrameType::contribution, 1, 1, "zero", {kOld, 1});
  hub_.serve();
  send(1, FrameType::withdrawal, 1, 1, "sorry", {kOld, 2});
  hub_.serve();
  send(0, FrameType::contribution, 1, 1, "the next", {1, 4});
  hub_.serve();
  send(2, FrameType::contribution, 1, 1, "two", {kOld, 3});
  hub_.serve();
  for (int rank = 0; rank < 3; ++rank) expect(rank, FrameType::failure, 1, "sorry");
  EXPECT_FALSE(answer(0)) << "the next program heard of the failure";
}

TEST_P(HubOfThree, a_rank_that_comes_late_hears_of_every_world_that_failed) {
  for (std::uint32_t world = 1; world <= 3; ++world) {
    send(0, FrameType::contribution, world, 1, "zero");
    send(1, FrameType::contribution, world, 1, "one");
    hub_.serve();
    send(1, FrameType::withdrawal, world, 1, "the " + std::to_string(world) + ". time");
    hub_.serve();
    for (int rank = 0; rank < 2; ++rank) expect(rank, FrameType::failure, world, std::to_string(world) + ". time");
  }
  send(0, FrameType::contribution, 4, 1, "zero");
  send(1, FrameType::contribution, 4, 1, "one");
  for (std::uint32_t world = 1; world <= 3; ++world) {
    send(2, FrameType::contribution, world, 1, "two");
    hub_.serve();
    expect(2, FrameType::failure, world, "rank 1 gave up creating its world number " + std::to_string(world));
  }
  send(2, FrameType::contribution, 4, 1, "two");
  hub_.serve();
  for (int rank = 0; rank < 3; ++rank) expect(rank, FrameType::gathered, 4, "two");
}

}  // namespace
}  // namespace ist::test
