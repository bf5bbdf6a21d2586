// Collective calls among the PEs of a team or an active set: everybody takes what it needs out of the others' memory.
//
// Who calls this : the typed calls that generate.py makes; teams.
// Threads        : one at a time in a team.
// Ownership      : none.
// Errors         : of teams' calls, not 0; arguments that are wrong, and PEs that died, by fail().
//
// A call begins when all whose bytes are taken have come, and ends when all who take theirs have them: sources may be written again.
#pragma once

#include <cstddef>

#include "face/shmem/copies.hpp"
#include "face/shmem/groups.hpp"
#include "face/shmem/teams.hpp"

namespace ist::shmem {

struct Block {
  void* dest;
  const void* source;
  std::size_t bytes;
};
struct ActiveSet {
  int start;
  int log_stride;
  int size;
  const long* words;
};
// acc[i] = acc[i] (op) in[i], for all elements in so many bytes.
struct Combiner {
  void (*combine)(void* acc, const void* in, std::size_t bytes);
  std::size_t size;  // of an element
};

inline std::size_t count_of(int number) { return number > 0 ? static_cast<std::size_t>(number) : 0; }

int broadcast(const char* call, shmem_team_t team, const Block& block, int root);
int collect(const char* call, shmem_team_t team, const Block& block);
int fcollect(const char* call, shmem_team_t team, const Block& block);
int alltoall(const char* call, shmem_team_t team, const Block& block);
int alltoalls(const char* call, shmem_team_t team, const Strided& what);
int reduce(const char* call, shmem_team_t team, const Block& block, const Combiner& combiner);
// `own`: with this PE's own values.
int scan(const char* call, shmem_team_t team, const Block& block, const Combiner& combiner, bool own);

void broadcast(const char* call, const ActiveSet& set, const Block& block, int root);
void collect(const char* call, const ActiveSet& set, const Block& block);
void fcollect(const char* call, const ActiveSet& set, const Block& block);
void alltoall(const char* call, const ActiveSet& set, const Block& block);
void alltoalls(const char* call, const ActiveSet& set, const Strided& what);
void reduce(const char* call, const ActiveSet& set, const Block& block, const Combiner& combiner);

}  // namespace ist::shmem
