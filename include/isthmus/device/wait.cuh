// Isthmus in kernels: waiting for words in the own part, which ends when a PE has died or a deadline has passed.
//
// Who calls this : kernels, and the other headers of isthmus/device/.
// Threads        : each thread for itself.
// Ownership      : none.
// Errors         : a Status; nothing ends a kernel.
//
// Poll the own part alone: loads from another PE's are slow, and hold up its link.
#ifndef ISTHMUS_DEVICE_WAIT_CUH
#define ISTHMUS_DEVICE_WAIT_CUH

#include "isthmus/device/words.cuh"
#include "isthmus/team.h"

namespace ist::device {

enum class Status : std::int32_t {
  ok = 0,
  peer_dead = 1,  // the abort word was set while this waited
  late = 2,       // the deadline passed
  misuse = 3,     // a number that is not of the team, or bytes beyond a channel's capacity; nothing was done
};

enum class Compare : std::int32_t { equal, not_equal, greater, greater_equal, less, less_equal };

template <class T>
IST_DEVICE_CODE bool holds(T value, Compare how, T other) {
  switch (how) {
    case Compare::equal:
      return value == other;
    case Compare::not_equal:
      return value != other;
    case Compare::greater:
      return value > other;
    case Compare::greater_equal:
      return value >= other;
    case Compare::less:
      return value < other;
    case Compare::less_equal:
      return value <= other;
  }
  return false;
}

// So many vain looks lie between two at the abort word, which may be across the bus, and at the clock.
inline constexpr int kLooks = 1000;

// When this wait was first found to last, by the clock, and 0 where there is no deadline; or, as no clock shows it, how it ended.
IST_DEVICE_RARE std::uint64_t look_around(const std::uint32_t* abort_word, std::uint64_t deadline, std::uint64_t begun) {
  if (abort_word != nullptr && load_relaxed(abort_word) != 0) return static_cast<std::uint64_t>(Status::peer_dead);
  if (deadline == 0) return 0;
  // The clock is first read here, so that what comes soon costs none.
  const std::uint64_t now = nanoseconds();
  if (begun == 0) return now;
  return now - begun >= deadline ? static_cast<std::uint64_t>(Status::late) : begun;
}

// Between a word's arrival and the answer every instruction counts: a vain look is a load, a comparison and one branch, looks are counted
// while their loads are on their way, and what is needed once in a thousand of them lies elsewhere.
class Waiter {
 public:
  // deadline: nanoseconds from about now on, 0 for none.
  IST_DEVICE_CODE Waiter(const ist_team_view& view, std::uint64_t deadline) : Waiter(view.abort_word, deadline) {}
  IST_DEVICE_CODE Waiter(const ist_window_view& window, std::uint64_t deadline) : Waiter(window.abort_word, deadline) {}
  // The same of any other word that tells of deaths; null: none does.
  IST_DEVICE_CODE Waiter(const volatile std::uint32_t* abort_word, std::uint64_t deadline)
      : abort_(const_cast<const std::uint32_t*>(abort_word)), deadline_(deadline) {}
  // After a vain look of the caller's own: is there still hope?
  IST_DEVICE_CODE Status vain() {
    between_looks();
    return --left_ > 0 ? Status::ok : around();
  }
  // `look` loads, and says whether that was it. False: so many looks were in vain, and it is time to look around.
  template <class Look>
  IST_DEVICE_CODE bool comes(const Look& look) {
    bool come = false;
    do {
      come = look();
      --left_;
      if (!come) between_looks();
    } while (!come & (left_ > 0));
    return come;
  }
  // Is there still hope?
  IST_DEVICE_CODE Status around() {
    left_ = kLooks;
    begun_ = look_around(abort_, deadline_, begun_);
    const bool dead = begun_ == static_cast<std::uint64_t>(Status::peer_dead);
    return dead ? Status::peer_dead : begun_ == static_cast<std::uint64_t>(Status::late) ? Status::late : Status::ok;
  }
  template <class Look>
  IST_DEVICE_CODE Status wait(const Look& look) {
    while (rarely(!comes(look)))
      if (const Status status = around(); status != Status::ok) return status;
    return Status::ok;
  }

 private:
  const std::uint32_t* abort_;
  std::uint64_t deadline_;
  std::uint64_t begun_ = 0;
  int left_ = kLooks;  // less than 1 where the last of them was not in vain
};

// One of the two words that can be loaded at once, as whatever has its size.
template <class T>
using WordOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
template <class To, class From>
IST_DEVICE_CODE To bits_as(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "the same bits as another type");
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
template <class T>
inline constexpr bool kIsWord = std::is_arithmetic<T>::value && (sizeof(T) == 4 || sizeof(T) == 8);

template <class T>
IST_DEVICE_CODE T look_at(const T* word) {
  static_assert(kIsWord<T>, "words of 4 or 8 bytes can be waited for");
  return bits_as<T>(load_acquire(reinterpret_cast<const WordOf<T>*>(word)));
}

// What the waits for a word have in common.
template <class T>
IST_DEVICE_CODE Status wait_for(Waiter waiter, const T* word, Compare how, T value, T* seen) {
  T found{};
  const Status status = waiter.wait([&] {
    found = look_at(word);
    return holds(found, how, value);
  });
  if (status != Status::ok) return status;
  if (seen != nullptr) *seen = found;
  return Status::ok;
}

// Acquire: what the other one stored before its release of this word is seen afterwards, by this thread and by whoever meets it at a
// barrier of the block. `seen` gets the value that ended it.
template <class T>
IST_DEVICE_CODE Status wait_until(const ist_team_view& view, const T* word, Compare how, T value, std::uint64_t deadline = 0,
                                  T* seen = nullptr) {
  return wait_for(Waiter(view, deadline), word, how, value, seen);
}
// The word is in the own memory of the window, or anywhere else of this PE's that others reach.
template <class T>
IST_DEVICE_CODE Status wait_until(const ist_window_view& window, const T* word, Compare how, T value,
                                  std::uint64_t deadline = 0, T* seen = nullptr) {
  return wait_for(Waiter(window.abort_word, deadline), word, how, value, seen);
}

// One look, which nothing ends: a loop around it is to look at the abort word by itself, or to be one around the next.
template <class T>
IST_DEVICE_CODE bool test(const T* word, Compare how, T value) {
  return holds(look_at(word), how, value);
}
// One look of a loop that does something else in between, and ends as a wait does: by a waiter that was made before the loop, which counts
// looks in vain, and looks at the abort word and the clock once in kLooks of them. `is`: the word holds.
template <class T>
IST_DEVICE_CODE Status test(Waiter& waiter, const T* word, Compare how, T value, bool& is) {
  is = test(word, how, value);
  return is ? Status::ok : waiter.vain();
}

}  // namespace ist::device

#endif
