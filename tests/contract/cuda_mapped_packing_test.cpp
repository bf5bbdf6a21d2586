// Kernels that pack into host memory of the library's which is mapped for their device, and unpack from there; by a block where it is not.
#include <numeric>

#include "cuda_support.hpp"
#include "memory/packing.hpp"

namespace ist::test {
namespace {

class CudaMappedPacks : public CudaTest {
 protected:
  static constexpr std::size_t kRuns = 1000;
  // Runs of 4 bytes at irregular places.
  static SharedForm listed() {
    Form form;
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(kRuns); ++i) {
      form.runs.push_back({i * 12 + i % 3 / 2 * 4, 4});
      form.begins.push_back(i * 4);
    }
    form.size = kRuns * 4;
    return std::make_shared<const Form>(std::move(form));
  }
  // From the device to host memory `skip` bytes behind `host`, and back into a device's memory that is wrong before. All but the first and the last
  // `cut` bytes of the stream.
  void there_and_back(std::byte* host, std::int64_t cut, std::uint64_t launches, std::uint64_t copies) {
    const SharedForm form = listed();
    const Piece memory = must(kind->allocate(0, Bytes{kRuns * 13}));
    Data bytes(kRuns * 13), found(bytes.size(), 0xa5), wanted = found;
    std::iota(bytes.begin(), bytes.end(), std::uint8_t{1});
    move(memory, host_piece(bytes.data(), memory.size));
    const Bytes size{static_cast<std::uint64_t>(form->size - 2 * cut)};
    PackWork work{form, memory, 0, host_piece(host, size), cut, form->size - cut, false};
    run(work);
    const std::uint64_t launched = fake_calls("cuLaunchKernel"), copied = fake_calls("cuMemcpyAsync");
    run(work);
    EXPECT_EQ(fake_calls("cuLaunchKernel") - launched, launches);
    EXPECT_EQ(fake_calls("cuMemcpyAsync") - copied, copies);
    for (std::int64_t i = cut; i < form->size - cut; ++i) {
      const auto place = static_cast<std::size_t>(form->runs[static_cast<std::size_t>(i / 4)].offset + i % 4);
      ASSERT_EQ(static_cast<std::uint8_t>(host[i - cut]), bytes[place]) << i;
      wanted[place] = bytes[place];
    }
    move(memory, host_piece(found.data(), memory.size));
    work.unpacks = true;
    run(work);
    move(host_piece(found.data(), memory.size), memory);
    EXPECT_TRUE(found == wanted);
    must(kind->release(memory));
  }
  void move(const Piece& to, const Piece& from) {
    Ticket ticket = must(kind->copy(to, from, {}));
    must(finish(ticket));
  }
  void run(const PackWork& work) {
    Ticket ticket = must(kind->packing()->pack_bytes(work, {}));
    must(finish(ticket));
  }
};

TEST_F(CudaMappedPacks, go_straight_into_pinned_memory_and_out_of_it_and_by_a_block_where_it_is_not_pinned) {
  NEEDS_FAKE("count copies");
  const Piece some = must(kind->allocate(0, Bytes{64}));  // with it comes a context
  std::vector<std::byte> host(kRuns * 4 + 64);
  const std::span<const std::byte> all{host};
  EXPECT_NE(kind->packing()->refuses_mapped(some, all), nullptr) << "it is not pinned yet";
  EXPECT_EQ(kind->packing()->refuses_mapped(some, {}), nullptr) << "some would be reached";
  there_and_back(host.data() + 16, 0, 1, 1);
  must(kind->pins()->pin(host.data(), Bytes{host.size()}));
  EXPECT_EQ(kind->packing()->refuses_mapped(some, all), nullptr);
  EXPECT_NE(kind->packing()->refuses_mapped(some, {host.data(), host.size() + 1}), nullptr) << "one byte is behind it";
  for (const std::int64_t cut : {0, 1, 2, 4, 399})
    for (const std::size_t skip : {0, 3, 16}) there_and_back(host.data() + skip, cut, 1, 0);
  const auto asked = fake_calls("cuMemHostGetDevicePointer_v2");
  there_and_back(host.data(), 0, 1, 0);
  EXPECT_EQ(fake_calls("cuMemHostGetDevicePointer_v2"), asked) << "asked once for each pin";
  kind->pins()->unpin(host.data());
  EXPECT_NE(kind->packing()->refuses_mapped(some, all), nullptr) << "it is no longer pinned";
  there_and_back(host.data(), 0, 1, 1);
  must(kind->release(some));
}

TEST_F(CudaMappedPacks, reach_nothing_where_the_driver_maps_nothing) {
  NEEDS_FAKE("inject errors");
  const Piece some = must(kind->allocate(0, Bytes{64}));
  std::vector<std::byte> host(kRuns * 4 + 64);
  must(kind->pins()->pin(host.data(), Bytes{host.size()}));
  fake_fail("cuMemHostGetDevicePointer_v2", 0, CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_NE(kind->packing()->refuses_mapped(some, {host.data(), 64}), nullptr);
  fake_heal();
  there_and_back(host.data(), 0, 1, 1);
  kind->pins()->unpin(host.data());
  ::setenv("FAKE_CUDA_MAPS_HOST", "0", 1);
  must(kind->pins()->pin(host.data(), Bytes{host.size()}));
  EXPECT_NE(kind->packing()->refuses_mapped(some, {}), nullptr);
  there_and_back(host.data(), 0, 1, 1);
  ::unsetenv("FAKE_CUDA_MAPS_HOST");
  there_and_back(host.data(), 0, 1, 0);
  kind->pins()->unpin(host.data());
  must(kind->release(some));
}

}  // namespace
}  // namespace ist::test
