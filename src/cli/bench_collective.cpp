#include "cli/bench_collective.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <random>
#include <string>

#include "cli/bench_check.hpp"
#include "cli/bench_stream_calls.hpp"
#include "cli/failure.hpp"
#include "face/message/handles.hpp"

namespace ist::cli {
namespace {

constexpr std::size_t kGuard = 64;

// Whole numbers that a float holds exactly, also when those of a few hundred ranks are added.
void make_floats(std::vector<std::byte>& bytes) {
  for (std::size_t at = 0; at + sizeof(float) <= bytes.size(); at += sizeof(float)) {
    std::uint32_t word = 0;
    std::memcpy(&word, &bytes[at], sizeof word);
    const auto value = static_cast<float>(word & 0xffffU);
    std::memcpy(&bytes[at], &value, sizeof value);
  }
}

Inputs make_inputs(const CollectiveCall& call, std::size_t bytes, int ranks, std::uint64_t seed) {
  Inputs inputs(static_cast<std::size_t>(ranks));
  for (auto& input : inputs) {
    input.resize(call.input_bytes(bytes, ranks));
    fill_random(input, seed);
    seed ^= 0x5851F42D4C957F2DU * (seed | 1U);
    if (call.reduces) make_floats(input);
  }
  return inputs;
}

struct Buffers {
  std::vector<std::byte> before;
  std::vector<std::byte> after;
};

// What the call writes is known by writing it over two fillings that differ everywhere: it is where they then agree.
Buffers make_result(const CollectiveCall& call, const Inputs& inputs, int rank, std::size_t bytes, std::uint64_t seed) {
  Buffers result;
  result.before.resize(call.result_bytes(bytes, static_cast<int>(inputs.size())) + kGuard);
  fill_random(result.before, ~seed);
  result.after = result.before;
  std::vector<std::byte> other = result.before;
  for (std::byte& one : other) one = ~one;
  call.expect(inputs, rank, bytes, result.after);
  call.expect(inputs, rank, bytes, other);
  for (std::size_t at = 0; at < other.size(); ++at)
    if (result.after[at] == other[at]) result.before[at] = ~other[at];
  if (call.in_recv && rank == 0) std::copy(inputs[0].begin(), inputs[0].end(), result.before.begin());
  return result;
}

Difference difference_here(Session& session, const CollectiveCall& call, std::size_t bytes) {
  const auto seed =
      session.from_first((std::uint64_t{std::random_device{}()} << 32U) | std::uint64_t{std::random_device{}()});
  const Inputs inputs = make_inputs(call, bytes, session.size(), seed);
  const auto& input = inputs[static_cast<std::size_t>(session.rank())];
  const Buffers result = make_result(call, inputs, session.rank(), bytes, seed);
  session.write(input);
  session.write(result.before, session.recv_offset());
  make_call(session.options(), session.arguments(bytes));
  std::vector<std::byte> found(result.after.size());
  session.read(found, session.recv_offset());
  const Difference difference = compare(found, result.after);
  if (difference.wrong != 0) return difference;
  found.resize(input.size());
  session.read(found);
  return compare(found, input);
}

double timed_call_us(Session& session, const CollectiveCall& call, const CallArguments& with) {
  const auto start = Clock::now();
  const int code = call.call(with);
  const double took = microseconds_since(start);
  must(code, call.name);
  if (with.bytes != 0) session.meet();
  return took;
}

// What carried the last call that this rank made, as rows name it.
std::string algorithm_of(ist_comm comm) {
  const auto found = look_up(comm);
  if (!found.ok()) throw Failure(found.status());
  const Algorithm last = found->comm->last_algorithm();
  return last == Algorithm::none ? "schedule" : std::string{name_of(last)};
}

// Of a call that has one way alone, nothing of those before is told.
void forget_algorithm(ist_comm comm) {
  if (const auto found = look_up(comm); found.ok()) found->comm->note(Algorithm::none);
}

}  // namespace

void make_call(const BenchOptions& options, const CallArguments& with) {
  const CollectiveCall& call = *options.timed_call();
  if (!options.overlap()) return must(call.call(with), call.name);
  std::array<ist_request, 2> requests{IST_REQUEST_NULL, IST_REQUEST_NULL};
  must(call.start(with, requests.data()), call.name);
  must(ist_waitall(static_cast<int>(requests.size()), requests.data(), IST_STATUSES_IGNORE), "ist_waitall");
}

void check_call(Session& session, const std::vector<std::uint64_t>& sizes,
                const std::function<void(std::size_t)>& progress) {
  const CollectiveCall& call = *session.options().timed_call();
  for (std::size_t done = 0; done < sizes.size(); ++done) {
    const Difference mine = difference_here(session, call, static_cast<std::size_t>(sizes[done]));
    const auto all = session.from_all(std::span<const Difference>{&mine, 1});
    for (std::size_t r = 0; r < all.size(); ++r) {
      if (all[r].wrong == 0) continue;
      throw Failure(1, session.rank() != 0
                           ? ""
                           : "wrong bytes: " + std::string{call.name} + " of " + std::to_string(sizes[done]) + " bytes on " +
                                 std::to_string(session.size()) + " ranks left " + std::to_string(all[r].wrong) +
                                 " byte(s) wrong on rank " + std::to_string(r) + " (" +
                                 session.place(static_cast<int>(r)).text() + "), the first at " +
                                 std::to_string(all[r].first) + "; nothing was timed");
    }
    progress(done + 1);
  }
}

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<double> average_of_ranks(const std::vector<double>& all, std::size_t ranks) {
  std::vector<double> averages(all.size() / ranks);
  for (std::size_t at = 0; at < all.size(); ++at) averages[at % averages.size()] += all[at] / static_cast<double>(ranks);
  return averages;
}

Row measure_call(Session& session, std::uint64_t bytes) {
  const BenchOptions& options = session.options();
  const CollectiveCall& call = *options.timed_call();  // looked for here: what is timed is the call alone
  const CallArguments with = session.arguments(static_cast<std::size_t>(bytes));
  const std::uint64_t wanted = wanted_iterations(options, bytes);
  session.meet();
  const double repetition_us = warm_up_us(session, wanted / 10, [&] { timed_call_us(session, call, with); });
  const Plan plan = session.from_first(make_plan(options, wanted, repetition_us, false));
  std::vector<double> times;
  times.reserve(plan.batches);
  session.meet();
  forget_algorithm(with.comm);
  for (std::uint64_t batch = 0; batch < plan.batches; ++batch) {
    double took = 0;
    for (std::uint64_t n = 0; n < plan.per_batch; ++n) took += timed_call_us(session, call, with);
    times.push_back(took / static_cast<double>(plan.per_batch));
  }
  std::string algorithm = algorithm_of(with.comm);
  if (call.in_stream() && algorithm != name_of(Algorithm::nccl)) algorithm = "stream";
  const auto all = session.from_all(std::span<const double>{times});
  const auto ranks = static_cast<std::size_t>(session.size());
  std::vector<double> means;
  for (std::size_t r = 0; r < ranks; ++r) means.push_back(mean(std::span{all}.subspan(r * times.size(), times.size())));
  Row row = make_row(bytes, average_of_ranks(all, ranks), plan);
  row.path = algorithm;
  row.added = {mean(means), *std::min_element(means.begin(), means.end()), *std::max_element(means.begin(), means.end())};
  if (call.in_stream())
    for (const double form : measure_forms(session, with)) row.added.push_back(form);
  return row;
}

}  // namespace ist::cli
