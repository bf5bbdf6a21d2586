// A field by a plain loop that knows of no ranks, and the comparison of what ranks have found with it.
//
// Who calls this : jacobi and pixels.
// Threads        : one.
// Ownership      : a Serial owns its field.
// Errors         : isthmus::Error, std::runtime_error where there is not so much memory.
#pragma once

#include "common/stencil.hpp"

namespace example {

class Serial {
 public:
  // `around`: the outermost rows are those of the other side.
  template <class Start>
  Serial(std::int64_t width, std::int64_t height, bool around, const Start& start) : Serial(width, height, around) {
    fill(field_, 0, start);
  }
  Serial(const Serial&) = delete;
  Serial& operator=(const Serial&) = delete;
  void run_to(int steps);
  int steps() const { return steps_; }
  // The squares of what the last step has changed, added up.
  double change() const;
  const Field& field() const { return field_; }

 private:
  Serial(std::int64_t width, std::int64_t height, bool around);
  std::array<std::vector<float>, 2> levels_;
  Field field_;
  bool around_;
  int steps_ = 0;
};

// Whether the ranks' rows, one part after the other, are those of the whole field, to the last bit. Collective; `serial`, at the step whose
// result is in `level`, is looked at on rank 0 alone, which says on standard error where the first cell differs.
bool same_bits(const isthmus::Comm& comm, const Field& cut, int level, const Serial* serial);
// The same of any field that has all rows.
bool same_bits(const isthmus::Comm& comm, const Field& cut, int level, const Field* whole);

// For the tests: another last bit of a cell, as a check has to notice.
void spoil(const Field& field, int level);

}  // namespace example
