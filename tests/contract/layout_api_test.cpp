// The C calls about layouts: handles, texts and errors, and packing from and to every kind of memory of a world.
#include <gtest/gtest.h>
#include <isthmus/layout.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace {

using Data = std::vector<unsigned char>;

#define MUST(call) ASSERT_EQ(IST_OK, (call)) << ist_error_text()
#define EXPECT_ERROR(expected, call, words)                                                      \
  do {                                                                                           \
    EXPECT_EQ(expected, (call));                                                                 \
    EXPECT_NE(std::string{ist_error_text()}.find(words), std::string::npos) << ist_error_text(); \
  } while (0)

Data random_bytes(std::size_t size) {
  static std::mt19937_64 engine{std::random_device{}()};
  Data data(size);
  for (auto& byte : data) byte = static_cast<unsigned char>(engine());
  return data;
}

std::string text_of(ist_layout layout) {
  std::size_t needed = 0;
  EXPECT_EQ(IST_OK, ist_layout_text(layout, nullptr, 0, &needed)) << ist_error_text();
  std::string text(needed, '?');
  EXPECT_EQ(IST_OK, ist_layout_text(layout, text.data(), text.size(), nullptr)) << ist_error_text();
  EXPECT_EQ(text.back(), '\0');
  text.pop_back();
  return text;
}

TEST(LayoutCalls, say_what_was_made_and_what_it_became) {
  ist_layout column = IST_LAYOUT_NULL;
  MUST(ist_layout_vector(8, 1, 10, ist_layout_of(IST_DOUBLE), &column));
  EXPECT_EQ(text_of(column),
            "vector(count 8, block_length 1, stride 10) of IST_DOUBLE: 64 bytes, extent 568 from 0; not committed");
  MUST(ist_layout_commit(column));
  MUST(ist_layout_commit(column));
  EXPECT_EQ(
      text_of(column),
      "vector(count 8, block_length 1, stride 10) of IST_DOUBLE: 64 bytes, extent 568 from 0; 8 blocks of 8 bytes from "
      "0: 8 every 80");
  std::int64_t size = 0, lower = -1, extent = -1;
  MUST(ist_layout_size(column, &size));
  EXPECT_EQ(size, 64);
  MUST(ist_pack_size(3, column, &size));
  EXPECT_EQ(size, 192);
  ist_layout resized = IST_LAYOUT_NULL;
  MUST(ist_layout_resized(column, -8, 80, &resized));
  MUST(ist_layout_extent(resized, &lower, &extent));
  EXPECT_EQ(lower, -8);
  EXPECT_EQ(extent, 80);
  MUST(ist_layout_true_extent(resized, &lower, &extent));
  EXPECT_EQ(lower, 0);
  EXPECT_EQ(extent, 568);
  // What it is made of may go before it.
  MUST(ist_layout_free(&column));
  EXPECT_EQ(column, IST_LAYOUT_NULL);
  MUST(ist_layout_commit(resized));
  ist_layout again = IST_LAYOUT_NULL;
  MUST(ist_layout_dup(resized, &again));
  MUST(ist_layout_free(&resized));
  MUST(ist_pack_size(1, again, &size));
  EXPECT_EQ(size, 64);
  MUST(ist_layout_free(&again));
}

TEST(LayoutCalls, a_handle_that_is_none_is_told_so) {
  ist_layout made = IST_LAYOUT_NULL, freed = IST_LAYOUT_NULL;
  MUST(ist_layout_contiguous(3, ist_layout_of(IST_INT), &made));
  freed = made;
  MUST(ist_layout_free(&made));
  std::int64_t size = 0;
  EXPECT_ERROR(IST_ERR_HANDLE, ist_layout_size(freed, &size), "not freed since");
  EXPECT_ERROR(IST_ERR_HANDLE, ist_layout_free(&freed), "is no layout");
  EXPECT_ERROR(IST_ERR_HANDLE, ist_layout_commit(IST_LAYOUT_NULL), "ist_layout_commit: the layout is null");
  EXPECT_ERROR(IST_ERR_HANDLE, ist_layout_contiguous(1, ist_layout_of(static_cast<ist_type>(99)), &made), "old: 0x64");
  EXPECT_EQ(made, IST_LAYOUT_NULL);
  ist_layout basic = ist_layout_of(IST_INT);
  EXPECT_ERROR(IST_ERR_HANDLE, ist_layout_free(&basic), "basic type cannot be freed");
  EXPECT_ERROR(IST_ERR_ARGUMENT, ist_layout_free(nullptr), "layout is null");
  EXPECT_ERROR(IST_ERR_ARGUMENT, ist_layout_contiguous(1, basic, nullptr), "layout is null");
}

