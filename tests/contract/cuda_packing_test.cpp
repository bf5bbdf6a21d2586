// Packing by kernels as the driver sees it: one launch, lists of runs brought once, and gone with their layout or with the kind.
#include <random>

#include "cuda_support.hpp"
#include "memory/cuda/cuda_kernels.hpp"
#include "memory/packing.hpp"

namespace ist::test {
namespace {

class CudaPacks : public CudaTest {
 public:
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
  // Such a list again and again, so many bytes apart.
  static SharedForm listed_again(std::int64_t runs, std::int64_t times, std::int64_t stride) {
    Form form = *listed(runs);
    form.dimension[form.dimensions++] = {times, stride};
    form.size *= times;
    return std::make_shared<const Form>(std::move(form));
  }

 protected:
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

// Of seven arrays the device has one list of places.
TEST_F(CudaPacks, a_list_that_comes_again_is_brought_once) {
  NEEDS_FAKE("count bytes");
  constexpr std::int64_t kRuns = 1000, kTimes = 7, kApart = 14000;
  const Piece memory = must(kind->allocate(0, Bytes{kTimes * kApart}));
  const Piece packed = must(kind->allocate(0, Bytes{kTimes * kRuns * 4}));
  Data bytes(kTimes * kApart), found(kTimes * kRuns * 4);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
  Ticket in = must(kind->copy(memory, host_piece(bytes.data(), memory.size), {}));
  must(finish(in));
  const auto form = listed_again(kRuns, kTimes, kApart);
  const auto copied = fake_calls("cuMemcpyAsync");
  const auto launched = fake_calls("cuLaunchKernel");
  for (int i = 0; i < 3; ++i) pack(form, memory, packed);
  EXPECT_EQ(fake_calls("cuMemcpyAsync"), copied + 1);
  EXPECT_EQ(fake_calls("cuLaunchKernel"), launched + 3);
  EXPECT_EQ(run_list(*form).numbers.size(), static_cast<std::size_t>(kRuns));
  Ticket out = must(kind->copy(host_piece(found.data(), packed.size), packed, {}));
  must(finish(out));
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::size_t run = i / 4 % kRuns, time = i / 4 / kRuns;
    ASSERT_EQ(found[i], bytes[time * kApart + static_cast<std::size_t>(form->runs[run].offset) + i % 4]) << i;
  }
  for (const Piece& each : {memory, packed}) must(kind->release(each));
}

TEST_F(CudaPacks, there_are_as_many_blocks_as_tiles_up_to_what_a_launch_may_have) {
  EXPECT_EQ(CudaKernels::blocks_for(1, 2), 1U);
  EXPECT_EQ(CudaKernels::blocks_for(512, 2), 1U);
  EXPECT_EQ(CudaKernels::blocks_for(513, 2), 2U);
  EXPECT_EQ(CudaKernels::blocks_for(513, 4), 1U);
  EXPECT_EQ(CudaKernels::blocks_for((std::uint64_t{1} << 31) - 1, 2), 1U << 22);
  EXPECT_EQ(CudaKernels::blocks_for(std::uint64_t{512} * 0x7fffffff, 2), 0x7fffffffU);
  EXPECT_EQ(CudaKernels::blocks_for(std::uint64_t{512} * 0x7fffffff + 1, 2), 0x7fffffffU);
  EXPECT_EQ(CudaKernels::blocks_for(~std::uint64_t{0}, 2), 0x7fffffffU);
}

// Of one length, of lengths that are cut to one, and of others, which are searched.
TEST_F(CudaPacks, lists_of_runs_that_differ_and_that_do_not_bring_every_byte) {
  const Piece memory = must(kind->allocate(0, Bytes{100000}));
  const Piece packed = must(kind->allocate(0, Bytes{40000}));
  Data bytes(100000), found(40000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
  Ticket in = must(kind->copy(memory, host_piece(bytes.data(), memory.size), {}));
  must(finish(in));
  for (const std::int64_t longest : {1, 2, 5}) {
    Form form;
    for (std::int64_t i = 0, at = 3; i < 999; ++i) {
      const std::int64_t length = (i * i % longest + 1) * 4;
      form.runs.push_back({at, length});
      form.begins.push_back(form.size);
      form.size += length;
      at += length + 1 + i % 3;
    }
    const auto shared = std::make_shared<const Form>(form);
    pack(shared, memory, packed);
    Ticket out = must(kind->copy(host_piece(found.data(), packed.size), packed, {}));
    must(finish(out));
    std::size_t at = 0;
    for (const auto& run : form.runs)
      for (std::int64_t i = 0; i < run.bytes; ++i, ++at)
        ASSERT_EQ(found[at], bytes[static_cast<std::size_t>(run.offset + i)]) << longest << ' ' << at;
  }
  for (const Piece& each : {memory, packed}) must(kind->release(each));
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

// With runs of one length or of several, that comes once or again in up to three dimensions, of which a launch with others takes two.
SharedForm any_list(int number) {
  Form form = *CudaPacks::listed(40);
  if (number % 2 == 1) {  // the gap behind a run is at least four bytes
    for (std::size_t i = 0; i < form.runs.size(); i += 5) form.runs[i].bytes = 7;
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < form.runs.size(); begin += form.runs[i++].bytes) form.begins[i] = begin;
  }
  form.size = form.list_bytes();
  for (int d = 0; d < number % 8 / 2; ++d) {
    form.dimension[form.dimensions++] = {3, d == 0 ? 600 : (d == 1 ? 2000 : 7000)};
    form.size *= 3;
  }
  return std::make_shared<const Form>(std::move(form));
}

// Boxes of one to three dimensions, in all widths, and now and then a list.
std::vector<SharedForm> many_forms(std::mt19937_64& random, int count) {
  std::vector<SharedForm> forms;
  for (int i = 0; i < count; ++i) {
    Form form;
    const auto pick = [&](std::uint64_t most) { return static_cast<std::int64_t>(random() % most + 1); };
    const std::int64_t unit = std::int64_t{1} << random() % 5;
    form.offset = unit * pick(5);
    form.block = unit * pick(7);
    form.size = form.block;
    std::int64_t stride = form.block;
    for (std::uint64_t d = random() % 4; d-- > 0;) {
      stride += unit * pick(3);
      form.dimension[form.dimensions++] = {pick(6) + 1, stride};
      stride *= form.dimension[form.dimensions - 1].count;
      form.size *= form.dimension[form.dimensions - 1].count;
    }
    forms.push_back(i % 9 == 8 ? any_list(i / 9) : std::make_shared<const Form>(std::move(form)));
  }
  return forms;
}

// Where each byte of the form lies, in pack order.
template <class Byte>
void each_byte(const Form& form, const Byte& byte) {
  const auto dimension = [&](std::size_t d) { return d < form.dimensions ? form.dimension[d] : Dimension{1, 0}; };
  for (std::int64_t k = 0; k < dimension(2).count; ++k)
    for (std::int64_t j = 0; j < dimension(1).count; ++j)
      for (std::int64_t i = 0; i < dimension(0).count; ++i) {
        const std::int64_t place = form.offset + k * dimension(2).stride + j * dimension(1).stride + i * dimension(0).stride;
        for (std::int64_t b = 0; b < form.block; ++b) byte(place + b);
        for (const Run& run : form.runs)
          for (std::int64_t b = 0; b < run.bytes; ++b) byte(place + run.offset + b);
      }
}

// Each form in a stretch of memory of its own, packed one behind the other.
struct Boxes {
  std::vector<PackWork> works;
  Boxes(const std::vector<SharedForm>& forms, const Piece& memory, const Piece& packed, std::uint64_t each, bool unpacks) {
    std::uint64_t at = 0;
    for (std::size_t i = 0; i < forms.size(); ++i) {
      const auto size = static_cast<std::uint64_t>(forms[i]->size);
      works.push_back({forms[i], memory.part(Offset{i * each}, Bytes{each}), 0, packed.part(Offset{at}, Bytes{size}), 0,
                       forms[i]->size, unpacks});
      at += size;
    }
  }
};

TEST_F(CudaPacks, many_boxes_and_lists_are_packed_and_unpacked_by_few_launches) {
  NEEDS_FAKE("count launches");
  std::mt19937_64 random{20261125};
  constexpr std::uint64_t kEach = 1 << 16;
  const auto forms = many_forms(random, 150);  // 16 of them lists, four of which come again in three dimensions
  const Piece memory = must(kind->allocate(0, Bytes{150 * kEach})), packed = must(kind->allocate(0, Bytes{4 << 20}));
  Data bytes(150 * kEach), stream(4 << 20, 0xa5), expected = stream, back(150 * kEach, 0xa5), wanted = back;
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
  const Boxes out(forms, memory, packed, kEach, false), in(forms, memory, packed, kEach, true);
  std::size_t at = 0;
  for (std::size_t i = 0; i < forms.size(); ++i)
    each_byte(*forms[i], [&](std::int64_t place) {
      expected[at] = bytes[i * kEach + static_cast<std::size_t>(place)];
      wanted[i * kEach + static_cast<std::size_t>(place)] = expected[at++];
    });
  const auto copy = [&](const Piece& to, const Piece& from) {
    Ticket ticket = must(kind->copy(to, from, {}));
    must(finish(ticket));
  };
  const auto whole = [](Data& data) { return host_piece(data.data(), Bytes{data.size()}); };
  copy(memory, whole(bytes)), copy(packed, whole(stream));
  const auto launched = fake_calls("cuLaunchKernel");
  Ticket ticket = must(kind->box_packing()->pack_boxes(out.works, {}));
  must(finish(ticket));
  EXPECT_EQ(fake_calls("cuLaunchKernel"), launched + 4 + 3) << "those four, and 146 boxes and lists in three launches";
  copy(whole(stream), packed);
  EXPECT_TRUE(stream == expected);
  copy(memory, whole(back));
  ticket = must(kind->box_packing()->pack_boxes(in.works, {}));
  must(finish(ticket));
  copy(whole(back), memory);
  EXPECT_TRUE(back == wanted);
  for (const Piece& each : {memory, packed}) must(kind->release(each));
}

// What a halo or an exchange of listed nodes asks for: a list and a block for each neighbour, one array, and a message's memory for each.
TEST_F(CudaPacks, lists_for_several_peers_are_packed_by_one_launch_and_unpacked_by_one) {
  NEEDS_FAKE("count launches");
  constexpr std::uint64_t kPeers = 7, kMost = 4096;
  Data bytes(1 << 16), back(1 << 16, 0xa5), wanted = back;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
  const auto copy = [&](const Piece& to, const Piece& from) {
    Ticket ticket = must(kind->copy(to, from, {}));
    must(finish(ticket));
  };
  const Piece memory = must(kind->allocate(0, Bytes{bytes.size()}));
  std::vector<Piece> packed;
  std::vector<PackWork> out, in;
  for (std::uint64_t peer = 0; peer < kPeers; ++peer) {
    packed.push_back(must(kind->allocate(0, Bytes{kMost})));
    const SharedForm form = CudaPacks::listed(static_cast<std::int64_t>(50 + peer));
    const Bytes size{static_cast<std::uint64_t>(form->size)};
    const auto origin = static_cast<std::int64_t>(peer * 1024);
    out.push_back({form, memory, origin, packed.back().part(Offset{}, size), 0, form->size, false});
    in.push_back(out.back());
    in.back().unpacks = true;
    each_byte(*form, [&](std::int64_t place) {
      const auto at = static_cast<std::size_t>(origin + place);
      wanted[at] = bytes[at];
    });
  }
  copy(memory, host_piece(bytes.data(), memory.size));
  must(kind->box_packing()->prepare_packing(out));
  must(kind->box_packing()->prepare_packing(in));
  const auto allocated = fake_calls("cuMemAlloc_v2"), launched = fake_calls("cuLaunchKernel");
  Ticket ticket = must(kind->box_packing()->pack_boxes(out, {}));
  must(finish(ticket));
  EXPECT_EQ(fake_calls("cuLaunchKernel"), launched + 1);
  for (std::uint64_t peer = 0; peer < kPeers; ++peer) {
    Data found(static_cast<std::size_t>(out[peer].to));
    copy(host_piece(found.data(), out[peer].packed.size), out[peer].packed);
    std::size_t at = 0;
    each_byte(*out[peer].form, [&](std::int64_t place) {
      EXPECT_EQ(found[at], bytes[static_cast<std::size_t>(out[peer].origin + place)]) << peer << ' ' << at;
      ++at;
    });
  }
  copy(memory, host_piece(back.data(), memory.size));
  ticket = must(kind->box_packing()->pack_boxes(in, {}));
  must(finish(ticket));
  EXPECT_EQ(fake_calls("cuLaunchKernel"), launched + 2);
  EXPECT_EQ(fake_calls("cuMemAlloc_v2"), allocated) << "lists were there";
  copy(host_piece(back.data(), memory.size), memory);
  EXPECT_TRUE(back == wanted);
  packed.push_back(memory);
  for (const Piece& each : packed) must(kind->release(each));
}

TEST_F(CudaPacks, of_many_boxes_any_call_may_fail_and_the_next_ones_are_right) {
  NEEDS_FAKE("inject errors");
  std::mt19937_64 random{7};
  constexpr std::uint64_t kEach = 1 << 16;
  const auto forms = many_forms(random, 70);
  const Piece memory = must(kind->allocate(0, Bytes{70 * kEach})), packed = must(kind->allocate(0, Bytes{4 << 20}));
  const Boxes out(forms, memory, packed, kEach, false);
  for (const auto& [call, calls_before] : {std::pair{"cuModuleLoadData", 0},
                                           {"cuModuleGetFunction", 0},
                                           {"cuMemAlloc_v2", 0},
                                           {"cuLaunchKernel", 0},
                                           {"cuLaunchKernel", 1},
                                           {"cuEventRecord", 0}}) {
    fake_fail(call, calls_before, CUDA_ERROR_UNKNOWN);
    const auto failed = kind->box_packing()->pack_boxes(out.works, {});
    ASSERT_FALSE(failed.ok()) << call;
    EXPECT_EQ(failed.status().code(), IST_ERR_DEVICE) << failed.status().text();
  }
  Ticket ticket = must(kind->box_packing()->pack_boxes(out.works, {}));
  must(finish(ticket));
  for (const Piece& each : {memory, packed}) must(kind->release(each));
}

}  // namespace
}  // namespace ist::test
