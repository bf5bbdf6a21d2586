// Messages and collective calls beyond 4 GiB, where counts, sizes and offsets no longer fit 32 bits. Run on 2 and 3 ranks.
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
constexpr std::uint64_t kRounds = kBytes / kPeriod + 2;  // and a part for each rank may be longer by one

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

// What a status says of elements does not lose its upper bits, whole elements or not.
TEST(Huge, MoreThan2GiElementsAreCountedAndNoneIsCountedOfWhatIsNoWholeNumber) {
  constexpr std::int64_t kMany = (std::int64_t{1} << 31) + 5;
  for (const ist_type type : {IST_BYTE, IST_INT16, IST_DOUBLE, IST_COMPLEX_DOUBLE}) {
    const auto size = static_cast<std::int64_t>(ist_type_size(type));
    ist_status status{};
    status.bytes = kMany * size;
    std::int64_t count = -9;
    IST_OK_OR_FAIL(ist_get_count(&status, type, &count));
    EXPECT_EQ(kMany, count) << "type " << type;
    status.bytes += 1;
    IST_OK_OR_FAIL(ist_get_count(&status, type, &count));
    EXPECT_EQ(size == 1 ? kMany + 1 : IST_UNDEFINED, count) << "type " << type;
  }
}

TEST(Huge, ABroadcastBeyond4GiBArrivesByteForByte) {
  const auto pattern = random_bytes(kPeriod, 98);
  const RepeatedPages pages;
  pages.fill(rank() == 1 ? pattern : std::vector<unsigned char>(kPeriod, 0xa5));
  IST_OK_OR_FAIL(ist_bcast(pages.get(), static_cast<std::int64_t>(kBytes), IST_BYTE, 1, comm()));
  pages.expect(pattern);
}

// A pattern whose first byte is the one that stands `places` behind the first of `pattern`.
std::vector<unsigned char> shifted(const std::vector<unsigned char>& pattern, std::uint64_t places) {
  auto moved = pattern;
  std::rotate(moved.begin(), moved.begin() + static_cast<std::ptrdiff_t>(places % kPeriod), moved.end());
  return moved;
}

std::vector<unsigned char> numbers_of(int rank) { return random_bytes(kPeriod, 200 + static_cast<std::uint64_t>(rank)); }

// Of the ranks before `last`. The greatest of some numbers stays what it is, however often pages that come again are combined.
std::vector<unsigned char> greatest_before(int last) {
  std::vector<unsigned char> greatest(kPeriod);
  for (int rank = 0; rank < last; ++rank) {
    const auto theirs = numbers_of(rank);
    std::transform(theirs.begin(), theirs.end(), greatest.begin(), greatest.begin(),
                   [](unsigned char one, unsigned char other) { return std::max(one, other); });
  }
  return greatest;
}

#define NEEDS_SPEED()                                                                                  \
  if (kSanitized)                                                                                      \
  GTEST_SKIP() << "SKIPPED: combining more than 4 Gi elements takes minutes with a sanitizer; run it " \
                  "without"

// The same numbers everywhere: where pages come again, what is there between two steps of the call is seen in other parts of the vector, too.
TEST(Huge, AnAllreduceOfMoreThan4GiElementsKeepsEachInItsPlace) {
  NEEDS_SPEED();
  const RepeatedPages pages;
  pages.fill(numbers_of(0));
  IST_OK_OR_FAIL(ist_allreduce(IST_IN_PLACE, pages.get(), static_cast<std::int64_t>(kBytes), IST_UINT8, IST_MAX, comm()));
  pages.expect(numbers_of(0));
}

TEST(Huge, AScanOfMoreThan4GiElementsCombinesThoseOfTheRanksBefore) {
  NEEDS_SPEED();
  const RepeatedPages pages;
  pages.fill(numbers_of(rank()));
  IST_OK_OR_FAIL(ist_scan(IST_IN_PLACE, pages.get(), static_cast<std::int64_t>(kBytes), IST_UINT8, IST_MAX, comm()));
  pages.expect(greatest_before(rank() + 1));
}

// Parts, which together are over 4 GiB, and each begins somewhere else among the pages that come again.
struct Shared {
  const std::uint64_t part = kBytes / static_cast<std::uint64_t>(size()) + 1;
  const std::int64_t count = static_cast<std::int64_t>(part);
  const std::uint64_t begin = part * static_cast<std::uint64_t>(rank());
};

TEST(Huge, AReduceScatterOfMoreThan4GiElementsGivesEachRankItsPart) {
  NEEDS_SPEED();
  const Shared all;
  const RepeatedPages whole;
  const RepeatedPages part;
  whole.fill(numbers_of(rank()));
  part.fill(std::vector<unsigned char>(kPeriod, 0xa5));
  IST_OK_OR_FAIL(ist_reduce_scatter_block(whole.get(), part.get(), all.count, IST_UINT8, IST_MAX, comm()));
  part.expect(shifted(greatest_before(size()), all.begin));
  whole.expect(numbers_of(rank()));
}

