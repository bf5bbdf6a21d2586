// Simulations among the example programs: each says whether its result is right.
#include <cmath>
#include <tuple>

#include "simulations.hpp"

namespace {

using namespace programs;

TEST_F(Simulations, heat_in_three_dimensions_is_what_the_wave_says) {
  for (const int ranks : {1, 2, 3, 4}) {
    const Ended ended = run(ranks, "heat3d 20 30");
    EXPECT_EQ(ended.status, 0) << ended.errors;
    EXPECT_EQ(count(ended.output, "verified: 8000 cells, 30 steps, " + std::to_string(ranks) + " ranks"), 1U)
        << ended.output;
  }
  const Ended thin = run(4, "heat3d 1 1");
  EXPECT_NE(thin.status, 0);
  EXPECT_NE(thin.errors.find("the grid is thinner than the halo"), std::string::npos) << thin.errors;
}

// Compiled where the compiler knows the directives; without a device they run on the host.
TEST_F(Simulations, heat_of_directives_is_what_the_wave_says) {
  const Variable one_thread("OMP_NUM_THREADS", "1");
  int known = 0;
  for (const char* name : {"heat_openmp", "heat_openacc"}) {
    if (!fs::exists(std::string{BUILD_DIR "/bin/"} + name)) continue;
    ++known;
    for (const int ranks : {1, 2, 3}) {
      const Ended ended = run(ranks, std::string{name} + " 40 30 21");
      EXPECT_EQ(ended.status, 0) << ended.errors;
      const std::string end = " 22 steps, " + std::to_string(ranks) + " ranks, off by at most ";
      EXPECT_EQ(count(ended.output, "verified: 40 x 30 cells on ") + count(ended.output, end), 2U) << ended.output;
      EXPECT_EQ(count(ended.output, " cells on the host, sent from pageable host memory,") +
                    count(ended.output, " cells on a device, sent from device memory of cuda device "),
                1U)
          << ended.output;
    }
    const Ended thin = run(4, std::string{name} + " 3");
    EXPECT_EQ(thin.status, 2);
    EXPECT_EQ(count(thin.errors, "3 rows are too few for 4 ranks"), 1U) << thin.errors;
    const Ended wrong = run(2, std::string{name} + " 40 x");
    EXPECT_EQ(wrong.status, 2);
    EXPECT_EQ(count(wrong.errors, "'x' is no number from 1 to 1000000"), 1U) << wrong.errors;
    for (const auto& [words, error] : {std::pair{" $ISTHMUS_RANK", "'0' is no number from 1 to 1000000"},
                                       {" 9 9 1$ISTHMUS_RANK", "ranks were given different numbers"}}) {
      const Ended unlike = run_unlike(name + std::string(words));
      EXPECT_EQ(unlike.status, 2) << words;
      EXPECT_EQ(count(unlike.errors, error), 1U) << words << '\n' << unlike.errors;
    }
  }
  if (known < 2)
    GTEST_SKIP() << "not covered here: heat by OpenMP and by OpenACC; this compiler knows " << known << " of the two";
}

// By messages, and stored into the neighbours' halos in a heap of host memory. With b other than the benchmark's 0 edges count, too. Cut along
// each dimension by itself, along all three, unevenly, and with parts that are a cell thin.
TEST_F(Simulations, himeno_is_the_same_to_the_last_bit_however_it_is_cut) {
  for (const auto& [ranks, rest] : {std::pair{1, " XS 64"},
                                    {2, " XS 64"},
                                    {3, " XS 5 0.01"},
                                    {4, " XS 64"},
                                    {4, " XS 5 0.01"},
                                    {1, " 5x4x6 9 0.01"},
                                    {2, " 16x12x20 9 0.01 --grid 1x1x2"},
                                    {4, " 16x12x20 9 0.01 --grid 1x1x4"},
                                    {3, " 7x11x8 8 0.01 --grid 1x3x1"},
                                    {4, " 4x12x20 9 0.01 --grid 4x1x1"},
                                    {8, " 9x12x10,6x5x4 9 0.01 --grid 2x2x2"},
                                    {8, " 5x4x9 8 0.01 --grid 1x1x8"}}) {
    const Ended ended = run(ranks, std::string{"himeno"} + rest);
    EXPECT_EQ(ended.status, 0) << rest << ended.errors << ended.output;
    const std::size_t sizes = 1 + count(rest, ",");
    EXPECT_EQ(count(ended.output, "verified: size "), sizes) << rest << ", " << ranks << " ranks: " << ended.output;
    for (const char* way : {"\nmessages  ", "\none-sided "})
      EXPECT_EQ(count(ended.output, way), sizes) << rest << ended.output;
  }
  const Ended unknown = run(1, "himeno XXL");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.errors.find("sizes are XS, S, M, L and XL, or cells along i, j and k"), std::string::npos)
      << unknown.errors;
}

