// Collective calls on every pair of kinds, in and out of place, against a serial result. Run on 1 to 6 ranks.
#include "collective_support.hpp"

namespace {

using namespace rank_test;
using namespace collective_test;

std::string text(const char* call, const Member& here, std::size_t count) {
  return std::string{call} + " of " + std::to_string(count) + " numbers on rank " + std::to_string(here.rank) + " of " +
         std::to_string(here.size);
}

TEST(Collectives, BroadcastGivesTheRootsBytesToEverybody) {
  on_communicators([](const Member& here) {
    KindDraw kinds{1};
    for (const std::size_t count : counts()) {
      const int root = static_cast<int>(count) % here.size;
      Numbers buffer{kinds.next(), here.rank == root ? input_of(root, count, count) : Bytes(count * 8, 0x33)};
      IST_OK_OR_FAIL(ist_bcast(buffer.get(), static_cast<std::int64_t>(count), IST_INT64, root, here.comm));
      buffer.expect(input_of(root, count, count), text("bcast", here, count));
    }
  });
}

TEST(Collectives, ReduceAndAllreduceGiveTheSumOfAll) {
  on_communicators([](const Member& here) {
    KindDraw kinds{2};
    for (const std::size_t count : counts()) {
      const auto number = static_cast<std::int64_t>(count);
      const Bytes sum = sum_of(0, here.size, count, count);
      const Bytes mine = input_of(here.rank, count, count);
      const int root = static_cast<int>(count % 5) % here.size;
      const Numbers send{kinds.next(), mine};
      const Numbers recv{kinds.next(), count};
      IST_OK_OR_FAIL(ist_reduce(send.get(), recv.get(), number, IST_INT64, IST_SUM, root, here.comm));
      recv.expect(here.rank == root ? sum : Bytes{}, text("reduce", here, count));
      const Numbers all{kinds.next(), count};
      IST_OK_OR_FAIL(ist_allreduce(send.get(), all.get(), number, IST_UINT64, IST_SUM, here.comm));
      all.expect(sum, text("allreduce", here, count));
      send.expect(mine, text("the input of allreduce", here, count));
      const Numbers both{kinds.next(), mine};
      IST_OK_OR_FAIL(ist_allreduce(IST_IN_PLACE, both.get(), number, IST_INT64, IST_SUM, here.comm));
      both.expect(sum, text("allreduce in place", here, count));
      const Numbers at_root{kinds.next(), mine};
      IST_OK_OR_FAIL(ist_reduce(here.rank == root ? IST_IN_PLACE : at_root.get(), at_root.get(), number, IST_INT64, IST_SUM,
                                root, here.comm));
      at_root.expect(here.rank == root ? sum : mine, text("reduce in place", here, count));
    }
  });
}

TEST(Collectives, ReduceScatterGivesEveryRankItsPartOfTheSum) {
  on_communicators([](const Member& here) {
    KindDraw kinds{3};
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
      const Bytes sum = sum_of(0, here.size, all, count);
      const Bytes mine = input_of(here.rank, all, count);
      const Numbers send{kinds.next(), mine};
      const Numbers recv{kinds.next(), own};
      IST_OK_OR_FAIL(ist_reduce_scatter(send.get(), recv.get(), parts.data(), IST_INT64, IST_SUM, here.comm));
      recv.expect(part(sum, before, own), text("reduce_scatter", here, all));
      Numbers both{kinds.next(), mine};
      IST_OK_OR_FAIL(ist_reduce_scatter(IST_IN_PLACE, both.get(), parts.data(), IST_INT64, IST_SUM, here.comm));
      Bytes expected = mine;
      const Bytes result = part(sum, before, own);
      std::copy(result.begin(), result.end(), expected.begin());
      both.expect(expected, text("reduce_scatter in place", here, all));
      const Bytes block = input_of(here.rank, count * ranks, count);
      const Numbers blocks{kinds.next(), block};
      const Numbers one{kinds.next(), count};
      IST_OK_OR_FAIL(ist_reduce_scatter_block(blocks.get(), one.get(), static_cast<std::int64_t>(count), IST_INT64, IST_SUM,
                                              here.comm));
      one.expect(part(sum_of(0, here.size, count * ranks, count), static_cast<std::size_t>(here.rank) * count, count),
                 text("reduce_scatter_block", here, count));
    }
  });
}

