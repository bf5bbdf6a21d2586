#include "face/message/laid_sides.hpp"

#include <mutex>

#include "layout/constructors.hpp"
#include "layout/form.hpp"

namespace ist {
namespace {

Result<NamedLayout> committed(ist_layout handle) {
  auto found = layout_of(handle);
  if (found.ok() && !found->shapes)
    return Status{IST_ERR_ARGUMENT, "the layout, " + found->made_by + ", is not committed; call ist_layout_commit once"};
  return found;
}

Status about(const char* name, const Status& why) { return {why.code(), std::string{name} + ": " + why.text()}; }

Status without_lists(const char* name) {
  return {IST_ERR_ARGUMENT, std::string{name} + ": the counts, the displacements or the layouts are null"};
}

}  // namespace

// The parts as one layout, in the order of ranks.
Result<SharedLayout> LaidSide::joined(int ranks, std::vector<Division::Part>& parts) const {
  const auto number = static_cast<std::size_t>(ranks);
  const Numbers counts{given_.counts, number}, displs{given_.displs, number};
  std::vector<SharedLayout> layouts;
  std::uint64_t place = 0;
  for (std::size_t r = 0; r < number; ++r) {
    const auto found = committed(given_.parts == Parts::each ? given_.layouts[r] : given_.layout);
    if (!found.ok()) return Status{found.status().code(), "part " + std::to_string(r) + ": " + found.status().text()};
    layouts.push_back(found->layout);
    const auto part = found->shapes->of(counts[r]);
    if (!part.ok()) return Status{part.status().code(), "part " + std::to_string(r) + ": " + part.status().text()};
    parts.push_back({static_cast<std::uint64_t>((*part)->form.size), Bytes{place}});
    place += parts.back().count;
  }
  return given_.parts == Parts::each ? struct_layout(counts, displs, layouts)
                                     : indexed_layout(counts, displs, Unit::extents, layouts.front());
}

Status LaidSide::find_list(int ranks, bool written) {
  if (given_.counts == nullptr || given_.displs == nullptr || (given_.parts == Parts::each && given_.layouts == nullptr))
    return without_lists(given_.name);
  std::vector<Division::Part> parts;
  auto made = joined(ranks, parts);
  if (!made.ok()) return about(given_.name, made.status());
  auto shape = Shapes(*made).of(1);
  if (!shape.ok()) return about(given_.name, shape.status());
  if (written && (*shape)->overlap == Overlap::some)
    return {IST_ERR_ARGUMENT,
            std::string{given_.name} +
                ": the parts have a byte twice, and cannot be written to; check displacements and extents"};
  shape_ = std::move(*shape);
  division_ = Division::varied(std::move(parts), Bytes{1});
  return {};
}

Status LaidSide::find(int ranks, bool written) {
  if (varies()) return find_list(ranks, written);
  const int parts = given_.parts == Parts::one ? 1 : ranks;
  std::int64_t count = 0;
  if (__builtin_mul_overflow(given_.count, std::int64_t{parts}, &count))
    return {IST_ERR_OVERFLOW, std::string{given_.name} + ": " + std::to_string(given_.count) + " layouts for each of " +
                                  std::to_string(parts) + " ranks are more than any buffer holds"};
  auto shape = shape_of(count, given_.layout, written);
  if (!shape.ok()) return about(given_.name, shape.status());
  shape_ = std::move(*shape);
  division_ = Division::even({size().value / static_cast<std::uint64_t>(parts), Bytes{1}}, parts);
  return {};
}

// Host memory is packed here; on a device a kernel does, which the call begins after.
Result<Piece> LaidSide::in_block(CollectiveCall& call, const Laid& laid, Range kept, bool comes) const {
  World& world = call.world();
  auto block = block_for(world.engine(), work_of(laid));
  if (!block.ok()) return block.status();
  PackWork& work = (*block)->work;
  const Piece packed = work.packed;
  call.plan().use(packed);
  if (packed.kind == KindId::host) {
    if (kept.from < kept.to)
      pack(*work.form, work.memory.address() + work.origin, kept.from, kept.to, packed.address() + kept.from);
  } else {
    const std::lock_guard lock(world.engine().lock());
    auto ready = world.engine().pending_work(work.memory);
    if (!ready.ok()) return ready.status();
    (*block)->ready = std::move(*ready);
    if (kept.from < kept.to) {
      const PackWork before = work.part(kept.from, Bytes{static_cast<std::uint64_t>(kept.to - kept.from)});
      auto ticket = world.kinds().find(packed.kind)->packing()->pack_bytes(before, (*block)->ready);
      if (!ticket.ok()) return ticket.status();
      call.plan().schedule().wait_for(std::move(*ticket));
    }
  }
  work.unpacks = comes;
  call.plan().keep(std::move(*block));
  return packed;
}

Piece LaidSide::bytes(CollectiveCall& call, Range kept, bool comes) const {
  if (size() == Bytes{}) return host_piece(nullptr, Bytes{});
  const auto found = [&]() -> Result<Piece> {
    if (is_in_place(given_.buffer)) return Status{IST_ERR_ARGUMENT, "IST_IN_PLACE is not allowed here on this rank"};
    auto laid = lay(call.world(), given_.buffer, shape_);
    if (!laid.ok()) return laid.status();
    const auto whole = in_one_piece(*laid);
    if (!whole) return in_block(call, *laid, kept, comes);
    call.plan().use(*whole);
    return *whole;
  }();
  if (found.ok()) return *found;
  call.fail(about(given_.name, found.status()));
  return host_piece(nullptr, size());
}

}  // namespace ist
