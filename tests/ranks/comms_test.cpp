// Communicators: messages never cross them, ranks are theirs, errors name them; grids. Run on 1 to 5 ranks.
#include <isthmus/collective.h>

#include <numeric>

#include "rank_test.hpp"

namespace {

using namespace rank_test;

struct Place {
  int rank = -1;
  int size = -1;
};

Place place_in(ist_comm comm) {
  Place place;
  EXPECT_EQ(IST_OK, ist_comm_rank(comm, &place.rank)) << ist_error_text();
  EXPECT_EQ(IST_OK, ist_comm_size(comm, &place.size)) << ist_error_text();
  return place;
}

// Every rank of the communicator sends its world rank to every other, and hears the ones that `members` lists.
void expect_members(ist_comm comm, const std::vector<int>& members) {
  const Place here = place_in(comm);
  ASSERT_EQ(static_cast<int>(members.size()), here.size);
  ASSERT_EQ(rank(), members[static_cast<std::size_t>(here.rank)]);
  std::vector<int> heard(members.size(), -1);
  std::vector<ist_request> requests(members.size() * 2);
  const int mine = rank();
  for (int other = 0; other < here.size; ++other) {
    IST_OK_OR_FAIL(ist_irecv(ist_host(&heard[at(other)]), 1, IST_INT, other, 3, comm, &requests[at(other * 2)]));
    IST_OK_OR_FAIL(ist_isend(ist_host(&mine), 1, IST_INT, other, 3, comm, &requests[at(other * 2 + 1)]));
  }
  std::vector<ist_status> statuses(requests.size());
  IST_OK_OR_FAIL(ist_waitall(static_cast<int>(requests.size()), requests.data(), statuses.data()));
  EXPECT_EQ(members, heard);
  for (int other = 0; other < here.size; ++other) {
    EXPECT_EQ(other, statuses[at(other * 2)].source);
    int world_rank = -1;
    IST_OK_OR_FAIL(ist_comm_world_rank(comm, other, &world_rank));
    EXPECT_EQ(members[static_cast<std::size_t>(other)], world_rank);
  }
  IST_OK_OR_FAIL(ist_barrier(comm));
}

std::vector<int> all_ranks() {
  std::vector<int> ranks(static_cast<std::size_t>(size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::string name_of(ist_comm comm) {
  char name[200];
  EXPECT_EQ(IST_OK, ist_comm_name(comm, name, sizeof name)) << ist_error_text();
  return name;
}

TEST(Comms, SelfIsThisRankAlone) {
  ist_comm self = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_world_comm_self(world(), &self));
  expect_members(self, {rank()});
  EXPECT_EQ("self", name_of(self));
  EXPECT_EQ("world", name_of(comm()));
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_comm_free(&self));
  ist_comm whole = comm();
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_comm_free(&whole));
}

TEST(Comms, ADuplicateHasTheSameRanksAndItsOwnMessages) {
  ist_comm twin = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_comm_dup(comm(), &twin));
  expect_members(twin, all_ranks());
  const int right = (rank() + 1) % size();
  const int left = (rank() + size() - 1) % size();
  // Sent first in the one, then in the other; received the other way round, with wildcards.
  const int values[2] = {rank() * 2, rank() * 2 + 1};
  IST_OK_OR_FAIL(ist_send(ist_host(&values[0]), 1, IST_INT, right, 5, comm()));
  IST_OK_OR_FAIL(ist_send(ist_host(&values[1]), 1, IST_INT, right, 5, twin));
  int got = -1;
  IST_OK_OR_FAIL(ist_recv(ist_host(&got), 1, IST_INT, IST_ANY_SOURCE, IST_ANY_TAG, twin, IST_STATUS_IGNORE));
  EXPECT_EQ(left * 2 + 1, got);
  int found = 1;
  IST_OK_OR_FAIL(ist_iprobe(IST_ANY_SOURCE, IST_ANY_TAG, twin, &found, IST_STATUS_IGNORE));
  EXPECT_EQ(0, found);
  IST_OK_OR_FAIL(ist_recv(ist_host(&got), 1, IST_INT, IST_ANY_SOURCE, IST_ANY_TAG, comm(), IST_STATUS_IGNORE));
  EXPECT_EQ(left * 2, got);
  EXPECT_EQ("duplicate of world", name_of(twin));
  const ist_comm released = twin;
  IST_OK_OR_FAIL(ist_comm_free(&twin));
  EXPECT_EQ(IST_COMM_NULL, twin);
  int number = 0;
  EXPECT_EQ(IST_ERR_HANDLE, ist_comm_rank(released, &number));
}