TEST(Collectives, ScanAndExscanGiveTheSumsUpToThisRank) {
  on_communicators([](const Member& here) {
    KindDraw kinds{4};
    for (const std::size_t count : counts()) {
      const auto number = static_cast<std::int64_t>(count);
      const Bytes mine = input_of(here.rank, count, count);
      const Numbers send{kinds.next(), mine};
      const Numbers recv{kinds.next(), count};
      IST_OK_OR_FAIL(ist_scan(send.get(), recv.get(), number, IST_INT64, IST_SUM, here.comm));
      recv.expect(sum_of(0, here.rank + 1, count, count), text("scan", here, count));
      const Numbers before{kinds.next(), count};
      IST_OK_OR_FAIL(ist_exscan(send.get(), before.get(), number, IST_INT64, IST_SUM, here.comm));
      before.expect(here.rank > 0 ? sum_of(0, here.rank, count, count) : Bytes{}, text("exscan", here, count));
      const Numbers both{kinds.next(), mine};
      IST_OK_OR_FAIL(ist_scan(IST_IN_PLACE, both.get(), number, IST_INT64, IST_SUM, here.comm));
      both.expect(sum_of(0, here.rank + 1, count, count), text("scan in place", here, count));
      const Numbers place{kinds.next(), mine};
      IST_OK_OR_FAIL(ist_exscan(IST_IN_PLACE, place.get(), number, IST_INT64, IST_SUM, here.comm));
      place.expect(here.rank > 0 ? sum_of(0, here.rank, count, count) : mine, text("exscan in place", here, count));
    }
  });
}

TEST(Collectives, GatherAndScatterMoveEqualParts) {
  on_communicators([](const Member& here) {
    KindDraw kinds{5};
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
      const Numbers whole{kinds.next(), count * ranks};
      IST_OK_OR_FAIL(ist_gather(own.get(), number, whole.get(), number, IST_INT64, root, here.comm));
      whole.expect(is_root ? all : Bytes{}, text("gather", here, count));
      const Numbers from{kinds.next(), all};
      const Numbers back{kinds.next(), count};
      IST_OK_OR_FAIL(ist_scatter(from.get(), number, back.get(), number, IST_INT64, root, here.comm));
      back.expect(mine, text("scatter", here, count));
      Numbers place{kinds.next(), count * ranks};
      if (is_root) place.fill(mine, static_cast<std::size_t>(root) * count * 8);
      IST_OK_OR_FAIL(
          ist_gather(is_root ? IST_IN_PLACE : own.get(), number, place.get(), number, IST_INT64, root, here.comm));
      place.expect(is_root ? all : Bytes{}, text("gather in place", here, count));
      const Numbers other{kinds.next(), count};
      IST_OK_OR_FAIL(
          ist_scatter(place.get(), number, is_root ? IST_IN_PLACE : other.get(), number, IST_INT64, root, here.comm));
      other.expect(is_root ? Bytes{} : mine, text("scatter in place", here, count));
      const Numbers everything{kinds.next(), count * ranks};
      IST_OK_OR_FAIL(ist_allgather(own.get(), number, everything.get(), number, IST_INT64, here.comm));
      everything.expect(all, text("allgather", here, count));
      Numbers in_place{kinds.next(), count * ranks};
      in_place.fill(mine, static_cast<std::size_t>(here.rank) * count * 8);
      IST_OK_OR_FAIL(ist_allgather(IST_IN_PLACE, 0, in_place.get(), number, IST_INT64, here.comm));
      in_place.expect(all, text("allgather in place", here, count));
    }
  });
}

TEST(Collectives, GathervScattervAndAllgathervMoveUnequalPartsWithGapsBetween) {
  on_communicators([](const Member& here) {
    KindDraw kinds{6};
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
      const Numbers whole{kinds.next(), end};
      IST_OK_OR_FAIL(
          ist_gatherv(own.get(), own_count, whole.get(), parts.data(), places.data(), IST_INT64, root, here.comm));
      whole.expect(here.rank == root ? all : Bytes{}, text("gatherv", here, count));
      const Numbers from{kinds.next(), all};
      const Numbers back{kinds.next(), static_cast<std::size_t>(own_count)};
      IST_OK_OR_FAIL(
          ist_scatterv(from.get(), parts.data(), places.data(), back.get(), own_count, IST_INT64, root, here.comm));
      back.expect(mine, text("scatterv", here, count));
      const Numbers everything{kinds.next(), end};
      IST_OK_OR_FAIL(
          ist_allgatherv(own.get(), own_count, everything.get(), parts.data(), places.data(), IST_INT64, here.comm));
      everything.expect(all, text("allgatherv", here, count));
    }
  });
}

// What `from` has for `to`.
Bytes message(int from, int to, std::size_t count, std::uint64_t seed) {
  return input_of(from, count, seed * 31 + static_cast<std::uint64_t>(to));
}

TEST(Collectives, AlltoallAndAlltoallvGiveEverybodyItsPartOfEverybody) {
  on_communicators([](const Member& here) {
    KindDraw kinds{7};
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
      const Numbers send{kinds.next(), joined(out)};
      const Numbers recv{kinds.next(), count * ranks};
      IST_OK_OR_FAIL(ist_alltoall(send.get(), recv.get(), static_cast<std::int64_t>(count), IST_INT64, here.comm));
      recv.expect(joined(in), text("alltoall", here, count));
      const Numbers both{kinds.next(), joined(out)};
      IST_OK_OR_FAIL(ist_alltoall(IST_IN_PLACE, both.get(), static_cast<std::int64_t>(count), IST_INT64, here.comm));
      both.expect(joined(in), text("alltoall in place", here, count));
      std::vector<Bytes> out_parts, in_parts;
      for (int r = 0; r < here.size; ++r) {
        out_parts.push_back(message(here.rank, r, static_cast<std::size_t>(out_counts[static_cast<std::size_t>(r)]), count));
        in_parts.push_back(message(r, here.rank, static_cast<std::size_t>(in_counts[static_cast<std::size_t>(r)]), count));
      }
      const Numbers send_v{kinds.next(), joined(out_parts)};
      const Numbers recv_v{kinds.next(), static_cast<std::size_t>(in_end)};
      IST_OK_OR_FAIL(ist_alltoallv(send_v.get(), out_counts.data(), out_places.data(), recv_v.get(), in_counts.data(),
                                   in_places.data(), IST_INT64, here.comm));
      recv_v.expect(joined(in_parts), text("alltoallv", here, count));
    }
  });
}

