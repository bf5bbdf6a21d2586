// Rows of a form: every byte once, from where it belongs to where it belongs, whatever part is asked for; and forms that are none say why.
#include "memory/rows.hpp"

#include <gtest/gtest.h>

#include <random>

#include "layout/form.hpp"

namespace ist {
namespace {

struct Shape {
  std::int64_t offset, block;
  std::vector<Dimension> dimensions;  // the innermost first
};

Form form(const Shape& shape) {
  Form made;
  made.offset = shape.offset;
  made.block = made.size = shape.block;
  for (const Dimension& each : shape.dimensions) {
    made.dimension[made.dimensions++] = each;
    made.size *= each.count;
  }
  return made;
}

std::vector<std::byte> random_bytes(std::size_t size) {
  static std::mt19937_64 random{std::random_device{}()};
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// Row by row, as an engine does it: all of a row, and nothing between them.
void copy_rows(const RowCopy& rows, std::byte* to, const RowSide& to_side, const std::byte* from, const RowSide& from_side) {
  for (std::int64_t plane = 0; plane < rows.depth; ++plane)
    for (std::int64_t row = 0; row < rows.height; ++row)
      for (std::int64_t byte = 0; byte < rows.width; ++byte)
        to[to_side.at + (plane * to_side.heights + row) * to_side.pitch + byte] =
            from[from_side.at + (plane * from_side.heights + row) * from_side.pitch + byte];
}

void within_limits(const RowCopy& rows, const std::string& what) {
  EXPECT_GT(rows.width * rows.height * rows.depth, 0) << what;
  for (const RowSide* side : {&rows.memory, &rows.other}) {
    EXPECT_LE(rows.width, side->pitch) << what;
    EXPECT_LE(rows.height, side->heights) << what;
  }
}

constexpr std::size_t kRoom = 4096;

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all{{0, 1, {{2, 1 + 1}}},
                                      {3, 4, {{50, 12}}},
                                      {8, 16, {{3, 16 + 8}, {4, 3 * (16 + 8)}}},
                                      {5, 7, {{4, 9}, {6, 9 * 11}}},
                                      {1, 24, {{5, 24}, {3, 24 * 9}}},
                                      {0, 31, {{2, 64}, {2, 64 * 20}}}};
  return all;
}

TEST(Rows, HaveEveryByteOfEveryPartOnceAndNoOther) {
  for (const Shape& shape : shapes()) {
    const Form laid = form(shape);
    ASSERT_EQ(why_no_rows(laid), nullptr) << described(laid);
    const auto memory = random_bytes(kRoom);
    std::vector<std::byte> stream(static_cast<std::size_t>(laid.size));
    pack(laid, memory.data(), 0, laid.size, stream.data());
    for (std::int64_t from = 0; from < laid.size; from += 1 + from / 5)
      for (std::int64_t to = laid.size; to > from; to -= 1 + (laid.size - to) / 5) {
        const std::string what = described(laid) + ", " + std::to_string(from) + " to " + std::to_string(to);
        const auto copies = row_copies(laid, from, to);
        ASSERT_LE(copies.size(), 5U) << what;
        auto packed = random_bytes(static_cast<std::size_t>(to - from) + 2);
        auto expected = packed;
        std::copy(stream.begin() + from, stream.begin() + to, expected.begin() + 1);
        auto spread = random_bytes(kRoom), unpacked = spread;
        for (const RowCopy& rows : copies) {
          within_limits(rows, what);
          copy_rows(rows, packed.data() + 1, rows.other, memory.data(), rows.memory);
        }
        ASSERT_EQ(packed, expected) << what;
        for (const RowCopy& rows : copies) copy_rows(rows, spread.data(), rows.memory, packed.data() + 1, rows.other);
        unpack(laid, unpacked.data(), from, to, packed.data() + 1);
        ASSERT_EQ(spread, unpacked) << what;
      }
    EXPECT_EQ(row_copies(laid, 0, laid.size).size(), 1U) << "all of it is one copy: " << described(laid);
  }
}

TEST(Rows, GoToRowsOfTheSameLengthAndNumberElsewhere) {
  const Form from = form({2, 8, {{5, 12}, {3, 12 * 7}}}), to = form({100, 8, {{5, 40}, {3, 40 * 5}}});
  ASSERT_TRUE(same_rows(from, to));
  for (const auto& [first, last] : {std::pair{0, 120}, {0, 77}, {13, 120}, {41, 42}}) {
    const auto source = random_bytes(kRoom);
    auto found = random_bytes(kRoom), expected = found;
    std::vector<std::byte> stream(static_cast<std::size_t>(last - first));
    pack(from, source.data(), first, last, stream.data());
    unpack(to, expected.data(), first, last, stream.data());
    for (const RowCopy& rows : row_copies(to, from, first, last)) {
      within_limits(rows, std::to_string(first));
      copy_rows(rows, found.data(), rows.memory, source.data(), rows.other);
    }
    EXPECT_EQ(found, expected) << first << " to " << last;
  }
  EXPECT_FALSE(same_rows(from, form({0, 8, {{15, 12}}}))) << "as many, but in one dimension";
  EXPECT_FALSE(same_rows(from, form({0, 4, {{5, 12}, {6, 12 * 7}}})));
  EXPECT_FALSE(same_rows(from, form({0, 8, {{5, 4}, {3, 12 * 7}}}))) << "rows that overlap are none";
}

TEST(Rows, AreCountedWhereTheyBeginOrEndInTheMiddle) {
  const Form laid = form({0, 10, {{8, 16}}});
  EXPECT_EQ(rows_between(laid, 0, 80), 8);
  EXPECT_EQ(rows_between(laid, 0, 1), 1);
  EXPECT_EQ(rows_between(laid, 9, 11), 2);
  EXPECT_EQ(rows_between(laid, 10, 20), 1);
  EXPECT_EQ(rows_between(laid, 5, 5), 0);
}

TEST(Rows, SayWhyALayoutIsNone) {
  const auto says = [](const Form& laid, const std::string& words) {
    const char* const why = why_no_rows(laid);
    ASSERT_NE(why, nullptr) << words;
    EXPECT_NE(std::string{why}.find(words), std::string::npos) << why;
  };
  says(form({0, 100, {}}), "one piece");
  says(form({0, 4, {{3, 8}, {3, 100}, {3, 1000}}}), "more than two");
  says(form({100, 4, {{3, -8}}}), "upwards");
  says(form({0, 4, {{3, 3}}}), "upwards");
  says(form({0, 4, {{3, 8}, {3, 16}}}), "planes do not follow");
  says(form({0, 4, {{3, 800}, {3, 8}}}), "planes do not follow");
  says(form({0, 4, {{3, 8}, {3, 28}}}), "whole number of rows");
  says(form_of({{0, 4}, {8, 4}, {20, 8}}), "list of runs");
}

}  // namespace
}  // namespace ist
