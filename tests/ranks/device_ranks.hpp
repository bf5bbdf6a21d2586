// Tests of messages between the device memory of several ranks: can they run here, and is the way switched off?
//
// Who calls this : arithmetic_place_test.cpp, bouncing_test.cpp, lending_test.cpp, prepare_test.cpp, sharing_test.cpp.
// Threads        : one.
// Ownership      : none.
// Errors         : fail the test.
#pragma once

#include <dlfcn.h>
#include <isthmus/collective.h>

#include <cstdlib>
#include <string>

#include "rank_test.hpp"

namespace rank_test {

inline int own_devices() {
  int devices = 0;
  return ist_kind_devices(world(), IST_KIND_CUDA, &devices) == IST_OK ? devices : 0;
}

// On every rank alike.
inline bool devices_everywhere() {
  std::int32_t devices = own_devices();
  std::int32_t fewest = 0;
  EXPECT_EQ(IST_OK, ist_allreduce(ist_host(&devices), ist_host(&fewest), 1, IST_INT32, IST_MIN, comm())) << ist_error_text();
  return size() >= 2 && fewest > 0;
}

inline bool ipc_is_off() {
  const char* setting = std::getenv("ISTHMUS_DEVICE_IPC");
  return setting != nullptr && std::string{setting} == "never";
}

// The driver of the tests, which tells how many kernels this process has launched, and can be told to be late; of another nothing is known.
template <class Function>
Function* of_the_tests_driver(const char* name) {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return driver == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(driver, name));
}
inline std::uint64_t launches() {
  const auto calls = of_the_tests_driver<std::uint64_t(const char*)>("fake_cuda_calls");
  return calls == nullptr ? 0 : calls("cuLaunchKernel");
}
inline void be_late(unsigned most_us) {
  if (const auto delay = of_the_tests_driver<void(unsigned)>("fake_cuda_delay")) delay(most_us);
}
inline bool several_devices_of_the_tests() {
  const char* devices = std::getenv("FAKE_CUDA_DEVICES");
  return of_the_tests_driver<void(unsigned)>("fake_cuda_delay") != nullptr && devices != nullptr &&
         std::string(devices) != "1";
}

}  // namespace rank_test

#define NEEDS_DEVICES()                 \
  if (!rank_test::devices_everywhere()) \
  GTEST_SKIP() << "not covered here: messages between device memory, which take two ranks with a CUDA device each"