TEST(Huge, AnAllgatherBeyond4GiBPutsEveryPartInItsPlace) {
  const Shared all;
  const auto pattern = random_bytes(kPeriod, 97);
  const auto mine = shifted(pattern, all.begin);
  const RepeatedPages part;
  const RepeatedPages whole;
  part.fill(mine);
  whole.fill(std::vector<unsigned char>(kPeriod, 0xa5));
  IST_OK_OR_FAIL(ist_allgather(part.get(), all.count, whole.get(), all.count, IST_BYTE, comm()));
  whole.expect(pattern);
  part.expect(mine);
}

// What a rank sends is the pattern from where its own part begins, so that what a rank receives from one and from the next one joins.
TEST(Huge, AnAlltoallBeyond4GiBPutsEveryPartInItsPlace) {
  const Shared all;
  const auto mine = shifted(random_bytes(kPeriod, 96), all.begin);
  const RepeatedPages out;
  const RepeatedPages in;
  out.fill(mine);
  in.fill(std::vector<unsigned char>(kPeriod, 0xa5));
  IST_OK_OR_FAIL(ist_alltoall(out.get(), in.get(), all.count, IST_BYTE, comm()));
  in.expect(mine);
  out.expect(mine);
}

// Short parts that lie beyond 2 Gi elements, in an address space of which nothing else is touched; in the tests above the calls move all
// that lies between.
class Sparse {
 public:
  static constexpr std::uint64_t kBytes = std::uint64_t{6} << 30;
  Sparse() {
    void* all = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(MAP_FAILED, all);
    bytes_ = static_cast<unsigned char*>(all);
  }
  ~Sparse() { EXPECT_EQ(0, ::munmap(bytes_, kBytes)); }
  Sparse(const Sparse&) = delete;
  Sparse& operator=(const Sparse&) = delete;
  ist_buffer get() const { return ist_host(bytes_); }
  void put(std::int64_t element, const std::vector<unsigned char>& part) const {
    std::memcpy(bytes_ + element * 2, part.data(), part.size());
  }
  std::vector<unsigned char> at_element(std::int64_t element, std::size_t bytes) const {
    return {bytes_ + element * 2, bytes_ + element * 2 + bytes};
  }

 private:
  unsigned char* bytes_ = nullptr;
};

// Elements of two bytes, parts of one more than a page of them, from element 2^31 + 3 on, the last rank's first: also in bytes
// they are beyond 2^32, and without their upper bits they lie at the beginning.
struct Far {
  static constexpr std::int64_t kFirst = (std::int64_t{1} << 31) + 3;
  static constexpr std::int64_t kCount = 4097;
  static constexpr std::size_t kBytes = 2 * kCount;
  const std::vector<std::int64_t> counts = std::vector<std::int64_t>(at(size()), kCount);
  std::vector<std::int64_t> places;
  Far() {
    for (int r = 0; r < size(); ++r) places.push_back(kFirst + (size() - 1 - r) * (kCount + 7));
  }
  static std::vector<unsigned char> of(int rank, int to = 0) {
    return random_bytes(kBytes, 300 + static_cast<std::uint64_t>(rank * size() + to));
  }
  void expect(const Sparse& where, int rank, int to, const char* call) const {
    EXPECT_EQ(-1, first_difference(of(rank, to), where.at_element(places[at(rank)], kBytes)))
        << call << ", of rank " << rank;
    EXPECT_EQ(std::vector<unsigned char>(kBytes, 0), where.at_element(places[at(rank)] - (std::int64_t{1} << 31), kBytes))
        << call << " has lost the upper bits of a place";
  }
};

TEST(Huge, PartsBeyond2GiElementsAreGatheredAndScatteredWhereTheyAreToldTo) {
  const Far far;
  const auto mine = Far::of(rank());
  const int root = size() - 1;
  const Sparse at_root;
  IST_OK_OR_FAIL(ist_gatherv(ist_host(mine.data()), Far::kCount, at_root.get(), far.counts.data(), far.places.data(),
                             IST_INT16, root, comm()));
  for (int r = 0; r < size() && rank() == root; ++r) far.expect(at_root, r, 0, "gatherv");
  std::vector<unsigned char> back(Far::kBytes, 0xa5);
  IST_OK_OR_FAIL(ist_scatterv(at_root.get(), far.counts.data(), far.places.data(), ist_host(back.data()), Far::kCount,
                              IST_INT16, root, comm()));
  EXPECT_EQ(-1, first_difference(mine, back)) << "scatterv";
  const Sparse everywhere;
  IST_OK_OR_FAIL(ist_allgatherv(ist_host(mine.data()), Far::kCount, everywhere.get(), far.counts.data(), far.places.data(),
                                IST_INT16, comm()));
  for (int r = 0; r < size(); ++r) far.expect(everywhere, r, 0, "allgatherv");
}

TEST(Huge, PartsBeyond2GiElementsAreExchangedFromAndToWhereTheyAreToldTo) {
  const Far far;
  const Sparse out;
  const Sparse in;
  for (int r = 0; r < size(); ++r) out.put(far.places[at(r)], Far::of(rank(), r));
  IST_OK_OR_FAIL(ist_alltoallv(out.get(), far.counts.data(), far.places.data(), in.get(), far.counts.data(),
                               far.places.data(), IST_INT16, comm()));
  for (int r = 0; r < size(); ++r) far.expect(in, r, rank(), "alltoallv");
}

}  // namespace
