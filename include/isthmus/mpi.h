/* Worlds of the ranks of an MPI communicator, so that one program can use both. It is compiled with the program's own MPI, of
 * any make; libisthmus knows nothing of MPI and links none.
 *
 * Who calls this : MPI programs, from C or C++, after MPI_Init.
 * Threads        : MPI is called by the calling thread, as its thread level allows, and never after the call has returned.
 * Ownership      : the world is independent of the communicator, which may be freed, and of MPI, which may be finalised. The
 *                  exchange runs on a duplicate, so that it meets none of the program's messages.
 * Errors         : as isthmus.h; MPI's own errors are returned, whatever error handler the communicator has.
 */
#ifndef ISTHMUS_MPI_H
#define ISTHMUS_MPI_H

#include <isthmus/boot.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

static inline int ist_mpi_all_gather(void* context, const void* mine, void* all, size_t bytes) {
  if (bytes > INT_MAX) return MPI_ERR_COUNT;
  return MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, *(MPI_Comm*)context);
}

static inline void ist_mpi_error_text(void* context, int error, char* text, size_t room) {
  char long_text[MPI_MAX_ERROR_STRING];
  int length = 0;
  (void)context;
  if (MPI_Error_string(error, long_text, &length) != MPI_SUCCESS) length = 0;
  snprintf(text, room, "MPI says: %.*s", length, long_text);
}

/* Null, or why no world can be made of this communicator. */
static inline const char* ist_mpi_refusal(MPI_Comm comm) {
  int yes = 0;
#if MPI_VERSION >= 4
  const int of_a_session = comm != MPI_COMM_WORLD && comm != MPI_COMM_SELF; /* may be: sessions come without MPI_Init */
#else
  const int of_a_session = 0;
#endif
  if (!of_a_session && (MPI_Initialized(&yes) != MPI_SUCCESS || !yes)) return "MPI is not initialised; call MPI_Init before";
  if (!of_a_session && (MPI_Finalized(&yes) != MPI_SUCCESS || yes))
    return "MPI is finalised; create the world before MPI_Finalize";
  if (comm == MPI_COMM_NULL) return "the communicator is MPI_COMM_NULL; call this on ranks that belong to it";
  if (MPI_Comm_test_inter(comm, &yes) != MPI_SUCCESS) return "the communicator cannot be used";
  return yes ? "the communicator joins two groups; merge them first (MPI_Intercomm_merge)" : NULL;
}

/* The world of all ranks of `comm`, with the same rank numbers, and settings of its own as ist_world_create_configured takes them.
 * Collective over `comm`. */
static inline int ist_world_from_mpi_configured(MPI_Comm comm, const char* settings, ist_world* world) {
  MPI_Comm own = MPI_COMM_NULL;
  ist_boot_functions functions = {sizeof(ist_boot_functions), NULL, 0, 1, ist_mpi_all_gather, ist_mpi_error_text, NULL};
  int code;
  functions.context = &own;
  functions.refusal = ist_mpi_refusal(comm);
  if (functions.refusal == NULL) {
    int rank = 0;
    int ranks = 1;
    if (MPI_Comm_dup(comm, &own) != MPI_SUCCESS || MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN) != MPI_SUCCESS ||
        MPI_Comm_rank(own, &rank) != MPI_SUCCESS || MPI_Comm_size(own, &ranks) != MPI_SUCCESS)
      functions.refusal = "MPI could not duplicate the communicator (MPI_Comm_dup)";
    functions.rank = rank;
    functions.ranks = ranks;
  }
  code = ist_world_create_configured_with(settings, &functions, world);
  if (own != MPI_COMM_NULL) MPI_Comm_free(&own);
  return code;
}

/* The same with the settings of the environment. */
static inline int ist_world_from_mpi(MPI_Comm comm, ist_world* world) {
  return ist_world_from_mpi_configured(comm, NULL, world);
}

#ifdef __cplusplus
}
#endif
#endif
