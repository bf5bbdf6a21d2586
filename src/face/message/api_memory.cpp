// C calls about memory of any kind.
#include "base/ranges.hpp"
#include "face/message/calls.hpp"
#include "face/message/errors.hpp"
#include "layout/extent.hpp"

namespace ist {
namespace {

ist_buffer to_buffer(const Piece& piece) {
  ist_buffer buffer = ist_make_buffer(static_cast<std::uint32_t>(piece.kind), piece.object, piece.offset.value, piece.queue);
  buffer.device = piece.device;
  return buffer;
}

Piece piece_of(const ist_buffer& buffer) {
  Piece piece;
  piece.kind = static_cast<KindId>(buffer.kind);
  piece.device = buffer.device;
  piece.object = buffer.object;
  piece.queue = buffer.queue;
  return piece;
}

bool is_kind(ist_kind kind) { return kind >= IST_KIND_HOST && kind <= IST_KIND_GL; }

Status copy_between(World& world, const ist_buffer& to, const ist_buffer& from, Bytes size) {
  if (size == Bytes{}) return {};
  auto target = world.kinds().resolve(to, size);
  if (!target.ok()) return target.status();
  auto source = world.kinds().resolve(from, size);
  if (!source.ok()) return source.status();
  return copy_pieces(world, *target, *source);
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_kind_devices(ist_world world, ist_kind kind, int* count) try {
  if (count == nullptr) return ist::report(IST_ERR_ARGUMENT, "ist_kind_devices: count is null");
  *count = 0;
  const auto found = ist::look_up(world);
  if (!found.ok()) return ist::report(ist::in_call("ist_kind_devices", found.status()));
  const auto known = found->world->kinds().usable(static_cast<std::uint32_t>(kind));
  if (known.ok()) *count = static_cast<int>((*known)->devices().size());
  // A kind that is not there has no devices, and a number that is no kind is an error.
  return known.ok() || ist::is_kind(kind) ? IST_OK : ist::report(ist::in_call("ist_kind_devices", known.status()));
} catch (...) {
  return ist::report_exception("ist_kind_devices");
}

int ist_memory_alloc(ist_world world, ist_kind kind, int device, size_t bytes, ist_buffer* buffer) try {
  const ist::Range range("ist_memory_alloc");
  if (buffer == nullptr) return ist::report(IST_ERR_ARGUMENT, "ist_memory_alloc: buffer is null");
  *buffer = ist_host(nullptr);
  const auto found = ist::look_up(world);
  if (!found.ok()) return ist::report(ist::in_call("ist_memory_alloc", found.status()));
  const auto known = found->world->kinds().usable(static_cast<std::uint32_t>(kind));
  if (!known.ok()) return ist::report(ist::in_call("ist_memory_alloc", known.status()));
  if (device == IST_OWN_DEVICE) device = found->world->own_device(**known);
  auto piece = (*known)->allocate(device, ist::Bytes{bytes});
  if (!piece.ok()) return ist::report(ist::in_call("ist_memory_alloc", piece.status()));
  *buffer = ist::to_buffer(*piece);
  return IST_OK;
} catch (...) {
  return ist::report_exception("ist_memory_alloc");
}

int ist_memory_free(ist_world world, ist_buffer buffer) try {
  const ist::Range range("ist_memory_free");
  const auto found = ist::look_up(world);
  if (!found.ok()) return ist::report(ist::in_call("ist_memory_free", found.status()));
  if (buffer.object == 0) return IST_OK;
  const auto known = found->world->kinds().usable(buffer.kind);
  if (!known.ok()) return ist::report(ist::in_call("ist_memory_free", known.status()));
  if (buffer.offset != 0)
    return ist::report(IST_ERR_ARGUMENT, "ist_memory_free: the buffer begins " + std::to_string(buffer.offset) +
                                             " bytes inside its memory; pass the one that ist_memory_alloc gave");
  if (buffer.kind == IST_KIND_HOST) {
    const ist::Status free = found->world->registrations().may_free(reinterpret_cast<const void*>(buffer.object));
    if (!free.ok()) return ist::report(ist::in_call("ist_memory_free", free));
  }
  const ist::Status released = (*known)->release(ist::piece_of(buffer));
  return released.ok() ? IST_OK : ist::report(ist::in_call("ist_memory_free", released));
} catch (...) {
  return ist::report_exception("ist_memory_free");
}

int ist_memory_copy(ist_world world, ist_buffer to, ist_buffer from, size_t bytes) try {
  const ist::Range range("ist_memory_copy");
  const auto found = ist::look_up(world);
  if (!found.ok()) return ist::report(ist::in_call("ist_memory_copy", found.status()));
  const ist::Status copied = ist::copy_between(*found->world, to, from, ist::Bytes{bytes});
  return copied.ok() ? IST_OK : ist::report(ist::in_call("ist_memory_copy", copied));
} catch (...) {
  return ist::report_exception("ist_memory_copy");
}

int ist_register(ist_world world, void* address, size_t bytes) try {
  const ist::Range range("ist_register");
  const auto found = ist::look_up(world);
  if (!found.ok()) return ist::report(ist::in_call("ist_register", found.status()));
  const auto own = [&](const ist::MemoryKind& kind) { return found->world->own_device(kind); };
  const ist::Status added = found->world->registrations().add(address, ist::Bytes{bytes}, own);
  return added.ok() ? IST_OK : ist::report(ist::in_call("ist_register", added));
} catch (...) {
  return ist::report_exception("ist_register");
}

int ist_unregister(ist_world world, void* address) try {
  const ist::Range range("ist_unregister");
  const auto found = ist::look_up(world);
  if (!found.ok()) return ist::report(ist::in_call("ist_unregister", found.status()));
  const ist::Status removed = found->world->registrations().remove(address);
  return removed.ok() ? IST_OK : ist::report(ist::in_call("ist_unregister", removed));
} catch (...) {
  return ist::report_exception("ist_unregister");
}

size_t ist_type_size(ist_type type) { return ist::size_of(type).value; }
}
