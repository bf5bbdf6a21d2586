// Whose address is it, and is the whole piece there?
#include <sys/mman.h>

#include <cstdlib>

#include "cuda_support.hpp"

namespace ist::test {
namespace {

class CudaPointer : public CudaTest {
 protected:
  void expect_class(std::uint64_t address, KindId kind_id, MemoryClass memory_class, const char* what) {
    const auto found = kind->recognise(reinterpret_cast<void*>(address));
    ASSERT_TRUE(found.has_value()) << what;
    EXPECT_EQ(found->kind, kind_id) << what;
    EXPECT_EQ(name_of(found->memory_class), name_of(memory_class)) << what;
    EXPECT_EQ(found->device, kind_id == KindId::cuda ? 0 : -1) << what;
    EXPECT_NE(found->buffer_id, 0u) << what;
  }
  Status check(std::uint64_t object, std::uint64_t offset, std::uint64_t size, int device = -1) {
    Piece piece = device_piece(object, size);
    piece.offset = Offset{offset};
    piece.device = device;
    Status status = kind->check(piece);
    EXPECT_TRUE(!status.ok() || size == 0 || piece.device == 0);
    return status;
  }
  void expect_refused(const Status& status, std::initializer_list<std::string> parts) {
    EXPECT_EQ(status.code(), IST_ERR_ARGUMENT);
    for (const std::string& part : parts) EXPECT_NE(status.text().find(part), std::string::npos) << status.text();
  }
};

TEST_F(CudaPointer, device_managed_and_pool_memory_are_told_apart) {
  const Current scope(api, primary());
  CUstream stream = make_stream(current());
  CUdeviceptr device = 0;
  CUdeviceptr managed = 0;
  CUdeviceptr pool = 0;
  must(api, api.cuMemAlloc_v2(&device, 1000), "cuMemAlloc");
  must(api, api.cuMemAllocManaged(&managed, 1000, CU_MEM_ATTACH_GLOBAL), "cuMemAllocManaged");
  must(api, api.cuMemAllocAsync(&pool, 1000, stream), "cuMemAllocAsync");
  synchronise(stream);
  for (const std::uint64_t at : {0u, 1u, 999u}) {
    expect_class(device + at, KindId::cuda, MemoryClass::device, "cuMemAlloc");
    expect_class(managed + at, KindId::cuda, MemoryClass::managed, "managed");
    expect_class(pool + at, KindId::cuda, MemoryClass::pool, "pool");
  }
  EXPECT_FALSE(kind->recognise(reinterpret_cast<void*>(device + 1000)).has_value()) << "past the end";
  for (const CUdeviceptr each : {device, managed, pool}) {
    EXPECT_TRUE(check(each, 3, 997).ok());
    EXPECT_FALSE(check(each, 3, 998).ok());
  }
  must(api, api.cuMemFreeAsync(pool, stream), "cuMemFreeAsync");
  synchronise(stream);
  api.cuMemFree_v2(managed);
  api.cuMemFree_v2(device);
}

TEST_F(CudaPointer, memory_of_a_pool_made_by_the_user_is_recognised) {
  const Current scope(api, primary());
  CUstream stream = make_stream(current());
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool = nullptr;
  CUdeviceptr memory = 0;
  must(api, api.cuMemPoolCreate(&pool, &properties), "cuMemPoolCreate");
  must(api, api.cuMemAllocFromPoolAsync(&memory, 4096, pool, stream), "cuMemAllocFromPoolAsync");
  expect_class(memory, KindId::cuda, MemoryClass::pool, "own pool");
  must(api, api.cuMemFreeAsync(memory, stream), "cuMemFreeAsync");
  synchronise(stream);
  api.cuMemPoolDestroy(pool);
}

TEST_F(CudaPointer, mapped_memory_is_recognised_where_it_is_mapped_and_can_be_copied) {
  const Current scope(api, primary());
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  std::size_t size = 0;
  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle handle = 0;
  must(api, api.cuMemGetAllocationGranularity(&size, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM), "granularity");
  must(api, api.cuMemAddressReserve(&address, 2 * size, 0, 0, 0), "cuMemAddressReserve");
  must(api, api.cuMemCreate(&handle, size, &properties, 0), "cuMemCreate");
  must(api, api.cuMemMap(address, size, 0, handle, 0), "cuMemMap");
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  must(api, api.cuMemSetAccess(address, size, &access, 1), "cuMemSetAccess");
  expect_class(address, KindId::cuda, MemoryClass::vmm, "vmm");
  expect_class(address + size - 1, KindId::cuda, MemoryClass::vmm, "vmm, last byte");
  EXPECT_FALSE(kind->recognise(reinterpret_cast<void*>(address + size)).has_value()) << "reserved but not mapped";
  EXPECT_TRUE(check(address, 0, size).ok());
  const Data bytes = random_bytes(size - 1);
  Data back(size - 1, 0xEE);
  Ticket in = must(kind->copy(device_piece(address + 1, size - 1), host_piece(bytes.data(), Bytes{size - 1}), {}));
  Ticket out = must(kind->copy(host_piece(back.data(), Bytes{size - 1}), device_piece(address + 1, size - 1), in));
  must(finish(in));
  must(finish(out));
  EXPECT_EQ(back, bytes);
  must(api, api.cuMemUnmap(address, size), "cuMemUnmap");
  must(api, api.cuMemRelease(handle), "cuMemRelease");
  must(api, api.cuMemAddressFree(address, 2 * size), "cuMemAddressFree");
}

TEST_F(CudaPointer, page_locked_host_memory_is_host_memory_allocated_or_registered) {
  const Current scope(api, primary());
  for (const std::uint64_t size : {1ul, 5000ul, 2ul << 20, (3ul << 20) + 1}) {
    void* pinned = nullptr;
    must(api, api.cuMemHostAlloc(&pinned, size, CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc");
    const auto address = reinterpret_cast<std::uint64_t>(pinned);
    expect_class(address, KindId::host, MemoryClass::pinned, "pinned");
    expect_class(address + size - 1, KindId::host, MemoryClass::pinned, "pinned, last byte");
    expect_refused(check(address, 0, size), {hexadecimal(address), "pinned host memory", "ist_host"});
    api.cuMemFreeHost(pinned);
  }
  constexpr std::uint64_t kSize = 8 << 20;
  auto* memory = static_cast<char*>(std::aligned_alloc(4096, kSize));
  for (const std::uint64_t from : {0ul, 4096ul, 5000ul}) {
    for (const std::uint64_t size : {4096ul, 10000ul, (2ul << 20) + 4096}) {
      must(api, api.cuMemHostRegister_v2(memory + from, size, CU_MEMHOSTREGISTER_PORTABLE), "cuMemHostRegister");
      const auto address = reinterpret_cast<std::uint64_t>(memory) + from;
      expect_class(address, KindId::host, MemoryClass::registered, "registered");
      expect_class(address + size - 1, KindId::host, MemoryClass::registered, "registered, last byte");
      expect_refused(check(address, 0, size), {hexadecimal(address), "registered host memory", "ist_host"});
      api.cuMemHostUnregister(memory + from);
      EXPECT_FALSE(kind->recognise(memory + from).has_value());
    }
  }
  std::free(memory);
}

TEST_F(CudaPointer, pageable_null_and_wild_addresses_are_nobodys) {
  static int global = 0;
  int local = 0;
  const std::vector<char> heap(100);
  for (const void* each :
       {static_cast<const void*>(&global), static_cast<const void*>(&local), static_cast<const void*>(heap.data()),
        static_cast<const void*>(nullptr), reinterpret_cast<const void*>(0x1234567)}) {
    EXPECT_FALSE(kind->recognise(each).has_value());
    if (each == nullptr) continue;
    expect_refused(check(reinterpret_cast<std::uint64_t>(each), 0, 4),
                   {hexadecimal(reinterpret_cast<std::uint64_t>(each)), "not known to the CUDA driver", "ist_host"});
  }
  expect_refused(check(0, 0, 4), {"null address"});
}

TEST_F(CudaPointer, a_freed_and_used_again_address_has_another_buffer_id) {
  const Piece first = must(kind->allocate(0, Bytes{4096}));
  const std::uint64_t id = kind->recognise(first.address())->buffer_id;
  must(kind->release(first));
  EXPECT_FALSE(kind->recognise(first.address()).has_value());
  const Piece second = must(kind->allocate(0, Bytes{4096}));
  EXPECT_NE(kind->recognise(second.address())->buffer_id, id);
  must(kind->release(second));
}

TEST_F(CudaPointer, what_is_kept_of_a_piece_is_that_piece_s_alone) {
  KeptFacts kept{api};
  Piece first = must(kind->allocate(0, Bytes{4096}));
  const PointerFacts asked = ask_driver(api, first.object);
  kept.keep(first, asked);
  EXPECT_NE(first.facts, 0u);
  const std::uint64_t calls = is_fake() ? fake_calls("cuPointerGetAttributes") : 0;
  EXPECT_EQ(kept.of(first).buffer_id, asked.buffer_id);
  EXPECT_EQ(kept.of(first.part(Offset{}, Bytes{8})).buffer_id, asked.buffer_id);
  EXPECT_EQ(is_fake() ? fake_calls("cuPointerGetAttributes") : 0, calls) << "nothing was asked";
  // Of another address, or of a piece without a name, it asks.
  EXPECT_TRUE(kept.of(first.part(Offset{4095}, Bytes{1})).known);
  Piece unnamed = first;
  unnamed.facts = 0;
  EXPECT_TRUE(kept.of(unnamed).known);
  EXPECT_EQ(is_fake() ? fake_calls("cuPointerGetAttributes") : 2, calls + 2);
  // Other memory at the same address.
  must(kind->release(unnamed));
  Piece second = must(kind->allocate(0, Bytes{4096}));
  EXPECT_EQ(second.facts, 0u);
  kept.keep(second, ask_driver(api, second.object));
  EXPECT_NE(second.facts, first.facts);
  EXPECT_NE(kept.of(second).buffer_id, asked.buffer_id);
  EXPECT_EQ(kept.of(first).buffer_id, asked.buffer_id) << "as long as the operation of the first one lasts";
  // Of many the first ones are forgotten.
  Piece more = second;
  for (int i = 0; i < 1000; ++i) kept.keep(more, asked);
  EXPECT_NE(kept.of(second).buffer_id, asked.buffer_id);
  must(kind->release(second));
}

TEST_F(CudaPointer, a_piece_is_refused_unless_it_lies_inside_its_allocation) {
  const Piece a = must(kind->allocate(0, Bytes{4096}));
  const Piece b = must(kind->allocate(0, Bytes{4096}));
  EXPECT_TRUE(check(a.object, 0, 4096).ok());
  EXPECT_TRUE(check(a.object, 4095, 1).ok());
  EXPECT_TRUE(check(a.object + 96, 1000, 3000).ok());
  expect_refused(check(a.object, 8, 4096),
                 {"asked 4096 bytes at offset 8 of an allocation of 4096 bytes", hexadecimal(a.object)});
  expect_refused(check(a.object + 8, 0, 4096), {"asked 4096 bytes at offset 8 of an allocation of 4096 bytes"});
  expect_refused(check(a.object, 4096, 1), {"asked 1 bytes at offset 4096 of an allocation of 4096 bytes"});
  expect_refused(check(a.object, 0, ~std::uint64_t{0}), {"of an allocation of 4096 bytes"});
  const auto [low, high] = std::minmax(a.object, b.object);
  expect_refused(check(low, high - low, 16), {"of an allocation of 4096 bytes", hexadecimal(low)});
  expect_refused(check(high, low - high, 16), {"of an allocation of 4096 bytes", hexadecimal(high)});
  expect_refused(check(a.object, 0, 16, 1), {"said to be on device 1 but is on device 0"});
  must(kind->release(a));
  must(kind->release(b));
  expect_refused(check(a.object, 0, 16), {"not known to the CUDA driver"});
}

TEST_F(CudaPointer, nothing_is_asked_about_a_piece_of_no_bytes) {
  for (const std::uint64_t object : {std::uint64_t{0}, std::uint64_t{0x1234567}}) EXPECT_TRUE(check(object, 99, 0).ok());
}

TEST_F(CudaPointer, a_piece_is_checked_with_one_question_to_the_driver) {
  NEEDS_FAKE("count calls");
  const Piece piece = must(kind->allocate(0, Bytes{4096}));
  const std::uint64_t before = fake_calls("cuPointerGetAttributes");
  EXPECT_TRUE(check(piece.object, 5, 1000).ok());
  EXPECT_EQ(fake_calls("cuPointerGetAttributes"), before + 1);
  kind->recognise(piece.address());
  EXPECT_EQ(fake_calls("cuPointerGetAttributes"), before + 2);
  must(kind->release(piece));
}

}  // namespace
}  // namespace ist::test
