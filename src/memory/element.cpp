#include "memory/element.hpp"

#include <array>
#include <string>
#include <type_traits>

namespace ist {
namespace {

struct ElementRow {
  std::string_view name;
  Family family;
  std::uint8_t size;
  std::uint8_t alignment;
};

// By Element.
constexpr std::array<ElementRow, kElements> kElementRows{{
    {"int8", Family::integer, 1, 1},          {"uint8", Family::integer, 1, 1},
    {"int16", Family::integer, 2, 2},         {"uint16", Family::integer, 2, 2},
    {"int32", Family::integer, 4, 4},         {"uint32", Family::integer, 4, 4},
    {"int64", Family::integer, 8, 8},         {"uint64", Family::integer, 8, 8},
    {"float16", Family::floating, 2, 2},      {"bfloat16", Family::floating, 2, 2},
    {"float32", Family::floating, 4, 4},      {"float64", Family::floating, 8, 8},
    {"complex32", Family::complex, 8, 4},     {"complex64", Family::complex, 16, 8},
    {"float32_int32", Family::located, 8, 4}, {"float64_int32", Family::located, 16, 8},
    {"int64_int32", Family::located, 16, 8},  {"int32_int32", Family::located, 8, 4},
    {"int16_int32", Family::located, 8, 4},   {"int64_int64", Family::located, 16, 8},
}};

template <class T>
constexpr Element integer() {
  constexpr bool is_signed = std::is_signed_v<T>;
  if constexpr (sizeof(T) == 1) return is_signed ? Element::int8 : Element::uint8;
  if constexpr (sizeof(T) == 2) return is_signed ? Element::int16 : Element::uint16;
  if constexpr (sizeof(T) == 4) return is_signed ? Element::int32 : Element::uint32;
  if constexpr (sizeof(T) == 8) return is_signed ? Element::int64 : Element::uint64;
}

struct TypeRow {
  std::string_view name;
  Element element;
};

// By ist_type; frozen with the enum (tests/unit/frozen_abi.cpp).
constexpr std::array<TypeRow, kTypes> kTypeRows{{
    {"IST_BYTE", Element::uint8},
    {"IST_CHAR", integer<char>()},
    {"IST_INT8", Element::int8},
    {"IST_UINT8", Element::uint8},
    {"IST_INT16", Element::int16},
    {"IST_UINT16", Element::uint16},
    {"IST_INT32", Element::int32},
    {"IST_UINT32", Element::uint32},
    {"IST_INT64", Element::int64},
    {"IST_UINT64", Element::uint64},
    {"IST_FLOAT", Element::float32},
    {"IST_DOUBLE", Element::float64},
    {"IST_INT", integer<int>()},
    {"IST_LONG", integer<long>()},
    {"IST_SHORT", integer<short>()},
    {"IST_UNSIGNED", integer<unsigned>()},
    {"IST_UNSIGNED_LONG", integer<unsigned long>()},
    {"IST_LONG_LONG", integer<long long>()},
    {"IST_UNSIGNED_SHORT", integer<unsigned short>()},
    {"IST_UNSIGNED_LONG_LONG", integer<unsigned long long>()},
    {"IST_HALF", Element::float16},
    {"IST_BFLOAT16", Element::bfloat16},
    {"IST_COMPLEX_FLOAT", Element::complex32},
    {"IST_COMPLEX_DOUBLE", Element::complex64},
    {"IST_FLOAT_INT", Element::float32_int32},
    {"IST_DOUBLE_INT", Element::float64_int32},
    {"IST_LONG_INT", sizeof(long) == 8 ? Element::int64_int32 : Element::int32_int32},
    {"IST_INT_INT", Element::int32_int32},
    {"IST_SHORT_INT", Element::int16_int32},
    {"IST_INT64_INT64", Element::int64_int64},
}};
static_assert(sizeof(int) == 4 && sizeof(short) == 2);

constexpr const ElementRow& row_of(Element element) { return kElementRows[static_cast<std::size_t>(element)]; }

}  // namespace

constexpr std::array<std::uint8_t, kTypes> kTypeSizes = [] {
  std::array<std::uint8_t, kTypes> sizes{};
  for (std::size_t type = 0; type < sizes.size(); ++type) sizes[type] = row_of(kTypeRows[type].element).size;
  return sizes;
}();

std::optional<Element> element_of(ist_type type) {
  const auto index = static_cast<std::size_t>(type);
  if (index >= kTypeRows.size()) return std::nullopt;
  return kTypeRows[index].element;
}

Bytes alignment_of(Element element) { return Bytes{row_of(element).alignment}; }

Family family_of(ist_type type) {
  const auto element = element_of(type);
  return element && type != IST_BYTE ? row_of(*element).family : Family::bytes;
}

std::string name_of(ist_type type) {
  const auto index = static_cast<std::size_t>(type);
  return index < kTypeRows.size() ? std::string{kTypeRows[index].name} : "type " + std::to_string(static_cast<int>(type));
}

std::string_view name_of(Element element) { return row_of(element).name; }

}  // namespace ist
