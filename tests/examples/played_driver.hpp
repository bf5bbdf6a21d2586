// Calls of the fake driver, which a program finds in the loaded libcuda.so.1.
//
// Who calls this : jacobi_played.cpp, jacobi_played_runtime.cpp.
// Threads        : any.
// Ownership      : none.
// Errors         : without the fake driver the program ends with status 3.
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace played {

template <class Function>
Function* driver(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  void* const found = library == nullptr ? nullptr : dlsym(library, name);
  if (found == nullptr) {
    std::fprintf(stderr, "jacobi_played needs the fake driver's %s: set LD_LIBRARY_PATH to its folder\n", name);
    std::exit(3);
  }
  return reinterpret_cast<Function*>(found);
}
inline CUdeviceptr number_of(const void* address) { return reinterpret_cast<CUdeviceptr>(address); }

}  // namespace played
#define DRIVER(NAME) played::driver<decltype(NAME)>(#NAME)
