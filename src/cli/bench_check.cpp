#include "cli/bench_check.hpp"

#include <algorithm>
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

// Latency sends one message at a time; bandwidth as many of its window as have a place of their own in the buffer.
int messages_in_flight(const Session& session, std::size_t bytes) {
  if (session.options().one_at_a_time()) return 1;
  const std::size_t places = (session.capacity() - kGuard) / std::max<std::size_t>(bytes, 1);
  return static_cast<int>(std::clamp<std::size_t>(places, 1, Session::kWindow));
}

void send_checked(Session& session, std::size_t bytes, int messages) {
  const std::uint64_t seed = (std::uint64_t{std::random_device{}()} << 32U) | std::random_device{}();
  session.tell(seed);
  std::vector<std::byte> source(bytes * static_cast<std::size_t>(messages));
  fill_random(source, seed);
  session.write(source);
  if (session.options().one_at_a_time())
    session.send(0, bytes);
  else
    session.send_window(messages, bytes, bytes);
}

Difference receive_checked(Session& session, std::size_t bytes, int messages) {
  const auto seed = session.hear<std::uint64_t>();
  const std::size_t total = bytes * static_cast<std::size_t>(messages);
  std::vector<std::byte> expected(total + kGuard);
  fill_random(std::span{expected}.first(total), seed);
  fill_random(std::span{expected}.last(kGuard), ~seed);
  std::vector<std::byte> found = expected;
  for (std::size_t at = 0; at < total; ++at) found[at] = ~found[at];
  session.write(found);
  if (session.options().one_at_a_time())
    session.receive(0, bytes);
  else
    session.receive_window(messages, bytes, bytes);
  session.read(found);
  return compare(found, expected);
}

// Both at once: what each rank found.
Difference exchange_checked(Session& session, std::size_t bytes, int messages) {
  const std::uint64_t seed = (std::uint64_t{std::random_device{}()} << 32U) | std::random_device{}();
  std::uint64_t theirs = seed;
  if (session.side() == 0) {
    session.tell(seed);
    theirs = session.hear<std::uint64_t>();
  } else {
    theirs = session.hear<std::uint64_t>();
    session.tell(seed);
  }
  const std::size_t total = bytes * static_cast<std::size_t>(messages);
  std::vector<std::byte> source(total);
  fill_random(source, seed);
  session.write(source);
  std::vector<std::byte> expected(total + kGuard);
  fill_random(std::span{expected}.first(total), theirs);
  fill_random(std::span{expected}.last(kGuard), ~theirs);
  std::vector<std::byte> found = expected;
  for (std::size_t at = 0; at < total; ++at) found[at] = ~found[at];
  session.write(found, session.recv_offset());
  session.exchange_window(messages, bytes, bytes);
  session.read(found, session.recv_offset());
  return compare(found, expected);
}

Difference check_one(Session& session, std::size_t bytes, int messages, int sender) {
  Difference difference;
  if (session.options().bidirectional()) {
    difference = exchange_checked(session, bytes, messages);
    // What side 1 - sender received.
    if (session.side() == sender) return session.hear<Difference>();
    session.tell(difference);
    return difference;
  }
  if (session.side() == sender) {
    send_checked(session, bytes, messages);
    return session.hear<Difference>();
  }
  difference = receive_checked(session, bytes, messages);
  session.tell(difference);
  return difference;
}

}  // namespace

void check_bytes(Session& session, const std::vector<std::uint64_t>& sizes,
                 const std::function<void(std::size_t)>& progress) {
  for (std::size_t done = 0; done < sizes.size(); ++done) {
    const auto bytes = static_cast<std::size_t>(sizes[done]);
    const int messages = messages_in_flight(session, bytes);
    for (int sender : {0, 1}) {
      const Difference difference = check_one(session, bytes, messages, sender);
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
