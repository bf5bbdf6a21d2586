#include "collective/pairwise.hpp"

#include <algorithm>

#include "collective/nccl_call.hpp"
#include "collective/shared.hpp"

namespace ist {
namespace {

// Numbers of messages: chunks of the way in use the lower half, those of the way out the upper one.
constexpr int kWayOut = Schedule::kTags / 2;
int way_in(int chunk) { return chunk % kWayOut; }
int way_out(int chunk) { return kWayOut + chunk % kWayOut; }

// Memory for chunks: two in turn, so that one arrives while the other is combined.
class Slots {
 public:
  Slots(Plan& plan, const Piece& near, bool beside, Bytes chunk, int chunks) {
    for (int i = 0; i < std::min(chunks, 2); ++i) slots_.push_back({plan.scratch_for(near, beside, chunk), Plan::kNone});
  }
  Piece of(int chunk, Bytes bytes) const { return at(chunk).piece.part(Offset{}, bytes); }
  // The step after which the memory may be written again.
  Plan::Step last_use(int chunk) const { return at(chunk).last_use; }
  void set_last_use(int chunk, Plan::Step step) { slots_[place(chunk)].last_use = step; }

 private:
  struct Slot {
    Piece piece;
    Plan::Step last_use;
  };
  std::size_t place(int chunk) const { return static_cast<std::size_t>(chunk) % slots_.size(); }
  const Slot& at(int chunk) const { return slots_[place(chunk)]; }
  std::vector<Slot> slots_;
};

// This rank's part of a vector, combined chunk by chunk from what all ranks have of it, in the order of ranks: what comes becomes the left
// operand of what is there, as in shared memory (shared.cpp).
class OwnPart {
 public:
  struct Chunk {
    Piece piece;
    Plan::Step done = Plan::kNone;
  };
  // `result`: where the part may be combined, if it lives where this rank combines; otherwise of size 0.
  OwnPart(Plan& plan, const Piece& input, const Piece& result, const Elements& elements, const Piece& near)
      : plan_(plan),
        input_(input),
        result_(result),
        chunks_(Parts::chunks(elements, Plan::chunk_of(elements.bytes()))),
        first_(plan.combiner().commutative ? 0 : plan.size() - 1) {
    const bool beside = plan.combines_on(near, elements.bytes());
    in_result_ = beside && result.size > Bytes{};
    in_place_ = in_result_ && same_place(input, result);
    serves_ = !in_place_ && input.kind == KindId::host && (!beside || near.kind == KindId::host);
    const Bytes most = chunks_.elements(0).bytes();
    for (int from = 0; from < plan.size(); ++from) {
      const bool needed = from == first_ ? !in_result_ : from != plan.rank() || !serves_;
      slots_.emplace_back(plan, near, beside, needed ? most : Bytes{}, chunks_.size());
    }
  }
  const Parts& chunks() const { return chunks_; }
  // The chunks lie in the result already.
  bool in_result() const { return in_result_; }

  Chunk combine(int number) {
    const Piece input = chunks_.of(input_, number);
    // In place the input makes room first.
    Chunk own{input, Plan::kNone};
    if (plan_.rank() != first_ && !serves_) {
      own.piece = slot(plan_.rank()).of(number, input.size);
      own.done = plan_.copy(own.piece, input, {slot(plan_.rank()).last_use(number)});
    }
    Chunk partial{in_result_ ? chunks_.of(result_, number) : slot(first_).of(number, input.size), Plan::kNone};
    const Plan::Step free = in_result_ ? Plan::kNone : slot(first_).last_use(number);
    int distance = 1;
    const int second = nth(distance);
    if (plan_.size() > 1 && (plan_.rank() == first_ || plan_.rank() == second)) {
      // The first two at once: what comes is the left operand if this rank's own is the first.
      const bool left = plan_.rank() == first_;
      const Piece here = left ? input : own.piece;
      const Piece room = left ? slot(second).of(number, input.size) : partial.piece;
      const Plan::Step room_is_free = left ? slot(second).last_use(number) : free;
      partial.done = plan_.receive_combined({partial.piece, here, room, left}, left ? second : first_, way_in(number),
                                            {room_is_free, in_place_ ? own.done : Plan::kNone}, {free, own.done});
      slot(second).set_last_use(number, partial.done);
      ++distance;
    } else if (plan_.rank() != first_) {
      partial.done = plan_.receive(partial.piece, first_, way_in(number), {free, in_place_ ? own.done : Plan::kNone});
    } else if (!in_place_) {
      partial.done = plan_.copy(partial.piece, input, {free});
    }
    for (; distance < plan_.size(); ++distance) {
      const int from = nth(distance);
      Chunk next = own;
      if (from != plan_.rank()) {
        next.piece = slot(from).of(number, input.size);
        next.done = plan_.receive(next.piece, from, way_in(number), {slot(from).last_use(number)});
      }
      partial.done = plan_.combine(partial.piece, next.piece, {next.done, partial.done});
      slot(from).set_last_use(number, partial.done);
    }
    return partial;
  }
  // After this step the chunk that combine() gave is needed no more.
  void release(int number, Plan::Step step) { slot(first_).set_last_use(number, step); }

