// Every collective call between every two kinds of memory, on the world and on communicators of some of its ranks. Run on 1 to 6
// ranks.
#include <array>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>

#include "collective_support.hpp"

namespace {

using namespace rank_test;
using namespace collective_test;

using Counts = std::vector<std::int64_t>;

// One round, as one rank sees it: the numbers that everybody gives, and how those of the calls with a v are laid out.
struct Round {
  Member here;
  int root;
  std::size_t count;
  std::uint64_t seed;
  // Parts of `count` numbers and one less in turn, the last rank's first; and of alltoallv what this rank gets of each.
  Counts counts, places, own_counts, own_places;
  std::vector<Bytes> given;    // by each rank
  std::vector<Bytes> sums{1};  // of the ranks before each, and last that of all

  Round(const Member& member, int the_root, std::size_t numbers, std::uint64_t tells_apart)
      : here(member), root(the_root), count(numbers), seed(tells_apart), places(at(member.size)) {
    for (int r = 0; r < here.size; ++r) counts.push_back(number() - r % 2);
    std::int64_t end = 0;
    for (int r = here.size - 1; r >= 0; --r) {
      places[at(r)] = end;
      end += counts[at(r)];
    }
    for (int r = 0; r < here.size; ++r) {
      own_counts.push_back(own());
      own_places.push_back(own() * r);
      given.push_back(input_of(r, whole(), seed));
      sums.push_back(sums.back());
      sums.back().resize(given.back().size());
      add_to(sums.back(), given.back());
    }
  }
  std::int64_t number() const { return static_cast<std::int64_t>(count); }
  std::int64_t own() const { return counts[at(here.rank)]; }
  std::size_t whole() const { return count * at(here.size); }
  std::int64_t place(int r) const { return places[at(r)]; }

