// The numbers of a machine: written, read back, and every file that cannot be used refused by name.
#include "collective/profile.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace ist {
namespace {

class ProfileFile : public testing::Test {
 protected:
  ProfileFile() : folder_(std::filesystem::temp_directory_path() / ("isthmus-profile-test-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~ProfileFile() override {
    std::filesystem::remove_all(folder_);
    ::unsetenv("XDG_CACHE_HOME");
  }
  std::string file() const { return (folder_ / "profile.json").string(); }
  const std::filesystem::path& folder() const { return folder_; }
  void write(const std::string& text) const { std::ofstream{file()} << text; }
  // Why a file with that text is refused.
  std::string refusal(const std::string& text) const {
    write(text);
    const auto found = read_profile(file());
    if (found.ok()) return "accepted";
    EXPECT_NE(found.status().text().find(file()), std::string::npos) << found.status().text();
    return found.status().text();
  }
  static std::string valid(const std::string& message, const std::string& collective, const std::string& machine = "any",
                           const std::string& version = "1") {
    return R"({"isthmus_profile": )" + version + R"(, "machine": ")" + machine + R"(", "message": {)" + message +
           R"(}, "collective": {)" + collective + "}}";
  }

 private:
  std::filesystem::path folder_;
};

Profile every_number_another() {
  Profile profile;
  double number = 1;
  std::uint64_t bit = 1;
  for (const ProfileValue& value : profile_values()) {
    value.of(profile) = value.unit.empty() ? number : number * 1e-7;
    profile.measured |= bit;
    bit <<= 1U;
    number += 1;
  }
  return profile;
}

// A file that names no devices is used without a look at those that there are.
DevicesNamed nobody_asks() {
  ADD_FAILURE() << "the devices were looked for, which starts their driver";
  return {};
}

constexpr const char* kDriver = "driver for CUDA 13.0";

Profile measured_on(const std::vector<std::string>& uuids) {
  Profile profile = every_number_another();
  profile.devices = {uuids, kDriver};
  return profile;
}

TEST_F(ProfileFile, what_was_written_is_read_back_to_the_last_bit) {
  const Profile written = every_number_another();
  const std::string deeper = (folder() / "made" / "when" / "needed.json").string();
  ASSERT_TRUE(write_profile(deeper, written, "by a test").ok());
  const auto found = read_profile(deeper);
  ASSERT_TRUE(found.ok()) << found.status().text();
  for (const ProfileValue& value : profile_values()) EXPECT_EQ(value.of(*found), value.of(written)) << value.name;
  EXPECT_EQ(found->measured, written.measured);
  EXPECT_EQ(found->source, deeper);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder() / "made" / "when")) files += entry.exists() ? 1 : 0;
  EXPECT_EQ(files, 1) << "something else was left beside it";
}

TEST_F(ProfileFile, only_what_was_measured_is_written_and_the_rest_stays_as_it_is_built_in) {
  Profile profile;
  profile.collective.post = 0.5e-6;
  profile.collective.alpha = 7e-6;
  for (std::size_t i = 0; i < profile_values().size(); ++i)
    if (profile_values()[i].name == "post") profile.measured = std::uint64_t{1} << i;
  profile.message.slot_alpha = 9e-6;
  // A group without a number is still a group.
  ASSERT_TRUE(write_profile(file(), profile, "").ok());
  const auto found = read_profile(file());
  ASSERT_TRUE(found.ok()) << found.status().text();
  EXPECT_EQ(found->collective.post, 0.5e-6);
  EXPECT_EQ(found->collective.alpha, CollectiveProfile{}.alpha);
  EXPECT_EQ(found->message.slot_alpha, MachineProfile{}.slot_alpha);
}

