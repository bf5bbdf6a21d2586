/* Collective calls: every rank of a communicator makes the same calls in the same order.
 *
 * Buffers: each rank's may live in any kind of memory, whatever the others' do. Counts are elements of `type`; the same type
 * and, where a call has one count, the same count are given on every rank. Displacements of the v forms count elements too.
 * What a call sends and what it receives must not overlap, but for IST_IN_PLACE (IST_ERR_ARGUMENT, of a nonblocking form when its request
 * is waited for, since the others have to hear of it), nor parts that are received.
 * Order of a reduction: follows from operation, type, count and number of ranks alone, whoever is the root; never from timing, kinds of memory, devices,
 * settings or how the communicator was made: the same inputs give the same bits, and all ranks get the same ones. (The bits inside of a
 * NaN may differ; what NCCL carries is combined in an order of its own; docs/collectives.md says when it does.)
 * Streams: as for messages: the work that a buffer's queue holds when the call is made is waited for; when the call returns,
 * or its request is complete, the result is there and the buffers may be used again.
 * Nonblocking forms: give a request for ist_wait, ist_test and the others. They advance inside any call of the library on their world (of those that
 * only start something, inside each that comes some ms after the last look, and inside every eighth within them), and several may be under way, if every rank starts them in the same order. ist_cancel() gives up this rank's part alone: its request is complete, and its
 * buffers are free, as soon as no other rank is at work on them; it takes back nothing. Those that need something of this rank get
 * IST_ERR_PENDING, in rare cases IST_ERR_DEVICE where they had begun to fetch it, and a text that names it. The next call works.
 * Errors: what one rank cannot do (a buffer that is none, no memory) is its own error, and IST_ERR_* of the same number on
 * those that depend on it, whose text names that rank. A rank that left or died is an error on all that need it. Counts that
 * differ where they must not are IST_ERR_TRUNCATE where a message shows it; counts so different that another algorithm belongs
 * to each, like calls of different kinds, are the same or IST_ERR_ARGUMENT between ranks of one host, and may wait for ever between hosts. */
#ifndef ISTHMUS_COLLECTIVE_H
#define ISTHMUS_COLLECTIVE_H

#include <isthmus/isthmus.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The operation of a reduction: one of these, or what ist_op_create() makes. Sums and products: integers, which wrap,
 * floating point and complex; minimum and maximum: integers and floating point; logical: integers, 0 or 1 where two
 * contributions or more were combined, and of one alone what it was, as in MPI; bitwise: integers and IST_BYTE; MINLOC and
 * MAXLOC: the pairs, of equal values the lower index. */
typedef struct ist_op_handle* ist_op;
#define IST_OP_NULL ((ist_op)0)
#define IST_SUM ((ist_op)1)
#define IST_PROD ((ist_op)2)
#define IST_MIN ((ist_op)3)
#define IST_MAX ((ist_op)4)
#define IST_MINLOC ((ist_op)5)
#define IST_MAXLOC ((ist_op)6)
#define IST_LAND ((ist_op)7)
#define IST_LOR ((ist_op)8)
#define IST_LXOR ((ist_op)9)
#define IST_BAND ((ist_op)10)
#define IST_BOR ((ist_op)11)
#define IST_BXOR ((ist_op)12)

/* inout[i] = in[i] (op) inout[i] for `count` elements in host memory, at addresses that are aligned for the type; `user` is
 * what ist_op_create() was given. Must be associative. May run in any thread that is inside a call of the library, and must
 * not call the library. */
typedef void (*ist_op_function)(const void* in, void* inout, int64_t count, ist_type type, void* user);
/* Not collective, but every rank of a reduction must give an operation that does the same. commutative 0: the elements are
 * combined in the order of the ranks. A device's data is brought to the host for it. */
