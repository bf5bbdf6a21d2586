// Waiting for a word that another PE writes: at first with the processor, then by turns, and not for ever.
//
// Who calls this : groups.cpp, waits.hpp, words.cpp, locks.cpp; world.cpp at the beginning.
// Threads        : one object is one thread's.
// Ownership      : none.
// Errors         : by fail(), once what is waited for can never come: a PE died, or whoever could write has left.
#pragma once

#include <isthmus/isthmus.h>

#include <chrono>

#include "base/pause.hpp"

namespace ist::shmem {

// Collective, before anybody waits long: what ISTHMUS_WAIT says, and where that leaves it open, whether each PE has a processor.
void choose_how_to_wait(const char* call, ist_comm comm);

// What is waited for can never come: PE `awaited` has left or, where that is -1, all others have, and this PE's threads may not call at
// once; or a PE died; or this is no PE any more.
bool nobody_comes(int awaited = -1);
// Calls fail() with which of these it is, unless all are just being ended.
void tell_that_nobody_comes(const char* call, int awaited = -1);

class Patience {
 public:
  // `awaited`: the PE that has to come; -1: any other one.
  explicit Patience(const char* call, int awaited = -1) : call_(call), awaited_(awaited) {}
  // Between two looks at the word. False: it will never come, and fail() was called.
  bool go_on() {
    if (looks_ < kLooksAtOnce) {
      ++looks_;
      pause_briefly();
      return true;
    }
    return go_on_slowly();
  }

 private:
  static constexpr int kLooksAtOnce = 200;
  bool go_on_slowly();
  const char* call_;
  int awaited_;
  int looks_ = 0;
  unsigned turns_ = 0;                           // of slow ones
  std::chrono::steady_clock::time_point begun_;  // those
  bool sleeps_ = false;
  bool doomed_ = false;  // the next look is the last
};

}  // namespace ist::shmem
