/* What the two programs have in common: heat in a periodic rectangle, whose rows are cut over all ranks. */
#ifndef ISTHMUS_EXAMPLES_OFFLOAD_HEAT_H
#define ISTHMUS_EXAMPLES_OFFLOAD_HEAT_H

#include <isthmus/isthmus.h>

#define HEAT_FLOW 0.2 /* between two neighbours, in a step */
#define HEAT_WORDS 80

/* A rank's part, with a row of each neighbour before and behind its own. */
typedef struct heat {
  ist_comm comm;
  int rank, ranks;
  int local_rank; /* among those of this host, which share its devices */
  long all_rows, columns;
  long first, rows; /* its own, of all */
  int steps;        /* even */
  char* memory; /* whose memory Isthmus found the cells to be in, in words: HEAT_WORDS bytes, "" before the first exchange */
} heat;

static inline long heat_cells(const heat* part) { return (part->rows + 2) * part->columns; }

/* The neighbours' outermost rows come into this rank's outer ones. `cells` may be memory of a device or of the host: Isthmus asks the
 * drivers. What was computed there has to be complete, as it is behind a directive without nowait or async. */
int heat_exchange(const heat* part, double* cells);

/* The directives' part: `cells`, on the host, as they are after all steps; `other` is room for as many. Where it was
 * computed, as was asked there. */
const char* heat_run(const heat* part, double* cells, double* other, int* failed);

#endif
