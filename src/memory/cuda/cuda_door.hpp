// What lenders and borrowers of CUDA memory say to each other at a door (memory/door.hpp).
//
// Who calls this : cuda_lending.cpp, cuda_ends.cpp and cuda_links.cpp answer; cuda_mapping.cpp, cuda_ends.cpp and cuda_links.cpp ask.
// Threads        : values.
// Ownership      : none.
// Errors         : none.
#pragma once

#include <array>
#include <cstring>

#include "memory/door.hpp"
#include "memory/lending.hpp"

namespace ist {

enum class DoorSubject : std::uint32_t {
  memory =
      1,     // number: an allocation; its descriptor for rank `bytes`, please. IST_ERR_HANDLE: with a later loan, if at all
  pool = 2,  // number: a pool; the same
  cannot = 3,   // number: an allocation or a pool that rank `bytes` cannot open; nothing is answered
  proof = 4,    // bytes: a device. Answered with the handle of a block there, filled with the pattern of `number`
  written = 5,  // the pattern of `number` was written into it. Is it there?
  ended = 6     // bytes: EndQuestion. Answered with the same, without those that are not freed yet
};

// What a rank has open of the lender's and has not used for a while.
struct EndQuestion {
  static constexpr std::size_t kMost = 7;
  std::array<std::uint64_t, kMost> numbers{};  // of allocations and pools; 0: none
  std::int32_t borrower = -1;
  std::int32_t unused = 0;
};

inline DoorNote door_note(DoorSubject subject, std::uint64_t number) {
  DoorNote note;
  note.subject = static_cast<std::uint32_t>(subject);
  note.number = number;
  return note;
}

template <class Value>
void put_into(DoorNote& note, const Value& value) {
  static_assert(sizeof value <= sizeof note.bytes && std::is_trivially_copyable_v<Value>);
  std::memcpy(note.bytes.data(), &value, sizeof value);
}

template <class Value>
Value taken_from(const DoorNote& note) {
  static_assert(sizeof(Value) <= sizeof note.bytes && std::is_trivially_copyable_v<Value>);
  Value value{};
  std::memcpy(&value, note.bytes.data(), sizeof value);
  return value;
}

}  // namespace ist
