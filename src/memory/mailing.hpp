// Messages of few bytes from one device into the memory of another, by the resident workers of both (workers.hpp), without a copy of the
// driver: each worker leaves them in places of the other's mailbox.
//
// Who calls this : request/mail.cpp. Who implements it: cuda/.
// Threads        : any.
// Ownership      : a box belongs to whoever holds it; the pieces must stay until the orders about them are over.
// Errors         : what a worker cannot do is none, and then the driver copies; of one that failed, its words.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "memory/lending.hpp"
#include "memory/memory_kind.hpp"

namespace ist {

// Which place of a mailbox, and the number in its packets. The bytes' own length is the envelope's to tell.
struct Letter {
  std::uint32_t place = 0;
  std::uint32_t number = 0;
};

class Mailing {
 public:
  static constexpr std::uint32_t kPlaces = 16;
  // Numbers come again after 2^31 messages. A place is cleaned at least once in so many: then none of its packets can be taken for a later
  // message's.
  static constexpr std::uint64_t kEpoch = std::uint64_t{1} << 30;

  virtual ~Mailing() = default;
  // Empty places for one sender, on the device that was allowed a worker. Null: there is none, or no memory.
  virtual std::shared_ptr<const Piece> make_box() = 0;
  // The number of the n-th message to one mailbox.
  virtual std::uint32_t number_of(std::uint64_t message) const = 0;
  // What a place has of so many bytes.
  virtual Piece packets(const Piece& box, std::uint32_t place, Bytes size) const = 0;
  virtual Bytes offset_of(std::uint32_t place) const = 0;

  // Does the worker on that piece's device run, and will it for a while? If not, there is to be one for the next message, unless messages
  // are rare.
  virtual bool awake(const Piece& piece) = 0;
  // Could a worker carry that piece?
  virtual bool fits(const Piece& piece) const = 0;
  // Into a place of an opened mailbox. Finished when the bytes have been read. None: by the driver.
  virtual std::optional<Ticket> post(const Piece& from, Borrowed& box, const Loan& loan, const Letter& letter) = 0;
  // Out of a place. `cleans`: the place is empty afterwards. None: by the driver.
  virtual std::optional<Ticket> take(const Piece& to, const Piece& box, const Letter& letter, bool cleans) = 0;
  // Of such a ticket, instead of finished(): none while it is under way; then whether the bytes were there. If not, they may be later.
  virtual Result<std::optional<bool>> taken(Ticket& ticket) = 0;
  // By the processor: `packets` as long as packets() says.
  virtual void pack(std::span<const std::byte> bytes, std::uint32_t number, std::span<std::byte> packets) const = 0;
  // False: not all of them are there.
  virtual bool unpack(std::span<const std::byte> packets, std::uint32_t number, std::span<std::byte> bytes) const = 0;
};

}  // namespace ist
