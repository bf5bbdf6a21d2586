// Long collective calls in streams, which NCCL carries where it is found, and kernels or channels in pieces elsewhere. ISTHMUS_TEST_NCCL says
// what must carry them: nccl, or messages.
#include <cstdlib>

#include "collective_support.hpp"
#include "streams_support.hpp"

namespace {

using namespace rank_test;
using namespace collective_test;

#define NEEDS_A_DEVICE()                                                              \
  if (::rank_test::devices() == 0)                                                    \
  GTEST_SKIP() << "not covered here: collective calls in streams, which take a CUDA " \
                  "device"

std::uint64_t calls_by_nccl() {
  ist_traffic traffic{};
  traffic.size = sizeof traffic;
  EXPECT_EQ(IST_OK, ist_world_traffic(world(), IST_ALL_PEERS, IST_CARRIER_NCCL, &traffic)) << ist_error_text();
  return traffic.messages_sent;
}

// Sums of numbers that wrap, so that any order gives the same; one element below the length from which NCCL is asked, there, and past it.
TEST(Meetings, LongCallsAreNcclsWhereItIsThereAndInPiecesElsewhere) {
  NEEDS_A_DEVICE();
  const Stream stream;
  constexpr std::size_t kLong = 4 << 20;
  const char* const carried = std::getenv("ISTHMUS_TEST_NCCL");
  const bool by_nccl = carried != nullptr && std::string{carried} == "nccl" && size() > 1;
  const Member here{comm()};
  for (const std::size_t elements : {kLong / 8 - 1, kLong / 8, kLong / 8 + 1}) {
    const std::uint64_t before = calls_by_nccl();
    const Numbers send{IST_KIND_CUDA, input_of(here.rank, elements, elements)};
    Numbers recv{IST_KIND_CUDA, elements};
    const auto n = static_cast<std::int64_t>(elements);
    // What comes before it in the stream and after it stays there.
    IST_OK_OR_FAIL(ist_barrier_on(stream.get(), comm()));
    IST_OK_OR_FAIL(ist_allreduce_on(stream.get(), send.get(), recv.get(), n, IST_UINT64, IST_SUM, comm()));
    IST_OK_OR_FAIL(ist_allreduce_on(stream.get(), IST_IN_PLACE, recv.get(), 1, IST_UINT64, IST_BOR, comm()));
    stream.wait();
    recv.expect(sum_of(0, here.size, elements, elements), "a sum of " + std::to_string(elements));
    const int last = here.size - 1;
    const Numbers to_last{IST_KIND_CUDA, elements};
    IST_OK_OR_FAIL(ist_reduce_on(stream.get(), send.get(), to_last.get(), n, IST_UINT64, IST_SUM, last, comm()));
    stream.wait();
    to_last.expect(here.rank == last ? sum_of(0, here.size, elements, elements) : Bytes{}, "a sum to the last rank");
    if (here.rank == last) recv.fill(input_of(7, elements, 1));
    IST_OK_OR_FAIL(ist_bcast_on(stream.get(), recv.get(), n, IST_UINT64, last, comm()));
    stream.wait();
    recv.expect(input_of(7, elements, 1), "from the last rank");
    if (carried != nullptr) {
      EXPECT_EQ(by_nccl && elements * 8 >= kLong ? 3U : 0U, calls_by_nccl() - before) << elements;
    }
  }
  // An operation that NCCL does not know, and what was captured.
  const auto mine = at(here.rank) + 1;
  std::size_t all = 0;
  for (int r = 0; r < here.size; ++r) all ^= at(r) + 1;
  Numbers bits{IST_KIND_CUDA, Bytes(kLong, static_cast<unsigned char>(mine))};
  const std::uint64_t without = calls_by_nccl();
  IST_OK_OR_FAIL(ist_allreduce_on(stream.get(), IST_IN_PLACE, bits.get(), kLong, IST_BYTE, IST_BXOR, comm()));
  stream.wait();
  bits.expect(Bytes(kLong, static_cast<unsigned char>(all)), "an exclusive or");
  EXPECT_EQ(without, calls_by_nccl());
  const Numbers buffer{IST_KIND_CUDA, kLong / 8};
  const auto put = [&] {
    return ist_allreduce_on(stream.get(), IST_IN_PLACE, buffer.get(), kLong / 8, IST_UINT64, IST_SUM, comm());
  };
  const Graph graph(stream, [&] {
    if (by_nccl) fails(IST_ERR_NOT_CAPTURABLE, put(), {"ist_allreduce_on", "NCCL", "ISTHMUS_NCCL=never"});
    if (!by_nccl && carried != nullptr) IST_OK_OR_FAIL(put());
  });
  graph.launch();
  stream.wait();
  together();
}

}  // namespace
