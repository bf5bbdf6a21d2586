// Kernels that use isthmus/device.cuh over the view of a symmetric heap, as host code calls them.
//
// Who calls this : heap_view_test.cpp, in ranks that it forked.
// Threads        : one.
// Ownership      : none.
// Errors         : in Found.
#pragma once

#include <isthmus/team.h>

#include <cstdint>
#include <string>

namespace heap_kernels {

struct Found {
  unsigned long long wrong = 0;  // bytes, numbers and sums
  int status = 0;                // of the first call in a kernel that was not ok (ist::device::Status)
  std::string refused;           // what the runtime had against a launch
};

// Where everything lies in the heap: `data` has kData bytes, `words` four zeros.
constexpr std::uint64_t kData = std::uint64_t{6} << 16;
struct Places {
  unsigned char* data;
  std::uint64_t* words;
};

// How many devices a process would find; asked in one of its own, since no driver may be touched before a fork.
int devices();
// Each epoch: a put with a signal to the right, packets both ways, a collective call, a barrier, and an atomic at PE 0.
Found exchange(const ist_team_view& view, int device, const Places& places, std::uint32_t epochs);
// A grid whose blocks put to the right, and meet with all PEs.
Found meet_as_grids(const ist_team_view& view, int device, const Places& places, std::uint32_t epochs);
// kAdders threads add 1 to the word behind that of exchange(), at every PE, so often.
constexpr unsigned kAdders = 64;
Found add_everywhere(const ist_team_view& view, int device, const Places& places, std::uint32_t times);
// Waits for a word that nobody writes, without a deadline.
Found wait_for_ever(const ist_team_view& view, int device, const Places& places);

}  // namespace heap_kernels
