// With the setting check, ranks that make different collective calls are told so, all of them, and the next call works. One rank asks for
// it, which is enough. On 2 to 4 ranks.
#include <isthmus/collective.h>
#include <isthmus/layout_collective.h>

#include <numeric>

#include "rank_test.hpp"

namespace {

using namespace rank_test;

class Checked : public testing::Test {
 protected:
  void SetUp() override {
    if (size() == 1) GTEST_SKIP() << "not covered here: ranks that differ; takes two";
    IST_OK_OR_FAIL(ist_world_create_configured(rank() == size() - 1 ? "check=1" : "", &world_));
    IST_OK_OR_FAIL(ist_world_comm(world_, &comm_));
  }
  void TearDown() override {
    if (world_ != IST_WORLD_NULL) IST_OK_OR_FAIL(ist_world_destroy(&world_));
  }
  static bool odd() { return rank() == 1; }
  // Every rank is told of rank 0 and rank 1, and what each gave; the call after it is right.
  void expect_told(int code, const std::string& of_0, const std::string& of_1) {
    EXPECT_EQ(IST_ERR_ARGUMENT, code);
    const std::string text = ist_error_text();
    for (const std::string& part : {of_0 + " on rank 0", of_1 + " on rank 1", std::string{"\"world\""}})
      EXPECT_NE(std::string::npos, text.find(part)) << text;
    expect_sum();
  }
  void expect_sum() {
    std::vector<int> in(3000, rank() + 1);
    std::vector<int> out(in.size(), -1);
    IST_OK_OR_FAIL(ist_allreduce(ist_host(in.data()), ist_host(out.data()), 3000, IST_INT, IST_SUM, comm_));
    EXPECT_EQ(std::vector<int>(in.size(), size() * (size() + 1) / 2), out);
  }
  int wait(int code, ist_request* request) { return code == IST_OK ? ist_wait(request, IST_STATUS_IGNORE) : code; }