TEST(LayoutCalls, a_wrong_argument_is_named_with_its_index_and_value) {
  ist_layout made = ist_layout_of(IST_INT);
  const ist_layout old = ist_layout_of(IST_INT);
  const std::int64_t lengths[] = {1, -2}, places[] = {0, 5}, sizes[] = {4, 4}, subsizes[] = {2, 5}, starts[] = {0, 3};
  EXPECT_ERROR(IST_ERR_ARGUMENT, ist_layout_contiguous(-1, old, &made), "count is -1");
  EXPECT_EQ(made, IST_LAYOUT_NULL);
  EXPECT_ERROR(IST_ERR_ARGUMENT, ist_layout_vector(2, -3, 1, old, &made), "block_length is -3");
  EXPECT_ERROR(IST_ERR_ARGUMENT, ist_layout_indexed(2, lengths, places, old, &made), "block_lengths[1] is -2");
  EXPECT_ERROR(IST_ERR_ARGUMENT, ist_layout_indexed(2, nullptr, places, old, &made), "block_lengths is null");
  EXPECT_ERROR(IST_ERR_ARGUMENT, ist_layout_hindexed(-1, lengths, places, old, &made), "count is -1");
  EXPECT_ERROR(IST_ERR_ARGUMENT, ist_layout_indexed_block(2, 1, nullptr, old, &made), "displacements is null");
  const ist_layout olds[] = {old, IST_LAYOUT_NULL};
  EXPECT_ERROR(IST_ERR_HANDLE, ist_layout_struct(2, places, places, olds, &made), "olds[1]: the layout is null");
  EXPECT_ERROR(IST_ERR_ARGUMENT, ist_layout_struct(2, places, places, nullptr, &made), "olds is null");
  EXPECT_ERROR(IST_ERR_ARGUMENT, ist_layout_subarray(2, sizes, subsizes, starts, IST_ORDER_C, old, &made),
               "subsizes[1] is 5");
  EXPECT_ERROR(IST_ERR_ARGUMENT, ist_layout_subarray(0, sizes, subsizes, starts, IST_ORDER_C, old, &made),
               "dimensions is 0");
  EXPECT_ERROR(IST_ERR_ARGUMENT, ist_layout_subarray(1, sizes, subsizes, starts, static_cast<ist_order>(7), old, &made),
               "order is 7");
  EXPECT_ERROR(IST_ERR_OVERFLOW, ist_layout_vector(std::int64_t{1} << 40, 1, std::int64_t{1} << 40, old, &made), "2^60");
}

// A world of one, and memory of every kind that it has.
class LayoutPack : public testing::Test {
 protected:
  void SetUp() override {
    MUST(ist_world_create(&world_));
    kinds_ = {IST_KIND_HOST};
    for (const ist_kind kind : {IST_KIND_CUDA, IST_KIND_OPENCL}) {
      int devices = 0;
      MUST(ist_kind_devices(world_, kind, &devices));
      if (devices > 0) kinds_.push_back(kind);
    }
  }
  void TearDown() override {
    for (const ist_buffer& each : taken_) EXPECT_EQ(IST_OK, ist_memory_free(world_, each)) << ist_error_text();
    EXPECT_EQ(IST_OK, ist_world_destroy(&world_));
  }
  ist_buffer take(ist_kind kind, const Data& bytes) {
    ist_buffer buffer{};
    EXPECT_EQ(IST_OK, ist_memory_alloc(world_, kind, 0, bytes.size(), &buffer)) << ist_error_text();
    taken_.push_back(buffer);
    EXPECT_EQ(IST_OK, ist_memory_copy(world_, buffer, ist_host(bytes.data()), bytes.size())) << ist_error_text();
    return buffer;
  }
  Data read(const ist_buffer& from, std::size_t size) {
    Data bytes(size, 0xEE);
    EXPECT_EQ(IST_OK, ist_memory_copy(world_, ist_host(bytes.data()), from, size)) << ist_error_text();
    return bytes;
  }

  ist_world world_ = IST_WORLD_NULL;
  std::vector<ist_kind> kinds_;

 private:
  std::vector<ist_buffer> taken_;
};

