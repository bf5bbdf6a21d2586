// The arithmetic of reductions on the processor, beside a second one that is written as simply as can be.
#include "memory/reduction.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "operands.hpp"

namespace ist::test {
namespace {

// Numbers of 16 bits by way of double, with the library's own functions.
double double_of(std::uint16_t bits, int digits, int lowest) {
  const int fraction = bits & ((1 << digits) - 1);
  const int exponent = (bits & 0x7fff) >> digits;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0x7fff >> digits)
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(fraction, lowest);
  return sign * std::ldexp(fraction + (1 << digits), lowest + exponent - 1);
}
std::uint16_t rounded_from(double value, int digits, int lowest) {
  const int infinite = (0x7fff >> digits) << digits;
  const int sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return static_cast<std::uint16_t>(infinite | 1 << (digits - 1));
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | infinite);
  const int exponent = std::max(value == 0 ? lowest : std::ilogb(value) - digits, lowest);
  const double steps = std::nearbyint(std::ldexp(std::fabs(value), -exponent));
  // A carry out of the fraction goes into the exponent by itself, and out of that into infinity.
  const int bits = static_cast<int>(steps) + ((exponent - lowest) << digits);
  return static_cast<std::uint16_t>(sign | std::min(bits, infinite));
}
struct HalfNumber {
  std::uint16_t bits;
  operator double() const { return double_of(bits, 10, -24); }
  static HalfNumber of(double value) { return {rounded_from(value, 10, -24)}; }
};
struct Bfloat16Number {
  std::uint16_t bits;
  operator double() const { return double_of(bits, 7, -133); }
  static Bfloat16Number of(double value) { return {rounded_from(value, 7, -133)}; }
};

// Sums, products, logic and bits of one type; what is not of that type is not asked for.
template <class T>
T computed(Reduction reduction, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    const auto wide = [](T value) { return static_cast<std::uint64_t>(value); };
    switch (reduction) {
      case Reduction::sum:
        return static_cast<T>(wide(a) + wide(b));
      case Reduction::product:
        return static_cast<T>(wide(a) * wide(b));
      case Reduction::logical_and:
        return a && b ? T{1} : T{0};
      case Reduction::logical_or:
        return a || b ? T{1} : T{0};
      case Reduction::logical_xor:
        return !a != !b ? T{1} : T{0};
      case Reduction::bitwise_and:
        return static_cast<T>(a & b);
      case Reduction::bitwise_or:
        return static_cast<T>(a | b);
      default:
        return static_cast<T>(a ^ b);
    }
  } else if constexpr (std::is_floating_point_v<T>) {
    return reduction == Reduction::sum ? a + b : a * b;
  } else {
    // Exact in double, so there is one rounding.
    const double result = reduction == Reduction::sum ? double{a} + double{b} : double{a} * double{b};
    return T::of(result);
  }
}

template <class T>
void refer(Reduction reduction, std::uint8_t* into, const std::uint8_t* with) {
  T a;
  T b;
  std::memcpy(&a, with, sizeof a);
  std::memcpy(&b, into, sizeof b);
  T result;
  if (reduction == Reduction::minimum) {
    result = a < b ? a : b;
  } else if (reduction == Reduction::maximum) {
    result = a > b ? a : b;
  } else {
    result = computed(reduction, a, b);
  }
  std::memcpy(into, &result, sizeof result);
}

template <class T>
void refer_complex(Reduction reduction, std::uint8_t* into, const std::uint8_t* with) {
  std::complex<T> a;
  std::complex<T> b;
  std::memcpy(&a, with, sizeof a);
  std::memcpy(&b, into, sizeof b);
  std::complex<T> result = a + b;
  if (reduction == Reduction::product) {
    // volatile: each step is rounded, whatever the compiler would rather do.
    const volatile T real[] = {a.real() * b.real(), a.imag() * b.imag()};
    const volatile T imaginary[] = {a.real() * b.imag(), a.imag() * b.real()};
    result = {real[0] - real[1], imaginary[0] + imaginary[1]};
  }
  std::memcpy(into, &result, sizeof result);
}

