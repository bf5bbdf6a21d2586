#include "boot/peers.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <thread>

#include "boot/frame.hpp"
#include "boot/pair_sockets.hpp"
#include "ranks.hpp"

namespace ist::test {
namespace {

// Joins, connects, and keeps boot and peers together.
struct Connected {
  std::unique_ptr<Boot> boot;
  std::unique_ptr<Peers> peers;
};

Connected connect_or_fail() {
  auto boot = join_job(Settings{});
  EXPECT_TRUE(boot.ok()) << boot.status().text();
  auto peers = Peers::connect(**boot, Settings{});
  EXPECT_TRUE(peers.ok()) << peers.status().text();
  return {std::move(*boot), std::move(*peers)};
}

std::uint32_t purpose_of(int from, int to) { return static_cast<std::uint32_t>(from * 100 + to); }

void give_memory_to(Peers& peers, Rank to, const std::string& bytes) {
  auto memory = SharedMemory::create("test", Bytes{bytes.size()});
  ASSERT_TRUE(memory.ok());
  std::memcpy(memory->data(), bytes.data(), bytes.size());
  const Status sent = peers.send_descriptor(to, purpose_of(peers.rank().value, to.value), memory->descriptor());
  ASSERT_TRUE(sent.ok()) << sent.text();
}

void everyone_gives_memory_to_everyone(Peers& peers) {
  const auto bytes_of = [](int from, int to) {
    return std::string(4097, static_cast<char>(from * 16 + to)) + std::to_string(from);
  };
  const int mine = peers.rank().value;
  for (const Rank to : peers.local())
    if (to != peers.rank()) give_memory_to(peers, to, bytes_of(mine, to.value));
  for (const Rank from : peers.local()) {
    if (from == peers.rank()) continue;
    auto taken = peers.take_descriptor(from, purpose_of(from.value, mine), 10.0);
    ASSERT_TRUE(taken.ok()) << taken.status().text();
    ASSERT_TRUE(taken->has_value());
    EXPECT_EQ(::fcntl((*taken)->get(), F_GETFD), FD_CLOEXEC);
    const std::string expected = bytes_of(from.value, mine);
    auto memory = SharedMemory::open(std::move(**taken), Bytes{expected.size()});
    ASSERT_TRUE(memory.ok());
    EXPECT_EQ(std::memcmp(memory->data(), expected.data(), expected.size()), 0);
  }
}

TEST(Peers, each_pair_of_ranks_passes_memory_both_ways) {
  for (const int size : {1, 2, 5}) {
    const auto ends = run_launched(size, [&](int rank) {
      auto job = connect_or_fail();
      ASSERT_EQ(job.peers->size(), size);
      EXPECT_EQ(job.peers->rank().value, rank);
      EXPECT_EQ(job.peers->local().size(), static_cast<std::size_t>(size));
      EXPECT_EQ(job.peers->at(Rank{rank}).pid, ::getpid());
      EXPECT_EQ(job.peers->socket(Rank{rank}), -1);
      EXPECT_GT(job.peers->at(Rank{0}).cores, 0);
      everyone_gives_memory_to_everyone(*job.peers);
    });
    EXPECT_EQ(failures(ends), 0) << size << " ranks";
  }
}

TEST(Peers, ranks_that_met_over_tcp_on_one_host_pass_memory_too) {
  const auto ends = run_with_environment(3, [](int) {
    auto job = connect_or_fail();
    job.boot.reset();  // the connections between the ranks do not need it any more
    everyone_gives_memory_to_everyone(*job.peers);
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Peers, sixteen_ranks_connect_pairwise_in_a_few_seconds) {
  const double start = now();
  const auto ends = run_launched(16, [](int) {
    auto job = connect_or_fail();
    everyone_gives_memory_to_everyone(*job.peers);
    job.boot->all_gather("done").status();
  });
  EXPECT_EQ(failures(ends), 0);
  EXPECT_LT(now() - start, 5.0);
}

TEST(Peers, two_worlds_of_the_same_processes_have_separate_sockets) {
  const auto ends = run_launched(2, [](int rank) {
    auto first = connect_or_fail();
    auto second = connect_or_fail();
    const Rank other{1 - rank};
    give_memory_to(*second.peers, other, "second");
    give_memory_to(*first.peers, other, "first");
    auto taken = first.peers->take_descriptor(other, purpose_of(1 - rank, rank), 10.0);
    ASSERT_TRUE(taken.ok());
    ASSERT_TRUE(taken->has_value());
    auto memory = SharedMemory::open(std::move(**taken), Bytes{5});

    ASSERT_TRUE(memory.ok());
    EXPECT_EQ(std::memcmp(memory->data(), "first", 5), 0);
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Peers, descriptors_are_taken_by_purpose_in_any_order) {
  const auto ends = run_launched(2, [](int rank) {
    auto job = connect_or_fail();
    Peers& peers = *job.peers;
    if (rank == 0) {
      for (std::uint32_t purpose = 0; purpose < 20; ++purpose) {
        auto memory = SharedMemory::create("test", Bytes{64});
        ASSERT_TRUE(memory.ok());
        memory->data()[0] = static_cast<std::byte>(purpose);
        ASSERT_TRUE(peers.send_descriptor(Rank{1}, purpose, memory->descriptor()).ok());
      }
    } else {
      for (std::uint32_t purpose = 20; purpose-- > 0;) {
        auto taken = peers.take_descriptor(Rank{0}, purpose, 10.0);
        ASSERT_TRUE(taken.ok() && taken->has_value());
        auto memory = SharedMemory::open(std::move(**taken), Bytes{64});
        ASSERT_TRUE(memory.ok());
        EXPECT_EQ(memory->data()[0], static_cast<std::byte>(purpose));
      }
    }
    job.boot->all_gather("done").status();
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Peers, who_does_not_wait_is_told_that_nobody_takes_what_he_sent) {
  const auto ends = run_launched(2, [](int rank) {
    auto job = connect_or_fail();
    int sent = 0;
    if (rank == 0) {
      const double start = now();
      auto more = job.peers->try_send_descriptor(Rank{1}, 3, 0);
      for (; more.ok() && *more && sent < 100000; ++sent) more = job.peers->try_send_descriptor(Rank{1}, 3, 0);
      EXPECT_TRUE(more.ok() && !*more);
      EXPECT_LT(now() - start, 5.0);
    }
    EXPECT_TRUE(job.boot->all_gather("full").ok());
    if (rank == 1) {
      auto taken = job.peers->take_descriptor(Rank{0}, 3, 0.0);
      for (; taken.ok() && taken->has_value(); ++sent) taken = job.peers->take_descriptor(Rank{0}, 3, 0.0);
      EXPECT_GT(sent, 10);
    }
    EXPECT_TRUE(job.boot->all_gather("taken").ok());
    if (rank == 0) {
      EXPECT_TRUE(*job.peers->try_send_descriptor(Rank{1}, 3, 0));
    }
    EXPECT_TRUE(job.boot->all_gather("done").ok());
  });
  EXPECT_EQ(failures(ends), 0);
}

// One purpose finds that its descriptor is gone, and no other one is served wrongly or waits for ever.
TEST(Peers, a_descriptor_for_which_there_is_no_place_is_an_error_of_its_purpose) {
  const auto ends = run_launched(2, [](int rank) {
    auto job = connect_or_fail();
    if (rank == 0) {
      for (const std::uint32_t purpose : {5U, 6U, 7U}) ASSERT_TRUE(job.peers->send_descriptor(Rank{1}, purpose, 0).ok());
    }
    EXPECT_TRUE(job.boot->all_gather("sent").ok());
    if (rank == 1) {
      // A sanitizer looks at an object's type through a pipe, the first time: while there are descriptors.
      EXPECT_FALSE(Status(IST_ERR_SYSTEM, "the first").ok());
      rlimit few{};
      ASSERT_EQ(0, ::getrlimit(RLIMIT_NOFILE, &few));
      few.rlim_cur = 200;
      ASSERT_EQ(0, ::setrlimit(RLIMIT_NOFILE, &few));
      std::vector<FileDescriptor> all;
      for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) all.emplace_back(fd);
      auto taken = job.peers->take_descriptor(Rank{0}, 6, 10.0);
      all.clear();
      EXPECT_EQ(taken.status().code(), IST_ERR_SYSTEM);
      EXPECT_NE(taken.status().text().find("ulimit -n"), std::string::npos) << taken.status().text();
      taken = job.peers->take_descriptor(Rank{0}, 7, 10.0);
      EXPECT_TRUE(taken.ok() && taken->has_value());
      taken = job.peers->take_descriptor(Rank{0}, 5, 10.0);
      EXPECT_EQ(taken.status().code(), IST_ERR_SYSTEM);
      taken = job.peers->take_descriptor(Rank{0}, 5, 0.0);
      EXPECT_TRUE(taken.ok() && !taken->has_value());
    }
    EXPECT_TRUE(job.boot->all_gather("done").ok());
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Peers, taking_what_was_not_sent_gives_none_after_the_wait_and_an_error_once_the_peer_hung_up) {
  const auto ends = run_launched(2, [](int rank) {
    auto job = connect_or_fail();
    if (rank == 1) {
      const double start = now();
      auto none = job.peers->take_descriptor(Rank{0}, 7, 0.1);
      ASSERT_TRUE(none.ok());
      EXPECT_FALSE(none->has_value());
      EXPECT_GE(now() - start, 0.09);
      none = job.peers->take_descriptor(Rank{0}, 7, 0.0);
      ASSERT_TRUE(none.ok());
      EXPECT_FALSE(none->has_value());
    }
    EXPECT_TRUE(job.boot->all_gather("waited").ok());
    if (rank == 0) return;  // hangs up
    const auto gone = job.peers->take_descriptor(Rank{0}, 7, 10.0);
    EXPECT_EQ(gone.status().code(), IST_ERR_PEER_DEAD);
    EXPECT_NE(gone.status().text().find("rank 0"), std::string::npos);
    const Status unsent = job.peers->send_descriptor(Rank{0}, 7, 0);
    EXPECT_EQ(unsent.code(), IST_ERR_PEER_DEAD);
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Peers, what_a_rank_sent_before_it_ended_can_still_be_taken) {
  const auto ends = run_launched(2, [](int rank) {
    auto job = connect_or_fail();
    if (rank == 0) {
      give_memory_to(*job.peers, Rank{1}, "last words");
      ::kill(::getpid(), SIGKILL);
    }
    ::usleep(100000);
    auto taken = job.peers->take_descriptor(Rank{0}, purpose_of(0, 1), 10.0);
    ASSERT_TRUE(taken.ok()) << taken.status().text();
    ASSERT_TRUE(taken->has_value());
    auto memory = SharedMemory::open(std::move(**taken), Bytes{10});
    EXPECT_EQ(std::memcmp(memory->data(), "last words", 10), 0);
  });
  EXPECT_EQ(ends, (std::vector{-SIGKILL, 0}));
}

TEST(Peers, no_descriptor_goes_to_oneself) {
  const auto ends = run_launched(1, [](int) {
    auto job = connect_or_fail();
    EXPECT_EQ(job.peers->send_descriptor(Rank{0}, 1, 0).code(), IST_ERR_UNREACHABLE);
    EXPECT_EQ(job.peers->take_descriptor(Rank{0}, 1, 0).status().code(), IST_ERR_UNREACHABLE);
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Peers, everybody_hears_what_each_says_of_itself_and_for_all_only_rank_0) {
  // Any bytes, and more than fit a line.
  const auto words_of = [](int rank) { return std::string("\0\n\"", 3) + std::string(5000, static_cast<char>('a' + rank)); };
  for (const int size : {1, 3}) {
    const auto ends = run_launched(size, [&](int rank) {
      auto boot = join_job(Settings{});
      ASSERT_TRUE(boot.ok());
      const auto peers = Peers::connect(**boot, Settings{}, {.about = "of " + words_of(rank), .for_all = words_of(rank)});
      ASSERT_TRUE(peers.ok()) << peers.status().text();
      EXPECT_EQ((*peers)->heard(), words_of(0));
      for (int other = 0; other < size; ++other) EXPECT_EQ((*peers)->at(Rank{other}).about, "of " + words_of(other));
    });
    EXPECT_EQ(failures(ends), 0);
  }
}

TEST(Peers, ranks_of_two_users_are_refused_by_all_naming_both) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const auto ends = run_launched(3, [](int rank) {
    if (rank == 2 && ::setuid(65534) != 0) FAIL() << "setuid";
    auto boot = join_job(Settings{});
    ASSERT_TRUE(boot.ok());
    const auto peers = Peers::connect(**boot, Settings{});
    EXPECT_EQ(peers.status().code(), IST_ERR_BOOT);
    EXPECT_NE(peers.status().text().find("uid 0"), std::string::npos) << peers.status().text();
    EXPECT_NE(peers.status().text().find("uid 65534"), std::string::npos) << peers.status().text();
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(PairSockets, a_peer_that_lied_about_its_user_is_found_out_by_the_kernel) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  auto listener = PairListener::open();
  ASSERT_TRUE(listener.ok());
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(65534) != 0) ::_exit(2);
    const auto refused = connect_pair(Rank{1}, Rank{0}, listener->address(), Deadline::after(5));
    if (refused.ok() || refused.status().text().find("uid 65534") == std::string::npos) ::_exit(1);
    // and, were the check on its side left out:
    const PairAddress& address = listener->address();
    sockaddr_un where{};
    where.sun_family = AF_UNIX;
    std::memcpy(where.sun_path + 1, address.name.data(), address.name.size());
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + address.name.size());
    if (::connect(socket, reinterpret_cast<sockaddr*>(&where), length) != 0) ::_exit(3);
    Frame hello;
    hello.type = FrameType::hello;
    hello.token = address.token;
    hello.payload = std::string("\1\0\0\0\0\0\0\0", 8);
    FrameSocket sender{FileDescriptor{socket}};
    sender.queue(hello);
    ::_exit(sender.flush(Deadline::after(5)) && ::usleep(300000) == 0 ? 0 : 4);
  }
  const auto sockets = listener->accept({Rank{1}}, Deadline::after(5));
  EXPECT_EQ(sockets.status().code(), IST_ERR_BOOT);
  EXPECT_NE(sockets.status().text().find("runs as uid 65534, this process as uid 0"), std::string::npos)
      << sockets.status().text();
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(PairSockets, strangers_without_the_token_are_turned_away_and_the_rank_gets_in) {
  auto listener = PairListener::open();
  ASSERT_TRUE(listener.ok());
  std::thread others([&] {
    PairAddress wrong = listener->address();
    wrong.token ^= 1;
    const auto stranger = connect_pair(Rank{1}, Rank{0}, wrong, Deadline::after(5));
    const auto nobody = connect_pair(Rank{77}, Rank{0}, listener->address(), Deadline::after(5));
    const auto right = connect_pair(Rank{1}, Rank{0}, listener->address(), Deadline::after(5));
    ASSERT_TRUE(right.ok());
    char byte = 0;
    EXPECT_EQ(::recv(right->get(), &byte, 1, MSG_DONTWAIT), -1);
    ::usleep(100000);
    EXPECT_EQ(::recv(stranger->get(), &byte, 1, MSG_DONTWAIT), 0);  // hung up on
  });
  const auto sockets = listener->accept({Rank{1}}, Deadline::after(5));
  EXPECT_TRUE(sockets.ok()) << sockets.status().text();
  others.join();
}

TEST(PairSockets, ranks_that_do_not_connect_are_named) {
  auto listener = PairListener::open();
  ASSERT_TRUE(listener.ok());
  const auto sockets = listener->accept({Rank{3}, Rank{5}}, Deadline::after(0.05));
  EXPECT_EQ(sockets.status().code(), IST_ERR_BOOT);
  EXPECT_NE(sockets.status().text().find("ranks 3 and 5"), std::string::npos);
  PairAddress gone = listener->address();
  gone.name += "x";
  const auto none = connect_pair(Rank{1}, Rank{0}, gone, Deadline::after(1));
  EXPECT_NE(none.status().text().find("rank 0"), std::string::npos) << none.status().text();
}

TEST(Peers, ranks_outnumbering_processors_are_noticed) {
  const auto ends = run_launched(2, [](int rank) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    auto job = connect_or_fail();
    EXPECT_TRUE(job.peers->oversubscribed()) << "both ranks are bound to processor 0";
    EXPECT_EQ(job.peers->at(Rank{1 - rank}).cores, 1);
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Peers, nothing_appears_in_the_file_system_or_stays_among_the_unix_addresses) {
  const auto ends = run_launched(2, [](int) {
    auto job = connect_or_fail();
    everyone_gives_memory_to_everyone(*job.peers);
  });
  EXPECT_EQ(failures(ends), 0);
  std::ifstream table{"/proc/net/unix"};
  for (std::string line; std::getline(table, line);) EXPECT_EQ(line.find("/isthmus"), std::string::npos) << line;
}

}  // namespace
}  // namespace ist::test
