// Programs of the library alone, without any MPI in them, under launchers that are not ours: the whole way, from the launcher's
// variables to bytes that have come.
#include "foreign.hpp"

namespace ist::test {
namespace {

class LibraryUnder : public testing::TestWithParam<Mpi> {
 protected:
  // Skips where the launcher is not here. One rank that found nobody would talk to itself, and its line be another one.
  void expect_all_numbers(const std::vector<std::string>& program) {
    for (const int ranks : {1, 3}) {
      const auto start = GetParam().start(ranks);
      SKIP_WITHOUT(start, GetParam().package);
      Command command{with(start, program)};
      EXPECT_EQ(command.wait(70), 0) << command.output() << command.errors();
      // Without the end of the line: a launcher may put the lines of two ranks before it.
      for (int rank = 0; rank < ranks; ++rank)
        EXPECT_EQ(times_in(command.output(), "rank " + std::to_string(rank) + ": 1048576 of 1048576 numbers from rank " +
                                                 std::to_string((rank + ranks - 1) % ranks) + " are right"),
                  1)
            << command.output() << command.errors();
    }
  }
};

TEST_P(LibraryUnder, a_program_in_c_exchanges_its_numbers) { expect_all_numbers({HELLO_C}); }

TEST_P(LibraryUnder, a_program_in_python_exchanges_its_numbers) {
  if (std::string_view{PYTHON}.empty()) GTEST_SKIP() << "not covered here: the Python package is not built";
  expect_all_numbers({"env", "PYTHONPATH=" PYTHON_PATH, PYTHON, HELLO_PY});
}

// Open MPI ends the others at once, and MPICH leaves them waiting for a rank that never came to its server.
TEST_P(LibraryUnder, a_rank_that_cannot_create_its_world_says_why_and_the_others_wait_no_longer_than_they_may) {
  const auto start = GetParam().start(2);
  SKIP_WITHOUT(start, GetParam().package);
  const double begun = now();
  Command command{with(start, {"env", "ISTHMUS_BOOT_TIMEOUT=5", "sh", "-c",
                               "case $PMIX_RANK$PMI_RANK in 1) export ISTHMUS_CELLS=many;; esac; exec " HELLO_C})};
  EXPECT_NE(command.wait(70), 0) << command.output();
  EXPECT_GE(times_in(command.errors(), "ISTHMUS_CELLS=\"many\""), 1) << command.errors();
  EXPECT_EQ(times_in(command.output(), "are right"), 0) << command.output();
  EXPECT_LT(now() - begun, allowed(10)) << command.errors();
}

INSTANTIATE_TEST_SUITE_P(All, LibraryUnder, testing::Values(kOpenMpi, kMpich), name_of);

}  // namespace
}  // namespace ist::test
