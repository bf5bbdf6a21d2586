#include "base/status.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

namespace ist {
namespace {

TEST(Status, success_has_no_text_and_owns_nothing) {
  const Status fine;
  EXPECT_TRUE(fine.ok());
  EXPECT_EQ(fine.code(), IST_OK);
  EXPECT_EQ(fine.text(), "");
  EXPECT_LE(sizeof(Status), 2 * sizeof(void*));
}

TEST(Status, a_failure_keeps_code_and_text_in_every_copy) {
  const Status first{IST_ERR_TRUNCATE, "8 bytes where 4 fit"};
  const Status copy = first;
  EXPECT_FALSE(copy.ok());
  EXPECT_EQ(copy.code(), IST_ERR_TRUNCATE);
  EXPECT_EQ(copy.text(), "8 bytes where 4 fit");
}

TEST(Status, a_system_error_names_the_call_the_reason_and_the_number) {
  errno = ENOENT;
  const Status status = system_error("open(nowhere)");
  EXPECT_EQ(status.code(), IST_ERR_SYSTEM);
  EXPECT_NE(status.text().find("open(nowhere)"), std::string::npos);
  EXPECT_NE(status.text().find("No such file"), std::string::npos);
  EXPECT_NE(status.text().find("errno 2"), std::string::npos);
}

TEST(Status, a_result_is_either_a_value_or_an_error) {
  const Result<int> seven{7};
  ASSERT_TRUE(seven.ok());
  EXPECT_EQ(*seven, 7);
  EXPECT_TRUE(seven.status().ok());
  const Result<int> none{Status{IST_ERR_MEMORY, "full"}};
  EXPECT_FALSE(none.ok());
  EXPECT_EQ(none.status().text(), "full");
}

TEST(Status, a_result_can_hold_what_only_moves) {
  Result<std::unique_ptr<int>> owner{std::make_unique<int>(5)};
  ASSERT_TRUE(owner.ok());
  const std::unique_ptr<int> taken = std::move(owner).value();
  EXPECT_EQ(*taken, 5);
}

Status twice(int& evaluations, const Status& answer) {
  IST_TRY((++evaluations, answer));
  ++evaluations;
  return {};
}

TEST(Status, try_evaluates_its_argument_once_and_returns_only_failures) {
  int evaluations = 0;
  EXPECT_TRUE(twice(evaluations, Status{}).ok());
  EXPECT_EQ(evaluations, 2);
  evaluations = 0;
  EXPECT_EQ(twice(evaluations, Status{IST_ERR_RANK, "no"}).code(), IST_ERR_RANK);
  EXPECT_EQ(evaluations, 1);
}

}  // namespace
}  // namespace ist
