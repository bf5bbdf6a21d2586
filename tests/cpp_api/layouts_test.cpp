// The C++ face of layouts: every maker against what its C call makes, packing, and messages between neighbours.
#include <gtest/gtest.h>

#include <complex>
#include <numeric>
#include <vector>

#include "isthmus/isthmus.hpp"
#include "isthmus/layout.hpp"

namespace {

using isthmus::Buffer;
using isthmus::Error;
using isthmus::Layout;
using isthmus::type_of;
using isthmus::World;
using List = std::vector<std::int64_t>;

template <class T>
std::vector<T> numbers(std::size_t count, T first = {}) {
  std::vector<T> made(count);
  std::iota(made.begin(), made.end(), first);
  return made;
}

TEST(Layouts, are_what_their_texts_say) {
  const Layout number = type_of<double>;
  EXPECT_EQ(number.size(), 8);
  EXPECT_EQ(Layout::contiguous(5, number).commit().text(),
            "contiguous(count 5) of IST_DOUBLE: 40 bytes, extent 40 from 0; 1 block of 40 bytes from 0");
  const List lengths{2, 1}, places{0, 4}, far{8, 64};
  EXPECT_EQ(Layout::vector(3, 1, 4, number).bounds().extent, 72);
  EXPECT_EQ(Layout::hvector(3, 1, 16, number).bounds().extent, 40);
  EXPECT_EQ(Layout::indexed(lengths, places, number).bounds().extent, 40);
  EXPECT_EQ(Layout::hindexed(lengths, far, number).bounds().lower, 8);
  EXPECT_EQ(Layout::indexed_block(2, places, number).size(), 32);
  EXPECT_EQ(Layout::hindexed_block(2, far, number).size(), 32);
  const std::vector<Layout> members{type_of<float>, number};
  EXPECT_EQ(Layout::structure(lengths, far, members).size(), 16);
  const Layout padded = Layout::vector(2, 1, 2, number).resized(-8, 100);
  EXPECT_EQ(padded.bounds().lower, -8);
  EXPECT_EQ(padded.bounds().extent, 100);
  EXPECT_EQ(padded.true_bounds().extent, 24);
  const List sizes{4, 6}, parts{2, 3}, starts{1, 2};
  EXPECT_EQ(Layout::subarray(sizes, parts, starts, number).commit().text().substr(0, 8), "subarray");
  EXPECT_EQ(Layout::subarray(sizes, parts, starts, number, isthmus::Order::fortran).true_bounds().lower, (1 + 2 * 4) * 8);
}

TEST(Layouts, of_one_view_made_in_two_ways_have_one_form) {
  const List extents{3, 5}, strides{20, 2};
  const auto view = Layout::strided<float>(extents, strides);
  const auto nested = Layout::hvector(3, 1, 80, Layout::vector(5, 1, 2, type_of<float>));
  const auto form = [](const Layout& layout) {
    const std::string text = layout.commit().text();
    return text.substr(text.find(';'));
  };
  EXPECT_EQ(form(view), form(nested));
  struct Cell {
    std::int32_t a, b, c;
  };
  EXPECT_EQ(Layout::strided<Cell>(extents, strides).size(), 3 * 5 * 12);
}

TEST(Layouts, pack_and_unpack_any_part) {
  const World world;
  auto matrix = numbers<double>(30);
  const auto column = Layout::vector(5, 1, 6, type_of<double>);
  std::vector<double> packed(5, -1);
  column.pack(world, Buffer::host(matrix.data() + 2), Buffer::host(packed.data()));
  EXPECT_EQ(packed, (std::vector<double>{2, 8, 14, 20, 26}));
  column.pack(world, Buffer::host(matrix.data() + 3), Buffer::host(packed.data()), 1, 8, 24);
  EXPECT_EQ(packed, (std::vector<double>{9, 15, 14, 20, 26}));
  column.unpack(world, Buffer::host(packed.data()), Buffer::host(matrix.data()));
  EXPECT_EQ(matrix[6], 15);
  EXPECT_EQ(matrix[24], 26);
  EXPECT_EQ(matrix[25], 25);
}

TEST(Layouts, travel_between_neighbours_and_outlive_what_they_are_made_of) {
  const World world;
  const auto comm = world.comm();
  const int right = (comm.rank() + 1) % comm.size(), left = (comm.rank() + comm.size() - 1) % comm.size();
  const auto column = [] {
    const Layout one = Layout::vector(40, 1, 50, type_of<std::int32_t>);
    return one.resized(0, 4);
  }();
  auto matrix = numbers<std::int32_t>(2000, comm.rank() * 10000);
  std::vector<std::int32_t> other(2000, -1), row(80, -1);
  // Two columns side by side go into two columns, and into a row.
  auto in = column.irecv(comm, Buffer::host(other.data() + 7), left, 4, 2);
  auto out = column.isend(comm, Buffer::host(matrix.data()), right, 4, 2);
  EXPECT_EQ(in.wait().bytes(), 320);
  out.wait();
  for (std::size_t i = 0; i < other.size(); ++i) {
    const bool there = i % 50 == 7 || i % 50 == 8;
    ASSERT_EQ(other[i], there ? left * 10000 + static_cast<int>(i) - 7 : -1) << i;
  }
  auto later = comm.irecv(row, left, 5);
  column.send(comm, Buffer::host(matrix.data()), right, 5, 2);
  later.wait();
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(row[static_cast<std::size_t>(i)], left * 10000 + i * 50);
    EXPECT_EQ(row[static_cast<std::size_t>(40 + i)], left * 10000 + i * 50 + 1);
  }
  auto sent = comm.isend(std::span{row}, right, 6);
  EXPECT_EQ(column.recv(comm, Buffer::host(other.data()), left, 6, 2).source(), left);
  sent.wait();
  const Layout place = Layout::hvector(80, 1, 8, type_of<std::int32_t>).dup();
  EXPECT_EQ(place.pack_size(3), 960);
  std::vector<std::int32_t> spread(160, -1);
  EXPECT_EQ(Layout::contiguous(80, type_of<std::int32_t>)
                .sendrecv(comm, Buffer::host(row.data()), right, 7, place, Buffer::host(spread.data()), left)
                .bytes(),
            320);
  const int before = (left + comm.size() - 1) % comm.size();
  for (int i = 0; i < 80; ++i) {
    EXPECT_EQ(spread[static_cast<std::size_t>(2 * i)], before * 10000 + i % 40 * 50 + i / 40);
    EXPECT_EQ(spread[static_cast<std::size_t>(2 * i + 1)], -1);
  }
  EXPECT_NE(column.explain(comm, Buffer::host(matrix.data()), right, 2).find("packed by the processor"), std::string::npos);
  comm.barrier();  // or the neighbour may be gone when it is asked about
}

