// One copy or two, as a run found out: kept, and where the next one begins.
#include "collective/learned_copies.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "collective/profile.hpp"
#include "protocol/copy_beliefs.hpp"
#include "protocol/explain.hpp"

namespace ist {
namespace {

class LearnedCopies : public testing::Test {
 protected:
  LearnedCopies() : folder_(std::filesystem::temp_directory_path() / ("isthmus-copies-test-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
    ::setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  }
  ~LearnedCopies() override {
    std::filesystem::remove_all(folder_);
    ::unsetenv("XDG_CACHE_HOME");
  }
  // Has tried both ways with messages of that size: seconds per byte.
  static void try_both(CopyChoice& choice, Bytes size, double ring, double single) {
    for (int i = 0; i < 2 * CopyChoice::first_trials(size); ++i) {
      const CopyChoice::Way way = choice.next(size);
      choice.took(way, size, (way == CopyChoice::Way::ring ? ring : single) * static_cast<double>(size.value));
    }
  }
  std::string text() const {
    std::ifstream stream{file()};
    return {std::istreambuf_iterator<char>{stream}, {}};
  }
  static std::string file() { return learned_copies_path(); }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

TEST(SlotsUpTo, is_what_was_measured_and_never_below_the_eager_limit) {
  Settings settings;
  MachineProfile machine;
  machine.two_copies_128k = 0.06e-9;
  machine.one_copy_128k = 0.01e-9;
  EXPECT_EQ(slots_up_to(machine, settings), kNoLimit) << "of shorter messages that says nothing";
  machine.slots_up_to = 50000;
  EXPECT_EQ(slots_up_to(machine, settings), Bytes{50000});
  settings.eager_limit = Bytes{0};
  machine.slots_up_to = 8;
  EXPECT_EQ(slots_up_to(machine, settings), kAlwaysInSlots);
  settings.eager_limit = Bytes{60000};
  EXPECT_EQ(slots_up_to(machine, settings), Bytes{60000});
  settings.single_copy = "never";
  EXPECT_EQ(slots_up_to(machine, settings), kNoLimit);
}

TEST(SlotsUpTo, counts_among_all_ranks_numbers) {
  Settings settings;
  Profile profile;
  know_slots(profile, settings, 2);
  EXPECT_DOUBLE_EQ(profile.collective.announced_above, 131072);
  profile.message.slots_up_to = 20000;
  know_slots(profile, settings, 2);
  EXPECT_DOUBLE_EQ(profile.collective.announced_above, 20000);
  know_slots(profile, settings, 40);
  EXPECT_DOUBLE_EQ(profile.collective.announced_above, 16384) << "slots of so many ranks are shorter";
}

TEST(SlotsUpTo, is_told_where_a_longer_message_is_explained) {
  ExplainedMessage message;
  message.bytes = message.slot_limit = Bytes{4096};
  message.slots_up_to = Bytes{4095};
  const Explanation answer = explain(message, MachineProfile{});
  EXPECT_EQ(answer.carrier, IST_CARRIER_RING);
  EXPECT_EQ(answer.ways[0].name, "slot");
  EXPECT_NE(answer.ways[0].refused.find("by what was measured on this machine"), std::string::npos)
      << answer.ways[0].refused;
  message.bytes = Bytes{4095};
  EXPECT_EQ(explain(message, MachineProfile{}).carrier, IST_CARRIER_SLOT);
}

TEST_F(LearnedCopies, of_one_run_are_where_the_next_one_begins) {
  CopyChoice choice;
  try_both(choice, kibibytes(128), 2e-10, 1e-10);
  try_both(choice, mebibytes(2), 1e-10, 3e-10);
  EXPECT_TRUE(keep_learned_copies(file(), choice, MachineProfile{}));
  EXPECT_EQ(file().rfind(folder().string(), 0), 0U) << file();
  MachineProfile next;
  EXPECT_TRUE(add_learned_copies(file(), next));
  EXPECT_DOUBLE_EQ(next.two_copies_128k, 2e-10);
  EXPECT_DOUBLE_EQ(next.one_copy_128k, 1e-10);
  EXPECT_EQ(next.two_copies_512k, 0) << "nobody has tried";
  EXPECT_EQ(copy_choice_of(next).chosen(kibibytes(100)), CopyChoice::Way::single);
  EXPECT_EQ(copy_choice_of(next).chosen(mebibytes(3)), CopyChoice::Way::ring);
  EXPECT_FALSE(keep_learned_copies(file(), choice, next)) << "it is known";
  EXPECT_FALSE(keep_learned_copies(file(), choice, MachineProfile{})) << "another program has kept it meanwhile";
}

// What others found is not lost, and what was half tried is nothing.
TEST_F(LearnedCopies, are_added_to_those_that_are_there) {
  CopyChoice first;
  try_both(first, kibibytes(100), 2e-10, 1e-10);  // of the half of the sizes below 128 KiB
  ASSERT_TRUE(keep_learned_copies(file(), first, MachineProfile{}));
  CopyChoice second;
  try_both(second, mebibytes(8), 4e-10, 5e-10);
  second.took(CopyChoice::Way::ring, kibibytes(512), 1e-6);
  second.took(CopyChoice::Way::single, kibibytes(512), 1e-6);
  ASSERT_TRUE(keep_learned_copies(file(), second, MachineProfile{}));
  MachineProfile both;
  ASSERT_TRUE(add_learned_copies(file(), both));
  EXPECT_DOUBLE_EQ(both.one_copy_128k, 1e-10);
  EXPECT_DOUBLE_EQ(both.two_copies_8m, 4e-10);
  EXPECT_EQ(both.one_copy_512k, 0);
}

TEST_F(LearnedCopies, count_less_than_what_model_fit_measured) {
  CopyChoice choice;
  try_both(choice, kibibytes(128), 2e-10, 1e-10);
  ASSERT_TRUE(keep_learned_copies(file(), choice, MachineProfile{}));
  Profile fitted;
  set_measured(fitted, fitted.message.two_copies_128k, 7e-10);
  set_measured(fitted, fitted.message.one_copy_128k, 8e-10);
  ASSERT_TRUE(write_profile(profile_path(), fitted, "by a test").ok());
  const auto nobody = [] { return DevicesNamed{}; };
  Settings settings;
  EXPECT_DOUBLE_EQ(load_profile(settings, log::Level::warning, nobody).message.one_copy_128k, 8e-10);
  EXPECT_EQ(load_profile(settings, log::Level::warning, nobody).learned, "");
  std::filesystem::remove(profile_path());
  const Profile learned = load_profile(settings, log::Level::warning, nobody);
  EXPECT_DOUBLE_EQ(learned.message.one_copy_128k, 1e-10);
  EXPECT_EQ(learned.learned, file());
  EXPECT_EQ(learned.measured, 0U);
  settings.profile = "builtin";
  EXPECT_EQ(load_profile(settings, log::Level::warning, nobody).message.one_copy_128k, 0);
}

// Such a file is as none, and is replaced.
TEST_F(LearnedCopies, of_a_file_that_says_something_else_are_none) {
  std::filesystem::create_directories(std::filesystem::path{file()}.parent_path());
  const std::string ours = R"("isthmus_copies": 2, "machine": ")" + machine_name() + R"(", )";
  for (const std::string& said : std::vector<std::string>{
           "", "{", "[]", R"({"isthmus_copies": 2, "machine": "another", "two_copies_128k": 1e-10, "one_copy_128k": 1e-10})",
           R"({"isthmus_copies": 1, "machine": ")" + machine_name() +
               R"(", "two_copies_128k": 1e-10, "one_copy_128k": 1e-10})",
           "{" + ours + R"("two_copies_128k": 1e-10})", "{" + ours + R"("two_copies_128k": -1, "one_copy_128k": 1e-10})",
           "{" + ours + R"("two_copies_128k": "much", "one_copy_128k": 1e-10})",
           "{" + ours + R"("two_copies_128k": 2, "one_copy_128k": 1e-10})"}) {
    std::ofstream{file()} << said;
    MachineProfile machine;
    EXPECT_FALSE(add_learned_copies(file(), machine)) << said;
    EXPECT_EQ(machine.one_copy_128k, 0) << said;
    CopyChoice choice;
    try_both(choice, kibibytes(128), 2e-10, 1e-10);
    EXPECT_TRUE(keep_learned_copies(file(), choice, MachineProfile{})) << said;
    EXPECT_TRUE(add_learned_copies(file(), machine)) << text();
  }
}

TEST_F(LearnedCopies, say_once_for_a_machine_how_far_slots_go) {
  EXPECT_TRUE(lacks_slots(file(), MachineProfile{}));
  EXPECT_TRUE(keep_learned_slots(file(), 24576));
  EXPECT_TRUE(lacks_slots(file(), MachineProfile{})) << "the processors may have been slow then";
  MachineProfile second;
  EXPECT_FALSE(add_learned_copies(file(), second));
  EXPECT_TRUE(keep_learned_slots(file(), 16384));
  CopyChoice choice;
  try_both(choice, kibibytes(128), 2e-10, 1e-10);
  EXPECT_TRUE(keep_learned_copies(file(), choice, MachineProfile{})) << "beside it";
  EXPECT_FALSE(lacks_slots(file(), MachineProfile{})) << "another rank has kept it since";
  MachineProfile next;
  EXPECT_TRUE(add_learned_copies(file(), next));
  EXPECT_DOUBLE_EQ(next.slots_up_to, 24576);
  EXPECT_DOUBLE_EQ(next.one_copy_128k, 1e-10);
  MachineProfile fitted;
  fitted.slots_up_to = 50000;
  add_learned_copies(file(), fitted);
  EXPECT_DOUBLE_EQ(fitted.slots_up_to, 50000) << "isthmus model fit counts before";
  EXPECT_FALSE(lacks_slots(folder() / "none.json", fitted));
}

TEST_F(LearnedCopies, say_at_once_that_slots_go_as_far_as_they_can) {
  for (const double first : {0.0, 24576.0}) {
    std::filesystem::remove(file());
    if (first > 0) {
      EXPECT_TRUE(keep_learned_slots(file(), first));
    }
    EXPECT_TRUE(keep_learned_slots(file(), kPairPayload));
    EXPECT_FALSE(lacks_slots(file(), MachineProfile{}));
    MachineProfile next;
    EXPECT_TRUE(add_learned_copies(file(), next));
    EXPECT_DOUBLE_EQ(next.slots_up_to, kPairPayload) << first;
  }
}

// As often as it is tried at all.
void try_in_vain(const std::string& file) {
  for (int trial = 0; trial < 3; ++trial) {
    EXPECT_TRUE(lacks_slots(file, MachineProfile{})) << trial;
    EXPECT_TRUE(keep_learned_slots(file, 0));
  }
  EXPECT_FALSE(lacks_slots(file, MachineProfile{}));
}

TEST_F(LearnedCopies, are_tried_a_few_times_in_vain) {
  try_in_vain(file());
  MachineProfile next;
  EXPECT_FALSE(add_learned_copies(file(), next));
  EXPECT_EQ(next.slots_up_to, 0);
}

TEST_F(LearnedCopies, of_one_world_count_once_others_tried_in_vain) {
  EXPECT_TRUE(keep_learned_slots(file(), 24576));
  EXPECT_EQ(slots_of_one_world(file()), 24576);
  try_in_vain(file());
  MachineProfile next;
  EXPECT_TRUE(add_learned_copies(file(), next));
  EXPECT_EQ(next.slots_up_to, 24576);
  EXPECT_EQ(slots_of_one_world(file()), 0) << "said once";
}

TEST_F(LearnedCopies, of_slots_are_not_what_they_cannot_be) {
  std::filesystem::create_directories(std::filesystem::path{file()}.parent_path());
  for (const char* said : {"-1", "0", "\"much\"", "[]", "null"}) {
    std::ofstream{file()} << R"({"isthmus_copies": 2, "slot_trials": "many", "slots_up_to_of_one": "few", "machine": ")"
                          << machine_name() << R"(", "slots_up_to": )" << said << "}";
    MachineProfile machine;
    EXPECT_FALSE(add_learned_copies(file(), machine)) << said;
    EXPECT_EQ(machine.slots_up_to, 0) << said;
    EXPECT_TRUE(lacks_slots(file(), machine)) << said;
  }
}