// All ways to exchange, on as many GPUs as there are; two ranks on one GPU have no kernels that wait for each other.
TEST_F(Simulations, himeno_on_gpus_is_the_same_to_the_last_bit_by_every_exchange) {
  const std::size_t devices = static_cast<std::size_t>(gpus());
  if (devices == 0) GTEST_SKIP() << "not covered here: himeno on GPUs; there is none, or no CUDA compiler was there";
  const std::string json = (folder_ / "himeno.json").string();
  const Ended alone = run(1, "himeno XS 64 --device cuda --json " + json);
  EXPECT_EQ(alone.status, 0) << alone.errors << alone.output;
  EXPECT_EQ(alone.output.find("verified: size XS, 64 iterations, b = 0, 1 x 1 x 1 ranks, cuda ("), 0U) << alone.output;
  for (const char* way : {"\nmessages ", "\nmessages, overlapped ", "\nstream ", "\nstream, overlapped ", "\nkernel  ",
                          "\nkernel, coefficients kept "})
    EXPECT_EQ(count(alone.output, way), 1U) << way << alone.output;
  EXPECT_NEAR(number_behind(alone.output, "gosa "), 3.042699e-03, 3e-6) << alone.output;
  const nlohmann::json found = nlohmann::json::parse(contents(json));
  EXPECT_EQ(found.at("ranks"), 1);
  EXPECT_EQ(found.at("alone").at("unit"), "MFLOPS");
  EXPECT_EQ(found.at("ways").size(), 6U) << found;
  for (const char* rest :
       {"XS 65 0.01", "XS 33 0.01 --grid 1x2x1", "XS 33 0.01 --grid 1x1x2", "S 200", "6x64x64,16x40x36 33 0.01"}) {
    const Ended ended = run(2, std::string("himeno --device cuda ") + rest);
    const std::size_t sizes = 1 + count(rest, ",");
    EXPECT_EQ(ended.status, 0) << rest << ended.errors << ended.output;
    EXPECT_EQ(count(ended.output, "verified: size "), sizes) << rest << ended.output;
    EXPECT_EQ(count(ended.output, "\nkernel  "), devices >= 2 ? sizes : 0U) << ended.output;
    EXPECT_EQ(count(ended.output, "kernel: left out: two ranks share a GPU"), devices >= 2 ? 0U : sizes) << ended.output;
  }
  const Ended spoilt = run(2, "himeno XS 9 --device cuda --exchange messages --spoil bit");
  EXPECT_EQ(spoilt.status, 1) << spoilt.errors;
  EXPECT_EQ(count(spoilt.output, "WRONG: 1 other cells"), 2U) << spoilt.output;
  const Ended shared = run(static_cast<int>(devices) + 1, "himeno XS 9 --device cuda --exchange kernel");
  EXPECT_EQ(shared.status, 2) << shared.errors;
  EXPECT_EQ(count(shared.errors, "--exchange kernel: two ranks share a GPU"), 1U) << shared.errors;
}

