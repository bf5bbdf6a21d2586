// shmem_NAME as a weak alias of pshmem_NAME, which the same file defines before.
//
// Who calls this : every file that defines calls of OpenSHMEM.
// Threads        : none.
// Ownership      : none.
// Errors         : none; a name that shmem.h declares otherwise does not compile.
#pragma once

#include "face/shmem/hot.hpp"

#define SHMEM_ALSO(name) extern decltype(pshmem_##name) shmem_##name __attribute__((weak, alias("pshmem_" #name)))
