// Simulations among the example programs: each says whether its result is right.
#include "programs.hpp"

namespace {

using namespace programs;

class Simulations : public Programs {};

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
  setenv("OMP_NUM_THREADS", "1", 1);
  for (const char* name : {"heat_openmp", "heat_openacc"}) {
    if (!fs::exists(std::string{BUILD_DIR "/bin/"} + name)) GTEST_SKIP() << "SKIPPED: this compiler knows no " << name;
    for (const int ranks : {1, 2, 3, 4}) {
      const Ended ended = run(ranks, std::string{name} + " 40 30 21");
      EXPECT_EQ(ended.status, 0) << ended.errors;
      const std::string end = " 22 steps, " + std::to_string(ranks) + " ranks, off by at most ";
      EXPECT_EQ(count(ended.output, "verified: 40 x 30 cells on ") + count(ended.output, end), 2U) << ended.output;
    }
    const Ended thin = run(4, std::string{name} + " 3");
    EXPECT_EQ(thin.status, 1);
    EXPECT_EQ(count(thin.errors, "3 rows are too few for 4 ranks"), 1U) << thin.errors;
    const Ended wrong = run(1, std::string{name} + " 40 x");
    EXPECT_EQ(wrong.status, 2);
    EXPECT_NE(wrong.errors.find("'x' is no number from 1 to 1000000"), std::string::npos) << wrong.errors;
  }
  unsetenv("OMP_NUM_THREADS");
}

// With b other than the benchmark's 0 edges count, too.
TEST_F(Simulations, himeno_is_the_same_to_the_last_bit_however_it_is_cut) {
  for (const int ranks : {1, 2, 3, 4})
    for (const char* rest : {" XS 64", " XS 5 0.01"}) {
      const Ended ended = run(ranks, std::string{"himeno"} + rest);
      EXPECT_EQ(ended.status, 0) << ended.errors;
      EXPECT_EQ(count(ended.output, "verified: size XS, "), 1U) << rest << ", " << ranks << " ranks: " << ended.output;
    }
  const Ended unknown = run(1, "himeno XXL");
  EXPECT_NE(unknown.status, 0);
  EXPECT_NE(unknown.errors.find("sizes are XS, S, M, L and XL"), std::string::npos) << unknown.errors;
}

// Sizes that ranks do not divide, and parts with one layer of cells.
TEST_F(Simulations, lattice_boltzmann_is_the_same_to_the_last_bit_however_it_is_cut) {
  for (const int ranks : {1, 2, 3, 4})
    for (const std::string exchange : {"messages", "one-sided"})
      for (const std::string what : {"tgv 13 10", "cavity 13 100 --steps 40"}) {
        const Ended ended = run(ranks, "lbm " + what + " --exchange " + exchange);
        const std::string given = what + ", " + std::to_string(ranks) + " ranks: " + ended.output + ended.errors;
        EXPECT_EQ(ended.status, 0) << given;
        EXPECT_EQ(count(ended.output, "verified: " + what.substr(0, what.find(' '))), 1U) << given;
        EXPECT_EQ(count(ended.output, "ranks, " + exchange + "\n"), 1U) << given;
        EXPECT_EQ(count(ended.output, "the same to the last bit as of one rank alone"), 1U) << given;
      }
  for (const char* rest : {"tgv 9 7 --grid 4x1x1", "tgv 9 7 --grid 1x4x1", "tgv 9 7 --grid 1x1x4", "tgv 9 7 --grid 2x1x2",
                           "cavity 9 --steps 20 --grid 4x1x1", "cavity 9 --steps 20 --grid 1x1x4"}) {
    const Ended ended = run(4, std::string("lbm ") + rest);
    EXPECT_EQ(ended.status, 0) << rest << ended.output << ended.errors;
    EXPECT_EQ(count(ended.output, "the same to the last bit as of one rank alone"), 1U) << rest << ended.output;
  }
}