IST_API int ist_op_create(ist_op_function function, void* user, int commutative, ist_op* op);
/* Reductions under way keep what they need. IST_ERR_HANDLE: not one of ist_op_create()'s, or freed before. */
IST_API int ist_op_free(ist_op* op);

/* In the place of a send buffer: the input is what the receive buffer holds. For rank `root` of ist_gather, and in the place
 * of the receive buffer of rank `root` of ist_scatter, as in MPI. Its count and type are then not looked at. */
static inline ist_buffer ist_in_place(void) { /* NOLINT(modernize-redundant-void-arg): C */
  ist_buffer buffer = {0xffffffffU, -1, 0, 0, 0, 0, 0, {0, 0, 0, 0}, 0, 0};
  return buffer;
}
#define IST_IN_PLACE ist_in_place()

/* Nobody's completes before everybody has called. ist_barrier() is in isthmus.h. */
IST_API int ist_ibarrier(ist_comm comm, ist_request* request);

/* The root's buffer to everybody's. */
IST_API int ist_bcast(ist_buffer buffer, int64_t count, ist_type type, int root, ist_comm comm);
IST_API int ist_ibcast(ist_buffer buffer, int64_t count, ist_type type, int root, ist_comm comm, ist_request* request);

/* recv[i] on the root = send[i] of rank 0 (op) ... (op) send[i] of the last one. The receive buffer matters on the root. */
IST_API int ist_reduce(ist_buffer send, ist_buffer recv, int64_t count, ist_type type, ist_op op, int root, ist_comm comm);
IST_API int ist_ireduce(ist_buffer send, ist_buffer recv, int64_t count, ist_type type, ist_op op, int root, ist_comm comm,
                        ist_request* request);
/* The same on every rank. */
IST_API int ist_allreduce(ist_buffer send, ist_buffer recv, int64_t count, ist_type type, ist_op op, ist_comm comm);
IST_API int ist_iallreduce(ist_buffer send, ist_buffer recv, int64_t count, ist_type type, ist_op op, ist_comm comm,
                           ist_request* request);
/* The result's first recv_counts[0] elements to rank 0, the next recv_counts[1] to rank 1, ... In place: the input is in the
 * receive buffer, which then has room for all of it, and the result is at its beginning. */
IST_API int ist_reduce_scatter(ist_buffer send, ist_buffer recv, const int64_t* recv_counts, ist_type type, ist_op op,
                               ist_comm comm);
IST_API int ist_ireduce_scatter(ist_buffer send, ist_buffer recv, const int64_t* recv_counts, ist_type type, ist_op op,
                                ist_comm comm, ist_request* request);
/* The same with recv_count elements for everybody. */
IST_API int ist_reduce_scatter_block(ist_buffer send, ist_buffer recv, int64_t recv_count, ist_type type, ist_op op,
                                     ist_comm comm);
IST_API int ist_ireduce_scatter_block(ist_buffer send, ist_buffer recv, int64_t recv_count, ist_type type, ist_op op,
                                      ist_comm comm, ist_request* request);
/* recv on rank r = send of rank 0 (op) ... (op) send of rank r; exscan: of rank r - 1, and rank 0's receive buffer stays as
 * it is. */
IST_API int ist_scan(ist_buffer send, ist_buffer recv, int64_t count, ist_type type, ist_op op, ist_comm comm);
IST_API int ist_iscan(ist_buffer send, ist_buffer recv, int64_t count, ist_type type, ist_op op, ist_comm comm,
                      ist_request* request);
IST_API int ist_exscan(ist_buffer send, ist_buffer recv, int64_t count, ist_type type, ist_op op, ist_comm comm);
IST_API int ist_iexscan(ist_buffer send, ist_buffer recv, int64_t count, ist_type type, ist_op op, ist_comm comm,
                        ist_request* request);

/* Everybody's send buffer to the root, one after the other in the order of ranks. recv_count: elements of each rank; the
 * receive arguments matter on the root. v, on all ranks or none: recv_counts[r] elements from rank r to recv + displs[r]. */
