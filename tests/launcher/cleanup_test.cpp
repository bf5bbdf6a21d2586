#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "command.hpp"

namespace ist::test {
namespace {

// A tree that is hard to clean up: a shell that waits, a child that ignores signals, a grandchild in a session of its own.
const std::string kTree = "trap '' TERM INT HUP; setsid sh -c 'trap \"\" TERM; echo started; sleep 300' & " +
                          std::string{PROGRAM} + " stubborn & wait";

std::string command_name(pid_t process) {
  std::ifstream file{"/proc/" + std::to_string(process) + "/comm"};
  std::string name;
  std::getline(file, name);
  return name;
}

std::string environment_value(pid_t process, const std::string& name) {
  std::ifstream file{"/proc/" + std::to_string(process) + "/environ"};
  for (std::string one; std::getline(file, one, '\0');)
    if (one.starts_with(name + "=")) return one.substr(name.size() + 1);
  return {};
}

pid_t guardian_of(const Command& command) {
  for (const pid_t process : command.marked())
    if (command_name(process) == "isthmus-guard") return process;
  return -1;
}

// Everything that a job could leave behind by name: shared memory, and a folder for temporary files that is its own.
class NoNamesLeft : public testing::Test {
 protected:
  NoNamesLeft() : shared_memory_(names_in("/dev/shm")) {
    char name[] = "/tmp/launcher-test-XXXXXX";
    folder_ = ::mkdtemp(name);
    ::setenv("TMPDIR", folder_.c_str(), 1);
  }
  ~NoNamesLeft() override {
    ::unsetenv("TMPDIR");
    std::filesystem::remove_all(folder_);
  }
  void expect_none() const {
    EXPECT_TRUE(names_in(folder_).empty());
    for (const std::string& name : names_in("/dev/shm"))
      EXPECT_TRUE(name.find("sthmus") == std::string::npos || shared_memory_.count(name) == 1) << name;
  }

