// The C++ face of collective calls of layouts: each call once, from columns of one matrix into rows or columns of another.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "isthmus/isthmus.hpp"
#include "isthmus/layout_collective.hpp"

namespace {

using isthmus::Buffer;
using isthmus::Laid;
using isthmus::Layout;
using isthmus::LayoutCollectives;
using isthmus::type_of;
using isthmus::World;
using List = std::vector<std::int64_t>;

constexpr int kRows = 12;

// Column c of rank r's matrix has r * 1000 + c * 100 + row.
struct Matrix {
  Matrix(int columns, int rank) : width(columns), cells(static_cast<std::size_t>(columns) * kRows, -1) {
    for (int row = 0; rank >= 0 && row < kRows; ++row)
      for (int c = 0; c < columns; ++c) at(row, c) = rank * 1000 + c * 100 + row;
  }
  std::int32_t& at(int row, int column) { return cells[static_cast<std::size_t>(row * width + column)]; }
  Layout column() const { return Layout::vector(kRows, 1, width, type_of<std::int32_t>).resized(0, 4); }
  Laid laid(std::int64_t count = 1) { return {Buffer::host(cells.data()), column(), count}; }
  int width;
  std::vector<std::int32_t> cells;
};

// Each form of a call, the one that waits and the other.
template <class Now, class Later>
void both(const Now& now, const Later& later) {
  now();
  later().wait();
}

class OfColumns : public testing::Test {
 protected:
  const World world;
  const isthmus::Comm comm = world.comm();
  const LayoutCollectives<isthmus::Comm> calls{comm};
  const int rank = comm.rank(), size = comm.size(), last = size - 1;
  // Column c of `matrix` is column `from` of rank `owner`.
  static void expect(Matrix& matrix, int c, int owner, int from) {
    for (int row = 0; row < kRows; ++row) ASSERT_EQ(matrix.at(row, c), owner * 1000 + from * 100 + row) << c << ", " << row;
  }
};

TEST_F(OfColumns, broadcasts_go_into_rows) {
  Matrix matrix(3, rank);
  std::vector<std::int32_t> row(kRows, -1);
  const Laid data = rank == last ? matrix.laid() : Laid{Buffer::host(row.data()), type_of<std::int32_t>, kRows};
  both([&] { calls.bcast(data, last); }, [&] { return calls.ibcast(data, last); });
  for (int i = 0; rank != last && i < kRows; ++i) EXPECT_EQ(row[static_cast<std::size_t>(i)], last * 1000 + i);
  expect(matrix, 0, rank, 0);
}

TEST_F(OfColumns, parts_are_gathered_and_scattered_as_columns) {
  Matrix mine(3, rank), all(size, -1), everywhere(size, -1), back(3, -1);
  both([&] { calls.gather(mine.laid(), all.laid(), last); }, [&] { return calls.igather(mine.laid(), all.laid(), last); });
  both([&] { calls.allgather(mine.laid(), everywhere.laid()); },
       [&] { return calls.iallgather(mine.laid(), everywhere.laid()); });
  both([&] { calls.allgather(decltype(calls)::in_place(), everywhere.laid()); },
       [&] { return calls.iallgather(decltype(calls)::in_place(), everywhere.laid()); });
  for (int r = 0; r < size; ++r) {
    if (rank == last) expect(all, r, r, 0);
    expect(everywhere, r, r, 0);
  }
  both([&] { calls.scatter(all.laid(), back.laid(), last); }, [&] { return calls.iscatter(all.laid(), back.laid(), last); });
  expect(back, 0, rank, 0);
  EXPECT_EQ(back.at(0, 1), -1);
}

TEST_F(OfColumns, parts_may_be_in_any_order) {
  Matrix mine(3, rank), all(size, -1), everywhere(size, -1), back(3, -1);
  const List ones(static_cast<std::size_t>(size), 1);
  List reversed(static_cast<std::size_t>(size));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  const isthmus::Parts parts{ones, reversed}, none{};
  const isthmus::Parts& of_root = rank == last ? parts : none;
  both([&] { calls.gatherv(mine.laid(), all.laid(), of_root, last); },
       [&] { return calls.igatherv(mine.laid(), all.laid(), of_root, last); });
  both([&] { calls.allgatherv(mine.laid(), everywhere.laid(), parts); },
       [&] { return calls.iallgatherv(mine.laid(), everywhere.laid(), parts); });
  for (int r = 0; r < size; ++r) {
    if (rank == last) expect(all, size - 1 - r, r, 0);
    expect(everywhere, size - 1 - r, r, 0);
  }
  both([&] { calls.scatterv(all.laid(), of_root, back.laid(), last); },
       [&] { return calls.iscatterv(all.laid(), of_root, back.laid(), last); });
  expect(back, 0, rank, 0);
}

TEST_F(OfColumns, everybody_has_a_column_for_everybody) {
  Matrix mine(size, rank), even(size, -1), listed(size, -1), each(size, -1);
  both([&] { calls.alltoall(mine.laid(), even.laid()); }, [&] { return calls.ialltoall(mine.laid(), even.laid()); });
  List ones(static_cast<std::size_t>(size), 1), places(static_cast<std::size_t>(size)), bytes;
  std::iota(places.begin(), places.end(), 0);
  for (const auto place : places) bytes.push_back(4 * place);
  const isthmus::Parts parts{ones, places};
  both([&] { calls.alltoallv(mine.laid(), parts, listed.laid(), parts); },
       [&] { return calls.ialltoallv(mine.laid(), parts, listed.laid(), parts); });
  const std::vector<Layout> columns(static_cast<std::size_t>(size), mine.column());
  const isthmus::LaidParts laid{ones, bytes, columns};
  const Buffer from = mine.laid().buffer, to = each.laid().buffer;
  both([&] { calls.alltoallw(from, laid, to, laid); }, [&] { return calls.ialltoallw(from, laid, to, laid); });
  for (int r = 0; r < size; ++r)
    for (Matrix* found : {&even, &listed, &each}) expect(*found, r, r, rank);
}

TEST_F(OfColumns, lists_of_another_length_are_refused) {
  Matrix mine(size, rank);
  const List few(static_cast<std::size_t>(size) + 1, 0);
  const isthmus::Parts parts{few, few};
  try {
    calls.allgatherv(mine.laid(), mine.laid(), parts);
    FAIL() << "nothing was thrown";
  } catch (const isthmus::Error& error) {
    EXPECT_EQ(error.code(), IST_ERR_ARGUMENT);
    EXPECT_NE(std::string{error.what()}.find("give one for each rank"), std::string::npos) << error.what();
  }
}

}  // namespace
