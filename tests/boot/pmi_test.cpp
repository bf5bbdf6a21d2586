#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "boot/pmi_boot.hpp"
#include "boot/pmi_wire.hpp"
#include "pmi_server.hpp"
#include "ranks.hpp"

namespace ist::test {
namespace {

// Around nothing, one letter's bits, and what one and two values hold: 512 letters with "512." in front.
void exchange_all_sizes(Boot& boot) {
  int round = 0;
  for (const std::size_t length :
       {0UL, 1UL, 2UL, 3UL, 4UL, 379UL, 380UL, 381UL, 382UL, 763UL, 764UL, 765UL, 4097UL, 50001UL, 0UL})
    exchange_and_compare(boot, ++round, length);
}

void join_and_exchange(int rank, int size) {
  auto boot = join_job(Settings{});
  ASSERT_TRUE(boot.ok()) << boot.status().text();
  EXPECT_EQ((*boot)->name(), "pmi");
  EXPECT_EQ((*boot)->rank().value, rank);
  EXPECT_EQ((*boot)->size(), size);
  exchange_all_sizes(**boot);
}

TEST(Pmi, every_rank_gets_every_blob_of_any_size_by_version_2) {
  for (const int size : {1, 2, 5}) {
    const PmiRun run = run_with_pmi(size, PmiManner::slurm, [&](int rank) { join_and_exchange(rank, size); });
    EXPECT_EQ(failures(run.ends), 0);
    EXPECT_EQ(run.version, 2);
    EXPECT_EQ(run.refused, 0);
    EXPECT_EQ(run.finalized, size) << "a rank that takes no leave is taken for one that failed";
  }
}

TEST(Pmi, a_server_that_knows_version_1_alone_is_spoken_to_in_that) {
  const PmiRun run = run_with_pmi(3, PmiManner::old, [](int rank) { join_and_exchange(rank, 3); });
  EXPECT_EQ(failures(run.ends), 0);
  EXPECT_EQ(run.version, 1);
  EXPECT_EQ(run.refused, 0);
  EXPECT_EQ(run.finalized, 3);
}

TEST(Pmi, worlds_follow_each_other_and_two_at_once_do_not_mix) {
  const PmiRun run = run_with_pmi(3, PmiManner::slurm, [](int) { exchange_in_several_worlds(); });
  EXPECT_EQ(failures(run.ends), 0);
}

TEST(Pmi, worlds_created_in_another_order_are_an_error_and_no_mixture) {
  for (const PmiManner manner : {PmiManner::slurm, PmiManner::mpich, PmiManner::old}) {
    const PmiRun run = run_with_pmi(2, manner, [](int rank) {
      auto boot = join_job(Settings{});
      if (rank == 1) boot = join_job(Settings{});
      ASSERT_TRUE(boot.ok());
      const auto all = (*boot)->all_gather("x");
      EXPECT_EQ(all.status().code(), IST_ERR_BOOT);
      EXPECT_NE(all.status().text().find("same worlds in the same order"), std::string::npos) << all.status().text();
      EXPECT_NE(join_job(Settings{}).status().text().find("may be out of step"), std::string::npos);
    });
    EXPECT_EQ(failures(run.ends), 0);
  }
}

TEST(Pmi, a_forked_child_is_refused_and_its_end_is_not_the_end_of_the_rank) {
  const PmiRun run = run_with_pmi(2, PmiManner::slurm, [](int) { expect_forked_child_refused(); });
  EXPECT_EQ(failures(run.ends), 0);
  EXPECT_EQ(run.finalized, 2);
}

// What a rank is told by a server of this manner, the same on every rank.
void expect_error(PmiManner manner, const std::string& text, double timeout = 10) {
  const PmiRun run = run_with_pmi(2, manner, [&](int rank) {
    Settings settings;
    settings.boot_timeout = timeout;
    const double start = now();
    auto boot = join_job(settings);
    const Status status = boot.ok() ? (*boot)->all_gather("x").status() : boot.status();
    EXPECT_EQ(status.code(), IST_ERR_BOOT);
    EXPECT_NE(status.text().find(text), std::string::npos) << status.text();
    EXPECT_NE(status.text().find("rank " + std::to_string(rank) + " of a job with PMI"), std::string::npos) << status.text();
    EXPECT_LT(now() - start, 5.0);
    EXPECT_EQ(join_job(settings).status().code(), IST_ERR_BOOT);
  });
  EXPECT_EQ(failures(run.ends), 0) << text;
}

TEST(Pmi, servers_that_fail_are_described_and_none_is_waited_for_without_end) {
  expect_error(PmiManner::foreign, "the PMI server answered \"220 mail.example.org ESMTP\" to the first request");
  expect_error(PmiManner::hangs_up, "the PMI server has closed its connection");
  expect_error(PmiManner::no_length, "does not begin with a length: \"cmd=fullinit-response;rc=0;\"");
  expect_error(PmiManner::refuses_puts, "rc=7;errmsg=no room;\" to the request \"kvs-put\"");
  expect_error(PmiManner::deaf, "not all of the 2 ranks came to the exchange of addresses within", 0.3);
}

TEST(Pmi, a_rank_that_comes_too_late_is_waited_for_as_long_as_the_setting_says) {
  const PmiRun run = run_with_pmi(2, PmiManner::slurm, [](int rank) {
    Settings settings;
    settings.boot_timeout = 0.3;
    auto boot = join_job(settings);
    ASSERT_TRUE(boot.ok());
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(700));
    const auto all = (*boot)->all_gather("x");
    if (rank == 1) return;
    EXPECT_NE(all.status().text().find("not all of the 2 ranks came to the exchange of addresses within"), std::string::npos)
        << all.status().text();
  });
  EXPECT_EQ(failures(run.ends), 0);
}

TEST(Pmi, a_descriptor_that_is_closed_or_something_else_is_a_clear_error) {
  const auto ends = run_launched(1, [](int) {
    for (const char* name : {"ISTHMUS_BOOT_FD", "ISTHMUS_RANK", "ISTHMUS_SIZE"}) ::unsetenv(name);
    ::setenv("PMI_RANK", "0", 1);
    ::setenv("PMI_SIZE", "1", 1);
    const auto expect = [](const std::string& value, const char* text) {
      // A process asks once.
      EXPECT_TRUE(holds_in_forked_child([&] {
        ::setenv("PMI_FD", value.c_str(), 1);
        const auto boot = join_job(Settings{});
        const bool told = boot.status().text().find(text) != std::string::npos;
        if (!told) std::fprintf(stderr, "%s\n", boot.status().text().c_str());
        return told;
      })) << text;
    };
    expect("900", "(descriptor 900): that descriptor is no socket here");
    const int file = ::open("/proc/self/status", O_RDONLY);
    expect(std::to_string(file), "that descriptor is a file here");
    expect("six", "PMI_FD=\"six\" cannot be used");
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Pmi, bytes_become_letters_and_bytes_again) {
  for (std::size_t length = 0; length < 300; ++length) {
    const std::string bytes = random_bytes(length);
    const std::string letters = in_letters(bytes);
    EXPECT_EQ(letters.size(), (length * 8 + 5) / 6);
    EXPECT_EQ(letters.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
              std::string::npos);
    EXPECT_EQ(out_of_letters(letters), bytes);
  }
  EXPECT_EQ(out_of_letters("ab=c"), std::nullopt);
  EXPECT_EQ(out_of_letters("ab c"), std::nullopt);
}

}  // namespace
}  // namespace ist::test
