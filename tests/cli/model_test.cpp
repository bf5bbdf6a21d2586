// The numbers of a machine, as `isthmus model fit` measures and keeps them.
#include "cli/model_measure.hpp"
#include "cli/model_trials.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collective/profile.hpp"
#include "path/shm/peer_memory.hpp"
#include "program.hpp"
#include "protocol/copy_beliefs.hpp"
#include "protocol/copy_choice.hpp"

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
  // Where tests beside this one leave it too little of the processors it says so, and to try again.
  static Ran fit(const std::string& environment, const std::string& under = "") {
    Ran ran;
    for (int i = 0; i < 3; ++i) {
      ran = run_program(under + "model fit --quick", environment);
      if (!says(ran, "too busy to be measured")) break;
    }
    return ran;
  }
  std::filesystem::path folder_;
};

// Nobody has called fit: programs keep what they find out of one copy or two, and the next one begins with that.
TEST_F(Model, WhatProgramsFindOutOfCopiesIsKeptForTheNext) {
  cpu_set_t processors;
  if (::sched_getaffinity(0, sizeof processors, &processors) != 0 || CPU_COUNT(&processors) < 2)
    GTEST_SKIP()
        << "not covered here: what programs keep of copies; ranks that share a processor keep nothing, and there is one";
  // As many as each rank has to receive before it believes what it found, and none that a warm-up, which is as long as a time, has to add.
  const std::string bench =
      "bench latency --sizes 129KiB --iterations " + std::to_string(2 * CopyChoice::first_trials(kibibytes(129)));
  const Ran ran = run_program(bench, environment());
  ASSERT_EQ(ran.status, 0) << ran.output;
  const Ran shown = run_program("model show", environment());
  ASSERT_EQ(shown.status, 0) << shown.output;
  if (const Status possible = PeerMemory::possible(); !possible.ok())
    GTEST_SKIP() << "not covered here: what programs keep of copies; there is one way to copy, since " << possible.text();
  EXPECT_TRUE(says(shown, "numbers: built in")) << shown.output;
  EXPECT_TRUE(says(shown, "one copy or two: also as programs found out, " + folder_.string())) << shown.output;
  EXPECT_TRUE(says(run_program("explain --size 129KiB", environment()), "measured on this machine:"));
  // How far slots go, too, which the first world of a machine finds out if it has the processors to itself.
  for (const auto& file : std::filesystem::directory_iterator(folder_ / "isthmus")) {
    std::ifstream stream{file.path()};
    auto all = nlohmann::json::parse(stream);
    EXPECT_TRUE(all.contains("slots_up_to") || all.contains("slots_up_to_of_one") || all.contains("slot_trials")) << all;
    all["slots_up_to"] = 24576;
    std::ofstream{file.path()} << all;
  }
  EXPECT_TRUE(says(run_program("model show", environment()), "24 KiB  longest message"));
  // Who asks for the numbers that are built in leaves nothing, and hears of nothing.
  std::filesystem::remove_all(folder_ / "isthmus");
  ASSERT_EQ(run_program(bench, environment("ISTHMUS_PROFILE=builtin")).status, 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "isthmus"));
}

// Sizes that were asked for, and what came of it, where announcing is quicker from `quicker` bytes on.
std::pair<std::vector<std::size_t>, std::optional<std::size_t>> compared(std::size_t from, std::size_t longest,
                                                                         std::size_t quicker) {
  std::vector<std::size_t> asked;
  const auto found = last_in_slots(from, longest, [&](std::size_t size) {
    asked.push_back(size);
    return size >= quicker;
  });
  return {asked, found};
}

