#include "memory/kinds.hpp"

#include "memory/host/host_kind.hpp"
#include "memory/opencl/opencl_kind.hpp"
#include "memory/workers.hpp"
#ifdef ISTHMUS_HAVE_CUDA
#include "memory/cuda/cuda_kind.hpp"
#endif

namespace ist {
namespace {

using MakeKind = Result<std::unique_ptr<MemoryKind>> (*)(const KindOptions& options);

Result<std::unique_ptr<MemoryKind>> make_host_kind(const KindOptions& options) {
  return std::unique_ptr<MemoryKind>{std::make_unique<HostKind>(options.shared)};
}

#ifndef ISTHMUS_HAVE_CUDA
Result<std::unique_ptr<MemoryKind>> make_cuda_kind(const KindOptions&) {
  return Status{IST_ERR_KIND, "the CUDA parts were left out of this build; build where nvcc is, with make CUDA=ON"};
}
#endif

Result<std::unique_ptr<MemoryKind>> make_cuda(const KindOptions& options) { return make_cuda_kind(options); }
Result<std::unique_ptr<MemoryKind>> make_opencl(const KindOptions&) { return make_opencl_kind(); }

// In the order of kKindNames. Host comes first, and is always loaded.
constexpr std::array<MakeKind, kKindNames.size()> kMakeKind{make_host_kind, make_cuda, make_opencl};

bool listed(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    const auto comma = list.find(',');
    if (const auto word = list.substr(0, comma); word == name || word == "all") return true;
    list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
  }
  return false;
}

bool is_ready(const ist_buffer& buffer) { return (buffer.flags & IST_BUFFER_READY) != 0; }

std::string name_of_kind(std::uint32_t kind) {
  if (kind == IST_KIND_GL) return "gl";
  if (kind >= 1 && kind <= kKindNames.size()) return std::string{kKindNames[kind - 1]};
  return std::to_string(kind);
}

}  // namespace

Result<std::unique_ptr<Kinds>> Kinds::load(const std::string& kinds, const KindOptions& options) {
  if (!lists_kinds(kinds))
    return Status{IST_ERR_SETTING, "the list of memory kinds \"" + kinds +
                                       "\" cannot be used: expected all, or a comma-separated list of " + kind_names()};
  auto loaded = std::make_unique<Kinds>();
  for (std::size_t i = 0; i < kKindNames.size(); ++i) {
    const std::string name{kKindNames[i]};
    if (i == 0 || listed(kinds, name))
      loaded->add(name, kMakeKind[i](options));
    else
      loaded->missing_.push_back(
          {name, "left out by the list of kinds \"" + kinds + "\"; add it to ISTHMUS_KINDS, or set that to all"});
  }
  return loaded;
}

Result<std::unique_ptr<Kinds>> Kinds::load(const Settings& settings, Bytes shared) {
  return load(settings.kinds, KindOptions{settings.worker, shared, settings.check});
}

void Kinds::add(std::string_view name, Result<std::unique_ptr<MemoryKind>> made) {
  if (!made.ok()) {
    missing_.push_back({std::string{name}, made.status().text()});
    return;
  }
  by_id_[static_cast<std::size_t>((*made)->id())] = made->get();
  kinds_.push_back(std::move(made).value());
}

MemoryKind* Kinds::find(KindId id) const {
  const auto index = static_cast<std::size_t>(id);
  return index < by_id_.size() ? by_id_[index] : nullptr;
}

Recognised Kinds::recognise(const void* address) const {
  for (const auto& kind : kinds_) {
    if (kind->id() == KindId::host) continue;
    if (auto found = kind->recognise(address)) return *found;
  }
  return {};
}

Status Kinds::absent(std::uint32_t kind) const {
  const std::string name = name_of_kind(kind);
  for (const Missing& each : missing_)
    if (each.name == name) return {IST_ERR_KIND, "memory of kind " + name + " is not available here: " + each.reason};
  return {IST_ERR_KIND, "memory of kind " + name +
                            " was named, which this version does not know; name IST_KIND_HOST, IST_KIND_CUDA or " +
                            "IST_KIND_OPENCL, and make buffers with ist_host, ist_cuda, ist_opencl or ist_auto"};
}

Result<MemoryKind*> Kinds::usable(std::uint32_t kind) const {
  if (kind < by_id_.size())
    if (MemoryKind* found = by_id_[kind]) return found;
  return absent(kind);
}

