#include "cli/model.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>

#include "cli/bench_report.hpp"
#include "cli/failure.hpp"
#include "cli/info.hpp"
#include "cli/model_measure.hpp"
#include "cli/own_ranks.hpp"
#include "cli/settings_page.hpp"
#include "protocol/copy_beliefs.hpp"

namespace ist::cli {
namespace {

struct Options {
  std::string what;
  std::string file;
  bool quick = false;
};

// "0.100 us", "0.100 ns/byte", "128 KiB"
std::string in_units(const ProfileValue& value, double number) {
  if (!(number > 0) && !value.unit.empty()) return "-";  // not known unless it is measured
  std::array<char, 48> text{};
  if (value.unit == "s")
    std::snprintf(text.data(), text.size(), "%.3f us", number * 1e6);
  else if (value.unit == "s/byte")
    std::snprintf(text.data(), text.size(), "%.4f ns/byte", number * 1e9);
  else if (value.unit == "byte")
    std::snprintf(text.data(), text.size(), "%g KiB", number / 1024);
  else
    std::snprintf(text.data(), text.size(), "%g", number);
  return text.data();
}

std::string table_of(const Profile& profile) {
  std::array<char, 200> line{};
  std::snprintf(line.data(), line.size(), "%-38s%16s%16s  %s\n", "value", "built in", "measured", "meaning");
  std::string text = line.data();
  const Profile builtin;
  std::uint32_t bit = 1;
  for (const ProfileValue& value : profile_values()) {
    const std::string name = std::string{value.group} + "." + std::string{value.name};
    const std::string measured = (profile.measured & bit) != 0 ? in_units(value, value.of(profile)) : "-";
    std::snprintf(line.data(), line.size(), "%-38s%16s%16s  %s\n", name.c_str(), in_units(value, value.of(builtin)).c_str(),
                  measured.c_str(), std::string{value.meaning}.c_str());
    text += line.data();
    bit <<= 1U;
  }
  return text;
}

void show() {
  const Profile profile = load_profile(read_settings(), log::Level::warning);
  std::cout << machine_name() << "\nnumbers: " << profile.source << "\n\n" << table_of(profile);
}

// One of the two ranks.
void fit(const Options& options) {
  const Settings settings = read_settings();
  BenchOptions method;
  method.benchmark = "latency";
  method.from = method.to = Place::read("host");
  method.most = kCopyBeliefs.back().size.value;
  Session session(method);
  session.prepare(settings);
  const int rounds = options.quick ? 25 : 101;
  const auto [found, unrest] = measure_profile(session, settings, rounds);
  if (session.rank() != 0) return;
  // So much more than the quickest round is not the machine's own unevenness.
  constexpr double kBusy = 1.5;
  const bool busy = unrest > kBusy;
  const std::string note = "isthmus model fit, commit " + commit_of_sources() + ", " + date_now() + ", median of at most " +
                           std::to_string(rounds) + " rounds" + (busy ? ", on a busy machine" : "");
  if (const Status written = write_profile(options.file, found, note); !written.ok()) throw Failure(1, written.text());
  std::cout << machine_name() << "; two ranks, host memory, median of at most " << rounds << " rounds\n\n"
            << table_of(found) << "\nwritten to " << options.file << "\n";
  if (busy)
    std::cout << "something else was running: half of the rounds took more than " << kBusy
              << " times the quickest one; measure again when the machine is quiet\n";
}

void start_fit(Options options) {
  read_settings();
  if (options.file.empty()) options.file = profile_path();
  if (options.file.empty())
    throw Failure(2, "neither XDG_CACHE_HOME nor HOME names a folder for the file; give one with --output");
  // What was measured before has no say in it, and need not be readable.
  ::setenv("ISTHMUS_PROFILE", "builtin", 1);
  std::vector<std::string> arguments{"model", "fit", "--output", options.file};
  if (options.quick) arguments.emplace_back("--quick");
  if (inside_a_world()) return fit(options);
  become_ranks(2, arguments);
}

}  // namespace

void add_model_command(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "model",
      "Measure what messages and arithmetic cost on this machine, for the library to choose carriers and algorithms by");
  command
      ->add_option("WHAT", options->what,
                   "fit: measure between two ranks and keep the numbers, which ISTHMUS_PROFILE=auto then finds; show: print "
                   "those in force")
      ->required()
      ->check(CLI::IsMember({"fit", "show"}));
  command->add_flag("--quick", options->quick, "of fit: fewer rounds");
  command->add_option("--output", options->file, "of fit: write this file, not the one in the cache folder")
      ->type_name("FILE");
  command->callback([options] {
    if (options->what == "show")
      show();
    else
      start_fit(*options);
  });
}

}  // namespace ist::cli
