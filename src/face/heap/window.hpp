// A window: memory that the PEs of a communicator already have, each its own, opened in the processes of all the others.
//
// Who calls this : api_window.cpp; face/message/world, which owns windows.
// Threads        : create() and end() one at a time per window; the rest any.
// Ownership      : owns the mappings of the others' memory; the own memory is the user's.
// Errors         : of collective calls: the same at every PE, but for what one PE found, which the others quote.
#pragma once

#include <isthmus/window.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "face/heap/part_service.hpp"
#include "face/heap/team.hpp"
#include "memory/host/mapped_file.hpp"
#include "memory/lending.hpp"

namespace ist {

class Window final : public Team {
 public:
  static Result<std::unique_ptr<Window>> create(World& world, const Communicator& parent, const ist_buffer& memory,
                                                std::uint64_t bytes);
  ~Window() override;
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  // The last call on it.
  Status end();
  void fill(ist_window_view& view) const;

  int pe() const { return comm().rank(); }
  int pes() const { return comm().size(); }
  KindId kind() const { return kind_; }
  bool on_host() const { return kind_ == KindId::host; }
  // Who does what is done in that PE's memory, or to its words; null where processors or this PE's device do.
  PartService* service_of_words(Pe pe) const { return service_for(pe); }
  PartService* service_of_stores(Pe pe) const { return service_for(pe); }
  PartService* service_for(Pe pe) const { return part(pe).unreached.ok() ? nullptr : service_.get(); }
  // When the world ends: no thread is left.
  void stop_serving() {
    if (service_) service_->leave();
  }
  Status quiet() override;
  // Why the addresses of that PE's memory, or of some PE's, lead nowhere; ok where they lead somewhere.
  Status has_addresses(Pe pe) const;
  Status has_addresses() const;
  // Of that byte of that PE's, as far as alignment goes.
  std::uint64_t address_of(Pe pe, Offset offset) const { return part(pe).aligned_as + offset.value; }
  Status check(int pe) const;
  // Are those bytes of that PE's registered?
  Status check(int pe, std::uint64_t offset, Bytes size) const;
  std::byte* at(Pe pe, Offset offset) const { return part(pe).base + offset.value; }
  Piece piece(Pe pe, Offset offset, Bytes size) const;
  Status changes_words_of(Pe pe) const { return part(pe).lack; }

 private:
  struct Part {
    std::byte* base = nullptr;  // in this process
    Bytes bytes;
    MappedPart mapped;               // of another PE's host memory
    std::shared_ptr<Borrowed> kept;  // of another PE's device memory
    Status lack;                     // why none of its words can be changed
    Status unreached;                // why this PE's device does not reach it; ok where it does
    std::uint64_t aligned_as = 0;    // its first byte's address, by the last bits
  };
  // What each PE says of its own.
  struct Card {
    std::uint64_t bytes = 0;
    std::uint64_t offset = 0;  // in its file
    std::uint64_t address = 0;
    std::uint32_t kind = 0;
  };
  Window(World& world, std::unique_ptr<Communicator> comm) : Team(world, std::move(comm), "ist_window") {}
  Part& part(Pe pe) { return parts_[static_cast<std::size_t>(pe.value)]; }
  const Part& part(Pe pe) const { return parts_[static_cast<std::size_t>(pe.value)]; }
  bool is_other(int pe) const { return pe != this->pe() && part(Pe{pe}).bytes > Bytes{}; }
  Status open(const ist_buffer& memory, Bytes bytes);
  // What this PE has; `file`: of host memory.
  Status look_at_own(const ist_buffer& memory, Bytes bytes, FilePart& file);
  Status refused_on_host(const Status& why) const;
  Status meet(Card mine, std::vector<Card>& all);
  Status map_files(const FilePart& file, const std::vector<Card>& all);
  Status map_devices();
  // What another process needs to open this PE's memory; the rank may be given none.
  Status lend_to(int pe, Lending& lending, Loan& loan);
  // Neither are others' device memory opened here nor this PE's elsewhere.
  bool opens_nothing() const;
  Status borrow_from(int pe, Lending& lending, const Loan& loan);
  // Where somebody does not reach another one's.
  Status serve();
  // Where each PE's service is rung for.
  Result<PartService::Bells> make_bells();
  // Collective: nobody reaches the others' any more when it returns.
  Status let_go(const char* call);

  KindId kind_ = KindId::host;
  Piece own_;                     // of device memory; where this PE gives none, a byte of the library's own
  std::optional<Piece> anchor_;   // that byte
  std::vector<Part> parts_;       // by PE
  std::unique_ptr<Space> bells_;  // of the services; where there are any, as for service_
  std::unique_ptr<PartService> service_;
};

}  // namespace ist
