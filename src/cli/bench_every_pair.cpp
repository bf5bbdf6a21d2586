#include "cli/bench_every_pair.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>

#include "cli/bench_report.hpp"
#include "cli/bench_tasks.hpp"
#include "cli/failure.hpp"
#include "cli/own_ranks.hpp"
#include "cli/settings_page.hpp"
#include "memory/kinds.hpp"

namespace ist::cli {
namespace {

using Json = nlohmann::ordered_json;

// What a rank can have here, as --from and --to call it, of that which the benchmark is of.
std::vector<std::string> words_here(const BenchOptions& options) {
  const auto kinds = Kinds::load(read_settings().kinds);
  if (!kinds.ok()) throw Failure(kinds.status());
  const auto has = [&](KindId id) {
    const MemoryKind* const kind = (*kinds)->find(id);
    return kind != nullptr && !kind->devices().empty();
  };
  std::vector<std::string> words{"host"};
  const auto& all = (*kinds)->all();
  if (std::any_of(all.begin(), all.end(), [](const auto& kind) { return kind->pins() && !kind->devices().empty(); }))
    words.emplace_back("pinned");
  if (has(KindId::cuda)) words.insert(words.end(), {"cuda", "vmm", "pool", "shared-pool", "managed"});
  if (has(KindId::opencl)) words.emplace_back("opencl");
  // Streams are of CUDA memory alone, of every class, queues of all other.
  const bool in_stream = options.stream() || (options.timed_call() != nullptr && options.timed_call()->in_stream());
  std::erase_if(words, [&](const std::string& word) {
    const bool cuda = Place::read(word, true).kind == IST_KIND_CUDA;
    return in_stream ? !cuda : options.queue() && cuda;
  });
  if (in_stream && words.empty())
    throw Failure(2,
                  "--every-pair of " + options.name() + " needs CUDA memory, and this machine has none: see isthmus info");
  if (options.queue() && !has(KindId::opencl))
    throw Failure(2, "--every-pair of " + options.benchmark + " needs OpenCL, and this machine has none: see isthmus info");
  return words;
}

// Who sends, or has the input, and who receives, or has the result; of a call on one buffer both are the same.
std::vector<std::pair<std::string, std::string>> pairs_of(const BenchOptions& options,
                                                          const std::vector<std::string>& words) {
  const bool one_buffer = options.timed_call() != nullptr && options.timed_call()->in_recv;
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& from : words)
    for (const std::string& to : words)
      if (!one_buffer || from == to) pairs.emplace_back(from, to);
  return pairs;
}

BenchTask task_of(const BenchOptions& options, const std::string& from, const std::string& to) {
  BenchTask task;
  if (options.timed_call() != nullptr) {
    task.arguments = {"bench", options.benchmark, options.call, "--kind", from};
    if (from != to) task.arguments.insert(task.arguments.end(), {"--into", to});
  } else {
    task.arguments = {"bench", options.benchmark, "--from", from, "--to", to};
  }
  for (std::string& word : size_arguments(options)) task.arguments.push_back(std::move(word));
  if (options.iterations != 0)
    task.arguments.insert(task.arguments.end(), {"--iterations", std::to_string(options.iterations)});
  if (options.quick) task.arguments.emplace_back("--quick");
  if (options.staged) task.arguments.emplace_back("--staged");
  if (options.ready) task.arguments.emplace_back("--ready");
  task.ranks = options.pairs() ? std::max(options.ranks, 4) : options.ranks != 0 ? options.ranks : 2;
  return task;
}

// Who sends, or has the input, is on the left, who receives above; behind each figure how many times as long as its limit that is.
std::string table(const std::vector<Json>& reports, const std::vector<std::string>& words, bool times, std::uint64_t bytes) {
  std::array<char, 64> cell{};
  const auto add = [&](std::string& text, const char* format, auto value) {
    std::snprintf(cell.data(), cell.size(), format, value);
    text += cell.data();
  };
  std::string text =
      std::to_string(bytes) + " bytes, " + (times ? "us" : "GB/s") + "; x: times as long as the limit\n            ";
  for (const std::string& to : words) add(text, " %11s        ", to.c_str());
  text += '\n';
  for (const std::string& from : words) {
    add(text, "%12s", from.c_str());
    for (const std::string& to : words) {
      const auto found = std::find_if(reports.begin(), reports.end(),
                                      [&](const Json& one) { return one["pair"][0] == from && one["pair"][1] == to; });
      const Json* row = nullptr;
      if (found != reports.end())
        for (const Json& one : (*found)["rows"])
          if (one["bytes"] == bytes) row = &one;
      if (row == nullptr) {
        add(text, " %11s        ", "-");
        continue;
      }
      add(text, times ? " %11.2f" : " %11.3f", (*row)[times ? "median_us" : "gbps"].get<double>());
      if (row->contains("limit_ratio") && (*row)["limit_ratio"].is_number())
        add(text, " x%-6.4g", (*row)["limit_ratio"].get<double>());
      else
        text += " x-     ";
    }
    text += '\n';
  }
  return text;
}

// The smallest, the largest, and what most tables have.
std::vector<std::uint64_t> shown_sizes(const BenchOptions& options) {
  const auto all = timed_sizes(options);
  std::vector<std::uint64_t> shown;
  for (const std::uint64_t size : all)
    if (size == all.front() || size == all.back() || size == 8 || size == 64 << 10 || size == 4 << 20) shown.push_back(size);
  return shown;
}

}  // namespace

