// Signals of puts that are not waited for: the word changes behind the bytes, from whatever memory they come. Run as messages_test.cpp is.
#include "one_sided_support.hpp"

namespace {

using namespace rank_test;

// No quiet anywhere: who waits for its own word moves on what it has put.
TEST(OneSidedSignals, ASignalFollowsTheBytesOfAPutThatIsNotWaitedFor) {
  for (const KindName& of : heap_kinds()) {
    const TestHeap heap{of.kind};
    for (const KindName& from : usable_kinds())
      for (const std::size_t bytes : {std::size_t{0}, std::size_t{3000}, std::size_t{3000001}}) {
        unsigned char* const part = heap.alloc(bytes + 1);
        void* zeroed = nullptr;
        IST_OK_OR_FAIL(ist_heap_calloc(heap, 1, 8, &zeroed));
        auto* const signal = static_cast<std::uint64_t*>(zeroed);
        GuardedBuffer source{from.kind, bytes};
        for (std::uint64_t round = 1; round <= 6; ++round) {
          const auto seed = [&](int pe) { return round * 100 + static_cast<std::uint64_t>(pe); };
          source.fill(random_bytes(bytes, seed(rank())));
          const bool adds = round % 2 == 0;
          IST_OK_OR_FAIL(ist_heap_put_signal_nbi(heap, part, source.get(), bytes, signal, adds ? 1 : round,
                                                 adds ? IST_SIGNAL_ADD : IST_SIGNAL_SET, right()));
          if (round <= 3) {
            IST_OK_OR_FAIL(ist_heap_wait_until(heap, signal, IST_UINT64, IST_COMPARE_EQ, static_cast<std::int64_t>(round)));
          } else {
            for (int is = 0; is == 0;)
              IST_OK_OR_FAIL(ist_heap_test(heap, signal, IST_UINT64, IST_COMPARE_EQ, static_cast<std::int64_t>(round), &is));
          }
          ASSERT_EQ(-1, first_difference(random_bytes(bytes, seed(left())), heap.load(part, bytes)))
              << bytes << " bytes from " << from.name << " into a heap of " << of.name << ", round " << round;
          heap.barrier();
        }
        std::uint64_t found = 0;
        expect_error(IST_ERR_ARGUMENT, "operation is 7",
                     ist_heap_put_signal_nbi(heap, part, source.get(), bytes, signal, 1, static_cast<ist_signal>(7), 0));
        expect_error(IST_ERR_ARGUMENT, "were named",
                     ist_heap_put_signal_nbi(heap, part, source.get(), bytes, &found, 1, IST_SIGNAL_SET, 0));
        expect_error(IST_ERR_ARGUMENT, "null",
                     ist_heap_put_signal_nbi(heap, part, ist_host(nullptr), 1, signal, 99, IST_SIGNAL_SET, 0));
        expect_error(IST_ERR_RANK, "pe is",
                     ist_heap_put_signal_nbi(heap, part, source.get(), bytes, signal, 99, IST_SIGNAL_SET, size()));
        IST_OK_OR_FAIL(ist_heap_quiet(heap));
        heap.barrier();
        IST_OK_OR_FAIL(ist_heap_signal_fetch(heap, signal, &found));
        EXPECT_EQ(6U, found) << "a call that was refused has changed the word";
        heap.barrier();
        IST_OK_OR_FAIL(ist_heap_free(heap, zeroed));
        IST_OK_OR_FAIL(ist_heap_free(heap, part));
      }
  }
}

}  // namespace
