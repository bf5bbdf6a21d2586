#include "base/settings.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "base/byte_counts.hpp"
#include "base/unknown_variables.hpp"

namespace ist {
namespace {

// One row of the table: how a setting is named, read, printed and explained.
struct Row {
  std::string_view name;
  std::string_view variable;
  std::string_view type;
  std::string expected;
  std::string_view help;
  std::function<bool(Settings&, std::string_view)> read;
  std::function<std::string(const Settings&)> print;
  std::string range = {};  // "0 to 1MiB", where there is one
};

Row bytes_row(std::string_view name, std::string_view variable, Bytes Settings::*member, std::uint64_t least,
              std::uint64_t most, std::string_view help) {
  const std::string range = print_bytes(least) + " to " + print_bytes(most);
  return {name,
          variable,
          "bytes",
          "a size in bytes, KiB, MiB or GiB from " + range + ", such as " + print_bytes((Settings{}.*member).value),
          help,
          [=](Settings& settings, std::string_view text) {
            const auto value = read_bytes(text);
            if (!value || *value < least || *value > most) return false;
            settings.*member = Bytes{*value};
            return true;
          },
          [=](const Settings& settings) { return print_bytes((settings.*member).value); },
          range};
}

Row count_row(std::string_view name, std::string_view variable, std::uint64_t Settings::*member, std::uint64_t least,
              std::uint64_t most, std::string_view help) {
  const std::string range = std::to_string(least) + " to " + std::to_string(most);
  return {name,
          variable,
          "count",
          "a whole number from " + range,
          help,
          [=](Settings& settings, std::string_view text) {
            const auto value = read_count(text);
            if (!value || *value < least || *value > most) return false;
            settings.*member = *value;
            return true;
          },
          [=](const Settings& settings) { return std::to_string(settings.*member); },
          range};
}

Row switch_row(std::string_view name, std::string_view variable, bool Settings::*field, std::string_view help) {
  return {name,
          variable,
          "switch",
          "0 or 1",
          help,
          [field](Settings& s, std::string_view text) {
            s.*field = text == "1";
            return text == "0" || text == "1";
          },
          [field](const Settings& s) { return std::string{s.*field ? "1" : "0"}; }};
}

bool one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  for (auto word : words)
    if (text == word) return true;
  return false;
}

// One of `words`.
Row word_row(std::string_view name, std::string_view variable, std::string Settings::*member,
             std::vector<std::string_view> words, std::string_view help) {
  std::string expected;
  for (const std::string_view word : words)
    expected += (word == words.front() ? "" : word == words.back() ? " or " : ", ") + std::string{word};
  return {name,
          variable,
          "word",
          expected,
          help,
          [member, words = std::move(words)](Settings& s, std::string_view text) {
            s.*member = text;
            return std::find(words.begin(), words.end(), text) != words.end();
          },
          [member](const Settings& s) { return s.*member; }};
}

Row single_copy_row() {
  return word_row(
      "single_copy", "ISTHMUS_SINGLE_COPY", &Settings::single_copy, {"auto", "always", "never"},
      "long messages between host buffers: read from the sender's memory in one copy where that is quicker, wherever "
      "the system lets us, or never");
}

Row shared_heap_row() {
  return bytes_row("shared_heap", "ISTHMUS_SHARED_HEAP", &Settings::shared_heap, 0, std::uint64_t{1} << 46,
                   "most host memory of ist_memory_alloc that other ranks of this host copy from; 0: none of it");
}

// 4 MiB from ordinary host memory to a GPU, windows: 13 GB/s with one thread, 18 with two, 23 with four, 39 with six, 31 with all
// eight of the rank's processors (H200, 2026-11-22).
constexpr int kCopyThreads = 6;
constexpr std::uint64_t kMostCopyThreads = 64;

Row bounce_row() {
  return bytes_row(
      "bounce_limit", "ISTHMUS_BOUNCE_LIMIT", &Settings::bounce_limit, 0, std::uint64_t{1} << 40,
      "most memory of each device for messages into device memory that no other process can open: managed, of the default "
      "pool, or mapped without handles for others; below 64 KiB: they go through host memory");
}

Row copy_threads_row() {
  return {"copy_threads",
          "ISTHMUS_COPY_THREADS",
          "word",
          "auto, or a whole number from 1 to " + std::to_string(kMostCopyThreads),
          "threads of a rank that copy long messages between ordinary host memory and devices, the calling one among them; "
          "auto: 6, or as many as the rank has processors to itself; helpers sleep between messages",
          [](Settings& s, std::string_view text) {
            s.copy_threads = text;
            const auto count = read_count(text);
            return text == "auto" || (count && *count >= 1 && *count <= kMostCopyThreads);
          },
          [](const Settings& s) { return s.copy_threads; }};
}

Row worker_row() {
  return switch_row(
      "worker", "ISTHMUS_WORKER", &Settings::worker,
      "1: a resident kernel on the rank's own CUDA device copies small messages, which it does in less time than "
      "the driver; what that asks of a program is in docs/worker.md");
}

Row nccl_row() {
  return {"nccl",
          "ISTHMUS_NCCL",
          "file",
          "auto, never, or NCCL's library: a file, or a name that the loader finds",
          "long collective calls whose buffers are CUDA memory on every rank: by NCCL where it is there and quicker, or "
          "never; auto: by the libnccl.so.2 that the loader finds; of the package nvidia-nccl it is "
          "nvidia/nccl/lib/libnccl.so.2",
          [](Settings& s, std::string_view text) {
            s.nccl = text;
            return !text.empty();
          },
          [](const Settings& s) { return s.nccl; }};
}

Row check_row() {
  return switch_row(
      "check", "ISTHMUS_CHECK", &Settings::check,
      "1: before each collective call the ranks tell each other which it is, and its root, operation, type and "
      "count, where they differ it is an error on all of them; and of a message whose types are not those of its receive, "
      "the receive is "
      "one; on every rank if any has it. And of each short copy out of a CUDA device the driver is asked, too, and the "
      "bytes "
      "compared with those that were seen before");
}

Row trace_row() {
  return {"trace",
          "ISTHMUS_TRACE",
          "file",
          "off, or a file",
          "what each rank did and when, for the viewers of Chrome and Perfetto: %r in the name becomes the rank, which else "
          "is put "
          "before the name's last ending; or off",
          [](Settings& s, std::string_view text) {
            s.trace = text;
            return !text.empty();
          },
          [](const Settings& s) { return s.trace; }};
}

Row boot_timeout_row() {
  return {"boot_timeout",
          "ISTHMUS_BOOT_TIMEOUT",
          "seconds",
          "a number of seconds above 0, at most 1000000",
          "how long to wait for the other ranks at start",
          [](Settings& s, std::string_view text) {
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), s.boot_timeout);
            return error == std::errc{} && end == text.data() + text.size() && s.boot_timeout > 0 && s.boot_timeout <= 1e6;
          },
          [](const Settings& s) {
            std::array<char, 32> text{};
            return std::string(text.data(), std::to_chars(text.data(), text.data() + text.size(), s.boot_timeout).ptr);
          }};
}

