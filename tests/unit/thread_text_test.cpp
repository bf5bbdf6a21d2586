#include "base/thread_text.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

namespace ist {
namespace {

struct One;
struct Other;

TEST(ThreadText, is_each_threads_and_each_users_own) {
  ThreadText<One>::set("one");
  EXPECT_STREQ("", ThreadText<Other>::get());
  std::thread([] {
    EXPECT_STREQ("", ThreadText<One>::get());
    ThreadText<One>::set("another");
    EXPECT_STREQ("another", ThreadText<One>::get());
  }).join();
  EXPECT_STREQ("one", ThreadText<One>::get());
  ThreadText<One>::clear();
  EXPECT_STREQ("", ThreadText<One>::get());
}

// Behind the destructors of what the main thread owns.
void write_at_exit() {
  std::fputs(*ThreadText<One>::get() == '\0' ? "gone, " : "still there, ", stderr);
  ThreadText<One>::set(std::string(1000, 'x') + " and a new one");
  std::fputs(ThreadText<One>::get(), stderr);
}

TEST(ThreadText, is_written_while_the_process_ends) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        std::atexit(write_at_exit);
        ThreadText<One>::set("a text that takes memory of its own");
        std::exit(0);
      },
      testing::ExitedWithCode(0), "gone, x+ and a new one");
}

}  // namespace
}  // namespace ist
