// What `isthmus run` was asked for.
//
// Who calls this : run fills it in; run_launcher, run_guardian and run_rank follow it.
// Threads        : a value.
// Ownership      : owns its texts.
// Errors         : checked by run.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ist::cli {

enum class Binding {
  when_cores_suffice,  // each rank to its share of the cores, unless there are more ranks than cores
  always,
  never
};

struct RunOptions {
  int ranks = 0;
  bool prefix_output = false;
  Binding binding = Binding::when_cores_suffice;
  double grace = 1.0;  // seconds that the other ranks have, after the first failure, to end by themselves
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::string> program;  // with its arguments
};

}  // namespace ist::cli
