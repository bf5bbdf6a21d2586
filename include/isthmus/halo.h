/* Isthmus, C interface: halo exchange. Fields that are cut over a grid of ranks get their neighbours' border cells.
 *
 * Who calls this : applications, from C or C++, beside isthmus.h.
 * Threads        : different exchanges from different threads; the calls on one of them, one at a time. Those that are collective,
 *                  in one order on all ranks of the grid.
 * Ownership      : fields are the program's, and stay where they are until they are replaced or the exchange is freed. Grids and
 *                  exchanges are freed before their world is destroyed; an exchange keeps its grid.
 * Kinds          : fields lie in host, CUDA or OpenCL memory, and those of one exchange in several of them.
 * Streams        : as for messages: work pending in a field's stream or queue is waited for, and what was unpacked is there for later work
 *                  of any stream.
 * Errors         : as in isthmus.h. What one rank finds wrong when an exchange is made, all ranks return, with the rank's number.
 *
 * Dimensions are the user's: dimension 0 of ranges, periods, directions and coordinates is the field's first index, wherever it lies in
 * memory and whichever dimension of the grid it runs along. docs/halo.md begins with an example. */
#ifndef ISTHMUS_HALO_H
#define ISTHMUS_HALO_H

#include "isthmus/halo_sides.h"
#include "isthmus/isthmus.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ist_halo_grid_handle* ist_halo_grid;
typedef struct ist_halo_handle* ist_halo;
#define IST_HALO_GRID_NULL ((ist_halo_grid)0)
#define IST_HALO_NULL ((ist_halo)0)
#define IST_HALO_MOST_DIMENSIONS 4

/* ---- grids of ranks ---- */

/* A grid of the first dims[0] * ... ranks of comm, of 1 to 4 dimensions; IST_HALO_GRID_NULL to the rest. `dims` are the grid's own, the
 * last one running fastest over ranks; entries that are 0 are chosen, so that every rank has a place. process_map[d] is the dimension
 * of the grid along which dimension d of the data runs: a permutation, or null for each its own, and on all ranks the same. periods[d] is of dimension d of the
 * data. Collective over comm. */
IST_API int ist_halo_grid_create(ist_comm comm, int ndims, const int* dims, const int* periods, const int* process_map,
                                 ist_halo_grid* grid);
/* Local. */
IST_API int ist_halo_grid_free(ist_halo_grid* grid);
IST_API int ist_halo_grid_ndims(ist_halo_grid grid, int* ndims);
/* In the data's order: how many ranks, whether periodic, and where this rank is. Any may be null. */
IST_API int ist_halo_grid_get(ist_halo_grid grid, int ndims, int* dims, int* periods, int* coords);
/* The rank, in the grid's communicator, that is a step of -1, 0 or 1 in each dimension away; IST_PROC_NULL past an edge. */
IST_API int ist_halo_grid_neighbour(ist_halo_grid grid, const int* direction, int* rank);
/* The ranks of the grid; the communicator stays the grid's. */
IST_API int ist_halo_grid_comm(ist_halo_grid grid, ist_comm* comm);

/* Optional, ahead of a grid: the same ranks in an order in which those that are side by side in such a grid have the quickest links. Times
 * messages of `bytes` between every two ranks, from and into `buffer`, whose contents are lost; dims and periods are the grid's own.
 * Where another order gains less than a twentieth, ranks stay in theirs. Collective over comm; ranks beyond the grid stay behind. */
IST_API int ist_halo_order(ist_comm comm, int ndims, const int* dims, const int* periods, ist_buffer buffer, int64_t bytes,
                           ist_comm* ordered);

/* ---- what is exchanged ---- */

/* Of one dimension: `begin` and `end` are the first and the last inner index, both inclusive; minus and plus cells before and behind
 * them are the neighbours'; total_length is the array's, padding included. begin >= minus, plus <= total_length - end - 1. A rank
 * receives begin - minus to begin - 1 from the neighbour at -1 and end + 1 to end + plus from that at +1; it sends begin to
 * begin + plus - 1 to the one at -1 and end - minus + 1 to end to the one at +1. Widths are those of all ranks; begin, end and lengths
 * may be each rank's own. */
