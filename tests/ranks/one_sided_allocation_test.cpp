// Symmetric heaps: what is allocated, how heaps grow, and calls that are refused. Run as messages_test.cpp is.
#include <isthmus/collective.h>

#include "one_sided_support.hpp"

namespace {

using namespace rank_test;

std::uint64_t room_of(const TestHeap& heap) {
  std::uint64_t bytes = 0;
  std::uint64_t largest = 0;
  EXPECT_EQ(IST_OK, ist_heap_room(heap, &bytes, &largest)) << ist_error_text();
  EXPECT_LE(largest, bytes);
  return bytes;
}

TEST(OneSidedAllocation, EveryPeHasTheSameOffsetsAndMemoryComesBack) {
  for (const KindName& of : mapped_heap_kinds()) {
    const TestHeap heap{of.kind};
    const std::uint64_t before = room_of(heap);
    EXPECT_GE(before, std::uint64_t{8 << 20});
    ist_team_view view{};
    IST_OK_OR_FAIL(ist_heap_view(heap, &view));
    std::mt19937 random(7);  // the same at all
    std::vector<void*> live;
    std::vector<std::int64_t> offsets;
    for (int i = 0; i < 100; ++i) {
      void* address = nullptr;
      const std::uint64_t bytes = 1 + random() % 50000;
      const std::uint64_t alignment = std::uint64_t{1} << random() % 13;
      if (i % 2 == 0) IST_OK_OR_FAIL(ist_heap_aligned(heap, alignment, bytes, &address));
      if (i % 2 == 1) IST_OK_OR_FAIL(ist_heap_alloc(heap, bytes, &address));
      ASSERT_NE(nullptr, address);
      const auto value = reinterpret_cast<std::uint64_t>(address);
      EXPECT_EQ(0U, value % (i % 2 == 0 ? std::max<std::uint64_t>(alignment, 64) : 64));
      live.push_back(address);
      offsets.push_back(static_cast<unsigned char*>(address) - view.base - rank() * static_cast<std::int64_t>(view.stride));
      if (random() % 3 == 0) {
        const std::size_t victim = random() % live.size();
        IST_OK_OR_FAIL(ist_heap_free(heap, live[victim]));
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(victim));
      }
    }
    auto of_root = offsets;
    IST_OK_OR_FAIL(ist_bcast(ist_host(of_root.data()), static_cast<std::int64_t>(of_root.size()), IST_INT64, 0, comm()));
    EXPECT_EQ(of_root, offsets);
    for (void* const each : live) IST_OK_OR_FAIL(ist_heap_free(heap, each));
    EXPECT_EQ(before, room_of(heap)) << of.name;
  }
}

TEST(OneSidedAllocation, CallocIsZeroWhereSomethingLayBefore) {
  for (const KindName& of : heap_kinds()) {
    const TestHeap heap{of.kind};
    constexpr std::size_t kBytes = 1500001;
    unsigned char* const dirty = heap.alloc(kBytes);
    heap.store(dirty, random_bytes(kBytes, 3));
    IST_OK_OR_FAIL(ist_heap_free(heap, dirty));
    void* address = nullptr;
    IST_OK_OR_FAIL(ist_heap_calloc(heap, 3, kBytes / 3, &address));
    EXPECT_EQ(-1, first_difference(std::vector<unsigned char>(kBytes / 3 * 3, 0),
                                   heap.load(static_cast<unsigned char*>(address), kBytes / 3 * 3)))
        << of.name;
    IST_OK_OR_FAIL(ist_heap_free(heap, address));
    expect_error(IST_ERR_OVERFLOW, "do not fit", ist_heap_calloc(heap, ~std::uint64_t{0}, 2, &address));
    IST_OK_OR_FAIL(ist_heap_alloc(heap, 0, &address));
    EXPECT_EQ(nullptr, address);
    IST_OK_OR_FAIL(ist_heap_free(heap, nullptr));
  }
}

