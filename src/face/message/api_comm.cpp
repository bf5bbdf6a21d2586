// C calls about communicators.
#include <algorithm>
#include <cstring>
#include <set>

#include "base/ranges.hpp"
#include "face/message/calls.hpp"
#include "face/message/created.hpp"
#include "face/message/errors.hpp"

namespace ist {
namespace {

Result<ist_comm> hand_out(const InWorld& parent, ist_comm handle, Result<std::unique_ptr<Communicator>> made) {
  if (!made.ok()) return made.status();
  if (!*made) return IST_COMM_NULL;
  const auto name = parent.world->comms().add(std::move(*made));
  if (!name) return Status{IST_ERR_MEMORY, "this world already has 65536 communicators; free some of them first"};
  return comm_handle(handle, *name);
}

}  // namespace

int create(const char* call, ist_comm comm, ist_comm* created, const MakesComm& make) {
  Status wrong;
  if (created == nullptr)
    wrong = {IST_ERR_ARGUMENT, "the place for the new communicator is null"};
  else
    *created = IST_COMM_NULL;
  const auto parent = look_up(comm);
  if (!parent.ok()) return report(in_call(call, parent.status()));
  const auto handle = hand_out(*parent, comm, make(*parent, std::move(wrong)));
  if (!handle.ok()) return report(in_call(call, handle.status()));
  *created = *handle;
  return IST_OK;
}

namespace {

// Stores what `get` says of the communicator.
template <class Get>
int answer(const char* call, ist_comm comm, int* result, Get get) {
  if (result == nullptr)
    return report(IST_ERR_ARGUMENT, std::string{call} + ": the result is null; pass the address of a variable");
  const auto found = look_up(comm);
  if (!found.ok()) return report(in_call(call, found.status()));
  *result = get(*found);
  return IST_OK;
}

// Of the communicator's ranks that are on this host, how many `counts` says yes to.
template <class Counts>
int count_local(const InWorld& found, Counts counts) {
  int count = 0;
  for (const Rank rank : found.world->peers().local()) {
    const int member = found.comm->from_world(rank);
    if (member >= 0 && counts(member)) ++count;
  }
  return count;
}

Status check_colour(int colour) {
  if (colour >= 0 || colour == IST_UNDEFINED) return {};
  return {IST_ERR_ARGUMENT, "color is " + std::to_string(colour) + "; it must be 0 or more, or IST_UNDEFINED"};
}

Status check_members(const Communicator& comm, int count, const int* ranks) {
  if (count < 1 || ranks == nullptr)
    return {IST_ERR_ARGUMENT, "count is " + std::to_string(count) + "; list at least this rank"};
  std::set<int> seen;
  for (int i = 0; i < count; ++i) {
    if (ranks[i] < 0 || ranks[i] >= comm.size())
      return {IST_ERR_RANK, "ranks[" + std::to_string(i) + "] is " + std::to_string(ranks[i]) + "; communicator \"" +
                                comm.name() + "\" has ranks 0 to " + std::to_string(comm.size() - 1)};
    if (!seen.insert(ranks[i]).second)
      return {IST_ERR_ARGUMENT, "rank " + std::to_string(ranks[i]) + " is in the list twice"};
  }
  if (!seen.contains(comm.rank()))
    return {IST_ERR_ARGUMENT,
            "this rank, " + std::to_string(comm.rank()) + ", is not in the list; only the listed ranks call"};
  return {};
}

// The others wait for the first of them alone, which tells those that its list has where something is wrong there.
Result<std::unique_ptr<Communicator>> group_unless(Status wrong, const InWorld& parent, int count, const int* ranks,
                                                   int tag) {
  if (wrong.ok()) wrong = check_members(*parent.comm, count, ranks);
  if (tag < 0 || tag > kMostGroupTag)
    return wrong.ok() ? Status{IST_ERR_ARGUMENT,
                               "tag is " + std::to_string(tag) + "; it must be 0 to " + std::to_string(kMostGroupTag)}
                      : wrong;
  if (wrong.ok()) return create_group(*parent.comm, {ranks, ranks + count}, tag, parent.world->contexts());
  if (count < 1 || ranks == nullptr || ranks[0] != parent.comm->rank()) return wrong;
  std::set<int> listed(ranks, ranks + count);
  std::erase_if(listed, [&](int rank) { return rank < 0 || rank >= parent.comm->size(); });
  refuse_group(*parent.comm, {listed.begin(), listed.end()}, tag, wrong.code());
  return wrong;
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_comm_rank(ist_comm comm, int* rank) try {
  return ist::answer("ist_comm_rank", comm, rank, [](const ist::InWorld& found) { return found.comm->rank(); });
} catch (...) {
  return ist::report_exception("ist_comm_rank");
}

int ist_comm_size(ist_comm comm, int* size) try {
  return ist::answer("ist_comm_size", comm, size, [](const ist::InWorld& found) { return found.comm->size(); });
} catch (...) {
  return ist::report_exception("ist_comm_size");
}

int ist_comm_local_rank(ist_comm comm, int* rank) try {
  return ist::answer("ist_comm_local_rank", comm, rank, [](const ist::InWorld& found) {
    return ist::count_local(found, [&](int member) { return member < found.comm->rank(); });
  });
} catch (...) {
  return ist::report_exception("ist_comm_local_rank");
}

int ist_comm_local_size(ist_comm comm, int* size) try {
  return ist::answer("ist_comm_local_size", comm, size,
                     [](const ist::InWorld& found) { return ist::count_local(found, [](int) { return true; }); });
} catch (...) {
  return ist::report_exception("ist_comm_local_size");
}

int ist_comm_world_rank(ist_comm comm, int rank, int* world_rank) try {
  if (world_rank == nullptr) return ist::report(IST_ERR_ARGUMENT, "ist_comm_world_rank: world_rank is null");
  const auto found = ist::look_up(comm);
  if (!found.ok()) return ist::report(ist::in_call("ist_comm_world_rank", found.status()));
  if (rank < 0 || rank >= found->comm->size())
    return ist::report(IST_ERR_RANK, "ist_comm_world_rank: rank is " + std::to_string(rank) + "; communicator \"" +
                                         found->comm->name() + "\" has ranks 0 to " +
                                         std::to_string(found->comm->size() - 1));
  *world_rank = found->comm->to_world(rank).value;
  return IST_OK;
} catch (...) {
  return ist::report_exception("ist_comm_world_rank");
}

int ist_comm_name(ist_comm comm, char* name, size_t size) try {
  if (name == nullptr || size == 0) return ist::report(IST_ERR_ARGUMENT, "ist_comm_name: there is no room for the name");
  const auto found = ist::look_up(comm);
  if (!found.ok()) return ist::report(ist::in_call("ist_comm_name", found.status()));
  const std::string& text = found->comm->name();
  const std::size_t length = std::min(text.size(), size - 1);
  std::memcpy(name, text.data(), length);
  name[length] = '\0';
  return IST_OK;
} catch (...) {
  return ist::report_exception("ist_comm_name");
}

int ist_comm_dup(ist_comm comm, ist_comm* created) try {
  const ist::Range range("ist_comm_dup");
  return ist::create("ist_comm_dup", comm, created, [](const ist::InWorld& parent, const ist::Status& wrong) {
    return ist::split(*parent.comm, {0, 0}, parent.world->contexts(), "duplicate", wrong);
  });
} catch (...) {
  return ist::report_exception("ist_comm_dup");
}

int ist_comm_split(ist_comm comm, int color, int key, ist_comm* created) try {
  const ist::Range range("ist_comm_split");
  return ist::create("ist_comm_split", comm, created, [&](const ist::InWorld& parent, ist::Status wrong) {
    if (wrong.ok()) wrong = ist::check_colour(color);
    const ist::Choice choice{color == IST_UNDEFINED ? ist::kNoColour : color, key};
    return ist::split(*parent.comm, choice, parent.world->contexts(), "colour " + std::to_string(color), wrong);
  });
} catch (...) {
  return ist::report_exception("ist_comm_split");
}

int ist_comm_split_local(ist_comm comm, int key, ist_comm* created) try {
  const ist::Range range("ist_comm_split_local");
  return ist::create("ist_comm_split_local", comm, created, [&](const ist::InWorld& parent, const ist::Status& wrong) {
    std::vector<int> ranks;
    for (const ist::Rank rank : parent.world->peers().local())
      if (const int member = parent.comm->from_world(rank); member >= 0) ranks.push_back(member);
    std::sort(ranks.begin(), ranks.end());
    return ist::split_among(*parent.comm, ranks, {0, key}, parent.world->contexts(), "one host", wrong);
  });
} catch (...) {
  return ist::report_exception("ist_comm_split_local");
}

int ist_comm_create_group(ist_comm comm, int count, const int* ranks, int tag, ist_comm* created) try {
  const ist::Range range("ist_comm_create_group");
  return ist::create("ist_comm_create_group", comm, created, [&](const ist::InWorld& parent, const ist::Status& wrong) {
    return ist::group_unless(wrong, parent, count, ranks, tag);
  });
} catch (...) {
  return ist::report_exception("ist_comm_create_group");
}

int ist_comm_free(ist_comm* comm) try {
  if (comm == nullptr) return ist::report(IST_ERR_ARGUMENT, "ist_comm_free: comm is null");
  const auto found = ist::look_up(*comm);
  if (!found.ok()) return ist::report(ist::in_call("ist_comm_free", found.status()));
  const ist::CommName name = ist::name_in(*comm);
  if (name.serial == found->world->whole().serial || name.serial == found->world->self().serial)
    return ist::report(IST_ERR_ARGUMENT, "ist_comm_free: communicator \"" + found->comm->name() +
                                             "\" belongs to its world; ist_world_destroy releases it");
  found->world->stream_meetings().forget(*found->comm);
  ist::comms_gone.fetch_add(1, std::memory_order_relaxed);
  found->world->comms().remove(name);
  // Again: who named it in between may have found it, and remembered that.
  ist::comms_gone.fetch_add(1, std::memory_order_relaxed);
  *comm = IST_COMM_NULL;
  return IST_OK;
} catch (...) {
  return ist::report_exception("ist_comm_free");
}
}
