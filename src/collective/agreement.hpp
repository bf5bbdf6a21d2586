// What ranks tell each other ahead of something that they do together: whether each of them can, and the numbers that all must have alike.
//
// Who calls this : face/heap, face/halo, which say in their own words what came of it.
// Threads        : as of collective calls: one at a time per communicator.
// Ownership      : values.
// Errors         : of the exchange; what a rank cannot is in what it said, cut to the room that there is.
#pragma once

#include <array>
#include <cassert>
#include <concepts>
#include <cstring>
#include <optional>
#include <span>

#include "collective/exchange.hpp"

namespace ist {

// A number that all ranks must have alike, with what it is called.
struct AgreedNumber {
  constexpr AgreedNumber(const char* called, std::integral auto given)
      : name(called), number(static_cast<std::int64_t>(given)) {}
  const char* name;
  std::int64_t number;
};
inline constexpr std::size_t kMostAlike = 8;

struct Said {
  std::array<char, 32> call{};
  std::int32_t code = IST_OK;
  std::array<char, 460> text{};  // why it cannot
  std::array<std::int64_t, kMostAlike> numbers{};
};

// Collective. `label`: what errors and traces of the messages name. `call`: what the rank is at.
inline Status say(const Communicator& comm, const char* label, const char* call, const Status& own,
                  std::span<const AgreedNumber> alike, std::vector<Said>& all) {
  Said mine;
  std::strncpy(mine.call.data(), call, mine.call.size() - 1);
  mine.code = own.code();
  std::strncpy(mine.text.data(), own.text().c_str(), mine.text.size() - 1);
  assert(alike.size() <= kMostAlike);
  for (std::size_t i = 0; i < alike.size(); ++i) mine.numbers[i] = alike[i].number;
  return exchange(comm, label, mine, all);
}

// The first rank that cannot.
inline std::optional<std::size_t> first_unable(std::span<const Said> all) {
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank].code != IST_OK) return rank;
  return std::nullopt;
}

// The first of so many numbers that is another one than rank 0's, and where.
struct Difference {
  std::size_t rank;
  std::size_t number;
};
inline std::optional<Difference> first_difference(std::span<const Said> all, std::size_t numbers) {
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    for (std::size_t number = 0; number < numbers; ++number)
      if (all[rank].numbers[number] != all[0].numbers[number]) return Difference{rank, number};
  return std::nullopt;
}

}  // namespace ist
