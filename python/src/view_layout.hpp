// A layout of one view, for as long as it takes to start an operation.
//
// Who calls this : comm.cpp, persistent.cpp, stream.cpp, queue.cpp, collective.cpp and heap_copies.cpp.
// Threads        : the caller holds the GIL; commit() may be called without it.
// Ownership      : owns its layout, which operations under way do not need any more.
// Errors         : raised, but of commit(), which gives the code.
#pragma once

#include <isthmus/layout.h>

#include <optional>
#include <string>
#include <utility>

#include "errors.hpp"
#include "region.hpp"

namespace isthmus_python {

class ViewLayout {
 public:
  // Of each of so many parts of a region, which lie along its first index; each begins where the one before it ends. Parts of a view are
  // whole numbers of that index.
  explicit ViewLayout(const Region& region, std::int64_t parts = 1) {
    if (!region.view) {
      take(ist_layout_contiguous, region.units() / parts, ist_layout_of(region.type));
      return;
    }
    Shape shape = *region.view;
    const std::int64_t all = shape.extents.empty() ? 1 : shape.extents.front();
    if (parts > 1 && (all % parts != 0 || shape.strides.front() < 0))
      throw nb::value_error(("an array with gaps is cut along its first index, which must go up, and of " +
                             std::to_string(all) + " rows " + std::to_string(parts) +
                             " ranks cannot have as many each; give one without gaps (numpy.ascontiguousarray)")
                                .c_str());
    if (parts > 1) shape.extents.front() = all / parts;
    take(ist_layout_contiguous, region.type == IST_BYTE ? region.item_size : std::int64_t{1}, ist_layout_of(region.type));
    for (std::size_t at = shape.extents.size(); at-- > 0;)
      nest(ist_layout_hvector, shape.extents[at], std::int64_t{1}, shape.strides[at]);
    if (parts > 1) resize(shape.strides.front() * shape.extents.front());
  }
  ViewLayout(const ViewLayout&) = delete;
  ViewLayout& operator=(const ViewLayout&) = delete;
  ~ViewLayout() {
    if (layout_ != IST_LAYOUT_NULL) ist_layout_free(&layout_);
  }
  ist_layout get() const { return layout_; }
  int commit() const { return ist_layout_commit(layout_); }

 private:
  template <class Make, class... Arguments>
  void take(Make make, Arguments... arguments) {
    check(make(arguments..., &layout_));
  }
  template <class Make, class... Arguments>
  void nest(Make make, Arguments... arguments) {
    ist_layout inner = std::exchange(layout_, IST_LAYOUT_NULL);
    const int code = make(arguments..., inner, &layout_);
    ist_layout_free(&inner);
    check(code);
  }
  void resize(std::int64_t extent) {
    ist_layout inner = std::exchange(layout_, IST_LAYOUT_NULL);
    const int code = ist_layout_resized(inner, 0, extent, &layout_);
    ist_layout_free(&inner);
    check(code);
  }
  ist_layout layout_ = IST_LAYOUT_NULL;
};

// A buffer of a call that takes views: what lies in a row goes by the plain call, and where there are gaps by the one for layouts, which a
// row can be a side of, too.
class LaidRegion {
 public:
  LaidRegion(nb::handle buffer, Access access, std::optional<std::int64_t> count)
      : region_(to_region(buffer, access, count, Views::taken)) {
    if (region_.view) layout_.emplace(region_);
  }
  const Region* operator->() const { return &region_; }
  bool gaps() const { return layout_.has_value(); }
  int commit() const { return gaps() ? layout_->commit() : IST_OK; }
  // So many of that layout.
  std::int64_t count() const { return gaps() ? 1 : region_.units(); }
  ist_layout layout() const { return gaps() ? layout_->get() : ist_layout_of(region_.type); }

 private:
  Region region_;
  std::optional<ViewLayout> layout_;
};

}  // namespace isthmus_python
