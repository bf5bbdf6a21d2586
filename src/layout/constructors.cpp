#include "layout/constructors.hpp"

#include <algorithm>

namespace ist {
namespace {

Status negative(const std::string& what, std::int64_t value) {
  return {IST_ERR_ARGUMENT, what + " is " + std::to_string(value) + "; it must not be negative"};
}

std::string at(const char* what, std::size_t i) { return std::string{what} + "[" + std::to_string(i) + "]"; }

Result<std::int64_t> in_bytes(std::int64_t number, Unit unit, const Layout& old, const char* what) {
  std::int64_t bytes = number;
  if (unit == Unit::extents && __builtin_mul_overflow(number, old.bounds().extent(), &bytes))
    return Status{IST_ERR_OVERFLOW, std::string{what} + " " + std::to_string(number) + " times an extent of " +
                                        std::to_string(old.bounds().extent()) + " bytes does not fit 64 bits"};
  return bytes;
}

bool is_near(std::int64_t place) { return place <= kFarthest && place >= -kFarthest; }

std::vector<Part> one_part(Part part) {
  std::vector<Part> parts;
  parts.push_back(std::move(part));
  return parts;
}

Part in_a_row(std::int64_t offset, std::int64_t count, const SharedLayout& old) {
  return {offset, count, old->bounds().extent(), old};
}

// Whether all lengths are the first one, which is not 0.
bool of_one_length(Numbers lengths) {
  return !lengths.empty() && lengths.front() > 0 &&
         std::all_of(lengths.begin(), lengths.end(), [&](std::int64_t length) { return length == lengths.front(); });
}

// Blocks of one length, at places that are counted in so many bytes.
Result<SharedLayout> listed_layout(std::int64_t length, Numbers displacements, Unit unit, const SharedLayout& old) {
  auto block = length == 1 ? Result<SharedLayout>{old} : Layout::of({in_a_row(0, length, old)});
  if (!block.ok()) return block;
  Part part{0, static_cast<std::int64_t>(displacements.size()), 0, *block};
  part.places.reserve(displacements.size());
  const std::int64_t extent = unit == Unit::extents ? old->bounds().extent() : 1;
  bool equidistant = true;
  for (const std::int64_t displacement : displacements) {
    std::int64_t place = 0;
    if (__builtin_mul_overflow(displacement, extent, &place))
      return in_bytes(displacement, unit, *old, "displacement").status();
    part.places.push_back(place);
    const std::size_t n = part.places.size();
    // No difference of two places that are too far, which is refused later, is of interest.
    equidistant = equidistant && is_near(place) && (n < 3 || place - part.places[n - 2] == part.places[1] - part.places[0]);
  }
  if (equidistant) {
    part.offset = part.places.front();
    if (part.count > 1) part.stride = part.places[1] - part.places[0];
    part.places.clear();
  }
  return Layout::of(one_part(std::move(part)));
}

}  // namespace

Result<SharedLayout> contiguous_layout(std::int64_t count, const SharedLayout& old) {
  if (count < 0) return negative("count", count);
  return Layout::of({in_a_row(0, count, old)});
}

Result<SharedLayout> vector_layout(std::int64_t count, std::int64_t length, std::int64_t stride, Unit unit,
                                   const SharedLayout& old) {
  if (count < 0) return negative("count", count);
  if (length < 0) return negative("block_length", length);
  const auto bytes = in_bytes(stride, unit, *old, "stride");
  if (!bytes.ok()) return bytes.status();
  const auto block = Layout::of({in_a_row(0, length, old)});
  if (!block.ok()) return block.status();
  return Layout::of({{0, count, *bytes, *block}});
}

Result<SharedLayout> indexed_layout(Numbers lengths, Numbers displacements, Unit unit, const SharedLayout& old) {
  if (of_one_length(lengths)) return listed_layout(lengths.front(), displacements, unit, old);
  std::vector<Part> parts;
  parts.reserve(lengths.size());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 0) return negative(at("block_lengths", i), lengths[i]);
    if (lengths[i] == 0) continue;
    const auto bytes = in_bytes(displacements[i], unit, *old, "displacement");
    if (!bytes.ok()) return bytes.status();
    parts.push_back(in_a_row(*bytes, lengths[i], old));
  }
  return Layout::of(std::move(parts));
}

