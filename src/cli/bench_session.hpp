// One rank of a benchmark: its world, its buffer, and what it says to the other rank.
//
// Who calls this : bench and its parts; both ranks make the same calls in the same order.
// Threads        : one.
// Ownership      : owns the world and the memory.
// Errors         : a Failure; what one rank cannot prepare is told by rank 0 and ends both.
#pragma once

#include <isthmus/isthmus.h>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>

#include "cli/bench_options.hpp"
#include "memory/kinds.hpp"
#include "memory/pinned_pool.hpp"

namespace ist::cli {

class Session {
 public:
  static constexpr int kWindow = 64;

  // Joins the world. `options.from` belongs to rank 0, `options.to` to rank 1.
  explicit Session(const BenchOptions& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Takes the memory of both ranks, or fails on both.
  void prepare(const Settings& settings);

  int rank() const { return rank_; }
  int other() const { return 1 - rank_; }
  const BenchOptions& options() const { return options_; }
  const Kinds& kinds() const { return *kinds_; }
  std::size_t capacity() const { return capacity_; }
  // Where the devices really are, by rank: known after prepare().
  const Place& place(int rank) const { return places_[static_cast<std::size_t>(rank)]; }

  // Bytes of this rank's buffer, set and seen through host memory.
  void write(std::span<const std::byte> bytes);
  void read(std::span<std::byte> bytes);

  // One message of the benchmark, blocking, from or into the buffer at `offset`; by hand through the host where asked for.
  void send(std::size_t offset, std::size_t bytes);
  void receive(std::size_t offset, std::size_t bytes);
  // `count` messages in flight at once. Message n lies at n * stride of the buffer.
  void send_window(int count, std::size_t stride, std::size_t bytes);
  void receive_window(int count, std::size_t stride, std::size_t bytes);
  // How the bytes of the last message received here travelled.
  int carrier() const { return carrier_; }

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
  // Waits for the other rank's word asleep, leaving it the processors.
  void hear_asleep();

 private:
  static constexpr int kDataTag = 1;
  static constexpr int kTalkTag = 2;

  void take_memory(const Settings& settings);
  ist_buffer at(std::size_t offset) const { return ist_buffer_at(buffer_, offset); }
  bool stages() const;
  void grow_staging(std::size_t bytes);
  void start_device(MemoryKind& kind, int device);
  void tell_bytes(const void* data, std::size_t bytes);
  void hear_bytes(void* data, std::size_t bytes);

  BenchOptions options_;
  std::array<Place, 2> places_;
  ist_world world_ = IST_WORLD_NULL;
  ist_comm comm_ = IST_COMM_NULL;
  int rank_ = 0;
  std::unique_ptr<Kinds> kinds_;
  std::size_t capacity_ = 0;
  ist_buffer buffer_{};
  bool taken_ = false;
  Pins* pins_ = nullptr;  // whoever page-locked the buffer
  std::unique_ptr<PinnedPool> pool_;
  PinnedPool::Block staging_;
  std::array<ist_request, kWindow> requests_{};
  std::array<ist_status, kWindow> statuses_{};
  int carrier_ = IST_CARRIER_NONE;
};

// Throws what the library said unless `code` is IST_OK.
void must(int code, const char* call);

}  // namespace ist::cli
