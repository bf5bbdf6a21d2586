// The C++ face of collective calls, against a serial result: for any number of ranks, as its neighbours.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>

#include "isthmus/isthmus.hpp"
#include "numbers.hpp"

namespace {

using namespace numbers;
using isthmus::Buffer;
using isthmus::Comm;
using isthmus::in_place;
using isthmus::Kind;
using isthmus::op;
using isthmus::Operation;
using isthmus::Parts;
using isthmus::Request;
using isthmus::World;

class Collectives : public numbers::OfAllRanks {};

TEST_F(Collectives, broadcast_gives_the_roots_numbers) {
  for (const std::size_t count : kCounts) {
    const int root = static_cast<int>(count) % comm.size();
    Numbers data = comm.rank() == root ? numbers_of(root, count) : Numbers(count, -1);
    comm.bcast(data, root);
    EXPECT_EQ(data, numbers_of(root, count));
    Numbers again = comm.rank() == root ? data : Numbers(count, -1);
    comm.ibcast(std::span(again), root).wait();
    EXPECT_EQ(again, data);
  }
  struct Point {
    float x;
    std::int16_t y;
  };
  std::vector<Point> points(31, Point{1.5F * static_cast<float>(comm.rank() + 1), 3});
  comm.bcast(points, 0);
  for (const Point& point : points) EXPECT_EQ(point.x, 1.5F);
}

TEST_F(Collectives, reductions_give_the_sum_in_and_out_of_place) {
  const int me = comm.rank();
  for (const std::size_t count : kCounts) {
    const Numbers mine = numbers_of(me, count);
    const Numbers sum = sum_before(comm.size(), count);
    const int root = comm.size() - 1;
    Numbers got(count, -1);
    comm.allreduce(mine, got, op::sum);
    EXPECT_EQ(got, sum);
    got = mine;
    comm.allreduce(in_place, got, op::sum);
    EXPECT_EQ(got, sum);
    Numbers at_root(me == root ? count : 0, -1);
    comm.reduce(mine, at_root, op::sum, root);
    EXPECT_EQ(at_root, me == root ? sum : Numbers{});
    got.assign(count, -1);
    comm.scan(mine, got, op::sum);
    EXPECT_EQ(got, sum_before(me + 1, count));
    got.assign(count, -1);
    comm.exscan(mine, got, op::sum);
    EXPECT_EQ(got, me == 0 ? Numbers(count, -1) : sum_before(me, count));
    Numbers later(at_root.size(), -1), place = mine, both = mine, up_to_here(count, -1), before(count, -1);
    std::array requests{comm.ireduce(mine, later, op::sum, root),
                        me == root ? comm.ireduce(in_place, place, op::sum, root) : comm.ireduce(mine, place, op::sum, root),
                        comm.iallreduce(in_place, both, op::sum), comm.iscan(mine, up_to_here, op::sum),
                        comm.iexscan(mine, before, op::sum)};
    isthmus::wait_all(requests);
    EXPECT_EQ(later, at_root);
    EXPECT_EQ(place, me == root ? sum : mine);
    EXPECT_EQ(both, sum);
    EXPECT_EQ(up_to_here, sum_before(me + 1, count));
    EXPECT_EQ(before, got);
  }
}

TEST_F(Collectives, reduce_scatter_gives_every_rank_its_part) {
  const auto me = number_of(comm.rank());
  for (const std::size_t count : kCounts) {
    const Numbers mine = numbers_of(comm.rank(), count * ranks);
    const Numbers sum = sum_before(comm.size(), count * ranks);
    Numbers got(count, -1);
    comm.reduce_scatter_block(mine, got, op::sum);
    EXPECT_EQ(got, part_of(sum, me * count, count));
    Numbers both = mine;
    comm.reduce_scatter_block(in_place, both, op::sum);
    EXPECT_EQ(part_of(both, 0, count), got);
    // The last rank gets all.
    Numbers counts(ranks, 0);
    counts.back() = static_cast<std::int64_t>(count * ranks);
    Numbers whole(static_cast<std::size_t>(counts[me]), -1);
    comm.reduce_scatter(mine, whole, counts, op::sum);
    EXPECT_EQ(whole, me + 1 == ranks ? sum : Numbers{});
    Numbers later(count, -1), later_whole(whole.size(), -1), place = mine;
    std::array requests{comm.ireduce_scatter_block(mine, later, op::sum),
                        comm.ireduce_scatter(mine, later_whole, counts, op::sum),
                        comm.ireduce_scatter(in_place, place, counts, op::sum)};
    isthmus::wait_all(requests);
    EXPECT_EQ(later, got);
    EXPECT_EQ(later_whole, whole);
    EXPECT_EQ(place, me + 1 == ranks ? sum : mine);
  }
}

TEST_F(Collectives, parts_of_one_length_are_gathered_scattered_and_exchanged) {
  const int root = comm.size() / 2;
  const bool is_root = comm.rank() == root;
  for (const std::size_t count : kCounts) {
    const Numbers mine = numbers_of(comm.rank(), count);
    const Numbers all = of_all(comm.size(), count, 0, count);
    Numbers gathered(is_root ? count * ranks : 0, -1);
    comm.gather(mine, gathered, root);
    EXPECT_EQ(gathered, is_root ? all : Numbers{});
    Numbers back(count, -1);
    comm.scatter(gathered, back, root);
    EXPECT_EQ(back, mine);
    if (is_root)
      comm.scatter(gathered, in_place, root);
    else
      comm.scatter(Numbers{}, back, root);
    EXPECT_EQ(back, mine);
    Numbers everywhere(count * ranks, -1);
    comm.allgather(mine, everywhere);
    EXPECT_EQ(everywhere, all);
    everywhere.assign(count * ranks, -1);
    std::copy(mine.begin(), mine.end(), everywhere.begin() + static_cast<std::ptrdiff_t>(number_of(comm.rank()) * count));
    comm.allgather(in_place, everywhere);
    EXPECT_EQ(everywhere, all);
    // Part r of what rank s sends becomes part s of what rank r receives.
    const Numbers expected = of_all(comm.size(), count * ranks, number_of(comm.rank()) * count, count);
    Numbers exchanged(count * ranks, -1);
    comm.alltoall(numbers_of(comm.rank(), count * ranks), exchanged);
    EXPECT_EQ(exchanged, expected);
    exchanged = numbers_of(comm.rank(), count * ranks);
    const Numbers unchanged(count, -1);
    Numbers later(gathered.size(), -1), own = unchanged, same = unchanged, together(count * ranks, -1);
    std::array requests{comm.ialltoall(in_place, exchanged), comm.igather(mine, later, root),
                        comm.iscatter(gathered, own, root),
                        is_root ? comm.iscatter(gathered, in_place, root) : comm.iscatter(gathered, same, root),
                        comm.iallgather(mine, together)};
    isthmus::wait_all(requests);
    EXPECT_EQ(exchanged, expected);
    EXPECT_EQ(later, gathered);
    EXPECT_EQ(own, mine);
    EXPECT_EQ(same, is_root ? unchanged : mine);
    EXPECT_EQ(together, all);
  }
}

TEST_F(Collectives, parts_of_different_lengths_lie_where_they_are_told_to) {
  const auto me = number_of(comm.rank());
  for (const std::size_t base : kCounts) {
    // The first part is empty where `base` is 0; a hole of two lies before each.
    Numbers counts;
    for (std::size_t r = 0; r < ranks; ++r) counts.push_back(static_cast<std::int64_t>(base * (r + 1) / 2));
    Numbers displs = isthmus::packed(counts);
    for (std::size_t r = 0; r < ranks; ++r) displs[r] += static_cast<std::int64_t>(2 * (r + 1));
    Numbers expected(static_cast<std::size_t>(displs.back() + counts.back()), -7);
    for (std::size_t r = 0; r < ranks; ++r) {
      const Numbers theirs = numbers_of(static_cast<int>(r), static_cast<std::size_t>(counts[r]));
      std::copy(theirs.begin(), theirs.end(), expected.begin() + static_cast<std::ptrdiff_t>(displs[r]));
    }
    const Parts parts{counts, displs};
    const Numbers mine = numbers_of(comm.rank(), static_cast<std::size_t>(counts[me]));
    Numbers got(expected.size(), -7);
    comm.allgatherv(mine, got, parts);
    EXPECT_EQ(got, expected);
    got.assign(expected.size(), -7);
    comm.gatherv(mine, got, parts, 0);
    EXPECT_EQ(got, me == 0 ? expected : Numbers(expected.size(), -7));
    Numbers own(mine.size(), -1);
    comm.scatterv(got, parts, own, 0);
    EXPECT_EQ(own, mine);
    // Everybody sends rank r the r-th part of what all have gathered, and so gets its own from each.
    Numbers same(ranks, counts[me]);
    const Numbers places = isthmus::packed(same);
    Numbers exchanged(mine.size() * ranks, -1);
    comm.alltoallv(expected, parts, exchanged, Parts{same, places});
    for (std::size_t r = 0; r < ranks; ++r) EXPECT_EQ(part_of(exchanged, r * mine.size(), mine.size()), mine);
    Numbers later(expected.size(), -7), back(mine.size(), -1), together = later, swapped(exchanged.size(), -1);
    std::array requests{comm.igatherv(mine, later, parts, 0), comm.iscatterv(expected, parts, back, 0),
                        comm.iallgatherv(mine, together, parts),
                        comm.ialltoallv(expected, parts, swapped, Parts{same, places})};
    isthmus::wait_all(requests);
    EXPECT_EQ(later, got);
    EXPECT_EQ(back, mine);
    EXPECT_EQ(together, expected);
    EXPECT_EQ(swapped, exchanged);
  }
}

TEST_F(Collectives, structs_move_whole) {
  struct Point {
    double x;
    char name;
    bool operator==(const Point&) const = default;
  };
  const std::vector<Point> mine(3, Point{comm.rank() + 0.5, 'a'});
  std::vector<Point> all(3 * ranks, Point{-1, 'z'});
  comm.allgather(mine, all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t from = i / 3;
    EXPECT_EQ(all[i], (Point{static_cast<double>(from) + 0.5, 'a'}));
  }
  const Numbers counts(ranks, 3);
  const Numbers displs = isthmus::packed(counts);
  std::vector<Point> own(3, Point{-1, 'z'});
  comm.scatterv(all, Parts{counts, displs}, own, 0);
  EXPECT_EQ(own, mine);
}

TEST_F(Collectives, bools_are_combined_as_the_logical_values_they_are) {
  const auto mine_at = [](int rank, std::size_t i) { return (number_of(rank) + i) % 3 != 0; };
  for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{7001}}) {
    const auto mine = std::make_unique<bool[]>(count);
    std::array<std::unique_ptr<bool[]>, 7> got;
    for (auto& each : got) each = std::make_unique<bool[]>(count);
    for (std::size_t i = 0; i < count; ++i) mine[i] = mine_at(comm.rank(), i);
    const std::span<const bool> in(mine.get(), count);
    const auto out = [&](std::size_t which) { return std::span(got[which].get(), count); };
    comm.allreduce(in, out(0), op::land);
    comm.allreduce(in, out(1), op::lor);
    comm.iallreduce(in, out(2), op::lxor).wait();
    comm.allreduce(in, out(3), op::band);
    comm.allreduce(in, out(4), op::bor);
    comm.allreduce(in, out(5), Operation::of<bool>([](bool a, bool b) noexcept { return a != b; }));
    comm.allreduce(in, out(6), Operation(op::lor));
    for (std::size_t i = 0; i < count; ++i) {
      bool all = true, any = false, odd = false;
      for (int rank = 0; rank < comm.size(); ++rank) {
        all &= mine_at(rank, i);
        any |= mine_at(rank, i);
        odd ^= mine_at(rank, i);
      }
      const std::array expected{all, any, odd, all, any, odd, any};
      for (std::size_t which = 0; which < got.size(); ++which)
        ASSERT_EQ(static_cast<int>(expected[which]), static_cast<unsigned char>(got[which][i])) << which << " at " << i;
    }
    EXPECT_THROW(comm.allreduce(in, out(0), Operation(op::sum)), isthmus::Error);
  }
  std::array<bool, 2> pair{comm.rank() == 0, true};
  comm.allreduce(in_place, pair, op::lor);
  EXPECT_EQ(pair, (std::array{true, true}));
}