template <class Value, class Index>
void refer_pair(Reduction reduction, std::uint8_t* into, const std::uint8_t* with) {
  struct Pair {
    Value value;
    Index index;
  };
  Pair a;
  Pair b;
  std::memcpy(&a, with, sizeof a);
  std::memcpy(&b, into, sizeof b);
  const bool better = reduction == Reduction::minloc ? a.value < b.value : a.value > b.value;
  if (better || (a.value == b.value && a.index < b.index)) std::memcpy(into, with, sizeof(Pair));
}

using Refer = void (*)(Reduction, std::uint8_t*, const std::uint8_t*);
// By ist_type, in the types of the language that the interface promises.
constexpr Refer kRefer[kTypes] = {refer<unsigned char>,
                                  refer<char>,
                                  refer<std::int8_t>,
                                  refer<std::uint8_t>,
                                  refer<std::int16_t>,
                                  refer<std::uint16_t>,
                                  refer<std::int32_t>,
                                  refer<std::uint32_t>,
                                  refer<std::int64_t>,
                                  refer<std::uint64_t>,
                                  refer<float>,
                                  refer<double>,
                                  refer<int>,
                                  refer<long>,
                                  refer<short>,
                                  refer<unsigned>,
                                  refer<unsigned long>,
                                  refer<long long>,
                                  refer<unsigned short>,
                                  refer<unsigned long long>,
                                  refer<HalfNumber>,
                                  refer<Bfloat16Number>,
                                  refer_complex<float>,
                                  refer_complex<double>,
                                  refer_pair<float, int>,
                                  refer_pair<double, int>,
                                  refer_pair<long, int>,
                                  refer_pair<int, int>,
                                  refer_pair<short, int>,
                                  refer_pair<std::int64_t, std::int64_t>};

Elements reference(const Combination& each, const Elements& into, const Elements& with) {
  Elements result = into;
  const std::size_t size = size_of(each.type).value;
  for (std::size_t at = 0; at < result.size(); at += size) kRefer[each.type](each.reduction, &result[at], &with[at]);
  return result;
}

// Combined between two odd places, with bytes before and behind that must stay.
Elements combined_at(const Combination& each, const Elements& into, const Elements& with, std::size_t into_at,
                     std::size_t with_at) {
  constexpr std::size_t kGuard = 64;
  Elements target(into_at + into.size() + kGuard, 0xA5);
  Elements source(with_at + with.size(), 0x5A);
  std::copy(into.begin(), into.end(), target.begin() + static_cast<std::ptrdiff_t>(into_at));
  std::copy(with.begin(), with.end(), source.begin() + static_cast<std::ptrdiff_t>(with_at));
  const auto count = static_cast<std::int64_t>(into.size() / size_of(each.type).value);
  combine_on_host(each.reduction, each.type, target.data() + into_at, source.data() + with_at, count);
  const auto begin = target.begin() + static_cast<std::ptrdiff_t>(into_at);
  const auto end = begin + static_cast<std::ptrdiff_t>(into.size());
  const auto untouched = [](std::uint8_t byte) { return byte == 0xA5; };
  EXPECT_TRUE(std::all_of(target.begin(), begin, untouched) && std::all_of(end, target.end(), untouched));
  EXPECT_TRUE(std::equal(with.begin(), with.end(), source.begin() + static_cast<std::ptrdiff_t>(with_at)));
  return {begin, end};
}

std::string words(const Combination& each) { return std::string{name_of(each.reduction)} + " of " + name_of(each.type); }

class Combined : public testing::TestWithParam<Reduction> {
 protected:
  static std::vector<Combination> combinations() {
    std::vector<Combination> all;
    for (const Combination& each : all_combinations())
      if (each.reduction == GetParam()) all.push_back(each);
    return all;
  }
};