typedef struct ist_halo_range {
  int64_t minus;
  int64_t plus;
  int64_t begin;
  int64_t end;
  int64_t total_length;
} ist_halo_range;

/* An array with its halos. `ranges`: one for each dimension of the grid. layout_map[d]: place of dimension d by decreasing stride: 0, 1, 2 is
 * C's order, 2, 1, 0 Fortran's; null is C's. `element`: bytes of one, which may be any trivially copyable type. */
typedef struct ist_halo_field {
  ist_buffer buffer;
  int64_t element;
  const ist_halo_range* ranges;
  const int* layout_map;
} ist_halo_field;

/* How cells get between fields and messages. Ranks need not take the same. A packing that cannot be is left out where it is measured. */
typedef enum ist_halo_packing IST_AS_INT {
  IST_HALO_AUTO = 0,    /* measured when the exchange is made, and kept for the fields that are set later */
  IST_HALO_CALLS = 1,   /* one packing for each box of each field */
  IST_HALO_LAYOUTS = 2, /* one layout for each neighbour, with all fields that it can reach */
  IST_HALO_LOOPS = 3    /* loops written for boxes; on a device one launch for everything that it can reach */
} ist_halo_packing;

typedef enum ist_halo_way IST_AS_INT {
  IST_HALO_MESSAGES = 0,
  /* Into the neighbour's symmetric heap, with a flag behind the data: no handshake. Of one host; host or CUDA fields, of the same kind at
   * all ranks. A neighbour that frees the exchange, leaves or dies ends the wait for it: IST_ERR_PEER_LEFT, IST_ERR_PEER_DEAD. */
  IST_HALO_ONE_SIDED = 1
} ist_halo_way;

/* Set `size` to sizeof(ist_halo_options), and the rest to 0 or what is wanted: later versions add members at the end. */
typedef struct ist_halo_options {
  uint64_t size;
  int32_t reach;   /* in how many dimensions at once a neighbour may lie: 1 faces alone, 2 edges as well, and so on; 0 all */
  int32_t packing; /* ist_halo_packing */
  int32_t way;     /* ist_halo_way */
  int32_t reserved;
} ist_halo_options;

/* An exchange of `count` fields, all of which travel in one message for each neighbouring rank (and for each kind of memory): whoever lies
 * in several directions gets one. All ranks give the same elements, widths, layout maps and options; elements, the order of fields and
 * which of them share a kind of memory decide what lies where in a message. Checks everything with all ranks, makes buffers and
 * messages, and measures packing where it is IST_HALO_AUTO. options may be null: all neighbours, IST_HALO_AUTO, messages.
 * IST_ERR_ARGUMENT also where a rank has fewer inner cells in a dimension than a neighbour of it wants, and where two neighbours have not
 * as many cells side by side. Collective over the grid. */
IST_API int ist_halo_create(ist_halo_grid grid, int count, const ist_halo_field* fields, const ist_halo_options* options,
                            ist_halo* halo);
/* The same of cells that are listed: to neighbours[i], a rank of comm (also this one, and none of them twice), go the elements of each
 * field whose numbers are in sends[i], send_counts[i] of them, and those in receives[i] come from it, in the order of the lists. Of
 * fields, buffer and element count; where ranges is not null, total_length of the first says how many elements the field has, and one
 * beyond them is IST_ERR_ARGUMENT. No cell is received twice. Collective over comm. */
typedef struct ist_halo_lists {
  int neighbours;
  const int* ranks;
  const int64_t* send_counts;
  const int64_t* const* sends;
  const int64_t* receive_counts;
  const int64_t* const* receives;
} ist_halo_lists;
IST_API int ist_halo_create_lists(ist_comm comm, const ist_halo_lists* lists, int count, const ist_halo_field* fields,
                                  const ist_halo_options* options, ist_halo* halo);
/* Other fields from the next pack on: on all ranks alike, and not between pack and unpack. Local. What has the shape of the fields before
 * costs next to nothing, so that buffers may take turns, up to 16 sets of them; of another number or shape, buffers and messages are made
 * anew. Where it fails, the fields before stay. Which fields share a kind of memory is taken to be the same on all ranks, and what one rank
 * finds wrong it alone returns. IST_ERR_UNSUPPORTED: of another shape, of a one-sided exchange or one of lists. */
