// Kernels that pack find every unit of a list that comes again, in near and far numbers.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "memory/cuda/box_protocol.hpp"
#include "pack_work.hpp"

namespace {

using namespace ist::packing;
using namespace ist::test;

// Runs of two words at three places, which come again 5 times 100 words apart, 7 such groups 600 apart, 2 of those 4500 apart, 2 of
// those in turn 9000 back.
struct Again {
  const std::vector<std::int32_t> places{20, 0, 10};
  const std::vector<std::int64_t> offsets{80, 0, 40}, begins{0, 8, 16};
  Work work(int dimensions) const {
    constexpr std::uint64_t kCounts[] = {5, 7, 2, 2};
    constexpr std::int64_t kStrides[] = {400, 2400, 18000, -36000};
    Work work;
    work.origin = 36000;
    work.runs = 3;
    work.block = 2;
    work.block_by = divisor(2);
    work.list = 6;
    work.list_by = divisor(6);
    work.dimensions = static_cast<std::uint32_t>(dimensions);
    work.units = 6;
    for (int d = 0; d < dimensions; ++d) {
      work.units *= kCounts[d];
      work.stride[d + 1 == dimensions ? 3 : d] = kStrides[d];
      if (d + 1 == dimensions) continue;
      work.count[d] = kCounts[d];
      work.count_by[d] = divisor(kCounts[d]);
    }
    return work;
  }
  // In words.
  static std::size_t place_of(std::size_t unit) {
    constexpr std::size_t kWords[] = {20, 21, 0, 1, 10, 11};
    const std::size_t time = unit / 6;
    return 9000 - time / 70 * 9000 + kWords[unit % 6] + time % 5 * 100 + time / 5 % 7 * 600 + time / 35 % 2 * 4500;
  }
};

// Each unit of the stream from `first` on, in its place and nowhere else, and back again.
void check_again(Work work, bool near, std::uint64_t first, unsigned blocks) {
  std::vector<std::uint32_t> memory(20000), packed(work.units - first, 7), wanted = packed;
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::uint32_t>(i * 2654435761U);
  work.memory = reinterpret_cast<std::byte*>(memory.data());
  work.packed = reinterpret_cast<std::byte*>(packed.data());
  work.first = first;
  work.units -= first;
  move_all<std::uint32_t, false, true>(near, blocks, work);
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = memory[Again::place_of(first + i)];
  ASSERT_EQ(packed, wanted);
  std::vector<std::uint32_t> back(20000, 9), expected = back;
  work.memory = reinterpret_cast<std::byte*>(back.data());
  const std::uint64_t came = (work.units - 1) * 4 + 1;  // all but three bytes
  if (first == 0) work.came = &came;
  move_all<std::uint32_t, true, true>(near, blocks, work);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    std::memcpy(&expected[Again::place_of(first + i)], &wanted[i], i + 1 == wanted.size() && first == 0 ? 1 : 4);
  ASSERT_EQ(back, expected);
}

TEST(PackLists, one_that_comes_again_is_found_in_one_to_four_dimensions) {
  const Again again;
  for (int dimensions = 1; dimensions <= 4; ++dimensions)
    for (const std::uint64_t first : {0, 17, 25})
      for (const unsigned blocks : {1U, 3U, 60U}) {
        Work work = again.work(dimensions);
        work.places = again.places.data();
        work.scale = 2;
        ASSERT_TRUE(is_near(work));
        check_again(work, true, first, blocks);
        check_again(work, false, first, blocks);
        work.places = nullptr;
        work.offsets = again.offsets.data();
        ASSERT_FALSE(is_near(work));
        check_again(work, false, first, blocks);
        work.begins = again.begins.data();
        check_again(work, false, first, blocks);
        if (testing::Test::HasFatalFailure()) FAIL() << dimensions << ' ' << first << ' ' << blocks;
      }
}

// A list of six words that comes once, 5 times 100 words apart, or 7 times such groups 700 words back from each other.
struct Listed {
  RunsAre list;
  int dimensions;
  std::vector<std::uint32_t> memory = std::vector<std::uint32_t>(5000), packed = std::vector<std::uint32_t>(210, 7);
  const std::vector<std::int32_t> places{20, 0, 10};
  const std::vector<std::int64_t> offsets{80, 0, 40}, unequal{80, 0, 40, 0, 8, 12};

