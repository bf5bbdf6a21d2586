#include "base/log.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace ist {
namespace {

class Log : public testing::Test {
 protected:
  void TearDown() override { log::set_level("warning"); }
};

TEST_F(Log, every_word_of_the_setting_is_a_level_and_no_other_word_is) {
  for (const char* word : {"trace", "debug", "info", "warning", "error", "off"}) EXPECT_TRUE(log::set_level(word)) << word;
  for (const char* word : {"", "Warning", "loud", "warn"}) EXPECT_FALSE(log::set_level(word)) << word;
}

TEST_F(Log, only_lines_at_or_above_the_level_are_written_and_they_name_rank_and_level) {
  ASSERT_TRUE(log::set_level("warning"));
  log::set_rank(3);
  testing::internal::CaptureStderr();
  log::debug("too quiet");
  log::info("still too quiet");
  log::warning("this one");
  log::write(log::Level::error, "and this one");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.find("quiet"), std::string::npos);
  EXPECT_NE(text.find("isthmus[3] warning: this one\n"), std::string::npos) << text;
  EXPECT_NE(text.find("isthmus[3] error: and this one\n"), std::string::npos) << text;
}

TEST_F(Log, off_writes_nothing_at_all) {
  ASSERT_TRUE(log::set_level("off"));
  EXPECT_FALSE(log::enabled(log::Level::error));
  testing::internal::CaptureStderr();
  log::write(log::Level::error, "never seen");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(Log, braces_in_a_text_are_text) {
  testing::internal::CaptureStderr();
  log::warning("{} {0} {name}");
  EXPECT_NE(testing::internal::GetCapturedStderr().find("{} {0} {name}"), std::string::npos);
}

TEST_F(Log, once_says_each_text_once) {
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) log::once(log::Level::warning, "pageable memory is slow");
  log::once(log::Level::warning, "another text");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.find("pageable"), text.rfind("pageable"));
  EXPECT_NE(text.find("another text"), std::string::npos);
}

TEST_F(Log, once_says_one_text_of_a_cause) {
  testing::internal::CaptureStderr();
  for (int rank = 0; rank < 3; ++rank)
    log::once(log::Level::warning, "unreadable", "rank " + std::to_string(rank) + " is far");
  log::once(log::Level::warning, "unlent", "rank 7 is far");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("rank 0 is far"), std::string::npos);
  EXPECT_EQ(text.find("rank 1 is far"), std::string::npos);
  EXPECT_NE(text.find("rank 7 is far"), std::string::npos);
}

constexpr const char* kLong = "a text that takes memory of its own";

// In a process that has said nothing yet.
TEST_F(Log, once_says_each_text_once_while_the_process_ends_too) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        std::atexit([] {
          for (int i = 0; i < 3; ++i) {
            log::once(log::Level::warning, kLong, "again");
            log::once(log::Level::warning, "late " + std::to_string(i), "late");
          }
        });
        log::once(log::Level::warning, kLong, "first");
        std::exit(0);
      },
      testing::ExitedWithCode(0), "^isthmus warning: first\n(isthmus warning: late\n){3}$");
}

}  // namespace
}  // namespace ist
