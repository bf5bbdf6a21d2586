// Parts at a root, prefixes and combined parts through memory that all ranks see. Run on 1 to 6 ranks.
#include <chrono>
#include <cstdlib>
#include <thread>

#include "collective_support.hpp"

namespace {

using namespace rank_test;
using namespace collective_test;

// to = from (xor) to
void combine(Bytes& to, Bytes::const_iterator from) {
  std::transform(to.begin(), to.end(), from, to.begin(),
                 [](unsigned char a, unsigned char b) { return static_cast<unsigned char>(a ^ b); });
}

// One rank has its bytes in host memory and says so, so that it takes the short way; another one leaves that to be found out.
TEST(SharedParts, RootsPartsAndPrefixesOnTheShortWayMeetTheLongOne) {
  const auto ranks = static_cast<std::size_t>(size());
  const auto input = [](int from, std::size_t bytes) { return random_bytes(bytes, 100U * static_cast<unsigned>(from) + 7); };
  for (const std::int64_t count : {1, 5, 100, 1000})
    for (int turn = 0; turn < 3; ++turn) {
      const auto at = [turn](Bytes& bytes) {
        return (rank() + turn) % 2 == 0 ? ist_host(bytes.data()) : ist_auto(bytes.data());
      };
      const auto each = static_cast<std::size_t>(count) * 8;
      const int root = turn % size();
      Bytes mine = input(rank(), each);
      Bytes given = input(rank(), each * ranks);
      Bytes gathered(each * ranks, 0xee);
      Bytes scattered(each, 0xee);
      Bytes before(each, 0);
      Bytes part(each, 0xee);
      IST_OK_OR_FAIL(ist_gather(at(mine), count, at(gathered), count, IST_UINT64, root, comm()));
      IST_OK_OR_FAIL(ist_scatter(at(given), count, at(scattered), count, IST_UINT64, root, comm()));
      IST_OK_OR_FAIL(ist_exscan(at(mine), at(before), count, IST_UINT64, IST_BXOR, comm()));
      IST_OK_OR_FAIL(ist_reduce_scatter_block(at(given), at(part), count, IST_UINT64, IST_BXOR, comm()));
      Bytes all;
      Bytes those_before(each);
      Bytes combined(each);
      const auto own = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(rank()) * each);
      for (int from = 0; from < size(); ++from) {
        const Bytes theirs = input(from, each);
        const Bytes sent = input(from, each * ranks);
        all.insert(all.end(), theirs.begin(), theirs.end());
        if (from < rank()) combine(those_before, theirs.begin());
        combine(combined, sent.begin() + own);
        EXPECT_TRUE(from != root || std::equal(scattered.begin(), scattered.end(), sent.begin() + own)) << "from the root";
      }
      EXPECT_EQ(-1, first_difference(rank() == root ? all : Bytes(each * ranks, 0xee), gathered));
      EXPECT_EQ(-1, first_difference(those_before, before));
      EXPECT_EQ(-1, first_difference(combined, part));
    }
}

// The others of a gather need nobody, and may be gone before its root comes to it.
TEST(SharedParts, AGathersRootFindsWhatRanksSaidThatHaveLeft) {
  ist_world own = IST_WORLD_NULL;
  ist_comm whole = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_world_create(&own));
  IST_OK_OR_FAIL(ist_world_comm(own, &whole));
  const std::uint64_t mine = static_cast<std::uint64_t>(rank()) + 1;
  std::vector<std::uint64_t> all(static_cast<std::size_t>(size()));
  if (rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  IST_OK_OR_FAIL(ist_gather(ist_host(&mine), 1, ist_host(all.data()), 1, IST_UINT64, 0, whole));
  for (std::size_t from = 0; rank() == 0 && from < all.size(); ++from) EXPECT_EQ(from + 1, all[from]);
  IST_OK_OR_FAIL(ist_world_destroy(&own));
}

// The root says its own part, too, where that lies between others.
TEST(SharedParts, AnUnevenPartOfAScatterIsToldToItsRankAndTheOthersGetTheirs) {
  if (size() < 3) GTEST_SKIP() << "not covered here: a root between two others, which takes three ranks";
  if (std::getenv("ISTHMUS_CHECK") != nullptr)
    GTEST_SKIP() << "not covered here: counts that differ, where ranks compare first";
  const int last = size() - 1;
  std::vector<std::uint64_t> all(static_cast<std::size_t>(size()) * 9, 7);
  std::vector<std::uint64_t> mine(9, 0);
  const int code =
      ist_scatter(ist_host(all.data()), 8, ist_host(mine.data()), rank() == last ? 9 : 8, IST_UINT64, 1, comm());
  EXPECT_EQ(rank() == last ? IST_ERR_TRUNCATE : IST_OK, code) << ist_error_text();
  if (rank() != last) {
    EXPECT_EQ(7U, mine[7]);
  }
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

}  // namespace
