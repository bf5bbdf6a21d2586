/* Isthmus, C interface: messages that are sent and received by what is put into CUDA streams, and by graphs captured from them.
 *
 * Who calls this : applications, from C or C++, beside isthmus.h.
 * Threads        : as in isthmus.h; of each end of a channel one thread, and one stream, at a time.
 * Ownership      : a buffer belongs to the stream from the call until the work that the call put there is over.
 * Streams        : every call but a channel's first returns at once, and what it puts into the stream runs in the stream's order,
 *                  behind what is there and ahead of what comes. Nothing else is waited for: a buffer's own stream plays no part.
 * Errors         : as in isthmus.h. What goes wrong in the stream is returned by the next call on the same end of the channel, and
 *                  by ist_world_destroy.
 *
 * A channel is what one rank sends to one other with one tag of one communicator. Its n-th send that is executed meets its n-th
 * receive that is executed, be they plain calls or replays of a graph; nothing else meets them: ist_send and ist_recv are apart.
 * So much may be under way before a send waits for its receive, in the stream and never on the processor: between two devices 32
 * messages, two of them longer than 8 KiB, and of those 8 MiB; on one device eight, of which one that is longer than 1 MiB counts
 * for each MiB that it has begun. Ranks that send each other more than that before they receive wait for ever: there is
 * ist_sendrecv_on for that.
 *
 * Buffers are device memory of the stream's device, managed memory, or page-locked host memory (ist_register, or allocated so by
 * the driver). A stream is a CUstream or cudaStream_t of a device's primary context, as cudaSetDevice gives it.
 *
 * A channel has to be prepared at both ends, once: the first call on it does so, or ist_prepare_on. This waits until the other
 * rank has made any call of this library's that moves messages, or the like call; so do it before work that waits is in a stream,
 * and before a capture. It takes some milliseconds. Where the other rank is first, this one's end is on the device that is current
 * in the thread whose call hears of it, or else on the one that ist_memory_alloc calls IST_OWN_DEVICE; streams of another device of
 * this rank then get an error.
 *
 * Between two devices a pattern is sent over their link before the first channel is made. Where it comes wrong, or the driver opens no
 * way, there is none: every call on it returns IST_ERR_DEVICE, whose text names the two, the reason and what to do.
 *
 * Between two devices a kernel waits for the other rank's. What else is to run meanwhile needs room on the device, a stream that
 * shares no hardware queue with this one (CUDA_DEVICE_MAX_CONNECTIONS, 8 unless set), and code that is there: by itself the
 * driver brings a kernel's code to the device at its first launch, and waits for running kernels before that, so that programs
 * which launch new kernels behind a waiting receive should set CUDA_MODULE_LOADING=EAGER before they touch CUDA. On one device no
 * kernel waits: streams do. Either way cudaFree, cudaFreeHost, cudaHostUnregister and what frees by them (ist_memory_free, ist_unregister)
 * return when the stream has gone on, and until then no thread of this process gets anything onto the device; do not call them while
 * the other rank may wait for one of those. cudaFreeAsync and cuMemUnmap wait for nothing.
 *
 * Graphs that hold such work may not be launched any more once the world is destroyed. */
#ifndef ISTHMUS_STREAM_H
#define ISTHMUS_STREAM_H

#include "isthmus/collective.h"
#include "isthmus/isthmus.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sends count elements when the stream comes to it; the buffer may be written to again by later work of the stream. Neither wildcards
 * nor other kinds of memory: IST_ERR_RANK, IST_ERR_ARGUMENT or IST_ERR_KIND. IST_ERR_NOT_CAPTURABLE: the stream is being captured
 * and the channel is not prepared. IST_ERR_PEER_DEAD, IST_ERR_PEER_LEFT: nobody will receive it. After an error nothing was put into
 * the stream, but for IST_ERR_DEVICE in the middle of a long message. To IST_PROC_NULL nothing is sent. */
IST_API int ist_send_on(void* stream, ist_buffer buffer, int64_t count, ist_type type, int dest, int tag, ist_comm comm);
/* Receives at most count elements when the stream comes to it; later work of the stream finds them. Of a shorter message it takes
 * what came and leaves the rest of the buffer as it was. A longer one fills the buffer and loses its rest: the next call at this end
 * returns IST_ERR_TRUNCATE and does nothing else, and the channel goes on with the next message. Other errors as ist_send_on's. */
IST_API int ist_recv_on(void* stream, ist_buffer buffer, int64_t count, ist_type type, int source, int tag, ist_comm comm);
/* Both at once, so that ranks that exchange long messages do not wait for each other; one launch between two devices. Where one of
 * the two partners is on this stream's device and the other is not, there is nothing that does both at once: the send is put before the
 * receive, and as ranks in a ring would wait for each other, more than its channel has room for, 8 MiB (8388608 bytes), is
 * IST_ERR_ARGUMENT, and nothing was put into the stream. Send and receive in two streams then. Other errors as ist_send_on's. */
