// An invented device whose copies are over at once, take memory of the host, and go wherever this process's memory is: what a rank
// lends is its own memory. For tests of what becomes of messages where memory runs out.
//
// Who calls this : keeping_test.cpp, keeping_devices_test.cpp, keeping_sends_test.cpp, keeping_channels_test.cpp.
// Threads        : one.
// Ownership      : nothing; pieces are views of the test's data. A block is the test's, too.
// Errors         : std::bad_alloc.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "invented_kind.hpp"
#include "memory/lending.hpp"

namespace ist::test {

class StagedKind : public InventedKind, public Lending {
 public:
  using InventedKind::InventedKind;
  static Piece piece_of(const void* address, std::size_t size) {
    Piece piece = host_piece(address, Bytes{size});
    piece.kind = kId;
    piece.device = 0;
    return piece;
  }
  static Loan loan_of(const Piece& piece) {
    Loan loan;
    loan.allocation = 1;
    loan.start = piece.object;
    loan.size = piece.size.value;
    return loan;
  }
  bool late = false;  // copies are over only when it is so no more
  // Lent half by half, in place of buffers; null: those are lent.
  std::vector<std::byte>* block = nullptr;

  std::string_view name() const override { return "staged"; }
  Result<Ticket> copy(const Piece& to, const Piece& from, const Ticket&) override {
    // Memory is taken, as by any driver, and used, or the compiler leaves it out.
    const std::vector<std::byte> taken(from.address(), from.address() + to.size.value);
    std::memcpy(to.address(), taken.data(), taken.size());
    return late ? Ticket{this, 1} : Ticket{};
  }
  Result<bool> finished(Ticket& ticket) override {
    if (!late) ticket.forget();
    return !late;
  }
  void drop(std::uint64_t) override {}
  Lending* lending() override { return this; }

  void set_limit(Bytes) override {}
  void set_bounce_limit(Bytes) override {}
  std::optional<Loan> lend(const Piece& piece, Rank, LoanFor) override {
    return block == nullptr ? std::optional{loan_of(piece)} : std::nullopt;
  }
  std::optional<Bounce> bounce(const Piece&, Rank) override {
    if (block == nullptr) return std::nullopt;
    Bounce given{std::make_shared<const Piece>(piece_of(block->data(), block->size())), {}};
    given.loan = loan_of(*given.block);
    given.loan.part = block->size() / 2;
    return given;
  }
  std::optional<Bounce> part_block(const Piece&, Rank) override { return std::nullopt; }
  std::shared_ptr<Borrowed> borrow(const Loan&, Rank, const Piece&) override { return std::make_shared<Opened>(); }
  bool opening(const Loan&, Rank, const Piece&) override { return false; }
  std::string why_not_lent(const Piece&, Rank) override { return {}; }
  Result<std::shared_ptr<Borrowed>> keep(const Loan&, Rank, const Piece&, Bytes) override {
    return Status{IST_ERR_UNSUPPORTED, "an invented kind keeps nothing"};
  }
  Status changes_words_of(const Loan&, Rank, const Piece&) override { return {}; }
  void hear(const Loan&, Rank) override {}
  Result<Ticket> copy_to(Borrowed&, const Loan& loan, const Piece& from, const Ticket& after) override {
    return copy(there(loan, from.size), from, after);
  }
  Result<Ticket> copy_together(std::span<const LentCopy> copies) override {
    for (const LentCopy& each : copies) static_cast<void>(copy(there(each.loan, each.from.size), each.from, Ticket{}));
    return Ticket{};
  }
  Result<Ticket> copy_from(Borrowed&, const Loan& loan, const Piece& to, const Ticket& after) override {
    return copy(to, there(loan, to.size), after);
  }
  Result<Ticket> pack_lent(Borrowed&, const Loan&, const PackWork&, const Ticket&) override { return no_layouts(); }
  Result<Ticket> relay_lent(Borrowed&, const Loan&, const LentForm&, const PackWork&, const Ticket&) override {
    return no_layouts();
  }
  bool serves(const Piece&) override { return true; }
  bool same_device(const Loan&, const Piece&) override { return false; }
  std::vector<LinkFacts> try_links() override { return {}; }

 private:
  struct Opened final : Borrowed {
    std::byte* base() const override { return nullptr; }
  };
  static Piece there(const Loan& loan, Bytes size) {
    return piece_of(reinterpret_cast<const void*>(loan.start + loan.offset), size.value);
  }
  static Status no_layouts() { return {IST_ERR_UNSUPPORTED, "an invented kind packs nothing"}; }
};

}  // namespace ist::test
