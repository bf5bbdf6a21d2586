// The code of particles' kernels, by threads of the processor, block after block: what moves, what leaves and in which order, and how holes are
// filled. Every word is compared with a plain loop.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "played_cuda.hpp"
// Behind the words.
#include "particles/kernels.cuh"

namespace {

using namespace particles;

struct Case {
  std::int64_t count;
  bool structs;
  double speed;
};
void PrintTo(const Case& one, std::ostream* out) {
  *out << one.count << (one.structs ? " structs" : " of arrays") << ", speed " << one.speed;
}

template <class Kernel>
void play(std::int64_t blocks, const Kernel& kernel) {
  for (std::int64_t block = 0; block < blocks; ++block)
    played::play_block(static_cast<unsigned>(block), static_cast<unsigned>(blocks), kernel);
}

class ParticlesKernels : public testing::TestWithParam<Case> {
 protected:
  static constexpr int kParts[3] = {3, 1, 2};
  static constexpr int kOwn = 3;
  static constexpr double kOther = -7;  // behind the last particle of each array

  ParticlesKernels() : words_(static_cast<std::size_t>((of_.count + 3) * words), kOther) {
    std::mt19937_64 random(static_cast<std::uint64_t>(of_.count));
    std::uniform_real_distribution<double> anywhere(0, 1);
    for (std::int64_t i = 0; i < of_.count; ++i) {
      // In the rank's part, (1, 0, 1), at first.
      word(words_, i, 0) = (1 + anywhere(random)) / 3;
      word(words_, i, 1) = anywhere(random);
      word(words_, i, 2) = (1 + anywhere(random)) / 2;
      for (int d = 0; d < 3; ++d) word(words_, i, velocity + d) = of_.speed * (2 * anywhere(random) - 1);
      word(words_, i, id) = static_cast<double>(i);
    }
  }
  std::int64_t particle() const { return of_.structs ? words : 1; }
  std::int64_t between() const { return of_.structs ? 1 : of_.count + 3; }
  double& word(std::vector<double>& all, std::int64_t i, int which) const {
    return all[static_cast<std::size_t>(i * particle() + which * between())];
  }
  Span span() { return {words_.data(), of_.count, particle(), between()}; }

  const Case of_ = GetParam();
  std::vector<double> words_;
};

TEST_P(ParticlesKernels, move_and_list_as_a_loop_does) {
  std::vector<double> known = words_;
  std::vector<Leaver> leave;
  for (std::int64_t i = 0; i < of_.count; ++i) {
    int cell[3];
    for (int d = 0; d < 3; ++d) {
      double& at = word(known, i, d);
      at = at + word(known, i, velocity + d);
      if (at < 0) at = at + 1;
      if (at >= 1) at = at - 1;
      cell[d] = static_cast<int>(at * kParts[d]);
    }
    const int part = (cell[0] * 1 + cell[1]) * 2 + cell[2];
    if (part != kOwn) leave.push_back({static_cast<std::int32_t>(i), part});
  }
  const std::int64_t blocks = blocks_of(of_.count);
  std::vector<std::int32_t> part(static_cast<std::size_t>(of_.count)), before(static_cast<std::size_t>(blocks));
  std::int64_t found = -1;
  const Leaver untouched{-5, -5};
  std::vector<Leaver> list(leave.size() + 2, untouched);
  const auto listed = [&](std::int64_t limit) {
    const Search search{part.data(), before.data(), &found, list.data(), limit};
    play(blocks, [&] { list_kernel(of_.count, search); });
  };
  const Search search{part.data(), before.data(), &found, list.data(), 0};
  const Cut cut{{kParts[0], kParts[1], kParts[2]}, kOwn};
  play(blocks, [&] {
    if (of_.structs)
      move_kernel<words, 1>(span(), cut, search);
    else
      move_kernel<1, 0>(span(), cut, search);
  });
  play(1, [&] { add_up_kernel(blocks, search); });
  EXPECT_EQ(words_, known);
  ASSERT_EQ(found, static_cast<std::int64_t>(leave.size()));
  EXPECT_GE(found + 10, of_.speed > 0 ? of_.count / 10 : 0) << "hardly any leaves";
  const std::int64_t half = found / 2;
  for (const std::int64_t limit : {half, found}) {
    listed(limit);
    for (std::size_t n = 0; n < list.size(); ++n) {
      const Leaver& wanted = n < static_cast<std::size_t>(limit) ? leave[n] : untouched;
      ASSERT_EQ(list[n].which, wanted.which) << n << " of " << found << ", limit " << limit;
      ASSERT_EQ(list[n].part, wanted.part) << n;
    }
  }
}

TEST_P(ParticlesKernels, fill_holes_with_whole_particles) {
  std::vector<double> known = words_;
  std::vector<Fill> fills;
  for (std::int64_t n = 0; 3 * n < of_.count / 2; ++n) fills.push_back({3 * n, of_.count - 1 - n});
  for (const Fill& fill : fills)
    for (int w = 0; w < words; ++w) word(known, fill.to, w) = word(known, fill.from, w);
  const auto count = static_cast<std::int64_t>(fills.size());
  play(blocks_of(count * words), [&] { fill_kernel(span(), fills.data(), count); });
  EXPECT_EQ(words_, known);
}

// A block's threads, one fewer and one more; more blocks than one round adds up.
INSTANTIATE_TEST_SUITE_P(of, ParticlesKernels,
                         testing::Values(Case{1, true, 0.9}, Case{63, false, 0.5}, Case{64, true, 0.5}, Case{65, false, 0.5},
                                         Case{130, true, 0}, Case{1000, true, 0.3}, Case{4097, false, 0.2},
                                         Case{4160, true, 0.2}));

}  // namespace
