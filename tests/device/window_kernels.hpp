// Kernels that use isthmus/device/window.cuh over memory of cudaMalloc, as host code calls them.
//
// Who calls this : window_view_test.cpp, in ranks that it forked.
// Threads        : one.
// Ownership      : memory belongs to whoever allocated it.
// Errors         : in Found.
#pragma once

#include <isthmus/team.h>

#include <cstdint>
#include <string>

namespace window_kernels {

struct Found {
  unsigned long long wrong = 0;  // bytes and numbers
  int status = 0;                // of the first call in a kernel that was not ok (ist::device::Status)
  std::string refused;           // what the runtime had against it
};

// Registered: three rooms of bytes, and then words that are zero at first: 0 what has come, 1 what was read, 2 a sum at PE 0, 3 another one at each
// PE, 4 one that nobody writes, 5 an element for each PE of at most 8, 13 and 14 what has come and what was read of grids.
constexpr std::uint64_t kRoom = std::uint64_t{1} << 16;
constexpr std::uint64_t kWords = 3 * kRoom;
constexpr std::uint64_t kBytes = kWords + std::uint64_t{16} * 8;

// Zeros. Null: `refused` says why.
void* allocate(int device, std::uint64_t bytes, std::string& refused);
void release(void* memory);

// Each epoch: a put with a signal to the right, a get from the left, an element and an answer to the left, and an atomic at PE 0.
Found exchange(const ist_window_view& window, int device, std::uint32_t epochs);
// The same puts by grids of kBlocks blocks, which meet in words of `team`.
constexpr unsigned kBlocks = 5;
Found exchange_as_grids(const ist_team_view& team, const ist_window_view& window, int device, std::uint32_t epochs);
// kAdders threads add 1 to word 3 of every PE, so often.
constexpr unsigned kAdders = 64;
Found add_everywhere(const ist_window_view& window, int device, std::uint32_t times);
// Waits for word 4, without a deadline.
Found wait_for_ever(const ist_window_view& window, int device);

}  // namespace window_kernels
