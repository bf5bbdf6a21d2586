// The kernels of the Himeno benchmark, as host code launches them.
//
// Who calls this : cuda_field.cpp, cuda_ways.cpp, cuda_persistent.cpp; cuda_sweeps.cu and cuda_persistent.cu implement it,
//                  and a test that plays them.
// Threads        : the device that is current.
// Ownership      : none; arrays are the caller's.
// Errors         : std::runtime_error with the call and the driver's words.
//
// Indices count elements of the array, halos among them. Cells are taken four at a time, along k, at multiples of four.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <string>

#include "isthmus/team.h"

namespace himeno {

inline constexpr int kQuad = 4;

// Both inclusive; last < first: nothing.
struct Box {
  int first[3];
  int last[3];
};

struct Shape {
  int row;    // elements from a cell to the next one along j
  int plane;  // along i
};

// a0 to a3, b0 to b2, c0 to c2, bnd, wrk1.
inline constexpr int kCoefficients = 12;
struct Coefficients {
  const float* of[kCoefficients];
};

// Boxes whose quads are numbered one after the other: box n has those from begin[n] to begin[n + 1] - 1.
inline constexpr int kMostBoxes = 7;
struct Work {
  int boxes = 0;
  Box box[kMostBoxes];
  unsigned begin[kMostBoxes + 1] = {0};
  unsigned quads() const { return begin[boxes]; }
  void add(const Box& more) {
    const int across = more.last[2] / kQuad - more.first[2] / kQuad + 1;
    for (int d = 0; d < 3; ++d)
      if (more.last[d] < more.first[d]) return;
    box[boxes] = more;
    begin[boxes + 1] = begin[boxes] + static_cast<unsigned>(across) *
                                          static_cast<unsigned>(more.last[1] - more.first[1] + 1) *
                                          static_cast<unsigned>(more.last[0] - more.first[0] + 1);
    ++boxes;
  }
};

// Of a whole array: where it lies in the box, and what the box is.
struct Extent {
  std::int64_t all[3];
  std::int64_t first[3];  // global index of the array's element 0, which may be -1 or less
  std::int64_t total[3];
};
// All elements: coefficients in `arrays`, in the order of Coefficients, and both levels of p. Beyond the box p is 0.
void fill_coefficients(cudaStream_t stream, std::int64_t elements, float* const (&arrays)[kCoefficients], float b);
void fill_levels(cudaStream_t stream, const Extent& extent, float* p0, float* p1);

// One sweep over the work; *gosa gets its sum added.
void sweep(cudaStream_t stream, const Shape& shape, const Coefficients& with, const float* from, float* to, const Work& work,
           double* gosa);

// Adds to *unlike how many of the cells in `box` of one are not, bit by bit, those of the other, where they are `shift` further on.
struct Compared {
  const float* one;
  Shape shape;
  Box box;
  const float* other;
  Shape other_shape;
  int shift[3];
};
void compare(cudaStream_t stream, const Compared& compared, unsigned long long* unlike);

// ---- all iterations in one kernel: cuda_persistent.cuh says how ----

inline constexpr int kMostSides = 18;          // faces and edges
inline constexpr unsigned kMostPushers = 512;  // blocks with cells that neighbours get
inline constexpr unsigned kMostThreads = 256;

// A neighbour, `direction` away. `shift`: from a cell here to where the neighbour has it in its halo. `number`: of the flags that it sets
// here; `opposite`: of those that are set there.
struct Side {
  int direction[3];
  int pe;
  int number;
  int opposite;
  int shift;
  unsigned pushers;  // its blocks that set flags
};

// How a kernel ended: the first block that waited in vain.
struct Ended {
  int status;  // ist::device::Status
  unsigned block;
  unsigned what;  // 0: for the own blocks, 1: for a neighbour, 2: for the sum over all
  int pe;         // the neighbour
  std::uint64_t iteration;
};

// Planes that neighbours along i send in packets, each of which says of which iteration it is: nobody waits for a flag behind them. Symmetric;
// two iterations' by turns, from below and from above, rows and quads as in the array, 32 bytes for each quad.
struct Packets {
  unsigned char* base;  // null: halos and flags
  int rows, quads;      // of a plane, halos among them
  int pe[2];            // who is below and above; -1: nobody
};

struct Persistent {
  ist_team_view view;
  Shape shape;
  Coefficients with;
  float* p[2];
  Work border, interior;  // those that neighbours get, and the rest
  Box inner;              // all own cells
  Box changing;           // without those whose value never changes
  Packets packets;
  bool keeps;  // blocks keep the coefficients of the interior, of which no thread has more than four cells
  // Quads of the interior that each thread of a block computes before the block takes the next ones in turn; 0: every block has its own.
  unsigned rounds;
  unsigned* taken;  // how many times blocks have taken some; 0 at the start of each launch
  bool fresh;       // halos are those of the beginning, and nobody has sent anything
  int sides;
  Side side[kMostSides];
  unsigned pushers;        // own blocks with cells of the border: the first ones
  std::uint64_t* flags;    // symmetric; by number, kMostPushers each
  std::uint64_t* arrived;  // blocks that have come to the end of an iteration; 0 at the start of each launch
  double* partial;         // by iteration, one for each block
  double* sums;            // by iteration, over all PEs
  std::uint64_t before;    // iterations of earlier launches
  unsigned iterations;
  std::uint64_t deadline;  // ns
  Ended* ended;
};
// In a block the first warp has no cells of the border: it has to tell the others of the block's arrival.
inline constexpr unsigned kFirstAtBorder = 32;
// As many as a block may have, kMostThreads or less, in full warps.
unsigned most_threads();
// How many blocks of so many threads are resident at once; and the launch of so many that compute, and one more that sums.
unsigned most_blocks(bool packets, bool keeps, unsigned threads);
void iterate(cudaStream_t stream, const Persistent& job, unsigned blocks, unsigned threads);

}  // namespace himeno
