#include "cli/run_output.hpp"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ist::cli {

// A terminal that poll() calls writable may have less room than a line, and waits where it was stopped (Ctrl-S). Opened once more
// it does not, and the descriptor of the others stays as it is.
PrefixedOutput::PrefixedOutput() {
  for (std::size_t sink = 0; sink < sinks_.size(); ++sink) {
    if (::isatty(sinks_[sink].descriptor) == 0) continue;
    const std::string name = "/proc/self/fd/" + std::to_string(sinks_[sink].descriptor);
    terminals_[sink] = FileDescriptor{::open(name.c_str(), O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)};
    if (terminals_[sink].valid()) sinks_[sink].descriptor = terminals_[sink].get();
  }
}

Result<PrefixedOutput::Ends> PrefixedOutput::open(int rank) {
  Ends writing;
  const std::string prefix = std::string{'['}.append(std::to_string(rank)).append("] ");
  for (std::size_t sink = 0; sink < sinks_.size(); ++sink) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return system_error("pipe for the output of rank " + std::to_string(rank));
    (sink == 0 ? writing.output : writing.errors) = FileDescriptor{ends[1]};
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);  // of this end only: the rank's end waits as usual
    sources_.push_back({FileDescriptor{ends[0]}, prefix, sink, {}});
  }
  return writing;
}

void PrefixedOutput::watch(std::vector<pollfd>& entries) const {
  for (const Source& source : sources_)
    if (source.pipe.valid() && !sinks_[source.sink].full()) entries.push_back({source.pipe.get(), POLLIN, 0});
  for (const Sink& sink : sinks_)
    if (!sink.pending.empty()) entries.push_back({sink.descriptor, POLLOUT, 0});
}

void PrefixedOutput::serve() {
  for (Source& source : sources_) read_some(source);
  for (Sink& sink : sinks_) write_some(sink);
}

void PrefixedOutput::read_some(Source& source) {
  std::array<char, 16384> piece;
  while (source.pipe.valid() && !sinks_[source.sink].full()) {
    if (sinks_[source.sink].broken) return source.pipe.close();  // the rank learns it as it would without us
    const ssize_t got = ::read(source.pipe.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return;
    if (got > 0) {
      take(source, piece.data(), static_cast<std::size_t>(got));
      continue;
    }
    if (!source.line.empty()) end_line(source);
    source.pipe.close();
  }
}

void PrefixedOutput::take(Source& source, const char* text, std::size_t length) {
  for (const char* end = text + length; text != end;) {
    const char* newline = std::find(text, end, '\n');
    const auto room = static_cast<std::ptrdiff_t>(kLongestLine - source.line.size());
    const char* stop = newline - text > room ? text + room : newline;
    source.line.append(text, stop);
    text = stop;
    if (text == end) return;
    if (*text == '\n') ++text;
    end_line(source);
  }
}

void PrefixedOutput::end_line(Source& source) {
  sinks_[source.sink].pending += source.prefix + source.line + '\n';
  source.line.clear();
}

// The descriptor is shared with others, who may not want it non-blocking. A pipe that poll() calls writable takes PIPE_BUF
// bytes without waiting.
void PrefixedOutput::write_some(Sink& sink) {
  std::size_t done = 0;
  while (done < sink.pending.size()) {
    pollfd entry{sink.descriptor, POLLOUT, 0};
    if (::poll(&entry, 1, 0) <= 0) break;
    const ssize_t written =
        ::write(sink.descriptor, sink.pending.data() + done, std::min<std::size_t>(sink.pending.size() - done, PIPE_BUF));
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) break;
    // Whoever stopped reading knows it; of a full disk nobody would hear.
    if (written < 0 && errno != EPIPE && !sink.broken && &sink == sinks_.data()) {
      lost_ = true;
      say(std::string{"isthmus run: standard output cannot be written: "} + std::strerror(errno));
    }
    if (written < 0) sink.broken = true;
    done += written < 0 ? sink.pending.size() - done : static_cast<std::size_t>(written);
  }
  sink.pending.erase(0, done);
}

void PrefixedOutput::say(const std::string& line) { sinks_[1].pending += line + '\n'; }

void PrefixedOutput::close_all() {
  for (Source& source : sources_) {
    // Full or not: the end is near, and a pipe holds little.
    std::array<char, 16384> piece;
    for (ssize_t got = 0; source.pipe.valid() && (got = ::read(source.pipe.get(), piece.data(), piece.size())) > 0;)
      take(source, piece.data(), static_cast<std::size_t>(got));
    if (!source.line.empty()) end_line(source);
    source.pipe.close();
  }
}

}  // namespace ist::cli
