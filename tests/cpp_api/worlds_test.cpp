// Worlds that C++ takes over or makes by other means than the launcher's, and sends that wait for their receive.
#include <gtest/gtest.h>
#include <isthmus/boot.h>

#include <array>
#include <atomic>
#include <chrono>
#include <complex>
#include <cstring>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "isthmus/isthmus.hpp"

namespace {

using isthmus::Comm;
using isthmus::Request;
using isthmus::World;

int next_of(const Comm& comm) { return (comm.rank() + 1) % comm.size(); }
int before(const Comm& comm) { return (comm.rank() + comm.size() - 1) % comm.size(); }

std::vector<std::uint32_t> random_numbers(int rank, std::size_t count) {
  std::mt19937 generator(static_cast<std::uint32_t>(rank) * 977 + static_cast<std::uint32_t>(count));
  std::vector<std::uint32_t> made(count);
  for (auto& each : made) each = static_cast<std::uint32_t>(generator());
  return made;
}

template <class Call>
void expect_error(ist_code code, std::string_view text, const Call& call) {
  try {
    call();
    ADD_FAILURE() << "no error; expected one that says " << text;
  } catch (const isthmus::Error& error) {
    EXPECT_EQ(code, error.code());
    EXPECT_NE(std::string_view{error.what()}.find(text), std::string_view::npos) << error.what();
  }
}

// An exchange between this process and itself, which counts how often it was needed.
int gather_of_one(void* context, const void* mine, void* all, std::size_t bytes) {
  ++*static_cast<int*>(context);
  std::memcpy(all, mine, bytes);
  return 0;
}
int refuses(void*, const void*, void*, std::size_t) { return 42; }
void says_why(void*, int error, char* text, std::size_t room) { std::snprintf(text, room, "the number %d", error); }

ist_boot_functions alone(int* calls) { return {sizeof(ist_boot_functions), calls, 0, 1, gather_of_one, nullptr, nullptr}; }

TEST(Worlds, of_the_programs_own_exchange_carry_messages_beside_the_launchers) {
  World whole;
  int calls = 0;
  std::optional<Comm> left;
  {
    const World world = World::create_with(alone(&calls));
    EXPECT_GT(calls, 0);
    EXPECT_EQ(world.size(), 1);
    EXPECT_EQ(world.rank(), 0);
    left = world.comm();
  }
  const auto sent = random_numbers(1, 70001);
  std::vector<std::uint32_t> got(sent.size(), 0);
  left->sendrecv(sent, 0, 3, got, 0, 3);
  EXPECT_EQ(sent, got);
  std::array<int, 1> rank{-1};
  whole.comm().sendrecv(std::array{whole.rank()}, next_of(whole.comm()), 3, rank, before(whole.comm()), 3);
  EXPECT_EQ(rank[0], before(whole.comm()));
}

TEST(Worlds, are_made_and_ended_by_several_threads_at_once) {
  std::atomic<int> made = 0;
  const auto make = [&made] {
    for (int round = 0; round < 5; ++round) {
      int calls = 0;
      const World world = World::create_with(alone(&calls));
      made += world.size();
    }
  };
  std::array<std::thread, 3> threads;
  for (std::thread& each : threads) each = std::thread(make);
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(made, 15);
}

TEST(Worlds, that_cannot_be_made_are_errors_with_the_exchanges_own_words) {
  int calls = 0;
  ist_boot_functions functions = alone(&calls);
  functions.refusal = "there is no exchange today";
  expect_error(IST_ERR_BOOT, "there is no exchange today", [&] { World::create_with(functions); });
  EXPECT_EQ(calls, 0);
  functions = alone(&calls);
  functions.all_gather = refuses;
  functions.error_text = says_why;
  expect_error(IST_ERR_BOOT, "the number 42", [&] { World::create_with(functions); });
  expect_error(IST_ERR_RANK, "", [] { World::create_with([](ist_world*) -> int { return IST_ERR_RANK; }); });
}

TEST(Worlds, of_an_exchange_have_settings_of_their_own) {
  int calls = 0;
  expect_error(IST_ERR_SETTING, "eager_limit", [&] { World::create_with(alone(&calls), "eager_limit=blue"); });
  const World world = World::create_with(alone(&calls), "eager_limit=1KiB");
  EXPECT_EQ(world.size(), 1);
}

// The others come when the last rank has given up, and it is as if it had not been there before.
TEST(Worlds, that_are_waited_for_in_vain_are_given_up_by_the_program) {
  const World whole;
  int asked = 0;
  const auto gives_up = [&](const auto& answer) {
    const isthmus::InterruptWith watched([&] { return ++asked == 3 && answer(); });
    expect_error(IST_CANCELLED, "ist_interrupt_with", [] { World{}; });
    EXPECT_EQ(asked, 3);
    asked = 0;
  };
  if (whole.size() > 1 && whole.rank() == whole.size() - 1) {
    gives_up([] { return true; });
    gives_up([]() -> bool { throw std::runtime_error("Ctrl-C"); });
  }
  whole.comm().barrier();
  for (int world = 0; world < 2; ++world) {
    const isthmus::InterruptWith patient([] { return false; });
    const World made;
    const Comm comm = made.comm();
    const auto sent = random_numbers(made.rank(), 1001);
    std::vector<std::uint32_t> got(sent.size(), 0);
    comm.sendrecv(sent, next_of(comm), 3, got, before(comm), 3);
    EXPECT_EQ(got, random_numbers(before(comm), 1001));
  }
  EXPECT_EQ(asked, 0);
}

TEST(Library, tells_its_version_and_the_sizes_of_types) {
  struct Pair {
    double value;
    int index;
  };
  EXPECT_STREQ(isthmus::version(), ist_version());
  EXPECT_TRUE(std::string{isthmus::version()}.starts_with("0.1.")) << isthmus::version();
  EXPECT_EQ(isthmus::type_size(isthmus::type_of<double>), sizeof(double));
  EXPECT_EQ(isthmus::type_size(isthmus::type_of<std::complex<float>>), 8U);
  EXPECT_EQ(isthmus::type_size(isthmus::type_of<Pair>), 1U) << "a struct travels as bytes";
  EXPECT_EQ(isthmus::type_size(IST_BYTE), 1U);
  EXPECT_EQ(isthmus::type_size(IST_DOUBLE_INT), sizeof(Pair));
  EXPECT_EQ(isthmus::type_size(static_cast<isthmus::Type>(-1)), 0U);
}

TEST(Statuses, count_elements_of_types_that_are_known_only_then) {
  const World world;
  const Comm comm = world.comm();
  for (const std::size_t bytes : {0UL, 1UL, 7UL, 8UL, 24UL}) {
    const std::vector<std::uint8_t> sent(bytes, 5);
    std::vector<std::uint8_t> got(bytes, 0);
    const isthmus::Status status = comm.sendrecv(sent, next_of(comm), 3, got, before(comm), 3);
    EXPECT_EQ(status.count(IST_UINT8), static_cast<std::int64_t>(bytes));
    EXPECT_EQ(status.count(IST_DOUBLE), bytes % 8 == 0 ? static_cast<std::int64_t>(bytes / 8) : isthmus::undefined);
    expect_error(IST_ERR_ARGUMENT, "ist_get_count",
                 [&] { static_cast<void>(status.count(static_cast<isthmus::Type>(-1))); });
  }
}

TEST(Worlds, made_in_c_are_destroyed_by_whom_they_were_given_to) {
  ist_world made = IST_WORLD_NULL;
  ASSERT_EQ(ist_world_create(&made), IST_OK);
  ist_comm comm = IST_COMM_NULL;
  {
    const World world(made);
    EXPECT_EQ(world.c(), made);
    world.comm().barrier();
    const Comm kept = world.comm();
  }
  EXPECT_EQ(ist_world_comm(made, &comm), IST_ERR_HANDLE) << "the world is still there";
  expect_error(IST_ERR_HANDLE, "ist_world_comm", [&] { World{made}; });
  expect_error(IST_ERR_HANDLE, "ist_world_comm", [] { World{IST_WORLD_NULL}; });
}

TEST(SynchronousSends, are_complete_when_their_receive_has_begun_and_not_before) {
  World world;
  const Comm comm = world.comm();
  for (const std::size_t count : {0UL, 1UL, 3UL, 70001UL}) {
    const auto out = random_numbers(comm.rank(), count);
    const auto expected = random_numbers(before(comm), count);
    std::vector<std::uint32_t> in(count, 7);
    Request send = comm.issend(out, next_of(comm), 5);
    comm.barrier();  // all have sent, and nobody receives yet
    for (int looks = 0; looks < 1000; ++looks) ASSERT_FALSE(send.test().has_value()) << count;
    comm.barrier();
    EXPECT_EQ(comm.recv(in, before(comm), 5).count<std::uint32_t>(), static_cast<std::int64_t>(count));
    send.wait();
    EXPECT_EQ(in, expected);

    std::fill(in.begin(), in.end(), 7);
    std::atomic<bool> returned = false;
    std::thread sender([&] {
      EXPECT_NO_THROW(comm.ssend(out, next_of(comm), 6));
      returned = true;
    });
    EXPECT_EQ(comm.probe(before(comm), 6).tag(), 6);
    std::this_thread::sleep_for(std::chrono::milliseconds{20});  // long enough for a send that does not wait to return
    EXPECT_FALSE(returned) << count;
    comm.barrier();
    comm.recv(in, before(comm), 6);
    sender.join();
    EXPECT_EQ(in, expected);
  }
}

TEST(Exchanges, in_one_buffer_take_ranges) {
  World world;
  const Comm comm = world.comm();
  for (const std::size_t count : {0UL, 1UL, 1001UL, 70001UL}) {
    auto both = random_numbers(comm.rank(), count);
    both.push_back(99);
    const auto status = comm.sendrecv_replace(std::span(both).first(count), next_of(comm), 3, before(comm), 3);
    EXPECT_EQ(status.source(), before(comm));
    auto expected = random_numbers(before(comm), count);
    expected.push_back(99);
    EXPECT_EQ(both, expected);
  }
}

TEST(Messages, set_aside_are_received_into_a_range_without_blocking) {
  World world;
  const Comm comm = world.comm();
  const auto out = random_numbers(comm.rank(), 30001);
  std::vector<std::uint32_t> in(out.size(), 7);
  Request send = comm.isend(out, next_of(comm), 8);
  auto message = comm.mprobe(before(comm), 8);
  Request receive = message.irecv(in);
  EXPECT_EQ(receive.wait().bytes(), 4 * 30001);
  send.wait();
  EXPECT_EQ(in, random_numbers(before(comm), 30001));
}

}  // namespace
