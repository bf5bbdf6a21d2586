#include "cli/model_rows.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "memory/packing.hpp"

namespace ist::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kNarrow = 64;      // bytes of a row that costs little beside itself
constexpr std::int64_t kMany = 16384;     // such rows
constexpr std::int64_t kWide = 64 << 10;  // bytes of a row that costs much
constexpr std::int64_t kFew = 256;  // such rows, together as long as what such messages have: half of that goes quicker
constexpr std::int64_t kRowsRoom = 2 * kWide * kFew;  // of the rows, as far apart as they are long
constexpr std::int64_t kHostRoom = kWide * kFew;
constexpr int kTimes = 20;
constexpr std::chrono::milliseconds kLongEnough{50};
constexpr double kLeast = 1e-15;  // seconds: what came out as nothing costs next to nothing

SharedForm rows(std::int64_t width, std::int64_t count) {
  Form form;
  form.block = width;
  form.dimensions = 1;
  form.dimension[0] = {count, 2 * width};
  form.size = width * count;
  return std::make_shared<const Form>(std::move(form));
}

// The quickest of some, with the wait for it; of three at least.
Result<double> seconds_of(MemoryKind& kind, const PackWork& work) {
  double best = 0;
  const auto limit = Clock::now() + kLongEnough;
  for (int i = 0; i <= kTimes && (i < 4 || Clock::now() < limit); ++i) {
    const auto begin = Clock::now();
    auto ticket = kind.packing()->pack_bytes(work, Ticket{});
    if (!ticket.ok()) return ticket.status();
    for (;;) {
      const auto over = ticket->empty() ? Result<bool>{true} : kind.finished(*ticket);
      if (!over.ok()) return over.status();
      if (*over) break;
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (i > 0) best = i == 1 ? seconds : std::min(best, seconds);  // the first one makes streams
  }
  return best;
}

// On a device, and a place for the packed bytes there and on the host.
struct Memory {
  Memory(MemoryKind& of, Piece rows, Piece row) : kind(of), spread(rows), packed(row), host(kHostRoom) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    if (locked) kind.pins()->unpin(host.data());
    static_cast<void>(kind.release(spread));
    static_cast<void>(kind.release(packed));
  }
  MemoryKind& kind;
  Piece spread, packed;
  std::vector<std::byte> host;
  bool locked = false;
};

}  // namespace

Result<RowTimes> measure_rows(const Kinds& kinds, double bus, double kernel) {
  MemoryKind* const kind = kinds.find(KindId::cuda);
  if (kind == nullptr || kind->packing() == nullptr || kind->pins() == nullptr || kind->devices().empty())
    return Status{IST_ERR_KIND, "the driver has not what it takes to copy rows to page-locked memory"};
  const auto spread = kind->allocate(0, Bytes{kRowsRoom});
  if (!spread.ok()) return spread.status();
  const auto packed = kind->allocate(0, Bytes{kRowsRoom / 2});
  if (!packed.ok()) {
    static_cast<void>(kind->release(*spread));
    return packed.status();
  }
  Memory memory(*kind, *spread, *packed);
  IST_TRY(kind->pins()->pin(memory.host.data(), Bytes{memory.host.size()}));
  memory.locked = true;
  const auto timed = [&](std::int64_t width, std::int64_t count, bool to_host, bool by_rows = true) -> Result<double> {
    const SharedForm form = rows(width, count);
    const Bytes size{static_cast<std::uint64_t>(form->size)};
    const Piece to = to_host ? host_piece(memory.host.data(), size) : memory.packed.part(Offset{}, size);
    const PackWork work{form, memory.spread, 0, to, 0, form->size, false, by_rows};
    if (const char* const why = kind->packing()->refuses_rows(work)) return Status{IST_ERR_UNSUPPORTED, why};
    return seconds_of(*kind, work);
  };
  const auto start = timed(kNarrow, 2, true), many = timed(kNarrow, kMany, true), within = timed(kNarrow, 2, false),
             wide = timed(kWide, kFew, false), packed_by_kernel = timed(kNarrow, 2, false, false),
             wide_by_kernel = timed(kWide, kFew, false, false);
  for (const auto* each : {&start, &many, &within, &wide, &packed_by_kernel, &wide_by_kernel})
    if (!each->ok()) return each->status();
  const auto mapped = [&](std::int64_t count, bool unpacks) -> Result<double> {
    const SharedForm form = rows(kWide, count);
    const Piece row = host_piece(memory.host.data(), Bytes{static_cast<std::uint64_t>(form->size)});
    return seconds_of(*kind, {form, memory.spread, 0, row, 0, form->size, unpacks});
  };
  RowTimes found;
  const std::span<const std::byte> host{memory.host};
  for (const bool unpacks : {false, true}) {
    if (kind->packing()->refuses_mapped(memory.spread, host) != nullptr) break;
    const auto few = mapped(2, unpacks), all = mapped(kFew, unpacks);
    for (const auto* each : {&few, &all})
      if (!each->ok()) return each->status();
    (unpacks ? found.mapped_load_byte : found.mapped_byte) = std::max(kLeast, (*all - *few) / (kWide * (kFew - 2)));
  }
  found.start = std::max(kLeast, *start - *packed_by_kernel + kernel);
  found.each = std::max(kLeast, (*many - *start) / (kMany - 2) - kNarrow * bus);
  found.byte = std::max(kLeast, (*wide - *within - (kFew - 2) * found.each) / (kWide * kFew));
  found.kernel_byte = std::max(kLeast, (*wide_by_kernel - *packed_by_kernel) / (kWide * kFew));
  return found;
}

}  // namespace ist::cli