TEST(SlotsCompared, HalfAnOctaveAfterTheOtherAsFarAsAnnouncingIsQuicker) {
  using Sizes = std::vector<std::size_t>;
  constexpr std::size_t kNever = 1 << 30;
  EXPECT_EQ(compared(16384, 65536, kNever),
            std::pair(Sizes{24576, 32768, 49152, 65536}, std::optional<std::size_t>{131072}));
  EXPECT_EQ(compared(16384, 65536, 30000), std::pair(Sizes{24576, 32768}, std::optional<std::size_t>{24576}));
  EXPECT_EQ(compared(16384, 65536, 0), std::pair(Sizes{24576}, std::optional<std::size_t>{16384}));
  EXPECT_EQ(compared(2048, 8192, kNever), std::pair(Sizes{3072, 4096, 6144, 8192}, std::optional<std::size_t>{131072}))
      << "not the end of what was compared";
  EXPECT_EQ(compared(216, 217, kNever).first, Sizes{217});
  EXPECT_EQ(compared(65536, 65536, 0), std::pair(Sizes{}, std::optional<std::size_t>{}));
  EXPECT_EQ(compared(216, 0, 0), std::pair(Sizes{}, std::optional<std::size_t>{}));
}

TEST_F(Model, FitKeepsWhatItMeasuredAndEverybodyFindsIt) {
  const Ran before = run_program("explain", environment());
  EXPECT_TRUE(says(before, "numbers: built in")) << before.output;
  const Ran fitted = fit(environment("ISTHMUS_KINDS=host"));
  ASSERT_EQ(fitted.status, 0) << fitted.output;
  for (const char* words : {"collective.alpha ", "message.cell_alpha ", "built in", "measured", "written to ",
                            "numbers of devices as built in: no CUDA device is seen"})
    EXPECT_TRUE(says(fitted, words)) << words << " is missing in:\n" << fitted.output;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "isthmus")) files.push_back(entry.path());
  ASSERT_EQ(files.size(), 1U) << "nothing else is left in the cache";
  const auto found = read_profile(files.front().string());
  ASSERT_TRUE(found.ok()) << found.status().text();
  EXPECT_TRUE(found->devices.uuids.empty());
  std::uint64_t bit = 1;
  for (const ProfileValue& value : profile_values()) {
    const bool measured = (found->measured & bit) != 0;
    bit <<= 1U;
    const bool of_host = value.name.rfind("device", 0) != 0 && value.name.rfind("crowd", 0) != 0 &&
                         !value.name.starts_with("gpu") && value.name != "shared_up_to" && value.name != "fixed_order";
    // No message between hosts goes in a cell unless the eager limit is raised.
    EXPECT_EQ(measured || value.name == "handshake_alpha" || value.name == "cell_alpha", of_host) << value.name;
    if (measured || value.name != "device_link_alpha") {
      EXPECT_GT(value.of(*found), 0) << value.name;
    }
    if (value.name.starts_with("one_copy") || value.name.starts_with("two_copies")) {
      EXPECT_LT(value.of(*found), 10e-9) << value.name << ": no memory takes so long for a byte";
    }
  }
  EXPECT_GE(found->collective.alpha_large, found->collective.alpha);
  EXPECT_GE(found->message.cell_alpha, found->message.slot_alpha);
  EXPECT_GE(found->message.slots_up_to, 16384);
  EXPECT_LE(found->message.slots_up_to, 131072);
  const Ran asked = run_program("explain --size 1MiB", environment());
  EXPECT_TRUE(says(asked, "measured on this machine: ")) << asked.output;
  for (const char* command : {"explain", "explain allreduce --ranks 4", "model show"})
    EXPECT_TRUE(says(run_program(command, environment()), files.front().string())) << command;
  EXPECT_TRUE(says(run_program("explain", environment("ISTHMUS_PROFILE=builtin")), "numbers: built in"));
  // Again, over the one that is there, in a world of the user's.
  const Ran again = fit(environment("ISTHMUS_KINDS=host"), "run -n 2 " PROGRAM " ");
  EXPECT_EQ(again.status, 0) << again.output;
}