Result<SharedLayout> indexed_block_layout(std::int64_t length, Numbers displacements, Unit unit, const SharedLayout& old) {
  if (length < 0) return negative("block_length", length);
  if (length == 0 || displacements.empty()) return Layout::of({});
  return listed_layout(length, displacements, unit, old);
}

Result<SharedLayout> struct_layout(Numbers lengths, Numbers displacements, std::span<const SharedLayout> olds) {
  const bool one_type =
      !olds.empty() && std::all_of(olds.begin(), olds.end(), [&](const SharedLayout& old) { return old == olds.front(); });
  if (one_type && of_one_length(lengths)) return listed_layout(lengths.front(), displacements, Unit::bytes, olds.front());
  std::vector<Part> parts;
  parts.reserve(lengths.size());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 0) return negative(at("block_lengths", i), lengths[i]);
    parts.push_back(in_a_row(displacements[i], lengths[i], olds[i]));
  }
  return Layout::of(std::move(parts));
}

Result<SharedLayout> subarray_layout(Numbers sizes, Numbers subsizes, Numbers starts, Order order, const SharedLayout& old) {
  if (sizes.empty()) return Status{IST_ERR_ARGUMENT, "dimensions is 0; a subarray has 1 or more"};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 1)
      return Status{IST_ERR_ARGUMENT, at("sizes", i) + " is " + std::to_string(sizes[i]) + "; it must be 1 or more"};
    if (subsizes[i] < 1 || subsizes[i] > sizes[i])
      return Status{IST_ERR_ARGUMENT, at("subsizes", i) + " is " + std::to_string(subsizes[i]) + "; it must be from 1 to " +
                                          at("sizes", i) + ", " + std::to_string(sizes[i])};
    if (starts[i] < 0 || starts[i] > sizes[i] - subsizes[i])
      return Status{IST_ERR_ARGUMENT, at("starts", i) + " is " + std::to_string(starts[i]) + "; with a part of " +
                                          std::to_string(subsizes[i]) + " of " + std::to_string(sizes[i]) +
                                          " it must be from 0 to " + std::to_string(sizes[i] - subsizes[i])};
  }
  SharedLayout made = old;
  std::int64_t stride = old->bounds().extent();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::size_t d = order == Order::fortran ? i : sizes.size() - 1 - i;
    std::int64_t whole = 0;
    std::int64_t offset = 0;
    // A start is less than the size, so that the offset fits where the whole does.
    if (__builtin_mul_overflow(stride, sizes[d], &whole) || __builtin_mul_overflow(stride, starts[d], &offset))
      return Status{IST_ERR_OVERFLOW, "an array with " + at("sizes", d) + " of " + std::to_string(sizes[d]) +
                                          " does not fit 64 bits: what it has so many of is " + std::to_string(stride) +
                                          " bytes long"};
    auto next = Layout::of({{offset, subsizes[d], stride, made}});
    if (!next.ok()) return next;
    made = *next;
    stride = whole;
  }
  const Bounds all{0, stride};
  return Layout::of({{0, 1, 0, made}}, &all);
}

Result<SharedLayout> resized_layout(const SharedLayout& old, std::int64_t lower, std::int64_t extent) {
  Bounds bounds{lower, 0};
  if (__builtin_add_overflow(lower, extent, &bounds.upper))
    return Status{IST_ERR_OVERFLOW, "lower bound " + std::to_string(lower) + " plus extent " + std::to_string(extent) +
                                        " does not fit 64 bits"};
  return Layout::of({{0, 1, 0, old}}, &bounds);
}

}  // namespace ist
