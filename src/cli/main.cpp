#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "cli/bench.hpp"
#include "cli/explain.hpp"
#include "cli/failure.hpp"
#include "cli/info.hpp"
#include "cli/model.hpp"
#include "cli/run.hpp"

namespace {

// CLI11 has a number of its own for each mistake; people and scripts know 2 as "used wrongly".
constexpr int kUsedWrongly = 2;

std::string program_name(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? "isthmus" : "isthmus " + chosen.front()->get_name();
}

// CLI11 would only say that a subcommand is required.
void must_be_a_command(const CLI::App& app, const std::string& word) {
  if (word.empty() || word == "-h" || word == "--help" || word == "--version") return;
  std::string known;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->check_name(word)) return;
    known += (known.empty() ? "" : ", ") + command->get_name();
  }
  throw ist::cli::Failure(kUsedWrongly, (word.front() == '-' ? "unknown option \"" : "unknown command \"") + word +
                                            "\": expected one of " + known);
}

// What was to be read has not been written: a disk may be full.
int unless_output_was_lost(int exit_status) {
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && !std::cout.flush().fail();
  if (written || exit_status != 0) return exit_status;
  std::cerr << "isthmus: standard output cannot be written: " << std::strerror(errno) << '\n';
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Messages between processes whose buffers live in host, CUDA or OpenCL memory", "isthmus"};
  app.set_version_flag("--version", ist::cli::version_line());
  app.require_subcommand(1);
  int exit_status = 0;
  try {
    ist::cli::add_run_command(app, exit_status);
    ist::cli::add_info_command(app);
    ist::cli::add_bench_command(app);
    ist::cli::add_explain_command(app);
    ist::cli::add_model_command(app);
    if (argc == 1) throw ist::cli::Failure(kUsedWrongly, "tell what to do\n\n" + app.help());
    must_be_a_command(app, argv[1]);
    app.parse(argc, argv);
  } catch (const CLI::Success& answer) {
    return unless_output_was_lost(app.exit(answer));
  } catch (const CLI::ParseError& error) {
    std::cerr << program_name(app) << ": " << error.what() << "; see " << program_name(app) << " --help\n";
    return kUsedWrongly;
  } catch (const ist::cli::Failure& failure) {
    if (*failure.what() != '\0') std::cerr << program_name(app) << ": " << failure.what() << '\n';
    return failure.exit_status();
  } catch (const std::exception& error) {
    std::cerr << program_name(app) << ": " << error.what() << '\n';
    return 1;
  }
  return unless_output_was_lost(exit_status);
}