// Two blocks of three and one of one int on either side of the buffer's beginning; where each byte lies is `places`.
void make_crooked(ist_layout* layout, std::vector<std::int64_t>& places, std::int64_t count) {
  const std::int64_t lengths[] = {3, 1, 3}, at[] = {5, -4, 0};
  MUST(ist_layout_indexed(3, lengths, at, ist_layout_of(IST_INT32), layout));
  MUST(ist_layout_commit(*layout));
  std::int64_t extent = 0;
  MUST(ist_layout_extent(*layout, nullptr, &extent));
  ASSERT_EQ(extent, 48);
  for (std::int64_t i = 0; i < count; ++i)
    for (int block = 0; block < 3; ++block)
      for (std::int64_t byte = 0; byte < 4 * lengths[block]; ++byte) places.push_back(i * extent + at[block] * 4 + byte);
}

TEST_F(LayoutPack, from_every_kind_to_every_kind_and_back_any_part_of_any_count) {
  for (const std::int64_t count : {1, 2, 50, 60000}) {
    ist_layout layout = IST_LAYOUT_NULL;
    std::vector<std::int64_t> places;
    make_crooked(&layout, places, count);
    const auto size = static_cast<std::int64_t>(places.size());
    const std::size_t begin = 16 + 4;  // the layout begins 16 bytes before the buffer
    for (const ist_kind from : kinds_) {
      for (const ist_kind to : kinds_) {
        for (const auto& [first, last] : {std::pair<std::int64_t, std::int64_t>{0, IST_TO_END}, {3, size - 5}, {7, 8}}) {
          const auto end = last == IST_TO_END ? size : last;
          Data in_memory = random_bytes(begin + static_cast<std::size_t>(count) * 48 + 8);
          Data in_packed = random_bytes(static_cast<std::size_t>(end - first) + 9);
          const ist_buffer memory = take(from, in_memory);
          const ist_buffer packed = take(to, in_packed);
          MUST(ist_pack(world_, ist_buffer_at(memory, begin), count, layout, first, last, ist_buffer_at(packed, 4)));
          for (std::int64_t i = first; i < end; ++i)
            in_packed[static_cast<std::size_t>(i - first) + 4] =
                in_memory[static_cast<std::size_t>(places[static_cast<std::size_t>(i)] + static_cast<std::int64_t>(begin))];
          ASSERT_EQ(read(packed, in_packed.size()), in_packed) << from << " to " << to;
          const Data other = random_bytes(static_cast<std::size_t>(end - first));
          const ist_buffer source = take(to, other);
          MUST(ist_unpack(world_, source, first, last, ist_buffer_at(memory, begin), count, layout));
          for (std::int64_t i = first; i < end; ++i)
            in_memory[static_cast<std::size_t>(places[static_cast<std::size_t>(i)] + static_cast<std::int64_t>(begin))] =
                other[static_cast<std::size_t>(i - first)];
          ASSERT_EQ(read(memory, in_memory.size()), in_memory) << to << " back to " << from;
        }
      }
    }
    MUST(ist_layout_free(&layout));
  }
}

TEST_F(LayoutPack, what_lies_in_one_piece_is_copied) {
  ist_layout row = IST_LAYOUT_NULL;
  const std::int64_t sizes[] = {4, 100}, subsizes[] = {1, 50}, starts[] = {2, 25};
  MUST(ist_layout_subarray(2, sizes, subsizes, starts, IST_ORDER_C, ist_layout_of(IST_INT16), &row));
  MUST(ist_layout_commit(row));
  for (const ist_kind from : kinds_) {
    for (const ist_kind to : kinds_) {
      const Data in_memory = random_bytes(800);
      const ist_buffer memory = take(from, in_memory);
      const ist_buffer packed = take(to, random_bytes(90));
      MUST(ist_pack(world_, memory, 1, row, 10, IST_TO_END, packed));
      EXPECT_EQ(read(packed, 90), Data(in_memory.begin() + 460, in_memory.begin() + 550));
    }
  }
  MUST(ist_layout_free(&row));
}