 private:
  // In the order of combining.
  int nth(int number) const { return first_ == 0 ? number : first_ - number; }
  Slots& slot(int rank) { return slots_[static_cast<std::size_t>(rank)]; }

  Plan& plan_;
  Piece input_;
  Piece result_;
  Parts chunks_;
  int first_;  // whose input the others' are combined with
  bool in_result_ = false;
  bool in_place_ = false;     // the input lies there
  bool serves_ = false;       // the input is combined where it lies
  std::vector<Slots> slots_;  // by rank
};

// What this rank has of the others' parts, to them; the steps by rank and chunk.
std::vector<std::vector<Plan::Step>> send_parts(Plan& plan, const Piece& input, const Division& layout) {
  std::vector<std::vector<Plan::Step>> sent(static_cast<std::size_t>(plan.size()));
  for (int distance = 1; distance < plan.size(); ++distance) {
    const int to = (plan.rank() + distance) % plan.size();
    const Piece part = layout.of(input, to);
    const Parts chunks = Parts::chunks(layout.elements(to), Plan::chunk_of(layout.elements(to).bytes()));
    for (int c = 0; c < chunks.size(); ++c)
      sent[static_cast<std::size_t>(to)].push_back(plan.send(chunks.of(part, c), to, way_in(c), {}));
  }
  return sent;
}

// The same part for every rank: the counts are, by the call's rule, the same on all of them.
bool all_alike(const Division& layout) {
  if (layout.alike()) return true;
  for (int rank = 1; rank < layout.ranks(); ++rank)
    if (layout.elements(rank).count != layout.elements(0).count) return false;
  return true;
}

}  // namespace

void plan_reduce_scatter(Plan& plan, const Piece& send, const Piece& recv, const Division& layout, bool in_place) {
  const bool alike = all_alike(layout);
  plan.tell(Plan::Call::reduce_scatter, layout.total(), alike ? 0 : 1);
  const Bytes all{layout.elements(0).bytes().value * static_cast<std::uint64_t>(layout.ranks())};
  if (plan.suits_nccl(ChosenCall::reduce_scatter, all) && alike && nccl_knows(plan.combiner())) {
    const NcclWork work{.what = ChosenCall::reduce_scatter, .send = send, .recv = recv, .usable = !in_place};
    return offer_elements(plan, work, layout.elements(0),
                          [=](Plan& late) { plan_reduce_scatter(late, send, recv, layout, in_place); });
  }
  if (alike && plan.size() > 1 && plan.choose(ChosenCall::reduce_scatter, all) == Algorithm::shared)
    return shared_reduce_scatter(plan, send, recv, layout);
  plan.take(Algorithm::direct);
  if (!in_place) plan.walk(layout.largest());
  const int rank = plan.rank();
  const Elements mine = layout.elements(rank);
  const auto sent = send_parts(plan, send, layout);
  // In place the result would lie on what is still to be sent and combined: it is moved there in the end.
  const Piece aside = in_place ? plan.scratch_for(recv, false, mine.bytes()) : Piece{};
  const Piece result = in_place ? aside : recv.part(Offset{}, mine.bytes());
  OwnPart own{plan, layout.of(send, rank), in_place ? Piece{} : result, mine, recv};
  std::vector<Plan::Step> there;
  for (int c = 0; c < own.chunks().size(); ++c) {
    const OwnPart::Chunk chunk = own.combine(c);
    if (own.in_result()) continue;
    there.push_back(plan.copy(own.chunks().of(result, c), chunk.piece, {chunk.done}));
    own.release(c, there.back());
  }
  if (!in_place) return;
  const Plan::Step moved = plan.copy(recv.part(Offset{}, mine.bytes()), aside, {});
  for (const Plan::Step step : there) plan.need(moved, step);
  for (const auto& steps : sent)
    for (const Plan::Step step : steps) plan.need(moved, step);
}

void plan_pairwise_reduce(Plan& plan, const ReductionData& data, int root) {
  const int rank = plan.rank();
  plan.walk(Division::split(data.elements, plan.size()).largest());
  const bool wants = root == kEverybody || root == rank;
  const Division layout = Division::split(data.elements, plan.size());
  const auto sent = send_parts(plan, data.send, layout);
  const Piece result = wants ? layout.of(data.recv, rank) : Piece{};
  OwnPart own{plan, layout.of(data.send, rank), result, layout.elements(rank), wants ? data.recv : data.send};
  for (int c = 0; c < own.chunks().size(); ++c) {
    const OwnPart::Chunk chunk = own.combine(c);
    const Plan::Step used = plan.join();
    if (wants && !own.in_result()) plan.need(used, plan.copy(own.chunks().of(result, c), chunk.piece, {chunk.done}));
    for (int distance = 1; distance < plan.size(); ++distance) {
      const int to = (rank + distance) % plan.size();
      if (root == kEverybody || to == root) plan.need(used, plan.send(chunk.piece, to, way_out(c), {chunk.done}));
    }
    own.release(c, used);
  }
  for (int from = 0; wants && from < plan.size(); ++from) {
    if (from == rank) continue;
    const Piece part = layout.of(data.recv, from);
    const Parts chunks = Parts::chunks(layout.elements(from), Plan::chunk_of(layout.elements(from).bytes()));
    // In place, this rank's own input must have gone before.
    for (int c = 0; c < chunks.size(); ++c)
      plan.receive(chunks.of(part, c), from, way_out(c),
                   {data.in_place ? sent[static_cast<std::size_t>(from)][static_cast<std::size_t>(c)] : Plan::kNone});
  }
}

namespace {

// Of the ring: the vector in parts, which lie where they are combined, and the last step of each chunk.
struct RingPart {
  Parts chunks;
  Piece piece;
  std::vector<Plan::Step> done;  // by chunk: the input or the partial result is there
  std::vector<Plan::Step> sent;  // by chunk: and has gone to the right
};

std::vector<RingPart> ring_parts(Plan& plan, const ReductionData& data, const Piece& work) {
  const Division layout = Division::split(data.elements, plan.size());
  std::vector<RingPart> parts;
  for (int p = 0; p < plan.size(); ++p) {
    RingPart part{Parts::chunks(layout.elements(p), Plan::chunk_of(data.elements.bytes())), layout.of(work, p), {}, {}};
    part.sent.resize(static_cast<std::size_t>(part.chunks.size()), Plan::kNone);
    const bool there = same_place(work, data.send);
    for (int c = 0; c < part.chunks.size(); ++c)
      part.done.push_back(there ? Plan::kNone
                                : plan.copy(part.chunks.of(part.piece, c), part.chunks.of(layout.of(data.send, p), c), {}));
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace

// In round k rank r sends part r - k to the right and combines part r - k - 1 with what comes from the left; after n - 1
// rounds part r + 1 is complete, and goes round once more.
void plan_ring_allreduce(Plan& plan, const ReductionData& data) {
  const int size = plan.size();
  const int right = (plan.rank() + 1) % size;
  const int left = (plan.rank() - 1 + size) % size;
  const bool beside = plan.combines_on(data.recv, data.elements.bytes());
  const Piece work = beside ? data.recv : plan.scratch_for(data.recv, false, data.elements.bytes());
  std::vector<RingPart> parts = ring_parts(plan, data, work);
  const auto part_at = [&](int p) -> RingPart& { return parts[static_cast<std::size_t>((p + 2 * size) % size)]; };
  const int most = parts.front().chunks.size();
  Slots slots{plan, work, beside, parts.front().chunks.elements(0).bytes(), 2};
  int arrivals = 0;
  for (int k = 0; k < size - 1; ++k) {
    RingPart& gone = part_at(plan.rank() - k);
    RingPart& come = part_at(plan.rank() - k - 1);
    for (int c = 0; c < gone.chunks.size(); ++c) {
      const auto at = static_cast<std::size_t>(c);
      gone.sent[at] = plan.send(gone.chunks.of(gone.piece, c), right, way_in(k * most + c), {gone.done[at]});
    }
    for (int c = 0; c < come.chunks.size(); ++c, ++arrivals) {
      const auto at = static_cast<std::size_t>(c);
      const Piece theirs = slots.of(arrivals, come.chunks.elements(c).bytes());
      const Piece here = come.chunks.of(come.piece, c);
      come.done[at] = plan.receive_combined({here, here, theirs}, left, way_in(k * most + c), {slots.last_use(arrivals)},
                                            {come.done[at]});
      slots.set_last_use(arrivals, come.done[at]);
    }
  }
  for (int k = 0; k < size - 1; ++k) {
    RingPart& gone = part_at(plan.rank() + 1 - k);
    RingPart& come = part_at(plan.rank() - k);
    for (int c = 0; c < gone.chunks.size(); ++c)
      plan.send(gone.chunks.of(gone.piece, c), right, way_out(k * most + c), {gone.done[static_cast<std::size_t>(c)]});
    for (int c = 0; c < come.chunks.size(); ++c) {
      const auto at = static_cast<std::size_t>(c);
      come.done[at] = plan.receive(come.chunks.of(come.piece, c), left, way_out(k * most + c), {come.sent[at]});
    }
  }
  if (beside) return;
  const Division layout = Division::split(data.elements, size);
  for (int p = 0; p < size; ++p) {
    const Plan::Step out = plan.copy(layout.of(data.recv, p), part_at(p).piece, {});
    for (const Plan::Step step : part_at(p).done) plan.need(out, step);
  }
}

}  // namespace ist