  ist_world world_ = IST_WORLD_NULL;
  ist_comm comm_ = IST_COMM_NULL;
  std::vector<int> in_ = std::vector<int>(40000, 7);
  std::vector<int> out_ = std::vector<int>(40000, -1);
};

TEST_F(Checked, DifferentRootsAreNamed) {
  for (const int64_t count : {0, 1, 40000}) {
    expect_told(ist_bcast(ist_host(in_.data()), count, IST_INT, odd() ? 1 : 0, comm_), "root is 0", "1");
    EXPECT_EQ(std::vector<int>(40000, 7), in_);
    expect_told(ist_reduce(ist_host(in_.data()), ist_host(out_.data()), count, IST_INT, IST_SUM, odd() ? 1 : 0, comm_),
                "root is 0", "1");
    expect_told(
        ist_gather(ist_host(in_.data()), count / 10, ist_host(out_.data()), count / 10, IST_INT, odd() ? 1 : 0, comm_),
        "root is 0", "1");
    EXPECT_EQ(std::vector<int>(40000, -1), out_);
  }
}

// What one rank gives is the same in words, and none that there is: the others hear of that, too.
TEST_F(Checked, AnOperationThatOneRankHasFreedIsAnErrorOnAll) {
  ist_op op = IST_OP_NULL;
  IST_OK_OR_FAIL(ist_op_create([](const void*, void*, int64_t, ist_type, void*) {}, nullptr, 1, &op));
  ist_op given = op;
  if (odd()) IST_OK_OR_FAIL(ist_op_free(&op));
  const int code = ist_allreduce(ist_host(in_.data()), ist_host(out_.data()), 1, IST_INT, given, comm_);
  EXPECT_EQ(odd() ? IST_ERR_HANDLE : IST_ERR_ARGUMENT, code) << ist_error_text();
  expect_sum();
  if (!odd()) IST_OK_OR_FAIL(ist_op_free(&op));
}

// So often that a rank's places in shared memory would all wait for the one that took no part.
TEST_F(Checked, RefusedAgainAndAgainACallThatFitsStillWorks) {
  for (int i = 0; i < 9; ++i) {
    EXPECT_NE(IST_OK, ist_bcast(ist_host(in_.data()), 1, IST_INT, odd() ? 99 : 0, comm_));
    EXPECT_NE(IST_OK, ist_allreduce(ist_host(in_.data()), ist_host(out_.data()), odd() ? 2 : 1, IST_INT, IST_SUM, comm_));
  }
  int one = 1;
  int all = 0;
  for (int i = 0; i < 9; ++i) {
    IST_OK_OR_FAIL(ist_allreduce(ist_host(&one), ist_host(&all), 1, IST_INT, IST_SUM, comm_));
    EXPECT_EQ(size(), all);
  }
}

TEST_F(Checked, DifferentOperationsAndTypesAreNamed) {
  const auto allreduce = [&](ist_type type, ist_op op) {
    return ist_allreduce(ist_host(in_.data()), ist_host(out_.data()), 100, type, op, comm_);
  };
  expect_told(allreduce(IST_INT, odd() ? IST_MAX : IST_SUM), "operation is sum", "maximum");
  expect_told(allreduce(odd() ? IST_FLOAT : IST_INT32, IST_SUM), "type is IST_INT32", "IST_FLOAT");
  ist_op ordered = IST_OP_NULL;
  ist_op any = IST_OP_NULL;
  const auto nothing = [](const void*, void*, int64_t, ist_type, void*) {};
  IST_OK_OR_FAIL(ist_op_create(nothing, nullptr, 0, &ordered));
  IST_OK_OR_FAIL(ist_op_create(nothing, nullptr, 1, &any));
  expect_told(allreduce(IST_INT, odd() ? any : ordered), "operation is one of ist_op_create() in the order of ranks",
              "one of ist_op_create() that commutes");
  IST_OK_OR_FAIL(ist_op_free(&ordered));
  IST_OK_OR_FAIL(ist_op_free(&any));
  EXPECT_EQ(std::vector<int>(40000, -1), out_);
}

TEST_F(Checked, DifferentCountsAreNamedWhateverAlgorithmBelongsToEach) {
  for (const int64_t other : {0, 2, 40000}) {
    const int64_t count = odd() ? other : 1;
    const std::string said = std::to_string(other);
    expect_told(ist_bcast(ist_host(in_.data()), count, IST_INT, 0, comm_), "count is 1", said);
    expect_told(ist_scan(ist_host(in_.data()), ist_host(out_.data()), count, IST_INT, IST_SUM, comm_), "count is 1", said);
    expect_told(ist_allreduce(ist_in_place(), ist_host(in_.data()), count, IST_INT, IST_SUM, comm_), "count is 1", said);
  }
  const int64_t each = odd() ? 3 : 2;
  expect_told(ist_alltoall(ist_host(in_.data()), ist_host(out_.data()), each, IST_INT, comm_), "count is 2", "3");
  expect_told(ist_allgather(ist_host(in_.data()), each, ist_host(out_.data()), each, IST_INT, comm_), "count is 2", "3");
  expect_told(ist_scatter(ist_host(in_.data()), each, ist_host(out_.data()), each, IST_INT, 0, comm_), "count is 2", "3");
  std::vector<int64_t> counts(at(size()), 4);
  std::vector<int64_t> displs(at(size()), 0);
  std::iota(displs.begin(), displs.end(), 0);
  for (int64_t& displ : displs) displ *= 8;
  if (odd()) counts[0] = 5, counts[1] = 3;
  expect_told(ist_allgatherv(ist_host(in_.data()), counts[at(rank())], ist_host(out_.data()), counts.data(), displs.data(),
                             IST_INT, comm_),
              "counts is parts with " + std::to_string(4 * size()) + " elements in all", "as many in other parts");
  EXPECT_EQ(std::vector<int>(40000, -1), out_);
}

// As long on all ranks, and made of other types from some element on; or this rank's own part is.
TEST_F(Checked, LayoutsOfOtherTypesAreNamedWithTheElementWhereTheyBegin) {
  ist_layout same = IST_LAYOUT_NULL, other = IST_LAYOUT_NULL, raw = IST_LAYOUT_NULL;
  const int64_t lengths[] = {4, 2}, displs[] = {0, 24};
  const ist_layout ints[] = {ist_layout_of(IST_INT32), ist_layout_of(IST_INT32)},
                   mixed[] = {ist_layout_of(IST_INT32), ist_layout_of(IST_FLOAT)};
  IST_OK_OR_FAIL(ist_layout_struct(2, lengths, displs, ints, &same));
  IST_OK_OR_FAIL(ist_layout_struct(2, lengths, displs, mixed, &other));
  IST_OK_OR_FAIL(ist_layout_vector(3, 8, 16, ist_layout_of(IST_BYTE), &raw));
  for (const ist_layout each : {same, other, raw}) IST_OK_OR_FAIL(ist_layout_commit(each));
  const ist_buffer in = ist_host(in_.data()), out = ist_host(out_.data());
  const auto refused = [&](int code) { expect_told(code, "element 4 is IST_INT32", "IST_FLOAT"); };
  const ist_layout mine = odd() ? other : same;
  for (const int root : {0, size() - 1}) refused(ist_bcast_layout(in, 1, mine, root, comm_));
  refused(ist_gather_layout(in, 1, mine, out, 1, same, 0, comm_));
  refused(ist_scatter_layout(in, 1, same, out, 1, mine, 0, comm_));
  refused(ist_allgather_layout(in, 1, same, out, 1, mine, comm_));
  refused(ist_alltoall_layout(in, 1, same, out, 1, mine, comm_));
  ist_request request = IST_REQUEST_NULL;
  refused(wait(ist_ibcast_layout(in, 1, mine, 0, comm_, &request), &request));
  // All receive the same, and one sends others.
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_allgather_layout(in, 1, mine, out, 1, same, comm_));
  EXPECT_NE(std::string{ist_error_text()}.find("IST_FLOAT (in its own part) on rank 1"), std::string::npos)
      << ist_error_text();
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_alltoall_layout(in, 1, rank() == 0 ? other : same, out, 1, same, comm_));
  EXPECT_NE(std::string{ist_error_text()}.find("IST_FLOAT (in its own part) on rank 0"), std::string::npos)
      << ist_error_text();
  EXPECT_EQ(std::vector<int>(40000, -1), out_) << "nothing was carried out";
  // Untyped bytes are the same as anything.
  IST_OK_OR_FAIL(ist_bcast_layout(out, 1, odd() ? raw : same, 0, comm_));
  IST_OK_OR_FAIL(ist_bcast_layout(out, 2, same, 0, comm_));
  for (ist_layout each : {same, other, raw}) IST_OK_OR_FAIL(ist_layout_free(&each));
}

