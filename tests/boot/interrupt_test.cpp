// A program ends its own wait for the other ranks: they hear of it at once, and all may create the world again.
#include <gtest/gtest.h>
#include <poll.h>

#include <cmath>
#include <thread>

#include "boot/boot.hpp"
#include "boot/interrupt.hpp"
#include "boot/peers.hpp"
#include "pmi_server.hpp"
#include "ranks.hpp"

namespace ist::test {
namespace {

// The promise is one second of a machine that has the time; one that tests fill is given more. Nobody would end these waits for 40.
constexpr double kSoon = 4.0;
constexpr double kForEver = HUGE_VAL;

void pause(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

int is_over(void* moment) { return now() > *static_cast<double*>(moment) ? 1 : 0; }

// One world of this rank, whose program waits so long for the others; what it ended with, and it ended in time.
Status make_world(double patience, int round) {
  double until = now() + patience;
  interrupt::set(is_over, &until);
  const interrupt::Scope scope;
  Settings settings;
  settings.boot_timeout = 40;
  auto boot = join_job(settings);
  Status status = boot.status();
  if (boot.ok()) {
    const int rank = (*boot)->rank().value;
    const auto all = (*boot)->all_gather(blob_of(rank, round, 1000));
    status = all.status();
    for (std::size_t from = 0; all.ok() && from < all->size(); ++from)
      EXPECT_TRUE((*all)[from] == blob_of(static_cast<int>(from), round, 1000)) << "of rank " << from << " to " << rank;
  }
  EXPECT_LT(now(), until + kSoon);
  interrupt::set(nullptr, nullptr);
  return scope.happened() ? Status{IST_CANCELLED, status.text()} : status;
}

using Run = std::vector<int> (*)(int, const std::function<void(int)>&);
struct Way {
  const char* name;
  Run run;
  int gives_up;
  bool comes_back = true;  // also after an exchange was ended in its midst
};

class GivesUp : public testing::TestWithParam<Way> {};
class GivesUpAnywhere : public GivesUp {};
class GivesUpUnderPmi : public GivesUp {};
class GivesUpInTheMidst : public GivesUp {};

TEST_P(GivesUp, ranks_that_wait_are_told_at_once_who_it_was_and_all_create_the_world_again) {
  const int gives_up = GetParam().gives_up;
  const auto ends = GetParam().run(3, [&](int rank) {
    const double start = now();
    if (rank == 2) pause(1.5);
    const Status first = make_world(rank == gives_up ? 0.5 : kForEver, 1);
    if (rank != gives_up) {
      EXPECT_EQ(first.code(), IST_ERR_BOOT);
      EXPECT_NE(first.text().find("rank " + std::to_string(gives_up) + " gave up creating its world number 1"),
                std::string::npos)
          << first.text();
      EXPECT_NE(first.text().find("Ctrl-C"), std::string::npos) << first.text();
      EXPECT_LT(now() - start, (rank == 2 ? 1.5 : 0.5) + kSoon);
    } else {
      EXPECT_EQ(first.code(), IST_CANCELLED) << first.text();
    }
    for (int round = 2; round < 5; ++round) {
      const Status next = make_world(kForEver, round);
      EXPECT_TRUE(next.ok()) << "rank " << rank << ", world " << round << ": " << next.text();
    }
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST_P(GivesUpAnywhere, before_another_rank_came_it_is_as_if_it_had_not_been_there) {
  const int gives_up = GetParam().gives_up;
  const auto ends = GetParam().run(2, [&](int rank) {
    if (rank == gives_up) {
      for (int time = 0; time < 3; ++time) EXPECT_EQ(make_world(0.2, 9).code(), IST_CANCELLED);
    } else {
      pause(1.5);
    }
    for (int round = 1; round < 4; ++round) {
      const Status made = make_world(kForEver, round);
      EXPECT_TRUE(made.ok()) << "rank " << rank << ", world " << round << ": " << made.text();
    }
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST_P(GivesUpAnywhere, for_another_reason_too_it_is_named_in_the_next_exchange) {
  const int gives_up = GetParam().gives_up;
  const auto ends = GetParam().run(3, [&](int rank) {
    auto boot = join_job(Settings{});
    ASSERT_TRUE(boot.ok()) << boot.status().text();
    exchange_and_compare(**boot, 1, 100);
    if (rank == gives_up) {
      (*boot)->withdraw("its disk is full");
      (*boot)->withdraw("and again");  // nobody hears of the consequences of a failure
    } else {
      if (rank == 2) pause(0.3);
      const double start = now();
      const auto all = (*boot)->all_gather("x");
      EXPECT_EQ(all.status().code(), IST_ERR_BOOT);
      EXPECT_NE(all.status().text().find("rank " + std::to_string(gives_up) + " gave up"), std::string::npos)
          << all.status().text();
      EXPECT_NE(all.status().text().find("its disk is full"), std::string::npos) << all.status().text();
      EXPECT_LT(now() - start, kSoon);
      (*boot)->withdraw("a consequence");
    }
    boot = join_job(Settings{});
    ASSERT_TRUE(boot.ok()) << boot.status().text();
    exchange_and_compare(**boot, 2, 100);
    exchange_and_compare(**boot, 3, 100);
  });
  EXPECT_EQ(failures(ends), 0);
}

// Nobody is told before all are there; who gave up may come again until then, and it is as if it had never left.
TEST_P(GivesUpUnderPmi, and_stays_away_the_others_are_told_as_soon_as_all_are_there) {
  const int gives_up = GetParam().gives_up;
  const auto ends = GetParam().run(3, [&](int rank) {
    const double start = now();
    if (rank == 2) pause(0.8);
    const Status first = make_world(rank == gives_up ? 0.2 : kForEver, 1);
    if (rank != gives_up) {
      EXPECT_NE(first.text().find("rank " + std::to_string(gives_up) + " gave up creating its world number 1"),
                std::string::npos)
          << first.text();
      EXPECT_LT(now() - start, 0.8 + kSoon);
    } else {
      EXPECT_EQ(first.code(), IST_CANCELLED) << first.text();
      pause(1.3);
    }
    for (int round = 2; round < 5; ++round) {
      const Status next = make_world(kForEver, round);
      EXPECT_TRUE(next.ok()) << "rank " << rank << ", world " << round << ": " << next.text();
    }
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST_P(GivesUpUnderPmi, and_comes_again_nobody_else_notices) {
  const int gives_up = GetParam().gives_up;
  const auto ends = GetParam().run(3, [&](int rank) {
    if (rank == gives_up) {
      for (int time = 0; time < 3; ++time) EXPECT_EQ(make_world(0.2, 9).code(), IST_CANCELLED);
    } else if (rank == 2) {
      pause(1.2);
    }
    for (int round = 1; round < 4; ++round) {
      const Status made = make_world(kForEver, round);
      EXPECT_TRUE(made.ok()) << "rank " << rank << ", world " << round << ": " << made.text();
    }
  });
  EXPECT_EQ(failures(ends), 0);
}

// Has an exchange of its own come late, as that of a rank that was stopped meanwhile.
class Stopped final : public Boot {
 public:
  Stopped(std::unique_ptr<Boot> boot, int behind, double seconds)
      : boot_(std::move(boot)), behind_(behind), seconds_(seconds) {}
  std::string_view name() const override { return boot_->name(); }
  Rank rank() const override { return boot_->rank(); }
  int size() const override { return boot_->size(); }
  Result<std::vector<std::string>> all_gather(const std::string& mine) override {
    auto all = boot_->all_gather(mine);
    if (--behind_ == 0) pause(seconds_);
    return all;
  }
  void withdraw(const std::string& reason) override { boot_->withdraw(reason); }

 private:
  std::unique_ptr<Boot> boot_;
  int behind_;
  double seconds_;
};

// Ranks 0 and 1 wait for rank 2 to connect, and rank 1's program does not want to any more.
TEST_P(GivesUpInTheMidst, while_the_ranks_connect_to_each_other) {
  const int gives_up = GetParam().gives_up;
  const auto ends = GetParam().run(3, [&](int rank) {
    double until = rank == gives_up ? now() + 0.3 : kForEver;
    {
      interrupt::set(is_over, &until);
      const interrupt::Scope scope;
      auto joined = join_job(Settings{});
      ASSERT_TRUE(joined.ok()) << joined.status().text();
      Stopped boot{std::move(*joined), rank == 2 ? 1 : 0, 1.5};
      const Status connected = Peers::connect(boot, Settings{}).status();
      EXPECT_FALSE(connected.ok());
      if (!connected.ok()) boot.withdraw(scope.happened() ? interrupt::kReason : connected.text());
      EXPECT_EQ(scope.happened(), rank == gives_up);
      EXPECT_LT(now(), until + kSoon);
      if (rank != gives_up) {
        EXPECT_NE(connected.text().find("rank " + std::to_string(gives_up) + " gave up"), std::string::npos)
            << connected.text();
      }
    }
    interrupt::set(nullptr, nullptr);
    if (GetParam().comes_back) {
      const Status next = make_world(kForEver, 7);
      EXPECT_TRUE(next.ok()) << "rank " << rank << ": " << next.text();
    }
  });
  EXPECT_EQ(failures(ends), 0);
}

template <PmiManner manner>
std::vector<int> run_pmi(int size, const std::function<void(int)>& body) {
  const PmiRun run = run_with_pmi(size, manner, body);
  EXPECT_EQ(run.refused, 0);
  EXPECT_EQ(run.finalized, size);
  return run.ends;
}

// Where the ranks are out of step in the end, and take no leave.
std::vector<int> run_broken_pmi(int size, const std::function<void(int)>& body) {
  return run_with_pmi(size, PmiManner::slurm, body).ends;
}

std::string name_of_way(const testing::TestParamInfo<Way>& one) { return one.param.name; }
const auto kOwn = testing::Values(
    Way{"rank_0_of_the_launcher", run_launched, 0}, Way{"rank_1_of_the_launcher", run_launched, 1},
    Way{"rank_0_of_the_variables", run_with_environment, 0}, Way{"rank_1_of_the_variables", run_with_environment, 1});
const auto kPmi = testing::Values(Way{"rank_0_of_pmi_2", run_pmi<PmiManner::slurm>, 0},
                                  Way{"rank_1_of_pmi_2", run_pmi<PmiManner::slurm>, 1},
                                  Way{"rank_1_of_pmi_1", run_pmi<PmiManner::old>, 1});
INSTANTIATE_TEST_SUITE_P(Own, GivesUp, kOwn, name_of_way);
INSTANTIATE_TEST_SUITE_P(Own, GivesUpAnywhere, kOwn, name_of_way);
INSTANTIATE_TEST_SUITE_P(Own, GivesUpInTheMidst, kOwn, name_of_way);
INSTANTIATE_TEST_SUITE_P(Pmi, GivesUpInTheMidst,
                         testing::Values(Way{"rank_0_of_pmi_2", run_broken_pmi, 0, false},
                                         Way{"rank_1_of_pmi_2", run_broken_pmi, 1, false}),
                         name_of_way);
INSTANTIATE_TEST_SUITE_P(Pmi, GivesUpAnywhere, kPmi, name_of_way);
INSTANTIATE_TEST_SUITE_P(Pmi, GivesUpUnderPmi, kPmi, name_of_way);

TEST(Asked, about_every_tenth_of_a_second_and_never_outside) {
  int times = 0;
  interrupt::set([](void* count) { return ++*static_cast<int*>(count) < 0 ? 1 : 0; }, &times);
  EXPECT_FALSE(interrupt::wanted());
  EXPECT_GT(interrupt::milliseconds(Deadline::after(5)), 1000);
  {
    const interrupt::Scope scope;
    for (const Deadline until = Deadline::after(0.6); !interrupt::over(until);)
      ::poll(nullptr, 0, interrupt::milliseconds(until));
    EXPECT_GE(times, 3);
    EXPECT_LE(times, 13);
    EXPECT_LE(interrupt::milliseconds(Deadline::after(0.01)), 10);
    EXPECT_LE(interrupt::milliseconds(Deadline::after(5)), 100);
    const interrupt::Unheard unheard;
    times = 0;
    pause(0.2);
    EXPECT_FALSE(interrupt::wanted());
  }
  EXPECT_EQ(times, 0);
  interrupt::set(nullptr, nullptr);
}

TEST(InterruptedByPmi, in_the_midst_of_an_exchange_the_next_world_is_a_clear_error) {
  for (const PmiManner manner : {PmiManner::slurm, PmiManner::old}) {
    const PmiRun run = run_with_pmi(2, manner, [](int rank) {
      auto boot = join_job(Settings{});
      ASSERT_TRUE(boot.ok()) << boot.status().text();
      exchange_and_compare(**boot, 1, 10);
      if (rank == 1) return pause(1.5);
      double until = now() + 0.3;
      interrupt::set(is_over, &until);
      {
        const interrupt::Scope scope;
        EXPECT_FALSE((*boot)->all_gather("x").ok());
        EXPECT_TRUE(scope.happened());
        (*boot)->withdraw(interrupt::kReason);
        EXPECT_LT(now(), until + kSoon);
      }
      interrupt::set(nullptr, nullptr);
      const Status next = join_job(Settings{}).status();
      EXPECT_NE(next.text().find("given up while pmi was at work for it, which cannot be taken back"), std::string::npos)
          << next.text();
    });
    EXPECT_EQ(failures(run.ends), 0);
  }
}

}  // namespace
}  // namespace ist::test
