// May this thread go on waiting for other ranks to be found? A function of the program's own says so.
//
// Who calls this : whatever waits in boot; face/message around a call that makes a world.
// Threads        : each has its own function.
// Ownership      : the function's context is the program's.
// Errors         : none; who waited says IST_CANCELLED.
#pragma once

#include "boot/deadline.hpp"

namespace ist::interrupt {

// Asked at least so often while something is waited for, and no more than twice as often.
inline constexpr int kMilliseconds = 100;

// What other ranks are told of one whose program ended its wait.
inline constexpr const char* kReason =
    "its program had the wait for the other ranks end (ist_interrupt_with; in Python, Ctrl-C)";

// Null: nobody is asked.
void set(int (*asked)(void*), void* context);

// While a world is made; at other moments nobody is asked.
class Scope {
 public:
  Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope();
  // Was the answer yes?
  bool happened() const;
};

// While this lives waits end by their deadlines alone: for the last words to others.
class Unheard {
 public:
  Unheard();
  Unheard(const Unheard&) = delete;
  Unheard& operator=(const Unheard&) = delete;
  ~Unheard();

 private:
  bool before_;
};

// What cannot be taken back is given a moment before anybody is asked again: mostly it is over by then.
void ask_not_before(Deadline moment);

// Asks, unless it was asked a moment ago, or the answer has been yes in this scope.
bool wanted();

// Every wait in boot is made of parts no longer than milliseconds(), and ends when over().
bool over(Deadline deadline);
int milliseconds(Deadline deadline);

}  // namespace ist::interrupt
