// Runs a command and looks at everything that can be seen of it from outside.
//
// Who calls this : the launcher's tests.
// Threads        : one.
// Ownership      : the destructor kills and reaps a command that still runs.
// Errors         : a command that does not end in time is killed, and its status is -1.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace ist::test {

class Command {
 public:
  // Starts it with a marker in its environment by which its descendants are known.
  explicit Command(std::vector<std::string> words, const std::string& input = "");
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  pid_t process() const { return process_; }
  // Waits until `text` has been printed `times` times on standard output.
  bool wait_for_output(const std::string& text, int times = 1, double seconds = 15);
  // Exit status, or minus the signal.
  int wait(double seconds = 20);
  const std::string& output() const { return output_; }
  const std::string& errors() const { return errors_; }
  // Processes alive now that carry the marker.
  std::vector<pid_t> marked() const;
  // Waits until there are `count` of them.
  bool wait_for_marked(std::size_t count, double seconds) const;

 private:
  void read_some();
  std::string marker_;
  pid_t process_ = -1;
  int status_ = -1000;
  int output_pipe_ = -1;
  int errors_pipe_ = -1;
  std::string output_;
  std::string errors_;
};

// `isthmus run` with these words.
std::vector<std::string> run_words(std::vector<std::string> words);
int times_in(const std::string& whole, const std::string& part);
double now();
// A promised time, with what an instrumented build on a busy machine needs on top.
double allowed(double seconds);

}  // namespace ist::test
