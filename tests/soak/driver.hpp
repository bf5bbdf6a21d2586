// The CUDA driver, as a program beside the library would use it, found when the soak runs: a real one or the fake one.
//
// Who calls this : memory.cpp, the lanes, watch.cpp.
// Threads        : any.
// Ownership      : a UserStream destroys its stream.
// Errors         : thrown, with the call and the driver's number.
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace soak {

inline void* driver_symbol(const char* name) {
  static void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void* const found = library == nullptr ? nullptr : ::dlsym(library, name);
  if (found == nullptr) throw std::runtime_error(std::string{"libcuda.so.1 has no "} + name);
  return found;
}

inline void must(CUresult result, const char* call) {
  if (result != CUDA_SUCCESS)
    throw std::runtime_error(std::string{call} + " returned " + std::to_string(static_cast<int>(result)));
}

#define SOAK_CUDA(name, ...)                                                                              \
  do {                                                                                                    \
    static auto* const soak_function = reinterpret_cast<decltype(&::name)>(::soak::driver_symbol(#name)); \
    ::soak::must(soak_function(__VA_ARGS__), #name);                                                      \
  } while (0)

class UserStream {
 public:
  UserStream() { SOAK_CUDA(cuStreamCreate, &stream_, CU_STREAM_NON_BLOCKING); }
  UserStream(const UserStream&) = delete;
  UserStream& operator=(const UserStream&) = delete;
  ~UserStream() {
    try {
      SOAK_CUDA(cuStreamDestroy_v2, stream_);
    } catch (const std::exception&) {
      // The device is lost, and whoever lost it has told.
    }
  }
  CUstream get() const { return stream_; }
  void wait() const { SOAK_CUDA(cuStreamSynchronize, stream_); }

 private:
  CUstream stream_ = nullptr;
};

}  // namespace soak
