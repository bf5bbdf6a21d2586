// What a world wants of its kinds of memory, told before they start.
//
// Who calls this : kinds.cpp, the kinds' makers.
// Threads        : a value.
// Ownership      : none.
// Errors         : none.
#pragma once

#include "base/units.hpp"

namespace ist {

struct KindOptions {
  bool worker = false;  // workers may be wanted (workers.hpp), which drivers have to be told before they start
  Bytes shared{};       // so much host memory may be allocated where other ranks copy from
  bool check = false;   // what is assumed of devices is tried all the time, not at first alone (cuda_sights.hpp)
};

}  // namespace ist
