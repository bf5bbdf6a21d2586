#include "path/shm/segment.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <new>
#include <random>

namespace ist {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t round_to_page(std::uint64_t n) { return (n + kPage - 1) / kPage * kPage; }

}  // namespace

std::uint64_t SegmentShape::cell_stride() const { return std::max(round_to_page(cell_bytes), kPage); }
Offset SegmentShape::pairs() const { return Offset{round_to_page(sizeof(Segment::Shared))}; }
Offset SegmentShape::cell_headers() const { return pairs() + Bytes{round_to_page(sizeof(PairShared) * ranks)}; }
Offset SegmentShape::slots(std::size_t sender) const {
  return cell_headers() + Bytes{round_to_page(sizeof(CellHeader) * cells)} +
         Bytes{round_to_page(sizeof(PairSlot) * pair_slots().in_memory()) * sender};
}
Offset SegmentShape::lanes() const { return slots(ranks); }
Offset SegmentShape::cell_data() const { return lanes() + Bytes{round_to_page(sizeof(Lane) * kLanes)}; }
Bytes SegmentShape::total() const { return Bytes{(cell_data() + Bytes{cell_stride() * cells}).value}; }

Segment::Segment(std::shared_ptr<SharedMemory> memory, const SegmentShape& shape)
    : memory_(std::move(memory)), shape_(shape), shared_(std::launder(reinterpret_cast<Shared*>(memory_->data()))) {
  // Most of them are never used, and writing a core file would give memory to every page of them.
  ::madvise(memory_->data() + shape.lanes().value, (shape.cell_data() - shape.lanes()).value, MADV_DONTDUMP);
}

Result<Segment> Segment::create(const SegmentShape& shape, std::size_t place, bool may_sleep) {
  auto memory = SharedMemory::create("isthmus-segment", shape.total());
  if (!memory.ok()) return memory.status();
  // Fresh memory is zero: empty queues, no turn taken, nothing consumed, awake.
  auto* shared = new (memory->data()) Shared{};
  shared->version = Shared::kVersion;
  shared->shape = shape;
  shared->place = static_cast<std::uint32_t>(place);
  shared->may_sleep = may_sleep ? 1 : 0;
  shared->proof_address = reinterpret_cast<std::uint64_t>(&shared->proof);
  shared->proof = shared->proof_address ^ (std::random_device{}() * std::uint64_t{0x9e3779b97f4a7c15});
  Segment segment{std::make_shared<SharedMemory>(std::move(memory).value()), shape};
  std::vector<CellTable::Cells> only_mine(place + 1);
  only_mine[place] = segment.cells();
  const CellTable table{std::move(only_mine)};
  for (std::uint64_t i = 0; i < shape.cells; ++i) put_cell(shared->free_cells, table, cell_name(place, i));
  // Peers map the segment only after they were handed the descriptor, which happens after this.
  shared->magic = Shared::kMagic;
  return segment;
}

Result<Segment> Segment::open(FileDescriptor descriptor, std::uint32_t ranks, std::size_t place) {
  struct stat info {};
  if (::fstat(descriptor.get(), &info) != 0) return system_error("fstat of a peer's segment");
  const Bytes size{static_cast<std::uint64_t>(info.st_size)};
  if (size < Bytes{sizeof(Shared)})
    return Status{IST_ERR_BOOT, "a peer's segment has only " + std::to_string(size.value) + " bytes, fewer than its header"};
  auto memory = SharedMemory::open(std::move(descriptor), size);
  if (!memory.ok()) return memory.status();
  const auto& shared = *std::launder(reinterpret_cast<const Shared*>(memory->data()));
  if (shared.magic != Shared::kMagic || shared.version != Shared::kVersion)
    return Status{IST_ERR_BOOT, "a peer's segment is of version " + std::to_string(shared.version) + ", this library's of " +
                                    std::to_string(Shared::kVersion) + "; run the same Isthmus on all ranks"};
  const SegmentShape shape = shared.shape;
  if (shape.ranks != ranks || shared.place != place || shape.total() != size)
    return Status{IST_ERR_BOOT, "a peer's segment is for rank " + std::to_string(shared.place) + " of " +
                                    std::to_string(shape.ranks) + " on this host with " + std::to_string(size.value) +
                                    " bytes; expected rank " + std::to_string(place) + " of " + std::to_string(ranks) +
                                    " with " + std::to_string(shape.total().value)};
  return Segment{std::make_shared<SharedMemory>(std::move(memory).value()), shape};
}

CellTable::Cells Segment::cells() const {
  return {at<CellHeader>(shape_.cell_headers()), cell_data(), shape_.cell_stride()};
}

}  // namespace ist