TEST_P(Combined, every_element_of_every_type_is_what_the_simple_way_gives) {
  for (const Combination& each : combinations())
    for (const std::int64_t count : {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 1023, 20011}) {
      const Elements into = random_elements(each.type, count);
      const Elements with = random_elements(each.type, count);
      EXPECT_EQ(difference(each.type, combined_at(each, into, with, 0, 0), reference(each, into, with)), "") << words(each);
    }
}

TEST_P(Combined, elements_may_begin_at_any_address) {
  for (const Combination& each : combinations())
    for (const std::size_t at : {1U, 2U, 3U, 7U, 9U, 15U}) {
      const Elements into = random_elements(each.type, 1001);
      const Elements with = random_elements(each.type, 1001);
      const Elements expected = reference(each, into, with);
      EXPECT_EQ(difference(each.type, combined_at(each, into, with, at, 0), expected), "") << words(each);
      EXPECT_EQ(difference(each.type, combined_at(each, into, with, 16 - at, at), expected), "") << words(each);
    }
}

TEST_P(Combined, into_a_third_place_the_same_and_nothing_else_changes) {
  constexpr std::size_t kGuard = 64;
  for (const Combination& each : combinations())
    for (const std::int64_t count : {0, 1, 2, 3, 7, 8, 9, 31, 33, 1001})
      for (const std::size_t at : {0U, 1U, 7U}) {
        const Elements left = random_elements(each.type, count), right = random_elements(each.type, count);
        Elements lefts(left), rights(right), place(at + left.size() + kGuard, 0xA5);
        lefts.insert(lefts.begin(), at / 2, 0x5A);
        combine_on_host(each.reduction, each.type, place.data() + at, lefts.data() + at / 2, rights.data(), count);
        const auto begin = place.begin() + static_cast<std::ptrdiff_t>(at);
        const auto end = begin + static_cast<std::ptrdiff_t>(left.size());
        EXPECT_EQ(difference(each.type, {begin, end}, reference(each, right, left)), "") << words(each);
        EXPECT_EQ(std::count(place.begin(), begin, 0xA5) + std::count(end, place.end(), 0xA5),
                  static_cast<std::ptrdiff_t>(at + kGuard));
        EXPECT_TRUE(std::equal(left.begin(), left.end(), lefts.begin() + static_cast<std::ptrdiff_t>(at / 2)));
        EXPECT_EQ(rights, right);
      }
}

TEST_P(Combined, a_million_elements_and_three) {
  for (const ist_type type : {IST_FLOAT, IST_INT64, IST_BYTE, IST_DOUBLE_INT, IST_COMPLEX_FLOAT}) {
    const Combination each{GetParam(), type};
    if (!applicable(each.reduction, type).ok()) continue;
    const Elements into = random_elements(type, 1000003);
    const Elements with = random_elements(type, 1000003);
    EXPECT_EQ(difference(type, combined_at(each, into, with, 0, 0), reference(each, into, with)), "") << words(each);
  }
}

INSTANTIATE_TEST_SUITE_P(Each, Combined, testing::ValuesIn(all_reductions()),
                         [](const auto& each) { return std::string{name_of(each.param)}; });

TEST(Reduction, halves_round_once_to_even_for_every_half_and_many_others) {
  const Elements some = random_elements(IST_HALF, 24);
  for (const Reduction reduction : {Reduction::sum, Reduction::product, Reduction::minimum})
    for (const ist_type type : {IST_HALF, IST_BFLOAT16}) {
      const Combination each{reduction, type};
      for (std::size_t other = 0; other < some.size(); other += 2) {
        Elements all(65536 * std::size_t{2});
        Elements with(all.size());
        for (std::size_t i = 0; i < 65536; ++i) {
          all[2 * i] = static_cast<std::uint8_t>(i);
          all[2 * i + 1] = static_cast<std::uint8_t>(i >> 8U);
          std::memcpy(&with[2 * i], &some[other], 2);
        }
        // Seven at a time in some rounds: the steps for what is no whole vector must round alike.
        Elements found = all;
        const std::int64_t stride = other % 8 == 0 ? 7 : 65536;
        for (std::int64_t at = 0; at < 65536; at += stride)
          combine_on_host(reduction, type, &found[static_cast<std::size_t>(2 * at)], &with[static_cast<std::size_t>(2 * at)],
                          std::min(stride, 65536 - at));
        ASSERT_EQ(difference(type, found, reference(each, all, with)), "") << words(each);
      }
    }
}

