#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "boot/blob.hpp"
#include "boot/boot.hpp"
#include "boot/launcher_boot.hpp"
#include "ranks.hpp"

namespace ist::test {
namespace {

void exchange_all_sizes(Boot& boot) {
  int round = 0;
  // around zero, the size of a header, of a read, and of a socket's buffer
  for (const std::size_t length : {0UL, 1UL, 39UL, 40UL, 41UL, 4095UL, 16384UL, 16385UL, 300001UL, 0UL})
    exchange_and_compare(boot, round++, length);
}

TEST(Alone, a_program_started_by_nobody_is_a_world_of_one) {
  auto boot = join_job(Settings{});
  ASSERT_TRUE(boot.ok()) << boot.status().text();
  EXPECT_EQ((*boot)->name(), "alone");
  EXPECT_EQ((*boot)->size(), 1);
  exchange_all_sizes(**boot);
}

TEST(Launched, every_rank_gets_every_blob_of_any_size) {
  const auto ends = run_launched(3, [](int rank) {
    auto boot = join_job(Settings{});
    ASSERT_TRUE(boot.ok()) << boot.status().text();
    EXPECT_EQ((*boot)->name(), "launcher");
    EXPECT_EQ((*boot)->rank().value, rank);
    EXPECT_EQ((*boot)->size(), 3);
    exchange_all_sizes(**boot);
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Launched, a_round_that_is_complete_succeeds_however_short_the_patience) {
  const auto ends = run_launched(1, [](int) {
    Settings settings;
    settings.boot_timeout = 1e-6;
    auto boot = join_job(settings);
    ASSERT_TRUE(boot.ok()) << boot.status().text();
    exchange_all_sizes(**boot);
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Launched, sixteen_ranks_on_any_number_of_cores) {
  const auto ends = run_launched(16, [](int) {
    auto boot = join_job(Settings{});
    ASSERT_TRUE(boot.ok()) << boot.status().text();
    for (int round = 0; round < 20; ++round) exchange_and_compare(**boot, round, 100);
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Launched, worlds_one_after_another_and_two_at_once_use_the_same_socket) {
  EXPECT_EQ(failures(run_launched(2, [](int) { exchange_in_several_worlds(); })), 0);
}

TEST(Launched, a_rank_that_ends_before_joining_is_named_to_the_others_at_once) {
  const auto ends = run_launched(3, [](int rank) {
    if (rank == 1) ::_exit(0);
    auto boot = join_job(Settings{});
    ASSERT_TRUE(boot.ok());
    const double start = now();
    const auto all = (*boot)->all_gather("x");
    EXPECT_FALSE(all.ok());
    EXPECT_EQ(all.status().code(), IST_ERR_BOOT);
    EXPECT_NE(all.status().text().find("rank 1 ended with 0"), std::string::npos) << all.status().text();
    EXPECT_LT(now() - start, 1.5);
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Launched, ranks_that_do_not_come_in_time_are_named_and_may_come_to_the_next_world) {
  const auto ends = run_launched(3, [](int rank) {
    Settings settings;
    settings.boot_timeout = 0.3;
    auto boot = join_job(settings);
    ASSERT_TRUE(boot.ok());
    if (rank == 2) std::this_thread::sleep_for(std::chrono::milliseconds(600));
    const double start = now();
    const auto all = (*boot)->all_gather("x");
    EXPECT_EQ(all.status().code(), IST_ERR_BOOT);
    EXPECT_NE(all.status().text().find("rank 2 did not come to the test's launcher within 0.3 s"), std::string::npos)
        << all.status().text();
    EXPECT_LT(now() - start, 1.5);
    settings.boot_timeout = 10;
    auto next = join_job(settings);
    ASSERT_TRUE(next.ok());
    exchange_and_compare(**next, 1, 50);
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Launched, worlds_created_in_different_numbers_are_an_error_and_no_mixture) {
  const auto ends = run_launched(2, [](int rank) {
    auto boot = join_job(Settings{});
    if (rank == 1) boot = join_job(Settings{});
    ASSERT_TRUE(boot.ok());
    const auto all = (*boot)->all_gather("x");
    EXPECT_EQ(all.status().code(), IST_ERR_BOOT);
    EXPECT_NE(all.status().text().find("same order"), std::string::npos) << all.status().text();
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Launched, a_forked_child_of_a_rank_is_refused_and_does_not_disturb_it) {
  EXPECT_EQ(failures(run_launched(2, [](int) { expect_forked_child_refused(); })), 0);
}

TEST(Launched, two_processes_of_one_rank_do_not_both_use_its_socket) {
  const auto ends = run_launched(2, [](int) {
    const pid_t child = ::fork();  // before the first world: nobody has claimed the socket
    if (child == 0) {
      ::usleep(200000);
      const auto boot = join_job(Settings{});
      ::_exit(boot.status().code() == IST_ERR_BOOT && boot.status().text().find("already using") != std::string::npos ? 0
                                                                                                                      : 1);
    }
    auto boot = join_job(Settings{});
    ASSERT_TRUE(boot.ok());
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    exchange_and_compare(**boot, 1, 10);
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Launched, a_command_of_another_version_is_named_before_anything_is_sent) {
  const auto ends = run_launched(1, [](int) {
    const std::string own = std::getenv(kBootVersion);
    for (const char* version : {"", "1", "3", "77"}) {
      *version == '\0' ? ::unsetenv(kBootVersion) : ::setenv(kBootVersion, version, 1);
      const auto boot = join_job(Settings{});
      EXPECT_EQ(boot.status().code(), IST_ERR_BOOT);
      const std::string said = boot.status().text();
      EXPECT_NE(said.find("speaks version " + std::string{*version == '\0' ? "1" : version} + " of the start-up protocol"),
                std::string::npos)
          << said;
      EXPECT_NE(said.find(") version " + own + ": they belong to two installations"), std::string::npos) << said;
    }
    ::setenv(kBootVersion, "two", 1);
    const auto word = join_job(Settings{});
    EXPECT_NE(word.status().text().find("ISTHMUS_BOOT_VERSION=\"two\""), std::string::npos) << word.status().text();
    ::setenv(kBootVersion, own.c_str(), 1);
    auto boot = join_job(Settings{});
    ASSERT_TRUE(boot.ok()) << boot.status().text();
    exchange_and_compare(**boot, 1, 10);
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Launched, a_descriptor_that_is_closed_or_something_else_is_a_clear_error) {
  const auto ends = run_launched(1, [](int) {
    const int socket = std::atoi(std::getenv(kBootDescriptor));
    ::setenv(kBootDescriptor, "900", 1);
    auto closed = join_job(Settings{});
    EXPECT_EQ(closed.status().code(), IST_ERR_BOOT);
    EXPECT_NE(closed.status().text().find("descriptor 900 is closed here"), std::string::npos) << closed.status().text();
    const int file = ::open("/dev/null", O_RDONLY);
    ::setenv(kBootDescriptor, std::to_string(file).c_str(), 1);
    auto other = join_job(Settings{});
    EXPECT_NE(other.status().text().find("something else here"), std::string::npos) << other.status().text();
    ::setenv(kBootDescriptor, "four", 1);
    auto word = join_job(Settings{});
    EXPECT_NE(word.status().text().find("ISTHMUS_BOOT_FD=\"four\""), std::string::npos) << word.status().text();
    ::setenv(kBootDescriptor, std::to_string(socket).c_str(), 1);
    ::setenv(kRank, "1", 1);
    auto rank = join_job(Settings{});
    EXPECT_NE(rank.status().text().find("ISTHMUS_RANK=\"1\""), std::string::npos) << rank.status().text();
    ::setenv(kRank, "0", 1);
    EXPECT_TRUE(join_job(Settings{}).ok());
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Blob, a_short_or_lying_blob_is_bad_and_reads_as_nothing) {
  BlobReader empty{""};
  EXPECT_EQ(empty.number(), 0U);
  EXPECT_TRUE(empty.bad());
  const std::string lying = BlobWriter{}.number(~0ULL).take();
  BlobReader reader{lying};
  EXPECT_EQ(reader.text(), "");
  EXPECT_TRUE(reader.bad());
  const std::string good = BlobWriter{}.text("").number(7).text(std::string("a\0b", 3)).take();
  BlobReader again{good};
  EXPECT_EQ(again.text(), "");
  EXPECT_EQ(again.number(), 7U);
  EXPECT_EQ(again.text(), std::string("a\0b", 3));
  EXPECT_TRUE(again.at_end() && !again.bad());
}

}  // namespace
}  // namespace ist::test
