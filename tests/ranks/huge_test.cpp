// Messages and collective calls beyond 4 GiB, where counts, sizes and offsets no longer fit 32 bits. Run on 2 ranks.
#include <isthmus/collective.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "rank_test.hpp"
#include "sanitized.hpp"

namespace {

using namespace rank_test;

// A buffer's pages are the same ones over and over, so that the tests need little memory. Their number is odd: an offset
// that has lost its upper bits lands on other bytes, and the message's end, which is written last, would show it.
constexpr std::uint64_t kPeriod = 16411 * std::uint64_t{4096};
constexpr std::uint64_t kBytes = (std::uint64_t{1} << 32) + 4097;
constexpr std::uint64_t kRounds = kBytes / kPeriod + 1;

class RepeatedPages {
 public:
  RepeatedPages() {
    const int fd = ::memfd_create("repeated", MFD_CLOEXEC);
    EXPECT_EQ(0, ::ftruncate(fd, static_cast<off_t>(kPeriod)));
    void* all = ::mmap(nullptr, kRounds * kPeriod, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(MAP_FAILED, all);
    bytes_ = static_cast<unsigned char*>(all);
    for (std::uint64_t i = 0; i < kRounds; ++i)
      EXPECT_NE(MAP_FAILED, ::mmap(bytes_ + i * kPeriod, kPeriod, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0));
    ::close(fd);
  }
  ~RepeatedPages() { EXPECT_EQ(0, ::munmap(bytes_, kRounds * kPeriod)); }
  RepeatedPages(const RepeatedPages&) = delete;
  RepeatedPages& operator=(const RepeatedPages&) = delete;
  unsigned char* data() const { return bytes_; }
  ist_buffer get() const { return ist_host(bytes_); }
  void fill(const std::vector<unsigned char>& period) const { std::memcpy(bytes_, period.data(), kPeriod); }
  void expect(const std::vector<unsigned char>& period) const {
    EXPECT_EQ(-1, first_difference(period, {bytes_, bytes_ + kPeriod}));
  }

 private:
  unsigned char* bytes_ = nullptr;
};

TEST(Huge, AMessageBeyond4GiBArrivesByteForByte) {
  const auto pattern = random_bytes(kPeriod, 99);
  const RepeatedPages pages;
  if (rank() == 0) {
    std::memcpy(pages.data(), pattern.data(), kPeriod);
    IST_OK_OR_FAIL(ist_send(ist_host(pages.data()), static_cast<int64_t>(kBytes), IST_BYTE, 1, 1, comm()));
  } else if (rank() == 1) {
    std::memset(pages.data(), 0xa5, kPeriod);
    ist_status status{};
    IST_OK_OR_FAIL(ist_recv(ist_host(pages.data()), static_cast<int64_t>(kBytes), IST_BYTE, 0, 1, comm(), &status));
    EXPECT_EQ(static_cast<int64_t>(kBytes), status.bytes);
    EXPECT_EQ(-1, first_difference(pattern, {pages.data(), pages.data() + kPeriod}));
  }
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

TEST(Huge, ABroadcastBeyond4GiBArrivesByteForByte) {
  const auto pattern = random_bytes(kPeriod, 98);
  const RepeatedPages pages;
  pages.fill(rank() == 1 ? pattern : std::vector<unsigned char>(kPeriod, 0xa5));
  IST_OK_OR_FAIL(ist_bcast(pages.get(), static_cast<std::int64_t>(kBytes), IST_BYTE, 1, comm()));
  pages.expect(pattern);
}

// The greater of two numbers stays what it is, however often pages that come again are combined.
TEST(Huge, AnAllreduceOfMoreThan4GiElementsCombinesEachOfThem) {
  if (kSanitized)
    GTEST_SKIP() << "SKIPPED: an allreduce of more than 4 Gi elements, which takes minutes with a sanitizer; run it without";
  const auto mine = random_bytes(kPeriod, 200 + static_cast<std::uint64_t>(rank()));
  const auto theirs = random_bytes(kPeriod, 200 + static_cast<std::uint64_t>(1 - rank()));
  std::vector<unsigned char> greater(kPeriod);
  std::transform(mine.begin(), mine.end(), theirs.begin(), greater.begin(),
                 [](unsigned char one, unsigned char other) { return std::max(one, other); });
  const RepeatedPages pages;
  pages.fill(mine);
  IST_OK_OR_FAIL(ist_allreduce(IST_IN_PLACE, pages.get(), static_cast<std::int64_t>(kBytes), IST_UINT8, IST_MAX, comm()));
  pages.expect(greater);
}

// Each part is over 2 GiB, and begins somewhere else among the pages that come again.
TEST(Huge, AnAllgatherBeyond4GiBPutsEveryPartInItsPlace) {
  constexpr std::uint64_t kPart = (std::uint64_t{1} << 31) + 4099;
  static_assert(2 * kPart <= kRounds * kPeriod);
  constexpr auto count = static_cast<std::int64_t>(kPart);
  const auto pattern = random_bytes(kPeriod, 97);
  auto mine = pattern;
  std::rotate(mine.begin(), mine.begin() + static_cast<std::ptrdiff_t>(static_cast<std::uint64_t>(rank()) * kPart % kPeriod),
              mine.end());
  const RepeatedPages part;
  const RepeatedPages whole;
  part.fill(mine);
  whole.fill(std::vector<unsigned char>(kPeriod, 0xa5));
  IST_OK_OR_FAIL(ist_allgather(part.get(), count, whole.get(), count, IST_BYTE, comm()));
  whole.expect(pattern);
  part.expect(mine);
}

}  // namespace
