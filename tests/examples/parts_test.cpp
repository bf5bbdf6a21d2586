// The parts of stencil2d by themselves: the cut into tiles, the serial run, pictures, and every back-end this machine has.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>
#include <ostream>
#include <random>

#include "backend.hpp"
#include "grid.hpp"
#include "image.hpp"
#include "serial.hpp"

namespace stencil {
namespace {

std::vector<double> random_values(std::size_t count, unsigned seed) {
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<double> value(0, 1);
  std::vector<double> values(count);
  for (double& each : values) each = value(generator);
  return values;
}

std::vector<double> product_field(const Extent& extent) {
  std::vector<double> values;
  for (std::int64_t row = 0; row < extent.rows; ++row)
    for (std::int64_t column = 0; column < extent.columns; ++column) values.push_back(static_cast<double>(row * column));
  return values;
}

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

TEST(Grid, gives_every_point_to_one_tile_and_neighbours_that_name_each_other) {
  for (const Extent field : {Extent{61, 47}, {12, 12}, {5, 100}}) {
    for (int ranks = 1; ranks <= 12; ++ranks) {
      const Extent grid = choose_grid(ranks, field, 1);
      ASSERT_EQ(grid.points(), ranks);
      std::vector<int> owners(static_cast<std::size_t>(field.points()), 0);
      for (int rank = 0; rank < ranks; ++rank) {
        const Tile tile = tile_of(rank, grid, field);
        EXPECT_GE(tile.extent.points(), 1);
        for (std::int64_t row = 0; row < tile.extent.rows; ++row)
          for (std::int64_t column = 0; column < tile.extent.columns; ++column)
            ++owners.at(static_cast<std::size_t>((tile.first_row + row) * field.columns + tile.first_column + column));
        for (const Side side : sides) {
          if (tile.neighbour(side) == Tile::wall) continue;
          const Tile other = tile_of(tile.neighbour(side), grid, field);
          EXPECT_EQ(other.neighbour(opposite(side)), rank);
          const bool vertical = side == Side::north || side == Side::south;
          EXPECT_EQ(vertical ? other.extent.columns : other.extent.rows, vertical ? tile.extent.columns : tile.extent.rows);
        }
      }
      EXPECT_EQ(std::count(owners.begin(), owners.end(), 1), field.points());
    }
  }
}

TEST(Grid, has_the_shortest_borders_that_leave_room_for_the_halo) {
  EXPECT_EQ(choose_grid(4, {400, 400}, 1), (Extent{2, 2}));
  EXPECT_EQ(choose_grid(4, {4000, 100}, 1), (Extent{4, 1}));
  EXPECT_EQ(choose_grid(6, {100, 900}, 1), (Extent{1, 6}));
  EXPECT_EQ(choose_grid(4, {4000, 100}, 1, {2, 2}), (Extent{2, 2}));
  EXPECT_EQ(choose_grid(4, {12, 10}, 5), (Extent{2, 2}));
  EXPECT_EQ(choose_grid(2, {8, 7}, 4), (Extent{2, 1}));
}

TEST(Grid, refuses_what_does_not_fit_and_says_why) {
  const auto text_of = [](const auto& action) -> std::string {
    try {
      action();
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_NE(text_of([] { choose_grid(4, {12, 10}, 6); }).find("as wide as the halo, 6"), std::string::npos);
  EXPECT_NE(text_of([] { choose_grid(7, {2, 3}, 1); }).find("fewer ranks"), std::string::npos);
  EXPECT_NE(text_of([] {
              choose_grid(4, {12, 10}, 1, {3, 2});
            }).find("needs 6 ranks, and 4 are running"),
            std::string::npos);
  for (const char* bad : {"", "5", "5x", "x5", "0x5", "5x-1", "5x5x5", "5 x5", "axb", "99999999999999999999x1", "2000000x1"})
    EXPECT_NE(text_of([&] { extent_from(bad); }).find("ROWSxCOLUMNS"), std::string::npos) << bad;
  EXPECT_EQ(extent_from("480x640"), (Extent{480, 640}));
}

// The sums of SHOC's own program; see the specification of the benchmark.
TEST(SerialRun, reaches_the_published_sums) {
  const Extent extent{512, 512};
  const auto start = product_field(extent);
  EXPECT_NEAR(sum(serial_run(extent, start, 1, 1, Weights{})) / 1.793505671685e10, 1, 1e-12);
  EXPECT_NEAR(sum(serial_run(extent, start, 1, 10, Weights{})) / 2.759094466495e10, 1, 1e-12);
}

TEST(SerialRun, depends_on_the_width_of_the_halo_only_near_walls) {
  const Extent extent{40, 40};
  const auto start = random_values(1600, 1);
  const auto narrow = serial_run(extent, start, 1, 3, Weights{}), wide = serial_run(extent, start, 3, 3, Weights{});
  EXPECT_NE(narrow[0], wide[0]);
  EXPECT_EQ(narrow[20 * 40 + 20], wide[20 * 40 + 20]);
}

TEST(Comparison, does_not_let_a_nan_a_hole_or_a_wrong_point_pass) {
  const std::vector<double> expected{1, 2, 3};
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  const auto within = [&](const std::vector<double>& result) {
    return compare(result, expected, 10, Precision::single_precision).within();
  };
  EXPECT_TRUE(within(expected));
  EXPECT_TRUE(within({1, 2, 3 + 1e-6}));
  EXPECT_FALSE(within({1, 2, 3.001}));
  EXPECT_FALSE(within({nan, 2, 3}));
  EXPECT_FALSE(within({1, nan, 3}));
  EXPECT_FALSE(within({1, 2, nan}));
  EXPECT_FALSE(within({1, 2, -3}));
  EXPECT_FALSE(within({1, 2, infinity}));
  EXPECT_FALSE(within({1, 2}));
  EXPECT_FALSE(compare({infinity}, {infinity}, 10, Precision::single_precision).within());
}

class Pictures : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return testing::TempDir() + "isthmus_picture_" + name; }
  std::string error_of(const std::string& file) const {
    try {
      read_png(file);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "accepted";
  }
};

TEST_F(Pictures, keep_every_grey_value_and_clip_what_is_outside) {
  Image image{{3, 86}, {}};
  for (int i = 0; i < 256; ++i) image.values.push_back(i / 255.0);
  image.values.insert(image.values.end(), {-1, 2});
  write_png(path("grey.png"), image, 1, Palette::grey);
  const Image back = read_png(path("grey.png"));
  EXPECT_EQ(back.extent, image.extent);
  image.values[256] = 0;
  image.values[257] = 1;
  EXPECT_EQ(back.values, image.values);
}

TEST_F(Pictures, in_colour_are_read_as_grey) {
  write_png(path("heat.png"), {{1, 3}, {0, 0.5, 1}}, 1, Palette::heat);
  const Image back = read_png(path("heat.png"));
  EXPECT_EQ(back.values.front(), 0);
  EXPECT_GT(back.values[1], 0.2);
  EXPECT_LT(back.values[1], 0.9);
  EXPECT_EQ(back.values.back(), 1);
}

TEST_F(Pictures, that_cannot_be_read_are_named) {
  EXPECT_NE(error_of(path("missing.png")).find("No such file"), std::string::npos);
  std::ofstream(path("text.png")) << "this is no picture";
  EXPECT_NE(error_of(path("text.png")).find("cannot be read as a PNG"), std::string::npos);
  std::ofstream(path("empty.png")).close();
  EXPECT_NE(error_of(path("empty.png")).find("empty.png"), std::string::npos);
  write_png(path("whole.png"), {{50, 50}, random_values(2500, 2)}, 1, Palette::grey);
  std::ifstream whole(path("whole.png"), std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(whole)), {});
  std::ofstream(path("cut.png"), std::ios::binary) << bytes.substr(0, bytes.size() / 2);
  EXPECT_NE(error_of(path("cut.png")).find("cut.png"), std::string::npos);
  EXPECT_THROW(write_png("/nowhere/at/all.png", {{1, 1}, {0}}, 1, Palette::grey), std::runtime_error);
}

struct Case {
  std::string kind;
  Precision precision;
  std::string name() const { return kind + (precision == Precision::single_precision ? "_float" : "_double"); }
};
void PrintTo(const Case& chosen, std::ostream* stream) { *stream << chosen.name(); }

class Backends : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    try {
      backend_ = make_backend(GetParam().kind, 0, GetParam().precision);
    } catch (const std::runtime_error& error) {
      GTEST_SKIP() << error.what();
    }
  }
  void allocate(const Extent& tile, int halo, const Weights& weights = {}) {
    layout_ = {tile, halo, GetParam().precision};
    backend_->allocate(layout_, weights);
  }
  std::vector<std::byte> random_field() const {
    std::vector<std::byte> field(layout_.field_bytes());
    for (std::size_t at = 0, i = 0; at < field.size(); at += layout_.element(), ++i) {
      const double large = 1.0 / (3.0 + static_cast<double>(i));
      const auto small = static_cast<float>(large);
      std::memcpy(field.data() + at, layout_.element() == 4 ? static_cast<const void*>(&small) : &large, layout_.element());
    }
    return field;
  }
  std::unique_ptr<Backend> backend_;
  Layout layout_;
};

