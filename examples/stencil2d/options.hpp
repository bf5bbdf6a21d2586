// What the command line asks for.
//
// Who calls this : main.cpp; run.cpp and report.cpp read the values.
// Threads        : one.
// Ownership      : values.
// Errors         : parse_options says what is wrong, on rank 0 only, and gives the exit status.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "field.hpp"
#include "image.hpp"

namespace stencil {

struct Options {
  std::string input;      // a PNG; empty: synthetic data of `size`
  Extent size{512, 512};  // of the whole field
  Extent grid;            // of ranks; 0x0: chosen
  int halo = 1;           // points, and steps between two exchanges
  int iterations = 100;
  Precision precision = Precision::single_precision;
  bool normalised = true;       // weights of sum 1; otherwise SHOC's, of sum 1.05
  std::string device = "auto";  // auto, cuda, opencl or host
  std::vector<std::string> exchanges{"isthmus", "staged"};
  int frames = 0;
  std::string output;  // folder for pictures; empty: none
  Palette palette = Palette::grey;
  bool verify = true;
  std::string json;       // file for the results; empty: none
  int corrupt_step = -1;  // for the tests: spoil one point before this step, to see that the check notices

  Weights weights() const { return normalised ? Weights{}.normalised() : Weights{}; }
};

// The options, or the status to exit with: 0 after --help, 2 after a mistake. Only a `speaker` prints.
std::variant<Options, int> parse_options(int argc, char** argv, bool speaker);

}  // namespace stencil
