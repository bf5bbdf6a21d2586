// Do all ranks make the same call? Told to each other before it, where the setting check asks for that.
//
// Who calls this : face/, before and after an algorithm has written the call down.
// Threads        : writing: the caller's; comparing: under the engine's lock, as an action of the call's schedule.
// Ownership      : the schedule's action owns what the ranks told.
// Errors         : where ranks differ, IST_ERR_ARGUMENT on all of them, which names two ranks and what each gave. The call is then called
//                  off: no rank does any of it, since what the others would send does not match.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "collective/plan.hpp"
#include "layout/signature.hpp"

namespace ist {

// What one rank gives. It travels as it is; what a call does not have is the same on all ranks.
struct GivenAlike {
  static constexpr std::uint32_t kNoOperation = 0;
  static constexpr std::uint32_t kUnknown = 253;      // none that there is
  static constexpr std::uint32_t kOrdered = 254;      // of the user's, applied in the order of ranks
  static constexpr std::uint32_t kCommutative = 255;  // of the user's
  static constexpr std::uint32_t kFine = 1;
  static constexpr std::int32_t kLayout =
      -1;                         // the type of a call with layouts: with others only bytes are compared, which count has
  std::uint32_t present = kFine;  // 0: nothing came of that rank; above: kFine and why it refused the call
  std::uint32_t operation = kNoOperation;  // one of these, or the number of the library's own
  std::array<char, 32> call{};             // its name, the same of the blocking call and the other
  std::int64_t count = 0;
  std::uint64_t digest = 0;  // of a list of counts that every rank gives; count has their sum
  std::int32_t root = 0;
  std::int32_t type = IST_BYTE;
  // Of a call with layouts, of a part, and of this rank's own part on its other side, which must be made of the same; none where parts differ.
  TypeNote types;
  TypeNote own;

  void name(std::string_view call_name);
  void list(const std::int64_t* counts, int ranks);
};

// What differs first of what two ranks give: its name, and what each gave.
struct FirstDifference {
  std::string what;
  std::string one;
  std::string other;
};
std::optional<FirstDifference> difference(const GivenAlike& one, const GivenAlike& other);

// Tells the others and hears them: the step after which they are compared, and where what follows begins.
struct Told {
  Plan::Step compared;
  Plan::Step end;
};
Told tell_what_is_given(Plan& plan, const GivenAlike& mine);
// What was written down since then begins after that step.
void hold_back(Plan& plan, const Told& told);

}  // namespace ist
