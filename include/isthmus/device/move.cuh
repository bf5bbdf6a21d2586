// Isthmus in kernels: addresses of other PEs, and what is stored to and loaded from them; signals; atomics.
//
// Who calls this : kernels. Calls that take a crew are made by all its threads; the others by a thread for itself.
// Threads        : as above. A block's other threads see what a crew's call loaded after its next meeting, sync().
// Ownership      : addresses `mine` are in the own part of the team's memory, and mean the same place in every other.
// Errors         : none where nothing is waited for.
//
// Stores to other PEs are posted: nobody waits for them until a fence, a quiet, a barrier, or a signal that releases.
#ifndef ISTHMUS_DEVICE_MOVE_CUH
#define ISTHMUS_DEVICE_MOVE_CUH

#include "isthmus/device/area.cuh"
#include "isthmus/device/crew.cuh"
#include "isthmus/device/wait.cuh"

namespace ist::device {

// Where PE `pe` has what is here at `mine`.
template <class T>
IST_DEVICE_CODE T* peer_ptr(const ist_team_view& view, T* mine, int pe) {
  const auto distance = static_cast<std::uint64_t>(static_cast<std::int64_t>(pe) - view.pe) * view.stride;
#if defined(__CUDA_ARCH__)
  // By the address, not by its number: what the compiler knows of `mine`, that it is global memory, holds there, too.
  const auto* const there = reinterpret_cast<const volatile unsigned char*>(mine) + static_cast<std::int64_t>(distance);
  return reinterpret_cast<T*>(const_cast<unsigned char*>(there));
#else
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(mine) + distance);
#endif
}
// That byte of PE `pe`'s part.
IST_DEVICE_CODE void* peer_ptr(const ist_team_view& view, std::uint64_t offset, int pe) {
  return part_of(view, pe) + offset;
}

template <class T>
IST_DEVICE_CODE void p(const ist_team_view& view, T* mine, T value, int pe) {
  *peer_ptr(view, mine, pe) = value;
}
// Volatile: another PE may store into it while this kernel runs, and what a multiprocessor keeps of it would be old.
template <class T>
IST_DEVICE_CODE T g(const ist_team_view& view, const T* mine, int pe) {
  return *const_cast<const volatile T*>(peer_ptr(view, mine, pe));
}

template <class Word>
IST_DEVICE_CODE bool lies_as(std::uintptr_t address) {
  return address % sizeof(Word) == 0;
}

// Word i, and one and two steps further, as far as they are among the words: all loads before the first store.
template <class Word>
IST_DEVICE_CODE void copy_last(Word* target, const Word* source, std::uint64_t i, std::uint64_t step, std::uint64_t words) {
  const bool first = i < words, second = i + step < words, third = i + 2 * step < words;
  Word a{}, b{}, c{};
  if (first) a = source[i];
  if (second) b = source[i + step];
  if (third) c = source[i + 2 * step];
  if (first) target[i] = a;
  if (second) target[i + step] = b;
  if (third) target[i + 2 * step] = c;
}

// Four loads are on their way before the first of their stores: nobody tells the compiler that the two do not overlap.
template <class Word>
IST_DEVICE_CODE void copy_words(unsigned char* to, const unsigned char* from, std::uint64_t words, unsigned thread,
                                unsigned threads) {
  auto* const target = reinterpret_cast<Word*>(to);
  const auto* const source = reinterpret_cast<const Word*>(from);
  const std::uint64_t step = threads;
  std::uint64_t i = thread;
  IST_DEVICE_LOOP_ONCE
  for (; i + 3 * step < words; i += 4 * step) {
    const Word a = source[i], b = source[i + step], c = source[i + 2 * step], d = source[i + 3 * step];
    target[i] = a;
    target[i + step] = b;
    target[i + 2 * step] = c;
    target[i + 3 * step] = d;
  }
  copy_last(target, source, i, step, words);
}

// Up to so many bytes are short: words of eight or four bytes do.
inline constexpr std::uint64_t kShortCopy = 256;

