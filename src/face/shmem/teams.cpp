#include "face/shmem/teams.hpp"

#include <algorithm>
#include <memory>
#include <mutex>

#include "face/shmem/also.hpp"
#include "face/shmem/collectives.hpp"
#include "face/shmem/contexts.hpp"
#include "face/shmem/errors.hpp"
#include "face/shmem/regions.hpp"

namespace ist::shmem {
namespace {

struct Teams {
  std::mutex mutex;
  shmemx_team_ all;
  shmemx_team_ shared;
  std::vector<std::unique_ptr<shmemx_team_>> made;
};

Teams& teams() {
  static Teams* const only = new Teams;
  return *only;
}

void set_world(shmemx_team_& team, int slot) {
  team.group = {0, 1, hot.pes, hot.pe, slot};
  team.config = {};
  team.contexts.clear();
  team.alive = Team::kAlive;
}

int index_in(const Team& team, int pe) { return team.group.index_of(pe); }

// The parent's first PE takes one for all `members`; teams beyond as many as there are share one.
int agree_on_slot(const char* call, const Team& parent, int members) {
  const Group& group = parent.group;
  const InCall in{call, group};
  if (!in) return -1;
  if (group.me == 0) world().posted(hot.pe, group.slot) = static_cast<std::uint64_t>(world().slots().take_for_team(members));
  if (!sync(call, group)) return -1;
  const int slot = kFirstTeamSlot + static_cast<int>(world().posted(group.at(0), group.slot));
  return sync(call, group) ? slot : -1;
}

struct Settings {
  const shmem_team_config_t* config;
  long mask;
};

shmem_team_t make(const Group& group, const Settings& settings) {
  const std::lock_guard lock(teams().mutex);
  auto& made = teams().made;
  auto found = std::find_if(made.begin(), made.end(), [](const auto& each) { return each->alive == 0; });
  if (found == made.end()) {
    made.push_back(std::make_unique<shmemx_team_>());
    found = made.end() - 1;
  }
  shmemx_team_& team = **found;
  team.group = group;
  team.config = {};
  if (settings.config != nullptr && (settings.mask & SHMEM_TEAM_NUM_CONTEXTS) != 0) team.config = *settings.config;
  team.contexts.clear();
  team.alive = Team::kAlive;
  return &team;
}

// The part of `parent` that begins at its index `start`; this PE may be outside.
Group part_of(const Team& parent, int start, int stride, int size) {
  Group group{parent.group.at(start), parent.group.stride * stride, size, -1, 0};
  group.me = group.index_of(hot.pe);
  return group;
}

int split_strided(shmem_team_t parent, int start, int stride, int size, const Settings& settings, shmem_team_t* made) {
  constexpr const char* kCall = "shmem_team_split_strided";
  if (made == nullptr) return -1;
  *made = SHMEM_TEAM_INVALID;
  const Team* const team = team_of(parent);
  if (team == nullptr) return -1;
  const long last = start + (static_cast<long>(size) - 1) * stride;
  if (size < 1 || start < 0 || start >= team->group.size || last < 0 || last >= team->group.size ||
      (stride == 0 && size > 1)) {
    remember(std::string{kCall} + ": " + std::to_string(size) + " PEs from " + std::to_string(start) + " on, " +
             std::to_string(stride) + " apart, are not all in the parent team of " + std::to_string(team->group.size));
    return -1;
  }
  const int slot = agree_on_slot(kCall, *team, size);
  if (slot < 0) return -1;
  Group group = part_of(*team, start, size == 1 ? 1 : stride, size);
  group.slot = slot;
  if (group.me >= 0) *made = make(group, settings);
  return 0;
}

int split_2d(shmem_team_t parent, int xrange, const Settings& x, shmem_team_t* x_team, const Settings& y,
             shmem_team_t* y_team) {
  constexpr const char* kCall = "shmem_team_split_2d";
  if (x_team == nullptr || y_team == nullptr) return -1;
  *x_team = *y_team = SHMEM_TEAM_INVALID;
  const Team* const team = team_of(parent);
  if (team == nullptr || xrange < 1) return -1;
  const int all = team->group.size;
  const int width = std::min(xrange, all);
  const int row = team->group.me / width;
  const int column = team->group.me % width;
  const int x_slot = agree_on_slot(kCall, *team, all);
  if (x_slot < 0) return -1;
  Group across = part_of(*team, row * width, 1, std::min(width, all - row * width));
  across.slot = x_slot;
  *x_team = make(across, x);
  const int y_slot = agree_on_slot(kCall, *team, all);
  if (y_slot < 0) return -1;
  Group down = part_of(*team, column, width, (all - column + width - 1) / width);
  down.slot = y_slot;
  *y_team = make(down, y);
  return 0;
}

void destroy(Team& team) {
  for (const shmem_ctx_t context : std::vector<shmem_ctx_t>(team.contexts)) destroy_context(context);
  world().slots().give_up(team.group.slot - kFirstTeamSlot);
  const std::lock_guard lock(teams().mutex);
  team.alive = 0;
}

}  // namespace

Team* team_of(shmem_team_t handle) {
  if (handle == SHMEM_TEAM_INVALID || hot.pes == 0) {
    remember("the team is SHMEM_TEAM_INVALID");
    return nullptr;
  }
  if (handle == SHMEM_TEAM_WORLD || handle == SHMEM_TEAM_SHARED) {
    return handle == SHMEM_TEAM_WORLD ? &teams().all : &teams().shared;
  }
  if (handle->alive == Team::kAlive) return handle;
  remember("the team was destroyed before");
  return nullptr;
}

void make_own_teams() {
  set_world(teams().all, kWorldSlot);
  set_world(teams().shared, kSharedSlot);
}

void drop_groups() {
  for (shmemx_team_* const team : {&teams().all, &teams().shared}) {
    for (const shmem_ctx_t context : std::vector<shmem_ctx_t>(team->contexts)) destroy_context(context);
    team->alive = 0;
  }
  for (const auto& team : teams().made)
    if (team->alive != 0) destroy(*team);
}

}  // namespace ist::shmem

