// The contexts this kind works in, and what it owns inside each: lanes, spare events, one queue for the user.
//
// Who calls this : cuda_kind.cpp, cuda_tickets.cpp, cuda_pins.cpp.
// Threads        : find() from any thread; the contents of a CudaContext under the kind's lock.
// Ownership      : records live until the kind does; primary contexts are retained by the first use and released at the end.
// Errors         : returned, with the device.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "memory/cuda/cuda_api.hpp"
#include "memory/reduction.hpp"

namespace ist {

struct CudaTicket;

// Pack and unpack, strided and listed, near and far, and from strides to strides, by units of 1, 2, 4, 8 and 16 bytes.
inline constexpr std::size_t kPackKernels = 50;

// One internal stream. Copies in it run in order, so that the answer for one of them is an answer for others (cuda_tickets.cpp).
struct CudaLane {
  using Clock = std::chrono::steady_clock;

  CUstream stream = nullptr;
  std::uint32_t unfinished = 0;  // tickets of this lane not yet seen to finish
  std::uint64_t recorded = 0;    // copies whose event is recorded: their numbers count from 1
  std::uint64_t passed = 0;      // all up to this one are over
  std::uint64_t blocked = 0;     // this one was not over when it was asked after, at
  Clock::time_point asked{};
  Clock::time_point leapt{};   // when the last recorded one was asked after and was not over
  CudaTicket* last = nullptr;  // the last recorded one
};

enum class CopyDirection : std::uint8_t { into_device = 0, out_of_device = 1, between_devices = 2 };

struct CudaContext {
  CUcontext handle = nullptr;
  unsigned long long identity = 0;  // the driver's number for it: a handle may be used again, this is not
  int device = -1;
  bool primary = false;
  // A little memory in a context of the user's, and the driver's number for it: it goes with the context, and can be asked after.
  CUdeviceptr witness = 0;
  unsigned long long witness_id = 0;
  CUstream queue = nullptr;  // given to the user with memory we allocate; made on first use
  std::array<std::vector<std::unique_ptr<CudaLane>>, 3> lanes;
  std::vector<CudaTicket*> spare;  // tickets whose event is free
  // Of reductions and packing (cuda_kernels.hpp, under its lock): null until they are first used here.
  CUmodule module = nullptr;
  std::array<CUfunction, kReductions * kElements> kernels{};
  std::array<CUfunction, kPackKernels> pack_kernels{};
  std::array<CUfunction, 4> order_kernels{};
  std::array<CUfunction, 2> box_kernels{};
  int multiprocessors = 0;
};

// False once the user has destroyed a context of his own: then nothing made in it may be named to the driver again, since it
// may have given its handles to others, nor the context itself, of which it says nothing sure. A primary context that we hold lives.
bool lives(const CudaApi& api, const CudaContext& context);

// A DriverScope in a context of ours. One that its user has destroyed is not named to the driver (its cuCtxPushCurrent takes the handle, and the
// pop that follows frees it a second time: seen with 580.159 and the address sanitizer), but is IST_ERR_DEVICE.
class ContextScope : public DriverScope {
 public:
  ContextScope(const CudaApi& api, const CudaContext& context);
};

class CudaContexts {
 public:
  // `greet` is called once for each new record, outside any lock.
  CudaContexts(const CudaApi& api, std::vector<CUdevice> devices, std::function<void(CudaContext&)> greet);
  // Destroys what is inside the contexts and releases the primary ones. Waits for copies under way: their memory may go
  // next.
  ~CudaContexts();
  CudaContexts(const CudaContexts&) = delete;
  CudaContexts& operator=(const CudaContexts&) = delete;

  // The primary context of a device, retained if it is the first use.
  Result<CudaContext*> primary(int device);
  // That very context; the primary one of the device if the handle is null.
  Result<CudaContext*> find(CUcontext handle, int device);
  // Position of a device in the list of all.
  int ordinal(CUdevice device) const;
  int count() const { return static_cast<int>(devices_.size()); }
  CUdevice device(int ordinal) const { return devices_[static_cast<std::size_t>(ordinal)]; }
  // -1: none of this process's has it.
  int ordinal_of(const std::array<std::byte, 16>& uuid) const;
  // Of the device at that position; zeros if it has none.
  std::array<std::byte, 16> uuid(int ordinal) const;
  // At the end: waits for the copies under way in all of them, which may write to host memory that is page-locked no longer after that.
  void settle();
  // Some context already in use, or the caller's current one; null if there is neither. Never makes one.
  CudaContext* any();

 private:
  CudaContext* add(CUcontext handle, int device, bool primary);
  bool is_primary(CUcontext handle, int ordinal);
  void settle(CudaContext& context) const;
  void close(CudaContext& context);
  void leave_witness(CudaContext& context) const;

  const CudaApi& api_;
  const std::vector<CUdevice> devices_;           // by ordinal
  std::vector<std::array<std::byte, 16>> uuids_;  // the same
  std::function<void(CudaContext&)> greet_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<CudaContext>> records_;
  std::vector<std::atomic<CudaContext*>> primary_;  // by device; read without the lock
};

}  // namespace ist
