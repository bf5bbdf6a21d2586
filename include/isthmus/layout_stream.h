/* Messages of layouts in CUDA streams and OpenCL queues: as those of stream.h and queue.h, of bytes that need not lie in one piece.
 *
 * Who calls this : applications, from C or C++, beside isthmus.h; in C++ layout_stream.hpp.
 * Layouts        : each side gives its own, committed, or none (ist_send_on, ist_recv_on): the calls meet each other and those, on the same
 *                  channels, in the order in which they are executed. Only the basic types in their order are the same on both sides, which
 *                  nobody compares here. A layout may be freed as soon as a call returns, and graphs that were made with it stay good.
 * Streams        : what does not lie in one piece is packed by a kernel in the stream, ahead of the send, and unpacked by one behind the
 *                  receive, out of memory that the end of the channel has for it: the longest layout, rounded up to a power of two, and at
 *                  most as much again of shorter ones, kept until the world ends. Buffers are those of stream.h; page-locked host memory is
 *                  reached by the kernel over the bus.
 * Graphs         : all calls may be captured, once the same call was made outside of a capture, or ist_prepare_layout_on; of regular layouts
 *                  one of as many bytes will do, of irregular ones each end keeps the last 32. IST_ERR_NOT_CAPTURABLE, else: a capture
 *                  allocates nothing and brings nothing to a device.
 * Queues         : the library's thread packs and unpacks when the queue has come to the message, on a device by kernels. Nothing is prepared.
 * Lengths        : a shorter message fills the layout's first bytes and leaves the rest as it was; a longer one fills the layout, and the next
 *                  call at this end returns IST_ERR_TRUNCATE.
 * Errors         : as in stream.h and queue.h; IST_ERR_ARGUMENT for a layout that is not committed, or is received into and has a byte twice. */
#ifndef ISTHMUS_LAYOUT_STREAM_H
#define ISTHMUS_LAYOUT_STREAM_H

#include <isthmus/layout.h>
#include <isthmus/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

IST_API int ist_send_layout_on(void* stream, ist_buffer buffer, int64_t count, ist_layout layout, int dest, int tag,
                               ist_comm comm);
IST_API int ist_recv_layout_on(void* stream, ist_buffer buffer, int64_t count, ist_layout layout, int source, int tag,
                               ist_comm comm);
/* One launch between two devices, beside those that pack and unpack. */
IST_API int ist_sendrecv_layout_on(void* stream, ist_buffer send_buffer, int64_t send_count, ist_layout send_layout,
                                   int dest, int send_tag, ist_buffer recv_buffer, int64_t recv_count,
                                   ist_layout recv_layout, int source, int recv_tag, ist_comm comm);
/* As ist_prepare_on, for messages of `count` layouts on those sides: their first call may then be captured. */
IST_API int ist_prepare_layout_on(void* stream, int64_t count, ist_layout layout, int partner, int tag, int sides,
                                  ist_comm comm);

IST_API int ist_send_layout_on_queue(void* queue, ist_buffer buffer, int64_t count, ist_layout layout, int dest, int tag,
                                     ist_comm comm, uint32_t waits, const void* wait_list, void* event);
IST_API int ist_recv_layout_on_queue(void* queue, ist_buffer buffer, int64_t count, ist_layout layout, int source, int tag,
                                     ist_comm comm, uint32_t waits, const void* wait_list, void* event);
IST_API int ist_sendrecv_layout_on_queue(void* queue, ist_buffer send_buffer, int64_t send_count, ist_layout send_layout,
                                         int dest, int send_tag, ist_buffer recv_buffer, int64_t recv_count,
                                         ist_layout recv_layout, int source, int recv_tag, ist_comm comm, uint32_t waits,
                                         const void* wait_list, void* event);

#ifdef __cplusplus
}
#endif
#endif