// Byte by byte, four at a time: `head` of them, and behind `middle` bytes the others.
IST_DEVICE_CODE void copy_edges(unsigned char* to, const unsigned char* from, std::uint64_t head, std::uint64_t middle,
                                std::uint64_t edges, unsigned thread, unsigned threads) {
  const std::uint64_t step = threads;
  IST_DEVICE_LOOP_ONCE
  for (std::uint64_t i = thread; i < edges; i += 4 * step) {
    unsigned char bytes[4] = {};
    for (unsigned n = 0; n < 4; ++n) {
      const std::uint64_t at = i + n * step;
      if (at < edges) bytes[n] = from[at < head ? at : at + middle];
    }
    for (unsigned n = 0; n < 4; ++n) {
      const std::uint64_t at = i + n * step;
      if (at < edges) to[at < head ? at : at + middle] = bytes[n];
    }
  }
}

// In words as wide as the two addresses allow, with a head up to where both lie as those do, and a tail. Out of the way, as it is long, and
// copy_by() has shorter ways for what lies well.
IST_DEVICE_RARE void copy_unevenly(unsigned thread, unsigned threads, unsigned char* to, const unsigned char* from,
                                   std::uint64_t bytes) {
  const std::uintptr_t apart = reinterpret_cast<std::uintptr_t>(to) ^ reinterpret_cast<std::uintptr_t>(from);
  const std::uintptr_t all = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from) | bytes;
  unsigned width = lies_as<Pair>(apart) ? 16 : lies_as<std::uint64_t>(apart) ? 8 : lies_as<std::uint32_t>(apart) ? 4 : 1;
  // A few whole words have no edges.
  if (bytes <= kShortCopy && lies_as<std::uint64_t>(all) && bytes <= std::uint64_t{64} * threads)
    width = 8;
  else if (bytes <= kShortCopy && lies_as<std::uint32_t>(all) && bytes <= std::uint64_t{16} * threads)
    width = 4;
  std::uint64_t head = (0 - reinterpret_cast<std::uintptr_t>(to)) & (width - 1);
  if (head > bytes) head = bytes;
  const std::uint64_t middle = (bytes - head) & ~std::uint64_t{width - 1};
  unsigned char* const target = to + head;
  const unsigned char* const source = from + head;
  if (width == 16)
    copy_words<Pair>(target, source, middle / 16, thread, threads);
  else if (width == 8)
    copy_words<std::uint64_t>(target, source, middle / 8, thread, threads);
  else if (width == 4)
    copy_words<std::uint32_t>(target, source, middle / 4, thread, threads);
  else
    copy_words<unsigned char>(target, source, middle, thread, threads);
  copy_edges(to, from, head, middle, bytes - middle, thread, threads);
}

// Is that a short copy of whole words, no more of them than threads? Then it is copied: one load, one store and no loop. `kAlignment`: of both
// addresses and the length, as far as the types say; `all`: the bits of all three.
template <class Word, unsigned kAlignment>
IST_DEVICE_CODE bool copied_at_once(unsigned thread, unsigned threads, unsigned char* to, const unsigned char* from,
                                    std::uint64_t bytes, std::uintptr_t all) {
  if (kAlignment % sizeof(Word) != 0 && !lies_as<Word>(all)) return false;
  const auto words = static_cast<unsigned>(bytes) / static_cast<unsigned>(sizeof(Word));
  if (words > threads) return false;
  if (thread < words) reinterpret_cast<Word*>(to)[thread] = reinterpret_cast<const Word*>(from)[thread];
  return true;
}

template <unsigned kAlignment = 1>
IST_DEVICE_CODE void copy_by(unsigned thread, unsigned threads, unsigned char* to, const unsigned char* from,
                             std::uint64_t bytes) {
  const std::uintptr_t all = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from) | bytes;
  if (bytes <= kShortCopy) {
    if (copied_at_once<std::uint64_t, kAlignment>(thread, threads, to, from, bytes, all)) return;
    if (copied_at_once<std::uint32_t, kAlignment>(thread, threads, to, from, bytes, all)) return;
  }
  if (kAlignment % sizeof(Pair) == 0 || lies_as<Pair>(all))
    return copy_words<Pair>(to, from, bytes / sizeof(Pair), thread, threads);
  copy_unevenly(thread, threads, to, from, bytes);
}
// All threads of the crew, a grid's too.
template <unsigned kAlignment = 1, class Crew>
IST_DEVICE_CODE void copy(const Crew& crew, void* to, const void* from, std::uint64_t bytes) {
  copy_by<kAlignment>(thread_of(crew), threads_of(crew), static_cast<unsigned char*>(to),
                      static_cast<const unsigned char*>(from), bytes);
}

