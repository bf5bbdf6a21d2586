// Device memory that another process of this host opens, and copies to or from: in one copy between devices, or between a device
// and page-locked host memory.
//
// Who calls this : request/: whoever owns device memory lends, the other side borrows. Who implements it: cuda/.
// Threads        : any.
// Ownership      : a loan is a value that travels; what was borrowed stays mapped as long as somebody holds it. Mappings are
//                  kept for the next message, up to a number of bytes; the lender may free its memory at any time outside of
//                  a message.
// Errors         : memory that cannot be lent is no error: the message goes another way.
//
// Between devices the sender copies, not the receiver, because a write to another GPU is the quicker way: from one process to another's memory 8
// bytes with the driver's call and the wait for it take 6.6 us, a read 7.7; 64 KiB 7.5 and 8.0, 4 MiB 18.4 either way. In one process, which has
// both devices open, a read takes 9.3 (two H200, 2026-11-26, tools/peers/who_copies.cu).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "memory/door.hpp"
#include "memory/memory_kind.hpp"

namespace ist {

struct LentForm;
struct PackWork;

// Travels with the clearance of a message; both ranks run the same library.
struct Loan {
  // How the borrower comes to it: by the driver's handle; by a descriptor, which it asks for at the door; or by a pool, whose
  // descriptor it asks for and keeps, and the driver's handle of a piece of it, which it must let go of before it says that the
  // message is over.
  enum class Way : std::uint32_t { handle = 0, descriptor = 1, pool = 2 };
  static constexpr std::size_t kMostEnded = 4;
  std::array<std::byte, 64> handle{};  // the driver's
  std::array<std::byte, 16> device{};  // its UUID
  DoorAddress door;                    // of the lender
  Way way = Way::handle;
  std::int32_t borrower = -1;                     // whom it was made for
  std::uint64_t pool = 0;                         // the lender's number for it, no allocation's and never used again
  std::uint64_t allocation = 0;                   // the lender's driver's number for it, never used again; 0: no loan
  std::uint64_t start = 0;                        // in the lender's addresses
  std::uint64_t size = 0;                         // of the allocation; of one mapping, where the program maps
  std::uint64_t offset = 0;                       // of the message in it
  std::uint64_t part = 0;                         // so many bytes at a time, where it is not the buffer itself; 0: all
  std::array<std::uint64_t, kMostEnded> ended{};  // allocations and pools that were lent before and are freed now; 0: none
};
static_assert(sizeof(Loan) == 192 && std::is_trivially_copyable_v<Loan>);

// A message may also go another way; who prepares wants the memory open, whatever that costs. Who keeps it open may have closed it before,
// and has this one loan. An invitation may never be read: it takes no news with it, and nothing that has to be fetched or given back.
enum class LoanFor { message, preparation, keeping, invitation };

// What came with an envelope; none if that is no loan.
inline Loan loan_in(std::span<const std::byte> payload) {
  Loan loan;
  if (payload.size() == sizeof loan) std::memcpy(&loan, payload.data(), sizeof loan);
  return loan;
}

// An allocation of another process, mapped. Dropping it unmaps once nobody else holds it; no copy may be under way then.
class Borrowed {
 public:
  virtual ~Borrowed() = default;
  // Where loan.start is in this process, for kernels and copies of the device that it was borrowed for; null: it is no memory, but a pool.
  virtual std::byte* base() const = 0;
};

// A block that is lent in place of a buffer, loan.part bytes at a time: into its first half, then into its second, and so on.
struct Bounce {
  std::shared_ptr<const Piece> block;
  Loan loan;
};

// What is known of the way from one device to the memory of another.
struct LinkFacts {
  int from = 0;  // ordinals
  int to = 0;
  bool access = false;  // the driver says that the one can reach the other
  Status pattern;       // what was written and read back is what it should be; or what was not, and what to do
};

// One of several copies that are started together.
struct LentCopy {
  Borrowed* memory = nullptr;
  Loan loan;
  Piece from;
};

class Lending {
 public:
  virtual ~Lending() = default;
  // So many bytes stay mapped for later messages.
  virtual void set_limit(Bytes limit) = 0;
  // What rank `borrower` needs to reach the piece. None: no other process can open such memory, or it would not be worth what opening it takes.
  virtual std::optional<Loan> lend(const Piece& piece, Rank borrower, LoanFor use = LoanFor::message) = 0;
  // Memory of this library's own on the device of `own`, lent where lend() cannot lend that; it comes back when it is let go of. Without
  // a block: all of it is in use. None: there is to be none.
  virtual std::optional<Bounce> bounce(const Piece& own, Rank borrower) = 0;
  // The same beside memory that could be lent, for who takes a long message out of it part by part.
  virtual std::optional<Bounce> part_block(const Piece& own, Rank borrower) = 0;
  virtual void set_bounce_limit(Bytes limit) = 0;
  // The loan of that rank, for copies to or from `own`, a piece of this process that serves() is true of. Null: not mapped, and then it is being mapped by a thread of
  // its own, since that takes milliseconds, or cannot be.
  virtual std::shared_ptr<Borrowed> borrow(const Loan& loan, Rank lender, const Piece& own) = 0;
  // Is what borrow() gave nothing for still being mapped? If not, it never will be.
  virtual bool opening(const Loan& loan, Rank lender, const Piece& own) = 0;
  // Why lend() gave nothing for that piece: whose memory it is, and what its owner can do.
  virtual std::string why_not_lent(const Piece& piece, Rank borrower) = 0;
  // The same memory as borrow() gives, waited for, and open until it is let go of, whatever the limit is; then it is closed. The device
  // of `own` makes copies to and from its first `size` bytes from the loan's offset on, MemoryKind::copy()'s, too. An error says why it
  // cannot be opened. Takes milliseconds, and waits for the lender's door.
  virtual Result<std::shared_ptr<Borrowed>> keep(const Loan& loan, Rank lender, const Piece& own, Bytes size) = 0;
  // Are words of what was lent changed as a whole by the device of `own` (word_changes.hpp), for whoever else changes them?
  virtual Status changes_words_of(const Loan& loan, Rank lender, const Piece& own) = 0;
  // Unmaps what that rank says it has freed; of every loan that comes, borrowed or not.
  virtual void hear(const Loan& loan, Rank lender) = 0;
  // Starts the copy of from.size bytes to the loan, after `after` has finished, as MemoryKind::copy().
  virtual Result<Ticket> copy_to(Borrowed& borrowed, const Loan& loan, const Piece& from, const Ticket& after) = 0;
  // The same of several between devices, all from one device, in one call where a driver has one: that takes less time than one each, and
  // so do the copies. They are over together. After an error none of them is under way.
  virtual Result<Ticket> copy_together(std::span<const LentCopy> copies) = 0;
  // The other way round: to.size bytes from the loan on.
  virtual Result<Ticket> copy_from(Borrowed& borrowed, const Loan& loan, const Piece& to, const Ticket& after) = 0;
  // A kernel of the work's device that packs bytes `from` up to `to` straight into the loan or, if the work unpacks, takes them from
  // there: work.packed is not looked at. After `after`; as Packing::pack_bytes(). `borrowed` was borrowed for the work's memory.
  virtual Result<Ticket> pack_lent(Borrowed& borrowed, const Loan& loan, const PackWork& work, const Ticket& after) = 0;
  // The same of two strided forms, out of lent memory that lies as `theirs` says, without a packed stream between: bytes `from` up to
  // `to` of the work, which unpacks. Fewer than 2^31.
  virtual Result<Ticket> relay_lent(Borrowed& borrowed, const Loan& loan, const LentForm& theirs, const PackWork& work,
                                    const Ticket& after) = 0;
  // Do such copies go by the device alone? Not with pageable host memory, whose bytes a processor moves for the driver.
  virtual bool serves(const Piece& own) = 0;
  // Is what was lent on the very device of `own`, a checked piece of device memory?
  virtual bool same_device(const Loan& loan, const Piece& own) = 0;
  // Tries the link between each two devices of this process, each way. Makes a context on each of them, and takes its time.
  virtual std::vector<LinkFacts> try_links() = 0;
};

}  // namespace ist
