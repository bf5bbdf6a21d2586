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
  struct sigaction before {};
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

// With the signals blocked that it wants to have blocked, but for this one: it may store into what is held, too. When this handler returns
// all are as they were.
void pass_on(int signal, siginfo_t* info, void* context) {
  sigset_t blocked = held.before.sa_mask;
  sigdelset(&blocked, SIGSEGV);
  ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  if ((held.before.sa_flags & SA_SIGINFO) != 0) {
    held.before.sa_sigaction(signal, info, context);
  } else if (held.before.sa_handler == SIG_DFL || held.before.sa_handler == SIG_IGN) {
    ::sigaction(SIGSEGV, &held.before, nullptr);  // which the same instruction meets next
  } else {
    held.before.sa_handler(signal);
  }
}

// A store that fails once more, though nothing was held since, is the program's own affair.
void on_fault(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  if (info->si_code == SEGV_ACCERR &&
      std::ranges::any_of(held.all, [address](const Range& each) { return each.holds(address); })) {
    while (held.now.holds(address)) ::sched_yield();
    const std::uint64_t turn = held.turn.load(std::memory_order_acquire);
    if (tried.address != address || tried.turn != turn) {
      tried = {address, turn};
      return;
    }
  }
  pass_on(signal, info, context);
}

void install_handler() {
  struct sigaction now {};
  ::sigaction(SIGSEGV, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_fault) return;
  held.before = now;
  struct sigaction action {};
  action.sa_sigaction = on_fault;
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
  replaced();
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
