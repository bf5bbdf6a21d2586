// Waiting for, and testing, words of this PE's own that others write.
//
// Who calls this : the typed calls that generate.py makes; signals.
// Threads        : any.
// Ownership      : looks at the words.
// Errors         : by fail(): a word that is not symmetric, a comparison that there is none, a PE that died.
//
// Who has seen a word also sees what its writer had put before it.
#pragma once

#include <isthmus/heap.h>

#include <cstdint>
#include <vector>

#include "face/shmem/hot.hpp"
#include "face/shmem/patience.hpp"
#include "heap/word.hpp"

namespace ist::shmem {

// A word of this PE, in host memory, or in a heap of device memory, which is read by a copy.
template <class T>
class OwnWord {
 public:
  OwnWord() = default;
  OwnWord(const T* host, ist_heap device, const T* address) : host_(host), device_(device), address_(address) {}
  bool there() const { return host_ != nullptr || device_ != nullptr; }
  T look() const {
    if (host_ != nullptr) return __atomic_load_n(host_, __ATOMIC_ACQUIRE);
    T value{};
    if (device_ != nullptr) read_device(&value, sizeof value);
    return value;
  }

 private:
  void read_device(void* value, std::size_t bytes) const;
  const T* host_ = nullptr;
  ist_heap device_ = nullptr;
  const T* address_ = nullptr;
};
// Host memory without a look at anything else; not there, and fail() was called, if it is not symmetric.
struct OwnPlace {
  const void* host;
  ist_heap device;
};
OwnPlace own_elsewhere(const char* call, const volatile void* address, std::size_t bytes);
void read_own_device(ist_heap device, const void* address, void* value, std::size_t bytes);
template <class T>
void OwnWord<T>::read_device(void* value, std::size_t bytes) const {
  read_own_device(device_, address_, value, bytes);
}
template <class T>
OwnWord<T> own_word(const char* call, const T* address) {
  if (const std::byte* const at = reach(address, sizeof(T), hot.pe); at != nullptr) [[likely]]
    return {reinterpret_cast<const T*>(at), nullptr, address};
  const OwnPlace place = own_elsewhere(call, address, sizeof(T));
  return {static_cast<const T*>(place.host), place.device, address};
}

static_assert(SHMEM_CMP_EQ == IST_COMPARE_EQ && SHMEM_CMP_NE == IST_COMPARE_NE && SHMEM_CMP_GT == IST_COMPARE_GT &&
              SHMEM_CMP_GE == IST_COMPARE_GE && SHMEM_CMP_LT == IST_COMPARE_LT && SHMEM_CMP_LE == IST_COMPARE_LE);
template <class T>
bool holds(T found, int compare, T value) {
  return compares(found, static_cast<ist_compare>(compare), value);
}
bool check_compare(const char* call, int compare);
// Who tests again and again hears of a death, and that all others have left, and leaves the processor to whoever is to write.
void tested_in_vain(const char* call);

// What it was when it compared so.
template <class T>
T wait_for_word(const char* call, const T* address, int compare, T value) {
  const OwnWord<T> word = own_word(call, address);
  if (!word.there() || !check_compare(call, compare)) return T{};
  Patience patience{call};
  for (;;) {
    const T found = word.look();
    if (holds(found, compare, value) || !patience.go_on()) return found;
  }
}
template <class T>
void wait_until(const char* call, T* address, int compare, T value) {
  wait_for_word(call, address, compare, value);
}
template <class T>
int test(const char* call, T* address, int compare, T value) {
  const OwnWord<T> word = own_word(call, address);
  if (!word.there() || !check_compare(call, compare)) return 0;
  if (holds(word.look(), compare, value)) return 1;
  tested_in_vain(call);
  return 0;
}

// Several words, each with a value of its own or all with one; those whose status is not 0 are left out.
template <class T>
class Words {
 public:
  Words(const T* words, std::size_t count, const int* status, int compare, T value)
      : words_(words), count_(count), status_(status), compare_(compare), value_(value) {}
  Words(const T* words, std::size_t count, const int* status, int compare, const T* values)
      : words_(words), count_(count), status_(status), compare_(compare), values_(values) {}
  Words(const T* words, std::size_t count, const int* status, int compare, T* values)
      : Words(words, count, status, compare, static_cast<const T*>(values)) {}

