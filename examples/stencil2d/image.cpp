#include "image.hpp"

#include <png.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace stencil {
namespace {

struct File {
  explicit File(const std::string& path, const char* mode) : stream(std::fopen(path.c_str(), mode)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (stream) std::fclose(stream);
  }
  std::FILE* stream;
};

// libpng's simplified interface; the handle frees what it holds.
struct Png {
  Png() { image.version = PNG_IMAGE_VERSION; }
  Png(const Png&) = delete;
  Png& operator=(const Png&) = delete;
  ~Png() { png_image_free(&image); }
  png_image image{};
};

// Black, red, yellow, white: each third of the way switches one colour on.
std::array<std::uint8_t, 3> heat(double value) {
  const auto channel = [&](double from) {
    return static_cast<std::uint8_t>(std::lround(255 * std::clamp(3 * value - from, 0.0, 1.0)));
  };
  return {channel(0), channel(1), channel(2)};
}

}  // namespace

Image read_png(const std::string& path) {
  const File file(path, "rb");
  if (!file.stream) throw std::runtime_error("cannot open the picture " + path + ": " + std::strerror(errno));
  Png png;
  if (!png_image_begin_read_from_stdio(&png.image, file.stream))
    throw std::runtime_error(path + " cannot be read as a PNG picture: " + png.image.message);
  constexpr std::uint64_t most = std::uint64_t{1} << 28;
  if (std::uint64_t{png.image.width} * png.image.height > most)
    throw std::runtime_error(path + " is " + std::to_string(png.image.height) + "x" + std::to_string(png.image.width) +
                             " points; this program takes at most " + std::to_string(most));
  png.image.format = PNG_FORMAT_GRAY;
  std::vector<std::uint8_t> pixels(PNG_IMAGE_SIZE(png.image));
  const png_color black{0, 0, 0};
  if (!png_image_finish_read(&png.image, &black, pixels.data(), 0, nullptr))
    throw std::runtime_error(path + " is damaged: " + png.image.message);
  Image result{{png.image.height, png.image.width}, std::vector<double>(pixels.size())};
  std::transform(pixels.begin(), pixels.end(), result.values.begin(), [](std::uint8_t grey) { return grey / 255.0; });
  return result;
}

void write_png(const std::string& path, const Image& image, double white, Palette palette) {
  const bool grey = palette == Palette::grey;
  std::vector<std::uint8_t> pixels;
  pixels.reserve(image.values.size() * (grey ? 1 : 3));
  for (const double raw : image.values) {
    const double value = std::isnan(raw) ? 0.0 : std::clamp(raw / white, 0.0, 1.0);
    if (grey) {
      pixels.push_back(static_cast<std::uint8_t>(std::lround(255 * value)));
    } else {
      const auto colour = heat(value);
      pixels.insert(pixels.end(), colour.begin(), colour.end());
    }
  }
  const File file(path, "wb");
  if (!file.stream) throw std::runtime_error("cannot write the picture " + path + ": " + std::strerror(errno));
  Png png;
  png.image.width = static_cast<png_uint_32>(image.extent.columns);
  png.image.height = static_cast<png_uint_32>(image.extent.rows);
  png.image.format = grey ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  if (!png_image_write_to_stdio(&png.image, file.stream, 0, pixels.data(), 0, nullptr))
    throw std::runtime_error("cannot write the picture " + path + ": " + png.image.message);
}

}  // namespace stencil
