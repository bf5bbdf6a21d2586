// Layouts made of others, with the arguments of MPI's calls in MPI's order.
//
// Who calls this : face/.
// Threads        : pure functions.
// Ownership      : what is made shares what it is made of.
// Errors         : IST_ERR_ARGUMENT names the argument, its index and its value; IST_ERR_OVERFLOW as layout.hpp says.
#pragma once

#include <span>

#include "layout/layout.hpp"

namespace ist {

using Numbers = std::span<const std::int64_t>;

// What displacements and strides are counted in.
enum class Unit : std::uint8_t { extents, bytes };

Result<SharedLayout> contiguous_layout(std::int64_t count, const SharedLayout& old);
Result<SharedLayout> vector_layout(std::int64_t count, std::int64_t length, std::int64_t stride, Unit unit,
                                   const SharedLayout& old);
Result<SharedLayout> indexed_layout(Numbers lengths, Numbers displacements, Unit unit, const SharedLayout& old);
Result<SharedLayout> indexed_block_layout(std::int64_t length, Numbers displacements, Unit unit, const SharedLayout& old);
Result<SharedLayout> struct_layout(Numbers lengths, Numbers displacements, std::span<const SharedLayout> olds);
enum class Order : std::uint8_t { c, fortran };
Result<SharedLayout> subarray_layout(Numbers sizes, Numbers subsizes, Numbers starts, Order order, const SharedLayout& old);
Result<SharedLayout> resized_layout(const SharedLayout& old, std::int64_t lower, std::int64_t extent);

}  // namespace ist
