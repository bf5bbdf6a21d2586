// Windows of messages between two processors by copies alone: what any library can reach there, and how far it is from a memcpy of one.
//
// Who calls this : bench_row_limit, on rank 0, while the other ranks sleep.
// Threads        : starts one, on the other rank's processor, and joins it.
// Ownership      : buffers of its own, which go when it returns.
// Errors         : none; what cannot be measured is 0.
#pragma once

#include <cstddef>

namespace ist::cli {

// GB/s of 64 messages of one size, one after the other, and an answer. All of it is warm, as in the timed loops.
struct BareWindows {
  // The sender copies into slots that both see, and the receiver out of them, at the same time; of several numbers and sizes of slots, and by loops or
  // strings (memory/host/handing_copy.hpp), the best.
  double two_copies_gbs = 0;
  // The receiver copies each message by one process_vm_readv, which private memory takes.
  double read_gbs = 0;
  // The receiver copies each message by itself, which memory takes that both see.
  double one_copy_gbs = 0;
};

// Of longer messages than 4 MiB what those of 4 MiB reach: neither way gets on better with more. Briefly: by few repetitions.
BareWindows measure_bare_windows(std::size_t bytes, int other_processor, bool briefly);

}  // namespace ist::cli
