#include "face/halo/halo_pattern.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "layout/constructors.hpp"

namespace ist::halo {
namespace {

std::int64_t alignment(const Shape& shape) { return shape.element & -shape.element; }

struct Directions {
  std::vector<int> out;
  std::vector<int> in;
};

std::map<int, Directions> directions_by_rank(const Grid& grid, int reach) {
  std::map<int, Directions> by_rank;
  const int all = directions(grid.dimensions);
  for (int number = 0; number < all; ++number) {
    const Direction step = direction(number, grid.dimensions);
    if (!in_reach(step, reach)) continue;
    if (const int rank = neighbour(grid, step); rank != IST_PROC_NULL) by_rank[rank].out.push_back(number);
  }
  // A neighbour sends towards this rank in the opposite direction, and its numbers count.
  for (int number = all - 1; number >= 0; --number) {
    const Direction step = direction(number, grid.dimensions);
    if (!in_reach(step, reach)) continue;
    if (const int rank = neighbour(grid, step); rank != IST_PROC_NULL) by_rank[rank].in.push_back(number);
  }
  return by_rank;
}

template <class BoxOf>
Status add_sections(std::vector<Section>& sections, const std::vector<int>& numbers, std::size_t field, const Shape& shape,
                    std::size_t dimensions, const BoxOf& box_of) {
  for (const int number : numbers) {
    auto layout = layout_of(shape, box_of(shape, direction(number, dimensions), dimensions), dimensions);
    if (!layout.ok()) return layout.status();
    if (*layout != nullptr) sections.push_back({field, std::move(*layout)});
  }
  return {};
}

Status check_list(const char* name, int neighbour, std::int64_t count, const std::int64_t* list) {
  const std::string place = std::string{name} + " of neighbour " + std::to_string(neighbour);
  if (count < 0) return {IST_ERR_ARGUMENT, place + " has a count of " + std::to_string(count)};
  if (count > 0 && list == nullptr) return {IST_ERR_ARGUMENT, place + " is null, with a count of " + std::to_string(count)};
  for (std::int64_t i = 0; i < count; ++i)
    if (list[i] < 0)
      return {IST_ERR_ARGUMENT, place + " has element " + std::to_string(list[i]) + " at " + std::to_string(i) +
                                    "; elements are numbered from 0"};
  return {};
}

Status check_lists(const ist_halo_lists& lists, int ranks) {
  if (lists.neighbours < 0) return {IST_ERR_ARGUMENT, "neighbours is " + std::to_string(lists.neighbours)};
  if (lists.neighbours == 0) return {};
  if (lists.ranks == nullptr || lists.send_counts == nullptr || lists.sends == nullptr || lists.receive_counts == nullptr ||
      lists.receives == nullptr)
    return {IST_ERR_ARGUMENT, "ranks, send_counts, sends, receive_counts or receives is null; give one for each neighbour"};
  std::vector<std::int64_t> written;
  for (int i = 0; i < lists.neighbours; ++i) {
    const int rank = lists.ranks[i];
    if (rank < 0 || rank >= ranks)
      return {IST_ERR_RANK, "neighbour " + std::to_string(i) + " is rank " + std::to_string(rank) +
                                "; the communicator has ranks 0 to " + std::to_string(ranks - 1)};
    if (std::find(lists.ranks, lists.ranks + i, rank) != lists.ranks + i)
      return {IST_ERR_ARGUMENT, "rank " + std::to_string(rank) + " is a neighbour twice; give it one list with all"};
    IST_TRY(check_list("sends", i, lists.send_counts[i], lists.sends[i]));
    IST_TRY(check_list("receives", i, lists.receive_counts[i], lists.receives[i]));
    written.insert(written.end(), lists.receives[i], lists.receives[i] + lists.receive_counts[i]);
  }
  std::sort(written.begin(), written.end());
  if (const auto twice = std::adjacent_find(written.begin(), written.end()); twice != written.end())
    return {IST_ERR_ARGUMENT, "element " + std::to_string(*twice) + " is received twice; it can come from one place alone"};
  return {};
}

Status add_list(std::vector<Section>& sections, std::size_t field, const Shape& shape, std::int64_t count,
                const std::int64_t* list) {
  if (count == 0) return {};
  auto byte = Layout::basic(IST_BYTE);
  if (!byte.ok()) return byte.status();
  auto element = contiguous_layout(shape.element, *byte);
  if (!element.ok()) return element.status();
  auto made = indexed_block_layout(1, {list, static_cast<std::size_t>(count)}, Unit::extents, *element);
  if (!made.ok()) return made.status();
  sections.push_back({field, std::move(*made)});
  return {};
}

}  // namespace

std::vector<std::size_t> order_in_messages(std::span<const Shape> shapes) {
  std::vector<std::size_t> order(shapes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t one, std::size_t other) {
    const auto first = alignment(shapes[one]), second = alignment(shapes[other]);
    return first != second ? first > second : one < other;
  });
  return order;
}

Result<Pattern> pattern_of(const Grid& grid, std::span<const Shape> shapes, int reach) {
  Pattern pattern;
  const auto order = order_in_messages(shapes);
  for (const auto& [rank, numbers] : directions_by_rank(grid, reach)) {
    Partner partner{rank, {}, {}};
    for (const std::size_t field : order) {
      IST_TRY(add_sections(partner.out, numbers.out, field, shapes[field], grid.dimensions, sent));
      IST_TRY(add_sections(partner.in, numbers.in, field, shapes[field], grid.dimensions, received));
    }
    if (!partner.out.empty() || !partner.in.empty()) pattern.push_back(std::move(partner));
  }
  return pattern;
}

Result<Pattern> pattern_of(const ist_halo_lists& lists, int ranks, std::span<const Shape> shapes) {
  IST_TRY(check_lists(lists, ranks));
  Pattern pattern;
  const auto order = order_in_messages(shapes);
  for (int i = 0; i < lists.neighbours; ++i) {
    Partner partner{lists.ranks[i], {}, {}};
    for (const std::size_t field : order) {
      IST_TRY(add_list(partner.out, field, shapes[field], lists.send_counts[i], lists.sends[i]));
      IST_TRY(add_list(partner.in, field, shapes[field], lists.receive_counts[i], lists.receives[i]));
    }
    if (!partner.out.empty() || !partner.in.empty()) pattern.push_back(std::move(partner));
  }
  std::sort(pattern.begin(), pattern.end(), [](const Partner& one, const Partner& other) { return one.rank < other.rank; });
  return pattern;
}

}  // namespace ist::halo