  Bytes of(int rank, std::int64_t first, std::int64_t numbers) const {
    return part(given[at(rank)], static_cast<std::size_t>(first), static_cast<std::size_t>(numbers));
  }
  // Of the ranks before `last`.
  Bytes sum(int last, std::int64_t first, std::int64_t numbers) const {
    return part(sums[at(last)], static_cast<std::size_t>(first), static_cast<std::size_t>(numbers));
  }
  Bytes gathered() const {
    std::vector<Bytes> parts;
    for (int r = 0; r < here.size; ++r) parts.push_back(of(r, 0, number()));
    return joined(parts);
  }
  Bytes gathered_v() const {
    std::vector<Bytes> parts;
    for (int r = here.size - 1; r >= 0; --r) parts.push_back(of(r, 0, counts[at(r)]));
    return joined(parts);
  }
  // What is for this rank among everybody's numbers.
  Bytes exchanged(std::int64_t first, std::int64_t numbers) const {
    std::vector<Bytes> parts;
    for (int r = 0; r < here.size; ++r) parts.push_back(of(r, first, numbers));
    return joined(parts);
  }
};

// Who gets something of whose.
enum class Flow { to_root, from_root, others_from_root, everybody, upwards, from_below };

bool hears(Flow flow, const Round& round, int rank, int from) {
  switch (flow) {
    case Flow::to_root:
      return rank == round.root;
    case Flow::from_root:
      return from == round.root;
    case Flow::others_from_root:
      return from == round.root && rank != from;
    case Flow::upwards:
      return from <= rank;
    case Flow::from_below:
      return from < rank;
    default:
      return true;
  }
}

// A call: how it is made, and what this rank then has, if it gets anything.
struct Call {
  const char* name;
  Flow flow;
  int (*make)(const Round&, Calls&, ist_buffer send, ist_buffer recv);
  Bytes (*expected)(const Round&);
};

#define CALL(name, ...)                                                  \
  [](const Round& the, Calls& calls, ist_buffer send, ist_buffer recv) { \
    return calls(ist_##name, ist_i##name, __VA_ARGS__, the.here.comm);   \
  }
#define EXPECTED(...) [](const Round& the) { return __VA_ARGS__; }

const std::vector<Call>& reductions() {
  static const std::vector<Call> all{
      {"reduce", Flow::to_root, CALL(reduce, send, recv, the.number(), IST_INT64, IST_SUM, the.root),
       EXPECTED(the.sum(the.here.size, 0, the.number()))},
      {"allreduce", Flow::everybody, CALL(allreduce, send, recv, the.number(), IST_INT64, IST_SUM),
       EXPECTED(the.sum(the.here.size, 0, the.number()))},
      {"reduce_scatter", Flow::everybody, CALL(reduce_scatter, send, recv, the.counts.data(), IST_INT64, IST_SUM),
       EXPECTED(the.sum(the.here.size,
                        std::accumulate(the.counts.begin(), the.counts.begin() + the.here.rank, std::int64_t{0}),
                        the.own()))},
      {"reduce_scatter_block", Flow::everybody, CALL(reduce_scatter_block, send, recv, the.number(), IST_INT64, IST_SUM),
       EXPECTED(the.sum(the.here.size, the.here.rank * the.number(), the.number()))},
      {"scan", Flow::upwards, CALL(scan, send, recv, the.number(), IST_INT64, IST_SUM),
       EXPECTED(the.sum(the.here.rank + 1, 0, the.number()))},
      {"exscan", Flow::from_below, CALL(exscan, send, recv, the.number(), IST_INT64, IST_SUM),
       EXPECTED(the.here.rank == 0 ? Bytes{} : the.sum(the.here.rank, 0, the.number()))},
  };
  return all;
}

const std::vector<Call>& moves() {
  static const std::vector<Call> all{
      // One buffer: the root's is the one of what is sent.
      {"bcast", Flow::others_from_root,
       CALL(bcast, the.here.rank == the.root ? send : recv, the.number(), IST_INT64, the.root),
       EXPECTED(the.here.rank == the.root ? Bytes{} : the.of(the.root, 0, the.number()))},
      {"gather", Flow::to_root, CALL(gather, send, the.number(), recv, the.number(), IST_INT64, the.root),
       EXPECTED(the.gathered())},
      {"gatherv", Flow::to_root,
       CALL(gatherv, send, the.own(), recv, the.counts.data(), the.places.data(), IST_INT64, the.root),
       EXPECTED(the.gathered_v())},
      {"scatter", Flow::from_root, CALL(scatter, send, the.number(), recv, the.number(), IST_INT64, the.root),
       EXPECTED(the.of(the.root, the.here.rank * the.number(), the.number()))},
      {"scatterv", Flow::from_root,
       CALL(scatterv, send, the.counts.data(), the.places.data(), recv, the.own(), IST_INT64, the.root),
       EXPECTED(the.of(the.root, the.place(the.here.rank), the.own()))},
      {"allgather", Flow::everybody, CALL(allgather, send, the.number(), recv, the.number(), IST_INT64),
       EXPECTED(the.gathered())},
      {"allgatherv", Flow::everybody,
       CALL(allgatherv, send, the.own(), recv, the.counts.data(), the.places.data(), IST_INT64), EXPECTED(the.gathered_v())},
      {"alltoall", Flow::everybody, CALL(alltoall, send, recv, the.number(), IST_INT64),
       EXPECTED(the.exchanged(the.here.rank * the.number(), the.number()))},
      {"alltoallv", Flow::everybody,
       CALL(alltoallv, send, the.counts.data(), the.places.data(), recv, the.own_counts.data(), the.own_places.data(),
            IST_INT64),
       EXPECTED(the.exchanged(the.place(the.here.rank), the.own()))},
  };
  return all;
}

// Kinds of what was sent and of where some of it came to: on one rank, and on two.
struct Met {
  std::set<std::array<std::uint32_t, 2>> own, other;
};
using Everything = std::map<std::string, Met>;

// All calls once, in these two kinds of this rank; adds what met what.
void run(const Round& round, Form form, ist_kind send_kind, ist_kind recv_kind, Everything& met) {
  const Member& here = round.here;
  Calls calls{form};
  std::vector<Call> all = reductions();
  all.insert(all.end(), moves().begin(), moves().end());
  const Numbers send{send_kind, round.given[at(here.rank)]};
  std::vector<std::unique_ptr<Numbers>> results;
  for (const Call& call : all) {
    results.push_back(std::make_unique<Numbers>(recv_kind, round.whole()));
    IST_OK_OR_FAIL(call.make(round, calls, send.get(), results.back()->get()));
  }
  IST_OK_OR_FAIL(calls.finish());
  const std::array mine{send.get().kind, results[0]->get().kind};
  std::vector<std::array<std::uint32_t, 2>> kinds(at(here.size));
  IST_OK_OR_FAIL(ist_allgather(ist_host(&mine), 2, ist_host(kinds.data()), 2, IST_UINT32, here.comm));
  for (std::size_t c = 0; c < all.size(); ++c) {
    const bool gets = all[c].flow != Flow::to_root || here.rank == round.root;
    results[c]->expect(gets ? all[c].expected(round) : Bytes{},
                       std::string{all[c].name} + " of " + std::to_string(round.count) + " numbers, round " +
                           std::to_string(round.seed) + ", on rank " + std::to_string(here.rank) + " of " +
                           std::to_string(here.size));
    for (int rank = 0; rank < here.size; ++rank)
      for (int from = 0; from < here.size; ++from)
        if (hears(all[c].flow, round, rank, from))
          (rank == from ? met[all[c].name].own : met[all[c].name].other).insert({kinds[at(from)][0], kinds[at(rank)][1]});
  }
  send.expect(round.given[at(here.rank)], "the input of round " + std::to_string(round.seed));
}

class KindPairs : public testing::TestWithParam<Form> {};
INSTANTIATE_TEST_SUITE_P(Each, KindPairs, testing::Values(Form::blocking, Form::nonblocking), name_of);

// How many numbers of 8 bytes: both sides of 216 bytes (the shortest slot), 2, 4 and 8 KiB (workers, few_of_two of each part, crowded slots), 16 KiB
// (the eager limit), 64 KiB, 128 KiB (the longest slot; device_arithmetic_above) and 512 KiB (a chunk). Some of them where little time is given.
std::vector<std::size_t> sizes() {
  std::vector<std::size_t> all{3, 28, 513, 2049, 16391};
  if (std::getenv("ISTHMUS_TEST_LONG") != nullptr)
    all.insert(all.end(), {1, 27, 256, 257, 512, 1024, 1025, 2048, 8192, 8193, 16384, 65536, 65537});
  return all;
}

TEST_P(KindPairs, EveryCallIsMadeFromEveryKindIntoEveryKindOnOneRankAndBetweenTwo) {
  on_communicators(GetParam(), [form = GetParam()](const Member& here) {
    const auto kinds = usable_kinds();
    int root = 0;  // another for each size
    for (const std::size_t count : sizes()) {
      Everything met;
      std::uint64_t seed = 0;
      for (std::size_t a = 0; a < kinds.size(); ++a)
        for (std::size_t b = 0; b < kinds.size(); ++b) {
          // Every rank is one kind further than the one before it, so that the kinds of the sending ranks are mixed, too.
          const std::size_t behind = at((here.rank - root + here.size) % here.size);
          run(Round{here, root, count, ++seed}, form, kinds[(a + behind) % kinds.size()].kind,
              kinds[(b + behind) % kinds.size()].kind, met);
          if (HasFatalFailure()) return;
        }
      root = (root + 1) % here.size;
      const std::size_t pairs = kinds.size() * kinds.size();
      for (const auto& [name, both] : met) {
        const bool to_itself = name != "bcast" && name != "exscan";
        EXPECT_EQ(to_itself ? pairs : 0, both.own.size()) << name << " of " << count << " numbers, on one rank";
        EXPECT_EQ(here.size > 1 ? pairs : 0, both.other.size()) << name << " of " << count << " numbers, between two ranks";
      }
    }
  });
}

}  // namespace
