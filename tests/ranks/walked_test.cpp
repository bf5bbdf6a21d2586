// Calls that block, of host memory and of more than is eager: each step is done as it is written down, and what a rank sends may want room
// that another has to make. On 1 to 6 ranks; more than two take memory that all see by the built-in numbers, and messages by those of on_3_ranks_by_flat and
// the like.
#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "collective_support.hpp"

namespace {

using namespace rank_test;
using namespace collective_test;

constexpr std::array<std::size_t, 3> kLong{16385, 40001, 65536};

Bytes bytes_of(int from, int to, std::size_t bytes, int call) {
  return random_bytes(bytes, static_cast<std::uint64_t>(call) * 4096 + static_cast<std::uint64_t>(from * 64 + to));
}

void nap_sometimes(const Member& here, int call) {
  if (here.rank == here.size - 1 && call % 40 == 5) std::this_thread::sleep_for(std::chrono::milliseconds(3));
}

// What the ranks `to` have from `from`, in one buffer, and what `to` has from all.
Bytes from_one(int from, const Member& here, std::size_t bytes, int call) {
  std::vector<Bytes> parts;
  for (int to = 0; to < here.size; ++to) parts.push_back(bytes_of(from, to, bytes, call));
  return joined(parts);
}
Bytes to_one(int to, const Member& here, std::size_t bytes, int call) {
  std::vector<Bytes> parts;
  for (int from = 0; from < here.size; ++from) parts.push_back(bytes_of(from, to, bytes, call));
  return joined(parts);
}

void scatter_and_compare(const Member& here, int root, std::size_t bytes, int call) {
  const Bytes whole = here.rank == root ? from_one(root, here, bytes, call) : Bytes{};
  Bytes part(bytes, 0xee);
  const auto count = static_cast<std::int64_t>(bytes);
  IST_OK_OR_FAIL(ist_scatter(ist_host(whole.data()), count, ist_host(part.data()), count, IST_BYTE, root, here.comm));
  EXPECT_EQ(-1, first_difference(bytes_of(root, here.rank, bytes, call), part)) << "scatter " << call;
}

void gather_and_compare(const Member& here, int root, std::size_t bytes, int call) {
  const Bytes part = bytes_of(here.rank, root, bytes, call);
  Bytes whole(here.rank == root ? bytes * static_cast<std::size_t>(here.size) : 0, 0xee);
  const auto count = static_cast<std::int64_t>(bytes);
  IST_OK_OR_FAIL(ist_gather(ist_host(part.data()), count, ist_host(whole.data()), count, IST_BYTE, root, here.comm));
  if (here.rank == root) {
    EXPECT_EQ(-1, first_difference(to_one(root, here, bytes, call), whole)) << "gather " << call;
  }
}

void broadcast_and_compare(const Member& here, int root, std::size_t bytes, int call) {
  Bytes buffer = here.rank == root ? bytes_of(root, 0, bytes, call) : Bytes(bytes, 0xee);
  IST_OK_OR_FAIL(ist_bcast(ist_host(buffer.data()), static_cast<std::int64_t>(bytes), IST_BYTE, root, here.comm));
  EXPECT_EQ(-1, first_difference(bytes_of(root, 0, bytes, call), buffer)) << "bcast " << call;
}

void exchange_and_compare(const Member& here, std::size_t bytes, int call) {
  const auto count = static_cast<std::int64_t>(bytes);
  const Bytes out = from_one(here.rank, here, bytes, call);
  Bytes in(out.size(), 0xee);
  IST_OK_OR_FAIL(ist_alltoall(ist_host(out.data()), ist_host(in.data()), count, IST_BYTE, here.comm));
  EXPECT_EQ(-1, first_difference(to_one(here.rank, here, bytes, call), in)) << "alltoall " << call;
  const Bytes mine = bytes_of(here.rank, 0, bytes, call);
  Bytes all(out.size(), 0xee);
  IST_OK_OR_FAIL(ist_allgather(ist_host(mine.data()), count, ist_host(all.data()), count, IST_BYTE, here.comm));
  EXPECT_EQ(-1, first_difference(to_one(0, here, bytes, call), all)) << "allgather " << call;
}

class Walked : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Bytes, Walked, testing::ValuesIn(kLong), testing::PrintToStringParamName());

