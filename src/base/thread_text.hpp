// A text of each thread's own, such as why its last call failed, which may also be written while thread and process end.
//
// Who calls this : face/.
// Threads        : any; each has its own.
// Ownership      : owns the text until the thread ends. What is written behind that stays until the process is gone.
// Errors         : std::bad_alloc, of set() alone.
#pragma once

#include <string>
#include <utility>

namespace ist {

// One for each `Of`. Handlers of atexit() run behind the destructors of what the main thread has.
template <class Of>
class ThreadText {
 public:
  static void set(std::string words) {
    if (text_ == nullptr) begin();
    *text_ = std::move(words);
  }
  static void clear() noexcept {
    if (text_ != nullptr) text_->clear();
  }
  static const char* get() noexcept { return text_ != nullptr ? text_->c_str() : ""; }

 private:
  struct Keeper {
    Keeper() = default;
    ~Keeper() {
      delete std::exchange(text_, nullptr);
      ended_ = true;
    }
    Keeper(const Keeper&) = delete;
    Keeper& operator=(const Keeper&) = delete;
  };
  static void begin() {
    text_ = new std::string;
    if (!ended_) keep();
  }
  static void keep() { static thread_local const Keeper keeper; }

  static inline thread_local std::string* text_ = nullptr;
  static inline thread_local bool ended_ = false;
};

}  // namespace ist
