#include "memory/opencl/opencl_released.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

namespace ist {
namespace {

// More numbers than this are not remembered: a program that uses a buffer after freeing so many others is on its own.
constexpr std::size_t kMostRemembered = 65536;

struct Word {
  bool readable = false;
  bool refused = false;  // the system does not let us look
  std::uintptr_t value = 0;
};

// Reads a word that may not be there. The kernel copies it, so a bad address is an error and no signal.
Word look_at(const void* address) {
  Word word;
  iovec to{&word.value, sizeof word.value};
  iovec from{const_cast<void*>(address), sizeof word.value};
  const ssize_t moved = ::process_vm_readv(::getpid(), &to, 1, &from, 1, 0);
  word.readable = moved == static_cast<ssize_t>(sizeof word.value);
  word.refused = moved < 0 && errno != EFAULT;
  return word;
}

}  // namespace

void OpenclReleased::learn(const void* object) {
  const Word word = look_at(object);
  const std::lock_guard lock(mutex_);
  if (word.readable) marks_.insert(word.value);
}

void OpenclReleased::add(cl_mem memory) {
  // Where a living object cannot be looked at, a dead one cannot be told from it.
  const Word word = look_at(memory);
  if (!word.readable) return;
  const std::lock_guard lock(mutex_);
  marks_.insert(word.value);
  if (released_.size() < kMostRemembered) released_.insert(memory);
  count_.store(released_.size(), std::memory_order_release);
}

void OpenclReleased::remove(cl_mem memory) {
  if (count_.load(std::memory_order_acquire) == 0) return;
  const std::lock_guard lock(mutex_);
  released_.erase(memory);
  count_.store(released_.size(), std::memory_order_release);
}

bool OpenclReleased::gone(cl_mem memory) {
  // Relaxed would do for a thread that asks about what it released itself; acquire serves one that was told by another.
  if (count_.load(std::memory_order_acquire) == 0) return false;
  const std::lock_guard lock(mutex_);
  const auto found = released_.find(memory);
  if (found == released_.end()) return false;
  if (!lives(memory)) return true;
  released_.erase(found);
  count_.store(released_.size(), std::memory_order_release);
  return false;
}

bool OpenclReleased::lives(cl_mem memory) const {
  const Word word = look_at(memory);
  if (word.refused) return true;
  if (!word.readable || !marks_.contains(word.value)) return false;
  // An object is there, or the untouched rest of one.
  cl_uint references = 0;
  return api_.clGetMemObjectInfo(memory, CL_MEM_REFERENCE_COUNT, sizeof references, &references, nullptr) == CL_SUCCESS &&
         references > 0;
}

}  // namespace ist
