// Paths of several ranks inside one test process, and payloads that can be checked byte by byte.
//
// Who calls this : tests/path, tests/stress.
// Threads        : the mailbox takes calls from any thread; everything else is one thread's.
// Ownership      : a TestWorld owns its paths.
// Errors         : a path that cannot be made fails the test.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <tuple>
#include <vector>

#include "memory/host/shared_heap.hpp"
#include "path/shm/shm_path.hpp"
#include "path/surroundings.hpp"

namespace ist::test {

// Takes the place of the ranks' sockets.
class Mailbox {
 public:
  bool full = false;  // for who does not wait
  Status send(Rank from, Rank to, std::uint32_t purpose, int descriptor) {
    const std::lock_guard lock(mutex_);
    boxes_[{from, to, purpose}].emplace_back(::dup(descriptor));
    arrived_.notify_all();
    return {};
  }
  // Sent and not taken yet.
  std::size_t waiting(Rank from, Rank to, std::uint32_t purpose) {
    const std::lock_guard lock(mutex_);
    return boxes_[{from, to, purpose}].size();
  }
  Result<std::optional<FileDescriptor>> take(Rank from, Rank to, std::uint32_t purpose, double seconds) {
    std::unique_lock lock(mutex_);
    auto& box = boxes_[{from, to, purpose}];
    // On the system clock: ThreadSanitizer does not know the other waits of GCC 12.
    const auto limit = std::chrono::system_clock::now() +
                       std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::duration<double>(seconds));
    arrived_.wait_until(lock, limit, [&] { return !box.empty(); });
    if (box.empty()) return std::optional<FileDescriptor>{};
    std::optional<FileDescriptor> taken{std::move(box.front())};
    box.pop_front();
    return taken;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<std::tuple<Rank, Rank, std::uint32_t>, std::deque<FileDescriptor>> boxes_;
};

// What was page-locked and for which kinds, so that tests see that nothing is left out and all of it is given back.
struct Locks {
  struct Held {
    Bytes size;
    std::uint32_t kinds = 0;
  };
  std::mutex mutex;
  std::uint32_t kinds = 1;    // in use, one bit each
  std::uint32_t refused = 0;  // those whose driver locks nothing
  std::map<void*, Held> held;
};

inline Surroundings surroundings_of(int rank, int ranks, const Settings& settings, Mailbox* mailbox = nullptr,
                                    Locks* locks = nullptr) {
  Surroundings around;
  around.rank = Rank{rank};
  for (int i = 0; i < ranks; ++i) around.local.push_back(Rank{i});
  around.settings = settings;
  around.send_descriptor = [=](Rank to, std::uint32_t purpose, int descriptor) {
    return mailbox->send(Rank{rank}, to, purpose, descriptor);
  };
  around.try_send_descriptor = [=](Rank to, std::uint32_t purpose, int descriptor) -> Result<bool> {
    if (mailbox->full) return false;
    const Status sent = mailbox->send(Rank{rank}, to, purpose, descriptor);
    if (!sent.ok()) return sent;
    return true;
  };
  around.take_descriptor = [=](Rank from, std::uint32_t purpose, double seconds) {
    return mailbox->take(from, Rank{rank}, purpose, seconds);
  };
  around.process_of = [](Rank) { return static_cast<int>(::getpid()); };
  around.lock = [=](void* address, Bytes size) -> Status {
    const std::lock_guard lock(locks->mutex);
    Locks::Held& held = locks->held.try_emplace(address, Locks::Held{size, 0}).first->second;
    EXPECT_EQ(held.size, size) << "locked again with another size";
    held.kinds |= locks->kinds & ~locks->refused;
    if ((locks->kinds & locks->refused) != 0) return {IST_ERR_DEVICE, "an invented refusal to lock"};
    return {};
  };
  around.unlock = [=](void* address) {
    const std::lock_guard lock(locks->mutex);
    EXPECT_EQ(locks->held.erase(address), 1U);
  };
  return around;
}

// Segments of all ranks, made by one process that then forks, or starts threads.
inline std::vector<Segment> segments_for(int ranks, const Settings& settings) {
  std::vector<Segment> segments;
  for (int rank = 0; rank < ranks; ++rank) {
    const Surroundings around = surroundings_of(rank, ranks, settings);
    auto segment = Segment::create(ShmPath::shape(around), static_cast<std::size_t>(rank), ShmPath::may_sleep(around));
    EXPECT_TRUE(segment.ok()) << segment.status().text();
    segments.push_back(std::move(segment).value());
  }
  return segments;
}

inline std::unique_ptr<ShmPath> path_over(const std::vector<Segment>& segments, int rank, const Settings& settings) {
  std::vector<Segment> shared;
  for (const Segment& segment : segments) shared.push_back(segment.share());
  return std::make_unique<ShmPath>(surroundings_of(rank, static_cast<int>(segments.size()), settings), std::move(shared));
}

// Every rank connected as in a job, each with its own mappings.
class TestWorld {
 public:
  explicit TestWorld(int ranks, const Settings& settings = {})
      : TestWorld(std::vector<Settings>(static_cast<std::size_t>(ranks), settings)) {}
  // Of each rank its own.
  explicit TestWorld(const std::vector<Settings>& settings) {
    const int ranks = static_cast<int>(settings.size());
    paths_.resize(settings.size());
    for (int rank = 0; rank < ranks; ++rank) heaps_.push_back(std::make_unique<SharedHeap>(mebibytes(512)));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([this, rank, ranks, &settings] {
        Surroundings around = surroundings_of(rank, ranks, settings[static_cast<std::size_t>(rank)], &mailbox_, &locks_);
        around.heap = heaps_[static_cast<std::size_t>(rank)].get();
        auto path = ShmPath::connect(std::move(around));
        ASSERT_TRUE(path.ok()) << path.status().text();
        paths_[static_cast<std::size_t>(rank)] = std::move(path).value();
      });
    for (auto& thread : threads) thread.join();
  }
  ~TestWorld() {
    paths_.clear();
    EXPECT_TRUE(locks_.held.empty()) << "locked memory was not given back";
  }
  ShmPath& path(int rank) { return *paths_[static_cast<std::size_t>(rank)]; }
  Link& link(int from, int to) { return *path(from).link(Rank{to}); }
  void destroy(int rank) { paths_[static_cast<std::size_t>(rank)].reset(); }
  SharedHeap& heap(int rank) { return *heaps_[static_cast<std::size_t>(rank)]; }
  Locks& locks() { return locks_; }
  Mailbox& mailbox() { return mailbox_; }

