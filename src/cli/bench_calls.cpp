#include "cli/bench_calls.hpp"

#include <algorithm>
#include <cstring>

#include "cli/bench_stream_calls.hpp"
#include "cli/bench_uneven_calls.hpp"

namespace ist::cli {
namespace {

using Data = std::vector<std::byte>;

constexpr int kRoot = 0;
constexpr int kTag = 3;

std::int64_t floats(const CallArguments& with) { return static_cast<std::int64_t>(with.bytes / sizeof(float)); }
std::int64_t bytes_of(const CallArguments& with) { return static_cast<std::int64_t>(with.bytes); }

// The elements for each rank; the first ones take what cannot be divided.
std::vector<std::int64_t> shares(std::size_t bytes, int ranks) {
  const auto elements = static_cast<std::int64_t>(bytes / sizeof(float));
  std::vector<std::int64_t> counts;
  for (int r = 0; r < ranks; ++r) counts.push_back(elements / ranks + (r < elements % ranks ? 1 : 0));
  return counts;
}

int barrier(const CallArguments& with) { return ist_barrier(with.comm); }
int bcast(const CallArguments& with) { return ist_bcast(with.recv, bytes_of(with), IST_BYTE, kRoot, with.comm); }
int reduce(const CallArguments& with) {
  return ist_reduce(with.send, with.recv, floats(with), IST_FLOAT, IST_SUM, kRoot, with.comm);
}
int allreduce(const CallArguments& with) {
  return ist_allreduce(with.send, with.recv, floats(with), IST_FLOAT, IST_SUM, with.comm);
}
int reduce_scatter(const CallArguments& with) {
  const auto counts = shares(with.bytes, with.ranks);
  return ist_reduce_scatter(with.send, with.recv, counts.data(), IST_FLOAT, IST_SUM, with.comm);
}
int allgather(const CallArguments& with) {
  return ist_allgather(with.send, bytes_of(with), with.recv, bytes_of(with), IST_BYTE, with.comm);
}
int alltoall(const CallArguments& with) { return ist_alltoall(with.send, with.recv, bytes_of(with), IST_BYTE, with.comm); }
int gather(const CallArguments& with) {
  return ist_gather(with.send, bytes_of(with), with.recv, bytes_of(with), IST_BYTE, kRoot, with.comm);
}
int scatter(const CallArguments& with) {
  return ist_scatter(with.send, bytes_of(with), with.recv, bytes_of(with), IST_BYTE, kRoot, with.comm);
}
int scan(const CallArguments& with) { return ist_scan(with.send, with.recv, floats(with), IST_FLOAT, IST_SUM, with.comm); }
int exscan(const CallArguments& with) {
  return ist_exscan(with.send, with.recv, floats(with), IST_FLOAT, IST_SUM, with.comm);
}

int start_exchange(const CallArguments& with, ist_request* requests) {
  const int left = (with.rank + with.ranks - 1) % with.ranks;
  const int code = ist_irecv(with.recv, bytes_of(with), IST_BYTE, left, kTag, with.comm, &requests[0]);
  if (code != IST_OK) return code;
  return ist_isend(with.send, bytes_of(with), IST_BYTE, (with.rank + 1) % with.ranks, kTag, with.comm, &requests[1]);
}
int exchange(const CallArguments& with) {
  ist_request requests[2] = {IST_REQUEST_NULL, IST_REQUEST_NULL};
  const int code = start_exchange(with, requests);
  return code != IST_OK ? code : ist_waitall(2, requests, IST_STATUSES_IGNORE);
}

int start_bcast(const CallArguments& with, ist_request* requests) {
  return ist_ibcast(with.recv, bytes_of(with), IST_BYTE, kRoot, with.comm, requests);
}
int start_reduce(const CallArguments& with, ist_request* requests) {
  return ist_ireduce(with.send, with.recv, floats(with), IST_FLOAT, IST_SUM, kRoot, with.comm, requests);
}
int start_allreduce(const CallArguments& with, ist_request* requests) {
  return ist_iallreduce(with.send, with.recv, floats(with), IST_FLOAT, IST_SUM, with.comm, requests);
}
int start_reduce_scatter(const CallArguments& with, ist_request* requests) {
  const auto counts = shares(with.bytes, with.ranks);
  return ist_ireduce_scatter(with.send, with.recv, counts.data(), IST_FLOAT, IST_SUM, with.comm, requests);
}
int start_allgather(const CallArguments& with, ist_request* requests) {
  return ist_iallgather(with.send, bytes_of(with), with.recv, bytes_of(with), IST_BYTE, with.comm, requests);
}
int start_alltoall(const CallArguments& with, ist_request* requests) {
  return ist_ialltoall(with.send, with.recv, bytes_of(with), IST_BYTE, with.comm, requests);
}
int start_gather(const CallArguments& with, ist_request* requests) {
  return ist_igather(with.send, bytes_of(with), with.recv, bytes_of(with), IST_BYTE, kRoot, with.comm, requests);
}
int start_scatter(const CallArguments& with, ist_request* requests) {
  return ist_iscatter(with.send, bytes_of(with), with.recv, bytes_of(with), IST_BYTE, kRoot, with.comm, requests);
}
int start_scan(const CallArguments& with, ist_request* requests) {
  return ist_iscan(with.send, with.recv, floats(with), IST_FLOAT, IST_SUM, with.comm, requests);
}
int start_exscan(const CallArguments& with, ist_request* requests) {
  return ist_iexscan(with.send, with.recv, floats(with), IST_FLOAT, IST_SUM, with.comm, requests);
}

// Of the inputs of ranks 0 to `last`. They are small whole numbers, so no order of adding makes a difference.
Data sum(const Inputs& inputs, int last) {
  Data total = inputs[0];
  for (int r = 1; r <= last; ++r)
    for (std::size_t at = 0; at < total.size(); at += sizeof(float)) {
      float one = 0;
      float other = 0;
      std::memcpy(&one, &total[at], sizeof one);
      std::memcpy(&other, &inputs[static_cast<std::size_t>(r)][at], sizeof other);
      one += other;
      std::memcpy(&total[at], &one, sizeof one);
    }
  return total;
}

int last_of(const Inputs& inputs) { return static_cast<int>(inputs.size()) - 1; }

void put(const Data& bytes, Data& result) { std::copy(bytes.begin(), bytes.end(), result.begin()); }

// Part `from` of `source` becomes part `to` of the result.
void put_part(const Data& source, std::size_t from, std::size_t to, std::size_t bytes, Data& result) {
  std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(from * bytes), bytes,
              result.begin() + static_cast<std::ptrdiff_t>(to * bytes));
}

void expect_bcast(const Inputs& inputs, int, std::size_t, Data& result) { put(inputs[kRoot], result); }
void expect_reduce(const Inputs& inputs, int rank, std::size_t, Data& result) {
  if (rank == kRoot) put(sum(inputs, last_of(inputs)), result);
}
void expect_allreduce(const Inputs& inputs, int, std::size_t, Data& result) { put(sum(inputs, last_of(inputs)), result); }
void expect_reduce_scatter(const Inputs& inputs, int rank, std::size_t bytes, Data& result) {
  const auto counts = shares(bytes, static_cast<int>(inputs.size()));
  std::int64_t before = 0;
  for (int r = 0; r < rank; ++r) before += counts[static_cast<std::size_t>(r)];
  const auto width = static_cast<std::int64_t>(sizeof(float));
  const Data total = sum(inputs, last_of(inputs));
  std::copy_n(total.begin() + before * width, counts[static_cast<std::size_t>(rank)] * width, result.begin());
}
void expect_allgather(const Inputs& inputs, int, std::size_t bytes, Data& result) {
  for (std::size_t r = 0; r < inputs.size(); ++r) put_part(inputs[r], 0, r, bytes, result);
}
void expect_alltoall(const Inputs& inputs, int rank, std::size_t bytes, Data& result) {
  for (std::size_t r = 0; r < inputs.size(); ++r) put_part(inputs[r], static_cast<std::size_t>(rank), r, bytes, result);
}
void expect_gather(const Inputs& inputs, int rank, std::size_t bytes, Data& result) {
  if (rank == kRoot) expect_allgather(inputs, rank, bytes, result);
}
void expect_scatter(const Inputs& inputs, int rank, std::size_t bytes, Data& result) {
  put_part(inputs[kRoot], static_cast<std::size_t>(rank), 0, bytes, result);
}
void expect_scan(const Inputs& inputs, int rank, std::size_t, Data& result) { put(sum(inputs, rank), result); }
// Rank 0's result stays as it is.
void expect_exscan(const Inputs& inputs, int rank, std::size_t, Data& result) {
  if (rank > 0) put(sum(inputs, rank - 1), result);
}
void expect_exchange(const Inputs& inputs, int rank, std::size_t, Data& result) {
  put(inputs[(static_cast<std::size_t>(rank) + inputs.size() - 1) % inputs.size()], result);
}

std::size_t others(int ranks) { return static_cast<std::size_t>(ranks) - 1; }
std::size_t moves_nothing(std::size_t, int) { return 0; }
std::size_t moves_once(std::size_t bytes, int ranks) { return ranks > 1 ? bytes : 0; }
std::size_t moves_for_each(std::size_t bytes, int ranks) { return bytes * others(ranks); }
// Of a result that is cut into a part for each rank, those of the others.
std::size_t moves_parts(std::size_t bytes, int ranks) {
  return bytes - std::min(bytes, (bytes + others(ranks)) / static_cast<std::size_t>(ranks));
}
// Parts go to who adds them, and their sums come back.
std::size_t moves_twice(std::size_t bytes, int ranks) { return 2 * moves_parts(bytes, ranks); }
// All parts but the shortest one.
std::size_t moves_uneven(std::size_t bytes, int ranks) {
  std::size_t all = 0;
  for (int r = 1; r < ranks; ++r) all += uneven_part(bytes, r, ranks);
  return all;
}

constexpr LeastMoved kMovesNothing{moves_nothing, "no bytes"};
constexpr LeastMoved kMovesOnce{moves_once, "the size of the row"};
constexpr LeastMoved kMovesForEach{moves_for_each, "N - 1 times the size of the row"};
constexpr LeastMoved kMovesParts{moves_parts, "(N - 1) / N of the size of the row"};
constexpr LeastMoved kMovesTwice{moves_twice, "2 (N - 1) / N of the size of the row"};
constexpr LeastMoved kMovesUneven{moves_uneven, "all parts but the shortest"};

}  // namespace

