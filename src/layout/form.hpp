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

inline constexpr std::int64_t kMostRuns = std::int64_t{1} << 27;

// The form again and again, so many bytes apart. Nothing: it is not known without looking at every run, or needs one dimension more than
// there are. No number in it may be beyond 64 bits.
std::optional<Form> repeated(Form form, std::int64_t count, std::int64_t stride);
// The innermost dimension written out in the list, so that there is room for another one; the form has one. Nothing: there would be too
// many runs.
std::optional<Form> unrolled(const Form& form);
// Of merged runs, in pack order.
Form form_of(std::vector<Run> runs);
// Adds to the last run where it can.
inline void append(std::vector<Run>& runs, Run next) {
  if (next.bytes == 0) return;
  if (!runs.empty() && runs.back().offset + runs.back().bytes == next.offset)
    runs.back().bytes += next.bytes;
  else
    runs.push_back(next);
}
// Calls back with the offset of every block of a strided form, in pack order; of a list, with what each repetition adds to its runs.
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
// With every run, in pack order.
template <class Function>
void each_run(const Form& form, Function&& function) {
  if (form.strided()) return each_block(form, [&](std::int64_t offset) { function(Run{offset, form.block}); });
  each_block(form, [&](std::int64_t offset) {
    for (const Run& run : form.runs) function(Run{offset + run.offset, run.bytes});
  });
}
// How many runs or blocks there are in all.
std::int64_t runs_of(const Form& form);
// Whether any byte is there twice. Unknown: more than a million blocks, whose strides do not show it.
Overlap overlap_of(const Form& form);
// "64 blocks of 8 bytes from 16: 8 every 32, 8 every 1024", "1120 bytes in 140 runs, a list of 20: 7 every 8000"
std::string described(const Form& form);

// Packed bytes from `from` up to `to` of one form; `stream` is where byte `from` goes to or comes from.
void pack(const Form& form, const std::byte* base, std::int64_t from, std::int64_t to, std::byte* stream);
void unpack(const Form& form, std::byte* base, std::int64_t from, std::int64_t to, const std::byte* stream);
// All bytes of one form to the places of another of the same size, run by run; no byte is in both.
void move(const Form& to, std::byte* to_base, const Form& from, const std::byte* from_base);

}  // namespace ist
