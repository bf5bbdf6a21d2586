// What kinds that pack promise: on each of their devices the bytes that a second interpreter names, and no others touched.
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "../unit/random_layouts.hpp"
#include "support.hpp"

namespace ist::test {
namespace {

std::vector<Place> places_that_pack() {
  std::vector<Place> all;
  for (const Place& place : all_places())
    if (place.get().packing() && place.get().packing()->can_pack(place.device).ok()) all.push_back(place);
  return all;
}

class KindPacks : public testing::TestWithParam<Place> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(KindPacks);

// A layout's bytes from `at` on in some memory, and a place for the packed ones in another.
struct Setting {
  const Place& place;
  SharedForm form;
  std::vector<std::int64_t> bytes;  // where each one of the stream lies, from the layout's byte 0
  std::int64_t lower;
  std::int64_t reach;
  std::uint64_t memory_at;
  std::uint64_t packed_at;
};

constexpr std::uint64_t kGuard = 32;

void expect_packed(const Setting& s, std::int64_t from, std::int64_t to, bool by_rows = false) {
  const auto length = static_cast<std::uint64_t>(to - from);
  const Memory memory{s.place, s.memory_at + static_cast<std::uint64_t>(s.reach) + kGuard};
  const Memory packed{s.place, s.packed_at + length + kGuard};
  Data in_memory = random_bytes(memory.piece().size.value);
  Data in_packed = random_bytes(packed.piece().size.value);
  PackWork work{s.form,   memory.part(s.memory_at, static_cast<std::uint64_t>(s.reach)),
                -s.lower, packed.part(s.packed_at, length),
                from,     to,
                false,    by_rows};
  const auto place_of = [&](std::int64_t i) {
    return static_cast<std::size_t>(s.bytes[static_cast<std::size_t>(i)] - s.lower) + s.memory_at;
  };
  write(memory.piece(), in_memory);
  write(packed.piece(), in_packed);
  wait(must(s.place.get().packing()->pack_bytes(work, Ticket{})));
  for (std::int64_t i = from; i < to; ++i)
    in_packed[static_cast<std::size_t>(i - from) + s.packed_at] = in_memory[place_of(i)];
  ASSERT_EQ(read(packed.piece()), in_packed) << "packed";
  ASSERT_EQ(read(memory.piece()), in_memory) << "packing changed what it read";
  in_packed = random_bytes(packed.piece().size.value);
  write(packed.piece(), in_packed);
  work.unpacks = true;
  wait(must(s.place.get().packing()->pack_bytes(work, Ticket{})));
  for (std::int64_t i = from; i < to; ++i)
    in_memory[place_of(i)] = in_packed[static_cast<std::size_t>(i - from) + s.packed_at];
  ASSERT_EQ(read(memory.piece()), in_memory) << "unpacked";
  ASSERT_EQ(read(packed.piece()), in_packed) << "unpacking changed what it read";
}

bool twice(std::vector<std::int64_t> bytes) {
  std::sort(bytes.begin(), bytes.end());
  return std::adjacent_find(bytes.begin(), bytes.end()) != bytes.end();
}

Setting setting_of(const Place& place, const Pair& pair, std::uint64_t memory_at, std::uint64_t packed_at) {
  const Bounds bounds = pair.layout->true_bounds();
  return {
      place,    std::make_shared<const Form>(*pair.layout->form()), pair.map.bytes, bounds.lower, bounds.extent(), memory_at,
      packed_at};
}

TEST_P(KindPacks, parts_of_random_nests_at_every_alignment) {
  const char* wanted = std::getenv("ISTHMUS_TEST_PACKS");
  const int cases = wanted != nullptr ? std::atoi(wanted) : long_tests() ? 3000 : 150;
  constexpr std::uint64_t kSeed = 20261126;
  std::cout << cases << " layouts, seed " << kSeed << '\n';
  Random random{kSeed};
  for (int i = 0; i < cases;) {
    const Pair pair = random_layout(random, static_cast<int>(pick(random, 1, 4)));
    if (pair.map.bytes.empty() || twice(pair.map.bytes)) continue;
    const auto size = static_cast<std::int64_t>(pair.map.bytes.size());
    const auto at = [&] { return static_cast<std::uint64_t>(pick(random, 0, 1) == 0 ? 0 : pick(random, 0, 16)); };
    const Setting setting = setting_of(GetParam(), pair, at(), at());
    std::int64_t from = 0;
    std::int64_t to = size;
    if (pick(random, 0, 1) == 0) {
      from = pick(random, 0, size - 1);
      to = pick(random, from + 1, size);
    }
    expect_packed(setting, from, to);
    if (HasFatalFailure()) FAIL() << "case " << i << ", " << from << " to " << to << ": " << described(*pair.layout->form());
    ++i;
  }
}

Pair added(const SharedLayout& layout, const Map& map) { return {layout, map}; }

// Rows and planes of rows, by copies of a copy engine: from any byte to any byte.
TEST_P(KindPacks, rows_by_copies_of_rows_as_by_kernels) {
  if (GetParam().get().id() == KindId::opencl) {
    Form rows;
    rows.block = 50;
    rows.dimensions = 1;
    rows.dimension[0] = {11, 64};
    rows.size = 550;
    PackWork work;
    work.form = std::make_shared<const Form>(rows);
    const Memory memory{GetParam(), 1000};
    work.memory = work.packed = memory.piece();
    EXPECT_STREQ(GetParam().get().packing()->refuses_rows(work), "both sides are OpenCL memory, which kernels pack");
    return;
  }
  Random random{std::random_device{}()};
  const Pair one = basic(IST_INT8);
  for (const std::int64_t block : {1, 4, 16, 100, 4096})
    for (const std::int64_t planes : {1, 5}) {
      constexpr std::int64_t kRows = 7;
      const std::int64_t pitch = block + 13, plane = pitch * (kRows + 2);
      SharedLayout layout = good(vector_layout(kRows, block, pitch, Unit::bytes, one.layout));
      if (planes > 1) layout = good(vector_layout(planes, 1, plane, Unit::bytes, layout));
      Map map;
      for (std::int64_t i = 0; i < planes * kRows; ++i)
        for (std::int64_t b = 0; b < block; ++b) map.add(one.map, i / kRows * plane + i % kRows * pitch + b);
      const Pair pair = added(layout, map);
      const Setting setting = setting_of(GetParam(), pair, 16, 5);
      PackWork work;
      work.form = setting.form;
      const Memory memory{GetParam(), 16};
      work.memory = work.packed = memory.piece();
      ASSERT_EQ(GetParam().get().packing()->refuses_rows(work), nullptr);
      const auto size = static_cast<std::int64_t>(map.bytes.size());
      expect_packed(setting, 0, size, true);
      for (int i = 0; i < 4; ++i) {
        const std::int64_t from = pick(random, 0, size - 1);
        expect_packed(setting, from, pick(random, from + 1, size), true);
      }
      if (HasFatalFailure()) FAIL() << "blocks of " << block << ", planes: " << planes;
    }
}

// The same between a device and host memory of the library's, which is page-locked where that matters.
TEST_P(KindPacks, rows_to_and_from_page_locked_host_memory) {
  MemoryKind& kind = GetParam().get();
  std::vector<std::byte> host(60000);
  if (kind.pins() != nullptr) must(kind.pins()->pin(host.data(), Bytes{host.size()}));
  Form rows;
  rows.offset = 3;
  rows.block = 50;
  rows.dimensions = 2;
  rows.dimension[0] = {11, 64};
  rows.dimension[1] = {9, 64 * 20};
  rows.size = 50 * 99;
  const auto form = std::make_shared<const Form>(rows);
  const Memory device{GetParam(), 60000};
  const auto there = [&](std::int64_t i) {
    return static_cast<std::size_t>(3 + i / 550 * 1280 + i / 50 % 11 * 64 + i % 50);
  };
  for (const bool of_host : {false, true})
    for (const bool unpacks : {false, true})
      for (const auto& [from, to] : {std::pair<std::int64_t, std::int64_t>{0, 4950}, {49, 4950}, {777, 3333}}) {
        const Data on_device = random_bytes(60000), on_host = random_bytes(60000);
        write(device.piece(), on_device);
        std::memcpy(host.data(), on_host.data(), host.size());
        const Bytes length{static_cast<std::uint64_t>(to - from)};
        const Piece here = host_piece(host.data(), Bytes{host.size()});
        PackWork work{form,    of_host ? here : device.piece(),
                      0,       (of_host ? device.piece() : here).part(Offset{100}, length),
                      from,    to,
                      unpacks, true};
        ASSERT_EQ(kind.packing()->refuses_rows(work), nullptr);
        wait(must(kind.packing()->pack_bytes(work, Ticket{})));
        const Data& rows_before = of_host ? on_host : on_device;
        const Data& packed_before = of_host ? on_device : on_host;
        Data laid = rows_before, packed = packed_before;
        for (std::int64_t i = from; i < to; ++i) {
          const auto at = static_cast<std::size_t>(100 + i - from);
          unpacks ? laid[there(i)] = packed_before[at] : packed[at] = rows_before[there(i)];
        }
        const Data host_after(reinterpret_cast<std::uint8_t*>(host.data()),
                              reinterpret_cast<std::uint8_t*>(host.data()) + host.size());
        EXPECT_EQ(read(device.piece()), of_host ? packed : laid) << of_host << unpacks << ' ' << from;
        EXPECT_EQ(host_after, of_host ? laid : packed) << of_host << unpacks << ' ' << from;
      }
  if (kind.pins() != nullptr) kind.pins()->unpin(host.data());
}

// A face of a cube, its edge, and a list of unequal blocks: each wide enough that many threads have something to do.
TEST_P(KindPacks, large_ones_by_units_of_every_width) {
  const auto of = [](ist_type type) { return basic(type); };
  for (const ist_type type : {IST_INT8, IST_INT16, IST_FLOAT, IST_DOUBLE, IST_COMPLEX_DOUBLE}) {
    const Pair one = of(type);
    constexpr std::int64_t kSide = 40;
    const std::vector<std::int64_t> sizes{kSide, kSide, kSide}, parts{kSide, kSide, 1}, starts{0, 0, kSide - 1};
    Map face;
    for (std::int64_t i = 0; i < kSide * kSide; ++i) face.add(one.map, (i * kSide + kSide - 1) * one.map.extent());
    const Pair faces = added(good(subarray_layout(sizes, parts, starts, Order::c, one.layout)), face);
    expect_packed(setting_of(GetParam(), faces, 0, 0), 0, static_cast<std::int64_t>(face.bytes.size()));
    std::vector<std::int64_t> lengths, places;
    Map listed;
    for (std::int64_t i = 0, place = 0; i < 3000; ++i) {
      lengths.push_back(1 + i % 3 * 4);
      places.push_back(place);
      for (std::int64_t j = 0; j < lengths.back(); ++j) listed.add(one.map, (place + j) * one.map.extent());
      place += 11 + i % 7;
    }
    const Pair lists = added(good(indexed_layout(lengths, places, Unit::extents, one.layout)), listed);
    expect_packed(setting_of(GetParam(), lists, 16, 16), 0, static_cast<std::int64_t>(listed.bytes.size()));
    const std::vector<std::int64_t> single(places.size(), 1);
    Map points;
    for (const std::int64_t place : places) points.add(one.map, place * one.map.extent());
    const Pair scattered = added(good(indexed_layout(single, places, Unit::extents, one.layout)), points);
    expect_packed(setting_of(GetParam(), scattered, 0, 16), 0, static_cast<std::int64_t>(points.bytes.size()));
    // Some are neighbours, and so make longer runs, which are cut again where they are packed.
    std::vector<std::int64_t> near;
    Map touching;
    for (std::int64_t i = 0, place = 0; i < 3000; ++i, place += 1 + i * i % 7) {
      near.push_back(place);
      touching.add(one.map, place * one.map.extent());
    }
    const Pair mostly = added(good(indexed_block_layout(1, near, Unit::extents, one.layout)), touching);
    expect_packed(setting_of(GetParam(), mostly, 0, 16), 0, static_cast<std::int64_t>(touching.bytes.size()));
    if (HasFatalFailure()) FAIL() << ist::name_of(type);
  }
}

// The same places of several arrays: of one length, of lengths that are cut to one, and of others, which are searched; from any byte to any
// byte, over the end of one repetition and in the middle of another.
TEST_P(KindPacks, lists_that_come_again_in_one_to_four_dimensions) {
  Random random{20261129};
  const Pair one = basic(IST_INT16);
  for (const std::int64_t longest : {1, 2, 5})
    for (std::size_t dimensions = 1; dimensions <= 4; ++dimensions) {
      std::vector<std::int64_t> lengths, places;
      Map map;
      std::int64_t behind = 0;
      for (std::int64_t i = 0; i < 40; ++i) {
        lengths.push_back(i * i % longest + 1);
        places.push_back(behind);
        for (std::int64_t j = 0; j < lengths.back(); ++j) map.add(one.map, (behind + j) * 2);
        behind += lengths.back() + 1 + i * i % 3;
      }
      SharedLayout layout = good(indexed_layout(lengths, places, Unit::extents, one.layout));
      std::int64_t stride = 2 * behind + 4;
      for (std::size_t d = 0; d < dimensions; ++d, stride = 3 * stride + 6) {
        const std::int64_t sign = d % 2 == 0 ? 1 : -1;
        layout = good(vector_layout(d + 1 == 4 ? 2 : 3, 1, sign * stride, Unit::bytes, layout));
        const Map inner = map;
        for (std::int64_t i = 1; i < (d + 1 == 4 ? 2 : 3); ++i) map.add(inner, i * sign * stride);
      }
      const Pair pair = added(layout, map);
      ASSERT_EQ(pair.layout->form()->runs.size(), 40U);
      ASSERT_EQ(pair.layout->form()->dimensions, dimensions);
      const auto size = static_cast<std::int64_t>(map.bytes.size());
      const Setting setting = setting_of(GetParam(), pair, 16, 0);
      expect_packed(setting, 0, size);
      for (int i = 0; i < 3; ++i) {
        const std::int64_t from = pick(random, 0, size - 1);
        expect_packed(setting, from, pick(random, from + 1, size));
      }
      if (HasFatalFailure()) FAIL() << longest << ": " << described(*pair.layout->form());
    }
}

// A list of runs that is on the device goes with its layout, and the next layout's is another one.
TEST_P(KindPacks, one_layout_after_the_other_with_the_same_number_of_runs) {
  const Pair one = basic(IST_INT32);
  for (std::int64_t round = 0; round < 8; ++round) {
    std::vector<std::int64_t> places;
    Map map;
    for (std::int64_t i = 0; i < 200; ++i) {
      places.push_back(i * 4 + (i * i + round) % 3);
      map.add(one.map, places.back() * 4);
    }
    const Pair pair = added(good(indexed_block_layout(1, places, Unit::extents, one.layout)), map);
    ASSERT_FALSE(pair.layout->form()->strided());
    const Setting setting = setting_of(GetParam(), pair, 0, 0);
    for (int i = 0; i < 3; ++i) expect_packed(setting, 0, static_cast<std::int64_t>(map.bytes.size()));
  }
}

// A copy in, the packing of it, and a copy out of the packed bytes, in one chain of tickets.
TEST_P(KindPacks, begins_after_the_ticket_it_is_given_and_is_waited_for_by_its_own) {
  MemoryKind& kind = GetParam().get();
  const auto column = good(vector_layout(1000, 1, 16, Unit::extents, basic(IST_DOUBLE).layout));
  const auto form = std::make_shared<const Form>(*column->form());
  const Bounds bounds = column->true_bounds();
  const Memory memory{GetParam(), static_cast<std::uint64_t>(bounds.extent())};
  const Memory packed{GetParam(), 8000};
  for (int round = 0; round < (long_tests() ? 200 : 20); ++round) {
    const Data bytes = random_bytes(memory.piece().size.value);
    Data found(8000, 0xEE);
    const Ticket first = must(kind.copy(memory.piece(), host_piece(bytes.data(), memory.piece().size), Ticket{}));
    const Ticket second = must(kind.packing()->pack_bytes({form, memory.piece(), 0, packed.piece(), 0, 8000, false}, first));
    wait(must(kind.copy(host_piece(found.data(), Bytes{8000}), packed.piece(), second)));
    for (std::size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], bytes[i / 8 * 128 + i % 8]) << "round " << round;
  }
}

INSTANTIATE_TEST_SUITE_P(Each, KindPacks, testing::ValuesIn(places_that_pack()),
                         [](const auto& each) { return name_of(each.param); });

}  // namespace
}  // namespace ist::test