IST_API int ist_halo_set_fields(ist_halo halo, int count, const ist_halo_field* fields);
/* Local; nothing is under way. One-sided ones are freed collectively, when all ranks have exchanged as often. */
IST_API int ist_halo_free(ist_halo* halo);

/* ---- exchanging: pack, exchange (or start and wait), unpack, in this order, or IST_ERR_ARGUMENT ---- */

/* Where a start fails, nothing of it is under way any more. It can be tried again, unless neighbours had got some of it: then the exchange
 * can only be freed, and says so. */

/* Brings what neighbours get together; the fields may be written to afterwards. */
IST_API int ist_halo_pack(ist_halo halo);
IST_API int ist_halo_exchange(ist_halo halo);
/* The same in two: between them is the time to work on cells that need no neighbour. */
IST_API int ist_halo_start_exchange(ist_halo halo);
IST_API int ist_halo_wait(ist_halo halo);
/* Instead of wait: *over becomes 1 where what was started is over, with wait's outcome, and 0 where it is not. */
IST_API int ist_halo_test(ist_halo halo, int* over);
/* Writes what came into the halos. Those that lie beyond an edge of the grid stay as they are. */
IST_API int ist_halo_unpack(ist_halo halo);

/* ---- sweeps whose interior hides an exchange ---- */

/* Cells from `first` to `last`, both inclusive, of each dimension; none where a last one is before its first. */
typedef struct ist_halo_box {
  int64_t first[IST_HALO_MOST_DIMENSIONS];
  int64_t last[IST_HALO_MOST_DIMENSIONS];
} ist_halo_box;

/* The inner cells in two: *interior has those whose stencil (the ranges' widths) stays among inner cells, to be swept between start and wait;
 * the first *boxes of `border`, which has room for 2 * ndims, have the rest, each cell once and no box without any, for behind unpack.
 * Numbers of dimensions beyond ndims are 0. Local, and needs no world. */
IST_API int ist_halo_split(int ndims, const ist_halo_range* ranges, ist_halo_box* interior, ist_halo_box* border,
                           int* boxes);

/* ---- in CUDA streams: isthmus/stream.h says what a stream is ---- */

/* Packs, exchanges and unpacks when the stream comes to it. Returns at once, never waits on the processor, and can be captured into a graph
 * once it is prepared. Later work of the stream finds the halos; earlier work has written the fields. Its n-th execution on one rank
 * meets the n-th on every neighbour. Fields of CUDA memory alone, on the stream's device, exchanged by messages (IST_ERR_KIND,
 * IST_ERR_UNSUPPORTED); one stream at a time, and between calls of the other form only when its work is over. Errors as of ist_sendrecv_on.
 * Graphs that hold it may not be launched any more once the exchange is freed, or fields of another number or shape are set. */
IST_API int ist_halo_exchange_on(ist_halo halo, void* stream);
/* Prepares it for the fields that are set and for streams of this stream's device, with all neighbours, which call it, too. The first
 * ist_halo_exchange_on with these fields does so as well; before a capture it has to be done, once for each set of fields. */
IST_API int ist_halo_prepare_on(ist_halo halo, void* stream);

/* ---- in kernels: isthmus/device/halo.cuh ---- */

/* What a kernel needs to put the halos of a symmetric field where they belong: of fields in a heap of the grid's communicator whose ranges
 * are the same on all ranks, which is not compared. `reach` as in ist_halo_options; at most IST_HALO_MOST_SIDES neighbours. The field's buffer is not
 * looked at. Local. */
IST_API int ist_halo_sides_of(ist_halo_grid grid, const ist_halo_field* field, int reach, ist_halo_sides* sides);
/* The same of any number of neighbours. */
IST_API int ist_halo_all_sides_of(ist_halo_grid grid, const ist_halo_field* field, int reach, ist_halo_all_sides* sides);

/* For people: neighbours, bytes, kinds, how it is packed and what that took. The text is cut to `size` bytes with its final zero, and
 * *needed (may be null) becomes the bytes of the whole with it; size 0 only asks. */
IST_API int ist_halo_text(ist_halo halo, char* text, size_t size, size_t* needed);

#ifdef __cplusplus
}
#endif
#endif
