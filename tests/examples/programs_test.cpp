// The example programs as a user runs them, under the launcher.
#include "programs.hpp"

#include <png.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <sstream>

namespace {

using namespace programs;

struct Setting {
  int ranks;
  std::string device;
  std::string name() const { return device + "_" + std::to_string(ranks); }
};
void PrintTo(const Setting& setting, std::ostream* stream) { *stream << setting.name(); }

class Stencil : public Programs, public testing::WithParamInterface<Setting> {};

TEST_P(Stencil, equals_the_serial_run_with_every_exchange_width_and_odd_size) {
  const auto& [ranks, device] = GetParam();
  if (devices(device) == 0) GTEST_SKIP() << "not covered here: the stencil on " << device << ", of which there is no device";
  const std::string tail = std::to_string(ranks) + (ranks == 1 ? " rank, " : " ranks, ") + device + ")";
  for (const auto& [options, words] :
       {std::pair<std::string, std::string>{"--halo 1 --size 61x47 --iterations 9", "(float, 9 steps, "},
        {"--halo 2 --size 23x131 --iterations 7 --precision double --weights shoc", "(double, 7 steps, "},
        {"--halo 3 --size 37x29 --iterations 11 --weights shoc", "(float, 11 steps, "}}) {
    const Ended ended = stencil(ranks, options + " --exchange all --device " + device + json_option());
    ASSERT_EQ(ended.status, 0) << options << '\n' << ended.errors;
    EXPECT_EQ(ended.last_line().find("verified: largest error "), 0U) << ended.last_line();
    EXPECT_NE(ended.last_line().find(words + tail), std::string::npos) << ended.last_line();
    const auto json = results();
    ASSERT_EQ(json["rows"].size(), 4U);
    for (const auto& row : json["rows"]) {
      EXPECT_TRUE(row["verified"]);
      EXPECT_GT(row["us_per_step"], 0.0);
    }
    EXPECT_EQ(json["rows"][0]["sum"], json["rows"][1]["sum"]) << "both exchanges move the same bytes";
  }
}

INSTANTIATE_TEST_SUITE_P(On, Stencil,
                         testing::Values(Setting{1, "host"}, Setting{2, "host"}, Setting{3, "host"}, Setting{4, "host"},
                                         Setting{5, "host"}, Setting{1, "opencl"}, Setting{2, "opencl"},
                                         Setting{3, "opencl"}, Setting{4, "opencl"}, Setting{5, "opencl"},
                                         Setting{1, "cuda"}, Setting{2, "cuda"}, Setting{4, "cuda"}, Setting{5, "cuda"}),
                         [](const auto& chosen) { return chosen.param.name(); });

TEST_F(Programs, four_tiles_reach_the_published_sum) {
  const Ended ended = stencil(4,
                              "--size 1024x1024 --grid 2x2 --iterations 100 --weights shoc --precision double "
                              "--device host --exchange isthmus --no-verify" +
                                  json_option());
  ASSERT_EQ(ended.status, 0) << ended.errors;
  EXPECT_NEAR(results()["rows"][0]["sum"].get<double>() / 8.825533180005e12, 1, 1e-12);
  EXPECT_EQ(count(ended.output, "verified:"), 0U);
}

TEST_F(Programs, every_grid_of_ranks_gives_the_same_field) {
  for (const char* grid : {"4x1", "1x4", "2x2"}) {
    const Ended ended = stencil(4, std::string("--size 53x59 --iterations 10 --halo 2 --device host --grid ") + grid);
    EXPECT_EQ(ended.status, 0) << grid << ended.errors;
  }
}

TEST_F(Programs, one_wrong_point_is_found_and_ends_loudly) {
  for (const char* exchange : {"isthmus", "staged", "one-sided", "halo"}) {
    for (const int ranks : {1, 3}) {
      const Ended ended = stencil(ranks, std::string("--input " SOURCE_DIR "/examples/images/launchpad.png --iterations 20 "
                                                     "--device host --corrupt-step 10 --exchange ") +
                                             exchange);
      EXPECT_EQ(ended.status, 1);
      EXPECT_EQ(count(ended.errors, "WRONG RESULT with the " + std::string(exchange) + " exchange"), 1U) << ended.errors;
      EXPECT_EQ(count(ended.output, "verified:"), 0U);
    }
  }
}

TEST_F(Programs, a_field_that_overflows_is_not_verified) {
  const Ended ended = stencil(2, "--size 64x64 --iterations 4000 --weights shoc --device host --exchange isthmus");
  EXPECT_EQ(ended.status, 1);
  EXPECT_EQ(count(ended.errors, "WRONG RESULT"), 1U) << ended.errors;
}

TEST_F(Programs, mistakes_are_told_once_and_end_with_an_error) {
  std::ofstream(folder_ / "text.png") << "no picture";
  for (const auto& [options, words] : {std::pair<std::string, std::string>{"--input /no/such/file.png", "/no/such/file.png"},
                                       {"--input " + (folder_ / "text.png").string(), "cannot be read as a PNG"},
                                       {"--input a.png --size 5x5", "excludes"},
                                       {"--size 12x10 --halo 6", "at least as wide as the halo, 6"},
                                       {"--size 1x1", "fewer ranks"},
                                       {"--size 5", "ROWSxCOLUMNS"},
                                       {"--size 40x40 --grid 5x1", "needs 5 ranks, and 3 are running"},
                                       {"--iterations 0", "--iterations"},
                                       {"--iterations -3", "--iterations"},
                                       {"--halo 0", "--halo"},
                                       {"--device abacus", "abacus"},
                                       {"--precision half", "half"},
                                       {"--exchange pigeon", "pigeon"},
                                       {"--frames 3", "--output"},
                                       {"--output /proc/no", "/proc/no"},
                                       {"--size 9x9 --iterations 1 --json /no/such/folder/x.json", "/no/such/folder/x.json"},
                                       {"--colour blue", "--colour"}}) {
    const Ended ended = stencil(3, options);
    EXPECT_NE(ended.status, 0) << options;
    EXPECT_EQ(count(ended.errors, "stencil2d: "), 1U) << options << '\n' << ended.errors;
    EXPECT_NE(ended.errors.find(words), std::string::npos) << options << '\n' << ended.errors;
    EXPECT_EQ(count(ended.output, "verified:"), 0U);
  }
}

TEST_F(Programs, auto_takes_the_host_where_there_is_no_device_and_a_named_device_is_an_error) {
  const std::string none = "env CUDA_VISIBLE_DEVICES= OCL_ICD_VENDORS=/nonexistent/ " BUILD_DIR
                           "/bin/isthmus run -n 2 " BUILD_DIR "/bin/stencil2d --size 20x20 --iterations 3 --device ";
  const Ended any = shell(none + "auto");
  EXPECT_EQ(any.status, 0) << any.errors;
  if (any.last_line().find("2 ranks, opencl)") != std::string::npos)
    GTEST_SKIP()
        << "this machine's OpenCL loader finds its platforms whatever OCL_ICD_VENDORS says, so that they cannot be hidden";
  EXPECT_NE(any.last_line().find("2 ranks, host)"), std::string::npos) << any.last_line();
  for (const char* device : {"opencl", "cuda"}) {
    const Ended named = shell(none + device);
    EXPECT_EQ(named.status, 1);
    EXPECT_NE(named.errors.find(std::string("--device ") + device + " cannot be used here: "), std::string::npos)
        << named.errors;
  }
}

TEST_F(Programs, pictures_of_start_frames_and_end_are_written) {
  const std::string input = SOURCE_DIR "/examples/images/launchpad.png";
  const Ended ended = stencil(2, "--input " + input + " --iterations 40 --frames 4 --device host --output " +
                                     (folder_ / "new" / "pictures").string());
  ASSERT_EQ(ended.status, 0) << ended.errors;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_ / "new" / "pictures")) {
    names.push_back(entry.path().filename());
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    ASSERT_TRUE(png_image_begin_read_from_file(&image, entry.path().c_str())) << entry.path();
    EXPECT_EQ(image.width, 640U);
    EXPECT_EQ(image.height, 427U);
    png_image_free(&image);
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"final.png", "frame-000010.png", "frame-000020.png", "frame-000030.png",
                                             "start.png"}));
}