TEST_P(Backends, equal_the_serial_run_on_one_tile_of_any_shape) {
  for (const Extent tile : {Extent{1, 1}, {3, 200}, {65, 67}, {128, 64}}) {
    for (int halo = 1; halo <= 3; ++halo) {
      const Weights weights = Weights{}.normalised();
      allocate(tile, halo, weights);
      const auto start = random_values(static_cast<std::size_t>(tile.points()), 3);
      backend_->upload(pad(layout_, start));
      for (int step = 0; step < 7; ++step) backend_->step();
      const auto result = unpad(layout_, backend_->download());
      const auto comparison = compare(result, serial_run(tile, start, halo, 7, weights), 7, GetParam().precision);
      EXPECT_TRUE(comparison.within()) << to_text(tile) << " halo " << halo << ": " << comparison.largest_error;
    }
  }
}

TEST_P(Backends, reach_the_published_sums) {
  if (GetParam().precision == Precision::single_precision) GTEST_SKIP() << "the sums are those of double precision";
  const Extent tile{512, 512};
  allocate(tile, 1);
  backend_->upload(pad(layout_, product_field(tile)));
  int step = 0;
  for (const auto& [steps, expected] :
       {std::pair{1, 1.793505671685e10}, {10, 2.759094466495e10}, {100, 2.162842166816e12}}) {
    for (; step < steps; ++step) backend_->step();
    EXPECT_NEAR(sum(unpad(layout_, backend_->download())) / expected, 1, 1e-12);
  }
  const auto last = unpad(layout_, backend_->download());
  EXPECT_NEAR(*std::max_element(last.begin(), last.end()) / 3.158425652e7, 1, 1e-9);
}

