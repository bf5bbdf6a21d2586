#include "face/message/collective_calls.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <mutex>

#include "face/message/errors.hpp"
#include "face/message/operators.hpp"
#include "layout/extent.hpp"
#include "request/wait.hpp"

namespace ist {

namespace {

// One that was walked; of any other the engine knows.
void add_to_trace(Trace& trace, const char* call, const Entered& in, int code) {
  Trace::Span span;
  span.category = "call";
  span.name = call;
  span.id = trace.next_id();
  span.begin = in.begun;
  span.end = Trace::Clock::now();
  span.comm = trace.keep(in.comm->name());
  span.code = code;
  trace.add(span);
}

}  // namespace

Result<Elements> elements_of(std::int64_t count, ist_type type) {
  constexpr std::uint64_t kFew = std::uint64_t{1} << 40U;  // so many that no product overflows
  if (const Bytes each = size_of(type); each != Bytes{} && static_cast<std::uint64_t>(count) <= kFew) [[likely]]
    return Elements{static_cast<std::uint64_t>(count), each};
  const auto size = extent(count, type);
  if (!size.ok()) return size.status();
  return Elements{static_cast<std::uint64_t>(count), size_of(type)};
}

Status check_root(int root, const Communicator& comm) {
  if (root >= 0 && root < comm.size()) return {};
  return {IST_ERR_RANK, "root is " + std::to_string(root) + "; communicator \"" + comm.name() + "\" has ranks 0 to " +
                            std::to_string(comm.size() - 1)};
}

Piece CollectiveCall::piece(const char* name, const ist_buffer& buffer, Bytes size) {
  if (size == Bytes{}) return host_piece(nullptr, size);
  const auto found = is_in_place(buffer)
                         ? Result<Piece>{Status{IST_ERR_ARGUMENT, "IST_IN_PLACE is not allowed here on this rank"}}
                         : world_.kinds().resolve(buffer, size);
  if (found.ok()) {
    plan_.use(*found);
    return *found;
  }
  fail({found.status().code(), std::string{name} + ": " + found.status().text()});
  return host_piece(nullptr, size);
}

Division CollectiveCall::layout(const char* name, const std::int64_t* counts, const std::int64_t* displs, ist_type type) {
  std::vector<Division::Part> parts(static_cast<std::size_t>(size()));
  if (counts == nullptr || displs == nullptr)
    fail({IST_ERR_ARGUMENT, std::string{name} + ": the counts or the displacements are null"});
  if (counts == nullptr) return Division::varied(std::move(parts), size_of(type));
  for (std::size_t r = 0; r < parts.size(); ++r) {
    const auto part = elements_of(counts[r], type);
    const auto place = elements_of(displs == nullptr ? 0 : displs[r], type);
    // The counts are everybody's, and the algorithm follows from them: they stay, also where this rank cannot take part.
    if (part.ok()) parts[r].count = part->count;
    if (!part.ok() || !place.ok()) {
      fail({part.ok() ? place.status().code() : part.status().code(),
            std::string{name} + ": part " + std::to_string(r) + (part.ok() ? ", displacement: " : ": ") +
                (part.ok() ? place.status().text() : part.status().text())});
      continue;
    }
    parts[r] = {part->count, place->bytes()};
  }
  return Division::varied(std::move(parts), size_of(type));
}

Division CollectiveCall::layout(const char* name, const std::int64_t* counts, ist_type type) {
  std::vector<std::int64_t> displs(static_cast<std::size_t>(size()), 0);
  for (std::size_t r = 1; counts != nullptr && r < displs.size(); ++r)
    displs[r] = displs[r - 1] + std::max<std::int64_t>(counts[r - 1], 0);
  return layout(name, counts, displs.data(), type);
}

Status overlapping(const Piece& send, const Piece& recv) {
  const auto words = [](const char* name, const Piece& piece) {
    char place[32];
    std::snprintf(place, sizeof place, "%s0x%llx", piece.kind == KindId::opencl ? "offset " : "",
                  static_cast<unsigned long long>(begin_of(piece)));
    return std::string{name} + " (" + std::to_string(piece.size.value) + " bytes at " + place + ")";
  };
  return {IST_ERR_ARGUMENT, words("send", send) + " and " + words("recv", recv) + " overlap in " +
                                std::to_string(shared_bytes(send, recv).value) +
                                " bytes; give buffers that do not, or IST_IN_PLACE where the call takes it"};
}

// Sorted by where they begin, and each looked at beside the one of the other side that reaches farthest so far.
void CollectiveCall::keep_apart(const Piece& send, const Division& sent, const Piece& recv, const Division& received) {
  if (shared_bytes(send, recv) == Bytes{}) return;
  struct Stretch {
    Piece piece;
    bool is_sent;
  };
  std::vector<Stretch> all;
  const auto add = [&all](const Piece& whole, const Division& parts, bool is_sent) {
    for (int r = 0; r < parts.ranks(); ++r)
      if (const Piece part = parts.of(whole, r); part.size > Bytes{}) all.push_back({part, is_sent});
  };
  add(send, sent, true);
  add(recv, received, false);
  std::sort(all.begin(), all.end(),
            [](const Stretch& one, const Stretch& other) { return begin_of(one.piece) < begin_of(other.piece); });
  const auto end_of = [](const Stretch& stretch) { return begin_of(stretch.piece) + stretch.piece.size.value; };
  std::array<const Stretch*, 2> farthest{};
  for (const Stretch& next : all) {
    const Stretch* const other = farthest[next.is_sent ? 1 : 0];
    if (other != nullptr && end_of(*other) > begin_of(next.piece))
      return next.is_sent ? fail_for_overlap(next.piece, other->piece) : fail_for_overlap(other->piece, next.piece);
    const Stretch*& own = farthest[next.is_sent ? 0 : 1];
    if (own == nullptr || end_of(*own) < end_of(next)) own = &next;
  }
}

Entered enter(const Asked& asked) {
  if (!asked.waits) {
    if (asked.request == nullptr)
      return {nullptr, nullptr, report(IST_ERR_ARGUMENT, std::string{asked.call} + ": request is null")};
    *asked.request = IST_REQUEST_NULL;
  }
  const auto found = look_up(asked.comm);
  if (!found.ok()) return {nullptr, nullptr, refuse(asked, found.status())};
  Entered in{found->world, found->comm, IST_OK};
  if (in.world->trace() != nullptr) in.begun = Trace::Clock::now();
  return in;
}

int refuse(const Asked& asked, const Status& why) { return report(in_call(asked.call, why)); }

GivenAlike given_alike(ist_op op, ist_type type, std::int64_t count, int root) {
  GivenAlike given;
  const auto number = reinterpret_cast<std::uintptr_t>(op);
  if (number > kReductions) {
    const auto found = combiner_of(op, type);
    given.operation = !found.ok()          ? GivenAlike::kUnknown
                      : found->commutative ? GivenAlike::kCommutative
                                           : GivenAlike::kOrdered;
  } else {
    given.operation = static_cast<std::uint32_t>(number);
  }
  given.type = static_cast<std::int32_t>(type);
  given.count = count;
  given.root = root;
  return given;
}

int run_compared(const Asked& asked, const Entered& in, GivenHere given, const Status& alike,
                 const std::function<void(CollectiveCall&)>& fill) {
  constexpr std::string_view kPrefix = "ist_";
  std::string name = asked.call;
  if (!asked.waits) name.erase(kPrefix.size(), 1);                                           // the i of what does not wait
  if (const auto laid = name.rfind("_layout"); laid != std::string::npos) name.erase(laid);  // other ranks' need not be
  given.all.name(name);
  if (!alike.ok()) given.all.present = GivenAlike::kFine + static_cast<std::uint32_t>(alike.code());
  Plan plan{*in.comm, asked.call, asked.waits, false};
  Told told = tell_what_is_given(plan, given.all);
  if (!given.parts.empty()) told = tell_parts(plan, told, given.parts);
  CollectiveCall call{*in.world, plan};
  if (alike.ok())
    fill(call);
  else
    plan.fail(alike);
  hold_back(plan, told);
  if (alike.ok() || asked.waits) return leave(asked, in, plan);
  // Refused at once, as it is without the setting; the others are told all the same.
  const auto id = plan.start();
  if (id.ok()) {
    const std::lock_guard lock(in.world->engine().lock());
    in.world->engine().forget(*id);
  }
  return refuse(asked, alike);
}

int leave(const Asked& asked, const Entered& in, Plan& plan) {
  if (plan.walks()) {
    Outcome outcome;
    outcome.status = plan.end_walk();
    if (in.world->trace() != nullptr) add_to_trace(*in.world->trace(), asked.call, in, outcome.status.code());
    return finish(asked.call, outcome, in.comm->scope().group.get(), nullptr);
  }
  const auto id = plan.start();
  if (!id.ok()) return refuse(asked, id.status());
  if (asked.waits) return finish(asked.call, wait_for_own(in.world->engine(), *id), nullptr);
  *asked.request = request_handle(asked.comm, *id);
  return IST_OK;
}

}  // namespace ist
