#include "collective/plan.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/log.hpp"
#include "layout/form.hpp"
#include "path/shm/pair_slot.hpp"
#include "protocol/copy_beliefs.hpp"

namespace ist {
namespace {

// Host scratch up to this size is page-locked and comes from the pool.
constexpr Bytes kMostPooled = mebibytes(16);

// What a call may do step by step: longer ones go round the ring or in one copy, which the engine moves on in pieces, also of several messages at a time.
constexpr Bytes kMostWalked = kibibytes(64);

// Bytes of that memory up to which the host combines.
double computed_by_host(const Piece& piece, const Arithmetic& there, const MachineProfile& machine) {
  if (there.by_processor(piece.device)) return machine.device_arithmetic_above_processor;
  if (piece.kind == KindId::opencl)
    return machine.shares_opencl ? machine.device_arithmetic_above_opencl_shared : machine.device_arithmetic_above_opencl;
  return machine.shares_device ? machine.device_arithmetic_above_shared : machine.device_arithmetic_above;
}

bool is_aligned(const Piece& piece, ist_type type) {
  const auto element = element_of(type);
  const std::uint64_t alignment = element ? alignment_of(*element).value : 1;
  // An OpenCL buffer itself is aligned for every type, and so is what drivers allocate.
  return (piece.kind == KindId::opencl ? piece.offset.value : piece.object + piece.offset.value) % alignment == 0;
}

}  // namespace

// The numbers wrap; so many are never under way at once. Negative, so that they are nobody else's tags.
std::int32_t Plan::first_tag(std::uint64_t call) {
  return static_cast<std::int32_t>(0x80000000U | (call & 0xfffffU) << 11U);
}

void Plan::walk(Bytes bytes) {
  const Bytes most = smaller(kMostWalked, comm_.engine().parts().settings.eager_limit);
  if (may_walk_ && !schedule_ && bytes <= most) walk_.emplace(comm_, combiner_, number_);
}

void Plan::walk_longer(Bytes bytes, bool to_busy) {
  walk(bytes);
  if (walk_ || !may_walk_ || schedule_) return;
  const EngineParts& parts = comm_.engine().parts();
  const Bytes in_slots =
      smaller(pair_slot_limit(parts.settings.eager_limit, static_cast<std::uint32_t>(comm_.engine().size())),
              slots_up_to(parts.machine, parts.settings));
  if (bytes > smaller(kMostWalked, in_slots)) return;
  walk_.emplace(comm_, combiner_, number_);
  walk_->is_longer(!to_busy);
}

void Plan::fail(const Status& why) {
  if (walk_) return walk_->fail(why);
  if (shared_at_once_) return shared_at_once_->fail(why);
  schedule().fail(why);
}

SharedCall& Plan::share() {
  if (may_walk_ && !schedule_) {
    shared_at_once_.emplace(*comm_.lane(), number_, combiner_);
    shared_at_once_->at_once();
    return *shared_at_once_;
  }
  shared_later_ = std::make_unique<SharedCall>(*comm_.lane(), number_, combiner_);
  return *shared_later_;
}

Piece Plan::shared_input(const Piece& piece) {
  if (piece.kind == KindId::host) return piece;
  const Piece aside = host_scratch(piece.size);
  shared_inputs_.push_back(schedule().copy(aside, piece, {}));
  return aside;
}

Piece Plan::shared_output(const Piece& piece) {
  if (piece.kind == KindId::host) return piece;
  const Piece aside = host_scratch(piece.size);
  shared_outputs_.emplace_back(piece, aside);
  return aside;
}

void Plan::end_shared() {
  if (shared_at_once_) return;
  shared_later_->begin();
  const Step over = schedule().act(as_action(std::move(shared_later_), comm_.lane()), {});
  for (const Step input : shared_inputs_) schedule().need(over, input);
  for (const auto& [to, from] : shared_outputs_) schedule().copy(to, from, {over});
}

// Only with host memory.
Status Plan::end_walk() {
  Status ended = walk_ ? walk_->end() : shared_at_once_->end();
  if (!ended.ok()) return ended;
  for (const auto& laid : laid_)
    if (const PackWork& work = laid->work; work.unpacks)
      unpack(*work.form, work.memory.address() + work.origin, 0, work.to, work.packed.address());
  return {};
}

Result<OperationId> Plan::start() {
  for (auto& laid : laid_) schedule().keep(std::move(laid));
  if (comm_.lane() != nullptr && into_ == nullptr && !compared_)
    schedule().doubt_by([lane = comm_.lane(), number = number_](bool asks) { return lane->compare(number, asks); });
  schedule().set_combiner(combiner_);
  const std::lock_guard lock(comm_.engine().lock());
  const auto id = comm_.engine().start_schedule(std::move(schedule_));
  if (!may_walk_) comm_.engine().move_on_others();  // one that waits looks itself
  return id;
}

void Plan::use(const Piece& piece) {
  if (piece.kind == KindId::host) return;
  may_walk_ = false;
  on_cuda_ |= piece.kind == KindId::cuda;
  const std::lock_guard lock(comm_.engine().lock());
  auto ready = comm_.engine().pending_work(piece);
  if (ready.ok()) {
    schedule().wait_for(std::move(*ready));
  } else {
    schedule().fail(ready.status());
  }
}

bool Plan::combines_on(const Piece& piece, Bytes bytes) const {
  if (piece.kind == KindId::host) return true;
  Arithmetic* arithmetic = comm_.engine().parts().kinds.find(piece.kind)->arithmetic();
  const MachineProfile& machine = comm_.engine().parts().machine;
  if (arithmetic == nullptr || static_cast<double>(bytes.value) <= computed_by_host(piece, *arithmetic, machine) ||
      combiner_.function != nullptr || !is_aligned(piece, combiner_.type))
    return false;
  const Status can = arithmetic->can(combiner_.reduction, combiner_.type, piece.device);
  if (!can.ok())
    log::once(log::Level::warning,
              "long reductions of device memory are computed on the host, which is slower: " + can.text());
  return can.ok();
}

Piece Plan::host_scratch(Bytes bytes) {
  if (bytes == Bytes{}) return host_piece(nullptr, bytes);
  if (std::byte* room = walk_ ? walk_->room(bytes) : nullptr; room != nullptr) return host_piece(room, bytes);
  if (bytes > kMostPooled) return scratch_for(host_piece(nullptr, bytes), true, bytes);
  auto block = comm_.engine().parts().pool.take(bytes);
  if (!block.ok()) {
    fail(block.status());
    return host_piece(nullptr, bytes);
  }
  if (!walk_) return schedule().keep(std::move(*block)).part(Offset{}, bytes);
  const Piece piece = host_piece(block->data(), bytes);
  walk_->keep(std::move(*block));
  return piece;
}

Plan::Step Plan::receive_combined(const Operands& with, int from, int number, std::initializer_list<Step> free,
                                  std::initializer_list<Step> needs) {
  const auto on_host = [](const Piece& piece) { return piece.kind == KindId::host; };
  if (with.as_it_comes && !walk_ && combiner_.function == nullptr && on_host(with.to) && on_host(with.here) &&
      on_host(with.room)) {
    const Fold fold{combiner_.reduction, combiner_.type, with.to.address(),
                    with.here.address(), with.to.size,   with.came_left};
    const Step step = schedule().receive(fold, with.room, comm_.to_world(from), number, needs);
    for (const Step needed : free) need(step, needed);
    return step;
  }
  const Step came = receive(with.room, from, number, free);
  const Step ready = join();
  need(ready, came);
  for (const Step needed : needs) need(ready, needed);
  if (with.came_left) {
    const Step there = same_place(with.to, with.here) ? kNone : copy(with.to, with.here, {ready});
    return combine(with.to, with.room, {ready, there});
  }
  const Step done = combine(with.room, with.here, {ready});
  return same_place(with.to, with.room) ? done : copy(with.to, with.room, {done});
}

Piece Plan::scratch_for(const Piece& piece, bool beside, Bytes bytes) {
  if (!beside || (piece.kind == KindId::host && bytes <= kMostPooled)) return host_scratch(bytes);
  auto block = comm_.engine().scratch().take(piece, bytes);
  if (block.ok()) return schedule().keep(std::move(*block)).part(Offset{}, bytes);
  fail(block.status());
  return host_piece(nullptr, bytes);
}

Parts Parts::even(const Elements& elements, int parts) {
  Parts made;
  made.each_ = elements.each;
  const auto number = static_cast<std::uint64_t>(parts);
  for (std::uint64_t p = 0; p <= number; ++p)
    made.starts_.push_back(elements.count / number * p + std::min(p, elements.count % number));
  return made;
}

Parts Parts::chunks(const Elements& elements, Bytes most) {
  Parts made;
  made.each_ = elements.each;
  const std::uint64_t at_once = std::max<std::uint64_t>(most.value / elements.each.value, 1);
  for (std::uint64_t start = 0; start < elements.count; start += at_once) made.starts_.push_back(start);
  if (made.starts_.empty()) made.starts_.push_back(0);  // nothing, in one part: everybody still hears of everybody
  made.starts_.push_back(elements.count);
  return made;
}

}  // namespace ist
