// Reductions: which operation applies to which type, and their arithmetic on the processor.
//
// Who calls this : collective/, and the kinds, whose arithmetic must give the same bits (memory/memory_kind.hpp).
// Threads        : pure functions; combine_on_host from any thread on memory that nobody else writes.
// Ownership      : none.
// Errors         : IST_ERR_ARGUMENT, in words; combine_on_host() has none, and is called with what is applicable.
#pragma once

#include <isthmus/isthmus.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.hpp"
#include "memory/element.hpp"
#include "memory/piece.hpp"

namespace ist {

enum class Reduction : std::uint8_t {
  sum = 1,
  product,
  minimum,
  maximum,
  minloc,
  maxloc,
  logical_and,
  logical_or,
  logical_xor,
  bitwise_and,
  bitwise_or,
  bitwise_xor
};
inline constexpr std::size_t kReductions = 12;

// "sum"
std::string_view name_of(Reduction reduction);

// MPI's rules. char counts as an integer of 8 bits; of IST_BYTE there are bits alone.
constexpr bool applies(Reduction reduction, Family family) {
  switch (reduction) {
    case Reduction::sum:
    case Reduction::product:
      return family == Family::integer || family == Family::floating || family == Family::complex;
    case Reduction::minimum:
    case Reduction::maximum:
      return family == Family::integer || family == Family::floating;
    case Reduction::minloc:
    case Reduction::maxloc:
      return family == Family::located;
    case Reduction::logical_and:
    case Reduction::logical_or:
    case Reduction::logical_xor:
      return family == Family::integer;
    case Reduction::bitwise_and:
    case Reduction::bitwise_or:
    case Reduction::bitwise_xor:
      return family == Family::integer || family == Family::bytes;
  }
  return false;
}

// Why that operation does not apply to that type, naming both and what would; ok if it does.
Status applicable(Reduction reduction, ist_type type);

// into[i] = with[i] (op) into[i] for `count` elements that do not overlap, at any address. Integers wrap. A minimum or
// maximum is `with` where that is less or greater and `into` otherwise, so also where one of them is no number. Of equal
// values the place is the lower index. Results of 16 bits are rounded once, to the nearest even. A complex product is the
// textbook's, and nothing is fused: every kind gives the same bits, but for the bits inside of a NaN.
void combine_on_host(Reduction reduction, ist_type type, void* into, const void* with, std::int64_t count);

// The same into memory that overlaps neither: to[i] = left[i] (op) right[i].
void combine_on_host(Reduction reduction, ist_type type, void* to, const void* left, const void* right, std::int64_t count);

// Elements in two pieces that are to be combined: refuses what is not applicable, sizes that differ or are no whole number
// of elements, and, where `aligned`, offsets (for kinds with addresses: addresses) between elements.
struct Operands {
  Element element = Element::uint8;
  std::uint64_t count = 0;
};
Result<Operands> operands_of(Reduction reduction, ist_type type, const Piece& into, const Piece& with, bool aligned);

// "isthmus_sum_float32": what kinds call the kernel of an operation that is applicable.
std::string kernel_name(Reduction reduction, Element element);

}  // namespace ist
