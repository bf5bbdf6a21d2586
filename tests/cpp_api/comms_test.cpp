// The C++ face of communicators, probes, persistent requests and sets of requests: for any number of ranks, as its neighbour.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "isthmus/isthmus.hpp"

namespace {

using isthmus::Buffer;
using isthmus::Comm;
using isthmus::PersistentRequest;
using isthmus::Request;
using isthmus::World;

int next_of(const Comm& comm) { return (comm.rank() + 1) % comm.size(); }
int before(const Comm& comm) { return (comm.rank() + comm.size() - 1) % comm.size(); }

TEST(Comms, are_split_named_and_freed_with_their_last_copy) {
  World world;
  const Comm whole = world.comm();
  EXPECT_EQ(whole.name(), "world");
  EXPECT_EQ(world.self().size(), 1);
  ist_comm handle = IST_COMM_NULL;
  {
    Comm kept = whole.split(3, -whole.rank());
    const Comm copy = kept;
    handle = copy.c();
    EXPECT_EQ(copy.rank(), whole.size() - 1 - whole.rank());
    EXPECT_EQ(copy.world_rank(copy.rank()), whole.rank());
    std::array<int, 1> got{-1};
    const auto status = copy.sendrecv(std::array{copy.rank()}, next_of(copy), 1, got, before(copy), 1);
    EXPECT_EQ(got[0], before(copy));
    EXPECT_EQ(status.source(), before(copy));
    kept = whole.dup();
    EXPECT_EQ(copy.size(), whole.size());
  }
  int size = 0;
  EXPECT_EQ(ist_comm_size(handle, &size), IST_ERR_HANDLE);
  EXPECT_FALSE(whole.split(isthmus::undefined));
  std::vector<int> all(static_cast<std::size_t>(whole.size()));
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(whole.create_group(all).size(), whole.size());
  EXPECT_EQ(whole.split_local().size(), whole.local_size());
}

TEST(Comms, are_members_that_are_empty_until_they_get_one) {
  struct Grid {
    Comm rows;
    isthmus::Cart torus;
  };
  World world;
  Grid grid;
  EXPECT_FALSE(grid.rows);
  EXPECT_FALSE(grid.torus);
  std::vector<int> one(1);
  const auto error_of = [](const auto& call) {
    try {
      call();
    } catch (const isthmus::Error& error) {
      EXPECT_EQ(error.code(), IST_ERR_HANDLE);
      return std::string{error.what()};
    }
    return std::string{"none"};
  };
  for (const std::string& text :
       {error_of([&] { return grid.rows.rank(); }), error_of([&] { grid.rows.send(one, 0); }),
        error_of([&] { grid.rows.barrier(); }), error_of([&] { return grid.rows.dup(); }),
        error_of([&] { grid.rows.irecv(one, 0).wait(); }), error_of([&] { return grid.torus.coords(); })})
    EXPECT_NE(text.find("the communicator is null"), std::string::npos) << text;
  grid.rows = world.comm().split(0, -world.rank());
  grid.torus = world.comm().cart(std::array{world.size()}, std::array{1});
  EXPECT_EQ(grid.rows.rank(), world.size() - 1 - world.rank());
  EXPECT_EQ(grid.torus.dims()[0], world.size());
  grid.rows = Comm();
  EXPECT_FALSE(grid.rows);
}

TEST(Comms, outlive_the_world_object_they_came_from) {
  Comm comm = [] {
    const World world;
    return world.comm().dup();
  }();
  comm.barrier();
}

TEST(Grids, tell_coordinates_and_neighbours) {
  World world;
  const auto dims = isthmus::balanced_dims(world.size(), {0, 0});
  const auto grid = world.comm().cart(dims, std::array{1, 0});
  ASSERT_TRUE(static_cast<bool>(grid));
  EXPECT_EQ(grid.dims(), dims);
  EXPECT_EQ(grid.periods(), (std::vector{1, 0}));
  EXPECT_EQ(grid.coords(), grid.coords(grid.rank()));
  EXPECT_EQ(grid.rank_at(grid.coords()), grid.rank());
  const auto shift = grid.shift(1, 1);
  EXPECT_EQ(shift.source == isthmus::proc_null, grid.coords()[1] == 0);
  std::array<int, 1> got{-1};
  grid.sendrecv(std::array{grid.rank()}, shift.dest, 0, got, shift.source, 0);
  EXPECT_EQ(got[0], shift.source == isthmus::proc_null ? -1 : shift.source);
  EXPECT_THROW(static_cast<void>(grid.rank_at(std::array{1})), isthmus::Error);
  const auto column = grid.sub(std::array{1, 0});
  EXPECT_EQ(column.dims(), std::vector{dims[0]});
  EXPECT_EQ(column.coords(), std::vector{grid.coords()[0]});
  EXPECT_EQ(column.size(), dims[0]);
  EXPECT_THROW(static_cast<void>(grid.sub(std::array{0, 0})), isthmus::Error);
}

TEST(Probes, tell_the_length_and_a_matched_message_is_received_once) {
  World world;
  const Comm comm = world.comm();
  const std::vector<double> sent(700, comm.rank() + 0.5);
  Request first = comm.isend(sent, next_of(comm), 4);
  Request second = comm.isend(sent, next_of(comm), 4);
  Request third = comm.isend(sent, next_of(comm), 4);
  EXPECT_EQ(comm.probe(before(comm), 4).count<double>(), 700);
  auto message = comm.mprobe(before(comm), 4);
  { const auto dropped = comm.mprobe(before(comm), 4); }  // received and lost
  std::vector<double> got(700);
  EXPECT_EQ(message.recv(got).source(), before(comm));
  EXPECT_EQ(got, std::vector<double>(700, before(comm) + 0.5));
  EXPECT_FALSE(comm.improbe(before(comm), 5).has_value());
  comm.recv(got, before(comm), 4);
  EXPECT_FALSE(comm.iprobe(before(comm), 4).has_value());
  for (Request* request : {&first, &second, &third}) request->wait();
  comm.barrier();  // nobody leaves before all have looked
}

TEST(Requests, start_again_and_again) {
  World world;
  const Comm comm = world.comm();
  int out = 0;
  int in = -1;
  auto receive = comm.recv_init(Buffer::host(&in), 1, IST_INT, before(comm), 6);
  auto send = comm.send_init(Buffer::host(&out), 1, IST_INT, next_of(comm), 6);
  auto synchronous = comm.ssend_init(Buffer::host(&out), 1, IST_INT, next_of(comm), 6);
  for (int round = 0; round < 4; ++round) {
    out = comm.rank() * 10 + round;
    auto& chosen = round % 2 == 0 ? send : synchronous;
    receive.start();
    chosen.start();
    EXPECT_EQ(receive.wait().source(), before(comm));
    EXPECT_EQ(in, before(comm) * 10 + round);
    while (!chosen.test()) {
    }
  }
}

TEST(Requests, that_persist_are_started_and_waited_for_in_sets) {
  World world;
  const Comm comm = world.comm();
  constexpr std::size_t messages = 5;
  std::array<std::array<int, 3>, messages> out{}, in{}, expected{};
  std::vector<PersistentRequest> receives, sends;
  for (std::size_t i = 0; i < messages; ++i) {
    receives.push_back(comm.recv_init(in[i], before(comm), static_cast<int>(i)));
    if (i % 2 == 0) sends.push_back(comm.send_init(out[i], next_of(comm), static_cast<int>(i)));
    if (i % 2 == 1) sends.push_back(comm.ssend_init(out[i], next_of(comm), static_cast<int>(i)));
  }
  EXPECT_FALSE(isthmus::wait_any(receives).has_value()) << "none was started";
  for (int round = 0; round < 4; ++round) {
    for (std::size_t i = 0; i < messages; ++i) {
      const int number = static_cast<int>(i) * 100 + round;
      out[i] = {comm.rank(), number, -number};
      expected[i] = {before(comm), number, -number};
      in[i].fill(-1);
    }
    isthmus::start_all(receives);
    EXPECT_FALSE(isthmus::test_any(receives).has_value());
    EXPECT_FALSE(isthmus::test_all(receives).has_value());
    EXPECT_TRUE(isthmus::test_some(receives).empty());
    EXPECT_THROW(isthmus::start_all(receives), isthmus::Error) << "they are under way";
    comm.barrier();
    // The one in the middle alone, then one more by the some calls, then the rest.
    isthmus::start_all(std::span(sends).subspan(2, 1));
    const auto first = isthmus::wait_any(receives);
    ASSERT_TRUE(first.has_value());
    EXPECT_EQ(first->index, 2U);
    EXPECT_EQ(first->status.tag(), 2);
    comm.barrier();
    isthmus::start_all(std::span(sends).last(1));
    const auto second = isthmus::wait_some(receives);
    ASSERT_EQ(second.size(), 1U);
    EXPECT_EQ(second[0].index, messages - 1);
    comm.barrier();
    for (const std::size_t i : {0U, 1U, 3U}) sends[i].start();
    const auto statuses = isthmus::wait_all(receives);
    for (const std::size_t i : {0U, 1U, 3U}) EXPECT_EQ(statuses[i].tag(), static_cast<int>(i));
    EXPECT_EQ(statuses[2].source(), isthmus::any_source) << "it had been waited for";
    while (!isthmus::test_all(sends)) {
    }
    EXPECT_EQ(in, expected);
    comm.barrier();
  }
}

TEST(Requests, that_persist_and_fail_in_a_set_are_told_of_and_can_be_started_again) {
  World world;
  const Comm comm = world.comm();
  std::array<int, 1> small{};
  std::array<int, 2> whole{};
  std::array receives{comm.recv_init(small, before(comm), 1), comm.recv_init(whole, before(comm), 2)};
  for (const bool fits : {false, true}) {
    isthmus::start_all(receives);
    comm.send(std::vector<int>(fits ? 1 : 3, 5), next_of(comm), 1);
    comm.send(std::array{4, 5}, next_of(comm), 2);
    if (fits) {
      EXPECT_EQ(isthmus::wait_all(receives)[0].bytes(), 4);
    } else {
      EXPECT_THROW(isthmus::wait_all(receives), isthmus::Error);
    }
    EXPECT_EQ(small[0], 5);
    EXPECT_EQ(whole, (std::array{4, 5}));
    whole.fill(-1);
  }
}

TEST(Requests, that_persist_and_are_not_under_way_leave_the_error_text_to_the_exception) {
  const isthmus::World world;
  const isthmus::Comm comm = world.comm();
  std::vector<int> numbers(3);
  for (const bool used : {false, true}) {
    try {
      isthmus::PersistentRequest receive = comm.recv_init(numbers, comm.rank());
      if (used) {
        receive.start();
        comm.send(std::vector<int>{1, 2, 3}, comm.rank());
        receive.wait();
      }
      comm.send(numbers, comm.size() + 7);
      FAIL() << "no error";
    } catch (const isthmus::Error&) {
      EXPECT_NE(std::string{ist_error_text()}.find("dest is " + std::to_string(comm.size() + 7)), std::string::npos)
          << ist_error_text();
    }
  }
}

TEST(Requests, complete_in_sets) {
  World world;
  const Comm comm = world.comm();
  std::array<std::array<int, 1>, 4> in{};
  std::vector<Request> requests;
  for (std::size_t i = 0; i < in.size(); ++i) requests.push_back(comm.irecv(in[i], before(comm), static_cast<int>(i)));
  EXPECT_FALSE(isthmus::test_any(requests).has_value());
  EXPECT_FALSE(isthmus::test_all(requests).has_value());
  EXPECT_TRUE(isthmus::test_some(requests).empty());
  comm.barrier();
  comm.send(std::array{22}, next_of(comm), 2);
  const auto one = isthmus::wait_any(requests);
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(one->index, 2U);
  EXPECT_EQ(one->status.tag(), 2);
  comm.barrier();
  for (const int tag : {0, 1}) comm.send(std::array{20 + tag}, next_of(comm), tag);
  std::size_t done = 0;
  while (done < 2) done += isthmus::wait_some(requests).size();
  requests[3].cancel();
  EXPECT_TRUE(requests[3].wait().cancelled());
  EXPECT_FALSE(isthmus::wait_any(requests).has_value());
  comm.barrier();
  EXPECT_EQ((std::array{in[0][0], in[1][0], in[2][0]}), (std::array{20, 21, 22}));
}

TEST(Requests, that_are_released_go_on) {
  World world;
  const Comm comm = world.comm();
  const std::vector<int> sent(100000, comm.rank());
  Request send = comm.issend(Buffer::host(sent.data()), 100000, IST_INT, next_of(comm), 9);
  send.release();
  EXPECT_FALSE(send.pending());
  std::vector<int> got(100000);
  comm.recv(got, before(comm), 9);
  EXPECT_EQ(got, std::vector<int>(100000, before(comm)));
  comm.barrier();
  std::vector<int> both(10, comm.rank());
  // Host memory that is not page-locked: nothing to open, and nobody waits for another one.
  Request ahead = comm.iprepare(Buffer::host(both.data()), 10, IST_INT, next_of(comm));
  comm.iprepare(Buffer::host(both.data()), 10, IST_INT, before(comm)).wait();
  ahead.wait();
  comm.prepare(Buffer::host(both.data()), 10, IST_INT, comm.rank());
  comm.sendrecv_replace(Buffer::host(both.data()), 10, IST_INT, next_of(comm), 3, before(comm), 3);
  EXPECT_EQ(both, std::vector<int>(10, before(comm)));
}

// In the library's own queue, which comes with its memory.
TEST(Queues, carry_messages_around_a_ring) {
  World world;
  if (world.devices(isthmus::Kind::opencl) == 0)
    GTEST_SKIP() << "not covered here: messages in OpenCL queues; there is no OpenCL device";
  const Comm comm = world.comm();
  const auto out = world.allocate(isthmus::Kind::opencl, 1000);
  const auto in = world.allocate(isthmus::Kind::opencl, 1000);
  void* const queue = reinterpret_cast<void*>(out.buffer().c().queue);
  std::vector<unsigned char> sent(1000, static_cast<unsigned char>(comm.rank() + 1));
  std::vector<unsigned char> seen(1000, 0xee);
  world.copy(out.buffer(), Buffer::host(sent.data()), 1000);
  comm.prepare_on_queue(queue, before(comm), 6, IST_RECEIVES);
  comm.send_on_queue(queue, out.buffer(), 1000, IST_BYTE, next_of(comm), 6);
  comm.recv_on_queue(queue, in.buffer(), 1000, IST_BYTE, before(comm), 6);
  comm.sendrecv_on_queue(queue, in.buffer(), 500, IST_BYTE, next_of(comm), 6, in.at(500), 500, IST_BYTE, before(comm), 6);
  comm.sendrecv_on_queue(queue, out.buffer(), 0, IST_BYTE, IST_PROC_NULL, 6, in.buffer(), 0, IST_BYTE, IST_PROC_NULL, 6);
  comm.barrier();
  // What the queue holds is waited for as any buffer's.
  world.copy(Buffer::host(seen.data()), in.buffer(), 1000);
  std::vector<unsigned char> wanted(500, static_cast<unsigned char>(before(comm) + 1));
  wanted.resize(1000, static_cast<unsigned char>((before(comm) + comm.size() - 1) % comm.size() + 1));
  EXPECT_EQ(wanted, seen);
  EXPECT_THROW(comm.recv_on_queue(nullptr, in.buffer(), 1, IST_BYTE, before(comm), 6), isthmus::Error);
}

}  // namespace