TEST_F(Programs, progress_is_shown_by_the_first_rank_while_it_runs) {
  const Ended ended = stencil(3, "--size 64x64 --iterations 80 --device host");
  for (const char* part : {"isthmus  20/80", "isthmus  80/80", "staged   40/80", "staged   80/80"})
    EXPECT_EQ(count(ended.output, part), 1U) << part << '\n' << ended.output;
}

TEST_F(Programs, hello_in_c_and_in_cpp_exchange_their_numbers) {
  for (const char* program : {"hello_c", "hello_cpp"}) {
    for (const int ranks : {1, 2, 3}) {
      const Ended ended = run(ranks, program);
      EXPECT_EQ(ended.status, 0) << ended.errors;
      for (int rank = 0; rank < ranks; ++rank) {
        const int before = (rank + ranks - 1) % ranks;
        const std::string line = "rank " + std::to_string(rank) + ": 1048576 of 1048576 numbers from rank " +
                                 std::to_string(before) + " are right\n";
        EXPECT_EQ(count(ended.output, line), 1U) << line << ended.output;
      }
    }
  }
}

TEST_F(Programs, columns_become_the_first_ones_of_the_neighbours) {
  for (const int ranks : {1, 2, 3}) {
    const Ended ended = run(ranks, "columns");
    EXPECT_EQ(ended.status, 0) << ended.errors;
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string line = "rank " + std::to_string(rank) +
                               ": 700000 of 700000 numbers are right, 1000 of them from rank " +
                               std::to_string((rank + ranks - 1) % ranks) + "\n";
      EXPECT_EQ(count(ended.output, line), 1U) << line << ended.output;
    }
  }
}

TEST_F(Programs, a_number_goes_round_the_ring) {
  for (const int ranks : {1, 2, 3}) {
    const Ended ended = run(ranks, "ring");
    EXPECT_EQ(ended.status, 0) << ended.errors;
    const std::string line = std::to_string(1000 * ranks) + ", after 1000 rounds of " + std::to_string(ranks) + " PEs\n";
    EXPECT_EQ(count(ended.output, line), 1U) << line << ended.output;
  }
}

TEST_F(Programs, the_demo_ends_with_verified_and_leaves_pictures) {
  const Ended ended = shell("env DEMO_OUTPUT=" + folder_.string() +
                            "/demo " SOURCE_DIR "/examples/stencil2d/demo.sh " BUILD_DIR " --iterations 40");
  EXPECT_EQ(ended.status, 0) << ended.errors;
  EXPECT_EQ(ended.last_line().find("verified: "), 0U) << ended.output;
  for (const char* name : {"start.png", "final.png", "frame-000013.png", "stencil2d.json"})
    EXPECT_TRUE(fs::exists(folder_ / "demo" / name)) << name;
}

}  // namespace