 private:
  Mailbox mailbox_;
  Locks locks_;
  std::vector<std::unique_ptr<SharedHeap>> heaps_;
  std::vector<std::unique_ptr<ShmPath>> paths_;
};

inline std::vector<std::byte> random_bytes(std::size_t size) {
  static thread_local std::mt19937_64 generator{std::random_device{}()};
  std::vector<std::byte> bytes(size);
  for (std::size_t at = 0; at < size; at += sizeof(std::uint64_t)) {
    const std::uint64_t word = generator();
    std::memcpy(&bytes[at], &word, std::min(sizeof word, size - at));
  }
  return bytes;
}

inline Envelope numbered(std::uint32_t sequence, std::uint64_t bytes = 0) {
  Envelope envelope;
  envelope.sequence = sequence;
  envelope.context = ~sequence;
  envelope.tag = static_cast<std::int32_t>(sequence * 7);
  envelope.bytes = bytes;
  envelope.sender_op = sequence ^ 0x5a5a5a5aU;
  envelope.receiver_op = sequence + 1;
  return envelope;
}

inline ::testing::AssertionResult same(const Envelope& a, const Envelope& b) {
  if (std::memcmp(&a, &b, sizeof(Envelope)) == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "envelopes " << a.sequence << " and " << b.sequence << " differ";
}

inline ::testing::AssertionResult same(std::span<const std::byte> a, std::span<const std::byte> b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " bytes instead of " << b.size();
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) return ::testing::AssertionFailure() << "byte " << i << " of " << a.size() << " differs";
  return ::testing::AssertionSuccess();
}

// Fills a cell whole, poison beyond the payload, and posts it; false if there was no cell.
inline bool post_in_cell(Link& link, const Envelope& envelope, std::span<const std::byte> payload) {
  const auto cell = link.take_cell();
  if (!cell) return false;
  std::memset(cell->data, 0xee, link.cell_limit.value);
  if (!payload.empty()) std::memcpy(cell->data, payload.data(), payload.size());
  link.post_cell(*cell, envelope, Bytes{payload.size()});
  return true;
}

}  // namespace ist::test
