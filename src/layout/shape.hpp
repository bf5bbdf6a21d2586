// A committed layout: its form, and those of so many of it one after the other, found once.
//
// Who calls this : face/.
// Threads        : any; one short lock around what was found.
// Ownership      : shapes are shared, and stay while anybody has them.
// Errors         : as layout.hpp; IST_ERR_ARGUMENT for a negative count.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "layout/layout.hpp"

namespace ist {

// Of `count` times a layout.
struct Shape {
  Form form;
  Bounds reach;  // of its bytes
  Overlap overlap = Overlap::none;
};
using SharedShape = std::shared_ptr<const Shape>;
inline SharedForm form_of(const SharedShape& shape) { return {shape, &shape->form}; }

class Shapes {
 public:
  explicit Shapes(SharedLayout layout) : layout_(std::move(layout)) {}
  // Finding out takes time where the layout is no regular one, and its result is kept for the counts that were asked for last.
  Result<SharedShape> of(std::int64_t count);

 private:
  struct Known {
    std::int64_t count;
    SharedShape shape;
  };
  const SharedLayout layout_;
  std::mutex mutex_;
  std::vector<Known> known_;  // the one asked for last is last
};

}  // namespace ist
