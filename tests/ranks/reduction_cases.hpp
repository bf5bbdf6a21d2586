// Every type and operation of reductions, as a test computes them: with small whole numbers, which are exact in all types.
#pragma once

#include <complex>
#include <cstddef>
#include <utility>

#include "collective_support.hpp"

namespace collective_test {

// A type by how small whole numbers are written in it and read from it: what is computed with them is exact in all of them.
struct TypeCase {
  ist_type type;
  const char* name;
  std::size_t size;
  enum { integer, floating, complex, located, bits } family;
  std::function<void(int value, int second, unsigned char* to)> write;
  std::function<std::pair<int, int>(const unsigned char* from)> read;
};

template <class T>
void put(unsigned char* to, T value) {
  std::memcpy(to, &value, sizeof value);
}
template <class T>
T get(const unsigned char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
TypeCase plain(ist_type type, const char* name) {
  return {type,
          name,
          sizeof(T),
          std::is_integral_v<T> ? TypeCase::integer : TypeCase::floating,
          [](int value, int, unsigned char* to) { put(to, static_cast<T>(value)); },
          [](const unsigned char* from) {
            return std::pair{static_cast<int>(get<T>(from)), 0};
          }};
}
// Of which there are bits alone.
inline TypeCase byte() {
  TypeCase made = plain<std::uint8_t>(IST_BYTE, "byte");
  made.family = TypeCase::bits;
  return made;
}
template <class T>
TypeCase complex_of(ist_type type, const char* name) {
  return {type,
          name,
          sizeof(std::complex<T>),
          TypeCase::complex,
          [](int value, int second, unsigned char* to) {
            put(to, std::complex<T>(static_cast<T>(value), static_cast<T>(second)));
          },
          [](const unsigned char* from) {
            const auto read = get<std::complex<T>>(from);
            return std::pair{static_cast<int>(read.real()), static_cast<int>(read.imag())};
          }};
}
template <class T, class Index>
TypeCase located(ist_type type, const char* name) {
  struct Pair {
    T value;
    Index index;
  };
  return {type,
          name,
          sizeof(Pair),
          TypeCase::located,
          [](int value, int second, unsigned char* to) {
            std::memset(to, 0, sizeof(Pair));
            put(to, static_cast<T>(value));
            put(to + offsetof(Pair, index), static_cast<Index>(second));
          },
          [](const unsigned char* from) {
            return std::pair{static_cast<int>(get<T>(from)), static_cast<int>(get<Index>(from + offsetof(Pair, index)))};
          }};
}

// Whole numbers up to 2^11 in a half and up to 2^8 in a bfloat16, by their definition: sign, exponent, fraction.
inline std::uint16_t small_float(int value, int exponent_bias, int fraction_bits) {
  if (value == 0) return 0;
  int exponent = 0;
  while (value >> (exponent + 1) != 0) ++exponent;
  const int fraction = fraction_bits >= exponent ? (value - (1 << exponent)) << (fraction_bits - exponent)
                                                 : (value - (1 << exponent)) >> (exponent - fraction_bits);
  return static_cast<std::uint16_t>((exponent + exponent_bias) << fraction_bits | fraction);
}
inline int small_int(std::uint16_t bits, int exponent_bias, int fraction_bits) {
  if (bits == 0) return 0;
  const int exponent = (bits >> fraction_bits) - exponent_bias;
  const int fraction = bits & ((1 << fraction_bits) - 1);
  return static_cast<int>(std::ldexp(1.0 + std::ldexp(fraction, -fraction_bits), exponent));
}
inline TypeCase sixteen_bits(ist_type type, const char* name, int bias, int fraction) {
  return {type,
          name,
          2,
          TypeCase::floating,
          [=](int value, int, unsigned char* to) { put(to, small_float(value, bias, fraction)); },
          [=](const unsigned char* from) {
            return std::pair{small_int(get<std::uint16_t>(from), bias, fraction), 0};
          }};
}

inline std::vector<TypeCase> types() {
  return {byte(),
          plain<char>(IST_CHAR, "char"),
          plain<std::int8_t>(IST_INT8, "int8"),
          plain<std::uint8_t>(IST_UINT8, "uint8"),
          plain<std::int16_t>(IST_INT16, "int16"),
          plain<std::uint16_t>(IST_UINT16, "uint16"),
          plain<std::int32_t>(IST_INT32, "int32"),
          plain<std::uint32_t>(IST_UINT32, "uint32"),
          plain<std::int64_t>(IST_INT64, "int64"),
          plain<std::uint64_t>(IST_UINT64, "uint64"),
          plain<float>(IST_FLOAT, "float"),
          plain<double>(IST_DOUBLE, "double"),
          plain<int>(IST_INT, "int"),
          plain<long>(IST_LONG, "long"),
          plain<short>(IST_SHORT, "short"),
          plain<unsigned>(IST_UNSIGNED, "unsigned"),
          plain<unsigned long>(IST_UNSIGNED_LONG, "unsigned long"),
          plain<long long>(IST_LONG_LONG, "long long"),
          plain<unsigned short>(IST_UNSIGNED_SHORT, "unsigned short"),
          plain<unsigned long long>(IST_UNSIGNED_LONG_LONG, "unsigned long long"),
          sixteen_bits(IST_HALF, "half", 15, 10),
          sixteen_bits(IST_BFLOAT16, "bfloat16", 127, 7),
          complex_of<float>(IST_COMPLEX_FLOAT, "complex float"),
          complex_of<double>(IST_COMPLEX_DOUBLE, "complex double"),
          located<float, int>(IST_FLOAT_INT, "float, int"),
          located<double, int>(IST_DOUBLE_INT, "double, int"),
          located<long, int>(IST_LONG_INT, "long, int"),
          located<int, int>(IST_INT_INT, "int, int"),
          located<short, int>(IST_SHORT_INT, "short, int"),
          located<std::int64_t, std::int64_t>(IST_INT64_INT64, "int64, int64")};
}

using Value = std::pair<int, int>;
struct OperationCase {
  ist_op op;
  const char* name;
  std::vector<int> families;
  std::function<Value(Value, Value)> of;
};

inline std::vector<OperationCase> operations() {
  const std::vector<int> numbers{TypeCase::integer, TypeCase::floating};
  const auto first = [](auto of) { return [of](Value a, Value b) { return Value{of(a.first, b.first), 0}; }; };
  const auto before = [](Value a, Value b) { return a.second < b.second ? a : b; };
  return {
      {IST_SUM,
       "sum",
       {TypeCase::integer, TypeCase::floating, TypeCase::complex},
       [](Value a, Value b) {
         return Value{a.first + b.first, a.second + b.second};
       }},
      {IST_PROD,
       "product",
       {TypeCase::integer, TypeCase::floating, TypeCase::complex},
       [](Value a, Value b) {
         return Value{a.first * b.first - a.second * b.second, a.first * b.second + a.second * b.first};
       }},
      {IST_MIN, "minimum", numbers, first([](int a, int b) { return std::min(a, b); })},
      {IST_MAX, "maximum", numbers, first([](int a, int b) { return std::max(a, b); })},
      {IST_MINLOC,
       "minloc",
       {TypeCase::located},
       [=](Value a, Value b) { return a.first == b.first  ? before(a, b)
                                      : a.first < b.first ? a
                                                          : b; }},
      {IST_MAXLOC,
       "maxloc",
       {TypeCase::located},
       [=](Value a, Value b) { return a.first == b.first  ? before(a, b)
                                      : a.first > b.first ? a
                                                          : b; }},
      {IST_LAND, "logical and", {TypeCase::integer}, first([](int a, int b) { return a != 0 && b != 0 ? 1 : 0; })},
      {IST_LOR, "logical or", {TypeCase::integer}, first([](int a, int b) { return a != 0 || b != 0 ? 1 : 0; })},
      {IST_LXOR, "logical xor", {TypeCase::integer}, first([](int a, int b) { return (a != 0) != (b != 0) ? 1 : 0; })},
      {IST_BAND, "bitwise and", {TypeCase::integer, TypeCase::bits}, first([](int a, int b) { return a & b; })},
      {IST_BOR, "bitwise or", {TypeCase::integer, TypeCase::bits}, first([](int a, int b) { return a | b; })},
      {IST_BXOR, "bitwise xor", {TypeCase::integer, TypeCase::bits}, first([](int a, int b) { return a ^ b; })},
  };
}

}  // namespace collective_test
