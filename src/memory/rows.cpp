#include "memory/rows.hpp"

#include <algorithm>

namespace ist {
namespace {

// Where the rows of a side are, from its byte 0 on.
struct Grid {
  std::int64_t at = 0, pitch = 0, heights = 1;
  RowSide side(std::int64_t plane, std::int64_t row, std::int64_t byte) const {
    return {at + (plane * heights + row) * pitch + byte, pitch, heights};
  }
};

Grid grid_of(const Form& form) {
  const Dimension& rows = form.dimension[0];
  const std::int64_t heights = form.dimensions == 2 ? form.dimension[1].stride / rows.stride : rows.count;
  return {form.offset, rows.stride, heights};
}

std::vector<RowCopy> copies_of(const Form& form, const Grid& other, std::int64_t from, std::int64_t to) {
  const Grid memory = grid_of(form);
  const std::int64_t width = form.block, height = form.dimension[0].count;
  std::vector<RowCopy> copies;
  for (std::int64_t at = from; at < to;) {
    const std::int64_t byte = at % width, row = at / width % height, plane = at / width / height, left = to - at;
    RowCopy copy{width, 1, 1, memory.side(plane, row, byte), other.side(plane, row, byte)};
    if (byte != 0 || left < width)
      copy.width = std::min(width - byte, left);
    else if (row != 0 || left < width * height)
      copy.height = std::min(height - row, left / width);
    else
      copy.height = height, copy.depth = left / (width * height);
    at += copy.width * copy.height * copy.depth;
    copies.push_back(copy);
  }
  return copies;
}

}  // namespace

const char* why_no_rows(const Form& form) {
  if (!form.strided()) return "the layout is a list of runs, and no rows of one length";
  if (form.dimensions == 0) return "the bytes lie in one piece";
  if (form.dimensions > 2) return "the layout has more than two strided dimensions";
  const Dimension& rows = form.dimension[0];
  if (rows.stride < form.block) return "the layout's rows do not follow each other upwards";
  if (form.dimensions == 1) return nullptr;
  const Dimension& planes = form.dimension[1];
  if (planes.stride < rows.count * rows.stride) return "the layout's planes do not follow each other upwards";
  if (planes.stride % rows.stride != 0) return "the layout's planes are no whole number of rows apart";
  return nullptr;
}

std::int64_t rows_between(const Form& form, std::int64_t from, std::int64_t to) {
  return from < to ? (to - 1) / form.block - from / form.block + 1 : 0;
}

std::vector<RowCopy> row_copies(const Form& form, std::int64_t from, std::int64_t to) {
  return copies_of(form, {-from, form.block, form.dimension[0].count}, from, to);
}

bool same_rows(const Form& one, const Form& other) {
  if (why_no_rows(one) != nullptr || why_no_rows(other) != nullptr) return false;
  if (one.block != other.block || one.dimensions != other.dimensions) return false;
  for (std::size_t d = 0; d < one.dimensions; ++d)
    if (one.dimension[d].count != other.dimension[d].count) return false;
  return true;
}

std::vector<RowCopy> row_copies(const Form& form, const Form& other, std::int64_t from, std::int64_t to) {
  return copies_of(form, grid_of(other), from, to);
}

}  // namespace ist
