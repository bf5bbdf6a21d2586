// A rank's part of the picture, and the kind of memory that it lies in.
//
// Who calls this : pixels.cpp; implemented by host.cpp and cuda.cpp.
// Threads        : one.
// Ownership      : a Picture owns its pixels, of which result() is a view.
// Errors         : isthmus::Error, std::runtime_error; Mistake on all ranks alike where there is no such device.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/stencil.hpp"

namespace pixels {

struct Options {
  std::int64_t width = 3000, height = 16000;
  int steps = 20;
  std::string device = "host", exchange = "all", json, spoil = "no";
  std::int64_t cut_rows() const { return height - 2; }
};

inline float start(std::int64_t x, std::int64_t y) {
  return static_cast<float>((x * 29 + y * 71 + x * y % 13) % 256) / 255.0F;
}

struct Times {
  double seconds = 0;  // of a step, of the slowest rank
  double compute = 0;  // of whom computes longest; the rest is the network, and waiting
};

// Who has the rows beside: none at the top of the picture, and none at its bottom.
struct Beside {
  int up, down;
  explicit Beside(const isthmus::Comm& comm)
      : up(comm.rank() > 0 ? comm.rank() - 1 : isthmus::proc_null),
        down(comm.rank() + 1 < comm.size() ? comm.rank() + 1 : isthmus::proc_null) {}
};

class Picture {
 public:
  virtual ~Picture() = default;
  // Collective, from the start; the result is in level steps % 2.
  virtual Times run(int steps) = 0;
  // That level in host memory, until the next call.
  virtual example::Field result(int level) = 0;
};

class Machine {
 public:
  virtual ~Machine() = default;
  // For people: where pixels lie.
  virtual std::string text() const = 0;
  virtual const std::vector<std::string>& ways() const = 0;
  // Gpix/s that rank 0 reaches where it only copies the whole picture; 0: nobody has looked.
  virtual double copy_rate() = 0;
  // Of the ranks of comm, and collective over them.
  virtual std::unique_ptr<Picture> make(const isthmus::Comm& comm, const std::string& way) = 0;
};

// Rows by plain messages, and by what is put into streams.
const std::vector<std::string>& host_ways();
const std::vector<std::string>& cuda_ways();
std::unique_ptr<Machine> make_host_machine(const isthmus::World& world, const Options& options);
// Collective.
std::unique_ptr<Machine> make_cuda_machine(const isthmus::World& world, const Options& options);

// Sends the rank's first and last row, and receives the ones beside them.
struct Rows {
  isthmus::Buffer above, first, last, below;
};
void exchange(const isthmus::Comm& comm, const Rows& rows, std::int64_t columns);

}  // namespace pixels
