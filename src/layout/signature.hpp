// The basic types of a message, told in few numbers, and where they differ from those of its receive.
//
// Who calls this : request/engine_types.cpp, face/heap, where the setting check asks for it.
// Threads        : values; pure functions.
// Ownership      : none.
// Errors         : none.
#pragma once

#include <array>
#include <optional>

#include "layout/layout.hpp"

namespace ist {

// Of a layout's types: runs of them, which come again until there are as many types. It travels as it is, and fits the first slot of any path.
struct TypeNote {
  static constexpr std::size_t kMostRuns = 18;
  std::uint64_t hash = 0;
  std::int64_t types = 0;
  std::uint32_t runs = 0;
  std::uint32_t whole = 0;  // 0: there are more runs than these
  std::array<std::int64_t, kMostRuns> counts{};
  std::array<std::uint8_t, kMostRuns> type{};
  std::array<std::uint8_t, 6> unused{};
};
static_assert(sizeof(TypeNote) == 192 && std::is_trivially_copyable_v<TypeNote>);
TypeNote note_of(const Layout& layout);

// The first element of which the two are not the same; no types: they are the same as far as the note tells, and not behind that.
struct TypeDifference {
  std::int64_t element = 0;
  std::optional<ist_type> sent;
  std::optional<ist_type> received;
};
// Of as many elements as both have. What is IST_BYTE alone, on either side, is untyped and the same as anything. Types of one
// representation, as IST_INT and IST_INT32, are the same.
std::optional<TypeDifference> difference(const TypeNote& sent, const Layout& received);
// The same of two notes; of no types (a note without a value) nothing is known.
std::optional<TypeDifference> difference(const TypeNote& one, const TypeNote& other);
// "element 12 is IST_DOUBLE in the message and IST_FLOAT in the receive"
std::string described(const TypeDifference& found, const std::string& sent, const std::string& received);
// "12 IST_DOUBLE, 88 IST_INT64"; of many runs the first.
std::string words_for(const TypeNote& note);
// The same with what both sides are made of.
struct NamedTypes {
  std::string name;  // "the message"
  const TypeNote& types;
};
std::string described(const TypeDifference& found, const NamedTypes& sent, const NamedTypes& received);

}  // namespace ist
