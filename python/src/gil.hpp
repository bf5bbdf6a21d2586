// Letting go of the interpreter's lock, counted: at the interpreter's end nobody may be about to take it again.
//
// Who calls this : every file that calls what may take long.
// Threads        : any that holds the GIL.
// Ownership      : none.
// Errors         : none.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>

namespace isthmus_python {

// How many threads are without the GIL in one of our calls. A daemon thread that asks for it while Python ends is ended by
// Python on the spot, in the middle of our frames, which ends the process by abort().
inline std::atomic<int> threads_without_gil{0};

// Whether this thread runs the function of a reduction, and so is inside the library already: it may not go in again.
inline thread_local int inside_function = 0;

class LetGo {
 public:
  // `inside`: counts the threads inside the library for one world, which may not be left under them.
  explicit LetGo(std::atomic<int>& inside) : count_(inside) {}

 private:
  struct Count {
    explicit Count(std::atomic<int>& inside) : inside_(inside) {
      ++threads_without_gil;
      ++inside_;
    }
    Count(const Count&) = delete;
    Count& operator=(const Count&) = delete;
    ~Count() {
      --inside_;
      --threads_without_gil;
    }
    std::atomic<int>& inside_;
  };
  Count count_;  // goes last, with the GIL held again
  nanobind::gil_scoped_release release_;
};

}  // namespace isthmus_python
