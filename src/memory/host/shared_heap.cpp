#include "memory/host/shared_heap.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "base/log.hpp"

namespace ist {
namespace {

constexpr std::uint64_t whole_pages(std::uint64_t bytes) {
  return (bytes + SharedHeap::kPage - 1) / SharedHeap::kPage * SharedHeap::kPage;
}

// So much at a time becomes memory.
constexpr std::uint64_t kStep = std::uint64_t{64} << 20;

// Where the system promises no more memory than it has (vm.overcommit_memory 2), a page that it cannot give to a file ends the process.
bool is_promised_only() {
  std::ifstream file("/proc/sys/vm/overcommit_memory");
  int mode = 0;
  return (file >> mode) && mode == 2;
}

// More than there is would be promised otherwise; a file beyond the process's limit ends it; and of few addresses none are kept for later.
std::uint64_t most_here(std::uint64_t wanted) {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) wanted = std::min(wanted, static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page));
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY || is_promised_only()) return 0;
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) wanted = std::min(wanted, limit.rlim_cur);
  return wanted / SharedHeap::kPage * SharedHeap::kPage;
}

void warn(const Status& status) {
  log::write(log::Level::info, "host memory is not shared with other ranks: " + status.text());
}

}  // namespace

// Peers that map it still hold nothing then; they find their words zero.
SharedHeap::~SharedHeap() {
  if (memory_ && owner_ == ::getpid()) empty(0, memory_->size().value);
}

bool SharedHeap::make() {
  if (std::exchange(tried_, true)) return memory_.has_value();
  const std::uint64_t length = most_here(most_.value);
  if (length <= kPage) return false;
  auto memory = SharedMemory::reserve("isthmus-heap", Bytes{length});
  const std::uint64_t first = std::min(length, kStep);
  if (memory.ok())
    if (Status granted = memory->grant(Bytes{first}); !granted.ok()) memory = std::move(granted);
  if (!memory.ok()) {
    warn(memory.status());
    return false;
  }
  memory_ = std::move(*memory);
  granted_ = first;
  owner_ = ::getpid();
  free_.emplace(kPage, length - kPage);
  start_ = reinterpret_cast<std::uint64_t>(memory_->data());
  length_.store(length, std::memory_order_release);
  return true;
}

bool SharedHeap::grant(std::uint64_t end) {
  if (end <= granted_) return true;
  const std::uint64_t wanted = std::min(memory_->size().value, (end + kStep - 1) / kStep * kStep);
  if (const Status granted = memory_->grant(Bytes{wanted}); !granted.ok()) {
    warn(granted);
    return false;
  }
  granted_ = wanted;
  return true;
}

// Where the system cannot, it stays as it is, for who comes next.
void SharedHeap::empty(std::uint64_t offset, std::uint64_t length) const {
  ::fallocate(memory_->descriptor(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
              static_cast<off_t>(length));
}

// The first place that is large enough.
void* SharedHeap::allocate(Bytes size) {
  const std::lock_guard lock(mutex_);
  if (size == Bytes{} || size > most_ || !make() || owner_ != ::getpid()) return nullptr;
  const std::uint64_t length = whole_pages(size.value);
  const auto found = std::find_if(free_.begin(), free_.end(), [=](const auto& each) { return each.second >= length; });
  if (found == free_.end() || !grant(found->first + length)) return nullptr;
  const auto [offset, room] = *found;
  free_.erase(found);
  if (room > length) free_.emplace(offset + length, room - length);
  used_.emplace(offset, length);
  return memory_->data() + offset;
}

bool SharedHeap::release(const void* address) {
  std::unique_lock lock(mutex_);
  const auto found = used_.find(reinterpret_cast<std::uint64_t>(address) - start());
  if (found == used_.end()) return false;
  auto [offset, length] = *found;
  used_.erase(found);
  if (owner_ != ::getpid()) return true;
  // Before anybody else may have it, and others need not wait for it.
  lock.unlock();
  empty(offset, length);
  lock.lock();
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

// Guards HIDE, HIDE_FIRST: before the caller may use the buffer again. What he writes next must not be seen before this: a reader that
// finds the word in spite of it has read what was there before. The exchange alone would let later stores on before its own, on
// processors that reorder stores.
void SharedHeap::hide(std::uint64_t id) {
  if (length_.load(std::memory_order_acquire) == 0) return;
  std::uint64_t expected = id;
  word(id).compare_exchange_strong(expected, 0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace ist
