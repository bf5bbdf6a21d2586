// Threads of the processor that play PEs, blocks and threads of kernels, for the algorithms of isthmus/device.cuh.
//
// Who calls this : in_kernel_test.cpp, in_kernel_calls_test.cpp; built with and without ThreadSanitizer.
// Threads        : Team::play starts one for every thread of every block of every PE, and waits for them.
// Ownership      : a Team owns the parts of its PEs.
// Errors         : none; what goes wrong is counted by whoever compares.
#pragma once

#include <isthmus/device.cuh>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace in_kernel {

using namespace ist::device;

// Where the threads of one block meet, and vote.
class BlockMeeting {
 public:
  explicit BlockMeeting(unsigned threads) : barrier_(threads) {}
  void sync() { barrier_.arrive_and_wait(); }
  bool any(bool mine) {
    if (mine) vote_.store(true);
    sync();
    const bool result = vote_.load();
    sync();
    // Nobody votes again before all have met once more.
    vote_.store(false);
    sync();
    return result;
  }

 private:
  std::barrier<> barrier_;
  std::atomic<bool> vote_{false};
};

// A crew of a block, or of a grid, as isthmus/device/crew.cuh describes them.
struct Player {
  unsigned thread = 0, threads = 1, block = 0, blocks = 1;
  BlockMeeting* meeting = nullptr;
  void sync() const { meeting->sync(); }
  bool any(bool mine) const { return meeting->any(mine); }
};

struct Shape {
  unsigned blocks = 1;
  unsigned threads = 1;
};

class Team {
 public:
  explicit Team(int pes, std::uint64_t room = 1 << 20)
      : bytes_(IST_TEAM_SYNC_BYTES(static_cast<unsigned>(pes)) + room),
        memory_(static_cast<std::size_t>(pes) * bytes_ + kAlignment),
        base_(memory_.data() + (kAlignment - reinterpret_cast<std::uintptr_t>(memory_.data()) % kAlignment)),
        pes_(pes) {}

  ist_team_view view(int pe) const {
    ist_team_view found{};
    found.pe = pe;
    found.pes = pes_;
    found.base = base_;
    found.stride = bytes_;
    found.bytes = bytes_;
    found.sync_bytes = IST_TEAM_SYNC_BYTES(static_cast<unsigned>(pes_));
    found.abort_word = &abort_word_;
    return found;
  }
  unsigned char* room(int pe) const { return base_ + static_cast<std::uint64_t>(pe) * bytes_ + view(0).sync_bytes; }
  void abort() { __atomic_store_n(&abort_word_, 1U, __ATOMIC_RELAXED); }

  using Body = std::function<void(const Player&, const ist_team_view&)>;
  void play(Shape shape, const Body& body) const {
    std::vector<std::unique_ptr<BlockMeeting>> meetings;
    std::vector<std::thread> threads;
    for (int pe = 0; pe < pes_; ++pe) {
      for (unsigned block = 0; block < shape.blocks; ++block) {
        meetings.push_back(std::make_unique<BlockMeeting>(shape.threads));
        for (unsigned thread = 0; thread < shape.threads; ++thread)
          threads.emplace_back([&body, player = Player{thread, shape.threads, block, shape.blocks, meetings.back().get()},
                                seen = view(pe)] { body(player, seen); });
      }
    }
    for (std::thread& each : threads) each.join();
  }

 private:
  static constexpr std::size_t kAlignment = 4096;
  std::uint64_t bytes_;
  std::vector<unsigned char> memory_;
  unsigned char* base_;
  int pes_;
  std::uint32_t abort_word_ = 0;
};

// What is said to be of which epoch.
inline std::uint64_t mixed(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15U ^ b * 0xbf58476d1ce4e5b9U ^ c * 0x94d049bb133111ebU;
  x ^= x >> 31;
  x *= 0xff51afd7ed558ccdU;
  return x ^ x >> 29;
}
inline unsigned char byte_of(int pe, std::uint64_t epoch, std::uint64_t at) {
  return static_cast<unsigned char>(mixed(static_cast<std::uint64_t>(pe) + 1, epoch, at));
}
inline void dawdle(int pe, std::uint64_t epoch, unsigned thread) {
  const std::uint64_t dice = mixed(static_cast<std::uint64_t>(pe) + 7, epoch, thread);
  if (dice % 32 == 0) std::this_thread::sleep_for(std::chrono::microseconds(dice >> 40 & 127));
}

constexpr std::uint64_t kDeadline = 20000000000;  // ns: nothing here may hang

// All blocks of the crew; one that did not come would be missed in what is compared next.
inline void meet(const Player& crew, const ist_team_view& view) {
  static_cast<void>(agreed(crew, view, Status::ok, kDeadline));
}
// The threads of a crew, a grid's too, fill or compare each their own bytes: other ones than it has copied, where something moved.
inline void fill(const Player& crew, const ist_team_view& view, unsigned char* to, std::uint64_t bytes,
                 std::uint64_t epoch) {
  for (std::uint64_t i = thread_of(crew); i < bytes; i += threads_of(crew)) to[i] = byte_of(view.pe, epoch, i);
  meet(crew, view);
}
inline std::uint64_t wrong_in(const Player& crew, const ist_team_view& view, const unsigned char* found, std::uint64_t bytes,
                              int pe, std::uint64_t epoch) {
  std::uint64_t wrong = 0;
  for (std::uint64_t i = threads_of(crew) - 1 - thread_of(crew); i < bytes; i += threads_of(crew))
    wrong += found[i] != byte_of(pe, epoch, i);
  meet(crew, view);
  return wrong;
}

}  // namespace in_kernel
