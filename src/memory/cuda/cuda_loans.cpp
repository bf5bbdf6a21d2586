// The CUDA kind as a borrower, which copies to and from what was lent, and as a lender of blocks in place of what cannot be lent.
#include "base/log.hpp"
#include "base/ranges.hpp"
#include "memory/cuda/cuda_memory.hpp"
#include "memory/packing.hpp"

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

// So many times in turn a driver may refuse to copy several pieces by one call; then it is not asked for that any more.
constexpr int kMostRefused = 3;

// Whose memory it is, as its program knows it.
std::string allocator_of(MemoryClass memory_class) {
  switch (memory_class) {
    case MemoryClass::pool:
      return "pool memory (cudaMallocAsync)";
    case MemoryClass::vmm:
      return "vmm memory (cuMemCreate)";
    default:
      return std::string{name_of(memory_class)} + " memory" +
             (memory_class == MemoryClass::managed ? " (cudaMallocManaged)" : "");
  }
}

// And what its owner can do, so that others open it.
std::string how_to_lend(MemoryClass memory_class, NotLent why) {
  if (why == NotLent::short_lived)
    return "all of its pool is freed again and again, and a pool is not opened anew each time (keep a piece allocated that "
           "a message went into or out of)";
  if (why == NotLent::in_pieces) return "it lies in several mappings (keep each message inside of one)";
  if (why == NotLent::not_opened) return "the other process could not open it";
  std::string closed = "other processes cannot open it";
  if (memory_class == MemoryClass::pool)
    return closed +
           " (make the pool with CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, since the default one has no such handles)";
  if (memory_class == MemoryClass::vmm) return closed + " (create it with CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)";
  return closed;
}

}  // namespace

// Once for each class and reason.
void CudaKind::say_bounced(const PointerFacts& facts, Rank borrower) {
  constexpr unsigned kReasons = 8;
  const NotLent why = lending_.why_not(facts, borrower);
  const auto said = std::uint64_t{1} << (static_cast<unsigned>(facts.memory_class) * kReasons + static_cast<unsigned>(why));
  if ((bounces_said_.fetch_or(said, std::memory_order_relaxed) & said) != 0) return;
  log::warning("messages into " + allocator_of(facts.memory_class) +
               " of cuda devices take two copies through a block of ISTHMUS_BOUNCE_LIMIT: " +
               how_to_lend(facts.memory_class, why) + "; into what cuMemAlloc or cudaMalloc gave they take one");
}

std::string CudaKind::why_not_lent(const Piece& piece, Rank borrower) {
  const PointerFacts facts = facts_.of(piece);
  if (!facts.known) return "memory that the CUDA driver does not know";
  if (facts.on_host) return "page-locked host memory";
  return allocator_of(facts.memory_class) + ": " + how_to_lend(facts.memory_class, lending_.why_not(facts, borrower));
}

Result<std::shared_ptr<Borrowed>> CudaKind::keep(const Loan& loan, Rank lender, const Piece& own, Bytes size) {
  auto opened = borrowing_.keep(loan, lender, own);
  if (!opened.ok()) {
    const auto context = context_of(own);
    if (!context.ok()) return opened.status();
    const bool off = links_.off(**context, loan.device);
    return Status{off ? IST_ERR_UNREACHABLE : opened.status().code(), CudaLinks::words_for(**context, loan.device, lender) +
                                                                          (off ? ", is off: " : ": ") +
                                                                          opened.status().text() + (off ? "" : kNamespaces)};
  }
  CudaBorrowed* const seen = opened->get();
  const CUdeviceptr start = seen->address + loan.offset;
  spaces_.add({start, size.value, &seen->context});
  return std::shared_ptr<Borrowed>{seen, [this, start, size, memory = std::move(*opened)](Borrowed*) mutable {
                                     spaces_.remove(start, size.value);
                                     memory.reset();
                                   }};
}

Status CudaKind::changes_words_of(const Loan& loan, Rank lender, const Piece& own) {
  if (same_device(loan, own)) return {};
  const auto context = context_of(own);
  return context.ok() ? spaces_.atomics_between(**context, loan.device, lender) : context.status();
}

// In the primary context, which stays: a context of the user's goes with all that was allocated in it.
std::optional<Bounce> CudaKind::bounce(const Piece& own, Rank borrower) {
  const PointerFacts facts = facts_.of(own);
  if (!facts.known || facts.memory_class == MemoryClass::device) return std::nullopt;
  auto made = part_block(own, borrower);
  if (made && made->block != nullptr) say_bounced(facts, borrower);
  return made;
}

