// Devices that other ranks' processes have, too, and what is copied another way there.
//
// Who calls this : cuda_memory.cpp.
// Threads        : any; share() before the first copy.
// Ownership      : none.
// Errors         : the driver's results.
//
// Processes take turns on what executes kernels, and a change of turn takes 137 us. The copy engines serve all processes at once. But the
// driver has kernels' hardware do what copies within a device, and from the host into it what is short in one row (from page-locked memory
// 24 KiB, and 32766 bytes no more; from pageable memory 64 KiB, and 1 MiB no more), by whatever call: cuMemcpyAsync, a batch that asks for
// overlap, a graph. Copies of two rows and more go to an engine, whether or not the rows touch each other. tools/peers/device_turns.cpp measures it: 8 bytes into a device that another process used last take 143 us in one row and
// 9 in two. While the device is one process's own, two rows take 2.6 us more than one at 8 bytes, and 2.6 less at 16 KiB (H200, driver
// 580.159.04, 2026-11-24).
#pragma once

#include <atomic>
#include <cstdint>

#include "memory/cuda/cuda_api.hpp"
#include "memory/piece.hpp"

namespace ist {

class CudaTurns {
 public:
  // From here on an engine makes the copies from the host, in one row, too. Below, two rows cost at most some percent from 16 KiB on.
  static constexpr Bytes kByEngine = mebibytes(1);
  // Within a device less than this is brought to the host and back, as messages between its ranks are (protocol/choose.cpp): the two copies
  // of 2 MiB take 94 us together, where one within it takes 149; for 4 MiB 170.
  static constexpr Bytes kByHost = mebibytes(2);

  explicit CudaTurns(const CudaApi& api) : api_(api) {}
  void share(int device) {
    if (device >= 0 && device < kDevices) shared_.fetch_or(std::uint64_t{1} << device);
  }
  bool takes(int device) const {
    return device >= 0 && device < kDevices && (shared_.load(std::memory_order_relaxed) >> device & 1U) != 0;
  }
  // Does that copy go in rows? One byte is no two rows.
  bool in_rows(int device, const Piece& to, const Piece& from) const {
    return takes(device) && from.kind == KindId::host && to.size < kByEngine && to.size > Bytes{1} &&
           api_.cuMemcpy3DAsync_v2 != nullptr;
  }
  // Starts the copy in that stream, which is of `device`. The sizes are equal.
  CUresult copy(int device, const Piece& to, const Piece& from, CUstream stream) const;

 private:
  static constexpr int kDevices = 64;
  CUresult copy_in_rows(CUdeviceptr to, const std::byte* from, std::size_t bytes, CUstream stream) const;

  const CudaApi& api_;
  std::atomic<std::uint64_t> shared_{0};  // one bit per device
};

}  // namespace ist
