#include "match/kept_bytes.hpp"

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
constexpr std::size_t kMostOfSize = 2097152;  // bytes of each that nobody has: 16 messages of 128 KiB

class Rooms {
 public:
  // Null: there is none.
  void* take(std::size_t size) {
    const std::lock_guard lock(mutex_);
    Free& of_size = free_.at(place_of(size));
    if (of_size.first == nullptr) return nullptr;
    Room* const room = of_size.first;
    of_size.first = room->next;
    of_size.bytes -= size;
    return room;
  }
  // False: there are enough.
  bool give(void* where, std::size_t size) noexcept {
    const std::lock_guard lock(mutex_);
    Free& of_size = free_[place_of(size)];
    if (of_size.bytes + size > kMostOfSize) return false;
    of_size.first = new (where) Room{of_size.first};
    of_size.bytes += size;
    return true;
  }
  Bytes held() {
    const std::lock_guard lock(mutex_);
    Bytes all;
    for (const Free& of_size : free_) all.value += of_size.bytes;
    return all;
  }

 private:
  // In the room itself, so that to give it back takes no memory.
  struct Room {
    Room* next;
  };
  struct Free {
    Room* first = nullptr;
    std::size_t bytes = 0;
  };
  static std::size_t place_of(std::size_t size) { return std::bit_width(size / kShortest) - 1U; }
  std::mutex mutex_;
  std::array<Free, kSizes> free_{};
};

// Never destroyed: messages may outlive what is.
Rooms& rooms() {
  static Rooms* const all = new Rooms;
  return *all;
}

bool is_pooled(std::size_t size) { return size >= kShortest && size <= kLongest; }

}  // namespace

void* take_kept_room(std::size_t size) {
  if (!is_pooled(size)) return ::operator new(size);
  void* const kept = rooms().take(std::bit_ceil(size));
  return kept != nullptr ? kept : ::operator new(std::bit_ceil(size));
}

void give_kept_room(void* where, std::size_t size) noexcept {
  if (!is_pooled(size) || !rooms().give(where, std::bit_ceil(size))) ::operator delete(where);
}

Bytes kept_room() { return rooms().held(); }

}  // namespace ist
