#include "face/shmem/groups.hpp"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>

#include "face/shmem/errors.hpp"
#include "face/shmem/patience.hpp"
#include "face/shmem/regions.hpp"

namespace ist::shmem {
namespace {

// Up to so many one hop, each telling each, is quicker than a few hops of one each.
constexpr int kAtOnce = 16;
constexpr unsigned kOffsetBits = 56;

struct Counts {
  std::uint64_t sent = 0;
  std::uint64_t seen = 0;
};
struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
// Zero at first, so that those of slots that nobody uses take no memory.
std::unique_ptr<Counts[], Free> counts;  // NOLINT(modernize-avoid-c-arrays)

// Which thread of this PE is inside a call on the words that teams share, or pSync arrays.
std::atomic<const void*> in_shared_team{nullptr};
std::atomic<const void*> in_shared_set{nullptr};

Counts& counts_of(const Group& group, int index) {
  return counts[static_cast<std::size_t>(group.slot) * static_cast<std::size_t>(hot.pes) +
                static_cast<std::size_t>(group.at(index))];
}

// Each pSync array has words of its own, by where it is in everybody's memory. Those that are not in symmetric memory of the host share
// some with those that find none left.
int slot_of_set(const long* words) {
  const Span* const span = span_of(words, sizeof *words);
  if (span == nullptr) return kFirstActiveSlot;
  const auto number = static_cast<std::uint64_t>(span - hot.spans.data()) + 1;
  return kFirstActiveSlot + world().slots().of_set(number << kOffsetBits | offset_in(*span, words));
}

std::string why_shared(bool teams) {
  const std::string text = "another thread of this PE is inside a call on words that this one shares: ";
  if (teams)
    return text + std::to_string(kTeamSlots - 1) +
           " teams at a time have words of their own; destroy some, or let one thread at a time call";
  return text + "pSync arrays at " + std::to_string(kActiveSlots - 1) +
         " places in the host's symmetric memory have words of their own; use one of them again, or teams";
}

}  // namespace

InCall::InCall(const char* call, const Group& group) {
  const bool is_team = group.slot == kFirstTeamSlot;
  if (!is_team && group.slot != kFirstActiveSlot) return;
  shared_ = is_team ? &in_shared_team : &in_shared_set;
  const void* owner = nullptr;
  entered_ = shared_->compare_exchange_strong(owner, this_thread(), std::memory_order_acquire);
  if (entered_) return;
  if (owner != this_thread())
    fail(call, why_shared(is_team));
  else  // from the program's own handler, which is not called again by what it does itself
    remember(std::string{call} +
             ": this thread is inside a call on words that this one shares, and its handler is told of an "
             "error there; call when the handler has returned");
}

InCall::~InCall() {
  if (shared_ != nullptr && entered_) shared_->store(nullptr, std::memory_order_release);
}

void reset_groups() {
  const auto count = static_cast<std::size_t>(kSlots) * static_cast<std::size_t>(hot.pes);
  counts.reset(static_cast<Counts*>(std::calloc(count, sizeof(Counts))));
  if (counts == nullptr) throw std::bad_alloc{};
  in_shared_team = nullptr;
  in_shared_set = nullptr;
}

void arrive(const Group& group, int index) {
  world().arrivals(group.at(index), hot.pe, group.slot).store(++counts_of(group, index).sent, std::memory_order_release);
}

bool await(const char* call, const Group& group, int index) {
  const int pe = group.at(index);
  const auto word = world().arrivals(hot.pe, pe, group.slot);
  const std::uint64_t wanted = ++counts_of(group, index).seen;
  Patience patience{call, pe};
  while (word.load(std::memory_order_acquire) < wanted)
    if (!patience.go_on()) return false;
  return true;
}

bool sync(const char* call, const Group& group) {
  const int size = group.size;
  if (size <= kAtOnce) {
    for (int i = 1; i < size; ++i) arrive(group, (group.me + i) % size);
    for (int i = 1; i < size; ++i)
      if (!await(call, group, (group.me + i) % size)) return false;
    return true;
  }
  for (int far = 1; far < size; far *= 2) {
    arrive(group, (group.me + far) % size);
    if (!await(call, group, (group.me - far + size) % size)) return false;
  }
  return true;
}

Group active_group(const char* call, int start, int log_stride, int size, const long* words) {
  Group group;
  const bool possible = log_stride >= 0 && log_stride < 31 && size > 0 && start >= 0;
  const long last = possible ? start + (static_cast<long>(size) - 1) * (1L << log_stride) : -1;
  if (!possible || last >= hot.pes) {
    fail(call, "the active set is " + std::to_string(size) + " PEs from " + std::to_string(start) + " on, 2^" +
                   std::to_string(log_stride) + " apart; there are PEs 0 to " + std::to_string(hot.pes - 1));
    return group;
  }
  group = {start, 1 << log_stride, size, -1, slot_of_set(words)};
  group.me = group.index_of(hot.pe);
  if (group.me < 0) {
    fail(call, "this PE is not in the active set of " + std::to_string(size) + " PEs from " + std::to_string(start) +
                   " on, " + std::to_string(group.stride) + " apart; its members alone make the call");
    group.size = 0;
  }
  return group;
}

}  // namespace ist::shmem
