#include "memory/registrations.hpp"

#include <iterator>

namespace ist {
namespace {

std::string range(std::uint64_t address, Bytes size) {
  return std::to_string(size.value) + " bytes at address " + std::to_string(address);
}

// A kind page-locks nothing before it has used a device.
Status start(const Kinds& kinds, MemoryKind& kind, int device) {
  const auto piece = kind.allocate(device, Bytes{1});
  if (!piece.ok()) return piece.status();
  kinds.mark_used(kind.id());
  kind.release_later(*piece);  // whatever runs on the device meanwhile
  return {};
}

}  // namespace

Registrations::~Registrations() {
  for (const auto& [address, size] : registered_) pool_.unlock(reinterpret_cast<void*>(address));
}

Status Registrations::add(void* address, Bytes size, const std::function<int(const MemoryKind&)>& own_device) {
  const auto start_of = reinterpret_cast<std::uint64_t>(address);
  if (address == nullptr || size == Bytes{} || start_of + size.value < start_of)
    return {IST_ERR_ARGUMENT, range(start_of, size) + " cannot be registered: expected host memory, and at least one byte"};
  const std::lock_guard lock(mutex_);
  const auto next = registered_.lower_bound(start_of);
  const auto overlaps = [&](auto at) {
    return at->first < start_of + size.value && start_of < at->first + at->second.value;
  };
  for (const auto& at : {next, next == registered_.begin() ? registered_.end() : std::prev(next)})
    if (at != registered_.end() && overlaps(at))
      return {IST_ERR_ARGUMENT, range(start_of, size) + " overlap " + range(at->first, at->second) +
                                    ", which are registered already; unregister those first, or register both at once"};
  for (const auto& kind : kinds_.all())
    if (kind->pins() != nullptr && !started_.contains(kind->id())) {
      IST_TRY(start(kinds_, *kind, own_device(*kind)));
      started_.insert(kind->id());
    }
  if (const Status locked = pool_.lock(address, size); !locked.ok()) {
    pool_.unlock(address);
    return locked;
  }
  registered_[start_of] = size;
  return {};
}

Status Registrations::may_free(const void* address) {
  const auto start_of = reinterpret_cast<std::uint64_t>(address);
  const std::lock_guard lock(mutex_);
  const auto next = registered_.upper_bound(start_of);
  if (next == registered_.begin() || start_of - std::prev(next)->first >= std::prev(next)->second.value) return {};
  const auto& [first, size] = *std::prev(next);
  return {IST_ERR_ARGUMENT, "the memory at address " + std::to_string(start_of) + " is to be freed, and " +
                                range(first, size) +
                                " are registered; call ist_unregister first, or a device goes on with the old memory"};
}

Status Registrations::remove(void* address) {
  const std::lock_guard lock(mutex_);
  if (registered_.erase(reinterpret_cast<std::uint64_t>(address)) == 0)
    return {IST_ERR_ARGUMENT, "no memory was registered at address " +
                                  std::to_string(reinterpret_cast<std::uint64_t>(address)) +
                                  ", or it was unregistered already; pass the address that ist_register was given"};
  pool_.unlock(address);
  return {};
}

}  // namespace ist
