// Ranges of addresses, and the context of the device that was given access to each.
//
// Who calls this : CudaSpaces owns one.
// Threads        : any; a look-up while there are none takes no lock.
// Ownership      : none; contexts outlive it.
// Errors         : none.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <vector>

namespace ist {

struct CudaContext;

class CudaHomes {
 public:
  // Ranges may lie within others or overlap them, as windows of one allocation do: these have one context.
  struct Range {
    std::uint64_t start;
    std::uint64_t length;
    CudaContext* home;
  };
  // Of the range with that address; null: there is none.
  CudaContext* at(std::uint64_t address) const {
    if (none_.load(std::memory_order_acquire)) return nullptr;
    const std::lock_guard lock(mutex_);
    const auto behind = first_behind(address);
    if (behind == ranges_.begin()) return nullptr;
    const Placed& last = *std::prev(behind);
    return address < last.reach ? last.farthest : nullptr;
  }
  void add(const Range& range) {
    const std::lock_guard lock(mutex_);
    ranges_.insert(first_behind(range.start), {range, 0, nullptr});
    changed();
  }
  // One of those that are equal.
  void remove(std::uint64_t start, std::uint64_t length) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(ranges_.begin(), ranges_.end(), [=](const Placed& each) {
      return each.range.start == start && each.range.length == length;
    });
    if (found != ranges_.end()) ranges_.erase(found);
    changed();
  }

 private:
  struct Placed {
    Range range;
    // The farthest end of this one and all before it, and whose that is: an address from here on is in that one, or in none of them.
    std::uint64_t reach;
    CudaContext* farthest;
  };
  std::vector<Placed>::const_iterator first_behind(std::uint64_t address) const {
    return std::upper_bound(ranges_.begin(), ranges_.end(), address,
                            [](std::uint64_t wanted, const Placed& each) { return wanted < each.range.start; });
  }
  void changed() {
    std::uint64_t reach = 0;
    CudaContext* farthest = nullptr;
    for (Placed& each : ranges_) {
      const std::uint64_t end = each.range.start + each.range.length;
      if (end > reach) {
        reach = end;
        farthest = each.range.home;
      }
      each.reach = reach;
      each.farthest = farthest;
    }
    none_.store(ranges_.empty(), std::memory_order_release);
  }

  std::atomic<bool> none_{true};
  mutable std::mutex mutex_;
  std::vector<Placed> ranges_;  // by their starts
};

}  // namespace ist
