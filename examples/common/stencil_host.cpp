// The stencil by the processor.
#include <array>
#include <cstring>

#include "common/stencil.hpp"

namespace example {

std::unique_ptr<Stencil> make_host_stencil();

namespace {

// Sums that the compiler may keep in one vector register or some of them.
constexpr std::int64_t kLanes = 16;

const float* row_of(const Field& field, int level, std::int64_t y) {
  const ist_buffer place = field.row(level, y).c();
  return reinterpret_cast<const float*>(place.object + place.offset);
}

void sweep_row(const float* up, const float* here, const float* down, float* __restrict__ to, std::int64_t columns) {
  for (std::int64_t x = 1; x < columns - 1; ++x) to[x] = 0.25F * (here[x - 1] + here[x + 1] + up[x] + down[x]);
}

double sweep_row_and_sum(const float* up, const float* here, const float* down, float* __restrict__ to,
                         std::int64_t columns) {
  std::array<float, kLanes> lanes{};
  const auto cell = [&](std::int64_t x, float& lane) {
    const float value = 0.25F * (here[x - 1] + here[x + 1] + up[x] + down[x]);
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

class HostStencil : public Stencil {
 public:
  isthmus::Kind kind() const override { return isthmus::Kind::host; }
  void sweep(const Field& field, int from, std::int64_t first, std::int64_t last, bool sum) override {
    for (std::int64_t y = first; y <= last; ++y) {
      const float *const up = row_of(field, from, y - 1), *const here = row_of(field, from, y);
      const float* const down = row_of(field, from, y + 1);
      auto* const to = const_cast<float*>(row_of(field, 1 - from, y));
      if (sum)
        change_ += sweep_row_and_sum(up, here, down, to, field.columns);
      else
        sweep_row(up, here, down, to, field.columns);
    }
  }
  float change() override {
    const double sum = change_;
    change_ = 0;
    return static_cast<float>(sum);
  }
  void copy(const Field& field) override {
    std::memcpy(const_cast<float*>(row_of(field, 1, 1)), row_of(field, 0, 1),
                static_cast<std::size_t>(field.rows) * field.row_bytes());
  }
  void finish() override {}

 private:
  double change_ = 0;
};

}  // namespace

std::unique_ptr<Stencil> make_host_stencil() { return std::make_unique<HostStencil>(); }

}  // namespace example
