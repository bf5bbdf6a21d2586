// What kernels that pack compute: division by multiplication, both ways of counting units, and tiles.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "memory/cuda/box_protocol.hpp"
#include "memory/packing.hpp"
#include "pack_work.hpp"

namespace {

using namespace ist::packing;
using namespace ist::test;

TEST(PackProtocol, division_by_a_known_number_is_exact_below_two_to_the_31st) {
  std::mt19937_64 random{20261127};
  std::vector<std::uint32_t> numbers{0, 1, 2, 3, 0x7fffffff, 0x7ffffffe, 0x40000000};
  for (int i = 0; i < 2000; ++i) numbers.push_back(static_cast<std::uint32_t>(random() >> (33 + random() % 31)));
  for (const std::uint32_t by : numbers) {
    if (by == 0) continue;
    const Divisor known = divisor(by);
    for (const std::uint32_t each : numbers)
      for (const std::uint32_t all : {each, each / by * by, each / by * by + by - 1}) {
        if (all >= kNear) continue;
        std::uint32_t value = all;
        const std::uint32_t left = take_off(value, by, known);
        ASSERT_EQ(value, all / by) << all << " by " << by;
        ASSERT_EQ(left, all % by) << all << " by " << by;
      }
  }
}

// Blocks of 3 units, 5 of them 40 units apart, 7 such groups 300 apart, 2 of those 2500 apart.
Work strided_work(std::vector<std::uint32_t>& memory, std::vector<std::uint32_t>& packed, std::uint64_t first) {
  Work work;
  work.memory = reinterpret_cast<std::byte*>(memory.data());
  work.packed = reinterpret_cast<std::byte*>(packed.data());
  work.origin = 16;
  work.block = 3;
  work.dimensions = 3;
  work.count[0] = 5, work.count[1] = 7, work.count[2] = 2;
  work.stride[0] = 160, work.stride[1] = 1200, work.stride[2] = 10000;
  work.block_by = divisor(3);
  for (int d = 0; d < 3; ++d) work.count_by[d] = divisor(work.count[d]);
  work.first = first;
  work.units = 210 - first;
  return work;
}

std::size_t place_of(std::size_t unit) {
  const std::size_t block = unit / 3;
  return 4 + unit % 3 + block % 5 * 40 + block / 5 % 7 * 300 + block / 35 * 2500;
}

TEST(PackProtocol, both_ways_of_counting_find_the_same_places_with_any_number_of_blocks) {
  for (const bool near : {true, false}) {
    for (const std::uint64_t first : {0, 100}) {
      for (const unsigned blocks : {1U, 3U, 60U, 300U}) {
        std::vector<std::uint32_t> memory(5000), packed(210, 7), wanted = packed;
        for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::uint32_t>(i * 2654435761U);
        Work work = strided_work(memory, packed, first);
        EXPECT_TRUE(is_near(work));
        move_all<std::uint32_t, false, false>(near, blocks, work);
        for (std::size_t i = first; i < 210; ++i) wanted[i - first] = memory[place_of(i)];
        ASSERT_EQ(packed, wanted) << near << ' ' << first << ' ' << blocks;
        std::vector<std::uint32_t> back(5000, 9), expected = back;
        work.memory = reinterpret_cast<std::byte*>(back.data());
        move_all<std::uint32_t, true, false>(near, blocks, work);
        for (std::size_t i = first; i < 210; ++i) expected[place_of(i)] = memory[place_of(i)];
        ASSERT_EQ(back, expected) << near << ' ' << first << ' ' << blocks;
      }
    }
  }
}

// From the four dimensions above to blocks of 7 units 10 apart, and from unit `first` of both on.
TEST(PackProtocol, a_relay_brings_each_unit_from_its_place_to_its_place) {
  for (const std::uint64_t first : {0, 100})
    for (const unsigned blocks : {1U, 3U, 60U}) {
      std::vector<std::uint32_t> memory(5000), none, there(400, 9), wanted = there;
      for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::uint32_t>(i * 2654435761U);
      Relay work;
      work.from = strided_work(memory, none, first);
      work.to.memory = reinterpret_cast<std::byte*>(there.data());
      work.to.origin = 12;
      work.to.block = 7;
      work.to.block_by = divisor(7);
      work.to.stride[3] = 40;
      work.to.first = first;
      work.to.units = 210 - first;
      for (unsigned block = 0; block < blocks; ++block) relay<std::uint32_t>(crew_of(block, blocks), work);
      for (std::size_t i = first; i < 210; ++i) wanted[3 + i / 7 * 10 + i % 7] = memory[place_of(i)];
      ASSERT_EQ(there, wanted) << first << ' ' << blocks;
    }
}

// Between runs of 1 to 4 units and blocks of 7, and from unit `first` on; counted with 64 bits.
TEST(PackProtocol, a_relay_of_any_forms_brings_each_unit_from_its_place_to_its_place) {
  std::vector<std::int64_t> offsets, begins;
  std::vector<std::size_t> places;
  for (std::size_t run = 0; places.size() < 210; ++run) {
    offsets.push_back(static_cast<std::int64_t>((400 - run * 5) * 4));
    begins.push_back(static_cast<std::int64_t>(places.size() * 4));
    for (std::size_t i = 0; i <= run % 4 && places.size() < 210; ++i) places.push_back(400 - run * 5 + i);
  }
  for (const std::uint64_t first : {0, 100})
    for (const bool listed_first : {true, false})
      for (const unsigned blocks : {1U, 3U}) {
        std::vector<std::uint32_t> one(500, 9), other(500, 9);
        Work list, rows;
        list.offsets = offsets.data(), list.begins = begins.data(), list.runs = offsets.size();
        rows.origin = 12, rows.block = 7, rows.stride[3] = 40;
        list.first = rows.first = first, list.units = rows.units = 210 - first;
        list.memory = reinterpret_cast<std::byte*>(one.data()), rows.memory = reinterpret_cast<std::byte*>(other.data());
        std::vector<std::uint32_t>& from = listed_first ? one : other;
        std::vector<std::uint32_t>& to = listed_first ? other : one;
        for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint32_t>(i * 2654435761U);
        std::vector<std::uint32_t> wanted = to;
        for (std::size_t i = first; i < 210; ++i) {
          const std::size_t row = 3 + i / 7 * 10 + i % 7;
          wanted[listed_first ? row : places[i]] = from[listed_first ? places[i] : row];
        }
        const Relay work{listed_first ? list : rows, listed_first ? rows : list};
        for (unsigned block = 0; block < blocks; ++block) relay_any<std::uint32_t>(crew_of(block, blocks), work);
        ASSERT_EQ(to, wanted) << first << ' ' << listed_first << ' ' << blocks;
      }
}

// Every other unit, by blocks of 32 threads.
template <class Word, bool unpacks, bool far>
void move_tiles(unsigned blocks, std::uint64_t units) {
  static volatile unsigned threads = 32;
  std::vector<std::uint8_t> memory(units * 2 * sizeof(Word)), packed(units * sizeof(Word) + 16, 0xa5);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
  if (unpacks)
    for (std::size_t i = 0; i < units * sizeof(Word); ++i) packed[i] = static_cast<std::uint8_t>(i * 5 + i / 128);
  std::vector<std::uint8_t> wanted_memory = memory, wanted_packed = packed;
  for (std::uint64_t i = 0; i < units; ++i) {
    auto* const there = wanted_memory.data() + i * 2 * sizeof(Word);
    auto* const here = wanted_packed.data() + i * sizeof(Word);
    std::memcpy(unpacks ? there : here, unpacks ? here : there, sizeof(Word));
  }
  Work work;
  work.memory = reinterpret_cast<std::byte*>(memory.data());
  work.packed = reinterpret_cast<std::byte*>(packed.data());
  work.stride[3] = 2 * sizeof(Word);
  work.units = units;
  for (unsigned block = 0; block < blocks; ++block)
    for (unsigned thread = 0; thread < threads; ++thread)
      move<Word, unpacks, false, far>(Crew{thread, threads, block, blocks}, work);
  ASSERT_EQ(packed, wanted_packed) << sizeof(Word) << ' ' << units << ' ' << blocks;
  ASSERT_EQ(memory, wanted_memory) << sizeof(Word) << ' ' << units << ' ' << blocks;
}
template <class Word>
void move_tiles(unsigned blocks, std::uint64_t units) {
  move_tiles<Word, false, false>(blocks, units), move_tiles<Word, true, false>(blocks, units);
  move_tiles<Word, false, true>(blocks, units), move_tiles<Word, true, true>(blocks, units);
}

TEST(PackProtocol, whole_tiles_and_the_rest_of_one_are_moved_by_blocks_of_threads_and_nothing_else) {
  for (const std::uint64_t units : {1, 31, 32, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1000})
    for (const unsigned blocks : {1U, 2U, 4U, 8U, 31U})
      move_tiles<std::uint8_t>(blocks, units), move_tiles<std::uint32_t>(blocks, units), move_tiles<Sixteen>(blocks, units);
}

TEST(PackProtocol, places_are_those_of_plain_division_up_to_the_last_near_unit_and_far_beyond_it) {
  std::mt19937_64 random{20261126};
  for (int i = 0; i < 3000; ++i) {
    const Work work = any_work(random);
    Work row;
    row.origin = work.origin, row.block = work.block, row.block_by = work.block_by, row.stride[3] = work.stride[3];
    std::vector<std::uint64_t> units{
        0, 1, kNear - 1, kNear - 2, work.block, work.block - 1, random() % kNear, random() % 100000};
    for (const std::uint64_t unit : units) {
      if (unit >= kNear) continue;
      const auto near = static_cast<std::uint32_t>(unit);
      ASSERT_EQ(strided_place<Sixteen>(work, near), plain_place(work, unit, 16)) << unit;
      ASSERT_EQ(strided_place<std::uint8_t>(work, near), plain_place(work, unit, 1)) << unit;
      ASSERT_EQ(row_place<std::uint32_t>(row, near), plain_place(row, unit, 4)) << unit;
    }
    for (const std::uint64_t unit :
         {kNear, kNear - 1, kNear + 1, 2 * kNear - 1, 2 * kNear, 2 * kNear + 1, random() >> 30, random() % kNear})
      ASSERT_EQ(strided_place<std::uint64_t>(work, unit), plain_place(work, unit, 8)) << unit;
  }
}

TEST(PackProtocol, near_is_what_32_bits_count_with_lists_that_do_with_as_many) {
  Work work;
  work.units = kNear - 1;
  EXPECT_TRUE(is_near(work));
  work.first = 1;
  EXPECT_FALSE(is_near(work));
  work.first = ~std::uint64_t{0} - 1;  // the sum would be small again
  EXPECT_FALSE(is_near(work));
  work.first = 0;
  work.block = kNear;
  EXPECT_FALSE(is_near(work));
  work.block = kNear - 1;
  EXPECT_TRUE(is_near(work));
  for (std::uint64_t& count : work.count) {
    count = kNear;
    EXPECT_FALSE(is_near(work));
    count = kNear - 1;
    EXPECT_TRUE(is_near(work));
  }
  const std::int32_t place = 0;
  const std::int64_t offset = 0;
  work.runs = 1;
  work.offsets = &offset;
  EXPECT_FALSE(is_near(work));
  work.offsets = nullptr;
  work.places = &place;
  EXPECT_TRUE(is_near(work));
}

TEST(PackProtocol, runs_are_found_by_where_they_begin_and_by_their_number) {
  const std::vector<std::int64_t> offsets{80, 0, 40, 200}, begins{0, 8, 24, 28};
  const std::vector<std::int32_t> places{20, 0, 10, 50};
  std::vector<std::uint32_t> memory(64), packed(8, 99);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::uint32_t>(i);
  Work work;
  work.memory = reinterpret_cast<std::byte*>(memory.data());
  work.packed = reinterpret_cast<std::byte*>(packed.data());
  work.offsets = offsets.data();
  work.begins = begins.data();
  work.runs = 4;
  work.units = 8;
  move_all<std::uint32_t, false, true>(false, 1, work);
  EXPECT_EQ(packed, (std::vector<std::uint32_t>{20, 21, 0, 1, 2, 3, 10, 50}));
  const std::vector<std::uint32_t> wanted{20, 21, 0, 1, 10, 11, 50, 51};
  work.begins = nullptr;
  work.block = 2;
  work.block_by = divisor(2);
  move_all<std::uint32_t, false, true>(false, 1, work);
  EXPECT_EQ(packed, wanted);
  work.offsets = nullptr;
  work.places = places.data();
  work.scale = 2;
  for (const bool near : {true, false}) {
    packed.assign(8, 99);
    move_all<std::uint32_t, false, true>(near, 3, work);
    EXPECT_EQ(packed, wanted) << near;
  }
}

TEST(PackProtocol, offsets_of_32_bits_reach_their_whole_range_in_each_scale) {
  const std::vector<std::int32_t> places{0x7fffffff, -0x7fffffff - 1, 0, -1};
  Work work;
  work.places = places.data();
  work.runs = 4;
  work.origin = -5;
  work.block = 3;
  work.block_by = divisor(3);
  for (work.scale = 0; work.scale <= 4; ++work.scale)
    for (std::uint32_t unit = 0; unit < 12; ++unit) {
      const std::int64_t wanted = -5 + std::int64_t{places[unit / 3]} * (1 << work.scale) + std::int64_t{unit} % 3 * 8;
      ASSERT_EQ(listed_place<std::uint64_t>(work, unit), wanted) << work.scale << ' ' << unit;
      ASSERT_EQ(far_place<std::uint64_t>(work, unit), wanted) << work.scale << ' ' << unit;
    }
}

// Of so many bytes of 840: whole units, some bytes of one more, and nothing else.
std::vector<std::uint32_t> with_first_bytes(const std::vector<std::uint32_t>& packed, std::uint64_t came) {
  std::vector<std::uint32_t> memory(5000, 9);
  for (std::size_t i = 0; i < 840 && i < came; ++i)
    reinterpret_cast<std::byte*>(&memory[place_of(i / 4)])[i % 4] = reinterpret_cast<const std::byte*>(packed.data())[i];
  return memory;
}

TEST(PackProtocol, as_many_bytes_are_unpacked_as_the_word_says) {
  std::vector<std::uint32_t> packed(210);
  for (std::size_t i = 0; i < packed.size(); ++i) packed[i] = static_cast<std::uint32_t>((i + 1) * 2654435761U);
  for (const std::uint64_t came : {0, 1, 3, 4, 5, 63, 64, 418, 419, 836, 837, 839, 840, 841, 100000}) {
    const std::vector<std::uint32_t> wanted = with_first_bytes(packed, came);
    for (const unsigned blocks : {1U, 3U, 60U, 300U}) {
      for (const bool near : {true, false}) {
        std::vector<std::uint32_t> memory(5000, 9);
        Work work = strided_work(memory, packed, 0);
        work.came = &came;
        move_all<std::uint32_t, true, false>(near, blocks, work);
        ASSERT_EQ(memory, wanted) << came << ' ' << blocks << ' ' << near;
      }
      std::vector<std::uint32_t> memory(5000, 9);
      Boxes boxes;
      boxes.count = 1;
      boxes.came = &came;
      boxes.box[0] = {reinterpret_cast<std::byte*>(&memory[4]),
                      reinterpret_cast<std::byte*>(packed.data()),
                      {160, 1200, 10000},
                      3,
                      {5, 7},
                      210,
                      blocks,
                      4};
      for (unsigned block = 0; block < blocks; ++block) move_boxes<true>(crew_of(block, blocks), boxes);
      ASSERT_EQ(memory, wanted) << came << ' ' << blocks << " in a box";
      // What is packed is all there.
      std::vector<std::uint32_t> back(210, 7);
      boxes.box[0].packed = reinterpret_cast<std::byte*>(back.data());
      for (unsigned block = 0; block < blocks; ++block) move_boxes<false>(crew_of(block, blocks), boxes);
      for (std::size_t i = 0; i < 210; ++i) ASSERT_EQ(back[i], memory[place_of(i)]) << i;
    }
  }
}

ist::RunList list_of(const std::vector<ist::Run>& runs) {
  ist::Form form;
  form.runs = runs;
  for (const ist::Run& run : runs) {
    form.begins.push_back(form.size);
    form.size += run.bytes;
  }
  return run_list(form);
}

TEST(RunList, runs_are_cut_where_that_makes_at_most_twice_as_many) {
  const ist::RunList equal = list_of({{96, 24}, {0, 24}, {48, 24}});
  EXPECT_EQ(equal.each, 24);
  EXPECT_EQ(equal.numbers, (std::vector<std::int64_t>{96, 0, 48}));
  const ist::RunList cut = list_of({{40, 8}, {0, 24}, {80, 16}});
  EXPECT_EQ(cut.each, 8);
  EXPECT_EQ(cut.runs, 6U);
  EXPECT_EQ(cut.numbers, (std::vector<std::int64_t>{40, 0, 8, 16, 80, 88}));
  const ist::RunList unequal = list_of({{40, 8}, {0, 24}, {80, 24}});
  EXPECT_EQ(unequal.each, 0);
  EXPECT_EQ(unequal.runs, 3U);
  EXPECT_EQ(unequal.numbers, (std::vector<std::int64_t>{40, 0, 80, 0, 8, 32}));
}

TEST(RunList, offsets_are_short_where_each_is_a_number_of_32_bits_in_the_runs_units) {
  const std::int64_t most = std::int64_t{0x7fffffff} * 8;
  EXPECT_EQ(short_offsets(list_of({{most, 8}, {-most - 8, 8}, {0, 8}}), 8),
            (std::vector<std::int32_t>{0x7fffffff, -0x7fffffff - 1, 0}));
  EXPECT_TRUE(short_offsets(list_of({{0, 8}, {most + 8, 8}}), 8).empty()) << "one too far";
  EXPECT_TRUE(short_offsets(list_of({{0, 8}, {-most - 16, 8}}), 8).empty()) << "one too far before it";
  EXPECT_TRUE(short_offsets(list_of({{40, 8}, {0, 24}, {80, 24}}), 8).empty()) << "they differ";
  EXPECT_EQ(short_offsets(list_of({{40, 8}, {0, 24}, {80, 16}}), 8), (std::vector<std::int32_t>{5, 0, 1, 2, 10, 11}));
}

}  // namespace
