// What a rank did and when, as a file that the viewers of Chrome and Perfetto read: one per rank, JSON trace events.
//
// Who calls this : face/ opens it and adds collective calls; the engine adds operations and copies. Nobody where it is off.
// Threads        : any; one short lock.
// Ownership      : owns the file, and the spans that are not yet written: a fixed number of them.
// Errors         : of opening: returned. A file that cannot be written any more is said once, and the trace ends there.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/status.hpp"
#include "base/units.hpp"

namespace ist {

class Trace {
 public:
  // Ranks of one host share it, so that their files lie beside each other on one time line.
  using Clock = std::chrono::steady_clock;
  static constexpr std::int32_t kNone = -1;

  // From begin to end. Those of one id lie within each other in a viewer. Texts are literals, or kept by keep().
  struct Span {
    const char* category = "";  // "message", "step": a message of the library's own; "call": a collective one
    const char* name = "";
    std::uint64_t id = 0;  // of next_id()
    Clock::time_point begin = {};
    Clock::time_point end = {};
    std::int32_t peer = kNone;  // and those below: none are left out
    std::int32_t tag = kNone;
    std::int64_t bytes = kNone;
    const char* carrier = nullptr;
    const char* comm = nullptr;
    int code = IST_OK;        // ist_code, where it failed
    bool unfinished = false;  // it was given up when the world was destroyed
  };

  // `pattern`: ISTHMUS_TRACE. See file_name(). Truncates the file.
  static Result<std::unique_ptr<Trace>> open(const std::string& pattern, Rank rank);
  // %r becomes the rank; without it, the rank is put before the last ending of the name. `nth`: of this process's traces of that name,
  // from 0 on; the second one and those after it get its number, too.
  static std::string file_name(const std::string& pattern, Rank rank, int nth);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  std::uint64_t next_id();
  void add(const Span& span);
  // The same text for as long as the trace lives.
  const char* keep(const std::string& text);
  // Also done by itself, when there are many spans, or the last time is a second ago; and when the process ends.
  void flush();
  // Writes what there is, and ends the file, as the destructor does; what is added later is dropped.
  void end();

 private:
  Trace(FileDescriptor file, std::string name, Rank rank);
  void write_out();  // under the lock
  void write(const std::string& text);

  std::mutex mutex_;
  FileDescriptor file_;  // closed: it was ended, or could not be written
  const std::string name_;
  const Rank rank_;
  const int process_;  // a child that was forked shares the file, and must not write into it
  std::vector<Span> spans_;
  std::set<std::string> texts_;
  std::uint64_t ids_ = 0;
  Clock::time_point written_;  // when, the last time
};

}  // namespace ist
