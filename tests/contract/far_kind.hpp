// An invented kind: its memory is this process's, but only host memory can be copied to or from it, copies take a set number
// of questions to finish, and errors come where a test wants them. Its locks are counted.
//
// Who calls this : tests of transfers and of the pinned pool.
// Threads        : locks from any; the rest from one.
// Ownership      : nothing; pieces are views of the test's data.
// Errors         : as the test sets fail_at_start, fail_at_end, refuse_locks and keep_locks.
#pragma once

#include <cstring>
#include <map>
#include <mutex>

#include "support.hpp"

namespace ist::test {

class FarKind final : public MemoryKind, public Pins, public Streams {
 public:
  explicit FarKind(KindId id) : id_(id) {}

  static Piece piece_of(KindId id, const Data& data) {
    Piece piece = host_piece(data.data(), Bytes{data.size()});
    piece.kind = id;
    piece.device = 0;
    piece.queue = 1;
    return piece;
  }

  KindId id() const override { return id_; }
  std::string_view name() const override { return "far"; }
  const std::vector<DeviceInfo>& devices() const override { return devices_; }
  bool copies(KindId to, KindId from) const override {
    return (to == id_ && from == KindId::host) || (to == KindId::host && from == id_);
  }
  std::optional<Recognised> recognise(const void*) override { return std::nullopt; }
  Status check(Piece&) override { return {}; }
  Result<Piece> allocate(int, Bytes) override { return Status{IST_ERR_MEMORY, "an invented kind has no memory"}; }
  Status release(const Piece&) override { return {}; }

  // The bytes move when the copy has finished, so that looking too early shows.
  Result<Ticket> copy(const Piece& to, const Piece& from, const Ticket& after) override {
    if (++started == fail_at_start) return Status{IST_ERR_DEVICE, "an invented refusal"};
    const bool ordered = !after.empty();
    if (ordered) ++ordered_copies;
    if (!ordered && pending_questions > 0) ++early_copies;
    if (!ordered && pending_questions == 0) ++late_copies;
    flights_[++last_id_] = {to, from, 0, started == fail_at_end, ordered ? after.id() : 0};
    return Ticket{this, last_id_};
  }

  Result<bool> finished(Ticket& ticket) override {
    if (const auto done = ask(ticket.id()); !done) return false;
    const Flight flight = flights_.at(ticket.id());
    flights_.erase(ticket.id());
    ticket.forget();
    if (flight.fails) return Status{IST_ERR_DEVICE, "an invented failure on the device"};
    if (flight.to.size.value != 0) std::memcpy(flight.to.address(), flight.from.address(), flight.to.size.value);
    return true;
  }
  void drop(std::uint64_t id) override { flights_.erase(id); }

  Streams* streams() override { return this; }
  Result<Ticket> ready(const Piece&) override {
    if (pending_questions == 0) return Ticket{};
    flights_[++last_id_] = {Piece{}, Piece{}, 0, false, 0};
    ready_id_ = last_id_;
    return Ticket{this, last_id_};
  }

  Pins* pins() override { return this; }
  Status pin(void* address, Bytes size) override {
    const std::lock_guard lock(mutex_);
    if (refuse_locks) return {IST_ERR_DEVICE, "an invented refusal to lock"};
    EXPECT_TRUE(locked.emplace(address, size.value).second) << "locked twice";
    return {};
  }
  void unpin(void* address) override {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(locked.erase(address), 1U) << "unlocked without being locked";
  }

  bool unpin_now(void* address) override {
    if (!keep_locks) unpin(address);
    return !keep_locks;
  }

  // Copies started and not asked to the end.
  int in_flight() const { return static_cast<int>(flights_.size()); }

  int started = 0;
  int fail_at_start = 0;
  int fail_at_end = 0;
  int questions_per_copy = 3;
  int pending_questions = 0;  // that the queue's pending work takes
  int ordered_copies = 0;     // given the ticket of the pending work
  int late_copies = 0;        // begun after the pending work was over
  int early_copies = 0;       // begun before, and not ordered behind it
  bool refuse_locks = false;
  bool keep_locks = false;  // to unlock would wait for other ranks
  std::map<void*, std::uint64_t> locked;

 private:
  struct Flight {
    Piece to;
    Piece from;
    int asked = 0;
    bool fails = false;
    std::uint64_t after = 0;
  };

  bool ask(std::uint64_t id) {
    if (id == ready_id_) {
      if (pending_questions > 0) --pending_questions;
      return pending_questions == 0;
    }
    Flight& flight = flights_.at(id);
    // Work in the queue moves on by itself; asking for what comes after it is a question too.
    if (flight.after != 0 && pending_questions > 0) {
      --pending_questions;
      return false;
    }
    return ++flight.asked >= questions_per_copy;
  }

  const KindId id_;
  std::vector<DeviceInfo> devices_{DeviceInfo{0, "invented", "", mebibytes(1), ""}};
  std::mutex mutex_;
  std::map<std::uint64_t, Flight> flights_;
  std::uint64_t last_id_ = 0;
  std::uint64_t ready_id_ = 0;
};

}  // namespace ist::test
