/* Collective calls of layouts: as those of collective.h that combine nothing, with bytes that need not lie in one piece on either side.
 *
 * Who calls this : applications, from C or C++, beside isthmus.h; in C++ layout_collective.hpp.
 * Layouts        : each rank gives its own, committed, and so may what it sends and what it receives: only the bytes, and with them the
 *                  basic types in their order, of a part are the same on both of its sides. One rank may call ist_bcast where another calls
 *                  ist_bcast_layout, and so of all calls here, but for ist_alltoallw, which all ranks call.
 * Packing        : what does not lie in one piece is packed when the call is made, into memory of the library's of the buffer's kind, and
 *                  unpacked when all of it has come; what lies between a layout's bytes stays as it is. After an error nothing is unpacked.
 * Errors         : as in collective.h. A layout that is none, is not committed, or has a byte twice where it is received into, and a
 *                  count that is wrong, are refused on the rank that gives them, before the others hear of it. With ISTHMUS_CHECK=1
 *                  bytes and types of parts are compared, and where they differ the call is an error on all ranks. */
#ifndef ISTHMUS_LAYOUT_COLLECTIVE_H
#define ISTHMUS_LAYOUT_COLLECTIVE_H

#include <isthmus/collective.h>
#include <isthmus/layout.h>

#ifdef __cplusplus
extern "C" {
#endif

IST_API int ist_bcast_layout(ist_buffer buffer, int64_t count, ist_layout layout, int root, ist_comm comm);
IST_API int ist_ibcast_layout(ist_buffer buffer, int64_t count, ist_layout layout, int root, ist_comm comm,
                              ist_request* request);

/* Part r is the `recv_count` layouts from layout r * recv_count on: parts lie recv_count extents apart. IST_IN_PLACE as in ist_gather. */
IST_API int ist_gather_layout(ist_buffer send, int64_t send_count, ist_layout send_layout, ist_buffer recv,
                              int64_t recv_count, ist_layout recv_layout, int root, ist_comm comm);
IST_API int ist_igather_layout(ist_buffer send, int64_t send_count, ist_layout send_layout, ist_buffer recv,
                               int64_t recv_count, ist_layout recv_layout, int root, ist_comm comm, ist_request* request);
/* v: part r is recv_counts[r] layouts from recv_displs[r] extents on. */
IST_API int ist_gatherv_layout(ist_buffer send, int64_t send_count, ist_layout send_layout, ist_buffer recv,
                               const int64_t* recv_counts, const int64_t* recv_displs, ist_layout recv_layout, int root,
                               ist_comm comm);
IST_API int ist_igatherv_layout(ist_buffer send, int64_t send_count, ist_layout send_layout, ist_buffer recv,
                                const int64_t* recv_counts, const int64_t* recv_displs, ist_layout recv_layout, int root,
                                ist_comm comm, ist_request* request);
IST_API int ist_scatter_layout(ist_buffer send, int64_t send_count, ist_layout send_layout, ist_buffer recv,
                               int64_t recv_count, ist_layout recv_layout, int root, ist_comm comm);
IST_API int ist_iscatter_layout(ist_buffer send, int64_t send_count, ist_layout send_layout, ist_buffer recv,
                                int64_t recv_count, ist_layout recv_layout, int root, ist_comm comm, ist_request* request);
IST_API int ist_scatterv_layout(ist_buffer send, const int64_t* send_counts, const int64_t* send_displs,
                                ist_layout send_layout, ist_buffer recv, int64_t recv_count, ist_layout recv_layout,
                                int root, ist_comm comm);
IST_API int ist_iscatterv_layout(ist_buffer send, const int64_t* send_counts, const int64_t* send_displs,
                                 ist_layout send_layout, ist_buffer recv, int64_t recv_count, ist_layout recv_layout,
                                 int root, ist_comm comm, ist_request* request);
IST_API int ist_allgather_layout(ist_buffer send, int64_t send_count, ist_layout send_layout, ist_buffer recv,
                                 int64_t recv_count, ist_layout recv_layout, ist_comm comm);
IST_API int ist_iallgather_layout(ist_buffer send, int64_t send_count, ist_layout send_layout, ist_buffer recv,
                                  int64_t recv_count, ist_layout recv_layout, ist_comm comm, ist_request* request);
IST_API int ist_allgatherv_layout(ist_buffer send, int64_t send_count, ist_layout send_layout, ist_buffer recv,
                                  const int64_t* recv_counts, const int64_t* recv_displs, ist_layout recv_layout,
                                  ist_comm comm);
IST_API int ist_iallgatherv_layout(ist_buffer send, int64_t send_count, ist_layout send_layout, ist_buffer recv,
                                   const int64_t* recv_counts, const int64_t* recv_displs, ist_layout recv_layout,
                                   ist_comm comm, ist_request* request);
/* Counts are layouts of each part, on either side. */
IST_API int ist_alltoall_layout(ist_buffer send, int64_t send_count, ist_layout send_layout, ist_buffer recv,
                                int64_t recv_count, ist_layout recv_layout, ist_comm comm);
IST_API int ist_ialltoall_layout(ist_buffer send, int64_t send_count, ist_layout send_layout, ist_buffer recv,
                                 int64_t recv_count, ist_layout recv_layout, ist_comm comm, ist_request* request);
IST_API int ist_alltoallv_layout(ist_buffer send, const int64_t* send_counts, const int64_t* send_displs,
                                 ist_layout send_layout, ist_buffer recv, const int64_t* recv_counts,
                                 const int64_t* recv_displs, ist_layout recv_layout, ist_comm comm);
IST_API int ist_ialltoallv_layout(ist_buffer send, const int64_t* send_counts, const int64_t* send_displs,
                                  ist_layout send_layout, ist_buffer recv, const int64_t* recv_counts,
                                  const int64_t* recv_displs, ist_layout recv_layout, ist_comm comm, ist_request* request);
/* A layout for each part, and displacements in bytes, as MPI_Alltoallw has them: what all neighbours of a grid exchange in one call. */
IST_API int ist_alltoallw(ist_buffer send, const int64_t* send_counts, const int64_t* send_displs,
                          const ist_layout* send_layouts, ist_buffer recv, const int64_t* recv_counts,
                          const int64_t* recv_displs, const ist_layout* recv_layouts, ist_comm comm);
IST_API int ist_ialltoallw(ist_buffer send, const int64_t* send_counts, const int64_t* send_displs,
                           const ist_layout* send_layouts, ist_buffer recv, const int64_t* recv_counts,
                           const int64_t* recv_displs, const ist_layout* recv_layouts, ist_comm comm, ist_request* request);

#ifdef __cplusplus
}
#endif

#endif
