// Numbers that count different things do not mix: each WRONG_ block must be refused by the compiler, the rest must compile.
// tests/unit/CMakeLists.txt makes one test of each block.
#include "base/units.hpp"

namespace {

using namespace ist;

constexpr bool takes_rank(Rank rank) { return rank.value >= 0; }
constexpr Bytes length{8};
constexpr Offset place{16};
constexpr Rank rank{1};
constexpr Pe pe{1};

// The control: everything that has a meaning.
static_assert(length + length == Bytes{16});
static_assert(place + length == Offset{24});
static_assert(place - place == Bytes{0});
static_assert(takes_rank(rank) && rank < Rank{2} && pe == Pe{1});

#ifdef WRONG_SUM_OF_TWO_OFFSETS
constexpr auto wrong = place + place;
#endif
#ifdef WRONG_SUM_OF_BYTES_AND_OFFSET_THE_OTHER_WAY_ROUND
constexpr auto wrong = length + place;
#endif
#ifdef WRONG_SUM_OF_BYTES_AND_RANK
constexpr auto wrong = length + rank;
#endif
#ifdef WRONG_RANK_FROM_PE
constexpr Rank wrong{pe};
#endif
#ifdef WRONG_RANK_FROM_NUMBER_UNSAID
constexpr bool wrong = takes_rank(3);
#endif
#ifdef WRONG_NUMBER_FROM_RANK
constexpr int wrong = rank;
#endif
#ifdef WRONG_BYTES_FROM_NUMBER_UNSAID
constexpr Bytes wrong = 8;
#endif
#ifdef WRONG_RANK_EQUALS_PE
constexpr bool wrong = rank == pe;
#endif
#ifdef WRONG_BYTES_BELOW_OFFSET
constexpr bool wrong = length < place;
#endif
#ifdef WRONG_OFFSET_PLUS_NUMBER
constexpr auto wrong = place + 8;
#endif

}  // namespace

int main() { return 0; }
