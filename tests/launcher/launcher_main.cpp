#include "cli/run.hpp"

#include <iostream>

#include "cli/failure.hpp"

int main(int argc, char** argv) {
  CLI::App app{"the launcher alone", "isthmus"};
  app.require_subcommand(1);
  int exit_status = 0;
  try {
    ist::cli::add_run_command(app, exit_status);
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const ist::cli::Failure& failure) {
    std::cerr << failure.what() << '\n';
    return failure.exit_status();
  }
  return exit_status;
}
