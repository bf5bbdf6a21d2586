// Memory that runs out where a test wants it to. The program's operator new is in keeping_test.cpp.
//
// Who calls this : keeping_test.cpp, keeping_devices_test.cpp, keeping_schedules_test.cpp, keeping_sends_test.cpp, keeping_channels_test.cpp.
// Threads        : one.
// Ownership      : none.
// Errors         : std::bad_alloc, of operator new.
#pragma once

#include <limits>
#include <new>

namespace ist::test {

inline constexpr int kEnough = std::numeric_limits<int>::max();
extern int left;     // times that memory is given
extern int refused;  // times that it is not, before

// Calls it, the first time with memory once, then with it twice and so on, until it comes back. How often it ran out.
template <class Call>
int with_little_memory(const Call& call) {
  int failed = 0;
  for (int given = 0; given < 100; ++given) {
    left = given;
    try {
      call();
      left = kEnough;
      return failed;
    } catch (const std::bad_alloc&) {
      left = kEnough;
      ++failed;
    }
  }
  return failed;
}

}  // namespace ist::test
