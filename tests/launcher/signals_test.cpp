#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>

#include "command.hpp"

namespace ist::test {
namespace {

TEST(Failure, the_first_exit_status_is_the_commands_and_names_rank_and_process) {
  const double start = now();
  Command command{run_words({"-n", "3", PROGRAM, "rank-1-exits-3"})};
  EXPECT_EQ(command.wait(), 3);
  EXPECT_LT(now() - start, allowed(2.0));
  EXPECT_EQ(times_in(command.errors(), "isthmus run: rank 1 (pid "), 1) << command.errors();
  EXPECT_NE(command.errors().find("exited with status 3\n"), std::string::npos) << command.errors();
  EXPECT_NE(command.errors().find("ranks 0 and 2 did not end"), std::string::npos) << command.errors();
  EXPECT_EQ(command.marked().size(), 0U);
}

TEST(Failure, a_crash_is_named_by_its_signal) {
  Command command{run_words({"-n", "2", "--grace", "0", PROGRAM, "rank-1-crashes"})};
  EXPECT_EQ(command.wait(), 128 + SIGSEGV);
  EXPECT_NE(command.errors().find("was ended by signal SIGSEGV (11)"), std::string::npos) << command.errors();
  EXPECT_EQ(command.marked().size(), 0U);
}

TEST(Failure, ranks_that_ignore_every_polite_signal_are_gone_within_2_seconds) {
  const double start = now();
  Command command{
      run_words({"-n", "3", "bash", "-c",
                 "[ $ISTHMUS_RANK = 1 ] && exit 4; trap '' TERM INT HUP; " + std::string{PROGRAM} + " stubborn"})};
  EXPECT_EQ(command.wait(), 4);
  EXPECT_LT(now() - start, allowed(2.2));  // 2 s after the failure, which needs a moment itself
  EXPECT_EQ(command.marked().size(), 0U);
}

TEST(Failure, the_others_learn_of_a_killed_rank_by_themselves_and_are_not_terminated) {
  Command command{run_words({"-n", "4", PROGRAM, "world-until-death"})};
  ASSERT_TRUE(command.wait_for_output("world of 4", 4)) << command.output() << command.errors();
  // the third process that carries the marker and is no launcher: some rank
  const auto marked = command.marked();
  ASSERT_EQ(marked.size(), 6U);
  ::kill(marked.back(), SIGKILL);
  const double start = now();
  EXPECT_EQ(command.wait(), 128 + SIGKILL);
  EXPECT_LT(now() - start, allowed(1.5));
  EXPECT_EQ(times_in(command.output(), " died\n"), 3) << command.output();
  EXPECT_NE(command.errors().find("was ended by signal SIGKILL (9)"), std::string::npos) << command.errors();
  EXPECT_EQ(command.errors().find("terminated"), std::string::npos) << command.errors();
}

TEST(Failure, a_status_from_a_signal_of_a_stopped_neighbour_does_not_hang) {
  Command command{run_words({"-n", "2", "--grace", "0.1", "bash", "-c",
                             "if [ $ISTHMUS_RANK = 0 ]; then kill -STOP $$; else sleep 0.3; exit 6; fi"})};
  const double start = now();
  EXPECT_EQ(command.wait(), 6);
  EXPECT_LT(now() - start, allowed(2.0));
}

class PassedOn : public testing::TestWithParam<int> {};

TEST_P(PassedOn, reaches_every_rank_and_what_it_started) {
  Command command{run_words(
      {"-n", "3", "bash", "-c", "trap '' HUP INT TERM QUIT USR1 USR2; exec " + std::string{PROGRAM} + " await-signal"})};
  ASSERT_TRUE(command.wait_for_output("ready\n", 3)) << command.errors();
  ::kill(command.process(), GetParam());
  EXPECT_EQ(command.wait(), 0) << command.errors();
  EXPECT_EQ(times_in(command.output(), std::string{"got "} + ::sigabbrev_np(GetParam())), 3) << command.output();
}
INSTANTIATE_TEST_SUITE_P(Signal, PassedOn, testing::Values(SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2),
                         [](const auto& signal) { return std::string{::sigabbrev_np(signal.param)}; });

TEST(Signals, one_sent_to_the_whole_group_as_a_terminal_does_reaches_the_ranks) {
  Command command{run_words({"-n", "2", PROGRAM, "await-signal"})};
  ASSERT_TRUE(command.wait_for_output("ready\n", 2));
  ::kill(-command.process(), SIGINT);
  EXPECT_EQ(command.wait(), 0) << command.errors();
  EXPECT_EQ(times_in(command.output(), "got INT"), 2);
}

TEST(Signals, one_sent_to_the_whole_group_reaches_each_rank_once) {
  const std::string script =
      "count=0; trap 'count=$((count+1))' USR1; echo waiting; for i in 1 2 3 4 5 6 7 8; do sleep 0.05; done; "
      "echo signalled $count times";
  Command command{run_words({"-n", "2", "bash", "-c", script})};
  ASSERT_TRUE(command.wait_for_output("waiting\n", 2)) << command.errors();
  ::kill(-command.process(), SIGUSR1);
  EXPECT_EQ(command.wait(), 0) << command.errors();
  EXPECT_EQ(times_in(command.output(), "signalled 1 times\n"), 2) << command.output();
}

TEST(Signals, ranks_that_do_not_handle_one_end_by_it_and_so_the_command) {
  Command command{run_words({"-n", "2", PROGRAM, "stay"})};
  ASSERT_TRUE(command.wait_for_output("staying\n", 2));
  ::kill(command.process(), SIGTERM);
  EXPECT_EQ(command.wait(), 128 + SIGTERM);
  EXPECT_NE(command.errors().find("SIGTERM"), std::string::npos);
}

char state_of(pid_t process) {
  std::ifstream file{"/proc/" + std::to_string(process) + "/stat"};
  std::string line;
  std::getline(file, line, '\0');
  const auto end = line.rfind(')');
  return end == std::string::npos ? '?' : line[end + 2];
}

int stopped(const Command& command) {
  int count = 0;
  for (const pid_t process : command.marked()) count += state_of(process) == 'T' ? 1 : 0;
  return count;
}

TEST(Signals, the_job_stops_and_continues_with_the_command) {
  Command command{run_words({"-n", "3", PROGRAM, "await-signal"})};
  ASSERT_TRUE(command.wait_for_output("ready\n", 3));
  ::kill(command.process(), SIGTSTP);
  const double start = now();
  while (stopped(command) != 4 && now() - start < 2.0) ::usleep(1000);
  EXPECT_EQ(stopped(command), 4) << "three ranks and the command itself";
  ::kill(command.process(), SIGCONT);
  while (stopped(command) != 0 && now() - start < 4.0) ::usleep(1000);
  EXPECT_EQ(stopped(command), 0);
  ::kill(command.process(), SIGUSR1);
  EXPECT_EQ(command.wait(), 0);
}

}  // namespace
}  // namespace ist::test
