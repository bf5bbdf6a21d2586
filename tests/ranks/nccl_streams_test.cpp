// Reductions that NCCL may carry in a process that has collective calls in streams, too: where the order of combining shows they go one way from
// the first of those on, whatever streams hold. Run on 2 and 3 ranks, with the fake driver and the fake NCCL, in a process of its own.
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
std::string carrier_of(ist_type type, ist_op op, ist_comm on = comm()) {
  std::vector<T> mine(kNumbers);
  std::vector<T> wanted(kNumbers);
  const Member here{on};
  for (std::size_t i = 0; i < kNumbers; ++i) {
    const auto of = [i](int r) { return static_cast<T>(1 + (i * 7 + static_cast<std::size_t>(r) * 3) % 5); };
    mine[i] = of(here.rank);
    wanted[i] = of(0);
    for (int r = 1; r < here.size; ++r) wanted[i] = op == IST_SUM ? wanted[i] + of(r) : std::min(wanted[i], of(r));
  }
  const auto bytes_of = [](const std::vector<T>& from) {
    Bytes bytes(kNumbers * sizeof(T));
    std::memcpy(bytes.data(), from.data(), bytes.size());
    return bytes;
  };
  static_assert(sizeof(T) == 8);
  const Numbers numbers{IST_KIND_CUDA, bytes_of(mine)};
  ist_request request = IST_REQUEST_NULL;
  EXPECT_EQ(IST_OK, ist_iallreduce(IST_IN_PLACE, numbers.get(), count(kNumbers), type, op, on, &request))
      << ist_error_text();
  ist_status status{};
  EXPECT_EQ(IST_OK, ist_wait(&request, &status)) << ist_error_text();
  numbers.expect(bytes_of(wanted), "the reduction");
  return ist_carrier_name(status.carrier);
}

// Where what streams hold decides, it may take the library another look to see that they are over. All ranks hear the same of each call.
template <typename T>
void expect_nccl_soon(ist_type type, ist_op op) {
  std::string carrier;
  for (int calls = 0; calls < 100 && carrier != "nccl"; ++calls) carrier = carrier_of<T>(type, op);
  EXPECT_EQ("nccl", carrier);
}

// May NCCL have what is no risk at the moment?
bool any_order() { return std::getenv("ISTHMUS_TEST_ANY_ORDER") != nullptr; }
// Or is it no risk at any time?
bool by_either() {
  const char* const loading = std::getenv("CUDA_MODULE_LOADING");
  return (loading != nullptr && std::string{loading} == "EAGER") || any_order();
}

// In this order: once streams of the process may wait, they always may.
class NcclBesideStreams : public testing::Test {
 protected:
  void SetUp() override {
    void* const nccl = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (nccl == nullptr || ::dlsym(nccl, "fake_nccl_living") == nullptr || size() < 2 || devices() < size())
      GTEST_SKIP()
          << "not covered here: who carries reductions beside streams; there is no fake NCCL, or no device for each rank";
  }
};

// Of two communicators the one has them where the program has taken the outcome of every call on the other, however long that is over.
TEST_F(NcclBesideStreams, HasReductionsWhoseOrderShowsWhileNoRequestOfAnotherCommunicatorIsOpen) {
  ist_comm other = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_comm_dup(comm(), &other));
  for (const ist_comm on : {other, comm()}) EXPECT_EQ("nccl", carrier_of<double>(IST_DOUBLE, IST_MIN, on));
  const Numbers sent{IST_KIND_CUDA, input_of(rank(), kNumbers, 5)};
  ist_request request = IST_REQUEST_NULL;
  IST_OK_OR_FAIL(ist_iallreduce(IST_IN_PLACE, sent.get(), count(kNumbers), IST_UINT64, IST_SUM, other, &request));
  for (int looks = 0; looks < 2; ++looks) {
    const std::string carrier = carrier_of<double>(IST_DOUBLE, IST_MIN);
    if (!any_order()) {
      EXPECT_EQ(by_either() ? "nccl" : "none", carrier);
    }
    if (size() > 2 && !any_order()) {
      EXPECT_EQ(by_either() ? "nccl" : "none", carrier_of<double>(IST_DOUBLE, IST_SUM));
    }
    for (int moment = 0; moment < 100; ++moment) {
      int found = 0;
      IST_OK_OR_FAIL(ist_iprobe(IST_ANY_SOURCE, kTag, comm(), &found, IST_STATUS_IGNORE));
      std::this_thread::sleep_for(std::chrono::milliseconds{2});
    }
    IST_OK_OR_FAIL(ist_barrier(comm()));
  }
  expect_nccl_soon<std::int64_t>(IST_INT64, IST_SUM);
  ist_status status{};
  IST_OK_OR_FAIL(ist_wait(&request, &status));
  EXPECT_STREQ("nccl", ist_carrier_name(status.carrier));
  EXPECT_EQ("nccl", carrier_of<double>(IST_DOUBLE, IST_MIN));
  EXPECT_EQ("nccl", carrier_of<double>(IST_DOUBLE, IST_SUM));
  IST_OK_OR_FAIL(ist_comm_free(&other));
}

// A rank that is no member prepares a channel to one that is, which hears of it at any time, and has asked for none.
TEST_F(NcclBesideStreams, HasThemWhateverChannelsOthersPrepareToItsRanks) {
  if (size() < 3) GTEST_SKIP() << "not covered here: a rank outside of a communicator of two";
  ist_comm pair = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_comm_split(comm(), rank() < 2 ? 0 : IST_UNDEFINED, rank(), &pair));
  if (rank() < 2) {
    EXPECT_EQ("nccl", carrier_of<double>(IST_DOUBLE, IST_MIN, pair));
  }
  IST_OK_OR_FAIL(ist_barrier(comm()));
  if (rank() == 2) {
    const Stream stream;
    IST_OK_OR_FAIL(ist_prepare_on(stream.get(), 0, kTag, IST_SENDS, comm()));
  }
  IST_OK_OR_FAIL(ist_barrier(comm()));
  if (rank() < 2) {
    EXPECT_EQ("nccl", carrier_of<double>(IST_DOUBLE, IST_MIN, pair));
    IST_OK_OR_FAIL(ist_comm_free(&pair));
  }
  if (any_order()) return expect_nccl_soon<double>(IST_DOUBLE, IST_MIN);
  EXPECT_EQ(by_either() ? "nccl" : "none", carrier_of<double>(IST_DOUBLE, IST_MIN));
}

TEST_F(NcclBesideStreams, HasNoneOfThemFromTheFirstCallInStreamsOn) {
  const Stream stream;
  const Numbers few{IST_KIND_CUDA, input_of(rank(), 100, 3)};
  for (int round = 0; round < 2; ++round) {
    IST_OK_OR_FAIL(ist_allreduce_on(stream.get(), IST_IN_PLACE, few.get(), 100, IST_UINT64, IST_MAX, comm()));
    stream.wait();
    if (any_order() || size() == 2) expect_nccl_soon<double>(IST_DOUBLE, IST_SUM);
    if (any_order()) expect_nccl_soon<double>(IST_DOUBLE, IST_MIN);
    if (!any_order()) {
      EXPECT_EQ(by_either() ? "nccl" : "none", carrier_of<double>(IST_DOUBLE, IST_MIN));
    }
    if (!any_order() && size() > 2) {
      EXPECT_EQ(by_either() ? "nccl" : "none", carrier_of<double>(IST_DOUBLE, IST_SUM));
    }
    expect_nccl_soon<std::int64_t>(IST_INT64, IST_MIN);
  }
}

}  // namespace
