#include "memory/memory_kind.hpp"

namespace ist {

Ticket& Ticket::operator=(Ticket&& other) noexcept {
  if (this != &other) {
    if (kind_ != nullptr) drop();
    kind_ = std::exchange(other.kind_, nullptr);
    id_ = std::exchange(other.id_, 0);
  }
  return *this;
}

void Ticket::drop() { kind_->drop(id_); }

std::string_view name_of(MemoryClass memory_class) {
  switch (memory_class) {
    case MemoryClass::pageable:
      return "pageable";
    case MemoryClass::pinned:
      return "pinned";
    case MemoryClass::registered:
      return "registered";
    case MemoryClass::device:
      return "device";
    case MemoryClass::vmm:
      return "vmm";
    case MemoryClass::pool:
      return "pool";
    case MemoryClass::managed:
      return "managed";
    case MemoryClass::unknown:
      break;
  }
  return "unknown";
}

}  // namespace ist
