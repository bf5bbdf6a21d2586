/* Symmetric heaps of CUDA memory in the order of streams: the calls return at once, and what they do is done when the stream comes to it.
 *
 * Who calls this : applications, from C or C++, beside heap.h; in C++ the members of Heap in heap.hpp.
 * Heaps          : of IST_KIND_CUDA; of any other IST_ERR_KIND.
 * Streams        : a CUstream or cudaStream_t of the heap's device on this PE (IST_ERR_ARGUMENT names both devices); 0, cudaStreamLegacy and
 *                  cudaStreamPerThread are those of the heap's device, whichever is current. What was put into the stream before is over, on this device and in other PEs' parts, when the call's turn comes; what follows begins after it.
 *                  Nothing else is ordered: two streams are not, nor are other calls on the heap. All calls may be captured into graphs,
 *                  and replayed, once the same one was made on the heap outside of a capture, which loads its kernel; of a layout that is
 *                  not regular with the same layout and count (IST_ERR_NOT_CAPTURABLE). What such a graph needs stays as long as the heap.
 * Ownership      : buffers and addresses stay as they are until the stream has passed the call; the stream is the caller's. A heap is
 *                  destroyed when its streams have come past all of them.
 * Waiting        : ist_heap_wait_until_on and ist_heap_barrier_on hold the stream, by a kernel of one thread or warp that looks at memory of its
 *                  own device. Where two PEs have one device their kernels need not run at once, but by turns of some milliseconds: a wait
 *                  goes on by these, and the barrier, in which all kernels meet, is IST_ERR_UNSUPPORTED, naming both PEs.
 *                  A PE that dies ends the wait; what follows in the stream then runs on what is there, and the next call on the heap returns
 *                  IST_ERR_PEER_DEAD. As everywhere in CUDA, what is loaded lazily by a first launch may wait for such a kernel: set
 *                  CUDA_MODULE_LOADING=EAGER, or launch everything once before.
 * Errors         : as in heap.h; what is wrong with the arguments is told at once. */
#ifndef ISTHMUS_HEAP_STREAM_H
#define ISTHMUS_HEAP_STREAM_H

#include <isthmus/heap.h>
#include <isthmus/layout.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Between CUDA or page-locked host memory and that PE's part; of ordinary host memory the driver may hold the caller until it is copied. */
IST_API int ist_heap_put_on(ist_heap heap, void* stream, void* dest, ist_buffer source, uint64_t bytes, int pe);
IST_API int ist_heap_get_on(ist_heap heap, void* stream, ist_buffer dest, const void* source, uint64_t bytes, int pe);
/* The bytes, and then the word: who sees the word sees the bytes, and all that the stream did before. bytes may be 0. IST_SIGNAL_ADD:
 * IST_ERR_UNSUPPORTED where no atomic operation crosses the link to that PE's device. */
IST_API int ist_heap_put_signal_on(ist_heap heap, void* stream, void* dest, ist_buffer source, uint64_t bytes,
                                   uint64_t* signal, uint64_t value, ist_signal operation, int pe);
/* As ist_heap_put_layout and _get_layout, of memory of the heap's own device on this PE: strided or listed on either side or on both. One kernel, into the other
 * PE's memory or out of it. */
IST_API int ist_heap_put_layout_on(ist_heap heap, void* stream, void* dest, int64_t dest_count, ist_layout dest_layout,
                                   ist_buffer source, int64_t source_count, ist_layout source_layout, int pe);
IST_API int ist_heap_get_layout_on(ist_heap heap, void* stream, ist_buffer dest, int64_t dest_count, ist_layout dest_layout,
                                   const void* source, int64_t source_count, ist_layout source_layout, int pe);

/* Holds the stream until the caller's own word compares so; types and values as in ist_heap_wait_until. */
IST_API int ist_heap_wait_until_on(ist_heap heap, void* stream, const void* address, ist_type type, ist_compare compare,
                                   int64_t value);
/* Holds the stream until all PEs' streams have come as far; what each did before is there for all. At most 8 PEs (IST_ERR_UNSUPPORTED). It is
 * the same barrier as barrier() of isthmus/device.cuh: a PE may come to it in a kernel and another by this call, and as there one
 * at a time of each PE. */
IST_API int ist_heap_barrier_on(ist_heap heap, void* stream);

#ifdef __cplusplus
}
#endif
#endif
