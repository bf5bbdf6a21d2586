// The counters of each way: what statuses say is what is counted, on both sides, to the byte.
#include <isthmus/collective.h>

#include <array>
#include <cstdlib>

#include "rank_test.hpp"

using namespace rank_test;

namespace {

constexpr int kTag = 11;
constexpr std::array kCarriers{IST_CARRIER_SLOT,    IST_CARRIER_CELL,        IST_CARRIER_RING,
                               IST_CARRIER_DIRECT,  IST_CARRIER_NCCL,        IST_CARRIER_DEVICE,
                               IST_CARRIER_MAILBOX, IST_CARRIER_SINGLE_COPY, IST_CARRIER_BLOCK};

ist_traffic traffic(int peer, ist_carrier carrier) {
  ist_traffic found{};
  found.size = sizeof found;
  EXPECT_EQ(IST_OK, ist_world_traffic(world(), peer, carrier, &found)) << ist_error_text();
  EXPECT_EQ(sizeof found, found.size);
  return found;
}

ist_traffic less(const ist_traffic& after, const ist_traffic& before) {
  return {after.size, after.messages_sent - before.messages_sent, after.bytes_sent - before.bytes_sent,
          after.messages_received - before.messages_received, after.bytes_received - before.bytes_received};
}

using Table = std::array<ist_traffic, kCarriers.size()>;

Table table(int peer) {
  Table found{};
  for (std::size_t i = 0; i < kCarriers.size(); ++i) found[i] = traffic(peer, kCarriers[i]);
  return found;
}

Table less(const Table& after, const Table& before) {
  Table found{};
  for (std::size_t i = 0; i < kCarriers.size(); ++i) found[i] = less(after[i], before[i]);
  return found;
}

int next() { return (rank() + 1) % size(); }
int before() { return (rank() + size() - 1) % size(); }

// What a status calls it.
ist_carrier in_status(ist_carrier carrier) {
  if (carrier == IST_CARRIER_SINGLE_COPY) return IST_CARRIER_DIRECT;
  return carrier == IST_CARRIER_BLOCK ? IST_CARRIER_DEVICE : carrier;
}

struct Tally {
  std::array<std::uint64_t, 32> messages{};
  std::array<std::uint64_t, 32> bytes{};
  void add(const ist_status& status) {
    ++messages[static_cast<std::size_t>(status.carrier)];
    bytes[static_cast<std::size_t>(status.carrier)] += static_cast<std::uint64_t>(status.bytes);
  }
};

// Sends each size to the next rank and receives it from the one before, as blocking calls and as requests, and says what the
// statuses said.
Tally go_round(GuardedBuffer& out, GuardedBuffer& in) {
  Tally tally;
  for (const std::size_t bytes : border_sizes()) {
    const auto wanted = random_bytes(bytes, bytes + 100 * static_cast<std::uint64_t>(before()));
    const auto count = static_cast<std::int64_t>(bytes);
    out.fill(random_bytes(bytes, bytes + 100 * static_cast<std::uint64_t>(rank())));
    for (const bool blocking : {true, false}) {
      in.poison();
      ist_status status{};
      if (blocking) {
        EXPECT_EQ(IST_OK, ist_sendrecv(out.get(), count, IST_BYTE, next(), kTag, in.get(), count, IST_BYTE, before(), kTag,
                                       comm(), &status))
            << ist_error_text();
      } else {
        std::array<ist_request, 2> requests{};
        std::array<ist_status, 2> statuses{};
        EXPECT_EQ(IST_OK, ist_irecv(in.get(), count, IST_BYTE, before(), kTag, comm(), requests.data()));
        EXPECT_EQ(IST_OK, ist_isend(out.get(), count, IST_BYTE, next(), kTag, comm(), &requests[1]));
        EXPECT_EQ(IST_OK, ist_waitall(2, requests.data(), statuses.data())) << ist_error_text();
        status = statuses[0];
      }
      tally.add(status);
      in.expect(wanted, std::to_string(bytes) + " bytes");
    }
  }
  return tally;
}

void expect_counted(const Tally& tally, const Table& received) {
  for (const ist_carrier carrier : kCarriers) {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < kCarriers.size(); ++i) {
      if (in_status(kCarriers[i]) != carrier) continue;
      messages += received[i].messages_received;
      bytes += received[i].bytes_received;
    }
    if (in_status(carrier) != carrier) continue;
    EXPECT_EQ(tally.messages[static_cast<std::size_t>(carrier)], messages) << ist_carrier_name(carrier);
    EXPECT_EQ(tally.bytes[static_cast<std::size_t>(carrier)], bytes) << ist_carrier_name(carrier);
  }
}

