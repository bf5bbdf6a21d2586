// One thread of a rank with messages of its own kind, whose every step follows from seed, round, lane and step on all ranks alike.
//
// Who calls this : soak.cpp makes them; each lane runs in a thread of its own, once a round.
// Threads        : a Lane is one thread's; Progress and Tally are read by the watch meanwhile.
// Ownership      : a lane owns its memory and its communicators.
// Errors         : a byte that is wrong is told and counted, and the round goes on; an error of a call is thrown.
#pragma once

#include <isthmus/collective.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "memory.hpp"

namespace soak {

struct Options {
  double seconds = 20;
  std::uint64_t seed = 1;
  std::uint64_t first_round = 0;
  std::uint64_t rounds = ~std::uint64_t{0};
  int lanes = 4;             // of messages
  std::uint64_t steps = 24;  // of a lane in a round
  std::size_t most = 4 << 20;
  double warm_up = 10;      // seconds in which caches fill, so that growth does not count
  double stall = 120;       // seconds without a step until the watchdog barks
  std::uint64_t spoil = 0;  // the so many-th message that is compared has a wrong byte: to see that it is found
  bool leak = false;        // a descriptor and some memory each round: to see that it is found
  std::string json;
  std::vector<std::string> only;     // kinds of lanes; empty: all
  std::vector<std::string> classes;  // of memory; empty: all
  bool has_lanes(const std::string& kind) const { return only.empty() || std::ranges::find(only, kind) != only.end(); }
  bool has_class(const std::string& name) const {
    return classes.empty() || std::ranges::find(classes, name) != classes.end();
  }
};

// What all lanes of a process share.
struct Rank {
  Options options;
  Place place;
  ist_comm comm = IST_COMM_NULL;
  int rank = 0;
  int size = 1;
  std::vector<Class> classes;  // that every rank has
  int right() const { return (rank + 1) % size; }
  int left() const { return (rank + size - 1) % size; }
};

// Where a lane is, in words that the watchdog can print.
class Progress {
 public:
  void set(std::string text) {
    const std::lock_guard lock(mutex_);
    text_ = std::move(text);
    since_ = std::chrono::steady_clock::now();
  }
  struct Found {
    std::string text;
    double seconds;  // since it began
  };
  Found look() const {
    const std::lock_guard lock(mutex_);
    return {text_, std::chrono::duration<double>(std::chrono::steady_clock::now() - since_).count()};
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;  // empty: nothing is open
  std::chrono::steady_clock::time_point since_;
};

// Messages and bytes that were received and compared, by "host to cuda, burst".
class Tally {
 public:
  struct Count {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
  };
  void add(const std::string& what, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    Count& count = counts_[what];
    ++count.messages;
    count.bytes += bytes;
  }
  void mismatch() { ++mismatches_; }
  std::uint64_t mismatches() const { return mismatches_; }
  std::uint64_t next_compared() { return ++compared_; }
  std::map<std::string, Count> counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Count> counts_;
  std::atomic<std::uint64_t> mismatches_{0};
  std::atomic<std::uint64_t> compared_{0};
};

class Lane {
 public:
  Lane(Rank& rank, Tally& tally, int number, const char* kind);
  virtual ~Lane() = default;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  // Do its kernels wait for other ranks'?
  virtual bool in_streams() const { return false; }
  // Before and after run(), in the main thread: communicators are made of one another by one call at a time.
  virtual void open() {}
  virtual void close() {}
  // Collective over the lanes of this number of all ranks.
  void run(std::uint64_t round);
  const Progress& progress() const { return progress_; }

 protected:
  // Before the steps of a round.
  virtual void begin() {}
  virtual void step(std::uint64_t step) = 0;

  // A message is in the middle of a buffer, and what is around it stays as it was.
  static constexpr std::size_t kGuard = 64;
  struct Held {
    std::unique_ptr<Memory> memory;
    std::size_t offset = 0;
    std::size_t room = 0;
    ist_buffer get(CUstream stream) const { return memory->at(offset, stream); }
  };
  // At any address that is a multiple of `aligned`: numbers lie where the processor expects them.
  Held hold(Class of, std::size_t room, Dice& dice, std::size_t aligned = 1);
  void give_back(Held held, Dice& dice) { shelf_.give_back(std::move(held.memory), dice); }
  // Puts the message into the buffer, or poisons all of it: at once, or in the stream behind something that takes a while.
  void fill(const Held& held, std::size_t bytes, std::uint64_t seed, bool later);
  void poison(const Held& held, bool later);
  // True if the message is there and nothing else was touched. `what`: the message in words; counted under `kind`.
  bool check(const Held& held, std::size_t bytes, std::uint64_t seed, const std::string& what, const std::string& kind);
  bool check_against(const Held& held, const std::vector<unsigned char>& message, const std::string& what,
                     const std::string& kind);
  void working(const std::string& what);
  std::uint64_t seed_of(std::uint64_t step, int sender, std::uint64_t message) const;
  CUstream stream() const { return stream_ ? stream_->get() : nullptr; }

  Rank& rank_;
  Tally& tally_;
  const int number_;
  const char* const kind_;
  std::uint64_t round_ = 0;
  std::uint64_t step_ = 0;
  Progress progress_;
  std::unique_ptr<UserStream> stream_;  // where there is CUDA

 private:
  void put(const Held& held, const std::vector<unsigned char>& bytes, std::size_t at, bool later);
  Shelf shelf_;
  // What the stream still copies from: kept until it has.
  std::deque<std::vector<unsigned char>> staged_;
};

std::unique_ptr<Lane> make_message_lane(Rank& rank, Tally& tally, int number);
std::unique_ptr<Lane> make_collective_lane(Rank& rank, Tally& tally, int number);
std::unique_ptr<Lane> make_stream_lane(Rank& rank, Tally& tally, int number);
std::unique_ptr<Lane> make_meeting_lane(Rank& rank, Tally& tally, int number);
std::unique_ptr<Lane> make_heap_lane(Rank& rank, Tally& tally, int number);

// The sum of all ranks' numbers of 8 bytes, which wrap.
std::vector<unsigned char> sum_of(int ranks, const std::function<std::vector<unsigned char>(int rank)>& numbers_of);

// One of the borders of the library, or anything below `most`: mostly small.
std::size_t some_size(Dice& dice, std::size_t most);

}  // namespace soak
