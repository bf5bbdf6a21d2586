// The lattice-Boltzmann program: what it says of itself is right, on the host and on devices.
#include <cmath>
#include <tuple>

#include "simulations.hpp"

namespace {

using namespace programs;

// Sizes that ranks do not divide, and parts with one layer of cells.
TEST_F(Simulations, lattice_boltzmann_is_the_same_to_the_last_bit_however_it_is_cut) {
  const auto same = [this](int ranks, const std::string& words, const std::string& begin) {
    const Ended ended = run(ranks, "lbm " + words);
    const std::string given = words + ", " + std::to_string(ranks) + " ranks: " + ended.output + ended.errors;
    EXPECT_EQ(ended.status, 0) << given;
    EXPECT_EQ(ended.output.find(begin), 0U) << given;
    EXPECT_EQ(count(ended.output, "the same to the last bit as of one rank alone"), 1U) << given;
    return ended.output;
  };
  for (const int ranks : {1, 2, 3, 4})
    for (const std::string exchange : {"messages", "one-sided"}) {
      const std::string rest = " --exchange " + exchange, end = "ranks, " + exchange + "\n";
      EXPECT_EQ(count(same(ranks, "--cells 13 --steps 10" + rest, "verified: tgv"), end), 1U);
      // Nothing is known of a cavity that is not steady.
      EXPECT_EQ(count(same(ranks, "--flow cavity --cells 13 --steps 40" + rest, "computed: cavity"), end), 1U);
    }
  for (const char* grid : {"4x1x1", "1x4x1", "1x1x4", "2x1x2"})
    same(4, std::string("--cells 9 --steps 7 --grid ") + grid, "verified: tgv");
  for (const char* grid : {"4x1x1", "1x1x4"})
    same(4, std::string("--flow cavity --cells 9 --steps 20 --grid ") + grid, "computed: cavity");
}

TEST_F(Simulations, lattice_boltzmann_sends_what_crosses_faces_and_edges_alone) {
  // Of 16 x 16 x 16 cells 8 x 8 x 16 are a rank's, with a layer along the dimension that is not cut. Rank 1 lies at two faces, and rank 3 at four
  // edges; 5 populations of 4 bytes cross a face, and 1 an edge.
  const int face = 5 * 8 * 18 * 4, edge = 18 * 4;
  for (const char* exchange : {"messages", "one-sided"}) {
    const Ended ended = run(4, std::string("lbm --cells 16 --steps 3 --grid 2x2x1 --exchange ") + exchange);
    EXPECT_EQ(ended.status, 0) << ended.errors;
    for (const auto& [rank, bytes] : {std::pair{1, 2 * face}, {2, 2 * face}, {3, 4 * edge}}) {
      const std::string both = std::to_string(bytes) + " bytes out, " + std::to_string(bytes) + " bytes in";
      EXPECT_EQ(count(ended.output, "rank " + std::to_string(rank) + ": " + both), 1U) << both << '\n' << ended.output;
    }
  }
}

// The error of the rate falls with the square of the length, or somewhat quicker.
TEST_F(Simulations, lattice_boltzmann_is_what_the_law_and_the_tables_say) {
  std::array<double, 2> off{};
  for (const std::size_t n : {0U, 1U}) {
    const Ended ended = run(2, std::string("lbm --exchange one-sided --cells ") + (n == 0 ? "16" : "32"));
    EXPECT_EQ(ended.status, 0) << ended.output << ended.errors;
    off[n] = number_behind(ended.output, "its rate by ");
    EXPECT_EQ(number_behind(ended.output, "(allowed: "), n == 0 ? 0.8 : 0.2) << ended.output;
  }
  EXPECT_GT(off[0], 3 * off[1]);
  EXPECT_GT(off[1], 0);
  const Ended cavity = run(2, "lbm --flow cavity --cells 24 --exchange one-sided");
  EXPECT_EQ(cavity.status, 0) << cavity.output << cavity.errors;
  EXPECT_EQ(cavity.output.find("verified: cavity"), 0U) << cavity.output;
  EXPECT_EQ(count(cavity.output, "steady, profiles off Ghia's by at most 0."), 1U) << cavity.output;
}

// Bits are compared with the host's, and with one device's. One-sided needs a device for each rank, and says so.
TEST_F(Simulations, lattice_boltzmann_has_the_hosts_bits_on_devices) {
  const int devices = gpus();
  if (devices == 0) GTEST_SKIP() << "not covered here: lbm on GPUs; there is none, or no CUDA compiler was there";
  const Ended first = run(1, "lbm --device cuda --cells 13 --steps 7");
  EXPECT_EQ(first.status, 0) << first.output << first.errors;
  const std::string vortices = "--cells 13 --steps 7", cavity = "--flow cavity --cells 13 --steps 21";
  for (const auto& [ranks, words, exchange] : {std::tuple<int, std::string, std::string>{2, vortices, "messages"},
                                               {2, vortices, "one-sided"},
                                               {2, vortices, "graph"},
                                               {2, cavity, "messages"},
                                               {2, cavity, "one-sided"},
                                               {3, cavity, "graph"}}) {
    const Ended ended = run(ranks, "lbm --device cuda " + words + " --exchange " + exchange);
    const std::string given = words + ", " + exchange + ": " + ended.output + ended.errors;
    if (exchange == "one-sided" && ranks > devices) {
      EXPECT_EQ(ended.status, 2) << given;
      EXPECT_EQ(count(ended.errors, "needs a GPU for each rank"), 1U) << given;
      continue;
    }
    EXPECT_EQ(ended.status, 0) << given;
    EXPECT_EQ(count(ended.output, "the same to the last bit as of one rank alone on the host"), 1U) << given;
    EXPECT_EQ(count(ended.output, "the same to the last bit as by one device alone"), 1U) << given;
  }
  const Ended spoilt = run(2, "lbm --device cuda --cells 13 --steps 7 --spoil bit");
  EXPECT_EQ(spoilt.status, 1) << spoilt.errors;
  EXPECT_EQ(count(spoilt.output, "NOT THE SAME as of one rank alone on the host"), 1U) << spoilt.output;
  EXPECT_EQ(count(spoilt.output, "NOT THE SAME as by one device alone, first in population 1 of layer 6 along z"), 1U)
      << spoilt.output;
}

TEST_F(Simulations, lattice_boltzmann_writes_its_figures_down) {
  const Ended ended = run(2, "lbm --cells 9 --steps 7 --json " + (folder_ / "lbm.json").string());
  ASSERT_EQ(ended.status, 0) << ended.errors;
  const auto found = nlohmann::json::parse(contents(folder_ / "lbm.json"));
  EXPECT_EQ(found["device"], "host");
  EXPECT_EQ(found["ranks"], 2);
  EXPECT_EQ(found["steps"], 7);
  EXPECT_EQ(found["compared_with_host"]["same_bits"], true);
  EXPECT_EQ(found["verified"], true);
  ASSERT_EQ(found["ways"].size(), 1U);
  const auto& way = found["ways"][0];
  EXPECT_EQ(way["name"], "messages");
  EXPECT_EQ(way["ranks"], 2);
  EXPECT_EQ(way["unit"], "GLUPS");
  EXPECT_EQ(found["alone"]["ranks"], 1);
  const double rate = way["rate"], seconds = way["seconds"], efficiency = way["efficiency"];
  EXPECT_NEAR(rate * seconds, 9 * 9 * 9 / 1e9, 1e-12);
  EXPECT_NEAR(found["alone"]["seconds"].get<double>(), efficiency * seconds * 2, 1e-12);
  const Ended nowhere = run(2, "lbm --cells 9 --steps 7 --json " + (folder_ / "none" / "lbm.json").string());
  EXPECT_EQ(nowhere.status, 1);
  EXPECT_EQ(count(nowhere.errors, "cannot be written"), 1U) << nowhere.errors;
  EXPECT_EQ(nowhere.output, "") << "told behind the run, which would be lost";
}

// Where sanitizers map more than that, it would be their error.
TEST_F(Simulations, lattice_boltzmann_says_how_much_memory_is_missing) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "not covered here: memory that is not enough; sanitizers map more than this test allows";
#endif
  const Ended ended = shell("sh -c 'export CUDA_VISIBLE_DEVICES=; ulimit -v 16000000; exec " BUILD_DIR
                            "/bin/isthmus run -n 1 " BUILD_DIR "/bin/lbm --cells 1024'");
  EXPECT_EQ(ended.status, 1) << ended.errors;
  // 19 populations of 4 bytes, with a layer of cells around.
  EXPECT_EQ(count(ended.errors, "wanted are " + std::to_string(19LL * 1026 * 1026 * 1026 * 4) + " bytes of memory"), 1U)
      << ended.errors;
}

}  // namespace