TEST_F(Simulations, lattice_boltzmann_sends_what_crosses_faces_and_edges_alone) {
  // Of 16 x 16 x 16 cells 8 x 8 x 16 are a rank's, with a layer along the dimension that is not cut. Rank 1 lies at two faces, and rank 3 at four
  // edges; 5 populations of 4 bytes cross a face, and 1 an edge.
  const int face = 5 * 8 * 18 * 4, edge = 18 * 4;
  for (const char* exchange : {"messages", "one-sided"}) {
    const Ended ended = run(4, std::string("lbm tgv 16 3 --grid 2x2x1 --exchange ") + exchange);
    EXPECT_EQ(ended.status, 0) << ended.errors;
    for (const auto& [rank, bytes] : {std::pair{1, 2 * face}, {2, 2 * face}, {3, 4 * edge}}) {
      const std::string both = std::to_string(bytes) + " bytes out, " + std::to_string(bytes) + " bytes in";
      EXPECT_EQ(count(ended.output, "rank " + std::to_string(rank) + ": " + both), 1U) << both << '\n' << ended.output;
    }
    EXPECT_EQ(count(ended.output, std::to_string(4 * (4 * face + 4 * edge)) + " bytes between ranks in a step"), 1U)
        << ended.output;
  }
}

TEST_F(Simulations, lattice_boltzmann_is_what_the_law_and_the_tables_say) {
  const Ended vortices = run(2, "lbm tgv 32 60 --exchange one-sided");
  EXPECT_EQ(vortices.status, 0) << vortices.output << vortices.errors;
  EXPECT_EQ(count(vortices.output, "energy left 0."), 1U) << vortices.output;
  const Ended cavity = run(2, "lbm cavity 24 100 --exchange one-sided");
  EXPECT_EQ(cavity.status, 0) << cavity.output << cavity.errors;
  EXPECT_EQ(count(cavity.output, "steady, profiles off Ghia's by at most 0."), 1U) << cavity.output;
}

TEST_F(Simulations, lattice_boltzmann_tells_of_mistakes_once_with_its_usage) {
  for (const auto& [options, words] :
       {std::pair<std::string, std::string>{"channel", "the case is 'channel'; it must be tgv or cavity"},
        {"--exchange pigeon", "--exchange is 'pigeon'; it must be messages or one-sided"},
        {"--colour blue", "there is no option --colour"},
        {"--grid", "--grid wants a value behind it"},
        {"--grid 3x1x1", "--grid is '3x1x1'; it must be of 2 ranks"},
        {"--grid 2", "--grid is '2'; it must be AxBxC"},
        {"tgv 7", "L is '7'; it must be a number from 8 to 1024"},
        {"tgv 16x", "L is '16x'"},
        {"tgv 16 0", "STEPS is '0'"},
        {"tgv 16 1 2", "there is no use for '2'"},
        {"cavity 16 nan", "RE is 'nan'"},
        {"cavity 16 1000", "take more cells, at least "}}) {
    const Ended ended = run(2, "lbm " + options);
    EXPECT_NE(ended.status, 0) << options;
    EXPECT_EQ(count(ended.errors, words), 1U) << options << '\n' << ended.errors;
    EXPECT_EQ(count(ended.errors, "usage: isthmus run -n RANKS lbm"), 1U) << options << '\n' << ended.errors;
    EXPECT_EQ(count(ended.output, "verified"), 0U);
  }
}

// Every way to exchange rows; with 7 x 6 cells on 4 ranks each rank has one row, and with one rank it is its own neighbour.
TEST_F(Simulations, jacobi_has_the_bits_of_one_rank_by_every_exchange) {
  for (const int ranks : {1, 2, 3, 4})
    for (const char* options : {"--nx 67 --ny 41 --iterations 31", "--nx 7 --ny 6 --iterations 8 --nccheck 3"}) {
      const Ended ended = run(ranks, std::string("jacobi ") + options);
      EXPECT_EQ(ended.status, 0) << ended.errors << ended.output;
      EXPECT_EQ(ended.last_line(), "verified: the same bits as one rank") << options << ", " << ranks << " ranks";
      for (const char* exchange : {"messages ", "halo ", "halo-one-sided ", "put "})
        EXPECT_EQ(count(ended.output, std::string("\n") + exchange), 1U) << exchange << ended.output;
    }
}