TEST_F(Collectives, an_operation_made_for_another_type_says_which) {
  const auto greater = Operation::of<double>([](double a, double b) noexcept { return std::max(a, b); });
  std::vector<float> values(2);
  std::string text;
  try {
    comm.allreduce(in_place, values, greater);
  } catch (const isthmus::Error& error) {
    text = error.what();
  }
  EXPECT_EQ(text,
            "the operation was made for elements of type IST_DOUBLE, and the buffers have IST_FLOAT; make one with "
            "Operation::of for theirs");
}

// Pairs of a value and a place are of no C++ type of the library's: they are named. Of equal values the lower place is found.
TEST_F(Collectives, the_least_and_the_greatest_are_found_with_their_places) {
  struct Pair {
    double value;
    int place;
  };
  const auto pair_of = [](int rank, std::size_t i) {
    return Pair{static_cast<double>((i * 5 + number_of(rank) * 3) % 4), 100 - rank};
  };
  for (const std::size_t count : kCounts) {
    std::vector<Pair> mine(count), least(count, Pair{-1, -1}), greatest = least, later = least;
    for (std::size_t i = 0; i < count; ++i) mine[i] = pair_of(comm.rank(), i);
    const auto number = static_cast<std::int64_t>(count);
    comm.allreduce(Buffer::host(mine.data()), Buffer::host(least.data()), number, IST_DOUBLE_INT, op::minloc);
    comm.allreduce(Buffer::host(mine.data()), Buffer::host(greatest.data()), number, IST_DOUBLE_INT, op::maxloc);
    comm.iallreduce(Buffer::host(mine.data()), Buffer::host(later.data()), number, IST_DOUBLE_INT, op::maxloc).wait();
    for (std::size_t i = 0; i < count; ++i) {
      Pair low = pair_of(0, i), high = low;
      for (int rank = 1; rank < comm.size(); ++rank) {
        const Pair theirs = pair_of(rank, i);  // of a lower place than those before
        if (theirs.value <= low.value) low = theirs;
        if (theirs.value >= high.value) high = theirs;
      }
      ASSERT_TRUE(least[i].value == low.value && least[i].place == low.place) << i << " of " << count;
      ASSERT_TRUE(greatest[i].value == high.value && greatest[i].place == high.place) << i << " of " << count;
      ASSERT_TRUE(later[i].value == high.value && later[i].place == high.place) << i << " of " << count;
    }
  }
}

