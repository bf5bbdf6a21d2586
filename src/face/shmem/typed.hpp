// Everything that the typed calls, which generate.py defines from table.py, are made of.
//
// Who calls this : the files that generate.py makes.
// Threads        : as each part says.
// Ownership      : none.
// Errors         : as each part says.
#pragma once

#include "face/shmem/also.hpp"
#include "face/shmem/atomics.hpp"
#include "face/shmem/collectives.hpp"
#include "face/shmem/copies.hpp"
#include "face/shmem/errors.hpp"
#include "face/shmem/reductions.hpp"
#include "face/shmem/waits.hpp"
