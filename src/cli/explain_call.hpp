// What isthmus explain tells of collective calls: every algorithm with its price, and which is chosen.
//
// Who calls this : explain.cpp.
// Threads        : one.
// Ownership      : none.
// Errors         : Failure, of types and counts that there are not.
#pragma once

#include <cstdint>
#include <string>

#include "cli/machine.hpp"
#include "collective/profile.hpp"
#include "protocol/explain.hpp"

namespace ist::cli {

struct CallQuestion {
  std::string call;
  std::string type = "byte";
  std::string kind = "host";
  std::int64_t count = 1;
  int ranks = 2;
  bool ordered = false;  // its operation does not commute
};

// "allgather, allreduce, ..."
std::string names_of_calls();
// Empty: there is such a call. Else what to tell who asked for it.
std::string unknown_call(const std::string& word);
// Of a call that there is.
Explanation explain_call(const CallQuestion& question, const Settings& settings, const Profile& profile);

}  // namespace ist::cli
