// Slots or one copy, as the first world of a machine finds out: what is kept, what the next world makes of it, and a rank that dies meanwhile. The
// ranks are forked, and the folder where such things are kept is a test's own.
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "forked_ranks.hpp"
#include "path/shm/peer_memory.hpp"

namespace {

using namespace forked_ranks;

class SlotsTrial : public testing::Test {
 protected:
  SlotsTrial() : folder_(std::filesystem::temp_directory_path() / ("isthmus-slots-trial-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~SlotsTrial() override { std::filesystem::remove_all(folder_); }
  void SetUp() override {
    cpu_set_t processors;
    if (::sched_getaffinity(0, sizeof processors, &processors) != 0 || CPU_COUNT(&processors) < 2)
      GTEST_SKIP() << "not covered here: slots beside one copy; ranks that share a processor try nothing, and there is one";
    if (const ist::Status possible = ist::PeerMemory::possible(); !possible.ok())
      GTEST_SKIP() << "not covered here: slots beside one copy; there is one way to copy, since " << possible.text();
    variables_ = std::make_unique<Variables>(
        std::initializer_list<Variables::Pair>{{"ISTHMUS_PROFILE", "auto"}, {"XDG_CACHE_HOME", folder_.c_str()}});
  }
  // Null: there is no such file.
  nlohmann::json kept() const {
    std::error_code none;
    for (const auto& file : std::filesystem::directory_iterator(folder_ / "isthmus", none)) {
      std::ifstream stream(file.path());
      return nlohmann::json::parse(stream, nullptr, false);
    }
    return {};
  }
  // As if it had been found out, or tried, before.
  void keep(const std::string& name, const nlohmann::json& value) const { keep(kept(), name, value); }
  // And nothing else of slots.
  void keep_alone(const std::string& name, const nlohmann::json& value) const {
    nlohmann::json all = kept();
    for (const char* of_slots : {"slots_up_to", "slots_up_to_of_one", "slot_trials"}) all.erase(of_slots);
    keep(all, name, value);
  }
  void keep(nlohmann::json all, const std::string& name, const nlohmann::json& value) const {
    ASSERT_TRUE(all.is_object());
    all[name] = value;
    for (const auto& file : std::filesystem::directory_iterator(folder_ / "isthmus"))
      std::ofstream(file.path()) << all.dump();
  }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  std::unique_ptr<Variables> variables_;
};

// Messages that went between this rank and that one, by that carrier.
std::int64_t messages(const Here& here, int peer, ist_carrier carrier) {
  ist_traffic traffic{};
  traffic.size = sizeof traffic;
  if (ist_world_traffic(here.world, peer, carrier, &traffic) != IST_OK) return -1;
  return static_cast<std::int64_t>(traffic.messages_sent + traffic.messages_received);
}

// One message of so many bytes, and by what it came.
int sends(const Here& here, std::size_t bytes, int carrier) {
  std::vector<std::byte> data(bytes, std::byte{static_cast<unsigned char>(here.rank == 0 ? 7 : 0)});
  ist_status status{};
  const auto count = static_cast<std::int64_t>(bytes);
  if (here.rank == 0) return ist_send(ist_host(data.data()), count, IST_BYTE, 1, 5, here.comm) == IST_OK ? 0 : 1;
  if (here.rank != 1) return 0;
  if (ist_recv(ist_host(data.data()), count, IST_BYTE, 0, 5, here.comm, &status) != IST_OK) return 1;
  for (const std::byte byte : data)
    if (byte != std::byte{7}) return 1;
  if ((status.carrier == IST_CARRIER_SLOT) == (carrier == IST_CARRIER_SLOT)) return 0;
  std::fprintf(stderr, "[1] %zu bytes came by carrier %d\n", bytes, status.carrier);
  return 1;
}

TEST_F(SlotsTrial, isMadeOnceByTheFirstWorldOfAMachineAndNotCounted) {
  expect_all(run_ranks(2, "host", [](const Here& here) {
    const int other = 1 - here.rank;
    // A barrier goes by memory that both see.
    if (messages(here, other, IST_CARRIER_SLOT) == 0 && messages(here, other, IST_CARRIER_RING) == 0 &&
        messages(here, other, IST_CARRIER_DIRECT) == 0 && messages(here, other, IST_CARRIER_SINGLE_COPY) == 0)
      return sends(here, 1000, IST_CARRIER_SLOT);
    return 1;
  }));
  const nlohmann::json first = kept();
  ASSERT_TRUE(first.is_object());
  // Where the processors have much else to do it cannot be told.
  const char* const found = first.contains("slots_up_to") ? "slots_up_to" : "slots_up_to_of_one";
  if (first.contains(found)) {
    EXPECT_GE(first[found], 16384);
    EXPECT_LE(first[found], found == std::string{"slots_up_to"} ? 131072 : 131071);
    EXPECT_FALSE(first.contains("slot_trials")) << first;
  } else {
    EXPECT_EQ(first.value("slot_trials", 0), 1) << first;
  }
  keep("slots_up_to", 30000);
  expect_all(run_ranks(2, "host", [](const Here& here) {
    return sends(here, 30000, IST_CARRIER_SLOT) + sends(here, 30001, IST_CARRIER_DIRECT);
  }));
  EXPECT_EQ(kept()["slots_up_to"], 30000) << "it was known";
}

// The more counts, in that world already, for both.
TEST_F(SlotsTrial, isMadeByASecondWorldWhereTheFirstFoundLessThanSlotsTake) {
  expect_all(run_ranks(2, "host", [](const Here& /*here*/) { return 0; }));
  keep_alone("slots_up_to_of_one", 98304);
  // Where the processors have much else to do it cannot be told, and so the next world tries; after three in vain what the first one found counts.
  for (int world = 0; world < 3 && !kept().contains("slots_up_to"); ++world)
    expect_all(run_ranks(2, "host", [](const Here& here) { return sends(here, 1000, IST_CARRIER_SLOT); }));
  const nlohmann::json found = kept();
  ASSERT_TRUE(found.contains("slots_up_to")) << found;
  EXPECT_GE(found["slots_up_to"], 98304);
  EXPECT_FALSE(found.contains("slots_up_to_of_one")) << found;
  expect_all(run_ranks(2, "host", [](const Here& here) { return sends(here, 98304, IST_CARRIER_SLOT); }));
}

TEST_F(SlotsTrial, isNotMadeOverAndOverInVain) {
  expect_all(run_ranks(2, "host", [](const Here& /*here*/) { return 0; }));
  keep_alone("slot_trials", 3);
  expect_all(run_ranks(2, "host", [](const Here& here) { return sends(here, 131072, IST_CARRIER_SLOT); }));
  EXPECT_EQ(kept()["slot_trials"], 3);
  EXPECT_FALSE(kept().contains("slots_up_to"));
}

// Two ranks, each of which is what `one` makes of it; their wait statuses.
std::vector<int> two_ranks(const std::function<int(int rank, int port)>& one) {
  const int port = free_port();
  std::vector<int> statuses;
  std::vector<pid_t> children;
  for (int rank = 0; rank < 2; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(one(rank, port));
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    statuses.push_back(status);
  }
  return statuses;
}

// By one rank's word for both, whichever it is.
TEST_F(SlotsTrial, isNotMadeWhereOneOfTheTwoDoesNot) {
  const std::string trace = (folder() / "trace-%r.json").string();
  for (const Variables::Pair& setting : std::initializer_list<Variables::Pair>{
           {"ISTHMUS_PROFILE", "builtin"}, {"ISTHMUS_TRACE", trace.c_str()}, {"ISTHMUS_PROGRESS_THREAD", "1"}})
    for (const int who : {0, 1}) {
      expect_all(two_ranks([&](int rank, int port) {
        if (rank == who) ::setenv(setting.first, setting.second, 1);
        return be_rank(
            rank, 2, port, "host", [](const Here& here) { return sends(here, 131072, IST_CARRIER_SLOT); }, nullptr);
      }));
      EXPECT_TRUE(kept().is_null()) << setting.first << " of rank " << who;
    }
}

// Where it would tell of something else, or could not be kept.
TEST_F(SlotsTrial, isNotMadeWhereItWouldNotCount) {
  for (const Variables::Pair& setting : std::initializer_list<Variables::Pair>{{"ISTHMUS_PROFILE", "builtin"},
                                                                               {"ISTHMUS_SINGLE_COPY", "always"},
                                                                               {"ISTHMUS_WAIT", "sleep"},
                                                                               {"ISTHMUS_EAGER_LIMIT", "8KiB"},
                                                                               {"ISTHMUS_CHECK", "1"},
                                                                               {"ISTHMUS_PROGRESS_THREAD", "1"}}) {
    {
      const Variables more{setting};
      expect_all(run_ranks(2, "host", [](const Here& here) { return sends(here, 100, IST_CARRIER_SLOT); }));
    }
    ::setenv("ISTHMUS_PROFILE", "auto", 1);
    EXPECT_TRUE(kept().is_null()) << setting.first;
  }
  std::ofstream{folder() / "isthmus"} << "in the way";
  expect_all(run_ranks(2, "host", [](const Here& here) { return sends(here, 131072, IST_CARRIER_SLOT); }));
}

// Of more ranks than processors nobody does, and a rank by itself has nobody to try it with.
TEST_F(SlotsTrial, isNotMadeByOneOrByManyOnFewProcessors) {
  expect_all(run_ranks(1, "host", [](const Here& /*here*/) { return 0; }));
  cpu_set_t processors;
  ASSERT_EQ(0, ::sched_getaffinity(0, sizeof processors, &processors));
  if (CPU_COUNT(&processors) < 7)
    expect_all(run_ranks(7, "host", [](const Here& here) { return sends(here, 131072, IST_CARRIER_SLOT); }));
  EXPECT_TRUE(kept().is_null());
}

// At whatever moment: the others have a world, or an error, and what they do with it tells of the dead one.
TEST_F(SlotsTrial, endsWithARankThatDies) {
  for (const int victim : {0, 1})
    for (int milliseconds = 2; milliseconds < 60; milliseconds += 6) {
      std::filesystem::remove_all(folder() / "isthmus");
      const Variables variables{{"ISTHMUS_BOOT_TIMEOUT", "1"}};
      const std::vector<int> statuses = two_ranks([&](int rank, int port) {
        if (rank == victim)
          std::thread([milliseconds] {
            std::this_thread::sleep_for(std::chrono::milliseconds{milliseconds});
            ::kill(::getpid(), SIGKILL);
          }).detach();
        const Body wait_for_the_other = [](const Here& here) {
          int got = 0;
          const int code = ist_recv(ist_host(&got), 1, IST_INT, 1 - here.rank, 1, here.comm, IST_STATUS_IGNORE);
          return code == IST_ERR_PEER_DEAD ? 0 : 1;
        };
        return be_rank(rank, 2, port, "host", wait_for_the_other, nullptr);
      });
      const int left = statuses[static_cast<std::size_t>(1 - victim)];
      // 99: it has no world, or its first barrier failed.
      EXPECT_TRUE(WIFEXITED(left) && (WEXITSTATUS(left) == 0 || WEXITSTATUS(left) == 99))
          << "rank " << 1 - victim << ", " << milliseconds << " ms: " << left;
    }
}

}  // namespace