template <class Crew>
IST_DEVICE_CODE void put(const Crew& crew, const ist_team_view& view, void* mine, const void* source, std::uint64_t bytes,
                         int pe) {
  copy(crew, peer_ptr(view, static_cast<unsigned char*>(mine), pe), source, bytes);
}
// What a PE stored is found if it was told of before: by a signal, a barrier, or a kernel's end.
template <class Crew>
IST_DEVICE_CODE void get(const Crew& crew, const ist_team_view& view, void* destination, const void* mine,
                         std::uint64_t bytes, int pe) {
  copy(crew, destination, peer_ptr(view, static_cast<const unsigned char*>(mine), pe), bytes);
}

// The same of `count` elements, by name alone, put<float>(...): what was deduced from an address would take a count for bytes, or bytes for
// a count.
template <class T>
struct ByName {
  static_assert(__is_trivially_copyable(T), "elements go as their bytes: they have to be trivially copyable");
  using type = T;
};
// They lie as their type has to, here and there: what the compiler knows of that it need not ask.
template <class T>
inline constexpr unsigned kElementAlignment = alignof(T);
template <class T, class Crew>
IST_DEVICE_CODE void put(const Crew& crew, const ist_team_view& view, typename ByName<T>::type* mine,
                         const typename ByName<T>::type* source, std::uint64_t count, int pe) {
  copy<kElementAlignment<T>>(crew, peer_ptr(view, mine, pe), source, count * sizeof(T));
}
template <class T, class Crew>
IST_DEVICE_CODE void get(const Crew& crew, const ist_team_view& view, typename ByName<T>::type* destination,
                         const typename ByName<T>::type* mine, std::uint64_t count, int pe) {
  copy<kElementAlignment<T>>(crew, destination, peer_ptr(view, mine, pe), count * sizeof(T));
}

// Element i goes from source[i * source_stride] to mine[i * stride] of PE `pe`.
template <class T, class Crew>
IST_DEVICE_CODE void put_strided(const Crew& crew, const ist_team_view& view, T* mine, const T* source, std::int64_t stride,
                                 std::int64_t source_stride, std::uint64_t count, int pe) {
  T* const target = peer_ptr(view, mine, pe);
  for (std::uint64_t i = thread_of(crew); i < count; i += threads_of(crew)) {
    const auto at = static_cast<std::int64_t>(i);
    target[at * stride] = source[at * source_stride];
  }
}
template <class T, class Crew>
IST_DEVICE_CODE void get_strided(const Crew& crew, const ist_team_view& view, T* destination, const T* mine,
                                 std::int64_t stride, std::int64_t source_stride, std::uint64_t count, int pe) {
  const T* const source = peer_ptr(view, mine, pe);
  for (std::uint64_t i = thread_of(crew); i < count; i += threads_of(crew)) {
    const auto at = static_cast<std::int64_t>(i);
    destination[at * stride] = source[at * source_stride];
  }
}

// This thread's earlier stores, and those that it learned of at a meeting, come before its later ones, at every PE.
IST_DEVICE_CODE void fence() { fence_system(); }
// They also are done before anything that this thread does later, its loads included.
IST_DEVICE_CODE void quiet() { fence_system_total(); }

enum class Signal : std::int32_t { set, add };

// By one thread. Releases: whoever waits for the signal sees what this thread stored before, and what it had learned of.
IST_DEVICE_CODE void signal(const ist_team_view& view, std::uint64_t* mine, std::uint64_t value, Signal how, int pe) {
  std::uint64_t* const word = peer_ptr(view, mine, pe);
  if (how == Signal::set)
    store_release(word, value);
  else
    add_release(word, value);
}

