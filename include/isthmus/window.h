/* Isthmus, C interface: windows. Memory that the user already has, registered, so that every PE of a communicator reaches it.
 *
 * Who calls this : applications, from C or C++, beside isthmus.h; device/window.cuh takes the views.
 * Threads        : calls that are not collective, from any thread. Collective ones, of one window, one at a time.
 * Ownership      : the memory stays its owner's, who frees it only after ist_window_free: what others reach of it until then would be gone,
 *                  or somebody else's. A window belongs to the world and maps the others' memory; its communicator may be freed.
 * Errors         : as in isthmus.h. IST_ERR_UNSUPPORTED: memory that other processes cannot open; the text names its allocator, and says
 *                  what to use instead. What one PE alone cannot do, all hear of, with that PE's own words.
 *
 * A PE is a rank of the window's communicator. A place is an offset in bytes in the memory that PE `pe` has registered. What is put, got
 * and changed is complete and seen as in a symmetric heap (isthmus/heap.h): docs/one-sided.md. */
#ifndef ISTHMUS_WINDOW_H
#define ISTHMUS_WINDOW_H

#include "isthmus/heap.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ist_window_handle* ist_window;
#define IST_WINDOW_NULL ((ist_window)0)

/* Collective. Registers the caller's `bytes` at `memory`, of which each PE may give another number, also 0, and then any kind. All that
 * give some give one kind (IST_ERR_KIND, at all of them):
 *   IST_KIND_CUDA: device memory of cudaMalloc, of a pool or of cuMemCreate that was made to be exported, each at any offset, several
 *     windows in one allocation; not managed memory, nor cudaMallocAsync's from the default pool (IST_ERR_UNSUPPORTED). Each PE reaches it
 *     from the device of its own memory, or from its own device (IST_OWN_DEVICE) where it gives none. Where devices do not reach each
 *     other a thread of the PE whose memory it is does what the host's calls here ask for, while its program makes no call
 *     (ISTHMUS_THREADS=single: IST_ERR_SETTING); ist_window_view_of, and ist_window_pointer of that PE, are then IST_ERR_UNREACHABLE, and the
 *     text names both. It may lie on one device.
 *   IST_KIND_HOST: what ist_memory_alloc gave, 16 KiB or more, or any other shared, writable mapping of a file (MAP_SHARED) that is
 *     open or has a name; not malloc's memory, which no other process can map (IST_ERR_UNSUPPORTED). Kernels reach it once the program has
 *     page-locked it, at each address in the view, with cudaHostRegister.
 * All PEs are on one host (IST_ERR_UNREACHABLE), and at most IST_WINDOW_MOST_PES (IST_ERR_ARGUMENT). */
IST_API int ist_window_create(ist_comm comm, ist_buffer memory, uint64_t bytes, ist_window* window);
/* Collective. Completes what the caller has started, waits for all PEs, and unmaps; sets *window to IST_WINDOW_NULL. Views and pointers
 * of it are void then. A world that is destroyed takes its windows along without waiting. */
IST_API int ist_window_free(ist_window* window);

/* ---- who is where; local ---- */

/* What kernels and other code need to reach the memory of all (isthmus/team.h); copied by value. Of host memory `abort_word` lies where
 * the processor alone reads it: a kernel that works on such a view has it set to null, and gives its waits deadlines. */
IST_API int ist_window_view_of(ist_window window, ist_window_view* view);
/* The address in this process of that byte of that PE's: loads and stores through it reach the other's memory. Of CUDA memory it is for
 * kernels and copies. IST_ERR_ARGUMENT at or behind its end. */
IST_API int ist_window_pointer(ist_window window, uint64_t offset, int pe, void** address);

/* ---- copies; the local side is memory of any kind ---- */

/* Complete as ist_heap_put and its siblings are. IST_ERR_ARGUMENT: bytes that that PE has not registered. */
IST_API int ist_window_put(ist_window window, uint64_t offset, ist_buffer source, uint64_t bytes, int pe);
IST_API int ist_window_get(ist_window window, ist_buffer dest, uint64_t offset, uint64_t bytes, int pe);
IST_API int ist_window_put_nbi(ist_window window, uint64_t offset, ist_buffer source, uint64_t bytes, int pe);
IST_API int ist_window_get_nbi(ist_window window, ist_buffer dest, uint64_t offset, uint64_t bytes, int pe);
/* What the caller has put and got before is complete, and visible to every PE. */
IST_API int ist_window_quiet(ist_window window);

/* ---- words of 4 or 8 bytes, at offsets and addresses that are multiples of their size ---- */

/* A put, and then the word at `signal` of the same PE: who sees the word sees the bytes. */
IST_API int ist_window_put_signal(ist_window window, uint64_t offset, ist_buffer source, uint64_t bytes, uint64_t signal,
                                  uint64_t value, ist_signal operation, int pe);
/* Until the caller's own word at `offset` compares so: ist_heap_wait_until. */
IST_API int ist_window_wait_until(ist_window window, uint64_t offset, ist_type type, ist_compare compare, int64_t value);
/* The same without waiting: *is becomes 1 or 0. */
IST_API int ist_window_test(ist_window window, uint64_t offset, ist_type type, ist_compare compare, int64_t value, int* is);
/* On that PE's word; *before, unless null, becomes what was there. As ist_heap_atomic64 and its siblings. */
IST_API int ist_window_atomic32(ist_window window, ist_atomic operation, uint64_t offset, uint32_t operand, uint32_t* before,
                                int pe);
IST_API int ist_window_atomic64(ist_window window, ist_atomic operation, uint64_t offset, uint64_t operand, uint64_t* before,
                                int pe);
IST_API int ist_window_compare_swap32(ist_window window, uint64_t offset, uint32_t expected, uint32_t wanted,
                                      uint32_t* before, int pe);
IST_API int ist_window_compare_swap64(ist_window window, uint64_t offset, uint64_t expected, uint64_t wanted,
                                      uint64_t* before, int pe);

#ifdef __cplusplus
}
#endif
#endif
