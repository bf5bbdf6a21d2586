#include "base/settings.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "base/unknown_variables.hpp"

namespace ist {
namespace {

// Sets one variable for the length of a scope.
class Variable {
 public:
  Variable(std::string name, const std::string& value) : name_(std::move(name)) {
    ::setenv(name_.c_str(), value.c_str(), 1);
  }
  ~Variable() { ::unsetenv(name_.c_str()); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  std::string name_;
};

class SettingsTable : public testing::Test {
 protected:
  // The machine's own settings would hide the defaults.
  void SetUp() override {
    for (const SettingRow& row : describe(Settings{})) ::unsetenv(std::string{row.variable}.c_str());
  }
};

std::string refusal(const std::string& variable, const std::string& value) {
  const Variable set{variable, value};
  const auto settings = Settings::read();
  if (settings.ok()) return "accepted";
  EXPECT_EQ(settings.status().code(), IST_ERR_SETTING);
  EXPECT_NE(settings.status().text().find(variable), std::string::npos) << settings.status().text();
  EXPECT_NE(settings.status().text().find('"' + value + '"'), std::string::npos) << settings.status().text();
  return settings.status().text();
}

Bytes eager_limit(const std::string& value) {
  const Variable set{"ISTHMUS_EAGER_LIMIT", value};
  const auto settings = Settings::read();
  EXPECT_TRUE(settings.ok()) << value << ": " << settings.status().text();
  return settings.ok() ? settings->eager_limit : Bytes{0};
}

TEST_F(SettingsTable, without_variables_every_setting_is_its_default) {
  const auto settings = Settings::read();
  ASSERT_TRUE(settings.ok());
  for (const SettingRow& row : describe(*settings)) EXPECT_EQ(row.current_text, row.default_text) << row.name;
}

TEST_F(SettingsTable, sizes_are_read_with_and_without_suffix) {
  EXPECT_EQ(eager_limit("0"), Bytes{0});
  EXPECT_EQ(eager_limit("4097"), Bytes{4097});
  EXPECT_EQ(eager_limit("64KiB"), kibibytes(64));
  EXPECT_EQ(eager_limit("64K"), kibibytes(64));
  EXPECT_EQ(eager_limit("1MiB"), mebibytes(1));
  EXPECT_EQ(eager_limit("1M"), mebibytes(1));
  for (const char* value : {"64KB", "64kb", "64k", "64kib", "65536B"}) EXPECT_EQ(eager_limit(value), kibibytes(64)) << value;
  const Variable pool{"ISTHMUS_PINNED_POOL_LIMIT", "3GiB"};
  EXPECT_EQ(Settings::read()->pinned_pool_limit, mebibytes(3072));
}

TEST_F(SettingsTable, sizes_that_are_no_sizes_are_refused_by_name_and_value) {
  for (const char* value :
       {"", "x", "64QB", "64iB", "64KiBB", "-1", "1.5MiB", " 64", "64 KiB", "KiB", "18446744073709551616", "17179869184GiB"})
    EXPECT_NE(refusal("ISTHMUS_EAGER_LIMIT", value), "accepted") << '"' << value << '"';
}

TEST_F(SettingsTable, numbers_one_past_either_end_of_their_range_are_refused) {
  EXPECT_EQ(eager_limit("1048576"), mebibytes(1));
  EXPECT_NE(refusal("ISTHMUS_EAGER_LIMIT", "1048577"), "accepted");
  EXPECT_NE(refusal("ISTHMUS_CELLS", "3"), "accepted");
  EXPECT_EQ(refusal("ISTHMUS_CELLS", "4"), "accepted");
  EXPECT_EQ(refusal("ISTHMUS_CELLS", "4096"), "accepted");
  EXPECT_NE(refusal("ISTHMUS_CELLS", "4097"), "accepted");
  EXPECT_NE(refusal("ISTHMUS_RING_SLOTS", "1"), "accepted");
  EXPECT_NE(refusal("ISTHMUS_RING_SLOTS", "many"), "accepted");
}

TEST_F(SettingsTable, a_number_out_of_range_is_refused_with_the_range_and_a_value_inside_it) {
  const std::string limit = refusal("ISTHMUS_EAGER_LIMIT", "2MiB");
  EXPECT_NE(limit.find("ISTHMUS_EAGER_LIMIT=\"2MiB\""), std::string::npos) << limit;
  EXPECT_NE(limit.find("expected a size in bytes, KiB, MiB or GiB from 0 to 1MiB, such as 16KiB ("), std::string::npos)
      << limit;
  const std::string pool = refusal("ISTHMUS_PINNED_POOL_LIMIT", "1025GiB");
  EXPECT_NE(pool.find("expected a size in bytes, KiB, MiB or GiB from 1MiB to 1024GiB, such as 256MiB ("), std::string::npos)
      << pool;
  EXPECT_EQ(refusal("ISTHMUS_PINNED_POOL_LIMIT", "1024GiB"), "accepted");
  const std::string cells = refusal("ISTHMUS_CELLS", "4097");
  EXPECT_NE(cells.find("expected a whole number from 4 to 4096 ("), std::string::npos) << cells;
  for (const SettingRow& row : describe(Settings{})) {
    if (row.type != "bytes" && row.type != "count") continue;
    EXPECT_TRUE(row.help.ends_with(')')) << row.name << " tells no range";
  }
}

TEST_F(SettingsTable, words_outside_the_list_are_refused_and_the_list_is_told) {
  EXPECT_NE(refusal("ISTHMUS_LOG", "loud").find("warning"), std::string::npos);
  EXPECT_NE(refusal("ISTHMUS_WAIT", "nap").find("sleep"), std::string::npos);
  for (const char* wrong : {"0", "65", "many", ""})
    EXPECT_NE(refusal("ISTHMUS_COPY_THREADS", wrong).find("auto, or a whole number from 1 to 64"), std::string::npos);
  EXPECT_NE(refusal("ISTHMUS_THREADS", "many").find("multiple or single"), std::string::npos);
  EXPECT_NE(refusal("ISTHMUS_KINDS", "host,vulkan").find("opencl"), std::string::npos);
  EXPECT_NE(refusal("ISTHMUS_KINDS", ""), "accepted");
  EXPECT_EQ(refusal("ISTHMUS_KINDS", "host,opencl"), "accepted");
}

TEST_F(SettingsTable, one_thread_at_a_time_is_refused_beside_the_progress_thread) {
  EXPECT_EQ(refusal("ISTHMUS_THREADS", "single"), "accepted");
  const Variable progress{"ISTHMUS_PROGRESS_THREAD", "1"};
  EXPECT_EQ(refusal("ISTHMUS_THREADS", "multiple"), "accepted");
  const std::string text = refusal("ISTHMUS_THREADS", "single");
  EXPECT_NE(text.find("progress_thread=\"1\" (ISTHMUS_PROGRESS_THREAD)"), std::string::npos) << text;
  EXPECT_NE(text.find("leave one of them out"), std::string::npos) << text;
}

TEST_F(SettingsTable, a_time_is_a_number_of_seconds_above_zero) {
  EXPECT_EQ(refusal("ISTHMUS_BOOT_TIMEOUT", "2.5"), "accepted");
  for (const char* value : {"0", "-3", "soon", "5s", "", "inf", "nan", "1e7"})
    EXPECT_NE(refusal("ISTHMUS_BOOT_TIMEOUT", value), "accepted") << value;
}

TEST_F(SettingsTable, ranks_of_a_host_take_devices_in_turn_unless_one_is_named) {
  EXPECT_EQ(Settings{}.own_device(5, 2), 1);
  EXPECT_EQ(Settings{}.own_device(5, 1), 0);
  EXPECT_EQ(Settings{}.own_device(5, 0), 0);
  const Variable set{"ISTHMUS_DEVICE", "1"};
  EXPECT_EQ(Settings::read()->own_device(4, 2), 1);
  EXPECT_EQ(Settings::read()->own_device(4, 1), 0);
  for (const char* value : {"", "-2", "1024", "first", "1x"})
    EXPECT_NE(refusal("ISTHMUS_DEVICE", value), "accepted") << value;
}

TEST_F(SettingsTable, a_variable_that_nobody_reads_is_told_with_the_nearest_name) {
  const std::vector<std::string_view> settings{"ISTHMUS_EAGER_LIMIT", "ISTHMUS_CELLS", "ISTHMUS_WAIT"};
  const auto text = unknown_variable_text("ISTHMUS_EAGER_LIMT", settings);
  ASSERT_TRUE(text.has_value());
  EXPECT_NE(text->find("ISTHMUS_EAGER_LIMT is set"), std::string::npos) << *text;
  EXPECT_NE(text->find("the nearest name is ISTHMUS_EAGER_LIMIT"), std::string::npos) << *text;
  EXPECT_NE(unknown_variable_text("ISTHMUS_WIAT", settings)->find("ISTHMUS_WAIT"), std::string::npos);
  EXPECT_NE(unknown_variable_text("ISTHMUS_EAGER", settings)->find("is ISTHMUS_EAGER_LIMIT"), std::string::npos);
  for (const char* known : {"ISTHMUS_CELLS", "ISTHMUS_RANK", "ISTHMUS_DEPS_DIR", "ISTHMUS_TEST_LONG", "PATH", "ISTHMUS"})
    EXPECT_FALSE(unknown_variable_text(known, settings).has_value()) << known;
}

TEST_F(SettingsTable, reading_warns_of_a_variable_that_nobody_reads_and_goes_on) {
  const Variable set{"ISTHMUS_RING_SLOT", "4"};
  testing::internal::CaptureStderr();
  EXPECT_TRUE(Settings::read().ok());
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("ISTHMUS_RING_SLOTS"), std::string::npos) << said;
}

TEST_F(SettingsTable, the_table_is_short_complete_and_without_doubles) {
  const auto rows = describe(Settings{});
  EXPECT_LE(rows.size(), 25U);
  std::set<std::string_view> names;
  std::set<std::string_view> variables;
  const std::set<std::string_view> types{"bytes", "count", "number", "seconds", "word", "switch", "file"};
  for (const SettingRow& row : rows) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(variables.insert(row.variable).second) << row.variable;
    EXPECT_TRUE(types.contains(row.type)) << row.name << " has type " << row.type;
    EXPECT_TRUE(row.variable.starts_with("ISTHMUS_")) << row.variable;
    EXPECT_FALSE(row.help.empty()) << row.name;
  }
}

TEST_F(SettingsTable, what_the_table_prints_can_be_read_back) {
  for (const SettingRow& row : describe(Settings{})) {
    const Variable set{std::string{row.variable}, row.default_text};
    const auto settings = Settings::read();
    ASSERT_TRUE(settings.ok()) << settings.status().text();
    for (const SettingRow& again : describe(*settings)) EXPECT_EQ(again.current_text, again.default_text) << again.name;
  }
}

TEST(CopyThreads, are_as_many_as_named_or_as_the_processors_allow) {
  Settings settings;
  EXPECT_EQ(0, settings.copy_helpers(1));
  EXPECT_EQ(3, settings.copy_helpers(4));
  EXPECT_EQ(5, settings.copy_helpers(64));
  settings.copy_threads = "4";
  EXPECT_EQ(3, settings.copy_helpers(1));
  settings.copy_threads = "1";
  EXPECT_EQ(0, settings.copy_helpers(64));
}

TEST_F(SettingsTable, words_that_a_world_is_given_count_more_than_the_environment) {
  const Variable set{"ISTHMUS_EAGER_LIMIT", "4KiB"};
  const auto settings = Settings::read("  worker=1\teager_limit=32KiB\nkinds=host,cuda ");
  ASSERT_TRUE(settings.ok()) << settings.status().text();
  EXPECT_TRUE(settings->worker);
  EXPECT_EQ(kibibytes(32), settings->eager_limit);
  EXPECT_EQ("host,cuda", settings->kinds);
  EXPECT_EQ(kibibytes(4), Settings::read("worker=0")->eager_limit);
  EXPECT_EQ(kibibytes(4), Settings::read(" \n")->eager_limit);
}

TEST_F(SettingsTable, words_that_cannot_be_used_say_what_was_found_and_what_is_expected) {
  struct Case {
    const char* given;
    const char* said;
  };
  for (const auto& [given, said] : {Case{"wroker=1", "there is no setting \"wroker\"; the nearest name is worker"},
                                    {"worker", "\"worker\" is no setting: expected name=value"},
                                    {"eager_limit=1 worker=2", "the setting worker=\"2\" cannot be used: expected 0 or 1"},
                                    {"ring_slots=", "the setting ring_slots=\"\" cannot be used"},
                                    {"threads=single progress_thread=1", "cannot be used with"}}) {
    const auto settings = Settings::read(given);
    ASSERT_FALSE(settings.ok()) << given;
    EXPECT_EQ(IST_ERR_SETTING, settings.status().code());
    EXPECT_NE(std::string::npos, settings.status().text().find(said)) << settings.status().text();
  }
}

TEST_F(SettingsTable, a_changed_value_shows_beside_its_default) {
  const Variable set{"ISTHMUS_RING_SLOT_HOST", "131072"};
  const auto settings = Settings::read();
  ASSERT_TRUE(settings.ok());
  for (const SettingRow& row : describe(*settings)) {
    if (row.variable != "ISTHMUS_RING_SLOT_HOST") continue;
    EXPECT_EQ(row.current_text, "128KiB");
    EXPECT_EQ(row.default_text, "64KiB");
    return;
  }
  FAIL() << "the row is missing";
}

}  // namespace
}  // namespace ist
