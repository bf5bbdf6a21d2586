// The allocator of symmetric heaps against a model that knows every byte's owner.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "heap/offset_allocator.hpp"

namespace {

using namespace ist;

constexpr std::uint64_t kLine = OffsetAllocator::kLine;

// One owner per line; 0: free.
class Model {
 public:
  explicit Model(std::uint64_t lines) : owner_(lines, 0) {}
  void grow(std::uint64_t lines) { owner_.resize(lines, 0); }
  bool take(std::uint64_t first, std::uint64_t count, int owner) {
    if (first + count > owner_.size()) return false;
    for (std::uint64_t i = first; i < first + count; ++i) {
      if (owner_[i] != 0) return false;
      owner_[i] = owner;
    }
    return true;
  }
  std::uint64_t give(int owner) {
    std::uint64_t count = 0;
    for (int& each : owner_)
      if (each == owner) each = 0, ++count;
    return count;
  }
  std::uint64_t free() const { return static_cast<std::uint64_t>(std::count(owner_.begin(), owner_.end(), 0)); }
  std::uint64_t largest() const {
    std::uint64_t most = 0;
    std::uint64_t run = 0;
    for (const int each : owner_) most = std::max(most, run = each == 0 ? run + 1 : 0);
    return most;
  }
  // Is there room for so many lines at such a multiple?
  bool fits(std::uint64_t base, std::uint64_t count, std::uint64_t alignment) const {
    for (std::uint64_t first = 0; first + count <= owner_.size(); ++first) {
      if ((base + first * kLine) % alignment != 0) continue;
      bool good = true;
      for (std::uint64_t i = first; good && i < first + count; ++i) good = owner_[i] == 0;
      if (good) return true;
    }
    return false;
  }

 private:
  std::vector<int> owner_;
};

TEST(OffsetAllocator, AgreesWithAModelInAnyOrderOfCalls) {
  constexpr std::uint64_t kBegin = 5 * kLine;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    std::uint64_t lines = 64;
    OffsetAllocator one{Offset{kBegin}, Offset{kBegin + lines * kLine}};
    OffsetAllocator other{Offset{kBegin}, Offset{kBegin + lines * kLine}};
    Model model{lines};
    std::map<int, Offset> live;
    for (int step = 1; step <= 600; ++step) {
      const std::string where = "seed " + std::to_string(seed) + ", step " + std::to_string(step);
      if (step % 200 == 0) {
        lines += 37;
        one.grow(Offset{kBegin + lines * kLine});
        other.grow(Offset{kBegin + lines * kLine});
        model.grow(lines);
      }
      if (!live.empty() && random() % 2 == 0) {
        const auto victim = std::next(live.begin(), static_cast<long>(random() % live.size()));
        const std::uint64_t freed = model.give(victim->first) * kLine;
        const auto released = one.release(victim->second);
        ASSERT_TRUE(released.ok()) << where << ": " << released.status().text();
        ASSERT_EQ(freed, released->value) << where;
        ASSERT_TRUE(other.release(victim->second).ok()) << where;
        ASSERT_FALSE(one.release(victim->second).ok()) << where;
        live.erase(victim);
      } else {
        const std::uint64_t size = random() % 7 == 0 ? 0 : random() % (12 * kLine);
        const std::uint64_t alignment = std::uint64_t{1} << random() % 11;
        const std::uint64_t count = (std::max<std::uint64_t>(size, 1) + kLine - 1) / kLine;
        const bool fits = model.fits(kBegin, count, std::max(alignment, kLine));
        const auto offset = one.allocate(Bytes{size}, alignment);
        const auto again = other.allocate(Bytes{size}, alignment);
        ASSERT_EQ(fits, offset.ok()) << where << ": " << offset.status().text();
        ASSERT_EQ(fits, again.ok()) << where;
        if (fits) {
          ASSERT_EQ(offset->value, again->value) << where;
          ASSERT_EQ(0U, offset->value % std::max(alignment, kLine)) << where;
          ASSERT_TRUE(model.take((offset->value - kBegin) / kLine, count, step)) << where;
          ASSERT_EQ(count * kLine, one.size_at(*offset).value) << where;
          live.emplace(step, *offset);
        } else {
          ASSERT_EQ(IST_ERR_MEMORY, offset.status().code()) << where;
        }
      }
      ASSERT_EQ(model.free() * kLine, one.free().value) << where;
      ASSERT_EQ(model.largest() * kLine, one.largest().value) << where;
    }
    for (const auto& [name, offset] : live) ASSERT_TRUE(one.release(offset).ok());
    EXPECT_EQ(lines * kLine, one.largest().value) << "what is free has not joined, seed " << seed;
  }
}

