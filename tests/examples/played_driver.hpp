// Calls of the fake driver, which a program finds in the loaded libcuda.so.1, and kernels that the processor plays: host functions in a stream.
//
// Who calls this : jacobi_played.cpp, lbm_played.cpp, played_runtime.cpp and what captures for each of the two.
// Threads        : any.
// Ownership      : none.
// Errors         : without the fake driver the program ends with status 3.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "fake_cuda/fake_cuda.h"

namespace played {

template <class Function>
Function* driver(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  void* const found = library == nullptr ? nullptr : dlsym(library, name);
  if (found == nullptr) {
    std::fprintf(stderr, "this program needs the fake driver's %s: set LD_LIBRARY_PATH to its folder\n", name);
    std::exit(3);
  }
  return reinterpret_cast<Function*>(found);
}
#define DRIVER(NAME) played::driver<decltype(NAME)>(#NAME)

inline CUdeviceptr number_of(const void* address) { return reinterpret_cast<CUdeviceptr>(address); }
inline cudaError_t told(CUresult result) { return static_cast<cudaError_t>(result); }

// Where the bytes of device memory are; host memory is where it is.
template <class T>
T* host(T* address) {
  if (address == nullptr) return nullptr;
  void* const found = DRIVER(fake_cuda_bytes)(number_of(address));
  return found == nullptr ? address : static_cast<T*>(found);
}

// Graphs run what was captured again and again.
inline void post(cudaStream_t stream, std::function<void()> work) {
  static auto* const kept = new std::vector<std::unique_ptr<std::function<void()>>>;
  kept->push_back(std::make_unique<std::function<void()>>(std::move(work)));
  const auto call = [](void* what) { (*static_cast<std::function<void()>*>(what))(); };
  if (DRIVER(cuLaunchHostFunc)(stream, call, kept->back().get()) != CUDA_SUCCESS) std::abort();
}

}  // namespace played
