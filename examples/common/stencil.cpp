#include "common/stencil.hpp"

#include <utility>

namespace example {
namespace {

// Sums that the compiler may keep in one vector register or some of them.
constexpr std::int64_t kLanes = 16;

void sweep_row(const float* up, const float* here, const float* down, float* __restrict__ to, std::int64_t columns,
               float factor) {
  for (std::int64_t x = 1; x < columns - 1; ++x) to[x] = factor * (here[x - 1] + here[x + 1] + up[x] + down[x]);
}

double sweep_row_and_sum(const float* up, const float* here, const float* down, float* __restrict__ to, std::int64_t columns,
                         float factor) {
  std::array<float, kLanes> lanes{};
  const auto cell = [&](std::int64_t x, float& lane) {
    const float value = factor * (here[x - 1] + here[x + 1] + up[x] + down[x]);
    const float change = value - here[x];
    to[x] = value;
    lane += change * change;
  };
  std::int64_t x = 1;
  for (; x + kLanes <= columns - 1; x += kLanes)
    for (std::int64_t lane = 0; lane < kLanes; ++lane) cell(x + lane, lanes[static_cast<std::size_t>(lane)]);
  for (; x < columns - 1; ++x) cell(x, lanes[0]);
  double sum = 0;
  for (const float lane : lanes) sum += static_cast<double>(lane);
  return sum;
}

}  // namespace

void Stencil::sweep(const Field& field, int from, std::int64_t first, std::int64_t last, bool sum) {
  for (std::int64_t y = first; y <= last; ++y) {
    const float *const up = field.cells(from, y - 1), *const here = field.cells(from, y),
                       *const down = field.cells(from, y + 1);
    float* const to = field.cells(1 - from, y);
    if (sum)
      change_ += sweep_row_and_sum(up, here, down, to, field.columns, factor_);
    else
      sweep_row(up, here, down, to, field.columns, factor_);
  }
}

float Stencil::change() { return static_cast<float>(std::exchange(change_, 0.0)); }

OwnField::OwnField(const isthmus::World& world, std::int64_t rows, std::int64_t columns) {
  field_.rows = rows;
  field_.columns = columns;
  for (std::size_t level = 0; level < 2; ++level) {
    memory_[level] = world.allocate(isthmus::Kind::host, field_.level_bytes());
    const ist_buffer place = memory_[level].buffer().c();
    field_.levels[level] = reinterpret_cast<float*>(place.object + place.offset);
  }
}

}  // namespace example
