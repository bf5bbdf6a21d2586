// Tests of streams that wait for other ranks: so many devices of the driver of the tests, and whether they went on soon.
//
// Who calls this : streams_failures_test.cpp, meetings_failures_test.cpp.
// Threads        : one.
// Ownership      : sets FAKE_CUDA_DEVICES for each test, and takes it away.
// Errors         : without that driver the tests skip, and say so.
#pragma once

#include <chrono>
#include <cstdlib>
#include <string>

#include "broken_driver.hpp"

namespace forked_ranks {

class WithSoManyDevices : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    NEEDS_FAKE_DRIVER();
    ::setenv("FAKE_CUDA_DEVICES", std::to_string(GetParam()).c_str(), 1);
  }
  void TearDown() override { ::unsetenv("FAKE_CUDA_DEVICES"); }
};

inline bool soon(Clock::time_point since) { return Clock::now() - since < std::chrono::seconds(kSanitized ? 10 : 5); }

}  // namespace forked_ranks