TEST(Reduction, says_what_does_not_apply_and_what_would) {
  std::size_t applied = 0;
  for (const Reduction reduction : all_reductions())
    for (int number = 0; number < kTypes; ++number) {
      const auto type = static_cast<ist_type>(number);
      const Status status = applicable(reduction, type);
      applied += status.ok() ? 1 : 0;
      if (status.ok()) continue;
      EXPECT_EQ(status.code(), IST_ERR_ARGUMENT);
      EXPECT_NE(status.text().find(name_of(reduction)), std::string::npos) << status.text();
      EXPECT_NE(status.text().find(name_of(type)), std::string::npos) << status.text();
    }
  // 17 integers know ten operations, 4 floating types four, 2 complex two, 6 pairs two, and bytes three.
  EXPECT_EQ(applied, 17U * 10 + 4 * 4 + 2 * 2 + 6 * 2 + 3);
  EXPECT_EQ(applicable(Reduction::minimum, IST_COMPLEX_DOUBLE).text(),
            "minimum does not apply to IST_COMPLEX_DOUBLE; it applies to integers and floating numbers");
  EXPECT_TRUE(applicable(Reduction::logical_or, IST_CHAR).ok());
  EXPECT_FALSE(applicable(Reduction::sum, IST_BYTE).ok());
  for (const int unknown : {-1, kTypes, 1000}) {
    const Status status = applicable(Reduction::sum, static_cast<ist_type>(unknown));
    EXPECT_EQ(status.code(), IST_ERR_ARGUMENT);
    EXPECT_NE(status.text().find(std::to_string(unknown)), std::string::npos) << status.text();
  }
  EXPECT_EQ(applicable(static_cast<Reduction>(0), IST_INT).code(), IST_ERR_ARGUMENT);
  EXPECT_EQ(applicable(static_cast<Reduction>(13), IST_INT).code(), IST_ERR_ARGUMENT);
}

TEST(Reduction, what_does_not_apply_changes_nothing) {
  Elements into(64, 0xA5);
  const Elements with(64, 0x5A);
  combine_on_host(Reduction::minloc, IST_FLOAT, into.data(), with.data(), 4);
  combine_on_host(Reduction::sum, static_cast<ist_type>(99), into.data(), with.data(), 4);
  combine_on_host(Reduction::sum, IST_FLOAT, into.data(), with.data(), -1);
  combine_on_host(Reduction::sum, static_cast<ist_type>(99), into.data(), with.data(), with.data(), 4);
  combine_on_host(Reduction::minloc, IST_FLOAT, into.data(), with.data(), with.data(), 4);
  combine_on_host(Reduction::sum, IST_FLOAT, into.data(), with.data(), with.data(), -1);
  EXPECT_EQ(into, Elements(64, 0xA5));
}

TEST(Reduction, types_have_the_sizes_of_their_structs) {
  struct DoubleInt {
    double value;
    int index;
  };
  struct ShortInt {
    short value;
    int index;
  };
  EXPECT_EQ(size_of(IST_DOUBLE_INT).value, sizeof(DoubleInt));
  EXPECT_EQ(size_of(IST_SHORT_INT).value, sizeof(ShortInt));
  EXPECT_EQ(size_of(IST_COMPLEX_FLOAT).value, sizeof(std::complex<float>));
  EXPECT_EQ(size_of(IST_HALF).value, 2U);
  EXPECT_EQ(size_of(IST_UNSIGNED_SHORT).value, sizeof(unsigned short));
  EXPECT_EQ(alignment_of(*element_of(IST_LONG_INT)).value, alignof(long));
  EXPECT_EQ(size_of(static_cast<ist_type>(kTypes)).value, 0U);
}

}  // namespace
}  // namespace ist::test
