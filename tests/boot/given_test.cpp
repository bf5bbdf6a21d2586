#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "boot/given_boot.hpp"
#include "ranks.hpp"

namespace ist::test {
namespace {

constexpr int kFault = 77;

// An exchange as a program could have it: through the test's launcher.
struct OwnExchange {
  Boot* boot = nullptr;
  int calls = 0;
  int fails_at = -1;
};

int own_all_gather(void* context, const void* mine, void* all, std::size_t bytes) {
  auto& own = *static_cast<OwnExchange*>(context);
  EXPECT_GT(bytes, 0U);
  if (own.calls++ == own.fails_at) return kFault;
  const auto blobs = own.boot->all_gather(std::string{static_cast<const char*>(mine), bytes});
  if (!blobs.ok()) return 1;
  for (std::size_t rank = 0; rank < blobs->size(); ++rank) {
    EXPECT_EQ((*blobs)[rank].size(), bytes) << "every rank gives the same number of bytes";
    std::memcpy(static_cast<char*>(all) + rank * bytes, (*blobs)[rank].data(), bytes);
  }
  return 0;
}

void own_error_text(void*, int error, char* text, std::size_t room) {
  std::snprintf(text, room, "%s", error == kFault ? "the cable is out" : "something else");
}

ist_boot_functions table(OwnExchange& own) {
  return {
      sizeof(ist_boot_functions), &own, own.boot->rank().value, own.boot->size(), own_all_gather, own_error_text, nullptr};
}

TEST(Given, every_rank_gets_every_blob_of_any_size) {
  const auto ends = run_launched(3, [](int rank) {
    auto launched = join_job(Settings{});
    ASSERT_TRUE(launched.ok());
    OwnExchange own{launched->get()};
    const auto exchange = std::make_shared<GivenExchange>(table(own));
    const std::unique_ptr<Boot> boot = make_given_boot(exchange);
    EXPECT_EQ(boot->name(), "given");
    EXPECT_EQ(boot->rank().value, rank);
    EXPECT_EQ(boot->size(), 3);
    for (const std::size_t length : {0UL, 1UL, 7UL, 8UL, 9UL, 4097UL, 100001UL}) {
      const auto blob = [&](int from) { return blob_of(from, 0, length * static_cast<std::size_t>(from + 1)); };
      const auto all = boot->all_gather(blob(rank));
      ASSERT_TRUE(all.ok()) << all.status().text();
      for (int from = 0; from < 3; ++from) EXPECT_TRUE((*all)[static_cast<std::size_t>(from)] == blob(from));
    }
    EXPECT_TRUE(exchange->agree({}).ok());
    exchange->close();
    EXPECT_NE(boot->all_gather("x").status().text().find("has ended with that call"), std::string::npos);
    // The launcher's socket still serves.
    EXPECT_EQ((*join_job(Settings{}))->name(), "launcher");
  });
  EXPECT_EQ(failures(ends), 0);
}

TEST(Given, a_rank_that_fails_before_between_or_after_the_exchanges_fails_all_and_none_hangs) {
  for (const int rounds_before : {0, 1, 2}) {
    const auto ends = run_launched(3, [&](int rank) {
      auto launched = join_job(Settings{});
      ASSERT_TRUE(launched.ok());
      OwnExchange own{launched->get()};
      GivenExchange exchange{table(own)};
      Status status;
      for (int round = 0; round < 2 && status.ok(); ++round) {
        if (rank == 1 && round == rounds_before) status = Status{IST_ERR_SETTING, "rank 1's own trouble"};
        if (status.ok()) status = exchange.all_gather("blob").status();
      }
      if (rank == 1 && rounds_before == 2) status = Status{IST_ERR_SETTING, "rank 1's own trouble"};
      const Status all = exchange.agree(status);
      EXPECT_FALSE(all.ok());
      EXPECT_NE(all.text().find(rank == 1 ? "rank 1's own trouble" : "rank 1 could not create the world"), std::string::npos)
          << all.text();
      // Nothing is left in the exchange: it works on.
      EXPECT_TRUE((*launched)->all_gather("after").ok());
    });
    EXPECT_EQ(failures(ends), 0) << rounds_before;
  }
}

TEST(Given, a_failure_of_the_exchange_itself_is_told_in_its_own_words) {
  const auto ends = run_launched(2, [](int) {
    auto launched = join_job(Settings{});
    ASSERT_TRUE(launched.ok());
    for (const int call : {0, 1}) {
      OwnExchange own{launched->get(), 0, call};
      GivenExchange exchange{table(own)};
      const Status status = exchange.all_gather("blob").status();
      EXPECT_EQ(status.code(), IST_ERR_BOOT);
      EXPECT_NE(status.text().find("failed with 77: the cable is out"), std::string::npos) << status.text();
      EXPECT_EQ(exchange.agree(status).text(), status.text());
      EXPECT_EQ(own.calls, call + 1) << "nobody comes to a further exchange";
    }
  });
  EXPECT_EQ(failures(ends), 0);
}

}  // namespace
}  // namespace ist::test
