// pixels and particles: what they say of themselves is right, on the host and on GPUs.
#include "simulations.hpp"

namespace {

using namespace programs;

// One run is by 1, 2, 4 ... and all ranks.
TEST_F(Simulations, pixels_are_those_of_a_serial_loop) {
  for (const int ranks : {3, 4}) {
    const Ended ended = run(ranks, "pixels --width 61 --height 37 --steps 9");
    EXPECT_EQ(ended.status, 0) << ended.errors << ended.output;
    EXPECT_EQ(ended.last_line(), "verified: the same bits as a serial loop");
    for (const char* some : {"\n    1 ", "\n    2 "}) EXPECT_EQ(count(ended.output, some), 1U) << ended.output;
    EXPECT_EQ(count(ended.output, "\n    " + std::to_string(ranks) + " "), 1U) << ended.output;
  }
}

// So quick that most ranks' particles go to all neighbours, and so few that some ranks have none.
TEST_F(Simulations, particles_are_neither_lost_nor_doubled) {
  for (const int ranks : {1, 2, 3, 4, 8})
    for (const char* options : {"--count 3000 --steps 12 --speed 0.2", "--count 5 --steps 20 --speed 0.3"}) {
      const Ended ended = run(ranks, std::string("particles ") + options);
      EXPECT_EQ(ended.status, 0) << ended.errors << ended.output;
      EXPECT_EQ(ended.last_line().find("verified: none lost, none twice, the same bits"), 0U) << ended.output;
      for (const char* store : {"\naos ", "\nsoa "}) EXPECT_EQ(count(ended.output, store), 1U) << ended.output;
    }
}

TEST_F(Simulations, pixels_and_particles_write_what_they_print) {
  const Ended picture = run(3, "pixels --width 61 --height 37 --steps 9" + json_option());
  ASSERT_EQ(picture.status, 0) << picture.errors;
  const nlohmann::json pixels = results();
  EXPECT_EQ(pixels.at("program"), "pixels");
  EXPECT_EQ(pixels.at("device"), "host");
  EXPECT_EQ(pixels.at("cells"), nlohmann::json({61, 37}));
  EXPECT_EQ(pixels.at("bytes_of_message"), 61 * 4);
  EXPECT_TRUE(pixels.at("verified").get<bool>());
  ASSERT_EQ(pixels.at("ways").size(), 3U);
  const double alone = pixels.at("ways")[0].at("seconds");
  for (std::size_t n = 0; n < 3; ++n) {
    const nlohmann::json& way = pixels.at("ways")[n];
    EXPECT_EQ(way.at("name"), "messages");
    EXPECT_EQ(way.at("ranks"), n + 1);
    EXPECT_EQ(way.at("unit"), "Gpix/s");
    const double seconds = way.at("seconds"), rate = way.at("rate"), efficiency = way.at("efficiency");
    EXPECT_NEAR(rate * seconds, 59 * 35 / 1e9, 1e-12) << way;
    EXPECT_NEAR(efficiency * seconds * static_cast<double>(n + 1), alone, 1e-12) << way;
  }
  const Ended box = run(2, "particles --count 300 --steps 5 --speed 0.2 --store soa" + json_option());
  ASSERT_EQ(box.status, 0) << box.errors;
  const nlohmann::json particles = results();
  EXPECT_EQ(particles.at("particles"), 300);
  EXPECT_EQ(particles.at("ranks"), 2);
  ASSERT_EQ(particles.at("ways").size(), 1U);
  const nlohmann::json& way = particles.at("ways")[0];
  EXPECT_EQ(way.at("name"), "soa");
  EXPECT_EQ(way.at("unit"), "M particles/s");
  EXPECT_TRUE(way.at("verified").get<bool>());
  const double seconds = way.at("seconds"), rate = way.at("rate"), share = way.at("share_that_migrates");
  EXPECT_NEAR(rate * seconds, 300 / 1e6, 1e-12) << way;
  // Two in ten would leave a half of the box by one side alone, were they all that quick.
  EXPECT_GT(share, 0.01) << way;
  EXPECT_NEAR(way.at("bytes_sent").get<double>(), share * 300 * 56 / 2, 1e-6) << way;
}

// Behind every run, also those that are not compared.
TEST_F(Simulations, particles_are_counted) {
  const Ended ended = run(2, "particles --count 500 --steps 5 --spoil count");
  EXPECT_EQ(ended.status, 1) << ended.errors;
  const auto at = ended.errors.find("there are 498 particles, whose identities add up to ");
  ASSERT_NE(at, std::string::npos) << ended.errors;
  EXPECT_LT(number_behind(ended.errors, "add up to "), 124750) << ended.errors;
  EXPECT_NE(ended.errors.find("there have to be 500, with 124750", at), std::string::npos) << ended.errors;
}

// Both ways, by more ranks than there are GPUs, too. Columns that fill no warp, more than a block has, and one row for each rank.
TEST_F(Simulations, pixels_on_gpus_are_those_of_a_serial_loop) {
  const int devices = gpus();
  if (devices == 0) GTEST_SKIP() << "not covered here: pixels on GPUs; there is none, or no CUDA compiler was there";
  for (const int ranks : {1, 2, 3})
    for (const char* options :
         {"--width 67 --height 41 --steps 9", "--width 1500 --height 70 --steps 6", "--width 3 --height 5"}) {
      const Ended ended = run(ranks, std::string("pixels --device cuda ") + options);
      const std::string given = std::to_string(ranks) + " ranks, " + options + ": " + ended.errors + ended.output;
      EXPECT_EQ(ended.status, 0) << given;
      EXPECT_EQ(ended.last_line(), "verified: the same bits as a serial loop") << given;
      EXPECT_EQ(count(ended.output, ", which ranks share\n"), ranks > devices ? 1U : 0U) << given;
      for (const char* way : {"%  messages\n", "%  stream\n"})
        EXPECT_EQ(count(ended.output, way), static_cast<std::size_t>(ranks)) << given;
    }
  const Ended wrong = run(2, "pixels --device cuda --width 33 --height 33 --steps 5 --spoil yes");
  EXPECT_EQ(wrong.status, 1) << wrong.errors;
  EXPECT_EQ(count(wrong.output, "  WRONG\n"), 4U) << wrong.output;
}

// Lists that are longer than there is room for at first, and so few particles that some ranks have none.
TEST_F(Simulations, particles_on_gpus_have_the_processors_bits) {
  const int devices = gpus();
  if (devices == 0) GTEST_SKIP() << "not covered here: particles on GPUs; there is none, or no CUDA compiler was there";
  for (const int ranks : {1, 2, 3, 4})
    for (const char* options : {"--count 20000 --steps 12 --speed 0.2", "--count 5 --steps 20 --speed 0.3"}) {
      const Ended ended = run(ranks, std::string("particles --device cuda ") + options);
      const std::string given = std::to_string(ranks) + " ranks, " + options + ": " + ended.errors + ended.output;
      EXPECT_EQ(ended.status, 0) << given;
      EXPECT_EQ(ended.last_line().find("verified: none lost, none twice, the same bits as one rank and its processor"), 0U)
          << given;
      EXPECT_EQ(count(ended.output, ", which ranks share\n"), ranks > devices ? 1U : 0U) << given;
      for (const char* store : {"\naos ", "\nsoa "}) EXPECT_EQ(count(ended.output, store), 1U) << given;
    }
  const Ended wrong = run(2, "particles --device cuda --count 500 --steps 5 --spoil bit");
  EXPECT_EQ(wrong.status, 1) << wrong.errors;
  EXPECT_EQ(count(wrong.output, "WRONG: 0 lost, 0 twice, 0 that nobody knows, 1 elsewhere"), 2U) << wrong.output;
}

}  // namespace
