/* Isthmus, C interface: symmetric heaps. What one PE puts into the memory of another needs no call there.
 *
 * Who calls this : applications, from C or C++, beside isthmus.h; device.cuh takes the views.
 * Threads        : calls that are not collective, from any thread. Collective ones, of one heap, one at a time.
 * Ownership      : a heap belongs to the world; what was allocated, to the program until it is freed. A heap keeps messages of its own
 *                  apart from all others, and its communicator may be freed.
 * Errors         : as in isthmus.h. A PE that dies ends every wait and every collective call with IST_ERR_PEER_DEAD, and the text names
 *                  it. IST_ERR_UNSUPPORTED: not with this kind of memory; the text says what to do instead.
 *
 * A PE is a rank of the heap's communicator. All PEs allocate together, and an allocation has one offset in the parts of all: an
 * `address` in the calls below is the caller's own copy, and `pe` says whose copy is meant. Sizes are bytes. docs/one-sided.md has the
 * memory model and an example. */
#ifndef ISTHMUS_HEAP_H
#define ISTHMUS_HEAP_H

#include "isthmus/isthmus.h"
#include "isthmus/layout.h"
#include "isthmus/team.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ist_heap_handle* ist_heap;
#define IST_HEAP_NULL ((ist_heap)0)

/* ---- heaps; all calls of this part are collective unless they say otherwise ---- */

/* A heap of `bytes` in each PE's memory, which may grow to `most`: 0 means 64 GiB, or `bytes` where that is more. `most` costs
 * addresses, not memory. Kinds: IST_KIND_HOST; IST_KIND_CUDA and IST_KIND_OPENCL, on `device` of each PE, which may be IST_OWN_DEVICE.
 * All PEs are on one host (IST_ERR_UNREACHABLE), and give the same kind, bytes and most (IST_ERR_ARGUMENT, at all of them). Of host memory
 * pages count once they are written to. Of OpenCL memory a part is a buffer, and one more for each time that it grows. Where others cannot map
 * a part, as of OpenCL memory or of CUDA devices that do not reach each other, a thread of the library's serves it, so that its PE need not
 * call (docs/one-sided.md), but ISTHMUS_THREADS=single is IST_ERR_SETTING.
 * Should it fail at one PE, it fails at all, and the text says at which one and why. */
IST_API int ist_heap_create(ist_comm comm, ist_kind kind, int device, uint64_t bytes, uint64_t most, ist_heap* heap);
/* Waits for all PEs, so that nobody's memory goes while another still uses it; sets *heap to IST_HEAP_NULL. Views and pointers of it are
 * void then. A world that is destroyed takes its heaps along without waiting. */
IST_API int ist_heap_destroy(ist_heap* heap);
/* To so many bytes, of which none move; smaller than it is: IST_ERR_ARGUMENT. Views made before tell of the old size. Of OpenCL
 * memory what is new is one buffer: IST_ERR_MEMORY where the device makes none as large. */
IST_API int ist_heap_grow(ist_heap heap, uint64_t bytes);

/* *address: the caller's copy of `bytes`, at a multiple of 64; null for 0. IST_ERR_MEMORY, at all PEs, with what is free; IST_ERR_ARGUMENT,
 * at all, where PEs give different sizes. All PEs have the memory when it returns at one. */
IST_API int ist_heap_alloc(ist_heap heap, uint64_t bytes, void** address);
/* count times size bytes, zero at every PE before it returns at any. */
IST_API int ist_heap_calloc(ist_heap heap, uint64_t count, uint64_t size, void** address);
/* At a multiple of `alignment`, a power of two, of each part's own beginning: parts begin at multiples of 4096, of device memory 2 MiB. */
IST_API int ist_heap_aligned(ist_heap heap, uint64_t alignment, uint64_t bytes, void** address);
/* All PEs have called before it is free at any; puts and gets that the caller has started are complete. Null is nothing, and no call. */
IST_API int ist_heap_free(ist_heap heap, void* address);
/* Local: bytes that are free, and the largest block. Either may be null. */
IST_API int ist_heap_room(ist_heap heap, uint64_t* free_bytes, uint64_t* largest);

/* Completes what the caller has started (ist_heap_quiet), then waits until all PEs have called. What any PE did to the heap before is
 * visible to all behind it. No messages: each PE stores a word at each other. */
IST_API int ist_heap_barrier(ist_heap heap);

/* ---- who is where; local ---- */

IST_API int ist_heap_pe(ist_heap heap, int* pe);
IST_API int ist_heap_pes(ist_heap heap, int* pes);
/* The address in this process of that PE's copy: loads and stores through it reach the other PE's memory. Of a CUDA heap it is for
 * kernels and copies. IST_ERR_UNSUPPORTED, as of ist_heap_view: the parts of an OpenCL heap are served. */
