#include "cli/bench_device_limits.hpp"

#include <sched.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <optional>
#include <utility>

#include "cli/bench_driver_copies.hpp"
#include "cli/bench_report.hpp"
#include "cli/bench_room.hpp"
#include "cli/bench_session.hpp"
#include "cli/failure.hpp"
#include "cli/info.hpp"
#include "cli/machine.hpp"

namespace ist::cli {
namespace {

// Single copies and calls are repeated so much more often than windows.
constexpr std::uint64_t kOftener = 10;
// Of kernels, which are launched for many trips each.
constexpr std::uint64_t kTrips = 2000;
constexpr std::uint64_t kLaunches = 25;
constexpr std::uint64_t kFewTrips = 200;
constexpr std::uint64_t kFewLaunches = 5;

// `repetition` is timed each time; `share` of it is what a row is of. `before` each one comes what is not timed.
Row time_row(const BenchOptions& options, std::uint64_t bytes, std::string path, double share,
             const std::function<void()>& repetition, const std::function<void()>& before = {}) {
  std::uint64_t wanted = wanted_iterations(options, bytes);
  if (options.iterations == 0 && share == 1) wanted *= kOftener;
  const std::uint64_t warm_up = std::max<std::uint64_t>(wanted / 10, 2);
  if (before) before();
  repetition();
  Clock::time_point start = Clock::now();
  std::uint64_t warm = 0;
  for (; warm + 1 < warm_up && (warm == 0 || microseconds_since(start) < kLongestWarmUp); ++warm) {
    if (before) before();
    repetition();
  }
  const double once = microseconds_since(start) / static_cast<double>(warm);
  const Plan plan = make_plan(options, wanted, once, true);
  std::vector<double> times;
  times.reserve(plan.batches);
  for (std::uint64_t n = 0; n < plan.batches; ++n) {
    if (before) before();
    start = Clock::now();
    repetition();
    times.push_back(microseconds_since(start) / share);
  }
  Row row = make_row(bytes, std::move(times), plan);
  row.path = std::move(path);
  return row;
}

// More than one stream may keep a copy engine busy while the next copy is being made ready, or be in each other's way.
Row many_copies(const BenchOptions& options, DriverCopies& copies, std::uint64_t bytes, int streams, bool both_ways) {
  const auto size = static_cast<std::size_t>(bytes);
  const std::string path = "copies in " + std::to_string(streams) + (streams == 1 ? " stream" : " streams");
  const int window = window_of(bytes);
  Row row = time_row(options, bytes, path, window, [&] {
    for (int n = 0; n < window; ++n) {
      copies.copy(size, n % streams, false);
      if (both_ways) copies.copy(size, n % streams, true);
    }
    copies.wait();
  });
  row.window = window;
  if (both_ways) row.gbps *= 2;
  return row;
}

// As the library makes them of messages that wait for each other (src/request/engine_putting.cpp): 8 by a call, and two calls under way.
Row copies_together(const BenchOptions& options, DriverCopies& copies, std::uint64_t bytes, bool both_ways) {
  constexpr int kTogether = 8;
  constexpr int kStreams = 2;
  const auto size = static_cast<std::size_t>(bytes);
  const int window = window_of(bytes);
  const int together = std::min(kTogether, window / kStreams);
  const std::string path = std::to_string(together) + " copies by a call in 2 streams";
  Row row = time_row(options, bytes, path, window, [&] {
    for (int n = 0; n < window / together; ++n) {
      copies.copy_together(size, together, n % kStreams, false);
      if (both_ways) copies.copy_together(size, together, n % kStreams, true);
    }
    copies.wait();
  });
  row.window = window;
  if (both_ways) row.gbps *= 2;
  return row;
}

Row stored_copies(const BenchOptions& options, const LimitWindow& way, std::uint64_t bytes, bool both_ways) {
  Row row = time_row(options, bytes, way.name, Session::kWindow,
                     [&, size = static_cast<std::size_t>(bytes)] { way.copy(size, both_ways); });
  if (both_ways) row.gbps *= 2;
  return row;
}

// Trips of kernels, that many in each launch; none where they do not come to an end.
std::optional<Row> time_trips(const LimitTrips& way, std::uint64_t launches, std::uint64_t trips) {
  std::vector<double> times;
  for (std::uint64_t n = 0; n < launches; ++n) {
    const std::vector<double> found = way.measure(trips);
    if (found.empty()) return std::nullopt;
    times.insert(times.end(), found.begin(), found.end());
  }
  Row row = make_row(way.bytes, std::move(times), {launches, trips});
  row.path = way.name;
  return row;
}

class Reports {
 public:
  explicit Reports(const BenchOptions& options) : options_(options) {
    auto kinds = Kinds::load("all");
    if (!kinds.ok()) throw Failure(kinds.status());
    about_.machine = describe_machine(find_processors(), **kinds);
    about_.commit = commit_of_sources();
    about_.quick = options.quick;
    about_.ranks = 1;
  }

