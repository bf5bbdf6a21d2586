// CUDA memory of other processes of this host, opened for copies, and kept open for the next message.
//
// Who calls this : CudaKind owns one; request/ through Lending.
// Threads        : any; a thread of its own opens and closes, since the driver takes milliseconds for either.
// Ownership      : what is open belongs to whoever holds it, this cache among them; contexts, links and driver outlive it.
// Errors         : what cannot be opened is logged once, with the driver's reason.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "memory/cuda/cuda_links.hpp"
#include "memory/cuda/cuda_mapping.hpp"
#include "memory/cuda/cuda_quiet.hpp"

namespace ist {

class CudaBorrowing {
 public:
  // Finds the context of a piece of this process, device memory or page-locked; an error for any other.
  using ContextOf = std::function<Result<CudaContext*>(const Piece&)>;
  CudaBorrowing(const CudaApi& api, CudaContexts& contexts, CudaLinks& links, CudaQuiet& quiet, ContextOf context_of)
      : api_(api), contexts_(contexts), links_(links), quiet_(quiet), context_of_(std::move(context_of)) {}
  ~CudaBorrowing();
  CudaBorrowing(const CudaBorrowing&) = delete;
  CudaBorrowing& operator=(const CudaBorrowing&) = delete;

  std::shared_ptr<Borrowed> borrow(const Loan& loan, Rank lender, const Piece& own);
  bool opening(const Loan& loan, Rank lender, const Piece& own);
  // Lending::keep(), but for who copies.
  Result<std::shared_ptr<CudaBorrowed>> keep(const Loan& loan, Rank lender, const Piece& own);
  void hear(const Loan& loan, Rank lender);
  bool same_device(const Loan& loan, const Piece& own) const;
  // So many bytes stay mapped for later messages.
  void set_limit(Bytes limit);

 private:
  struct Key {
    Rank lender;
    std::uint64_t number;  // of the allocation, or of the pool
    CudaContext* context;
    auto operator<=>(const Key&) const = default;
  };
  struct Mapping {
    enum class State : std::uint8_t { opening, mapped, refused };
    State state = State::opening;
    std::uint64_t start = 0;  // none of a pool
    std::uint64_t size = 0;
    std::uint64_t used = 0;      // the count of borrow() when it was last asked for
    std::uint64_t ordered = 0;   // and when it was first
    int keepers = 0;             // who wait for it, or hold it until they let it go
    Status why;                  // it was refused
    DoorAddress door;            // of the lender
    std::int32_t borrower = -1;  // who this is, to it
    std::shared_ptr<CudaBorrowed> memory;
  };
  struct Order {
    Key key;
    Loan loan;
    std::uint64_t number;
  };
  // A piece of a pool is imported once, however many messages use it at a time.
  struct OpenPiece {
    CUdeviceptr address = 0;
    int users = 0;
  };
  // What has not been used for a while.
  struct Idle {
    Key key;
    std::uint64_t ordered = 0;
    DoorAddress door;
    std::int32_t borrower = -1;
    bool ended = false;
  };
  using PieceKey = std::pair<const CudaBorrowed*, std::uint64_t>;  // the pool, and the allocation
  // To be let go without the lock, which whoever lets go of the last one takes.
  using Dropped = std::shared_ptr<CudaBorrowed>;
  static Key key_of(const Loan& loan, Rank lender, CudaContext& context);
  std::map<Key, Mapping>::iterator find(const Key& key, const Loan& loan, std::vector<Dropped>& dropped);
  Result<std::shared_ptr<CudaBorrowed>> take(const Key& key, Mapping& mapping, const Loan& loan);
  void stop_keeping(const Key& key, const CudaBorrowed& memory);
  std::optional<std::shared_ptr<CudaBorrowed>> look_up(const Key& key, const Loan& loan, std::vector<Dropped>& dropped);
  bool start_thread();
  void order(const Key& key, const Loan& loan);
  void forget_ended(const Loan& loan, Rank lender, std::vector<Dropped>& dropped);
  void forget_least_used(std::vector<Dropped>& dropped);
  Dropped drop(std::map<Key, Mapping>::iterator mapping);
  void close(std::unique_ptr<CudaBorrowed> memory);
  bool closing(const Loan& loan, Rank lender) const;
  std::deque<Order>::iterator next_order();
  void work();
  // cuda_ends.cpp
  bool keeps_any() const;
  std::vector<Idle> idle();
  void ask_lender(std::span<Idle> of_one) const;
  void let_go_of_ended();
  void open(const Order& order);
  bool names_nothing_again(const Key& key);
  void say_refused(const Order& order, const Status& why) const;
  std::shared_ptr<CudaBorrowed> hold(std::unique_ptr<CudaBorrowed> memory);
  std::shared_ptr<CudaBorrowed> piece_of(const std::shared_ptr<CudaBorrowed>& pool, const Loan& loan);
  void let_go(const CudaBorrowed& piece);

  const CudaApi& api_;
  CudaContexts& contexts_;
  CudaLinks& links_;
  CudaQuiet& quiet_;
  const ContextOf context_of_;
  std::mutex mutex_;
  std::map<Key, Mapping> mappings_;
  std::map<PieceKey, OpenPiece> pieces_;
  std::uint64_t borrows_ = 0;
  std::uint64_t idle_since_ = 0;  // borrows_ at the last look for what is not used
  std::optional<Key> asked_to_;   // where that stopped
  Bytes mapped_;
  Bytes limit_ = mebibytes(32768);
  std::condition_variable wake_;
  std::condition_variable settled_;  // an order came to something, or to nothing
  std::deque<Order> orders_;
  std::set<Key> named_nothing_;
  std::vector<std::unique_ptr<CudaBorrowed>> unused_;  // to be unmapped
  std::vector<const CudaBorrowed*> closing_;           // what waits until the driver may be asked to close it
  Bytes closing_bytes_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace ist