TEST(Traffic, IsWhatTheStatusesSayAndTheSameOnBothSides) {
  for (const KindName kind : usable_kinds()) {
    GuardedBuffer out(kind.kind, border_sizes().back());
    GuardedBuffer in(kind.kind, border_sizes().back());
    const Table sent_before = table(next());
    const Table received_before = table(before());
    const Tally tally = go_round(out, in);
    const Table sent = less(table(next()), sent_before);
    const Table received = less(table(before()), received_before);
    expect_counted(tally, received);
    for (std::size_t i = 0; i < kCarriers.size(); ++i) {
      std::array<std::uint64_t, 2> mine{sent[i].messages_sent, sent[i].bytes_sent};
      std::array<std::uint64_t, 2> theirs{};
      IST_OK_OR_FAIL(ist_sendrecv(ist_host(mine.data()), 2, IST_UINT64, next(), kTag, ist_host(theirs.data()), 2, IST_UINT64,
                                  before(), kTag, comm(), IST_STATUS_IGNORE));
      EXPECT_EQ(theirs[0], received[i].messages_received) << kind.name << " by " << ist_carrier_name(kCarriers[i]);
      EXPECT_EQ(theirs[1], received[i].bytes_received) << kind.name << " by " << ist_carrier_name(kCarriers[i]);
    }
  }
}

TEST(Traffic, OfALongHostMessageTellsOneCopyFromTwo) {
  if (size() == 1) GTEST_SKIP() << "not covered here: takes two ranks";
  constexpr std::size_t kBytes = 300001;
  const char* setting = std::getenv("ISTHMUS_SINGLE_COPY");
  const Table received_before = table(before());
  std::vector<unsigned char> out = random_bytes(kBytes, static_cast<std::uint64_t>(rank()));
  std::vector<unsigned char> in(kBytes, 0xa5);
  ist_status status{};
  IST_OK_OR_FAIL(ist_sendrecv(ist_host(out.data()), kBytes, IST_BYTE, next(), kTag, ist_host(in.data()), kBytes, IST_BYTE,
                              before(), kTag, comm(), &status));
  EXPECT_EQ(random_bytes(kBytes, static_cast<std::uint64_t>(before())), in);
  const Table received = less(table(before()), received_before);
  const auto by = [&](ist_carrier carrier) {
    for (std::size_t i = 0; i < kCarriers.size(); ++i)
      if (kCarriers[i] == carrier) return received[i].messages_received;
    return std::uint64_t{0};
  };
  EXPECT_EQ(0U, by(IST_CARRIER_DIRECT));  // that is within a process
  EXPECT_EQ(1U, by(IST_CARRIER_SINGLE_COPY) + by(IST_CARRIER_RING));
  EXPECT_EQ(status.carrier == IST_CARRIER_DIRECT ? 1U : 0U, by(IST_CARRIER_SINGLE_COPY));
  if (setting != nullptr && std::string{setting} == "never") {
    EXPECT_EQ(1U, by(IST_CARRIER_RING));
  }
}

TEST(Traffic, OfATruncatedMessageCountsWhatWasDelivered) {
  std::array<char, 8> out{1, 2, 3, 4, 5, 6, 7, 8};
  std::array<char, 3> in{};
  const ist_traffic received = traffic(before(), IST_CARRIER_SLOT);
  const ist_traffic sent = traffic(next(), IST_CARRIER_SLOT);
  EXPECT_EQ(IST_ERR_TRUNCATE, ist_sendrecv(ist_host(out.data()), 8, IST_BYTE, next(), kTag, ist_host(in.data()), 3, IST_BYTE,
                                           before(), kTag, comm(), IST_STATUS_IGNORE));
  const ist_traffic more_received = less(traffic(before(), IST_CARRIER_SLOT), received);
  const ist_traffic more_sent = less(traffic(next(), IST_CARRIER_SLOT), sent);
  EXPECT_EQ(1U, more_received.messages_received);
  EXPECT_EQ(3U, more_received.bytes_received);
  EXPECT_EQ(1U, more_sent.messages_sent);
  EXPECT_EQ(8U, more_sent.bytes_sent);
}

