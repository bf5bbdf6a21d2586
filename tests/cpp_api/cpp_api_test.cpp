// The C++ face: every test holds for any number of ranks, from one rank that talks to itself on.
#include "isthmus/isthmus.hpp"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <random>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

namespace {

using isthmus::Buffer;
using isthmus::Comm;
using isthmus::Kind;
using isthmus::Request;
using isthmus::World;

template <class T>
std::vector<T> random_data(std::size_t count, unsigned seed) {
  std::mt19937_64 generator(seed);
  std::vector<T> data(count);
  for (T& value : data) value = static_cast<T>(generator() % 251);
  return data;
}

// Each rank sends to the next and receives from the one before; both sides know the data from the sender's rank.
struct Ring {
  explicit Ring(const Comm& comm)
      : rank(comm.rank()), next((rank + 1) % comm.size()), before((rank + comm.size() - 1) % comm.size()) {}
  int rank, next, before;
};

TEST(World, knows_its_place) {
  World world;
  EXPECT_GE(world.rank(), 0);
  EXPECT_LT(world.rank(), world.size());
  EXPECT_LT(world.local_rank(), world.comm().local_size());
  EXPECT_EQ(world.devices(Kind::host), 1);
  EXPECT_GE(world.devices(Kind::opencl), 0);
  EXPECT_GE(world.devices(Kind::cuda), 0);
}

TEST(World, can_be_created_again_and_twice_at_once) {
  { World first; }
  World second;
  World third;
  second.comm().barrier();
  third.comm().barrier();
}

TEST(World, lives_as_long_as_its_children) {
  std::vector<int> in(5, -1);
  const std::vector<int> out{1, 2, 3, 4, 5};
  Request receive;
  isthmus::Memory memory;
  std::optional<Comm> comm;
  {
    World world;
    comm = world.comm();
    memory = world.allocate(Kind::host, 100);
    receive = comm->irecv(in, Ring(*comm).before, 7);
  }
  comm->send(out, Ring(*comm).next, 7);
  receive.wait();
  EXPECT_EQ(in, out);
  memory.as_span<char>()[99] = 1;
}

TEST(World, that_was_moved_from_is_an_error_not_a_crash) {
  World world;
  World taken(std::move(world));
  EXPECT_THROW(world.comm(), isthmus::Error);                   // NOLINT(bugprone-use-after-move)
  EXPECT_THROW(world.allocate(Kind::host, 1), isthmus::Error);  // NOLINT(bugprone-use-after-move)
  EXPECT_LT(taken.rank(), taken.size());
}

template <class T>
class Elements : public testing::Test {};
struct Pair {
  std::int32_t number;
  std::int8_t letter[4];
  Pair() = default;
  explicit Pair(unsigned long value)
      : number(static_cast<std::int32_t>(value)), letter{1, 2, 3, static_cast<std::int8_t>(value)} {}
  bool operator==(const Pair& other) const = default;
};
using Types = testing::Types<char, signed char, unsigned char, short, int, unsigned, long, long long, float, double, Pair>;
TYPED_TEST_SUITE(Elements, Types);

TYPED_TEST(Elements, arrive_unchanged_for_blocking_nonblocking_and_combined_calls) {
  World world;
  const Comm comm = world.comm();
  const Ring ring(comm);
  for (const std::size_t count : {0UL, 1UL, 3UL, 1000UL, 70001UL}) {
    const auto out = random_data<TypeParam>(count, static_cast<unsigned>(ring.rank) + 1);
    const auto expected = random_data<TypeParam>(count, static_cast<unsigned>(ring.before) + 1);
    std::vector<TypeParam> in(count + 1, TypeParam(99UL));

    Request receive = comm.irecv(in, ring.before, 3);
    Request send = comm.isend(out, ring.next, 3);
    const isthmus::Status status = receive.wait();
    send.wait();
    EXPECT_EQ(status.source(), ring.before);
    EXPECT_EQ(status.tag(), 3);
    EXPECT_EQ(status.template count<TypeParam>(), static_cast<std::int64_t>(count));
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), in.begin()));
    EXPECT_TRUE(in.back() == TypeParam(99UL));

    std::fill(in.begin(), in.end(), TypeParam(98UL));
    comm.sendrecv(out, ring.next, 4, std::span(in).first(count), ring.before, 4);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), in.begin()));
    EXPECT_TRUE(in.back() == TypeParam(98UL));
  }
}

