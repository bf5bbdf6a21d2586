// Packing by kernels as the driver sees it: one launch, lists of runs brought once, and gone with their layout or with the kind.
#include "cuda_support.hpp"
#include "memory/packing.hpp"

namespace ist::test {
namespace {

class CudaPacks : public CudaTest {
 protected:
  // Runs of 4 bytes where no two gaps in turn are alike, so that there is a list.
  static SharedForm listed(std::int64_t runs) {
    Form form;
    for (std::int64_t i = 0; i < runs; ++i) {
      form.runs.push_back({i * 12 + i % 3 / 2 * 4, 4});
      form.begins.push_back(i * 4);
    }
    form.size = runs * 4;
    return std::make_shared<const Form>(std::move(form));
  }
  void pack(const SharedForm& form, const Piece& memory, const Piece& packed) {
    Ticket ticket = must(kind->packing()->pack_bytes(
        {form, memory, 0, packed.part(Offset{}, Bytes{static_cast<std::uint64_t>(form->size)}), 0, form->size, false}, {}));
    must(finish(ticket));
  }
};

TEST_F(CudaPacks, lists_are_brought_once_and_go_after_their_layouts_and_with_the_kind) {
  NEEDS_FAKE("count allocations");
  const Piece memory = must(kind->allocate(0, Bytes{100000}));
  const Piece packed = must(kind->allocate(0, Bytes{40000}));
  auto first = listed(1000);
  pack(first, memory, packed);
  const auto allocated = fake_calls("cuMemAlloc_v2");
  const auto freed = fake_calls("cuMemFree_v2");
  const auto launched = fake_calls("cuLaunchKernel");
  for (int i = 0; i < 5; ++i) pack(first, memory, packed);
  EXPECT_EQ(fake_calls("cuMemAlloc_v2"), allocated) << "brought once more";
  EXPECT_EQ(fake_calls("cuLaunchKernel"), launched + 5) << "one launch for each";
  auto second = listed(2000);
  pack(second, memory, packed);
  EXPECT_EQ(fake_calls("cuMemAlloc_v2"), allocated + 1);
  EXPECT_EQ(fake_calls("cuMemFree_v2"), freed) << "both are in use";
  first.reset();
  const auto third = listed(500);
  pack(third, memory, packed);
  EXPECT_EQ(fake_calls("cuMemFree_v2"), freed + 1) << "the first one's goes when the next list comes";
  for (const Piece& each : {memory, packed}) must(kind->release(each));
  kind.reset();
  EXPECT_EQ(fake_calls("cuMemFree_v2"), freed + 5) << "two pieces and two lists";
  kind = must(make_cuda_kind(api));
}

TEST_F(CudaPacks, any_of_its_calls_may_fail_and_the_next_one_is_right) {
  NEEDS_FAKE("inject errors");
  const Piece memory = must(kind->allocate(0, Bytes{100000}));
  const Piece packed = must(kind->allocate(0, Bytes{40000}));
  for (const char* call :
       {"cuMemAlloc_v2", "cuMemcpyAsync", "cuModuleLoadData", "cuModuleGetFunction", "cuLaunchKernel", "cuEventRecord"}) {
    const auto form = listed(300);
    fake_fail(call, 0, CUDA_ERROR_UNKNOWN);
    const auto failed =
        kind->packing()->pack_bytes({form, memory, 0, packed.part(Offset{}, Bytes{1200}), 0, 1200, false}, {});
    ASSERT_FALSE(failed.ok()) << call;
    EXPECT_EQ(failed.status().code(), IST_ERR_DEVICE) << failed.status().text();
  }
  const auto form = listed(300);
  Data bytes(100000), found(1200);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
  Ticket in = must(kind->copy(memory, host_piece(bytes.data(), memory.size), {}));
  must(finish(in));
  pack(form, memory, packed);
  Ticket out = must(kind->copy(host_piece(found.data(), Bytes{1200}), packed.part(Offset{}, Bytes{1200}), {}));
  must(finish(out));
  for (std::size_t run = 0; run < 300; ++run)
    for (std::size_t i = 0; i < 4; ++i)
      ASSERT_EQ(found[run * 4 + i], bytes[static_cast<std::size_t>(form->runs[run].offset) + i]) << run;
  for (const Piece& each : {memory, packed}) must(kind->release(each));
}

}  // namespace
}  // namespace ist::test
