// CUDA memory lent to, and borrowed from, other processes of this host, by the driver's handles for that (CUDA IPC).
//
// Who calls this : CudaKind owns one; request/ through Lending.
// Threads        : any; a thread of its own maps and unmaps, since the driver takes milliseconds for either.
// Ownership      : mappings belong to whoever holds them, this cache among them; contexts and driver outlive it.
// Errors         : what cannot be mapped is logged once, with the driver's reason.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>
#include <vector>

#include "memory/cuda/cuda_context.hpp"
#include "memory/cuda/cuda_pointer.hpp"
#include "memory/lending.hpp"

namespace ist {

class CudaBorrowed : public Borrowed {
 public:
  CudaBorrowed(CudaContext& in, CUdeviceptr at, Bytes length) : context(in), address(at), size(length) {}
  CudaContext& context;
  const CUdeviceptr address;
  const Bytes size;
};

class CudaLending {
 public:
  // Finds the context of a piece of this process, device memory or page-locked; an error for any other.
  using ContextOf = std::function<Result<CudaContext*>(const Piece&)>;
  CudaLending(const CudaApi& api, CudaContexts& contexts, ContextOf context_of)
      : api_(api), contexts_(contexts), context_of_(std::move(context_of)) {}
  ~CudaLending();
  CudaLending(const CudaLending&) = delete;
  CudaLending& operator=(const CudaLending&) = delete;

  std::optional<Loan> lend(const Piece& piece, Rank borrower);
  std::shared_ptr<Borrowed> borrow(const Loan& loan, Rank lender, const Piece& own);
  void hear(const Loan& loan, Rank lender);
  bool same_device(const Loan& loan, const Piece& own) const;
  // So many bytes stay mapped for later messages.
  void set_limit(Bytes limit);

 private:
  struct Lent {
    bool possible = false;
    CUipcMemHandle handle{};
    std::uint64_t start = 0;
    std::set<Rank> borrowers;
  };
  struct Key {
    Rank lender;
    std::uint64_t allocation;
    CudaContext* context;
    auto operator<=>(const Key&) const = default;
  };
  struct Mapping {
    enum class State : std::uint8_t { opening, mapped, refused };
    State state = State::opening;
    std::uint64_t start = 0;
    std::uint64_t size = 0;
    std::uint64_t used = 0;  // the count of borrow() when it was last asked for
    std::shared_ptr<CudaBorrowed> memory;
  };
  struct Order {
    Key key;
    CUipcMemHandle handle;
    Bytes size;
  };
  Lent& lent(const PointerFacts& facts);
  void look_for_ended();
  // To be let go without the lock, which whoever lets go of the last one takes.
  using Dropped = std::shared_ptr<CudaBorrowed>;
  void forget_ended(const Loan& loan, Rank lender, std::vector<Dropped>& dropped);
  void forget_least_used(std::vector<Dropped>& dropped);
  Dropped drop(std::map<Key, Mapping>::iterator mapping);
  void work();
  void open(const Order& order);
  std::shared_ptr<CudaBorrowed> hold(CudaContext& context, CUdeviceptr address, Bytes size);
  void close(const CudaBorrowed& memory) const;

  const CudaApi& api_;
  CudaContexts& contexts_;
  const ContextOf context_of_;
  std::mutex mutex_;
  std::map<std::uint64_t, Lent> lent_;               // by allocation
  std::uint64_t last_looked_ = 0;                    // allocation at which look_for_ended() stopped
  std::map<Rank, std::deque<std::uint64_t>> ended_;  // not yet told
  std::map<Key, Mapping> mappings_;
  std::uint64_t borrows_ = 0;
  Bytes mapped_;
  Bytes limit_ = mebibytes(32768);
  std::condition_variable wake_;
  std::deque<Order> orders_;
  std::vector<std::unique_ptr<CudaBorrowed>> unused_;  // to be unmapped
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace ist
