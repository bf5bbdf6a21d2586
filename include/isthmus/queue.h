/* Isthmus, C interface: messages that are sent and received by what is put into OpenCL command queues.
 *
 * Who calls this : applications, from C or C++, beside isthmus.h.
 * Threads        : as in isthmus.h; of each end of a channel one thread, and one queue, at a time.
 * Ownership      : a buffer belongs to the queue from the call until the work that the call put there is over; a cl_mem is retained
 *                  until then. A returned event is the caller's, to be released by clReleaseEvent.
 * Queues         : every call returns at once, but for ist_prepare_on_queue. In a queue with order the message runs behind what is
 *                  there and ahead of what comes; in one without, it is a command as any other, ordered by its wait list and by who
 *                  waits for its event. Nothing else is waited for: a buffer's own queue plays no part.
 * Errors         : as in isthmus.h. What goes wrong when the queue has come to a message is returned by the next call on the same end of
 *                  the channel, and by ist_world_destroy; the queue goes on, and the message's event is complete, as a stream does. (To
 *                  terminate what waits for it would leave the whole context undefined, as OpenCL has it.) Where an event of the wait
 *                  list fails, the message does not take place, and its event fails, too.
 *
 * A channel is what one rank sends to one other with one tag of one communicator. Its n-th send that is executed meets its n-th
 * receive that is executed; nothing else meets them: ist_send and ist_recv are apart, and so are the calls of stream.h. A channel that
 * is used in streams at one end and in queues at the other is an error at both (IST_ERR_KIND).
 *
 * A send that fits ISTHMUS_EAGER_LIMIT is over when its bytes are copied, unless too many are under way; a longer one waits for its
 * receive, in the queue and never on the processor. So ranks that send each other long messages in queues with order use
 * ist_sendrecv_on_queue.
 *
 * OpenCL has no commands that wait for another process, so that a processor moves the bytes: a thread of the library's own, one in each
 * world, which the first call starts. It sleeps while no queue has come to a message; while one waits for its partner it looks every
 * few ten microseconds, or sleeps until there is news where ranks outnumber processors. ISTHMUS_PROGRESS_THREAD makes no difference to
 * it. ISTHMUS_THREADS=single, which promises that there is no second thread, is refused with these calls.
 *
 * Buffers are OpenCL buffers of the queue's context, or host memory of any sort. A queue is a cl_command_queue, given as what it is. */
#ifndef ISTHMUS_QUEUE_H
#define ISTHMUS_QUEUE_H

#include "isthmus/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sends count elements when the queue comes to it; the buffer may be written to again when that is over. wait_list holds so many
 * (waits) cl_events of the queue's context, which are waited for first; event is null, or where a cl_event is put that is over with
 * the message. Neither wildcards nor CUDA memory: IST_ERR_RANK, IST_ERR_ARGUMENT or IST_ERR_KIND. IST_ERR_ARGUMENT: buffer or wait list
 * of another context. IST_ERR_PEER_DEAD, IST_ERR_PEER_LEFT: nobody will receive it. After an error nothing was put into the queue, and
 * *event is as it was. To IST_PROC_NULL nothing is sent, but the event comes. */
IST_API int ist_send_on_queue(void* queue, ist_buffer buffer, int64_t count, ist_type type, int dest, int tag, ist_comm comm,
                              uint32_t waits, const void* wait_list, void* event);
/* Receives at most count elements when the queue comes to it; what waits for it finds them. Of a shorter message it takes what came
 * and leaves the rest of the buffer as it was. A longer one fills the buffer and loses its rest: the next call at this end returns
 * IST_ERR_TRUNCATE and does nothing else, and the channel goes on with the next message. Other errors as ist_send_on_queue's. */
IST_API int ist_recv_on_queue(void* queue, ist_buffer buffer, int64_t count, ist_type type, int source, int tag,
                              ist_comm comm, uint32_t waits, const void* wait_list, void* event);
/* Both at once, so that ranks that exchange long messages do not wait for each other. */
IST_API int ist_sendrecv_on_queue(void* queue, ist_buffer send_buffer, int64_t send_count, ist_type send_type, int dest,
                                  int send_tag, ist_buffer recv_buffer, int64_t recv_count, ist_type recv_type, int source,
                                  int recv_tag, ist_comm comm, uint32_t waits, const void* wait_list, void* event);

/* Makes sure that the other rank uses the channels between the two with that tag in queues, too: until it has made any call that moves
 * messages this waits. The other calls need no preparation. sides: IST_SENDS, IST_RECEIVES, or both added. */
IST_API int ist_prepare_on_queue(void* queue, int partner, int tag, int sides, ist_comm comm);

#ifdef __cplusplus
}
#endif
#endif
