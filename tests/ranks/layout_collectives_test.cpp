// Collective calls of layouts: every rank gives another one, in another kind of memory, and the bytes come where they belong and nowhere else.
#include <isthmus/layout_collective.h>

#include <array>

#include "laid.hpp"

namespace {

using namespace rank_test;

constexpr std::int64_t kSome = 60;  // ints, a multiple of 4

int next_kind(int offset, std::size_t kinds) { return (rank() + offset) % static_cast<int>(kinds); }
std::uint64_t seed_of(int from, std::uint64_t what) { return what * 1000 + static_cast<std::uint64_t>(from); }

// Vector, list or row, another one on each rank and for each turn.
std::unique_ptr<Laid> any_of(int choice, std::int64_t count) {
  return choice % 3 == 0 ? strided(count) : choice % 3 == 1 ? listed(count) : in_a_row(count);
}

// So many of it one after the other, with their places.
struct Many {
  Many(int choice, std::int64_t count, std::int64_t layouts) : each(any_of(choice, count)), number(layouts) {
    std::int64_t lower = 0, extent = 0;
    EXPECT_EQ(IST_OK, ist_layout_extent(each->layout, &lower, &extent));
    for (std::int64_t i = 0; i < layouts; ++i) add_at(i * extent);
  }
  void add_at(std::int64_t from) {
    for (const std::size_t place : each->places) {
      places.push_back(place + static_cast<std::size_t>(from));
      reach = std::max(reach, places.back() + 1);
    }
  }
  Bytes packed(const Bytes& memory) const {
    Bytes bytes;
    for (const std::size_t place : places) bytes.push_back(memory[place]);
    return bytes;
  }
  Bytes unpacked(const Bytes& bytes) const {
    Bytes memory(reach, 0xa5);
    for (std::size_t i = 0; i < bytes.size(); ++i) memory[places[i]] = bytes[i];
    return memory;
  }
  std::unique_ptr<Laid> each;
  std::int64_t number;
  std::vector<std::size_t> places;
  std::size_t reach = 0;
};

// What rank `from` has in its layout, packed: all ranks can compute it.
Bytes bytes_of(int from, std::uint64_t what, std::int64_t bytes) {
  return random_bytes(static_cast<std::size_t>(bytes), seed_of(from, what));
}
Bytes slice(const Bytes& bytes, std::int64_t part, std::int64_t size) {
  const auto begin = bytes.begin() + part * size;
  return {begin, begin + size};
}
void append(Bytes& to, const Bytes& more) { to.insert(to.end(), more.begin(), more.end()); }

// A buffer of this rank's kind of the turn.
struct Side {
  Side(const Many& what, int turn)
      : many(what),
        buffer(usable_kinds()[static_cast<std::size_t>(next_kind(turn, usable_kinds().size()))].kind, what.reach) {}
  void hold(const Bytes& bytes) { buffer.fill(many.unpacked(bytes)); }
  void expect(const Bytes& bytes, const std::string& text) { buffer.expect(many.unpacked(bytes), text); }
  const Many& many;
  GuardedBuffer buffer;
};

// The call, or the form of it that does not wait.
template <class Now, class Later>
void make(bool waits, const Now& now, const Later& later) {
  if (waits) {
    IST_OK_OR_FAIL(now());
    return;
  }
  ist_request request = IST_REQUEST_NULL;
  IST_OK_OR_FAIL(later(&request));
  IST_OK_OR_FAIL(ist_wait(&request, IST_STATUS_IGNORE));
}

class LayoutCollectives : public testing::TestWithParam<std::int64_t> {
 protected:
  std::int64_t ints() const { return GetParam(); }
  std::int64_t bytes() const { return 4 * ints(); }
  template <class Body>
  static void turns(const Body& body) {
    for (int turn = 0; turn < 4; ++turn) {
      SCOPED_TRACE("turn " + std::to_string(turn));
      body(turn, turn % 2 == 0, turn % size());
      if (testing::Test::HasFailure()) return;
    }
  }
};

TEST_P(LayoutCollectives, broadcast_what_each_lays_out_by_itself) {
  turns([&](int turn, bool waits, int root) {
    const Many many(rank() + turn, ints(), 1);
    Side data(many, turn);
    const Bytes wanted = bytes_of(root, 10, bytes());
    if (rank() == root) data.hold(wanted);
    const ist_buffer at = data.buffer.get();
    ist_layout const layout = many.each->layout;
    // A rank whose bytes lie in a row may make the plain call.
    if ((rank() + turn) % 3 == 2)
      make(
          waits, [&] { return ist_bcast(at, ints(), IST_INT32, root, comm()); },
          [&](auto* r) { return ist_ibcast(at, ints(), IST_INT32, root, comm(), r); });
    else
      make(
          waits, [&] { return ist_bcast_layout(at, 1, layout, root, comm()); },
          [&](auto* r) { return ist_ibcast_layout(at, 1, layout, root, comm(), r); });
    data.expect(wanted, "broadcast");
  });
}

TEST_P(LayoutCollectives, gather_and_scatter_by_other_layouts_on_the_root) {
  turns([&](int turn, bool waits, int root) {
    const Many mine(rank() + turn, ints(), 1), all(turn + 1, ints(), size());
    Side part(mine, turn), whole(all, turn + 1);
    Bytes gathered;
    for (int r = 0; r < size(); ++r) append(gathered, bytes_of(r, 20, bytes()));
    part.hold(bytes_of(rank(), 20, bytes()));
    make(
        waits,
        [&] {
          return ist_gather_layout(part.buffer.get(), 1, mine.each->layout, whole.buffer.get(), 1, all.each->layout, root,
                                   comm());
        },
        [&](auto* r) {
          return ist_igather_layout(part.buffer.get(), 1, mine.each->layout, whole.buffer.get(), 1, all.each->layout, root,
                                    comm(), r);
        });
    whole.expect(rank() == root ? gathered : Bytes{}, "gathered");
    Side back(mine, turn);
    make(
        waits,
        [&] {
          return ist_scatter_layout(whole.buffer.get(), 1, all.each->layout, back.buffer.get(), 1, mine.each->layout, root,
                                    comm());
        },
        [&](auto* r) {
          return ist_iscatter_layout(whole.buffer.get(), 1, all.each->layout, back.buffer.get(), 1, mine.each->layout, root,
                                     comm(), r);
        });
    back.expect(bytes_of(rank(), 20, bytes()), "scattered");
  });
}

TEST_P(LayoutCollectives, allgather_also_in_place) {
  turns([&](int turn, bool waits, int) {
    const Many mine(rank() + turn, ints(), 1), all(rank() + turn + 1, ints(), size());
    Side part(mine, turn), whole(all, turn + 1);
    Bytes gathered, own(static_cast<std::size_t>(bytes() * size()), 0xa5);
    for (int r = 0; r < size(); ++r) append(gathered, bytes_of(r, 30, bytes()));
    const Bytes here = bytes_of(rank(), 30, bytes());
    const bool in_place = turn >= 2;
    if (in_place) {
      std::copy(here.begin(), here.end(), own.begin() + rank() * bytes());
      whole.hold(own);
    } else {
      part.hold(here);
    }
    const ist_buffer from = in_place ? IST_IN_PLACE : part.buffer.get();
    make(
        waits,
        [&] { return ist_allgather_layout(from, 1, mine.each->layout, whole.buffer.get(), 1, all.each->layout, comm()); },
        [&](auto* r) {
          return ist_iallgather_layout(from, 1, mine.each->layout, whole.buffer.get(), 1, all.each->layout, comm(), r);
        });
    whole.expect(gathered, "allgathered");
  });
}

TEST_P(LayoutCollectives, alltoall_also_in_place) {
  turns([&](int turn, bool waits, int) {
    const Many out(rank() + turn, ints(), size()), in(rank() + turn + 1, ints(), size());
    Side send(out, turn), recv(in, turn + 1);
    const bool in_place = turn >= 2;
    const Bytes given = bytes_of(rank(), 40, bytes() * size());
    (in_place ? recv : send).hold(given);
    const ist_buffer from = in_place ? IST_IN_PLACE : send.buffer.get();
    make(
        waits, [&] { return ist_alltoall_layout(from, 1, out.each->layout, recv.buffer.get(), 1, in.each->layout, comm()); },
        [&](auto* r) {
          return ist_ialltoall_layout(from, 1, out.each->layout, recv.buffer.get(), 1, in.each->layout, comm(), r);
        });
    Bytes wanted;
    for (int r = 0; r < size(); ++r) append(wanted, slice(bytes_of(r, 40, bytes() * size()), rank(), bytes()));
    recv.expect(wanted, "alltoall");
  });
}

INSTANTIATE_TEST_SUITE_P(OfInts, LayoutCollectives, testing::Values(0, 4, 1000, 40000, 150000));

// Parts of r + 1 layouts for rank r, the last rank's first, a layout apart.
struct Uneven {
  explicit Uneven(std::int64_t extent) {
    std::int64_t place = 0;
    for (int r = size() - 1; r >= 0; --r) {
      counts.insert(counts.begin(), r + 1);
      displs.insert(displs.begin(), place);
      place += r + 2;
    }
    reach = place * extent;
  }
  std::vector<std::int64_t> counts, displs;
  std::int64_t reach = 0;
};

std::int64_t extent_of(const Laid& laid) {
  std::int64_t lower = 0, extent = 0;
  EXPECT_EQ(IST_OK, ist_layout_extent(laid.layout, &lower, &extent));
  return extent;
}

// The parts in the order of ranks.
Many uneven(int choice, const Uneven& parts) {
  Many many(choice, kSome, 0);
  for (int r = 0; r < size(); ++r)
    for (std::int64_t i = 0; i < parts.counts[at(r)]; ++i) many.add_at((parts.displs[at(r)] + i) * extent_of(*many.each));
  return many;
}

TEST(LayoutCollectivesOfParts, differ_in_count_and_place) {
  for (int turn = 0; turn < 4; ++turn) {
    const bool waits = turn % 2 == 0;
    const int root = turn % size();
    const Many mine(rank() + turn, kSome, rank() + 1);
    const Uneven parts(extent_of(*any_of(turn, kSome)));
    const Many all = uneven(turn, parts);
    Bytes gathered;
    for (int r = 0; r < size(); ++r) append(gathered, bytes_of(r, 50, 4 * kSome * (r + 1)));
    Side part(mine, turn), whole(all, turn + 1), everywhere(all, turn + 2), back(mine, turn + 1);
    part.hold(bytes_of(rank(), 50, 4 * kSome * (rank() + 1)));
    const auto number = static_cast<std::int64_t>(rank()) + 1;
    ist_layout const small = mine.each->layout, large = all.each->layout;
    const std::int64_t *counts = parts.counts.data(), *displs = parts.displs.data();
    make(
        waits,
        [&] {
          return ist_gatherv_layout(part.buffer.get(), number, small, whole.buffer.get(), counts, displs, large, root,
                                    comm());
        },
        [&](auto* r) {
          return ist_igatherv_layout(part.buffer.get(), number, small, whole.buffer.get(), counts, displs, large, root,
                                     comm(), r);
        });
    whole.expect(rank() == root ? gathered : Bytes{}, "gatherv");
    make(
        waits,
        [&] {
          return ist_scatterv_layout(whole.buffer.get(), counts, displs, large, back.buffer.get(), number, small, root,
                                     comm());
        },
        [&](auto* r) {
          return ist_iscatterv_layout(whole.buffer.get(), counts, displs, large, back.buffer.get(), number, small, root,
                                      comm(), r);
        });
    back.expect(bytes_of(rank(), 50, 4 * kSome * (rank() + 1)), "scatterv");
    make(
        waits,
        [&] {
          return ist_allgatherv_layout(part.buffer.get(), number, small, everywhere.buffer.get(), counts, displs, large,
                                       comm());
        },
        [&](auto* r) {
          return ist_iallgatherv_layout(part.buffer.get(), number, small, everywhere.buffer.get(), counts, displs, large,
                                        comm(), r);
        });
    everywhere.expect(gathered, "allgatherv");
    if (testing::Test::HasFailure()) FAIL() << "turn " << turn;
  }
}

// Rank s gives rank r (s + r) % 3 layouts.
std::int64_t given(int from, int to) { return (from + to) % 3; }

TEST(LayoutCollectivesOfParts, go_from_everybody_to_everybody) {
  for (int turn = 0; turn < 4; ++turn) {
    const bool waits = turn % 2 == 0;
    Many out(rank() + turn, kSome, 0), in(rank() + turn + 1, kSome, 0);
    std::vector<std::int64_t> sent, to, came, from;
    Bytes wanted, all;
    for (int r = 0; r < size(); ++r) {
      sent.push_back(given(rank(), r));
      to.push_back(3 * r);
      came.push_back(given(r, rank()));
      from.push_back(3 * (size() - 1 - r));
      for (std::int64_t i = 0; i < sent.back(); ++i) out.add_at((to.back() + i) * extent_of(*out.each));
      for (std::int64_t i = 0; i < came.back(); ++i) in.add_at((from.back() + i) * extent_of(*in.each));
      append(wanted, bytes_of(r * 100 + rank(), 60, 4 * kSome * came.back()));
      append(all, bytes_of(rank() * 100 + r, 60, 4 * kSome * sent.back()));
    }
    Side send(out, turn), recv(in, turn + 1), again(in, turn + 2);
    send.hold(all);
    ist_layout const one = out.each->layout, other = in.each->layout;
    make(
        waits,
        [&] {
          return ist_alltoallv_layout(send.buffer.get(), sent.data(), to.data(), one, recv.buffer.get(), came.data(),
                                      from.data(), other, comm());
        },
        [&](auto* r) {
          return ist_ialltoallv_layout(send.buffer.get(), sent.data(), to.data(), one, recv.buffer.get(), came.data(),
                                       from.data(), other, comm(), r);
        });
    recv.expect(wanted, "alltoallv");
    std::vector<ist_layout> ones(at(size()), one), others(at(size()), other);
    for (int r = 0; r < size(); ++r) {
      to[at(r)] *= extent_of(*out.each);
      from[at(r)] *= extent_of(*in.each);
    }
    make(
        waits,
        [&] {
          return ist_alltoallw(send.buffer.get(), sent.data(), to.data(), ones.data(), again.buffer.get(), came.data(),
                               from.data(), others.data(), comm());
        },
        [&](auto* r) {
          return ist_ialltoallw(send.buffer.get(), sent.data(), to.data(), ones.data(), again.buffer.get(), came.data(),
                                from.data(), others.data(), comm(), r);
        });
    again.expect(wanted, "alltoallw");
    if (testing::Test::HasFailure()) FAIL() << "turn " << turn;
  }
}

// What is between two layouts' bytes may be another's: two broadcasts at once fill one buffer.
TEST(LayoutCollectivesOfParts, may_lie_between_each_other) {
  ist_layout layout = IST_LAYOUT_NULL;
  IST_OK_OR_FAIL(ist_layout_vector(1000, 1, 2, ist_layout_of(IST_INT32), &layout));
  IST_OK_OR_FAIL(ist_layout_commit(layout));
  GuardedBuffer data{IST_KIND_HOST, 8000};
  const Bytes wanted = random_bytes(8000, 7);
  if (rank() == 0) data.fill(wanted);
  ist_request requests[2] = {};
  for (std::uint64_t i : {0, 1})
    IST_OK_OR_FAIL(ist_ibcast_layout(ist_buffer_at(data.get(), 4 * i), 1, layout, 0, comm(), &requests[i]));
  IST_OK_OR_FAIL(ist_waitall(2, requests, IST_STATUSES_IGNORE));
  data.expect(wanted, "both");
  IST_OK_OR_FAIL(ist_layout_free(&layout));
}

void refused(int code, const std::string& text, int expected = IST_ERR_ARGUMENT) {
  EXPECT_EQ(code, expected);
  EXPECT_NE(std::string{ist_error_text()}.find(text), std::string::npos) << ist_error_text();
}

TEST(LayoutCollectivesRefuse, what_is_no_layout_or_has_bytes_twice) {
  GuardedBuffer data{IST_KIND_HOST, 4096};
  const ist_buffer at = data.get();
  ist_layout raw = IST_LAYOUT_NULL, twice = IST_LAYOUT_NULL;
  IST_OK_OR_FAIL(ist_layout_vector(3, 1, 2, ist_layout_of(IST_INT32), &raw));
  refused(ist_bcast_layout(at, 1, raw, 0, comm()), "ist_bcast_layout: buffer: the layout, vector(");
  refused(ist_bcast_layout(at, 1, raw, size(), comm()), "root is " + std::to_string(size()), IST_ERR_RANK);
  refused(ist_bcast_layout(at, 1, IST_LAYOUT_NULL, 0, comm()), "the layout is null", IST_ERR_HANDLE);
  IST_OK_OR_FAIL(ist_layout_commit(raw));
  refused(ist_bcast_layout(at, -1, raw, 0, comm()), "count is -1");
  IST_OK_OR_FAIL(ist_layout_hvector(3, 1, 2, ist_layout_of(IST_INT32), &twice));
  IST_OK_OR_FAIL(ist_layout_commit(twice));
  refused(ist_allgather_layout(at, 1, raw, at, 1, twice, comm()), "has a byte twice");
  std::vector<std::int64_t> counts(rank_test::at(size()), 1), displs(rank_test::at(size()), 0);
  if (size() > 1)
    refused(ist_allgatherv_layout(at, 1, raw, at, counts.data(), displs.data(), raw, comm()), "recv: the parts have a byte");
  refused(ist_allgatherv_layout(at, 1, raw, at, nullptr, displs.data(), raw, comm()), "recv: the counts, the displacements");
  counts[0] = -2;
  refused(ist_alltoallv_layout(at, counts.data(), displs.data(), raw, at, counts.data(), displs.data(), raw, comm()),
          "send: part 0: count is -2");
  IST_OK_OR_FAIL(ist_layout_free(&raw));
  IST_OK_OR_FAIL(ist_layout_free(&twice));
}

// A buffer that is none is told to the others.
TEST(LayoutCollectivesRefuse, a_buffer_that_is_none_on_every_rank_that_depends_on_it) {
  if (size() < 2) GTEST_SKIP() << "needs two ranks";
  const auto vector = strided(400);
  GuardedBuffer data{IST_KIND_HOST, vector->reach};
  const int code = ist_bcast_layout(rank() == 0 ? ist_host(nullptr) : data.get(), 1, vector->layout, 0, comm());
  refused(code, rank() == 0 ? "buffer: " : "rank 0");
  data.expect({}, "nothing came");
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

}  // namespace
