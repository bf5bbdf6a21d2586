// What users make and name by a number that is never used twice: operations, layouts.
//
// Who calls this : operators.cpp, layouts.cpp.
// Threads        : any.
// Ownership      : owns copies; what is found is another copy. Tables are made once and never destroyed: threads may end after static
//                  objects.
// Errors         : none; who asks says what a number that is not there means.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace ist {

template <class T>
class Numbered {
 public:
  std::uint64_t add(T value) {
    const std::lock_guard lock(mutex_);
    values_.emplace(next_, std::move(value));
    return next_++;
  }
  std::optional<T> find(std::uint64_t number) {
    std::optional<T> found;
    change(number, [&](const T& value) { found = value; });
    return found;
  }
  // False: there is none.
  template <class Change>
  bool change(std::uint64_t number, const Change& change) {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(number);
    if (found == values_.end()) return false;
    change(found->second);
    return true;
  }
  bool remove(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    return values_.erase(number) == 1;
  }

 private:
  std::mutex mutex_;
  std::uint64_t next_ = 0x1000;  // beyond those of the library's own
  std::map<std::uint64_t, T> values_;
};

inline std::string number_text(std::uint64_t number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(number));
  return text.data();
}

}  // namespace ist
