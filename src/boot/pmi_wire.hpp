// The PMI protocol, versions 2.0 and 1.1, over the socket that a job manager leaves open in the processes it starts: Slurm
// (`srun --mpi=pmi2`), MPICH's and Intel's mpiexec. Spoken directly, so that no library of the job manager is needed.
//
// Who calls this : pmi_boot.
// Threads        : one at a time.
// Ownership      : owns the socket.
// Errors         : IST_ERR_BOOT telling the request and the server's answer. After an error the two sides may be out of
//                  step, and no further call makes sense.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/status.hpp"
#include "boot/deadline.hpp"

namespace ist {

class PmiWire {
 public:
  // Longest value that every server takes: a line of version 1.1 holds 1024 letters with the command and the names in it.
  static constexpr std::size_t kLongestValue = 512;

  // Asks for version 2.0, and for 1.1 where the server does not know that.
  static Result<std::unique_ptr<PmiWire>> open(FileDescriptor socket, Deadline deadline, int newest = 2);

  int version() const { return version_; }
  // Version 2 tells them here, version 1 by variables alone.
  std::optional<long> rank() const { return rank_; }
  std::optional<long> size() const { return size_; }

  // Letters, digits, '-', '_' and '.' are safe in keys and values.
  Status put(const std::string& key, const std::string& value, Deadline deadline);
  // Every rank comes here; what was put before is there for all of them afterwards.
  Status fence(Deadline deadline);
  // The same for ranks that have put nothing, in two parts. False: not every rank has come by the deadline, or the program ended
  // the wait; nothing else may be asked before the answer is true.
  Status begin_meeting(Deadline deadline);
  Result<bool> met(Deadline deadline);
  // None: nobody has put such a key.
  Result<std::optional<std::string>> get(const std::string& key, Deadline deadline);
  // A server takes a process that ends without this for one that failed.
  void finalize(Deadline deadline);

 private:
  using Pairs = std::vector<std::pair<std::string_view, std::string>>;
  using Answer = std::map<std::string, std::string>;
  explicit PmiWire(FileDescriptor socket) : socket_(std::move(socket)) {}
  Status greet(int version, int subversion, Deadline deadline, bool& accepted);
  Status introduce(Deadline deadline);
  // Sends a command and waits for the answer that belongs to it.
  Result<Answer> ask(std::string_view command, const Pairs& pairs, std::string_view answer, Deadline deadline);
  Status send(std::string_view command, const Pairs& pairs, Deadline deadline);
  Status begin_fence(Deadline deadline);
  Result<Answer> end_fence(Deadline deadline);
  Result<Answer> take(std::string_view command, std::string_view answer, Deadline deadline);
  Status write(const std::string& text, Deadline deadline);
  Status read_more(Deadline deadline);
  Result<std::string> read_line(Deadline deadline);
  Result<std::string> read_counted(Deadline deadline);
  FileDescriptor socket_;
  int version_ = 0;
  std::optional<long> rank_;
  std::optional<long> size_;
  std::string space_;  // version 1: the name of the job's store of values
  std::string incoming_;
  bool late_ = false;      // nothing more has come by a deadline
  bool at_fence_ = false;  // of a meeting, whose fence has no answer yet
};

}  // namespace ist
