// What copies of rows by a device's copy engine take on this machine, and kernels that pack, for `isthmus model fit`.
//
// Who calls this : model_devices, on one rank.
// Threads        : one.
// Ownership      : memory of its own, for as long as it measures.
// Errors         : returned: there is no such copy here, or it failed.
#pragma once

#include "memory/kinds.hpp"

namespace ist::cli {

struct RowTimes {
  double start = 0;  // s: a copy to page-locked host memory, call and completion, where a kernel that packs takes `kernel`
  double each = 0;   // s: one more row of it, beside its bytes
  double byte = 0;   // s: within the device's memory
  double kernel_byte = 0;       // s: the same by a kernel that packs
  double mapped_byte = 0;       // s: by one into page-locked host memory; 0: it reaches none
  double mapped_load_byte = 0;  // s: by one that unpacks from there
};
// `bus`: seconds that a byte takes to page-locked host memory in one piece. `kernel`: what kernels that pack are charged to begin, so that the
// two stand beside each other as they do in time.
Result<RowTimes> measure_rows(const Kinds& kinds, double bus, double kernel);

}  // namespace ist::cli
