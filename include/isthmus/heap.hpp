// Isthmus, C++ interface: symmetric heaps. Beside isthmus.hpp, which has the communicators.
//
// Who calls this : programs; over isthmus/heap.h, which says what each call means, when it is complete and who sees it.
// Threads        : as in C: calls that are not collective from any thread; collective ones, of one heap, one at a time.
// Ownership      : Heap is a shared value, and keeps its world. destroy() is collective, so that no destructor calls it: a heap that
//                  nobody destroyed goes with its world. Memory that was allocated belongs to the program until it is freed.
// Errors         : Error, with the code and the library's text.
#ifndef ISTHMUS_HEAP_HPP
#define ISTHMUS_HEAP_HPP

#include <bit>
#include <concepts>
#include <cstdint>
#include <span>
#include <type_traits>

#include "isthmus/heap.h"
#include "isthmus/heap_stream.h"
#include "isthmus/layout.hpp"
#include "isthmus/request.hpp"

namespace isthmus {

// Integers that are waited for and changed atomically.
template <class T>
concept HeapWord = std::integral<T> && !std::same_as<T, bool> && (sizeof(T) == 4 || sizeof(T) == 8);

enum class Compare : int {
  equal = IST_COMPARE_EQ,
  not_equal = IST_COMPARE_NE,
  greater = IST_COMPARE_GT,
  greater_equal = IST_COMPARE_GE,
  less = IST_COMPARE_LT,
  less_equal = IST_COMPARE_LE
};
enum class Signal : int { set = IST_SIGNAL_SET, add = IST_SIGNAL_ADD };

// Memory of every PE (a rank of the communicator) that all of them reach. An address is the caller's own copy, and `pe` says whose is
// meant; counts are of elements.
//
//   Heap heap(world.comm(), Kind::host, 1 << 20);
//   auto* const numbers = heap.alloc<double>(100);
//   heap.put(numbers, std::span(mine), right);
//   heap.barrier();
class Heap {
 public:
  // Collective, as are destroy, grow, the calls that allocate, free and barrier. most: 0 for 64 GiB, or bytes where that is more.
  template <class Comm>
  Heap(const Comm& comm, Kind kind, std::uint64_t bytes, std::uint64_t most = 0, int device = IST_OWN_DEVICE)
      : world_(comm.world_) {
    detail::check(ist_heap_create(comm.c(), static_cast<ist_kind>(kind), device, bytes, most, &heap_));
  }
  // All copies of it are void then.
  void destroy() { detail::check(ist_heap_destroy(&heap_)); }
  void grow(std::uint64_t bytes) { detail::check(ist_heap_grow(heap_, bytes)); }
  template <class T>
  T* alloc(std::uint64_t count, std::uint64_t alignment = alignof(T)) const {
    static_assert(std::is_trivially_copyable_v<T>, "other PEs copy these bytes");
    void* address = nullptr;
    detail::check(alignment > 64 ? ist_heap_aligned(heap_, alignment, bytes_of<T>(count), &address)
                                 : ist_heap_alloc(heap_, bytes_of<T>(count), &address));
    return static_cast<T*>(address);
  }
  // Zero at every PE.
  template <class T>
  T* calloc(std::uint64_t count) const {
    static_assert(std::is_trivially_copyable_v<T>, "other PEs copy these bytes");
    void* address = nullptr;
    detail::check(ist_heap_calloc(heap_, count, sizeof(T), &address));
    return static_cast<T*>(address);
  }
  void free(void* address) const { detail::check(ist_heap_free(heap_, address)); }
  void barrier() const { detail::check(ist_heap_barrier(heap_)); }

