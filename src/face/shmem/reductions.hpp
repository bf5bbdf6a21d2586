// Reductions and scans: in the order of PEs, the same bits at all of them.
//
// Who calls this : collectives.cpp; combiner() by the typed calls.
// Threads        : one at a time in a team.
// Ownership      : none.
// Errors         : by fail(); false then.
#pragma once

#include <algorithm>
#include <complex>

#include "face/shmem/collectives.hpp"

namespace ist::shmem {

bool reduce_in(const char* call, const Group& group, const Block& block, const Combiner& combiner);
bool scan_in(const char* call, const Group& group, const Block& block, const Combiner& combiner, bool own);

struct Sum {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a + b);
  }
};
struct Prod {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a * b);
  }
};
struct Min {
  template <class T>
  static T apply(T a, T b) {
    return std::min(a, b);
  }
};
struct Max {
  template <class T>
  static T apply(T a, T b) {
    return std::max(a, b);
  }
};
struct And {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

template <class T, class Operation>
void combine(void* acc, const void* in, std::size_t bytes) {
  T* const to = static_cast<T*>(acc);
  const T* const from = static_cast<const T*>(in);
  for (std::size_t i = 0; i < bytes / sizeof(T); ++i) to[i] = Operation::template apply<T>(to[i], from[i]);
}
template <class T, class Operation>
constexpr Combiner combiner{combine<T, Operation>, sizeof(T)};

}  // namespace ist::shmem
