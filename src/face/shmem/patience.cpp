#include "face/shmem/patience.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "face/shmem/errors.hpp"
#include "face/shmem/world.hpp"

namespace ist::shmem {
namespace {

constexpr int kTurnsBeforeSleep = 20000;
constexpr int kTurnsBetweenQuestions = 64;

// Where PEs outnumber processors, who waits long leaves his to the others.
bool crowded() {
  static const int processors = [] {
    cpu_set_t mine;
    return ::sched_getaffinity(0, sizeof mine, &mine) == 0 ? CPU_COUNT(&mine) : 1;
  }();
  return hot.pes > processors;
}

}  // namespace

bool Patience::nobody_comes() {
  if (hot.pes == 0 || world().died()) return true;
  if (awaited_ >= 0) return world().left(awaited_);
  for (int pe = 0; pe < hot.pes; ++pe)
    if (pe != hot.pe && !world().left(pe)) return false;
  return hot.pes > 1;  // another thread of the only PE may write
}

bool Patience::go_on_slowly() {
  if (doomed_) {
    world().end_with_the_others();
    if (world().died())
      fail(call_, "a PE of this job died, and what is waited for may never come");
    else
      fail(call_, awaited_ >= 0 ? "PE " + std::to_string(awaited_) + " has left without taking part"
                                : std::string{"all other PEs have left, and nobody writes what is waited for"});
    return false;
  }
  ++looks_;
  if (looks_ % kTurnsBetweenQuestions == 0) doomed_ = nobody_comes();
  if (looks_ > kTurnsBeforeSleep && crowded())
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  else
    ::sched_yield();
  looks_ = std::min(looks_, kTurnsBeforeSleep + 2 * kTurnsBetweenQuestions);
  if (looks_ == kTurnsBeforeSleep + 2 * kTurnsBetweenQuestions) looks_ = kTurnsBeforeSleep + kTurnsBetweenQuestions;
  return true;
}

}  // namespace ist::shmem
