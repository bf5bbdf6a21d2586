// One rank of a benchmark: its world, its buffer, and what it says to the other ranks.
//
// Who calls this : bench and its parts; all ranks make the same calls in the same order.
// Threads        : one.
// Ownership      : owns the world and the memory.
// Errors         : a Failure; what one rank cannot prepare is told by rank 0 and ends all.
#pragma once

#include <isthmus/isthmus.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cli/bench_buffer.hpp"
#include "cli/bench_lanes.hpp"
#include "cli/bench_options.hpp"
#include "cli/bench_timing.hpp"
#include "memory/kinds.hpp"
#include "memory/pinned_pool.hpp"
#include "protocol/copy_choice.hpp"

namespace ist::cli {

class Session {
 public:
  static constexpr int kWindow = kWindowMessages;

  // Joins the world. `options.from` belongs to rank 0, `options.to` to the others; of several pairs, to the first half and the second.
  // `settings`: of its world, above the environment's, as ist_world_create_configured takes them.
  explicit Session(const BenchOptions& options, const char* settings = nullptr);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Takes the memory of all ranks, or fails on all.
  void prepare(const Settings& settings);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(places_.size()); }
  // Whom rank 0 talks to, and rank 0 for the rest; of several pairs, rank by rank, the first half and the second.
  int other() const {
    if (options_.pairs()) return rank_ < size() / 2 ? rank_ + size() / 2 : rank_ - size() / 2;
    return rank_ == 0 ? 1 : 0;
  }
  // 0: this rank is the one that sends first; 1: it is the other one.
  int side() const { return options_.pairs() ? static_cast<int>(rank_ >= size() / 2) : static_cast<int>(rank_ != 0); }
  // "shm/ring", of what the receiver's carrier() is; by hand, that too.
  std::string path_name(int carrier) const;
  const BenchOptions& options() const { return options_; }
  const Kinds& kinds() const { return *kinds_; }
  std::size_t capacity() const { return capacity_; }
  // Where the devices really are, by rank: known after prepare().
  const Place& place(int rank) const { return places_[static_cast<std::size_t>(rank)]; }
  // Of what a call leaves: of a buffer of its own where options().into names one.
  const Place& result_place(int rank) const { return result_places_[static_cast<std::size_t>(rank)]; }

  // Bytes of this rank's buffer, set and seen through host memory.
  void write(std::span<const std::byte> bytes, std::size_t offset = 0);
  void read(std::span<std::byte> bytes, std::size_t offset = 0);
  // One byte of each line of so much of it, which is host memory: as a program writes what it sends.
  void write_lines(std::size_t bytes);

  // One message of the benchmark, blocking, from or into the buffer at `offset`; by hand through the host where asked for.
  void send(std::size_t offset, std::size_t bytes);
  void receive(std::size_t offset, std::size_t bytes);
  // From now on sends between host buffers are synchronous: announced, however short.
  void send_synchronously(bool on) { synchronous_ = on; }
  // What this rank's library has found out of one copy or two.
  const CopyChoice& copies() const;
  // The same put into the stream or queue of this rank's buffer, of the benchmarks that are of such.
  Lane& lane() { return *lane_; }
  void put_send(std::size_t offset, std::size_t bytes);
  void put_receive(std::size_t offset, std::size_t bytes);
  void put_exchange(std::size_t from, std::size_t into, std::size_t bytes);
  // And into another stream of this rank's device (a CUstream), and what comes before the first of them.
  void prepare_on(void* stream, int tag);
  void send_on(void* stream, std::size_t offset, std::size_t bytes, int tag);
  void receive_on(void* stream, std::size_t offset, std::size_t bytes, int tag);
  // `count` messages in flight at once, blocking. Message n lies at n * stride of the buffer.
  void send_window(int count, std::size_t stride, std::size_t bytes);
  void receive_window(int count, std::size_t stride, std::size_t bytes);
  // Both at once, `count` messages each way; what comes lies from recv_offset() on.
  void exchange_window(int count, std::size_t stride, std::size_t bytes);
  // How the bytes of the last message received here travelled.
  int carrier() const { return carrier_; }

  // What this rank gives to a call of the table; the receive buffer is behind the send buffer, also of exchange_window(), or a buffer of
  // its own, whose offsets begin behind the other one.
  CallArguments arguments(std::size_t bytes) const { return {named_, at(recv_offset_), bytes, rank_, size(), comm_}; }
  std::size_t recv_offset() const { return recv_offset_; }

