// Numbers that know what they count: sizes, positions, ranks and PEs do not mix by accident.
//
// Who calls this : every room.
// Threads        : values.
// Ownership      : none.
// Errors         : wrong mixtures do not compile (tests/unit/must_not_compile).
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace ist {

// A length in bytes.
struct Bytes {
  std::uint64_t value = 0;
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::uint64_t v) : value(v) {}
  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes operator+(Bytes other) const { return Bytes{value + other.value}; }
  constexpr Bytes operator-(Bytes other) const { return Bytes{value - other.value}; }
  constexpr Bytes& operator+=(Bytes other) { return value += other.value, *this; }
};

// A position: bytes from the start of some object.
struct Offset {
  std::uint64_t value = 0;
  constexpr Offset() = default;
  constexpr explicit Offset(std::uint64_t v) : value(v) {}
  constexpr auto operator<=>(const Offset&) const = default;
  constexpr Offset operator+(Bytes length) const { return Offset{value + length.value}; }
  constexpr Offset& operator+=(Bytes length) { return value += length.value, *this; }
  constexpr Bytes operator-(Offset other) const { return Bytes{value - other.value}; }
};

// A process in the message world.
struct Rank {
  std::int32_t value = -1;
  constexpr Rank() = default;
  constexpr explicit Rank(std::int32_t v) : value(v) {}
  constexpr auto operator<=>(const Rank&) const = default;
};
inline constexpr Rank kNobody{};

// A process in the one-sided world.
struct Pe {
  std::int32_t value = -1;
  constexpr Pe() = default;
  constexpr explicit Pe(std::int32_t v) : value(v) {}
  constexpr auto operator<=>(const Pe&) const = default;
};

constexpr Bytes kibibytes(std::uint64_t n) { return Bytes{n << 10}; }
constexpr Bytes mebibytes(std::uint64_t n) { return Bytes{n << 20}; }
constexpr Bytes smaller(Bytes a, Bytes b) { return a < b ? a : b; }

}  // namespace ist
