// A file of a run's figures, in JSON. In every program's: `program`, `ranks`, `verified`; `ways`, a list of figures or of why a way is not_here;
// `alone`, the same of one rank, or null; and, where it was measured, copy_rate and copy_rate_alone, what all ranks and rank 0 reach in the unit of
// the ways where they only copy. What else there is, is of each program.
//
// Who calls this : jacobi, pixels, particles, lbm and himeno.
// Threads        : one.
// Ownership      : none.
// Errors         : Failure on all ranks alike ahead of the run; std::runtime_error on the rank that writes. Both name the file and why.
#pragma once

#include <isthmus/isthmus.hpp>
#include <string>

namespace example {

// Collective, ahead of the run, so that it does not lose its figures in the end: whether rank 0 can write a file of this name. An empty
// name is none. A file that there is stays as it is, and none is left behind.
void must_be_writable(const isthmus::Comm& comm, const std::string& path);

// One of `ways`, or `alone`.
struct Figures {
  std::string name;
  int ranks = 1;
  double seconds = 0;  // of a step or an iteration
  double rate = 0;
  std::string unit;
  bool verified = true;
};
template <class Json>
Json json_of(const Figures& figures) {
  return Json{{"name", figures.name}, {"ranks", figures.ranks}, {"seconds", figures.seconds},
              {"rate", figures.rate}, {"unit", figures.unit},   {"verified", figures.verified}};
}

void write_text(const std::string& path, const std::string& text);

// `Json`: one of nlohmann's, whose header takes long to compile.
template <class Json>
void write_json(const std::string& path, const Json& json) {
  write_text(path, json.dump(2) + '\n');
}

}  // namespace example
