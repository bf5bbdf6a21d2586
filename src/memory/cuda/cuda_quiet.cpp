#include "memory/cuda/cuda_quiet.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>

#include "base/log.hpp"
#include "base/quiet_thread.hpp"

namespace ist {
namespace {

// Between two looks whether it is quiet; twice as long after each in vain, since a look asks each channel's device.
constexpr std::chrono::milliseconds kFirstPause{1};
constexpr std::chrono::milliseconds kLongestPause{64};

}  // namespace

void CudaQuiet::watch(Source& source) {
  const std::lock_guard lock(sources_mutex_);
  sources_.push_back(&source);
}

void CudaQuiet::forget(Source& source) {
  const std::lock_guard lock(sources_mutex_);
  std::erase(sources_, &source);
}

std::shared_ptr<void> CudaQuiet::begin_setup() {
  std::unique_lock lock(mutex_);
  if (streams_used_) return nullptr;
  ++setups_;
  lock.unlock();  // the deleter takes it
  return {static_cast<void*>(this), [this](void*) {
            const std::lock_guard end(mutex_);
            --setups_;
          }};
}

void CudaQuiet::use_streams() {
  const std::lock_guard lock(mutex_);
  streams_used_ = true;
}

bool CudaQuiet::streams_used() {
  const std::lock_guard lock(mutex_);
  return streams_used_;
}

bool CudaQuiet::settled() {
  const std::lock_guard lock(mutex_);
  return setups_ == 0;
}

bool CudaQuiet::over() {
  if (put_.load() == 0) return true;
  const std::lock_guard lock(sources_mutex_);
  return std::all_of(sources_.begin(), sources_.end(), [](Source* source) { return source->over(); });
}

// Whoever puts something in counts it before it lets go of the lock: where the count is what it was before the sources were asked,
// and nobody can put in more, what they said still holds.
bool CudaQuiet::let_go(std::span<const std::function<void()>> releases) {
  if (captured_.load()) return false;
  const std::uint64_t put = put_.load();
  if (!over()) return false;
  const std::unique_lock nobody_puts(putting_, std::try_to_lock);
  if (!nobody_puts.owns_lock() || captured_.load() || put_.load() != put) return false;
  for (const auto& release : releases) release();
  return true;
}

void CudaQuiet::later(std::function<void()> release) {
  if (now(release)) return;
  std::unique_lock lock(mutex_);
  if (ends_) {
    lock.unlock();
    return release();
  }
  waiting_.push_back(std::move(release));
  if (!thread_.joinable()) {
    auto thread = quiet_thread("letting go of device memory", [this] { work(); });
    if (thread.ok())
      thread_ = std::move(*thread);
    else
      log::once(log::Level::warning, "device memory of other ranks stays open until the end: " + thread.status().text());
  }
  wake_.notify_all();
}

void CudaQuiet::work() {
  auto pause = kFirstPause;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (ends_) return;
    auto releases = std::exchange(waiting_, {});
    lock.unlock();
    const bool quiet = let_go(releases);
    if (quiet) releases.clear();
    lock.lock();
    // In the order in which they came.
    releases.insert(releases.end(), std::make_move_iterator(waiting_.begin()), std::make_move_iterator(waiting_.end()));
    waiting_ = std::move(releases);
    if (!quiet) wake_.wait_for(lock, pause, [this] { return ends_; });
    pause = quiet ? kFirstPause : std::min(2 * pause, kLongestPause);
  }
}

void CudaQuiet::finish() {
  std::thread thread;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    thread = std::move(thread_);
  }
  wake_.notify_all();
  if (thread.joinable()) thread.join();
  for (const auto& release : std::exchange(waiting_, {})) release();
}

}  // namespace ist
