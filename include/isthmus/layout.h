/* Layouts: which bytes of a buffer, with the meaning of MPI's derived types; packing, and messages of them.
 *
 * Who calls this : applications, from C or C++.
 * Threads        : every call may be made from any thread at any time; a layout is not freed while another thread names it.
 * Ownership      : layouts are the process's, not a world's. What is made of a layout, and operations under way with it, keep what they
 *                  need of it: it may be freed at once. A freed or foreign handle is IST_ERR_HANDLE.
 * Kinds          : wherever a buffer is asked for it may be in host, CUDA or OpenCL memory; byte 0 of the layout lies where the buffer
 *                  begins, and bytes before that (negative displacements, a lower bound) are inside of the memory, too.
 * Streams        : as for messages: work pending in a buffer's stream or queue is waited for.
 * Errors         : IST_ERR_ARGUMENT names the argument, its index and its value; IST_ERR_OVERFLOW beyond 2^60 bytes; IST_ERR_MEMORY
 *                  for more than 2^27 runs of bytes that have no regular form.
 */
#ifndef ISTHMUS_LAYOUT_H
#define ISTHMUS_LAYOUT_H

#include <isthmus/isthmus.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ist_layout_handle* ist_layout;
#define IST_LAYOUT_NULL ((ist_layout)0)

typedef enum ist_order IST_AS_INT {
  IST_ORDER_C = 0,      /* the last dimension's elements are neighbours */
  IST_ORDER_FORTRAN = 1 /* the first one's */
} ist_order;

/* One element of a basic type, which is always there, committed, and never freed. */
static inline ist_layout ist_layout_of(ist_type type) { return (ist_layout)((uintptr_t)type + 1); }

/* ---- made of others, committed or not, with the arguments of MPI's calls in MPI's order ----
 * Counts are of blocks and of elements in a block; strides and displacements of elements (extents of `old`), but where the name
 * begins with h, and in a struct, of bytes. *layout becomes IST_LAYOUT_NULL where there is an error. */

IST_API int ist_layout_contiguous(int64_t count, ist_layout old, ist_layout* layout);
IST_API int ist_layout_vector(int64_t count, int64_t block_length, int64_t stride, ist_layout old, ist_layout* layout);
IST_API int ist_layout_hvector(int64_t count, int64_t block_length, int64_t stride, ist_layout old, ist_layout* layout);
IST_API int ist_layout_indexed(int64_t count, const int64_t* block_lengths, const int64_t* displacements, ist_layout old,
                               ist_layout* layout);
IST_API int ist_layout_hindexed(int64_t count, const int64_t* block_lengths, const int64_t* displacements, ist_layout old,
                                ist_layout* layout);
IST_API int ist_layout_indexed_block(int64_t count, int64_t block_length, const int64_t* displacements, ist_layout old,
                                     ist_layout* layout);
IST_API int ist_layout_hindexed_block(int64_t count, int64_t block_length, const int64_t* displacements, ist_layout old,
                                      ist_layout* layout);
IST_API int ist_layout_struct(int64_t count, const int64_t* block_lengths, const int64_t* displacements,
                              const ist_layout* olds, ist_layout* layout);
/* The part of `subsizes` elements from `starts` on of an array of `sizes`; its extent is the whole array's. */
IST_API int ist_layout_subarray(int dimensions, const int64_t* sizes, const int64_t* subsizes, const int64_t* starts,
                                ist_order order, ist_layout old, ist_layout* layout);
/* The same bytes with other bounds, which say where the next one begins. */
IST_API int ist_layout_resized(ist_layout old, int64_t lower_bound, int64_t extent, ist_layout* layout);
/* The same once more, committed if `old` is. */
IST_API int ist_layout_dup(ist_layout old, ist_layout* layout);

/* Finds the canonical form: what describes the same bytes in the same order is the same from here on, whatever it was made of. Layouts
 * that bytes are packed by or messages sent with are committed. Twice is once. */
IST_API int ist_layout_commit(ist_layout layout);
/* *layout becomes IST_LAYOUT_NULL. */
IST_API int ist_layout_free(ist_layout* layout);

/* ---- what it is ---- */