TEST_F(Collectives, under_way_keep_the_users_operation) {
  for (const std::size_t count : kCounts) {
    // x -> a x + b, one after the other: associative, and not commutative.
    struct Map {
      float a;
      float b;
    };
    std::vector<std::complex<float>> mine(count, {2.0F, static_cast<float>(comm.rank() + 1)});
    std::vector<std::complex<float>> got(count, {-1.0F, -1.0F});
    Request request;
    {
      const std::vector<float> captured(100, 1.0F);  // freed with the function
      const auto then = Operation::of<std::complex<float>>(
          [captured](std::complex<float> first, std::complex<float> second) noexcept {
            return std::complex<float>{captured[99] * first.real() * second.real(),
                                       second.real() * first.imag() + second.imag()};
          },
          false);
      request = comm.iallreduce(mine, got, then);
    }
    request.wait();
    Map expected{1.0F, 0.0F};
    for (int rank = 0; rank < comm.size(); ++rank)
      expected = {expected.a * 2.0F, 2.0F * expected.b + static_cast<float>(rank + 1)};
    EXPECT_EQ(got, std::vector<std::complex<float>>(count, {expected.a, expected.b}));
  }
}

TEST_F(Collectives, under_way_together_complete_in_any_order) {
  Numbers first = numbers_of(comm.rank(), 5000);
  Numbers second = numbers_of(comm.rank(), 11);
  std::vector<Request> requests;
  requests.push_back(comm.iallreduce(in_place, first, op::max));
  requests.push_back(comm.iscan(in_place, second, op::sum));
  requests.push_back(comm.ibarrier());
  EXPECT_EQ(isthmus::wait_all(requests).size(), 3U);
  EXPECT_EQ(second, sum_before(comm.rank() + 1, 11));
  Numbers greatest(5000, -1);
  for (int rank = 0; rank < comm.size(); ++rank) {
    const Numbers theirs = numbers_of(rank, 5000);
    for (std::size_t i = 0; i < 5000; ++i) greatest[i] = std::max(greatest[i], theirs[i]);
  }
  EXPECT_EQ(first, greatest);
}

