#include "face/shmem/patience.hpp"

#include <isthmus/collective.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/settings.hpp"
#include "boot/processors.hpp"
#include "face/shmem/errors.hpp"
#include "face/shmem/world.hpp"

namespace ist::shmem {
namespace {

using Clock = std::chrono::steady_clock;
constexpr unsigned kTurnsBetweenQuestions = 64;
constexpr unsigned kTurnsBetweenLooksAtClock = 16;
// Where PEs outnumber processors, who waits long leaves his to the others; who is to sleep soon does so after a moment. Time, not turns:
// one takes milliseconds where others have work to do.
constexpr std::chrono::microseconds kTimeWhereCrowded{20000};
constexpr std::chrono::microseconds kTimeOfSleepers{50};
Clock::duration time_before_sleep = Clock::duration::max();

// What PEs tell each other of the processors that they may run on.
struct Processors {
  double quota = 0;
  std::array<std::uint64_t, 64> set{};
};
constexpr std::size_t kBits = 64;

Processors own_card() {
  Processors card{processor_quota(), {}};
  for (const int each : own_processors())
    if (const auto bit = static_cast<std::size_t>(each); bit < card.set.size() * kBits)
      card.set[bit / kBits] |= std::uint64_t{1} << bit % kBits;
  return card;
}

std::vector<int> numbers_of(const Processors& card) {
  std::vector<int> numbers;
  for (std::size_t bit = 0; bit < card.set.size() * kBits; ++bit)
    if ((card.set[bit / kBits] >> bit % kBits & 1U) != 0) numbers.push_back(static_cast<int>(bit));
  return numbers;
}

bool crowded(const std::vector<Processors>& cards) {
  double quota = 0;
  std::vector<std::vector<int>> masks;
  for (const Processors& each : cards) {
    quota = std::max(quota, each.quota);
    masks.push_back(numbers_of(each));
  }
  return are_crowded(std::move(masks), quota);
}

}  // namespace

void choose_how_to_wait(const char* call, ist_comm comm) {
  const auto settings = Settings::read();
  if (!settings.ok()) return fail(call, settings.status().text());
  const Processors mine = own_card();
  std::vector<Processors> all(static_cast<std::size_t>(hot.pes));
  if (failed(call, ist_allgather(ist_host(&mine), sizeof mine, ist_host(all.data()), sizeof mine, IST_BYTE, comm))) return;
  time_before_sleep = settings->wait == "sleep"                  ? kTimeOfSleepers
                      : settings->wait == "auto" && crowded(all) ? kTimeWhereCrowded
                                                                 : Clock::duration::max();
}

namespace {
std::string why_nobody_comes(int awaited) {
  if (awaited < 0) {
    bool all_left = true;
    for (int pe = 0; pe < hot.pes; ++pe) all_left = all_left && (pe == hot.pe || world().left(pe));
    return std::string{"all other PEs have left"} + (all_left ? "" : " or are in shmem_finalize") +
           ", and nobody writes what is waited for";
  }
  const std::string pe = "PE " + std::to_string(awaited);
  if (world().left(awaited)) return pe + " has left without taking part";
  return pe + " has called shmem_finalize without taking part: all PEs make the same collective calls, in the same order";
}
}  // namespace

bool nobody_comes(int awaited) {
  if (hot.pes == 0 || world().died()) return true;
  if (awaited >= 0) return world().arrives_no_more(awaited);
  for (int pe = 0; pe < hot.pes; ++pe)
    if (pe != hot.pe && !world().writes_no_more(pe)) return false;
  // Another thread of this PE may write.
  return hot.pes > 1 && world().threads() != SHMEM_THREAD_MULTIPLE;
}

void tell_that_nobody_comes(const char* call, int awaited) {
  world().end_with_the_others();
  if (hot.pes == 0)
    fail(call, "another thread has called shmem_finalize meanwhile");
  else if (world().died())
    fail(call, "a PE of this job died, and what is waited for may never come");
  else
    fail(call, why_nobody_comes(awaited));
}

bool Patience::go_on_slowly() {
  if (doomed_) {
    tell_that_nobody_comes(call_, awaited_);
    return false;
  }
  if (turns_ == 0) begun_ = Clock::now();
  ++turns_;
  if (turns_ % kTurnsBetweenQuestions == 0) doomed_ = nobody_comes(awaited_);
  if (!sleeps_ && turns_ % kTurnsBetweenLooksAtClock == 0) sleeps_ = Clock::now() - begun_ >= time_before_sleep;
  if (sleeps_)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  else
    ::sched_yield();
  return true;
}

}  // namespace ist::shmem