  // Something small for the other rank, and from it.
  template <class T>
  void tell(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    tell_bytes(&value, sizeof value);
  }
  template <class T>
  T hear() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    hear_bytes(&value, sizeof value);
    return value;
  }
  // Something small of rank 0 for everybody, and of everybody for everybody, by rank.
  template <class T>
  T from_first(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    must(ist_bcast(ist_host(&value), sizeof value, IST_BYTE, 0, comm_), "ist_bcast");
    return value;
  }
  template <class T>
  std::vector<T> from_all(std::span<const T> mine) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> all(mine.size() * places_.size());
    const auto bytes = static_cast<std::int64_t>(mine.size_bytes());
    must(ist_allgather(ist_host(mine.data()), bytes, ist_host(all.data()), bytes, IST_BYTE, comm_), "ist_allgather");
    return all;
  }
  void meet() { must(ist_barrier(comm_), "ist_barrier"); }
  // The same asleep, leaving the processors to those who are late.
  void meet_asleep();

 private:
  static constexpr int kDataTag = 1;
  static constexpr int kTalkTag = 2;

  // What one rank does with a window.
  struct Ways {
    bool out;
    bool in;
  };

  void take_memory(const Settings& settings);
  void choose_device(Place& place, int local_rank) const;
  void open_lane(const Place& place, int local_rank);
  void start_sends(int count, std::size_t stride, std::size_t bytes);
  void start_receives(int count, std::size_t stride, std::size_t bytes, std::size_t first_request);
  void finish_receives(int count, std::size_t first_request);
  void window_by_hand(std::size_t messages, std::size_t stride, std::size_t bytes, const Ways& ways);
  ist_buffer at(std::size_t offset) const {
    if (result_ && offset >= recv_offset_) return ist_buffer_at(named_result_, offset - recv_offset_);
    return ist_buffer_at(named_, offset);
  }
  bool stages() const;
  void grow_staging(std::size_t bytes);
  void tell_bytes(const void* data, std::size_t bytes);
  void hear_bytes(void* data, std::size_t bytes);

  BenchOptions options_;
  std::vector<Place> places_;  // by rank
  std::vector<Place> result_places_;
  ist_world world_ = IST_WORLD_NULL;
  ist_comm comm_ = IST_COMM_NULL;
  int rank_ = 0;
  std::unique_ptr<Kinds> kinds_;
  std::size_t capacity_ = 0;
  std::size_t recv_offset_ = 0;
  std::unique_ptr<RankBuffer> buffer_;
  std::unique_ptr<RankBuffer> result_;  // null: behind the other one
  ist_buffer named_{};                  // the same as the calls are given it
  ist_buffer named_result_{};
  ist_buffer beside_{};         // of OpenCL, where the buffer itself has no queue
  std::unique_ptr<Lane> lane_;  // null, but of messages in streams and queues
  std::unique_ptr<PinnedPool> pool_;
  PinnedPool::Block staging_;
  std::array<ist_request, std::size_t{2} * kWindow> requests_{};
  std::array<ist_status, kWindow> statuses_{};
  int carrier_ = IST_CARRIER_NONE;
  bool synchronous_ = false;
};

// The method's warm-up, and more of it until 10 ms are over: what a world does first takes longer, and 100 short calls are over before
// that. Less of what is so long that it is warm after one. Every rank of it as often. Returns how long one repetition took in the last
// round.
template <class Repeat>
double warm_up_us(Session& session, std::uint64_t repetitions, const Repeat& repeat) {
  const std::uint64_t half = std::max<std::uint64_t>(repetitions / 2, 1);
  const auto begin = Clock::now();
  std::uint64_t round = 1;
  for (std::uint64_t done = 0;;) {
    const auto start = Clock::now();
    for (std::uint64_t n = 0; n < round; ++n) repeat();
    const double once = microseconds_since(start) / static_cast<double>(round);
    const double so_far = microseconds_since(begin);
    const bool first = std::exchange(done, done + round) == 0;
    const bool over = !first && so_far > 10e3 && (done >= 2 * half || so_far > kLongestWarmUp);
    const double left = std::max(kLongestWarmUp - so_far, 0.0) / std::max(once, 0.01);
    round = session.from_first(over ? 0 : std::clamp(static_cast<std::uint64_t>(left), std::uint64_t{1}, half));
    if (round == 0) return once;
  }
}

}  // namespace ist::cli
