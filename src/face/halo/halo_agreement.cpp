#include "face/halo/halo_agreement.hpp"

#include <isthmus/collective.h>

#include "face/message/handles.hpp"

namespace ist::halo {
namespace {

std::string rank_text(std::size_t rank) { return "rank " + std::to_string(rank); }

std::vector<std::int64_t> numbers_of(std::span<const Shape> shapes, std::size_t dimensions) {
  std::vector<std::int64_t> numbers;
  for (const Shape& shape : shapes) {
    numbers.push_back(shape.element);
    for (std::size_t d = 0; d < dimensions; ++d) {
      numbers.push_back(shape.ranges[d].minus);
      numbers.push_back(shape.ranges[d].plus);
      numbers.push_back(shape.order[d]);
    }
  }
  return numbers;
}

std::string name_of_number(std::size_t index, std::size_t dimensions) {
  const std::size_t each = 1 + 3 * dimensions, within = index % each;
  const std::string field = " of field " + std::to_string(index / each);
  if (within == 0) return "element" + field;
  constexpr const char* kNames[] = {"minus", "plus", "place in the layout map"};
  return kNames[(within - 1) % 3] + field + ", dimension " + std::to_string((within - 1) / 3);
}

std::int64_t bytes_of(const std::vector<Section>& sections, std::size_t field) {
  std::int64_t bytes = 0;
  for (const Section& section : sections)
    if (section.field == field) bytes += section.layout->size();
  return bytes;
}

std::string text_of(const Direction& direction, std::size_t dimensions) {
  std::string text = "(";
  for (std::size_t d = 0; d < dimensions; ++d) text += (d > 0 ? ", " : "") + std::to_string(direction[d]);
  return text + ")";
}

// Do cells of the field cross a border in that direction, either way?
bool crosses(const Shape& shape, const Direction& direction, std::size_t dimensions) {
  bool out = true, in = true;
  for (std::size_t d = 0; d < dimensions; ++d) {
    if (direction[d] == 0) continue;
    const ist_halo_range& range = shape.ranges[d];
    out = out && (direction[d] < 0 ? range.plus : range.minus) > 0;
    in = in && (direction[d] < 0 ? range.minus : range.plus) > 0;
  }
  return out || in;
}

std::int64_t inner(const ist_halo_range& range) { return range.end - range.begin + 1; }

// Whoever lies in the direction takes `wanted` cells of this rank's inner ones.
Status check_stretch(const Grid& grid, const ist_halo_range& range, std::size_t dimension, int step, std::size_t field) {
  const std::int64_t has = inner(range), wanted = step < 0 ? range.plus : range.minus;
  Direction towards{};
  towards[dimension] = step;
  const int rank = neighbour(grid, towards);
  if (rank == IST_PROC_NULL || wanted <= has) return {};
  return {IST_ERR_ARGUMENT, "the grid is thinner than the halo: rank " + std::to_string(grid.rank) + " has " +
                                std::to_string(has) + " inner cells in dimension " + std::to_string(dimension) +
                                " of field " + std::to_string(field) + " (begin " + std::to_string(range.begin) + ", end " +
                                std::to_string(range.end) + "), and rank " + std::to_string(rank) + " next to it wants " +
                                std::to_string(wanted) + " of them (" + (step < 0 ? "plus" : "minus") +
                                "); take fewer ranks in this dimension, or a narrower halo"};
}

}  // namespace

Status agree(ist_comm comm, const Status& own, std::span<const AgreedNumber> alike) {
  const auto found = look_up(comm);
  if (!found.ok()) return found.status();
  std::vector<Said> all;
  IST_TRY(say(*found->comm, "ist_halo", "", own, alike, all));
  if (const auto rank = first_unable(all))
    return {static_cast<Code>(all[*rank].code), rank_text(*rank) + ": " + all[*rank].text.data()};
  if (const auto other = first_difference(all, alike.size()))
    return {IST_ERR_ARGUMENT, std::string{alike[other->number].name} + " is " +
                                  std::to_string(all[0].numbers[other->number]) + " at rank 0, and " +
                                  std::to_string(all[other->rank].numbers[other->number]) + " at " + rank_text(other->rank) +
                                  "; all ranks give the same"};
  return {};
}

Status compare_shapes(ist_comm comm, std::span<const Shape> shapes, std::size_t dimensions) {
  const auto mine = numbers_of(shapes, dimensions);
  auto first = mine;
  const int code = ist_bcast(ist_host(first.data()), static_cast<std::int64_t>(first.size()), IST_INT64, 0, comm);
  if (code != IST_OK) return told(code);
  for (std::size_t i = 0; i < mine.size(); ++i)
    if (mine[i] != first[i])
      return {IST_ERR_ARGUMENT, name_of_number(i, dimensions) + " is " + std::to_string(mine[i]) + " here, and " +
                                    std::to_string(first[i]) + " at rank 0; all ranks give the same"};
  return {};
}

Status compare_boxes(const Grid& grid, std::span<const Shape> shapes, int reach) {
  const std::size_t each = shapes.size() * grid.dimensions;
  std::vector<std::int64_t> mine, all(each * static_cast<std::size_t>(grid.size));
  for (const Shape& shape : shapes)
    for (std::size_t d = 0; d < grid.dimensions; ++d) mine.push_back(inner(shape.ranges[d]));
  const auto count = static_cast<std::int64_t>(each);
  const int code = ist_allgather(ist_host(mine.data()), count, ist_host(all.data()), count, IST_INT64, grid.comm->get());
  if (code != IST_OK) return told(code);
  for (int number = 0; number < directions(grid.dimensions); ++number) {
    const Direction step = direction(number, grid.dimensions);
    const int rank = neighbour(grid, step);
    if (!in_reach(step, reach) || rank == IST_PROC_NULL) continue;
    for (std::size_t i = 0; i < each; ++i) {
      const std::size_t d = i % grid.dimensions, field = i / grid.dimensions;
      const std::int64_t theirs = all[static_cast<std::size_t>(rank) * each + i];
      if (step[d] != 0 || theirs == mine[i] || !crosses(shapes[field], step, grid.dimensions)) continue;
      return {IST_ERR_ARGUMENT, "rank " + std::to_string(grid.rank) + " has " + std::to_string(mine[i]) +
                                    " cells in dimension " + std::to_string(d) + " of field " + std::to_string(field) +
                                    ", and rank " + std::to_string(rank) + ", its neighbour in direction " +
                                    text_of(step, grid.dimensions) + ", has " + std::to_string(theirs) +
                                    "; what lies side by side is as long at both"};
    }
  }
  return {};
}

Status compare_amounts(ist_comm comm, const Pattern& pattern, std::size_t fields, int ranks) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(ranks) * fields), theirs(out.size()), in(out.size());
  for (const Partner& partner : pattern)
    for (std::size_t field = 0; field < fields; ++field) {
      out[static_cast<std::size_t>(partner.rank) * fields + field] = bytes_of(partner.out, field);
      in[static_cast<std::size_t>(partner.rank) * fields + field] = bytes_of(partner.in, field);
    }
  const auto each = static_cast<std::int64_t>(fields);
  const int code = ist_alltoall(ist_host(out.data()), ist_host(theirs.data()), each, IST_INT64, comm);
  if (code != IST_OK) return told(code);
  for (std::size_t i = 0; i < in.size(); ++i)
    if (in[i] != theirs[i])
      return {IST_ERR_ARGUMENT, rank_text(i / fields) + " would send " + std::to_string(theirs[i]) + " bytes of field " +
                                    std::to_string(i % fields) + ", and this rank has room for " + std::to_string(in[i]) +
                                    " of it; what lies side by side is as long at both"};
  return {};
}

Status common_groups(ist_comm comm, std::vector<int>& groups, int ranks) {
  const std::size_t fields = groups.size();
  std::vector<int> all(fields * static_cast<std::size_t>(ranks));
  const auto each = static_cast<std::int64_t>(fields);
  const int code = ist_allgather(ist_host(groups.data()), each, ist_host(all.data()), each, IST_INT, comm);
  if (code != IST_OK) return told(code);
  const auto together = [&](std::size_t one, std::size_t other) {
    for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r)
      if (all[r * fields + one] != all[r * fields + other]) return false;
    return true;
  };
  for (std::size_t f = 0; f < fields; ++f) {
    std::size_t first = 0;
    while (!together(first, f)) ++first;
    groups[f] = static_cast<int>(first);
  }
  return {};
}

Status check_thickness(const Grid& grid, std::span<const Shape> shapes) {
  for (std::size_t f = 0; f < shapes.size(); ++f)
    for (std::size_t d = 0; d < grid.dimensions; ++d)
      for (const int step : {-1, 1}) IST_TRY(check_stretch(grid, shapes[f].ranges[d], d, step, f));
  return {};
}

}  // namespace ist::halo
