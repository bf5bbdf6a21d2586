// Whom drivers are to tell that a command is over.
//
// Who calls this : opencl_queues, opencl_kind.
// Threads        : any; drivers tell in threads of their own.
// Ownership      : never destroyed, since a driver's thread may outlive the program's statics.
// Errors         : std::bad_alloc from add().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "memory/opencl/opencl_api.hpp"

namespace ist {

// By number: PoCL never calls back for a command that was terminated, and others may do so late, when turn and world are gone.
class OpenclListeners {
 public:
  static OpenclListeners& all();
  std::uint64_t add(std::function<void()> over) {
    const std::lock_guard lock(mutex_);
    all_.emplace(++last_, std::move(over));
    return last_;
  }
  // The one before is not being told any more.
  void replace(std::uint64_t number, std::function<void()> over) {
    const std::lock_guard lock(mutex_);
    all_[number] = std::move(over);
  }
  // None is being told any more.
  void remove(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    all_.erase(number);
  }
  void tell(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    if (const auto found = all_.find(number); found != all_.end()) found->second();
  }

 private:
  std::mutex mutex_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::function<void()>> all_;
};

// clSetEventCallback for that listener.
cl_int tell_when_over(const OpenclApi& api, cl_event event, std::uint64_t listener);

}  // namespace ist
