#include <algorithm>
#include <type_traits>

#include "layout/form.hpp"
#include "memory/host/handing_copy.hpp"

namespace ist {
namespace {

// Both ways are one piece of code: which of the two pointers is written to differs.
struct ToStream {
  using Base = const std::byte*;
  using Stream = std::byte*;
  static void move(Base base, Stream stream, std::size_t bytes) { copy_across(stream, base, bytes); }
};
struct FromStream {
  using Base = std::byte*;
  using Stream = const std::byte*;
  static void move(Base base, Stream stream, std::size_t bytes) { copy_across(base, stream, bytes); }
};

// A width that the compiler knows makes a copy one load and one store. 0: any; what is packed goes to another processor, or came from one.
template <class Way, std::size_t width>
void move_row(typename Way::Base base, std::int64_t stride, std::int64_t count, std::size_t bytes,
              typename Way::Stream stream) {
  const std::size_t length = width == 0 ? bytes : width;
  // No pointer is made beyond the last block: with a negative stride it would lie outside the buffer.
  for (std::int64_t i = 0; i < count; ++i)
    Way::move(base + i * stride, stream + static_cast<std::size_t>(i) * length, length);
}

// Calls with the length where that is one of those for which the compiler's own copy is quicker than a call, else with 0.
template <class Function>
void with_width(std::int64_t bytes, const Function& function) {
  switch (bytes) {
    case 4:
      return function(std::integral_constant<std::size_t, 4>{});
    case 8:
      return function(std::integral_constant<std::size_t, 8>{});
    case 16:
      return function(std::integral_constant<std::size_t, 16>{});
    case 32:
      return function(std::integral_constant<std::size_t, 32>{});
    case 64:
      return function(std::integral_constant<std::size_t, 64>{});
    default:
      return function(std::integral_constant<std::size_t, 0>{});
  }
}

template <class Way>
void move_any_row(typename Way::Base base, std::int64_t stride, std::int64_t count, std::int64_t block,
                  typename Way::Stream stream) {
  with_width(block,
             [&](auto width) { move_row<Way, width()>(base, stride, count, static_cast<std::size_t>(block), stream); });
}

// A block of a strided form, and how many there are from it on in the innermost dimension.
struct InRow {
  std::int64_t offset;
  std::int64_t left;
};
InRow in_row(const Form& form, const Dimension& row, std::int64_t index) {
  const std::int64_t at = index % row.count;
  std::int64_t offset = form.offset + at * row.stride;
  index /= row.count;
  for (std::size_t d = 1; d < form.dimensions; ++d) {
    offset += index % form.dimension[d].count * form.dimension[d].stride;
    index /= form.dimension[d].count;
  }
  return {offset, row.count - at};
}
Dimension row_of(const Form& form) { return form.dimensions > 0 ? form.dimension[0] : Dimension{1, 0}; }

template <class Way>
void move_strided(const Form& form, typename Way::Base base, std::int64_t from, std::int64_t to,
                  typename Way::Stream stream) {
  const Dimension row = row_of(form);
  while (from < to) {
    const std::int64_t within = from % form.block;
    const auto [offset, left] = in_row(form, row, from / form.block);
    std::int64_t bytes = 0;
    if (within != 0 || to - from < form.block) {
      bytes = std::min(form.block - within, to - from);
      Way::move(base + (offset + within), stream, static_cast<std::size_t>(bytes));
    } else {
      const std::int64_t count = std::min(left, (to - from) / form.block);
      bytes = count * form.block;
      move_any_row<Way>(base + offset, row.stride, count, form.block, stream);
    }
    from += bytes;
    stream += bytes;
  }
}

// Of the list once, all of which lies `further` behind where its runs say.
template <class Way>
void move_list(const Form& form, std::int64_t further, typename Way::Base base, std::int64_t from, std::int64_t to,
               typename Way::Stream stream) {
  std::size_t at = 0;
  if (from > 0)
    at = static_cast<std::size_t>(std::upper_bound(form.begins.begin(), form.begins.end(), from) - form.begins.begin()) - 1;
  for (; from < to; ++at) {
    const std::int64_t within = from - form.begins[at];
    const std::int64_t bytes = std::min(form.runs[at].bytes - within, to - from);
    with_width(bytes, [&, offset = further + form.runs[at].offset + within](auto width) {
      Way::move(base + offset, stream, width() == 0 ? static_cast<std::size_t>(bytes) : width());
    });
    from += bytes;
    stream += bytes;
  }
}

// One repetition of a list after the other, from some one on.
class Repetitions {
 public:
  Repetitions(const Form& form, std::int64_t index) : form_(form) {
    for (std::size_t d = 0; d < form.dimensions; ++d) {
      at_[d] = index % form.dimension[d].count;
      further_ += at_[d] * form.dimension[d].stride;
      index /= form.dimension[d].count;
    }
  }
  std::int64_t further() const { return further_; }
  void next() {
    for (std::size_t d = 0; d < form_.dimensions; ++d) {
      further_ += form_.dimension[d].stride;
      if (++at_[d] < form_.dimension[d].count) return;
      further_ -= form_.dimension[d].stride * form_.dimension[d].count;
      at_[d] = 0;
    }
  }