// Data where it belongs, then the signal: the meeting orders all threads' stores before the first one's release, which is cumulative, so that
// one fence serves all. The source may be changed when this returns. The Status is ok but for a grid, whose blocks wait for each other: until
// the deadline, or a PE's death, and then there is no signal. misuse: too many blocks, and nothing was put.
template <class Crew>
IST_DEVICE_CODE Status put_signal(const Crew& crew, const ist_team_view& view, void* mine, const void* source,
                                  std::uint64_t bytes, std::uint64_t* mine_signal, std::uint64_t value, Signal how, int pe,
                                  std::uint64_t deadline = 0) {
  Gathering<Crew> all(crew, view, deadline);
  if (!all.fits()) return Status::misuse;
  put(crew, view, mine, source, bytes, pe);
  return all.then([&] {
    signal(view, mine_signal, value, how, pe);
    return Status::ok;
  });
}

// ---- atomics: on words of device memory, by one thread, in no order with anything else ----

template <class T>
IST_DEVICE_CODE WordOf<T>* peer_word(const ist_team_view& view, T* mine, int pe) {
  static_assert(kIsWord<T>, "atomics are for words of 4 or 8 bytes");
  return reinterpret_cast<WordOf<T>*>(peer_ptr(view, mine, pe));
}
template <class T>
inline constexpr bool kIsWhole = kIsWord<T>&& std::is_integral<T>::value;

template <class T>
IST_DEVICE_CODE T atomic_fetch(const ist_team_view& view, const T* mine, int pe) {
  return bits_as<T>(load_relaxed(peer_word(view, const_cast<T*>(mine), pe)));
}
template <class T>
IST_DEVICE_CODE void atomic_set(const ist_team_view& view, T* mine, T value, int pe) {
  store_relaxed(peer_word(view, mine, pe), bits_as<WordOf<T>>(value));
}
template <class T>
IST_DEVICE_CODE T atomic_swap(const ist_team_view& view, T* mine, T value, int pe) {
  return bits_as<T>(fetch_swap(peer_word(view, mine, pe), bits_as<WordOf<T>>(value)));
}
template <class T>
IST_DEVICE_CODE T atomic_compare_swap(const ist_team_view& view, T* mine, T expected, T wanted, int pe) {
  static_assert(kIsWhole<T>, "compared are integers");
  return bits_as<T>(fetch_compare_swap(peer_word(view, mine, pe), bits_as<WordOf<T>>(expected), bits_as<WordOf<T>>(wanted)));
}

#define IST_DEVICE_PEER_ATOMIC(NAME, WORD_CALL)                                                         \
  template <class T>                                                                                    \
  IST_DEVICE_CODE T atomic_fetch_##NAME(const ist_team_view& view, T* mine, T value, int pe) {          \
    static_assert(kIsWhole<T>, "integers of 4 or 8 bytes");                                             \
    return static_cast<T>(fetch_##WORD_CALL(peer_word(view, mine, pe), static_cast<WordOf<T>>(value))); \
  }                                                                                                     \
  template <class T>                                                                                    \
  IST_DEVICE_CODE void atomic_##NAME(const ist_team_view& view, T* mine, T value, int pe) {             \
    static_assert(kIsWhole<T>, "integers of 4 or 8 bytes");                                             \
    only_##WORD_CALL(peer_word(view, mine, pe), static_cast<WordOf<T>>(value));                         \
  }
IST_DEVICE_PEER_ATOMIC(add, sum)
IST_DEVICE_PEER_ATOMIC(and, and)
IST_DEVICE_PEER_ATOMIC(or, or)
IST_DEVICE_PEER_ATOMIC(xor, xor)
#undef IST_DEVICE_PEER_ATOMIC

template <class T>
IST_DEVICE_CODE T atomic_fetch_inc(const ist_team_view& view, T* mine, int pe) {
  return atomic_fetch_add(view, mine, T{1}, pe);
}
template <class T>
IST_DEVICE_CODE void atomic_inc(const ist_team_view& view, T* mine, int pe) {
  atomic_add(view, mine, T{1}, pe);
}

}  // namespace ist::device

#endif
