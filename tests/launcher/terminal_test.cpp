#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "command.hpp"

namespace ist::test {
namespace {

// A command on a terminal of its own.
class Terminal {
 public:
  explicit Terminal(std::vector<std::string> words) {
    process_ = ::forkpty(&keyboard_, nullptr, nullptr, nullptr);
    if (process_ < 0) ADD_FAILURE() << "no terminal can be had: is /dev/pts mounted?";
    if (process_ != 0) return;
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    ::_exit(99);
  }
  ~Terminal() {
    if (process_ < 0) return;  // to kill process -1 is to kill every process of this user
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    ::close(keyboard_);
  }
  void type(const std::string& keys) const {
    EXPECT_EQ(::write(keyboard_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  bool wait_for(const std::string& text, int times = 1) {
    for (const double start = now(); now() - start < 10;) {
      if (times_in(screen_, text) >= times) return true;
      pollfd entry{keyboard_, POLLIN, 0};
      ::poll(&entry, 1, 20);
      std::array<char, 4096> piece;
      const ssize_t got = (entry.revents & POLLIN) != 0 ? ::read(keyboard_, piece.data(), piece.size()) : 0;
      if (got > 0) screen_.append(piece.data(), static_cast<std::size_t>(got));
    }
    return false;
  }
  int wait() const {
    int status = 0;
    for (const double start = now(); now() - start < 10; ::usleep(1000))
      if (::waitpid(process_, &status, WNOHANG) == process_)
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return -1;
  }
  const std::string& screen() const { return screen_; }

 private:
  int keyboard_ = -1;
  pid_t process_ = -1;
  std::string screen_;
};

TEST(OnATerminal, rank_0_reads_what_is_typed) {
  Terminal terminal{run_words({"-n", "3", "sh", "-c", "while read line; do echo \"$ISTHMUS_RANK read <$line>\"; done"})};
  terminal.type("some words\n");
  EXPECT_TRUE(terminal.wait_for("0 read <some words>")) << terminal.screen();
  terminal.type("\x04");
  EXPECT_EQ(terminal.wait(), 0);
}

TEST(OnATerminal, the_interrupt_key_ends_the_job_once) {
  Terminal terminal{run_words({"-n", "2", PROGRAM, "stay"})};
  ASSERT_TRUE(terminal.wait_for("staying", 2)) << terminal.screen();
  terminal.type("\x03");
  EXPECT_TRUE(terminal.wait_for("was ended by signal SIGINT (2)")) << terminal.screen();
  EXPECT_EQ(terminal.wait(), 128 + SIGINT);
}

TEST(OnATerminal, the_interrupt_key_is_not_passed_on_a_second_time) {
  const std::string script =
      "count=0; trap 'count=$((count+1))' INT; echo waiting; for i in 1 2 3 4 5 6; do sleep 0.05; done; "
      "echo interrupted $count times";
  Terminal terminal{run_words({"-n", "2", "bash", "-c", script})};
  ASSERT_TRUE(terminal.wait_for("waiting", 2)) << terminal.screen();
  terminal.type("\x03");
  EXPECT_TRUE(terminal.wait_for("interrupted 1 times", 2)) << terminal.screen();
  EXPECT_EQ(terminal.wait(), 0);
}

TEST(OnATerminal, the_interrupt_key_reaches_a_rank_in_a_group_of_its_own) {
  Terminal terminal{run_words({"-n", "2", "sh", "-c", "echo waiting; exec timeout 20 sleep 20"})};
  ASSERT_TRUE(terminal.wait_for("waiting", 2)) << terminal.screen();
  ::usleep(300000);  // in which timeout makes its group
  terminal.type("\x03");
  EXPECT_EQ(terminal.wait(), 128 + SIGINT) << terminal.screen();
}

TEST(OnATerminal, a_shell_can_stop_the_job_and_bring_it_back) {
  Terminal shell{{"env", "PS1=prompt>", "bash", "--norc", "-i"}};
  shell.type(std::string{LAUNCHER} + " run -n 2 bash -c 'echo begun; read x; echo read $x by $ISTHMUS_RANK'\n");
  ASSERT_TRUE(shell.wait_for("begun\r\n", 2)) << shell.screen();
  ::usleep(100000);
  shell.type("\x1a");
  ASSERT_TRUE(shell.wait_for("Stopped")) << shell.screen();
  ASSERT_TRUE(shell.wait_for("prompt>", 2)) << shell.screen();
  ::usleep(200000);  // a shell that is still setting up the terminal loses what is typed
  shell.type("fg\n");
  shell.type("again\n");
  EXPECT_TRUE(shell.wait_for("read again by 0")) << shell.screen();
  shell.type("exit\n");
  EXPECT_EQ(shell.wait(), 0);
}

}  // namespace
}  // namespace ist::test
