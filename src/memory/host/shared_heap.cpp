#include "memory/host/shared_heap.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "base/log.hpp"

namespace ist {
namespace {

constexpr std::uint64_t whole_pages(std::uint64_t bytes) {
  return (bytes + SharedHeap::kPage - 1) / SharedHeap::kPage * SharedHeap::kPage;
}

// More than there is would be promised otherwise; and a file beyond the process's limit ends it.
std::uint64_t most_here(std::uint64_t wanted) {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  if (pages > 0) wanted = std::min(wanted, static_cast<std::uint64_t>(pages) * SharedHeap::kPage);
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) wanted = std::min(wanted, limit.rlim_cur);
  return wanted / SharedHeap::kPage * SharedHeap::kPage;
}

}  // namespace

bool SharedHeap::make() {
  if (std::exchange(tried_, true)) return memory_.has_value();
  const std::uint64_t length = most_here(most_.value);
  if (length <= kPage) return false;
  auto memory = SharedMemory::create("isthmus-heap", Bytes{length});
  if (!memory.ok()) {
    log::write(log::Level::info, "host memory is not shared with other ranks: " + memory.status().text());
    return false;
  }
  memory_ = std::move(*memory);
  free_.emplace(kPage, length - kPage);
  start_ = reinterpret_cast<std::uint64_t>(memory_->data());
  length_.store(length, std::memory_order_release);
  return true;
}

// The first place that is large enough.
void* SharedHeap::allocate(Bytes size) {
  const std::lock_guard lock(mutex_);
  if (size == Bytes{} || size > most_ || !make()) return nullptr;
  const std::uint64_t length = whole_pages(size.value);
  const auto found = std::find_if(free_.begin(), free_.end(), [=](const auto& each) { return each.second >= length; });
  if (found == free_.end()) return nullptr;
  const auto [offset, room] = *found;
  free_.erase(found);
  if (room > length) free_.emplace(offset + length, room - length);
  used_.emplace(offset, length);
  return memory_->data() + offset;
}

bool SharedHeap::release(const void* address) {
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(reinterpret_cast<std::uint64_t>(address) - start());
  if (found == used_.end()) return false;
  auto [offset, length] = *found;
  used_.erase(found);
  // Before anybody else may have it. Where the system cannot, it stays as it is, for who comes next.
  ::fallocate(memory_->descriptor(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
              static_cast<off_t>(length));
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + length) {
    length += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin() && std::prev(next)->first + std::prev(next)->second == offset)
    std::prev(next)->second += length;
  else
    free_.emplace(offset, length);
  return true;
}

std::uint64_t SharedHeap::show(std::uint64_t id) {
  // Relaxed: the envelope that tells of it is published by a release.
  word(id).store(id, std::memory_order_relaxed);
  return reinterpret_cast<std::uint64_t>(memory_->data() + id % kWords * sizeof id);
}

// Guards HIDE, HIDE_FIRST: before the caller may use the buffer again. What he writes next must not be seen before this: a reader that finds the word in spite of
// it has read what was there before. The exchange alone would let later stores on before its own, on processors that reorder stores.
void SharedHeap::hide(std::uint64_t id) {
  if (length_.load(std::memory_order_acquire) == 0) return;
  std::uint64_t expected = id;
  word(id).compare_exchange_strong(expected, 0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace ist
