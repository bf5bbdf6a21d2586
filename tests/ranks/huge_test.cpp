// One message beyond 4 GiB, where sizes and offsets no longer fit 32 bits. Run on 2 ranks.
#include <sys/mman.h>
#include <unistd.h>

#include "rank_test.hpp"

namespace {

using namespace rank_test;

// The buffer's pages are the same ones over and over, so that the test needs little memory. Their number is odd: an offset
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

}  // namespace