// Every way to exchange rows; with 7 x 6 cells on 4 ranks each rank has one row, and with one rank it is its own neighbour.
TEST_F(Simulations, jacobi_has_the_bits_of_one_rank_by_every_exchange) {
  for (const int ranks : {1, 2, 3, 4})
    for (const char* options : {"--nx 67 --ny 41 --iterations 31", "--nx 7 --ny 6 --iterations 8 --nccheck 3"}) {
      const Ended ended = run(ranks, std::string("jacobi ") + options);
      EXPECT_EQ(ended.status, 0) << ended.errors << ended.output;
      EXPECT_EQ(ended.last_line(), "verified: bits and norms of a serial loop") << options << ", " << ranks << " ranks";
      for (const char* exchange : {"messages ", "halo ", "halo-one-sided ", "put "})
        EXPECT_EQ(count(ended.output, std::string("\n") + exchange), 1U) << exchange << ended.output;
    }
}

// More iterations than are compared with the serial loop are compared with one rank alone.
TEST_F(Simulations, jacobi_writes_what_it_prints) {
  const Ended ended = run(2, "jacobi --nx 67 --ny 41 --iterations 31 --compare 4" + json_option());
  EXPECT_EQ(ended.status, 0) << ended.errors << ended.output;
  EXPECT_EQ(ended.last_line(), "verified: bits and norms of a serial loop of 4 iterations, and all of one rank alone");
  const nlohmann::json found = results();
  EXPECT_EQ(found.at("cells"), nlohmann::json({67, 41}));
  EXPECT_EQ(found.at("iterations_compared_with_serial"), 4);
  EXPECT_TRUE(found.at("verified").get<bool>());
  EXPECT_EQ(found.at("alone").at("ranks"), 1);
  EXPECT_EQ(found.at("ways").size(), 4U);
  for (const nlohmann::json& row : found.at("ways")) {
    EXPECT_EQ(row.at("iterations"), 31) << row;
    EXPECT_NEAR(row.at("first_norm").get<double>(), 0.25 * std::sqrt(40), 1e-4) << row;
    EXPECT_NEAR(row.at("rate").get<double>() * row.at("seconds").get<double>(), 65 * 39 * 1e-9, 1e-12);
    std::string line = "\n";
    line.append(row.at("name").get<std::string>()).append(" ");
    EXPECT_NE(ended.output.find(line), std::string::npos) << ended.output;
  }
}

// Every way on GPUs; those whose kernels wait for each other need one for each rank, and then have to run. Columns that fill no warp, more than a block has, and
// one row for each rank.
TEST_F(Simulations, jacobi_on_gpus_has_the_bits_of_one_rank_by_every_exchange) {
  const int devices = gpus();
  if (devices == 0) GTEST_SKIP() << "not covered here: jacobi on GPUs; there is none, or no CUDA compiler was there";
  for (const int ranks : {1, 2})
    for (const char* options :
         {"--nx 67 --ny 41 --iterations 31", "--nx 1500 --ny 70 --iterations 12 --nccheck 5",
          "--nx 7 --ny 4 --iterations 8 --nccheck 3", "--nx 128 --ny 300 --iterations 40 --tolerance 0.2"}) {
      const Ended ended = run(ranks, std::string("jacobi --device cuda ") + options);
      EXPECT_EQ(ended.status, 0) << ended.errors << ended.output;
      EXPECT_EQ(ended.last_line(), "verified: bits and norms of a serial loop") << options << ", " << ranks << " ranks";
      for (const char* exchange : {"messages ", "stream ", "one-sided ", "kernel "})
        EXPECT_EQ(count(ended.output, std::string("\n") + exchange), 1U) << exchange << ended.output;
      EXPECT_EQ(count(ended.output, " not here: two ranks have one GPU"), ranks > devices ? 2U : 0U) << ended.output;
    }
  // With one GPU, kernels that wait for each other are refused.
  const Ended both = run(2, "jacobi --device cuda --exchange kernel --nx 67 --ny 41 --iterations 5");
  EXPECT_EQ(both.status, devices >= 2 ? 0 : 2) << both.errors << both.output;
  EXPECT_EQ(count(both.errors, "--exchange kernel cannot be here: two ranks have one GPU"), devices >= 2 ? 0U : 1U)
      << both.errors;
  for (const char* spoil : {"bit", "factor"}) {
    const Ended wrong = run(1, std::string("jacobi --device cuda --nx 67 --ny 41 --iterations 5 --spoil ") + spoil);
    EXPECT_EQ(wrong.status, 1) << wrong.errors;
    EXPECT_EQ(count(wrong.output, "  WRONG "), 5U) << wrong.output;  // one rank alone, and the four ways
  }
}

