// What comes is combined with what is here, wherever the result goes: the bits of a reduction that is made behind.
#include "memory/fold.hpp"

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "operands.hpp"

namespace ist::test {
namespace {

enum class Place { apart, of_here, of_what_came };

class Folded : public testing::TestWithParam<std::tuple<Place, bool>> {};
std::string name_of_case(const testing::TestParamInfo<std::tuple<Place, bool>>& each) {
  const auto [place, came_left] = each.param;
  return std::string{place == Place::apart     ? "apart"
                     : place == Place::of_here ? "of_here"
                                               : "of_what_came"} +
         (came_left ? "_left" : "_right");
}
// What comes as the left operand has a place of its own.
INSTANTIATE_TEST_SUITE_P(Each, Folded,
                         testing::Values(std::tuple{Place::apart, false}, std::tuple{Place::apart, true},
                                         std::tuple{Place::of_here, false}, std::tuple{Place::of_here, true},
                                         std::tuple{Place::of_what_came, false}),
                         name_of_case);

TEST_P(Folded, part_by_part_every_element_is_what_the_reduction_gives) {
  const auto [place, came_left] = GetParam();
  if (place == Place::of_what_came && came_left) return;  // nobody does that: it is the place of what is combined with it
  for (const Combination& each : {Combination{Reduction::sum, IST_FLOAT}, Combination{Reduction::minimum, IST_DOUBLE},
                                  Combination{Reduction::maxloc, IST_DOUBLE_INT}, Combination{Reduction::sum, IST_HALF},
                                  Combination{Reduction::bitwise_xor, IST_BYTE}})
    for (const std::int64_t count : {1, 2, 511, 512, 513, 4096, 4097, 20011}) {
      const Elements came = random_elements(each.type, count), here = random_elements(each.type, count);
      Elements expected = came_left ? here : came;
      combine_on_host(each.reduction, each.type, expected.data(), (came_left ? came : here).data(), count);
      Elements result(here.size(), 0xA5), mine = here, theirs = came;
      Elements& to = place == Place::apart ? result : place == Place::of_here ? mine : theirs;
      const Fold fold{each.reduction,
                      each.type,
                      reinterpret_cast<std::byte*>(to.data()),
                      reinterpret_cast<const std::byte*>(mine.data()),
                      Bytes{here.size()},
                      came_left};
      const std::uint64_t size = size_of(each.type).value, all = here.size();
      const std::uint64_t part = std::max(all / 3 / size * size, size);
      for (std::uint64_t from = 0; from < all; from += part) {
        const std::uint64_t bytes = std::min(part, all - from);
        EXPECT_TRUE(fold.takes(from, bytes));
        fold(from, reinterpret_cast<const std::byte*>(theirs.data()) + from, bytes);
      }
      EXPECT_EQ(difference(each.type, to, expected), "") << name_of(each.reduction) << " of " << count;
    }
}

TEST(Fold, takes_whole_elements_alone) {
  Fold fold;
  fold.type = IST_DOUBLE;
  EXPECT_TRUE(fold.takes(0, 8) && fold.takes(16, 0) && fold.takes(8, 4096));
  EXPECT_FALSE(fold.takes(4, 8) || fold.takes(8, 4) || fold.takes(4, 4));
}

}  // namespace
}  // namespace ist::test
