#include "memory/host/copy_crew.hpp"

#include <algorithm>
#include <chrono>

#include "base/log.hpp"
#include "base/quiet_thread.hpp"
#include "memory/host/handing_copy.hpp"

namespace ist {
namespace {

// Below, waking others costs more than they save.
constexpr std::size_t kLeastForCrew = 256 << 10;
// Taken at once: some 10 us of copying, so that the lock is no matter and all end at nearly the same time.
constexpr std::size_t kLeastShare = 64 << 10;
// A helper looks for more so long before it sleeps: the parts of a long message follow each other within this time.
constexpr std::chrono::microseconds kStaysAwake{200};

}  // namespace

CopyCrew::~CopyCrew() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void CopyCrew::set_helpers(int helpers) { wanted_.store(helpers, std::memory_order_relaxed); }

bool CopyCrew::takes(Bytes size) const { return size.value >= kLeastForCrew && wanted_.load(std::memory_order_relaxed) > 0; }

void CopyCrew::hire() {
  for (int wanted = wanted_.load(std::memory_order_relaxed); static_cast<int>(helpers_.size()) < wanted;) {
    auto helper = quiet_thread("the copying of host memory", [this] { work(); });
    if (!helper.ok()) {
      log::once(log::Level::warning, "fewer threads than ISTHMUS_COPY_THREADS copy: " + helper.status().text());
      wanted_.store(static_cast<int>(helpers_.size()), std::memory_order_relaxed);
      return;
    }
    helpers_.push_back(std::move(*helper));
  }
}

std::uint64_t CopyCrew::start(std::byte* to, const std::byte* from, Bytes size) {
  std::uint64_t id = 0;
  bool wakes = false;
  {
    const std::lock_guard lock(mutex_);
    if (job(next_id_).id != 0) return 0;
    hire();
    id = next_id_++;
    Job& made = job(id);
    made.to = to;
    made.from = from;
    made.size = size.value;
    made.taken = 0;
    made.arrived.store(0, std::memory_order_relaxed);
    made.id = id;
    made.dropped = false;
    open_.fetch_add(size.value, std::memory_order_relaxed);
    wakes = asleep_ > 0;
  }
  if (wakes) wake_.notify_all();
  return id;
}

// Under the lock. The oldest copy first: it is the one that is waited for.
bool CopyCrew::take_share(Share& share) {
  for (; oldest_ < next_id_; ++oldest_) {
    Job& found = job(oldest_);
    if (found.id != oldest_ || found.taken == found.size) continue;
    share = {&found, found.taken, std::min(kLeastShare, found.size - found.taken)};
    found.taken += share.size;
    open_.fetch_sub(share.size, std::memory_order_relaxed);
    return true;
  }
  return false;
}

// Without the lock: what was taken belongs to this thread, and the job stays until all of it has arrived.
void CopyCrew::copy(const Share& share) {
  Job& whole = *share.job;
  copy_across(whole.to + share.at, whole.from + share.at, share.size);
  const std::size_t size = whole.size;
  if (whole.arrived.fetch_add(share.size, std::memory_order_acq_rel) + share.size != size) return;
  // The last one. Whoever asks frees the number, unless nobody will.
  const std::lock_guard lock(mutex_);
  if (whole.dropped && whole.id != 0 && whole.arrived.load(std::memory_order_relaxed) == whole.size) whole.id = 0;
}

bool CopyCrew::finish(std::uint64_t id) {
  Job& whole = job(id);
  if (whole.arrived.load(std::memory_order_acquire) != whole.size) {
    Share share;
    bool taken = false;
    if (open_.load(std::memory_order_relaxed) > 0) {
      const std::lock_guard lock(mutex_);
      taken = take_share(share);
    }
    if (taken) copy(share);
    if (whole.arrived.load(std::memory_order_acquire) != whole.size) return false;
  }
  const std::lock_guard lock(mutex_);
  whole.id = 0;
  return true;
}

void CopyCrew::wait(std::uint64_t id) {
  const Job& whole = job(id);
  while (whole.arrived.load(std::memory_order_acquire) != whole.size) {
    Share share;
    bool taken = false;
    {
      const std::lock_guard lock(mutex_);
      taken = take_share(share);
    }
    if (taken) {
      copy(share);
    } else {
      std::this_thread::yield();
    }
  }
}

void CopyCrew::drop(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  Job& whole = job(id);
  if (whole.id != id) return;
  if (whole.arrived.load(std::memory_order_acquire) == whole.size) {
    whole.id = 0;
  } else {
    whole.dropped = true;
  }
}

void CopyCrew::work() {
  auto idle_since = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  while (!ends_) {
    Share share;
    if (take_share(share)) {
      lock.unlock();
      copy(share);
      lock.lock();
      idle_since = std::chrono::steady_clock::now();
      continue;
    }
    if (std::chrono::steady_clock::now() - idle_since < kStaysAwake) {
      lock.unlock();
      for (int look = 0; look < 64 && open_.load(std::memory_order_relaxed) == 0; ++look) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      }
      lock.lock();
      continue;
    }
    ++asleep_;
    wake_.wait(lock, [this] { return ends_ || open_.load(std::memory_order_relaxed) > 0; });
    --asleep_;
    idle_since = std::chrono::steady_clock::now();
  }
}

}  // namespace ist
