#include "cli/bench.hpp"

#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/bench_check.hpp"
#include "cli/bench_limits.hpp"
#include "cli/bench_measure.hpp"
#include "cli/bench_options.hpp"
#include "cli/bench_report.hpp"
#include "cli/failure.hpp"
#include "cli/info.hpp"
#include "cli/machine.hpp"

namespace ist::cli {
namespace {

struct Words {
  std::string from = "host";
  std::string to = "host";
};

bool inside_a_world() {
  for (const char* variable : {"ISTHMUS_BOOT_FD", "ISTHMUS_SIZE", "WORLD_SIZE"})
    if (std::getenv(variable)) return true;
  return false;
}

Settings read_settings() {
  auto settings = Settings::read();
  if (!settings.ok()) throw Failure(settings.status());
  return std::move(settings).value();
}

// Told here, once, before two ranks are started that would both find it out.
void must_be_available(const Kinds& kinds, const Place& place) {
  const KindId id = static_cast<KindId>(place.kind);
  if (const MemoryKind* kind = kinds.find(id)) {
    const auto devices = static_cast<int>(kind->devices().size());
    if (place.device < devices) return;
    throw Failure(
        2, place.text() + " is not there: this machine has " + std::to_string(devices) + " device(s) of kind " + place.word);
  }
  std::string reason = "it was not loaded";
  for (const Kinds::Missing& missing : kinds.missing())
    if (missing.name == place.word) reason = missing.reason;
  throw Failure(2, "memory of kind " + place.word + " cannot be used here: " + reason + " (isthmus info tells more)");
}

// Becomes `isthmus run -n 2 isthmus bench ...`; returns only by throwing.
[[noreturn]] void become_two_ranks(const std::vector<std::string>& arguments) {
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) throw Failure(1, "cannot find this program by /proc/self/exe: " + error.message());
  std::vector<std::string> words{self, "run", "-n", "2", self};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::cout.flush();
  execv(self.c_str(), pointers.data());
  throw Failure(1, "cannot start " + self + ": " + std::strerror(errno));
}

// A line that renews itself on a terminal; elsewhere only its end is printed.
void show_progress(std::size_t done, std::size_t of) {
  static const bool terminal = isatty(STDERR_FILENO) != 0;
  if (terminal || done == of)
    std::cerr << (terminal ? "\r" : "") << "checking every byte: " << done << " of " << of << " sizes"
              << (done == of ? ", all right\n" : "") << std::flush;
}

// Rank 1 says where it ran and keeps off the processors meanwhile.
Limits limits_together(Session& session) {
  if (session.rank() == 1) {
    session.tell(sched_getcpu());
    session.hear_asleep();
    return {};
  }
  const Limits limits = measure_limits(session.hear<int>());
  session.tell(std::byte{0});
  return limits;
}

void run_benchmark(const BenchOptions& options) {
  const Settings settings = read_settings();
  const bool first = [] {
    for (const char* variable : {"ISTHMUS_RANK", "RANK"})
      if (const char* value = std::getenv(variable)) return std::string_view{value} == "0";
    return true;
  }();
  if (first && !options.json_file.empty()) must_be_writable(options.json_file);
  Session session(options);
  session.prepare(settings);
  const auto sizes = checked_sizes(options, settings);
  check_bytes(session, sizes, [&](std::size_t done) {
    if (session.rank() == 0) show_progress(done, sizes.size());
  });
  BenchReport report;
  report.machine = describe_machine(find_processors(), session.kinds());
  report.commit = commit_of_sources();
  report.date = date_now();
  report.benchmark = options.benchmark;
  report.from = session.place(0).text();
  report.to = session.place(1).text();
  report.staged = options.staged;
  report.quick = options.quick;
  report.sizes_checked = sizes.size();
  if (session.rank() == 0) std::cout << table_header(report) << std::flush;
  for (const std::uint64_t bytes : timed_sizes(options)) {
    report.rows.push_back(measure(session, bytes));
    if (session.rank() == 0) std::cout << table_row(report.rows.back()) << std::flush;
  }
  report.limits = limits_together(session);
  if (session.rank() != 0) return;
  std::cout << table_footer(report) << std::flush;
  if (!options.json_file.empty()) write_json(options.json_file, report);
}

// Outside a world: everything that can be told without a second rank is told now.
void start_benchmark(const BenchOptions& options, const Words& words) {
  if (options.from.word != "host" || options.to.word != "host") {
    const auto kinds = Kinds::load(read_settings().kinds);
    if (!kinds.ok()) throw Failure(kinds.status());
    for (const Place& place : {options.from, options.to}) must_be_available(**kinds, place);
  }
  if (!options.json_file.empty()) must_be_writable(options.json_file);
  std::vector<std::string> arguments{"bench", options.benchmark, "--from", words.from, "--to", words.to};
  const auto add = [&](const char* word, const std::string& value) {
    arguments.emplace_back(word);
    arguments.push_back(value);
  };
  add("--min", std::to_string(options.least));
  add("--max", std::to_string(options.most));
  if (options.iterations != 0) add("--iterations", std::to_string(options.iterations));
  if (!options.json_file.empty()) add("--json", options.json_file);
  if (options.quick) arguments.emplace_back("--quick");
  if (options.staged) arguments.emplace_back("--staged");
  become_two_ranks(arguments);
}

}  // namespace

void add_bench_command(CLI::App& app) {
  const auto options = std::make_shared<BenchOptions>();
  const auto words = std::make_shared<Words>();
  CLI::App* command =
      app.add_subcommand("bench", "Check every byte, then measure messages between two ranks by the OSU method");
  command->add_option("NAME", options->benchmark, "latency (half a round trip) or bandwidth (windows of 64 messages)")
      ->required()
      ->check(CLI::IsMember({"latency", "bandwidth"}));
  command->add_option("--from", words->from, "memory of rank 0: host, pinned, cuda or opencl, and a device as in cuda:1")
      ->type_name("KIND");
  command->add_option("--to", words->to, "memory of rank 1")->type_name("KIND");
  command->add_option("--json", options->json_file, "write the result to this file, too")->type_name("FILE");
  command->add_option("--min", options->least, "smallest size that is timed, such as 8; 1 unless told")
      ->type_name("BYTES")
      ->transform(CLI::AsSizeValue(false).description(""));
  command->add_option("--max", options->most, "largest size that is timed, such as 64KiB; 4MiB unless told")
      ->type_name("BYTES")
      ->transform(CLI::AsSizeValue(false).description(""));
  command->add_option("--iterations", options->iterations, "repetitions of each size, instead of the method's number")
      ->type_name("N")
      ->check(CLI::PositiveNumber.description(""));
  command->add_flag("--quick", options->quick, "a twentieth of the repetitions");
  command->add_flag("--staged", options->staged, "stage device memory by hand through the host, for comparison");
  command->callback([options, words] {
    options->from = Place::read(words->from);
    options->to = Place::read(words->to);
    if (timed_sizes(*options).empty())
      throw Failure(2, "no power of two lies between --min " + std::to_string(options->least) + " and --max " +
                           std::to_string(options->most));
    if (inside_a_world())
      run_benchmark(*options);
    else
      start_benchmark(*options, *words);
  });
}

}  // namespace ist::cli
