// Bytes of a form as rows: what a copy engine copies by one call, or by a few.
//
// Who calls this : kinds, which make such copies; protocol/ and face/, which count what they cost.
// Threads        : pure functions.
// Ownership      : values.
// Errors         : none; a form that is no rows says why.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/packing.hpp"

namespace ist {

// Where the rows of one side lie: bytes from its byte 0 to the first one, from row to row, and how many such steps from plane to plane.
struct RowSide {
  std::int64_t at = 0;
  std::int64_t pitch = 0;
  std::int64_t heights = 1;
  bool operator==(const RowSide&) const = default;
};

// `depth` planes of `height` rows of `width` bytes.
struct RowCopy {
  std::int64_t width = 0;
  std::int64_t height = 1;
  std::int64_t depth = 1;
  RowSide memory;  // of the form
  RowSide other;   // of the packed bytes, or of another form
  bool operator==(const RowCopy&) const = default;
};

// Why no copy engine takes it: it is no block repeated at one or two distances, of which the second is a whole number of the first. Null: one
// does. What is longer than an engine's longest pitch its kind knows.
const char* why_no_rows(const Form& form);
// How many rows those bytes lie in, also in part; of a form that is rows.
std::int64_t rows_between(const Form& form, std::int64_t from, std::int64_t to);
// Bytes `from` up to `to` of a form that is rows, with those bytes in one piece on the other side: five copies at most, since the first and
// the last row and plane may be parts of one.
std::vector<RowCopy> row_copies(const Form& form, std::int64_t from, std::int64_t to);
// The same with rows of the same length and number on the other side.
bool same_rows(const Form& one, const Form& other);
std::vector<RowCopy> row_copies(const Form& form, const Form& other, std::int64_t from, std::int64_t to);

}  // namespace ist
