#include "face/halo/halo_geometry.hpp"

#include <algorithm>
#include <span>

#include "layout/constructors.hpp"

namespace ist::halo {
namespace {

// Far below what 64 bits hold, so that sums and differences do, too.
constexpr std::int64_t kLongest = std::int64_t{1} << 40;

struct Stretch {
  std::int64_t first;
  std::int64_t count;
};

Stretch sent_along(const ist_halo_range& range, int step) {
  if (step < 0) return {range.begin, range.plus};
  if (step > 0) return {range.end - range.minus + 1, range.minus};
  return {range.begin, range.end - range.begin + 1};
}

Stretch received_along(const ist_halo_range& range, int step) {
  if (step < 0) return {range.begin - range.minus, range.minus};
  if (step > 0) return {range.end + 1, range.plus};
  return {range.begin, range.end - range.begin + 1};
}

template <class Along>
Box box_of(const Shape& shape, const Direction& direction, std::size_t dimensions, const Along& along) {
  Box box;
  for (std::size_t d = 0; d < dimensions; ++d) {
    const Stretch stretch = along(shape.ranges[d], direction[d]);
    box.first[d] = stretch.first;
    box.count[d] = stretch.count;
  }
  return box;
}

std::string described(const ist_halo_range& range) {
  return "minus " + std::to_string(range.minus) + ", plus " + std::to_string(range.plus) + ", begin " +
         std::to_string(range.begin) + ", end " + std::to_string(range.end) + ", total_length " +
         std::to_string(range.total_length);
}

Status check(const ist_halo_range& range, std::size_t dimension) {
  const char* wrong = nullptr;
  if (range.minus < 0 || range.plus < 0)
    wrong = "widths must not be negative";
  else if (range.total_length < 1 || range.total_length > kLongest)
    wrong = "total_length must be 1 to 2^40";
  else if (range.begin < range.minus)
    wrong = "begin must be at least minus, for there the halo lies";
  else if (range.end < range.begin - 1)
    wrong = "end is the last inner index, inclusive, and must be at least begin - 1";
  else if (range.end >= range.total_length || range.plus > range.total_length - range.end - 1)
    wrong = "plus must be at most total_length - end - 1, for there the halo lies";
  if (wrong == nullptr) return {};
  return {IST_ERR_ARGUMENT, "dimension " + std::to_string(dimension) + " has " + described(range) + "; " + wrong};
}

}  // namespace

bool same(const Shape& one, const Shape& other, std::size_t dimensions) {
  if (one.element != other.element || one.order != other.order) return false;
  for (std::size_t d = 0; d < dimensions; ++d) {
    const ist_halo_range &a = one.ranges[d], &b = other.ranges[d];
    if (a.minus != b.minus || a.plus != b.plus || a.begin != b.begin || a.end != b.end || a.total_length != b.total_length)
      return false;
  }
  return true;
}

int directions(std::size_t dimensions) {
  int all = 1;
  for (std::size_t d = 0; d < dimensions; ++d) all *= 3;
  return all;
}

Direction direction(int number, std::size_t dimensions) {
  Direction found{};
  for (std::size_t d = dimensions; d-- > 0; number /= 3) found[d] = number % 3 - 1;
  return found;
}

int steps(const Direction& direction) {
  return static_cast<int>(std::count_if(direction.begin(), direction.end(), [](int step) { return step != 0; }));
}

Box sent(const Shape& shape, const Direction& to, std::size_t dimensions) {
  return box_of(shape, to, dimensions, sent_along);
}
Box received(const Shape& shape, const Direction& from, std::size_t dimensions) {
  return box_of(shape, from, dimensions, received_along);
}

Status split(std::span<const ist_halo_range> ranges, ist_halo_box& interior, ist_halo_box* border, int& boxes) {
  interior = {};
  boxes = 0;
  for (std::size_t d = 0; d < ranges.size(); ++d) {
    const ist_halo_range& range = ranges[d];
    if (range.minus < 0 || range.plus < 0 || range.end < range.begin - 1)
      return {IST_ERR_ARGUMENT, "dimension " + std::to_string(d) + " has " + described(range) +
                                    "; widths must not be negative, and end at least begin - 1"};
    interior.first[d] = range.begin, interior.last[d] = range.end;
  }
  const auto add = [&](const ist_halo_box& box) {
    for (std::size_t d = 0; d < ranges.size(); ++d)
      if (box.last[d] < box.first[d]) return;
    border[boxes++] = box;
  };
  // What a dimension cuts off is whole in the later ones.
  for (std::size_t d = 0; d < ranges.size(); ++d) {
    ist_halo_box low = interior, high = interior;
    low.last[d] = std::min(interior.first[d] + ranges[d].minus - 1, interior.last[d]);
    interior.first[d] = low.last[d] + 1;
    high.first[d] = std::max(interior.last[d] - ranges[d].plus + 1, interior.first[d]);
    interior.last[d] = high.first[d] - 1;
    add(low);
    add(high);
  }
  return {};
}

Result<SharedLayout> layout_of(const Shape& shape, const Box& box, std::size_t dimensions) {
  if (box.cells() == 0) return SharedLayout{};
  auto byte = Layout::basic(IST_BYTE);
  if (!byte.ok()) return byte.status();
  const auto element = contiguous_layout(shape.element, *byte);
  if (!element.ok()) return element.status();
  PerDimension<std::int64_t> sizes{}, subsizes{}, starts{};  // by decreasing stride
  for (std::size_t d = 0; d < dimensions; ++d) {
    const auto place = static_cast<std::size_t>(shape.order[d]);
    sizes[place] = shape.ranges[d].total_length, subsizes[place] = box.count[d], starts[place] = box.first[d];
  }
  const auto used = [dimensions](const PerDimension<std::int64_t>& numbers) {
    return std::span{numbers.data(), dimensions};
  };
  return subarray_layout(used(sizes), used(subsizes), used(starts), Order::c, *element);
}

Result<PerDimension<int>> permutation(const char* name, const int* map, std::size_t dimensions) {
  PerDimension<int> made{0, 1, 2, 3};
  if (map == nullptr) return made;
  PerDimension<bool> seen{};
  for (std::size_t d = 0; d < dimensions; ++d) {
    const int place = map[d];
    const bool fits = place >= 0 && static_cast<std::size_t>(place) < dimensions;
    if (!fits || seen[static_cast<std::size_t>(place)])
      return Status{IST_ERR_ARGUMENT, std::string{name} + "[" + std::to_string(d) + "] is " + std::to_string(place) +
                                          (fits ? ", which stands there twice" : "") +
                                          "; the map is a permutation of 0 to " + std::to_string(dimensions - 1)};
    seen[static_cast<std::size_t>(place)] = true;
    made[d] = place;
  }
  return made;
}

Result<Shape> shape_of(const ist_halo_field& field, std::size_t dimensions) {
  if (field.element < 1 || field.element > kLongest)
    return Status{IST_ERR_ARGUMENT,
                  "element is " + std::to_string(field.element) + "; it is the bytes of one element, at least 1"};
  if (field.ranges == nullptr && dimensions > 0)
    return Status{IST_ERR_ARGUMENT,
                  "ranges is null; give one for each of the " + std::to_string(dimensions) + " dimensions"};
  Shape shape;
  shape.element = field.element;
  const auto order = permutation("layout_map", field.layout_map, dimensions);
  if (!order.ok()) return order.status();
  shape.order = *order;
  if (dimensions == 0 && field.ranges != nullptr) {
    shape.elements = field.ranges->total_length;
    if (shape.elements < 0)
      return Status{IST_ERR_ARGUMENT, "total_length is " + std::to_string(shape.elements) +
                                          "; where cells are listed it says how many elements there are"};
  }
  for (std::size_t d = 0; d < dimensions; ++d) {
    IST_TRY(check(field.ranges[d], d));
    shape.ranges[d] = field.ranges[d];
  }
  return shape;
}

}  // namespace ist::halo
