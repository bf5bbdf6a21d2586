#include "face/halo/halo_loops.hpp"

#include <type_traits>

#include "layout/form.hpp"
#include "memory/host/handing_copy.hpp"

namespace ist::halo {
namespace {

// Both ways are one piece of code: which of the two is written to differs.
template <bool unpacks>
using Base = std::conditional_t<unpacks, std::byte*, const std::byte*>;
template <bool unpacks>
using Packed = std::conditional_t<unpacks, const std::byte*, std::byte*>;

// A width that the compiler knows makes a copy one load and one store. 0: any.
template <bool unpacks, std::size_t width>
Packed<unpacks> move_row(Base<unpacks> base, const Dimension& row, std::size_t bytes, Packed<unpacks> packed) {
  const std::size_t length = width == 0 ? bytes : width;
  for (std::int64_t i = 0; i < row.count; ++i, packed += length) {
    if constexpr (unpacks)
      copy_across(base + i * row.stride, packed, length);
    else
      copy_across(packed, base + i * row.stride, length);
  }
  return packed;
}

template <bool unpacks, std::size_t width>
void move_box(const Form& form, Base<unpacks> base, Packed<unpacks> packed) {
  const auto dimension = [&](std::size_t d) { return d < form.dimensions ? form.dimension[d] : Dimension{1, 0}; };
  const Dimension row = dimension(0), plane = dimension(1), box = dimension(2), boxes = dimension(3);
  const auto bytes = static_cast<std::size_t>(form.block);
  base += form.offset;
  for (std::int64_t l = 0; l < boxes.count; ++l)
    for (std::int64_t k = 0; k < box.count; ++k)
      for (std::int64_t j = 0; j < plane.count; ++j)
        packed = move_row<unpacks, width>(base + (l * boxes.stride + k * box.stride + j * plane.stride), row, bytes, packed);
}

template <bool unpacks>
void move(const Form& form, Base<unpacks> base, Packed<unpacks> packed) {
  if (!form.strided()) {
    each_run(form, [&](const Run& run) {
      packed = move_row<unpacks, 0>(base + run.offset, {1, 0}, static_cast<std::size_t>(run.bytes), packed);
    });
    return;
  }
  if (form.size == 0) return;
  switch (form.block) {
    case 4:
      return move_box<unpacks, 4>(form, base, packed);
    case 8:
      return move_box<unpacks, 8>(form, base, packed);
    case 16:
      return move_box<unpacks, 16>(form, base, packed);
    case 24:
      return move_box<unpacks, 24>(form, base, packed);
    default:
      return move_box<unpacks, 0>(form, base, packed);
  }
}

}  // namespace

void pack_by_loops(const Form& form, const std::byte* base, std::byte* packed) { move<false>(form, base, packed); }
void unpack_by_loops(const Form& form, std::byte* base, const std::byte* packed) { move<true>(form, base, packed); }

}  // namespace ist::halo
