// One step of a reduction on one element: the same text for the processor and for CUDA.
//
// Who calls this : reduction.cpp in its loops, cuda/cuda_kernels.cu in its kernels.
// Threads        : pure functions.
// Ownership      : values.
// Errors         : what does not apply does not compile.
#pragma once

#include <cstdint>
#include <type_traits>

#include "memory/reduction.hpp"

#ifdef __CUDACC__
#include <cuda_fp16.h>
#define IST_EVERYWHERE __host__ __device__ __forceinline__
#else
#define IST_EVERYWHERE inline
#endif

namespace ist {

struct Half {
  std::uint16_t bits;
};
struct Bfloat16 {
  std::uint16_t bits;
};
template <class T>
struct Complex {
  T real;
  T imaginary;
};
// As the C struct {Value value; Index index;}.
template <class V, class I>
struct Located {
  using Value = V;
  using Index = I;
  Value value;
  Index index;
};

template <Element element>
struct ElementTypeOf;
#define IST_ELEMENT_TYPE(element, ...)     \
  template <>                              \
  struct ElementTypeOf<Element::element> { \
    using Type = __VA_ARGS__;              \
  };
IST_ELEMENT_TYPE(int8, std::int8_t)
IST_ELEMENT_TYPE(uint8, std::uint8_t)
IST_ELEMENT_TYPE(int16, std::int16_t)
IST_ELEMENT_TYPE(uint16, std::uint16_t)
IST_ELEMENT_TYPE(int32, std::int32_t)
IST_ELEMENT_TYPE(uint32, std::uint32_t)
IST_ELEMENT_TYPE(int64, std::int64_t)
IST_ELEMENT_TYPE(uint64, std::uint64_t)
IST_ELEMENT_TYPE(float16, Half)
IST_ELEMENT_TYPE(bfloat16, Bfloat16)
IST_ELEMENT_TYPE(float32, float)
IST_ELEMENT_TYPE(float64, double)
IST_ELEMENT_TYPE(complex32, Complex<float>)
IST_ELEMENT_TYPE(complex64, Complex<double>)
IST_ELEMENT_TYPE(float32_int32, Located<float, std::int32_t>)
IST_ELEMENT_TYPE(float64_int32, Located<double, std::int32_t>)
IST_ELEMENT_TYPE(int64_int32, Located<std::int64_t, std::int32_t>)
IST_ELEMENT_TYPE(int32_int32, Located<std::int32_t, std::int32_t>)
IST_ELEMENT_TYPE(int16_int32, Located<std::int16_t, std::int32_t>)
IST_ELEMENT_TYPE(int64_int64, Located<std::int64_t, std::int64_t>)
#undef IST_ELEMENT_TYPE
template <Element element>
using ElementType = typename ElementTypeOf<element>::Type;

template <class T>
inline constexpr Family kFamily = std::is_integral_v<T> ? Family::integer : Family::floating;
template <class T>
inline constexpr Family kFamily<Complex<T>> = Family::complex;
template <class V, class I>
inline constexpr Family kFamily<Located<V, I>> = Family::located;

// A constant, which device code may use where it may not call.
template <Reduction reduction, class T>
inline constexpr bool kApplies = applies(reduction, kFamily<T>);

// How an element is moved: a struct with gaps as words, so that the gaps go with it and results are the same in every byte.
template <class T>
struct StoredAs {
  using Type = T;
};
template <class V, class I>
struct StoredAs<Located<V, I>> {
  struct alignas(Located<V, I>) Type {
    std::uint32_t words[sizeof(Located<V, I>) / 4];
  };
};
template <class T>
using Stored = typename StoredAs<T>::Type;

// By value and by the compiler's own means: CUDA would take a copy by memcpy apart into bytes.
template <class To, class From>
IST_EVERYWHERE To same_bits(From from) {
  return __builtin_bit_cast(To, from);
}

// Without branches, so that loops of them become vectors; on CUDA it is one instruction.
IST_EVERYWHERE float widen(Half half) {
#ifdef __CUDA_ARCH__
  return __half2float(same_bits<__half>(half));
#else
  const std::uint32_t magnitude = half.bits & 0x7fffU;
  const std::uint32_t normal = (magnitude << 13U) + (112U << 23U);
  const std::uint32_t special = normal + (112U << 23U);  // infinite, or no number
  const auto small = same_bits<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24F);
  const std::uint32_t bits = magnitude < 0x400U ? small : magnitude >= 0x7c00U ? special : normal;
  return same_bits<float>(bits | ((half.bits & 0x8000U) << 16U));
#endif
}