  struct Room {
    std::uint64_t free;
    std::uint64_t largest;
  };
  Room room() const {
    Room found{};
    detail::check(ist_heap_room(heap_, &found.free, &found.largest));
    return found;
  }
  int pe() const { return ask(ist_heap_pe); }
  int pes() const { return ask(ist_heap_pes); }
  // That PE's copy. Of a CUDA heap it is for kernels and copies.
  template <class T>
  T* pointer(T* address, int pe) const {
    void* remote = nullptr;
    detail::check(ist_heap_pointer(heap_, address, pe, &remote));
    return static_cast<T*>(remote);
  }
  // The own copy as a buffer of the heap's kind: of an OpenCL heap the cl_mem and the offset in it.
  Buffer buffer(const void* address) const {
    ist_buffer own{};
    detail::check(ist_heap_buffer(heap_, address, &own));
    return Buffer(own);
  }
  bool accessible(const void* address, int pe) const {
    int accessible = 0;
    detail::check(ist_heap_accessible(heap_, address, pe, &accessible));
    return accessible != 0;
  }
  // For kernels: isthmus/device.cuh.
  ist_team_view view() const {
    ist_team_view view{};
    detail::check(ist_heap_view(heap_, &view));
    return view;
  }
  // For kernels on that device, of a heap in host memory too: isthmus/device/host_words.cuh.
  ist_device_view device_view(int device = IST_OWN_DEVICE) const {
    ist_device_view view{};
    detail::check(ist_heap_device_view(heap_, device, &view));
    return view;
  }
  ist_heap c() const noexcept { return heap_; }