  std::size_t units() const { return dimensions == 0 ? 6 : (dimensions == 1 ? 30 : 210); }
  std::size_t place_of(std::size_t unit) const {
    constexpr std::size_t kPlaces[2][6] = {{20, 21, 0, 1, 10, 11}, {20, 21, 0, 10, 11, 12}};
    const std::size_t time = unit / 6;
    return 4200 + kPlaces[list == RunsAre::unequal ? 1 : 0][unit % 6] + time % 5 * 100 - time / 5 * 700;
  }
  Box box() {
    Box box{.memory = reinterpret_cast<std::byte*>(&memory[4200]), .packed = reinterpret_cast<std::byte*>(packed.data())};
    box.stride[0] = 400, box.stride[1] = -2800;
    box.block = list == RunsAre::unequal ? 3 : 2;
    box.count[0] = 6, box.count[1] = 5;
    box.units = static_cast<std::uint32_t>(units());
    box.width = 4, box.scale = 2;
    box.list = list;
    box.runs = offsets.data();
    if (list == RunsAre::near) box.runs = places.data();
    if (list == RunsAre::unequal) box.runs = unequal.data();
    return box;
  }
};

Boxes boxes_of(std::vector<Listed>& lists, const Box& blocks, unsigned each) {
  Boxes boxes;
  for (Listed& listed : lists) boxes.box[boxes.count++] = listed.box();
  boxes.box[boxes.count++] = blocks;
  for (std::uint32_t i = 0; i < boxes.count; ++i) boxes.box[i].end = (i + 1) * each;
  return boxes;
}

TEST(PackLists, lists_of_every_kind_and_blocks_are_moved_by_one_launch) {
  for (const unsigned each : {1U, 3U, 40U}) {
    std::vector<Listed> lists;
    for (const RunsAre list : {RunsAre::near, RunsAre::far, RunsAre::unequal})
      for (const int dimensions : {0, 1, 2}) lists.push_back({list, dimensions});
    for (Listed& listed : lists)
      for (std::size_t i = 0; i < listed.memory.size(); ++i)
        listed.memory[i] = static_cast<std::uint32_t>((i + 1) * 2654435761U + lists.size());
    std::vector<std::uint32_t> rows(100), row(50, 7);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::uint32_t>(i);
    Box blocks{.memory = reinterpret_cast<std::byte*>(rows.data()), .packed = reinterpret_cast<std::byte*>(row.data())};
    blocks.stride[0] = 8, blocks.count[0] = 50, blocks.units = 50, blocks.width = 4;
    Boxes boxes = boxes_of(lists, blocks, each);
    const unsigned all = boxes.count * each;
    for (unsigned block = 0; block < all; ++block) move_boxes<false>(crew_of(block, all), boxes);
    for (std::size_t i = 0; i < row.size(); ++i) ASSERT_EQ(row[i], 2 * i);
    for (Listed& listed : lists) {
      std::vector<std::uint32_t> wanted(210, 7);
      for (std::size_t i = 0; i < listed.units(); ++i) wanted[i] = listed.memory[listed.place_of(i)];
      ASSERT_EQ(listed.packed, wanted) << static_cast<int>(listed.list) << ' ' << listed.dimensions << ' ' << each;
      listed.memory.assign(5000, 9);
    }
    boxes = boxes_of(lists, blocks, each);
    for (unsigned block = 0; block < all; ++block) move_boxes<true>(crew_of(block, all), boxes);
    for (const Listed& listed : lists) {
      std::vector<std::uint32_t> wanted(5000, 9);
      for (std::size_t i = 0; i < listed.units(); ++i) wanted[listed.place_of(i)] = listed.packed[i];
      ASSERT_EQ(listed.memory, wanted) << static_cast<int>(listed.list) << ' ' << listed.dimensions << ' ' << each;
    }
  }
}

TEST(PackLists, places_of_one_that_comes_again_are_right_up_to_the_last_near_unit_and_beyond_it) {
  std::mt19937_64 random{20261130};
  for (int i = 0; i < 3000; ++i) {
    Work work = any_work(random);
    const std::vector<std::int32_t> places(64, -77);
    work.block = random() % 9 + 1;
    work.block_by = divisor(work.block);
    work.runs = random() % 64 + 1;
    work.list = work.runs * work.block;
    work.list_by = divisor(work.list);
    work.places = places.data();
    work.scale = 3;
    for (const std::uint64_t unit :
         {std::uint64_t{0}, work.list - 1, work.list, kNear - 1, random() % kNear, random() >> 30}) {
      Work strided = work;
      strided.block = work.list;
      const std::int64_t wanted = plain_place(strided, unit, 8) - static_cast<std::int64_t>(unit % work.list * 8) -
                                  std::int64_t{77} * 8 + static_cast<std::int64_t>(unit % work.block * 8);
      ASSERT_EQ(far_place<std::uint64_t>(work, unit), wanted) << unit;
      if (unit >= kNear) continue;
      ASSERT_EQ(repeated_place<std::uint64_t>(work, static_cast<std::uint32_t>(unit)), wanted) << unit;
    }
  }
  Work work;
  work.list = kNear;
  EXPECT_FALSE(is_near(work));
}

}  // namespace