// Parts with counts of their own: what one rank sends to another is compared with what that one receives, and all hear of it.
class CheckedParts : public Checked {
 protected:
  void SetUp() override {
    Checked::SetUp();
    if (world_ == IST_WORLD_NULL) return;
    // Of six elements of 4 bytes each; the third one of every second place.
    const int64_t lengths[] = {4, 2}, places[] = {0, 16};
    const ist_layout mixed[] = {ist_layout_of(IST_INT32), ist_layout_of(IST_FLOAT)};
    IST_OK_OR_FAIL(ist_layout_struct(2, lengths, places, mixed, &other_));
    IST_OK_OR_FAIL(ist_layout_contiguous(6, ist_layout_of(IST_INT32), &same_));
    IST_OK_OR_FAIL(ist_layout_vector(6, 1, 2, ist_layout_of(IST_INT32), &strided_));
    IST_OK_OR_FAIL(ist_layout_contiguous(24, ist_layout_of(IST_BYTE), &raw_));
    for (const ist_layout each : {same_, other_, strided_, raw_}) IST_OK_OR_FAIL(ist_layout_commit(each));
    for (int rank = 0; rank < size(); ++rank) {
      counts_.push_back(1 + rank);
      displs_.push_back(rank * 20);
      ones_.push_back(1);
      bytes_.push_back(rank * 480);
    }
  }
  void TearDown() override {
    for (ist_layout* each : {&same_, &other_, &strided_, &raw_})
      if (*each != IST_LAYOUT_NULL) IST_OK_OR_FAIL(ist_layout_free(each));
    Checked::TearDown();
  }
  // Every rank is told of the first element that differs, of who sends it to whom, and of both sides' types.
  void expect_part(int code, const std::string& element, int sender, int receiver) {
    EXPECT_EQ(IST_ERR_ARGUMENT, code);
    const std::string text = ist_error_text();
    const std::string from = "rank " + std::to_string(sender), to = "rank " + std::to_string(receiver);
    for (const std::string& part : {element, "what " + from + " sends to " + to, "what " + to + " receives of " + from,
                                    std::string{"ISTHMUS_CHECK"}, std::string{"\"world\""}})
      EXPECT_NE(std::string::npos, text.find(part)) << '"' << part << "\" in: " << text;
    expect_sum();
  }
  void expect_untouched() { EXPECT_EQ(std::vector<int>(40000, -1), out_) << "nothing was carried out"; }
  std::int64_t mine() const { return counts_[at(rank())]; }
  ist_buffer in() { return ist_host(in_.data()); }
  ist_buffer out() { return ist_host(out_.data()); }
  // A layout for each rank, of which one differs.
  std::vector<ist_layout> all_but(int one, ist_layout differs, ist_layout all) const {
    std::vector<ist_layout> layouts(at(size()), all);
    if (one >= 0) layouts[at(one)] = differs;
    return layouts;
  }
  int alltoallw(const std::vector<ist_layout>& send, const std::vector<ist_layout>& recv) {
    return ist_alltoallw(in(), ones_.data(), bytes_.data(), send.data(), out(), ones_.data(), bytes_.data(), recv.data(),
                         comm_);
  }

