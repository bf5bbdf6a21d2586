#include "memory/host/handing_copy.hpp"

#include <unistd.h>

#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#include <emmintrin.h>
#include <x86intrin.h>
#endif

namespace ist {
namespace {

#if defined(__x86_64__)
constexpr std::uintptr_t kLineOfCache = 64;
constexpr std::size_t kQuarter = kLineOfCache / 4;

// What goes past the caches takes memory's time from others, and its reader waits for memory: it has to be twice as quick.
// Where strings are preferred, another way than that has to be quicker by their lead.
double price_of(CopyPace::Way way, CopyPace::Way first) {
  return (way == CopyPace::Way::past ? 2 : 1) * (first == CopyPace::Way::string && way != first ? kStringsLead : 1);
}

std::uint64_t ticks() { return __rdtsc(); }

// `to` begins a line.
void copy_past(std::byte* to, const std::byte* from, std::size_t size) {
  const std::size_t lines = size / kLineOfCache * kLineOfCache;
  for (std::size_t at = 0; at < lines; at += kLineOfCache) {
    const auto quarter = [line = from + at](std::size_t n) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(line + n * kQuarter));
    };
    const __m128i parts[] = {quarter(0), quarter(1), quarter(2), quarter(3)};
    for (std::size_t n = 0; n < 4; ++n) _mm_stream_si128(reinterpret_cast<__m128i*>(to + at) + n, parts[n]);
  }
  if (lines < size) std::memcpy(to + lines, from + lines, size - lines);
  // Guard FENCE of models/slots.pml. An ordinary store is seen after those before it, which is all that a release asks of this processor: it is no
  // instruction. Stores past the caches wait in buffers of their own, and may be seen after ordinary stores that follow them, so that whoever
  // reads the word that shows these bytes could find old ones. The fence ends when they are all seen; it belongs here, behind the last of them and before
  // any word that this thread stores next, whoever's that is. Nothing is needed before them: no store, of either sort, is seen before a load that
  // precedes it, and so none before the look at how far the reader has come. Nor at the reader, who loads in order. No sanitizer knows of
  // this; tests/stress/process_test.cpp tries it between processes.
  _mm_sfence();
}

// Of so many bytes at a time: a store of a whole line is one of those that a processor has under way, and so are four of a quarter. It begins with
// what is before a line of `to`.
template <std::size_t kWide>
[[gnu::always_inline]] inline void copy_wide(std::byte* to, const std::byte* from, std::size_t size) {
  using Wide [[gnu::vector_size(kWide), gnu::aligned(1), gnu::may_alias]] = char;
  std::size_t at = std::min((kLineOfCache - reinterpret_cast<std::uintptr_t>(to) % kLineOfCache) % kLineOfCache, size);
  if (at != 0) std::memcpy(to, from, at);
  for (; at + kLineOfCache <= size; at += kLineOfCache)
    for (std::size_t part = 0; part < kLineOfCache; part += kWide)
      *reinterpret_cast<Wide*>(to + at + part) = *reinterpret_cast<const Wide*>(from + at + part);
  if (at < size) std::memcpy(to + at, from + at, size - at);
}
[[gnu::target("avx512f")]] void copy_whole(std::byte* to, const std::byte* from, std::size_t size) {
  copy_wide<kLineOfCache>(to, from, size);
}
[[gnu::target("avx")]] void copy_halves(std::byte* to, const std::byte* from, std::size_t size) {
  copy_wide<kLineOfCache / 2>(to, from, size);
}
void copy_quarters(std::byte* to, const std::byte* from, std::size_t size) { copy_wide<kQuarter>(to, from, size); }

using Copy = void(std::byte* to, const std::byte* from, std::size_t size);
Copy* widest() {
  if (__builtin_cpu_supports("avx512f")) return copy_whole;
  return __builtin_cpu_supports("avx") ? copy_halves : copy_quarters;
}
#endif

