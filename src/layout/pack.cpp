#include <algorithm>
#include <cstring>

#include "layout/form.hpp"

namespace ist {
namespace {

// Both ways are one piece of code: which of the two pointers is written to differs.
struct ToStream {
  using Base = const std::byte*;
  using Stream = std::byte*;
  static void move(Base base, Stream stream, std::size_t bytes) { std::memcpy(stream, base, bytes); }
};
struct FromStream {
  using Base = std::byte*;
  using Stream = const std::byte*;
  static void move(Base base, Stream stream, std::size_t bytes) { std::memcpy(base, stream, bytes); }
};

// A width that the compiler knows makes a memcpy one load and one store. 0: any.
template <class Way, std::size_t width>
void move_row(typename Way::Base base, std::int64_t stride, std::int64_t count, std::size_t bytes,
              typename Way::Stream stream) {
  const std::size_t length = width == 0 ? bytes : width;
  // No pointer is made beyond the last block: with a negative stride it would lie outside the buffer.
  for (std::int64_t i = 0; i < count; ++i)
    Way::move(base + i * stride, stream + static_cast<std::size_t>(i) * length, length);
}

template <class Way>
void move_any_row(typename Way::Base base, std::int64_t stride, std::int64_t count, std::int64_t block,
                  typename Way::Stream stream) {
  const auto bytes = static_cast<std::size_t>(block);
  switch (block) {
    case 4:
      return move_row<Way, 4>(base, stride, count, bytes, stream);
    case 8:
      return move_row<Way, 8>(base, stride, count, bytes, stream);
    case 16:
      return move_row<Way, 16>(base, stride, count, bytes, stream);
    default:
      return move_row<Way, 0>(base, stride, count, bytes, stream);
  }
}

template <class Way>
void move_strided(const Form& form, typename Way::Base base, std::int64_t from, std::int64_t to,
                  typename Way::Stream stream) {
  const Dimension row = form.dimensions > 0 ? form.dimension[0] : Dimension{1, 0};
  while (from < to) {
    std::int64_t index = from / form.block;
    const std::int64_t within = from % form.block;
    const std::int64_t in_row = index % row.count;
    std::int64_t offset = form.offset + in_row * row.stride;
    index /= row.count;
    for (std::size_t d = 1; d < form.dimensions; ++d) {
      offset += index % form.dimension[d].count * form.dimension[d].stride;
      index /= form.dimension[d].count;
    }
    std::int64_t bytes = 0;
    if (within != 0 || to - from < form.block) {
      bytes = std::min(form.block - within, to - from);
      Way::move(base + (offset + within), stream, static_cast<std::size_t>(bytes));
    } else {
      const std::int64_t count = std::min(row.count - in_row, (to - from) / form.block);
      bytes = count * form.block;
      move_any_row<Way>(base + offset, row.stride, count, form.block, stream);
    }
    from += bytes;
    stream += bytes;
  }
}

template <class Way>
void move_runs(const Form& form, typename Way::Base base, std::int64_t from, std::int64_t to, typename Way::Stream stream) {
  auto at =
      static_cast<std::size_t>(std::upper_bound(form.begins.begin(), form.begins.end(), from) - form.begins.begin()) - 1;
  for (; from < to; ++at) {
    const std::int64_t within = from - form.begins[at];
    const std::int64_t bytes = std::min(form.runs[at].bytes - within, to - from);
    Way::move(base + (form.runs[at].offset + within), stream, static_cast<std::size_t>(bytes));
    from += bytes;
    stream += bytes;
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

}  // namespace

void pack(const Form& form, const std::byte* base, std::int64_t from, std::int64_t to, std::byte* stream) {
  move_form<ToStream>(form, base, from, to, stream);
}

void unpack(const Form& form, std::byte* base, std::int64_t from, std::int64_t to, const std::byte* stream) {
  move_form<FromStream>(form, base, from, to, stream);
}

}  // namespace ist
