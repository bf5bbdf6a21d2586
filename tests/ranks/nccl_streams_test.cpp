// Whether NCCL carries a reduction whose order of combining shows follows from what the program has done, and from no clock: beside other calls, in
// other threads and in streams. Run on 2 and 3 ranks, with the fake driver and the fake NCCL, in a process of its own.
//
// CUDA_MODULE_LOADING says whether first launches wait for kernels that run; ISTHMUS_TEST_ANY_ORDER that the profile gives up the order.
#include <isthmus/stream.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "collective_support.hpp"
#include "streams_support.hpp"

namespace {

using namespace rank_test;
using namespace collective_test;

constexpr std::size_t kNumbers = 131072;

// Whole numbers, which every order adds to the same bits: who carried it is what is asked.
template <typename T>
Bytes bytes_of(const std::vector<T>& from) {
  Bytes bytes(from.size() * sizeof(T));
  std::memcpy(bytes.data(), from.data(), bytes.size());
  return bytes;
}
template <typename T>
struct Summands {
  std::vector<T> mine = std::vector<T>(kNumbers);
  std::vector<T> wanted = std::vector<T>(kNumbers);
  Summands(ist_op op, const Member& here) {
    for (std::size_t i = 0; i < kNumbers; ++i) {
      const auto of = [i](int r) { return static_cast<T>(1 + (i * 7 + static_cast<std::size_t>(r) * 3) % 5); };
      mine[i] = of(here.rank);
      wanted[i] = of(0);
      for (int r = 1; r < here.size; ++r) wanted[i] = op == IST_SUM ? wanted[i] + of(r) : std::min(wanted[i], of(r));
    }
  }
};

// Of a call that does not wait.
template <typename T>
std::string carrier_of(ist_type type, ist_op op, ist_comm on = comm()) {
  const Summands<T> summands{op, Member{on}};
  const Numbers numbers{IST_KIND_CUDA, bytes_of(summands.mine)};
  ist_request request = IST_REQUEST_NULL;
  EXPECT_EQ(IST_OK, ist_iallreduce(IST_IN_PLACE, numbers.get(), count(kNumbers), type, op, on, &request))
      << ist_error_text();
  ist_status status{};
  EXPECT_EQ(IST_OK, ist_wait(&request, &status)) << ist_error_text();
  numbers.expect(bytes_of(summands.wanted), "the reduction");
  return ist_carrier_name(status.carrier);
}

// Of one that waits: no other thread may make calls meanwhile.
template <typename T>
std::string carrier_of_waiting(ist_type type, ist_op op, ist_comm on = comm()) {
  const Summands<T> summands{op, Member{on}};
  const Numbers numbers{IST_KIND_CUDA, bytes_of(summands.mine)};
  const auto carried = [] {
    ist_traffic found{};
    found.size = sizeof found;
    EXPECT_EQ(IST_OK, ist_world_traffic(world(), IST_ALL_PEERS, IST_CARRIER_NCCL, &found)) << ist_error_text();
    return found.messages_sent;
  };
  const auto before = carried();
  EXPECT_EQ(IST_OK, ist_allreduce(IST_IN_PLACE, numbers.get(), count(kNumbers), type, op, on)) << ist_error_text();
  numbers.expect(bytes_of(summands.wanted), "the reduction");
  return carried() == before ? "none" : "nccl";
}
std::string least(ist_comm on = comm()) { return carrier_of<double>(IST_DOUBLE, IST_MIN, on); }
std::string least_waiting(ist_comm on = comm()) { return carrier_of_waiting<double>(IST_DOUBLE, IST_MIN, on); }

ist_comm copy_of(ist_comm one) {
  ist_comm made = IST_COMM_NULL;
  EXPECT_EQ(IST_OK, ist_comm_dup(one, &made)) << ist_error_text();
  return made;
}

constexpr std::chrono::milliseconds kAWhile{400};
void CUDA_CB take_a_while(void* /*data*/) { std::this_thread::sleep_for(kAWhile); }

bool any_order() { return std::getenv("ISTHMUS_TEST_ANY_ORDER") != nullptr; }

class NcclBesideStreams : public testing::Test {
 protected:
  void SetUp() override {
    void* const nccl = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (nccl == nullptr || ::dlsym(nccl, "fake_nccl_living") == nullptr || size() < 2 || devices() < size())
      GTEST_SKIP()
          << "not covered here: who carries reductions beside streams; there is no fake NCCL, or no device for each rank";
  }
};
// What is never over for the process that does it: in one of its own.
class NcclAlone : public NcclBesideStreams {};

// When NCCL is there follows from the engines of all ranks, until the program has heard of it.
TEST_F(NcclBesideStreams, AFirstCallWhoseOrderShowsLeavesItToTheNextUnlessItWaits) {
  ist_comm first = copy_of(comm());
  EXPECT_EQ(any_order() ? "nccl" : "none", least(first));
  EXPECT_EQ("nccl", least(first));
  ist_comm second = copy_of(comm());
  EXPECT_EQ("nccl", least_waiting(second));
  EXPECT_EQ("nccl", least(second));
  ist_comm third = copy_of(comm());
  EXPECT_EQ("nccl", carrier_of<std::int64_t>(IST_INT64, IST_SUM, third));
  EXPECT_EQ("nccl", least(third));
  for (ist_comm* each : {&first, &second, &third}) IST_OK_OR_FAIL(ist_comm_free(each));
}

// Two at once, the second before the program has heard of the first.
TEST_F(NcclBesideStreams, ItIsNotUsedBeforeTheProgramHasHeardOfIt) {
  ist_comm made = copy_of(comm());
  const Summands<double> summands{IST_MIN, Member{made}};
  const Numbers sent{IST_KIND_CUDA, input_of(rank(), kNumbers, 5)};
  const Numbers numbers{IST_KIND_CUDA, bytes_of(summands.mine)};
  ist_request requests[2] = {IST_REQUEST_NULL, IST_REQUEST_NULL};
  IST_OK_OR_FAIL(ist_iallreduce(IST_IN_PLACE, sent.get(), count(kNumbers), IST_UINT64, IST_SUM, made, &requests[0]));
  for (int moment = 0; moment < 100 * (rank() % 2); ++moment) {
    int found = 0;
    IST_OK_OR_FAIL(ist_iprobe(IST_ANY_SOURCE, kTag, comm(), &found, IST_STATUS_IGNORE));
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
  IST_OK_OR_FAIL(ist_iallreduce(IST_IN_PLACE, numbers.get(), count(kNumbers), IST_DOUBLE, IST_MIN, made, &requests[1]));
  ist_status statuses[2] = {};
  IST_OK_OR_FAIL(ist_waitall(2, requests, statuses));
  EXPECT_STREQ("nccl", ist_carrier_name(statuses[0].carrier));
  EXPECT_STREQ(any_order() ? "nccl" : "none", ist_carrier_name(statuses[1].carrier));
  numbers.expect(bytes_of(summands.wanted), "the reduction");
  EXPECT_EQ("nccl", least(made));
  IST_OK_OR_FAIL(ist_comm_free(&made));
}

// Making NCCL's communicator waits for the device, and so is not begun while a request of another communicator is open, however long that is over.
TEST_F(NcclBesideStreams, IsThereBesideACallOfAnotherCommunicatorOnlyIfItWasBefore) {
  ist_comm known = copy_of(comm());
  ist_comm other = copy_of(comm());
  ist_comm fresh = copy_of(comm());
  for (const ist_comm on : {other, known}) EXPECT_EQ("nccl", least_waiting(on));
  const Numbers sent{IST_KIND_CUDA, input_of(rank(), kNumbers, 5)};
  ist_request request = IST_REQUEST_NULL;
  IST_OK_OR_FAIL(ist_iallreduce(IST_IN_PLACE, sent.get(), count(kNumbers), IST_UINT64, IST_SUM, other, &request));
  for (int looks = 0; looks < 2; ++looks) {
    EXPECT_EQ("nccl", least(known));
    EXPECT_EQ("nccl", carrier_of<double>(IST_DOUBLE, IST_SUM, known));
    EXPECT_EQ("none", least(fresh));
    EXPECT_EQ("none", carrier_of<std::int64_t>(IST_INT64, IST_SUM, fresh));
    const Numbers numbers{IST_KIND_CUDA, bytes_of(Summands<double>{IST_MIN, Member{fresh}}.mine)};
    IST_OK_OR_FAIL(ist_allreduce(IST_IN_PLACE, numbers.get(), count(kNumbers), IST_DOUBLE, IST_MIN, fresh));
    for (int moment = 0; moment < 100; ++moment) {
      int found = 0;
      IST_OK_OR_FAIL(ist_iprobe(IST_ANY_SOURCE, kTag, comm(), &found, IST_STATUS_IGNORE));
      std::this_thread::sleep_for(std::chrono::milliseconds{2});
    }
    IST_OK_OR_FAIL(ist_barrier(comm()));
  }
  ist_status status{};
  IST_OK_OR_FAIL(ist_wait(&request, &status));
  EXPECT_STREQ("nccl", ist_carrier_name(status.carrier));
  EXPECT_EQ("nccl", least_waiting(fresh));
  for (ist_comm* each : {&known, &other, &fresh}) IST_OK_OR_FAIL(ist_comm_free(each));
}

// Whether a test finds a call over follows from a clock, and the program need not have looked at what it found.
TEST_F(NcclBesideStreams, WhatATestHasFoundOverIsNotKnownUntilALaterCallWasWaitedFor) {
  ist_comm tested = copy_of(comm());
  ist_comm fresh = copy_of(comm());
  const Numbers sent{IST_KIND_CUDA, input_of(rank(), kNumbers, 5)};
  const auto test_until_over = [&] {
    ist_request request = IST_REQUEST_NULL;
    IST_OK_OR_FAIL(ist_iallreduce(IST_IN_PLACE, sent.get(), count(kNumbers), IST_UINT64, IST_SUM, tested, &request));
    for (int over = 0; over == 0;) IST_OK_OR_FAIL(ist_test(&request, &over, IST_STATUS_IGNORE));
  };
  for (int round = 0; round < 3; ++round) test_until_over();
  EXPECT_EQ(any_order() ? "nccl" : "none", least(tested));
  EXPECT_EQ("nccl", least(tested));
  // Whether the test or the wait has found it over makes no difference, either.
  for (const int moments : {0, 100}) {
    ist_request request = IST_REQUEST_NULL;
    IST_OK_OR_FAIL(ist_iallreduce(IST_IN_PLACE, sent.get(), count(kNumbers), IST_UINT64, IST_SUM, tested, &request));
    std::this_thread::sleep_for(std::chrono::milliseconds{moments * (rank() + 1)});
    int over = 0;
    IST_OK_OR_FAIL(ist_test(&request, &over, IST_STATUS_IGNORE));
    IST_OK_OR_FAIL(ist_wait(&request, IST_STATUS_IGNORE));
    EXPECT_EQ("none", least_waiting(fresh));
  }
  EXPECT_EQ("nccl", least(tested));
  EXPECT_EQ("nccl", least_waiting(fresh));
  for (ist_comm* each : {&tested, &fresh}) IST_OK_OR_FAIL(ist_comm_free(each));
}

// A kernel of a communicator that is there would be in the way of making another one.
TEST_F(NcclBesideStreams, IsNotUsedBesideACallThatMakesAnother) {
  ist_comm known = copy_of(comm());
  ist_comm fresh = copy_of(comm());
  EXPECT_EQ("nccl", least_waiting(known));
  const Numbers sent{IST_KIND_CUDA, input_of(rank(), kNumbers, 5)};
  ist_request request = IST_REQUEST_NULL;
  IST_OK_OR_FAIL(ist_iallreduce(IST_IN_PLACE, sent.get(), count(kNumbers), IST_UINT64, IST_SUM, fresh, &request));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ("none", least(known));
    EXPECT_EQ("none", carrier_of<std::int64_t>(IST_INT64, IST_SUM, known));
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
  }
  ist_status status{};
  IST_OK_OR_FAIL(ist_wait(&request, &status));
  EXPECT_STREQ("nccl", ist_carrier_name(status.carrier));
  for (const ist_comm on : {known, fresh}) EXPECT_EQ("nccl", least(on));
  for (ist_comm* each : {&known, &fresh}) IST_OK_OR_FAIL(ist_comm_free(each));
}

// What another thread gave NCCL to do is waited for. Rank 0's part of it comes behind work of the user's, so that the others' kernels run meanwhile.
TEST_F(NcclBesideStreams, IsMadeWhenTheCallOfAnotherThreadIsOver) {
  ist_comm other = copy_of(comm());
  ist_comm fresh = copy_of(comm());
  EXPECT_EQ("nccl", least_waiting(other));
  const Stream stream;
  const Numbers numbers{IST_KIND_CUDA, bytes_of(Summands<double>{IST_MIN, Member{other}}.mine)};
  ist_buffer buffer = numbers.get();
  buffer.queue = reinterpret_cast<std::uintptr_t>(stream.get());
  if (rank() == 0) stream.within([&] { ok(DRIVER(cuLaunchHostFunc)(stream.driver(), take_a_while, nullptr)); });
  const auto begun = std::chrono::steady_clock::now();
  ist_status status{};
  std::thread thread([&] {
    ist_request request = IST_REQUEST_NULL;
    EXPECT_EQ(IST_OK, ist_iallreduce(IST_IN_PLACE, buffer, count(kNumbers), IST_DOUBLE, IST_MIN, other, &request));
    EXPECT_EQ(IST_OK, ist_wait(&request, &status)) << ist_error_text();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds{100});
  EXPECT_EQ("nccl", carrier_of<std::int64_t>(IST_INT64, IST_SUM, fresh));
  EXPECT_GT(std::chrono::steady_clock::now() - begun, kAWhile);
  thread.join();
  EXPECT_STREQ("nccl", ist_carrier_name(status.carrier));
  EXPECT_EQ("nccl", least(fresh));
  for (ist_comm* each : {&other, &fresh}) IST_OK_OR_FAIL(ist_comm_free(each));
}

// A rank that is no member prepares a channel to one that is, which hears of it at any time, and has asked for none.
TEST_F(NcclBesideStreams, IsThereWhateverChannelsOthersPrepareToItsRanks) {
  if (size() < 3) GTEST_SKIP() << "not covered here: a rank outside of a communicator of two";
  ist_comm pair = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_comm_split(comm(), rank() < 2 ? 0 : IST_UNDEFINED, rank(), &pair));
  ist_comm fresh = copy_of(comm());
  EXPECT_EQ("nccl", least_waiting());
  if (rank() == 2) {
    const Stream stream;
    IST_OK_OR_FAIL(ist_prepare_on(stream.get(), 0, kTag, IST_SENDS, comm()));
  }
  IST_OK_OR_FAIL(ist_barrier(comm()));
  if (rank() < 2) {
    EXPECT_EQ("nccl", least_waiting(pair));
    IST_OK_OR_FAIL(ist_comm_free(&pair));
  }
  EXPECT_EQ("none", least_waiting(fresh));
  EXPECT_EQ("nccl", least());
  IST_OK_OR_FAIL(ist_comm_free(&fresh));
}

// In this order: once streams of the process may wait, they always may. A first call that is under way then ends one way or the other, and soon.
TEST_F(NcclBesideStreams, StreamsThatComeBesideAFirstCallDoNotHoldItUp) {
  ist_comm fresh = copy_of(comm());
  EXPECT_EQ("nccl", least_waiting());
  const auto begun = std::chrono::steady_clock::now();
  const Summands<std::int64_t> summands{IST_SUM, Member{fresh}};
  const Numbers numbers{IST_KIND_CUDA, bytes_of(summands.mine)};
  if (rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds{100});
  ist_request request = IST_REQUEST_NULL;
  IST_OK_OR_FAIL(ist_iallreduce(IST_IN_PLACE, numbers.get(), count(kNumbers), IST_INT64, IST_SUM, fresh, &request));
  // Rank 0's stream waits for a message that rank 1 sends when that call is over.
  const Stream stream;
  const Numbers word{IST_KIND_CUDA, std::size_t{1}};
  if (rank() == 0) IST_OK_OR_FAIL(ist_recv_on(stream.get(), word.get(), 8, IST_BYTE, 1, kTag, comm()));
  IST_OK_OR_FAIL(ist_wait(&request, IST_STATUS_IGNORE));
  numbers.expect(bytes_of(summands.wanted), "the reduction");
  if (rank() == 1) IST_OK_OR_FAIL(ist_send_on(stream.get(), word.get(), 8, IST_BYTE, 0, kTag, comm()));
  stream.wait();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds{20});
  EXPECT_EQ("none", least_waiting(fresh));
  IST_OK_OR_FAIL(ist_comm_free(&fresh));
}

