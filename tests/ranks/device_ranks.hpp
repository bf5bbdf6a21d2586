// Tests of messages between the device memory of several ranks: can they run here, and is the way switched off?
//
// Who calls this : arithmetic_place_test.cpp, bouncing_test.cpp, lending_test.cpp, prepare_test.cpp, sharing_test.cpp.
// Threads        : one.
// Ownership      : none.
// Errors         : fail the test.
#pragma once

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

}  // namespace rank_test

#define NEEDS_DEVICES()                 \
  if (!rank_test::devices_everywhere()) \
  GTEST_SKIP() << "not covered here: messages between device memory, which take two ranks with a CUDA device each"
