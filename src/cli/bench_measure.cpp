#include "cli/bench_measure.hpp"

#include <algorithm>
#include <vector>

namespace ist::cli {
namespace {

// One repetition: a round trip, or a window and its answer.
void repeat_once(Session& session, std::size_t bytes, int messages) {
  const std::size_t stride = session.options().fresh ? bytes : 0;
  if (session.options().latency()) {
    if (session.rank() == 0) {
      session.send(0, bytes);
      session.receive(0, bytes);
    } else {
      session.receive(0, bytes);
      session.send(0, bytes);
    }
  } else if (session.options().bidirectional()) {
    session.exchange_window(messages, 0, bytes);
    if (session.rank() == 0)
      session.hear<std::int32_t>();
    else
      session.tell(std::int32_t{0});
  } else if (session.rank() == 0) {
    if (stride != 0) session.write_lines(static_cast<std::size_t>(messages) * bytes);
    session.send_window(messages, stride, bytes);
    session.hear<std::int32_t>();
  } else {
    session.receive_window(messages, stride, bytes);
    session.tell(std::int32_t{0});
  }
}

}  // namespace

Row measure(Session& session, std::uint64_t bytes) {
  const BenchOptions& options = session.options();
  const auto size = static_cast<std::size_t>(bytes);
  const int messages = window_of(bytes);
  const std::uint64_t wanted = wanted_iterations(options, bytes);
  // The method's warm-up is a hundredth for latency, a tenth for bandwidth.
  const std::uint64_t warm_up = wanted / (options.latency() ? 100 : 10);
  const double repetition_us = warm_up_us(session, warm_up, [&] { repeat_once(session, size, messages); });
  Plan plan = make_plan(options, wanted, repetition_us, !options.latency());
  if (session.rank() == 0)
    session.tell(plan);
  else
    plan = session.hear<Plan>();

  const double share = static_cast<double>(plan.per_batch) * (options.latency() ? 2.0 : messages);
  std::vector<double> times;
  times.reserve(plan.batches);
  for (std::uint64_t batch = 0; batch < plan.batches; ++batch) {
    const auto start = Clock::now();
    for (std::uint64_t n = 0; n < plan.per_batch; ++n) repeat_once(session, size, messages);
    times.push_back(microseconds_since(start) / share);
  }
  if (session.rank() == 1) {
    session.tell(session.carrier());
    return {};
  }
  Row row = make_row(bytes, std::move(times), plan);
  if (!options.latency()) row.window = messages;
  if (options.bidirectional()) row.gbps *= 2;
  if (options.rate()) row.added = {1e6 / row.median_us};
  row.path = session.path_name(session.hear<int>());
  return row;
}

}  // namespace ist::cli