// In which iteration the run by one rank alone and that by a way ended.
std::array<int, 2> iterations_of(const std::string& output) {
  std::array<int, 2> found{};
  std::sscanf(output.substr(std::min(output.find("one rank: "), output.size())).c_str(), "one rank: %*f Gpix/s, %d",
              &found[0]);
  std::sscanf(output.substr(std::min(output.find("\nput "), output.size())).c_str(), " put %*f %*f %*f %% %*f %% %d",
              &found[1]);
  return found;
}

TEST_F(Simulations, jacobi_ends_at_the_tolerance) {
  const Ended ended = run(2, "jacobi --nx 9 --ny 9 --iterations 100000 --nccheck 10 --tolerance 1e-3 --exchange put");
  EXPECT_EQ(ended.status, 0) << ended.errors;
  const int iterations = iterations_of(ended.output)[1];
  EXPECT_GT(iterations, 10) << ended.output;
  EXPECT_LT(iterations, 1000) << ended.output;
  EXPECT_EQ(iterations % 10, 0) << ended.output;
}

// Norms of one rank and of two are the same sum in another order, so that one may end an iteration later.
TEST_F(Simulations, jacobi_is_right_where_one_rank_ends_elsewhere) {
  const Ended between = run(2, "jacobi --nx 67 --ny 41 --iterations 40 --tolerance 0.088232265 --exchange put");
  EXPECT_EQ(between.last_line(), "verified: bits and norms of a serial loop") << between.output;
  const auto [alone, both] = iterations_of(between.output);
  if (alone == both)
    GTEST_SKIP() << "not covered here: one rank that ends elsewhere than two; with this processor both end in iteration "
                 << both;
}

TEST_F(Simulations, what_is_wrong_is_found_by_each) {
  for (const auto& [program, words] :
       {std::pair<std::string, std::string>{"jacobi --nx 33 --ny 33 --iterations 5 --spoil bit", "  WRONG BITS"},
        {"himeno XS 5 0.01 --spoil bit --exchange messages", "wrong: size XS, 5 iterations"},
        {"himeno 6x6x6 5 0.01 --spoil bit --exchange one-sided", "MFLOPS, WRONG"},
        {"jacobi --nx 33 --ny 33 --iterations 5 --spoil factor", "  WRONG NORM"},
        {"lbm --cells 9 --steps 7 --spoil bit", "NOT THE SAME as of one rank alone"},
        {"lbm --flow cavity --cells 9 --steps 7 --spoil bit", "NOT THE SAME as of one rank alone"},
        {"pixels --width 33 --height 33 --steps 5 --spoil yes", "wrong: other bits"},
        {"particles --count 500 --steps 5 --spoil lost", "WRONG: 1 lost, 0 twice, 0 that nobody knows, 0 elsewhere"},
        {"particles --count 500 --steps 5 --spoil twice", "WRONG: 0 lost, 1 twice, 0 that nobody knows, 0 elsewhere"},
        {"particles --count 500 --steps 5 --spoil bit", "WRONG: 0 lost, 0 twice, 0 that nobody knows, 1 elsewhere"}}) {
    const Ended ended = run(2, program);
    EXPECT_EQ(ended.status, 1) << program << ended.errors;
    EXPECT_NE(ended.output.find(words), std::string::npos) << program << ended.output;
    EXPECT_EQ(count(ended.output, "verified"), 0U) << program;
  }
}

