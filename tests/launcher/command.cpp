#include "command.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

namespace ist::test {
namespace {

constexpr const char* kMarker = "LAUNCHER_TEST_MARKER";

void take_all(int pipe, std::string& into) {
  std::array<char, 65536> piece;
  for (ssize_t got; (got = ::read(pipe, piece.data(), piece.size())) > 0;)
    into.append(piece.data(), static_cast<std::size_t>(got));
}

}  // namespace

Command::Command(std::vector<std::string> words, const std::string& input) {
  marker_ = std::to_string(std::random_device{}()) + "-" + std::to_string(::getpid());
  int output[2];
  int errors[2];
  int given[2];
  if (::pipe2(output, O_CLOEXEC) != 0 || ::pipe2(errors, O_CLOEXEC) != 0 || ::pipe2(given, O_CLOEXEC) != 0) std::abort();
  process_ = ::fork();
  if (process_ < 0) std::abort();  // to kill process -1 later on would be to kill every process of this user
  if (process_ == 0) {
    ::setpgid(0, 0);  // what is sent to the command's group must not reach the tests
    ::dup2(given[0], 0);
    ::dup2(output[1], 1);
    ::dup2(errors[1], 2);
    ::setenv(kMarker, marker_.c_str(), 1);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    ::_exit(99);
  }
  ::close(output[1]);
  ::close(errors[1]);
  ::close(given[0]);
  if (::write(given[1], input.data(), input.size()) != static_cast<ssize_t>(input.size())) std::abort();
  ::close(given[1]);
  output_pipe_ = output[0];
  errors_pipe_ = errors[0];
  ::fcntl(output_pipe_, F_SETFL, O_NONBLOCK);
  ::fcntl(errors_pipe_, F_SETFL, O_NONBLOCK);
}

Command::~Command() {
  if (status_ == -1000) {
    ::kill(process_, SIGKILL);
    wait();
  }
  for (const pid_t left : marked()) ::kill(left, SIGKILL);
  ::close(output_pipe_);
  ::close(errors_pipe_);
}

void Command::read_some() {
  take_all(output_pipe_, output_);
  take_all(errors_pipe_, errors_);
}

bool Command::wait_for_output(const std::string& text, int times, double seconds) {
  for (const double start = now(); now() - start < seconds; ::usleep(1000)) {
    read_some();
    if (times_in(output_, text) >= times) return true;
  }
  return false;
}

int Command::wait(double seconds) {
  for (const double start = now(); status_ == -1000; ::usleep(500)) {
    read_some();
    int status = 0;
    if (::waitpid(process_, &status, WNOHANG) == process_)
      status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    if (status_ != -1000 || now() - start < seconds) continue;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    status_ = -1;
  }
  read_some();
  return status_;
}

std::vector<pid_t> Command::marked() const {
  std::vector<pid_t> found;
  const std::string wanted = std::string{kMarker} + "=" + marker_;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator{"/proc", ignored}) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file{entry.path() / "environ"};
    // Not by the file's buffer, which throws where a process ends meanwhile.
    for (std::string variable; std::getline(file, variable, '\0');)
      if (variable == wanted) found.push_back(std::atoi(name.c_str()));
  }
  return found;
}

bool Command::wait_for_marked(std::size_t count, double seconds) const {
  for (const double start = now(); now() - start < seconds; ::usleep(2000))
    if (marked().size() == count) return true;
  return false;
}

std::vector<std::string> run_words(std::vector<std::string> words) {
  words.insert(words.begin(), {LAUNCHER, "run"});
  return words;
}

int times_in(const std::string& whole, const std::string& part) {
  int times = 0;
  for (auto at = whole.find(part); at != std::string::npos; at = whole.find(part, at + part.size())) ++times;
  return times;
}

double allowed(double seconds) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 3 * seconds;
#else
  return seconds;
#endif
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace ist::test
