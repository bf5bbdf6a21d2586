// The kernels of lbm, as calls that put them into a stream.
//
// Who calls this : cuda_flow.cpp and the exchanges.
// Threads        : one; on the current device.
// Ownership      : none; all addresses are of device memory.
// Errors         : std::runtime_error with the driver's words where a launch is refused. What a kernel that waits has found is in Waits::lost.
#pragma once

#include <cuda_runtime.h>

#include "begin.hpp"
#include "cut.hpp"
#include "isthmus/team.h"
#include "parcels.hpp"

namespace lbm {

// One step, from a level to the other.
struct Sweep {
  Shape shape;
  const float* from;
  float* to;
  float omega, lid;
  bool has_walls;
};

// How threads of a block lie over cells, x * y <= kMostThreads, and what is to leave the cache early: nothing, what is stored, or that and what
// is read once.
enum class Caching { plain, stream_out, stream_both };
constexpr int kMostThreads = 256;
struct Tile {
  int x = 64, y = 4;
  Caching caching = Caching::plain;
};
void sweep(const Sweep& of, const Box& box, const Tile& tile, cudaStream_t stream);
void sweep_border(const Sweep& of, const Border& border, cudaStream_t stream);

// The border, whose kernel waits for the neighbours' flags, stores what crosses into their halos, and then sets its flags there. A neighbour's
// flag is the number of the step whose halos it has brought, and for which it has read the ones before: only then may they be overwritten.
struct Waits {
  ist_team_view view;
  std::uint64_t* flags;    // own, one for each direction
  int pe[kDirections];     // who lies there; -1: nobody
  std::uint64_t step;      // whose halos are read
  std::uint64_t deadline;  // nanoseconds
  unsigned* done;          // blocks of this launch; 0 between launches
  int* lost;               // 1 + the direction from which nothing came; 0
};
void sweep_border(const Sweep& of, const Border& border, const Crossing& crossing, const Waits& waits, cudaStream_t stream);

// From the field into the buffers, or back.
void pack(const Parcels& parcels, const Shape& shape, const float* field, cudaStream_t stream);
void unpack(const Parcels& parcels, const Shape& shape, float* field, cudaStream_t stream);

// Own cells and halos. x, y and across: of each place of the whole box, along dimensions 2, 1 and 0.
struct Start {
  Vortices vortices;
  const Angle *x, *y;
  const double* across;
  int first[3], all[3];
  double tau;
};
void begin(const Start& start, const Shape& shape, float* field, cudaStream_t stream);

// Of each layer of the part along dimension 0: density beyond 1 and velocities squared, added up.
void measure(const Shape& shape, const float* field, double2* layers, cudaStream_t stream);
// prints[q * layers of the whole box + layer of the whole box]: the sum of print_of over the part's cells.
void print(const Start& start, const Shape& shape, const float* field, std::uint64_t* prints, cudaStream_t stream);
// For the roofline: as many floats, a multiple of 4.
void copy(const float* from, float* to, std::int64_t count, cudaStream_t stream);

}  // namespace lbm
