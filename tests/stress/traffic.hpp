// Random messages whose every byte the receiver can compute, over slots and cells.
//
// Who calls this : tests/stress, from processes and from threads.
// Threads        : each path is one thread's.
// Ownership      : none.
// Errors         : a text that says what was wrong; empty if nothing was.
#pragma once

#include <sched.h>
#include <algorithm>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

#include "path/shm/shm_path.hpp"

namespace ist::test {

inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// ISTHMUS_TEST_LONG=1: everything ten times longer.
inline std::uint64_t scaled(std::uint64_t count) {
  const char* text = std::getenv("ISTHMUS_TEST_LONG");
  return text && *text == '1' ? count * 10 : count;
}

// Message `number` of `sender`, one of a run that has its own seed.
struct Message {
  Message(std::uint64_t seed, int sender, std::uint64_t number, std::size_t cell_limit)
      : random(mix(mix(seed + static_cast<std::uint64_t>(sender)) + number)) {
    in_cell = random % 4 == 0;
    // Few long messages in slots, or they would take all the time.
    const std::size_t in_slots = random / 4 % 32 == 0 ? std::min(kPairPayload, cell_limit) : kAlwaysInSlots.value;
    length = static_cast<std::size_t>((random >> 8) % ((in_cell ? cell_limit : in_slots) + 1));
  }
  void fill(std::byte* to) const {
    for (std::size_t at = 0; at < length; at += 8) {
      const std::uint64_t word = mix(random + at);
      std::memcpy(to + at, &word, length - at < 8 ? length - at : 8);
    }
  }
  bool matches(std::span<const std::byte> bytes) const {
    if (bytes.size() != length) return false;
    for (std::size_t at = 0; at < length; at += 8) {
      const std::uint64_t word = mix(random + at);
      if (std::memcmp(bytes.data() + at, &word, length - at < 8 ? length - at : 8) != 0) return false;
    }
    return true;
  }
  std::uint64_t random;
  bool in_cell;
  std::size_t length;
};

// Sleeps if the path can. A wake-up that got lost is seen as a sleep of this length; nothing here waits so long otherwise.
constexpr std::chrono::seconds kLostWakeUp{20};
inline std::string give_way(Path& path) {
  const auto before = std::chrono::steady_clock::now();
  if (!path.sleep(kLostWakeUp)) ::sched_yield();
  if (std::chrono::steady_clock::now() - before < kLostWakeUp) return {};
  return "slept " + std::to_string(kLostWakeUp.count()) + " s: a wake-up was lost";
}

inline bool try_send(Link& link, const Message& message, std::uint32_t number) {
  Envelope envelope;
  envelope.sequence = number;
  envelope.bytes = message.length;
  if (!message.in_cell) {
    std::array<std::byte, kPairPayload> payload;
    message.fill(payload.data());
    return link.post(envelope, {payload.data(), message.length});
  }
  const auto cell = link.take_cell();
  if (!cell) return false;
  message.fill(cell->data);
  link.post_cell(*cell, envelope, Bytes{message.length});
  return true;
}

inline std::string send_all(Path& path, int me, int to, std::uint64_t seed, std::uint64_t count) {
  Link& link = *path.link(Rank{to});
  for (std::uint64_t number = 0; number < count; ++number) {
    const Message message{seed, me, number, link.cell_limit.value};
    while (!try_send(link, message, static_cast<std::uint32_t>(number)))
      if (std::string wrong = give_way(path); !wrong.empty()) return "sender " + std::to_string(me) + " " + wrong;
  }
  return {};
}

// Checks what arrives: each carrier of each sender in order, every byte.
class Checker {
 public:
  Checker(std::uint64_t seed, int senders, std::size_t cell_limit)
      : seed_(seed), cell_limit_(cell_limit), expected_(static_cast<std::size_t>(senders)) {}

  std::string check(const Arrival& arrival) {
    const int sender = arrival.source.value;
    auto& expected = expected_.at(static_cast<std::size_t>(sender))[arrival.in_cell ? 1 : 0];
    // The next message of this sender that travels this way.
    while (Message{seed_, sender, expected, cell_limit_}.in_cell != arrival.in_cell) ++expected;
    const std::string name = "message " + std::to_string(expected) + " of rank " + std::to_string(sender);
    if (arrival.envelope.sequence != expected) return name + ": got " + std::to_string(arrival.envelope.sequence);
    const Message message{seed_, sender, expected, cell_limit_};
    if (arrival.envelope.bytes != message.length || !message.matches(arrival.payload)) return name + ": bytes differ";
    ++expected;
    ++received_;
    return {};
  }
  std::uint64_t received() const { return received_; }

 private:
  std::uint64_t seed_;
  std::size_t cell_limit_;
  std::vector<std::array<std::uint64_t, 2>> expected_;
  std::uint64_t received_ = 0;
};

inline std::string receive_all(Path& path, Checker& checker, std::uint64_t count) {
  while (checker.received() < count) {
    if (const auto arrival = path.next()) {
      if (std::string wrong = checker.check(*arrival); !wrong.empty()) return wrong;
      path.release(*arrival);
    } else if (std::string wrong = give_way(path); !wrong.empty()) {
      return "receiver " + wrong;
    }
  }
  if (path.next()) return "more messages than were sent";
  return {};
}

}  // namespace ist::test