TEST(OffsetAllocator, SaysWhatWasAskedForAndWhatThereIs) {
  OffsetAllocator heap{Offset{0}, Offset{16 * kLine}};
  const auto first = heap.allocate(Bytes{4 * kLine});
  const auto second = heap.allocate(Bytes{4 * kLine});
  ASSERT_TRUE(first.ok() && second.ok());
  ASSERT_TRUE(heap.release(*first).ok());
  const auto none = heap.allocate(Bytes{9 * kLine});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(IST_ERR_MEMORY, none.status().code());
  for (const char* part : {"576 bytes", "768 bytes are free", "largest block has 512", "ist_heap_grow"})
    EXPECT_NE(std::string::npos, none.status().text().find(part)) << none.status().text();
}

TEST(OffsetAllocator, RefusesWhatNoHeapCanGive) {
  OffsetAllocator heap{Offset{100}, Offset{1 << 20}};
  for (const std::uint64_t alignment : {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{96}, ~std::uint64_t{0}})
    EXPECT_EQ(IST_ERR_ARGUMENT, heap.allocate(Bytes{1}, alignment).status().code()) << alignment;
  for (const std::uint64_t size :
       {~std::uint64_t{0}, ~std::uint64_t{0} - 63, std::uint64_t{1} << 63U, std::uint64_t{1} << 20U})
    EXPECT_EQ(IST_ERR_MEMORY, heap.allocate(Bytes{size}).status().code()) << size;
  EXPECT_EQ(IST_ERR_MEMORY, heap.allocate(Bytes{1}, std::uint64_t{1} << 62U).status().code());
  EXPECT_EQ(IST_ERR_ARGUMENT, heap.release(Offset{128}).status().code());
  const auto offset = heap.allocate(Bytes{1000});
  ASSERT_TRUE(offset.ok());
  EXPECT_EQ(IST_ERR_ARGUMENT, heap.release(*offset + Bytes{64}).status().code());
}

// Where memory is in pieces nothing lies on both sides of a seam, whatever was freed beside it.
TEST(OffsetAllocator, NothingLiesOnBothSidesOfASeam) {
  OffsetAllocator allocator{Offset{0}, Offset{10 * kLine}};
  allocator.grow(Offset{25 * kLine}, true);
  EXPECT_EQ(25 * kLine, allocator.free().value);
  EXPECT_EQ(15 * kLine, allocator.largest().value);
  EXPECT_FALSE(allocator.allocate(Bytes{16 * kLine}).ok());
  const auto one = allocator.allocate(Bytes{15 * kLine});
  const auto other = allocator.allocate(Bytes{10 * kLine});
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_EQ(10 * kLine, one->value);
  EXPECT_EQ(0U, other->value);
  // In either order.
  ASSERT_TRUE(allocator.release(*one).ok());
  ASSERT_TRUE(allocator.release(*other).ok());
  EXPECT_EQ(15 * kLine, allocator.largest().value);
  const auto again = allocator.allocate(Bytes{12 * kLine});
  const auto beside = allocator.allocate(Bytes{kLine});
  ASSERT_TRUE(again.ok() && beside.ok());
  ASSERT_TRUE(allocator.release(*beside).ok());
  ASSERT_TRUE(allocator.release(*again).ok());
  EXPECT_EQ(15 * kLine, allocator.largest().value);
  allocator.grow(Offset{30 * kLine});
  EXPECT_EQ(20 * kLine, allocator.largest().value);
}

}  // namespace