TEST(Comms, SplitSortsByKeyAndThenByRank) {
  ist_comm part = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_comm_split(comm(), rank() % 2, -rank(), &part));
  std::vector<int> members;
  for (int other = size() - 1; other >= 0; --other)
    if (other % 2 == rank() % 2) members.push_back(other);
  expect_members(part, members);
  EXPECT_EQ("colour " + std::to_string(rank() % 2) + " of world", name_of(part));
  // Splitting again, inside the part.
  ist_comm inner = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_comm_split(part, 7, 0, &inner));
  expect_members(inner, members);
  IST_OK_OR_FAIL(ist_comm_free(&inner));
  IST_OK_OR_FAIL(ist_comm_free(&part));
}

TEST(Comms, RanksOfNoColourGetNone) {
  ist_comm part = comm();
  IST_OK_OR_FAIL(ist_comm_split(comm(), rank() == 0 ? IST_UNDEFINED : 1, 0, &part));
  if (rank() == 0) {
    EXPECT_EQ(IST_COMM_NULL, part);
  } else {
    auto members = all_ranks();
    members.erase(members.begin());
    expect_members(part, members);
    IST_OK_OR_FAIL(ist_comm_free(&part));
  }
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_comm_split(comm(), -7, 0, &part));
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

TEST(Comms, OneHostIsOneCommunicator) {
  ist_comm host = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_comm_split_local(comm(), 0, &host));
  expect_members(host, all_ranks());
  int local = -1;
  IST_OK_OR_FAIL(ist_comm_local_size(host, &local));
  EXPECT_EQ(size(), local);
  IST_OK_OR_FAIL(ist_comm_local_rank(host, &local));
  EXPECT_EQ(rank(), local);
  IST_OK_OR_FAIL(ist_comm_free(&host));
}

TEST(Comms, AGroupIsMadeByItsMembersAloneInTheOrderOfTheList) {
  std::vector<int> list;
  for (int other = size() - 1; other >= 0; other -= 2) list.push_back(other);
  ist_comm group = IST_COMM_NULL;
  if (std::find(list.begin(), list.end(), rank()) != list.end()) {
    IST_OK_OR_FAIL(ist_comm_create_group(comm(), static_cast<int>(list.size()), list.data(), 9, &group));
    expect_members(group, list);
    IST_OK_OR_FAIL(ist_comm_free(&group));
  } else {
    EXPECT_EQ(IST_ERR_ARGUMENT, ist_comm_create_group(comm(), static_cast<int>(list.size()), list.data(), 9, &group));
  }
  const std::vector<int> twice{rank(), rank()};
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_comm_create_group(comm(), 2, twice.data(), 9, &group));
  const int outside = size();
  EXPECT_EQ(IST_ERR_RANK, ist_comm_create_group(comm(), 1, &outside, 9, &group));
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

TEST(Comms, TagsOfGroupsAreDifferentUpToTheLargestAndWhatIsBeyondIsRefused) {
  const int self = rank();
  ist_comm group = IST_COMM_NULL;
  for (const int tag : {-1, 1 << 30, IST_TAG_MAX}) {
    EXPECT_EQ(IST_ERR_ARGUMENT, ist_comm_create_group(comm(), 1, &self, tag, &group));
    EXPECT_NE(std::string::npos,
              std::string(ist_error_text()).find("tag is " + std::to_string(tag) + "; it must be 0 to 1073741823"))
        << ist_error_text();
  }
  const std::vector<int> all = all_ranks();
  for (const int tag : {0, (1 << 30) - 1}) {
    IST_OK_OR_FAIL(ist_comm_create_group(comm(), size(), all.data(), tag, &group));
    expect_members(group, all);
    IST_OK_OR_FAIL(ist_comm_free(&group));
  }
}

