// The canonical form of a layout: which bytes, in which order, with nothing left of how they were described.
//
// Who calls this : layout.cpp, which makes it; whoever packs.
// Threads        : values; pure functions.
// Ownership      : a form owns its runs and nothing else.
// Errors         : none; what does not fit 64 bits was refused before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "memory/packing.hpp"

namespace ist {

enum class Overlap : std::uint8_t { none, some, unknown };

// The form's blocks again and again, so many bytes apart. Nothing: no strided form is known without looking at every run. No number in
// it may be beyond 64 bits.
std::optional<Form> repeated(const Form& form, std::int64_t count, std::int64_t stride);
// Of merged runs, in pack order.
Form form_of(std::vector<Run> runs);
// Adds to the last run where it can.
void append(std::vector<Run>& runs, Run next);
// Calls back with the offset of every block of a strided form, in pack order.
template <class Function>
void each_block(const Form& form, Function&& function) {
  std::array<std::int64_t, kMostDimensions> at{};
  if (form.size == 0) return;
  for (std::int64_t offset = form.offset;;) {
    function(offset);
    std::size_t d = 0;
    for (; d < form.dimensions; ++d) {
      offset += form.dimension[d].stride;
      if (++at[d] < form.dimension[d].count) break;
      offset -= form.dimension[d].stride * form.dimension[d].count;
      at[d] = 0;
    }
    if (d == form.dimensions) return;
  }
}
// Whether any byte is there twice. Unknown: more than a million blocks, whose strides do not show it.
Overlap overlap_of(const Form& form);
// "64 blocks of 8 bytes from 16: 8 every 32, 8 every 1024"
std::string described(const Form& form);

// Packed bytes from `from` up to `to` of one form; `stream` is where byte `from` goes to or comes from.
void pack(const Form& form, const std::byte* base, std::int64_t from, std::int64_t to, std::byte* stream);
void unpack(const Form& form, std::byte* base, std::int64_t from, std::int64_t to, const std::byte* stream);
// All bytes of one form to the places of another of the same size, run by run; no byte is in both.
void move(const Form& to, std::byte* to_base, const Form& from, const std::byte* from_base);

}  // namespace ist
