// Collective calls on every pair of kinds, in and out of place, blocking and under way together, against a serial result. Run
// on 1 to 6 ranks.
#include "collective_support.hpp"

namespace {

using namespace rank_test;
using namespace collective_test;

std::string text(const char* call, const Member& here, std::size_t count) {
  return std::string{call} + " of " + std::to_string(count) + " numbers on rank " + std::to_string(here.rank) + " of " +
         std::to_string(here.size);
}

class Collectives : public testing::TestWithParam<Form> {};
INSTANTIATE_TEST_SUITE_P(Each, Collectives, testing::Values(Form::blocking, Form::nonblocking), name_of);

TEST_P(Collectives, BroadcastGivesTheRootsBytesToEverybody) {
  on_communicators(GetParam(), [form = GetParam()](const Member& here) {
    KindDraw kinds{1, form};
    Calls calls{form};
    for (const std::size_t count : counts()) {
      const auto number = static_cast<std::int64_t>(count);
      const int root = static_cast<int>(count) % here.size;
      const int next = (root + 1) % here.size;
      const Numbers buffer{kinds.next(), here.rank == root ? input_of(root, count, count) : Bytes(count * 8, 0x33)};
      const Numbers other{kinds.next(), here.rank == next ? input_of(next, count, count) : Bytes(count * 8, 0x44)};
      IST_OK_OR_FAIL(calls(ist_bcast, ist_ibcast, buffer.get(), number, IST_INT64, root, here.comm));
      IST_OK_OR_FAIL(calls(ist_bcast, ist_ibcast, other.get(), number, IST_INT64, next, here.comm));
      IST_OK_OR_FAIL(calls.finish());
      buffer.expect(input_of(root, count, count), text("bcast", here, count));
      other.expect(input_of(next, count, count), text("bcast of the next root", here, count));
    }
  });
}

TEST_P(Collectives, ReduceAndAllreduceGiveTheSumOfAll) {
  on_communicators(GetParam(), [form = GetParam()](const Member& here) {
    KindDraw kinds{2, form};
    Calls calls{form};
    for (const std::size_t count : counts()) {
      const auto number = static_cast<std::int64_t>(count);
      const Bytes sum = sum_of(0, here.size, count, count);
      const Bytes mine = input_of(here.rank, count, count);
      const int root = static_cast<int>(count % 5) % here.size;
      const Numbers send{kinds.next(), mine};
      const Numbers recv{kinds.next(), count};
      const Numbers all{kinds.next(), count};
      const Numbers both{kinds.next(), mine};
      const Numbers at_root{kinds.next(), mine};
      IST_OK_OR_FAIL(calls(ist_reduce, ist_ireduce, send.get(), recv.get(), number, IST_INT64, IST_SUM, root, here.comm));
      IST_OK_OR_FAIL(calls(ist_allreduce, ist_iallreduce, send.get(), all.get(), number, IST_UINT64, IST_SUM, here.comm));
      IST_OK_OR_FAIL(calls(ist_allreduce, ist_iallreduce, IST_IN_PLACE, both.get(), number, IST_INT64, IST_SUM, here.comm));
      IST_OK_OR_FAIL(calls(ist_reduce, ist_ireduce, here.rank == root ? IST_IN_PLACE : at_root.get(), at_root.get(), number,
                           IST_INT64, IST_SUM, root, here.comm));
      IST_OK_OR_FAIL(calls.finish());
      recv.expect(here.rank == root ? sum : Bytes{}, text("reduce", here, count));
      all.expect(sum, text("allreduce", here, count));
      send.expect(mine, text("the input of allreduce", here, count));
      both.expect(sum, text("allreduce in place", here, count));
      at_root.expect(here.rank == root ? sum : mine, text("reduce in place", here, count));
    }
  });
}

TEST_P(Collectives, ReduceScatterGivesEveryRankItsPartOfTheSum) {
  on_communicators(GetParam(), [form = GetParam()](const Member& here) {
    KindDraw kinds{3, form};
    Calls calls{form};
    const auto ranks = static_cast<std::size_t>(here.size);
    for (const std::size_t count : counts()) {
      // Unequal parts: the first rank's is empty, the others' grow.
      std::vector<std::int64_t> parts;
      for (std::size_t r = 0; r < ranks; ++r) parts.push_back(static_cast<std::int64_t>(count * 2 * r / (ranks * ranks)));
      std::size_t all = 0;
      std::size_t before = 0;
      for (int r = 0; r < here.size; ++r) {
        if (r < here.rank) before += static_cast<std::size_t>(parts[static_cast<std::size_t>(r)]);
        all += static_cast<std::size_t>(parts[static_cast<std::size_t>(r)]);
      }
      const auto own = static_cast<std::size_t>(parts[static_cast<std::size_t>(here.rank)]);
      const Bytes mine = input_of(here.rank, all, count);
      const Bytes block = input_of(here.rank, count * ranks, count);
      const Numbers send{kinds.next(), mine};
      const Numbers recv{kinds.next(), own};
      const Numbers both{kinds.next(), mine};
      const Numbers blocks{kinds.next(), block};
      const Numbers one{kinds.next(), count};
      IST_OK_OR_FAIL(calls(ist_reduce_scatter, ist_ireduce_scatter, send.get(), recv.get(), parts.data(), IST_INT64, IST_SUM,
                           here.comm));
      IST_OK_OR_FAIL(calls(ist_reduce_scatter, ist_ireduce_scatter, IST_IN_PLACE, both.get(), parts.data(), IST_INT64,
                           IST_SUM, here.comm));
      IST_OK_OR_FAIL(calls(ist_reduce_scatter_block, ist_ireduce_scatter_block, blocks.get(), one.get(),
                           static_cast<std::int64_t>(count), IST_INT64, IST_SUM, here.comm));
      IST_OK_OR_FAIL(calls.finish());
      const Bytes result = part(sum_of(0, here.size, all, count), before, own);
      recv.expect(result, text("reduce_scatter", here, all));
      Bytes expected = mine;
      std::copy(result.begin(), result.end(), expected.begin());
      both.expect(expected, text("reduce_scatter in place", here, all));
      one.expect(part(sum_of(0, here.size, count * ranks, count), static_cast<std::size_t>(here.rank) * count, count),
                 text("reduce_scatter_block", here, count));
    }
  });
}

TEST_P(Collectives, ScanAndExscanGiveTheSumsUpToThisRank) {
  on_communicators(GetParam(), [form = GetParam()](const Member& here) {
    KindDraw kinds{4, form};
    Calls calls{form};
    for (const std::size_t count : counts()) {
      const auto number = static_cast<std::int64_t>(count);
      const Bytes mine = input_of(here.rank, count, count);
      const Numbers send{kinds.next(), mine};
      const Numbers recv{kinds.next(), count};
      const Numbers before{kinds.next(), count};
      const Numbers both{kinds.next(), mine};
      const Numbers place{kinds.next(), mine};
      IST_OK_OR_FAIL(calls(ist_scan, ist_iscan, send.get(), recv.get(), number, IST_INT64, IST_SUM, here.comm));
      IST_OK_OR_FAIL(calls(ist_exscan, ist_iexscan, send.get(), before.get(), number, IST_INT64, IST_SUM, here.comm));
      IST_OK_OR_FAIL(calls(ist_scan, ist_iscan, IST_IN_PLACE, both.get(), number, IST_INT64, IST_SUM, here.comm));
      IST_OK_OR_FAIL(calls(ist_exscan, ist_iexscan, IST_IN_PLACE, place.get(), number, IST_INT64, IST_SUM, here.comm));
      IST_OK_OR_FAIL(calls.finish());
      const Bytes up_to_here = sum_of(0, here.rank + 1, count, count);
      const Bytes below = sum_of(0, here.rank, count, count);
      recv.expect(up_to_here, text("scan", here, count));
      before.expect(here.rank > 0 ? below : Bytes{}, text("exscan", here, count));
      both.expect(up_to_here, text("scan in place", here, count));
      place.expect(here.rank > 0 ? below : mine, text("exscan in place", here, count));
    }
  });
}

TEST_P(Collectives, GatherAndScatterMoveEqualParts) {
  on_communicators(GetParam(), [form = GetParam()](const Member& here) {
    KindDraw kinds{5, form};
    Calls calls{form};
    const auto ranks = static_cast<std::size_t>(here.size);
    for (const std::size_t count : counts()) {
      const auto number = static_cast<std::int64_t>(count);
      const int root = static_cast<int>(count % 3) % here.size;
      const bool is_root = here.rank == root;
      std::vector<Bytes> parts;
      for (int r = 0; r < here.size; ++r) parts.push_back(input_of(r, count, count));
      const Bytes& mine = parts[static_cast<std::size_t>(here.rank)];
      const Bytes all = joined(parts);
      const Numbers own{kinds.next(), mine};
      const Numbers from{kinds.next(), all};
      const Numbers whole{kinds.next(), count * ranks};
      const Numbers back{kinds.next(), count};
      Numbers place{kinds.next(), count * ranks};
      if (is_root) place.fill(mine, static_cast<std::size_t>(root) * count * 8);
      const Numbers other{kinds.next(), count};
      const Numbers everything{kinds.next(), count * ranks};
      Numbers in_place{kinds.next(), count * ranks};
      in_place.fill(mine, static_cast<std::size_t>(here.rank) * count * 8);
      IST_OK_OR_FAIL(calls(ist_gather, ist_igather, own.get(), number, whole.get(), number, IST_INT64, root, here.comm));
      IST_OK_OR_FAIL(calls(ist_scatter, ist_iscatter, from.get(), number, back.get(), number, IST_INT64, root, here.comm));
      IST_OK_OR_FAIL(calls(ist_gather, ist_igather, is_root ? IST_IN_PLACE : own.get(), number, place.get(), number,
                           IST_INT64, root, here.comm));
      IST_OK_OR_FAIL(calls(ist_scatter, ist_iscatter, from.get(), number, is_root ? IST_IN_PLACE : other.get(), number,
                           IST_INT64, root, here.comm));
      IST_OK_OR_FAIL(
          calls(ist_allgather, ist_iallgather, own.get(), number, everything.get(), number, IST_INT64, here.comm));
      IST_OK_OR_FAIL(calls(ist_allgather, ist_iallgather, IST_IN_PLACE, 0, in_place.get(), number, IST_INT64, here.comm));
      IST_OK_OR_FAIL(calls.finish());
      whole.expect(is_root ? all : Bytes{}, text("gather", here, count));
      back.expect(mine, text("scatter", here, count));
      place.expect(is_root ? all : Bytes{}, text("gather in place", here, count));
      other.expect(is_root ? Bytes{} : mine, text("scatter in place", here, count));
      everything.expect(all, text("allgather", here, count));
      in_place.expect(all, text("allgather in place", here, count));
    }
  });
}

TEST_P(Collectives, GathervScattervAndAllgathervMoveUnequalPartsWithGapsBetween) {
  on_communicators(GetParam(), [form = GetParam()](const Member& here) {
    KindDraw kinds{6, form};
    Calls calls{form};
    for (const std::size_t count : counts()) {
      const int root = static_cast<int>(count % 4) % here.size;
      std::vector<std::int64_t> parts;
      std::vector<std::int64_t> places;
      std::size_t end = 0;
      // The last rank's part comes first; three numbers lie between any two.
      for (int r = 0; r < here.size; ++r) {
        parts.push_back(
            static_cast<std::int64_t>(count * static_cast<std::size_t>(r) / static_cast<std::size_t>(here.size)));
        places.push_back(0);
      }
      for (int r = here.size - 1; r >= 0; --r) {
        places[static_cast<std::size_t>(r)] = static_cast<std::int64_t>(end);
        end += static_cast<std::size_t>(parts[static_cast<std::size_t>(r)]) + 3;
      }
      Bytes all(end * 8, 0xa5);
      for (int r = 0; r < here.size; ++r) {
        const Bytes theirs = input_of(r, static_cast<std::size_t>(parts[static_cast<std::size_t>(r)]), count);
        std::copy(theirs.begin(), theirs.end(), all.begin() + places[static_cast<std::size_t>(r)] * 8);
      }
      const auto own_count = parts[static_cast<std::size_t>(here.rank)];
      const Bytes mine = input_of(here.rank, static_cast<std::size_t>(own_count), count);
      const Numbers own{kinds.next(), mine};
      const Numbers from{kinds.next(), all};
      const Numbers whole{kinds.next(), end};
      const Numbers back{kinds.next(), static_cast<std::size_t>(own_count)};
      const Numbers everything{kinds.next(), end};
      Numbers in_place{kinds.next(), end};
      in_place.fill(mine, static_cast<std::size_t>(places[static_cast<std::size_t>(here.rank)]) * 8);
      IST_OK_OR_FAIL(calls(ist_gatherv, ist_igatherv, own.get(), own_count, whole.get(), parts.data(), places.data(),
                           IST_INT64, root, here.comm));
      IST_OK_OR_FAIL(calls(ist_scatterv, ist_iscatterv, from.get(), parts.data(), places.data(), back.get(), own_count,
                           IST_INT64, root, here.comm));
      IST_OK_OR_FAIL(calls(ist_allgatherv, ist_iallgatherv, own.get(), own_count, everything.get(), parts.data(),
                           places.data(), IST_INT64, here.comm));
      IST_OK_OR_FAIL(calls(ist_allgatherv, ist_iallgatherv, IST_IN_PLACE, 0, in_place.get(), parts.data(), places.data(),
                           IST_INT64, here.comm));
      IST_OK_OR_FAIL(calls.finish());
      whole.expect(here.rank == root ? all : Bytes{}, text("gatherv", here, count));
      back.expect(mine, text("scatterv", here, count));
      everything.expect(all, text("allgatherv", here, count));
      in_place.expect(all, text("allgatherv in place", here, count));
    }
  });
}

// What `from` has for `to`.
Bytes message(int from, int to, std::size_t count, std::uint64_t seed) {
  return input_of(from, count, seed * 31 + static_cast<std::uint64_t>(to));
}

TEST_P(Collectives, AlltoallAndAlltoallvGiveEverybodyItsPartOfEverybody) {
  on_communicators(GetParam(), [form = GetParam()](const Member& here) {
    KindDraw kinds{7, form};
    Calls calls{form};
    const auto ranks = static_cast<std::size_t>(here.size);
    for (const std::size_t count : counts()) {
      std::vector<Bytes> out;
      std::vector<Bytes> in;
      std::vector<std::int64_t> out_counts, in_counts, out_places, in_places;
      std::int64_t out_end = 0;
      std::int64_t in_end = 0;
      for (int r = 0; r < here.size; ++r) {
        out.push_back(message(here.rank, r, count, count));
        in.push_back(message(r, here.rank, count, count));
        // Unequal, and both sides agree: as many as the ranks' numbers say.
        const auto unequal = [&](int from, int to) {
          return static_cast<std::int64_t>(count * static_cast<std::size_t>((from + 2 * to) % 3) / 2);
        };
        out_counts.push_back(unequal(here.rank, r));
        in_counts.push_back(unequal(r, here.rank));
        out_places.push_back(out_end);
        in_places.push_back(in_end);
        out_end += out_counts.back();
        in_end += in_counts.back();
      }
      std::vector<Bytes> out_parts, in_parts;
      for (int r = 0; r < here.size; ++r) {
        out_parts.push_back(message(here.rank, r, static_cast<std::size_t>(out_counts[static_cast<std::size_t>(r)]), count));
        in_parts.push_back(message(r, here.rank, static_cast<std::size_t>(in_counts[static_cast<std::size_t>(r)]), count));
      }
      const Numbers send{kinds.next(), joined(out)};
      const Numbers recv{kinds.next(), count * ranks};
      const Numbers both{kinds.next(), joined(out)};
      const Numbers send_v{kinds.next(), joined(out_parts)};
      const Numbers recv_v{kinds.next(), static_cast<std::size_t>(in_end)};
      const auto number = static_cast<std::int64_t>(count);
      IST_OK_OR_FAIL(calls(ist_alltoall, ist_ialltoall, send.get(), recv.get(), number, IST_INT64, here.comm));
      IST_OK_OR_FAIL(calls(ist_alltoall, ist_ialltoall, IST_IN_PLACE, both.get(), number, IST_INT64, here.comm));
      IST_OK_OR_FAIL(calls(ist_alltoallv, ist_ialltoallv, send_v.get(), out_counts.data(), out_places.data(), recv_v.get(),
                           in_counts.data(), in_places.data(), IST_INT64, here.comm));
      IST_OK_OR_FAIL(calls.finish());
      recv.expect(joined(in), text("alltoall", here, count));
      both.expect(joined(in), text("alltoall in place", here, count));
      recv_v.expect(joined(in_parts), text("alltoallv", here, count));
    }
  });
}

}  // namespace
