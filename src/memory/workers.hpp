// A resident kernel on a device that copies few bytes to and from it without a call of the driver: opted into, because it has hazards
// (docs/worker.md).
//
// Who calls this : face/, once per world, allows it; request/ and cli/ ask about it. Who implements it: cuda/.
// Threads        : any.
// Ownership      : none.
// Errors         : where it cannot run, copies go by the driver, and against() says why.
#pragma once

#include "base/status.hpp"
#include "memory/memory_kind.hpp"

namespace ist {

// The most bytes that a worker copies.
inline constexpr Bytes kWorkerLimit = kibibytes(2);

class Workers {
 public:
  virtual ~Workers() = default;
  // From now on the kind's copies of few bytes between host memory and that device go by its worker, unless `known`, what the caller
  // knows against it, is not ok, or the kind finds something else. Gives what stands against it.
  virtual Status allow(int device, const Status& known) = 0;
  // What stands against a worker on that device, as far as it is known without starting one.
  virtual Status against(int device) = 0;
  // The most bytes that it copies; 0: none runs there, nor will. Device -1: that for which one was allowed.
  virtual Bytes limit(int device) const = 0;
  // Does it copy that piece now, if the other side is host memory and nothing is to come before? Some memory it leaves to the driver,
  // and all where it does not run just now.
  virtual bool copies(const Piece& piece) const = 0;
  static bool copies(MemoryClass memory) { return memory == MemoryClass::device || memory == MemoryClass::pool; }
};

}  // namespace ist