  std::size_t count() const { return count_; }
  bool taken(std::size_t i) const { return status_ == nullptr || status_[i] == 0; }
  bool any_taken() const {
    for (std::size_t i = 0; i < count_; ++i)
      if (taken(i)) return true;
    return false;
  }
  // The first and the last are symmetric, and so is what lies between.
  bool check(const char* call) const {
    return check_compare(call, compare_) && own_word(call, words_).there() && own_word(call, words_ + count_ - 1).there();
  }
  bool holds(const char* call, std::size_t i) const {
    return shmem::holds(own_word(call, words_ + i).look(), compare_, values_ != nullptr ? values_[i] : value_);
  }

 private:
  const T* words_;
  std::size_t count_;
  const int* status_;
  int compare_;
  T value_{};
  const T* values_ = nullptr;
};

// Each is asked until it holds, once: another PE may change it again.
template <class T>
void wait_until_all(const char* call, const Words<T>& words) {
  if (!words.any_taken() || !words.check(call)) return;
  for (std::size_t i = 0; i < words.count(); ++i) {
    if (!words.taken(i)) continue;
    Patience patience{call};
    while (!words.holds(call, i))
      if (!patience.go_on()) return;
  }
}
template <class T>
int test_all(const char* call, const Words<T>& words) {
  if (!words.any_taken()) return 1;
  if (!words.check(call)) return 0;
  for (std::size_t i = 0; i < words.count(); ++i)
    if (words.taken(i) && !words.holds(call, i)) {
      tested_in_vain(call);
      return 0;
    }
  return 1;
}

// Where the next search begins, so that none is passed over for ever.
std::size_t next_start(std::size_t count);

template <class T>
std::size_t find_any(const char* call, const Words<T>& words) {
  const std::size_t start = next_start(words.count());
  for (std::size_t k = 0; k < words.count(); ++k)
    if (const std::size_t i = (start + k) % words.count(); words.taken(i) && words.holds(call, i)) return i;
  return SIZE_MAX;
}
template <class T>
std::size_t test_any(const char* call, const Words<T>& words) {
  if (!words.any_taken() || !words.check(call)) return SIZE_MAX;
  const std::size_t found = find_any(call, words);
  if (found == SIZE_MAX) tested_in_vain(call);
  return found;
}
template <class T>
std::size_t wait_until_any(const char* call, const Words<T>& words) {
  if (!words.any_taken() || !words.check(call)) return SIZE_MAX;
  Patience patience{call};
  for (;;)
    if (const std::size_t found = find_any(call, words); found != SIZE_MAX || !patience.go_on()) return found;
}

template <class T>
std::size_t find_some(const char* call, const Words<T>& words, std::size_t* indices) {
  std::size_t found = 0;
  for (std::size_t i = 0; i < words.count(); ++i)
    if (words.taken(i) && words.holds(call, i)) indices[found++] = i;
  return found;
}
template <class T>
std::size_t test_some(const char* call, const Words<T>& words, std::size_t* indices) {
  if (!words.any_taken() || !words.check(call)) return 0;
  const std::size_t found = find_some(call, words, indices);
  if (found == 0) tested_in_vain(call);
  return found;
}
template <class T>
std::size_t wait_until_some(const char* call, const Words<T>& words, std::size_t* indices) {
  if (!words.any_taken() || !words.check(call)) return 0;
  Patience patience{call};
  for (;;)
    if (const std::size_t found = find_some(call, words, indices); found != 0 || !patience.go_on()) return found;
}

}  // namespace ist::shmem