IST_API int ist_gather(ist_buffer send, int64_t send_count, ist_buffer recv, int64_t recv_count, ist_type type, int root,
                       ist_comm comm);
IST_API int ist_igather(ist_buffer send, int64_t send_count, ist_buffer recv, int64_t recv_count, ist_type type, int root,
                        ist_comm comm, ist_request* request);
IST_API int ist_gatherv(ist_buffer send, int64_t send_count, ist_buffer recv, const int64_t* recv_counts,
                        const int64_t* displs, ist_type type, int root, ist_comm comm);
IST_API int ist_igatherv(ist_buffer send, int64_t send_count, ist_buffer recv, const int64_t* recv_counts,
                         const int64_t* displs, ist_type type, int root, ist_comm comm, ist_request* request);
/* The other way round. send_count: elements for each rank; the send arguments matter on the root. */
IST_API int ist_scatter(ist_buffer send, int64_t send_count, ist_buffer recv, int64_t recv_count, ist_type type, int root,
                        ist_comm comm);
IST_API int ist_iscatter(ist_buffer send, int64_t send_count, ist_buffer recv, int64_t recv_count, ist_type type, int root,
                         ist_comm comm, ist_request* request);
IST_API int ist_scatterv(ist_buffer send, const int64_t* send_counts, const int64_t* displs, ist_buffer recv,
                         int64_t recv_count, ist_type type, int root, ist_comm comm);
IST_API int ist_iscatterv(ist_buffer send, const int64_t* send_counts, const int64_t* displs, ist_buffer recv,
                          int64_t recv_count, ist_type type, int root, ist_comm comm, ist_request* request);
/* Gathered on every rank. In place: this rank's part is where it belongs in the receive buffer. */
IST_API int ist_allgather(ist_buffer send, int64_t send_count, ist_buffer recv, int64_t recv_count, ist_type type,
                          ist_comm comm);
IST_API int ist_iallgather(ist_buffer send, int64_t send_count, ist_buffer recv, int64_t recv_count, ist_type type,
                           ist_comm comm, ist_request* request);
IST_API int ist_allgatherv(ist_buffer send, int64_t send_count, ist_buffer recv, const int64_t* recv_counts,
                           const int64_t* displs, ist_type type, ist_comm comm);
IST_API int ist_iallgatherv(ist_buffer send, int64_t send_count, ist_buffer recv, const int64_t* recv_counts,
                            const int64_t* displs, ist_type type, ist_comm comm, ist_request* request);
/* Part r of the send buffer to rank r, whose part s it becomes, if this is rank s. `count`: elements of each part. In place:
 * the parts are exchanged with those of the receive buffer. */
IST_API int ist_alltoall(ist_buffer send, ist_buffer recv, int64_t count, ist_type type, ist_comm comm);
IST_API int ist_ialltoall(ist_buffer send, ist_buffer recv, int64_t count, ist_type type, ist_comm comm,
                          ist_request* request);
IST_API int ist_alltoallv(ist_buffer send, const int64_t* send_counts, const int64_t* send_displs, ist_buffer recv,
                          const int64_t* recv_counts, const int64_t* recv_displs, ist_type type, ist_comm comm);
IST_API int ist_ialltoallv(ist_buffer send, const int64_t* send_counts, const int64_t* send_displs, ist_buffer recv,
                           const int64_t* recv_counts, const int64_t* recv_displs, ist_type type, ist_comm comm,
                           ist_request* request);

/* Of a grid (ist_cart_create): the ranks with this rank's coordinates in all dimensions d with remain[d] = 0, as a grid over the others, in their
 * order and as periodic as they are; one remains at least. IST_ERR_HANDLE for a communicator without a grid. */
IST_API int ist_cart_sub(ist_comm cart, int ndims, const int* remain, ist_comm* sub);

#ifdef __cplusplus
}
#endif

#endif