TEST(Comms, ErrorsNameTheCommunicator) {
  ist_comm part = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_comm_split(comm(), 4, 0, &part));
  int value = 0;
  EXPECT_EQ(IST_ERR_RANK, ist_send(ist_host(&value), 1, IST_INT, size(), 0, part));
  EXPECT_NE(std::string(ist_error_text()).find("\"colour 4 of world\""), std::string::npos) << ist_error_text();
  const std::vector<int> two(2);
  IST_OK_OR_FAIL(ist_send(ist_host(two.data()), 2, IST_INT, place_in(part).rank, 0, part));
  EXPECT_EQ(IST_ERR_TRUNCATE, ist_recv(ist_host(&value), 1, IST_INT, IST_ANY_SOURCE, 0, part, IST_STATUS_IGNORE));
  EXPECT_NE(std::string(ist_error_text()).find("\"colour 4 of world\""), std::string::npos) << ist_error_text();
  IST_OK_OR_FAIL(ist_comm_free(&part));
  // The world, too.
  IST_OK_OR_FAIL(ist_send(ist_host(two.data()), 2, IST_INT, rank(), 0, comm()));
  EXPECT_EQ(IST_ERR_TRUNCATE, ist_recv(ist_host(&value), 1, IST_INT, rank(), 0, comm(), IST_STATUS_IGNORE));
  EXPECT_NE(std::string(ist_error_text()).find("(communicator \"world\")"), std::string::npos) << ist_error_text();
}

// In a communicator whose order is another one: its own numbers, and those of the world beside them.
TEST(Comms, ErrorsNameRanksAsTheCommunicatorCountsThem) {
  ist_comm part = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_comm_split(comm(), 5, -rank(), &part));
  const Place here = place_in(part);
  const int source = (here.rank + here.size - 1) % here.size;
  const int of_world = size() - 1 - source;
  const std::string named = source == of_world ? "from rank " + std::to_string(source) + " (process "
                                               : "from rank " + std::to_string(source) + " (rank " +
                                                     std::to_string(of_world) + " of the world, process ";
  // In a slot, announced, and waited for as a request.
  for (const int count : {2, 1000000}) {
    const std::vector<int> many(at(count), 7);
    std::vector<int> few(1, -1);
    ist_request send = IST_REQUEST_NULL;
    ist_request receive = IST_REQUEST_NULL;
    for (const bool waits : {true, false}) {
      IST_OK_OR_FAIL(ist_isend(ist_host(many.data()), count, IST_INT, (here.rank + 1) % here.size, 3, part, &send));
      if (!waits) IST_OK_OR_FAIL(ist_irecv(ist_host(few.data()), 1, IST_INT, source, 3, part, &receive));
      EXPECT_EQ(IST_ERR_TRUNCATE, waits ? ist_recv(ist_host(few.data()), 1, IST_INT, source, 3, part, IST_STATUS_IGNORE)
                                        : ist_wait(&receive, IST_STATUS_IGNORE));
      const std::string text = ist_error_text();
      EXPECT_NE(text.find("a message of " + std::to_string(4 * count) + " bytes " + named), std::string::npos) << text;
      EXPECT_NE(text.find("(communicator \"colour 5 of world\")"), std::string::npos) << text;
      EXPECT_EQ(7, few[0]);
      IST_OK_OR_FAIL(ist_wait(&send, IST_STATUS_IGNORE));
    }
  }
  IST_OK_OR_FAIL(ist_comm_free(&part));
}

// An operation outlives the handle of its communicator, and still tells ranks of it.
TEST(Comms, OperationsGoOnWhenTheirCommunicatorIsFreed) {
  ist_comm part = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_comm_split(comm(), 0, -rank(), &part));
  const Place here = place_in(part);
  int got = -1;
  ist_request receive = IST_REQUEST_NULL;
  IST_OK_OR_FAIL(ist_irecv(ist_host(&got), 1, IST_INT, IST_ANY_SOURCE, 0, part, &receive));
  const int mine = here.rank;
  IST_OK_OR_FAIL(ist_send(ist_host(&mine), 1, IST_INT, (here.rank + 1) % here.size, 0, part));
  IST_OK_OR_FAIL(ist_comm_free(&part));
  ist_status status{};
  IST_OK_OR_FAIL(ist_wait(&receive, &status));
  EXPECT_EQ((here.rank + here.size - 1) % here.size, status.source);
  EXPECT_EQ(status.source, got);
}

