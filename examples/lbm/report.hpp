// What a run has found, for people and for programs.
//
// Who calls this : lbm.cpp, on rank 0; cuda_run.cpp fills in what it knows.
// Threads        : one.
// Ownership      : values.
// Errors         : std::runtime_error where the file cannot be written.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace lbm {

// The same by one rank.
struct Compared {
  bool done = false, same = true;
  double seconds = 0;  // that it took
  std::string text;    // why it was not done, or what is not the same
};

struct Report {
  std::string verdict, flow, exchange, text, halos;  // text: what is known of the result; halos: who gets what
  std::array<std::int64_t, 3> cells{};
  std::array<int, 3> ranks{};
  std::int64_t steps = 0;
  double seconds = 0, lost = 0;  // lost: mass, of the whole
  Compared host;                 // by the host's loop
  // Of devices alone.
  std::string device, tile;  // empty: the host
  Compared alone;            // by rank 0's device
  double copy_rate = 0,
         copy_rate_alone = 0;  // bytes a second that all ranks' devices, and rank 0's, read and write when they only copy

  int size() const { return ranks[0] * ranks[1] * ranks[2]; }
  double updates() const { return static_cast<double>(cells[0] * cells[1] * cells[2]) * static_cast<double>(steps); }
};

// Read and written of each update: 19 populations in single precision.
constexpr double kBytesOfUpdate = 152;

void print(const Report& report);
void write_json(const Report& report, const std::string& path);

}  // namespace lbm
