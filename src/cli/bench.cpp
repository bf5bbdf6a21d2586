#include "cli/bench.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <memory>

#include "cli/bench_check.hpp"
#include "cli/bench_collective.hpp"
#include "cli/bench_device_limits.hpp"
#include "cli/bench_every_pair.hpp"
#include "cli/bench_halo.hpp"
#include "cli/bench_layout.hpp"
#include "cli/bench_limits.hpp"
#include "cli/bench_measure.hpp"
#include "cli/bench_one_sided.hpp"
#include "cli/bench_options.hpp"
#include "cli/bench_ordered.hpp"
#include "cli/bench_overlap.hpp"
#include "cli/bench_pack.hpp"
#include "cli/bench_pairs.hpp"
#include "cli/bench_report.hpp"
#include "cli/bench_row_limit.hpp"
#include "cli/bench_stream.hpp"
#include "cli/bench_sweep.hpp"
#include "cli/failure.hpp"
#include "cli/info.hpp"
#include "cli/machine.hpp"
#include "cli/own_ranks.hpp"
#include "cli/settings_page.hpp"
#include "cli/size_option.hpp"

namespace ist::cli {
namespace {

constexpr std::array<const char*, 3> kPlaces{"--from", "--to", "--kind"};

struct Words {
  std::string from;
  std::string to;
  std::string everywhere;
  std::string into;
};

// A line that renews itself on a terminal; elsewhere only its end is printed.
void show_progress(std::size_t done, std::size_t of) {
  static const bool terminal = isatty(STDERR_FILENO) != 0;
  if (terminal || done == of)
    std::cerr << (terminal ? "\r" : "") << "checking every byte: " << done << " of " << of << " sizes"
              << (done == of ? ", all right\n" : "") << std::flush;
}

// Rank 1 says where it ran, and all but rank 0 keep off the processors meanwhile.
Limits limits_together(Session& session) {
  Limits limits;
  if (session.other() == 0 && session.rank() == (session.options().pairs() ? session.size() / 2 : 1))
    session.tell(sched_getcpu());
  // Who asks for less than ten repetitions looks at whether it works: what is beside a row takes no longer than the row.
  const std::uint64_t repetitions = session.options().iterations;
  if (session.rank() == 0)
    limits = measure_limits(session.size() > 1 ? session.hear<int>() : -1, repetitions != 0 && repetitions < 10);
  session.meet_asleep();
  return limits;
}

void check(Session& session, const std::vector<std::uint64_t>& sizes) {
  const auto progress = [&](std::size_t done) {
    if (session.rank() == 0) show_progress(done, sizes.size());
  };
  if (session.options().timed_call())
    check_call(session, sizes, progress);
  else
    check_bytes(session, sizes, progress);
}

Row measure_size(Session& session, std::uint64_t bytes) {
  if (session.options().stream_latency()) return measure_stream(session, bytes);
  if (session.options().ordered()) return measure_ordered(session, bytes);
  if (session.options().overlap()) return measure_overlap(session, bytes);
  if (session.options().timed_call()) return measure_call(session, bytes);
  if (session.options().pairs()) return measure_pairs(session, bytes);
  return measure(session, bytes);
}

BenchReport describe_run(const Session& session, const Settings& settings) {
  const BenchOptions& options = session.options();
  BenchReport report;
  report.machine = describe_machine(find_processors(), session.kinds());
  report.commit = commit_of_sources();
  report.date = date_now();
  report.benchmark = options.name();
  report.from = session.place(0).text();
  report.to = session.place(session.size() - 1).text();
  if (options.into) report.into = session.result_place(0).text();
  report.staged = options.staged;
  report.ready = options.ready;
  report.fresh = options.fresh;
  report.quick = options.quick;
  report.added = added_names(options);
  report.ranks = session.size();
  report.progress_thread = settings.progress_thread;
  report.threads = settings.threads;
  return report;
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
  check(session, sizes);
  BenchReport report = describe_run(session, settings);
  report.sizes_checked = sizes.size();
  report.limits = limits_together(session);
  RowLimit limit(session, report.limits);
  report.limit_is = limit.words();
  if (session.rank() == 0) std::cout << table_header(report) << std::flush;
  for (const std::uint64_t bytes : timed_sizes(options)) {
    report.rows.push_back(measure_size(session, bytes));
    limit.add(bytes, report.rows.back());
    if (session.rank() == 0) std::cout << table_row(report.rows.back()) << std::flush;
  }
  if (session.rank() != 0) return;
  report.limit_is = limit.words();
  std::cout << table_footer(report) << std::flush;
  if (!options.json_file.empty()) write_json(options.json_file, to_json(report));
}

// Outside a world: everything that can be told without other ranks is told now.
void start_benchmark(const BenchOptions& options, const Words& words) {
  std::vector<Place> places{options.from, options.to};
  if (options.into) places.push_back(*options.into);
  if (options.queue()) places.push_back(Place::read("opencl"));
  must_be_available(places);
  if (!options.json_file.empty()) must_be_writable(options.json_file);
  std::vector<std::string> arguments{"bench", options.benchmark};
  if (!options.call.empty()) arguments.push_back(options.call);
  const auto add = [&](const char* word, const std::string& value) {
    arguments.emplace_back(word);
    arguments.push_back(value);
  };
  add("--from", words.from);
  add("--to", words.to);
  if (!words.into.empty()) add("--into", words.into);
  for (std::string& word : size_arguments(options)) arguments.push_back(std::move(word));
  if (options.iterations != 0) add("--iterations", std::to_string(options.iterations));
  if (!options.json_file.empty()) add("--json", options.json_file);
  if (options.quick) arguments.emplace_back("--quick");
  if (options.staged) arguments.emplace_back("--staged");
  if (options.automatic) arguments.emplace_back("--auto");
  if (options.ready) arguments.emplace_back("--ready");
  if (options.fresh) arguments.emplace_back("--fresh");
  become_ranks(options.ranks == 0 ? (options.pairs() ? 4 : 2) : options.ranks, arguments);
}

void choose_memory(const BenchOptions& options, Words& words, bool told) {
  // Streams are CUDA's and queues OpenCL's; where one end is told, the other is the host's, as ever.
  const std::string usual = told ? "host" : options.usual_memory();
  if (words.everywhere.empty() && !told) words.everywhere = usual;
  if (!words.everywhere.empty()) words.from = words.to = words.everywhere;
  if (words.from.empty()) words.from = usual;
  if (words.to.empty()) words.to = usual;
}

void run(BenchOptions& options, Words& words, const CLI::App& command) {
  const bool told = std::any_of(kPlaces.begin(), kPlaces.end(), [&](const char* name) { return command.count(name) > 0; });
  const bool blocks = options.benchmark == "pack" || options.benchmark == "layout";
  if (!blocks && !options.blocks.empty()) throw Failure(2, "--blocks is of pack and layout; leave it out");
  if (command.count("--side") > 0 && options.benchmark != "one-sided")
    throw Failure(2, "--side is of one-sided, not of " + options.benchmark);
  if (blocks || options.benchmark == "halo" || options.benchmark == "one-sided") {
    if (!words.from.empty() || !words.to.empty() || !words.into.empty())
      throw Failure(2,
                    options.benchmark +
                        " is of one kind of memory on every rank: give it by --kind, and leave out --from, --to and --into");
    if (command.count("--min") > 0 || command.count("--max") > 0)
      throw Failure(2, options.benchmark + " takes --sizes, and neither --min nor --max");
    if (options.benchmark == "one-sided") return run_one_sided(options, words.everywhere);
    const std::string kind = words.everywhere.empty() ? "host" : words.everywhere;
    return (options.benchmark == "halo" ? run_halo : options.benchmark == "pack" ? run_pack : run_layout)(options, kind);
  }
  choose_memory(options, words, told);
  must_go_together(options, told || !words.into.empty());
  options.from = Place::read(words.from, true);
  options.to = Place::read(words.to, true);
  if (!words.into.empty()) options.into = Place::read(words.into, true);
  complete(options, command.count("--min") > 0, command.count("--max") > 0);
  if (timed_sizes(options).empty())
    throw Failure(2, "no power of two lies between --min " + std::to_string(options.least) + " and --max " +
                         std::to_string(options.most));
  if (options.limits())
    run_limits(options, told);
  else if (options.sweep())
    run_sweep(options);
  else if (options.every_pair)
    run_every_pair(options);
  else if (inside_a_world())
    run_benchmark(options);
  else
    start_benchmark(options, words);
}

// What a call's own name, in place of the benchmark that times it, is answered.
std::string meant_a_call(const std::string& name) {
  if (find_call(name) == nullptr) return {};
  return name + " is a call: isthmus bench collective " + name;
}

void add_name(CLI::App& command, BenchOptions& options) {
  command
      .add_option(
          "NAME", options.benchmark,
          "latency (half a round trip), bandwidth (windows of 64 messages), bidirectional (the same both ways at once), "
          "rate (windows of messages of 8 bytes), multi-pair (windows of several pairs of ranks at once), stream-latency, "
          "stream-bandwidth and stream-bidirectional (messages in CUDA streams), queue-latency, queue-bandwidth and "
          "queue-bidirectional (messages in OpenCL queues), collective (a call of all ranks), overlap (how much of a call "
          "is "
          "hidden behind computation), halo (exchanges of halos under every packing), pack (packing of layouts), layout "
          "(messages with layouts), one-sided (puts, gets, atomics and barriers of symmetric heaps), limits "
          "(what the driver, memcpy and "
          "bare kernels do by themselves) or sweep (latency "
          "and bandwidth "
          "under several values of a setting)")
      ->required()
      ->check(CLI::Validator(meant_a_call, ""))
      ->check(
          CLI::IsMember({"latency", "bandwidth", "bidirectional", "rate", "multi-pair", "stream-latency", "stream-bandwidth",
                         "stream-bidirectional", "queue-latency", "queue-bandwidth", "queue-bidirectional", "collective",
                         "overlap", "halo", "pack", "layout", "one-sided", "limits", "sweep"}));
  command.add_option(
      "CALL", options.call,
      "of collective: " + call_names() + "; of overlap: " + call_names(true) +
          " (of the v forms part r of N is 2 * (r + 1) / (N + 1) of the size of the row, so that none are "
          "equal and the mean is "
          "that; in an alltoallv rank s has part (s + r) mod N for rank r); of halo: lists; of pack and layout: vector, "
          "hvector, subarray, indexed or struct; of one-sided: ping-pong, words, bandwidth, rate, atomics or barrier; of "
          "sweep: " +
          sweep_names());
}

void add_sizes(CLI::App& command, BenchOptions& options) {
  CLI::Option* const sizes = command
                                 .add_option("--sizes", options.sizes,
                                             "sizes that are timed, such as 8,64KiB,1MiB, instead of all powers of two; of "
                                             "halo cells in each direction, of pack and layout bytes in all blocks")
                                 ->type_name("BYTES,...")
                                 ->delimiter(',')
                                 ->transform(as_size());
  for (const char* bound : {"--min", "--max"}) sizes->excludes(command.get_option(bound));
  command
      .add_option("--blocks", options.blocks,
                  "of pack and layout: bytes of each block, such as 16,4KiB, instead of 4 B to 4 KiB")
      ->type_name("BYTES,...")
      ->delimiter(',')
      ->transform(as_size());
}

}  // namespace

void add_bench_command(CLI::App& app) {
  const auto options = std::make_shared<BenchOptions>();
  const auto words = std::make_shared<Words>();
  CLI::App* command = app.add_subcommand(
      "bench", "Check every byte, then measure messages between two ranks, or calls of several, by the OSU method");
  add_name(*command, *options);
  command
      ->add_option("--from", words->from,
                   "memory of rank 0: host, pinned, cuda or opencl, or of cuda memory managed, pool, shared-pool or vmm, "
                   "and a device as in cuda:1")
      ->type_name("KIND");
  command->add_option("--to", words->to, "memory of the other ranks")->type_name("KIND");
  CLI::Option* const kind = command->add_option("--kind", words->everywhere, "memory of every rank")->type_name("KIND");
  for (const char* single : {"--from", "--to"}) kind->excludes(command->get_option(single));
  command
      ->add_option(
          "--into", words->into,
          "of collective and overlap: memory of every rank's receive buffer, where it is other than that of the send buffer")
      ->type_name("KIND");
  command
      ->add_option("--ranks", options->ranks,
                   "of collective, overlap, halo and multi-pair: how many are started; 2 unless told, of multi-pair 4")
      ->type_name("N")
      ->check(CLI::Range(1, 1024).description(""));
  command->add_option("--json", options->json_file, "write the result to this file, too")->type_name("FILE");
  command->add_option("--min", options->least, "smallest size that is timed, such as 8; 1 unless told, 8 of limits")
      ->type_name("BYTES")
      ->transform(as_size());
  command
      ->add_option(
          "--max", options->most,
          "largest size that is timed, such as 64KiB; 4MiB unless told, 1MiB of collective and overlap, 64MiB of limits")
      ->type_name("BYTES")
      ->transform(as_size());
  add_sizes(*command, *options);
  command->add_option("--iterations", options->iterations, "repetitions of each size, instead of the method's number")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40).description(""));
  command
      ->add_option(
          "--side", options->side,
          "of one-sided: who calls, host, stream or kernel; but for the host each of the two ranks has a GPU of its own")
      ->check(CLI::IsMember({"host", "stream", "kernel"}));
  command->add_flag("--quick", options->quick, "a twentieth of the repetitions");
  command->add_flag(
      "--every-pair", options->every_pair,
      "measure between every two classes of memory that this machine has, each in ranks of its own; of calls, out of "
      "every one into every one");
  command->add_flag("--auto", options->automatic, "name no kind of memory: the library asks whose each buffer is");
  command->add_flag("--ready", options->ready,
                    "buffers promise that nothing is pending on them, and their streams and queues are not asked");
  command->add_flag("--fresh", options->fresh,
                    "of bandwidth in host memory: messages have bytes of their own, just written");
  command->add_flag("--staged", options->staged, "stage device memory by hand through the host, for comparison");
  command->footer(
      "Every table has limit_ratio, how many times as long as the machine's own limit a row takes, and says what that limit "
      "is: it is "
      "measured in the same run, without the library.");
  command->callback([options, words, command] { run(*options, *words, *command); });
}

}  // namespace ist::cli
