// Reductions of long vectors of the host, whose elements are combined as they come: out of the ring, out of memory that the ranks see, and out of
// neither; in place and not. On 1 to 6 ranks.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "collective_support.hpp"

namespace {

using namespace rank_test;
using namespace collective_test;

// Around what goes without its receive, a chunk, and two of them.
constexpr std::size_t kCounts[] = {16383, 16385, 65536, 65537, 131075};

// Numbers of the host's, in memory that the other ranks see or not.
class HostNumbers {
 public:
  HostNumbers(std::size_t count, bool seen) : count_(count), seen_(seen), own_(seen ? 0 : count) {
    if (!seen_) return;
    EXPECT_EQ(IST_OK, ist_memory_alloc(world(), IST_KIND_HOST, 0, std::max<std::size_t>(count, 1) * 8, &buffer_))
        << ist_error_text();
  }
  HostNumbers(const HostNumbers&) = delete;
  HostNumbers& operator=(const HostNumbers&) = delete;
  ~HostNumbers() {
    if (!seen_) return;
    EXPECT_EQ(IST_OK, ist_memory_free(world(), buffer_));
  }
  std::uint64_t* data() { return seen_ ? reinterpret_cast<std::uint64_t*>(buffer_.object) : own_.data(); }
  std::size_t size() const { return count_; }
  ist_buffer get() { return ist_host(data()); }

