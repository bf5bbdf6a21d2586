#include "cli/bench_uneven_calls.hpp"

#include <algorithm>

namespace ist::cli {
namespace {

constexpr int kUnevenRoot = 0;

// Parts one behind the other.
struct Parts {
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> places;

  void add(std::size_t bytes) {
    places.push_back(counts.empty() ? 0 : places.back() + counts.back());
    counts.push_back(static_cast<std::int64_t>(bytes));
  }
};

Parts by_rank(std::size_t bytes, int ranks) {
  Parts parts;
  for (int r = 0; r < ranks; ++r) parts.add(uneven_part(bytes, r, ranks));
  return parts;
}

// What one rank has for each other one in an alltoallv; what it gets is cut alike, since part_between() is symmetric.
Parts for_each_rank(std::size_t bytes, int rank, int ranks) {
  Parts parts;
  for (int r = 0; r < ranks; ++r) parts.add(uneven_part(bytes, part_between(rank, r, ranks), ranks));
  return parts;
}

// The same call comes many times, and its lists must not be timed with it.
const Parts& parts_of(const CallArguments& with, bool all_to_all) {
  struct Made {
    std::size_t bytes = 0;
    int rank = -1;
    int ranks = 0;
    bool all_to_all = false;
    Parts parts;
  };
  static thread_local Made last;
  if (last.bytes != with.bytes || last.rank != with.rank || last.ranks != with.ranks || last.all_to_all != all_to_all)
    last = {with.bytes, with.rank, with.ranks, all_to_all,
            all_to_all ? for_each_rank(with.bytes, with.rank, with.ranks) : by_rank(with.bytes, with.ranks)};
  return last.parts;
}

std::int64_t own_part(const CallArguments& with, const Parts& parts) {
  return parts.counts[static_cast<std::size_t>(with.rank)];
}

void put_at(const std::vector<std::byte>& source, std::int64_t from, std::int64_t to, std::int64_t bytes,
            std::vector<std::byte>& result) {
  std::copy_n(source.begin() + from, bytes, result.begin() + to);
}

}  // namespace

std::size_t uneven_part(std::size_t bytes, int part, int parts) {
  const auto of = static_cast<std::size_t>(parts) + 1;
  const auto times = 2 * (static_cast<std::size_t>(part) + 1);
  // Of long messages on many ranks the product alone would be too long a number.
  return bytes / of * times + bytes % of * times / of;
}

int gatherv(const CallArguments& with) {
  const Parts& parts = parts_of(with, false);
  return ist_gatherv(with.send, own_part(with, parts), with.recv, parts.counts.data(), parts.places.data(), IST_BYTE,
                     kUnevenRoot, with.comm);
}
int scatterv(const CallArguments& with) {
  const Parts& parts = parts_of(with, false);
  return ist_scatterv(with.send, parts.counts.data(), parts.places.data(), with.recv, own_part(with, parts), IST_BYTE,
                      kUnevenRoot, with.comm);
}
int allgatherv(const CallArguments& with) {
  const Parts& parts = parts_of(with, false);
  return ist_allgatherv(with.send, own_part(with, parts), with.recv, parts.counts.data(), parts.places.data(), IST_BYTE,
                        with.comm);
}
int alltoallv(const CallArguments& with) {
  const Parts& parts = parts_of(with, true);
  return ist_alltoallv(with.send, parts.counts.data(), parts.places.data(), with.recv, parts.counts.data(),
                       parts.places.data(), IST_BYTE, with.comm);
}

int start_gatherv(const CallArguments& with, ist_request* requests) {
  const Parts& parts = parts_of(with, false);
  return ist_igatherv(with.send, own_part(with, parts), with.recv, parts.counts.data(), parts.places.data(), IST_BYTE,
                      kUnevenRoot, with.comm, requests);
}
int start_scatterv(const CallArguments& with, ist_request* requests) {
  const Parts& parts = parts_of(with, false);
  return ist_iscatterv(with.send, parts.counts.data(), parts.places.data(), with.recv, own_part(with, parts), IST_BYTE,
                       kUnevenRoot, with.comm, requests);
}
int start_allgatherv(const CallArguments& with, ist_request* requests) {
  const Parts& parts = parts_of(with, false);
  return ist_iallgatherv(with.send, own_part(with, parts), with.recv, parts.counts.data(), parts.places.data(), IST_BYTE,
                         with.comm, requests);
}
int start_alltoallv(const CallArguments& with, ist_request* requests) {
  const Parts& parts = parts_of(with, true);
  return ist_ialltoallv(with.send, parts.counts.data(), parts.places.data(), with.recv, parts.counts.data(),
                        parts.places.data(), IST_BYTE, with.comm, requests);
}

void expect_gatherv(const Inputs& inputs, int rank, std::size_t bytes, std::vector<std::byte>& result) {
  if (rank == kUnevenRoot) expect_allgatherv(inputs, rank, bytes, result);
}
void expect_scatterv(const Inputs& inputs, int rank, std::size_t bytes, std::vector<std::byte>& result) {
  const Parts parts = by_rank(bytes, static_cast<int>(inputs.size()));
  const auto at = static_cast<std::size_t>(rank);
  put_at(inputs[kUnevenRoot], parts.places[at], 0, parts.counts[at], result);
}
void expect_allgatherv(const Inputs& inputs, int /*rank*/, std::size_t bytes, std::vector<std::byte>& result) {
  const Parts parts = by_rank(bytes, static_cast<int>(inputs.size()));
  for (std::size_t r = 0; r < inputs.size(); ++r) put_at(inputs[r], 0, parts.places[r], parts.counts[r], result);
}
void expect_alltoallv(const Inputs& inputs, int rank, std::size_t bytes, std::vector<std::byte>& result) {
  const auto ranks = static_cast<int>(inputs.size());
  const Parts mine = for_each_rank(bytes, rank, ranks);
  for (int r = 0; r < ranks; ++r) {
    const Parts theirs = for_each_rank(bytes, r, ranks);
    const auto place = static_cast<std::size_t>(rank);
    const auto from = static_cast<std::size_t>(r);
    put_at(inputs[from], theirs.places[place], mine.places[from], mine.counts[from], result);
  }
}

}  // namespace ist::cli
