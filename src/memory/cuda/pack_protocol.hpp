// What kernels that pack do, thread by thread: units of up to 16 bytes, of which the packed side's are neighbours.
//
// Who calls this : cuda_pack_kernels.cuh; cuda_packing.cpp, which fills the work in; tests, with a crew of one thread.
// Threads        : a block takes a tile of neighbouring units, each of its threads at_once() of them; of more tiles than blocks, in turn.
// Ownership      : none.
// Errors         : none.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

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
  std::int64_t stride[4] = {0, 0, 0, 0};  // the outermost dimension's is the last one, whose count nobody needs
  Divisor block_by;
  Divisor count_by[3];
  std::uint32_t dimensions = 1;           // of a list that comes once nobody asks
  std::uint32_t scale = 0;                // of `places`: they count 1 << scale bytes
  const std::int32_t* places = nullptr;   // of runs that are all as long and lie near enough; or
  const std::int64_t* offsets = nullptr;  // of runs, in bytes,
  const std::int64_t* begins = nullptr;   // and in the stream; null: all are as long
  std::uint64_t runs = 0;
  std::uint64_t list = 0;  // units of a list that comes again in the dimensions; 0: it comes once
  Divisor list_by;
  const std::uint64_t* came = nullptr;  // of a whole form that is unpacked: so many of its first bytes are there; null: all
};

// Whether 32 bits count whatever there is to count; there are kernels for that, and others for all else.
inline bool is_near(const Work& work) {
  bool near =
      work.first < kNear && work.units < kNear && work.first + work.units < kNear && work.block < kNear && work.list < kNear;
  for (const std::uint64_t count : work.count) near = near && count < kNear;
  return near && (work.runs == 0 || work.places != nullptr);
}

// Units that each thread has on their way at once. What all threads of a device ask for should be enough for its memory and lie close
// together, so few where units are wide.
IST_KERNEL_NUMBER std::uint32_t at_once(std::uint64_t width) { return width < 4 ? 4 : 2; }

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
  if (by == 1) return 0;
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

// Where in the memory a unit of the stream lies: of blocks in one dimension, in more, of runs.
template <class Word, class Index>
IST_KERNEL_CODE std::int64_t row_place(const Work& work, Index unit) {
  const auto within = static_cast<std::int64_t>(take_off(unit, work.block, work.block_by) * sizeof(Word));
  return work.origin + static_cast<std::int64_t>(unit) * work.stride[3] + within;
}
// What the dimensions add for one block, or one repetition of a list.
template <class Index>
IST_KERNEL_CODE std::int64_t dimensions_place(const Work& work, Index index) {
  std::int64_t place = 0;
  for (int d = 0; d < 3; ++d)
    place += static_cast<std::int64_t>(take_off(index, work.count[d], work.count_by[d])) * work.stride[d];
  return place + static_cast<std::int64_t>(index) * work.stride[3];
}
template <class Word, class Index>
IST_KERNEL_CODE std::int64_t strided_place(const Work& work, Index unit) {
  const auto within = static_cast<std::int64_t>(take_off(unit, work.block, work.block_by) * sizeof(Word));
  return work.origin + within + dimensions_place(work, unit);
}
template <class Word, class Index>
IST_KERNEL_CODE std::int64_t listed_place(const Work& work, Index unit) {
  const auto within = static_cast<std::int64_t>(take_off(unit, work.block, work.block_by) * sizeof(Word));
  return work.origin + std::int64_t{work.places[unit]} * (std::int64_t{1} << work.scale) + within;
}
// Of a list that comes again: in one dimension its number is all that there is to count.
template <class Word>
IST_KERNEL_CODE std::int64_t repeated_place(const Work& work, std::uint32_t unit) {
  const std::uint32_t within = take_off(unit, work.list, work.list_by);  // leaves the repetition's number in `unit`
  const std::int64_t further = work.dimensions <= 1 ? std::int64_t{unit} * work.stride[3] : dimensions_place(work, unit);
  return listed_place<Word>(work, within) + further;
}
// The last run that begins at the unit's byte or before it.
struct Searched {
  const std::int64_t* offsets;
  const std::int64_t* begins;
  std::uint64_t runs;
};
IST_KERNEL_CODE std::int64_t searched_place(const Searched& list, std::uint64_t byte) {
  std::uint64_t low = 0;
  std::uint64_t high = list.runs;
  while (high - low > 1) {
    const std::uint64_t middle = (low + high) / 2;
    (static_cast<std::uint64_t>(list.begins[middle]) <= byte ? low : high) = middle;
  }
  return list.offsets[low] + static_cast<std::int64_t>(byte - static_cast<std::uint64_t>(list.begins[low]));
}
// Of any list.
template <class Word>
IST_KERNEL_CODE std::int64_t far_place(const Work& work, std::uint64_t unit) {
  std::int64_t further = 0;
  if (work.list != 0) {
    further = dimensions_place(work, unit / work.list);
    unit %= work.list;
  }
  if (work.begins != nullptr)
    return work.origin + further + searched_place({work.offsets, work.begins, work.runs}, unit * sizeof(Word));
  if (work.places != nullptr) return further + listed_place<Word>(work, unit);
  const auto within = static_cast<std::int64_t>(take_off(unit, work.block, work.block_by) * sizeof(Word));
  return work.origin + further + work.offsets[unit] + within;
}