  ist_layout same_ = IST_LAYOUT_NULL, other_ = IST_LAYOUT_NULL, strided_ = IST_LAYOUT_NULL, raw_ = IST_LAYOUT_NULL;
  std::vector<std::int64_t> counts_, displs_, ones_, bytes_;
};

TEST_F(CheckedParts, OfOtherTypesAreNamedWithSenderAndReceiver) {
  const ist_layout odd_one = odd() ? other_ : same_;
  const std::string sent = "element 4 is IST_FLOAT in what", received = "element 4 is IST_INT32 in what";
  expect_part(ist_gatherv_layout(in(), mine(), odd_one, out(), counts_.data(), displs_.data(), strided_, 0, comm_), sent, 1,
              0);
  expect_part(ist_scatterv_layout(in(), counts_.data(), displs_.data(), same_, out(), mine(), odd_one, 0, comm_), received,
              0, 1);
  expect_part(ist_allgatherv_layout(in(), mine(), odd_one, out(), counts_.data(), displs_.data(), strided_, comm_), sent, 1,
              0);
  expect_part(ist_allgatherv_layout(in(), mine(), same_, out(), counts_.data(), displs_.data(), odd_one, comm_), received, 0,
              1);
  expect_part(
      ist_alltoallv_layout(in(), ones_.data(), displs_.data(), same_, out(), ones_.data(), displs_.data(), odd_one, comm_),
      received, 0, 1);
  const int last = size() - 1;
  expect_part(alltoallw(all_but(rank() == last ? 1 : -1, other_, same_), all_but(-1, {}, strided_)), sent, last, 1);
  expect_part(alltoallw(all_but(-1, {}, same_), all_but(rank() == 0 ? last : -1, other_, strided_)), received, last, 0);
  ist_request request = IST_REQUEST_NULL;
  expect_part(
      wait(ist_igatherv_layout(in(), mine(), odd_one, out(), counts_.data(), displs_.data(), same_, 0, comm_, &request),
           &request),
      sent, 1, 0);
  expect_untouched();
  const std::string text = [&] {
    EXPECT_EQ(IST_ERR_ARGUMENT, alltoallw(all_but(odd() ? 0 : -1, other_, same_), all_but(-1, {}, strided_)));
    return std::string{ist_error_text()};
  }();
  for (const char* words : {"sends to rank 0: 4 IST_INT32, 2 IST_FLOAT", "receives of rank 1: 6 IST_INT32"})
    EXPECT_NE(std::string::npos, text.find(words)) << text;
}