// More calls than a pair's room holds messages.
TEST_P(Walked, RanksThatRunAheadOfTheOthersWaitForRoom) {
  const Member here{comm()};
  for (int call = 0; call < 100; ++call) {
    nap_sometimes(here, call);
    scatter_and_compare(here, 0, GetParam(), call);
  }
  for (int call = 0; call < 100; ++call) {
    nap_sometimes(here, call);
    gather_and_compare(here, here.size - 1, GetParam(), call);
  }
  for (int call = 0; call < 100; ++call) {
    nap_sometimes(here, call);
    broadcast_and_compare(here, call / 50 % here.size, GetParam(), call);
  }
}

TEST_P(Walked, CallsInWhichAllSendGoOnHoweverLateARankIs) {
  const Member here{comm()};
  for (int call = 0; call < 60; ++call) {
    nap_sometimes(here, call);
    exchange_and_compare(here, GetParam(), call);
  }
}

// In every pair's room, which is full of the longest ones, lie messages whose receives begin after the calls.
TEST_P(Walked, MessagesThatNobodyReceivesYetHoldUpNoCall) {
  const Member here{comm()};
  constexpr int kEach = 80;
  std::vector<Bytes> sent;
  std::vector<ist_request> requests;
  const auto count = static_cast<std::int64_t>(GetParam());
  for (int other = 0; other < here.size; ++other) {
    for (int i = 0; other != here.rank && i < kEach; ++i) {
      sent.push_back(bytes_of(here.rank, other, GetParam(), 1000 + i));
      IST_OK_OR_FAIL(ist_isend(ist_host(sent.back().data()), count, IST_BYTE, other, i, here.comm,
                               &requests.emplace_back(IST_REQUEST_NULL)));
    }
  }
  for (int call = 0; call < 3; ++call) {
    exchange_and_compare(here, GetParam(), call);
    broadcast_and_compare(here, 0, GetParam(), call);
    gather_and_compare(here, 0, GetParam(), call);
    scatter_and_compare(here, here.size - 1, GetParam(), call);
  }
  for (int other = 0; other < here.size; ++other) {
    for (int i = 0; other != here.rank && i < kEach; ++i) {
      Bytes got(GetParam(), 0xee);
      IST_OK_OR_FAIL(ist_recv(ist_host(got.data()), count, IST_BYTE, other, i, here.comm, IST_STATUS_IGNORE));
      EXPECT_EQ(-1, first_difference(bytes_of(other, here.rank, GetParam(), 1000 + i), got)) << "message " << i;
    }
  }
  IST_OK_OR_FAIL(ist_waitall(static_cast<int>(requests.size()), requests.data(), IST_STATUSES_IGNORE));
}

// Host memory that the other ranks see, where they have it: what is sent may be copied from there, and until then the call keeps it.
class Seen {
 public:
  explicit Seen(std::size_t bytes) : bytes_(bytes) {
    EXPECT_EQ(IST_OK, ist_memory_alloc(world(), IST_KIND_HOST, 0, bytes, &buffer_)) << ist_error_text();
  }
  ~Seen() { EXPECT_EQ(IST_OK, ist_memory_free(world(), buffer_)) << ist_error_text(); }
  Seen(const Seen&) = delete;
  Seen& operator=(const Seen&) = delete;
  ist_buffer get() const { return buffer_; }
  void fill(const Bytes& bytes) const {
    IST_OK_OR_FAIL(ist_memory_copy(world(), buffer_, ist_host(bytes.data()), bytes.size()));
  }
  Bytes read() const {
    Bytes bytes(bytes_);
    EXPECT_EQ(IST_OK, ist_memory_copy(world(), ist_host(bytes.data()), buffer_, bytes_)) << ist_error_text();
    return bytes;
  }

 private:
  std::size_t bytes_;
  ist_buffer buffer_{};
};

