// With the setting check, a receive in a stream of other types than its message's is told of by the next call on its channel, with both
// sides' types and the first element that differs; and one of the same types never is. From rank 0 to rank 1, whatever rank asks for it.
#include <isthmus/layout_stream.h>

#include <string>
#include <utility>

#include "checked_types.hpp"
#include "streams_support.hpp"

namespace {

using namespace rank_test;

class StreamTypes : public CheckedTypes {
 protected:
  void SetUp() override {
    NEEDS_DEVICES();
    open(size() - 1);
  }
  // What this rank does of a message from rank 0 to rank 1; ranks beside them do nothing.
  int put(const Stream& stream, const GuardedBuffer& buffer, const Side& out, const Side& in, int tag = kTag) const {
    if (rank() == 0) return ist_send_layout_on(stream.get(), buffer.get(), out.count, out.layout, 1, tag, comm_);
    if (rank() == 1) return ist_recv_layout_on(stream.get(), buffer.get(), in.count, in.layout, 0, tag, comm_);
    return IST_OK;
  }
  // Its bytes arrive whatever the types are.
  void carry(const Stream& stream, const Side& out, const Side& in) {
    GuardedBuffer buffer(IST_KIND_CUDA, kBytes);
    const auto sent = random_bytes(kBytes, ++seed_);
    if (rank() == 0) buffer.fill(sent);
    EXPECT_EQ(IST_OK, put(stream, buffer, out, in)) << ist_error_text();
    stream.wait();
    if (rank() != 1) return;
    GuardedBuffer same(IST_KIND_CUDA, kBytes);
    same.fill(sent);
    const std::int64_t bytes = std::min(bytes_of(out), bytes_of(in));
    EXPECT_EQ(-1, first_difference(packed(same, out, bytes), packed(buffer, in, bytes)));
  }
  // Only that nothing is wrong.
  void carry_once(const Stream& stream, const GuardedBuffer& buffer, const Side& out, const Side& in, int tag) const {
    EXPECT_EQ(IST_OK, put(stream, buffer, out, in, tag)) << ist_error_text();
    stream.wait();
  }
  // The next call on the channel, which puts nothing into the stream.
  void expect_told(const Stream& stream, const std::vector<std::string>& words, int tag = kTag) const {
    int word = 0;
    if (rank() == 1) fails(IST_ERR_ARGUMENT, ist_recv_on(stream.get(), ist_host(&word), 0, IST_BYTE, 0, tag, comm_), words);
  }