// Of a machine with these devices, which the tests' driver has.
class ModelOfDevices : public Model {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(FAKE_CUDA "/libcuda.so.1"))
      GTEST_SKIP() << "not covered here: the model fitted on devices; this build has no driver of the tests";
  }
  std::string with_devices(int count, const std::string& more = "") const {
    return environment("LD_LIBRARY_PATH=" FAKE_CUDA " FAKE_CUDA_DEVICES=" + std::to_string(count) + " " + more);
  }
  std::string file() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "isthmus")) return entry.path().string();
    return "";
  }
  // Which numbers of devices are measured.
  static std::set<std::string> measured_devices(const Profile& profile) {
    std::set<std::string> names;
    std::uint64_t bit = 1;
    for (const ProfileValue& value : profile_values()) {
      if (value.of_device() && (profile.measured & bit) != 0) names.insert(std::string{value.name});
      bit <<= 1U;
    }
    return names;
  }
  // Whether the numbers of the machine's devices are in force in a program.
  Ran start(const std::string& environment) const {
    return run_program("run -n 2 " PROGRAM " bench latency --quick --iterations 1 --min 8 --max 8",
                       environment + " ISTHMUS_LOG=info");
  }
};

TEST_F(ModelOfDevices, FitMeasuresBusAndLinkAndNamesTheDevicesAndTheirDriver) {
  const Ran fitted = fit(with_devices(2));
  ASSERT_EQ(fitted.status, 0) << fitted.output;
  EXPECT_TRUE(says(fitted, "device_turn, device_load_factor as built in")) << fitted.output;
  EXPECT_FALSE(says(fitted, "device_link_alpha, device_link_beta as built in")) << fitted.output;
  const auto found = read_profile(file());
  ASSERT_TRUE(found.ok()) << found.status().text();
  EXPECT_EQ(measured_devices(*found),
            (std::set<std::string>{"device_copy_alpha", "device_copy_beta", "device_link_alpha", "device_link_beta",
                                   "device_mapped_beta", "device_mapped_load_beta", "device_pack_beta", "device_row_each",
                                   "device_rows_alpha", "device_rows_beta"}));
  EXPECT_EQ(found->devices.uuids.size(), 2U);
  for (const std::string& uuid : found->devices.uuids) EXPECT_TRUE(uuid.starts_with("GPU-") && says(fitted, uuid)) << uuid;
  EXPECT_TRUE(found->devices.driver.starts_with("driver for CUDA ")) << found->devices.driver;
  // Seconds: its operations start up to 50 us late, and where other programs want these processors, too, two ranks and their driver's threads
  // wait for some turns of the scheduler (2 ms were seen).
  constexpr double kTurns = 20e-3;
  EXPECT_LT(found->message.device_copy_alpha, kTurns);
  EXPECT_LT(found->message.device_link_alpha, kTurns);
  EXPECT_LT(found->message.device_copy_beta, 10e-9);
  // In force for all and for a part of them.
  EXPECT_FALSE(says(start(with_devices(2)), "numbers of devices"));
  EXPECT_FALSE(says(start(with_devices(2, "FAKE_CUDA_VISIBLE=1 CUDA_VISIBLE_DEVICES=1")), "numbers of devices"));
  const Ran shown = run_program("model show", with_devices(2));
  EXPECT_TRUE(says(shown, found->devices.uuids.back())) << shown.output;
  EXPECT_FALSE(says(shown, "numbers of devices: built in")) << shown.output;
  // Not for one more, nor with another driver; what was measured of the host stays in force.
  const Ran other = start(with_devices(3));
  EXPECT_EQ(other.status, 0) << other.output;
  EXPECT_TRUE(says(other, "the numbers of devices in the machine's profile " + file())) << other.output;
  EXPECT_TRUE(says(other, "measure again: isthmus model fit")) << other.output;
  const Ran also_shown = run_program("model show", with_devices(3));
  EXPECT_TRUE(says(also_shown, "numbers of devices: built in, since they were not measured on GPU-")) << also_shown.output;
  EXPECT_TRUE(says(also_shown, "numbers: " + file())) << also_shown.output;
  auto text = nlohmann::json::parse(std::ifstream{file()});
  EXPECT_EQ(text["isthmus_profile"], 3);
  text["devices"]["driver"] = "driver for CUDA 9.0";
  std::ofstream{file()} << text;
  EXPECT_TRUE(says(start(with_devices(2)), "they were measured with the driver for CUDA 9.0, and this is the"))
      << "another driver";
  EXPECT_TRUE(says(run_program("explain --from cuda:0 --to cuda:1", with_devices(2)), "of devices built in, since"));
}