TEST_F(Simulations, jacobi_ends_at_the_tolerance) {
  const Ended ended = run(2, "jacobi --nx 9 --ny 9 --iterations 100000 --nccheck 10 --tolerance 1e-3 --exchange put");
  EXPECT_EQ(ended.status, 0) << ended.errors;
  std::istringstream line(ended.output.substr(std::min(ended.output.find("\nput "), ended.output.size())));
  std::string word;
  long iterations = 0;
  for (int n = 0; n < 6; ++n) line >> word;  // put, Gpix/s, speedup, efficiency, share
  for (; line >> word && iterations == 0;)
    if (word != "%") iterations = std::strtol(word.c_str(), nullptr, 10);
  EXPECT_GT(iterations, 10) << ended.output;
  EXPECT_LT(iterations, 1000) << ended.output;
  EXPECT_EQ(iterations % 10, 0) << ended.output;
  // Between the norms of one rank and of two, which are the same sum in another order: one rank ends an iteration later.
  const Ended between = run(2, "jacobi --nx 67 --ny 41 --iterations 40 --tolerance 0.088232265 --exchange put");
  EXPECT_EQ(between.last_line(), "verified: the same bits as one rank") << between.output;
}

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
      for (const char* store : {"\nstructs ", "\narrays "}) EXPECT_EQ(count(ended.output, store), 1U) << ended.output;
    }
}

TEST_F(Simulations, what_is_wrong_is_found_by_jacobi_pixels_and_particles) {
  for (const auto& [program, words] :
       {std::pair<std::string, std::string>{"jacobi --nx 33 --ny 33 --iterations 5 --spoil yes", "wrong: other bits"},
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

TEST_F(Simulations, jacobi_pixels_and_particles_tell_of_a_mistake_once_with_the_usage) {
  for (const auto& [program, words] :
       {std::pair<std::string, std::string>{"jacobi --nx", "--nx needs a value"},
        {"jacobi --nx 12x", "--nx is \"12x\", and has to be a number from 3 to 1048576"},
        {"jacobi --iterations 0", "--iterations is \"0\""},
        {"jacobi --tolerance nan", "--tolerance is \"nan\""},
        {"jacobi --exchange pigeon", "has to be one of messages, halo, halo-one-sided, put, all"},
        {"jacobi --ny 4", "leaves 2 rows for 3 ranks"},
        {"pixels --colour 3", "there is no option \"--colour\""},
        {"pixels --height 4", "leaves 2 rows for 3 ranks"},
        {"particles --count -1", "--count is \"-1\""},
        {"particles --speed 0.5", "it has to be 0.333333 or less"}}) {
    const Ended ended = run(3, program);
    const std::string name = program.substr(0, program.find(' '));
    EXPECT_EQ(ended.status, 2) << program << ended.errors;
    EXPECT_EQ(count(ended.errors, name + ": "), 1U) << program << '\n' << ended.errors;
    EXPECT_EQ(count(ended.errors, "usage: isthmus run -n RANKS " + name), 1U) << program << '\n' << ended.errors;
    EXPECT_NE(ended.errors.find(words), std::string::npos) << program << '\n' << ended.errors;
  }
  const Ended help = run(2, "particles --help");
  EXPECT_EQ(help.status, 0);
  EXPECT_EQ(count(help.output, "usage: "), 1U) << help.output;
  // Ranks that were given different arguments would wait for each other.
  const Ended unlike = shell(BUILD_DIR "/bin/isthmus run -n 2 sh -c '" BUILD_DIR "/bin/pixels --steps 1$ISTHMUS_RANK'");
  EXPECT_EQ(unlike.status, 2) << unlike.errors << unlike.output;
  EXPECT_EQ(count(unlike.errors, "ranks were given different arguments"), 1U) << unlike.errors;
}

}  // namespace
