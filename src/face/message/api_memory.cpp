// C calls about memory of any kind.
#include <mutex>
#include <thread>

#include "face/message/errors.hpp"
#include "face/message/handles.hpp"
#include "layout/extent.hpp"
#include "memory/transfer.hpp"

namespace ist {
namespace {

Result<MemoryKind*> find_kind(World& world, ist_kind kind) {
  if (MemoryKind* found = world.kinds().find(static_cast<KindId>(kind))) return found;
  std::string text = "memory kind " + std::to_string(static_cast<int>(kind)) + " is not available; available:";
  for (const auto& known : world.kinds().all()) text.append(" ").append(known->name());
  for (const auto& missing : world.kinds().missing())
    text.append("; ").append(missing.name).append(" is off: ").append(missing.reason);
  return Status{IST_ERR_KIND, text};
}

ist_buffer to_buffer(const Piece& piece) {
  ist_buffer buffer = ist_make_buffer(static_cast<std::uint32_t>(piece.kind), piece.object, piece.offset.value, piece.queue);
  buffer.device = piece.device;
  return buffer;
}

Status copy_between(World& world, const ist_buffer& to, const ist_buffer& from, Bytes size) {
  if (size == Bytes{}) return {};
  auto target = world.kinds().resolve(to, size);
  if (!target.ok()) return target.status();
  auto source = world.kinds().resolve(from, size);
  if (!source.ok()) return source.status();
  return world.kinds().copy_and_wait(*target, *source);
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_kind_devices(ist_world world, ist_kind kind, int* count) {
  if (count == nullptr) return ist::report(IST_ERR_ARGUMENT, "ist_kind_devices: count is null");
  *count = 0;
  const auto found = ist::look_up(world);
  if (!found.ok()) return ist::report(found.status());
  if (const ist::MemoryKind* known = found->world->kinds().find(static_cast<ist::KindId>(kind)))
    *count = static_cast<int>(known->devices().size());
  return IST_OK;
}

int ist_memory_alloc(ist_world world, ist_kind kind, int device, size_t bytes, ist_buffer* buffer) {
  if (buffer == nullptr) return ist::report(IST_ERR_ARGUMENT, "ist_memory_alloc: buffer is null");
  *buffer = ist_host(nullptr);
  const auto found = ist::look_up(world);
  if (!found.ok()) return ist::report(found.status());
  auto known = ist::find_kind(*found->world, kind);
  if (!known.ok()) return ist::report(known.status());
  auto piece = (*known)->allocate(device, ist::Bytes{bytes});
  if (!piece.ok()) return ist::report(piece.status());
  *buffer = ist::to_buffer(*piece);
  return IST_OK;
}

int ist_memory_free(ist_world world, ist_buffer buffer) {
  const auto found = ist::look_up(world);
  if (!found.ok()) return ist::report(found.status());
  if (buffer.object == 0) return IST_OK;
  auto known = ist::find_kind(*found->world, static_cast<ist_kind>(buffer.kind));
  if (!known.ok()) return ist::report(known.status());
  ist::Piece piece;
  piece.kind = static_cast<ist::KindId>(buffer.kind);
  piece.device = buffer.device;
  piece.object = buffer.object;
  piece.queue = buffer.queue;
  return ist::report((*known)->release(piece));
}

int ist_memory_copy(ist_world world, ist_buffer to, ist_buffer from, size_t bytes) {
  const auto found = ist::look_up(world);
  if (!found.ok()) return ist::report(found.status());
  return ist::report(ist::copy_between(*found->world, to, from, ist::Bytes{bytes}));
}

size_t ist_type_size(ist_type type) { return ist::size_of(type).value; }
}
