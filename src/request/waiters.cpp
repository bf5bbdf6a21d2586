#include "request/waiters.hpp"

#include "memory/memory_kind.hpp"
#include "path/path.hpp"

namespace ist {

Waiters::~Waiters() {
  if (tells_ != nullptr) tells_->tell_ends({});
}

void Waiters::sleep_for_threads(MemoryKind* kind, Path* sleeping) {
  const auto over = [this, sleeping] {
    bell_.ring();
    if (sleeping != nullptr) sleeping->wake();
  };
  if (kind != nullptr && kind->tell_ends(over)) tells_ = kind;
}

}  // namespace ist