IST_EVERYWHERE Half narrow(float value, Half) {
#ifdef __CUDA_ARCH__
  return same_bits<Half>(__float2half_rn(value));
#else
  const auto bits = same_bits<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  // Half to even: what is cut off counts as more than half where the last bit kept is odd. Overflow carries into infinity.
  const std::uint32_t normal = (magnitude + 0xfffU + ((magnitude >> 13U) & 1U) - (112U << 23U)) >> 13U;
  // One half has its last place where the smallest subnormal has it, so the addition rounds.
  const std::uint32_t small = same_bits<std::uint32_t>(same_bits<float>(magnitude) + 0.5F) - 0x3f000000U;
  const std::uint32_t nan = 0x7e00U | ((magnitude >> 13U) & 0x3ffU);
  std::uint32_t half = magnitude < 0x38800000U ? small : normal;
  half = magnitude >= 0x47800000U ? 0x7c00U : half;
  half = magnitude > 0x7f800000U ? nan : half;
  return {static_cast<std::uint16_t>(half | ((bits >> 16U) & 0x8000U))};
#endif
}

IST_EVERYWHERE float widen(Bfloat16 value) { return same_bits<float>(static_cast<std::uint32_t>(value.bits) << 16U); }

IST_EVERYWHERE Bfloat16 narrow(float value, Bfloat16) {
  const auto bits = same_bits<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U;
  const std::uint32_t nan = (bits >> 16U) | 0x40U;
  return {static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? nan : rounded)};
}

template <class T>
IST_EVERYWHERE T value_of(T number) {
  return number;
}
IST_EVERYWHERE float value_of(Half number) { return widen(number); }
IST_EVERYWHERE float value_of(Bfloat16 number) { return widen(number); }

// Of minimum, maximum and their places: is it `with`?
template <Reduction reduction, class T>
IST_EVERYWHERE bool takes(const T& with, const T& into) {
  if constexpr (kFamily<T> == Family::located) {
    const bool better = reduction == Reduction::minloc ? with.value < into.value : with.value > into.value;
    return better || (with.value == into.value && with.index < into.index);
  } else {
    return reduction == Reduction::minimum ? value_of(with) < value_of(into) : value_of(with) > value_of(into);
  }
}

template <Reduction reduction, class T>
IST_EVERYWHERE T combine_integers(T with, T into) {
  // At least as wide as int, since what is narrower would become int and might overflow.
  using Bits = std::make_unsigned_t<T>;
  using Wide = std::common_type_t<unsigned, Bits>;
  const Wide a = static_cast<Bits>(with);
  const Wide b = static_cast<Bits>(into);
  if constexpr (reduction == Reduction::sum) return static_cast<T>(a + b);
  if constexpr (reduction == Reduction::product) return static_cast<T>(a * b);
  if constexpr (reduction == Reduction::logical_and) return static_cast<T>(with != 0 && into != 0);
  if constexpr (reduction == Reduction::logical_or) return static_cast<T>((a | b) != 0);
  if constexpr (reduction == Reduction::logical_xor) return static_cast<T>((with != 0) != (into != 0));
  if constexpr (reduction == Reduction::bitwise_and) return static_cast<T>(a & b);
  if constexpr (reduction == Reduction::bitwise_or) return static_cast<T>(a | b);
  if constexpr (reduction == Reduction::bitwise_xor) return static_cast<T>(a ^ b);
}

template <Reduction reduction, class T>
IST_EVERYWHERE T combine_numbers(T with, T into) {
  if constexpr (sizeof(T) == 2) {
    // A float has more than twice the digits, so rounding twice gives what rounding once would.
    return narrow(combine_numbers<reduction, float>(widen(with), widen(into)), T{});
  } else {
    return reduction == Reduction::sum ? with + into : with * into;
  }
}

template <Reduction reduction, class T>
IST_EVERYWHERE Complex<T> combine_complex(Complex<T> with, Complex<T> into) {
  if constexpr (reduction == Reduction::sum) return {with.real + into.real, with.imaginary + into.imaginary};
  return {with.real * into.real - with.imaginary * into.imaginary, with.real * into.imaginary + with.imaginary * into.real};
}

// with (op) into
template <Reduction reduction, class T>
IST_EVERYWHERE Stored<T> combined(const Stored<T>& with, const Stored<T>& into) {
  static_assert(kApplies<reduction, T>);
  constexpr bool selects = reduction == Reduction::minimum || reduction == Reduction::maximum ||
                           reduction == Reduction::minloc || reduction == Reduction::maxloc;
  if constexpr (selects) {
    return takes<reduction>(same_bits<T>(with), same_bits<T>(into)) ? with : into;
  } else if constexpr (kFamily<T> == Family::integer) {
    return combine_integers<reduction>(with, into);
  } else if constexpr (kFamily<T> == Family::complex) {
    return combine_complex<reduction>(with, into);
  } else {
    return combine_numbers<reduction>(with, into);
  }
}

}  // namespace ist