Row profile_row() {
  return {
      "profile",
      "ISTHMUS_PROFILE",
      "word",
      "auto, builtin, or the path of a file that isthmus model fit wrote",
      "the costs by which carriers and algorithms are chosen: what isthmus model fit measured on this machine, if it ever "
      "did (of its GPUs, if they and their driver are still the same), the library's own, or those of a file; for "
      "collective "
      "calls all ranks use rank 0's",
      [](Settings& s, std::string_view text) {
        s.profile = text;
        return !text.empty();
      },
      [](const Settings& s) { return s.profile; }};
}

const std::vector<Row>& table() {
  static const std::vector<Row> rows{
      word_row("log", "ISTHMUS_LOG", &Settings::log, {"trace", "debug", "info", "warning", "error", "off"},
               "least severe lines that are printed"),
      {"kinds", "ISTHMUS_KINDS", "word", "all, or a comma-separated list of " + kind_names(),
       "memory kinds to load; host is always there",
       [](Settings& s, std::string_view text) {
         s.kinds = text;
         return lists_kinds(text);
       },
       [](const Settings& s) { return s.kinds; }},
      {"device", "ISTHMUS_DEVICE", "number", "the number of a device from 0 to 1023, or -1",
       "device of each kind that is this rank's own; a kind with a single device keeps that one, whatever is named; -1: the "
       "ranks of a host take them in turn",
       [](Settings& s, std::string_view text) {
         const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), s.device);
         return error == std::errc{} && end == text.data() + text.size() && s.device >= -1 && s.device <= 1023;
       },
       [](const Settings& s) { return std::to_string(s.device); }},
      bytes_row("eager_limit", "ISTHMUS_EAGER_LIMIT", &Settings::eager_limit, 0, 1 << 20,
                "largest message sent in a cell before its receive is known, and the size of a cell; between host buffers "
                "eight times as much goes in slots, where a pair of ranks has room for up to 64 of those, in 4MiB at most"),
      count_row("cells", "ISTHMUS_CELLS", &Settings::cells, 4, kMostCells, "cells each rank owns for its outgoing messages"),
      count_row("ring_slots", "ISTHMUS_RING_SLOTS", &Settings::ring_slots, 2, 64, "slots of a pair's pipelined ring"),
      bytes_row("ring_slot_device", "ISTHMUS_RING_SLOT_DEVICE", &Settings::ring_slot_device, 4096, 16 << 20,
                "most bytes moved per slot where a device is on either side"),
      bytes_row("ring_slot_host", "ISTHMUS_RING_SLOT_HOST", &Settings::ring_slot_host, 4096, 16 << 20,
                "bytes moved per slot between two host buffers; up to four times as many in windows and from 1MiB on"),
      count_row("ring_in_flight", "ISTHMUS_RING_IN_FLIGHT", &Settings::ring_in_flight, 1, 64,
                "device copies a rank keeps running in one ring"),
      bytes_row("pinned_pool_limit", "ISTHMUS_PINNED_POOL_LIMIT", &Settings::pinned_pool_limit, 1 << 20,
                std::uint64_t{1} << 40, "most page-locked staging memory a world holds"),
      boot_timeout_row(),
      word_row("wait", "ISTHMUS_WAIT", &Settings::wait, {"auto", "spin", "sleep"},
               "what a wait does: spin, sleep soon, or choose by whether ranks outnumber processors"),
      single_copy_row(),
      shared_heap_row(),
      word_row(
          "device_ipc", "ISTHMUS_DEVICE_IPC", &Settings::device_ipc, {"auto", "never"},
          "messages between devices of one host: in one copy into the receiver's memory where the driver can, or "
          "never; with never, PEs do not map each other's parts of heaps in OpenCL and CUDA memory either, nor the memory "
          "of windows, but serve them"),
      bytes_row("mapped_limit", "ISTHMUS_MAPPED_LIMIT", &Settings::mapped_limit, 1 << 20, std::uint64_t{1} << 50,
                "most device memory of other ranks that a world keeps mapped for later messages"),
      bounce_row(),
      copy_threads_row(),
      switch_row("progress_thread", "ISTHMUS_PROGRESS_THREAD", &Settings::progress_thread,
                 "1: a thread of each world moves messages on while the program makes no call"),
      worker_row(),
      word_row(
          "threads", "ISTHMUS_THREADS", &Settings::threads, {"multiple", "single"},
          "threads of the program that may be inside calls at once; single: the program promises one at a time, and nothing "
          "is locked"),
      profile_row(),
      nccl_row(),
      check_row(),
      trace_row(),
  };
  return rows;
}

