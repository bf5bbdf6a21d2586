// What kernels that pack many boxes and lists at once do: each block of threads has a part of one, whose numbers come with the launch.
//
// Who calls this : cuda_pack_kernels.cuh; cuda_box_packing.cpp, which fills the boxes in; tests, with a crew of one thread.
// Threads        : each takes four units of its box at once, and then those that are four times all threads of the box on.
// Ownership      : none.
// Errors         : none.
#pragma once

#include "memory/cuda/pack_protocol.hpp"

namespace ist::packing {

// Where runs of a list lie: nowhere, since it is none; as Work has them in `places`; in `offsets`, all as long; or of different lengths.
enum class RunsAre : std::uint8_t { none, near, far, unequal };

// Of blocks; or of a list of runs, that comes again in up to two dimensions.
struct Box {
  std::byte* memory = nullptr;  // where its first unit lies; of a list: what its runs are counted from
  std::byte* packed = nullptr;
  std::int64_t stride[3] = {0, 0, 0};  // bytes
  std::uint32_t block = 1;             // units that lie side by side; of runs of different lengths: how many there are
  std::uint32_t count[2] = {
      1, 1};  // of such blocks, and of groups of them; of a list: its units, and how often it comes side by side
  std::uint32_t units = 0;  // below 2^31
  std::uint32_t end = 0;    // of the launch's blocks, the first one behind its own
  std::uint8_t width = 1;   // bytes of a unit: 1, 2, 4, 8 or 16
  std::uint8_t scale = 0;   // of near runs: they count 1 << scale bytes
  RunsAre list = RunsAre::none;
  const void* runs = nullptr;  // of unequal ones their beginnings in the stream lie behind their offsets
};

inline constexpr std::uint32_t kUnitsOfBoxes = 4;  // that a thread has on their way at once

// A kernel's arguments have 4 KiB.
inline constexpr std::uint32_t kMostBoxes = 56;
struct Boxes {
  std::uint32_t count = 0;
  std::uint32_t reserved = 0;
  const std::uint64_t* came = nullptr;  // of one box that is unpacked: so many of its first bytes are there; null: all
  Box box[kMostBoxes];
};
static_assert(sizeof(Box) == 72 && sizeof(Boxes) <= 4096);

IST_KERNEL_CODE std::int64_t place_in(const Box& box, std::uint32_t unit, std::uint32_t width) {
  auto place = static_cast<std::int64_t>(unit % box.block * std::uint64_t{width});
  unit /= box.block;
  place += static_cast<std::int64_t>(unit % box.count[0]) * box.stride[0];
  unit /= box.count[0];
  place += static_cast<std::int64_t>(unit % box.count[1]) * box.stride[1];
  return place + static_cast<std::int64_t>(unit / box.count[1]) * box.stride[2];
}

template <RunsAre list>
IST_KERNEL_CODE std::int64_t place_in_list(const Box& box, std::uint32_t unit, std::uint32_t width) {
  std::int64_t place = 0;
  if (unit >= box.count[0]) {
    const std::uint32_t again = unit / box.count[0];
    unit %= box.count[0];
    place = static_cast<std::int64_t>(again % box.count[1]) * box.stride[0] +
            static_cast<std::int64_t>(again / box.count[1]) * box.stride[1];
  }
  if constexpr (list == RunsAre::unequal) {
    const auto* const offsets = static_cast<const std::int64_t*>(box.runs);
    return place + searched_place({offsets, offsets + box.block, box.block}, unit * std::uint64_t{width});
  } else {
    place += static_cast<std::int64_t>(unit % box.block * std::uint64_t{width});
    unit /= box.block;
    if constexpr (list == RunsAre::far) return place + static_cast<const std::int64_t*>(box.runs)[unit];
    return place + std::int64_t{static_cast<const std::int32_t*>(box.runs)[unit]} * (std::int64_t{1} << box.scale);
  }
}

// As the threads `first` and every `all`-th one from there on.
template <class Word, bool unpacks, class Place>
IST_KERNEL_CODE void move_placed(const Box& box, const std::uint64_t* came, std::uint32_t first, std::uint32_t all,
                                 const Place& where) {
  constexpr std::uint32_t kAtOnce = kUnitsOfBoxes;
  const Units there = unpacks ? units_that_came<Word>(came, box.units) : Units{box.units, 0};
  const auto units = static_cast<std::uint32_t>(there.whole);
  auto* const packed = reinterpret_cast<Word*>(box.packed);
  const auto place = [&](std::uint32_t unit) { return reinterpret_cast<Word*>(box.memory + where(unit)); };
  std::uint32_t i = first;
  if (unpacks && first == 0 && there.left != 0) put_left(place(units), &packed[units], there.left);
  for (; i + (kAtOnce - 1) * std::uint64_t{all} < units; i += kAtOnce * all) {
    Word values[kAtOnce];
    for (std::uint32_t k = 0; k < kAtOnce; ++k) values[k] = unpacks ? packed[i + k * all] : *place(i + k * all);
    for (std::uint32_t k = 0; k < kAtOnce; ++k) (unpacks ? *place(i + k * all) : packed[i + k * all]) = values[k];
  }
  for (; i < units; i += all) (unpacks ? *place(i) : packed[i]) = unpacks ? packed[i] : *place(i);
}

template <class Word, bool unpacks>
IST_KERNEL_CODE void move_box(const Box& box, const std::uint64_t* came, std::uint32_t first, std::uint32_t all) {
  const auto placed = [&](const auto& where) { move_placed<Word, unpacks>(box, came, first, all, where); };
  constexpr auto kWidth = static_cast<std::uint32_t>(sizeof(Word));
  switch (box.list) {
    case RunsAre::none:
      return placed([&](std::uint32_t unit) { return place_in(box, unit, kWidth); });
    case RunsAre::near:
      return placed([&](std::uint32_t unit) { return place_in_list<RunsAre::near>(box, unit, kWidth); });
    case RunsAre::far:
      return placed([&](std::uint32_t unit) { return place_in_list<RunsAre::far>(box, unit, kWidth); });
    case RunsAre::unequal:
      return placed([&](std::uint32_t unit) { return place_in_list<RunsAre::unequal>(box, unit, kWidth); });
  }
}

template <bool unpacks, class Crew>
IST_KERNEL_CODE void move_boxes(const Crew& crew, const Boxes& boxes) {
  std::uint32_t low = 0;
  std::uint32_t high = boxes.count - 1;
  while (low < high) {  // the first box that ends behind this block
    const std::uint32_t middle = (low + high) / 2;
    if (crew.block < boxes.box[middle].end)
      high = middle;
    else
      low = middle + 1;
  }
  const Box& box = boxes.box[low];
  const std::uint32_t begin = low == 0 ? 0 : boxes.box[low - 1].end;
  const std::uint32_t first = (crew.block - begin) * crew.threads + crew.thread;
  const std::uint32_t all = (box.end - begin) * crew.threads;
  switch (box.width) {
    case 1:
      return move_box<std::uint8_t, unpacks>(box, boxes.came, first, all);
    case 2:
      return move_box<std::uint16_t, unpacks>(box, boxes.came, first, all);
    case 4:
      return move_box<std::uint32_t, unpacks>(box, boxes.came, first, all);
    case 8:
      return move_box<std::uint64_t, unpacks>(box, boxes.came, first, all);
    default:
      return move_box<Sixteen, unpacks>(box, boxes.came, first, all);
  }
}

}  // namespace ist::packing
