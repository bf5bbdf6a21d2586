#include "path/self/self_path.hpp"

#include <algorithm>
#include <cstring>

namespace ist {
namespace {

constexpr std::uint64_t kPage = 4096;

// Cells begin on pages, because drivers page-lock whole ones.
std::uint64_t stride_of(const Settings& settings) {
  return std::max((settings.eager_limit.value + kPage - 1) / kPage * kPage, kPage);
}

}  // namespace

Result<std::unique_ptr<SelfPath>> SelfPath::create(Surroundings surroundings) {
  // Pages that are never used cost nothing.
  auto cells = SharedMemory::create("isthmus-self", Bytes{stride_of(surroundings.settings) * surroundings.settings.cells});
  if (!cells.ok()) return cells.status();
  return std::unique_ptr<SelfPath>(new SelfPath(std::move(surroundings), std::move(cells).value()));
}

SelfPath::SelfPath(Surroundings surroundings, SharedMemory cells)
    : surroundings_(std::move(surroundings)),
      cells_(std::move(cells)),
      stride_(stride_of(surroundings_.settings)),
      entries_(kSlots + surroundings_.settings.cells + 1) {
  idle = true;
  slot_limit = Bytes{kSlotPayload};
  cell_limit = surroundings_.settings.eager_limit;
  for (std::uint64_t i = surroundings_.settings.cells; i-- > 0;) free_cells_.push_back(i);
}

SelfPath::~SelfPath() {
  if (locked_) surroundings_.unlock(cells_.data());
}

SelfPath::Entry& SelfPath::append(const Envelope& envelope) {
  Entry& entry = entries_[(first_ + count_++) % entries_.size()];
  entry.envelope = envelope;
  idle = false;
  return entry;
}

bool SelfPath::post(const Envelope& envelope, std::span<const std::byte> payload) {
  if (slots_used_ == kSlots || payload.size() > kSlotPayload) return false;
  ++slots_used_;
  Entry& entry = append(envelope);
  entry.in_cell = false;
  entry.length = payload.size();
  if (!payload.empty()) std::memcpy(entry.payload.data(), payload.data(), payload.size());
  return true;
}

std::optional<Cell> SelfPath::take_cell() {
  if (free_cells_.empty()) return std::nullopt;
  const std::uint64_t cell = free_cells_.back();
  free_cells_.pop_back();
  return Cell{cell_data(cell), cell};
}

void SelfPath::post_cell(const Cell& cell, const Envelope& envelope, Bytes length) {
  Entry& entry = append(envelope);
  entry.in_cell = true;
  entry.cell = cell.id;
  entry.length = length.value;
}

std::optional<Arrival> SelfPath::next() {
  if (held_) {
    held_ = false;
    if (!entries_[first_].in_cell) --slots_used_;
    first_ = (first_ + 1) % entries_.size();
    --count_;
  }
  idle = count_ == 0;
  if (idle) return std::nullopt;
  held_ = true;
  const Entry& entry = entries_[first_];
  const std::byte* data = entry.in_cell ? cell_data(entry.cell) : entry.payload.data();
  return Arrival{surroundings_.rank, entry.envelope, {data, entry.length}, entry.in_cell, entry.cell};
}

void SelfPath::release(const Arrival& arrival) {
  if (arrival.in_cell) free_cells_.push_back(arrival.cell);
}

Status SelfPath::lock_memory() {
  locked_ = true;
  return surroundings_.lock(cells_.data(), cells_.size());
}

}  // namespace ist
