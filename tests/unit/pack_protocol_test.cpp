// What kernels that pack compute, with one thread: division by multiplication, and both ways of counting units.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "memory/cuda/box_protocol.hpp"
#include "memory/cuda/pack_protocol.hpp"
#include "memory/packing.hpp"

namespace {

using namespace ist::packing;

struct Crew {
  unsigned thread = 0;
  unsigned threads = 1;
  unsigned block = 0;
  unsigned blocks = 1;
};

// The compiler must not know it, or it warns of loops that would go beyond 2^62.
Crew crew_of(unsigned block, unsigned blocks) {
  static volatile unsigned one = 1;
  return {0, one, block, blocks * one};
}

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
        work.near = near;
        for (unsigned block = 0; block < blocks; ++block) move<std::uint32_t, false, false>(crew_of(block, blocks), work);
        for (std::size_t i = first; i < 210; ++i) wanted[i - first] = memory[place_of(i)];
        ASSERT_EQ(packed, wanted) << near << ' ' << first << ' ' << blocks;
        std::vector<std::uint32_t> back(5000, 9), expected = back;
        work.memory = reinterpret_cast<std::byte*>(back.data());
        for (unsigned block = 0; block < blocks; ++block) move<std::uint32_t, true, false>(crew_of(block, blocks), work);
        for (std::size_t i = first; i < 210; ++i) expected[place_of(i)] = memory[place_of(i)];
        ASSERT_EQ(back, expected) << near << ' ' << first << ' ' << blocks;
      }
    }
  }
}

TEST(PackProtocol, runs_are_found_by_where_they_begin_and_by_their_number) {
  const std::vector<std::int64_t> offsets{80, 0, 40, 200}, begins{0, 8, 24, 28};
  std::vector<std::uint32_t> memory(64);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::uint32_t>(i);
  for (const bool near : {true, false}) {
    std::vector<std::uint32_t> packed(8, 99);
    Work work;
    work.memory = reinterpret_cast<std::byte*>(memory.data());
    work.packed = reinterpret_cast<std::byte*>(packed.data());
    work.near = near;
    work.offsets = offsets.data();
    work.begins = begins.data();
    work.runs = 4;
    work.units = 8;
    move<std::uint32_t, false, true>(crew_of(0, 1), work);
    EXPECT_EQ(packed, (std::vector<std::uint32_t>{20, 21, 0, 1, 2, 3, 10, 50}));
    work.begins = nullptr;
    work.block = 2;
    work.block_by = divisor(2);
    move<std::uint32_t, false, true>(crew_of(0, 1), work);
    EXPECT_EQ(packed, (std::vector<std::uint32_t>{20, 21, 0, 1, 10, 11, 50, 51}));
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
        work.near = near;
        work.came = &came;
        for (unsigned block = 0; block < blocks; ++block) move<std::uint32_t, true, false>(crew_of(block, blocks), work);
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

}  // namespace
