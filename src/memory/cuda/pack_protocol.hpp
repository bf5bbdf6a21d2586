// What kernels that pack do, thread by thread: units of up to 16 bytes, of which the packed side's are neighbours.
//
// Who calls this : cuda_pack_kernels.cuh; cuda_packing.cpp, which fills the work in; tests, with a crew of one thread.
// Threads        : each takes four units at once, so that four loads are on their way, and then those that are four times all threads on.
// Ownership      : none.
// Errors         : none.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "memory/cuda/channel_memory.hpp"

namespace ist::packing {

// Division by a number that is known before: right for all below 2^31.
struct Divisor {
  std::uint32_t by = 1;
  std::uint32_t multiplier = 1;
  std::uint32_t shift = 0;
};
inline Divisor divisor(std::uint64_t by) {
  const auto shift = static_cast<std::uint32_t>(std::bit_width(by - 1));
  const std::uint64_t multiplier = ((std::uint64_t{1} << 32) * ((std::uint64_t{1} << shift) - by)) / by + 1;
  return {static_cast<std::uint32_t>(by), static_cast<std::uint32_t>(multiplier), shift};
}
inline constexpr std::uint64_t kNear = std::uint64_t{1} << 31;

struct Work {
  std::byte* memory = nullptr;
  std::byte* packed = nullptr;
  std::uint64_t room = 0;   // bytes of the memory
  std::uint64_t bytes = 0;  // of the packed side
  std::int64_t origin = 0;  // in the memory: of the first block; of what lists are counted from
  std::uint64_t first = 0;  // unit of the stream that is the packed side's first
  std::uint64_t units = 0;
  std::uint64_t block = 1;  // units; of a list: of each run, if all are as long
  std::uint64_t count[3] = {1, 1, 1};
  std::int64_t stride[4] = {0, 0, 0, 0};
  Divisor block_by;
  Divisor count_by[3];
  std::uint32_t dimensions = 0;
  bool near = false;                      // no unit is beyond kNear
  const std::int64_t* offsets = nullptr;  // of runs
  const std::int64_t* begins = nullptr;   // of runs, in the stream; null: all are as long
  std::uint64_t runs = 0;
  const std::uint64_t* came = nullptr;  // of a whole form that is unpacked: so many of its first bytes are there; null: all
};

struct alignas(16) Sixteen {
  std::uint64_t halves[2];
};

// value = value / by; what is left over is returned.
IST_KERNEL_CODE std::uint32_t take_off(std::uint32_t& value, std::uint64_t, const Divisor& known) {
  const std::uint32_t all = value;
  const auto high = static_cast<std::uint32_t>((std::uint64_t{all} * known.multiplier) >> 32);
  value = (high + all) >> known.shift;
  return all - value * known.by;
}
IST_KERNEL_CODE std::uint64_t take_off(std::uint64_t& value, std::uint64_t by, const Divisor&) {
  const std::uint64_t left = value % by;
  value /= by;
  return left;
}

// Of what came: whole units, and bytes of one more.
struct Units {
  std::uint64_t whole;
  std::uint32_t left;
};
template <class Word>
IST_KERNEL_CODE Units units_that_came(const std::uint64_t* came, std::uint64_t units) {
  if (came == nullptr) return {units, 0};
  const std::uint64_t bytes = *came;
  if (bytes / sizeof(Word) >= units) return {units, 0};
  return {bytes / sizeof(Word), static_cast<std::uint32_t>(bytes % sizeof(Word))};
}
IST_KERNEL_CODE void put_left(void* to, const void* from, std::uint32_t bytes) {
  for (std::uint32_t i = 0; i < bytes; ++i) static_cast<std::byte*>(to)[i] = static_cast<const std::byte*>(from)[i];
}

// Where in the memory a unit of the stream lies.
template <class Word, class Index>
IST_KERNEL_CODE std::int64_t strided_place(const Work& work, Index unit) {
  std::int64_t place = work.origin + static_cast<std::int64_t>(take_off(unit, work.block, work.block_by) * sizeof(Word));
  if (work.dimensions == 1) return place + static_cast<std::int64_t>(unit) * work.stride[0];
  for (std::uint32_t d = 0; d + 1 < work.dimensions; ++d)
    place += static_cast<std::int64_t>(take_off(unit, work.count[d], work.count_by[d])) * work.stride[d];
  return place + static_cast<std::int64_t>(unit) * work.stride[work.dimensions - 1];
}
template <class Word, class Index>
IST_KERNEL_CODE std::int64_t listed_place(const Work& work, Index unit) {
  if (work.begins == nullptr) {
    const auto within = static_cast<std::int64_t>(take_off(unit, work.block, work.block_by) * sizeof(Word));
    return work.origin + work.offsets[unit] + within;
  }
  // The last run that begins at the byte or before it.
  const std::uint64_t byte = unit * std::uint64_t{sizeof(Word)};
  std::uint64_t low = 0;
  std::uint64_t high = work.runs;
  while (high - low > 1) {
    const std::uint64_t middle = (low + high) / 2;
    (static_cast<std::uint64_t>(work.begins[middle]) <= byte ? low : high) = middle;
  }
  return work.origin + work.offsets[low] + static_cast<std::int64_t>(byte - static_cast<std::uint64_t>(work.begins[low]));
}

template <class Word, class Index, bool unpacks, bool listed, class Crew>
IST_KERNEL_CODE void move_units(const Crew& crew, const Work& work) {
  constexpr int kAtOnce = 4;
  const auto all = static_cast<Index>(crew.blocks) * crew.threads;
  const Units there = unpacks ? units_that_came<Word>(work.came, work.units) : Units{work.units, 0};
  const auto units = static_cast<Index>(there.whole);
  const auto first = static_cast<Index>(work.first);
  auto* const packed = reinterpret_cast<Word*>(work.packed);
  const auto place = [&](Index unit) {
    return reinterpret_cast<Word*>(
        work.memory + (listed ? listed_place<Word>(work, first + unit) : strided_place<Word>(work, first + unit)));
  };
  Index i = static_cast<Index>(crew.block) * crew.threads + crew.thread;
  if (unpacks && i == 0 && there.left != 0) put_left(place(units), &packed[units], there.left);
  for (; i + (kAtOnce - 1) * all < units; i += kAtOnce * all) {
    Word values[kAtOnce];
    Word* places[kAtOnce];
    for (int k = 0; k < kAtOnce; ++k) places[k] = place(i + static_cast<Index>(k) * all);
    for (int k = 0; k < kAtOnce; ++k) values[k] = unpacks ? packed[i + static_cast<Index>(k) * all] : *places[k];
    for (int k = 0; k < kAtOnce; ++k) (unpacks ? *places[k] : packed[i + static_cast<Index>(k) * all]) = values[k];
  }
  for (; i < units; i += all) {
    Word* const other = place(i);
    if (unpacks)
      *other = packed[i];
    else
      packed[i] = *other;
  }
}

template <class Word, bool unpacks, bool listed, class Crew>
IST_KERNEL_CODE void move(const Crew& crew, const Work& work) {
  if (work.near)
    move_units<Word, std::uint32_t, unpacks, listed>(crew, work);
  else
    move_units<Word, std::uint64_t, unpacks, listed>(crew, work);
}

}  // namespace ist::packing
