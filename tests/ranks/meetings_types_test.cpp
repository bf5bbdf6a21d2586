// With the setting check, collective calls in streams whose ranks give different values are told of by the next call, with what differs, on
// every rank that has heard of it: where kernels meet, and where all goes through rank 0.
#include "streams_support.hpp"

namespace {

using namespace rank_test;

class MeetingTypes : public testing::Test {
 protected:
  void SetUp() override {
    NEEDS_DEVICES();
    IST_OK_OR_FAIL(ist_world_create_configured(rank() == size() - 1 ? "check=1" : "", &world_));
    IST_OK_OR_FAIL(ist_world_comm(world_, &comm_));
  }
  void TearDown() override {
    if (world_ == IST_WORLD_NULL) return;
    const int code = ist_world_destroy(&world_);
    if (!may_be_given_up_) {
      EXPECT_EQ(IST_OK, code) << ist_error_text();
    }
  }
  static bool odd() { return rank() == 1; }
  static bool apart() { return devices() >= size(); }  // each rank on a device of its own: kernels meet
  int bcast(const Stream& stream, std::int64_t n, ist_type type, int root) const {
    return ist_bcast_on(stream.get(), buffer_.get(), n, type, root, comm_);
  }
  int allreduce(const Stream& stream, std::int64_t n, ist_type type, ist_op op) const {
    return ist_allreduce_on(stream.get(), IST_IN_PLACE, buffer_.get(), n, type, op, comm_);
  }
  void settle(const Stream& stream) const {
    stream.wait();
    EXPECT_EQ(IST_OK, ist_barrier(comm_)) << ist_error_text();
  }

  ist_world world_ = IST_WORLD_NULL;
  ist_comm comm_ = IST_COMM_NULL;
  bool may_be_given_up_ = false;
  static constexpr std::int64_t kMost = 1 << 17;
  GuardedBuffer buffer_{devices() > 0 ? IST_KIND_CUDA : IST_KIND_HOST, kMost * 8};
};

TEST_F(MeetingTypes, CallsThatAreAlikeAreNoError) {
  const Stream stream;
  for (const std::int64_t n : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1000}, kMost})
    for (int round = 0; round < 20; ++round) {
      EXPECT_EQ(IST_OK, bcast(stream, n, IST_DOUBLE, round % size())) << ist_error_text();
      EXPECT_EQ(IST_OK, allreduce(stream, n, IST_INT64, IST_BXOR)) << ist_error_text();
      EXPECT_EQ(IST_OK,
                ist_reduce_on(stream.get(), buffer_.get(), buffer_.get(), 0, IST_INT, IST_SUM, round % size(), comm_));
      EXPECT_EQ(IST_OK, ist_barrier_on(stream.get(), comm_)) << ist_error_text();
    }
  settle(stream);
}

// As long on all ranks. Of a broadcast those know that hear the root.
TEST_F(MeetingTypes, OtherTypesOfABroadcastAreToldOnceAndTheNextCallWorks) {
  const Stream stream;
  for (const std::int64_t n : {std::int64_t{5}, std::int64_t{3000}, kMost}) {
    const auto sent = random_bytes(static_cast<std::size_t>(n) * 8, static_cast<std::uint64_t>(n));
    buffer_.fill(rank() == 0 ? sent : std::vector<unsigned char>(sent.size(), 0xa5));
    EXPECT_EQ(IST_OK, bcast(stream, n, odd() ? IST_DOUBLE : IST_INT64, 0)) << ist_error_text();
    settle(stream);
    buffer_.expect(sent, "what was broadcast");
    if (odd())
      fails(IST_ERR_ARGUMENT, bcast(stream, n, IST_INT64, 0),
            {"collective calls in streams of communicator \"world\"", "type is IST_INT64 on rank 0 and IST_DOUBLE on rank 1",
             "put nothing into the stream", "ISTHMUS_CHECK"});
    EXPECT_EQ(IST_OK, bcast(stream, n, IST_INT64, 0)) << ist_error_text();
    EXPECT_EQ(IST_OK, allreduce(stream, n, IST_INT64, IST_BXOR)) << ist_error_text();
    settle(stream);
  }
}

