#include "cli/run.hpp"

int main(int argc, char** argv) {
  CLI::App app{"the launcher alone", "isthmus"};
  app.require_subcommand(1);
  int exit_status = 0;
  try {
    add_run_command(app, exit_status);
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return exit_status;
}
