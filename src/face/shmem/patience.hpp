// Waiting for a word that another PE writes: at first with the processor, then by turns, and not for ever.
//
// Who calls this : groups.cpp, waits.hpp, locks.cpp.
// Threads        : one object is one thread's.
// Ownership      : none.
// Errors         : by fail(), once what is waited for can never come: a PE died, or whoever could write has left.
#pragma once

namespace ist::shmem {

class Patience {
 public:
  // `awaited`: the PE that has to come; -1: any other one.
  explicit Patience(const char* call, int awaited = -1) : call_(call), awaited_(awaited) {}
  // Between two looks at the word. False: it will never come, and fail() was called.
  bool go_on() {
    if (looks_ < kLooksAtOnce) {
      ++looks_;
#if defined(__x86_64__) || defined(__i386__)
      __builtin_ia32_pause();
#endif
      return true;
    }
    return go_on_slowly();
  }

 private:
  static constexpr int kLooksAtOnce = 200;
  bool go_on_slowly();
  bool nobody_comes();
  const char* call_;
  int awaited_;
  int looks_ = 0;
  bool doomed_ = false;  // the next look is the last
};

}  // namespace ist::shmem
