// Where reductions of CUDA memory are computed: on the host up to a size, which is greater where ranks share a device. Needs the tests'
// driver, which counts kernels.
#include <isthmus/collective.h>

#include <cstdlib>

#include "../fake_cuda/fake_cuda.h"
#include "collective_support.hpp"
#include "device_ranks.hpp"
#include "driver_memory.hpp"

using namespace rank_test;
using namespace collective_test;

namespace {

std::uint64_t sent_by_nccl() {
  ist_traffic found{};
  found.size = sizeof found;
  EXPECT_EQ(IST_OK, ist_world_traffic(world(), IST_ALL_PEERS, IST_CARRIER_NCCL, &found)) << ist_error_text();
  return found.messages_sent;
}

TEST(ArithmeticPlace, DependsOnTheSizeAndOnWhoHasTheDevice) {
  NEEDS_DEVICES();
  auto* const calls = DRIVER(fake_cuda_calls);
  if (calls == nullptr)
    GTEST_SKIP()
        << "SKIPPED: where reductions of CUDA memory are computed; this driver does not count kernels, the tests' own does";
  // Each rank's own device is the one of its number, in turn, or another one than the others see.
  bool shared = false;
  for (int other = 0; other < size() && std::getenv("ISTHMUS_TEST_OWN_DEVICES") == nullptr; ++other)
    shared = shared || (other != rank() && other % own_devices() == rank() % own_devices());
  // By a profile of a machine where that is cheap: never on the host.
  const char* const profile = std::getenv("ISTHMUS_PROFILE");
  const bool always = profile != nullptr && std::string{profile}.ends_with("on_devices.json");
  const struct {
    std::size_t bytes;
    bool alone, shared;  // kernels run
  } cases[] = {{16 << 10, false, false}, {128 << 10, false, false}, {(128 << 10) + 8, true, false},
               {1 << 20, true, false},   {8 << 20, true, false},    {(8 << 20) + 8, true, true}};
  for (const auto& each : cases) {
    const std::size_t count = each.bytes / 8;
    const Numbers send{IST_KIND_CUDA, input_of(rank(), count, count)};
    const Numbers recv{IST_KIND_CUDA, count};
    const std::uint64_t before = calls("cuLaunchKernel");
    // The whole vector is combined at once: by one that each rank hands on to the next.
    IST_OK_OR_FAIL(ist_scan(send.get(), recv.get(), static_cast<std::int64_t>(count), IST_INT64, IST_SUM, comm()));
    const std::uint64_t launched = calls("cuLaunchKernel") - before;
    recv.expect(sum_of(0, rank() + 1, count, count), std::to_string(each.bytes) + " bytes");
    // The first rank combines nothing.
    if (rank() > 0) {
      EXPECT_EQ(always || (shared ? each.shared : each.alone), launched > 0)
          << each.bytes << " bytes, " << launched << " kernels, device " << (shared ? "shared" : "alone");
    }
    // Here each combines a part.
    const std::size_t all = count * at(size());
    const Numbers whole{IST_KIND_CUDA, input_of(rank(), all, count)};
    const Numbers sum{IST_KIND_CUDA, all};
    const std::uint64_t by_nccl = sent_by_nccl();
    const std::uint64_t before_parts = calls("cuLaunchKernel");
    IST_OK_OR_FAIL(ist_allreduce(whole.get(), sum.get(), static_cast<std::int64_t>(all), IST_INT64, IST_SUM, comm()));
    const std::uint64_t for_parts = calls("cuLaunchKernel") - before_parts;
    sum.expect(sum_of(0, size(), all, count), "parts of " + std::to_string(each.bytes) + " bytes");
    // What NCCL carries it combines by itself; the scan above looks at the sizes where the place changes, too.
    const bool nccl = sent_by_nccl() != by_nccl;
    if (!nccl) {
      EXPECT_EQ(always || (shared ? each.shared : each.alone), for_parts > 0)
          << "parts of " << each.bytes << " bytes, " << for_parts << " kernels, device " << (shared ? "shared" : "alone");
    }
    IST_OK_OR_FAIL(ist_barrier(comm()));
  }
}

}  // namespace