std::size_t end_of_lines() noexcept {
  constexpr std::size_t kElsewhere = 8192;
#if defined(__x86_64__)
  constexpr long kSecondCache = 1 << 20;  // where it is not known
  __builtin_cpu_init();                   // may be asked before the constructor that does it
  const long second_cache = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (__builtin_cpu_is("amd")) return static_cast<std::size_t>(second_cache > 0 ? second_cache : kSecondCache);
#endif
  return kElsewhere;
}

}  // namespace

const std::size_t kEndOfLines = end_of_lines();

void copy_by_lines(std::byte* to, const std::byte* from, std::size_t size) {
#if defined(__x86_64__)
  static Copy* const copy = widest();
  copy(to, from, size);
#else
  std::memcpy(to, from, size);
#endif
}

// The stores of one such instruction may be seen in any order, but before whatever this thread stores next, such as the word that shows these bytes: needs
// no fence (Intel's manual, volume 3, on fast strings: a word of its own, written behind them; AMD's, volume 2, on ordinary stores).
// Its loads are ordered as others are: behind the one of the word that showed the bytes, before the store that gives their place back.
void copy_by_string(std::byte* to, const std::byte* from, std::size_t size) {
#if defined(__x86_64__)
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
#else
  std::memcpy(to, from, size);
#endif
}

bool prefers_strings() {
#if defined(__x86_64__)
  static const bool prefers = [] {
    constexpr unsigned kFeatures = 7;
    constexpr unsigned kFastShortStrings = 1U << 4U;  // of EDX
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    return __get_cpuid_count(kFeatures, 0, &a, &b, &c, &d) != 0 && (d & kFastShortStrings) != 0;
  }();
  return prefers;
#else
  return false;
#endif
}

bool TakingCopy::copy(std::byte* to, const std::byte* from, std::size_t size) {
#if defined(__x86_64__)
  const bool again = places_.use(to, Bytes{size});
  RunPace<Way>& pace = again ? again_ : elsewhere_;
  if (std::exchange(was_again_, again) != again) pace.interrupted();
  if (forced_.value_or(pace.way()) == Way::string)
    copy_by_string(to, from, size);
  else
    copy_across(to, from, size);
  pace.did(size, ticks);
  return again;
#else
  std::memcpy(to, from, size);
  return false;
#endif
}

void HandingCopy::copy([[maybe_unused]] CopyPace::Way way, std::byte* to, const std::byte* from, std::size_t size) {
#if defined(__x86_64__)
  if (way == CopyPace::Way::past && reinterpret_cast<std::uintptr_t>(to) % kLineOfCache == 0)
    return copy_past(to, from, size);
  if (way == CopyPace::Way::string) return copy_by_string(to, from, size);
#endif
  if (size != 0) copy_across(to, from, size);
}

std::array<CopyPace, HandingCopy::kSizes> HandingCopy::first_paces() {
  std::array<CopyPace, kSizes> paces;
  for (std::size_t i = 0; i < kSizes; ++i) paces[i] = CopyPace{first_way(kLeast << i)};
  return paces;
}

CopyPace::Way HandingCopy::first_way(std::size_t size) {
  return size >= kLeastByStrings && prefers_strings() ? HandingWay::string : HandingWay::through;
}

void HandingCopy::copy_much(std::byte* to, const std::byte* from, std::size_t size) {
  if (forced_) return copy(*forced_, to, from, size);
#if defined(__x86_64__)
  CopyPace& pace = paces_[size_of(size)];
  const CopyPace::Next next = pace.next();
  if (!next.timed) return copy(next.way, to, from, size);
  const std::uint64_t begun = ticks();
  copy(next.way, to, from, size);
  pace.took(next.way,
            price_of(next.way, first_way(size)) * static_cast<double>(ticks() - begun) / static_cast<double>(size));
#else
  std::memcpy(to, from, size);
#endif
}

}  // namespace ist
