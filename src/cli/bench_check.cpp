#include "cli/bench_check.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <string>

#include "cli/failure.hpp"

namespace ist::cli {

// SplitMix64: both ranks make the same bytes from one seed.
void fill_random(std::span<std::byte> bytes, std::uint64_t seed) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof seed) {
    std::uint64_t word = (seed += 0x9E3779B97F4A7C15U);
    word = (word ^ (word >> 30U)) * 0xBF58476D1CE4E5B9U;
    word = (word ^ (word >> 27U)) * 0x94D049BB133111EBU;
    word ^= word >> 31U;
    std::memcpy(bytes.data() + at, &word, std::min(sizeof word, bytes.size() - at));
  }
}

Difference compare(std::span<const std::byte> found, std::span<const std::byte> expected) {
  Difference difference;
  if (std::equal(found.begin(), found.end(), expected.begin(), expected.end())) return difference;
  for (std::size_t at = found.size(); at-- > 0;) {
    if (found[at] == expected[at]) continue;
    ++difference.wrong;
    difference.first = at;
  }
  return difference;
}

namespace {

constexpr std::size_t kGuard = 64;
// Bytes of a window, where more than two messages of it are checked at once, and where more than one is.
constexpr std::size_t kMostInFlight = 16 << 20;
constexpr std::size_t kMostOfTwo = 64 << 20;

// One rank's bytes. They keep their room from size to size, since the system takes long to find a new GiB.
struct CheckBuffers {
  explicit CheckBuffers(std::size_t most) {
    for (std::vector<std::byte>* each : {&source, &expected, &found}) each->reserve(most);
  }
  std::vector<std::byte> source;
  std::vector<std::byte> expected;
  std::vector<std::byte> found;
};

// Latency sends one message at a time; bandwidth as many of its window as have a place of their own in the buffer.
int messages_in_flight(const Session& session, std::size_t bytes) {
  if (session.options().one_at_a_time()) return 1;
  const std::size_t each = std::max<std::size_t>(bytes, 1);
  const std::size_t most = std::max<std::size_t>(kMostInFlight / each, bytes <= kMostOfTwo ? 2 : 1);
  const std::size_t places = std::min((session.capacity() - kGuard) / each, most);
  return static_cast<int>(std::clamp<std::size_t>(places, 1, Session::kWindow));
}

std::uint64_t fresh_seed() { return (std::uint64_t{std::random_device{}()} << 32U) | std::random_device{}(); }

void make_source(Session& session, CheckBuffers& scratch, std::size_t total, std::uint64_t seed) {
  scratch.source.resize(total);
  fill_random(scratch.source, seed);
  session.write(scratch.source);
}

// Every byte of the destination is wrong, but for the guard behind it.
void make_destination(Session& session, CheckBuffers& scratch, std::size_t total, std::uint64_t seed) {
  scratch.expected.resize(total + kGuard);
  fill_random(std::span{scratch.expected}.first(total), seed);
  fill_random(std::span{scratch.expected}.last(kGuard), ~seed);
  scratch.found = scratch.expected;
  for (std::size_t at = 0; at < total; ++at) scratch.found[at] = ~scratch.found[at];
  session.write(scratch.found, session.options().bidirectional() ? session.recv_offset() : 0);
}

Difference look(Session& session, CheckBuffers& scratch) {
  session.read(scratch.found, session.options().bidirectional() ? session.recv_offset() : 0);
  return compare(scratch.found, scratch.expected);
}

void send_checked(Session& session, CheckBuffers& scratch, std::size_t bytes, int messages) {
  const std::uint64_t seed = fresh_seed();
  session.tell(seed);
  make_source(session, scratch, bytes * static_cast<std::size_t>(messages), seed);
  if (session.options().one_at_a_time())
    session.send(0, bytes);
  else
    session.send_window(messages, bytes, bytes);
}

Difference receive_checked(Session& session, CheckBuffers& scratch, std::size_t bytes, int messages) {
  make_destination(session, scratch, bytes * static_cast<std::size_t>(messages), session.hear<std::uint64_t>());
  if (session.options().one_at_a_time())
    session.receive(0, bytes);
  else
    session.receive_window(messages, bytes, bytes);
  return look(session, scratch);
}

// What this rank has of its own, and of the other one.
template <class T>
T swap(Session& session, const T& mine) {
  if (session.side() == 0) {
    session.tell(mine);
    return session.hear<T>();
  }
  const T theirs = session.hear<T>();
  session.tell(mine);
  return theirs;
}

// What the receivers found, by the side that sent: both ways at once, or one after the other.
using Differences = std::array<Difference, 2>;

Differences exchange_checked(Session& session, CheckBuffers& scratch, std::size_t bytes, int messages) {
  const std::uint64_t seed = fresh_seed();
  const std::uint64_t theirs = swap(session, seed);
  const std::size_t total = bytes * static_cast<std::size_t>(messages);
  make_source(session, scratch, total, seed);
  make_destination(session, scratch, total, theirs);
  session.exchange_window(messages, bytes, bytes);
  const Difference mine = look(session, scratch);
  const Difference other = swap(session, mine);
  return session.side() == 0 ? Differences{other, mine} : Differences{mine, other};
}

Differences check_size(Session& session, CheckBuffers& scratch, std::size_t bytes, int messages) {
  if (session.options().bidirectional()) return exchange_checked(session, scratch, bytes, messages);
  Differences differences;
  for (const int sender : {0, 1}) {
    Difference& difference = differences[static_cast<std::size_t>(sender)];
    if (session.side() == sender) {
      send_checked(session, scratch, bytes, messages);
      difference = session.hear<Difference>();
    } else {
      difference = receive_checked(session, scratch, bytes, messages);
      session.tell(difference);
    }
    // The other way it need not be tried.
    if (difference.wrong != 0) break;
  }
  return differences;
}

}  // namespace

void check_bytes(Session& session, const std::vector<std::uint64_t>& sizes,
                 const std::function<void(std::size_t)>& progress) {
  CheckBuffers scratch(session.capacity() + kGuard);
  for (std::size_t done = 0; done < sizes.size(); ++done) {
    const auto bytes = static_cast<std::size_t>(sizes[done]);
    const int messages = messages_in_flight(session, bytes);
    const Differences differences = check_size(session, scratch, bytes, messages);
    for (const int sender : {0, 1}) {
      const Difference& difference = differences[static_cast<std::size_t>(sender)];
      const int from = session.side() == sender ? session.rank() : session.other();
      const int into = session.side() == sender ? session.other() : session.rank();
      if (difference.wrong != 0)
        throw Failure(1, "wrong bytes: " + std::to_string(messages) + " message(s) of " + std::to_string(bytes) +
                             " bytes from " + session.place(from).text() + " to " + session.place(into).text() +
                             " arrived with " + std::to_string(difference.wrong) + " byte(s) wrong, the first at " +
                             std::to_string(difference.first) + "; nothing was timed");
    }
    progress(done + 1);
  }
}

}  // namespace ist::cli
