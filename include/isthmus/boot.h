/* Worlds whose ranks find each other by a call of the program's own: the way in for programs that already have an exchange
 * between their processes. For MPI the call is ready: isthmus/mpi.h.
 *
 * Who calls this : applications that neither `isthmus run` nor a launcher of docs/launchers.md starts.
 * Threads        : as isthmus.h. The table's functions are called by the thread that calls ist_world_create_with, and never
 *                  after that call has returned.
 * Ownership      : the table and its context belong to the caller and are needed during the call only.
 * Errors         : as isthmus.h; where one rank fails, ist_world_create_with fails on all of them.
 */
#ifndef ISTHMUS_BOOT_H
#define ISTHMUS_BOOT_H

#include <isthmus/isthmus.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ist_boot_functions {
  size_t size;   /* sizeof(ist_boot_functions): later versions may add members at the end */
  void* context; /* given to the functions as it is */
  int32_t rank;  /* of this process in the world that is to be created */
  int32_t ranks; /* how many processes take part */
  /* Every rank calls it with the same `bytes` (1 or more); `mine` of rank r goes to `all + r * bytes` on every rank. Returns
   * 0, or any other number for a failure. */
  int (*all_gather)(void* context, const void* mine, void* all, size_t bytes);
  /* May be null. Writes at most `room` bytes, the ending 0 included: what that number means. */
  void (*error_text)(void* context, int error, char* text, size_t room);
  /* Null; or why this process cannot take part, and then the call fails with this text and calls no function. */
  const char* refusal;
} ist_boot_functions;

/* As ist_world_create, for exactly the processes that `functions` connects, whatever started them. Collective. */
IST_API int ist_world_create_with(const ist_boot_functions* functions, ist_world* world);
/* The same with settings of this world's own, as ist_world_create_configured. */
IST_API int ist_world_create_configured_with(const char* settings, const ist_boot_functions* functions, ist_world* world);

/* While this thread makes a world and waits for other ranks, `asked` is called with `context` about every 0.1 s. Once it returns
 * anything but 0, the call ends with IST_CANCELLED, unless all have come meanwhile and the world is made, and ranks that wait for
 * this one are told at once that it gave up. The world
 * may then be created again: where no other rank had come, as if this rank had not been there yet; otherwise on every rank. PMIx
 * and PMI cannot take a rank back: docs/launchers.md. Null: nobody is asked. It is this thread's alone, and stays until it is set
 * anew; a function of ist_boot_functions is not ended. */
IST_API void ist_interrupt_with(int (*asked)(void* context), void* context);

#ifdef __cplusplus
}
#endif
#endif
