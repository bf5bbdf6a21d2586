// The ranks of a communicator, in its order, and its name.
//
// Who calls this : collective/ makes them; request/ asks who is left; face/ translates ranks between user and world.
// Threads        : never changes after it was made.
// Ownership      : shared by the communicator and by the operations started on it, so that these outlive its release.
// Errors         : none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"

namespace ist {

class Group : public std::enable_shared_from_this<Group> {
 public:
  // `members`: ranks of the world, each at most once; `world_size`: how many the world has.
  Group(std::vector<Rank> members, int world_size, std::string name)
      : members_(std::move(members)), places_(static_cast<std::size_t>(world_size), -1), name_(std::move(name)) {
    for (std::size_t i = 0; i < members_.size(); ++i)
      places_[static_cast<std::size_t>(members_[i].value)] = static_cast<std::int32_t>(i);
  }
  int size() const { return static_cast<int>(members_.size()); }
  const std::vector<Rank>& members() const { return members_; }
  Rank to_world(int rank) const { return members_[static_cast<std::size_t>(rank)]; }
  bool knows(Rank rank) const { return rank.value >= 0 && static_cast<std::size_t>(rank.value) < places_.size(); }
  // -1: not a member.
  int from_world(Rank rank) const { return places_[static_cast<std::size_t>(rank.value)]; }
  const std::string& name() const { return name_; }

 private:
  std::vector<Rank> members_;
  std::vector<std::int32_t> places_;  // by rank of the world
  std::string name_;
};

// Messages of the library itself travel in a context of their own beside each communicator's.
inline constexpr std::uint32_t kInternalContext = 0x80000000U;

// Which messages an operation may match, and whose they can be.
struct Scope {
  std::uint32_t context = 0;
  std::shared_ptr<const Group> group;  // null: all ranks of the world, in its order
};

// Of the communicator of these ranks; without a group it is the world.
inline std::string name_of(const Group* group) { return group != nullptr ? group->name() : "world"; }

}  // namespace ist
