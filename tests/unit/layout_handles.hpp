// Duplicates of layouts by the C call, for random layouts, which have no handles.
//
// Who calls this : layout_test.cpp.
// Threads        : one.
// Ownership      : every handle is freed again.
// Errors         : a call that refuses fails the test.
#pragma once

#include <gtest/gtest.h>

#include "face/message/layouts.hpp"

namespace ist::test {

// By the call, and what it was made of goes before it; committed every second time, as the old one is then.
inline SharedLayout by_handle(const SharedLayout& old) {
  static bool committed = false;
  committed = !committed;
  ist_layout first = add_layout({old, "a nest", nullptr}), second = IST_LAYOUT_NULL;
  EXPECT_EQ(IST_OK, committed ? ist_layout_commit(first) : IST_OK) << ist_error_text();
  EXPECT_EQ(IST_OK, ist_layout_dup(first, &second)) << ist_error_text();
  EXPECT_EQ(IST_OK, ist_layout_free(&first));
  const auto found = layout_of(second);
  EXPECT_TRUE(found.ok()) << found.status().text();
  EXPECT_EQ(found.ok() && found->shapes != nullptr, committed);
  EXPECT_EQ(IST_OK, ist_layout_free(&second));
  return found.ok() ? found->layout : nullptr;
}

}  // namespace ist::test