IST_API int ist_heap_pointer(ist_heap heap, const void* address, int pe, void** remote);
/* The caller's own copy as a buffer of the heap's kind: of an OpenCL heap the cl_mem of the whole part and the offset in it, which kernels
 * take as arguments, with a queue of the library's in its context; of others the address. It is the heap's: never released. */
IST_API int ist_heap_buffer(ist_heap heap, const void* address, ist_buffer* buffer);
/* 1: `address` is in the heap, and that PE's copy in reach; 0 otherwise, and for a PE that there is none. */
IST_API int ist_heap_accessible(ist_heap heap, const void* address, int pe, int* accessible);
/* What code outside of the library needs to reach all parts (isthmus/team.h). IST_ERR_UNSUPPORTED, naming PE and link, where the driver says that
 * no atomic operation of the heap's device gets to some PE's words: kernels would change them piece by piece. ist_heap_device_view tells them. */
IST_API int ist_heap_view(ist_heap heap, ist_team_view* view);
/* The same for kernels on that CUDA device of this process, which may be IST_OWN_DEVICE, and is the same one in every call on the heap. Of a
 * CUDA heap it is the heap's device, and the call makes nothing, or, where no atomic operation gets to some PE's words, a table of those PEs for
 * calls that change words (isthmus/device/host_words.cuh); view->team is for all others. Of a host heap the first call page-locks all parts for the device, whose
 * pages all are memory then, and starts a thread that changes words for its kernels (isthmus/device/host_words.cuh): both until the heap is
 * destroyed, which waits for whatever runs on the device. After ist_heap_grow: another call, and the new view. Kernels that use it have
 * ended before the heap is destroyed; what they asked the thread for is done after their end and the next ist_heap_quiet or
 * ist_heap_barrier, which are IST_ERR_DEVICE where a kernel has given up in the middle of asking (its Status was not ok). Local.
 * IST_ERR_KIND: no CUDA device here. IST_ERR_DEVICE or IST_ERR_MEMORY, in the driver's words, where it locks no more;
 * IST_ERR_UNSUPPORTED where kernels reach no host memory. */
IST_API int ist_heap_device_view(ist_heap heap, int device, ist_device_view* view);

/* ---- copies; the local side is memory of any kind ---- */

/* Writes `bytes` from source to that PE's copy of dest. Returns when source may be used again. Where another PE sees it: after quiet and
 * a signal or barrier, or by put_signal. */
IST_API int ist_heap_put(ist_heap heap, void* dest, ist_buffer source, uint64_t bytes, int pe);
/* Returns with the bytes of that PE's copy of source in dest. */
IST_API int ist_heap_get(ist_heap heap, ist_buffer dest, const void* source, uint64_t bytes, int pe);
/* The same, complete only after ist_heap_quiet or ist_heap_barrier, until which the local buffer must stay as it is. */
IST_API int ist_heap_put_nbi(ist_heap heap, void* dest, ist_buffer source, uint64_t bytes, int pe);
IST_API int ist_heap_get_nbi(ist_heap heap, ist_buffer dest, const void* source, uint64_t bytes, int pe);
/* `count` elements of `size` bytes each: element i from byte i * source_stride to byte i * dest_stride. Strides are in bytes, and no
 * smaller than size. */
IST_API int ist_heap_iput(ist_heap heap, void* dest, uint64_t dest_stride, ist_buffer source, uint64_t source_stride,
                          uint64_t size, uint64_t count, int pe);
IST_API int ist_heap_iget(ist_heap heap, ist_buffer dest, uint64_t dest_stride, const void* source, uint64_t source_stride,
                          uint64_t size, uint64_t count, int pe);

/* So many layouts (isthmus/layout.h) on either side, committed, of as many bytes in all (IST_ERR_ARGUMENT names both sizes) and the same
 * basic types in the same order; what lies in a row is a count of a basic type, ist_layout_of(IST_BYTE) among them. The address in the heap is
 * the first layout's byte 0; the layouts' bytes, those before it too, lie in the caller's own part (IST_ERR_ARGUMENT), and so do they in
 * that PE's. A layout that has a byte twice is written to by neither call: IST_ERR_ARGUMENT. The two sides must not have a byte in common;
 * that is not checked, and what is written then is undefined. Complete as ist_heap_put and ist_heap_get are. Between host memory run by
 * run and by nothing else. A layout in memory of a device, which does not lie in a row, a kernel of its packs or unpacks, in the other PE's
 * memory, too; one in host memory, beside memory of a device, the processor does, by way of blocks. The call waits for either. */
IST_API int ist_heap_put_layout(ist_heap heap, void* dest, int64_t dest_count, ist_layout dest_layout, ist_buffer source,
                                int64_t source_count, ist_layout source_layout, int pe);
IST_API int ist_heap_get_layout(ist_heap heap, ist_buffer dest, int64_t dest_count, ist_layout dest_layout,
                                const void* source, int64_t source_count, ist_layout source_layout, int pe);