TEST_F(Simulations, each_tells_of_a_mistake_once_with_the_usage) {
  for (const auto& [program, words] :
       {std::pair<std::string, std::string>{"jacobi --nx", "--nx: 1 required"},
        {"jacobi --nx 12x", "--nx: Value 12x not in range 4 to 1048576"},
        {"jacobi --tolerance nan", "--tolerance: nan is no number"},
        {"jacobi --exchange pigeon",
         "--exchange: pigeon not in {messages,halo,halo-one-sided,put,stream,one-sided,kernel,all}"},
        {"jacobi --exchange kernel",
         "--exchange kernel is none of --device host, which has messages, halo, halo-one-sided, put"},
        {"jacobi --device cuda --exchange halo",
         "--exchange halo is none of --device cuda, which has messages, stream, one-sided"},
        {"jacobi --ny 4", "leaves 2 rows for 3 ranks"},
        {"pixels --colour 3", "not expected: "},
        {"pixels --height 4", "leaves 2 rows for 3 ranks"},
        {"pixels --exchange pigeon", "--exchange: pigeon not in {messages,stream,all}"},
        {"pixels --exchange stream", "--exchange stream is of --device cuda alone"},
        {"particles --count -1", "--count: Value -1 not in range 1 to 1000000000"},
        {"particles --device tape", "--device: tape not in {host,cuda}"},
        {"himeno XS 0", "iterations: Value 0 not in range 1 to 10000000"},
        {"himeno --grid 2x1x1", "--grid is of 2 ranks, and 3 are running"},
        {"himeno --exchange pigeon", "--exchange: pigeon not in {messages,one-sided,stream,kernel,all}"},
        {"himeno 2x64x64 5", "size is 2x64x64, and has to have 3 cells or more each way"},
        {"himeno 8x8x9,8x8 5", "size is 8x8; sizes are XS"},
        {"himeno 9x9x5 5 --grid 1x1x3 --exchange stream", "--exchange stream is of --device cuda alone"},
        {"himeno 9x9x5 5 --device cuda --exchange one-sided", "--exchange one-sided is of --device host alone"},
        {"himeno XS 5 --json himeno.json",
         "--json himeno.json is of --device cuda alone; give --device cuda or leave it out"},
        {"himeno XS 5 --exchange kernel", "--exchange kernel is of --device cuda alone"},
        {"himeno XS 5 --overlap no", "--overlap no is of --device cuda alone"},
        {"himeno XS 5 --check no", "--check no is of --device cuda alone"},
        {"lbm --flow channel", "--flow: channel not in {tgv,cavity}"},
        {"lbm --exchange graph", "--exchange graph is of --device cuda alone"},
        {"lbm --grid", "--grid: 1 required"},
        {"lbm --grid 2x1x1", "--grid is of 2 ranks, and 3 are running"},
        {"lbm --grid -1x-3x1", "--grid is \"-1x-3x1\", and has to be AxBxC"},
        {"lbm --flow cavity --cells 16 --reynolds 1000", "take more cells, at least "}}) {
    const Ended ended = run(3, program);
    const std::string name = program.substr(0, program.find(' '));
    EXPECT_EQ(ended.status, 2) << program << ended.errors;
    EXPECT_EQ(count(ended.errors, name + ": "), 1U) << program << '\n' << ended.errors;
    EXPECT_EQ(count(ended.errors, "Usage: isthmus run -n RANKS " + name), 1U) << program << '\n' << ended.errors;
    EXPECT_NE(ended.errors.find(words), std::string::npos) << program << '\n' << ended.errors;
  }
  // Of 11 parts beside each other; six digits of 1 / 11, rounded, would be too much.
  const Ended quick = run(11, "particles --speed 0.5");
  EXPECT_EQ(count(quick.errors, "it has to be 0.090909 or less"), 1U) << quick.errors;
  for (const char* program : {"particles", "lbm", "himeno"}) {
    const Ended help = run(2, std::string(program) + " --help");
    EXPECT_EQ(help.status, 0);
    EXPECT_EQ(count(help.output, "Usage: "), 1U) << help.output;
  }
}

