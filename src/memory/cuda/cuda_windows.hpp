// Windows onto device memory through which the processor copies few bytes itself, by gdrcopy, where that is installed: what a driver's
// copy takes to begin and to be asked after is then saved.
//
// Who calls this : cuda_kind.
// Threads        : any; one lock, held for the length of a copy, which takes at most some microseconds.
// Ownership      : owns session and windows. Memory that is freed takes its windows along: an allocation is known by the driver's number
//                  for it, which is never used again, and what is of another number is let go of before it is opened anew. What is
//                  open stays pinned until then, 64 windows at most.
// Errors         : none: where it cannot be done the driver copies. Why, is logged once, and told by `isthmus info`.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>
#include <set>
#include <string>

#include "memory/cuda/cuda_context.hpp"
#include "memory/cuda/cuda_pointer.hpp"
#include "memory/cuda/gdr_api.hpp"

namespace ist {

class CudaWindows {
 public:
  // The longest copies that are quicker so. gdrcopy's own figures (its README: Tesla P100) are 0.8 us for 8 KiB into the device, and out
  // of it, where each load crosses the bus, 3.5 us for 512 bytes and 10.5 us for 4 KiB; a driver's copy costs 6 us (choose.hpp,
  // device_copy_alpha). On the safe side of both, since no machine of ours has it.
  static constexpr Bytes kMostInto = kibibytes(8);
  static constexpr Bytes kMostOut{512};

  explicit CudaWindows(const CudaApi& api, std::string file = gdr::kLibrary) : cuda_(api), file_(std::move(file)) {}
  ~CudaWindows();
  CudaWindows(const CudaWindows&) = delete;
  CudaWindows& operator=(const CudaWindows&) = delete;

  // Is a copy of so many bytes for a window, if there are any? The library is looked for at the first one.
  bool serves(CopyDirection direction, Bytes size);
  // Copies; what the memory's streams hold must be over. `memory`: what the driver says of the address. False: nothing was copied.
  bool copy_into(CudaContext& context, const PointerFacts& memory, std::uint64_t address, const void* from, Bytes size);
  bool copy_out(CudaContext& context, const PointerFacts& memory, std::uint64_t address, void* to, Bytes size);

  // Why there are none; or the versions that are there.
  Result<std::string> versions();
  // For tests.
  std::size_t open_windows();

 private:
  struct Window {
    std::uint64_t buffer_id = 0;
    std::uint64_t asked_for = 0;  // an address of that allocation
    std::uint64_t start = 0;      // on the device
    std::uint64_t size = 0;
    gdr::Handle handle;
    std::byte* place = nullptr;  // of the first byte
    void* mapped = nullptr;
    std::uint64_t mapped_size = 0;
  };
  // Under the lock.
  Window* find(CudaContext& context, const PointerFacts& memory, std::uint64_t address, Bytes size);
  Status make(CudaContext& context, const PointerFacts& memory, std::uint64_t address, Bytes size);
  Status map(Window& window) const;
  void close(const Window& window) const;
  void close_others(const PointerFacts& memory);
  void load();

  const CudaApi& cuda_;
  const std::string file_;
  std::once_flag loaded_;
  std::atomic<bool> present_{false};
  std::mutex mutex_;
  gdr::Api api_;
  gdr::Session* session_ = nullptr;
  std::string versions_;
  Status absent_;
  std::list<Window> windows_;       // the last used one first
  std::set<std::uint64_t> closed_;  // allocations that nothing can be mapped of
};

}  // namespace ist
