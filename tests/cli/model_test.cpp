// The numbers of a machine, as `isthmus model fit` measures and keeps them.
#include "cli/model_measure.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "program.hpp"

namespace ist::test {
namespace {

using cli::fit_line;
using cli::Line;
using cli::median_of;
using cli::Point;

TEST(FitLine, FindsTheLineThatThePointsLieOn) {
  std::vector<Point> points;
  for (const double x : {8.0, 64.0, 4096.0, 65536.0}) points.push_back({x, 0.5e-6 + x * 0.1e-9});
  const Line line = fit_line(points);
  EXPECT_NEAR(line.start, 0.5e-6, 1e-15);
  EXPECT_NEAR(line.slope, 0.1e-9, 1e-18);
}

TEST(FitLine, AnErrorOfALongTimeDoesNotDrownTheShortOnes) {
  // The longest one is a fifth too long, which is more than all the others take.
  const Line line = fit_line({{1, 1e-6}, {2, 1e-6}, {4, 1e-6}, {1e6, 1.2e-4}});
  EXPECT_NEAR(line.start, 1e-6, 0.01e-6);
}

TEST(FitLine, OfOnePlaceHasNoSlope) {
  const Line line = fit_line({{3, 2e-6}, {3, 2e-6}});
  EXPECT_DOUBLE_EQ(line.start, 2e-6);
  EXPECT_EQ(line.slope, 0);
}

TEST(Median, IsNotMovedByOneBusyRound) { EXPECT_EQ(median_of({2, 1, 1000, 3, 2}), 2); }

class Model : public testing::Test {
 protected:
  Model() : folder_(std::filesystem::temp_directory_path() / ("isthmus-model-test-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~Model() override { std::filesystem::remove_all(folder_); }
  // The cache is this test's own.
  std::string environment(const std::string& more = "") const {
    return "-u ISTHMUS_PROFILE XDG_CACHE_HOME=" + folder_.string() + " " + more;
  }
  std::filesystem::path folder_;
};

TEST_F(Model, FitKeepsWhatItMeasuredAndEverybodyFindsIt) {
  const Ran before = run_program("explain", environment());
  EXPECT_TRUE(says(before, "numbers: built in")) << before.output;
  const Ran fit = run_program("model fit --quick", environment("ISTHMUS_KINDS=host"));
  ASSERT_EQ(fit.status, 0) << fit.output;
  for (const char* words : {"collective.alpha ", "message.cell_alpha ", "built in", "measured", "written to "})
    EXPECT_TRUE(says(fit, words)) << words << " is missing in:\n" << fit.output;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "isthmus")) files.push_back(entry.path());
  ASSERT_EQ(files.size(), 1U) << "nothing else is left in the cache";
  const auto found = read_profile(files.front().string());
  ASSERT_TRUE(found.ok()) << found.status().text();
  std::uint32_t bit = 1;
  for (const ProfileValue& value : profile_values()) {
    const bool measured = (found->measured & bit) != 0;
    bit <<= 1U;
    const bool of_host = value.name.rfind("device", 0) != 0 && value.name.rfind("crowd", 0) != 0;
    // No message between hosts goes in a cell unless the eager limit is raised.
    EXPECT_EQ(measured || value.name == "handshake_alpha" || value.name == "cell_alpha", of_host) << value.name;
    EXPECT_GT(value.of(*found), 0) << value.name;
    if (value.name.starts_with("one_copy") || value.name.starts_with("two_copies")) {
      EXPECT_LT(value.of(*found), 10e-9) << value.name << ": no memory takes so long for a byte";
    }
  }
  EXPECT_GE(found->collective.alpha_large, found->collective.alpha);
  EXPECT_GE(found->message.cell_alpha, found->message.slot_alpha);
  const Ran asked = run_program("explain --size 1MiB", environment());
  EXPECT_TRUE(says(asked, "measured on this machine: ")) << asked.output;
  for (const char* command : {"explain", "explain allreduce --ranks 4", "model show"})
    EXPECT_TRUE(says(run_program(command, environment()), files.front().string())) << command;
  EXPECT_TRUE(says(run_program("explain", environment("ISTHMUS_PROFILE=builtin")), "numbers: built in"));
  // Again, over the one that is there, in a world of the user's.
  EXPECT_EQ(run_program("run -n 2 " PROGRAM " model fit --quick", environment("ISTHMUS_KINDS=host")).status, 0);
}

TEST_F(Model, AFileThatCannotBeUsedIsOneWarningAndTheLibrarysOwnNumbersAreUsed) {
  const std::string file = (folder_ / "broken.json").string();
  std::ofstream{file} << R"({"isthmus_profile": 1, "machine": "any", "message": {}, "collective": {"alpha": "fast"}})";
  const Ran shown = run_program("model show", environment("ISTHMUS_PROFILE=" + file));
  EXPECT_EQ(shown.status, 0);
  EXPECT_TRUE(says(shown, "collective.alpha must be a number")) << shown.output;
  EXPECT_TRUE(says(shown, "numbers: built in")) << shown.output;
  // One of three ranks says it, and all do their work.
  const Ran ran = run_program("bench collective allreduce --ranks 3 --iterations 3 --max 64",
                              environment("ISTHMUS_KINDS=host ISTHMUS_PROFILE=" + file));
  EXPECT_EQ(ran.status, 0) << ran.output;
  const auto first = ran.output.find("cannot be used");
  EXPECT_NE(first, std::string::npos) << ran.output;
  EXPECT_EQ(ran.output.find("cannot be used", first + 1), std::string::npos) << ran.output;
  // What is measured anew does not depend on it.
  const Ran fit = run_program("model fit --quick", environment("ISTHMUS_KINDS=host ISTHMUS_PROFILE=" + file));
  EXPECT_EQ(fit.status, 0) << fit.output;
  EXPECT_FALSE(says(fit, "cannot be used")) << fit.output;
}

TEST_F(Model, WhereNothingCanBeKeptFitSaysSo) {
  const Ran homeless = run_program("model fit --quick", "-u XDG_CACHE_HOME -u HOME");
  EXPECT_EQ(homeless.status, 2) << homeless.output;
  EXPECT_TRUE(says(homeless, "--output")) << homeless.output;
  std::ofstream{folder_ / "in-the-way"} << "a file";
  const std::string file = (folder_ / "in-the-way" / "profile.json").string();
  const Ran ran = run_program("model fit --quick --output " + file, environment("ISTHMUS_KINDS=host"));
  EXPECT_EQ(ran.status, 1) << ran.output;
  EXPECT_TRUE(says(ran, "cannot be written")) << ran.output;
  EXPECT_EQ(run_program("model").status, 2);
  EXPECT_EQ(run_program("model guess").status, 2);
}

}  // namespace
}  // namespace ist::test