const std::vector<CollectiveCall>& collective_calls() {
  static const std::vector<CollectiveCall> calls{
      {"barrier", false, false, false, false, kMovesNothing, barrier, nullptr, nullptr},
      {"bcast", false, false, false, true, kMovesOnce, bcast, start_bcast, expect_bcast},
      {"reduce", true, false, false, false, kMovesOnce, reduce, start_reduce, expect_reduce},
      {"allreduce", true, false, false, false, kMovesTwice, allreduce, start_allreduce, expect_allreduce},
      {"reduce_scatter", true, false, false, false, kMovesParts, reduce_scatter, start_reduce_scatter,
       expect_reduce_scatter},
      {"allgather", false, false, true, false, kMovesForEach, allgather, start_allgather, expect_allgather},
      {"alltoall", false, true, true, false, kMovesForEach, alltoall, start_alltoall, expect_alltoall},
      {"gather", false, false, true, false, kMovesForEach, gather, start_gather, expect_gather},
      {"scatter", false, true, false, false, kMovesForEach, scatter, start_scatter, expect_scatter},
      {"scan", true, false, false, false, kMovesOnce, scan, start_scan, expect_scan},
      {"exscan", true, false, false, false, kMovesOnce, exscan, start_exscan, expect_exscan},
      {"gatherv", false, false, true, false, kMovesUneven, gatherv, start_gatherv, expect_gatherv, nullptr, true},
      {"scatterv", false, true, false, false, kMovesUneven, scatterv, start_scatterv, expect_scatterv, nullptr, true},
      {"allgatherv", false, false, true, false, kMovesUneven, allgatherv, start_allgatherv, expect_allgatherv, nullptr,
       true},
      {"alltoallv", false, true, true, false, kMovesUneven, alltoallv, start_alltoallv, expect_alltoallv, nullptr, true},
      {"exchange", false, false, false, false, kMovesOnce, exchange, start_exchange, expect_exchange},
      {"barrier_on", false, false, false, false, kMovesNothing, barrier_on, nullptr, nullptr, put_barrier_on},
      {"bcast_on", false, false, false, true, kMovesOnce, bcast_on, nullptr, expect_bcast, put_bcast_on},
      {"reduce_on", true, false, false, false, kMovesOnce, reduce_on, nullptr, expect_reduce, put_reduce_on},
      {"allreduce_on", true, false, false, false, kMovesTwice, allreduce_on, nullptr, expect_allreduce, put_allreduce_on},
  };
  return calls;
}

const CollectiveCall* find_call(const std::string& name) {
  const auto& calls = collective_calls();
  const auto found = std::find_if(calls.begin(), calls.end(), [&](const CollectiveCall& one) { return name == one.name; });
  return found == calls.end() ? nullptr : &*found;
}

std::string call_names(bool that_start) {
  std::string names;
  for (const CollectiveCall& one : collective_calls())
    if (!that_start || one.start) names += (names.empty() ? "" : ", ") + std::string{one.name};
  return names;
}

}  // namespace ist::cli