TEST_F(CheckedParts, OfOtherLengthsAreNamedWithSenderAndReceiver) {
  const std::int64_t more = odd() ? 9 : mine();
  const auto told = [&](int code, int sender, int receiver) { expect_part(code, " bytes, and what", sender, receiver); };
  told(ist_gatherv(in(), more, out(), counts_.data(), displs_.data(), IST_INT, 0, comm_), 1, 0);
  told(ist_scatterv(in(), counts_.data(), displs_.data(), out(), more, IST_INT, 0, comm_), 0, 1);
  // It has the place for its own part, too, and is told of that.
  const int own = ist_allgatherv(in(), more, out(), counts_.data(), displs_.data(), IST_INT, comm_);
  if (odd()) {
    EXPECT_EQ(IST_ERR_TRUNCATE, own) << ist_error_text();
    expect_sum();
  } else {
    told(own, 1, 0);
  }
  std::vector<std::int64_t> sent = ones_;
  if (odd()) sent[0] = 3;
  told(ist_alltoallv(in(), sent.data(), displs_.data(), out(), ones_.data(), displs_.data(), IST_INT, comm_), 1, 0);
  told(ist_gatherv_layout(in(), more, same_, out(), counts_.data(), displs_.data(), same_, 0, comm_), 1, 0);
  expect_untouched();
}

// Through different layouts, with a layout on one side or rank alone, untyped, in place, and of no bytes.
TEST_F(CheckedParts, OfTheSameTypesAreNoError) {
  const ist_layout mine_of_them[] = {same_, strided_, raw_};
  const ist_layout own = mine_of_them[rank() % 3];
  const ist_buffer place = ist_in_place();
  for (int root = 0; root < size(); ++root) {
    IST_OK_OR_FAIL(ist_gatherv_layout(in(), mine(), own, out(), counts_.data(), displs_.data(), strided_, root, comm_));
    IST_OK_OR_FAIL(ist_scatterv_layout(in(), counts_.data(), displs_.data(), same_, out(), mine(), own, root, comm_));
    const bool is_root = rank() == root;
    IST_OK_OR_FAIL(ist_gatherv(is_root ? place : in(), mine(), out(), is_root ? counts_.data() : nullptr,
                               is_root ? displs_.data() : nullptr, IST_INT, root, comm_));
    IST_OK_OR_FAIL(ist_scatterv(in(), is_root ? counts_.data() : nullptr, is_root ? displs_.data() : nullptr,
                                is_root ? place : out(), mine(), IST_INT, root, comm_));
  }
  IST_OK_OR_FAIL(ist_allgatherv_layout(in(), mine(), own, out(), counts_.data(), displs_.data(), strided_, comm_));
  IST_OK_OR_FAIL(ist_allgatherv_layout(place, 0, same_, out(), counts_.data(), displs_.data(), own, comm_));
  IST_OK_OR_FAIL(
      ist_alltoallv_layout(in(), ones_.data(), displs_.data(), own, out(), ones_.data(), displs_.data(), strided_, comm_));
  IST_OK_OR_FAIL(ist_alltoallv_layout(place, nullptr, nullptr, same_, out(), ones_.data(), displs_.data(), strided_, comm_));
  IST_OK_OR_FAIL(alltoallw(all_but(1, raw_, own), all_but(0, raw_, strided_)));
  const std::vector<std::int64_t> none(at(size()), 0);
  IST_OK_OR_FAIL(ist_alltoallv(in(), none.data(), displs_.data(), out(), none.data(), displs_.data(), IST_INT, comm_));
  // A layout on one rank, and none on the other.
  const std::vector<std::int64_t> sixes(at(size()), 6);
  if (odd())
    IST_OK_OR_FAIL(ist_alltoallv(in(), sixes.data(), displs_.data(), out(), sixes.data(), displs_.data(), IST_INT32, comm_));
  else
    IST_OK_OR_FAIL(
        ist_alltoallv_layout(in(), ones_.data(), displs_.data(), same_, out(), ones_.data(), displs_.data(), same_, comm_));
}

