#include "face/shmem/held_stores.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <string>
#include <utility>

namespace ist {
namespace {

// Nothing is from 0 to 0.
struct Range {
  std::atomic<std::uintptr_t> from{0};
  std::atomic<std::uintptr_t> to{0};
  bool holds(std::uintptr_t address) const {
    return address >= from.load(std::memory_order_acquire) && address < to.load(std::memory_order_acquire);
  }
  // Between the two stores it may seem to hold more, for a moment, but never less.
  void become(std::uintptr_t begin, std::uintptr_t end) {
    to.store(end, std::memory_order_release);
    from.store(begin, std::memory_order_release);
  }
};

// For the handler, which any thread may be in.
struct Held {
  std::array<Range, ExecutableCard::kMostSegments> all;
  Range now;
  std::atomic<std::uint64_t> turn{0};  // counts what was held
};
Held held;

// What this thread has tried again, and at which turn.
struct Tried {
  std::uintptr_t address = 0;
  std::uint64_t turn = 0;
};
// At a place that is known when the thread begins: nothing is allocated in a handler.
[[gnu::tls_model("initial-exec")]] constinit thread_local Tried tried;

// The system call itself, since a program may have a function of its own between, which stores.
int protect(void* begin, std::uint64_t size, int access) {
  return static_cast<int>(::syscall(SYS_mprotect, begin, size, access));
}

// The system's own way with a signal. A fault meets it when its instruction is tried again, and one that is ignored ends the process all
// the same; but what somebody has sent would not come again.
void leave_to_system(const struct sigaction& action, const siginfo_t& info) {
  const bool was_sent = info.si_code <= 0;
  if (was_sent && action.sa_handler == SIG_IGN) return;
  ::sigaction(SIGSEGV, &action, nullptr);
  if (was_sent) ::raise(SIGSEGV);
}

// A handler that was there before.
struct Before {
  struct sigaction action {};
  std::atomic<bool> is_over{false};  // it was for one signal (SA_RESETHAND), which has come
};
Before the_system;

// With the signals blocked that it wants to have blocked, but for this one: it may store into what is held, too. When this handler returns
// all are as they were.
void pass_on(Before& before, int signal, siginfo_t* info, void* context) {
  const struct sigaction& to = before.action;
  if ((to.sa_flags & SA_SIGINFO) == 0 && (to.sa_handler == SIG_DFL || to.sa_handler == SIG_IGN))
    return leave_to_system(to, *info);
  if ((to.sa_flags & static_cast<int>(SA_RESETHAND)) != 0 && before.is_over.exchange(true))
    return leave_to_system(the_system.action, *info);
  sigset_t blocked = to.sa_mask;
  sigdelset(&blocked, SIGSEGV);
  ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  if ((to.sa_flags & SA_SIGINFO) != 0)
    to.sa_sigaction(signal, info, context);
  else
    to.sa_handler(signal);
}

// A store that waited until what is there had been replaced, and may be tried again. One that fails once more, though nothing was held
// since, is the program's own affair.
bool was_held(const siginfo_t& info) {
  const auto address = reinterpret_cast<std::uintptr_t>(info.si_addr);
  if (info.si_code != SEGV_ACCERR ||
      std::ranges::none_of(held.all, [address](const Range& each) { return each.holds(address); }))
    return false;
  while (held.now.holds(address)) ::sched_yield();
  const std::uint64_t turn = held.turn.load(std::memory_order_acquire);
  if (tried.address == address && tried.turn == turn) return false;
  tried = {address, turn};
  return true;
}

// A program may set a handler of its own on top of ours, which passes on to ours what it does not want, and then begin anew: ours comes on
// top once more, above one that ends at ours. So each time it is another function, with what was there before as its own, and no circle.
constexpr std::size_t kMostHandlers = 8;
struct Handlers {
  std::array<Before, kMostHandlers> before{};
  std::array<std::atomic<Before*>, kMostHandlers> next{};  // to whom each passes on
  std::array<std::size_t, kMostHandlers> order{};          // the numbers of those that were set, the latest last
  std::size_t count = 0;
};
Handlers handlers;

template <std::size_t Number>
void on_fault(int signal, siginfo_t* info, void* context) {
  if (!was_held(*info)) pass_on(*handlers.next[Number].load(std::memory_order_acquire), signal, info, context);
}
using Handler = void (*)(int, siginfo_t*, void*);
template <std::size_t... Numbers>
constexpr std::array<Handler, kMostHandlers> all_of(std::index_sequence<Numbers...>) {
  return {on_fault<Numbers>...};
}
constexpr std::array<Handler, kMostHandlers> kOurs = all_of(std::make_index_sequence<kMostHandlers>{});

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && std::ranges::find(kOurs, action.sa_sigaction) != kOurs.end();
}
bool alike(const struct sigaction& a, const struct sigaction& b) {
  if ((a.sa_flags & SA_SIGINFO) != (b.sa_flags & SA_SIGINFO)) return false;
  return (a.sa_flags & SA_SIGINFO) != 0 ? a.sa_sigaction == b.sa_sigaction : a.sa_handler == b.sa_handler;
}

// Whoever comes to be on top is no longer below: those that passed on to it pass on to what was there before them.
void take_from_below(const struct sigaction& top) {
  Before* below = &the_system;
  for (std::size_t i = 0; i < handlers.count; ++i) {
    auto& next = handlers.next[handlers.order[i]];
    if (alike(next.load()->action, top)) next.store(below, std::memory_order_release);
    below = next.load();
  }
}

// Its own predecessor has come to be on top since.
bool passes_on_elsewhere(std::size_t number) {
  return std::ranges::none_of(handlers.next, [number](const auto& next) { return next.load() == &handlers.before[number]; });
}

// One that was never set; or the oldest whose predecessor has come to be on top since, and so has whoever was set on top of it, and knows
// by now another one to pass on to. kMostHandlers: none.
std::size_t unused_handler() {
  if (handlers.count < kMostHandlers) {
    handlers.order[handlers.count] = handlers.count;
    return handlers.count++;
  }
  const auto found = std::ranges::adjacent_find(handlers.order, [](std::size_t number, std::size_t above) {
    return passes_on_elsewhere(number) && passes_on_elsewhere(above);
  });
  if (found == handlers.order.end()) return kMostHandlers;
  std::rotate(found, found + 1, handlers.order.end());
  return handlers.order.back();
}

void install_handler() {
  struct sigaction now {};
  ::sigaction(SIGSEGV, nullptr, &now);
  if (is_ours(now)) return;
  take_from_below(now);
  const std::size_t number = unused_handler();
  if (number == kMostHandlers) return;  // the program has so many of its own; the last one has to pass on to those below
  handlers.before[number].action = now;
  handlers.before[number].is_over = false;
  handlers.next[number].store(&handlers.before[number], std::memory_order_release);
  struct sigaction action {};
  action.sa_sigaction = kOurs[number];
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGSEGV, &action, nullptr);
}

}  // namespace