TEST(OneSidedAllocation, ExhaustionSaysWhatThereIsAndGrowingHelps) {
  for (const KindName& of : heap_kinds()) {
    const TestHeap heap{of.kind, 4 << 20, 64 << 20};
    unsigned char* const first = heap.alloc(1 << 20);
    heap.store(first, random_bytes(1 << 20, 5));
    void* address = &address;
    expect_error(IST_ERR_MEMORY, "bytes are free, the largest block has", ist_heap_alloc(heap, 20 << 20, &address));
    EXPECT_EQ(nullptr, address);
    IST_OK_OR_FAIL(ist_heap_grow(heap, 32 << 20));
    const auto bytes = random_bytes(20 << 20, static_cast<std::uint64_t>(rank()));
    unsigned char* const large = heap.alloc(20 << 20);
    ASSERT_NE(nullptr, large);
    IST_OK_OR_FAIL(ist_heap_put(heap, large, ist_host(bytes.data()), bytes.size(), right()));
    heap.barrier();
    EXPECT_EQ(-1, first_difference(random_bytes(20 << 20, static_cast<std::uint64_t>(left())), heap.load(large, 20 << 20)));
    EXPECT_EQ(-1, first_difference(random_bytes(1 << 20, 5), heap.load(first, 1 << 20)));
    expect_error(IST_ERR_ARGUMENT, "may grow to", ist_heap_grow(heap, 100 << 20));
    expect_error(IST_ERR_ARGUMENT, "may grow to", ist_heap_grow(heap, 1 << 20));
    heap.barrier();
  }
}

TEST(OneSidedAllocation, WhereOnePeDisagreesAllHearOfIt) {
  if (size() < 2) GTEST_SKIP() << "not covered here: takes two ranks";
  const TestHeap heap{IST_KIND_HOST};
  const std::string other = "PE " + std::to_string(size() - 1);
  const bool differs = rank() == size() - 1;
  void* address = nullptr;
  const std::string sizes = "PE 0 gave 100 for bytes, and " + other + " 200";
  expect_error(IST_ERR_ARGUMENT, sizes.c_str(), ist_heap_alloc(heap, differs ? 200 : 100, &address));
  expect_error(IST_ERR_ARGUMENT, "for alignment", ist_heap_aligned(heap, differs ? 256 : 128, 10, &address));
  expect_error(IST_ERR_ARGUMENT, "called ist_heap_calloc",
               differs ? ist_heap_calloc(heap, 1, 10, &address) : ist_heap_alloc(heap, 10, &address));
  expect_error(IST_ERR_ARGUMENT, "called ist_heap_aligned",
               differs ? ist_heap_aligned(heap, 64, 10, &address) : ist_heap_alloc(heap, 10, &address));
  const std::string null = differs ? "address is null" : other + ": address is null";
  expect_error(IST_ERR_ARGUMENT, null.c_str(), ist_heap_alloc(heap, 10, differs ? nullptr : &address));
  expect_error(IST_ERR_ARGUMENT, "for bytes", ist_heap_grow(heap, differs ? 9 << 20 : 10 << 20));
  unsigned char* const a = heap.alloc(64);
  unsigned char* const b = heap.alloc(64);
  expect_error(IST_ERR_ARGUMENT, "the offset of address", ist_heap_free(heap, differs ? a : b));
  expect_error(IST_ERR_ARGUMENT, differs ? "middle" : other.c_str(), ist_heap_free(heap, differs ? a + 1 : a));
  IST_OK_OR_FAIL(ist_heap_free(heap, a));
  expect_error(IST_ERR_ARGUMENT, "freed before", ist_heap_free(heap, a));
  ist_heap none = heap;
  expect_error(IST_ERR_ARGUMENT, "for bytes", ist_heap_create(comm(), IST_KIND_HOST, 0, differs ? 4096 : 8192, 0, &none));
  EXPECT_EQ(IST_HEAP_NULL, none);
  expect_error(IST_ERR_ARGUMENT, "device is 5", ist_heap_create(comm(), IST_KIND_HOST, differs ? 5 : 0, 4096, 0, &none));
  heap.barrier();
}