  void begin(const std::string& benchmark, const Place& from, const Place& to) {
    BenchReport report = about_;
    report.date = date_now();
    report.benchmark = benchmark;
    report.from = from.text();
    report.to = to.text();
    std::cout << (reports_.empty() ? "" : "\n") << table_header(report) << std::flush;
    reports_.push_back(std::move(report));
  }
  void put(Row row) {
    std::cout << table_row(row) << std::flush;
    reports_.back().rows.push_back(std::move(row));
  }
  void leave_out(const std::vector<std::string>& sentences) {
    for (const std::string& one : sentences) {
      std::cout << "left out: " << one << '\n' << std::flush;
      reports_.back().left_out.push_back(one);
    }
  }
  void add(const std::string& benchmark, const Place& from, const Place& to, const std::vector<std::uint64_t>& sizes,
           const std::function<Row(std::uint64_t)>& measured) {
    begin(benchmark, from, to);
    for (const std::uint64_t bytes : sizes) put(measured(bytes));
  }

  void add_host();
  void add_single(const Place& from, const Place& to, DriverCopies& copies, KernelLimits& kernels);
  void add_windows(const std::string& benchmark, const Place& from, const Place& to, DriverCopies& copies,
                   KernelLimits& kernels, bool both_ways);
  void add_calls(const Place& from, const Place& to, DriverCopies& copies, KernelLimits& kernels);
  void add_trips(const LimitWays<LimitTrips>& ways, std::uint64_t launches, std::uint64_t trips);
  void add_pair(const Place& from, const Place& to);
  std::vector<BenchReport> take() { return std::move(reports_); }