 private:
  const Form& form_;
  std::array<std::int64_t, kMostDimensions> at_{};
  std::int64_t further_ = 0;
};

template <class Way>
void move_runs(const Form& form, typename Way::Base base, std::int64_t from, std::int64_t to, typename Way::Stream stream) {
  const std::int64_t each = form.list_bytes();
  Repetitions repetition(form, from / each);
  for (std::int64_t within = from % each, left = to - from; left > 0; repetition.next()) {
    const std::int64_t end = std::min(each, within + left);
    move_list<Way>(form, repetition.further(), base, within, end, stream);
    stream += end - within;
    left -= end - within;
    within = 0;
  }
}

template <class Way>
void move_form(const Form& form, typename Way::Base base, std::int64_t from, std::int64_t to, typename Way::Stream stream) {
  if (from >= to) return;
  if (form.strided())
    move_strided<Way>(form, base, from, to, stream);
  else
    move_runs<Way>(form, base, from, to, stream);
}

struct Row {
  std::int64_t stride = 0;  // bytes
  std::int64_t count = 0;
};

// Blocks of one length from row to row. 0: any length.
template <std::size_t width>
void move_blocks(std::byte* to, std::int64_t to_stride, const std::byte* from, const Row& row, std::size_t bytes) {
  const std::size_t length = width == 0 ? bytes : width;
  for (std::int64_t i = 0; i < row.count; ++i) copy_across(to + i * to_stride, from + i * row.stride, length);
}

void move_any_blocks(std::byte* to, std::int64_t to_stride, const std::byte* from, const Row& row, std::int64_t block) {
  with_width(block, [&](auto width) { move_blocks<width()>(to, to_stride, from, row, static_cast<std::size_t>(block)); });
}

void move_same_blocks(const Form& to, std::byte* to_base, const Form& from, const std::byte* from_base) {
  const Dimension to_row = row_of(to), from_row = row_of(from);
  for (std::int64_t index = 0, blocks = to.size / to.block; index < blocks;) {
    const InRow there = in_row(to, to_row, index), here = in_row(from, from_row, index);
    const Row row{from_row.stride, std::min(there.left, here.left)};
    move_any_blocks(to_base + there.offset, to_row.stride, from_base + here.offset, row, to.block);
    index += row.count;
  }
}

std::int64_t mean_run(const Form& form) {
  return form.strided() ? form.block : form.list_bytes() / static_cast<std::int64_t>(form.runs.size());
}

}  // namespace

void pack(const Form& form, const std::byte* base, std::int64_t from, std::int64_t to, std::byte* stream) {
  move_form<ToStream>(form, base, from, to, stream);
}

void unpack(const Form& form, std::byte* base, std::int64_t from, std::int64_t to, const std::byte* stream) {
  move_form<FromStream>(form, base, from, to, stream);
}

// Each of the longer runs is a piece of the packed stream of the other form.
void move(const Form& to, std::byte* to_base, const Form& from, const std::byte* from_base) {
  if (to.size == 0) return;
  if (to.strided() && from.strided() && to.block == from.block) return move_same_blocks(to, to_base, from, from_base);
  std::int64_t at = 0;
  if (mean_run(to) >= mean_run(from)) {
    each_run(to, [&](const Run& run) {
      pack(from, from_base, at, at + run.bytes, to_base + run.offset);
      at += run.bytes;
    });
  } else {
    each_run(from, [&](const Run& run) {
      unpack(to, to_base, at, at + run.bytes, from_base + run.offset);
      at += run.bytes;
    });
  }
}

}  // namespace ist
