#include "cli/bench_ordered.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

namespace ist::cli {
namespace {

constexpr std::size_t kAnswer = 4;
// Of longer messages a graph is no faster, and where ranks share a device it has a node for each MiB.
constexpr std::uint64_t kMostCaptured = 4 << 20;

// Behind every message, in a part of the buffer that none of them reaches.
std::size_t answer_offset(const Session& session) { return session.capacity() - kAnswer; }

void put_round_trip(Session& session, std::size_t bytes) {
  if (session.rank() == 0) {
    session.put_send(0, bytes);
    session.put_receive(session.recv_offset(), bytes);
  } else {
    session.put_receive(session.recv_offset(), bytes);
    session.put_send(0, bytes);
  }
}

// A full lane holds up the sends behind it, and never those who put them there: the other rank's receives are in its own lane, in the
// same order, and what goes both ways does so at once.
void put_window(Session& session, std::size_t bytes, int messages) {
  for (int n = 0; n < messages; ++n) {
    if (session.options().bidirectional())
      session.put_exchange(0, session.recv_offset(), bytes);
    else if (session.rank() == 0)
      session.put_send(0, bytes);
    else
      session.put_receive(0, bytes);
  }
  if (session.rank() == 0)
    session.put_receive(answer_offset(session), kAnswer);
  else
    session.put_send(answer_offset(session), kAnswer);
}

// Microseconds from there until the lane is empty, on this rank; both begin together.
double timed_us(Session& session, const std::function<void()>& put) {
  session.meet();
  const auto start = Clock::now();
  put();
  session.lane().wait();
  return microseconds_since(start);
}

}  // namespace

Row measure_ordered(Session& session, std::uint64_t bytes) {
  const BenchOptions& options = session.options();
  const auto size = static_cast<std::size_t>(bytes);
  const bool trips = options.one_at_a_time();
  const int messages = trips ? 1 : window_of(bytes);
  const std::function<void()> once = [&] {
    if (trips)
      put_round_trip(session, size);
    else
      put_window(session, size, messages);
  };
  const std::uint64_t wanted = wanted_iterations(options, bytes);
  const double repetition_us = warm_up_us(session, wanted / (trips ? 100 : 10), [&] { timed_us(session, once); });
  const Plan plan = session.from_first(make_plan(options, wanted, repetition_us, !trips));
  const auto put = [&] {
    for (std::uint64_t n = 0; n < plan.per_batch; ++n) once();
  };
  std::function<void()> graph;
  if (options.stream() && bytes <= kMostCaptured) graph = session.lane().capture(put);
  if (graph) timed_us(session, graph);  // the first launch brings it to the device

  const double share = static_cast<double>(plan.per_batch) * (trips ? 2.0 : messages);
  std::array<std::vector<double>, 2> times;
  // In turn, so that whatever else changes meanwhile changes for both.
  for (std::uint64_t batch = 0; batch < plan.batches; ++batch) {
    times[0].push_back(timed_us(session, put) / share);
    if (graph) times[1].push_back(timed_us(session, graph) / share);
  }
  session.meet();
  Row row = make_row(bytes, std::move(times[0]), plan);
  if (!trips) row.window = messages;
  if (options.bidirectional()) row.gbps *= 2;
  if (options.stream()) row.added = {median_of(std::move(times[1]))};
  row.path = options.stream() ? "stream" : "queue";
  return row;
}

}  // namespace ist::cli