TEST(Traffic, OfAllPeersAndOfAllCarriersIsTheSum) {
  IST_OK_OR_FAIL(ist_barrier(comm()));
  ist_traffic sum{};
  for (int peer = 0; peer < size(); ++peer)
    for (const ist_carrier carrier : kCarriers) {
      const ist_traffic one = traffic(peer, carrier);
      sum.messages_sent += one.messages_sent;
      sum.bytes_sent += one.bytes_sent;
      sum.messages_received += one.messages_received;
      sum.bytes_received += one.bytes_received;
    }
  const ist_traffic by_nccl = traffic(IST_ALL_PEERS, IST_CARRIER_NCCL);
  const ist_traffic all = less(traffic(IST_ALL_PEERS, IST_CARRIER_NONE), by_nccl);
  EXPECT_EQ(sum.messages_sent, all.messages_sent);
  EXPECT_EQ(sum.bytes_sent, all.bytes_sent);
  EXPECT_EQ(sum.messages_received, all.messages_received);
  EXPECT_EQ(sum.bytes_received, all.bytes_received);
  if (size() > 1) {
    EXPECT_GT(all.messages_sent, 0U);  // the barrier's
  }
}

TEST(Traffic, OfAnOlderAndALaterCallerFillsInWhatTheyKnow) {
  struct Later {
    ist_traffic known;
    std::uint64_t further;
  } later{{}, 77};
  later.known.size = sizeof later;
  IST_OK_OR_FAIL(ist_world_traffic(world(), IST_ALL_PEERS, IST_CARRIER_NONE, &later.known));
  EXPECT_EQ(sizeof later, later.known.size);
  EXPECT_EQ(77U, later.further);
  ist_traffic older{16, 5, 6, 7, 8};
  IST_OK_OR_FAIL(ist_world_traffic(world(), IST_ALL_PEERS, IST_CARRIER_NONE, &older));
  EXPECT_EQ(later.known.messages_sent, older.messages_sent);
  EXPECT_EQ(6U, older.bytes_sent);
  EXPECT_EQ(8U, older.bytes_received);
}

TEST(Traffic, OfWhatThereIsNotIsAnErrorThatSaysWhat) {
  ist_traffic found{};
  const auto fails = [&](int code, const char* words, int peer, int carrier, ist_traffic* into) {
    EXPECT_EQ(code, ist_world_traffic(world(), peer, static_cast<ist_carrier>(carrier), into));
    EXPECT_NE(std::string{ist_error_text()}.find(words), std::string::npos) << ist_error_text();
  };
  fails(IST_ERR_ARGUMENT, "sizeof(ist_traffic)", 0, IST_CARRIER_NONE, &found);
  found.size = sizeof found;
  fails(IST_ERR_ARGUMENT, "traffic is null", 0, IST_CARRIER_NONE, nullptr);
  fails(IST_ERR_RANK, "IST_ALL_PEERS", size(), IST_CARRIER_NONE, &found);
  fails(IST_ERR_RANK, "peer is -2", -2, IST_CARRIER_NONE, &found);
  for (const int carrier : {-1, 8, 15, 18}) fails(IST_ERR_ARGUMENT, "which is none", 0, carrier, &found);
  EXPECT_EQ(IST_ERR_HANDLE, ist_world_traffic(IST_WORLD_NULL, 0, IST_CARRIER_NONE, &found));
}

TEST(Traffic, CarriersThatOnlyTheCountersKnowHaveNames) {
  EXPECT_STREQ("single copy", ist_carrier_name(IST_CARRIER_SINGLE_COPY));
  EXPECT_STREQ("block", ist_carrier_name(IST_CARRIER_BLOCK));
  EXPECT_STREQ("mailbox", ist_carrier_name(IST_CARRIER_MAILBOX));
  for (const int carrier : {-1, 8, 15, 18, 1 << 30}) EXPECT_STREQ("none", ist_carrier_name(carrier)) << carrier;
}

}  // namespace