  // Of the caller's memory of any kind, so many elements of dest.
  template <class T>
  void put(T* dest, const Buffer& source, std::uint64_t count, int pe) const {
    detail::check(ist_heap_put(heap_, dest, source.c(), bytes_of<T>(count), pe));
  }
  template <class T>
  void get(const Buffer& dest, const T* source, std::uint64_t count, int pe) const {
    detail::check(ist_heap_get(heap_, dest.c(), source, bytes_of<T>(count), pe));
  }
  // Complete after quiet() or barrier().
  template <class T>
  void put_nbi(T* dest, const Buffer& source, std::uint64_t count, int pe) const {
    detail::check(ist_heap_put_nbi(heap_, dest, source.c(), bytes_of<T>(count), pe));
  }
  template <class T>
  void get_nbi(const Buffer& dest, const T* source, std::uint64_t count, int pe) const {
    detail::check(ist_heap_get_nbi(heap_, dest.c(), source, bytes_of<T>(count), pe));
  }
  template <class T>
  void put_signal(T* dest, const Buffer& source, std::uint64_t count, std::uint64_t* word, std::uint64_t value, int pe,
                  Signal signal = Signal::set) const {
    detail::check(
        ist_heap_put_signal(heap_, dest, source.c(), bytes_of<T>(count), word, value, static_cast<ist_signal>(signal), pe));
  }
  // Without waiting: the word changes once the elements are there, at the latest in quiet() or barrier().
  template <class T>
  void put_signal_nbi(T* dest, const Buffer& source, std::uint64_t count, std::uint64_t* word, std::uint64_t value, int pe,
                      Signal signal = Signal::set) const {
    detail::check(ist_heap_put_signal_nbi(heap_, dest, source.c(), bytes_of<T>(count), word, value,
                                          static_cast<ist_signal>(signal), pe));
  }
  // So many layouts on either side, of as many bytes; a Type is the layout of one element.
  void put_layout(void* dest, std::int64_t dest_count, const Layout& dest_layout, const Buffer& source,
                  std::int64_t source_count, const Layout& source_layout, int pe) const {
    detail::check(ist_heap_put_layout(heap_, dest, dest_count, dest_layout.commit().c(), source.c(), source_count,
                                      source_layout.commit().c(), pe));
  }
  void get_layout(const Buffer& dest, std::int64_t dest_count, const Layout& dest_layout, const void* source,
                  std::int64_t source_count, const Layout& source_layout, int pe) const {
    detail::check(ist_heap_get_layout(heap_, dest.c(), dest_count, dest_layout.commit().c(), source, source_count,
                                      source_layout.commit().c(), pe));
  }
  // In the order of a CUDA stream: isthmus/heap_stream.h.
  template <class T>
  void put_on(void* stream, T* dest, const Buffer& source, std::uint64_t count, int pe) const {
    detail::check(ist_heap_put_on(heap_, stream, dest, source.c(), bytes_of<T>(count), pe));
  }
  template <class T>
  void get_on(void* stream, const Buffer& dest, const T* source, std::uint64_t count, int pe) const {
    detail::check(ist_heap_get_on(heap_, stream, dest.c(), source, bytes_of<T>(count), pe));
  }
  template <class T>
  void put_signal_on(void* stream, T* dest, const Buffer& source, std::uint64_t count, std::uint64_t* word,
                     std::uint64_t value, int pe, Signal signal = Signal::set) const {
    detail::check(ist_heap_put_signal_on(heap_, stream, dest, source.c(), bytes_of<T>(count), word, value,
                                         static_cast<ist_signal>(signal), pe));
  }
  void put_layout_on(void* stream, void* dest, std::int64_t dest_count, const Layout& dest_layout, const Buffer& source,
                     std::int64_t source_count, const Layout& source_layout, int pe) const {
    detail::check(ist_heap_put_layout_on(heap_, stream, dest, dest_count, dest_layout.commit().c(), source.c(), source_count,
                                         source_layout.commit().c(), pe));
  }
  void get_layout_on(void* stream, const Buffer& dest, std::int64_t dest_count, const Layout& dest_layout,
                     const void* source, std::int64_t source_count, const Layout& source_layout, int pe) const {
    detail::check(ist_heap_get_layout_on(heap_, stream, dest.c(), dest_count, dest_layout.commit().c(), source, source_count,
                                         source_layout.commit().c(), pe));
  }
  template <HeapWord T>
  void wait_until_on(void* stream, const T* word, Compare compare, std::type_identity_t<T> value) const {
    detail::check(
        ist_heap_wait_until_on(heap_, stream, word, type_of<T>, static_cast<ist_compare>(compare), as_wide(value)));
  }
  void barrier_on(void* stream) const { detail::check(ist_heap_barrier_on(heap_, stream)); }
  // Element i of the source to element i * dest_stride of dest; strides count elements.
  template <class T>
  void iput(T* dest, std::uint64_t dest_stride, const Buffer& source, std::uint64_t source_stride, std::uint64_t count,
            int pe) const {
    detail::check(
        ist_heap_iput(heap_, dest, bytes_of<T>(dest_stride), source.c(), bytes_of<T>(source_stride), sizeof(T), count, pe));
  }
  template <class T>
  void iget(const Buffer& dest, std::uint64_t dest_stride, const T* source, std::uint64_t source_stride, std::uint64_t count,
            int pe) const {
    detail::check(
        ist_heap_iget(heap_, dest.c(), bytes_of<T>(dest_stride), source, bytes_of<T>(source_stride), sizeof(T), count, pe));
  }
  // All of a range of host memory.
  template <class T>
  void put(T* dest, std::span<const std::type_identity_t<T>> source, int pe) const {
    put(dest, Buffer::host(source.data()), source.size(), pe);
  }
  template <class T>
  void get(std::span<T> dest, const std::type_identity_t<T>* source, int pe) const {
    get(Buffer::host(dest.data()), source, dest.size(), pe);
  }
  // One element.
  template <class T>
  void p(T* dest, const std::type_identity_t<T>& value, int pe) const {
    put(dest, Buffer::host(&value), 1, pe);
  }
  template <class T>
  T g(const T* source, int pe) const {
    T value;
    get(Buffer::host(&value), source, 1, pe);
    return value;
  }
  void fence() const { detail::check(ist_heap_fence(heap_)); }
  void quiet() const { detail::check(ist_heap_quiet(heap_)); }