// Before version 3 the longest slot had 64 KiB, which said that slots are used to their end.
TEST_F(ProfileFile, slots_that_were_used_to_their_end_when_they_were_shorter_are_not_known) {
  for (const auto& [version, said, known] : {std::tuple{"1", "65536", 0}, std::tuple{"2", "65536", 0},
                                             std::tuple{"2", "49152", 49152}, std::tuple{"3", "65536", 65536}}) {
    write(valid(std::string{R"("slots_up_to": )"} + said, "", "any", version));
    const auto found = read_profile(file());
    ASSERT_TRUE(found.ok()) << found.status().text();
    EXPECT_EQ(found->message.slots_up_to, known) << version << " " << said;
    EXPECT_EQ(found->measured != 0, known != 0) << version << " " << said;
  }
}

TEST_F(ProfileFile, files_that_cannot_be_used_are_refused_with_the_reason) {
  EXPECT_NE(read_profile(file()).status().text().find("no such file"), std::string::npos);
  EXPECT_NE(read_profile(folder().string()).status().text().find("no such file"), std::string::npos) << "a folder is none";
  EXPECT_EQ(refusal(valid("", "")), "accepted");
  EXPECT_EQ(refusal(valid(R"("slot_alpha": 0)", R"("crowd_from": 999999)")), "accepted");
  for (const char* text : {"", "{", "[]", "7", "null", "{}}"})
    EXPECT_NE(refusal(text).find("no JSON object"), std::string::npos) << text;
  EXPECT_NE(refusal("{}").find("version null, and this library reads versions 1 to 3"), std::string::npos) << refusal("{}");
  EXPECT_EQ(refusal(valid("", "", "any", "2")), "accepted");
  EXPECT_NE(refusal(valid("", "", "any", "4")).find("isthmus model fit"), std::string::npos);
  for (const char* devices : {"3", "[]", "{}", R"({"uuids": "GPU-1", "driver": "one"})",
                              R"({"uuids": [1], "driver": "one"})", R"({"uuids": ["GPU-1"]})"}) {
    const std::string text = valid("", "", "any", std::string{R"(2, "devices": )"} + devices);
    EXPECT_NE(refusal(text).find("\"devices\" must have"), std::string::npos) << text;
  }
  EXPECT_NE(refusal(valid("", "", "any", "\"1\"")).find("version"), std::string::npos);
  EXPECT_NE(refusal(valid("", "", "Antikythera, 1 processors")).find("of another machine"), std::string::npos);
  EXPECT_NE(refusal(R"({"isthmus_profile": 1, "machine": "any"})").find("group \"message\""), std::string::npos);
  EXPECT_NE(refusal(R"({"isthmus_profile": 1, "machine": "any", "message": 3, "collective": {}})").find("group"),
            std::string::npos);
  for (const char* number : {"-1e-9", "1.5", "1e400", "\"fast\"", "null", "true", "[]"})
    EXPECT_NE(refusal(valid("", std::string{"\"alpha\": "} + number)), "accepted") << number;
  EXPECT_NE(refusal(valid("", R"("crowd": 1000001)")).find("collective.crowd"), std::string::npos);
}

TEST_F(ProfileFile, the_first_number_that_there_is_not_is_named) {
  for (const auto& [text, unknown] :
       {std::pair{valid(R"("slot_alpha": 0)", R"("alpha": 0)"), ""},
        {valid(R"("slot_alpha": 0, "slot_beta": 0)", R"("beta_alpha": 0)"), "message.slot_beta"},
        {valid("", R"("slot_alpha": 0)"), "collective.slot_alpha"}}) {
    write(text);
    const auto found = read_profile(file());
    ASSERT_TRUE(found.ok()) << text;
    EXPECT_EQ(found->unknown, unknown) << text;
  }
}

TEST_F(ProfileFile, a_folder_that_cannot_be_made_is_an_error_that_names_the_file) {
  write("in the way");
  const Status status = write_profile(file() + "/profile.json", every_number_another(), "");
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.text().find(file()), std::string::npos) << status.text();
}

