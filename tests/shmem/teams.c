/* Teams and contexts: who is in which, under which number, and what goes through a context of a team.
 * teams [cuda | opencl] */
#include "check.h"

/* PE `pe` of the world is where in a team that goes from start by stride? */
static int index_of(int pe, int start, int stride, int size) {
  for (int i = 0; i < size; ++i)
    if (start + i * stride == pe) return i;
  return -1;
}

/* What members do together arrives at the members alone. */
static void use(shmem_team_t team, long* there, long* here) {
  const int n = shmem_team_n_pes(team), index = shmem_team_my_pe(team);
  GIVE(long, here, me + 1);
  CHECK(shmem_long_sum_reduce(team, there, here, 1) == 0);
  long sum = 0;
  for (int i = 0; i < n; ++i) sum += shmem_team_translate_pe(team, i, SHMEM_TEAM_WORLD) + 1;
  CHECK(SEEN(long, there) == sum);
  CHECK(shmem_team_sync(team) == 0);
  shmem_ctx_t context;
  CHECK(shmem_team_create_ctx(team, 0, &context) == 0 && context != SHMEM_CTX_INVALID);
  shmem_team_t of = SHMEM_TEAM_INVALID;
  CHECK(shmem_ctx_get_team(context, &of) == 0 && of == team);
  /* PEs of a context are those of its team. */
  const int right = (index + 1) % n;
  shmem_ctx_long_p(context, there, 1000 + index, right);
  shmem_ctx_quiet(context);
  shmem_ctx_pe_quiet(context, &right, 1);
  shmem_pe_quiet(NULL, 0);
  CHECK(shmem_team_sync(team) == 0);
  CHECK(SEEN(long, there) == 1000 + (index + n - 1) % n);
  CHECK(shmem_ctx_long_g(context, there, right) == 1000 + index);
  CHECK(shmem_team_sync(team) == 0);
  shmem_ctx_long_atomic_add(context, there, 5, right);
  shmem_ctx_fence(context);
  CHECK(shmem_team_sync(team) == 0);
  CHECK(SEEN(long, there) == 1005 + (index + n - 1) % n);
  CHECK(shmem_team_ptr(team, there, right) == shmem_ptr(there, shmem_team_translate_pe(team, right, SHMEM_TEAM_WORLD)));
  CHECK(shmem_team_ptr(team, there, n) == NULL && shmem_team_ptr(team, &sum, right) == NULL);
  CHECK(shmem_team_sync(team) == 0);
  shmem_ctx_destroy(context);
}

static void strided(long* there, long* here) {
  for (int stride = 1; stride <= 3; ++stride)
    for (int start = 0; start < pes; ++start)
      for (int size = 1; start + (size - 1) * stride < pes; ++size) {
        shmem_team_t team = SHMEM_TEAM_WORLD;
        shmem_team_config_t config = {3}, found = {0};
        CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, start, stride, size, &config, SHMEM_TEAM_NUM_CONTEXTS, &team) == 0);
        const int index = index_of(me, start, stride, size);
        CHECK((team == SHMEM_TEAM_INVALID) == (index < 0));
        if (index >= 0) {
          CHECK(shmem_team_my_pe(team) == index && shmem_team_n_pes(team) == size);
          CHECK(shmem_team_get_config(team, SHMEM_TEAM_NUM_CONTEXTS, &found) == 0 && found.num_contexts == 3);
          for (int pe = 0; pe < pes; ++pe) {
            CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, pe, team) == index_of(pe, start, stride, size));
            const int back = index_of(pe, start, stride, size);
            if (back >= 0) CHECK(shmem_team_translate_pe(team, back, SHMEM_TEAM_WORLD) == pe);
          }
          CHECK(shmem_team_translate_pe(team, size, SHMEM_TEAM_WORLD) == -1);
          use(team, there, here);
          /* A part of a part, backwards. */
          shmem_team_t inner = SHMEM_TEAM_INVALID;
          if (size > 1) {
            CHECK(shmem_team_split_strided(team, size - 1, -1, size, NULL, 0, &inner) == 0);
            CHECK(shmem_team_my_pe(inner) == size - 1 - index);
            CHECK(shmem_team_translate_pe(inner, 0, team) == size - 1);
            use(inner, there, here);
            shmem_team_destroy(inner);
          }
        }
        shmem_team_destroy(team);
      }
}

