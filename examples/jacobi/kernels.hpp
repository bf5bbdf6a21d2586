// The kernels that compute on a GPU, as functions that launch them.
//
// Who calls this : cuda.cpp and cuda_*.cpp, pixels; implemented by sweep.cu and persistent.cu, and for a test by the processor (jacobi_played.cpp).
// Threads        : one; the device that is current.
// Ownership      : none; all addresses are of device memory unless a comment says otherwise.
// Errors         : std::runtime_error of a launch; what goes wrong in a kernel is left in a Failure.
#pragma once

#include <cuda_runtime.h>
#include <isthmus/team.h>

#include <cstdint>
#include <string>

namespace jacobi {

// One rank's cells: rows 1 to `rows` are its own, 0 and rows + 1 the neighbours'. From one row to the next are `pitch` floats, a multiple
// of 32; what lies behind the last column is 0, and stays so.
struct Cells {
  float* levels[2] = {nullptr, nullptr};
  std::int64_t pitch = 0;
  int columns = 0;
  int rows = 0;
};
inline std::int64_t pitch_of(std::int64_t columns) { return (columns + 31) / 32 * 32; }

// How a GPU goes about it.
struct Tiling {
  int batch = 8;    // rows that a thread loads at once, 4 or 8
  int height = 16;  // rows of a tile
  int fine_rows =
      0;  // so many of the last rows are in tiles of kFineHeight, so that all multiprocessors end at about the same time
};
inline constexpr int kFineHeight = 8;

// From one level to the other.
struct Sweep {
  const float* from;
  float* to;
  // Halos of neighbours, where row 1 and the last one are stored, too; or null.
  float* beside_up;
  float* beside_down;
  std::int64_t pitch;
  int columns;
  int rows;
  int height, fine_rows;  // of the tiling
  float factor;
  float* sum;      // gets the squares of what changes added; or null
  float* cleared;  // becomes 0; the sum of an iteration to come
};

// Why a kernel gave up, in host memory that kernels reach; 0 where none did.
enum class Awaited : int { above, below, norm, grid };
struct Failure {
  std::uint64_t word;
  std::string text() const;
};

// What a kernel has to know of the other ranks. Flags say which step's rows are here, from 1 on over all runs.
struct Others {
  ist_team_view view;
  int up, down;            // PEs
  std::uint64_t* flags;    // in the heap: of the neighbour above, and of the one below
  std::uint32_t* arrived;  // of each side: blocks that are through with it
  std::uint64_t* inbox;    // in the heap: of kRing norms one packet from each PE, the step above and the sum below
  std::uint64_t* failure;  // in host memory
};
inline constexpr int kRing = 4;
#ifdef JACOBI_PLAYED  // by a test, whose processor is slow
inline constexpr std::uint64_t kDeadline = 100000000000;
#else
inline constexpr std::uint64_t kDeadline = 5000000000;  // ns that a kernel waits for another rank's
#endif

// A norm that all PEs add up: of `step`, the `number`th that they do.
struct Norm {
  std::uint64_t step;
  std::uint64_t number;
  const float* sum;          // this PE's
  std::uint64_t* published;  // in host memory: the step's lower half above, and the sum of all below
};

// The outermost rows alone, those between, or all, the outermost first.
enum class Share { sides, interior, all };
void launch_sweep(const Sweep& sweep, Share share, int batch, cudaStream_t stream);
// All, after the neighbours' rows of step - 1 are here; its own outermost rows are announced to them. `before`: of the step before, or null.
void launch_step(const Sweep& sweep, const Others& others, std::uint64_t step, const Norm* before, int batch,
                 cudaStream_t stream);
void launch_norm(const Others& others, const Norm& norm, cudaStream_t stream);
// total becomes the lower half of *published, in host memory, whose upper half becomes how often this was done: *times.
void launch_publish(const float* total, std::uint32_t* times, std::uint64_t* published, cudaStream_t stream);

// Both levels: 0 but for the first and the last column, which are edges[row] in rows 0 to rows + 1.
void launch_fill(const Cells& cells, const float* edges, cudaStream_t stream);
void launch_copy(float* to, const float* from, std::int64_t floats, cudaStream_t stream);

// All iterations in one launch.
struct Outcome {  // in host memory
  std::uint64_t failure;
  int iterations;  // whose result counts
  int run;         // one more where a norm ended it
  float first_norm, norm;
};
struct Scratch {  // all 0 at the launch
  unsigned long long tickets;
  std::uint64_t ended;   // so many iterations are over
  std::uint64_t judged;  // so many norms were looked at
  int stop_at;           // the iteration behind which all end; 0: none
  int failed;
  int result;  // the iteration whose norm ended it; 0: none
  float first_norm, norm;
  std::uint32_t over[kRing];  // pieces of an iteration
  float sums[kRing];
};
struct Job {
  Cells cells;
  float* beside_up[2];  // by level
  float* beside_down[2];
  int height, fine_rows;  // of the tiling
  float factor;
  int iterations, nccheck;
  double tolerance;
  std::uint64_t steps, norms;  // of all runs before
  Others others;
  Scratch* scratch;
  std::uint64_t*
      progress;  // a word for each row at most, 0 at the launch: tiles that are over of each row or band of them, in all iterations together
  Outcome* outcome;
};
void launch_persistent(const Job& job, int batch, cudaStream_t stream);

}  // namespace jacobi
