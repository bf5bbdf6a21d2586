// The code of jacobi's kernels, by threads of the processor, each block of each PE a process: tiles, halos that are stored into the neighbours',
// flags, norms, and what tiles wait for. Every bit is compared with a serial loop.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <new>
#include <numbers>
#include <string>

#include "jacobi/problem.hpp"
#include "played_cuda.hpp"
// Behind the words.
#include "jacobi/persistent.cuh"
#include "jacobi/step.cuh"

namespace {

using namespace jacobi;

struct Case {
  const char* name;
  int pes, blocks, columns, rows, iterations, nccheck;
  double tolerance;
  Tiling tiling;
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

// What one PE has beside its cells.
struct Own {
  Scratch scratch;
  std::uint64_t progress[64];
  Outcome outcome;
  std::uint64_t mail[2];
  float sums[kRing];
  std::uint32_t arrived[2];
  std::uint64_t flags[2];
  std::uint64_t inbox[kRing * 8];
};

class JacobiKernels : public testing::TestWithParam<Case> {
 protected:
  JacobiKernels() : pitch_(pitch_of(of_.columns)) {
    problem_.nx = of_.columns;
    problem_.ny = of_.rows;
    problem_.iterations = of_.iterations;
    problem_.nccheck = of_.nccheck;
    problem_.tolerance = of_.tolerance;
    level_ = static_cast<std::size_t>(((of_.rows - 2) / of_.pes + 3) * pitch_) * sizeof(float);
    stride_ = 2 * level_ + (sizeof(Own) + 4095) / 4096 * 4096;
    bytes_ = stride_ * static_cast<std::size_t>(of_.pes);
    base_ = static_cast<unsigned char*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~JacobiKernels() override { munmap(base_, bytes_); }

  int first(int pe) const { return (of_.rows - 2) * pe / of_.pes; }
  int rows(int pe) const { return first(pe + 1) - first(pe); }
  int above(int pe) const { return (pe + of_.pes - 1) % of_.pes; }
  unsigned char* part(int pe) const { return base_ + static_cast<std::size_t>(pe) * stride_; }
  float* level(int pe, int of) const { return reinterpret_cast<float*>(part(pe) + static_cast<std::size_t>(of) * level_); }
  Own& own(int pe) const { return *reinterpret_cast<Own*>(part(pe) + 2 * level_); }
  float* beside_up(int pe, int of) const { return level(above(pe), of) + (rows(above(pe)) + 1) * pitch_; }
  float* beside_down(int pe, int of) const { return level((pe + 1) % of_.pes, of); }
  Others others(int pe, std::uint64_t* failure) const {
    const ist_team_view view{pe, of_.pes, base_, stride_, stride_, 0, 0, nullptr};
    return {view, above(pe), (pe + 1) % of_.pes, own(pe).flags, own(pe).arrived, own(pe).inbox, failure};
  }

  void begin() {
    for (int pe = 0; pe < of_.pes; ++pe) {
      for (int of = 0; of < 2; ++of)
        for (int y = 0; y < rows(pe) + 2; ++y)
          for (int x = 0; x < of_.columns; ++x)
            level(pe, of)[y * pitch_ + x] = static_cast<float>(problem_.start(x, first(pe) + y));
      own(pe).scratch = {};
      std::memset(own(pe).progress, 0, sizeof own(pe).progress);
      own(pe).outcome = {};
      std::memset(own(pe).sums, 0, sizeof own(pe).sums);
    }
  }
  // Each in a process of its own; all have ended when this returns.
  template <class Play>
  void play(int blocks, const Play& act) {
    for (int pe = 0; pe < of_.pes; ++pe)
      for (int block = 0; block < blocks; ++block)
        if (fork() == 0) {
          act(pe, block);
          _exit(0);
        }
    for (int n = 0, status = 0; n < of_.pes * blocks; ++n) {
      ASSERT_GT(wait(&status), 0);
      EXPECT_EQ(status, 0);
    }
  }
  void compare() const;

  const Case of_ = GetParam();
  std::int64_t pitch_;
  Problem problem_;
  std::size_t level_, stride_, bytes_;
  unsigned char* base_;
  std::uint64_t steps_ = 0, norms_ = 0;
};

void JacobiKernels::compare() const {
  const auto columns = static_cast<std::size_t>(of_.columns), all = columns * static_cast<std::size_t>(of_.rows);
  std::vector<float> fields[2];
  for (std::vector<float>& field : fields)
    for (std::size_t i = 0; i < all; ++i)
      field.push_back(static_cast<float>(problem_.start(static_cast<int>(i % columns), static_cast<int>(i / columns))));
  int n = 0;
  double norm = 0;
  for (bool ends = false; !ends && n < of_.iterations;) {
    ++n;
    float *const from = fields[1 - n % 2].data(), *const to = fields[n % 2].data();
    std::memcpy(from, from + all - 2 * columns, columns * sizeof(float));
    std::memcpy(from + all - columns, from + columns, columns * sizeof(float));
    double sum = 0;
    for (std::size_t i = columns; i < all - columns; ++i) {
      if (i % columns == 0 || i % columns == columns - 1) continue;
      to[i] = 0.25F * (from[i - 1] + from[i + 1] + from[i - columns] + from[i + columns]);
      sum += std::pow(static_cast<double>(to[i] - from[i]), 2);
    }
    if (n % of_.nccheck != 0) continue;
    norm = std::sqrt(sum);
    ends = norm <= of_.tolerance;
  }
  for (int pe = 0; pe < of_.pes; ++pe) {
    const Outcome& outcome = own(pe).outcome;
    EXPECT_EQ(outcome.failure, 0U);
    EXPECT_EQ(own(pe).mail[1], 0U);
    EXPECT_EQ(outcome.iterations, n);
    EXPECT_NEAR(static_cast<double>(outcome.norm), norm, 1e-4 * norm);
    if (of_.nccheck == 1) {
      EXPECT_NEAR(static_cast<double>(outcome.first_norm), problem_.first_norm(), 1e-4 * problem_.first_norm());
    }
    for (int y = 1; y <= rows(pe); ++y)
      EXPECT_EQ(std::memcmp(level(pe, n % 2) + y * pitch_, &fields[n % 2][static_cast<std::size_t>(first(pe) + y) * columns],
                            columns * sizeof(float)),
                0)
          << "row " << y << " of PE " << pe;
  }
}

// Twice, since steps and norms are counted over runs.
TEST_P(JacobiKernels, one_for_all_iterations_has_the_serial_bits) {
  for (int run = 0; run < 2; ++run) {
    begin();
    play(of_.blocks, [&](int pe, int block) {
      const Job job{{{level(pe, 0), level(pe, 1)}, pitch_, of_.columns, rows(pe)},
                    {beside_up(pe, 0), beside_up(pe, 1)},
                    {beside_down(pe, 0), beside_down(pe, 1)},
                    of_.tiling.height,
                    of_.tiling.fine_rows,
                    0.25F,
                    of_.iterations,
                    of_.nccheck,
                    of_.tolerance,
                    steps_,
                    norms_,
                    others(pe, &own(pe).outcome.failure),
                    &own(pe).scratch,
                    own(pe).progress,
                    &own(pe).outcome};
      played::play_block(static_cast<unsigned>(block), static_cast<unsigned>(of_.blocks), [&] {
        if (of_.tiling.batch > 4)
          persistent_kernel<8>(job);
        else
          persistent_kernel<4>(job);
      });
    });
    compare();
    steps_ += static_cast<std::uint64_t>(own(0).outcome.run);
    norms_ += static_cast<std::uint64_t>(own(0).outcome.run / of_.nccheck);
  }
}

// The processor's part, of one PE: launches until a norm ends it.
class Launches {
 public:
  template <class Launch>
  static void run(const Case& of, Own& own, const Launch& launch) {
    const auto checks = [&](int n) { return n > 0 && n % of.nccheck == 0; };
    Outcome& outcome = own.outcome;
    const auto hear = [&](int n) {
      outcome.norm = std::sqrt(__uint_as_float(static_cast<std::uint32_t>(own.mail[0])));
      if (n == 1) outcome.first_norm = outcome.norm;
      return static_cast<double>(outcome.norm) <= of.tolerance;
    };
    for (int n = 1;; ++n) {
      launch(n, checks(n), checks(n - 1));
      outcome.run = outcome.iterations = n;
      if (checks(n - 1) && hear(n - 1)) {
        --outcome.iterations;
        return;
      }
      if (n < of.iterations) continue;
      if (!checks(n)) return;
      launch(0, false, true);
      hear(n);
      return;
    }
  }
};

TEST_P(JacobiKernels, one_for_each_iteration_has_the_serial_bits) {
  for (int run = 0; run < 2; ++run) {
    begin();
    play(1, [&](int pe, int /*block*/) {
      Own& mine = own(pe);
      const Plan plan = plan_of(of_.columns, rows(pe), of_.tiling.height, of_.tiling.fine_rows);
      const Others all = others(pe, &mine.mail[1]);
      std::uint64_t step = steps_, number = norms_;
      int before = 0;
      Launches::run(of_, mine, [&](int n, bool checks, bool checked) {
        Norm norm{};
        if (checked) norm = {step, ++number, &mine.sums[before % kRing], &mine.mail[0]};
        if (n == 0)
          return played::play_block(0, 1, [&] {
            if (threadIdx.x == 0) norm_kernel(all, norm);
          });
        before = n;
        ++step;
        const Sweep sweep{level(pe, 1 - n % 2),
                          level(pe, n % 2),
                          beside_up(pe, n % 2),
                          beside_down(pe, n % 2),
                          pitch_,
                          of_.columns,
                          rows(pe),
                          of_.tiling.height,
                          of_.tiling.fine_rows,
                          0.25F,
                          checks ? &mine.sums[n % kRing] : nullptr,
                          &mine.sums[(n + 1) % kRing]};
        const auto blocks = static_cast<unsigned>(plan.items + (checked ? 1 : 0));
        for (unsigned block = 0; block < blocks; ++block)
          played::play_block(block, blocks, [&] {
            if (of_.tiling.batch > 4)
              step_kernel<8>(sweep, plan, all, step, checked, norm);
            else
              step_kernel<4>(sweep, plan, all, step, checked, norm);
          });
      });
    });
    compare();
    steps_ += static_cast<std::uint64_t>(own(0).outcome.run);
    norms_ += 1000;
  }
}

INSTANTIATE_TEST_SUITE_P(Played, JacobiKernels,
                         testing::Values(Case{"alone", 1, 2, 150, 14, 6, 1, 0, {4, 5, 0}},
                                         Case{"smallest", 1, 1, 4, 4, 5, 1, 0, {8, 16, 16}},
                                         Case{"of_several_blocks", 2, 2, 600, 40, 5, 1, 0, {8, 16, 8}},
                                         Case{"of_one_row_each", 3, 2, 301, 5, 8, 1, 0, {8, 16, 16}},
                                         Case{"of_few_norms", 3, 2, 129, 20, 10, 3, 0, {4, 4, 0}},
                                         Case{"to_a_norm", 2, 2, 128, 12, 40, 1, 0.12, {4, 3, 8}},
                                         Case{"to_a_norm_at_the_last", 1, 2, 128, 12, 7, 1, 0.12, {4, 3, 8}},
                                         Case{"to_a_norm_before_the_last", 1, 3, 128, 12, 8, 1, 0.12, {4, 3, 8}},
                                         Case{"to_a_norm_of_few", 2, 3, 130, 40, 40, 4, 0.2, {8, 16, 8}}),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
