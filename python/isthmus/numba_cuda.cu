// What isthmus.numba_cuda calls, over isthmus/device.cuh; NVRTC compiles it for kernels of Numba, which calls functions so: the result goes
// through the first argument, and 0 is returned. Addresses are numbers. numba_cuda.py declares each function once more.
#include "isthmus/device.cuh"

using namespace ist::device;
using i32 = int32_t;
using u32 = uint32_t;
using u64 = uint64_t;

// A view's fields, in its order, and the desk of an ist_device_view: null, or a byte for each PE, other than 0 where no atomic operation gets.
#define TEAM i32 pe, i32 pes, u64 base, u64 stride, u64 bytes, u64 sync, u64 sync_bytes, u64 abort_word, u64 desk
#define VIEW \
  ist_team_view { pe, pes, (unsigned char*)base, stride, bytes, sync, sync_bytes, (const volatile u32*)abort_word }

enum { kThread, kWarp, kBlock, kGrid };

// What is known when a kernel is compiled leaves one of them. Of a grid, where a call is not for one, OTHERWISE is done.
#define BY_CREW(OTHERWISE, CALL, ...)             \
  (crew == kThread  ? CALL(Thread(), __VA_ARGS__) \
   : crew == kWarp  ? CALL(Warp(), __VA_ARGS__)   \
   : crew == kBlock ? CALL(Block(), __VA_ARGS__)  \
                    : (OTHERWISE))
#define BY_GRID(CALL, ...) (crew == kGrid ? CALL(Grid(), __VA_ARGS__) : Status::misuse)

// `length` bytes at an address of the own part, and a PE that there is.
__device__ __forceinline__ bool fits(const ist_team_view& view, u64 mine, u64 length, i32 to) {
  const u64 offset = mine - (u64)part_of(view, view.pe);
  return to >= 0 && to < view.pes && offset <= view.bytes && length <= view.bytes - offset;
}

// Atomic operations get to the words of that PE.
__device__ __forceinline__ bool changes(i32 pes, u64 desk, i32 to) {
  return to >= 0 && to < pes && (desk == 0 || ((const unsigned char*)desk)[to] == 0);
}
__device__ __forceinline__ bool can(i32 how, i32 pes, u64 desk, i32 to) {
  return how == (i32)Signal::set || (how == (i32)Signal::add && changes(pes, desk, to));
}

template <class Crew>
__device__ __forceinline__ Status put_all(const Crew& crew, const ist_team_view& view, u64 mine, u64 source, u64 length,
                                          i32 to) {
  put(crew, view, (void*)mine, (const void*)source, length, to);
  return Status::ok;
}
template <class Crew>
__device__ __forceinline__ Status get_all(const Crew& crew, const ist_team_view& view, u64 into, u64 mine, u64 length,
                                          i32 from) {
  get(crew, view, (void*)into, (const void*)mine, length, from);
  return Status::ok;
}
template <class Crew>
__device__ __forceinline__ Status put_signal_all(const Crew& crew, const ist_team_view& view, u64 mine, u64 source,
                                                 u64 length, u64 word, u64 value, i32 how, i32 to) {
  put_signal(crew, view, (void*)mine, (const void*)source, length, (u64*)word, value, (Signal)how, to);
  return Status::ok;
}

template <class T>
__device__ __forceinline__ Status wait_as(const ist_team_view& view, u64 word, i32 compare, u64 value, u64 deadline) {
  return wait_until(view, (const T*)word, (Compare)compare, (T)value, deadline);
}
// One thread of the crew looks, and all learn what it found. `kind`: bytes of the word, negative where it is signed.
template <class Crew>
__device__ __forceinline__ Status wait_all(const Crew& crew, const ist_team_view& view, u64 word, i32 kind, i32 compare,
                                           u64 value, u64 deadline) {
  Status status = Status::ok;
  if (crew.thread == 0)
    status = kind == 4    ? wait_as<u32>(view, word, compare, value, deadline)
             : kind == -4 ? wait_as<i32>(view, word, compare, value, deadline)
             : kind == 8  ? wait_as<u64>(view, word, compare, value, deadline)
                          : wait_as<int64_t>(view, word, compare, value, deadline);
  return agreed(crew, status);
}