TEST_F(LearnedCopies, of_a_folder_are_none) {
  std::filesystem::create_directories(file());
  MachineProfile machine;
  EXPECT_FALSE(add_learned_copies(file(), machine));
  CopyChoice choice;
  try_both(choice, kibibytes(128), 2e-10, 1e-10);
  EXPECT_FALSE(keep_learned_copies(file(), choice, MachineProfile{}));
  EXPECT_TRUE(std::filesystem::is_directory(file()));
}

TEST_F(LearnedCopies, that_cannot_be_written_are_no_error) {
  std::ofstream{folder() / "isthmus"} << "in the way";
  CopyChoice choice;
  try_both(choice, kibibytes(128), 2e-10, 1e-10);
  EXPECT_FALSE(keep_learned_copies(file(), choice, MachineProfile{}));
  EXPECT_FALSE(keep_learned_slots(file(), 24576));
  EXPECT_FALSE(lacks_slots("", MachineProfile{}));
  EXPECT_FALSE(lacks_slots(file(), MachineProfile{})) << "it could not be kept";
  ::unsetenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  const std::string kept = home != nullptr ? home : "";
  ::unsetenv("HOME");
  EXPECT_EQ(learned_copies_path(), "");
  if (home != nullptr) ::setenv("HOME", kept.c_str(), 1);
}

}  // namespace
}  // namespace ist
