#include <gtest/gtest.h>

#include "foreign.hpp"

namespace ist::test {
namespace {

class FromMpi : public testing::TestWithParam<Mpi> {
 protected:
  // Skips where this machine cannot start or has not compiled the program.
  std::vector<std::string> words(int ranks, const std::string& name = "mpi_program") {
    const std::string program = std::string{FOLDER} + "/" + name + "_" + GetParam().name;
    const auto start = GetParam().start(ranks);
    return start.empty() || ::access(program.c_str(), X_OK) != 0 ? std::vector<std::string>{} : with(start, {program});
  }
  static constexpr const char* kWhat = "this MPI, with its compiler (libopenmpi-dev, libmpich-dev),";
};

TEST_P(FromMpi, worlds_of_communicators_work_beside_mpi) {
  for (const int ranks : {1, 2, 4}) {
    const auto start = words(ranks);
    SKIP_WITHOUT(start, kWhat);
    expect_printed(start, " is through\n", ranks);
  }
}

TEST_P(FromMpi, worlds_of_communicators_are_worlds_of_cpp) {
  for (const int ranks : {1, 3}) {
    const auto start = words(ranks, "mpi_worlds");
    SKIP_WITHOUT(start, kWhat);
    expect_printed(start, " is through\n", ranks);
  }
}

TEST_P(FromMpi, before_mpi_init_the_call_says_what_to_do) {
  const auto start = words(2);
  SKIP_WITHOUT(start, kWhat);
  expect_printed(with(start, {"early"}), " is through\n", 2);
}

TEST_P(FromMpi, the_launchers_own_exchange_serves_both_or_the_text_says_what_to_call) {
  const auto start = words(3);
  SKIP_WITHOUT(start, kWhat);
  Command command{with(start, {"started"})};
  EXPECT_EQ(command.wait(70), 0) << command.output() << command.errors();
  EXPECT_EQ(times_in(command.output(), " is through\n"), 3) << command.output();
  // PMIx counts its users. PMI has room for one.
  const bool refused = std::string{GetParam().name} == "mpich";
  EXPECT_EQ(times_in(command.output(), "ist_world_from_mpi(MPI_COMM_WORLD"), refused ? 3 : 0) << command.output();
}

INSTANTIATE_TEST_SUITE_P(All, FromMpi, testing::Values(kOpenMpi, kMpich), name_of);

}  // namespace
}  // namespace ist::test