static void in_two_dimensions(long* there, long* here) {
  for (int width = 1; width <= pes + 1; ++width) {
    shmem_team_t x = SHMEM_TEAM_INVALID, y = SHMEM_TEAM_INVALID;
    shmem_team_config_t config = {2}, found = {0};
    CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, width, NULL, 0, &x, &config, SHMEM_TEAM_NUM_CONTEXTS, &y) == 0);
    const int w = width < pes ? width : pes;
    const int row = me / w, column = me % w;
    CHECK(shmem_team_my_pe(x) == column && shmem_team_my_pe(y) == row);
    CHECK(shmem_team_n_pes(x) == (row * w + w <= pes ? w : pes - row * w));
    CHECK(shmem_team_n_pes(y) == (pes - column + w - 1) / w);
    CHECK(shmem_team_translate_pe(x, 0, SHMEM_TEAM_WORLD) == row * w &&
          shmem_team_translate_pe(y, 0, SHMEM_TEAM_WORLD) == column);
    CHECK(shmem_team_get_config(y, SHMEM_TEAM_NUM_CONTEXTS, &found) == 0 && found.num_contexts == 2);
    use(x, there, here);
    use(y, there, here);
    shmem_team_destroy(x);
    shmem_team_destroy(y);
  }
}

/* More than there are slots of their own; and some that last while others go. */
static void many(long* there, long* here) {
  enum { MANY = 80 };
  shmem_team_t teams[MANY];
  for (int i = 0; i < MANY; ++i) CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, NULL, 0, &teams[i]) == 0);
  for (int i = 0; i < MANY; i += 2) shmem_team_destroy(teams[i]);
  for (int i = 1; i < MANY; i += 2) use(teams[i], there, here);
  for (int i = 0; i < MANY; i += 2) CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, NULL, 0, &teams[i]) == 0);
  for (int i = 0; i < MANY; ++i) use(teams[i], there, here);
  for (int i = 0; i < MANY; ++i) shmem_team_destroy(teams[i]);
}

