// Ranks whose machines have been measured to be different still choose the same algorithms: by the numbers of rank 0.
#include <isthmus/collective.h>

#include <array>
#include <cmath>
#include <cstdlib>

#include "rank_test.hpp"

namespace {

using namespace rank_test;

// A world in which this rank was given that profile, or another variable; it is as before afterwards.
class WorldWithProfile {
 public:
  explicit WorldWithProfile(const std::string& value, const char* variable = "ISTHMUS_PROFILE") {
    const char* before = std::getenv(variable);
    const std::string kept = before != nullptr ? before : "";
    ::setenv(variable, value.c_str(), 1);
    EXPECT_EQ(IST_OK, ist_world_create(&world_)) << ist_error_text();
    EXPECT_EQ(IST_OK, ist_world_comm(world_, &comm_)) << ist_error_text();
    if (before != nullptr)
      ::setenv(variable, kept.c_str(), 1);
    else
      ::unsetenv(variable);
  }
  ~WorldWithProfile() { EXPECT_EQ(IST_OK, ist_world_destroy(&world_)) << ist_error_text(); }
  WorldWithProfile(const WorldWithProfile&) = delete;
  WorldWithProfile& operator=(const WorldWithProfile&) = delete;
  ist_comm comm() const { return comm_; }

 private:
  ist_world world_ = IST_WORLD_NULL;
  ist_comm comm_ = IST_COMM_NULL;
};

std::string file(const char* name) {
  std::string path{PROFILES "/"};
  return path.append(name).append(".json");
}

constexpr std::array kSizes{1, 5, 300, 1000, 5000, 100000};

void every_chosen_call(ist_comm comm) {
  int here = -1;
  int all = -1;
  IST_OK_OR_FAIL(ist_comm_rank(comm, &here));
  IST_OK_OR_FAIL(ist_comm_size(comm, &all));
  for (const int count : kSizes) {
    const int root = count % all;
    std::vector<std::int32_t> mine(at(count));
    for (int i = 0; i < count; ++i) mine[at(i)] = (here + 1) * (i % 1000);
    std::vector<std::int32_t> sum(at(count));
    std::vector<std::int32_t> expected(at(count));
    for (int i = 0; i < count; ++i) expected[at(i)] = all * (all + 1) / 2 * (i % 1000);
    IST_OK_OR_FAIL(ist_allreduce(ist_host(mine.data()), ist_host(sum.data()), count, IST_INT32, IST_SUM, comm));
    EXPECT_EQ(expected, sum) << count;
    std::vector<std::int32_t> at_root(at(count), -1);
    IST_OK_OR_FAIL(ist_reduce(ist_host(mine.data()), ist_host(at_root.data()), count, IST_INT32, IST_SUM, root, comm));
    EXPECT_EQ(here == root ? expected : std::vector<std::int32_t>(at(count), -1), at_root) << count;
    std::vector<std::int32_t> told = mine;
    IST_OK_OR_FAIL(ist_bcast(ist_host(told.data()), count, IST_INT32, root, comm));
    for (int i = 0; i < count; ++i) ASSERT_EQ((root + 1) * (i % 1000), told[at(i)]) << count;
    std::vector<std::int32_t> gathered(at(count * all));
    IST_OK_OR_FAIL(ist_allgather(ist_host(mine.data()), count, ist_host(gathered.data()), count, IST_INT32, comm));
    for (int r = 0; r < all; ++r)
      for (int i = 0; i < count; ++i) ASSERT_EQ((r + 1) * (i % 1000), gathered[at(r * count + i)]) << count;
  }
}

// In the world and in what is derived from it: communicators inherit the numbers.
void everywhere(const WorldWithProfile& there) {
  every_chosen_call(there.comm());
  int here = -1;
  IST_OK_OR_FAIL(ist_comm_rank(there.comm(), &here));
  ist_comm reversed = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_comm_split(there.comm(), 0, -here, &reversed));
  every_chosen_call(reversed);
  ist_comm again = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_comm_dup(reversed, &again));
  every_chosen_call(again);
  IST_OK_OR_FAIL(ist_comm_free(&again));
  IST_OK_OR_FAIL(ist_comm_free(&reversed));
}

TEST(Profiles, RanksThatWereGivenDifferentOnesChooseAlikeAndFinish) {
  const std::array names{"flat", "trees", "direct", "rings"};
  for (int turn = 0; turn < static_cast<int>(names.size()); ++turn) {
    const WorldWithProfile there{file(names[at((rank() + turn) % static_cast<int>(names.size()))])};
    everywhere(there);
    if (HasFatalFailure()) return;
  }
}

