#include "operands.hpp"

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace ist::test {
namespace {

std::mt19937_64& engine() {
  static std::atomic<std::uint64_t> seed{std::random_device{}()};
  thread_local std::mt19937_64 numbers{seed.fetch_add(0x9E3779B97F4A7C15)};
  return numbers;
}

template <class T>
void put(std::uint8_t* place, T value) {
  std::memcpy(place, &value, sizeof value);
}
template <class T>
T get(const std::uint8_t* place) {
  T value;
  std::memcpy(&value, place, sizeof value);
  return value;
}

template <class T>
T integer() {
  constexpr T kEdges[] = {0, 1, static_cast<T>(-1), std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
  const std::uint64_t random = engine()();
  return random % 3 == 0 ? kEdges[(random >> 8U) % 5] : static_cast<T>(random >> 3U);
}

template <class T>
T number() {
  using Limits = std::numeric_limits<T>;
  constexpr T kEdges[] = {0,
                          -T{0},
                          1,
                          -1,
                          Limits::infinity(),
                          -Limits::infinity(),
                          Limits::quiet_NaN(),
                          Limits::max(),
                          Limits::lowest(),
                          Limits::min(),
                          Limits::denorm_min(),
                          -Limits::denorm_min()};
  const std::uint64_t random = engine()();
  if (random % 4 == 0) return kEdges[(random >> 8U) % 12];
  if (random % 4 == 1) {
    std::uint8_t bits[sizeof(T)];
    const std::uint64_t other = engine()();
    std::memcpy(bits, &other, sizeof bits);
    return get<T>(bits);
  }
  return static_cast<T>(std::uniform_real_distribution<double>{-8, 8}(engine()));
}

// Bits of 16: both zeros, one, the largest, the least, infinities, no number, or any.
std::uint16_t number16(const std::uint16_t (&edges)[8]) {
  const std::uint64_t random = engine()();
  if (random % 4 == 0) return static_cast<std::uint16_t>(edges[(random >> 8U) % 8] ^ ((random >> 20U) % 2 << 15U));
  return static_cast<std::uint16_t>(random >> 16U);
}
constexpr std::uint16_t kHalfEdges[8] = {0, 0x3c00, 0x7bff, 0x0001, 0x03ff, 0x0400, 0x7c00, 0x7e00};
constexpr std::uint16_t kBfloat16Edges[8] = {0, 0x3f80, 0x7f7f, 0x0001, 0x007f, 0x0080, 0x7f80, 0x7fc0};

template <class Value, class Index>
void pair(std::uint8_t* place) {
  struct Pair {
    Value value;
    Index index;
  };
  const std::uint64_t random = engine()();
  Value value = static_cast<Value>(static_cast<int>(random % 4) - 2);
  if constexpr (std::is_floating_point_v<Value>) {
    if (random % 32 == 9) value = std::numeric_limits<Value>::quiet_NaN();
    if (random % 32 == 11) value = -std::numeric_limits<Value>::infinity();
    if (random % 32 == 13) value = -Value{0};
  } else if (random % 32 == 9) {
    value = integer<Value>();
  }
  put(place + offsetof(Pair, value), value);
  put(place + offsetof(Pair, index), static_cast<Index>(static_cast<int>((random >> 8U) % 7) - 3));
}

void put_element(Element element, std::uint8_t* place) {
  switch (element) {
    case Element::int8:
      return put(place, integer<std::int8_t>());
    case Element::uint8:
      return put(place, integer<std::uint8_t>());
    case Element::int16:
      return put(place, integer<std::int16_t>());
    case Element::uint16:
      return put(place, integer<std::uint16_t>());
    case Element::int32:
      return put(place, integer<std::int32_t>());
    case Element::uint32:
      return put(place, integer<std::uint32_t>());
    case Element::int64:
      return put(place, integer<std::int64_t>());
    case Element::uint64:
      return put(place, integer<std::uint64_t>());
    case Element::float16:
      return put(place, number16(kHalfEdges));
    case Element::bfloat16:
      return put(place, number16(kBfloat16Edges));
    case Element::float32:
      return put(place, number<float>());
    case Element::float64:
      return put(place, number<double>());
    case Element::complex32:
      return put(place, number<float>()), put(place + 4, number<float>());
    case Element::complex64:
      return put(place, number<double>()), put(place + 8, number<double>());
    case Element::float32_int32:
      return pair<float, int>(place);
    case Element::float64_int32:
      return pair<double, int>(place);
    case Element::int64_int32:
      return pair<std::int64_t, int>(place);
    case Element::int32_int32:
      return pair<int, int>(place);
    case Element::int16_int32:
      return pair<std::int16_t, int>(place);
    case Element::int64_int64:
      return pair<std::int64_t, std::int64_t>(place);
  }
}

// Bytes of one number within an element, and whether it is none.
std::size_t width(Element element) {
  switch (element) {
    case Element::float16:
    case Element::bfloat16:
      return 2;
    case Element::float32:
    case Element::complex32:
      return 4;
    case Element::float64:
    case Element::complex64:
      return 8;
    default:
      return 1;
  }
}
bool is_nan(Element element, const std::uint8_t* place) {
  switch (width(element)) {
    case 2:
      return (get<std::uint16_t>(place) & 0x7fffU) > (element == Element::float16 ? 0x7c00U : 0x7f80U);
    case 4:
      return std::isnan(get<float>(place));
    case 8:
      return std::isnan(get<double>(place));
    default:
      return false;
  }
}

std::string hexadecimal(const std::uint8_t* place, std::size_t size) {
  std::string text;
  for (std::size_t i = size; i-- > 0;) {
    text += "0123456789abcdef"[place[i] >> 4U];
    text += "0123456789abcdef"[place[i] & 15U];
  }
  return text;
}

}  // namespace

std::vector<Reduction> all_reductions() {
  std::vector<Reduction> all;
  for (std::size_t i = 1; i <= kReductions; ++i) all.push_back(static_cast<Reduction>(i));
  return all;
}

std::vector<Combination> all_combinations() {
  std::vector<Combination> all;
  for (const Reduction reduction : all_reductions())
    for (int type = 0; type < kTypes; ++type)
      if (applicable(reduction, static_cast<ist_type>(type)).ok()) all.push_back({reduction, static_cast<ist_type>(type)});
  return all;
}

Elements random_elements(ist_type type, std::int64_t count) {
  const std::size_t size = size_of(type).value;
  Elements all(size * static_cast<std::size_t>(count));
  for (std::uint8_t& each : all) each = static_cast<std::uint8_t>(engine()());
  for (std::size_t at = 0; at < all.size(); at += size) put_element(*element_of(type), &all[at]);
  return all;
}

std::string difference(ist_type type, const Elements& found, const Elements& expected) {
  if (found == expected) return {};
  if (found.size() != expected.size()) return "sizes differ";
  const Element element = *element_of(type);
  const std::size_t step = width(element);
  for (std::size_t at = 0; at + step <= found.size(); at += step) {
    if (std::memcmp(&found[at], &expected[at], step) == 0) continue;
    if (is_nan(element, &found[at]) && is_nan(element, &expected[at])) continue;
    const std::size_t size = size_of(type).value;
    const std::size_t begin = at / size * size;
    return name_of(type) + " " + std::to_string(at / size) + ": 0x" + hexadecimal(&found[begin], size) + ", expected 0x" +
           hexadecimal(&expected[begin], size);
  }
  return {};
}

}  // namespace ist::test
