// C calls that make layouts and tell of them.
#include <algorithm>
#include <functional>

#include "face/message/calls.hpp"
#include "face/message/errors.hpp"
#include "face/message/layouts.hpp"
#include "layout/constructors.hpp"

namespace ist {
namespace {

// A constructor's arguments in words: "count 8, stride 10".
class Words {
 public:
  explicit Words(const char* name) : text_(std::string{name} + "(") {}
  Words& add(const char* name, std::int64_t value) {
    text_ += (some_ ? ", " : "") + std::string{name} + " " + std::to_string(value);
    some_ = true;
    return *this;
  }
  std::string of(const NamedLayout& old) const { return text_ + ") of " + old.made_by; }
  std::string alone() const { return text_ + ")"; }

 private:
  std::string text_;
  bool some_ = false;
};

// What was made, in place of *layout; in_call() where it was not.
int hand_out_layout(const char* call, Result<SharedLayout> made, const std::function<std::string()>& made_by,
                    ist_layout* layout) {
  if (!made.ok()) return report(in_call(call, made.status()));
  *layout = add_layout({std::move(*made), made_by(), nullptr});
  return IST_OK;
}

// Nests of many levels would have texts without end.
std::string shortened(std::string text) {
  constexpr std::size_t kMost = 400;
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

using Make = std::function<Result<SharedLayout>(const SharedLayout&)>;

int make_of(const char* call, ist_layout old, ist_layout* layout, const Words& words, const Make& make) {
  if (layout == nullptr) return report(IST_ERR_ARGUMENT, std::string{call} + ": layout is null");
  *layout = IST_LAYOUT_NULL;
  const auto found = layout_of(old);
  if (!found.ok()) return report(in_call(call, {found.status().code(), "old: " + found.status().text()}));
  return hand_out_layout(
      call, make(found->layout), [&] { return shortened(words.of(*found)); }, layout);
}

Status check_list(const char* name, const void* list, std::int64_t count) {
  if (count < 0) return {IST_ERR_ARGUMENT, "count is " + std::to_string(count) + "; it must not be negative"};
  if (list == nullptr && count > 0)
    return {IST_ERR_ARGUMENT, std::string{name} + " is null, with a count of " + std::to_string(count)};
  return {};
}

Numbers numbers(const std::int64_t* list, std::int64_t count) { return {list, static_cast<std::size_t>(count)}; }

struct Lists {
  std::int64_t count;
  const std::int64_t* lengths;
  const std::int64_t* displacements;
};

int make_indexed(const char* call, const char* name, const Lists& lists, Unit unit, ist_layout old, ist_layout* layout) {
  return make_of(
      call, old, layout, Words{name}.add("count", lists.count), [&](const SharedLayout& of) -> Result<SharedLayout> {
        IST_TRY(check_list("block_lengths", lists.lengths, lists.count));
        IST_TRY(check_list("displacements", lists.displacements, lists.count));
        return indexed_layout(numbers(lists.lengths, lists.count), numbers(lists.displacements, lists.count), unit, of);
      });
}

int make_blocks(const char* call, const char* name, std::int64_t length, const Lists& lists, Unit unit, ist_layout old,
                ist_layout* layout) {
  return make_of(call, old, layout, Words{name}.add("count", lists.count).add("block_length", length),
                 [&](const SharedLayout& of) -> Result<SharedLayout> {
                   IST_TRY(check_list("displacements", lists.displacements, lists.count));
                   return indexed_block_layout(length, numbers(lists.displacements, lists.count), unit, of);
                 });
}

int make_struct(const char* call, const Lists& lists, const ist_layout* olds, ist_layout* layout) {
  if (layout == nullptr) return report(IST_ERR_ARGUMENT, std::string{call} + ": layout is null");
  *layout = IST_LAYOUT_NULL;
  for (const auto& [name, list] : {std::pair<const char*, const void*>{"block_lengths", lists.lengths},
                                   {"displacements", lists.displacements},
                                   {"olds", olds}})
    if (const Status wrong = check_list(name, list, lists.count); !wrong.ok()) return report(in_call(call, wrong));
  std::vector<SharedLayout> members;
  std::string text;
  for (std::int64_t i = 0; i < lists.count; ++i) {
    const auto found = layout_of(olds[i]);
    if (!found.ok())
      return report(in_call(call, {found.status().code(), "olds[" + std::to_string(i) + "]: " + found.status().text()}));
    members.push_back(found->layout);
    if (text.size() < 400) text += (i == 0 ? "" : ", ") + std::to_string(lists.lengths[i]) + " of " + found->made_by;
  }
  return hand_out_layout(
      call, struct_layout(numbers(lists.lengths, lists.count), numbers(lists.displacements, lists.count), members),
      [&] { return shortened("struct(" + text + ")"); }, layout);
}

struct Array {
  int dimensions;
  const std::int64_t* sizes;
  const std::int64_t* subsizes;
  const std::int64_t* starts;
  ist_order order;
};

Words words_of(const Array& array) {
  Words words{"subarray"};
  if (array.dimensions < 0 || array.sizes == nullptr || array.subsizes == nullptr || array.starts == nullptr) return words;
  for (int d = 0; d < std::min(array.dimensions, 8); ++d)
    words.add("size", array.sizes[d]).add("subsize", array.subsizes[d]).add("start", array.starts[d]);
  return words;
}

Result<SharedLayout> make_subarray(const Array& array, const SharedLayout& of) {
  const std::int64_t count = array.dimensions;
  if (count < 1) return Status{IST_ERR_ARGUMENT, "dimensions is " + std::to_string(count) + "; a subarray has 1 or more"};
  IST_TRY(check_list("sizes", array.sizes, count));
  IST_TRY(check_list("subsizes", array.subsizes, count));
  IST_TRY(check_list("starts", array.starts, count));
  if (array.order != IST_ORDER_C && array.order != IST_ORDER_FORTRAN)
    return Status{IST_ERR_ARGUMENT, "order is " + std::to_string(static_cast<int>(array.order)) +
                                        "; it must be IST_ORDER_C or IST_ORDER_FORTRAN"};
  return subarray_layout(numbers(array.sizes, count), numbers(array.subsizes, count), numbers(array.starts, count),
                         array.order == IST_ORDER_C ? Order::c : Order::fortran, of);
}

int tell_bounds(const char* call, ist_layout layout, bool bare, std::int64_t* lower, std::int64_t* extent) {
  const auto found = layout_of(layout);
  if (!found.ok()) return report(in_call(call, found.status()));
  const Bounds& bounds = bare ? found->layout->true_bounds() : found->layout->bounds();
  if (lower != nullptr) *lower = bounds.lower;
  if (extent != nullptr) *extent = bounds.extent();
  return IST_OK;
}

Result<std::string> text_about(ist_layout layout) {
  const auto found = layout_of(layout);
  if (!found.ok()) return found.status();
  const Bounds& bounds = found->layout->bounds();
  std::string text = found->made_by + ": " + std::to_string(found->layout->size()) + " bytes, extent " +
                     std::to_string(bounds.extent()) + " from " + std::to_string(bounds.lower);
  if (!found->shapes) return text + "; not committed";
  const auto shape = found->shapes->of(1);
  if (!shape.ok()) return shape.status();
  return text + "; " + described((*shape)->form);
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_layout_contiguous(int64_t count, ist_layout old, ist_layout* layout) try {
  return ist::make_of("ist_layout_contiguous", old, layout, ist::Words{"contiguous"}.add("count", count),
                      [&](const ist::SharedLayout& of) { return ist::contiguous_layout(count, of); });
} catch (...) {
  return ist::report_exception("ist_layout_contiguous");
}

int ist_layout_vector(int64_t count, int64_t block_length, int64_t stride, ist_layout old, ist_layout* layout) try {
  return ist::make_of(
      "ist_layout_vector", old, layout,
      ist::Words{"vector"}.add("count", count).add("block_length", block_length).add("stride", stride),
      [&](const ist::SharedLayout& of) { return ist::vector_layout(count, block_length, stride, ist::Unit::extents, of); });
} catch (...) {
  return ist::report_exception("ist_layout_vector");
}

int ist_layout_hvector(int64_t count, int64_t block_length, int64_t stride, ist_layout old, ist_layout* layout) try {
  return ist::make_of(
      "ist_layout_hvector", old, layout,
      ist::Words{"hvector"}.add("count", count).add("block_length", block_length).add("stride", stride),
      [&](const ist::SharedLayout& of) { return ist::vector_layout(count, block_length, stride, ist::Unit::bytes, of); });
} catch (...) {
  return ist::report_exception("ist_layout_hvector");
}

int ist_layout_indexed(int64_t count, const int64_t* block_lengths, const int64_t* displacements, ist_layout old,
                       ist_layout* layout) try {
  return ist::make_indexed("ist_layout_indexed", "indexed", {count, block_lengths, displacements}, ist::Unit::extents, old,
                           layout);
} catch (...) {
  return ist::report_exception("ist_layout_indexed");
}

int ist_layout_hindexed(int64_t count, const int64_t* block_lengths, const int64_t* displacements, ist_layout old,
                        ist_layout* layout) try {
  return ist::make_indexed("ist_layout_hindexed", "hindexed", {count, block_lengths, displacements}, ist::Unit::bytes, old,
                           layout);
} catch (...) {
  return ist::report_exception("ist_layout_hindexed");
}

int ist_layout_indexed_block(int64_t count, int64_t block_length, const int64_t* displacements, ist_layout old,
                             ist_layout* layout) try {
  return ist::make_blocks("ist_layout_indexed_block", "indexed_block", block_length, {count, nullptr, displacements},
                          ist::Unit::extents, old, layout);
} catch (...) {
  return ist::report_exception("ist_layout_indexed_block");
}

int ist_layout_hindexed_block(int64_t count, int64_t block_length, const int64_t* displacements, ist_layout old,
                              ist_layout* layout) try {
  return ist::make_blocks("ist_layout_hindexed_block", "hindexed_block", block_length, {count, nullptr, displacements},
                          ist::Unit::bytes, old, layout);
} catch (...) {
  return ist::report_exception("ist_layout_hindexed_block");
}

int ist_layout_struct(int64_t count, const int64_t* block_lengths, const int64_t* displacements, const ist_layout* olds,
                      ist_layout* layout) try {
  return ist::make_struct("ist_layout_struct", {count, block_lengths, displacements}, olds, layout);
} catch (...) {
  return ist::report_exception("ist_layout_struct");
}

int ist_layout_subarray(int dimensions, const int64_t* sizes, const int64_t* subsizes, const int64_t* starts,
                        ist_order order, ist_layout old, ist_layout* layout) try {
  const ist::Array array{dimensions, sizes, subsizes, starts, order};
  return ist::make_of("ist_layout_subarray", old, layout, ist::words_of(array),
                      [&](const ist::SharedLayout& of) { return ist::make_subarray(array, of); });
} catch (...) {
  return ist::report_exception("ist_layout_subarray");
}

int ist_layout_resized(ist_layout old, int64_t lower_bound, int64_t extent, ist_layout* layout) try {
  return ist::make_of("ist_layout_resized", old, layout,
                      ist::Words{"resized"}.add("lower_bound", lower_bound).add("extent", extent),
                      [&](const ist::SharedLayout& of) { return ist::resized_layout(of, lower_bound, extent); });
} catch (...) {
  return ist::report_exception("ist_layout_resized");
}

int ist_layout_dup(ist_layout old, ist_layout* layout) try {
  if (layout == nullptr) return ist::report(IST_ERR_ARGUMENT, "ist_layout_dup: layout is null");
  *layout = IST_LAYOUT_NULL;
  auto found = ist::layout_of(old);
  if (!found.ok()) return ist::report(ist::in_call("ist_layout_dup", found.status()));
  *layout = ist::add_layout(std::move(*found));
  return IST_OK;
} catch (...) {
  return ist::report_exception("ist_layout_dup");
}

int ist_layout_commit(ist_layout layout) try {
  const ist::Status done = ist::commit_layout(layout);
  return done.ok() ? IST_OK : ist::report(ist::in_call("ist_layout_commit", done));
} catch (...) {
  return ist::report_exception("ist_layout_commit");
}

int ist_layout_free(ist_layout* layout) try {
  if (layout == nullptr) return ist::report(IST_ERR_ARGUMENT, "ist_layout_free: layout is null");
  const ist::Status done = ist::remove_layout(*layout);
  if (!done.ok()) return ist::report(ist::in_call("ist_layout_free", done));
  *layout = IST_LAYOUT_NULL;
  return IST_OK;
} catch (...) {
  return ist::report_exception("ist_layout_free");
}

int ist_layout_size(ist_layout layout, int64_t* size) try {
  if (size == nullptr) return ist::report(IST_ERR_ARGUMENT, "ist_layout_size: size is null");
  const auto found = ist::layout_of(layout);
  if (!found.ok()) return ist::report(ist::in_call("ist_layout_size", found.status()));
  *size = found->layout->size();
  return IST_OK;
} catch (...) {
  return ist::report_exception("ist_layout_size");
}

int ist_layout_extent(ist_layout layout, int64_t* lower_bound, int64_t* extent) try {
  return ist::tell_bounds("ist_layout_extent", layout, false, lower_bound, extent);
} catch (...) {
  return ist::report_exception("ist_layout_extent");
}

int ist_layout_true_extent(ist_layout layout, int64_t* lower_bound, int64_t* extent) try {
  return ist::tell_bounds("ist_layout_true_extent", layout, true, lower_bound, extent);
} catch (...) {
  return ist::report_exception("ist_layout_true_extent");
}

int ist_layout_text(ist_layout layout, char* text, size_t size, size_t* needed) try {
  if (text == nullptr && size > 0)
    return ist::report(IST_ERR_ARGUMENT, "ist_layout_text: text is null, but size is " + std::to_string(size));
  const auto found = ist::text_about(layout);
  if (!found.ok()) return ist::report(ist::in_call("ist_layout_text", found.status()));
  if (size > 0) text[found->copy(text, size - 1)] = '\0';
  if (needed != nullptr) *needed = found->size() + 1;
  return IST_OK;
} catch (...) {
  return ist::report_exception("ist_layout_text");
}
}