using namespace ist::shmem;
extern "C" {

int pshmem_team_my_pe(shmem_team_t team) {
  const Team* const found = team_of(team);
  return found != nullptr ? found->group.me : -1;
}
SHMEM_ALSO(team_my_pe);
int pshmem_team_n_pes(shmem_team_t team) {
  const Team* const found = team_of(team);
  return found != nullptr ? found->group.size : -1;
}
SHMEM_ALSO(team_n_pes);
int pshmem_team_get_config(shmem_team_t team, long mask, shmem_team_config_t* config) {
  const Team* const found = team_of(team);
  if (found == nullptr || (mask != 0 && config == nullptr) || (mask & ~SHMEM_TEAM_NUM_CONTEXTS) != 0) return -1;
  if ((mask & SHMEM_TEAM_NUM_CONTEXTS) != 0) config->num_contexts = found->config.num_contexts;
  return 0;
}
SHMEM_ALSO(team_get_config);
int pshmem_team_translate_pe(shmem_team_t from, int pe, shmem_team_t to) {
  const Team* const source = team_of(from);
  const Team* const dest = team_of(to);
  if (source == nullptr || dest == nullptr || pe < 0 || pe >= source->group.size) return -1;
  return index_in(*dest, source->group.at(pe));
}
SHMEM_ALSO(team_translate_pe);
int pshmem_team_split_strided(shmem_team_t parent, int start, int stride, int size, const shmem_team_config_t* config,
                              long mask, shmem_team_t* made) {
  return guarded("shmem_team_split_strided", -1, [&] {
    return split_strided(parent, start, stride, size, {config, mask}, made);
  });
}
SHMEM_ALSO(team_split_strided);
int pshmem_team_split_2d(shmem_team_t parent, int xrange, const shmem_team_config_t* x_config, long x_mask,
                         shmem_team_t* x_team, const shmem_team_config_t* y_config, long y_mask, shmem_team_t* y_team) {
  return guarded("shmem_team_split_2d", -1, [&] {
    return split_2d(parent, xrange, {x_config, x_mask}, x_team, {y_config, y_mask}, y_team);
  });
}
SHMEM_ALSO(team_split_2d);
void pshmem_team_destroy(shmem_team_t team) {
  constexpr const char* kCall = "shmem_team_destroy";
  guarded(kCall, [&] {
    if (team == SHMEM_TEAM_INVALID) return;
    Team* const found = team_of(team);
    if (found == nullptr || team == SHMEM_TEAM_WORLD || team == SHMEM_TEAM_SHARED)
      fail(kCall, "the team is no longer there, or one of the library's own; destroy what was split, once");
    else
      destroy(*found);
  });
}
SHMEM_ALSO(team_destroy);
void* pshmem_team_ptr(shmem_team_t team, const void* address, int pe) {
  const Team* const found = team_of(team);
  if (found == nullptr || pe < 0 || pe >= found->group.size) return nullptr;
  const Place place = look(address, 1, found->group.at(pe));
  return place.device == nullptr ? place.at : nullptr;
}
SHMEM_ALSO(team_ptr);
}
