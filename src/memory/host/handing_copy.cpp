#include "memory/host/handing_copy.hpp"

#if defined(__x86_64__)
#include <emmintrin.h>
#include <x86intrin.h>
#endif

namespace ist {
namespace {

#if defined(__x86_64__)
constexpr std::uintptr_t kLine = 64;
constexpr std::size_t kQuarter = kLine / 4;

// What goes past the caches takes memory's time from others, and its reader waits for memory: it has to be twice as quick.
constexpr double price_of(CopyPace::Way way) { return way == CopyPace::Way::past ? 2 : 1; }

std::uint64_t ticks() { return __rdtsc(); }

struct Line {
  __m128i first, second, third, fourth;
};

Line load_line(const std::byte* from) {
  const auto quarter = [from](std::size_t n) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + n * kQuarter));
  };
  return {quarter(0), quarter(1), quarter(2), quarter(3)};
}

void store_past(std::byte* to, const Line& line) {
  auto* const quarter = reinterpret_cast<__m128i*>(to);
  _mm_stream_si128(quarter, line.first);
  _mm_stream_si128(quarter + 1, line.second);
  _mm_stream_si128(quarter + 2, line.third);
  _mm_stream_si128(quarter + 3, line.fourth);
}

void store_through(std::byte* to, const Line& line) {
  auto* const quarter = reinterpret_cast<__m128i*>(to);
  _mm_storeu_si128(quarter, line.first);
  _mm_storeu_si128(quarter + 1, line.second);
  _mm_storeu_si128(quarter + 2, line.third);
  _mm_storeu_si128(quarter + 3, line.fourth);
}

template <class Store>
void copy_lines(std::byte* to, const std::byte* from, std::size_t size, const Store& store) {
  const std::size_t lines = size / kLine * kLine;
  for (std::size_t at = 0; at < lines; at += kLine) store(to + at, load_line(from + at));
  if (lines < size) std::memcpy(to + lines, from + lines, size - lines);
}
#endif

}  // namespace

void copy_by_lines(std::byte* to, const std::byte* from, std::size_t size) {
#if defined(__x86_64__)
  copy_lines(to, from, size, store_through);
#else
  std::memcpy(to, from, size);
#endif
}

void HandingCopy::copy([[maybe_unused]] CopyPace::Way way, std::byte* to, const std::byte* from, std::size_t size) {
#if defined(__x86_64__)
  if (way == CopyPace::Way::past && reinterpret_cast<std::uintptr_t>(to) % kLine == 0) {
    copy_lines(to, from, size, store_past);
    // These stores keep no order with the release that shows the bytes; they do with this.
    _mm_sfence();
    return;
  }
#endif
  if (size != 0) copy_across(to, from, size);
}

void HandingCopy::copy_much(std::byte* to, const std::byte* from, std::size_t size) {
#if defined(__x86_64__)
  CopyPace& pace = paces_[size_of(size)];
  const CopyPace::Next next = pace.next();
  if (!next.timed) return copy(next.way, to, from, size);
  const std::uint64_t begun = ticks();
  copy(next.way, to, from, size);
  pace.took(next.way, price_of(next.way) * static_cast<double>(ticks() - begun) / static_cast<double>(size));
#else
  std::memcpy(to, from, size);
#endif
}

}  // namespace ist