TEST_F(ProfileFile, the_setting_says_which_numbers_are_in_force) {
  ::setenv("XDG_CACHE_HOME", folder().c_str(), 1);
  EXPECT_EQ(profile_path().rfind(folder().string(), 0), 0U) << profile_path();
  Settings settings;
  testing::internal::CaptureStderr();
  EXPECT_EQ(load_profile(settings, log::Level::warning, nobody_asks).source, "built in");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "nobody has measured here, and that is nothing to warn of";
  ASSERT_TRUE(write_profile(profile_path(), every_number_another(), "").ok());
  EXPECT_EQ(load_profile(settings, log::Level::warning, nobody_asks).source, profile_path());
  EXPECT_EQ(load_profile(settings, log::Level::warning, nobody_asks).collective.beta,
            every_number_another().collective.beta);
  settings.profile = "builtin";
  EXPECT_EQ(load_profile(settings, log::Level::warning, nobody_asks).measured, 0U);
  settings.profile = (folder() / "missing.json").string();
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(load_profile(settings, log::Level::warning, nobody_asks).collective.beta, CollectiveProfile{}.beta);
  const std::string said = testing::internal::GetCapturedStderr();
  const auto first = said.find("missing.json");
  EXPECT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("missing.json", first + 1), std::string::npos) << "more than one warning: " << said;
}

// Which of the two profiles a number is of.
void expect_devices(const Profile& found, const Profile& written, bool used) {
  const Profile builtin;
  for (const ProfileValue& value : profile_values())
    EXPECT_EQ(value.of(found), value.of(!used && value.of_device() ? builtin : written)) << value.name;
  EXPECT_EQ(found.measured == written.measured, used);
  EXPECT_NE(found.measured, 0U) << "what was measured of the host is as good as ever";
}

TEST_F(ProfileFile, numbers_of_devices_are_used_where_all_that_are_seen_are_those_measured_with_the_same_driver) {
  const Profile written = measured_on({"GPU-a", "GPU-b"});
  ASSERT_TRUE(write_profile(file(), written, "").ok());
  EXPECT_EQ(read_profile(file())->devices.uuids, written.devices.uuids);
  EXPECT_EQ(read_profile(file())->devices.driver, kDriver);
  Settings settings;
  settings.profile = file();
  const auto load = [&](const std::vector<std::string>& uuids, const char* driver) {
    return load_profile(settings, log::Level::warning, [&] { return DevicesNamed{uuids, driver}; });
  };
  log::set_level("info");
  testing::internal::CaptureStderr();
  for (const std::vector<std::string>& seen : {std::vector<std::string>{"GPU-a", "GPU-b"}, {"GPU-b", "GPU-a"}, {"GPU-b"}}) {
    const Profile found = load(seen, kDriver);
    expect_devices(found, written, true);
    EXPECT_EQ(in_words(found), file());
  }
  // Nobody to say it to.
  expect_devices(load({}, ""), written, false);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i) {
    const Profile found = load({"GPU-a", "GPU-c"}, kDriver);
    expect_devices(found, written, false);
    EXPECT_NE(in_words(found).find("of devices built in, since they were not measured on GPU-c"), std::string::npos);
  }
  expect_devices(load({"GPU-a"}, "driver for CUDA 14.1"), written, false);
  const std::string said = testing::internal::GetCapturedStderr();
  log::set_level("warning");
  for (const char* words : {"info: the numbers of devices", "GPU-c, which this process sees", "driver for CUDA 14.1",
                            "measure again: isthmus model fit"})
    EXPECT_NE(said.find(words), std::string::npos) << words << " is missing in: " << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 2) << "one line for each reason: " << said;
}

TEST(ProfileNumbers, cross_from_rank_0_to_the_others_bit_by_bit_and_nothing_else_is_taken_for_them) {
  const CollectiveProfile sent = every_number_another().collective;
  const auto received = unpack_profile(pack(sent));
  ASSERT_TRUE(received.ok());
  for (const ProfileValue& value : profile_values())
    if (value.collective != nullptr) {
      EXPECT_EQ((*received).*value.collective, sent.*value.collective) << value.name;
    }
  EXPECT_FALSE(unpack_profile("").ok());
  EXPECT_FALSE(unpack_profile(pack(sent) + "x").ok());
}

}  // namespace
}  // namespace ist
