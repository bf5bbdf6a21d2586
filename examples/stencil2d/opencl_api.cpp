#include "opencl_api.hpp"

#include <dlfcn.h>

namespace stencil {
namespace {

OpenclApi table;
std::string missing;

bool fill() {
  void* const library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    missing = "no OpenCL loader: libOpenCL.so.1 was not found";
    return false;
  }
#define STENCIL2D_LOAD(name)                                                       \
  table.name = reinterpret_cast<decltype(table.name)>(dlsym(library, "cl" #name)); \
  if (!table.name) {                                                               \
    missing = "the OpenCL loader has no cl" #name;                                 \
    return false;                                                                  \
  }
  STENCIL2D_OPENCL_CALLS(STENCIL2D_LOAD)
#undef STENCIL2D_LOAD
  return true;
}

}  // namespace

const OpenclApi* OpenclApi::load(std::string& reason) {
  static const bool loaded = fill();
  reason = missing;
  return loaded ? &table : nullptr;
}

}  // namespace stencil