  static constexpr std::size_t kBytes = 1 << 20;
  std::uint64_t seed_ = 0;
};

TEST_F(StreamTypes, ThatAreTheSameAreNoError) {
  const Stream stream;
  for (const std::int64_t n : {0, 1, 40, 40000}) {
    carry(stream, basic(n, IST_DOUBLE), basic(n, IST_DOUBLE));
    carry(stream, {n, mixed()}, {n, mixed()});
  }
  // Described otherwise; of the same representation; shorter than the receive; untyped on either side.
  for (const std::int64_t n : {60, 6000}) {
    carry(stream, {1, every_second(n, ist_layout_of(IST_DOUBLE))}, basic(n, IST_DOUBLE));
    carry(stream, {1, every_second(n, mixed())}, {n, mixed()});
    carry(stream, basic(n, IST_INT), basic(n, IST_INT32));
    carry(stream, basic(n - 2, IST_LONG), basic(n, IST_INT64));
    carry(stream, {n - 10, mixed()}, {n, mixed()});
    carry(stream, {n, mixed()}, basic(n * 16, IST_BYTE));
    carry(stream, basic(n * 16, IST_BYTE), {n, mixed()});
  }
  // Pairs that are no error leave room for one that is.
  for (std::int64_t n = 1; n < 12; ++n) carry(stream, basic(n, IST_DOUBLE), basic(12, IST_DOUBLE));
}

TEST_F(StreamTypes, ThatDifferAreToldByTheNextCallWithBothAndTheFirstElement) {
  const Stream stream;
  std::int64_t message = 0;
  for (const std::int64_t n : {10, 50000}) {
    const std::string count = std::to_string(n);
    carry(stream, basic(n, IST_DOUBLE), basic(2 * n, IST_FLOAT));
    expect_told(stream, {"the channel from rank 0 with tag 5", "its message " + std::to_string(message) + ", counted from 0",
                         "element 0 is IST_DOUBLE in the message and IST_FLOAT in the receive",
                         "the message: " + count + " IST_DOUBLE", "the receive: " + std::to_string(2 * n) + " IST_FLOAT",
                         "put nothing into the stream", "ISTHMUS_CHECK"});
    carry(stream, {n, mixed()}, {n, mixed(IST_FLOAT)});
    expect_told(stream, {"element 1 is IST_INT32 in the message and IST_FLOAT in the receive",
                         count + " times (IST_DOUBLE, 2 IST_INT32)", count + " times (IST_DOUBLE, 2 IST_FLOAT)"});
    carry(stream, {1, every_second(n, ist_layout_of(IST_DOUBLE))}, basic(n, IST_INT64));
    expect_told(stream, {"element 0 is IST_DOUBLE"});
    // One that is alike is not told of what was before it.
    carry(stream, {n, mixed()}, {n, mixed()});
    message += 4;
  }
}

// The same pair once more is an error once more; and one among many that nobody waits for is found, by a call of the same round where the GPU is
// quicker than the calls: that one put nothing in, and is made again.
TEST_F(StreamTypes, AreComparedOfEveryMessageHoweverManyAreUnderWay) {
  const Stream stream;
  GuardedBuffer buffer(IST_KIND_CUDA, kBytes);
  const ist_layout same = mixed(), other = mixed(IST_FLOAT), strided = every_second(3, same);
  for (int round = 0; round < 3; ++round) {
    const std::string message = "its message " + std::to_string(round * 150 + 57) + ",";
    bool told = false;
    for (int n = 0; n < 150; ++n) {
      const Side out = n % 2 == 0 ? Side{3, same} : Side{1, strided};
      int code = put(stream, buffer, out, n == 57 ? Side{3, other} : Side{3, same});
      if (code == IST_ERR_ARGUMENT && n > 57 && !std::exchange(told, true)) {
        EXPECT_NE(std::string{ist_error_text()}.find(message), std::string::npos) << ist_error_text();
        code = put(stream, buffer, out, {3, same});
      }
      EXPECT_EQ(IST_OK, code) << ist_error_text();
    }
    stream.wait();
    EXPECT_EQ(IST_OK, ist_barrier(comm_));
    if (!told) expect_told(stream, {message, "element 1 is IST_INT32"});
  }
}

TEST_F(StreamTypes, AreComparedInEachReplayOfAGraph) {
  const Stream stream;
  GuardedBuffer buffer(IST_KIND_CUDA, kBytes);
  const ist_layout same = mixed(), other = mixed(IST_FLOAT), strided = every_second(30, same);
  for (const int tag : {kTag, kTag + 1}) {
    carry_once(stream, buffer, {30, same}, {1, strided}, tag);  // it prepares what the graph needs
    const bool differs = tag != kTag;
    const Graph graph(stream, [&] {
      EXPECT_EQ(IST_OK, put(stream, buffer, {30, same}, {1, strided}, tag)) << ist_error_text();
      EXPECT_EQ(IST_OK, put(stream, buffer, {30, same}, differs ? Side{30, other} : Side{30, same}, tag))
          << ist_error_text();
    });
    for (int replay = 0; replay < 40; ++replay) {
      graph.launch();
      stream.wait();
      if (differs) expect_told(stream, {"its message " + std::to_string(2 * replay + 2) + ",", "IST_FLOAT"}, tag);
    }
    carry_once(stream, buffer, {30, same}, {1, strided}, tag);
  }
}

TEST_F(StreamTypes, OfBothHalvesOfACallAreCompared) {
  const Stream stream;
  const int right = (rank() + 1) % size(), left = (rank() + size() - 1) % size();
  GuardedBuffer source(IST_KIND_CUDA, 8000), target(IST_KIND_CUDA, 8000);
  const auto exchange = [&](ist_type out, ist_type in) {
    return ist_sendrecv_on(stream.get(), source.get(), 1000, out, right, kTag, target.get(), 1000, in, left, kTag, comm_);
  };
  EXPECT_EQ(IST_OK, exchange(IST_DOUBLE, IST_DOUBLE)) << ist_error_text();
  EXPECT_EQ(IST_OK, exchange(IST_DOUBLE, IST_UINT64)) << ist_error_text();
  stream.wait();
  fails(IST_ERR_ARGUMENT, exchange(IST_DOUBLE, IST_DOUBLE),
        {"the channel from rank " + std::to_string(left), "its message 1,", "1000 IST_DOUBLE", "1000 IST_UINT64"});
  EXPECT_EQ(IST_OK, exchange(IST_DOUBLE, IST_DOUBLE)) << ist_error_text();
  stream.wait();
}

TEST_F(StreamTypes, OfARanksMessagesToItselfAreCompared) {
  const Stream stream;
  GuardedBuffer source(IST_KIND_CUDA, 8000), target(IST_KIND_CUDA, 8000);
  const auto exchange = [&](ist_type in) {
    return ist_sendrecv_on(stream.get(), source.get(), 100, IST_DOUBLE, rank(), kTag, target.get(), 100, in, rank(), kTag,
                           comm_);
  };
  EXPECT_EQ(IST_OK, exchange(IST_DOUBLE)) << ist_error_text();
  EXPECT_EQ(IST_OK, exchange(IST_INT64)) << ist_error_text();
  stream.wait();
  fails(IST_ERR_ARGUMENT, exchange(IST_DOUBLE), {"its message 1,", "element 0 is IST_DOUBLE in the message and IST_INT64"});
  EXPECT_EQ(IST_OK, exchange(IST_DOUBLE)) << ist_error_text();
  stream.wait();
}

TEST_F(StreamTypes, AreToldOfATruncatedMessageToo) {
  const Stream stream;
  GuardedBuffer buffer(IST_KIND_CUDA, kBytes);
  for (const std::int64_t n : {10, 50000}) {
    EXPECT_EQ(IST_OK, put(stream, buffer, basic(n, IST_DOUBLE), basic(n / 2, IST_INT64))) << ist_error_text();
    stream.wait();
    int word = 0;
    if (rank() == 1)
      fails(IST_ERR_TRUNCATE, ist_recv_on(stream.get(), ist_host(&word), 0, IST_BYTE, 0, kTag, comm_),
            {std::to_string(n * 8) + " bytes", "element 0 is IST_DOUBLE in the message and IST_INT64 in the receive"});
    carry(stream, basic(n, IST_DOUBLE), basic(n, IST_DOUBLE));
  }
}

// Where no call comes any more, the end of the world tells.
TEST_F(StreamTypes, AreToldByTheEndOfTheWorldOtherwise) {
  const Stream stream;
  carry(stream, basic(10, IST_DOUBLE), basic(10, IST_INT64));
  EXPECT_EQ(IST_OK, ist_barrier(comm_));
  const int code = ist_world_destroy(&world_);
  if (rank() == 1)
    fails(IST_ERR_ARGUMENT, code, {"the channel from rank 0", "element 0 is IST_DOUBLE in the message"});
  else
    EXPECT_EQ(IST_OK, code) << ist_error_text();
  world_ = IST_WORLD_NULL;
}

}  // namespace
