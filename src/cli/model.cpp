#include "cli/model.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/bench_report.hpp"
#include "cli/failure.hpp"
#include "cli/info.hpp"
#include "cli/machine.hpp"
#include "cli/model_devices.hpp"
#include "cli/model_measure.hpp"
#include "cli/own_ranks.hpp"
#include "cli/settings_page.hpp"
#include "collective/learned_copies.hpp"
#include "protocol/copy_beliefs.hpp"

namespace ist::cli {
namespace {

struct Options {
  std::string what;
  std::string file;
  bool quick = false;
};

// "0.100 us", "0.100 ns/byte", "128 KiB", "every size"
std::string in_units(const ProfileValue& value, double number) {
  if (!(number > 0) && !value.unit.empty()) return "-";  // not known unless it is measured
  std::array<char, 48> text{};
  if (value.unit == "s")
    std::snprintf(text.data(), text.size(), "%.3f us", number * 1e6);
  else if (value.unit == "s/byte")
    std::snprintf(text.data(), text.size(), "%.4f ns/byte", number * 1e9);
  else if (value.unit == "byte" && number >= kNeverOnDevice)
    return "every size";
  else if (value.unit == "byte")
    std::snprintf(text.data(), text.size(), "%g KiB", number / 1024);
  else
    std::snprintf(text.data(), text.size(), "%g", number);
  return text.data();
}

// Not measured here, but found out by a program?
bool is_learned(const ProfileValue& value, const Profile& profile) {
  return !profile.learned.empty() && value.message != nullptr && value.of(profile) > 0 && can_be_learned(value.message);
}

std::string table_of(const Profile& profile) {
  std::array<char, 200> line{};
  std::snprintf(line.data(), line.size(), "%-38s%16s%16s  %s\n", "value", "built in", "measured", "meaning");
  std::string text = line.data();
  const Profile builtin;
  std::uint64_t bit = 1;
  for (const ProfileValue& value : profile_values()) {
    const std::string name = std::string{value.group} + "." + std::string{value.name};
    const bool known = (profile.measured & bit) != 0 || is_learned(value, profile);
    const std::string measured = known ? in_units(value, value.of(profile)) : "-";
    std::snprintf(line.data(), line.size(), "%-38s%16s%16s  %s\n", name.c_str(), in_units(value, value.of(builtin)).c_str(),
                  measured.c_str(), std::string{value.meaning}.c_str());
    text += line.data();
    bit <<= 1U;
  }
  return text;
}

std::string in_words(const DevicesNamed& devices) {
  if (devices.uuids.empty()) return "";
  std::string text = devices.driver;
  for (const std::string& uuid : devices.uuids) text += ", " + uuid;
  return text + "\n";
}

void show() {
  const Settings settings = read_settings();
  const Profile profile = load_profile(settings, log::Level::warning, [&settings] { return devices_here(settings); });
  std::cout << machine_name() << "\n" << in_words(devices_here(settings)) << "numbers: " << profile.source << "\n";
  if (!profile.learned.empty()) std::cout << "one copy or two: also as programs found out, " << profile.learned << "\n";
  if (!profile.left_out.empty()) std::cout << "numbers of devices: built in, since " << profile.left_out << "\n";
  std::cout << "\n" << table_of(profile);
}

// By one of the two ranks; the numbers are rank 0's.
struct Found {
  int rank = 0;
  Measured measured;
  std::vector<std::string> built_in;  // what is, and why
};

Found measure(const Settings& settings, int rounds) {
  Found found;
  bool devices = false;
  {
    BenchOptions method;
    method.benchmark = "latency";
    method.from = method.to = Place::read("host");
    method.most = kCopyBeliefs.back().size.value;
    Session session(method, "shared_heap=0");  // memory as programs have it
    session.prepare(settings);
    found.rank = session.rank();
    found.measured = measure_profile(session, settings, rounds);
    const int mine = session.kinds().find(KindId::cuda) != nullptr ? 1 : 0;
    const auto both = session.from_all(std::span<const int>{&mine, 1});
    devices = std::find(both.begin(), both.end(), 0) == both.end();
  }
  if (devices)
    found.built_in = measure_devices(settings, rounds, found.measured.profile);
  else
    found.built_in = {"numbers of devices as built in: no CUDA device is seen here, or CUDA is left out (isthmus info)"};
  return found;
}

void fit(const Options& options) {
  const Settings settings = read_settings();
  const int rounds = options.quick ? 25 : 101;
  const Found found = measure(settings, rounds);
  if (found.rank != 0) return;
  const Profile& profile = found.measured.profile;
  // So much more than the quickest round is not the machine's own unevenness.
  constexpr double kBusy = 1.5;
  const bool busy = found.measured.unrest > kBusy;
  const std::string note = "isthmus model fit, commit " + commit_of_sources() + ", " + date_now() + ", median of at most " +
                           std::to_string(rounds) + " rounds" + (busy ? ", on a busy machine" : "");
  if (const Status written = write_profile(options.file, profile, note); !written.ok()) throw Failure(1, written.text());
  std::cout << machine_name() << "; two ranks, median of at most " << rounds << " rounds\n"
            << in_words(profile.devices) << "\n"
            << table_of(profile) << "\n";
  for (const std::string& words : found.built_in) std::cout << words << "\n";
  std::cout << "written to " << options.file << "\n";
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
  CLI::App* command = app.add_subcommand("model",
                                         "Measure what messages, copies of devices and arithmetic cost on this machine, for "
                                         "the library to choose carriers and algorithms by");
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
    if (options->what != "show") return start_fit(*options);
    if (options->quick || !options->file.empty())
      throw Failure(2, std::string{options->quick ? "--quick" : "--output"} +
                           " is of fit: show measures nothing, and prints what is in force");
    show();
  });
}

}  // namespace ist::cli
