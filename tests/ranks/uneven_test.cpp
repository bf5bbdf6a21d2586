// Collective calls that do not fit together, and buffers that lie in each other: errors in words of the calls. Run on 2 ranks.
#include <functional>

#include <isthmus/collective.h>

#include "rank_test.hpp"

namespace {

using namespace rank_test;

std::string text() { return ist_error_text(); }

int other() { return 1 - rank(); }

// What this rank is told where it expects `expected` bytes, and the other one gave another number.
// Or `part` of them, where its call moves no more at a time. Calls that ask all ranks first know nothing of numbers yet.
void expect_uneven(int code, const std::string& call, std::int64_t expected, std::int64_t part = 0) {
  EXPECT_EQ(IST_ERR_TRUNCATE, code) << ist_code_name(code);
  const std::string said = text();
  EXPECT_EQ(0U, said.find(call + ": rank " + std::to_string(other()) + " (process ")) << said;
  const auto says = [&said](const std::string& words) { return said.find(words) != std::string::npos; };
  const auto expects = [&](std::int64_t bytes) {
    return says(" bytes where this rank expects " + std::to_string(bytes) + ";");
  };
  EXPECT_TRUE(expects(expected) ||
              (part > 0 && (expects(part) || says(" did not answer what this rank first asks all ranks"))))
      << said;
  EXPECT_NE(std::string::npos, said.find("all ranks must give the same counts and types, or one of them makes another call"))
      << said;
  EXPECT_EQ(std::string::npos, said.find("tag")) << said;
}

int finished(int code, ist_request* request) { return code == IST_OK ? ist_wait(request, IST_STATUS_IGNORE) : code; }

TEST(Uneven, ABroadcastOfOtherCountsIsToldInItsOwnWords) {
  std::vector<unsigned char> bytes(400000, 7);
  // Step by step, and by a schedule; too many and too few.
  for (const int mine : {64, 80000, 320000})
    for (const int roots : {mine / 2, mine * 5 / 4}) {
      SCOPED_TRACE(std::to_string(roots) + " where " + std::to_string(mine) + " are expected");
      const int64_t count = rank() == 0 ? roots : mine;
      for (const bool waits : {true, false}) {
        ist_request request = IST_REQUEST_NULL;
        const int code = waits
                             ? ist_bcast(ist_host(bytes.data()), count, IST_BYTE, 0, comm())
                             : finished(ist_ibcast(ist_host(bytes.data()), count, IST_BYTE, 0, comm(), &request), &request);
        // The root hears of it, too, if it waited long enough to look.
        if (rank() == 0) {
          EXPECT_TRUE(code == IST_OK || code == IST_ERR_TRUNCATE) << text();
        } else {
          expect_uneven(code, waits ? "ist_bcast" : "ist_wait", mine);
        }
        IST_OK_OR_FAIL(ist_barrier(comm()));
      }
    }
}

TEST(Uneven, BothSidesOfAnAllreduceHearTheSame) {
  std::vector<double> in(200, 1);
  std::vector<double> out(200, -1);
  const int64_t mine = rank() == 0 ? 8 : 4;
  expect_uneven(ist_allreduce(ist_host(in.data()), ist_host(out.data()), mine, IST_DOUBLE, IST_SUM, comm()), "ist_allreduce",
                8 * mine);
  ist_request request = IST_REQUEST_NULL;
  const int code = ist_iallreduce(ist_host(in.data()), ist_host(out.data()), mine, IST_DOUBLE, IST_SUM, comm(), &request);
  expect_uneven(finished(code, &request), "ist_wait", 8 * mine);
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

// What one rank says of twice as much is as long as all that the other one has.
TEST(Uneven, TwiceAsMuchOnOneRankIsToldToBoth) {
  std::vector<double> in(2000, 1);
  std::vector<double> out(2000, -1);
  for (const int few : {600, 1000})
    for (const int first : {0, 1}) {
      const int64_t mine = rank() == first ? few : 2 * few;
      expect_uneven(ist_allreduce(ist_host(in.data()), ist_host(out.data()), mine, IST_DOUBLE, IST_SUM, comm()),
                    "ist_allreduce", 8 * mine);
      IST_OK_OR_FAIL(ist_barrier(comm()));
    }
}

// One rank writes where all read, or sends a message, and the other sends the half of a vector, or asks first: whichever it is, neither waits for
// ever.
TEST(Uneven, CountsSoDifferentThatRanksGoDifferentWaysAreToldToBoth) {
  std::vector<double> in(100000, 1);
  std::vector<double> out(100000, -1);
  for (const int few : {8, 1000})
    for (const int first : {0, 1}) {
      const int64_t mine = rank() == first ? few : 100000;
      const std::int64_t part = rank() == first ? 0 : 8 * mine / 2;
      expect_uneven(ist_allreduce(ist_host(in.data()), ist_host(out.data()), mine, IST_DOUBLE, IST_SUM, comm()),
                    "ist_allreduce", 8 * mine, part);
      ist_request request = IST_REQUEST_NULL;
      const int code =
          ist_iallreduce(ist_host(in.data()), ist_host(out.data()), mine, IST_DOUBLE, IST_SUM, comm(), &request);
      expect_uneven(finished(code, &request), "ist_wait", 8 * mine, part);
      IST_OK_OR_FAIL(ist_barrier(comm()));
    }
}

// What one rank wrote there and nobody read keeps no later call from its place.
TEST(Uneven, CallsThatFitWorkAfterSeveralThatDidNot) {
  std::vector<double> in(100000, 1);
  std::vector<double> out(100000, -1);
  const auto allreduce = [&](int64_t count) {
    return ist_allreduce(ist_host(in.data()), ist_host(out.data()), count, IST_DOUBLE, IST_SUM, comm());
  };
  for (const int wrong : {1, 9}) {
    for (int i = 0; i < wrong; ++i) EXPECT_EQ(IST_ERR_TRUNCATE, allreduce(rank() == 0 ? 1000 : 100000)) << text();
    for (int i = 0; i < 3; ++i) IST_OK_OR_FAIL(allreduce(100000));
    for (int i = 0; i < 40; ++i) {  // past every place that one has
      IST_OK_OR_FAIL(allreduce(1000));
      EXPECT_EQ(2.0, out[999]);
    }
  }
}

TEST(Uneven, AllgatherThatMeetsAllgathervSaysSo) {
  std::vector<unsigned char> in(1000, 1);
  std::vector<unsigned char> out(2000);
  const std::int64_t counts[2] = {1000, 1000};
  const std::int64_t displs[2] = {0, 1000};
  const int code = rank() == 0
                       ? ist_allgather(ist_host(in.data()), 1000, ist_host(out.data()), 1000, IST_BYTE, comm())
                       : ist_allgatherv(ist_host(in.data()), 1000, ist_host(out.data()), counts, displs, IST_BYTE, comm());
  EXPECT_EQ(IST_ERR_ARGUMENT, code) << text();
  EXPECT_NE(std::string::npos, text().find("makes another collective call")) << text();
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

// What a rank is told that makes a call where the other one makes another: by the bytes that came, or by that itself.
void expect_another(int code, const std::string& call, std::int64_t expected) {
  if (code != IST_ERR_ARGUMENT) return expect_uneven(code, call, expected);
  EXPECT_NE(std::string::npos, text().find("makes another collective call")) << text();
}

// Whoever has counts expects parts of sizes of their own, by messages. Where those without counts go by messages, too, the two fit together.
TEST(Uneven, GatherThatMeetsGathervAndScatterThatMeetsScattervSaySo) {
  std::vector<unsigned char> one(1000, 1);
  std::vector<unsigned char> all(2000);
  const std::int64_t counts[2] = {1000, 1000};
  const std::int64_t displs[2] = {0, 1000};
  const bool by_messages = any_device(IST_KIND_CUDA);
  const auto told = [&](int code) {
    EXPECT_EQ(by_messages ? IST_OK : IST_ERR_ARGUMENT, code) << text();
    EXPECT_TRUE(by_messages || text().find("makes another collective call") != std::string::npos) << text();
  };
  if (rank() == 0)
    told(ist_gatherv(ist_host(one.data()), 1000, ist_host(all.data()), counts, displs, IST_BYTE, 0, comm()));
  else
    IST_OK_OR_FAIL(ist_gather(ist_host(one.data()), 1000, ist_host(nullptr), 0, IST_BYTE, 0, comm()));
  IST_OK_OR_FAIL(ist_barrier(comm()));
  if (rank() == 1)
    told(ist_scatterv(ist_host(all.data()), counts, displs, ist_host(one.data()), 1000, IST_BYTE, 0, comm()));
  else
    IST_OK_OR_FAIL(ist_scatter(ist_host(all.data()), 1000, ist_host(one.data()), 1000, IST_BYTE, 0, comm()));
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

// It may lead that rank another way than the other one.
TEST(Uneven, AWrongCountOnOneRankIsToldToTheOther) {
  std::vector<unsigned char> one(100000, 1);
  std::vector<unsigned char> all(200000);
  for (const std::int64_t right : {64, 100000})
    for (const int wrong : {0, 1}) {
      SCOPED_TRACE(std::to_string(right) + " bytes, wrong on rank " + std::to_string(wrong));
      const std::int64_t count = rank() == wrong ? -1 : right;
      // `waits`: this rank needs something of the other one.
      const auto check = [&](int code, bool waits) {
        if (rank() != wrong && !waits && code == IST_OK) return;
        EXPECT_EQ(IST_ERR_ARGUMENT, code) << text();
        EXPECT_NE(std::string::npos, text().find(rank() == wrong ? "is -1" : "gave up this call")) << text();
      };
      check(ist_gather(ist_host(one.data()), count, ist_host(all.data()), count, IST_BYTE, 0, comm()), rank() == 0);
      IST_OK_OR_FAIL(ist_barrier(comm()));
      check(ist_scatter(ist_host(all.data()), count, ist_host(one.data()), count, IST_BYTE, 0, comm()), rank() == 1);
      IST_OK_OR_FAIL(ist_barrier(comm()));
    }
}

// In memory that both see, by a message, and one of each.
TEST(Uneven, PartsOfAnotherSizeThanTheRootsAreToldToWhoTakesThem) {
  std::vector<unsigned char> one(200000, 1);
  std::vector<unsigned char> all(400000);
  for (const int mine : {64, 2000, 8000, 100000})
    for (const int theirs : {mine / 2, mine + 1, 2 * mine}) {
      SCOPED_TRACE(std::to_string(theirs) + " where " + std::to_string(mine) + " are expected");
      const std::int64_t roots = rank() == 0 ? mine : theirs;
      const int gathered = ist_gather(ist_host(one.data()), roots, ist_host(all.data()), roots, IST_BYTE, 0, comm());
      if (rank() == 0)
        expect_another(gathered, "ist_gather", mine);
      else
        EXPECT_TRUE(gathered == IST_OK || gathered == IST_ERR_TRUNCATE) << text();
      IST_OK_OR_FAIL(ist_barrier(comm()));
      const std::int64_t parts = rank() == 0 ? theirs : mine;
      const int scattered = ist_scatter(ist_host(all.data()), parts, ist_host(one.data()), parts, IST_BYTE, 0, comm());
      if (rank() == 1)
        expect_another(scattered, "ist_scatter", mine);
      else
        EXPECT_TRUE(scattered == IST_OK || scattered == IST_ERR_TRUNCATE) << text();
      IST_OK_OR_FAIL(ist_barrier(comm()));
    }
}

TEST(Uneven, ABarrierThatMeetsABroadcastSaysSo) {
  double data[8] = {};
  if (rank() == 0)
    IST_OK_OR_FAIL(ist_bcast(ist_host(data), 8, IST_DOUBLE, 0, comm()));
  else
    expect_another(ist_barrier(comm()), "ist_barrier", 0);
  ist_request request = IST_REQUEST_NULL;
  if (rank() == 0)
    IST_OK_OR_FAIL(ist_bcast(ist_host(data), 8, IST_DOUBLE, 0, comm()));
  else
    expect_another(finished(ist_ibarrier(comm(), &request), &request), "ist_wait", 0);
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

using Call = std::function<int(ist_buffer send, ist_buffer recv)>;

// Calls that send `kEach` bytes of every rank, or that for each of them, and get as much.
constexpr int64_t kEach = 1000;
const std::vector<std::pair<const char*, Call>>& calls() {
  static const std::vector<std::pair<const char*, Call>> all{
      {"allreduce", [](auto send, auto recv) { return ist_allreduce(send, recv, kEach, IST_BYTE, IST_BXOR, comm()); }},
      {"scan", [](auto send, auto recv) { return ist_scan(send, recv, kEach, IST_BYTE, IST_BXOR, comm()); }},
      {"reduce_scatter_block",
       [](auto send, auto recv) { return ist_reduce_scatter_block(send, recv, kEach, IST_BYTE, IST_BXOR, comm()); }},
      {"allgather", [](auto send, auto recv) { return ist_allgather(send, kEach, recv, kEach, IST_BYTE, comm()); }},
      {"alltoall", [](auto send, auto recv) { return ist_alltoall(send, recv, kEach, IST_BYTE, comm()); }},
      {"iallreduce",
       [](auto send, auto recv) {
         ist_request request = IST_REQUEST_NULL;
         return finished(ist_iallreduce(send, recv, kEach, IST_BYTE, IST_BXOR, comm(), &request), &request);
       }},
  };
  return all;
}

TEST(Overlap, OfWhatIsSentAndWhatComesIsAnErrorAndNothingIsWritten) {
  for (const KindName& kind : usable_kinds())
    for (const auto& [name, call] : calls())
      for (const std::uint64_t apart : {std::uint64_t{0}, std::uint64_t{8}, std::uint64_t{kEach - 1}}) {
        SCOPED_TRACE(std::string{kind.name} + " " + name + " " + std::to_string(apart));
        GuardedBuffer memory(kind.kind, 4 * kEach);
        const auto bytes = random_bytes(4 * kEach, static_cast<std::uint64_t>(rank()) + apart);
        memory.fill(bytes);
        EXPECT_EQ(IST_ERR_ARGUMENT, call(memory.get(), ist_buffer_at(memory.get(), apart)));
        EXPECT_NE(std::string::npos, text().find("send (")) << text();
        EXPECT_NE(std::string::npos, text().find("and recv (")) << text();
        EXPECT_NE(std::string::npos, text().find(" overlap in ")) << text();
        memory.expect(bytes, "written");
      }
}

TEST(Overlap, OnOneRankIsThatRanksErrorAndTheOthersHearOfIt) {
  std::vector<unsigned char> memory(3 * kEach);
  for (const int root : {0, 1}) {
    const bool mine = rank() == root;
    const int gathered =
        ist_gather(ist_host(memory.data()), kEach, ist_host(memory.data() + kEach / 2), kEach, IST_BYTE, root, comm());
    EXPECT_EQ(mine ? IST_ERR_ARGUMENT : IST_OK, gathered) << text();
    if (mine) {
      EXPECT_NE(std::string::npos, text().find("overlap in 500 bytes")) << text();
    }
    const int scattered =
        ist_scatter(ist_host(memory.data()), kEach, ist_host(memory.data() + kEach / 2), kEach, IST_BYTE, root, comm());
    EXPECT_EQ(IST_ERR_ARGUMENT, scattered);
    EXPECT_NE(std::string::npos, text().find(mine ? "overlap in 500 bytes" : "gave up this call")) << text();
    const int reduced =
        ist_reduce(ist_host(memory.data()), ist_host(memory.data() + kEach / 2), kEach, IST_BYTE, IST_BOR, root, comm());
    EXPECT_EQ(mine ? IST_ERR_ARGUMENT : IST_OK, reduced) << text();
  }
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

TEST(Overlap, PartsMayLieBetweenEachOtherAndTouch) {
  // Of eight stretches the even ones are sent, the odd ones received.
  constexpr int64_t kStretch = 100;
  const std::int64_t counts[2] = {kStretch, kStretch};
  const std::int64_t sent[2] = {0, 2 * kStretch};
  const std::int64_t received[2] = {3 * kStretch, kStretch};
  std::vector<unsigned char> memory = random_bytes(4 * kStretch, static_cast<std::uint64_t>(rank()));
  const auto before = memory;
  const auto theirs = random_bytes(4 * kStretch, static_cast<std::uint64_t>(other()));
  IST_OK_OR_FAIL(
      ist_alltoallv(ist_host(memory.data()), counts, sent, ist_host(memory.data()), counts, received, IST_BYTE, comm()));
  auto expected = before;
  for (int from = 0; from < 2; ++from) {
    const auto& source = from == rank() ? before : theirs;
    std::copy_n(source.begin() + sent[rank()], kStretch, expected.begin() + received[from]);
  }
  EXPECT_EQ(-1, first_difference(expected, memory));
  // One byte further they do overlap.
  const std::int64_t wrong[2] = {3 * kStretch, kStretch + 1};
  EXPECT_EQ(IST_ERR_ARGUMENT,
            ist_alltoallv(ist_host(memory.data()), counts, sent, ist_host(memory.data()), counts, wrong, IST_BYTE, comm()));
  EXPECT_NE(std::string::npos, text().find("overlap in 1 bytes")) << text();
  EXPECT_EQ(-1, first_difference(expected, memory));
  IST_OK_OR_FAIL(
      ist_allreduce(ist_host(memory.data()), ist_host(memory.data() + kStretch), kStretch, IST_BYTE, IST_BOR, comm()));
  IST_OK_OR_FAIL(ist_allreduce(ist_host(memory.data()), ist_host(memory.data()), 0, IST_BYTE, IST_BOR, comm()));
}

}  // namespace