TEST_F(ModelOfDevices, WhatCannotBeMeasuredStaysAsItIsBuiltInAndFitSaysWhy) {
  const Ran alone = fit(with_devices(1));
  ASSERT_EQ(alone.status, 0) << alone.output;
  EXPECT_TRUE(says(alone, "device_link_alpha, device_link_beta as built in: both ranks have the same GPU")) << alone.output;
  EXPECT_EQ(measured_devices(*read_profile(file())),
            (std::set<std::string>{"device_copy_alpha", "device_copy_beta", "device_mapped_beta", "device_mapped_load_beta",
                                   "device_pack_beta", "device_row_each", "device_rows_alpha", "device_rows_beta"}));
  const Ran closed = fit(with_devices(2, "ISTHMUS_DEVICE_IPC=never"));
  ASSERT_EQ(closed.status, 0) << closed.output;
  EXPECT_TRUE(says(closed, "device_copy_beta as built in: neither process can open")) << closed.output;
  EXPECT_TRUE(says(closed, "device_link_alpha, device_link_beta as built in: neither process can open")) << closed.output;
  EXPECT_EQ(measured_devices(*read_profile(file())),
            (std::set<std::string>{"device_copy_alpha", "device_mapped_beta", "device_mapped_load_beta", "device_pack_beta",
                                   "device_row_each", "device_rows_alpha", "device_rows_beta"}));
}

TEST_F(ModelOfDevices, WhatATurnCostsDecidesHowRanksOfOneDeviceSend) {
  const std::string turns = (folder_ / "turns.json").string();
  std::ofstream{turns} << R"({"isthmus_profile": 2, "machine": "any", "message": {"device_turn": 0}, "collective": {}})";
  const auto path = [&](const std::string& profile) {
    return run_program("bench latency --from cuda:0 --to cuda:0 --min 128KiB --max 128KiB --iterations 50",
                       with_devices(1, "ISTHMUS_PROFILE=" + profile));
  };
  EXPECT_TRUE(says(path("builtin"), "shm/ring"));
  const Ran cheap = path(turns);
  EXPECT_TRUE(says(cheap, "shm/device")) << cheap.output;
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
  const Ran fitted = fit(environment("ISTHMUS_KINDS=host ISTHMUS_PROFILE=" + file));
  EXPECT_EQ(fitted.status, 0) << fitted.output;
  EXPECT_FALSE(says(fitted, "cannot be used")) << fitted.output;
}

TEST_F(Model, ANumberThatThereIsNotIsNamedOnceAndTheOthersAreUsed) {
  const std::string file = (folder_ / "mistyped.json").string();
  std::ofstream{file} << R"({"isthmus_profile": 1, "machine": "any",
                             "message": {"device_arithmetic_aboves": 5, "device_arithmetic_above": 7168}, "collective": {}})";
  const Ran shown = run_program("model show", environment("ISTHMUS_PROFILE=" + file));
  EXPECT_EQ(shown.status, 0);
  EXPECT_TRUE(says(shown, "has message.device_arithmetic_aboves, which is no number of this library")) << shown.output;
  EXPECT_TRUE(says(shown, "7 KiB")) << shown.output;
  EXPECT_TRUE(says(shown, "every size")) << shown.output;  // what never is of a device
  const Ran ran =
      run_program("bench latency --max 64 --iterations 3", environment("ISTHMUS_KINDS=host ISTHMUS_PROFILE=" + file));
  EXPECT_EQ(ran.status, 0) << ran.output;
  const auto first = ran.output.find("device_arithmetic_aboves");
  EXPECT_NE(first, std::string::npos) << ran.output;
  EXPECT_EQ(ran.output.find("device_arithmetic_aboves", first + 1), std::string::npos) << ran.output;
}

TEST_F(Model, WhereNothingCanBeKeptFitSaysSo) {
  const Ran homeless = fit("-u XDG_CACHE_HOME -u HOME");
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
