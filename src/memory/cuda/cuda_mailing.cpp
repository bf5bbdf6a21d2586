// The CUDA kind as one that has mailboxes: their memory, and orders about them to its workers.
#include <cstring>

#include "base/log.hpp"
#include "memory/cuda/channel_protocol.hpp"
#include "memory/cuda/cuda_memory.hpp"
#include "memory/cuda/worker_board.hpp"

namespace ist {
namespace {

constexpr Bytes kBox{Mailing::kPlaces * sizeof(worker::Place)};
// Of memory that no other allocation shares: drivers cut what is smaller out of such blocks. A rank that has opened a box may still store
// there when its owner has freed it, and must not meet what comes to lie there next.
constexpr Bytes kBoxes = mebibytes(2);
static_assert(kBoxes.value % kBox.value == 0);
// Cleaned twice before numbers come again.
static_assert(2 * Mailing::kEpoch == channel::kNumbered);

std::uint64_t packets_of(Bytes size) { return (size.value + 7) / 8; }

}  // namespace

// Empty boxes in one allocation, of which each is given away once. What lay in that memory before must not be taken for packets.
Result<std::shared_ptr<CudaKind::Boxes>> CudaKind::make_boxes(int device) {
  auto memory = allocate(device, kBoxes);
  if (!memory.ok()) return memory.status();
  const std::vector<std::byte> zeros(kBoxes.value);
  auto ticket = copy(*memory, host_piece(zeros.data(), kBoxes), Ticket{});
  Status empty = ticket.status();
  for (Result<bool> over = false; empty.ok() && !*over; empty = over.status()) over = finished(*ticket);
  if (empty.ok())
    return std::shared_ptr<Boxes>{new Boxes{*memory}, [this](const Boxes* last) {
                                    release_later(last->memory);
                                    delete last;
                                  }};
  release_later(*memory);
  return empty;
}

std::shared_ptr<const Piece> CudaKind::make_box() {
  const int device = workers_.allowed_device();
  if (device < 0 || workers_.limit(device) == Bytes{}) return nullptr;
  const std::lock_guard lock(boxes_mutex_);
  auto boxes = boxes_.lock();
  Status empty;
  if (boxes == nullptr || boxes->memory.device != device || boxes->given == kBoxes.value / kBox.value) {
    auto made = make_boxes(device);
    empty = made.status();
    if (made.ok()) boxes_ = boxes = std::move(*made);
  }
  if (empty.ok()) {
    const Offset place{kBox.value * boxes->given++};
    return {new Piece{boxes->memory.part(place, kBox)}, [boxes](const Piece* last) { delete last; }};
  }
  log::once(log::Level::warning, "the mailbox of a worker",
            "small messages into cuda device " + std::to_string(device) +
                " go by the driver, which is slower: there is no memory for a mailbox: " + empty.text());
  return nullptr;
}

std::uint32_t CudaKind::number_of(std::uint64_t message) const { return channel::number_of(message); }

Bytes CudaKind::offset_of(std::uint32_t place) const { return Bytes{place * sizeof(worker::Place)}; }

Piece CudaKind::packets(const Piece& box, std::uint32_t place, Bytes size) const {
  return box.part(Offset{offset_of(place).value}, Bytes{packets_of(size) * sizeof(channel::Quad)});
}

bool CudaKind::awake(const Piece& piece) {
  if (!workers_.takes(piece)) return false;
  if (workers_.runs(piece.device)) return true;
  if (const auto home = contexts_.primary(piece.device); home.ok()) workers_.wake(**home, piece.size);
  return false;
}

// From the device that has opened the box: its worker reaches no other mapping.
std::optional<Ticket> CudaKind::post(const Piece& from, Borrowed& box, const Loan& loan, const Letter& letter) {
  const auto& memory = static_cast<const CudaBorrowed&>(box);
  if (from.kind != KindId::cuda || memory.context.device != from.device || !memory.context.primary) return std::nullopt;
  const auto order =
      workers_.post(from, {memory.address + loan.offset + offset_of(letter.place).value, letter.number, false});
  if (!order) return std::nullopt;
  return Ticket{this, *order};
}

std::optional<Ticket> CudaKind::take(const Piece& to, const Piece& box, const Letter& letter, bool cleans) {
  if (to.kind != KindId::cuda || to.device != box.device) return std::nullopt;
  const Piece place = packets(box, letter.place, Bytes{});
  const auto order = workers_.take(to, {place.object + place.offset.value, letter.number, cleans});
  if (!order) return std::nullopt;
  return Ticket{this, *order};
}

Result<std::optional<bool>> CudaKind::taken(Ticket& ticket) {
  auto over = workers_.taken(ticket.id());
  if (!over.ok() || over->has_value()) ticket.forget();
  return over;
}

void CudaKind::pack(std::span<const std::byte> bytes, std::uint32_t number, std::span<std::byte> packets) const {
  for (std::uint64_t i = 0; i * 8 < bytes.size(); ++i) {
    const channel::Quad packet = channel::packed(number, channel::bytes_at(bytes.data() + i * 8, bytes.size() - i * 8));
    std::memcpy(packets.data() + i * sizeof packet, &packet, sizeof packet);
  }
}

bool CudaKind::unpack(std::span<const std::byte> packets, std::uint32_t number, std::span<std::byte> bytes) const {
  for (std::uint64_t i = 0; i * 8 < bytes.size(); ++i) {
    channel::Quad packet{};
    std::memcpy(&packet, packets.data() + i * sizeof packet, sizeof packet);
    if (!channel::has_come(packet, number)) return false;
    channel::put_bytes(bytes.data() + i * 8, channel::bytes_in(packet), bytes.size() - i * 8);
  }
  return true;
}

}  // namespace ist