TEST(Buffers, name_memory_with_an_offset) {
  World world;
  const Comm comm = world.comm();
  const Ring ring(comm);
  std::array<int, 6> data{1, 2, 3, -1, -1, -1};
  Request receive = comm.irecv(Buffer::host(data.data()).at(3 * sizeof(int)), 3, isthmus::type_of<int>, ring.before);
  comm.send(Buffer::automatic(data.data()), 3, IST_INT32, ring.next);
  EXPECT_EQ(receive.wait().bytes(), 12);
  EXPECT_EQ(data, (std::array{1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(std::uint32_t{IST_BUFFER_READY}, Buffer::host(data.data()).ready().at(4).c().flags);
  data.fill(7);
  receive = comm.irecv(Buffer::host(data.data()).ready(), 3, IST_INT32, ring.before);
  comm.send(Buffer::automatic(data.data() + 3).ready(), 3, IST_INT32, ring.next);
  EXPECT_EQ(receive.wait().bytes(), 12);
}

TEST(Memory, of_every_kind_sends_receives_and_copies) {
  World world;
  const Comm comm = world.comm();
  const Ring ring(comm);
  for (const Kind kind : {Kind::host, Kind::cuda, Kind::opencl}) {
    if (world.devices(kind) == 0) continue;
    const auto out = random_data<std::uint8_t>(100003, static_cast<unsigned>(ring.rank));
    const auto expected = random_data<std::uint8_t>(100003, static_cast<unsigned>(ring.before));
    std::vector<std::uint8_t> in(out.size(), 255);
    auto from = world.allocate(kind, out.size());
    auto to = world.allocate(kind, out.size());
    world.copy(from.buffer(), Buffer::host(out.data()), out.size());
    Request receive = comm.irecv(to.buffer(), static_cast<std::int64_t>(out.size()), IST_UINT8, ring.before, 1);
    comm.send(from.buffer(), static_cast<std::int64_t>(out.size()), IST_UINT8, ring.next, 1);
    receive.wait();
    world.copy(Buffer::host(in.data()), to.buffer(), in.size());
    EXPECT_EQ(in, expected);
    if (kind != Kind::host) {
      EXPECT_THROW(static_cast<void>(to.as_span<char>()), isthmus::Error);
    }
  }
}

TEST(Memory, of_the_callers_is_registered_for_as_long_as_the_registration_is_there) {
  World world;
  std::vector<double> numbers(10000);
  {
    isthmus::Registration first = world.register_memory(std::span{numbers});
    try {
      static_cast<void>(world.register_memory(std::span{numbers}.subspan(5, 1)));
      ADD_FAILURE() << "overlapping memory was registered";
    } catch (const isthmus::Error& error) {
      EXPECT_EQ(IST_ERR_ARGUMENT, error.code());
      EXPECT_NE(std::string_view{error.what()}.find("overlap 80000 bytes"), std::string_view::npos) << error.what();
    }
    isthmus::Registration moved = std::move(first);
    first = std::move(moved);
    EXPECT_THROW(static_cast<void>(world.register_memory(std::span{numbers})), isthmus::Error);
  }
  isthmus::Registration again = world.register_memory(std::span{numbers});
  again = {};
  EXPECT_NO_THROW(static_cast<void>(world.register_memory(std::span{numbers})));
}

TEST(Requests, complete_by_test_and_by_wildcard) {
  World world;
  const Comm comm = world.comm();
  const Ring ring(comm);
  std::array<double, 2> in{};
  Request receive = comm.irecv(in, isthmus::any_source, isthmus::any_tag);
  EXPECT_TRUE(receive.pending());
  comm.isend(std::span<const double>(), isthmus::proc_null).wait();
  const std::array out{ring.rank + 0.25, 8.0};
  comm.send(out, ring.next, 11);
  std::optional<isthmus::Status> status;
  while (!(status = receive.test())) std::this_thread::yield();
  EXPECT_FALSE(receive.pending());
  EXPECT_EQ(status->source(), ring.before);
  EXPECT_EQ(status->tag(), 11);
  EXPECT_EQ(in, (std::array{ring.before + 0.25, 8.0}));
  EXPECT_NO_THROW(receive.wait());
}

TEST(Requests, are_waited_for_together_in_their_order) {
  World world;
  const Comm comm = world.comm();
  const Ring ring(comm);
  std::vector<std::vector<int>> out, in;
  std::vector<Request> requests;
  for (int i = 0; i < 20; ++i) {
    out.push_back(random_data<int>(static_cast<std::size_t>(i) * 997, static_cast<unsigned>(i)));
    in.emplace_back(out.back().size(), -1);
  }
  for (int i = 19; i >= 0; --i) requests.push_back(comm.irecv(in[static_cast<std::size_t>(i)], ring.before, i));
  for (int i = 0; i < 20; ++i) requests.push_back(comm.isend(out[static_cast<std::size_t>(i)], ring.next, i));
  const auto statuses = wait_all(requests);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(statuses[static_cast<std::size_t>(i)].tag(), 19 - i);
  EXPECT_EQ(in, out);
}

TEST(Requests, that_are_dropped_complete_first) {
  World world;
  const Comm comm = world.comm();
  const Ring ring(comm);
  std::vector<int> in(300000, -1);
  const auto out = random_data<int>(in.size(), 5);
  {
    Request receive = comm.irecv(in, ring.before, 2);
    Request send = comm.isend(out, ring.next, 2);
  }
  EXPECT_EQ(in, out);
}

TEST(Errors, carry_the_code_and_a_text_that_says_what_was_found) {
  World world;
  const Comm comm = world.comm();
  try {
    comm.send(std::array{1}, comm.size() + 5);
    FAIL() << "a rank out of range was taken";
  } catch (const isthmus::Error& error) {
    EXPECT_EQ(error.code(), IST_ERR_RANK);
    EXPECT_STREQ(error.name(), "IST_ERR_RANK");
    EXPECT_NE(std::string(error.what()).find(std::to_string(comm.size() + 5)), std::string::npos) << error.what();
  }
}

TEST(Errors, of_one_request_leave_the_others_complete_and_the_queue_usable) {
  World world;
  const Comm comm = world.comm();
  const Ring ring(comm);
  std::array<int, 1> small{};
  std::array<int, 2> whole{};
  std::array<Request, 2> receives{comm.irecv(small, ring.before, 1), comm.irecv(whole, ring.before, 2)};
  comm.send(std::array{1, 2, 3}, ring.next, 1);
  comm.send(std::array{4, 5}, ring.next, 2);
  try {
    wait_all(receives);
    FAIL() << "a truncated message was taken for a whole one";
  } catch (const isthmus::Error& error) {
    EXPECT_EQ(error.code(), IST_ERR_TRUNCATE);
    EXPECT_NE(std::string(error.what()).find("12"), std::string::npos) << error.what();
  }
  EXPECT_EQ(whole, (std::array{4, 5}));
  EXPECT_EQ(small[0], 1);
  EXPECT_FALSE(receives[0].pending() || receives[1].pending());
  comm.sendrecv(std::array{6}, ring.next, 3, small, ring.before, 3);
  EXPECT_EQ(small[0], 6);
}

TEST(Explain, tells_the_carrier_that_the_message_then_takes) {
  World world;
  const Comm comm = world.comm();
  const Ring ring(comm);
  std::array<int, 3> in{};
  const std::string text = comm.explain(std::array{1, 2, 3}, ring.next);
  comm.sendrecv(std::array{1, 2, 3}, ring.next, 5, in, ring.before, 5);
  EXPECT_TRUE(text.starts_with("3 x IST_INT32 (12 bytes) from pageable host memory to rank ")) << text;
  EXPECT_NE(text.find(": slot\n"), std::string::npos) << text;
  EXPECT_EQ(text.find('\0'), std::string::npos);
  EXPECT_TRUE(text.ends_with(".\n")) << text;
  EXPECT_THROW(static_cast<void>(comm.explain(in, comm.size())), isthmus::Error);
}

TEST(Traffic, counts_what_a_status_says) {
  World world;
  const Comm comm = world.comm();
  const Ring ring(comm);
  const ist_traffic before = world.traffic(ring.before, IST_CARRIER_SLOT);
  std::array<int, 3> in{};
  comm.sendrecv(std::array{1, 2, 3}, ring.next, 5, in, ring.before, 5);
  const ist_traffic after = world.traffic(ring.before, IST_CARRIER_SLOT);
  EXPECT_EQ(after.messages_received, before.messages_received + 1);
  EXPECT_EQ(after.bytes_received, before.bytes_received + sizeof in);
  EXPECT_GE(world.traffic().bytes_sent, sizeof in);
  EXPECT_THROW(world.traffic(comm.size()), isthmus::Error);
  World gone = std::move(world);
  EXPECT_THROW(world.traffic(), isthmus::Error);
  EXPECT_EQ(in, (std::array{1, 2, 3}));
}

}  // namespace
