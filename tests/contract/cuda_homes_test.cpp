// Which context an address is in, among ranges that come and go, compared with a search of all.
#include <gtest/gtest.h>

#include <random>

#include "memory/cuda/cuda_context.hpp"
#include "memory/cuda/cuda_homes.hpp"

namespace ist::test {
namespace {

struct Searched {
  std::vector<CudaHomes::Range> ranges;
  CudaContext* at(std::uint64_t address) const {
    for (const auto& each : ranges)
      if (address >= each.start && address - each.start < each.length) return each.home;
    return nullptr;
  }
};

void expect_same(const CudaHomes& homes, const Searched& searched, std::uint64_t last) {
  for (std::uint64_t address = 0; address < last; ++address) ASSERT_EQ(homes.at(address), searched.at(address)) << address;
}

TEST(CudaHomes, windows_within_one_allocation_end_where_they_end) {
  CudaContext home;
  CudaHomes homes;
  EXPECT_EQ(homes.at(5), nullptr);
  homes.add({100, 1000, &home});
  homes.add({200, 10, &home});
  EXPECT_EQ(homes.at(99), nullptr);
  EXPECT_EQ(homes.at(500), &home) << "behind the inner one, in the outer one";
  EXPECT_EQ(homes.at(1100), nullptr);
  homes.remove(100, 1000);
  EXPECT_EQ(homes.at(500), nullptr);
  EXPECT_EQ(homes.at(209), &home);
  homes.remove(200, 10);
  EXPECT_EQ(homes.at(209), nullptr);
}

TEST(CudaHomes, each_address_is_where_a_search_of_all_finds_it) {
  // Each allocation of 64 addresses has one context, and any windows; equal ones repeat.
  CudaContext contexts[4];
  std::mt19937 random{7};
  CudaHomes homes;
  Searched searched;
  for (int turn = 0; turn < 600; ++turn) {
    if (searched.ranges.size() < 3 || (searched.ranges.size() < 20 && random() % 2 == 0)) {
      const std::uint64_t which = random() % 4, from = random() % 60, length = 1 + random() % (64 - from);
      searched.ranges.push_back({which * 64 + from, length, &contexts[which]});
      homes.add(searched.ranges.back());
      if (random() % 4 == 0) {
        searched.ranges.push_back(searched.ranges.back());
        homes.add(searched.ranges.back());
      }
    } else {
      const auto gone = searched.ranges.begin() + static_cast<std::ptrdiff_t>(random() % searched.ranges.size());
      homes.remove(gone->start, gone->length);
      searched.ranges.erase(gone);
    }
    ASSERT_NO_FATAL_FAILURE(expect_same(homes, searched, 4 * 64)) << turn;
  }
}

}  // namespace
}  // namespace ist::test