extern "C" __device__ int ist_numba_put(i32* result, TEAM, u64 mine, u64 room, u64 source, u64 length, i32 to, i32 crew) {
  const ist_team_view view = VIEW;
  const bool right = room == length && fits(view, mine, length, to);
  *result = (i32)(right ? BY_CREW(BY_GRID(put_all, view, mine, source, length, to), put_all, view, mine, source, length, to)
                        : Status::misuse);
  return 0;
}

extern "C" __device__ int ist_numba_get(i32* result, TEAM, u64 into, u64 room, u64 mine, u64 length, i32 from, i32 crew) {
  const ist_team_view view = VIEW;
  const bool right = room == length && fits(view, mine, length, from);
  *result = (i32)(right ? BY_CREW(BY_GRID(get_all, view, into, mine, length, from), get_all, view, into, mine, length, from)
                        : Status::misuse);
  return 0;
}

extern "C" __device__ int ist_numba_put_signal(i32* result, TEAM, u64 mine, u64 room, u64 source, u64 length, u64 word,
                                               u64 value, i32 to, i32 how, i32 crew) {
  const ist_team_view view = VIEW;
  const bool right =
      room == length && fits(view, mine, length, to) && fits(view, word, 8, to) && word % 8 == 0 && can(how, pes, desk, to);
  *result = (i32)(right ? BY_CREW(Status::misuse, put_signal_all, view, mine, source, length, word, value, how, to)
                        : Status::misuse);
  return 0;
}

extern "C" __device__ int ist_numba_signal(i32* result, TEAM, u64 word, u64 value, i32 to, i32 how) {
  const ist_team_view view = VIEW;
  const bool right = fits(view, word, 8, to) && word % 8 == 0 && can(how, pes, desk, to);
  if (right) signal(view, (u64*)word, value, (Signal)how, to);
  *result = (i32)(right ? Status::ok : Status::misuse);
  return 0;
}

extern "C" __device__ int ist_numba_wait_until(i32* result, TEAM, u64 word, i32 kind, i32 compare, u64 value, u64 deadline,
                                               i32 crew) {
  const ist_team_view view = VIEW;
  const u64 size = kind < 0 ? -kind : kind;
  const bool right =
      compare >= 0 && compare <= (i32)Compare::less_equal && fits(view, word, size, view.pe) && word % size == 0;
  *result = (i32)(right ? BY_CREW(Status::misuse, wait_all, view, word, kind, compare, value, deadline) : Status::misuse);
  return 0;
}

extern "C" __device__ int ist_numba_barrier(i32* result, TEAM, u64 deadline, i32 crew) {
  const ist_team_view view = VIEW;
  *result = (i32)BY_CREW(BY_GRID(barrier, view, deadline), barrier, view, deadline);
  return 0;
}

extern "C" __device__ int ist_numba_changes_words(i32* result, i32 pes, u64 desk, i32 to) {
  *result = changes(pes, desk, to) ? 1 : 0;
  return 0;
}

// Of a word at an address of any PE.
extern "C" __device__ int ist_numba_fetch_add32(u32* result, u64 word, u32 value) {
  *result = fetch_sum((u32*)word, value);
  return 0;
}
extern "C" __device__ int ist_numba_fetch_add64(u64* result, u64 word, u64 value) {
  *result = fetch_sum((u64*)word, value);
  return 0;
}
extern "C" __device__ int ist_numba_swap32(u32* result, u64 word, u32 value) {
  *result = fetch_swap((u32*)word, value);
  return 0;
}
extern "C" __device__ int ist_numba_swap64(u64* result, u64 word, u64 value) {
  *result = fetch_swap((u64*)word, value);
  return 0;
}
extern "C" __device__ int ist_numba_compare_swap32(u32* result, u64 word, u32 expected, u32 wanted) {
  *result = fetch_compare_swap((u32*)word, expected, wanted);
  return 0;
}
extern "C" __device__ int ist_numba_compare_swap64(u64* result, u64 word, u64 expected, u64 wanted) {
  *result = fetch_compare_swap((u64*)word, expected, wanted);
  return 0;
}
extern "C" __device__ int ist_numba_fetch32(u32* result, u64 word) {
  *result = load_relaxed((const u32*)word);
  return 0;
}
extern "C" __device__ int ist_numba_fetch64(u64* result, u64 word) {
  *result = load_relaxed((const u64*)word);
  return 0;
}
extern "C" __device__ int ist_numba_fence(i32* result) {
  fence();
  *result = 0;
  return 0;
}
extern "C" __device__ int ist_numba_quiet(i32* result) {
  quiet();
  *result = 0;
  return 0;
}
