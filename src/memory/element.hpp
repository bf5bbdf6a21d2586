// What the elements of a buffer are: the basic types of the interface, and the fewer that machines tell apart.
//
// Who calls this : layout/ (sizes), reduction.cpp, and the kinds, which have one kernel per element.
// Threads        : pure functions.
// Ownership      : none.
// Errors         : none; a type that does not exist has size 0 and no element.
#pragma once

#include <isthmus/isthmus.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.hpp"

namespace ist {

// int and long are other types to a compiler, and the same bits as int32 and one of its neighbours.
enum class Element : std::uint8_t {
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  float16,
  bfloat16,
  float32,
  float64,
  complex32,  // of two float32
  complex64,
  float32_int32,  // a value and its index
  float64_int32,
  int64_int32,
  int32_int32,
  int16_int32,
  int64_int64
};
inline constexpr std::size_t kElements = 20;

// What can be done with an element depends on its family alone.
enum class Family : std::uint8_t { bytes, integer, floating, complex, located };

// By ist_type.
inline constexpr std::size_t kTypes = IST_INT64_INT64 + 1;
extern const std::array<std::uint8_t, kTypes> kTypeSizes;
// 0 for a type that does not exist. Asked by every call.
inline Bytes size_of(ist_type type) {
  const auto index = static_cast<std::size_t>(type);
  return Bytes{index < kTypes ? kTypeSizes[index] : std::uint64_t{0}};
}
// What an address must be a multiple of.
Bytes alignment_of(Element element);
// Of IST_BYTE it is uint8, and the family says that there is more to it.
std::optional<Element> element_of(ist_type type);
// bytes for a type that does not exist.
Family family_of(ist_type type);
// "IST_FLOAT"; "type 99" for one that does not exist.
std::string name_of(ist_type type);
// "float32", as kernels are called.
std::string_view name_of(Element element);

}  // namespace ist
