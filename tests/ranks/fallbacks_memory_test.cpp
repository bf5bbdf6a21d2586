// Memory that other processes do not open: that its messages take two copies is said once, with whose memory it is and why.
#include "fallbacks_support.hpp"

namespace {

using namespace forked_ranks;

// Of the default pool.
ist_buffer pooled(const Here& here, std::size_t bytes) {
  return on_device(here, [&](CUdeviceptr* made) { DRIVER(cuMemAllocAsync)(made, bytes, nullptr); });
}

CUmemLocation place_of(const Here& here) {
  CUmemLocation place{};
  place.type = CU_MEM_LOCATION_TYPE_DEVICE;
  place.id = here.rank;
  return place;
}

// Without a handle for others.
ist_buffer mapped(const Here& here, std::size_t bytes) {
  return on_device(here, [&](CUdeviceptr* made) {
    constexpr std::size_t kWhole = 2 << 20;
    const std::size_t size = (bytes + kWhole - 1) / kWhole * kWhole;
    CUmemAllocationProp wanted{};
    wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.location = place_of(here);
    CUmemGenericAllocationHandle memory = 0;
    DRIVER(cuMemAddressReserve)(made, size, 0, 0, 0);
    DRIVER(cuMemCreate)(&memory, size, &wanted, 0);
    DRIVER(cuMemMap)(*made, size, 0, memory, 0);
    CUmemAccessDesc access{};
    access.location = wanted.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    DRIVER(cuMemSetAccess)(*made, size, &access, 1);
  });
}

// A pool that others may open, of which all is freed after each message.
int carry_through_short_lives(const Here& here, std::size_t bytes) {
  CUmemoryPool pool = nullptr;
  int wrong = 0;
  for (int life = 0; life < 12; ++life) {
    const ist_buffer piece = on_device(here, [&](CUdeviceptr* made) {
      CUmemPoolProps properties{};
      properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
      properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
      properties.location = place_of(here);
      if (pool == nullptr) DRIVER(cuMemPoolCreate)(&pool, &properties);
      DRIVER(cuMemAllocFromPoolAsync)(made, bytes, pool, nullptr);
    });
    wrong += carry(here, piece, bytes, 1);
    std::this_thread::sleep_for(std::chrono::milliseconds{20});  // a thread of its own may open it
    on_device(here, [&](CUdeviceptr*) { DRIVER(cuMemFreeAsync)(piece.object, nullptr); });
  }
  return wrong;
}

// What other processes do not open: said once, with whose memory it is, and of a pool for which of the two reasons.
TEST(Fallbacks, ThatMemoryIsNotOpenedIsSaidOnceWithItsAllocatorsName) {
  NEEDS_FAKE_DRIVER();
  const auto names = {"managed memory (cudaMallocManaged)", "pool memory (cudaMallocAsync)", "vmm memory (cuMemCreate)"};
  const auto allocators = {managed, pooled, mapped};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto place = allocators.begin()[i];
    const std::string said = said_by("host,cuda", [&](const Here& here) {
      // Of two allocations, too, and from the rank that sends as well.
      return carry(here, place(here, kBytes), kBytes) + carry(here, place(here, kBytes), kBytes);
    });
    expect_once(said, 1, std::string{"messages into "} + names.begin()[i] + " of cuda devices take two copies",
                "ISTHMUS_BOUNCE_LIMIT");
    EXPECT_EQ(1U, lines(said, 1, "take two copies through a block").size()) << said;
  }
}

TEST(Fallbacks, ThatAPoolHasNoHandleAndThatAllOfOneIsFreedAreSaidOnceEach) {
  NEEDS_FAKE_DRIVER();
  const std::string said = said_by("host,cuda", [](const Here& here) {
    return carry(here, pooled(here, kBytes), kBytes) + carry_through_short_lives(here, kBytes) +
           carry(here, pooled(here, kBytes), kBytes) + carry_through_short_lives(here, kBytes) +
           carry(here, managed(here, kBytes), kBytes);
  });
  expect_once(said, 1, "other processes cannot open it (make the pool with", "CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR");
  expect_once(said, 1, "all of its pool is freed again and again", "keep a piece allocated");
  expect_once(said, 1, "managed memory", "cudaMalloc gave they take one");
  EXPECT_EQ(3U, lines(said, 1, "take two copies through a block").size()) << said;
}

}  // namespace