// What is wrong on one rank is its error as ever, and the others are not left waiting.
TEST_F(CheckedParts, ThatOneRankGivesAsNoneAreItsOwnError) {
  const int code = ist_alltoallv(in(), odd() ? nullptr : ones_.data(), displs_.data(), out(), ones_.data(), displs_.data(),
                                 IST_INT, comm_);
  EXPECT_NE(IST_OK, code);
  if (odd()) {
    EXPECT_EQ(IST_ERR_ARGUMENT, code) << ist_error_text();
  }
  expect_sum();
}

TEST_F(Checked, DifferentCallsAreNamedAlsoThoseThatDoNotWait) {
  expect_told(odd() ? ist_barrier(comm_) : ist_bcast(ist_host(in_.data()), 5, IST_INT, 0, comm_), "call is ist_bcast",
              "ist_barrier");
  ist_request request = IST_REQUEST_NULL;
  const int code = odd() ? ist_iscan(ist_host(in_.data()), ist_host(out_.data()), 5, IST_INT, IST_SUM, comm_, &request)
                         : ist_iexscan(ist_host(in_.data()), ist_host(out_.data()), 5, IST_INT, IST_SUM, comm_, &request);
  expect_told(wait(code, &request), "call is ist_exscan", "ist_scan");
  // The blocking call and the other are one.
  IST_OK_OR_FAIL(wait(odd() ? ist_barrier(comm_) : ist_ibarrier(comm_, &request), &request));
}

// Refused where it is wrong, at once; the others are not left waiting.
TEST_F(Checked, AValueThatIsRefusedOnOneRankIsNamedOnTheOthers) {
  for (const bool waits : {true, false}) {
    ist_request request = IST_REQUEST_NULL;
    const int root = odd() ? size() : 0;
    const int code = waits ? ist_bcast(ist_host(in_.data()), 5, IST_INT, root, comm_)
                           : ist_ibcast(ist_host(in_.data()), 5, IST_INT, root, comm_, &request);
    if (odd()) {
      EXPECT_EQ(IST_ERR_RANK, code) << ist_error_text();
      EXPECT_EQ(IST_REQUEST_NULL, request);
      expect_sum();
    } else {
      expect_told(wait(code, &request), "root is 0", std::to_string(size()));
    }
  }
}

// Nobody waits in the call for the others.
TEST_F(Checked, ACallThatDoesNotWaitReturnsBeforeTheOthersCome) {
  ist_request request = IST_REQUEST_NULL;
  int word = rank();
  if (rank() == 0) IST_OK_OR_FAIL(ist_recv(ist_host(&word), 1, IST_INT, 1, 9, comm_, IST_STATUS_IGNORE));
  IST_OK_OR_FAIL(ist_ibarrier(comm_, &request));
  if (rank() == 1) IST_OK_OR_FAIL(ist_send(ist_host(&word), 1, IST_INT, 0, 9, comm_));
  IST_OK_OR_FAIL(ist_wait(&request, IST_STATUS_IGNORE));
}

TEST_F(Checked, CallsThatAreAlikeAreCarriedOutOnAnyCommunicator) {
  ist_comm reversed = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_comm_split(comm_, 0, -rank(), &reversed));
  for (const int64_t count : {1, 1000, 40000}) {
    std::vector<int> sum(40000, -1);
    IST_OK_OR_FAIL(ist_allreduce(ist_host(in_.data()), ist_host(sum.data()), count, IST_INT, IST_SUM, reversed));
    EXPECT_EQ(count, std::count(sum.begin(), sum.end(), 7 * size()));
    std::vector<int> from(at(static_cast<int>(count)), rank());
    IST_OK_OR_FAIL(ist_bcast(ist_host(from.data()), count, IST_INT, 0, reversed));
    EXPECT_EQ(std::vector<int>(from.size(), size() - 1), from);
  }
  IST_OK_OR_FAIL(ist_comm_free(&reversed));
}

}  // namespace