TEST(Collectives, ManyNonblockingOnesRunAtOnceOnSeveralCommunicators) {
  ist_comm twin = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_comm_dup(comm(), &twin));
  KindDraw kinds{8};
  std::vector<std::unique_ptr<Numbers>> inputs;
  std::vector<std::unique_ptr<Numbers>> results;
  std::vector<ist_request> requests;
  std::vector<Bytes> expected;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    const std::size_t count = counts()[seed % counts().size()];
    const Member here{seed % 2 == 0 ? comm() : twin};
    inputs.push_back(std::make_unique<Numbers>(kinds.next(), input_of(here.rank, count, seed)));
    results.push_back(std::make_unique<Numbers>(kinds.next(), count));
    requests.emplace_back();
    const auto number = static_cast<std::int64_t>(count);
    const ist_buffer in = inputs.back()->get();
    const ist_buffer out = results.back()->get();
    if (seed % 3 == 0) {
      IST_OK_OR_FAIL(ist_iallreduce(in, out, number, IST_INT64, IST_SUM, here.comm, &requests.back()));
      expected.push_back(sum_of(0, here.size, count, seed));
    } else if (seed % 3 == 1) {
      IST_OK_OR_FAIL(ist_iscan(in, out, number, IST_INT64, IST_SUM, here.comm, &requests.back()));
      expected.push_back(sum_of(0, here.rank + 1, count, seed));
    } else {
      IST_OK_OR_FAIL(
          ist_iscatter(in, number / here.size, out, number / here.size, IST_INT64, 0, here.comm, &requests.back()));
      const auto each = static_cast<std::size_t>(number / here.size);
      expected.push_back(part(input_of(0, count, seed), static_cast<std::size_t>(here.rank) * each, each));
    }
    // Messages of the user's go on between them.
    int token = static_cast<int>(seed);
    IST_OK_OR_FAIL(ist_sendrecv_replace(ist_host(&token), 1, IST_INT, (here.rank + 1) % here.size, 3,
                                        (here.rank + here.size - 1) % here.size, 3, here.comm, IST_STATUS_IGNORE));
    EXPECT_EQ(static_cast<int>(seed), token);
  }
  requests.emplace_back();
  IST_OK_OR_FAIL(ist_ibarrier(comm(), &requests.back()));
  IST_OK_OR_FAIL(ist_waitall(static_cast<int>(requests.size()), requests.data(), IST_STATUSES_IGNORE));
  for (std::size_t i = 0; i < expected.size(); ++i) results[i]->expect(expected[i], "call " + std::to_string(i));
  IST_OK_OR_FAIL(ist_comm_free(&twin));
}

TEST(Collectives, NobodyPassesANonblockingBarrierBeforeEverybodyHasCome) {
  for (int late = 0; late < size(); ++late) {
    ist_request request = IST_REQUEST_NULL;
    if (rank() == late) {
      // Everybody else waits for this message's answer in vain until the late one has come.
      for (int other = 0; other < size(); ++other)
        if (other != late) IST_OK_OR_FAIL(ist_send(ist_host(&late), 1, IST_INT, other, 9, comm()));
      for (int other = 0; other < size(); ++other) {
        int done = -1;
        if (other != late) IST_OK_OR_FAIL(ist_recv(ist_host(&done), 1, IST_INT, other, 9, comm(), IST_STATUS_IGNORE));
        EXPECT_EQ(other == late ? -1 : 0, done) << "rank " << other << " passed before rank " << late << " came";
      }
      IST_OK_OR_FAIL(ist_ibarrier(comm(), &request));
      IST_OK_OR_FAIL(ist_wait(&request, IST_STATUS_IGNORE));
      continue;
    }
    IST_OK_OR_FAIL(ist_ibarrier(comm(), &request));
    int from = -1;
    IST_OK_OR_FAIL(ist_recv(ist_host(&from), 1, IST_INT, late, 9, comm(), IST_STATUS_IGNORE));
    int done = 0;
    for (int i = 0; i < 20; ++i) IST_OK_OR_FAIL(ist_test(&request, &done, IST_STATUS_IGNORE));
    IST_OK_OR_FAIL(ist_send(ist_host(&done), 1, IST_INT, late, 9, comm()));
    IST_OK_OR_FAIL(ist_wait(&request, IST_STATUS_IGNORE));
  }
}

}  // namespace
