// Isthmus in kernels: memory that PEs have registered in a window, by offset; what is stored to and loaded from it; signals; atomics.
//
// Who calls this : kernels, beside device.cuh, and processors that play them. Calls that take a crew are made by all its threads; the others by a thread for
//                  itself.
// Threads        : as above. A block's other threads see what a crew's call loaded after its next meeting, sync().
// Ownership      : `offset` counts bytes from the first one that PE `pe` has registered; nobody checks that it lies within
//                  window.bytes[pe].
// Errors         : none where nothing is waited for.
//
// The calls mean what those of the same name on a team's memory mean (move.cuh), which say by an address where; fence(), quiet() and test()
// are the same ones.
#ifndef ISTHMUS_DEVICE_WINDOW_CUH
#define ISTHMUS_DEVICE_WINDOW_CUH

#include "isthmus/device/move.cuh"

namespace ist::device {

// That byte of PE `pe`'s.
IST_DEVICE_CODE void* peer_ptr(const ist_window_view& window, std::uint64_t offset, int pe) {
  return window.base[pe] + offset;
}
// The same as an address of T, of which offset has to be a place.
template <class T>
IST_DEVICE_CODE T* peer_ptr(const ist_window_view& window, std::uint64_t offset, int pe) {
  return reinterpret_cast<T*>(window.base[pe] + offset);
}

template <class T>
IST_DEVICE_CODE void p(const ist_window_view& window, std::uint64_t offset, T value, int pe) {
  *peer_ptr<T>(window, offset, pe) = value;
}
template <class T>
IST_DEVICE_CODE T g(const ist_window_view& window, std::uint64_t offset, int pe) {
  return *const_cast<const volatile T*>(peer_ptr<T>(window, offset, pe));
}

template <class Crew>
IST_DEVICE_CODE void put(const Crew& crew, const ist_window_view& window, std::uint64_t offset, const void* source,
                         std::uint64_t bytes, int pe) {
  copy(crew, peer_ptr(window, offset, pe), source, bytes);
}
template <class Crew>
IST_DEVICE_CODE void get(const Crew& crew, const ist_window_view& window, void* destination, std::uint64_t offset,
                         std::uint64_t bytes, int pe) {
  copy(crew, destination, peer_ptr(window, offset, pe), bytes);
}

// The same of `count` elements, by name alone: put<float>(...). The offset is in bytes.
template <class T, class Crew>
IST_DEVICE_CODE void put(const Crew& crew, const ist_window_view& window, std::uint64_t offset,
                         const typename ByName<T>::type* source, std::uint64_t count, int pe) {
  put(crew, window, offset, static_cast<const void*>(source), count * sizeof(T), pe);
}
template <class T, class Crew>
IST_DEVICE_CODE void get(const Crew& crew, const ist_window_view& window, typename ByName<T>::type* destination,
                         std::uint64_t offset, std::uint64_t count, int pe) {
  get(crew, window, static_cast<void*>(destination), offset, count * sizeof(T), pe);
}

// By one thread. Releases, as the signal on a team's memory.
IST_DEVICE_CODE void signal(const ist_window_view& window, std::uint64_t offset, std::uint64_t value, Signal how, int pe) {
  auto* const word = peer_ptr<std::uint64_t>(window, offset, pe);
  if (how == Signal::set)
    store_release(word, value);
  else
    add_release(word, value);
}

// Data at `offset`, then the signal at `word`, by the crew of a thread, a warp or a block. The source may be changed when this returns.
template <class Crew>
IST_DEVICE_CODE void put_signal(const Crew& crew, const ist_window_view& window, std::uint64_t offset, const void* source,
                                std::uint64_t bytes, std::uint64_t word, std::uint64_t value, Signal how, int pe) {
  static_assert(
      !kIsGrid<Crew>,
      "put_signal to a window by a Grid needs a team in whose words its blocks meet, or the signal would come before what "
      "others put: put_signal(crew, team, window, offset, source, bytes, word, value, how, pe), and look at its Status");
  put(crew, window, offset, source, bytes, pe);
  crew.sync();
  if (crew.thread == 0) signal(window, word, value, how, pe);
}

// The same by any crew: the blocks of a grid meet in words of `team`, which need not be a team of the window's PEs. The deadline and the Status
// are those of put_signal() to a team's memory (move.cuh).
template <class Crew>
IST_DEVICE_CODE Status put_signal(const Crew& crew, const ist_team_view& team, const ist_window_view& window,
                                  std::uint64_t offset, const void* source, std::uint64_t bytes, std::uint64_t word,
                                  std::uint64_t value, Signal how, int pe, std::uint64_t deadline = 0) {
  Gathering<Crew> all(crew, team, deadline);
  if (!all.fits()) return Status::misuse;
  put(crew, window, offset, source, bytes, pe);
  return all.then([&] {
    signal(window, word, value, how, pe);
    return Status::ok;
  });
}

// ---- atomics: on words of device memory, by one thread, in no order with anything else ----

template <class T>
IST_DEVICE_CODE WordOf<T>* peer_word(const ist_window_view& window, std::uint64_t offset, int pe) {
  static_assert(kIsWord<T>, "atomics are for words of 4 or 8 bytes");
  return peer_ptr<WordOf<T>>(window, offset, pe);
}

template <class T>
IST_DEVICE_CODE T atomic_fetch(const ist_window_view& window, std::uint64_t offset, int pe) {
  return bits_as<T>(load_relaxed(peer_word<T>(window, offset, pe)));
}
template <class T>
IST_DEVICE_CODE void atomic_set(const ist_window_view& window, std::uint64_t offset, T value, int pe) {
  store_relaxed(peer_word<T>(window, offset, pe), bits_as<WordOf<T>>(value));
}
template <class T>
IST_DEVICE_CODE T atomic_swap(const ist_window_view& window, std::uint64_t offset, T value, int pe) {
  return bits_as<T>(fetch_swap(peer_word<T>(window, offset, pe), bits_as<WordOf<T>>(value)));
}
template <class T>
IST_DEVICE_CODE T atomic_compare_swap(const ist_window_view& window, std::uint64_t offset, T expected, T wanted, int pe) {
  static_assert(kIsWhole<T>, "compared are integers");
  return bits_as<T>(
      fetch_compare_swap(peer_word<T>(window, offset, pe), bits_as<WordOf<T>>(expected), bits_as<WordOf<T>>(wanted)));
}

#define IST_DEVICE_WINDOW_ATOMIC(NAME, WORD_CALL)                                                               \
  template <class T>                                                                                            \
  IST_DEVICE_CODE T atomic_fetch_##NAME(const ist_window_view& window, std::uint64_t offset, T value, int pe) { \
    static_assert(kIsWhole<T>, "integers of 4 or 8 bytes");                                                     \
    return static_cast<T>(fetch_##WORD_CALL(peer_word<T>(window, offset, pe), static_cast<WordOf<T>>(value)));  \
  }                                                                                                             \
  template <class T>                                                                                            \
  IST_DEVICE_CODE void atomic_##NAME(const ist_window_view& window, std::uint64_t offset, T value, int pe) {    \
    static_assert(kIsWhole<T>, "integers of 4 or 8 bytes");                                                     \
    only_##WORD_CALL(peer_word<T>(window, offset, pe), static_cast<WordOf<T>>(value));                          \
  }
IST_DEVICE_WINDOW_ATOMIC(add, sum)
IST_DEVICE_WINDOW_ATOMIC(and, and)
IST_DEVICE_WINDOW_ATOMIC(or, or)
IST_DEVICE_WINDOW_ATOMIC(xor, xor)
#undef IST_DEVICE_WINDOW_ATOMIC

template <class T>
IST_DEVICE_CODE T atomic_fetch_inc(const ist_window_view& window, std::uint64_t offset, int pe) {
  return atomic_fetch_add(window, offset, T{1}, pe);
}
template <class T>
IST_DEVICE_CODE void atomic_inc(const ist_window_view& window, std::uint64_t offset, int pe) {
  atomic_add(window, offset, T{1}, pe);
}

}  // namespace ist::device

#endif
