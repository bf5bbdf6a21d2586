// A world whose messages' types are compared (ISTHMUS_CHECK), and layouts for its tests.
//
// Who calls this : types_test.cpp, streams_types_test.cpp.
// Threads        : one.
// Ownership      : CheckedTypes frees its layouts, and destroys its world.
// Errors         : failures of the test.
#pragma once

#include <isthmus/layout.h>

#include <vector>

#include "rank_test.hpp"

namespace rank_test {

class CheckedTypes : public testing::Test {
 protected:
  // One rank alone asks for it.
  void open(int asks) {
    IST_OK_OR_FAIL(ist_world_create_configured(rank() == asks ? "check=1" : "", &world_));
    IST_OK_OR_FAIL(ist_world_comm(world_, &comm_));
  }
  void TearDown() override {
    for (ist_layout& layout : made_) EXPECT_EQ(IST_OK, ist_layout_free(&layout));
    if (world_ != IST_WORLD_NULL) IST_OK_OR_FAIL(ist_world_destroy(&world_));
  }
  struct Side {
    std::int64_t count;
    ist_layout layout;
  };
  static Side basic(std::int64_t count, ist_type type) { return {count, ist_layout_of(type)}; }
  ist_layout keep(int code, ist_layout layout) {
    EXPECT_EQ(IST_OK, code) << ist_error_text();
    EXPECT_EQ(IST_OK, ist_layout_commit(layout)) << ist_error_text();
    made_.push_back(layout);
    return layout;
  }
  // A double and two integers, of 4 bytes or of other types.
  ist_layout mixed(ist_type second = IST_INT32) {
    const std::int64_t lengths[] = {1, 2}, places[] = {0, 8};
    const ist_layout olds[] = {ist_layout_of(IST_DOUBLE), ist_layout_of(second)};
    ist_layout layout = IST_LAYOUT_NULL;
    const int code = ist_layout_struct(2, lengths, places, olds, &layout);
    return keep(code, layout);
  }
  ist_layout every_second(std::int64_t count, ist_layout old) {
    ist_layout layout = IST_LAYOUT_NULL;
    const int code = ist_layout_vector(count, 1, 2, old, &layout);
    return keep(code, layout);
  }
  // As many of a side's bytes as are asked for, in their order.
  std::vector<unsigned char> packed(const GuardedBuffer& memory, const Side& side, std::int64_t bytes) const {
    std::vector<unsigned char> row(static_cast<std::size_t>(bytes));
    EXPECT_EQ(IST_OK, ist_pack(world_, memory.get(), side.count, side.layout, 0, bytes, ist_host(row.data())))
        << ist_error_text();
    return row;
  }
  static std::int64_t bytes_of(const Side& side) {
    std::int64_t each = 0;
    EXPECT_EQ(IST_OK, ist_layout_size(side.layout, &each)) << ist_error_text();
    return side.count * each;
  }

  ist_world world_ = IST_WORLD_NULL;
  ist_comm comm_ = IST_COMM_NULL;

 private:
  std::vector<ist_layout> made_;
};

}  // namespace rank_test
