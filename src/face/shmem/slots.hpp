// Which slot of words is whose: a team's own while it lasts, a pSync array's own for good.
//
// Who calls this : groups.cpp and teams.cpp, on the board in PE 0's memory, which all PEs map.
// Threads        : any, of any PE.
// Ownership      : looks at memory that is zero at first, which is a board where nothing is taken yet.
// Errors         : none; place 0 is what those share for whom no other is left.
//
// One board for all: whoever takes a place has it for itself at once, and nobody has to agree with anybody.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace ist::shmem {

class SlotBoard {
 public:
  static constexpr int kTeams = 64;
  static constexpr int kSets = 257;
  // From 1 on, until as many have given it up as there are members.
  int take_for_team(int members);
  void give_up(int place);
  // From 1 on, the same for everybody who asks for this key, which is not 0, and for no other.
  int of_set(std::uint64_t key);

 private:
  std::atomic<std::uint64_t> taken_;  // a bit for each place of a team
  std::array<std::atomic<std::int32_t>, kTeams> members_;
  std::array<std::atomic<std::uint64_t>, kSets> keys_;
};

}  // namespace ist::shmem