TEST_F(MeetingTypes, OfAGraphAreToldInEachReplay) {
  const Stream stream;
  EXPECT_EQ(IST_OK, ist_prepare_collectives_on(stream.get(), comm_)) << ist_error_text();
  const Graph graph(stream, [&] {
    EXPECT_EQ(IST_OK, bcast(stream, 100, IST_INT64, 0)) << ist_error_text();
    EXPECT_EQ(IST_OK, bcast(stream, 100, odd() ? IST_DOUBLE : IST_INT64, 0)) << ist_error_text();
  });
  for (int replay = 0; replay < 10; ++replay) {
    graph.launch();
    settle(stream);
    if (odd())
      fails(IST_ERR_ARGUMENT, ist_barrier_on(stream.get(), comm_), {"type is IST_INT64 on rank 0 and IST_DOUBLE on rank 1"});
  }
  settle(stream);
}

// Those that have heard of it know. Kernels that meet and wait for what never comes give up for good; nobody waits for ever.
TEST_F(MeetingTypes, OtherOperationsAndTypesOfAReductionAreNamed) {
  const Stream stream;
  const auto differ = [&](int code, const std::string& of_0, const std::string& of_1) {
    EXPECT_EQ(IST_OK, code) << ist_error_text();
    settle(stream);
    const std::string here = std::to_string(rank());
    if (odd())
      fails(IST_ERR_ARGUMENT, ist_barrier_on(stream.get(), comm_), {of_0 + " on rank 0 and " + of_1 + " on rank 1"});
    else if (rank() == 0 || apart())
      fails(IST_ERR_ARGUMENT, ist_barrier_on(stream.get(), comm_), {of_1 + " on rank 1 and " + of_0 + " on rank " + here});
  };
  may_be_given_up_ = apart();  // by a kernel that looks for long enough to see that the other's call is another one
  differ(allreduce(stream, 100, odd() ? IST_DOUBLE : IST_INT64, IST_SUM), "IST_INT64", "IST_DOUBLE");
  if (apart()) return settle(stream);
  differ(allreduce(stream, 100, IST_INT64, odd() ? IST_MAX : IST_SUM), "sum", "maximum");
  EXPECT_EQ(IST_OK, allreduce(stream, 100, IST_INT64, IST_SUM)) << ist_error_text();
  settle(stream);
}

// The root hears all; the others hear nobody, or rank 0 alone, and go on.
TEST_F(MeetingTypes, OfAReductionToARootTheRootKnows) {
  const Stream stream;
  may_be_given_up_ = apart();
  GuardedBuffer into(IST_KIND_CUDA, 800);
  EXPECT_EQ(IST_OK,
            ist_reduce_on(stream.get(), buffer_.get(), into.get(), 100, odd() ? IST_DOUBLE : IST_INT64, IST_SUM, 0, comm_))
      << ist_error_text();
  settle(stream);
  if (rank() == 0)
    fails(IST_ERR_ARGUMENT, ist_barrier_on(stream.get(), comm_), {"type is IST_DOUBLE on rank 1 and IST_INT64 on rank 0"});
  if (!apart()) {
    EXPECT_EQ(IST_OK, ist_barrier_on(stream.get(), comm_)) << ist_error_text();
  }
  settle(stream);
}

TEST_F(MeetingTypes, OtherCountsAreNamedWhereKernelsMeet) {
  if (!apart()) GTEST_SKIP() << "not covered here: calls whose kernels meet, since not each rank has a device of its own";
  const Stream stream;
  may_be_given_up_ = true;
  EXPECT_EQ(IST_OK, allreduce(stream, 100, IST_INT64, IST_SUM)) << ist_error_text();
  EXPECT_EQ(IST_OK, allreduce(stream, odd() ? 101 : 100, IST_INT64, IST_SUM)) << ist_error_text();
  settle(stream);
  const int code = ist_barrier_on(stream.get(), comm_);
  if (rank() < 2)
    fails(IST_ERR_ARGUMENT, code,
          {odd() ? "count is 100 on rank 0 and 101 on rank 1" : "count is 101 on rank 1 and 100 on rank 0"});
  EXPECT_EQ(IST_OK, ist_barrier(comm_)) << ist_error_text();
}

}  // namespace
