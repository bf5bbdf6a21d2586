// How many kernels that hold users' streams are over. Each counts itself in a word of its device as the last thing it does: an event behind it
// would take the device and the caller longer (asking after a passed one takes 1.5 us, docs/measured), and the word is read only where somebody
// wants to let go of something.
//
// Who calls this : cuda_stream_order.cpp, which puts such kernels into streams; CudaKind::over(), for CudaQuiet.
// Threads        : any; whoever asks waits for a copy of the word, and holds up nobody who puts something in.
// Ownership      : owns a word, a stream and 8 bytes of page-locked memory in each context where something was put; contexts outlive it.
// Errors         : returned by prepare() and begin(). Where a context is gone or lost nobody waits in it any more.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

#include "memory/cuda/cuda_context.hpp"

namespace ist {

class CudaHeld {
 public:
  explicit CudaHeld(const CudaApi& api) : api_(api) {}
  ~CudaHeld();
  CudaHeld(const CudaHeld&) = delete;
  CudaHeld& operator=(const CudaHeld&) = delete;
  // Makes the word of that context, which is current, unless it is there: best before anything runs that stays, since memory is allocated.
  Status prepare(CudaContext& context);
  // One more is about to be launched in that context, which is current: where it is to count itself.
  Result<std::uint64_t*> begin(CudaContext& context);
  // It could not be launched.
  void never(CudaContext& context);
  // Are all over? False too where the answer did not come soon.
  bool over();

 private:
  struct Place {
    CudaContext* context = nullptr;
    CUdeviceptr word = 0;
    CUstream stream = nullptr;      // for looks at it
    std::uint64_t* seen = nullptr;  // where a look comes to
    std::atomic<std::uint64_t> put{0};
    std::uint64_t over = 0;  // what the last look found
    bool looking = false;    // one is under way
  };
  Status prepare(CudaContext& context, Place& place) const;
  Status make(Place& place) const;
  bool over_in(Place& place) const;

  const CudaApi& api_;
  std::mutex mutex_;  // guards the table
  std::map<CudaContext*, Place> places_;
  std::mutex look_mutex_;  // guards what looks have found
};

}  // namespace ist
