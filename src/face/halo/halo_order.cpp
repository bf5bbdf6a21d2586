#include "face/halo/halo_order.hpp"

#include <isthmus/collective.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "face/message/handles.hpp"

namespace ist::halo {
namespace {

constexpr double kWorthwhile = 0.95;
constexpr int kTrips = 5;  // the first one finds out what the others know
constexpr int kTag = 1;

double cost_of(const std::vector<double>& times, std::size_t ranks, const std::vector<Edge>& edges,
               const std::vector<std::size_t>& rank_at) {
  double sum = 0;
  for (const auto& [one, other] : edges) sum += times[rank_at[one] * ranks + rank_at[other]];
  return sum;
}

// Half a round trip with the other rank, the shortest of a few.
Status time_trip(ist_comm comm, bool first, int other, const ist_buffer& buffer, std::int64_t bytes, double& best) {
  using Clock = std::chrono::steady_clock;
  for (int trip = 0; trip < kTrips; ++trip) {
    const auto begin = Clock::now();
    for (const bool sends : {first, !first}) {
      const int code = sends ? ist_send(buffer, bytes, IST_BYTE, other, kTag, comm)
                             : ist_recv(buffer, bytes, IST_BYTE, other, kTag, comm, IST_STATUS_IGNORE);
      if (code != IST_OK) return told(code);
    }
    const double took = std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / 2;
    if (trip == 1 || (trip > 1 && took < best)) best = took;
  }
  return {};
}

// Pair after pair, so that none is slower for another. The same numbers at all ranks.
Result<std::vector<double>> measure(ist_comm comm, int rank, int ranks, const ist_buffer& buffer, std::int64_t bytes) {
  const auto place = [&](int one, int other) {
    return static_cast<std::size_t>(one) * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(other);
  };
  std::vector<double> mine(place(ranks, 0), 0), all(mine.size(), 0);
  for (int one = 0; one < ranks; ++one)
    for (int other = one + 1; other < ranks; ++other) {
      if (const int code = ist_barrier(comm); code != IST_OK) return told(code);
      double took = 0;
      if (rank == one) IST_TRY(time_trip(comm, true, other, buffer, bytes, took));
      if (rank == other) IST_TRY(time_trip(comm, false, one, buffer, bytes, took));
      mine[place(one, other)] = mine[place(other, one)] = took;
    }
  const auto count = static_cast<std::int64_t>(mine.size());
  const int code = ist_allreduce(ist_host(mine.data()), ist_host(all.data()), count, IST_DOUBLE, IST_MAX, comm);
  if (code != IST_OK) return told(code);
  return all;
}

}  // namespace

std::vector<Edge> edges_of(const std::vector<int>& dims, const std::vector<int>& periods) {
  std::vector<Edge> edges;
  std::size_t places = 1;
  for (const int extent : dims) places *= static_cast<std::size_t>(extent);
  std::size_t stride = places;
  for (std::size_t g = 0; g < dims.size(); ++g) {
    const auto extent = static_cast<std::size_t>(dims[g]);
    stride /= extent;
    for (std::size_t place = 0; place < places; ++place) {
      const std::size_t coord = place / stride % extent;
      if (coord + 1 < extent)
        edges.emplace_back(place, place + stride);
      else if (periods[g] != 0 && extent > 2)
        edges.emplace_back(place, place - coord * stride);
    }
  }
  return edges;
}

// The best exchange of two ranks, again and again until none gains; the same at all ranks, since their numbers are.
std::vector<std::size_t> best_order(const std::vector<double>& times, std::size_t ranks, const std::vector<Edge>& edges) {
  std::vector<std::size_t> plain(ranks);
  std::iota(plain.begin(), plain.end(), std::size_t{0});
  auto order = plain;
  const double before = cost_of(times, ranks, edges, order);
  for (double now = before;;) {
    double least = now * (1 - 1e-9);
    std::pair<std::size_t, std::size_t> swapped{0, 0};
    for (std::size_t one = 0; one < ranks; ++one)
      for (std::size_t other = one + 1; other < ranks; ++other) {
        std::swap(order[one], order[other]);
        if (const double cost = cost_of(times, ranks, edges, order); cost < least) least = cost, swapped = {one, other};
        std::swap(order[one], order[other]);
      }
    if (swapped.second == 0) return now <= kWorthwhile * before ? order : plain;
    std::swap(order[swapped.first], order[swapped.second]);
    now = least;
  }
}

Status order(ist_comm comm, const GridShape& shape, const ist_buffer& buffer, std::int64_t bytes, ist_comm* ordered) {
  const auto found = look_up(comm);
  if (!found.ok()) return found.status();
  const int rank = found->comm->rank(), ranks = found->comm->size();
  std::vector<int> dims;
  Status own = check_dims(shape.ndims, shape.dims, shape.periods);
  if (own.ok()) dims.assign(shape.dims, shape.dims + shape.ndims);
  if (own.ok()) own = complete(ranks, dims);
  if (own.ok() && ordered == nullptr) own = {IST_ERR_ARGUMENT, "ordered is null; pass the address of a variable"};
  if (own.ok() && bytes < 1)
    own = {IST_ERR_ARGUMENT, "bytes is " + std::to_string(bytes) + "; it must be 1 or more, for messages to be timed"};
  if (own.ok()) own = found->world->kinds().resolve(buffer, Bytes{static_cast<std::uint64_t>(bytes)}).status();
  const std::vector<int> periods(shape.periods, shape.periods + (own.ok() ? shape.ndims : 0));
  IST_TRY(agree_on_grid(comm, own, dims, periods, {0, 1, 2, 3}, bytes));
  const auto times = measure(comm, rank, ranks, buffer, bytes);
  if (!times.ok()) return times.status();
  const auto order = best_order(*times, static_cast<std::size_t>(ranks), edges_of(dims, periods));
  const auto place = std::find(order.begin(), order.end(), static_cast<std::size_t>(rank)) - order.begin();
  const int code = ist_comm_split(comm, 0, static_cast<int>(place), ordered);
  return code == IST_OK ? Status{} : told(code);
}

}  // namespace ist::halo
