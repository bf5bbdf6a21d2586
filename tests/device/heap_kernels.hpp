// Kernels that use isthmus/device.cuh over the view of a symmetric heap, as host code calls them.
//
// Who calls this : heap_view_test.cpp and host_heap_test.cpp, in ranks that it forked.
// Threads        : one.
// Ownership      : none.
// Errors         : in Found.
#pragma once

#include <isthmus/halo_sides.h>
#include <isthmus/team.h>

#include <cstdint>
#include <functional>
#include <string>

namespace heap_kernels {

struct Found {
  unsigned long long wrong = 0;           // bytes, numbers and sums
  int status = 0;                         // of a call in a kernel that was not ok (ist::device::Status)
  std::string refused;                    // what the runtime had against a launch
  long long first_ns = 0, second_ns = 0;  // of what is timed
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
// The same for as long as nobody is told to end, and at most so many epochs; `before` have been run by the kernels before it. What is told to one
// kernel is told to all in that epoch's collective call. In mapped host memory, from told_memory(). first_ns of Found: epochs
// run; second_ns: other than 0 where somebody was told.
struct Told {
  unsigned end;    // set by the host: other than 0
  unsigned epoch;  // by the kernel: the last that it has run
};
Told* told_memory(int device);
Found exchange_until_told(const ist_team_view& view, int device, const Places& places, std::uint32_t before,
                          std::uint32_t epochs, Told* told);
// The same by all blocks of a grid.
Found exchange_as_grids(const ist_team_view& view, int device, const Places& places, std::uint32_t before,
                        std::uint32_t epochs);
// A grid whose blocks put to the right, and meet with all PEs.
Found meet_as_grids(const ist_team_view& view, int device, const Places& places, std::uint32_t epochs);
// A block that puts planes to the right and meets with all PEs, kMeetings times in a kernel, which is captured into a graph once and replayed so
// often. Which plane is which it reads from its own word 0, where nothing else is to write, since a replay has the arguments of the capture.
constexpr std::uint32_t kMeetings = 3;
Found meet_in_replays(const ist_team_view& view, int device, const Places& places, std::uint32_t replays);
// kAdders threads add 1 to the word behind that of exchange(), at every PE, so often.
constexpr unsigned kAdders = 64;
Found add_everywhere(const ist_team_view& view, int device, const Places& places, std::uint32_t times);
// A field of words on a grid of one row of PEs, around both ways: so many rows and columns of each PE's own, and halos.
constexpr int kRows = 32, kColumns = 24, kMinus = 1, kPlus = 2;
// Each step writes every own cell, puts the sides, which as many blocks do at once, waits for the neighbours' flags, and compares all
// cells. Two arrays take turns; flags are the first words of the last 64 KiB of data.
Found exchange_halos(const ist_team_view& view, int device, const Places& places, const ist_halo_sides& sides,
                     std::uint32_t steps);
// The same in four dimensions with all 80 neighbours, of which a block takes several: kLong cells of each PE's own and a halo of 1 each way, PEs
// along the first dimension.
constexpr int kLong = 4;
Found exchange_all_halos(const ist_team_view& view, int device, const Places& places, const ist_halo_all_sides& sides,
                         std::uint32_t steps);
// Each epoch: held until the other PE's host has stored word 2, which is the epoch then, behind kFromHost bytes of data, which are what
// fill_on_host() has for that PE, and behind word 0, which is held_word() then; compares those, writes as many bytes of its own kAnswered
// behind, and stores the epoch into word 3 of that PE.
constexpr std::uint32_t kFromHost = 5003;
constexpr std::uint64_t kAnswered = std::uint64_t{1} << 16;
constexpr unsigned kHeldShift = 20;
constexpr std::uint64_t held_word(std::uint32_t epoch) { return std::uint64_t{epoch} << kHeldShift; }
Found wait_for_host(const ist_team_view& view, int device, const Places& places, std::uint32_t epochs);
void fill_on_host(unsigned char* to, std::uint32_t bytes, int pe, std::uint32_t epoch);
// Waits for a word that nobody writes, without a deadline where that is 0 (ns).
Found wait_for_ever(const ist_team_view& view, int device, const Places& places, std::uint64_t deadline = 0);

// Is a grid that would fill the device refused, with the worker that takes the room of a block? Otherwise what is wrong.
std::string fit_beside_a_worker(int device);

// As many blocks as launch_grid() allows, of so many threads and so much shared memory each, wait for word 0 to be kAwaited; `change`, which is
// to make it so, is called once all of them are on the device, and is over before they give up (Status late). first_ns: how many blocks.
constexpr std::uint64_t kAwaited = 77;
struct Blocks {
  unsigned threads;
  std::uint64_t shared_bytes;
};
Found wait_as_the_largest_grid(const ist_team_view& view, int device, const Places& places, const Blocks& blocks,
                               const std::function<void()>& change);

// Words of heaps in host memory, by the proxy, as many as kHostWords, which are 0 at first; they and data are at addresses for kernels.
constexpr std::uint64_t kHostWords = 32;
// So many blocks of kAdders threads: word 0 of the host heap and word 2 of the CUDA heap at every PE, at once, so often each; and, every
// eighth time, a number of word 1 of PE 0's host heap, each of which is greater than the last one that the thread got.
constexpr unsigned kAddingBlocks = 4;
Found add_in_both(const ist_device_view& host, std::uint64_t* host_words, const ist_device_view& cuda,
                  std::uint64_t* cuda_words, int device, std::uint32_t times);
// kChangers threads add 1 to word 2 of PE 0 by comparison, so often each, while one makes every change of words 16 and 17 of its own part.
constexpr unsigned kChangers = 65;
Found change_in_host_heap(const ist_device_view& view, std::uint64_t* words, int device, std::uint32_t times);
// Each epoch: a put with a signal to the right, and an answer to the left; a barrier in the end. Words 3, 4, 5 and 7; the first 128 KiB of data.
Found signal_in_host_heap(const ist_device_view& view, unsigned char* data, std::uint64_t* words, int device,
                          std::uint32_t epochs);
// One thread on word 6 of its own part: nanoseconds of a change that is answered, and of one that is not.
Found time_in_host_heap(const ist_device_view& view, std::uint64_t* words, int device, std::uint32_t times);

}  // namespace heap_kernels
