/* Isthmus: what the workers of a process (ISTHMUS_WORKER=1, docs/worker.md) take of a device.
 *
 * Who calls this : launch.cuh, and programs that fill a device with blocks by themselves.
 * Threads        : any.
 * Ownership      : none.
 * Errors         : as of isthmus.h. */
#ifndef ISTHMUS_WORKER_H
#define ISTHMUS_WORKER_H

#include "isthmus/isthmus.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ist_worker_blocks {
  int32_t
      blocks; /* of all worlds of this process that may be on the device at any moment: one for each worker that is loaded */
  int32_t threads;      /* of each block */
  int32_t registers;    /* of each thread */
  int32_t shared_bytes; /* of each block */
} ist_worker_blocks;

/* Of the CUDA device of that number, also where there is none: then all are 0. A worker is loaded behind the first small messages of the device, and
 * stays so until its world ends. */
IST_API int ist_worker_blocks_on(int device, ist_worker_blocks* found);

#ifdef __cplusplus
}
#endif

#endif
