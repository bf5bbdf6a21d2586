// The counters of a world, as Python sees them.
//
// Who calls this : world.cpp.
// Threads        : the caller holds the GIL.
// Ownership      : values.
// Errors         : raised.
#pragma once

#include <isthmus/isthmus.h>
#include <nanobind/nanobind.h>

#include <optional>
#include <string>

#include "bound.hpp"
#include "session.hpp"

namespace isthmus_python {

namespace nb = nanobind;

struct Traffic {
  ist_traffic found{};
};

// No peer: all; no carrier: all.
Traffic traffic_of(Session& session, std::optional<int> peer, const std::optional<std::string>& carrier);

void bind_traffic(nb::module_& module);

}  // namespace isthmus_python