static void what_there_is_not(void) {
  shmem_team_t team = SHMEM_TEAM_WORLD;
  shmem_team_config_t config = {7};
  shmem_ctx_t context = SHMEM_CTX_DEFAULT;
  CHECK(shmem_team_my_pe(SHMEM_TEAM_INVALID) == -1 && shmem_team_n_pes(SHMEM_TEAM_INVALID) == -1);
  CHECK(shmem_team_translate_pe(SHMEM_TEAM_INVALID, 0, SHMEM_TEAM_WORLD) == -1);
  CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, SHMEM_TEAM_INVALID) == -1);
  CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, -1, SHMEM_TEAM_WORLD) == -1);
  CHECK(shmem_team_get_config(SHMEM_TEAM_INVALID, 0, &config) != 0);
  CHECK(shmem_team_get_config(SHMEM_TEAM_WORLD, 0, NULL) == 0);
  CHECK(shmem_team_sync(SHMEM_TEAM_INVALID) != 0);
  CHECK(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &team) != 0 && team == SHMEM_TEAM_INVALID);
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes + 1, NULL, 0, &team) != 0 && team == SHMEM_TEAM_INVALID);
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, -1, 1, 1, NULL, 0, &team) != 0);
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 0, NULL, 0, &team) != 0);
  CHECK(shmem_team_create_ctx(SHMEM_TEAM_INVALID, 0, &context) != 0 && context == SHMEM_CTX_INVALID);
  CHECK(shmem_ctx_get_team(SHMEM_CTX_INVALID, &team) != 0 && team == SHMEM_TEAM_INVALID);
  CHECK(shmem_ctx_get_team(SHMEM_CTX_DEFAULT, &team) == 0 && team == SHMEM_TEAM_WORLD);
  shmem_team_t x = SHMEM_TEAM_WORLD, y = SHMEM_TEAM_WORLD;
  for (int width = -1; width <= 0; ++width) {
    x = y = SHMEM_TEAM_WORLD;
    CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, width, NULL, 0, &x, NULL, 0, &y) != 0);
    CHECK(x == SHMEM_TEAM_INVALID && y == SHMEM_TEAM_INVALID);
  }
  x = y = SHMEM_TEAM_WORLD;
  CHECK(shmem_team_split_2d(SHMEM_TEAM_INVALID, 2, NULL, 0, &x, NULL, 0, &y) != 0);
  CHECK(x == SHMEM_TEAM_INVALID && y == SHMEM_TEAM_INVALID);
  CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, NULL, 0, &x, NULL, 0, NULL) != 0);
  CHECK(shmem_team_ptr(SHMEM_TEAM_INVALID, &team, 0) == NULL);
  long one = 1;
  CHECK(shmem_long_sum_reduce(SHMEM_TEAM_INVALID, &one, &one, 1) != 0 &&
        shmem_collectmem(SHMEM_TEAM_INVALID, &one, &one, 1) != 0);
  shmem_team_destroy(SHMEM_TEAM_INVALID);
  shmem_ctx_destroy(SHMEM_CTX_INVALID);
  shmem_ctx_quiet(SHMEM_CTX_INVALID);
  shmem_ctx_fence(SHMEM_CTX_INVALID);
  shmem_ctx_pe_quiet(SHMEM_CTX_INVALID, NULL, 1);
  shmem_ctx_session_start(SHMEM_CTX_INVALID, 0, NULL, 0);
  shmem_ctx_session_stop(SHMEM_CTX_INVALID);
}

static void contexts(long* there) {
  static const long options[] = {0, SHMEM_CTX_SERIALIZED, SHMEM_CTX_PRIVATE, SHMEM_CTX_NOSTORE,
                                 SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE};
  shmem_ctx_t all[200];
  for (int i = 0; i < 200; ++i) CHECK(shmem_ctx_create(options[i % 5], &all[i]) == 0);
  shmem_barrier_all();
  GIVE(long, there, 0);
  shmem_barrier_all();
  for (int i = 0; i < 200; ++i) shmem_ctx_long_atomic_inc(all[i], there, i % pes);
  shmem_barrier_all();
  CHECK(SEEN(long, there) == (200 / pes + (me < 200 % pes)) * (long)pes);
  const shmem_ctx_session_config_t session = {10};
  shmem_ctx_session_start(all[0], SHMEM_CTX_SESSION_BATCH, &session, SHMEM_CTX_SESSION_TOTAL_OPS);
  shmem_ctx_session_stop(all[0]);
  shmem_ctx_session_start(SHMEM_CTX_DEFAULT, 0, NULL, 0);
  shmem_ctx_session_stop(SHMEM_CTX_DEFAULT);
  for (int i = 0; i < 200; ++i) shmem_ctx_destroy(all[i]);
}

int main(int count, char** arguments) {
  if (!started(count, arguments)) return done();
  long* const there = (long*)symmetric(sizeof(long));
  long* const here = (long*)symmetric(sizeof(long));
  CHECK(shmem_team_my_pe(SHMEM_TEAM_WORLD) == me && shmem_team_n_pes(SHMEM_TEAM_WORLD) == pes);
  CHECK(shmem_team_n_pes(SHMEM_TEAM_SHARED) == pes);
  use(SHMEM_TEAM_WORLD, there, here);
  use(SHMEM_TEAM_SHARED, there, here);
  strided(there, here);
  in_two_dimensions(there, here);
  many(there, here);
  what_there_is_not();
  contexts(there);
  shmem_free(here);
  shmem_free(there);
  return done();
}
