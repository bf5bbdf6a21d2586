#include "base/trace.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>

#include "base/log.hpp"

namespace ist {
namespace {

// About 400 KiB; written out they are 1 MiB, which takes a few milliseconds.
constexpr std::size_t kMostKept = 4096;
constexpr std::chrono::seconds kLongestKept{1};

// The traces of this process, for its end: a program may exit without destroying its world.
struct Registry {
  std::mutex mutex;
  std::set<Trace*> open;
  std::map<std::string, int> names;  // how many traces each had
};

// Never destroyed: it is used while the process ends.
Registry& registry() {
  static auto* const made = [] {
    std::atexit([] {
      const std::lock_guard lock(registry().mutex);
      for (Trace* trace : registry().open) trace->flush();
    });
    return new Registry;
  }();
  return *made;
}

std::string in_json(const std::string& text) {
  std::string quoted;
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(letter) < ' ' ? ' ' : letter;
  }
  return quoted;
}

// Microseconds, as the format wants them.
void append_time(std::string& text, Trace::Clock::time_point when) {
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(when.time_since_epoch()).count();
  const std::string part = std::to_string(ns % 1000);
  text += ",\"ts\":";
  text += std::to_string(ns / 1000);
  text += '.';
  text.append(3 - part.size(), '0');
  text += part;
}

void append_text(std::string& text, const char* name, const char* value) {
  if (value == nullptr) return;
  text += ",\"";
  text += name;
  text += "\":\"";
  text += in_json(value);
  text += '"';
}

void append_number(std::string& text, const char* name, std::int64_t value) {
  text += ",\"";
  text += name;
  text += "\":";
  text += std::to_string(value);
}

// One end of the span: "b" or "e".
void append_event(std::string& text, const Trace::Span& span, Rank rank, char phase) {
  text += ",\n{\"ph\":\"";
  text += phase;
  text += '"';
  append_text(text, "cat", span.category);
  append_text(text, "name", span.name);
  append_number(text, "pid", rank.value);
  append_number(text, "tid", 0);
  text += ",\"id\":\"";
  text += std::to_string(rank.value);
  text += '.';
  text += std::to_string(span.id);
  text += '"';
  append_time(text, phase == 'b' ? span.begin : span.end);
}

void append_arguments(std::string& text, const Trace::Span& span) {
  std::string arguments;
  if (span.peer != Trace::kNone) append_number(arguments, "peer", span.peer);
  if (span.tag != Trace::kNone) append_number(arguments, "tag", span.tag);
  if (span.bytes != Trace::kNone) append_number(arguments, "bytes", span.bytes);
  append_text(arguments, "carrier", span.carrier);
  append_text(arguments, "comm", span.comm);
  if (span.code != IST_OK) append_number(arguments, "code", span.code);
  if (span.unfinished) arguments += ",\"unfinished\":true";
  text += ",\"args\":{";
  if (!arguments.empty()) text.append(arguments, 1);
  text += '}';
}

}  // namespace

std::string Trace::file_name(const std::string& pattern, Rank rank, int nth) {
  std::string number = std::to_string(rank.value);
  if (nth > 0) number.append("-").append(std::to_string(nth + 1));
  std::string name = pattern;
  bool named = false;
  for (std::size_t at = name.find("%r"); at != std::string::npos; at = name.find("%r", at + number.size())) {
    name.replace(at, 2, number);
    named = true;
  }
  if (named) return name;
  const std::size_t folder = name.rfind('/');
  const std::size_t start = folder == std::string::npos ? 0 : folder + 1;
  const std::size_t ending = name.rfind('.');
  const bool has_ending = ending != std::string::npos && ending > start;
  return name.insert(has_ending ? ending : name.size(), number.insert(0, 1, '.'));
}

Result<std::unique_ptr<Trace>> Trace::open(const std::string& pattern, Rank rank) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  int& opened = all.names[file_name(pattern, rank, 0)];
  std::string name = file_name(pattern, rank, opened);
  FileDescriptor file{::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
  if (file.get() < 0) {
    const Status why = system_error("opening \"" + name + "\"");
    return Status{IST_ERR_SETTING, "ISTHMUS_TRACE=\"" + pattern + "\" cannot be used: " + why.text() +
                                       "; name a file in a folder that exists and that this rank may write to"};
  }
  ++opened;
  std::unique_ptr<Trace> trace{new Trace(std::move(file), std::move(name), rank)};
  all.open.insert(trace.get());
  return trace;
}

Trace::Trace(FileDescriptor file, std::string name, Rank rank)
    : file_(std::move(file)), name_(std::move(name)), rank_(rank), process_(::getpid()), written_(Clock::now()) {
  spans_.reserve(kMostKept);
  const std::string number = std::to_string(rank.value);
  // A file without its end is one that viewers read all the same.
  write("[\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":" + number + ",\"tid\":0,\"args\":{\"name\":\"rank " + number +
        " (process " + std::to_string(process_) + ")\"}}");
}

Trace::~Trace() {
  {
    const std::lock_guard lock(registry().mutex);
    registry().open.erase(this);
  }
  end();
}

void Trace::end() {
  const std::lock_guard lock(mutex_);
  write_out();
  write("\n]\n");
  file_ = FileDescriptor{};
}

std::uint64_t Trace::next_id() {
  const std::lock_guard lock(mutex_);
  return ++ids_;
}

void Trace::add(const Span& span) {
  const std::lock_guard lock(mutex_);
  spans_.push_back(span);
  if (spans_.size() >= kMostKept || span.end - written_ > kLongestKept) write_out();
}

const char* Trace::keep(const std::string& text) {
  const std::lock_guard lock(mutex_);
  return texts_.insert(text).first->c_str();
}

void Trace::flush() {
  const std::lock_guard lock(mutex_);
  write_out();
}

void Trace::write_out() {
  std::string text;
  for (const Span& span : spans_) {
    append_event(text, span, rank_, 'b');
    append_arguments(text, span);
    text += '}';
    append_event(text, span, rank_, 'e');
    text += '}';
  }
  spans_.clear();
  write(text);
  written_ = Clock::now();
}

void Trace::write(const std::string& text) {
  if (::getpid() != process_) return;
  for (std::size_t done = 0; done < text.size() && file_.get() >= 0;) {
    const ssize_t moved = ::write(file_.get(), text.data() + done, text.size() - done);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) {
      log::warning(system_error("writing the trace \"" + name_ + "\"").text() + "; it ends here");
      file_ = FileDescriptor{};
      return;
    }
    done += static_cast<std::size_t>(moved);
  }
}

}  // namespace ist
