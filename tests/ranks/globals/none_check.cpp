// What a program without a variable finds out about itself; not in it, since C++ brings some.
#include <isthmus/isthmus.h>

#include "face/shmem/globals.hpp"

extern "C" int check_that_there_are_none(ist_comm comm) {
  auto made = ist::SymmetricGlobals::create(comm);
  if (!made.ok() || !(*made)->symmetric()) return 2;
  if (!(*made)->segments().empty() || (*made)->heap() != IST_HEAP_NULL) return 3;
  if ((*made)->in_heap(&made) != nullptr || (*made)->at_peer(&made, 0) != nullptr) return 4;
  return (*made)->end().ok() ? 0 : 5;
}
