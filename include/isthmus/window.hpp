// Isthmus, C++ interface: windows. Beside isthmus.hpp, which has the communicators.
//
// Who calls this : programs; over isthmus/window.h, which says what each call means, and what can be registered.
// Threads        : as in C: calls that are not collective from any thread; collective ones, of one window, one at a time.
// Ownership      : Window is a shared value, and keeps its world; not the memory, which its owner frees after free(). That is collective, so
//                  that no destructor calls it: a window that nobody freed goes with its world.
// Errors         : Error, with the code and the library's text.
#ifndef ISTHMUS_WINDOW_HPP
#define ISTHMUS_WINDOW_HPP

#include <bit>
#include <cstdint>
#include <span>
#include <type_traits>

#include "isthmus/heap.hpp"
#include "isthmus/window.h"

namespace isthmus {

// Memory that each PE (a rank of the communicator) already has, reached by all of them. Offsets and sizes are bytes, from the first one that
// PE `pe` has registered.
//
//   Window window(world.comm(), Buffer::cuda(mine), bytes);
//   kernel<<<...>>>(window.view());
//   window.free();
class Window {
 public:
  // Collective, as is free(). Of memory of any kind that other processes can open, another number of bytes at each PE.
  template <class Comm>
  Window(const Comm& comm, const Buffer& memory, std::uint64_t bytes) : world_(comm.world_) {
    detail::check(ist_window_create(comm.c(), memory.c(), bytes, &window_));
  }
  // All copies of it are void then.
  void free() { detail::check(ist_window_free(&window_)); }

  // For kernels (isthmus/device/window.cuh), and to ask it who is where.
  ist_window_view view() const {
    ist_window_view view{};
    detail::check(ist_window_view_of(window_, &view));
    return view;
  }
  int pe() const { return view().pe; }
  int pes() const { return view().pes; }
  // That place of that PE's in this process. Of CUDA memory it is for kernels and copies.
  template <class T = void>
  T* peer_ptr(std::uint64_t offset, int pe) const {
    void* address = nullptr;
    detail::check(ist_window_pointer(window_, offset, pe, &address));
    return static_cast<T*>(address);
  }
  ist_window c() const noexcept { return window_; }

  // Of the caller's memory of any kind.
  void put(std::uint64_t offset, const Buffer& source, std::uint64_t bytes, int pe) const {
    detail::check(ist_window_put(window_, offset, source.c(), bytes, pe));
  }
  void get(const Buffer& dest, std::uint64_t offset, std::uint64_t bytes, int pe) const {
    detail::check(ist_window_get(window_, dest.c(), offset, bytes, pe));
  }
  // Complete after quiet().
  void put_nbi(std::uint64_t offset, const Buffer& source, std::uint64_t bytes, int pe) const {
    detail::check(ist_window_put_nbi(window_, offset, source.c(), bytes, pe));
  }
  void get_nbi(const Buffer& dest, std::uint64_t offset, std::uint64_t bytes, int pe) const {
    detail::check(ist_window_get_nbi(window_, dest.c(), offset, bytes, pe));
  }
  // All of a range of host memory.
  template <class T, std::size_t extent>
  void put(std::uint64_t offset, std::span<T, extent> source, int pe) const {
    static_assert(std::is_trivially_copyable_v<T>, "other PEs copy these bytes");
    put(offset, Buffer::host(source.data()), source.size_bytes(), pe);
  }
  template <class T, std::size_t extent>
  void get(std::span<T, extent> dest, std::uint64_t offset, int pe) const {
    static_assert(std::is_trivially_copyable_v<T>, "other PEs copy these bytes");
    get(Buffer::host(dest.data()), offset, dest.size_bytes(), pe);
  }
  void quiet() const { detail::check(ist_window_quiet(window_)); }

  // Then the word at `word`, of the same PE.
  void put_signal(std::uint64_t offset, const Buffer& source, std::uint64_t bytes, std::uint64_t word, std::uint64_t value,
                  int pe, Signal signal = Signal::set) const {
    detail::check(
        ist_window_put_signal(window_, offset, source.c(), bytes, word, value, static_cast<ist_signal>(signal), pe));
  }
  // The caller's own word.
  template <HeapWord T>
  void wait_until(std::uint64_t offset, Compare compare, T value) const {
    detail::check(ist_window_wait_until(window_, offset, type_of<T>, static_cast<ist_compare>(compare),
                                        static_cast<std::int64_t>(value)));
  }
  template <HeapWord T>
  bool test(std::uint64_t offset, Compare compare, T value) const {
    int is = 0;
    detail::check(ist_window_test(window_, offset, type_of<T>, static_cast<ist_compare>(compare),
                                  static_cast<std::int64_t>(value), &is));
    return is != 0;
  }

  // Atomics on that PE's word; they return what was there. Of CUDA memory by a kernel on this PE's device.
  template <HeapWord T>
  T atomic_fetch(std::uint64_t offset, int pe) const {
    return atomic(IST_ATOMIC_FETCH, offset, T{}, pe);
  }
  template <HeapWord T>
  void atomic_set(std::uint64_t offset, T value, int pe) const {
    atomic(IST_ATOMIC_SET, offset, value, pe);
  }
  template <HeapWord T>
  T atomic_swap(std::uint64_t offset, T value, int pe) const {
    return atomic(IST_ATOMIC_SWAP, offset, value, pe);
  }
  template <HeapWord T>
  T atomic_fetch_add(std::uint64_t offset, T value, int pe) const {
    return atomic(IST_ATOMIC_ADD, offset, value, pe);
  }
  template <HeapWord T>
  T atomic_fetch_and(std::uint64_t offset, T value, int pe) const {
    return atomic(IST_ATOMIC_AND, offset, value, pe);
  }
  template <HeapWord T>
  T atomic_fetch_or(std::uint64_t offset, T value, int pe) const {
    return atomic(IST_ATOMIC_OR, offset, value, pe);
  }
  template <HeapWord T>
  T atomic_fetch_xor(std::uint64_t offset, T value, int pe) const {
    return atomic(IST_ATOMIC_XOR, offset, value, pe);
  }
  template <HeapWord T>
  T atomic_compare_swap(std::uint64_t offset, T expected, std::type_identity_t<T> wanted, int pe) const {
    Bits<T> before = 0;
    const auto old = std::bit_cast<Bits<T>>(expected), next = std::bit_cast<Bits<T>>(wanted);
    if constexpr (sizeof(T) == 4)
      detail::check(ist_window_compare_swap32(window_, offset, old, next, &before, pe));
    else
      detail::check(ist_window_compare_swap64(window_, offset, old, next, &before, pe));
    return std::bit_cast<T>(before);
  }

 private:
  template <class T>
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  template <HeapWord T>
  T atomic(ist_atomic operation, std::uint64_t offset, T operand, int pe) const {
    Bits<T> before = 0;
    if constexpr (sizeof(T) == 4)
      detail::check(ist_window_atomic32(window_, operation, offset, std::bit_cast<Bits<T>>(operand), &before, pe));
    else
      detail::check(ist_window_atomic64(window_, operation, offset, std::bit_cast<Bits<T>>(operand), &before, pe));
    return std::bit_cast<T>(before);
  }

  detail::SharedWorld world_;
  ist_window window_ = IST_WINDOW_NULL;
};

}  // namespace isthmus
#endif