TEST(Profiles, ARankWithoutOneOrWithABrokenOneDoesAsRank0Does) {
  for (const bool first_is_broken : {false, true}) {
    const bool broken = (rank() == 0) == first_is_broken;
    const WorldWithProfile there{broken ? file("missing") : file("rings")};
    everywhere(there);
    if (HasFatalFailure()) return;
  }
}

// From which size on messages are announced is a number of the choice, too.
TEST(Profiles, RanksThatAnnounceFromDifferentSizesOnDoAsRank0Does) {
  for (const bool first_announces_all : {false, true}) {
    const WorldWithProfile there{(rank() == 0) == first_announces_all ? "0" : "65536", "ISTHMUS_EAGER_LIMIT"};
    everywhere(there);
    if (HasFatalFailure()) return;
  }
}

// Floats, where every order gives other bits: the order may depend on the numbers, but never on the time or the rank.
TEST(Profiles, TheSameNumbersGiveTheSameBitsInAnotherWorld) {
  for (const char* name : {"flat", "trees", "direct", "rings"}) {
    std::vector<std::vector<float>> results;
    for (int time = 0; time < 2; ++time) {
      const WorldWithProfile there{file(time == 0 || rank() == 0 ? name : "missing")};
      std::vector<float> values(2000);
      std::mt19937 generator(static_cast<unsigned>(rank()) + 1);
      for (float& value : values)
        value = std::ldexp(static_cast<float>(generator() % 1000), static_cast<int>(generator() % 20));
      IST_OK_OR_FAIL(ist_allreduce(IST_IN_PLACE, ist_host(values.data()), 2000, IST_FLOAT, IST_SUM, there.comm()));
      results.push_back(values);
      std::vector<float> of_root = values;
      IST_OK_OR_FAIL(ist_bcast(ist_host(of_root.data()), 2000, IST_FLOAT, 0, there.comm()));
      EXPECT_EQ(0, std::memcmp(of_root.data(), values.data(), values.size() * sizeof(float))) << name;
    }
    EXPECT_EQ(0, std::memcmp(results[0].data(), results[1].data(), results[0].size() * sizeof(float))) << name;
  }
}

// One message to the next rank and one from the rank before: how it came, its bytes compared.
std::string how_it_came(ist_comm comm, std::size_t bytes) {
  const int from = (rank() + size() - 1) % size();
  const std::vector<unsigned char> sent = random_bytes(bytes, static_cast<std::uint64_t>(rank()));
  std::vector<unsigned char> got(bytes + 1, 0xa5);
  ist_status status{};
  const auto count = static_cast<std::int64_t>(bytes);
  EXPECT_EQ(IST_OK, ist_sendrecv(ist_host(sent.data()), count, IST_BYTE, (rank() + 1) % size(), 5, ist_host(got.data()),
                                 count, IST_BYTE, from, 5, comm, &status))
      << ist_error_text();
  std::vector<unsigned char> expected = random_bytes(bytes, static_cast<std::uint64_t>(from));
  expected.push_back(0xa5);
  EXPECT_EQ(expected, got) << bytes;
  return ist_carrier_name(status.carrier);
}

bool may_be_read(ist_comm comm) {
  std::array<char, 4096> text{};
  EXPECT_EQ(IST_OK, ist_explain(ist_host(text.data()), 1 << 20, IST_BYTE, (rank() + 1) % size(), comm, text.data(),
                                text.size(), nullptr));
  const std::string said = text.data();
  const std::size_t line = said.find("single copy", said.find("ring "));
  return said.substr(line, said.find('\n', line) - line).find("refused") == std::string::npos;
}

// Where the ranks may not read each other's memory, or each has no processor of its own, slots go on to their end.
TEST(Profiles, SlotsEndWhereOneCopyWasMeasuredToBeQuicker) {
  if (size() < 2) GTEST_SKIP() << "not covered here: messages between two ranks; takes two";
  for (const char* way : {"wait=spin", "wait=spin single_copy=never", "wait=sleep"}) {
    const bool reads = way == std::string_view{"wait=spin"};
    ist_world there = IST_WORLD_NULL;
    const std::string settings = std::string{way}.append(" profile=").append(file("short_slots"));
    IST_OK_OR_FAIL(ist_world_create_configured(settings.c_str(), &there));
    ist_comm comm = IST_COMM_NULL;
    IST_OK_OR_FAIL(ist_world_comm(there, &comm));
    EXPECT_EQ("slot", how_it_came(comm, 20000));
    EXPECT_EQ(reads && may_be_read(comm), how_it_came(comm, 20001) != "slot");
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{16384}, std::size_t{16385}, std::size_t{40000},
                                    std::size_t{131072}, std::size_t{131073}})
      for (int again = 0; again < 3; ++again) how_it_came(comm, bytes);
    IST_OK_OR_FAIL(ist_world_destroy(&there));
  }
}

}  // namespace