Result<Piece> Kinds::resolve_auto(const ist_buffer& buffer, Bytes size) const {
  Piece piece{KindId::host, buffer.device, buffer.object, Offset{buffer.offset}, size, buffer.queue, is_ready(buffer)};
  if (size.value == 0) return piece;
  const Recognised found = recognise(piece.address());
  // Page-locked host memory is a processor's to copy; the driver recognises the lock when a device copies it.
  const bool on_host = found.memory_class == MemoryClass::pageable || found.memory_class == MemoryClass::pinned ||
                       found.memory_class == MemoryClass::registered;
  if (!on_host) {
    piece.kind = found.kind;
    piece.device = found.device;
    mark_used(found.kind);
  }
  IST_TRY(find(piece.kind)->check(piece));
  return piece;
}

Result<Piece> Kinds::resolve(const ist_buffer& buffer, Bytes size) const {
  // The usual one: no sum of such numbers overflows, and HostKind::check() would find nothing.
  if (buffer.kind == IST_KIND_HOST && (buffer.flags & ~IST_BUFFER_READY) == 0 && buffer.object != 0 &&
      ((buffer.object | buffer.offset | size.value) >> 61U) == 0) [[likely]]
    return Piece{KindId::host, 0, buffer.object, Offset{buffer.offset}, size, buffer.queue, is_ready(buffer)};
  if ((buffer.flags & ~IST_BUFFER_READY) != 0)
    return Status{IST_ERR_ARGUMENT,
                  "a buffer has flags " + std::to_string(buffer.flags) +
                      " where only IST_BUFFER_READY, 1, is known; make buffers with ist_host and its siblings"};
  if (size.value != 0 && buffer.object == 0)
    return Status{IST_ERR_ARGUMENT, "a null buffer of kind " + std::string{buffer.kind == IST_KIND_AUTO ? "auto" : ""} +
                                        (buffer.kind == IST_KIND_AUTO ? std::string{} : name_of_kind(buffer.kind)) +
                                        " was given for " + std::to_string(size.value) + " bytes"};
  if (buffer.kind == IST_KIND_AUTO) return resolve_auto(buffer, size);
  const auto kind = usable(buffer.kind);
  if (!kind.ok()) return kind.status();
  const KindId id = (*kind)->id();
  Piece piece{id, buffer.device, buffer.object, Offset{buffer.offset}, size, buffer.queue, is_ready(buffer)};
  // Nothing is touched of an empty buffer, so that it may be null, or anything.
  if (size.value == 0) return piece;
  if (id != KindId::host) mark_used(id);
  IST_TRY((*kind)->check(piece));
  return piece;
}

MemoryKind* Kinds::copier(KindId to, KindId from) const {
  for (const KindId id : {to, from})
    if (MemoryKind* kind = find(id); kind && kind->copies(to, from)) return kind;
  return nullptr;
}

MemoryKind* Kinds::copier(const Piece& to, const Piece& from) const {
  for (const KindId id : {to.kind, from.kind})
    if (MemoryKind* kind = find(id); kind && kind->reaches(to, from)) return kind;
  return nullptr;
}

Streams* Kinds::streams(const Piece& piece) const {
  MemoryKind* kind = piece.size.value == 0 || piece.ready ? nullptr : find(piece.kind);
  return kind ? kind->streams() : nullptr;
}

Result<Ticket> Kinds::ready(const Piece& piece) const {
  Streams* found = streams(piece);
  return found ? found->ready(piece) : Ticket{};
}

Workers* Kinds::workers(KindId kind) const {
  MemoryKind* const found = kind == KindId::host ? nullptr : find(kind);
  return found != nullptr ? found->workers() : nullptr;
}

Bytes Kinds::worker_limit(const Piece& piece) const {
  const Workers* const found = workers(piece.kind);
  return found != nullptr && found->copies(piece) ? found->limit(piece.device) : Bytes{};
}

Bytes Kinds::worker_limit(KindId kind, MemoryClass memory) const {
  const Workers* const found = workers(kind);
  return found != nullptr && Workers::copies(memory) ? found->limit(-1) : Bytes{};
}

Result<Ticket> Kinds::in_order(const Piece& piece) const {
  Streams* found = streams(piece);
  return found ? found->in_order(piece) : Ticket{};
}

bool Kinds::goes_into_queue(const Piece& piece, const Ticket& ticket) const {
  Streams* found = streams(piece);
  return found != nullptr && found->goes_into_queue(ticket);
}

}  // namespace ist