TEST_P(Backends, move_exactly_the_strips_that_the_layout_names) {
  for (const int halo : {1, 2, 5}) {
    allocate({11, 7}, halo);
    const auto field = random_field();
    const std::size_t pitch = static_cast<std::size_t>(layout_.padded().columns) * layout_.element();
    const std::size_t width = static_cast<std::size_t>(halo) * layout_.element();
    for (const Side side : {Side::west, Side::east}) {
      backend_->upload(field);
      backend_->pack(side);
      std::vector<std::byte> box(layout_.box_bytes());
      backend_->read(layout_.strip(side, Direction::out), box.data());
      const std::size_t out = static_cast<std::size_t>(side == Side::west ? halo : 7) * layout_.element();
      for (std::size_t row = 0; row < box.size() / width; ++row)
        EXPECT_EQ(std::memcmp(&box[row * width], &field[row * pitch + out], width), 0) << "row " << row;

      for (std::byte& each : box) each ^= std::byte{0x5a};
      backend_->write(layout_.strip(side, Direction::in), box.data());
      backend_->unpack(side);
      auto expected = field;
      const std::size_t in = static_cast<std::size_t>(side == Side::west ? 0 : 7 + halo) * layout_.element();
      for (std::size_t row = 0; row < box.size() / width; ++row)
        std::memcpy(&expected[row * pitch + in], &box[row * width], width);
      EXPECT_EQ(backend_->download(), expected) << "halo " << halo;
    }
    for (const Side side : {Side::north, Side::south}) {
      backend_->upload(field);
      const Place out = layout_.strip(side, Direction::out), in = layout_.strip(side, Direction::in);
      std::vector<std::byte> rows(out.bytes);
      backend_->read(out, rows.data());
      const std::size_t first = static_cast<std::size_t>(side == Side::north ? halo : 11) * pitch;
      EXPECT_EQ(std::memcmp(rows.data(), &field[first], rows.size()), 0);
      backend_->write(in, rows.data());
      auto expected = field;
      std::memcpy(&expected[static_cast<std::size_t>(side == Side::north ? 0 : 11 + halo) * pitch], rows.data(),
                  rows.size());
      EXPECT_EQ(backend_->download(), expected);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Each, Backends,
    testing::Values(Case{"host", Precision::single_precision}, Case{"host", Precision::double_precision},
                    Case{"opencl", Precision::single_precision}, Case{"opencl", Precision::double_precision},
                    Case{"cuda", Precision::single_precision}, Case{"cuda", Precision::double_precision}),
    [](const auto& chosen) { return chosen.param.name(); });

}  // namespace
}  // namespace stencil
