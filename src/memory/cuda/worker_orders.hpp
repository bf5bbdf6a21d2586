// A process's half of the board that it shares with a worker (worker_protocol.hpp): gives orders, and finds out when they are done.
//
// Who calls this : cuda_workers.cpp; tests, with a thread that plays the worker.
// Threads        : one at a time.
// Ownership      : the board is the caller's and outlives this. Bytes out of the device come to `to` inside done(); those into it are
//                  taken inside put(), whose source is free afterwards.
// Errors         : none; what never gets done is for the caller to notice.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "memory/cuda/worker_board.hpp"

namespace ist {

class WorkerOrders {
 public:
  explicit WorkerOrders(worker::Board& board) : board_(board) {}

  // An order's place, and its number in 32 bits, which tells it from others that had the place before.
  struct Name {
    std::uint32_t slot;
    std::uint32_t number;
  };
  // Bytes of the device, from that address on; none: as many orders as there are places are under way.
  std::optional<Name> bring(std::uint64_t address, std::byte* to, std::uint32_t bytes);
  // Bytes of the host into the device.
  std::optional<Name> put(std::uint64_t address, const std::byte* from, std::uint32_t bytes);
  // Bytes of the device into a place of another device's mailbox, or out of one here; `letter`: the number that is in its packets.
  std::optional<Name> post(std::uint64_t address, std::uint64_t place, std::uint32_t letter, std::uint32_t bytes);
  std::optional<Name> take(std::uint64_t address, std::uint64_t place, std::uint32_t letter, std::uint32_t bytes,
                           bool cleans);
  // How many orders to take may still keep the worker waiting.
  unsigned waits() const;
  // To leave at once, after all orders so far; nobody hears of it.
  void dismiss() {
    static_cast<void>(give({Place::State::dropped, worker::kIntoDevice, false, false, 0, 0, 0, nullptr}, {}));
  }
  // Is it under way, and is that the one?
  bool knows(Name name) const;
  // True once all is where it should be.
  bool over(Name name);
  // Of one that is over: was what it should take not there?
  bool missing(Name name) const { return knows(name) && places_[name.slot].missing; }
  // True once all is where it should be, and the place is free then.
  bool done(Name name);
  // Nobody asks any more: its bytes go nowhere, and the place is free once the worker is through with it.
  void drop(Name name);

  // Of a worker that has left, and will not come again: a copy that it did not make, for somebody else to make; none: there is no other.
  struct Untaken {
    Name name;
    std::uint64_t address;
    std::byte* to;                 // of bytes out of the device
    std::vector<std::byte> bytes;  // into it, or as many as come out of it
  };
  std::optional<Untaken> untaken();
  void made(Name name);

  // Is that launch on the device? It may have left since.
  bool begun(std::uint64_t launch) const;
  // Where the next launch has to begin, if that one has ended; it takes no order any more then.
  std::optional<std::uint64_t> ended(std::uint64_t launch) const;

 private:
  struct Place {
    enum class State : std::uint8_t { free, asked, dropped } state = State::free;
    std::uint32_t what = 0;  // worker::kIntoDevice and so on
    bool over = false;
    bool missing = false;
    std::uint32_t number = 0;
    std::uint32_t bytes = 0;
    std::uint32_t taken = 0;  // packets that have come and are where they should be
    std::byte* to = nullptr;
  };
  // Where it is to read and write.
  struct Where {
    std::uint64_t address = 0;
    const std::byte* from = nullptr;  // of bytes that go with the order
    std::uint64_t place = 0;
    std::uint32_t letter = 0;
  };
  std::optional<Name> give(Place place, const Where& where);
  bool look(std::uint32_t slot);
  void clean(std::uint32_t slot);

  worker::Board& board_;
  std::uint64_t next_ = 0;
  std::array<Place, worker::kSlots> places_{};
};

}  // namespace ist