IST_API int ist_sendrecv_on(void* stream, ist_buffer send_buffer, int64_t send_count, ist_type send_type, int dest,
                            int send_tag, ist_buffer recv_buffer, int64_t recv_count, ist_type recv_type, int source,
                            int recv_tag, ist_comm comm);

/* For ist_prepare_on: this rank will send to the partner, receive from it, or both. */
#define IST_SENDS 1
#define IST_RECEIVES 2
/* Prepares the channels between this rank and the partner with that tag, for streams of this stream's device. The partner need not
 * call it, too. IST_ERR_NOT_CAPTURABLE while the stream is being captured; IST_ERR_DEVICE if the two devices have no direct way to
 * each other. */
IST_API int ist_prepare_on(void* stream, int partner, int tag, int sides, ist_comm comm);

/* ---- what all ranks of a communicator do together ----
 *
 * The n-th such call that is executed on one rank meets the n-th on every other, be they plain calls or replays of a graph. All give the
 * same call, count, type, operation and root; on each rank one thread at a time, and one stream at a time for each communicator. The ist_barrier,
 * ist_bcast and so on of isthmus.h and collective.h are apart.
 *
 * They have to be prepared, once for each communicator: by ist_prepare_collectives_on, or by the first of them. Preparing is a collective
 * call like those of collective.h: it returns when every rank has made it, and chooses the device, the stream's. Everything later returns
 * at once, and can be captured. ist_prepare_collectives_on prepares for long calls, too: where these may be NCCL's (below), it makes NCCL's
 * communicator, which takes a good part of a second, and device memory. A first call does so only if it is such a call itself; after a
 * short one, ist_prepare_collectives_on or the first long call is once more a collective call that returns when every rank has made it.
 * (NCCL 2.22 and newer may by itself wait for the other ranks again at the first call of a sort; with NCCL_RUNTIME_CONNECT=0 in the
 * environment it connects them while it is prepared.)
 *
 * Where every rank has a device of its own (up to 16 ranks, with direct ways between all of them) a call of at most 256 KiB, with more
 * than four ranks 64 KiB, is one launch, and a longer one several; or it is NCCL's, from 4 MiB on, with more than four ranks from 1 MiB,
 * where NCCL is loaded and knows operation and type. In a capture a call that is NCCL's is IST_ERR_NOT_CAPTURABLE, since NCCL's replays
 * do not meet plain calls; ISTHMUS_NCCL=never, on any rank, keeps NCCL out. Where ranks share a device all goes through the
 * communicator's rank 0, by messages in its stream. NCCL apart, a reduction combines from left to right in the order of ranks, so that
 * all ranks, and every replay, get the same bits: those of ist_allreduce where that combines by rank.
 *
 * Buffers, streams and errors are as above. What went wrong in the stream is returned by the next call on the communicator and by
 * ist_world_destroy: IST_ERR_PEER_DEAD, IST_ERR_PEER_LEFT, or IST_ERR_ARGUMENT where a rank waited for what another one, which made another
 * call, never sends (IST_ERR_PENDING on a rank that only hears that the first one has given up). After any of these the communicator's calls in streams are over. IST_ERR_PENDING from ist_world_destroy: work was still
 * waiting in a stream, and was given up; what NCCL carries has a second to end before.
 *
 * What one rank alone finds wrong when it makes a call (a buffer of another device, host memory that is not page-locked, one that NCCL
 * cannot take, a launch that the driver refuses) is an error on that rank, which has put nothing into its stream, and the others do not
 * hear of it: their streams wait until it makes the call after all, rightly, or leaves. For NCCL the buffers of a reduction begin at
 * multiples of their elements' size, on every rank. */

/* Prepares the communicator's calls, long ones as well, for streams of this stream's device; nothing, if all are. Collective, but returns at once with
 * IST_ERR_NOT_CAPTURABLE while the stream is being captured; where one rank cannot, IST_ERR_KIND or IST_ERR_DEVICE on all of them. */
IST_API int ist_prepare_collectives_on(void* stream, ist_comm comm);
/* Later work of the stream begins when every rank's stream has come here, and finds what was done before it anywhere. */
IST_API int ist_barrier_on(void* stream, ist_comm comm);
/* The root's buffer to everybody's. The root's stream goes on as soon as it has told the others; it may be three calls ahead. */
IST_API int ist_bcast_on(void* stream, ist_buffer buffer, int64_t count, ist_type type, int root, ist_comm comm);
/* As ist_reduce and ist_allreduce: IST_IN_PLACE for `send` where recv has the input. With the library's own operations, on the types that each
 * applies to; IST_ERR_ARGUMENT with those of ist_op_create, whose functions run on the processor. `send` and `recv` are the same or
 * do not overlap. */
IST_API int ist_reduce_on(void* stream, ist_buffer send, ist_buffer recv, int64_t count, ist_type type, ist_op op, int root,
                          ist_comm comm);
IST_API int ist_allreduce_on(void* stream, ist_buffer send, ist_buffer recv, int64_t count, ist_type type, ist_op op,
                             ist_comm comm);

#ifdef __cplusplus
}
#endif
#endif