TEST(Comms, ThousandsCanBeMadeAndFreedAndSomeHundredsHeld) {
  for (int i = 0; i < 2000; ++i) {
    ist_comm twin = IST_COMM_NULL;
    IST_OK_OR_FAIL(ist_comm_dup(comm(), &twin));
    IST_OK_OR_FAIL(ist_comm_free(&twin));
  }
  std::vector<ist_comm> held(600);
  for (ist_comm& one : held) IST_OK_OR_FAIL(ist_comm_dup(comm(), &one));
  for (std::size_t i = 0; i < held.size(); i += 99) expect_members(held[i], all_ranks());
  for (ist_comm& one : held) IST_OK_OR_FAIL(ist_comm_free(&one));
}

TEST(Grids, ExtentsAreBalancedAndGivenOnesKept) {
  const auto balanced = [](int ranks, std::vector<int> dims) {
    EXPECT_EQ(IST_OK, ist_dims_create(ranks, static_cast<int>(dims.size()), dims.data())) << ist_error_text();
    return dims;
  };
  EXPECT_EQ((std::vector<int>{3, 2}), balanced(6, {0, 0}));
  EXPECT_EQ((std::vector<int>{4, 3}), balanced(12, {0, 0}));
  EXPECT_EQ((std::vector<int>{4, 4, 2}), balanced(32, {0, 0, 0}));
  EXPECT_EQ((std::vector<int>{7, 1}), balanced(7, {0, 0}));
  EXPECT_EQ((std::vector<int>{2, 3, 2}), balanced(12, {0, 3, 0}));
  EXPECT_EQ((std::vector<int>{1}), balanced(1, {0}));
  int dims[2] = {5, 0};
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_dims_create(12, 2, dims));
  dims[0] = -1;
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_dims_create(12, 2, dims));
}

TEST(Grids, CoordinatesRanksAndShiftsAgreeAndPeriodsWrap) {
  std::vector<int> dims(2);
  IST_OK_OR_FAIL(ist_dims_create(size(), 2, dims.data()));
  const int periods[2] = {1, 0};
  ist_comm grid = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_cart_create(comm(), 2, dims.data(), periods, 0, &grid));
  std::vector<int> got_dims(2);
  std::vector<int> got_periods(2);
  std::vector<int> here(2);
  int ndims = 0;
  IST_OK_OR_FAIL(ist_cart_ndims(grid, &ndims));
  EXPECT_EQ(2, ndims);
  IST_OK_OR_FAIL(ist_cart_get(grid, 2, got_dims.data(), got_periods.data(), here.data()));
  EXPECT_EQ(dims, got_dims);
  EXPECT_EQ((std::vector<int>{1, 0}), got_periods);
  EXPECT_EQ(rank(), here[0] * dims[1] + here[1]);
  for (int other = 0; other < size(); ++other) {
    std::vector<int> coords(2);
    IST_OK_OR_FAIL(ist_cart_coords(grid, other, 2, coords.data()));
    int back = -1;
    IST_OK_OR_FAIL(ist_cart_rank(grid, coords.data(), &back));
    EXPECT_EQ(other, back);
    coords[0] += 3 * dims[0];
    IST_OK_OR_FAIL(ist_cart_rank(grid, coords.data(), &back));
    EXPECT_EQ(other, back);
    coords[1] = dims[1];
    EXPECT_EQ(IST_ERR_RANK, ist_cart_rank(grid, coords.data(), &back));
  }
  // A value travels along each dimension, and past the edge of the one that is not periodic to nobody.
  for (int d = 0; d < 2; ++d) {
    int source = -9;
    int dest = -9;
    IST_OK_OR_FAIL(ist_cart_shift(grid, d, 1, &source, &dest));
    EXPECT_EQ(d == 1 && here[1] == 0, source == IST_PROC_NULL);
    EXPECT_EQ(d == 1 && here[1] == dims[1] - 1, dest == IST_PROC_NULL);
    int value = -1;
    const int mine = rank();
    IST_OK_OR_FAIL(ist_sendrecv(ist_host(&mine), 1, IST_INT, dest, 1, ist_host(&value), 1, IST_INT, source, 1, grid,
                                IST_STATUS_IGNORE));
    EXPECT_EQ(source == IST_PROC_NULL ? -1 : source, value);
  }
  int source = 0;
  int dest = 0;
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_cart_shift(grid, 2, 1, &source, &dest));
  EXPECT_EQ(IST_ERR_HANDLE, ist_cart_shift(comm(), 0, 1, &source, &dest));
  EXPECT_NE(std::string(ist_error_text()).find("\"world\" has no grid"), std::string::npos) << ist_error_text();
  IST_OK_OR_FAIL(ist_comm_free(&grid));
}

