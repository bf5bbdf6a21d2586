// A barrier of a symmetric heap in a stream while NCCL sets itself up for a call that was started before it: that goes on with this rank's
// calls alone, of which the barrier is one. Run on 2 ranks, with the fake driver and the fake NCCL, in a process of its own.
#include <isthmus/heap_stream.h>

#include "collective_support.hpp"
#include "one_sided_support.hpp"
#include "streams_support.hpp"

namespace {

using namespace rank_test;
using namespace collective_test;

TEST(HeapBesideNccl, a_barrier_in_a_stream_lets_nccl_set_itself_up) {
  void* const nccl = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  void* const found = nccl == nullptr ? nullptr : ::dlsym(nccl, "fake_nccl_living");
  if (found == nullptr || size() < 2 || devices() < size())
    GTEST_SKIP() << "SKIPPED: no fake NCCL, or no device for each rank";
  const auto living = reinterpret_cast<std::uint64_t (*)()>(found);
  constexpr std::size_t kNumbers = 131072;
  const TestHeap heap(IST_KIND_CUDA);
  const Stream stream;
  const Numbers numbers{IST_KIND_CUDA, input_of(rank(), kNumbers, 7)};
  ASSERT_EQ(0U, living()) << "NCCL is there before its first call";
  ist_request request = IST_REQUEST_NULL;
  IST_OK_OR_FAIL(ist_iallreduce(IST_IN_PLACE, numbers.get(), count(kNumbers), IST_UINT64, IST_SUM, comm(), &request));
  // Until it has begun.
  for (int over = 0; living() == 0;) {
    IST_OK_OR_FAIL(ist_test(&request, &over, IST_STATUS_IGNORE));
    ASSERT_EQ(0, over) << "the call was over without NCCL";
  }
  IST_OK_OR_FAIL(ist_heap_barrier_on(heap, stream.get()));
  ist_status status{};
  IST_OK_OR_FAIL(ist_wait(&request, &status));
  EXPECT_STREQ("nccl", ist_carrier_name(status.carrier));
  stream.wait();
  numbers.expect(sum_of(0, size(), kNumbers, 7), "the sum");
}

}  // namespace
