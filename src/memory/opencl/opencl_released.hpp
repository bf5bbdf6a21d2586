// Buffers that the library released itself, so that their later use is an error and no crash.
//
// Who calls this : opencl_contexts, with every handle it is asked about; opencl_kind when it allocates and releases.
// Threads        : any.
// Ownership      : none; handles are remembered as numbers.
// Errors         : none.
//
// OpenCL cannot say whether a handle is still good: a driver follows the pointer. And a driver gives the number of a released
// buffer to the next one soon, to a user's own as well, of which nobody tells. Hence two questions: did we release this
// number, and does an OpenCL object lie there again? Every object begins with a pointer to its driver's table of functions
// (cl_khr_icd says so), which a freed one has lost as a rule, or else its reference count is zero.
// A handle that is garbage for other reasons, or that its user released, is not found here.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>

#include "memory/opencl/opencl_api.hpp"

namespace ist {

class OpenclReleased {
 public:
  explicit OpenclReleased(const OpenclApi& api) : api_(api) {}
  // An object that lives: its first word is the mark of its driver's objects.
  void learn(const void* object);
  // Before the release: afterwards another thread may already have been given the number.
  void add(cl_mem memory);
  // The number is that of a new buffer of ours.
  void remove(cl_mem memory);
  // True if this was released by us, and nothing lives there since. One load where nothing was released.
  bool gone(cl_mem memory);

 private:
  bool lives(cl_mem memory) const;

  const OpenclApi& api_;
  std::atomic<std::size_t> count_{0};
  std::mutex mutex_;
  std::set<std::uintptr_t> marks_;
  std::set<cl_mem> released_;
};

}  // namespace ist
