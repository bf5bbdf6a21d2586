// C calls that pack and unpack.
#include <algorithm>

#include "base/ranges.hpp"
#include "face/message/errors.hpp"
#include "face/message/layout_calls.hpp"

namespace ist {
namespace {

Result<PackPart> part_of(const Laid& laid, std::int64_t first, std::int64_t last, bool unpacks) {
  const std::int64_t size = laid.shape->form.size;
  if (first < 0 || first > size)
    return Status{IST_ERR_ARGUMENT,
                  "first is " + std::to_string(first) + "; it must be 0 to the packed size, " + std::to_string(size)};
  if (last == IST_TO_END) last = size;
  if (last < first || last > size)
    return Status{IST_ERR_ARGUMENT, "last is " + std::to_string(last) + "; it must be IST_TO_END, or from first, " +
                                        std::to_string(first) + ", to the packed size, " + std::to_string(size)};
  return PackPart{first, last, unpacks};
}

Status move_bytes(ist_world handle, const LaidData& data, std::int64_t first, std::int64_t last, const ist_buffer& packed,
                  bool unpacks) {
  const auto found = look_up(handle);
  if (!found.ok()) return found.status();
  World& world = *found->world;
  const auto laid = lay(world, data, unpacks);
  if (!laid.ok()) return laid.status();
  const auto part = part_of(*laid, first, last, unpacks);
  if (!part.ok()) return part.status();
  if (part->from == part->to) return {};
  const auto piece = world.kinds().resolve(packed, Bytes{static_cast<std::uint64_t>(part->to - part->from)});
  if (!piece.ok()) return {piece.status().code(), "packed: " + piece.status().text()};
  return pack_part(world, *laid, *part, *piece);
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_pack_size(int64_t count, ist_layout layout, int64_t* size) try {
  if (size == nullptr) return ist::report(IST_ERR_ARGUMENT, "ist_pack_size: size is null");
  const auto shape = ist::shape_of(count, layout, false);
  if (!shape.ok()) return ist::report(ist::in_call("ist_pack_size", shape.status()));
  *size = (*shape)->form.size;
  return IST_OK;
} catch (...) {
  return ist::report_exception("ist_pack_size");
}

int ist_pack(ist_world world, ist_buffer from, int64_t count, ist_layout layout, int64_t first, int64_t last,
             ist_buffer packed) try {
  const ist::Range range("ist_pack");
  const ist::Status done = ist::move_bytes(world, {from, count, layout}, first, last, packed, false);
  return done.ok() ? IST_OK : ist::report(ist::in_call("ist_pack", done));
} catch (...) {
  return ist::report_exception("ist_pack");
}

int ist_unpack(ist_world world, ist_buffer packed, int64_t first, int64_t last, ist_buffer to, int64_t count,
               ist_layout layout) try {
  const ist::Range range("ist_unpack");
  const ist::Status done = ist::move_bytes(world, {to, count, layout}, first, last, packed, true);
  return done.ok() ? IST_OK : ist::report(ist::in_call("ist_unpack", done));
} catch (...) {
  return ist::report_exception("ist_unpack");
}
}
