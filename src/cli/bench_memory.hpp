// CUDA memory of the classes that the library itself never allocates, for benchmarks of messages with what users have.
//
// Who calls this : bench_session.
// Threads        : one.
// Ownership      : the memory, a stream of its own and what they belong to; all of it goes with the object.
// Errors         : a Failure that names the driver's call.
#pragma once

#include <isthmus/isthmus.h>

#include <cstddef>
#include <memory>

#include "cli/bench_options.hpp"

namespace ist::cli {

class ClassedMemory {
 public:
  // place.word: managed (cuMemAllocManaged), pool (cuMemAllocAsync: of the device's own pool), shared-pool (of one that may be given to
  // other processes) or vmm (cuMemCreate, which may be, too, and cuMemMap). place.device is chosen.
  static std::unique_ptr<ClassedMemory> take(const Place& place, std::size_t bytes);
  virtual ~ClassedMemory() = default;
  // Named with its stream.
  virtual ist_buffer buffer() const = 0;
};

}  // namespace ist::cli
