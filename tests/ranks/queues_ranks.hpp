// What tests of OpenCL queues between ranks of one world share.
//
// Who calls this : queues_test.cpp, queues_layouts_test.cpp, queues_refused_test.cpp.
// Threads        : one.
// Ownership      : the anchor is the world's until it ends.
// Errors         : fail the test.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "rank_test.hpp"
// After gtest.
#include "queues_support.hpp"

namespace rank_test {

constexpr int kTag = 5;

inline int opencl_devices() {
  int count = 0;
  return ist_kind_devices(world(), IST_KIND_OPENCL, &count) == IST_OK ? count : 0;
}
#define NEEDS_QUEUES()                                               \
  if (::rank_test::size() < 2 || ::rank_test::opencl_devices() == 0) \
  GTEST_SKIP() << "not covered here: messages in OpenCL queues, which take two ranks and an OpenCL device"

inline void together() { EXPECT_EQ(IST_OK, ist_barrier(comm())) << ist_error_text(); }

inline void fails(int wanted, int found, const std::vector<std::string>& words) {
  EXPECT_EQ(wanted, found) << ist_code_name(found);
  const std::string text = ist_error_text();
  for (const std::string& word : words) EXPECT_NE(std::string::npos, text.find(word)) << '"' << word << "\" in: " << text;
}

inline void ok(int code) { EXPECT_EQ(IST_OK, code) << ist_error_text(); }

// A buffer to take the context from.
inline const ist_buffer& anchor() {
  static ist_buffer buffer = [] {
    ist_buffer made{};
    EXPECT_EQ(IST_OK, ist_memory_alloc(world(), IST_KIND_OPENCL, rank() % opencl_devices(), 64, &made)) << ist_error_text();
    return made;
  }();
  return buffer;
}

}  // namespace rank_test
