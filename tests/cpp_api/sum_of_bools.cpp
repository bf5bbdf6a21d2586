// Does not compile with WRONG: a sum of bools is no bool. A test sees that the error names what there is in its place.
#include <array>

#include "isthmus/isthmus.hpp"

void combine(const isthmus::Comm& comm) {
  std::array<bool, 2> mine{};
  std::array<bool, 2> all{};
#ifdef WRONG
  comm.allreduce(mine, all, isthmus::op::sum);
#else
  comm.allreduce(mine, all, isthmus::op::lor);
#endif
}
