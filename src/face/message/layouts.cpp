#include "face/message/layouts.hpp"

#include <array>

#include "face/message/numbered.hpp"

namespace ist {
namespace {

struct LayoutTable {
  Numbered<NamedLayout> layouts;
  std::array<NamedLayout, kTypes> basic;
  LayoutTable() {
    for (std::size_t type = 0; type < kTypes; ++type) {
      const auto name = static_cast<ist_type>(type);
      const SharedLayout layout = *Layout::basic(name);
      basic[type] = {layout, name_of(name), std::make_shared<Shapes>(layout)};
    }
  }
};

LayoutTable& layout_table() {
  static auto* made = new LayoutTable;
  return *made;
}

std::uint64_t number_of(ist_layout handle) { return reinterpret_cast<std::uint64_t>(handle); }
bool is_basic(ist_layout handle) { return number_of(handle) - 1 < kTypes; }

Status bad_layout(ist_layout handle) {
  if (handle == IST_LAYOUT_NULL) return {IST_ERR_HANDLE, "the layout is null"};
  return {IST_ERR_HANDLE,
          number_text(number_of(handle)) +
              " is no layout: it is neither ist_layout_of() a basic type, nor one that was made here and not "
              "freed since"};
}

}  // namespace

Result<NamedLayout> layout_of(ist_layout handle) {
  LayoutTable& all = layout_table();
  if (is_basic(handle)) return all.basic[number_of(handle) - 1];
  auto found = all.layouts.find(number_of(handle));
  if (!found) return bad_layout(handle);
  return std::move(*found);
}

ist_layout add_layout(NamedLayout layout) {
  return reinterpret_cast<ist_layout>(layout_table().layouts.add(std::move(layout)));
}

Status commit_layout(ist_layout handle) {
  auto found = layout_of(handle);
  if (!found.ok()) return found.status();
  if (found->shapes) return {};
  auto shapes = std::make_shared<Shapes>(found->layout);
  if (const auto one = shapes->of(1); !one.ok()) return one.status();
  const bool there = layout_table().layouts.change(number_of(handle), [&](NamedLayout& named) {
    if (!named.shapes) named.shapes = std::move(shapes);
  });
  return there ? Status{} : bad_layout(handle);
}

Status remove_layout(ist_layout handle) {
  if (is_basic(handle)) return {IST_ERR_HANDLE, "the layout of a basic type cannot be freed"};
  return layout_table().layouts.remove(number_of(handle)) ? Status{} : bad_layout(handle);
}

Result<SharedShape> shape_of(std::int64_t count, ist_layout handle, bool written) {
  const auto found = layout_of(handle);
  if (!found.ok()) return found.status();
  if (!found->shapes)
    return Status{IST_ERR_ARGUMENT, "the layout, " + found->made_by + ", is not committed; call ist_layout_commit once"};
  auto shape = found->shapes->of(count);
  if (!shape.ok()) return shape.status();
  if (written && (*shape)->overlap == Overlap::some)
    return Status{IST_ERR_ARGUMENT, "the layout, " + found->made_by +
                                        (count == 1 ? "" : ", " + std::to_string(count) + " times") +
                                        ", has a byte twice, and cannot be written to; check its strides and extent"};
  return shape;
}

}  // namespace ist
