#include "cli/run.hpp"

#include <algorithm>
#include <charconv>
#include <memory>

#include "cli/failure.hpp"
#include "cli/run_launcher.hpp"
#include "cli/run_options.hpp"

namespace ist::cli {
namespace {

constexpr int kMostRanks = 1024;

constexpr const char* kFooter =
    "Everything after the options is the program with its arguments. Rank 0 reads the command's standard input, the others "
    "read nothing. Each rank finds ISTHMUS_RANK, ISTHMUS_SIZE, ISTHMUS_LOCAL_RANK and ISTHMUS_LOCAL_SIZE in its "
    "environment; "
    "RANK and WORLD_SIZE are left alone, because they announce another way of starting. Ranks take devices in turn: local "
    "rank modulo number of devices.\n"
    "The exit status is that of the first rank that failed, or 128 + signal. The other ranks then have a moment to end by "
    "themselves, and are ended within 2 s. INT, TERM, HUP, QUIT, USR1, USR2, TSTP and CONT are passed on to all ranks and "
    "the processes they started.";

std::string check_ranks(const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value >= 1 && value <= kMostRanks) return {};
  if (text.starts_with("p")) return "-np is mpirun's and oshrun's word: here it is -n, as in isthmus run -n 4 PROGRAM";
  return "the number of ranks must be from 1 to " + std::to_string(kMostRanks) + ", not \"" + text + "\"";
}

std::string check_grace(const std::string& text) {
  double value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value >= 0 && value <= 3600) return {};
  return "expected a number of seconds from 0 to 3600, not \"" + text + "\"";
}

std::string check_assignment(const std::string& text) {
  const auto equals = text.find('=');
  if (equals != std::string::npos && equals > 0) return {};
  return "expected NAME=VALUE, not \"" + text + "\"";
}

// Behind the program all words are its own.
void must_have_ranks(const RunOptions& options, const std::vector<std::string>& rest) {
  if (options.ranks != 0) return;
  const bool is_late =
      std::any_of(rest.begin(), rest.end(), [](const std::string& word) { return word == "-n" || word == "--ranks"; });
  throw Failure(
      2, is_late ? "-n comes before the program: what stands behind that is for the program, as in isthmus run -n 4 PROGRAM"
                 : "-n is missing: tell how many ranks to start, as in isthmus run -n 4 PROGRAM");
}

// What was left over is the program, unless it is a mistyped option.
void take_program(RunOptions& options, std::vector<std::string> rest) {
  const bool separated = !rest.empty() && rest.front() == "--";
  if (separated) rest.erase(rest.begin());
  if (!separated && !rest.empty() && rest.front().starts_with("-"))
    throw CLI::ExtrasError("run", {rest.front() + " (is it an option of the program? put it after the program's name)"});
  must_have_ranks(options, rest);
  if (rest.empty()) throw Failure(2, "the program is missing: tell what to start, as in isthmus run -n 4 PROGRAM");
  options.program = std::move(rest);
}

}  // namespace

void add_run_command(CLI::App& app, int& exit_status) {
  CLI::App* run = app.add_subcommand("run", "start the ranks of a job on this machine");
  auto options = std::make_shared<RunOptions>();
  run->footer(kFooter);
  run->prefix_command();
  // Shown in the help, and the reason why "--" is understood; but it takes no word, since the words after it could then be
  // mistaken for options of this command. They are what remains.
  run->validate_positionals();
  run->add_option("PROGRAM", "the program and its arguments")
      ->expected(1, -1)
      ->type_name("")
      ->check(CLI::Validator([](const std::string&) { return std::string{"remains"}; }, ""));
  run->add_option_function<std::string>(
         "-n,--ranks", [options](const std::string& text) { options->ranks = std::stoi(text); },
         "how many ranks to start; must be given")
      ->check(CLI::Validator(check_ranks, ""))
      ->type_name("RANKS");
  run->add_flag("-l,--prefix-output", options->prefix_output,
                "begin every line of output with the rank it is from, \"[3] \"");
  run->add_flag_callback(
      "--bind", [options] { options->binding = Binding::always; }, "bind ranks to cores, even if they have to share some");
  run->add_flag_callback(
         "--no-bind", [options] { options->binding = Binding::never; },
         "let every rank use every core (otherwise each is bound to its share while there are cores enough)")
      ->excludes("--bind");
  run->add_option_function<std::vector<std::string>>(
         "--env",
         [options](const std::vector<std::string>& assignments) {
           for (const std::string& one : assignments)
             options->environment.emplace_back(one.substr(0, one.find('=')), one.substr(one.find('=') + 1));
         },
         "set NAME=VALUE in the environment of all ranks; may be repeated")
      ->allow_extra_args(false)
      ->check(CLI::Validator(check_assignment, ""))
      ->type_name("NAME=VALUE");
  run->add_option("--grace", options->grace, "seconds the others have to end by themselves after a failure (default 1)")
      ->check(CLI::Validator(check_grace, ""))
      ->type_name("SECONDS");
  run->callback([options, run, &exit_status] {
    take_program(*options, run->remaining());
    exit_status = launch(*options);
  });
}

}  // namespace ist::cli
