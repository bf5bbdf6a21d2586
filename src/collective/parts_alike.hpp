// Is each part of a collective call, where parts differ, made of the same at both its ends? Told between the two after the ranks have
// compared what all of them give (alike.hpp), where the setting check asks for that.
//
// Who calls this : face/, with the rest of what is compared.
// Threads        : as alike.hpp.
// Ownership      : the schedule's actions own what the ranks told.
// Errors         : IST_ERR_ARGUMENT on all ranks, which names sender and receiver, what each gave, and the first element that differs. The
//                  call is then called off.
#pragma once

#include <vector>

#include "collective/alike.hpp"

namespace ist {

// One end of a part: its types, and how many bytes they have.
struct PartNote {
  static constexpr std::int64_t kUnknown = -1;  // this rank gave what is no part; it is not compared
  TypeNote types;
  std::int64_t bytes = kUnknown;
};

// What this rank sends to each rank, and what it receives of each; by rank. Empty: the call has no parts that differ.
struct GivenParts {
  std::vector<PartNote> sent;
  std::vector<PartNote> received;
  bool empty() const { return sent.empty(); }
};

// What the ranks do after `told`; the call itself begins after what it gives.
Told tell_parts(Plan& plan, const Told& told, const GivenParts& mine);

}  // namespace ist
