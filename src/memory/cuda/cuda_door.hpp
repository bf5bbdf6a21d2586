// What lenders and borrowers of CUDA memory say to each other at a door (memory/door.hpp).
//
// Who calls this : cuda_lending.cpp and cuda_links.cpp answer; cuda_mapping.cpp and cuda_links.cpp ask.
// Threads        : values.
// Ownership      : none.
// Errors         : none.
#pragma once

#include <cstring>

#include "memory/door.hpp"
#include "memory/lending.hpp"

namespace ist {

enum class DoorSubject : std::uint32_t {
  memory =
      1,     // number: an allocation; its descriptor for rank `bytes`, please. IST_ERR_HANDLE: with a later loan, if at all
  pool = 2,  // number: a pool; the same
  cannot = 3,  // number: an allocation or a pool that rank `bytes` cannot open; nothing is answered
  proof = 4,   // bytes: a device. Answered with the handle of a block there, filled with the pattern of `number`
  written = 5  // the pattern of `number` was written into it. Is it there?
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
