// Isthmus in kernels: words of a heap in memory of any kind, by an ist_device_view. Of device memory they are changed here, as move.cuh does
// it; of host memory by this process's proxy (proxy.cuh), so that they are atomic with those that processors change.
//
// Who calls this : kernels on the device that the view was made for; included by itself. put_signal and barrier are a crew's; the other calls are a
//                  thread's.
// Threads        : any number at once.
// Ownership      : addresses `mine` are the own part's, as kernels use them: for_kernel() makes them of those of host code.
// Errors         : a Status, which calls that give a word write to *status, if there is one, and then give 0. After one that is not ok,
//                  misuse excepted, the view is not to be used again. Without a deadline (nanoseconds, 0) waits end when a PE has died.
//
// What a thread asks the proxy for is done in the order of its calls. Calls that give no word return once they have asked, and are done
// after quiet(view), or where a later call of this thread gave a word. Other stores are in no order with them: fence(view) is between.
#ifndef ISTHMUS_DEVICE_HOST_WORDS_CUH
#define ISTHMUS_DEVICE_HOST_WORDS_CUH

#include "isthmus/device/barrier.cuh"
#include "isthmus/device/move.cuh"
#include "isthmus/device/proxy.cuh"

namespace ist::device {

// What host code has at that address of the own part.
template <class T>
IST_DEVICE_CODE T* for_kernel(const ist_device_view& view, T* of_host) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(of_host) + static_cast<std::uint64_t>(view.shift));
}

// A processor changes this heap's words.
IST_DEVICE_CODE bool has_proxy(const ist_device_view& view) { return view.ring != nullptr; }

// Of device memory: do atomic operations get to words of that PE's? Where they do not, its own kernels and host calls change them. With links
// that all take them this is one look at the view.
IST_DEVICE_CODE bool crosses(const ist_device_view& view, int pe) {
  return view.desk == nullptr || (pe >= 0 && pe < view.team.pes && view.desk[pe] == 0);
}
IST_DEVICE_CODE Status crossing(const ist_device_view& view, int pe) {
  return crosses(view, pe) ? Status::ok : Status::misuse;
}

// Before anything is taken: is that a word of the team's memory?
template <class T>
IST_DEVICE_CODE bool names_word(const ist_device_view& view, const T* mine, int pe, std::uint64_t& offset) {
  offset = static_cast<std::uint64_t>(reinterpret_cast<const unsigned char*>(mine) - part_of(view.team, view.team.pe));
  return pe >= 0 && pe < view.team.pes && offset < view.team.bytes && view.team.bytes - offset >= sizeof(T) &&
         offset % sizeof(T) == 0;
}

template <class T>
IST_DEVICE_CODE std::uint64_t word_bits(T value) {
  return bits_as<WordOf<T>>(value);
}

// Asks, and waits for no answer.
template <class T>
IST_DEVICE_CODE Status ask_for(const ist_device_view& view, Change change, T* mine, T value, int pe,
                               std::uint64_t deadline) {
  static_assert(kIsWord<T>, "atomics are for words of 4 or 8 bytes");
  std::uint64_t offset = 0, before = 0;
  if (!names_word(view, mine, pe, offset)) return Status::misuse;
  Waiter waiter(view.team, deadline);
  return ask(view, {change, sizeof(T) == 4 ? kHalfWord : 0U, pe, offset, word_bits(value), 0}, waiter, before);
}
// Asks, and gives what was there before.
template <class T>
IST_DEVICE_CODE T fetch_by_proxy(const ist_device_view& view, Change change, T* mine, T value, T expected, int pe,
                                 std::uint64_t deadline, Status* status) {
  static_assert(kIsWord<T>, "atomics are for words of 4 or 8 bytes");
  std::uint64_t offset = 0, before = 0;
  Status ended = Status::misuse;
  if (names_word(view, mine, pe, offset)) {
    Waiter waiter(view.team, deadline);
    const std::uint32_t flags = kAnswered | (sizeof(T) == 4 ? kHalfWord : 0U);
    ended = ask(view, {change, flags, pe, offset, word_bits(value), word_bits(expected)}, waiter, before);
    if (ended != Status::ok) before = 0;
  }
  if (status != nullptr) *status = ended;
  return bits_as<T>(static_cast<WordOf<T>>(before));
}

