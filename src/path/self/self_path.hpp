// The way of a process to itself: a queue in its own memory.
//
// Who calls this : paths.cpp makes it; then as Path.
// Threads        : as Path.
// Ownership      : owns its slots and cells.
// Errors         : create: no memory for the cells; locking: what the driver said.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "path/path.hpp"
#include "path/surroundings.hpp"

namespace ist {

class SelfPath final : public Path, private Link {
 public:
  static Result<std::unique_ptr<SelfPath>> create(Surroundings surroundings);
  ~SelfPath() override;
  SelfPath(const SelfPath&) = delete;
  SelfPath& operator=(const SelfPath&) = delete;

  std::string_view name() const override { return "self"; }
  Link* link(Rank peer) override { return peer == surroundings_.rank ? this : nullptr; }
  // Slots and cells in the one order in which they were posted.
  std::optional<Arrival> next() override;
  void release(const Arrival& arrival) override;
  void put_back(const Arrival&) override { held_ = false; }
  bool arrival_within(int) override { return !idle; }
  Status lock_memory() override;
  // Nobody else could post while the only thread sleeps.
  bool can_sleep() const override { return false; }
  bool announce_sleep() override { return false; }
  void sleep_announced(std::chrono::microseconds) override {}
  void wake() override {}
  void leave(Rank /*dead*/) override { left_ = true; }
  bool has_left(Rank peer) const override { return peer == surroundings_.rank && left_; }
  Rank death_told_by(Rank /*peer*/) const override { return kNobody; }

 private:
  static constexpr std::size_t kSlots = 64;
  static constexpr std::size_t kSlotPayload = 216;
  struct Entry {
    Envelope envelope;
    bool in_cell = false;
    std::uint64_t cell = 0;
    std::size_t length = 0;
    std::array<std::byte, kSlotPayload> payload;
  };

  SelfPath(Surroundings surroundings, SharedMemory cells);
  bool post(const Envelope& envelope, std::span<const std::byte> payload) override;
  std::optional<Cell> take_cell() override;
  void post_cell(const Cell& cell, const Envelope& envelope, Bytes length) override;
  void return_cell(const Cell& cell) override { free_cells_.push_back(cell.id); }
  Result<SlotRingWriter*> outgoing() override { return static_cast<SlotRingWriter*>(nullptr); }
  Result<SlotRingReader*> incoming() override { return static_cast<SlotRingReader*>(nullptr); }
  bool same_process() const override { return true; }
  std::byte* cell_data(std::uint64_t cell) const { return cells_.data() + cell * stride_; }
  Entry& append(const Envelope& envelope);

  const Surroundings surroundings_;
  SharedMemory cells_;
  const std::uint64_t stride_;
  std::vector<std::uint64_t> free_cells_;
  std::vector<Entry> entries_;  // a ring with room for every slot, every cell, and the arrival being shown
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::size_t slots_used_ = 0;
  bool held_ = false;    // the first entry is what the last arrival shows
  bool locked_ = false;  // lock_memory() was called
  bool left_ = false;
};

}  // namespace ist