TEST_F(Collectives, that_do_not_fit_on_one_rank_fail_on_those_that_need_it) {
  const Numbers mine(100, 1);
  Numbers got(comm.rank() == 0 ? 99 : 100, -1);
  EXPECT_THROW(comm.allreduce(mine, got, op::sum), isthmus::Error);
  EXPECT_THROW(comm.iallgather(mine, got).wait(), isthmus::Error);
  const Numbers counts(comm.rank() == 0 ? ranks + 1 : ranks, 1);
  const Numbers displs = isthmus::packed(counts);
  EXPECT_THROW(comm.allgatherv(std::span(mine).first(1), got, Parts{counts, displs}), isthmus::Error);
  const auto of_floats = Operation::of<float>([](float a, float) noexcept { return a; });
  EXPECT_THROW(comm.allreduce(in_place, got, of_floats), isthmus::Error);
  std::string text;
  try {
    comm.reduce(mine, got, op::sum, 0);
  } catch (const isthmus::Error& error) {
    text = error.what();
  }
  if (comm.rank() == 0) {
    EXPECT_EQ(text, "the ranges do not fit: 100 elements to send in 1 equal part(s), and room for 99 in 1");
  }
  // And the communicator still works.
  Numbers sum(1, 1);
  comm.allreduce(in_place, sum, op::sum);
  EXPECT_EQ(sum[0], comm.size());
}

}  // namespace