  // The caller's own word.
  std::uint64_t signal_fetch(const std::uint64_t* word) const {
    std::uint64_t value = 0;
    detail::check(ist_heap_signal_fetch(heap_, word, &value));
    return value;
  }
  template <HeapWord T>
  void wait_until(const T* word, Compare compare, std::type_identity_t<T> value) const {
    detail::check(ist_heap_wait_until(heap_, word, type_of<T>, static_cast<ist_compare>(compare), as_wide(value)));
  }
  template <HeapWord T>
  bool test(const T* word, Compare compare, std::type_identity_t<T> value) const {
    int is = 0;
    detail::check(ist_heap_test(heap_, word, type_of<T>, static_cast<ist_compare>(compare), as_wide(value), &is));
    return is != 0;
  }

  // Atomics on that PE's copy; those that fetch return what was there. Of a CUDA heap by a kernel on this PE's device.
  template <HeapWord T>
  T atomic_fetch(const T* word, int pe) const {
    return atomic(IST_ATOMIC_FETCH, const_cast<T*>(word), T{}, pe);
  }
  template <HeapWord T>
  void atomic_set(T* word, std::type_identity_t<T> value, int pe) const {
    atomic(IST_ATOMIC_SET, word, value, pe);
  }
  template <HeapWord T>
  T atomic_swap(T* word, std::type_identity_t<T> value, int pe) const {
    return atomic(IST_ATOMIC_SWAP, word, value, pe);
  }
  template <HeapWord T>
  T atomic_fetch_add(T* word, std::type_identity_t<T> value, int pe) const {
    return atomic(IST_ATOMIC_ADD, word, value, pe);
  }
  template <HeapWord T>
  T atomic_fetch_inc(T* word, int pe) const {
    return atomic(IST_ATOMIC_INC, word, T{}, pe);
  }
  template <HeapWord T>
  T atomic_fetch_and(T* word, std::type_identity_t<T> value, int pe) const {
    return atomic(IST_ATOMIC_AND, word, value, pe);
  }
  template <HeapWord T>
  T atomic_fetch_or(T* word, std::type_identity_t<T> value, int pe) const {
    return atomic(IST_ATOMIC_OR, word, value, pe);
  }
  template <HeapWord T>
  T atomic_fetch_xor(T* word, std::type_identity_t<T> value, int pe) const {
    return atomic(IST_ATOMIC_XOR, word, value, pe);
  }
  template <HeapWord T>
  T atomic_compare_swap(T* word, std::type_identity_t<T> expected, std::type_identity_t<T> wanted, int pe) const {
    Bits<T> before = 0;
    auto* const bits = reinterpret_cast<Bits<T>*>(word);
    const auto old = std::bit_cast<Bits<T>>(expected), next = std::bit_cast<Bits<T>>(wanted);
    if constexpr (sizeof(T) == 4)
      detail::check(ist_heap_compare_swap32(heap_, bits, old, next, &before, pe));
    else
      detail::check(ist_heap_compare_swap64(heap_, bits, old, next, &before, pe));
    return std::bit_cast<T>(before);
  }

 private:
  template <class T>
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

  // What does not fit is more than any heap has, which the call says.
  template <class T>
  static std::uint64_t bytes_of(std::uint64_t count) {
    return count > UINT64_MAX / sizeof(T) ? UINT64_MAX : count * sizeof(T);
  }
  template <HeapWord T>
  static std::int64_t as_wide(T value) {
    return static_cast<std::int64_t>(value);
  }
  template <class Call>
  int ask(Call call) const {
    int found = 0;
    detail::check(call(heap_, &found));
    return found;
  }
  template <HeapWord T>
  T atomic(ist_atomic operation, T* word, T operand, int pe) const {
    Bits<T> before = 0;
    auto* const bits = reinterpret_cast<Bits<T>*>(word);
    if constexpr (sizeof(T) == 4)
      detail::check(ist_heap_atomic32(heap_, operation, bits, std::bit_cast<Bits<T>>(operand), &before, pe));
    else
      detail::check(ist_heap_atomic64(heap_, operation, bits, std::bit_cast<Bits<T>>(operand), &before, pe));
    return std::bit_cast<T>(before);
  }

  detail::SharedWorld world_;
  ist_heap heap_ = IST_HEAP_NULL;
};

}  // namespace isthmus
#endif
