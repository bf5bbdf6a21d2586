// Host memory of the user's that he has asked to be page-locked, so that devices copy from and to it without the processor.
//
// Who calls this : face/ (ist_register, ist_unregister).
// Threads        : any.
// Ownership      : remembers what add() locked, and unlocks only that; what is left at the end is unlocked then. The memory is the
//                  user's, who unlocks it before he gives it back.
// Errors         : IST_ERR_ARGUMENT for memory that overlaps what is registered, or is not; the driver's own words where it refuses.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>

#include "memory/pinned_pool.hpp"

namespace ist {

class Registrations {
 public:
  Registrations(const Kinds& kinds, PinnedPool& pool) : kinds_(kinds), pool_(pool) {}
  ~Registrations();
  Registrations(const Registrations&) = delete;
  Registrations& operator=(const Registrations&) = delete;

  // For the devices of every kind that can lock; a kind that is not in use yet is, on that device, from now on.
  Status add(void* address, Bytes size, const std::function<int(const MemoryKind&)>& own_device);
  // IST_ERR_ARGUMENT where memory that begins there is registered, and must not be given back yet.
  Status may_free(const void* address);
  // All that add() was given at this address.
  Status remove(void* address);

 private:
  const Kinds& kinds_;
  PinnedPool& pool_;
  std::mutex mutex_;
  std::map<std::uint64_t, Bytes> registered_;  // by address
  std::set<KindId> started_;                   // kinds that have used a device here
};

}  // namespace ist
