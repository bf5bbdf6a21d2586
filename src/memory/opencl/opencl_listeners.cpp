#include "memory/opencl/opencl_listeners.hpp"

namespace ist {
namespace {

void CL_CALLBACK command_is_over(cl_event, cl_int, void* number) {
  OpenclListeners::all().tell(reinterpret_cast<std::uintptr_t>(number));
}

}  // namespace

OpenclListeners& OpenclListeners::all() {
  static auto* const all = new OpenclListeners;
  return *all;
}

cl_int tell_when_over(const OpenclApi& api, cl_event event, std::uint64_t listener) {
  return api.clSetEventCallback(event, CL_COMPLETE, command_is_over,
                                reinterpret_cast<void*>(static_cast<std::uintptr_t>(listener)));
}

}  // namespace ist
