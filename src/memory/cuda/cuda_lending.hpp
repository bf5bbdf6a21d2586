// CUDA memory of this process lent to others of this host: what cudaMalloc gave by the driver's handle (CUDA IPC), what the program
// mapped by a descriptor, and what a pool gave by that pool's descriptor, where its owner made them so that they can be exported.
//
// Who calls this : CudaKind owns one; request/ through Lending.
// Threads        : any; the door's own thread answers borrowers.
// Ownership      : looks at the user's memory, and holds none of it; contexts, links and driver outlive it.
// Errors         : what cannot be lent is none, and logged once with the driver's reason where that is unexpected.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "memory/cuda/cuda_door.hpp"
#include "memory/cuda/cuda_links.hpp"
#include "memory/cuda/cuda_pointer.hpp"

namespace ist {

// Why memory is not lent.
enum class NotLent : std::uint8_t {
  not_exportable,  // the driver does not export what its allocator gives, or gave so
  in_pieces,       // the message lies in several mappings
  short_lived,     // all of its pool is freed again and again
  not_opened       // its borrower has said that he cannot open it
};

class CudaLending {
 public:
  CudaLending(const CudaApi& api, CudaContexts& contexts, CudaLinks& links, const KeptFacts& facts)
      : api_(api), contexts_(contexts), links_(links), facts_(facts) {}
  ~CudaLending();
  CudaLending(const CudaLending&) = delete;
  CudaLending& operator=(const CudaLending&) = delete;

  std::optional<Loan> lend(const Piece& piece, Rank borrower, LoanFor use);
  // Of memory that lend() has just given no loan of.
  NotLent why_not(const PointerFacts& facts, Rank borrower);
  // Where this process answers what CudaLinks asks of it; zeros: nowhere.
  DoorAddress door();

 private:
  // Made while a message keeps the memory alive, and handed over at the door: there the program may be freeing it, which the driver does
  // not bear. Who does not come for its own in time gets another with a later loan.
  struct Export {
    Result<FileDescriptor> descriptor;
    std::chrono::steady_clock::time_point until;
  };
  struct Exports {
    std::map<Rank, Export> waiting;
    std::set<Rank> made_for;
  };
  struct Lent {
    bool possible = false;
    Loan::Way way = Loan::Way::handle;
    std::array<std::byte, 64> handle{};
    std::uint64_t start = 0;
    std::uint64_t size = 0;
    std::uint64_t pool = 0;
    std::set<Rank> borrowers;
    std::set<Rank> unable;  // have said that they cannot open it
    Exports exports;
  };
  // Of one pool, as long as something lent of it is alive: the driver may give its handle to the next pool.
  struct LentPool {
    CUmemoryPool handle = nullptr;
    std::map<Rank, std::uint64_t> asked;  // loans of its memory, to whom
    std::set<Rank> borrowers;
    std::set<Rank> unable;
    Exports exports;
  };
  bool open_door();
  Lent& lent(const PointerFacts& facts);
  void share_handle(const PointerFacts& facts, Lent& made) const;
  void share_mapping(const PointerFacts& facts, Lent& made) const;
  void share_piece(const PointerFacts& facts, Lent& made);
  std::uint64_t number_of(const PointerFacts& facts);
  bool is_alive(std::uint64_t allocation, const Lent& lent, CUmemoryPool pool) const;
  bool has_witness(std::uint64_t pool) const;
  bool is_worth_opening(const LentPool& pool, Rank borrower) const;
  void look_for_ended();
  // It was freed; the next one.
  std::map<std::uint64_t, Lent>::iterator end_loan(std::map<std::uint64_t, Lent>::iterator ended);
  void end_pool(std::uint64_t pool);
  void tell_ended(Loan& loan, Rank borrower);
  void export_for(Lent& lent, Rank borrower, LoanFor use);
  Result<FileDescriptor> export_mapping(std::uint64_t start) const;
  Result<FileDescriptor> export_pool(CUmemoryPool pool) const;
  // In the door's thread.
  std::optional<Door::Answer> answer(const DoorNote& asked, std::shared_ptr<void>& kept);
  Result<FileDescriptor> take_export(const DoorNote& asked);
  bool close_old_exports();
  void note_unable(const DoorNote& note);
  // cuda_ends.cpp
  struct Witness {
    std::uint64_t allocation = 0;
    std::uint64_t start = 0;
  };
  void add_witnesses(std::uint64_t number, std::vector<Witness>& witnesses);
  void look_at(const EndQuestion& question);
  Door::Answer which_ended(const DoorNote& asked);

  const CudaApi& api_;
  CudaContexts& contexts_;
  CudaLinks& links_;
  const KeptFacts& facts_;
  std::mutex mutex_;
  std::map<std::uint64_t, Lent> lent_;       // by allocation
  std::uint64_t last_looked_ = 0;            // allocation at which look_for_ended() stopped
  std::map<std::uint64_t, LentPool> pools_;  // by number
  std::uint64_t pools_numbered_ = 0;
  std::map<CUmemoryPool, int> short_lives_;          // in turn, of pools with this handle
  std::map<Rank, std::deque<std::uint64_t>> ended_;  // not yet told
  bool door_tried_ = false;
  std::unique_ptr<Door> door_;
};

}  // namespace ist