 private:
  std::size_t count_;
  bool seen_;
  std::vector<std::uint64_t> own_;
  ist_buffer buffer_{};
};

std::uint64_t word(std::size_t i) { return (i + 1) * 0x9e3779b97f4a7c15; }
void fill(HostNumbers& numbers, int of) {
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers.data()[i] = word(i) * static_cast<std::uint64_t>(of + 1);
}
void poison(HostNumbers& numbers) { std::memset(numbers.data(), 0xa5, numbers.size() * 8); }

// The sum of what ranks 0 to `ranks` - 1 have, from the element `first` on.
void expect_sum(HostNumbers& found, std::size_t first, std::size_t count, int ranks, const char* what) {
  const auto times = static_cast<std::uint64_t>(ranks * (ranks + 1) / 2);
  for (std::size_t i = 0; i < count; ++i)
    ASSERT_EQ(found.data()[i], word(first + i) * times) << what << ", element " << i << " of " << count;
}

class FoldedSums : public testing::TestWithParam<std::tuple<Form, bool, bool>> {
 protected:
  // The result's buffer, and what is given as the input: in place, or another buffer.
  ist_buffer input(HostNumbers& send, HostNumbers& recv) {
    fill(in_place_ ? recv : send, rank());
    if (in_place_) return IST_IN_PLACE;
    poison(recv);
    return send.get();
  }
  const Form form_ = std::get<0>(GetParam());
  const bool seen_ = std::get<1>(GetParam());
  const bool in_place_ = std::get<2>(GetParam());
};
INSTANTIATE_TEST_SUITE_P(Each, FoldedSums,
                         testing::Combine(testing::Values(Form::blocking, Form::nonblocking), testing::Bool(),
                                          testing::Bool()));

TEST_P(FoldedSums, ToOneAndToAll) {
  for (const std::size_t count : kCounts) {
    HostNumbers send{count, seen_}, recv{count, seen_};
    const auto n = static_cast<std::int64_t>(count);
    for (int root = 0; root < size(); ++root) {
      Calls calls{form_};
      const ist_buffer in = input(send, recv);
      const ist_buffer mine = rank() == root || !in_place_ ? in : recv.get();
      IST_OK_OR_FAIL(calls(ist_reduce, ist_ireduce, mine, recv.get(), n, IST_UINT64, IST_SUM, root, comm()));
      IST_OK_OR_FAIL(calls.finish());
      if (rank() == root) expect_sum(recv, 0, count, size(), "reduce");
    }
    Calls calls{form_};
    const ist_buffer in = input(send, recv);
    IST_OK_OR_FAIL(calls(ist_allreduce, ist_iallreduce, in, recv.get(), n, IST_UINT64, IST_SUM, comm()));
    IST_OK_OR_FAIL(calls.finish());
    expect_sum(recv, 0, count, size(), "allreduce");
  }
}

TEST_P(FoldedSums, InPartsAndUpToEachRank) {
  for (const std::size_t count : kCounts) {
    const auto n = static_cast<std::int64_t>(count);
    const std::size_t all = count * static_cast<std::size_t>(size());
    {
      HostNumbers send{all, seen_}, recv{in_place_ ? all : count, seen_};
      Calls calls{form_};
      const ist_buffer in = input(send, recv);
      IST_OK_OR_FAIL(
          calls(ist_reduce_scatter_block, ist_ireduce_scatter_block, in, recv.get(), n, IST_UINT64, IST_SUM, comm()));
      IST_OK_OR_FAIL(calls.finish());
      expect_sum(recv, count * static_cast<std::size_t>(rank()), count, size(), "reduce_scatter");
    }
    HostNumbers send{count, seen_}, recv{count, seen_};
    Calls calls{form_};
    const ist_buffer in = input(send, recv);
    IST_OK_OR_FAIL(calls(ist_scan, ist_iscan, in, recv.get(), n, IST_UINT64, IST_SUM, comm()));
    IST_OK_OR_FAIL(calls.finish());
    expect_sum(recv, 0, count, rank() + 1, "scan");
    Calls more{form_};
    const ist_buffer again = input(send, recv);
    IST_OK_OR_FAIL(more(ist_exscan, ist_iexscan, again, recv.get(), n, IST_UINT64, IST_SUM, comm()));
    IST_OK_OR_FAIL(more.finish());
    if (rank() > 0) expect_sum(recv, 0, count, rank(), "exscan");
  }
}

// A minimum is its right operand where the left one is no number, so that each side shows: of two ranks the second one's is the left, to whichever
// it goes, and in a scan the first one's.
TEST(Folded, TheSidesAreThoseOfRanksAndNotOfWhoReceives) {
  if (size() != 2) GTEST_SKIP() << "not covered here: the sides of two operands, which takes two ranks";
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const std::size_t count = 70001;
  for (const bool seen : {false, true})
    for (int call = 0; call < 4; ++call) {
      HostNumbers send{count, seen}, recv{count, seen};
      auto* const mine = reinterpret_cast<double*>(send.data());
      for (std::size_t i = 0; i < count; ++i)
        mine[i] = (i + static_cast<std::size_t>(rank())) % 2 == 0 ? kNone : 1.0 + rank();
      const auto n = static_cast<std::int64_t>(count);
      const int root = call < 2 ? call : 1;
      if (call < 2) {
        IST_OK_OR_FAIL(ist_reduce(send.get(), recv.get(), n, IST_DOUBLE, IST_MIN, root, comm()));
      } else if (call == 2) {
        IST_OK_OR_FAIL(ist_allreduce(send.get(), recv.get(), n, IST_DOUBLE, IST_MIN, comm()));
      } else {
        IST_OK_OR_FAIL(ist_scan(send.get(), recv.get(), n, IST_DOUBLE, IST_MIN, comm()));
      }
      if (call != 2 && rank() != root) continue;
      // Where exactly one of the two is no number: the right operand.
      const int right = call == 3 ? 1 : 0;
      const auto* const found = reinterpret_cast<const double*>(recv.data());
      for (std::size_t i = 0; i < count; ++i) {
        const bool none = (i + static_cast<std::size_t>(right)) % 2 == 0;
        ASSERT_TRUE(none ? std::isnan(found[i]) : found[i] == 1.0 + right) << "call " << call << ", element " << i;
      }
    }
}

// The last rank has given it up before the others come, who have combined nothing: they hear what it did.
TEST(Folded, InPlaceWithARankThatGaveTheCallUpSaysSo) {
  if (size() == 1) GTEST_SKIP() << "not covered here: a call that others make, too; takes two ranks";
  const int last = size() - 1;
  for (const bool seen : {false, true})
    for (const std::size_t count : {std::size_t{17000}, std::size_t{70001}, std::size_t{131075}}) {
      SCOPED_TRACE(std::to_string(count) + (seen ? " seen" : ""));
      HostNumbers numbers{count, seen};
      fill(numbers, rank());
      const auto n = static_cast<std::int64_t>(count);
      int word = 0;
      if (rank() != last) IST_OK_OR_FAIL(ist_recv(ist_host(&word), 1, IST_INT, last, 711, comm(), IST_STATUS_IGNORE));
      ist_request request = IST_REQUEST_NULL;
      IST_OK_OR_FAIL(ist_iallreduce(IST_IN_PLACE, numbers.get(), n, IST_UINT64, IST_SUM, comm(), &request));
      if (rank() == last) {
        IST_OK_OR_FAIL(ist_cancel(request));
        ist_status status{};
        IST_OK_OR_FAIL(ist_wait(&request, &status));
        EXPECT_EQ(IST_CANCELLED, status.code);
        for (int to = 0; to < last; ++to) IST_OK_OR_FAIL(ist_send(ist_host(&word), 1, IST_INT, to, 711, comm()));
      } else {
        EXPECT_EQ(IST_ERR_PENDING, ist_wait(&request, IST_STATUS_IGNORE)) << ist_error_text();
        EXPECT_NE(nullptr, std::strstr(ist_error_text(), ("rank " + std::to_string(last)).c_str())) << ist_error_text();
      }
      IST_OK_OR_FAIL(ist_barrier(comm()));
      fill(numbers, rank());
      IST_OK_OR_FAIL(ist_allreduce(IST_IN_PLACE, numbers.get(), n, IST_UINT64, IST_SUM, comm()));
      expect_sum(numbers, 0, count, size(), "the call after it");
    }
}

}  // namespace
