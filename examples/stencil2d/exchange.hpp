// How the halos of neighbouring tiles are filled: straight from device memory by messages or by puts, or by hand through the host.
//
// Who calls this : run.cpp, once every `halo` steps, on all ranks.
// Threads        : one.
// Ownership      : an exchange looks at the back-end, which must live longer.
// Errors         : isthmus::Error, and the back-end's.
#pragma once

#include <memory>
#include <string>

#include "backend.hpp"

namespace stencil {

// All send along north and south first, wait, and then along west and east, whose strips take in the corners that
// arrived; so four neighbours are enough for nine points.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual void fill_halos() = 0;
};

// `name` is isthmus, halo, staged or one-sided. Collective.
std::unique_ptr<Exchange> make_exchange(const std::string& name, const isthmus::Comm& comm, const Tile& tile,
                                        const Layout& layout, Backend& backend);

}  // namespace stencil
