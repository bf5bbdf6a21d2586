// Output of the ranks, line by line with the rank in front.
//
// Who calls this : run_guardian, with --prefix-output.
// Threads        : one; no call waits.
// Ownership      : owns the reading ends of the ranks' pipes.
// Errors         : where standard output is gone, the ranks that write to it find their pipe broken.
#pragma once

#include <poll.h>

#include <array>
#include <string>
#include <vector>

#include "base/file_descriptor.hpp"

namespace ist::cli {

class PrefixedOutput {
 public:
  PrefixedOutput();
  struct Ends {
    FileDescriptor output;
    FileDescriptor errors;
  };
  // The writing ends for one more rank.
  Result<Ends> open(int rank);
  void watch(std::vector<pollfd>& entries) const;
  // Reads what is there, writes what is taken.
  void serve();
  // A line of the command itself, after the lines that are already on their way.
  void say(const std::string& line);
  // No writer can be left: takes what is in the pipes, and ends every line.
  void close_all();
  // Standard output could not be written, though somebody would have read it.
  bool lost() const { return lost_; }
  bool flushed() const { return sinks_[0].pending.empty() && sinks_[1].pending.empty(); }

 private:
  // Longer lines are broken, so that a rank that never ends one cannot fill the memory.
  static constexpr std::size_t kLongestLine = 65536;
  static constexpr std::size_t kMostPending = 1 << 20;

  struct Source {
    FileDescriptor pipe;
    std::string prefix;
    std::size_t sink = 0;
    std::string line;  // what has come of the line under way
  };
  struct Sink {
    int descriptor = -1;
    std::string pending;
    bool broken = false;
    bool full() const { return pending.size() > kMostPending; }
  };
  void write_some(Sink& sink);
  void read_some(Source& source);
  void take(Source& source, const char* text, std::size_t length);
  void end_line(Source& source);
  std::vector<Source> sources_;
  std::array<Sink, 2> sinks_{Sink{1, {}, false}, Sink{2, {}, false}};
  bool lost_ = false;
  std::array<FileDescriptor, 2> terminals_;  // of those sinks that are one
};

}  // namespace ist::cli
