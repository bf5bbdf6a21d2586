// Places in memory that were used lately.
#include "base/recent_places.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>

namespace ist {
namespace {

// Addresses that nothing is read from.
class Memory {
 public:
  bool use(std::size_t place, Bytes size) { return places_.use(&bytes_.at(place), size); }

 private:
  std::array<std::byte, 64> bytes_{};
  RecentPlaces places_;
};

constexpr Bytes kSixth{RecentPlaces::kKept.value / 6};

TEST(RecentPlaces, APlaceIsRecentOnceItWasUsed) {
  Memory memory;
  EXPECT_FALSE(memory.use(1, kSixth));
  EXPECT_TRUE(memory.use(1, kSixth));
  EXPECT_FALSE(memory.use(2, kSixth));
  EXPECT_TRUE(memory.use(1, kSixth));
  EXPECT_TRUE(memory.use(2, Bytes{1})) << "of any number of bytes";
}

TEST(RecentPlaces, NotWhereMoreThanACacheWasUsedElsewhereSince) {
  Memory memory;
  for (int round = 0; round < 2; ++round)
    for (std::size_t place = 0; place < 7; ++place)
      EXPECT_EQ(memory.use(place, kSixth), round == 1) << "six others are as much as is kept: " << place;
  Memory another;
  for (int round = 0; round < 3; ++round)
    for (std::size_t place = 0; place < 8; ++place)
      EXPECT_FALSE(another.use(place, kSixth)) << "seven others are more: " << place;
  EXPECT_TRUE(another.use(7, kSixth));
}

TEST(RecentPlaces, BytesOfItsOwnDoNotCount) {
  Memory memory;
  const Bytes long_one{4 * RecentPlaces::kKept.value};
  EXPECT_FALSE(memory.use(1, long_one));
  EXPECT_TRUE(memory.use(1, long_one));
  EXPECT_FALSE(memory.use(2, kSixth));
  EXPECT_TRUE(memory.use(1, long_one));
  EXPECT_FALSE(memory.use(2, kSixth)) << "but another one's do";
}

TEST(RecentPlaces, NoMoreThanSoManyAreToldApart) {
  Memory memory;
  for (int round = 0; round < 2; ++round)
    for (std::size_t place = 0; place < RecentPlaces::kMost; ++place)
      EXPECT_EQ(memory.use(place, Bytes{1}), round == 1) << place;
  for (int round = 0; round < 2; ++round)
    for (std::size_t place = 10; place <= 10 + RecentPlaces::kMost; ++place)
      EXPECT_FALSE(memory.use(place, Bytes{1})) << place;
}

}  // namespace
}  // namespace ist
