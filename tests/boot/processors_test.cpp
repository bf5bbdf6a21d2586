#include "boot/processors.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace ist::test {
namespace {

TEST(Processors, this_process_may_run_somewhere) {
  const auto own = own_processors();
  EXPECT_FALSE(own.empty());
  EXPECT_TRUE(std::is_sorted(own.begin(), own.end()));
}

TEST(Processors, are_shared_evenly_by_who_may_use_the_same) {
  EXPECT_EQ(1, processors_each({{}}, 0));  // nobody knows
  EXPECT_EQ(1, processors_each({{3}}, 0));
  EXPECT_EQ(4, processors_each({{0, 1, 2, 3}}, 0));
  EXPECT_EQ(2, processors_each({{0, 1, 2, 3}, {0, 1, 2, 3}}, 1));
  EXPECT_EQ(4, processors_each({{0, 1, 2, 3}, {4, 5, 6, 7}}, 1));
  EXPECT_EQ(1, processors_each({{0, 1, 2}, {0, 1, 2}}, 0));
  EXPECT_EQ(1, processors_each({{0, 1}, {0, 1}, {0, 1}}, 2));
  EXPECT_EQ(2, processors_each({{0, 1, 2, 3}, {3, 4}, {5}}, 0));  // beside one of the others
}

TEST(Processors, ranks_bound_alike_or_chained_each_need_one_of_their_own) {
  EXPECT_TRUE(each_has_a_processor({}));
  EXPECT_TRUE(each_has_a_processor({{0}}));
  EXPECT_TRUE(each_has_a_processor({{0, 1}, {0, 1}}));
  EXPECT_FALSE(each_has_a_processor({{0, 1}, {0, 1}, {0, 1}}));
  EXPECT_FALSE(each_has_a_processor({{0}, {0}, {1, 2, 3}})) << "two ranks share processor 0 though four exist";
  EXPECT_TRUE(each_has_a_processor({{0, 1}, {0}, {1, 2}})) << "possible only by moving ranks 0 and 2 on";
  EXPECT_FALSE(each_has_a_processor({{0, 1}, {0, 1}, {0, 1}, {5, 6, 7}}));
}

TEST(Processors, ranks_are_crowded_by_a_quota_or_by_where_they_may_run) {
  EXPECT_FALSE(are_crowded({{0, 1}, {0, 1}}, 0));
  EXPECT_FALSE(are_crowded({{0, 1}, {0, 1}}, 1.5)) << "a part of a processor is one";
  EXPECT_TRUE(are_crowded({{0, 1}, {0, 1}}, 1));
  EXPECT_TRUE(are_crowded({{0}, {0}}, 2));
  EXPECT_FALSE(are_crowded({{0}, {}}, 0)) << "of whom nothing is known takes no processor";
  EXPECT_TRUE(are_crowded({{}, {}}, 1)) << "but time";
}

class Quota : public testing::Test {
 protected:
  Quota() {
    char name[] = "/tmp/quota-test-XXXXXX";
    root_ = ::mkdtemp(name);
  }
  ~Quota() override { std::filesystem::remove_all(root_); }
  void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path{root_ + file}.parent_path());
    std::ofstream{root_ + file} << text;
  }
  double quota() const { return processor_quota(root_, root_ + "/groups"); }
  std::string root_;
};

TEST_F(Quota, none_is_no_limit) {
  EXPECT_EQ(quota(), 0.0);
  write("/groups", "0::/a/b\nnonsense\n");
  write("/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 0.0);
}

TEST_F(Quota, the_tightest_group_on_the_way_up_counts) {
  write("/groups", "0::/a/b\n");
  write("/a/b/cpu.max", "400000 100000\n");
  write("/a/cpu.max", "150000 100000\n");
  EXPECT_DOUBLE_EQ(quota(), 1.5);
}

TEST_F(Quota, version_1_is_read_too) {
  write("/groups", "4:cpuacct,cpu:/job\n1:name=systemd:/x\n");
  write("/cpu/job/cpu.cfs_quota_us", "250000\n");
  write("/cpu/job/cpu.cfs_period_us", "100000\n");
  write("/cpu/cpu.cfs_quota_us", "-1\n");
  write("/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(quota(), 2.5);
}

}  // namespace
}  // namespace ist::test
