#include "foreign.hpp"

#include <signal.h>

#include <filesystem>
#include <fstream>

namespace ist::test {
namespace {

class FromLauncher : public testing::TestWithParam<Mpi> {};

TEST_P(FromLauncher, ranks_exchange_every_byte_through_its_server) {
  for (const int ranks : {1, 2, 5}) {
    const auto words = GetParam().start(ranks);
    SKIP_WITHOUT(words, GetParam().package);
    Command command{with(words, {RANK, "exchange"})};
    EXPECT_EQ(command.wait(70), 0) << command.output() << command.errors();
    for (int rank = 0; rank < ranks; ++rank)
      EXPECT_EQ(times_in(command.output(), std::string{GetParam().boot} + " rank " + std::to_string(rank) + " of " +
                                               std::to_string(ranks) + ", " + std::to_string(ranks) + " on this host\n"),
                1)
          << command.output();
    // Open MPI complains of ranks that end without taking leave.
    EXPECT_EQ(command.errors(), "");
  }
}

TEST_P(FromLauncher, worlds_follow_each_other_in_one_program_and_a_forked_child_is_refused) {
  const auto words = GetParam().start(3);
  SKIP_WITHOUT(words, GetParam().package);
  expect_printed(with(words, {RANK, "worlds"}), " of 3, 3 on this host\n", 3);
  expect_printed(with(words, {RANK, "forked"}), "the child was refused\n", 3);
}

TEST_P(FromLauncher, a_rank_that_gives_up_may_come_again_and_else_the_others_are_told) {
  const auto words = GetParam().start(3);
  SKIP_WITHOUT(words, GetParam().package);
  expect_printed(with(words, {RANK, "again"}), "the world was made in the end\n", 3);
  expect_printed(with(words, {RANK, "away"}), "the world was made in the end\n", 3);
}

TEST_P(FromLauncher, several_programs_make_one_world) {
  const auto words = GetParam().start(1);
  SKIP_WITHOUT(words, GetParam().package);
  expect_printed(with(words, {RANK, "exchange", ":", "-n", "2", RANK, "exchange"}), " of 3, 3 on this host\n", 3);
}

INSTANTIATE_TEST_SUITE_P(All, FromLauncher, testing::Values(kOpenMpi, kMpich), name_of);

TEST(OpenMpi, worlds_created_in_another_order_are_an_error_and_no_hang) {
  const auto words = open_mpi(2);
  SKIP_WITHOUT(words, kOpenMpi.package);
  const double start = now();
  expect_printed(with(words, {RANK, "order"}), "the order was found wrong\n", 2);
  EXPECT_LT(now() - start, allowed(10));
}

TEST(OpenMpi, a_rank_that_dies_or_comes_too_late_is_an_error_and_no_hang) {
  const auto words = open_mpi(3);
  SKIP_WITHOUT(words, kOpenMpi.package);
  const double start = now();
  Command dying{with(words, {RANK, "die"})};
  // Its own status, or that of a rank which was told first.
  EXPECT_NE(dying.wait(70), 0) << dying.output() << dying.errors();
  EXPECT_LT(now() - start, allowed(10));
  // Long enough to join on a busy machine, and shorter than the rank is late.
  ::setenv("ISTHMUS_BOOT_TIMEOUT", "1.5", 1);
  Command late{with(words, {RANK, "late"})};
  EXPECT_NE(late.wait(70), 0);
  ::unsetenv("ISTHMUS_BOOT_TIMEOUT");
  EXPECT_GE(times_in(late.output(), "not all of the 3 ranks came to the exchange of addresses within 1.5 s"), 1)
      << late.output();
}

TEST(OpenMpi, a_server_that_is_gone_is_an_error_that_says_so) {
  const auto words = open_mpi(1);
  SKIP_WITHOUT(words, kOpenMpi.package);
  const auto in_vain = [](const std::string& port, const std::string& action) {
    const std::string address = "1.0;tcp4://127.0.0.1:" + port;
    return std::vector<std::string>{"env",
                                    "PMIX_RANK=0",
                                    "PMIX_NAMESPACE=old",
                                    "PMIX_SERVER_URI41=" + address,
                                    "PMIX_SERVER_URI4=" + address,
                                    "PMIX_SERVER_URI3=" + address,
                                    "PMIX_SERVER_URI2=" + address,
                                    "ISTHMUS_BOOT_TIMEOUT=20",
                                    "timeout",
                                    "30",
                                    RANK,
                                    action};
  };
  Command gone{in_vain("1", "exchange")};
  EXPECT_EQ(gone.wait(40), 5);
  EXPECT_NE(gone.output().find("rank 0 of job \"old\""), std::string::npos) << gone.output();
  EXPECT_NE(gone.output().find("tcp4://127.0.0.1:1"), std::string::npos) << gone.output();
}

TEST(OpenMpi, a_server_that_does_not_answer_is_given_up_in_time) {
  auto words = open_mpi(2);
  SKIP_WITHOUT(words, kOpenMpi.package);
  words.erase(words.begin(), words.begin() + 2);  // its process must be Open MPI's own: no timeout in front
  // What Open MPI leaves when it is killed in the end goes with the build.
  words.insert(words.begin() + 1, {"--mca", "orte_tmpdir_base", FOLDER});
  const std::string flag = std::string{FOLDER} + "/go-" + std::to_string(::getpid());
  const std::string script =
      "echo here; until [ -e " + flag + " ]; do sleep 0.02; done; ISTHMUS_BOOT_TIMEOUT=0.5 exec " + RANK + " exchange";
  Command command{with(words, {"sh", "-c", script})};
  EXPECT_TRUE(command.wait_for_output("here\n", 2));
  ::kill(command.process(), SIGSTOP);
  std::ofstream{flag} << "go";
  ::usleep(3'500'000);  // the ranks' words come through Open MPI, and so after it goes on
  ::kill(command.process(), SIGCONT);
  // Open MPI 4.1.4 itself does not always get over it, so that its end is not waited for.
  EXPECT_TRUE(command.wait_for_output("the PMIx server did not answer within 0.5 s", 2)) << command.output();
  ::unlink(flag.c_str());
}

TEST(OpenMpi, without_libpmix_the_text_says_what_to_install) {
  const auto words = open_mpi(1);
  SKIP_WITHOUT(words, kOpenMpi.package);
  const std::string folder = std::string{FOLDER} + "/no-pmix";
  std::filesystem::create_directories(folder);
  std::ofstream{folder + "/libpmix.so.2"}.close();  // the loader finds it first, and cannot use it
  Command command{with(words, {"env", "LD_LIBRARY_PATH=" + folder, "PMIX_PREFIX=/nowhere", RANK, "exchange"})};
  EXPECT_NE(command.wait(70), 0);
  EXPECT_NE(command.output().find("started through PMIx, but PMIx cannot be used: " + folder + "/libpmix.so.2"),
            std::string::npos)
      << command.output();
  EXPECT_NE(command.output().find("install PMIx"), std::string::npos) << command.output();
}

TEST(OpenMpi, the_four_variables_come_before_pmix_and_part_of_them_does_not) {
  const auto words = open_mpi(2);
  SKIP_WITHOUT(words, kOpenMpi.package);
  expect_printed(with(with({"env", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=1"}, words), {RANK, "exchange"}), "pmix rank ", 2);
  const std::string script = "RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=2 exec " + std::string{RANK} + " exchange";
  const std::string port = std::to_string(20000 + ::getpid() % 10000);
  expect_printed(with(with({"env", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port}, words), {"sh", "-c", script}),
                 "environment rank ", 2);
}

TEST(OpenMpi, ranks_of_isthmus_run_inside_a_rank_of_mpirun_belong_to_isthmus_run) {
  const auto words = open_mpi(2);
  SKIP_WITHOUT(words, kOpenMpi.package);
  expect_printed(with(words, {LAUNCHER, "run", "-n", "2", RANK, "exchange"}), "launcher rank 0 of 2", 2);
}

TEST(Mpich, version_1_of_pmi_works_with_a_real_server_too) {
  const auto words = mpich(3);
  SKIP_WITHOUT(words, kMpich.package);
  expect_printed(with(words, {RANK, "version-1"}), "by version 1\n", 3);
}

TEST(Mpich, a_second_program_of_one_rank_is_told_that_the_first_used_the_connection) {
  const auto words = mpich(2);
  SKIP_WITHOUT(words, kMpich.package);
  Command command{with(words, {"sh", "-c", std::string{RANK} + " exchange; " + RANK + " exchange; true"})};
  EXPECT_EQ(command.wait(70), 0) << command.output() << command.errors();
  EXPECT_EQ(times_in(command.output(), "pmi rank "), 2) << command.output();
  EXPECT_EQ(times_in(command.output(), "did an earlier program of this rank already use and end it?"), 2)
      << command.output();
}

TEST(Slurm, processes_that_srun_started_without_pmi_are_warned) {
  Command command{{"env", "SLURM_STEP_NUM_TASKS=4", "SLURM_PROCID=1", RANK, "exchange"}};
  EXPECT_EQ(command.wait(30), 0);
  EXPECT_EQ(command.output(), "alone rank 0 of 1, 1 on this host\n");
  EXPECT_NE(command.errors().find("srun started 4 processes, but offers them no way"), std::string::npos)
      << command.errors();
  Command one{{"env", "SLURM_STEP_NUM_TASKS=1", "SLURM_PROCID=0", RANK, "exchange"}};
  EXPECT_EQ(one.wait(30), 0);
  EXPECT_EQ(one.errors(), "");
  Command port{{"env", "PMI_PORT=127.0.0.1:4711", RANK, "exchange"}};
  EXPECT_EQ(port.wait(30), 0);
  EXPECT_NE(port.errors().find("start mpiexec without -pmi-port"), std::string::npos) << port.errors();
}

}  // namespace
}  // namespace ist::test