// What cannot be kept is not computed.
TEST_F(Simulations, each_tells_at_the_start_that_its_figures_cannot_be_written) {
  const fs::path kept = folder_ / "kept.json", made = folder_ / "made.json", nowhere = folder_ / "none" / "a.json";
  std::ofstream(kept) << "as before";
  for (const std::string program :
       {"jacobi --nx 9 --ny 9 --iterations 2", "lbm --cells 9 --steps 2", "himeno XS 2 --device cuda",
        "pixels --width 9 --height 9 --steps 2", "particles --count 9 --steps 2"})
    for (const fs::path& path : {nowhere, folder_}) {
      const Ended ended = run(3, program + " --json " + path.string());
      EXPECT_EQ(ended.status, 1) << program << ended.errors;
      EXPECT_EQ(ended.output, "") << program;
      EXPECT_EQ(count(ended.errors, "--json: \"" + path.string() + "\" cannot be written: "), 1U) << ended.errors;
      EXPECT_EQ(count(ended.errors, "\n"), 2U) << "that line and the launcher's: " << ended.errors;
    }
  // A run that ends ahead of its figures changes no file and leaves none.
  for (const std::string program : {"jacobi", "lbm", "himeno", "pixels", "particles"})
    for (const fs::path& path : {kept, made}) {
      const Ended ended = shell("env CUDA_VISIBLE_DEVICES= " BUILD_DIR "/bin/isthmus run -n 2 " BUILD_DIR "/bin/" + program +
                                " --device cuda --json " + path.string());
      EXPECT_EQ(ended.status, 2) << program << ended.errors;
      EXPECT_EQ(contents(kept), "as before") << program;
      EXPECT_FALSE(fs::exists(made)) << program;
    }
}

// Wherever devices are, these ranks see none.
TEST_F(Simulations, each_tells_once_that_no_rank_has_a_device) {
  for (const std::string program : {"jacobi", "lbm", "himeno", "pixels", "particles"}) {
    const Ended ended = shell("env CUDA_VISIBLE_DEVICES= " BUILD_DIR "/bin/isthmus run -n 3 " BUILD_DIR "/bin/" + program +
                              " --device cuda");
    EXPECT_EQ(ended.status, 2) << program << ended.errors;
    EXPECT_EQ(count(ended.errors, program + ": --device cuda cannot be used here: "), 1U) << program << ended.errors;
    EXPECT_EQ(count(ended.errors, "no CUDA device: rank 0 finds none: ") + count(ended.errors, "built without"), 1U)
        << ended.errors;
    EXPECT_EQ(count(ended.errors, "Usage: isthmus run -n RANKS " + program), 1U) << program << ended.errors;
  }
}

// Ranks that were given different arguments would wait for each other.
TEST_F(Simulations, arguments_that_differ_between_ranks_are_told_of) {
  for (const auto& [program, words] :
       {std::pair<std::string, std::string>{"pixels --steps 1$ISTHMUS_RANK", "ranks were given different arguments"},
        {"lbm --cells 9 --steps 1$ISTHMUS_RANK", "ranks were given different arguments"},
        {"lbm --cells 9 $(test $ISTHMUS_RANK = 0 || echo --colour 3)", "not expected: "}}) {
    const Ended unlike = run_unlike(program);
    EXPECT_EQ(unlike.status, 2) << unlike.errors << unlike.output;
    EXPECT_EQ(count(unlike.errors, words), 1U) << unlike.errors;
    EXPECT_EQ(count(unlike.errors, "Usage: "), 1U) << unlike.errors;
  }
}

}  // namespace
