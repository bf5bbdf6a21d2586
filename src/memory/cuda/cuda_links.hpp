// Whether the way from one device to another's memory can be believed: a pattern is read over it and written over it, and both sides
// compare every byte. There are machines where the driver offers such a way, and what goes over it comes out wrong.
//
// Who calls this : cuda_borrowing.cpp, before the first loan from a device is opened; cuda_channels.cpp, before kernels store over it;
//                  cuda_lending.cpp, for the other side of that; `isthmus info --links` through the kind.
// Threads        : any; never on the way of a message, since it allocates, and waits for the device.
// Ownership      : a block of each context it was used in, and those of others that it has opened, until the end.
// Errors         : why the way is off, and what to do. What could not be tried is an error, too, and is tried again.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "memory/cuda/cuda_context.hpp"
#include "memory/lending.hpp"

namespace ist {

// What helps where one process cannot open another's memory.
inline constexpr const char* kNamespaces =
    "; where ranks are in containers, give them one IPC, one PID and one network namespace";

class CudaLinks {
 public:
  using Uuid = std::array<std::byte, 16>;
  CudaLinks(const CudaApi& api, CudaContexts& contexts);
  ~CudaLinks();
  CudaLinks(const CudaLinks&) = delete;
  CudaLinks& operator=(const CudaLinks&) = delete;

  // The way from that context's device to the one of the loan: tried once for each two devices, with the help of the lender.
  Status believe(CudaContext& context, const Loan& loan, Rank lender, const std::atomic<bool>& ends);
  // The same within this process.
  Status believe_within(CudaContext& context, const Uuid& other);
  // Is it known to be off?
  bool off(const CudaContext& context, const Uuid& other) const { return off(context.device, other); }
  bool off(int device, const Uuid& other) const;
  // "the link between cuda device 0 and the GPU whose UUID begins with ..., of rank 1"
  static std::string words_for(const CudaContext& context, const Uuid& other, Rank lender);
  // The lender's side; none: not about this.
  std::optional<Door::Answer> answer(const DoorNote& asked, std::shared_ptr<void>& kept);
  std::vector<LinkFacts> try_all();

 private:
  class Bench;
  using Pair = std::pair<int, Uuid>;  // own ordinal, and the other
  Result<std::shared_ptr<Bench>> bench(CudaContext& context);
  Status try_with_lender(CudaContext& context, const Loan& loan, const std::atomic<bool>& ends, bool& tried);
  Status try_within(int from, int to);
  // What the trial has found; said once where that is bad.
  Status note(const CudaContext& context, const Uuid& other, Rank lender, const Status& found);
  Result<Door::Answer> prepare(const DoorNote& asked, std::shared_ptr<void>& kept);

  const CudaApi& api_;
  CudaContexts& contexts_;
  mutable std::mutex mutex_;
  std::map<Pair, Status> known_;
  std::vector<std::unique_ptr<Bench>> spare_;
  struct Opened {
    CudaContext* context;
    CUdeviceptr address;
  };
  std::vector<Opened> opened_;
};

}  // namespace ist
