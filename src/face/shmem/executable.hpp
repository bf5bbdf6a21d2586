// The program that runs in this process: where its global and static variables are, and whether two processes run the same one.
//
// Who calls this : globals.cpp; tests.
// Threads        : any.
// Ownership      : values; the addresses are the program's.
// Errors         : none; a program without variables has no segments.
//
// What the dynamic linker has made read-only after it relocated it (PT_GNU_RELRO) is no variable, and neither is a segment that may also
// be executed. A thread's own variables are elsewhere, as is what shared libraries have.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/units.hpp"

namespace ist {

constexpr std::uint64_t kPage = 4096;

struct VariableSegment {
  std::byte* begin = nullptr;  // whole pages, and nobody else's: what malloc has of the break begins behind them
  Bytes bytes;
  std::byte* first = nullptr;  // the variables among them
  std::byte* end = nullptr;
};

struct Executable {
  std::string name;        // last part of its path
  std::string build_id;    // in hexadecimal; empty: linked without one
  std::uint64_t plan = 0;  // of its program headers: where everything lies, and how long it is
  std::uintptr_t base = 0;
  std::vector<VariableSegment> segments;
};

Executable this_executable();

// What processes tell each other of their executables.
struct ExecutableCard {
  static constexpr std::size_t kMostSegments = 8;
  struct Extent {
    std::uint64_t offset = 0;  // from the base, which differs between processes
    std::uint64_t bytes = 0;
    bool operator==(const Extent&) const = default;
  };
  std::array<char, 64> name{};
  std::array<char, 64> build_id{};
  std::uint64_t plan = 0;
  std::uint64_t segments = 0;
  std::array<Extent, kMostSegments> extents{};
};

ExecutableCard card_of(const Executable& program);
// In words, between PE 0 and another one; empty: they run the same.
std::string difference(const ExecutableCard& first, const ExecutableCard& other, int pe);

}  // namespace ist
