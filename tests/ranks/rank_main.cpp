#include <isthmus/collective.h>

#include <cstdio>
#include <cstdlib>
#include <set>

#include "rank_test.hpp"

namespace rank_test {
namespace {
ist_world the_world = IST_WORLD_NULL;
ist_comm the_comm = IST_COMM_NULL;
int the_rank = 0;
int the_size = 0;
}  // namespace

ist_world world() { return the_world; }
ist_comm comm() { return the_comm; }
int rank() { return the_rank; }
int size() { return the_size; }

std::vector<KindName> usable_kinds() {
  static std::set<std::string> said;
  std::vector<KindName> usable;
  for (const KindName known : {KindName{IST_KIND_HOST, "host"}, {IST_KIND_CUDA, "cuda"}, {IST_KIND_OPENCL, "opencl"}}) {
    int devices = 0;
    EXPECT_EQ(IST_OK, ist_kind_devices(the_world, known.kind, &devices)) << ist_error_text();
    if (devices > 0) {
      usable.push_back(known);
    } else if (the_rank == 0 && said.insert(known.name).second) {
      std::printf("not covered here: kind %s has no device on this machine\n", known.name);
    }
  }
  return usable;
}

bool any_device(ist_kind kind) {
  int mine = 0;
  int any = 0;
  EXPECT_EQ(IST_OK, ist_kind_devices(world(), kind, &mine)) << ist_error_text();
  EXPECT_EQ(IST_OK, ist_allreduce(ist_host(&mine), ist_host(&any), 1, IST_INT, IST_MAX, comm())) << ist_error_text();
  return any > 0;
}

}  // namespace rank_test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  // What was measured on this machine, of its devices too, changes where one way gives place to another. A test that wants other numbers
  // says so.
  ::setenv("ISTHMUS_PROFILE", "builtin", 0);
  if (ist_world_create(&rank_test::the_world) != IST_OK ||
      ist_world_comm(rank_test::the_world, &rank_test::the_comm) != IST_OK ||
      ist_comm_rank(rank_test::the_comm, &rank_test::the_rank) != IST_OK ||
      ist_comm_size(rank_test::the_comm, &rank_test::the_size) != IST_OK) {
    std::fprintf(stderr, "no world: %s\n", ist_error_text());
    return 1;
  }
  int result = RUN_ALL_TESTS();
  if (ist_world_destroy(&rank_test::the_world) != IST_OK) {
    std::fprintf(stderr, "destroy: %s\n", ist_error_text());
    result = 1;
  }
  return result;
}