// What this thread has asked for, and what it learned of at a meeting, is done, and so are its stores, before whatever it does later.
IST_DEVICE_CODE Status quiet(const ist_device_view& view, std::uint64_t deadline = 0) {
  Status status = Status::ok;
  if (has_proxy(view)) {
    Waiter waiter(view.team, deadline);
    // Its own tickets are among those that are claimed: the same word, by the same thread.
    status = wait_for_done(view, load_taken(&desk_of(view).claimed), waiter);
  }
  // Behind the look at `done`: the proxy's release of it, or of what another thread saw, and this fence order the words before later loads.
  fence_system_total();
  return status;
}
// The same for its later stores: nothing else orders them with what a processor does.
IST_DEVICE_CODE Status fence(const ist_device_view& view, std::uint64_t deadline = 0) {
  if (has_proxy(view)) return quiet(view, deadline);
  fence_system();
  return Status::ok;
}

// Releases, as the signal of move.cuh: stores and what was asked for before come first. A set is a store, which no processor's change is torn
// by, unless something may still be under way: then it goes behind that. What is asked for on its word later, other than by a signal, wants
// a fence(view) in between.
IST_DEVICE_CODE Status signal(const ist_device_view& view, std::uint64_t* mine, std::uint64_t value, Signal how, int pe,
                              std::uint64_t deadline = 0) {
  std::uint64_t offset = 0;
  if (has_proxy(view) && !names_word(view, mine, pe, offset)) return Status::misuse;
  if (!has_proxy(view) && how == Signal::add && !crosses(view, pe)) return Status::misuse;
  if (!has_proxy(view) || (how == Signal::set && is_settled(view))) {
    signal(view.team, mine, value, how, pe);
    return Status::ok;
  }
  // The packets come behind the stores for the processor that reads them: it changes the word after all of them are there.
  fence_system();
  return ask_for(view, how == Signal::set ? Change::set : Change::add, mine, value, pe, deadline);
}

// As that of move.cuh; the Status is the first thread's, and all of a grid's. misuse: nothing was put, or, of a word that is none of the team's,
// the bytes alone.
template <class Crew>
IST_DEVICE_CODE Status put_signal(const Crew& crew, const ist_device_view& view, void* mine, const void* source,
                                  std::uint64_t bytes, std::uint64_t* mine_signal, std::uint64_t value, Signal how, int pe,
                                  std::uint64_t deadline = 0) {
  Gathering<Crew> all(crew, view.team, deadline);
  if (!all.fits() || (!has_proxy(view) && how == Signal::add && !crosses(view, pe))) return Status::misuse;
  put(crew, view.team, mine, source, bytes, pe);
  return all.then([&] { return signal(view, mine_signal, value, how, pe, deadline); });
}

// As that of barrier.cuh, and what any thread of any crew asked for before is done. A status that is not ok may be that of one block alone.
template <class Crew>
IST_DEVICE_CODE Status barrier(const Crew& crew, const ist_device_view& view, std::uint64_t deadline = 0) {
  // The first thread has learned of what the others asked for.
  crew.sync();
  const Status status = agreed(crew, crew.thread == 0 ? quiet(view, deadline) : Status::ok);
  return status == Status::ok ? barrier(crew, view.team, deadline) : status;
}

// ---- the atomics of move.cuh ----

