// Teams: every PE of one is at a stride from the next, since all are split from the world by strides.
//
// Who calls this : collectives, contexts, ordering.
// Threads        : any; what makes and ends teams, one at a time in a team.
// Ownership      : teams belong to the process and are used again, never given back, so that an old handle is recognised.
// Errors         : null for a handle that is none.
#pragma once

#include <vector>

#include "face/shmem/groups.hpp"

namespace ist::shmem {

struct Team {
  static constexpr std::uint32_t kAlive = 0x7465616d;
  std::uint32_t alive = 0;
  Group group;
  shmem_team_config_t config{};
  std::vector<shmem_ctx_t> contexts;
};

Team* team_of(shmem_team_t handle);
// SHMEM_TEAM_WORLD and SHMEM_TEAM_SHARED, once it is known who there is.
void make_own_teams();

}  // namespace ist::shmem

struct shmemx_team_ : ist::shmem::Team {};
