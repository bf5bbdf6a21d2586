#include "layout/shape.hpp"

#include <algorithm>

#include "layout/constructors.hpp"

namespace ist {
namespace {

constexpr std::size_t kMostKnown = 8;

Result<SharedShape> find_shape(const SharedLayout& layout, std::int64_t count) {
  const auto all = count == 1 ? Result<SharedLayout>{layout} : contiguous_layout(count, layout);
  if (!all.ok()) return all.status();
  auto form = (*all)->form();
  if (!form.ok()) return form.status();
  const Overlap overlap = overlap_of(*form);
  return std::make_shared<const Shape>(Shape{std::move(*form), (*all)->true_bounds(), overlap});
}

}  // namespace

Result<SharedShape> Shapes::of(std::int64_t count) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(known_.begin(), known_.end(), [count](const Known& each) { return each.count == count; });
  if (found != known_.end()) {
    std::rotate(found, found + 1, known_.end());
    return known_.back().shape;
  }
  auto shape = find_shape(layout_, count);
  if (!shape.ok()) return shape;
  if (known_.size() == kMostKnown) known_.erase(known_.begin());
  known_.push_back({count, *shape});
  return shape;
}

}  // namespace ist
