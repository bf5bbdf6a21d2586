#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "boot/addresses.hpp"
#include "boot/boot.hpp"
#include "boot/rendezvous.hpp"
#include "ranks.hpp"

namespace ist::test {
namespace {

Meeting meeting_from_environment(int world) {
  Meeting meeting;
  meeting.address = "127.0.0.1";
  meeting.port = std::atoi(std::getenv("MASTER_PORT"));
  meeting.rank = std::atoi(std::getenv("RANK"));
  meeting.size = std::atoi(std::getenv("WORLD_SIZE"));
  meeting.world = static_cast<std::uint32_t>(world);
  meeting.seconds = 10;
  return meeting;
}

// Connects as soon as somebody listens.
FileDescriptor patient_connection() {
  const Deadline deadline = Deadline::after(10);
  for (;;) {
    auto socket = connect_to("127.0.0.1", std::atoi(std::getenv("MASTER_PORT")), deadline);
    if (socket.ok() || deadline.over()) return socket.ok() ? std::move(*socket) : FileDescriptor{};
    ::usleep(2000);
  }
}

TEST(Environment, every_rank_gets_every_blob_of_any_size) {
  const auto ends = run_with_environment(4, [](int rank) {
    auto boot = join_job(Settings{});
    ASSERT_TRUE(boot.ok()) << boot.status().text();
    EXPECT_EQ((*boot)->name(), "environment");
    EXPECT_EQ((*boot)->rank().value, rank);
    int round = 0;
    for (const std::size_t length : {0UL, 1UL, 39UL, 40UL, 41UL, 16385UL, 3000001UL, 0UL})
      exchange_and_compare(**boot, round++, length);
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Environment, worlds_follow_each_other_however_late_a_rank_is) {
  const auto ends = run_with_environment(4, [](int rank) {
    for (int world = 0; world < 12; ++world) {
      // each world another rank is late, rank 0 among them: the quick ones knock at a closed or an older door
      if (world % 4 == rank) std::this_thread::sleep_for(std::chrono::milliseconds(15));
      auto boot = join_job(Settings{});
      ASSERT_TRUE(boot.ok()) << boot.status().text();
      exchange_and_compare(**boot, world, 10);
    }
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Environment, two_worlds_at_once_do_not_mix) {
  const auto ends = run_with_environment(2, [](int) {
    auto first = join_job(Settings{});
    auto second = join_job(Settings{});
    ASSERT_TRUE(first.ok() && second.ok());
    exchange_and_compare(**second, 1, 10);
    exchange_and_compare(**first, 2, 10);
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Environment, missing_ranks_are_named_with_address_and_time) {
  const auto ends = run_with_environment(4, [](int rank) {
    if (rank == 1 || rank == 3) return;
    Settings settings;
    settings.boot_timeout = 0.5;
    auto boot = join_job(settings);
    Status status = boot.status();
    if (boot.ok()) status = (*boot)->all_gather("x").status();
    EXPECT_EQ(status.code(), IST_ERR_BOOT);
    const std::string place = "127.0.0.1:" + std::string{std::getenv("MASTER_PORT")};
    EXPECT_NE(status.text().find("ranks 1 and 3 of 4 did not come to " + place + " within 0.5 s"), std::string::npos)
        << status.text();
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Environment, a_rank_0_that_never_comes_is_named_with_address_and_time) {
  const auto ends = run_with_environment(2, [](int rank) {
    if (rank == 0) return;
    Settings settings;
    settings.boot_timeout = 0.4;
    const auto boot = join_job(settings);
    EXPECT_EQ(boot.status().code(), IST_ERR_BOOT);
    EXPECT_NE(boot.status().text().find("did not reach rank 0 at 127.0.0.1:"), std::string::npos) << boot.status().text();
    EXPECT_NE(boot.status().text().find("within 0.4 s"), std::string::npos) << boot.status().text();
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Environment, a_rank_that_dies_between_joining_and_exchanging_is_named_at_once) {
  const auto ends = run_with_environment(3, [](int rank) {
    auto boot = join_job(Settings{});
    ASSERT_TRUE(boot.ok());
    if (rank == 2) ::_exit(0);
    const double start = now();
    const auto all = (*boot)->all_gather("x");
    EXPECT_EQ(all.status().code(), IST_ERR_BOOT);
    EXPECT_NE(all.status().text().find("rank 2 closed its connection"), std::string::npos) << all.status().text();
    EXPECT_LT(now() - start, 2.0);
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Environment, strangers_other_sizes_and_duplicates_are_turned_away_and_the_job_starts) {
  const auto ends = run_with_environment(3, [](int rank) {
    if (rank == 2) {
      // A port scanner that says nothing, one that hangs up, one that speaks another language, one that never stops.
      FileDescriptor silent = patient_connection();
      patient_connection().close();
      FileDescriptor web = patient_connection();
      const std::string request = "GET / HTTP/1.0\r\n\r\n";
      EXPECT_GT(::send(web.get(), request.data(), request.size(), MSG_NOSIGNAL), 0);
      FileDescriptor noisy = patient_connection();
      const std::string noise = random_bytes(100000);
      ::send(noisy.get(), noise.data(), noise.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      // Somebody with another idea of the job's size, and a rank there is no place for.
      Meeting other = meeting_from_environment(1);
      other.size = 4;
      const auto size = knock(other);
      EXPECT_NE(size.status().text().find("has WORLD_SIZE=4, rank 0 has 3"), std::string::npos) << size.status().text();
      Meeting zero = meeting_from_environment(1);
      zero.rank = 0;
      EXPECT_NE(knock(zero).status().text().find("has no place"), std::string::npos);
      // A second process that says it is rank 1, once rank 1 is in.
      Meeting twin = meeting_from_environment(1);
      twin.rank = 1;
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      const auto second = knock(twin);
      EXPECT_NE(second.status().text().find("is already here"), std::string::npos) << second.status().text();
    }
    auto boot = join_job(Settings{});
    ASSERT_TRUE(boot.ok()) << boot.status().text();
    exchange_and_compare(**boot, 1, 10);
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Environment, a_rank_that_came_died_and_was_started_again_is_let_in) {
  const auto ends = run_with_environment(3, [](int rank) {
    if (rank == 1) {
      auto first = knock(meeting_from_environment(1));
      ASSERT_TRUE(first.ok()) << first.status().text();
    }  // its connection closes here
    if (rank == 2) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    auto boot = join_job(Settings{});
    ASSERT_TRUE(boot.ok()) << boot.status().text();
    exchange_and_compare(**boot, 1, 10);
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Environment, ranks_of_two_jobs_on_one_address_are_told_apart) {
  const auto ends = run_with_environment(3, [](int rank) {
    if (rank == 2) {
      Meeting other = meeting_from_environment(1);
      other.job = "another";
      EXPECT_NE(knock(other).status().text().find("belongs to job \"another\", rank 0 to job \"mine\""), std::string::npos);
    }
    ::setenv("TORCHELASTIC_RUN_ID", "mine", 1);
    auto boot = join_job(Settings{});
    ASSERT_TRUE(boot.ok()) << boot.status().text();
    exchange_and_compare(**boot, 1, 10);
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Environment, a_port_in_use_is_named) {
  const auto ends = run_with_environment(2, [](int rank) {
    if (rank != 0) return;
    auto taken = listen_at("127.0.0.1", std::atoi(std::getenv("MASTER_PORT")));
    ASSERT_TRUE(taken.ok());
    Settings settings;
    settings.boot_timeout = 0.2;
    const auto boot = join_job(settings);
    EXPECT_EQ(boot.status().code(), IST_ERR_BOOT);
    EXPECT_NE(boot.status().text().find("Address already in use"), std::string::npos) << boot.status().text();
    EXPECT_NE(boot.status().text().find(std::getenv("MASTER_PORT")), std::string::npos);
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Environment, a_world_of_one_needs_no_port) {
  const auto ends = run_with_environment(1, [](int) {
    auto taken = listen_at("127.0.0.1", std::atoi(std::getenv("MASTER_PORT")));
    ASSERT_TRUE(taken.ok());
    const double start = now();
    auto boot = join_job(Settings{});
    ASSERT_TRUE(boot.ok()) << boot.status().text();
    EXPECT_LT(now() - start, 2.0);
    exchange_and_compare(**boot, 1, 10);
  });
  EXPECT_EQ(failures(ends), 0);
}

// As torchrun does: its agent, a process of its own, listens at MASTER_PORT for as long as the job runs.
TEST(Environment, ranks_meet_beside_the_store_of_an_agent_that_has_the_port) {
  const auto ends = run_with_environment(3, [](int rank) {
    ::setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
    Result<std::vector<FileDescriptor>> agent = std::vector<FileDescriptor>{};
    if (rank == 0) agent = listen_at("127.0.0.1", std::atoi(std::getenv("MASTER_PORT")));
    ASSERT_TRUE(agent.ok()) << agent.status().text();
    for (int world = 0; world < 3; ++world) {
      auto boot = join_job(Settings{});
      ASSERT_TRUE(boot.ok()) << boot.status().text();
      exchange_and_compare(**boot, world, 100);
    }
    // An agent that keeps none there leaves the port to rank 0.
    agent = std::vector<FileDescriptor>{};
    ::setenv("TORCHELASTIC_USE_AGENT_STORE", "False", 1);
    auto boot = join_job(Settings{});
    ASSERT_TRUE(boot.ok()) << boot.status().text();
    exchange_and_compare(**boot, 3, 100);
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Environment, a_program_that_is_no_rank_0_is_described) {
  const auto ends = run_with_environment(2, [](int rank) {
    if (rank == 0) {
      auto listeners = listen_at("127.0.0.1", std::atoi(std::getenv("MASTER_PORT")));
      ASSERT_TRUE(listeners.ok());
      const Deadline until = Deadline::after(1.0);
      while (!until.over()) {
        FileDescriptor guest{::accept4((*listeners)[0].get(), nullptr, nullptr, 0)};
        const std::string banner = "220 mail.example.org ESMTP\r\n";
        if (guest.valid()) ::send(guest.get(), banner.data(), banner.size(), MSG_NOSIGNAL);
        ::usleep(1000);
      }
      return;
    }
    Settings settings;
    settings.boot_timeout = 0.6;
    const auto boot = join_job(settings);
    EXPECT_EQ(boot.status().code(), IST_ERR_BOOT);
    EXPECT_NE(boot.status().text().find("another program answered there"), std::string::npos) << boot.status().text();
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Environment, values_that_cannot_be_used_name_their_variable) {
  const auto ends = run_with_environment(1, [](int) {
    const auto text_of = [] { return join_job(Settings{}).status().text(); };
    const auto expect = [&](const char* name, const char* value, const char* text) {
      const std::string before = std::getenv(name);
      if (value) {
        ::setenv(name, value, 1);
      } else {
        ::unsetenv(name);
      }
      const auto boot = join_job(Settings{});
      EXPECT_EQ(boot.status().code(), IST_ERR_BOOT) << name;
      EXPECT_NE(boot.status().text().find(text), std::string::npos) << boot.status().text();
      ::setenv(name, before.c_str(), 1);
    };
    expect("RANK", "zero", "RANK=\"zero\"");
    expect("RANK", "", "RANK=\"\"");
    expect("RANK", "-1", "RANK=\"-1\"");
    expect("RANK", "1", "a whole number from 0 to 0");
    expect("RANK", "0x0", "RANK=\"0x0\"");
    expect("WORLD_SIZE", "0", "WORLD_SIZE=\"0\"");
    expect("WORLD_SIZE", "99999999999999999999", "WORLD_SIZE=");
    expect("MASTER_PORT", "0", "MASTER_PORT=\"0\"");
    expect("MASTER_PORT", "65536", "MASTER_PORT=\"65536\"");
    expect("MASTER_PORT", "80 ", "MASTER_PORT=\"80 \"");
    expect("MASTER_ADDR", "", "MASTER_ADDR=\"\"");
    for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})
      expect(name, nullptr, (std::string{"but not "} + name).c_str());
    EXPECT_EQ(text_of(), "");
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Environment, an_address_that_does_not_exist_is_quoted) {
  const auto ends = run_with_environment(2, [](int rank) {
    if (rank == 0) return;
    ::setenv("MASTER_ADDR", "no-such-host.invalid", 1);
    Settings settings;
    settings.boot_timeout = 0.2;
    const auto boot = join_job(settings);
    EXPECT_NE(boot.status().text().find("\"no-such-host.invalid\" cannot be looked up"), std::string::npos)
        << boot.status().text();
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Environment, localhost_means_whatever_the_system_says) {
  const auto ends = run_with_environment(2, [](int) {
    ::setenv("MASTER_ADDR", "localhost", 1);
    auto boot = join_job(Settings{});
    ASSERT_TRUE(boot.ok()) << boot.status().text();
    exchange_and_compare(**boot, 1, 10);
  });
  EXPECT_EQ(failures(ends), 0);
}

}  // namespace
}  // namespace ist::test