 private:
  static std::set<std::string> names_in(const std::string& folder) {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator{folder}) names.insert(entry.path().filename());
    return names;
  }
  std::set<std::string> shared_memory_;
  std::string folder_;
};

int listening_addresses_of(const std::vector<pid_t>& processes) {
  std::set<std::string> inodes;
  std::error_code ignored;
  for (const pid_t process : processes)
    for (const auto& entry : std::filesystem::directory_iterator{"/proc/" + std::to_string(process) + "/fd", ignored})
      inodes.insert(std::filesystem::read_symlink(entry.path(), ignored));
  std::ifstream table{"/proc/net/unix"};
  int count = 0;
  for (std::string line; std::getline(table, line);) {
    // An accepted socket shows its listener's name too; the flag tells who listens.
    const auto at = line.find(" @isthmus-");
    if (at == std::string::npos || line.find(" 00010000 ") == std::string::npos) continue;
    const auto inode = line.substr(line.rfind(' ', at - 1) + 1, at - line.rfind(' ', at - 1) - 1);
    count += inodes.count("socket:[" + inode + "]") != 0 ? 1 : 0;
  }
  return count;
}

TEST(Cleanup, killing_the_launcher_ends_every_descendant_within_2_seconds) {
  Command command{run_words({"-n", "3", "bash", "-c", kTree})};
  ASSERT_TRUE(command.wait_for_output("staying\n", 3)) << command.errors();
  ASSERT_TRUE(command.wait_for_output("started\n", 3));
  EXPECT_GE(command.marked().size(), 2U + 3 * 3);
  ::kill(command.process(), SIGKILL);
  EXPECT_TRUE(command.wait_for_marked(0, allowed(2.0))) << command.marked().size() << " processes left";
  EXPECT_EQ(command.wait(), -SIGKILL);
}

TEST_F(NoNamesLeft, killing_the_launcher_of_ranks_with_a_world_ends_them_with_all_they_own) {
  Command command{run_words({"-n", "4", "-l", PROGRAM, "world-until-death"})};
  ASSERT_TRUE(command.wait_for_output("world of 4", 4)) << command.output() << command.errors();
  ::kill(command.process(), SIGKILL);
  EXPECT_TRUE(command.wait_for_marked(0, allowed(2.0))) << command.marked().size() << " processes left";
  expect_none();
}

TEST(Cleanup, killing_the_guardian_ends_every_descendant_within_2_seconds_and_is_told) {
  Command command{run_words({"-n", "3", "bash", "-c", kTree})};
  ASSERT_TRUE(command.wait_for_output("staying\n", 3)) << command.errors();
  ASSERT_TRUE(command.wait_for_output("started\n", 3));
  const pid_t guardian = guardian_of(command);
  ASSERT_GT(guardian, 0);
  ::kill(guardian, SIGKILL);
  EXPECT_TRUE(command.wait_for_marked(0, allowed(2.0))) << command.marked().size() << " processes left";
  EXPECT_EQ(command.wait(), 128 + SIGKILL);
  EXPECT_NE(command.errors().find("guardian process"), std::string::npos) << command.errors();
}

TEST(Cleanup, killing_a_rank_ends_what_it_started_and_the_other_ranks_within_2_seconds) {
  Command command{run_words({"-n", "3", "bash", "-c", kTree})};
  ASSERT_TRUE(command.wait_for_output("staying\n", 3)) << command.errors();
  ASSERT_TRUE(command.wait_for_output("started\n", 3));
  pid_t rank_1 = -1;
  const pid_t guardian = guardian_of(command);
  for (const pid_t process : command.marked()) {
    std::ifstream stat{"/proc/" + std::to_string(process) + "/status"};
    std::string text;
    std::getline(stat, text, '\0');
    if (text.find("PPid:\t" + std::to_string(guardian) + "\n") != std::string::npos &&
        environment_value(process, "ISTHMUS_RANK") == "1")
      rank_1 = process;
    if (command_name(process) == "bash" && text.find("PPid:\t" + std::to_string(guardian) + "\n") != std::string::npos &&
        rank_1 < 0)
      rank_1 = process;
  }
  ASSERT_GT(rank_1, 0);
  ::kill(rank_1, SIGKILL);
  const double start = now();
  EXPECT_TRUE(command.wait_for_marked(0, allowed(2.2))) << command.marked().size() << " processes left";
  EXPECT_LT(now() - start, allowed(2.2));
  EXPECT_EQ(command.wait(), 128 + SIGKILL);
}

TEST(Cleanup, processes_left_in_the_background_by_ranks_that_ended_well_are_ended) {
  Command command{run_words({"-n", "3", "bash", "-c", "setsid sleep 300 & sleep 300 & exit 0"})};
  EXPECT_EQ(command.wait(), 0) << command.errors();
  EXPECT_EQ(command.marked().size(), 0U);
}

TEST(Cleanup, children_that_the_callers_shell_had_before_are_left_alone) {
  Command command{{"bash", "-c", std::string{"sleep 30 & exec "} + LAUNCHER + " run -n 2 " + PROGRAM + " stay"}};
  ASSERT_TRUE(command.wait_for_output("staying\n", 2)) << command.errors();
  ASSERT_EQ(command.marked().size(), 5U);
  const pid_t guardian = guardian_of(command);
  ASSERT_GT(guardian, 0);
  ::kill(guardian, SIGKILL);
  EXPECT_EQ(command.wait(), 128 + SIGKILL);
  EXPECT_TRUE(command.wait_for_marked(1, allowed(2.0))) << "the sleep should be the one left";
}

TEST_F(NoNamesLeft, a_finished_job_leaves_no_process_and_no_name) {
  Command command{run_words({"-n", "4", PROGRAM, "world", "world"})};
  EXPECT_EQ(command.wait(), 0);
  EXPECT_EQ(command.marked().size(), 0U);
  expect_none();
}

TEST(Cleanup, ranks_do_not_listen_any_more_once_they_are_connected) {
  Command command{run_words({"-n", "3", PROGRAM, "world-until-death"})};
  ASSERT_TRUE(command.wait_for_output("world of 3", 3));
  EXPECT_EQ(listening_addresses_of(command.marked()), 0);
}

TEST(Cleanup, a_launcher_killed_while_it_is_starting_ranks_leaves_nothing) {
  for (int round = 0; round < 10; ++round) {
    Command command{run_words({"-n", "8", "sleep", "300"})};
    ::usleep(static_cast<useconds_t>(1000 + 2500 * round));
    ::kill(command.process(), SIGKILL);
    EXPECT_TRUE(command.wait_for_marked(0, allowed(2.0))) << "round " << round;
  }
}

}  // namespace
}  // namespace ist::test
