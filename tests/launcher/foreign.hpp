// Launchers that are not ours: is one here, and how is it called?
//
// Who calls this : foreign_test, mpi_test.
// Threads        : one.
// Ownership      : none.
// Errors         : a launcher that is not on this machine is an empty list of words, and its tests are skipped aloud.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "command.hpp"

namespace ist::test {

inline bool have_program(const std::string& name) {
  return std::system(("command -v " + name + " >/dev/null 2>&1").c_str()) == 0;
}

// A fresh number for the random bytes of one run, the same for all its ranks.
inline void new_salt() { ::setenv("ISTHMUS_TEST_SALT", std::to_string(std::random_device{}() >> 2).c_str(), 1); }

// Debian's Open MPI, which starts ranks through PMIx.
inline std::vector<std::string> open_mpi(int ranks) {
  if (!have_program("mpirun.openmpi")) return {};
  new_salt();
  // In containers tests run as root and on fewer processors than ranks; both must be allowed by name.
  ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  return {"timeout", "60", "mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-n", std::to_string(ranks)};
}

// Debian's MPICH, which starts ranks through PMI.
inline std::vector<std::string> mpich(int ranks) {
  if (!have_program("mpiexec.hydra")) return {};
  new_salt();
  return {"timeout", "60", "mpiexec.hydra", "-n", std::to_string(ranks)};
}

inline std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// The program comes to its good end, and its ranks have printed `text` so many times.
inline void expect_printed(const std::vector<std::string>& words, const std::string& text, int times) {
  Command command{words};
  EXPECT_EQ(command.wait(70), 0) << command.output() << command.errors();
  EXPECT_EQ(times_in(command.output(), text), times) << command.output();
}

struct Mpi {
  const char* name;
  const char* package;
  const char* boot;
  std::vector<std::string> (*start)(int ranks);
};
inline constexpr Mpi kOpenMpi{"openmpi", "Debian's Open MPI (openmpi-bin)", "pmix", open_mpi};
inline constexpr Mpi kMpich{"mpich", "Debian's MPICH (mpich)", "pmi", mpich};
inline void PrintTo(const Mpi& mpi, std::ostream* out) { *out << mpi.name; }
inline std::string name_of(const testing::TestParamInfo<Mpi>& one) { return one.param.name; }

}  // namespace ist::test

#define SKIP_WITHOUT(words, what) \
  if ((words).empty()) GTEST_SKIP() << what << " is not installed: not covered here"
