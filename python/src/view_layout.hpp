// A layout of one view, for as long as it takes to start an operation.
//
// Who calls this : comm.cpp and heap_copies.cpp.
// Threads        : the caller holds the GIL; commit() may be called without it.
// Ownership      : owns its layout, which operations under way do not need any more.
// Errors         : raised, but of commit(), which gives the code.
#pragma once

#include <isthmus/layout.h>

#include "errors.hpp"
#include "region.hpp"

namespace isthmus_python {

class ViewLayout {
 public:
  // Of a region with a view.
  explicit ViewLayout(const Region& region) {
    const auto types = region.type == IST_BYTE ? region.item_size : std::int64_t{1};
    check(ist_layout_contiguous(types, ist_layout_of(region.type), &layout_));
    for (std::size_t at = region.view->extents.size(); at-- > 0;) {
      ist_layout inner = layout_;
      const int code = ist_layout_hvector(region.view->extents[at], 1, region.view->strides[at], inner, &layout_);
      ist_layout_free(&inner);
      check(code);
    }
  }
  ViewLayout(const ViewLayout&) = delete;
  ViewLayout& operator=(const ViewLayout&) = delete;
  ~ViewLayout() {
    if (layout_ != IST_LAYOUT_NULL) ist_layout_free(&layout_);
  }
  ist_layout get() const { return layout_; }
  int commit() const { return ist_layout_commit(layout_); }

 private:
  ist_layout layout_ = IST_LAYOUT_NULL;
};

}  // namespace isthmus_python
