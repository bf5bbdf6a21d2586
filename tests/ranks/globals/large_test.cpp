// Large variables: what nobody has touched costs nothing, and what is in the middle of it goes along.
#include <fstream>
#include <sstream>

#include "globals_support.hpp"

namespace rank_test {
namespace {

constexpr std::size_t kLarge = 100 << 20;
unsigned char large[kLarge];
alignas(1 << 16) unsigned char aligned[1 << 16];

// Of this process, whatever it maps: private memory and pages of files without a name that it has touched.
std::uint64_t memory_in_use() {
  std::ifstream status{"/proc/self/status"};
  std::uint64_t kibibytes = 0;
  for (std::string line; std::getline(status, line);) {
    std::istringstream words{line};
    std::string name;
    std::uint64_t value = 0;
    words >> name >> value;
    if (name == "RssAnon:" || name == "RssShmem:") kibibytes += value;
  }
  return kibibytes << 10U;
}

TEST(LargeGlobals, CostNothingWhereNobodyHasTouchedThem) {
  const std::uint64_t before = memory_in_use();
  TestGlobals globals;
  ASSERT_TRUE(globals->symmetric()) << globals->why();
  globals.barrier();
  EXPECT_LT(memory_in_use(), before + kLarge / 4);
  globals.end();
  EXPECT_LT(memory_in_use(), before + kLarge / 4);
}

TEST(LargeGlobals, GoAlongWhereverTheyAreUsed) {
  constexpr std::size_t kPart = 10001;
  const std::size_t places[] = {0, 4095, kLarge / 2 + 13, kLarge - kPart};
  std::uint64_t seed = 40 + static_cast<std::uint64_t>(rank());
  for (const std::size_t place : places) {
    const auto bytes = random_bytes(kPart, seed + place);
    std::copy(bytes.begin(), bytes.end(), large + place);
  }
  EXPECT_EQ(0U, reinterpret_cast<std::uintptr_t>(aligned) % sizeof aligned);
  TestGlobals globals;
  ASSERT_TRUE(globals->symmetric()) << globals->why();
  globals.barrier();
  seed = 40 + static_cast<std::uint64_t>(left());
  // The first place is overwritten in part by the second one.
  for (std::size_t i = 1; i < std::size(places); ++i)
    EXPECT_EQ(-1, first_difference(random_bytes(kPart, seed + places[i]), globals.get(large + places[i], kPart, left())));
  globals.barrier();
  globals.put(large + kLarge / 3, random_bytes(kPart, 9 + static_cast<std::uint64_t>(rank())), right());
  globals.end();
  EXPECT_EQ(-1, first_difference(random_bytes(kPart, 9 + static_cast<std::uint64_t>(left())),
                                 {large + kLarge / 3, large + kLarge / 3 + kPart}));
  seed = 40 + static_cast<std::uint64_t>(rank());
  EXPECT_EQ(-1, first_difference(random_bytes(kPart, seed + places[3]), {large + places[3], large + kLarge}));
}

}  // namespace
}  // namespace rank_test
