#include "face/shmem/collectives.hpp"

#include <string>

#include "face/shmem/errors.hpp"
#include "face/shmem/heap_size.hpp"
#include "face/shmem/reductions.hpp"
#include "face/shmem/regions.hpp"

namespace ist::shmem {
namespace {

std::byte* behind(void* address, std::size_t bytes) { return static_cast<std::byte*>(address) + bytes; }
const std::byte* behind(const void* address, std::size_t bytes) { return static_cast<const std::byte*>(address) + bytes; }

// Before anybody waits: what all give alike is wrong at all.
bool check(const char* call, const void* dest, const void* source, std::size_t bytes, std::size_t dest_bytes) {
  return (bytes == 0 || find(call, source, bytes, hot.pe).at != nullptr) &&
         (dest_bytes == 0 || find(call, dest, dest_bytes, hot.pe).at != nullptr);
}

void take(const char* call, void* dest, const void* source, std::size_t bytes, int pe) {
  if (bytes != 0) get(call, SHMEM_CTX_DEFAULT, dest, source, bytes, pe);
}

bool do_broadcast(const char* call, const Group& group, const Block& block, int root, bool root_too) {
  if (root < 0 || root >= group.size) {
    fail(call, "the root is PE " + std::to_string(root) + " of the team or set, which has " + std::to_string(group.size));
    return false;
  }
  const bool is_root = group.me == root;
  if (is_root ? !check(call, block.dest, block.source, block.bytes, 0)
              : !check(call, block.dest, block.source, 0, block.bytes))
    return false;
  if (!is_root) {
    if (!await(call, group, root)) return false;
    take(call, block.dest, block.source, block.bytes, group.at(root));
    arrive(group, root);
    return true;
  }
  for (int i = 1; i < group.size; ++i) arrive(group, (root + i) % group.size);
  if (root_too && block.dest != block.source) take(call, block.dest, block.source, block.bytes, hot.pe);
  for (int i = 1; i < group.size; ++i)
    if (!await(call, group, (root + i) % group.size)) return false;
  return true;
}

bool do_fcollect(const char* call, const Group& group, const Block& block) {
  if (!check(call, block.dest, block.source, block.bytes, block.bytes * static_cast<std::size_t>(group.size)) ||
      !sync(call, group))
    return false;
  for (int k = 0; k < group.size; ++k) {
    const int i = (group.me + k) % group.size;
    take(call, behind(block.dest, static_cast<std::size_t>(i) * block.bytes), block.source, block.bytes, group.at(i));
  }
  return sync(call, group);
}

bool do_collect(const char* call, const Group& group, const Block& block) {
  if (!check(call, block.dest, block.source, block.bytes, 0)) return false;
  world().posted(hot.pe, group.slot) = block.bytes;
  if (!sync(call, group)) return false;
  std::size_t all = 0;
  for (int i = 0; i < group.size; ++i) all = sum(all, world().posted(group.at(i), group.slot));
  // All members find the same, and none goes on to the next call before all have.
  const bool there = check(call, block.dest, block.source, 0, all);
  std::size_t offset = 0;
  for (int i = 0; there && i < group.size; ++i) {
    const std::size_t bytes = world().posted(group.at(i), group.slot);
    take(call, behind(block.dest, offset), block.source, bytes, group.at(i));
    offset += bytes;
  }
  return sync(call, group) && there;
}

bool do_alltoall(const char* call, const Group& group, const Block& block) {
  const std::size_t all = block.bytes * static_cast<std::size_t>(group.size);
  if (!check(call, block.dest, block.source, all, all) || !sync(call, group)) return false;
  for (int k = 0; k < group.size; ++k) {
    const int i = (group.me + k) % group.size;
    take(call, behind(block.dest, static_cast<std::size_t>(i) * block.bytes),
         behind(block.source, static_cast<std::size_t>(group.me) * block.bytes), block.bytes, group.at(i));
  }
  return sync(call, group);
}

// As check(): the elements for and from all members, one after the other.
bool check_strided(const char* call, const Strided& what, int members) {
  Strided all = what;
  if (__builtin_mul_overflow(what.count, static_cast<std::size_t>(members), &all.count)) {
    fail(call, std::to_string(what.count) + " elements for each PE are more than there are addresses");
    return false;
  }
  return find_all(call, what.source, what.source_stride, all, hot.pe) &&
         find_all(call, what.dest, what.dest_stride, all, hot.pe);
}

bool do_alltoalls(const char* call, const Group& group, const Strided& what) {
  if (!check_strided(call, what, group.size) || !sync(call, group)) return false;
  const auto step = [&](std::ptrdiff_t stride, int index) {
    return static_cast<std::size_t>(index) * what.count * static_cast<std::size_t>(stride) * what.size;
  };
  for (int k = 0; k < group.size; ++k) {
    const int i = (group.me + k) % group.size;
    Strided part = what;
    part.dest = behind(what.dest, step(what.dest_stride, i));
    part.source = behind(what.source, step(what.source_stride, group.me));
    strided_get(call, SHMEM_CTX_DEFAULT, part, group.at(i));
  }
  return sync(call, group);
}

// Calls of teams say whether it went well; those of active sets return nothing.
template <class What>
int in_team(const char* call, shmem_team_t handle, const What& what) {
  const Team* const team = team_of(handle);
  if (team == nullptr) return -1;
  const InCall in{call, team->group};
  return in && what(team->group) ? 0 : -1;
}
template <class What>
void in_set(const char* call, const ActiveSet& set, const What& what) {
  if (!check_pe(call, hot.pe)) return;
  const Group group = active_group(call, set.start, set.log_stride, set.size, set.words);
  if (group.size == 0) return;
  if (const InCall in{call, group}; in) what(group);
}

}  // namespace

int broadcast(const char* call, shmem_team_t team, const Block& block, int root) {
  return in_team(call, team, [&](const Group& group) { return do_broadcast(call, group, block, root, true); });
}
int collect(const char* call, shmem_team_t team, const Block& block) {
  return in_team(call, team, [&](const Group& group) { return do_collect(call, group, block); });
}
int fcollect(const char* call, shmem_team_t team, const Block& block) {
  return in_team(call, team, [&](const Group& group) { return do_fcollect(call, group, block); });
}
int alltoall(const char* call, shmem_team_t team, const Block& block) {
  return in_team(call, team, [&](const Group& group) { return do_alltoall(call, group, block); });
}
int alltoalls(const char* call, shmem_team_t team, const Strided& what) {
  return in_team(call, team, [&](const Group& group) { return do_alltoalls(call, group, what); });
}
int reduce(const char* call, shmem_team_t team, const Block& block, const Combiner& combiner) {
  return in_team(call, team, [&](const Group& group) { return reduce_in(call, group, block, combiner); });
}
int scan(const char* call, shmem_team_t team, const Block& block, const Combiner& combiner, bool own) {
  return in_team(call, team, [&](const Group& group) { return scan_in(call, group, block, combiner, own); });
}

// The root's own dest stays as it is.
void broadcast(const char* call, const ActiveSet& set, const Block& block, int root) {
  in_set(call, set, [&](const Group& group) { do_broadcast(call, group, block, root, false); });
}
void collect(const char* call, const ActiveSet& set, const Block& block) {
  in_set(call, set, [&](const Group& group) { do_collect(call, group, block); });
}
void fcollect(const char* call, const ActiveSet& set, const Block& block) {
  in_set(call, set, [&](const Group& group) { do_fcollect(call, group, block); });
}
void alltoall(const char* call, const ActiveSet& set, const Block& block) {
  in_set(call, set, [&](const Group& group) { do_alltoall(call, group, block); });
}
void alltoalls(const char* call, const ActiveSet& set, const Strided& what) {
  in_set(call, set, [&](const Group& group) { do_alltoalls(call, group, what); });
}
void reduce(const char* call, const ActiveSet& set, const Block& block, const Combiner& combiner) {
  in_set(call, set, [&](const Group& group) { reduce_in(call, group, block, combiner); });
}

}  // namespace ist::shmem
