#include "face/shmem/contexts.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "face/shmem/also.hpp"
#include "face/shmem/errors.hpp"
#include "face/shmem/ordering.hpp"
#include "face/shmem/teams.hpp"

struct shmemx_ctx_ {
  static constexpr std::uint32_t kAlive = 0x63747874;
  std::uint32_t alive = 0;
  ist::shmem::Group group;
  shmem_team_t team = SHMEM_TEAM_INVALID;
};

namespace ist::shmem {
namespace {

struct Contexts {
  std::mutex mutex;
  std::vector<std::unique_ptr<shmemx_ctx_>> made;
  std::vector<shmemx_ctx_*> unused;
};
Contexts& contexts() {
  static Contexts* const only = new Contexts;
  return *only;
}

int create(shmem_team_t team, long options, shmem_ctx_t* made) {
  if (made == nullptr) return -1;
  *made = SHMEM_CTX_INVALID;
  Team* const found = team_of(team);
  if (found == nullptr || (options & ~(SHMEM_CTX_SERIALIZED | SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE)) != 0) return -1;
  const std::lock_guard lock(contexts().mutex);
  if (contexts().unused.empty()) {
    contexts().made.push_back(std::make_unique<shmemx_ctx_>());
    contexts().unused.push_back(contexts().made.back().get());
  }
  shmemx_ctx_* const context = contexts().unused.back();
  contexts().unused.pop_back();
  context->group = found->group;
  context->team = team;
  context->alive = shmemx_ctx_::kAlive;
  found->contexts.push_back(context);
  *made = context;
  return 0;
}

bool usable(shmem_ctx_t context) {
  return context != SHMEM_CTX_INVALID && context != SHMEM_CTX_DEFAULT && context->alive == shmemx_ctx_::kAlive;
}

}  // namespace

bool to_world(const char* call, shmem_ctx_t context, int& pe) {
  if (context == SHMEM_CTX_DEFAULT) return true;
  if (context == SHMEM_CTX_INVALID) {
    fail(call, "the context is SHMEM_CTX_INVALID; make one by shmem_ctx_create, and look at what it returns");
    return false;
  }
  if (!is_there(call, context)) return false;
  if (pe < 0 || pe >= context->group.size) {
    fail(call, "PE " + std::to_string(pe) + " was named; the context's team has PEs 0 to " +
                   std::to_string(context->group.size - 1));
    return false;
  }
  pe = context->group.at(pe);
  return true;
}

bool is_there(const char* call, shmem_ctx_t context) {
  if (context == SHMEM_CTX_INVALID) return false;
  if (context == SHMEM_CTX_DEFAULT || usable(context)) return true;
  fail(call, "the context was destroyed before");
  return false;
}

void destroy_context(shmem_ctx_t context) {
  quiet("shmem_ctx_destroy");
  const std::lock_guard lock(contexts().mutex);
  if (Team* const team = team_of(context->team); team != nullptr) std::erase(team->contexts, context);
  context->alive = 0;
  contexts().unused.push_back(context);
}

}  // namespace ist::shmem

using namespace ist::shmem;
extern "C" {

int pshmem_ctx_create(long options, shmem_ctx_t* context) {
  return guarded("shmem_ctx_create", -1, [&] { return create(SHMEM_TEAM_WORLD, options, context); });
}
SHMEM_ALSO(ctx_create);
int pshmem_team_create_ctx(shmem_team_t team, long options, shmem_ctx_t* context) {
  return guarded("shmem_team_create_ctx", -1, [&] { return create(team, options, context); });
}
SHMEM_ALSO(team_create_ctx);
void pshmem_ctx_destroy(shmem_ctx_t context) {
  constexpr const char* kCall = "shmem_ctx_destroy";
  guarded(kCall, [&] {
    if (context == SHMEM_CTX_INVALID) return;
    if (usable(context))
      destroy_context(context);
    else
      fail(kCall, "the context is SHMEM_CTX_DEFAULT, or was destroyed before; destroy what was created, once");
  });
}
SHMEM_ALSO(ctx_destroy);
int pshmem_ctx_get_team(shmem_ctx_t context, shmem_team_t* team) {
  if (team == nullptr) return -1;
  *team = context == SHMEM_CTX_DEFAULT ? SHMEM_TEAM_WORLD : usable(context) ? context->team : SHMEM_TEAM_INVALID;
  return *team == SHMEM_TEAM_INVALID ? -1 : 0;
}
SHMEM_ALSO(ctx_get_team);
// A hint that operations will be many; each is done at once here.
void pshmem_ctx_session_start(shmem_ctx_t context, long, const shmem_ctx_session_config_t*, long) {
  guarded("shmem_ctx_session_start", [&] { is_there("shmem_ctx_session_start", context); });
}
SHMEM_ALSO(ctx_session_start);
void pshmem_ctx_session_stop(shmem_ctx_t context) {
  guarded("shmem_ctx_session_stop", [&] { is_there("shmem_ctx_session_stop", context); });
}
SHMEM_ALSO(ctx_session_stop);
}
