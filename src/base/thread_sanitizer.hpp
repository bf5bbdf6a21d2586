// Tells ThreadSanitizer of an order between threads that goes through what it cannot see into, a driver or another process. Nothing elsewhere.
//
// Who calls this : memory/opencl/, who waits for its queues in cli/, and tests of it; collective/shared_lane and the engine.
// Threads        : any.
// Ownership      : none; the address is only a name.
// Errors         : none.
#pragma once

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace ist {

// What this thread did so far comes before what another one does once it was told, and has called follows().
inline void precedes([[maybe_unused]] void* name) {
#ifdef __SANITIZE_THREAD__
  __tsan_release(name);
#endif
}

inline void follows([[maybe_unused]] void* name) {
#ifdef __SANITIZE_THREAD__
  __tsan_acquire(name);
#endif
}

}  // namespace ist
