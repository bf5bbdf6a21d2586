/* Every routine is there under both of its names, and both are one function until somebody defines his own. */
#define SHMEMX_NO_GENERICS
#define SHMEMX_OLD_NAMES
#include "check.h"

typedef void (*any_function)(void);
static const struct {
  const char* name;
  any_function standard, profiled;
} routines[] = {
#define ROW(name) {#name, (any_function)name, (any_function)p##name},
    FOR_ROUTINES(ROW) FOR_UNTYPED_ROUTINES(ROW)};

int main(void) {
  shmem_init();
  const size_t count = sizeof routines / sizeof routines[0];
  CHECK(count > 1800);
  for (size_t i = 0; i < count; ++i)
    CHECK_OF(routines[i].standard != NULL && routines[i].standard == routines[i].profiled, routines[i].name);
  CHECK(my_pe() == shmem_my_pe() && num_pes() == shmem_n_pes());
  return done();
}