/* Bytes, packed. */
IST_API int ist_layout_size(ist_layout layout, int64_t* size);
/* Where it begins, and how far from there the next one does. Either pointer may be null. */
IST_API int ist_layout_extent(ist_layout layout, int64_t* lower_bound, int64_t* extent);
/* The same of its bytes alone, whatever ist_layout_resized said. */
IST_API int ist_layout_true_extent(ist_layout layout, int64_t* lower_bound, int64_t* extent);
/* For people: what it was made by, its numbers and, once committed, its canonical form. The text is cut to `size` bytes with its final
 * zero, and *needed (may be null) becomes the bytes of the whole with it; size 0 only asks. */
IST_API int ist_layout_text(ist_layout layout, char* text, size_t size, size_t* needed);

/* ---- packing ---- */

#define IST_TO_END (-1)

/* Bytes of `count` layouts, packed: what `packed` below has room for at most. */
IST_API int ist_pack_size(int64_t count, ist_layout layout, int64_t* size);
/* Bytes `first` up to, but not including, `last` (IST_TO_END: all that are left) of `count` layouts at `from`, in pack order, to
 * `packed`, where byte `first` comes first. Returns when they have arrived. The two do not overlap. */
IST_API int ist_pack(ist_world world, ist_buffer from, int64_t count, ist_layout layout, int64_t first, int64_t last,
                     ist_buffer packed);
/* The other way round; what lies between the layout's bytes stays as it is. IST_ERR_ARGUMENT for a layout that has a byte twice. */
IST_API int ist_unpack(ist_world world, ist_buffer packed, int64_t first, int64_t last, ist_buffer to, int64_t count,
                       ist_layout layout);

/* ---- messages ----
 * As ist_send and its like, of `count` layouts. What does not lie in one piece is packed into memory of the library's, of the buffer's
 * kind, and unpacked where it is received; either side may be any layout, or contiguous (ist_send, ist_recv), of as many bytes and the
 * same basic types in the same order: with ISTHMUS_CHECK=1 a receive of other types is IST_ERR_ARGUMENT, and the text has the first that
 * differs. A longer message than the receive is IST_ERR_TRUNCATE; a shorter one fills the layout's first bytes, which status->bytes
 * tells. They match each other and plain messages in the order in which they were sent. */

IST_API int ist_send_layout(ist_buffer buffer, int64_t count, ist_layout layout, int dest, int tag, ist_comm comm);
IST_API int ist_recv_layout(ist_buffer buffer, int64_t count, ist_layout layout, int source, int tag, ist_comm comm,
                            ist_status* status);
IST_API int ist_isend_layout(ist_buffer buffer, int64_t count, ist_layout layout, int dest, int tag, ist_comm comm,
                             ist_request* request);
IST_API int ist_irecv_layout(ist_buffer buffer, int64_t count, ist_layout layout, int source, int tag, ist_comm comm,
                             ist_request* request);
IST_API int ist_sendrecv_layout(ist_buffer send_buffer, int64_t send_count, ist_layout send_layout, int dest, int send_tag,
                                ist_buffer recv_buffer, int64_t recv_count, ist_layout recv_layout, int source, int recv_tag,
                                ist_comm comm, ist_status* status);
/* Persistent requests, as ist_send_init and its like, for ist_start and ist_startall: what the buffer holds at each start is packed then.
 * The layout may be freed as soon as the request is made. */
IST_API int ist_send_layout_init(ist_buffer buffer, int64_t count, ist_layout layout, int dest, int tag, ist_comm comm,
                                 ist_request* request);
IST_API int ist_ssend_layout_init(ist_buffer buffer, int64_t count, ist_layout layout, int dest, int tag, ist_comm comm,
                                  ist_request* request);
IST_API int ist_recv_layout_init(ist_buffer buffer, int64_t count, ist_layout layout, int source, int tag, ist_comm comm,
                                 ist_request* request);
/* As ist_explain: how it would be packed, and then how the packed bytes would go. */
IST_API int ist_explain_layout(ist_buffer buffer, int64_t count, ist_layout layout, int dest, ist_comm comm, char* text,
                               size_t size, size_t* needed);

#ifdef __cplusplus
}
#endif
#endif