void must_go_together(const BenchOptions& options, bool told) {
  if (!options.every_pair) return;
  if (told) throw Failure(2, "--every-pair is between all memory that there is: leave out --from, --to, --kind and --into");
  if (options.limits() || options.sweep())
    throw Failure(2, "--every-pair is for messages between ranks, also in streams and queues, and for calls, not for " +
                         options.benchmark);
  if (const CollectiveCall* const call = options.timed_call(); call != nullptr && !call->moves_bytes())
    throw Failure(2, options.call + " moves no bytes out of any memory: leave out --every-pair");
  if (options.automatic) throw Failure(2, "--every-pair names the memory that it measures: leave out --auto");
}

void run_every_pair(const BenchOptions& options) {
  if (inside_a_world())
    throw Failure(2, "--every-pair starts ranks of its own: run it outside of isthmus run and other launchers");
  if (!options.json_file.empty()) must_be_writable(options.json_file);
  const auto words = words_here(options);
  const auto pairs = pairs_of(options, words);
  const char* const towards = options.timed_call() != nullptr ? " into " : " to ";
  std::vector<Json> reports;
  std::string failed;
  std::size_t done = 0;
  for (const auto& [from, to] : pairs) {
    std::string title = options.name();
    title.append(options.timed_call() != nullptr ? " out of " : " from ").append(from).append(towards).append(to);
    show_tasks(done++, pairs.size(), title);
    try {
      Json report = run_task(task_of(options, from, to), title);
      report["pair"] = {from, to};
      reports.push_back(std::move(report));
    } catch (const Failure& failure) {
      failed.append(failure.what()).append("\n");
    }
  }
  show_tasks(pairs.size(), pairs.size(), "");
  if (reports.empty()) throw Failure(1, failed);
  const bool times = options.one_at_a_time() || options.timed_call() != nullptr;
  std::cout << "isthmus bench " << options.name()
            << (options.timed_call() != nullptr
                    ? " out of every class of memory and into every one: send buffers on the left\n"
                    : " between every two classes of memory: who sends on the left\n")
            << reports.front()["machine"].get<std::string>() << "; commit " << reports.front()["commit"].get<std::string>()
            << '\n';
  for (const std::uint64_t size : shown_sizes(options)) std::cout << '\n' << table(reports, words, times, size);
  std::cout << std::flush;
  if (!options.json_file.empty()) {
    write_json(options.json_file, Json(reports));
  }
  if (!failed.empty()) throw Failure(1, failed);
}

}  // namespace ist::cli
