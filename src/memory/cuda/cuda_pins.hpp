// Page-locks the library's own host memory for all CUDA devices.
//
// Who calls this : the pinned pool and the paths, through CudaKind.
// Threads        : any; unpin() waits for all that runs on the device, before unpin_now() CudaQuiet is asked.
// Ownership      : of the locks only; those still held at the end are taken back.
// Errors         : returned by pin(); one that was put off is logged, and such memory is then copied more slowly, and not reached.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <span>

#include "memory/cuda/cuda_context.hpp"
#include "memory/cuda/cuda_quiet.hpp"
#include "memory/memory_kind.hpp"

namespace ist {

// Locking needs a context, and a context costs hundreds of megabytes on its device. A process that has used no device yet
// has not said which one is its own, so its locks are put off until it does: ranks do not all crowd onto device 0, and a
// program that never touches a device pays nothing.
class CudaPins : public Pins {
 public:
  CudaPins(const CudaApi& api, CudaContexts& contexts, CudaQuiet& quiet) : api_(api), contexts_(contexts), quiet_(quiet) {}
  ~CudaPins() override;
  CudaPins(const CudaPins&) = delete;
  CudaPins& operator=(const CudaPins&) = delete;
  Status pin(void* address, Bytes size) override;
  // As pin(), of memory that is there before the first context, and looks for none.
  void pin_with_first(void* address, Bytes size);
  void unpin(void* address) override;
  bool unpin_now(void* address) override;
  Result<std::byte*> mapped(void* address, int device) override;
  // Where kernels of that context find that stretch of what was pinned here; none where it is not, is not locked yet, or is not mapped. The
  // driver is asked once for each pin and context. Without a stretch: 0, where they find any.
  std::optional<std::uint64_t> reached(CudaContext& context, std::span<const std::byte> stretch);
  // A context is there: does what was put off, in the primary context of its device. A user's own would not do, because the
  // locks would end with it unnoticed.
  void start(CudaContext& context);

 private:
  struct Pinned {
    Bytes size;
    bool locked = false;
    std::map<CudaContext*, std::optional<std::uint64_t>>
        places;  // where kernels find its first byte, as far as it was asked
  };
  bool maps(const CudaContext& context) const;
  std::optional<std::uint64_t> ask_place(const CudaContext& context, void* address) const;
  Status lock_pages(void* address, Pinned& pinned);

  const CudaApi& api_;
  CudaContexts& contexts_;
  CudaQuiet& quiet_;
  std::mutex mutex_;
  CudaContext* context_ = nullptr;  // primary
  std::map<void*, Pinned> pinned_;
};

}  // namespace ist
