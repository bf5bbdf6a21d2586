#include "serial.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stencil {

std::vector<double> serial_run(const Extent& field, const std::vector<double>& start, int halo, int steps,
                               const Weights& weights) {
  const auto width = static_cast<std::size_t>(field.columns + 2 * halo);
  const auto height = static_cast<std::size_t>(field.rows + 2 * halo);
  const auto frame = static_cast<std::size_t>(halo);
  std::vector<std::vector<double>> now(height, std::vector<double>(width, 0.0));
  for (std::size_t row = 0; row < static_cast<std::size_t>(field.rows); ++row)
    std::copy_n(start.begin() + static_cast<std::ptrdiff_t>(row) * field.columns, field.columns,
                now[row + frame].begin() + halo);
  auto next = now;
  for (int step = 0; step < steps; ++step) {
    for (std::size_t row = 1; row + 1 < height; ++row) {
      const auto &above = now[row - 1], &here = now[row], &below = now[row + 1];
      for (std::size_t column = 1; column + 1 < width; ++column)
        next[row][column] =
            weights.centre * here[column] +
            weights.cardinal * (above[column] + below[column] + here[column - 1] + here[column + 1]) +
            weights.diagonal * (above[column - 1] + above[column + 1] + below[column - 1] + below[column + 1]);
    }
    std::swap(now, next);
  }
  std::vector<double> result;
  result.reserve(static_cast<std::size_t>(field.points()));
  for (std::size_t row = 0; row < static_cast<std::size_t>(field.rows); ++row)
    result.insert(result.end(), now[row + frame].begin() + halo, now[row + frame].begin() + halo + field.columns);
  return result;
}

Comparison compare(const std::vector<double>& result, const std::vector<double>& expected, int steps, Precision precision) {
  Comparison comparison;
  double largest = 0;
  if (result.size() != expected.size()) comparison.largest_error = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < std::min(result.size(), expected.size()); ++i) {
    const double error = std::abs(result[i] - expected[i]);
    // Written so that a NaN, once found, stays.
    if (!(error <= comparison.largest_error) && !std::isnan(comparison.largest_error)) comparison.largest_error = error;
    largest = std::max(largest, std::abs(expected[i]));
  }
  constexpr double serial_epsilon = std::numeric_limits<double>::epsilon();
  const double epsilon =
      precision == Precision::double_precision ? serial_epsilon : double{std::numeric_limits<float>::epsilon()};
  comparison.tolerance = 4.0 * steps * (epsilon + serial_epsilon) * largest;
  return comparison;
}

}  // namespace stencil
