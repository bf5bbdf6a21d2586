// Everything that the typed calls, which generate.py defines from table.py, are made of.
//
// Who calls this : the files that generate.py makes.
// Threads        : as each part says.
// Ownership      : none.
// Errors         : as each part says.
#pragma once

#include <cstddef>
#include <cstdint>

#include "face/shmem/also.hpp"
#include "face/shmem/atomics.hpp"
#include "face/shmem/collectives.hpp"
#include "face/shmem/copies.hpp"
#include "face/shmem/errors.hpp"
#include "face/shmem/reductions.hpp"
#include "face/shmem/waits.hpp"

namespace ist::shmem {

// Too many are as many bytes as there can be, which no memory has: the call says so, and does not move the few that a product would leave.
constexpr std::size_t bytes_of(std::size_t count, std::size_t each) {
  std::size_t bytes = 0;
  return __builtin_mul_overflow(count, each, &bytes) ? SIZE_MAX : bytes;
}

}  // namespace ist::shmem
