// Between two looks at a word that another processor will write.
//
// Who calls this : whoever waits for such a word.
// Threads        : any.
// Ownership      : none.
// Errors         : none.
#pragma once

#include <atomic>

namespace ist {

inline void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace ist
