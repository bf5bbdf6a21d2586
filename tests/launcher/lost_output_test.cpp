#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.hpp"

namespace ist::test {
namespace {

std::vector<std::string> in_shell(const std::string& before, const std::string& after) {
  return {"sh", "-c", before + "exec " + LAUNCHER + " run -n 2 " + after};
}

// Without reading what it prints, as Command::wait() does.
bool ends_unread(pid_t process, double seconds) {
  for (const double start = now(); now() - start < seconds; ::usleep(1000)) {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == process)
      return true;
  }
  return false;
}

TEST(LostOutput, closed_standard_output_lets_the_job_end) {
  Command command{in_shell("", "-l echo words >&-")};
  EXPECT_EQ(command.wait(), 0) << command.errors();
}

TEST(LostOutput, a_reader_that_stopped_reading_does_not_keep_a_job_that_is_told_to_end) {
  for (const char* words : {"-l yes 2>&1", "yes 2>&1"}) {
    Command command{in_shell("", words)};
    ASSERT_TRUE(command.wait_for_output("y\n")) << words;
    ::usleep(500000);  // in which the pipe fills up
    ::kill(command.process(), SIGTERM);
    EXPECT_TRUE(ends_unread(command.process(), allowed(6))) << words;
    EXPECT_EQ(command.wait(), 128 + SIGTERM) << words;
  }
}

// With 1, unless a rank that printed on was ended by that.
TEST(LostOutput, a_full_disk_is_named_and_the_job_has_failed) {
  Command command{in_shell("", "-l echo words >/dev/full")};
  EXPECT_NE(command.wait(), 0);
  EXPECT_EQ(times_in(command.errors(), "standard output cannot be written: No space left on device"), 1) << command.errors();
}

TEST(LostOutput, too_low_a_limit_of_open_files_is_named) {
  Command command{in_shell("ulimit -n 20; ", "true")};
  EXPECT_EQ(command.wait(), 126);
  EXPECT_NE(command.errors().find("Too many open files; raise ulimit -n"), std::string::npos) << command.errors();
}

}  // namespace
}  // namespace ist::test