// In this order: once streams of the process may wait, they always may.
TEST_F(NcclBesideStreams, IsThereBesideCallsInStreamsOnlyIfItWasBefore) {
  ist_comm fresh = copy_of(comm());
  EXPECT_EQ("nccl", least_waiting());
  const Stream stream;
  const Numbers few{IST_KIND_CUDA, input_of(rank(), 100, 3)};
  for (int round = 0; round < 2; ++round) {
    IST_OK_OR_FAIL(ist_allreduce_on(stream.get(), IST_IN_PLACE, few.get(), 100, IST_UINT64, IST_MAX, comm()));
    for (const bool waited : {false, true}) {
      EXPECT_EQ("nccl", least());
      EXPECT_EQ("nccl", carrier_of<double>(IST_DOUBLE, IST_SUM));
      EXPECT_EQ("nccl", carrier_of<std::int64_t>(IST_INT64, IST_MIN));
      EXPECT_EQ("none", least_waiting(fresh));
      EXPECT_EQ("none", carrier_of<std::int64_t>(IST_INT64, IST_MIN, fresh));
      if (!waited) stream.wait();
    }
  }
  IST_OK_OR_FAIL(ist_comm_free(&fresh));
}

// Ranks come to two calls in different orders, in several threads or in one.
TEST_F(NcclAlone, CallsThatRanksComeToInDifferentOrdersEnd) {
  ist_comm other = copy_of(comm());
  ist_comm fresh = copy_of(comm());
  EXPECT_EQ("nccl", least_waiting(other));
  if (rank() == 0) {
    EXPECT_EQ("none", least(fresh));
    EXPECT_EQ("nccl", least(other));
  } else {
    std::string of_other;
    std::thread thread([&] { of_other = least(other); });
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
    EXPECT_EQ("none", least(fresh));
    thread.join();
    EXPECT_EQ("nccl", of_other);
  }
  EXPECT_EQ("nccl", least_waiting(fresh));
  for (ist_comm* each : {&other, &fresh}) IST_OK_OR_FAIL(ist_comm_free(each));
}

// Nobody is told when a freed request is over.
TEST_F(NcclAlone, OnceARequestWasFreedItIsThereOnlyIfItWasBefore) {
  ist_comm known = copy_of(comm());
  ist_comm heard_of = copy_of(comm());
  ist_comm fresh = copy_of(comm());
  EXPECT_EQ("nccl", least_waiting(known));
  EXPECT_EQ("none", least(heard_of));
  const Numbers sent{IST_KIND_CUDA, input_of(rank(), kNumbers, 5)};
  ist_request request = IST_REQUEST_NULL;
  IST_OK_OR_FAIL(ist_iallreduce(IST_IN_PLACE, sent.get(), count(kNumbers), IST_UINT64, IST_SUM, known, &request));
  IST_OK_OR_FAIL(ist_request_free(&request));
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ("nccl", least(known));  // behind the freed one
    EXPECT_EQ("nccl", least(heard_of));
    EXPECT_EQ("none", least_waiting(fresh));
  }
  for (ist_comm* each : {&known, &heard_of, &fresh}) IST_OK_OR_FAIL(ist_comm_free(each));
}

}  // namespace