TEST(OneSidedAllocation, WhatCannotBeIsRefusedByName) {
  ist_heap none = IST_HEAP_NULL;
  expect_error(IST_ERR_ARGUMENT, "heap is null", ist_heap_create(comm(), IST_KIND_HOST, 0, 4096, 0, nullptr));
  expect_error(IST_ERR_HANDLE, "communicator", ist_heap_create(IST_COMM_NULL, IST_KIND_HOST, 0, 4096, 0, &none));
  expect_error(IST_ERR_KIND, "", ist_heap_create(comm(), IST_KIND_GL, 0, 4096, 0, &none));
  expect_error(IST_ERR_ARGUMENT, "bytes is 0", ist_heap_create(comm(), IST_KIND_HOST, 0, 0, 0, &none));
  expect_error(IST_ERR_ARGUMENT, "most is 4096", ist_heap_create(comm(), IST_KIND_HOST, 0, 8192, 4096, &none));
  expect_error(IST_ERR_MEMORY, "", ist_heap_create(comm(), IST_KIND_HOST, 0, std::uint64_t{1} << 45U, 0, &none));
  expect_error(IST_ERR_HANDLE, "heap is null", ist_heap_barrier(none));
  const TestHeap heap{IST_KIND_HOST};
  unsigned char* const part = heap.alloc(64);
  unsigned char byte = 0;
  expect_error(IST_ERR_ARGUMENT, "were named", ist_heap_put(heap, &byte, ist_host(&byte), 1, 0));
  expect_error(IST_ERR_ARGUMENT, "were named", ist_heap_get(heap, ist_host(&byte), part, std::uint64_t{1} << 40U, 0));
  expect_error(IST_ERR_ARGUMENT, "null", ist_heap_put(heap, part, ist_host(nullptr), 1, 0));
  expect_error(IST_ERR_RANK, "pe is -1", ist_heap_put(heap, part, ist_host(&byte), 1, -1));
  const std::string beyond = "PEs 0 to " + std::to_string(size() - 1);
  expect_error(IST_ERR_RANK, beyond.c_str(), ist_heap_get(heap, ist_host(&byte), part, 1, size()));
  std::uint64_t word = 0;
  expect_error(IST_ERR_ARGUMENT, "were named", ist_heap_atomic64(heap, IST_ATOMIC_INC, &word, 0, nullptr, 0));
  expect_error(IST_ERR_ARGUMENT, "operation is 12",
               ist_heap_atomic64(heap, static_cast<ist_atomic>(12), reinterpret_cast<std::uint64_t*>(part), 0, nullptr, 0));
  if (size() > 1) {
    void* remote = nullptr;
    IST_OK_OR_FAIL(ist_heap_pointer(heap, part, right(), &remote));
    const std::string whose = "in the part of PE " + std::to_string(right());
    expect_error(IST_ERR_ARGUMENT, whose.c_str(), ist_heap_put(heap, remote, ist_host(&byte), 1, 0));
  }
  heap.barrier();
  ist_heap copy = heap;
  ist_heap another = IST_HEAP_NULL;
  IST_OK_OR_FAIL(ist_heap_create(comm(), IST_KIND_HOST, IST_OWN_DEVICE, 4096, 0, &another));
  copy = another;
  IST_OK_OR_FAIL(ist_heap_destroy(&another));
  EXPECT_EQ(IST_HEAP_NULL, another);
  expect_error(IST_ERR_HANDLE, "is no heap", ist_heap_barrier(copy));
}

TEST(OneSidedAllocation, AHeapOfSomeRanksAndSeveralAtOnce) {
  ist_comm half = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_comm_split(comm(), rank() % 2, -rank(), &half));
  ist_heap one = IST_HEAP_NULL;
  ist_heap two = IST_HEAP_NULL;
  IST_OK_OR_FAIL(ist_heap_create(half, IST_KIND_HOST, IST_OWN_DEVICE, 1 << 16, 0, &one));
  IST_OK_OR_FAIL(ist_heap_create(half, IST_KIND_HOST, IST_OWN_DEVICE, 1 << 16, 0, &two));
  IST_OK_OR_FAIL(ist_comm_free(&half));
  int pe = -1;
  int pes = -1;
  IST_OK_OR_FAIL(ist_heap_pe(one, &pe));
  IST_OK_OR_FAIL(ist_heap_pes(one, &pes));
  EXPECT_EQ((size() + 1 - rank() % 2) / 2, pes);
  EXPECT_EQ(pes - 1 - rank() / 2, pe);
  for (const ist_heap heap : {one, two}) {
    void* address = nullptr;
    IST_OK_OR_FAIL(ist_heap_alloc(heap, 8, &address));
    const std::int64_t mine = rank() + (heap == one ? 0 : 100);
    IST_OK_OR_FAIL(ist_heap_put(heap, address, ist_host(&mine), 8, (pe + 1) % pes));
    IST_OK_OR_FAIL(ist_heap_barrier(heap));
    const int of = rank() % 2 + 2 * (pes - 1 - (pe + pes - 1) % pes);
    EXPECT_EQ(of + (heap == one ? 0 : 100), *static_cast<std::int64_t*>(address));
  }
  IST_OK_OR_FAIL(ist_heap_destroy(&one));
  IST_OK_OR_FAIL(ist_heap_destroy(&two));
}

}  // namespace
