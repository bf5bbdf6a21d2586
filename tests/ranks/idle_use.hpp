// What a process uses while its program does nothing: how often its threads went to sleep, and how long they had a processor.
//
// Who calls this : one_sided_apart_test.cpp, windows_failures_test.cpp.
// Threads        : one; it counts those of the whole process.
// Ownership      : none.
// Errors         : none.
#pragma once

#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

namespace forked_ranks {

struct IdleUse {
  std::int64_t naps = 0;
  std::chrono::microseconds processor{0};

  static IdleUse so_far() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto of = [](const timeval& time) {
      return std::chrono::seconds{time.tv_sec} + std::chrono::microseconds{time.tv_usec};
    };
    return {used.ru_nvcsw, of(used.ru_utime) + of(used.ru_stime)};
  }
  static IdleUse in(std::chrono::milliseconds time) {
    const IdleUse before = so_far();
    std::this_thread::sleep_for(time);
    const IdleUse after = so_far();
    return {after.naps - before.naps, after.processor - before.processor};
  }
  // Of up to eight stretches of 200 ms the first one with fewer naps, or the last one: it takes a while until it is given up that somebody asks
  // soon, the longer the more other programs do.
  static IdleUse settled(std::int64_t naps) {
    IdleUse use;
    for (int i = 0; i < 8; ++i)
      if ((use = in(std::chrono::milliseconds{200})).naps < naps) break;
    return use;
  }
  std::string text() const {
    return std::to_string(naps) + " naps and " + std::to_string(processor.count()) + " us of a processor";
  }
};

}  // namespace forked_ranks
