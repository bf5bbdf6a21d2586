// The CUDA kind as a borrower, which copies to and from what was lent, and as a lender of blocks in place of what cannot be lent.
#include "base/log.hpp"
#include "memory/cuda/cuda_memory.hpp"

namespace ist {
namespace {

Piece lent_piece(const CudaBorrowed& memory, const Loan& loan, Bytes size) {
  Piece piece;
  piece.kind = KindId::cuda;
  piece.object = memory.address;
  piece.offset = Offset{loan.offset};
  piece.size = size;
  return piece;
}

// What its owner can do, so that others can open it.
std::string how_to_lend(MemoryClass memory_class) {
  if (memory_class == MemoryClass::pool)
    return " (make the pool with CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, since the default one has no such handles, and "
           "keep allocated a piece that a message went into or out of, since one of which all is freed again and again is "
           "not opened anew each time)";
  if (memory_class == MemoryClass::vmm)
    return " (create it with CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, and keep each message inside of one mapping)";
  return {};
}

}  // namespace

// In the primary context, which stays: a context of the user's goes with all that was allocated in it.
std::optional<Bounce> CudaKind::bounce(const Piece& own, Rank borrower) {
  const PointerFacts facts = ask_driver(api_, own.object + own.offset.value);
  if (!facts.known || facts.memory_class == MemoryClass::device || facts.device < 0 || bounces_.useless())
    return std::nullopt;
  auto block = bounces_.take(facts.device);
  if (block == nullptr) return bounces_.all_in_use(facts.device) ? std::optional{Bounce{}} : std::nullopt;
  auto loan = lend(*block, borrower, LoanFor::message);
  if (!loan) {
    bounces_.give_up();
    return std::nullopt;
  }
  loan->part = block->size.value / 2;
  const unsigned said = 1U << static_cast<unsigned>(facts.memory_class);
  if ((bounces_said_.fetch_or(said, std::memory_order_relaxed) & said) == 0)
    log::warning("messages into " + std::string{name_of(facts.memory_class)} +
                 " memory of cuda devices take two copies through a block of ISTHMUS_BOUNCE_LIMIT, since other processes do "
                 "not open it" +
                 how_to_lend(facts.memory_class) + "; into what cuMemAlloc or cudaMalloc gave they take one");
  return Bounce{std::move(block), *loan};
}

// In our context, whatever that of the memory is in its owner's process.
Result<Ticket> CudaKind::copy_to(Borrowed& borrowed, const Loan& loan, const Piece& from, const Ticket& after) {
  const auto& memory = static_cast<const CudaBorrowed&>(borrowed);
  const auto direction = from.kind == KindId::host ? CopyDirection::into_device : CopyDirection::between_devices;
  return copy_in(memory.context, direction, lent_piece(memory, loan, from.size), from, after);
}

Result<Ticket> CudaKind::copy_from(Borrowed& borrowed, const Loan& loan, const Piece& to, const Ticket& after) {
  const auto& memory = static_cast<const CudaBorrowed&>(borrowed);
  const auto direction = to.kind == KindId::host ? CopyDirection::out_of_device : CopyDirection::between_devices;
  return copy_in(memory.context, direction, to, lent_piece(memory, loan, to.size), after);
}

}  // namespace ist
