// May this thread go on waiting for other ranks to be found? A function of the program's own says so.
//
// Who calls this : deadline.hpp, and so whatever waits in boot; face/message around a call that makes a world.
// Threads        : each has its own function.
// Ownership      : the function's context is the program's.
// Errors         : none; who waited says IST_CANCELLED.
#pragma once

namespace ist::interrupt {

// Asked at least so often while something is waited for.
inline constexpr int kMilliseconds = 100;

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

bool is_asked();
// Asks, unless the answer has been yes in this scope.
bool wanted();

}  // namespace ist::interrupt