 private:
  const BenchOptions& options_;
  BenchReport about_;
  std::vector<BenchReport> reports_;
};

// A processor beside the one this thread is on, or -1.
int another_processor() {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return -1;
  const int mine = sched_getcpu();
  for (int n = 0; n < CPU_SETSIZE; ++n)
    if (n != mine && CPU_ISSET(static_cast<std::size_t>(n), &mask)) return n;
  return -1;
}

void Reports::add_host() {
  add("limit-bandwidth", Place::read("host"), Place::read("host"), timed_sizes(options_), [](std::uint64_t bytes) {
    Row row;
    row.bytes = bytes;
    row.gbps = warm_memcpy_gbps(static_cast<std::size_t>(bytes));
    row.median_us = row.p10_us = row.p90_us = row.gbps > 0 ? static_cast<double>(bytes) / (row.gbps * 1e3) : 0;
    row.path = "memcpy, one thread";
    return row;
  });
  reports_.back().limits = measure_limits(another_processor());
  std::cout << table_footer(reports_.back()) << std::flush;
}

void Reports::add_single(const Place& from, const Place& to, DriverCopies& copies, KernelLimits& kernels) {
  const auto ways = copies.ways();
  const LimitWays<LimitCopy> by_kernels = kernels.single_copies();
  begin("limit-latency", from, to);
  for (const std::uint64_t bytes : timed_sizes(options_)) {
    const auto size = static_cast<std::size_t>(bytes);
    for (const auto& [name, way] : ways) put(time_row(options_, bytes, name, 1, [&, make = &way] { (*make)(size); }));
    for (const LimitCopy& one : by_kernels.all)
      if (size <= one.most) put(time_row(options_, bytes, one.name, 1, [&] { one.copy(size); }));
  }
  leave_out(by_kernels.left_out);
}

void Reports::add_windows(const std::string& benchmark, const Place& from, const Place& to, DriverCopies& copies,
                          KernelLimits& kernels, bool both_ways) {
  const LimitWays<LimitWindow> stores = kernels.windows(Session::kWindow);
  begin(benchmark, from, to);
  for (const std::uint64_t bytes : timed_sizes(options_)) {
    for (const int streams : {1, DriverCopies::kStreams}) put(many_copies(options_, copies, bytes, streams, both_ways));
    if (copies.copies_together()) put(copies_together(options_, copies, bytes, both_ways));
    for (const LimitWindow& way : stores.all) put(stored_copies(options_, way, bytes, both_ways));
  }
  leave_out(stores.left_out);
}

void Reports::add_calls(const Place& from, const Place& to, DriverCopies& copies, KernelLimits& kernels) {
  const LimitWays<LimitCall> calls = copies.calls();
  const LimitWays<LimitCall> launches = kernels.launches();
  begin("limit-calls", from, to);
  for (const auto* const ways : {&calls, &launches}) {
    for (const LimitCall& one : ways->all) put(time_row(options_, 0, one.name, 1, one.call, one.before));
    leave_out(ways->left_out);
  }
}

// Where some do not come to an end, the others would not either.
void Reports::add_trips(const LimitWays<LimitTrips>& ways, std::uint64_t launches, std::uint64_t trips) {
  for (const LimitTrips& way : ways.all) {
    std::optional<Row> row = time_trips(way, launches, trips);
    if (!row) {
      leave_out({way.name + " of " + std::to_string(way.bytes) + " bytes, and all that would follow: no end within " +
                 std::to_string(kKernelPatience.count()) + " s"});
      break;
    }
    put(std::move(*row));
  }
  leave_out(ways.left_out);
}

void Reports::add_pair(const Place& from, const Place& to) {
  const auto copies = DriverCopies::open(from, to, static_cast<std::size_t>(options_.most));
  const auto kernels = copies->kernels();
  add_single(from, to, *copies, *kernels);
  add_windows("limit-bandwidth", from, to, *copies, *kernels, false);
  add_windows("limit-bidirectional", from, to, *copies, *kernels, true);
  add_calls(from, to, *copies, *kernels);
  const std::uint64_t asked = options_.iterations;
  const std::uint64_t trips = asked != 0 ? std::min(asked * kOftener, kTrips) : options_.quick ? kFewTrips : kTrips;
  const std::uint64_t launches = asked != 0 ? asked : options_.quick ? kFewLaunches : kLaunches;
  if (from.on_device() && to.on_device()) {
    begin("limit-kernels", from, to);
    add_trips(kernels->between_kernels(), launches, trips);
  }
  begin("limit-residents", from, to);
  add_trips(kernels->with_residents(), 1, asked != 0 ? asked : trips);
}

Place on(Place place, int device) {
  if (place.on_device() && place.device == Place::kAnyDevice) place.device = device;
  return place;
}

void must_be_cuda(const BenchOptions& options, int devices, const std::string& reason) {
  for (const Place& place : {options.from, options.to}) {
    if (place.kind == IST_KIND_OPENCL || place.classed())
      throw Failure(2, "limits are of host, pinned and cuda memory, not of " + place.word);
    if (place.on_device() && place.device >= std::max(devices, 1))
      throw Failure(2,
                    place.text() + " is not there: this machine has " + std::to_string(devices) + " device(s) of kind cuda");
  }
  if (devices == 0) throw Failure(2, "limits of device memory cannot be measured here: " + reason);
}

}  // namespace

std::vector<BenchReport> measure_device_limits(const BenchOptions& options, bool pair) {
  const auto [devices, reason] = driver_devices();
  const bool host_only = pair && options.from.word == "host" && options.to.word == "host";
  if (pair && !host_only && !options.from.on_device() && !options.to.on_device())
    throw Failure(2, "limits between host memory are those of host to host: page-locking it changes nothing there");
  if (pair && !host_only) must_be_cuda(options, devices, reason);
  Reports reports(options);
  if (!pair || host_only) reports.add_host();
  if (host_only) return reports.take();
  if (pair) {
    reports.add_pair(on(options.from, 0), on(options.to, devices > 1 && options.from.on_device() ? 1 : 0));
    return reports.take();
  }
  if (devices == 0) std::cout << "\nno limits of device memory: " << reason << '\n';
  const std::string second = devices > 1 ? "cuda:1" : "cuda:0";
  for (const auto& [from, to] : {std::pair{std::string{"cuda:0"}, second},
                                 {"pinned", "cuda:0"},
                                 {"cuda:0", "pinned"},
                                 {"host", "cuda:0"},
                                 {"cuda:0", "host"}})
    if (devices > 0) reports.add_pair(Place::read(from), Place::read(to));
  return reports.take();
}

void run_limits(const BenchOptions& options, bool pair) {
  if (!options.json_file.empty()) must_be_writable(options.json_file);
  must_have_room(options, 1, free_host_bytes());
  const auto reports = measure_device_limits(options, pair);
  if (options.json_file.empty()) return;
  auto list = nlohmann::ordered_json::array();
  for (const BenchReport& report : reports) list.push_back(to_json(report));
  write_json(options.json_file, list);
}

}  // namespace ist::cli