TEST(Layouts, are_sent_and_received_by_persistent_requests_with_what_is_there_at_each_start) {
  const World world;
  const auto comm = world.comm();
  const int right = (comm.rank() + 1) % comm.size(), left = (comm.rank() + comm.size() - 1) % comm.size();
  const auto column = Layout::vector(40, 1, 50, type_of<std::int32_t>);
  const auto spread = Layout::hvector(40, 1, 8, type_of<std::int32_t>);
  auto matrix = numbers<std::int32_t>(2000, comm.rank() * 10000);
  std::vector<std::int32_t> other(2000, -1), apart(80, -1);
  auto receive = spread.recv_init(comm, Buffer::host(apart.data()), left, 8);
  auto send = column.send_init(comm, Buffer::host(matrix.data()), right, 8);
  auto synchronous = column.ssend_init(comm, Buffer::host(matrix.data()), right, 9);
  for (int turn = 0; turn < 3; ++turn) {
    matrix[50] = 7000 + comm.rank() + turn;
    receive.start();
    send.start();
    EXPECT_EQ(receive.wait().bytes(), 160);
    send.wait();
    EXPECT_EQ(apart[2], 7000 + left + turn);
    EXPECT_EQ(apart[3], -1);
    synchronous.start();
    EXPECT_EQ(column.recv(comm, Buffer::host(other.data()), left, 9).bytes(), 160);
    synchronous.wait();
    EXPECT_EQ(other[50], 7000 + left + turn);
  }
}

TEST(Layouts, errors_are_thrown_with_their_code_and_text) {
  const List two{1, 2}, three{1, 2, 3};
  try {
    static_cast<void>(Layout::indexed(two, three, type_of<int>));
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), IST_ERR_ARGUMENT);
    EXPECT_NE(std::string{error.what()}.find("2 and 3"), std::string::npos) << error.what();
  }
  EXPECT_THROW(static_cast<void>(Layout::contiguous(-1, type_of<int>)), Error);
  const World world;
  int place = 0;
  EXPECT_THROW(Layout::hvector(2, 1, 0, type_of<int>).unpack(world, Buffer::host(&place), Buffer::host(&place)), Error);
}

}  // namespace
