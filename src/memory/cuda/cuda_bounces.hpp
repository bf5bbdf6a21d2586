// Device memory of this library's own that is lent where the user's cannot be: another process copies into it, and this one from it
// into the user's.
//
// Who calls this : CudaKind owns one; request/ through Lending.
// Threads        : any.
// Ownership      : blocks belong to whoever holds them, and come back to be used again; the memory goes with this object.
// Errors         : a block that cannot be had is none, and the message goes another way; said once.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "memory/lending.hpp"

namespace ist {

class CudaBounces {
 public:
  using Allocate = std::function<Result<Piece>(int device, Bytes size)>;
  using Release = std::function<void(const Piece& piece)>;
  CudaBounces(Allocate allocate, Release release) : allocate_(std::move(allocate)), release_(std::move(release)) {}
  ~CudaBounces();
  CudaBounces(const CudaBounces&) = delete;
  CudaBounces& operator=(const CudaBounces&) = delete;

  // Of each device at most this much; nothing is taken before the first message that needs it.
  void set_limit(Bytes limit);
  // A block on that device, or none: all are in use, or there is no memory.
  std::shared_ptr<const Piece> take(int device);
  // There are blocks on that device, and messages have them all.
  bool all_in_use(int device);
  // The driver lends no memory at all: blocks are of no use.
  void give_up() { useless_ = true; }
  bool useless() const { return useless_; }

 private:
  // Blocks of one device, all of one size.
  struct Device {
    std::vector<Piece> spare;
    Bytes taken;
  };
  std::shared_ptr<const Piece> hold(const Piece& piece);

  const Allocate allocate_;
  const Release release_;
  std::mutex mutex_;
  std::map<int, Device> devices_;
  Bytes limit_ = mebibytes(128);
  std::atomic<bool> useless_{false};
};

}  // namespace ist
