#include "traffic.hpp"

#include <nanobind/stl/string.h>

#include <array>

#include "errors.hpp"
#include "gil.hpp"

namespace isthmus_python {
namespace {

constexpr std::array kCarriers{IST_CARRIER_SLOT,    IST_CARRIER_CELL,        IST_CARRIER_RING,
                               IST_CARRIER_DIRECT,  IST_CARRIER_NCCL,        IST_CARRIER_DEVICE,
                               IST_CARRIER_MAILBOX, IST_CARRIER_SINGLE_COPY, IST_CARRIER_BLOCK};

ist_carrier carrier_named(const std::string& name) {
  std::string known;
  for (const ist_carrier carrier : kCarriers) {
    if (name == ist_carrier_name(carrier)) return carrier;
    known += (known.empty() ? "" : ", ") + std::string{ist_carrier_name(carrier)};
  }
  throw nb::value_error(("\"" + name + "\" is no carrier; they are " + known).c_str());
}

std::string text(const Traffic& traffic) {
  const ist_traffic& found = traffic.found;
  return "<isthmus.Traffic, sent " + std::to_string(found.messages_sent) + " messages of " +
         std::to_string(found.bytes_sent) + " bytes, received " + std::to_string(found.messages_received) + " of " +
         std::to_string(found.bytes_received) + ">";
}

}  // namespace

Traffic traffic_of(Session& session, std::optional<int> peer, const std::optional<std::string>& carrier) {
  Traffic traffic;
  traffic.found.size = sizeof traffic.found;
  const ist_carrier wanted = carrier ? carrier_named(*carrier) : IST_CARRIER_NONE;
  if (peer && *peer < 0)
    raise(IST_ERR_RANK, "peer is " + std::to_string(*peer) + "; ranks begin at 0, and None is all of them");
  ist_world world = session.world();
  int code = IST_OK;
  {
    const LetGo without_gil{session.inside()};
    code = ist_world_traffic(world, peer.value_or(IST_ALL_PEERS), wanted, &traffic.found);
  }
  check(code);
  return traffic;
}

void bind_traffic(nb::module_& module) {
  Bound<Traffic>(module, "Traffic", "Messages and bytes that World.traffic counted.")
      .def_prop_ro("messages_sent", [](const Traffic& self) { return self.found.messages_sent; })
      .def_prop_ro("bytes_sent", [](const Traffic& self) { return self.found.bytes_sent; })
      .def_prop_ro("messages_received", [](const Traffic& self) { return self.found.messages_received; })
      .def_prop_ro("bytes_received", [](const Traffic& self) { return self.found.bytes_received; })
      .def("__repr__", &text);
}

}  // namespace isthmus_python
