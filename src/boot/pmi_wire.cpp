#include "boot/pmi_wire.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "boot/interrupt.hpp"

namespace ist {
namespace {

// No answer of a server is near that: what is longer is something else.
constexpr std::size_t kLongestAnswer = 1 << 20;
constexpr std::size_t kCountLetters = 6;
constexpr const char* kNobodys = "ist-nobody";  // a key that nobody puts

std::map<std::string, std::string> pairs_of(std::string_view text, char separator) {
  std::map<std::string, std::string> pairs;
  while (!text.empty()) {
    const auto end = text.find(separator);
    const std::string_view pair = text.substr(0, end);
    const auto equals = pair.find('=');
    if (equals != std::string_view::npos) pairs.emplace(pair.substr(0, equals), pair.substr(equals + 1));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return pairs;
}

std::optional<long> number_in(const std::map<std::string, std::string>& pairs, const char* name) {
  const auto found = pairs.find(name);
  long value = 0;
  if (found == pairs.end() ||
      std::from_chars(found->second.data(), found->second.data() + found->second.size(), value).ec != std::errc{})
    return std::nullopt;
  return value;
}

// Anything may be in there: what is not a letter that can be shown is left out, and so is most of what is long.
std::string in_quotes(std::string_view text) {
  std::string shown = "\"";
  for (const char letter : text.substr(0, 120))
    if (letter >= ' ' && letter <= '~') shown += letter;
  return shown + (text.size() > 120 ? "...\"" : "\"");
}

Status hung_up() {
  return {IST_ERR_BOOT,
          "the PMI server has closed its connection; did an earlier program of this rank already use and end it?"};
}

}  // namespace

Result<std::unique_ptr<PmiWire>> PmiWire::open(FileDescriptor socket, Deadline deadline, int newest) {
  std::unique_ptr<PmiWire> wire{new PmiWire{std::move(socket)}};
  bool accepted = false;
  if (newest >= 2) IST_TRY(wire->greet(2, 0, deadline, accepted));
  if (!accepted) IST_TRY(wire->greet(1, 1, deadline, accepted));
  if (!accepted) return Status{IST_ERR_BOOT, "the PMI server knows neither version 2.0 nor version 1.1 of the protocol"};
  IST_TRY(wire->introduce(deadline));
  return wire;
}

Status PmiWire::greet(int version, int subversion, Deadline deadline, bool& accepted) {
  IST_TRY(write("cmd=init pmi_version=" + std::to_string(version) + " pmi_subversion=" + std::to_string(subversion) + "\n",
                deadline));
  const auto line = read_line(deadline);
  if (!line.ok()) return line.status();
  const Answer answer = pairs_of(*line, ' ');
  const auto command = answer.find("cmd");
  if (command == answer.end() || command->second != "response_to_init")
    return {IST_ERR_BOOT, "the PMI server answered " + in_quotes(*line) + " to the first request"};
  accepted = number_in(answer, "rc") == 0 && number_in(answer, "pmi_version") == version;
  if (accepted) version_ = version;
  return {};
}

Status PmiWire::introduce(Deadline deadline) {
  if (version_ == 1) {
    const auto answer = ask("get_my_kvsname", {}, "my_kvsname", deadline);
    if (!answer.ok()) return answer.status();
    const auto name = answer->find("kvsname");
    if (name == answer->end()) return {IST_ERR_BOOT, "the PMI server does not tell the name of its store (my_kvsname)"};
    space_ = name->second;
    return {};
  }
  Pairs pairs;
  if (const char* job = std::getenv("PMI_JOBID")) pairs.emplace_back("pmijobid", job);
  for (const char* name : {"PMI_ID", "PMI_RANK"})
    if (const char* rank = std::getenv(name)) {
      pairs.emplace_back("pmirank", rank);
      break;
    }
  pairs.emplace_back("threaded", "FALSE");
  const auto answer = ask("fullinit", pairs, "fullinit-response", deadline);
  if (!answer.ok()) return answer.status();
  rank_ = number_in(*answer, "rank");
  size_ = number_in(*answer, "size");
  return {};
}

Status PmiWire::put(const std::string& key, const std::string& value, Deadline deadline) {
  if (version_ == 2) return ask("kvs-put", {{"key", key}, {"value", value}}, "kvs-put-response", deadline).status();
  return ask("put", {{"kvsname", space_}, {"key", key}, {"value", value}}, "put_result", deadline).status();
}

Status PmiWire::fence(Deadline deadline) {
  IST_TRY(begin_fence(deadline));
  return end_fence(deadline).status();
}

Status PmiWire::begin_fence(Deadline deadline) { return send(version_ == 2 ? "kvs-fence" : "barrier_in", {}, deadline); }

Result<PmiWire::Answer> PmiWire::end_fence(Deadline deadline) {
  return version_ == 2 ? take("kvs-fence", "kvs-fence-response", deadline) : take("barrier_in", "barrier_out", deadline);
}

Status PmiWire::begin_meeting(Deadline deadline) {
  at_fence_ = true;
  return begin_fence(deadline);
}

// MPICH's server answers a fence of version 2 at once, and what is asked for after it when every rank has come.
Result<bool> PmiWire::met(Deadline deadline) {
  late_ = false;
  if (at_fence_) {
    const auto answer = end_fence(deadline);
    if (!answer.ok() && late_) return false;
    if (!answer.ok()) return answer.status();
    at_fence_ = false;
    if (version_ == 1) return true;
    IST_TRY(send("kvs-get", {{"key", kNobodys}}, deadline));
  }
  const auto answer = take("kvs-get", "kvs-get-response", deadline);
  if (!answer.ok() && late_) return false;
  if (!answer.ok()) return answer.status();
  return true;
}

Result<std::optional<std::string>> PmiWire::get(const std::string& key, Deadline deadline) {
  const Pairs pairs = version_ == 2 ? Pairs{{"key", key}} : Pairs{{"kvsname", space_}, {"key", key}};
  const auto answer =
      version_ == 2 ? ask("kvs-get", pairs, "kvs-get-response", deadline) : ask("get", pairs, "get_result", deadline);
  if (!answer.ok()) return answer.status();
  const auto value = answer->find("value");
  const auto found = answer->find("found");
  const bool there = version_ == 2 ? found != answer->end() && found->second == "TRUE" : number_in(*answer, "rc") == 0;
  if (!there || value == answer->end()) return std::optional<std::string>{};
  return std::optional<std::string>{value->second};
}

void PmiWire::finalize(Deadline deadline) {
  // The process ends: there is nobody to tell an error to.
  static_cast<void>(ask("finalize", {}, version_ == 2 ? "finalize-response" : "finalize_ack", deadline));
}

Result<PmiWire::Answer> PmiWire::ask(std::string_view command, const Pairs& pairs, std::string_view answer,
                                     Deadline deadline) {
  IST_TRY(send(command, pairs, deadline));
  return take(command, answer, deadline);
}

Status PmiWire::send(std::string_view command, const Pairs& pairs, Deadline deadline) {
  const char separator = version_ == 2 ? ';' : ' ';
  std::string text = "cmd=" + std::string{command};
  for (const auto& [name, value] : pairs) text += separator + std::string{name} + '=' + value;
  text += version_ == 2 ? ';' : '\n';
  if (version_ == 2) {
    std::array<char, kCountLetters + 1> count{};
    std::snprintf(count.data(), count.size(), "%6zu", text.size());
    text.insert(0, count.data());
  }
  return write(text, deadline);
}

Result<PmiWire::Answer> PmiWire::take(std::string_view command, std::string_view answer, Deadline deadline) {
  const char separator = version_ == 2 ? ';' : ' ';
  const auto line = version_ == 2 ? read_counted(deadline) : read_line(deadline);
  if (!line.ok()) return line.status();
  Answer found = pairs_of(*line, separator);
  // A value that is not there is a refusal to some servers, and no error to us.
  const bool asks_for_value = command == "get" || command == "kvs-get";
  const bool refused = number_in(found, "rc").value_or(0) != 0 && !asks_for_value;
  if (found["cmd"] == answer && !refused) return found;
  return Status{IST_ERR_BOOT,
                "the PMI server answered " + in_quotes(*line) + " to the request \"" + std::string{command} + "\""};
}

Status PmiWire::write(const std::string& text, Deadline deadline) {
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t some = ::send(socket_.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (some > 0) {
      sent += static_cast<std::size_t>(some);
      continue;
    }
    if (errno == EPIPE || errno == ECONNRESET) return hung_up();
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return system_error("send to the PMI server");
    if (interrupt::over(deadline)) return {IST_ERR_BOOT, "the PMI server did not take a request in time; is it stopped?"};
    pollfd entry{socket_.get(), POLLOUT, 0};
    ::poll(&entry, 1, interrupt::milliseconds(deadline));
  }
  return {};
}

Status PmiWire::read_more(Deadline deadline) {
  for (;;) {
    std::array<char, 4096> piece;
    const ssize_t got = ::recv(socket_.get(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (got > 0) {
      incoming_.append(piece.data(), static_cast<std::size_t>(got));
      if (incoming_.size() <= kLongestAnswer) return {};
      return {IST_ERR_BOOT, "the PMI server sends without end: " + in_quotes(incoming_)};
    }
    if (got == 0 || errno == ECONNRESET) return hung_up();
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return system_error("recv from the PMI server");
    late_ = interrupt::over(deadline);
    if (late_)
      return {IST_ERR_BOOT,
              "no answer of the PMI server in time; does every rank create this world? ISTHMUS_BOOT_TIMEOUT sets how long "
              "to wait"};
    pollfd entry{socket_.get(), POLLIN, 0};
    ::poll(&entry, 1, interrupt::milliseconds(deadline));
  }
}

Result<std::string> PmiWire::read_line(Deadline deadline) {
  std::size_t end = 0;
  while ((end = incoming_.find('\n')) == std::string::npos) IST_TRY(read_more(deadline));
  std::string line = incoming_.substr(0, end);
  incoming_.erase(0, end + 1);
  return line;
}

Result<std::string> PmiWire::read_counted(Deadline deadline) {
  while (incoming_.size() < kCountLetters) IST_TRY(read_more(deadline));
  // Right- or left-aligned, as the server likes.
  const auto first = incoming_.find_first_not_of(' ');
  std::size_t length = 0;
  const char* begin = incoming_.data() + (first == std::string::npos ? 0 : first);
  const auto [stopped, error] = std::from_chars(begin, incoming_.data() + kCountLetters, length);
  const bool rest_is_blank =
      std::string_view{stopped, static_cast<std::size_t>(incoming_.data() + kCountLetters - stopped)}.find_first_not_of(
          ' ') == std::string_view::npos;
  if (error != std::errc{} || !rest_is_blank)
    return Status{IST_ERR_BOOT, "what the PMI server sent does not begin with a length: " + in_quotes(incoming_)};
  while (incoming_.size() < kCountLetters + length) IST_TRY(read_more(deadline));
  std::string text = incoming_.substr(kCountLetters, length);
  incoming_.erase(0, kCountLetters + length);
  return text;
}

}  // namespace ist