TEST_F(LayoutPack, errors_say_what_to_do_and_touch_nothing) {
  ist_layout vector = IST_LAYOUT_NULL, twice = IST_LAYOUT_NULL;
  MUST(ist_layout_vector(4, 1, 2, ist_layout_of(IST_INT32), &vector));
  Data memory = random_bytes(64), packed = random_bytes(64);
  const Data memory_before = memory, packed_before = packed;
  const ist_buffer from = ist_host(memory.data()), to = ist_host(packed.data());
  EXPECT_ERROR(IST_ERR_ARGUMENT, ist_pack(world_, from, 1, vector, 0, IST_TO_END, to), "call ist_layout_commit once");
  MUST(ist_layout_commit(vector));
  EXPECT_ERROR(IST_ERR_ARGUMENT, ist_pack(world_, from, -1, vector, 0, IST_TO_END, to), "count is -1");
  EXPECT_ERROR(IST_ERR_ARGUMENT, ist_pack(world_, from, 1, vector, 17, IST_TO_END, to), "first is 17");
  EXPECT_ERROR(IST_ERR_ARGUMENT, ist_pack(world_, from, 1, vector, -1, IST_TO_END, to), "first is -1");
  EXPECT_ERROR(IST_ERR_ARGUMENT, ist_pack(world_, from, 1, vector, 4, 17, to), "last is 17");
  EXPECT_ERROR(IST_ERR_ARGUMENT, ist_pack(world_, from, 1, vector, 4, 3, to), "last is 3");
  EXPECT_ERROR(IST_ERR_ARGUMENT, ist_pack(world_, ist_host(nullptr), 1, vector, 0, IST_TO_END, to), "null buffer");
  EXPECT_ERROR(IST_ERR_ARGUMENT, ist_pack(world_, from, 1, vector, 0, IST_TO_END, ist_host(nullptr)), "packed: a null");
  EXPECT_ERROR(IST_ERR_HANDLE, ist_pack(world_, from, 1, IST_LAYOUT_NULL, 0, IST_TO_END, to), "layout is null");
  EXPECT_ERROR(IST_ERR_HANDLE, ist_pack(IST_WORLD_NULL, from, 1, vector, 0, IST_TO_END, to), "world");
  MUST(ist_layout_vector(3, 2, 1, ist_layout_of(IST_INT32), &twice));
  MUST(ist_layout_commit(twice));
  EXPECT_ERROR(IST_ERR_ARGUMENT, ist_unpack(world_, to, 0, IST_TO_END, from, 1, twice), "has a byte twice");
  // More bytes than they reach over, in more blocks than are looked at.
  ist_layout inner = IST_LAYOUT_NULL, many = IST_LAYOUT_NULL;
  MUST(ist_layout_hvector(2000, 1, 5, ist_layout_of(IST_INT16), &inner));
  MUST(ist_layout_hvector(2000, 1, 2, inner, &many));
  MUST(ist_layout_commit(many));
  EXPECT_ERROR(IST_ERR_ARGUMENT, ist_unpack(world_, to, 0, IST_TO_END, from, 1, many), "has a byte twice");
  MUST(ist_layout_free(&inner));
  MUST(ist_layout_free(&many));
  // Nothing is looked at where there is nothing to move.
  MUST(ist_pack(world_, ist_host(nullptr), 0, vector, 0, IST_TO_END, ist_host(nullptr)));
  MUST(ist_pack(world_, from, 1, vector, 16, IST_TO_END, ist_host(nullptr)));
  EXPECT_EQ(memory, memory_before);
  EXPECT_EQ(packed, packed_before);
  MUST(ist_pack(world_, from, 1, twice, 0, IST_TO_END, to));
  EXPECT_EQ(0, std::memcmp(packed.data() + 8, memory.data() + 4, 8));
  for (const ist_kind kind : kinds_) {
    if (kind == IST_KIND_HOST) continue;
    const ist_buffer small = take(kind, random_bytes(20));
    EXPECT_NE(IST_OK, ist_pack(world_, small, 1, vector, 0, IST_TO_END, to)) << "reaches behind the memory, kind " << kind;
    if (kind != IST_KIND_OPENCL) continue;
    ist_layout before = IST_LAYOUT_NULL;
    const std::int64_t places[] = {-2, 0};
    MUST(ist_layout_indexed_block(2, 1, places, ist_layout_of(IST_INT32), &before));
    MUST(ist_layout_commit(before));
    EXPECT_ERROR(IST_ERR_ARGUMENT, ist_pack(world_, small, 1, before, 0, IST_TO_END, to), "8 bytes before the buffer");
    MUST(ist_layout_free(&before));
  }
  MUST(ist_layout_free(&vector));
  MUST(ist_layout_free(&twice));
}

}  // namespace
