#include "halo.hpp"

#include <algorithm>

#include "errors.hpp"
#include "gil.hpp"
#include "stream.hpp"
#include "wait.hpp"

namespace isthmus_python {
namespace {

[[noreturn]] void wrong(const std::string& text) { throw nb::value_error(text.c_str()); }

// Place of each dimension by decreasing stride; what lies inside of the innermost one is `element` bytes.
std::vector<int> map_of(const std::vector<std::int64_t>& extents, const std::vector<std::int64_t>& strides,
                        std::int64_t element) {
  std::vector<std::size_t> by_stride(extents.size());
  for (std::size_t d = 0; d < by_stride.size(); ++d) by_stride[d] = d;
  if (!strides.empty())
    std::stable_sort(by_stride.begin(), by_stride.end(),
                     [&](std::size_t one, std::size_t other) { return strides[one] > strides[other]; });
  std::vector<int> map(extents.size());
  for (std::size_t place = by_stride.size(); place-- > 0;) {
    const std::size_t d = by_stride[place];
    map[d] = static_cast<int>(place);
    if (!strides.empty() && extents[d] > 1 && strides[d] != element)
      wrong("HaloField: dimension " + std::to_string(d) + " of the array has a stride of " + std::to_string(strides[d]) +
            " bytes where " + std::to_string(element) +
            " would leave no gaps; give the whole array, and begin and end for what is its own");
    element *= extents[d];
  }
  return map;
}

ist_halo_range range_of(const std::vector<std::int64_t>& given, std::int64_t length, std::size_t dimension) {
  if (given.size() != 2 && given.size() != 4)
    wrong("HaloField: of dimension " + std::to_string(dimension) + " there are " + std::to_string(given.size()) +
          " numbers; give (minus, plus) or (minus, plus, begin, end)");
  const std::int64_t minus = given[0], plus = given[1];
  if (given.size() == 4) return {minus, plus, given[2], given[3], length};
  return {minus, plus, minus, length - plus - 1, length};
}

HaloField::Ranges ranges_for(const HaloField::Widths& given, std::size_t dimensions) {
  if (const auto* width = std::get_if<std::int64_t>(&given))
    return HaloField::Ranges(dimensions, std::vector<std::int64_t>{*width, *width});
  return std::get<HaloField::Ranges>(given);
}

}  // namespace

std::vector<std::int64_t> strides_of(nb::handle array, std::int64_t item_size) {
  if (const nb::object found = attribute(array, "strides");
      found.is_valid() && !found.is_none() && !PyCallable_Check(found.ptr()))
    return to_numbers(found);
  const nb::object stride = attribute(array, "stride");  // PyTorch's, in elements
  if (!stride.is_valid() || !PyCallable_Check(stride.ptr())) return {};
  auto numbers = to_numbers(stride());
  for (std::int64_t& number : numbers) number *= item_size;
  return numbers;
}

HaloGrid::~HaloGrid() {
  if (!session_->closed()) ist_halo_grid_free(&grid_);
}

int HaloGrid::ndims() const {
  session_->require_open();
  int found = 0;
  check(ist_halo_grid_ndims(grid_, &found));
  return found;
}

std::vector<int> HaloGrid::get(int which) const {
  std::vector<int> found(static_cast<std::size_t>(ndims()));
  int* const places[] = {which == 0 ? found.data() : nullptr, which == 1 ? found.data() : nullptr,
                         which == 2 ? found.data() : nullptr};
  check(ist_halo_grid_get(grid_, static_cast<int>(found.size()), places[0], places[1], places[2]));
  return found;
}

std::vector<bool> HaloGrid::periods() const {
  const auto numbers = get(1);
  return {numbers.begin(), numbers.end()};
}

int HaloGrid::neighbour(const std::vector<int>& direction) const {
  if (direction.size() != static_cast<std::size_t>(ndims()))
    raise(IST_ERR_ARGUMENT, "neighbour: there are " + std::to_string(direction.size()) + " steps; the grid has " +
                                std::to_string(ndims()) + " dimensions");
  int rank = 0;
  check(ist_halo_grid_neighbour(grid_, direction.data(), &rank));
  return rank;
}

template <class Sides>
nb::bytes HaloGrid::sides_by(int (*find)(ist_halo_grid, const ist_halo_field*, int, Sides*), const HaloField& field,
                             int reach) const {
  session_->require_open();
  Sides sides{};
  const ist_halo_field of{
      {}, field.element, field.ranges.data(), field.layout_map.empty() ? nullptr : field.layout_map.data()};
  if (field.ranges.size() != static_cast<std::size_t>(ndims()))
    raise(IST_ERR_ARGUMENT, "sides: the field has " + std::to_string(field.ranges.size()) + " dimensions, and the grid " +
                                std::to_string(ndims()));
  check(find(grid_, &of, reach, &sides));
  return nb::bytes(reinterpret_cast<const char*>(&sides), sizeof sides);
}

nb::bytes HaloGrid::sides(const HaloField& field, int reach) const { return sides_by(ist_halo_sides_of, field, reach); }

nb::bytes HaloGrid::all_sides(const HaloField& field, int reach) const {
  return sides_by(ist_halo_all_sides_of, field, reach);
}

std::string HaloGrid::text() const {
  std::string shape;
  for (const int extent : dims()) {
    if (!shape.empty()) shape += 'x';
    shape += std::to_string(extent);
  }
  return "<isthmus.HaloGrid of " + shape + " ranks>";
}

HaloField::HaloField(nb::object of, const Widths& widths, const std::optional<std::vector<std::int64_t>>& shape,
                     std::optional<std::int64_t> item_size, const std::optional<std::vector<int>>& given_map)
    : array(std::move(of)) {
  const Region region = to_region(array, Access::write, {}, Views::taken);
  std::vector<std::int64_t> extents, strides;
  element = item_size.value_or(region.item_size);
  if (shape) {
    extents = *shape;
  } else if (const nb::object found = attribute(array, "shape"); found.is_valid() && !found.is_none()) {
    extents = to_numbers(found);
    strides = strides_of(array, region.item_size);
  }
  const Ranges halo = ranges_for(widths, extents.size());
  std::vector<std::int64_t> factors = extents;
  factors.push_back(element);
  const std::int64_t bytes = elements_of({std::move(factors), {}});
  if (halo.empty() || extents.size() < halo.size())
    wrong("HaloField: the array has " + std::to_string(extents.size()) + " dimensions, and there are halos of " +
          std::to_string(halo.size()) + (shape || !extents.empty() ? "" : "; give its shape, which it does not tell"));
  // What is behind the grid's dimensions belongs to the cell.
  for (std::size_t d = extents.size(); d-- > halo.size();) {
    if (!strides.empty() && extents[d] > 1 && strides[d] != element)
      wrong("HaloField: dimension " + std::to_string(d) + " belongs to the cell, but its elements do not lie side by side");
    element *= extents[d];
  }
  extents.resize(halo.size());
  if (!strides.empty()) strides.resize(halo.size());
  layout_map = given_map ? *given_map : map_of(extents, strides, element);
  if (layout_map.size() != halo.size())
    wrong("HaloField: the layout map has " + std::to_string(layout_map.size()) + " entries for " +
          std::to_string(halo.size()) + " dimensions");
  for (std::size_t d = 0; d < halo.size(); ++d) ranges.push_back(range_of(halo[d], extents[d], d));
  if (bytes > region.bytes())
    wrong("HaloField: the shape is of " + std::to_string(bytes) + " bytes, and the " + class_name(array) + " has " +
          std::to_string(region.bytes()));
}

Halo::Halo(std::shared_ptr<Session> session, std::vector<Field> fields, int ndims, bool one_sided)
    : session_(std::move(session)), fields_(std::move(fields)), ndims_(ndims), one_sided_(one_sided) {}

Halo::~Halo() {
  if (halo_ != IST_HALO_NULL && !one_sided_ && !session_->closed()) ist_halo_free(&halo_);
}

std::vector<ist_halo_field> Halo::in_c() const {
  std::vector<ist_halo_field> fields;
  for (const Field& field : fields_)
    fields.push_back({field.region.place, field.element, field.ranges.empty() ? nullptr : field.ranges.data(),
                      field.layout_map.empty() ? nullptr : field.layout_map.data()});
  return fields;
}

void Halo::make(const Make& make) {
  session_->require_open();
  session_->sweep();
  finish_left(*session_);
  const auto fields = in_c();
  int code = IST_OK;
  {
    const LetGo without_gil{session_->inside()};
    code = make(static_cast<int>(fields.size()), fields.data(), &halo_);
  }
  check(code);
}

void Halo::set_fields(std::vector<Field> fields) {
  session_->require_open();
  std::swap(fields_, fields);
  const auto now = in_c();
  const int code = ist_halo_set_fields(halo_, static_cast<int>(now.size()), now.data());
  if (code != IST_OK) std::swap(fields_, fields);
  check(code);
}

template <class Call>
void Halo::step(const Call& call) {
  session_->require_open();
  int code = IST_OK;
  {
    const LetGo without_gil{session_->inside()};
    code = call(halo_);
  }
  check(code);
}

void Halo::start_exchange() { step(ist_halo_start_exchange); }
void Halo::unpack() { step(ist_halo_unpack); }

void Halo::exchange() {
  start_exchange();
  wait();
}

void Halo::wait() {
  int code = IST_OK;
  std::string text;
  wait_for(*session_, [&] {
    int over = 0;
    code = ist_halo_test(halo_, &over);
    if (code != IST_OK) text = ist_error_text();
    return code != IST_OK || over != 0;
  });
  if (code != IST_OK) raise(code, text);
}

bool Halo::test() {
  session_->require_open();
  int over = 0;
  check(ist_halo_test(halo_, &over));
  return over != 0;
}

void Halo::look_again(bool streams) {
  session_->require_open();
  bool moved = false;
  std::vector<Field> now;
  for (const Field& field : fields_) {
    now.push_back(field);
    if (field.region.place.kind == IST_KIND_HOST) continue;
    now.back().region = to_region(field.array, Access::write, {}, Views::taken);
    const ist_buffer &old = field.region.place, &found = now.back().region.place;
    moved = moved || old.object != found.object || old.offset != found.offset ||
            (streams && (old.queue != found.queue || old.flags != found.flags));
  }
  if (moved) set_fields(std::move(now));
}

// The stream of device memory is the one that is current now.
void Halo::pack() {
  look_again(true);
  step(ist_halo_pack);
}

void Halo::exchange_on(nb::handle stream) {
  void* const where = to_stream(stream);
  look_again(false);
  step([where](ist_halo halo) { return ist_halo_exchange_on(halo, where); });
}

void Halo::prepare_on(nb::handle stream) {
  void* const where = to_stream(stream);
  look_again(false);
  step([where](ist_halo halo) { return ist_halo_prepare_on(halo, where); });
}

void Halo::update() {
  pack();
  exchange();
  unpack();
}

void Halo::free() {
  session_->require_open();
  if (halo_ == IST_HALO_NULL) return;
  finish_left(*session_);
  ist_halo halo = std::exchange(halo_, IST_HALO_NULL);  // which is freed also where that is an error
  int code = IST_OK;
  {
    const LetGo without_gil{session_->inside()};
    code = ist_halo_free(&halo);
  }
  fields_.clear();
  check(code);
}

std::string Halo::text() const {
  session_->require_open();
  std::size_t needed = 0;
  check(ist_halo_text(halo_, nullptr, 0, &needed));
  std::string text(needed, '\0');
  check(ist_halo_text(halo_, text.data(), text.size(), nullptr));
  text.resize(needed - 1);
  return text;
}

}  // namespace isthmus_python
