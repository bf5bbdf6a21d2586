#include "match/kept_bytes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <new>

namespace ist {
namespace {

// Of powers of two: of less there is nothing to win, and of more there are cells and rings.
constexpr std::size_t kShortest = 32768;
constexpr std::size_t kLongest = 262144;
constexpr std::size_t kSizes = std::bit_width(kLongest / kShortest);
constexpr std::size_t kMost = 8388608;  // bytes that nobody has: a window of 64 messages of 128 KiB

class Rooms {
 public:
  void* take(std::size_t size) {
    const std::lock_guard lock(mutex_);
    Room*& first = free_.at(place_of(size));
    if (first == nullptr) return ::operator new(size);
    Room* const room = first;
    first = room->next;
    held_ -= size;
    return room;
  }
  void give(void* where, std::size_t size) noexcept {
    const std::lock_guard lock(mutex_);
    if (held_ + size > kMost) return ::operator delete(where);
    Room*& first = free_[place_of(size)];
    first = new (where) Room{first};
    held_ += size;
  }

 private:
  // In the room itself, so that to give it back takes no memory.
  struct Room {
    Room* next;
  };
  static std::size_t place_of(std::size_t size) { return std::bit_width(size / kShortest) - 1U; }
  std::mutex mutex_;
  std::array<Room*, kSizes> free_{};
  std::size_t held_ = 0;
};

// Never destroyed: messages may outlive what is.
Rooms& rooms() {
  static Rooms* const all = new Rooms;
  return *all;
}

bool is_pooled(std::size_t size) { return size >= kShortest && size <= kLongest; }

}  // namespace

void* take_kept_room(std::size_t size) { return is_pooled(size) ? rooms().take(std::bit_ceil(size)) : ::operator new(size); }

void give_kept_room(void* where, std::size_t size) noexcept {
  if (is_pooled(size))
    rooms().give(where, std::bit_ceil(size));
  else
    ::operator delete(where);
}

}  // namespace ist