std::vector<std::string_view> variables() {
  std::vector<std::string_view> names;
  for (const Row& row : table()) names.push_back(row.variable);
  return names;
}

Status unknown_word(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Row& row : table()) names.push_back(row.name);
  return {IST_ERR_SETTING, "there is no setting \"" + std::string{name} + "\"; the nearest name is " +
                               std::string{nearest_name(name, names)} + ", and isthmus info --settings lists all"};
}

// `said`: how the user names it.
Status take(const Row& row, Settings& settings, const std::string& said, std::string_view text) {
  if (row.read(settings, text)) return {};
  return {IST_ERR_SETTING, said + "=\"" + std::string{text} + "\" cannot be used: expected " + row.expected + " (" +
                               std::string{row.help} + ")"};
}

// "eager_limit=32KiB": one word of what a world was given.
Status read_word(Settings& settings, std::string_view word) {
  const auto equals = word.find('=');
  if (equals == std::string_view::npos)
    return {IST_ERR_SETTING, "\"" + std::string{word} + "\" is no setting: expected name=value, such as worker=1"};
  const auto name = word.substr(0, equals);
  const auto row = std::find_if(table().begin(), table().end(), [&](const Row& one) { return one.name == name; });
  if (row == table().end()) return unknown_word(name);
  const auto value = word.substr(equals + 1);
  return take(*row, settings, "the setting " + std::string{name}, value);
}

Status read_words(Settings& settings, std::string_view words) {
  constexpr std::string_view kBetween = " \t\n";
  for (;;) {
    words.remove_prefix(std::min(words.find_first_not_of(kBetween), words.size()));
    if (words.empty()) return {};
    const auto word = words.substr(0, words.find_first_of(kBetween));
    IST_TRY(read_word(settings, word));
    words.remove_prefix(word.size());
  }
}

}  // namespace

int Settings::copy_helpers(int processors) const {
  const auto given = read_count(copy_threads);
  return static_cast<int>(given.value_or(static_cast<std::uint64_t>(std::clamp(processors, 1, kCopyThreads)))) - 1;
}

Result<Settings> Settings::read(std::string_view given) {
  Settings settings;
  for (const Row& row : table()) {
    const char* text = std::getenv(std::string{row.variable}.c_str());
    if (!text) continue;
    IST_TRY(take(row, settings, std::string{row.variable}, text));
  }
  IST_TRY(read_words(settings, given));
  if (settings.single_threaded() && settings.progress_thread)
    return Status{IST_ERR_SETTING,
                  "threads=\"single\" (ISTHMUS_THREADS) cannot be used with progress_thread=\"1\" "
                  "(ISTHMUS_PROGRESS_THREAD), whose thread "
                  "is a second one inside the library: leave one of them out"};
  if (one_of(settings.log, {"trace", "debug", "info", "warning"})) warn_of_unknown_variables(variables());
  return settings;
}

std::vector<SettingRow> describe(const Settings& settings) {
  std::vector<SettingRow> rows;
  const Settings defaults;
  for (const Row& row : table())
    rows.push_back({row.name, row.variable, row.type, row.print(defaults), row.print(settings),
                    std::string{row.help} + (row.range.empty() ? "" : " (" + row.range + ")")});
  return rows;
}

}  // namespace ist