TEST_P(Walked, OutOfMemoryThatTheOthersSee) {
  const Member here{comm()};
  const std::size_t bytes = GetParam();
  const auto count = static_cast<std::int64_t>(bytes);
  const auto ranks = static_cast<std::size_t>(here.size);
  const Seen out{bytes * ranks}, in{bytes * ranks}, part{bytes};
  const Bytes poison(bytes * ranks, 0xee);
  for (int call = 0; call < 20; ++call) {
    const int root = call % here.size;
    nap_sometimes(here, call);
    out.fill(from_one(here.rank, here, bytes, call));
    in.fill(poison);
    IST_OK_OR_FAIL(ist_alltoall(out.get(), in.get(), count, IST_BYTE, here.comm));
    out.fill(poison);  // it is this rank's again
    EXPECT_EQ(-1, first_difference(to_one(here.rank, here, bytes, call), in.read())) << "alltoall " << call;
    part.fill(bytes_of(here.rank, 0, bytes, call));
    IST_OK_OR_FAIL(ist_allgather(part.get(), count, in.get(), count, IST_BYTE, here.comm));
    part.fill(Bytes(bytes, 0xee));
    EXPECT_EQ(-1, first_difference(to_one(0, here, bytes, call), in.read())) << "allgather " << call;
    if (here.rank == root) out.fill(from_one(root, here, bytes, call));
    IST_OK_OR_FAIL(ist_scatter(out.get(), count, part.get(), count, IST_BYTE, root, here.comm));
    out.fill(poison);
    EXPECT_EQ(-1, first_difference(bytes_of(root, here.rank, bytes, call), part.read())) << "scatter " << call;
    part.fill(here.rank == root ? bytes_of(root, 1, bytes, call) : Bytes(bytes, 0xee));
    IST_OK_OR_FAIL(ist_bcast(part.get(), count, IST_BYTE, root, here.comm));
    EXPECT_EQ(-1, first_difference(bytes_of(root, 1, bytes, call), part.read())) << "bcast " << call;
    part.fill(bytes_of(here.rank, root, bytes, call));
    in.fill(poison);
    IST_OK_OR_FAIL(ist_gather(part.get(), count, in.get(), count, IST_BYTE, root, here.comm));
    part.fill(Bytes(bytes, 0xee));
    if (here.rank == root) {
      EXPECT_EQ(-1, first_difference(to_one(root, here, bytes, call), in.read())) << "gather " << call;
    }
  }
}

// In turn on each rank. Who needs its bytes hears of it, and who does not is done or hears of it; the next call is as ever.
TEST(WalkedErrors, OfABufferThatIsNoneReachAllThatNeedIt) {
  const Member here{comm()};
  for (const std::size_t bytes :
       {std::size_t{8}, std::size_t{1024}, std::size_t{16384}, kLong[1], kLong[2], std::size_t{300000}})
    for (int wrong = 0; wrong < here.size; ++wrong) {
      SCOPED_TRACE(std::to_string(bytes) + " bytes, rank " + std::to_string(wrong));
      const auto count = static_cast<std::int64_t>(bytes);
      const bool mine = here.rank == wrong;
      Bytes out(bytes * static_cast<std::size_t>(here.size), 1), in(out.size(), 0xee);
      const ist_buffer send = mine ? ist_host(nullptr) : ist_host(out.data());
      const auto hears = [&](int code, bool needs) {
        if (mine) {
          EXPECT_EQ(IST_ERR_ARGUMENT, code);
        } else if (needs) {
          EXPECT_NE(IST_OK, code);
        }
        // The rank that is the cause, or one that heard of it first and took back what it sends.
        if (!mine && code != IST_OK) {
          EXPECT_NE(nullptr, std::strstr(ist_error_text(), " (process ")) << ist_error_text();
        }
      };
      hears(ist_allgather(send, count, ist_host(in.data()), count, IST_BYTE, here.comm), true);
      hears(ist_alltoall(send, ist_host(in.data()), count, IST_BYTE, here.comm), true);
      hears(ist_bcast(send, count, IST_BYTE, wrong, here.comm), true);
      hears(ist_bcast(send, count, IST_BYTE, (wrong + 1) % here.size, here.comm), false);
      exchange_and_compare(here, bytes, 3);
      broadcast_and_compare(here, wrong, bytes, 4);
    }
}

}  // namespace