std::optional<Bounce> CudaKind::part_block(const Piece& own, Rank borrower) {
  const int device = facts_.of(own).device;
  if (device < 0 || bounces_.useless()) return std::nullopt;
  auto block = bounces_.take(device);
  if (block == nullptr) return bounces_.all_in_use(device) ? std::optional{Bounce{}} : std::nullopt;
  auto loan = lend(*block, borrower, LoanFor::message);
  if (!loan) {
    bounces_.give_up();
    return std::nullopt;
  }
  loan->part = block->size.value / 2;
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

Result<Ticket> CudaKind::pack_lent(Borrowed& borrowed, const Loan& loan, const PackWork& work, const Ticket& after) {
  const auto& memory = static_cast<const CudaBorrowed&>(borrowed);
  IST_TRY(settle_order(after));
  const Bytes size{static_cast<std::uint64_t>(work.to - work.from)};
  return start_pack(memory.context, work.in(lent_piece(memory, loan, size)), after);
}

Result<Ticket> CudaKind::relay_lent(Borrowed& borrowed, const Loan& loan, const LentForm& theirs, const PackWork& work,
                                    const Ticket& after) {
  const auto& memory = static_cast<const CudaBorrowed&>(borrowed);
  IST_TRY(settle_order(after));
  const Piece there = lent_piece(memory, loan, Bytes{theirs.room});
  return start_relay(memory.context, lent_work(theirs, there, work.from, work.to), work.in(Piece{}), after);
}

// In their order: what of them the driver may have taken is waited for, should it refuse another one. `said`: of them, in an error.
Status CudaKind::start_together(const Route& route, CudaCopies& copies, const std::string& said) {
  const Range range("isthmus: cuda copies");
  const char* call = "cuMemcpyBatchAsync";
  CUresult result = CUDA_ERROR_NOT_SUPPORTED;
  if (together_refused_.load(std::memory_order_relaxed) < kMostRefused) {
    result = copy_jointly(api_, copies, route.stream);
    result == CUDA_SUCCESS ? together_refused_.store(0) : static_cast<void>(++together_refused_);
  }
  if (result == CUDA_ERROR_NOT_SUPPORTED) {
    call = "cuMemcpyAsync";
    result = CUDA_SUCCESS;
    for (std::size_t i = 0; i < copies.sizes.size() && result == CUDA_SUCCESS; ++i)
      result = api_.cuMemcpyAsync(copies.to[i], copies.from[i], copies.sizes[i], route.stream);
  }
  if (result == CUDA_SUCCESS) {
    call = "cuEventRecord";
    result = leave(route, true);
    if (result == CUDA_SUCCESS) return {};
  } else {
    api_.cuStreamSynchronize(route.stream);
  }
  return cuda_error(api_, result, std::string(call) + " for " + said);
}

Result<Ticket> CudaKind::copy_together(std::span<const LentCopy> copies) {
  CudaContext& context = static_cast<const CudaBorrowed&>(*copies.front().memory).context;
  CudaCopies all;
  for (const LentCopy& copy : copies) {
    const auto& memory = static_cast<const CudaBorrowed&>(*copy.memory);
    // Of managed memory the driver wants to be told where it is.
    if (&memory.context != &context || facts_.of(copy.from).memory_class == MemoryClass::managed)
      return Status{IST_ERR_ARGUMENT, "copies of managed memory, or of several contexts, are not started together"};
    all.to.push_back(memory.address + copy.loan.offset);
    all.from.push_back(copy.from.object + copy.from.offset.value);
    all.sizes.push_back(static_cast<std::size_t>(copy.from.size.value));
  }
  const std::string said = std::to_string(copies.size()) + " copies, the first of " + describe_piece(copies.front().from);
  const ContextScope scope(api_, context);
  IST_TRY(scope.status());
  const Result<Route> route = plan(context, CopyDirection::between_devices, Ticket{});
  if (!route.ok()) return route.status();
  const std::uint64_t id = route->ticket->id();
  const Status started = start_together(*route, all, said);
  if (started.ok()) return under_way(*route->ticket, id);
  give_back(*route->ticket);
  return started;
}

}  // namespace ist
