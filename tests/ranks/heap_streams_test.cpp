// Symmetric heaps of CUDA memory in the order of streams: puts, gets, signals, waits, layouts and barriers, plain and replayed from graphs,
// every byte compared; and what is refused. Run on 1, 2 and 4 ranks.
#include <isthmus/heap_stream.h>

#include "../fake_cuda/fake_cuda.h"
#include "laid.hpp"
#include "one_sided_support.hpp"
#include "streams_support.hpp"

namespace {

using namespace rank_test;

#define NEEDS_A_DEVICE() \
  if (devices() == 0) GTEST_SKIP() << "not covered here: heaps in streams, which take a CUDA device"
#define NEEDS_A_DEVICE_EACH() \
  if (devices() < size()) GTEST_SKIP() << "not covered here: streams that meet, where each rank has a CUDA device"

std::uint64_t seed_of(int pe, std::uint64_t what) { return what * 1000 + static_cast<std::uint64_t>(pe); }
std::uint64_t* as_word(unsigned char* address) { return reinterpret_cast<std::uint64_t*>(address); }

// Of device memory, as the fake driver counts them; 0 with another one.
std::uint64_t allocations() {
  auto* const calls = DRIVER(fake_cuda_calls);
  return calls == nullptr ? 0 : calls("cuMemAlloc_v2");
}

// What was put into the streams of all is over, and may be looked at.
void all_waited(const Stream& stream) {
  stream.wait();
  together();
}

TEST(HeapStreams, bytes_come_before_their_signal) {
  NEEDS_A_DEVICE();
  const TestHeap heap(IST_KIND_CUDA);
  const Stream stream;
  constexpr std::size_t kMost = 1 << 20;
  unsigned char *const room = heap.alloc(kMost + 16), *const target = heap.alloc(kMost + 16),
                       *const back = heap.alloc(kMost + 16);
  std::uint64_t* const signals = as_word(heap.alloc(16));
  heap.store(reinterpret_cast<unsigned char*>(signals), Bytes(16, 0));
  heap.barrier();
  std::uint64_t round = 0;
  // One kernel stores up to 178571 bytes, and 10298 where they lie otherwise there, by the numbers that are built in; a copy engine more.
  constexpr std::pair<std::size_t, std::size_t> kPuts[] = {
      {0, 0}, {1, 0}, {7, 1}, {8, 0}, {4097, 4}, {10298, 1}, {10299, 1}, {65537, 8}, {178571, 0}, {178572, 0}, {kMost, 0}};
  for (const auto& [bytes, off] : kPuts) {
    for (const ist_signal operation : {IST_SIGNAL_SET, IST_SIGNAL_ADD}) {
      ++round;
      unsigned char* const source = room + off;
      heap.store(source, random_bytes(bytes, seed_of(rank(), round)));
      heap.store(target, Bytes(bytes + 16, 0xa5));
      heap.barrier();
      // The source is written over as soon as the stream has passed the put, and what came is copied on.
      const std::uint64_t value = operation == IST_SIGNAL_SET ? round : 1;
      IST_OK_OR_FAIL(ist_heap_put_signal_on(heap, stream.get(), target, ist_cuda(source, stream.get()), bytes,
                                            signals + (operation == IST_SIGNAL_ADD), value, operation, right()));
      const std::uint64_t made = allocations();
      IST_OK_OR_FAIL(ist_heap_wait_until_on(heap, stream.get(), signals + (operation == IST_SIGNAL_ADD), IST_UINT64,
                                            operation == IST_SIGNAL_SET ? IST_COMPARE_EQ : IST_COMPARE_GE,
                                            static_cast<std::int64_t>(operation == IST_SIGNAL_SET ? round : round / 2)));
      EXPECT_EQ(allocations(), made) << "with a heap is made what its waits need";
      IST_OK_OR_FAIL(ist_heap_get_on(heap, stream.get(), ist_cuda(back, stream.get()), target, bytes + 16, rank()));
      all_waited(stream);
      Bytes wanted = random_bytes(bytes, seed_of(left(), round));
      wanted.resize(bytes + 16, 0xa5);
      EXPECT_EQ(-1, first_difference(wanted, heap.load(back, bytes + 16))) << bytes;
      heap.barrier();
    }
  }
}

TEST(HeapStreams, gets_follow_a_barrier_of_all) {
  NEEDS_A_DEVICE_EACH();
  const TestHeap heap(IST_KIND_CUDA);
  const Stream stream;
  constexpr std::size_t kBytes = 5001;
  unsigned char *const staged = heap.alloc(kBytes), *const shown = heap.alloc(kBytes), *const taken = heap.alloc(kBytes);
  for (std::uint64_t epoch = 1; epoch <= 40; ++epoch) {
    heap.store(staged, random_bytes(kBytes, seed_of(rank(), epoch)));
    IST_OK_OR_FAIL(ist_heap_put_on(heap, stream.get(), shown, ist_cuda(staged, stream.get()), kBytes, rank()));
    IST_OK_OR_FAIL(ist_heap_barrier_on(heap, stream.get()));
    IST_OK_OR_FAIL(ist_heap_get_on(heap, stream.get(), ist_cuda(taken, stream.get()), shown, kBytes, left()));
    IST_OK_OR_FAIL(ist_heap_barrier_on(heap, stream.get()));  // nobody shows the next one before all have taken this one
    stream.wait();
    ASSERT_EQ(-1, first_difference(random_bytes(kBytes, seed_of(left(), epoch)), heap.load(taken, kBytes))) << epoch;
  }
}

TEST(HeapStreams, graphs_are_replayed_with_other_bytes) {
  NEEDS_A_DEVICE_EACH();
  const TestHeap heap(IST_KIND_CUDA);
  const Stream stream;
  // Stored by the kernel of their signal, and too many for that: no other word is written in a graph.
  constexpr std::size_t kBytes = 4099, kMany = 200001;
  unsigned char *const source = heap.alloc(kMany), *const target = heap.alloc(kBytes), *const second = heap.alloc(kMany);
  std::uint64_t* const count = as_word(heap.alloc(16));
  heap.store(reinterpret_cast<unsigned char*>(count), Bytes(16, 0));
  heap.barrier();
  // Once outside of a capture.
  IST_OK_OR_FAIL(ist_heap_barrier_on(heap, stream.get()));
  const Graph graph(stream, [&] {
    EXPECT_EQ(IST_OK, ist_heap_put_signal_on(heap, stream.get(), target, ist_cuda(source, stream.get()), kBytes, count, 1,
                                             IST_SIGNAL_ADD, right()))
        << ist_error_text();
    EXPECT_EQ(IST_OK, ist_heap_put_signal_on(heap, stream.get(), second, ist_cuda(source, stream.get()), kMany, count + 1, 7,
                                             IST_SIGNAL_SET, right()))
        << ist_error_text();
    EXPECT_EQ(IST_OK, ist_heap_barrier_on(heap, stream.get())) << ist_error_text();
  });
  for (std::uint64_t turn = 1; turn <= 30; ++turn) {
    heap.store(source, random_bytes(kMany, seed_of(rank(), turn)));
    heap.store(reinterpret_cast<unsigned char*>(count + 1), Bytes(8, 0));
    together();
    graph.launch();
    stream.wait();
    Bytes wanted = random_bytes(kMany, seed_of(left(), turn));
    ASSERT_EQ(-1, first_difference(wanted, heap.load(second, kMany))) << turn;
    wanted.resize(kBytes);
    ASSERT_EQ(-1, first_difference(wanted, heap.load(target, kBytes))) << turn;
    std::uint64_t found = 0;
    IST_OK_OR_FAIL(ist_heap_signal_fetch(heap, count, &found));
    ASSERT_EQ(found, turn);
    IST_OK_OR_FAIL(ist_heap_signal_fetch(heap, count + 1, &found));
    ASSERT_EQ(found, 7U);
    together();
  }
}

// On one device two processes' kernels need not run at once: they do not meet there, which every rank hears, and a wait goes on.
TEST(HeapStreams, do_not_meet_in_kernels_where_ranks_have_one_device) {
  NEEDS_A_DEVICE();
  if (devices() >= size()) GTEST_SKIP() << "not covered here: ranks that have one device";
  const TestHeap heap(IST_KIND_CUDA);
  const Stream stream;
  std::uint64_t* const word = as_word(heap.alloc(8));
  heap.store(reinterpret_cast<unsigned char*>(word), Bytes(8, 0));
  heap.barrier();  // before the other one sets it
  expect_error(IST_ERR_UNSUPPORTED, "have one device", ist_heap_barrier_on(heap, stream.get()));
  IST_OK_OR_FAIL(ist_heap_put_signal_on(heap, stream.get(), word, ist_host(nullptr), 0, word, 3, IST_SIGNAL_SET, right()));
  IST_OK_OR_FAIL(ist_heap_wait_until_on(heap, stream.get(), word, IST_UINT64, IST_COMPARE_EQ, 3));
  all_waited(stream);
}

// As many ints as strided() has, in blocks of two, five apart.
std::unique_ptr<Laid> apart(std::int64_t count) {
  auto made = std::make_unique<Laid>();
  EXPECT_EQ(IST_OK, ist_layout_vector(count / 2, 2, 5, ist_layout_of(IST_INT32), &made->layout)) << ist_error_text();
  EXPECT_EQ(IST_OK, ist_layout_commit(made->layout)) << ist_error_text();
  for (std::int64_t i = 0; i < count / 2; ++i) made->add(static_cast<std::size_t>(i) * 20, 8);
  return made;
}

TEST(HeapStreams, layouts_lie_on_either_side_or_both) {
  NEEDS_A_DEVICE();
  const TestHeap heap(IST_KIND_CUDA);
  const Stream stream;
  std::uint64_t what = 50;
  for (const std::int64_t count : {4, 60, 40000}) {
    const auto vector = strided(count), gaps = apart(count), list = listed(count), row = in_a_row(count);
    const std::size_t reach = std::max({vector->reach, gaps->reach, list->reach});
    unsigned char *const near = heap.alloc(reach), *const far = heap.alloc(reach);
    for (const bool puts : {true, false})
      for (const auto& [from, to] : {std::pair{vector.get(), row.get()},
                                     {row.get(), vector.get()},
                                     {list.get(), row.get()},
                                     {row.get(), list.get()},
                                     {row.get(), row.get()},
                                     {vector.get(), gaps.get()},
                                     {gaps.get(), vector.get()},
                                     {vector.get(), list.get()},
                                     {list.get(), gaps.get()},
                                     {list.get(), list.get()}}) {
        ++what;
        heap.store(puts ? near : far, random_bytes(reach, seed_of(rank(), what)));
        heap.store(puts ? far : near, Bytes(reach, 0xa5));
        heap.barrier();
        if (puts)
          IST_OK_OR_FAIL(ist_heap_put_layout_on(heap, stream.get(), far, 1, to->layout, ist_cuda(near, stream.get()), 1,
                                                from->layout, right()));
        else
          IST_OK_OR_FAIL(ist_heap_get_layout_on(heap, stream.get(), ist_cuda(near, stream.get()), 1, to->layout, far, 1,
                                                from->layout, left()));
        all_waited(stream);
        Bytes wanted = unpacked(*to, packed(*from, random_bytes(reach, seed_of(left(), what))));
        wanted.resize(reach, 0xa5);
        ASSERT_EQ(-1, first_difference(wanted, heap.load(puts ? far : near, reach))) << count << ", " << what;
        heap.barrier();
      }
  }
}

// The lists of both sides are on the device once the same call was made outside of a capture, and a graph then brings new bytes in each turn.
TEST(HeapStreams, layouts_on_both_sides_are_replayed) {
  NEEDS_A_DEVICE();
  const TestHeap heap(IST_KIND_CUDA);
  const Stream stream;
  constexpr std::int64_t kCount = 4000;
  const auto list = listed(kCount), gaps = apart(kCount);
  const std::size_t reach = std::max(list->reach, gaps->reach);
  unsigned char *const near = heap.alloc(reach), *const far = heap.alloc(reach);
  const auto put = [&] {
    return ist_heap_put_layout_on(heap, stream.get(), far, 1, gaps->layout, ist_cuda(near, stream.get()), 1, list->layout,
                                  right());
  };
  {
    const Graph refused(stream, [&] { EXPECT_EQ(IST_ERR_NOT_CAPTURABLE, put()) << ist_error_text(); });
  }
  IST_OK_OR_FAIL(put());
  all_waited(stream);
  const Graph graph(stream, [&] { EXPECT_EQ(IST_OK, put()) << ist_error_text(); });
  for (std::uint64_t turn = 1; turn <= 5; ++turn) {
    heap.store(near, random_bytes(reach, seed_of(rank(), turn)));
    heap.store(far, Bytes(reach, 0xa5));
    heap.barrier();
    graph.launch();
    all_waited(stream);
    Bytes wanted = unpacked(*gaps, packed(*list, random_bytes(reach, seed_of(left(), turn))));
    wanted.resize(reach, 0xa5);
    ASSERT_EQ(-1, first_difference(wanted, heap.load(far, reach))) << turn;
    heap.barrier();
  }
}

TEST(HeapStreams, refuse_what_a_stream_cannot_do) {
  NEEDS_A_DEVICE();
  const TestHeap heap(IST_KIND_CUDA), host(IST_KIND_HOST);
  const Stream stream;
  const auto vector = strided(60);
  unsigned char* const at = heap.alloc(4096);
  unsigned char* const here = host.alloc(4096);
  void* const s = stream.get();
  expect_error(IST_ERR_KIND, "streams have heaps of IST_KIND_CUDA", ist_heap_put_on(host, s, here, ist_cuda(at, s), 8, 0));
  expect_error(IST_ERR_RANK, "pe is", ist_heap_put_on(heap, s, at, ist_cuda(at, s), 8, size()));
  expect_error(IST_ERR_ARGUMENT, "is no multiple of 8",
               ist_heap_put_signal_on(heap, s, at, ist_cuda(at, s), 8, as_word(at + 4), 1, IST_SIGNAL_SET, 0));
  expect_error(IST_ERR_ARGUMENT, "must be IST_COMPARE_EQ",
               ist_heap_wait_until_on(heap, s, at, IST_UINT64, static_cast<ist_compare>(9), 1));
  Bytes local(vector->reach, 1);
  expect_error(
      IST_ERR_KIND, "no CUDA memory",
      ist_heap_put_layout_on(heap, s, at, 240, ist_layout_of(IST_BYTE), ist_host(local.data()), 1, vector->layout, 0));
  expect_error(
      IST_ERR_ARGUMENT, "both must name as many",
      ist_heap_put_layout_on(heap, s, at, 1, ist_layout_of(IST_BYTE), ist_cuda(at + 2048, s), 1, vector->layout, 0));
  stream.wait();
}

}  // namespace