// Of near units, all blocks' tiles together are to be less than 2^31, as where there are not more blocks than tiles (blocks_for()).
template <class Word, class Index, std::uint32_t kAtOnce, class Crew, class From, class To>
IST_KERNEL_CODE void move_units(const Crew& crew, Index units, const From& from, const To& to) {
  const Index apart = crew.threads;
  const Index tile = kAtOnce * apart;
  for (Index begin = crew.block * tile; begin < units; begin += crew.blocks * tile) {
    const Index i = begin + crew.thread;
    if (begin + tile <= units) {
      const Word* sources[kAtOnce];
      Word* targets[kAtOnce];
      Word values[kAtOnce];
      for (std::uint32_t k = 0; k < kAtOnce; ++k) sources[k] = from(i + k * apart), targets[k] = to(i + k * apart);
      for (std::uint32_t k = 0; k < kAtOnce; ++k) values[k] = *sources[k];
      for (std::uint32_t k = 0; k < kAtOnce; ++k) *targets[k] = values[k];
    } else {
      for (Index unit = i; unit < units; unit += apart) *to(unit) = *from(unit);
    }
  }
}

// Between the memory, where `place` says, and the packed side.
template <class Word, class Index, bool unpacks, std::uint32_t kAtOnce, class Crew, class Place>
IST_KERNEL_CODE void move_packed(const Crew& crew, const Work& work, const Place& place) {
  const auto first = static_cast<Index>(work.first);
  const auto there = [&](Index unit) { return reinterpret_cast<Word*>(work.memory + place(first + unit)); };
  const auto here = [&](Index unit) { return reinterpret_cast<Word*>(work.packed) + unit; };
  if constexpr (unpacks) {
    const Units come = units_that_came<Word>(work.came, work.units);
    const auto units = static_cast<Index>(come.whole);
    if (come.left != 0 && crew.block == 0 && crew.thread == 0) put_left(there(units), here(units), come.left);
    move_units<Word, Index, kAtOnce>(crew, units, here, there);
  } else {
    move_units<Word, Index, kAtOnce>(crew, static_cast<Index>(work.units), there, here);
  }
}

template <class Word, bool unpacks, bool listed, bool far, class Crew>
IST_KERNEL_CODE void move(const Crew& crew, const Work& work) {
  constexpr std::uint32_t kAtOnce = at_once(sizeof(Word));
  using Index = std::conditional_t<far, std::uint64_t, std::uint32_t>;
  if constexpr (listed && far)
    move_packed<Word, Index, unpacks, kAtOnce>(crew, work, [&](Index unit) { return far_place<Word>(work, unit); });
  else if constexpr (listed) {
    if (work.list == 0)
      move_packed<Word, Index, unpacks, kAtOnce>(crew, work, [&](Index unit) { return listed_place<Word>(work, unit); });
    else
      move_packed<Word, Index, unpacks, kAtOnce>(crew, work, [&](Index unit) { return repeated_place<Word>(work, unit); });
  } else if (!far && work.dimensions <= 1)
    move_packed<Word, Index, unpacks, kAtOnce>(crew, work, [&](Index unit) { return row_place<Word>(work, unit); });
  else
    move_packed<Word, Index, unpacks, kAtOnce>(crew, work, [&](Index unit) { return strided_place<Word>(work, unit); });
}

// From blocks to blocks of as many bytes, all near, without a packed stream between. Its first bytes are a Work, as kernels that take one read it.
struct Relay {
  Work from;
  Work to;
};
static_assert(offsetof(Relay, from) == 0);
template <class Word, class Crew>
IST_KERNEL_CODE void relay(const Crew& crew, const Relay& work) {
  const auto place = [](const Work& side, std::uint32_t unit) {
    const std::uint32_t all = static_cast<std::uint32_t>(side.first) + unit;
    return reinterpret_cast<Word*>(side.memory + strided_place<Word>(side, all));
  };
  move_units<Word, std::uint32_t, at_once(sizeof(Word))>(
      crew, static_cast<std::uint32_t>(work.to.units), [&](std::uint32_t unit) { return place(work.from, unit); },
      [&](std::uint32_t unit) { return place(work.to, unit); });
}

// The same of any two forms: of lists, and of more units than 32 bits count.
template <class Word>
IST_KERNEL_CODE Word* any_place(const Work& side, std::uint64_t unit) {
  const std::uint64_t all = side.first + unit;
  return reinterpret_cast<Word*>(side.memory +
                                 (side.runs != 0 ? far_place<Word>(side, all) : strided_place<Word>(side, all)));
}
template <class Word, class Crew>
IST_KERNEL_CODE void relay_any(const Crew& crew, const Relay& work) {
  move_units<Word, std::uint64_t, at_once(sizeof(Word))>(
      crew, work.to.units, [&](std::uint64_t unit) { return any_place<Word>(work.from, unit); },
      [&](std::uint64_t unit) { return any_place<Word>(work.to, unit); });
}

}  // namespace ist::packing
