/* Isthmus: what kernels have to know of a field's neighbours to exchange halos by themselves.
 *
 * Who calls this : ist_halo_sides_of and ist_halo_all_sides_of (halo.h) fill it in; isthmus/device/halo.cuh and programs use it, copied by value, also as argument of
 *                  kernels.
 * Threads        : a value that never changes.
 * Ownership      : none.
 * Errors         : none here. */
#ifndef ISTHMUS_HALO_SIDES_H
#define ISTHMUS_HALO_SIDES_H

#include <stdint.h>

/* One neighbour. Places and strides count elements, from the beginning of the field, which lies alike at all PEs. */
typedef struct ist_halo_side {
  int32_t pe;       /* rank in the grid's communicator */
  int32_t number;   /* of this PE's flags, the one that the neighbour sets when its cells are here */
  int32_t opposite; /* of the neighbour's flags, the one that this PE sets */
  int32_t reserved;
  int64_t cells;    /* that it gets, all of them; 0: it gets the flag alone */
  int64_t from;     /* the first of them here */
  int64_t to;       /* and there */
  int64_t count[4]; /* in each dimension, the one with the smallest stride last */
  int64_t stride[4];
} ist_halo_side;

#define IST_HALO_MOST_SIDES 26
typedef struct ist_halo_sides {
  int32_t count;
  int32_t flags; /* how many words there are at each PE */
  ist_halo_side side[IST_HALO_MOST_SIDES];
} ist_halo_sides;

/* The same of as many neighbours as there can be: 80, in four dimensions with corners. What a side is in one dimension depends on its step there
 * alone, so that a table for each of the three steps stands for all sides, and everything takes less than a kilobyte of a kernel's
 * arguments; side_of() of isthmus/device/halo.cuh makes a side of it. Places in [] are dimensions by stride, the smallest last,
 * and then the steps -1, 0 and 1. */
#define IST_HALO_MOST_NEIGHBOURS 80
typedef struct ist_halo_all_sides {
  int32_t count;
  int32_t flags; /* how many words there are at each PE */
  int64_t cells[4][3];
  int64_t from[4][3]; /* elements from the beginning of the field, which add up */
  int64_t to[4][3];
  int64_t stride[4];
  int32_t digit[4]; /* a side's step is number / digit % 3 - 1 */
  int32_t pe[IST_HALO_MOST_NEIGHBOURS];
  uint8_t number[IST_HALO_MOST_NEIGHBOURS]; /* the opposite one is flags - 1 - number */
} ist_halo_all_sides;

#endif
