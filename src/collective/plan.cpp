#include "collective/plan.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

namespace ist {
namespace {

// Below this a device's data is brought to the host, combined there and taken back: a copy each way costs less than a
// message between devices per round.
constexpr Bytes kDeviceWorthIt = kibibytes(128);
// Host scratch up to this size is page-locked and comes from the pool.
constexpr Bytes kMostPooled = mebibytes(16);

// The numbers of calls wrap; so many are never under way at once. Negative, so that they are nobody else's tags.
std::int32_t first_tag(std::uint32_t call) { return static_cast<std::int32_t>(0x80000000U | (call & 0xfffffU) << 11U); }

bool is_aligned(const Piece& piece, ist_type type) {
  const auto element = element_of(type);
  const std::uint64_t alignment = element ? alignment_of(*element).value : 1;
  // An OpenCL buffer itself is aligned for every type, and so is what drivers allocate.
  return (piece.kind == KindId::opencl ? piece.offset.value : piece.object + piece.offset.value) % alignment == 0;
}

}  // namespace

Plan::Plan(const Communicator& comm, const std::string& call)
    : comm_(comm),
      rank_(comm.rank()),
      size_(comm.size()),
      schedule_(std::make_unique<Schedule>(call, comm.internal(), first_tag(comm.count_call()))) {}

Result<OperationId> Plan::start() {
  const std::lock_guard lock(comm_.engine().lock());
  return comm_.engine().start_schedule(std::move(schedule_));
}

void Plan::use(const Piece& piece) {
  const std::lock_guard lock(comm_.engine().lock());
  auto ready = comm_.engine().pending_work(piece);
  if (ready.ok()) {
    schedule_->wait_for(std::move(*ready));
  } else {
    schedule_->fail(ready.status());
  }
}

bool Plan::combines_on(const Piece& piece, Bytes bytes) const {
  if (piece.kind == KindId::host) return true;
  const Combiner& combiner = schedule_->combiner();
  Arithmetic* arithmetic = comm_.engine().parts().kinds.find(piece.kind)->arithmetic();
  return bytes > kDeviceWorthIt && combiner.function == nullptr && arithmetic != nullptr &&
         is_aligned(piece, combiner.type) && arithmetic->can(combiner.reduction, combiner.type, piece.device).ok();
}

Piece Plan::host_scratch(Bytes bytes) {
  if (bytes == Bytes{}) return host_piece(nullptr, bytes);
  if (bytes > kMostPooled) return scratch_for(host_piece(nullptr, bytes), true, bytes);
  auto block = comm_.engine().parts().pool.take(bytes);
  if (block.ok()) return schedule_->keep(std::move(*block)).part(Offset{}, bytes);
  schedule_->fail(block.status());
  return host_piece(nullptr, bytes);
}

Piece Plan::scratch_for(const Piece& piece, bool beside, Bytes bytes) {
  if (!beside || (piece.kind == KindId::host && bytes <= kMostPooled)) return host_scratch(bytes);
  auto block = comm_.engine().scratch().take(piece, bytes);
  if (block.ok()) return schedule_->keep(std::move(*block)).part(Offset{}, bytes);
  schedule_->fail(block.status());
  return host_piece(nullptr, bytes);
}

Parts Parts::even(const Elements& elements, int parts) {
  Parts made;
  made.each_ = elements.each;
  const auto number = static_cast<std::uint64_t>(parts);
  for (std::uint64_t p = 0; p <= number; ++p)
    made.starts_.push_back(elements.count / number * p + std::min(p, elements.count % number));
  return made;
}

Parts Parts::chunks(const Elements& elements, Bytes most) {
  Parts made;
  made.each_ = elements.each;
  const std::uint64_t at_once = std::max<std::uint64_t>(most.value / elements.each.value, 1);
  for (std::uint64_t start = 0; start < elements.count; start += at_once) made.starts_.push_back(start);
  if (made.starts_.empty()) made.starts_.push_back(0);  // nothing, in one part: everybody still hears of everybody
  made.starts_.push_back(elements.count);
  return made;
}

}  // namespace ist