template <class T>
IST_DEVICE_CODE T atomic_fetch(const ist_device_view& view, const T* mine, int pe, std::uint64_t deadline = 0,
                               Status* status = nullptr) {
  // Loaded where nothing of this thread's may be under way to the word.
  if (has_proxy(view) && !is_settled(view))
    return fetch_by_proxy(view, Change::fetch, const_cast<T*>(mine), T{}, T{}, pe, deadline, status);
  std::uint64_t offset = 0;
  const bool names = !has_proxy(view) || names_word(view, mine, pe, offset);
  if (status != nullptr) *status = names ? Status::ok : Status::misuse;
  return names ? atomic_fetch(view.team, mine, pe) : T{};
}
template <class T>
IST_DEVICE_CODE Status atomic_set(const ist_device_view& view, T* mine, T value, int pe, std::uint64_t deadline = 0) {
  if (has_proxy(view)) return ask_for(view, Change::set, mine, value, pe, deadline);
  atomic_set(view.team, mine, value, pe);
  return Status::ok;
}
template <class T>
IST_DEVICE_CODE T atomic_swap(const ist_device_view& view, T* mine, T value, int pe, std::uint64_t deadline = 0,
                              Status* status = nullptr) {
  if (has_proxy(view)) return fetch_by_proxy(view, Change::swap, mine, value, T{}, pe, deadline, status);
  if (status != nullptr) *status = crossing(view, pe);
  return crosses(view, pe) ? atomic_swap(view.team, mine, value, pe) : T{};
}
template <class T>
IST_DEVICE_CODE T atomic_compare_swap(const ist_device_view& view, T* mine, T expected, T wanted, int pe,
                                      std::uint64_t deadline = 0, Status* status = nullptr) {
  static_assert(kIsWhole<T>, "compared are integers");
  if (has_proxy(view)) return fetch_by_proxy(view, Change::compare_swap, mine, wanted, expected, pe, deadline, status);
  if (status != nullptr) *status = crossing(view, pe);
  return crosses(view, pe) ? atomic_compare_swap(view.team, mine, expected, wanted, pe) : T{};
}

#define IST_DEVICE_VIEW_ATOMIC(NAME, CHANGE)                                                                                \
  template <class T>                                                                                                        \
  IST_DEVICE_CODE T atomic_fetch_##NAME(const ist_device_view& view, T* mine, T value, int pe, std::uint64_t deadline = 0,  \
                                        Status * status = nullptr) {                                                        \
    static_assert(kIsWhole<T>, "integers of 4 or 8 bytes");                                                                 \
    if (has_proxy(view)) return fetch_by_proxy(view, CHANGE, mine, value, T{}, pe, deadline, status);                       \
    if (status != nullptr) *status = crossing(view, pe);                                                                    \
    return crosses(view, pe) ? atomic_fetch_##NAME(view.team, mine, value, pe) : T{};                                       \
  }                                                                                                                         \
  template <class T>                                                                                                        \
  IST_DEVICE_CODE Status atomic_##NAME(const ist_device_view& view, T* mine, T value, int pe, std::uint64_t deadline = 0) { \
    static_assert(kIsWhole<T>, "integers of 4 or 8 bytes");                                                                 \
    if (has_proxy(view)) return ask_for(view, CHANGE, mine, value, pe, deadline);                                           \
    if (!crosses(view, pe)) return Status::misuse;                                                                          \
    atomic_##NAME(view.team, mine, value, pe);                                                                              \
    return Status::ok;                                                                                                      \
  }
IST_DEVICE_VIEW_ATOMIC(add, Change::add)
IST_DEVICE_VIEW_ATOMIC(and, Change::bitwise_and)
IST_DEVICE_VIEW_ATOMIC(or, Change::bitwise_or)
IST_DEVICE_VIEW_ATOMIC(xor, Change::bitwise_xor)
#undef IST_DEVICE_VIEW_ATOMIC

template <class T>
IST_DEVICE_CODE T atomic_fetch_inc(const ist_device_view& view, T* mine, int pe, std::uint64_t deadline = 0,
                                   Status* status = nullptr) {
  return atomic_fetch_add(view, mine, T{1}, pe, deadline, status);
}
template <class T>
IST_DEVICE_CODE Status atomic_inc(const ist_device_view& view, T* mine, int pe, std::uint64_t deadline = 0) {
  return atomic_add(view, mine, T{1}, pe, deadline);
}

}  // namespace ist::device

#endif
