// Grey pictures as PNG files.
//
// Who calls this : main.cpp and run.cpp on rank 0, the tests.
// Threads        : functions without state.
// Ownership      : values.
// Errors         : std::runtime_error, with the file's name and libpng's or the system's text.
#pragma once

#include <string>
#include <vector>

#include "grid.hpp"

namespace stencil {

struct Image {
  Extent extent;
  std::vector<double> values;  // row by row, 0 (black) to 1 (white)
};

// Any PNG: colours become grey, transparency is laid on black.
Image read_png(const std::string& path);

enum class Palette { grey, heat };
// Values at or above `white` are the palette's last colour, those at or below 0 its first.
void write_png(const std::string& path, const Image& image, double white, Palette palette);

}  // namespace stencil