// Of a grid of three dimensions all that can remain of it: a value goes round each, from the ranks whose other coordinates are the same.
TEST(Grids, WhatRemainsOfOneIsAGridOfThoseInOneLineOrPlane) {
  std::vector<int> dims(3);
  IST_OK_OR_FAIL(ist_dims_create(size(), 3, dims.data()));
  const int periods[3] = {1, 0, 1};
  ist_comm grid = IST_COMM_NULL, part = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_cart_create(comm(), 3, dims.data(), periods, 0, &grid));
  std::vector<int> here(3);
  IST_OK_OR_FAIL(ist_cart_coords(grid, rank(), 3, here.data()));
  for (int chosen = 1; chosen < 8; ++chosen) {
    const int remain[3] = {chosen & 4, chosen & 2, chosen & 1};
    IST_OK_OR_FAIL(ist_cart_sub(grid, 3, remain, &part));
    std::vector<int> expected_dims, expected_periods, expected_here;
    for (std::size_t d = 0; d < 3; ++d) {
      if (remain[d] == 0) continue;
      expected_dims.push_back(dims[d]);
      expected_periods.push_back(periods[d]);
      expected_here.push_back(here[d]);
    }
    const auto ndims = static_cast<int>(expected_dims.size());
    std::vector<int> found_dims(expected_dims.size()), found_periods(expected_dims.size()), found_here(expected_dims.size());
    IST_OK_OR_FAIL(ist_cart_get(part, ndims, found_dims.data(), found_periods.data(), found_here.data()));
    EXPECT_EQ(expected_dims, found_dims);
    EXPECT_EQ(expected_periods, found_periods);
    EXPECT_EQ(expected_here, found_here);
    int ranks = 0;
    IST_OK_OR_FAIL(ist_comm_size(part, &ranks));
    for (int other = 0; other < ranks; ++other) {
      int in_world = -1;
      IST_OK_OR_FAIL(ist_comm_world_rank(part, other, &in_world));
      std::vector<int> there(3);
      IST_OK_OR_FAIL(ist_cart_coords(grid, in_world, 3, there.data()));
      for (std::size_t d = 0; d < 3; ++d) EXPECT_TRUE(remain[d] != 0 || there[d] == here[d]) << chosen;
    }
    int sum = 0;
    const int one = 1;
    IST_OK_OR_FAIL(ist_allreduce(ist_host(&one), ist_host(&sum), 1, IST_INT, IST_SUM, part));
    EXPECT_EQ(ranks, sum);
    IST_OK_OR_FAIL(ist_comm_free(&part));
  }
  const int none[3] = {0, 0, 0};
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_cart_sub(grid, 3, none, &part));
  EXPECT_NE(std::string(ist_error_text()).find("one must remain"), std::string::npos) << ist_error_text();
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_cart_sub(grid, 2, periods, &part));
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_cart_sub(grid, 3, nullptr, &part));
  EXPECT_EQ(IST_ERR_HANDLE, ist_cart_sub(comm(), 3, periods, &part));
  EXPECT_EQ(IST_COMM_NULL, part);
  IST_OK_OR_FAIL(ist_comm_free(&grid));
}

TEST(Grids, RanksBeyondTheGridGetNoneAndTooLargeGridsAreErrors) {
  const int one[1] = {1};
  const int big[1] = {size() + 1};
  const int periods[1] = {1};
  ist_comm grid = IST_COMM_NULL;
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_cart_create(comm(), 1, big, periods, 0, &grid));
  IST_OK_OR_FAIL(ist_cart_create(comm(), 1, one, periods, 0, &grid));
  EXPECT_EQ(rank() == 0, grid != IST_COMM_NULL);
  if (grid != IST_COMM_NULL) {
    int source = -1;
    int dest = -1;
    IST_OK_OR_FAIL(ist_cart_shift(grid, 0, 5, &source, &dest));
    EXPECT_EQ(0, source);
    EXPECT_EQ(0, dest);
    IST_OK_OR_FAIL(ist_comm_free(&grid));
  }
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

}  // namespace