HeldStores::HeldStores(std::span<const VariableSegment> segments) {
  std::size_t next = 0;
  for (const VariableSegment& each : segments.first(std::min(segments.size(), held.all.size()))) {
    const auto from = reinterpret_cast<std::uintptr_t>(each.begin);
    held.all[next++].become(from, from + each.bytes.value);
  }
  // A handler of the program's own would wait for this very thread.
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &blocked_before_);
  install_handler();
}

HeldStores::~HeldStores() { ::pthread_sigmask(SIG_SETMASK, &blocked_before_, nullptr); }

Status HeldStores::hold(std::byte* begin, Bytes size) {
  const auto from = reinterpret_cast<std::uintptr_t>(begin);
  held.turn.fetch_add(1, std::memory_order_acq_rel);
  held.now.become(from, from + size.value);
  if (protect(begin, size.value, PROT_READ) == 0) return {};
  put_back();  // it may have come as far as the middle
  return system_error("mprotect of " + std::to_string(size.value) + " bytes of variables");
}

void HeldStores::replaced() { held.now.become(0, 0); }

void HeldStores::put_back() {
  const int why = errno;
  const std::uintptr_t from = held.now.from.load(std::memory_order_relaxed);
  auto* const begin = reinterpret_cast<void*>(from);  // NOLINT(performance-no-int-to-ptr)
  protect(begin, held.now.to.load(std::memory_order_relaxed) - from, PROT_READ | PROT_WRITE);
  replaced();
  errno = why;
}

}  // namespace ist
