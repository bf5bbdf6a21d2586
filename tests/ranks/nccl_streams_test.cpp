// Reductions that NCCL may carry in a process that has collective calls in streams, too: where the order of combining shows they go one way from
// the first of those on, whatever streams hold. Run on 2 and 3 ranks, with the fake driver and the fake NCCL, in a process of its own.
//
// CUDA_MODULE_LOADING says whether first launches wait for kernels that run; ISTHMUS_TEST_ANY_ORDER that the profile gives up the order.
#include <isthmus/stream.h>

#include <cstdlib>
#include <cstring>

#include "collective_support.hpp"
#include "streams_support.hpp"

namespace {

using namespace rank_test;
using namespace collective_test;

constexpr std::size_t kNumbers = 131072;

// Whole numbers, which every order adds to the same bits: who carried it is what is asked.
template <typename T>
std::string carrier_of(ist_type type, ist_op op) {
  std::vector<T> mine(kNumbers);
  std::vector<T> wanted(kNumbers);
  for (std::size_t i = 0; i < kNumbers; ++i) {
    const auto of = [i](int r) { return static_cast<T>(1 + (i * 7 + static_cast<std::size_t>(r) * 3) % 5); };
    mine[i] = of(rank());
    wanted[i] = of(0);
    for (int r = 1; r < size(); ++r) wanted[i] = op == IST_SUM ? wanted[i] + of(r) : std::min(wanted[i], of(r));
  }
  const auto bytes_of = [](const std::vector<T>& from) {
    Bytes bytes(kNumbers * sizeof(T));
    std::memcpy(bytes.data(), from.data(), bytes.size());
    return bytes;
  };
  static_assert(sizeof(T) == 8);
  const Numbers numbers{IST_KIND_CUDA, bytes_of(mine)};
  ist_request request = IST_REQUEST_NULL;
  EXPECT_EQ(IST_OK, ist_iallreduce(IST_IN_PLACE, numbers.get(), count(kNumbers), type, op, comm(), &request))
      << ist_error_text();
  ist_status status{};
  EXPECT_EQ(IST_OK, ist_wait(&request, &status)) << ist_error_text();
  numbers.expect(bytes_of(wanted), "the reduction");
  return ist_carrier_name(status.carrier);
}

TEST(NcclBesideStreams, HasReductionsWhoseOrderShowsBeforeTheFirstOfThemAndThenNoMore) {
  void* const nccl = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (nccl == nullptr || ::dlsym(nccl, "fake_nccl_living") == nullptr || size() < 2 || devices() < size())
    GTEST_SKIP()
        << "not covered here: who carries reductions beside streams; there is no fake NCCL, or no device for each rank";
  EXPECT_EQ("nccl", carrier_of<double>(IST_DOUBLE, IST_SUM));
  EXPECT_EQ("nccl", carrier_of<double>(IST_DOUBLE, IST_MIN));
  EXPECT_EQ("nccl", carrier_of<std::int64_t>(IST_INT64, IST_SUM));

  const char* const loading = std::getenv("CUDA_MODULE_LOADING");
  const bool by_either =
      (loading != nullptr && std::string{loading} == "EAGER") || std::getenv("ISTHMUS_TEST_ANY_ORDER") != nullptr;
  const Stream stream;
  const Numbers few{IST_KIND_CUDA, input_of(rank(), 100, 3)};
  for (int round = 0; round < 2; ++round) {
    IST_OK_OR_FAIL(ist_allreduce_on(stream.get(), IST_IN_PLACE, few.get(), 100, IST_UINT64, IST_MAX, comm()));
    stream.wait();
    EXPECT_EQ(by_either || size() == 2 ? "nccl" : "none", carrier_of<double>(IST_DOUBLE, IST_SUM));
    EXPECT_EQ(by_either ? "nccl" : "none", carrier_of<double>(IST_DOUBLE, IST_MIN));
    EXPECT_EQ("nccl", carrier_of<std::int64_t>(IST_INT64, IST_MIN));
  }
}

}  // namespace
