// The extension isthmus._core.
#include "collective.hpp"
#include "memory.hpp"
#include "persistent.hpp"

NB_MODULE(_core, module) {
  using namespace isthmus_python;
  using namespace nanobind::literals;
  module.doc() = "Isthmus: messages between ranks, whatever memory they use.";
  // Whoever leaves a global World behind is no defect of this module; the world is left at the interpreter's end.
  nb::set_leak_warnings(false);
  module.attr("ANY_SOURCE") = IST_ANY_SOURCE;
  module.attr("ANY_TAG") = IST_ANY_TAG;
  module.attr("PROC_NULL") = IST_PROC_NULL;
  module.attr("TAG_MAX") = IST_TAG_MAX;
  bind_requests(module);
  bind_request_sets(module);
  bind_objects(module);
  bind_persistent(module);
  bind_matched(module);
  bind_memory(module);
  bind_in_place(module);
  bind_reducers(module);
  bind_comm(module);
  bind_world(module);
  module.def("version", &ist_version, "Version of the library.");
  module.def("code_name", &ist_code_name, "code"_a, "'IST_ERR_TRUNCATE' and so on; 'unknown code' for anything else.");
  module.def("close_all", &Session::close_all, "Leaves every world that is still open.");
}