/* Order: what the caller has put before is there for everybody before what it puts afterwards. */
IST_API int ist_heap_fence(ist_heap heap);
/* What the caller has put and got before is complete, and visible to every PE. An error of a copy that was started before comes out
 * here. */
IST_API int ist_heap_quiet(ist_heap heap);

/* ---- words of 4 or 8 bytes, at addresses that are multiples of their size ---- */

typedef enum ist_signal IST_AS_INT {
  IST_SIGNAL_SET = 0,
  IST_SIGNAL_ADD = 1 /* atomic with every other call on the word */
} ist_signal;
/* A put, and then the signal's word at the same PE: who sees the word sees the bytes. */
IST_API int ist_heap_put_signal(ist_heap heap, void* dest, ist_buffer source, uint64_t bytes, uint64_t* signal,
                                uint64_t value, ist_signal operation, int pe);
/* The same without waiting: the word changes once the bytes are there, at the latest in ist_heap_quiet; where the copy goes on behind the
 * call, only in a call of this PE on this heap that waits (quiet, barrier, wait_until) or ist_heap_test. Several change theirs in any order.
 * An error of the copy comes out of ist_heap_quiet, and of a wait_until or test whose word does not come before that; its word stays, as does that of
 * one that was not complete when its world was destroyed. */
IST_API int ist_heap_put_signal_nbi(ist_heap heap, void* dest, ist_buffer source, uint64_t bytes, uint64_t* signal,
                                    uint64_t value, ist_signal operation, int pe);
/* The caller's own word. */
IST_API int ist_heap_signal_fetch(ist_heap heap, const uint64_t* signal, uint64_t* value);

typedef enum ist_compare IST_AS_INT {
  IST_COMPARE_EQ = 0,
  IST_COMPARE_NE = 1,
  IST_COMPARE_GT = 2,
  IST_COMPARE_GE = 3,
  IST_COMPARE_LT = 4,
  IST_COMPARE_LE = 5
} ist_compare;
/* Until the caller's own word compares so with `value` (of an unsigned word of 8 bytes, the same bits). What its writer put before, with
 * a fence or a signal, is visible then. Types of 4 and 8 bytes that are integers. Messages of the world move on meanwhile. Ends with
 * IST_ERR_PEER_DEAD, or with IST_ERR_PEER_LEFT when all other PEs have left. */
IST_API int ist_heap_wait_until(ist_heap heap, const void* address, ist_type type, ist_compare compare, int64_t value);
/* The same without waiting: *is becomes 1 or 0. */
IST_API int ist_heap_test(ist_heap heap, const void* address, ist_type type, ist_compare compare, int64_t value, int* is);

typedef enum ist_atomic IST_AS_INT {
  IST_ATOMIC_FETCH = 0, /* operand unused */
  IST_ATOMIC_SET = 1,
  IST_ATOMIC_ADD = 2,
  IST_ATOMIC_INC = 3, /* operand unused */
  IST_ATOMIC_SWAP = 4,
  IST_ATOMIC_AND = 5,
  IST_ATOMIC_OR = 6,
  IST_ATOMIC_XOR = 7
} ist_atomic;
/* On that PE's copy of the word; *before, unless null, becomes what was there. Of a host heap by this processor, sequentially consistent, as
 * of an OpenCL heap that all map; where PEs serve their parts, by that PE's thread, atomic with these calls alone. Of
 * a CUDA heap by a kernel of one thread on the caller's device, which this call waits for: atomic at the scope of the system with those of
 * kernels (device.cuh), and the device needs room for it beside what runs there (launch.cuh leaves some). Where no atomic operation crosses the
 * link to that PE's device, or the process does not see it, by that PE's device, for a thread of its own; IST_ERR_UNSUPPORTED if a PE of the
 * heap has ISTHMUS_THREADS=single, which allows none. */
IST_API int ist_heap_atomic32(ist_heap heap, ist_atomic operation, uint32_t* address, uint32_t operand, uint32_t* before,
                              int pe);
IST_API int ist_heap_atomic64(ist_heap heap, ist_atomic operation, uint64_t* address, uint64_t operand, uint64_t* before,
                              int pe);
/* Writes `wanted` if the word is `expected`; *before, unless null, becomes what was there. */
IST_API int ist_heap_compare_swap32(ist_heap heap, uint32_t* address, uint32_t expected, uint32_t wanted, uint32_t* before,
                                    int pe);
IST_API int ist_heap_compare_swap64(ist_heap heap, uint64_t* address, uint64_t expected, uint64_t wanted, uint64_t* before,
                                    int pe);

/* For the end of the process, where other threads may be inside calls on the world, and in memory of its heaps: this rank leaves, as with
 * ist_world_destroy, but handles stay valid and heaps mapped until the process is gone. What the threads wait for need not come any more.
 * Not collective. */
IST_API int ist_world_leave(ist_world world);

#ifdef __cplusplus
}
#endif
#endif
