// Reductions whose input lies where the result comes, in memory that all ranks see and by messages: what a rank combines last is not lost, and a
// buffer that is none is an error of the call. Run on 1 to 6 ranks.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "collective_support.hpp"

namespace {

using namespace rank_test;
using namespace collective_test;

using Words = std::vector<std::uint64_t>;

// Of few ranks also more than a chunk.
std::vector<std::size_t> numbers_of_pairs() {
  std::vector<std::size_t> pairs{1, 2, 3, 40, 500, 1000, 2000, 4096, 5000};
  if (size() <= 3) pairs.push_back(40001);
  return pairs;
}

// The linear function a t + b after another one: associative, and no two orders give the same.
void apply(const void* with, void* into, std::int64_t count, ist_type /*type*/, void* /*user*/) {
  const auto* outer = static_cast<const std::uint64_t*>(with);
  auto* inner = static_cast<std::uint64_t*>(into);
  for (std::int64_t i = 0; i < count; ++i, outer += 2, inner += 2) {
    inner[1] = outer[0] * inner[1] + outer[1];
    inner[0] = outer[0] * inner[0];
  }
}

Words functions_of(int from, std::size_t pairs) {
  const auto bytes = random_bytes(pairs * 16, 31U * static_cast<unsigned>(from) + static_cast<unsigned>(pairs));
  Words words(pairs * 2);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

// All ranks', in their order; or their sum.
Words combined(std::size_t pairs, bool in_order) {
  Words all = functions_of(size() - 1, pairs);
  for (int from = size() - 2; from >= 0; --from) {
    const Words theirs = functions_of(from, pairs);
    if (in_order) apply(theirs.data(), all.data(), static_cast<std::int64_t>(pairs), IST_INT64_INT64, nullptr);
    for (std::size_t i = 0; !in_order && i < all.size(); ++i) all[i] += theirs[i];
  }
  return all;
}

class InPlace : public testing::TestWithParam<Form> {
 protected:
  void SetUp() override { IST_OK_OR_FAIL(ist_op_create(apply, nullptr, 0, &ordered_)); }
  void TearDown() override { IST_OK_OR_FAIL(ist_op_free(&ordered_)); }
  ist_op ordered_ = IST_OP_NULL;
};
INSTANTIATE_TEST_SUITE_P(Each, InPlace, testing::Values(Form::blocking, Form::nonblocking), name_of);

TEST_P(InPlace, EveryRanksInputIsInTheResultInItsOrder) {
  const auto ranks = static_cast<std::size_t>(size());
  for (const std::size_t pairs : numbers_of_pairs())
    for (const bool in_order : {true, false}) {
      SCOPED_TRACE(std::to_string(pairs) + (in_order ? " in order" : " in sum"));
      const ist_type type = in_order ? IST_INT64_INT64 : IST_UINT64;
      const ist_op op = in_order ? ordered_ : IST_SUM;
      const auto count = static_cast<std::int64_t>(in_order ? pairs : 2 * pairs);
      const Words expected = combined(pairs, in_order);
      Calls calls{GetParam()};
      Words all = functions_of(rank(), pairs);
      IST_OK_OR_FAIL(calls(ist_allreduce, ist_iallreduce, IST_IN_PLACE, ist_host(all.data()), count, type, op, comm()));
      std::vector<Words> at(ranks, functions_of(rank(), pairs));
      for (int root = 0; root < size(); ++root) {
        const ist_buffer mine = ist_host(at[static_cast<std::size_t>(root)].data());
        IST_OK_OR_FAIL(
            calls(ist_reduce, ist_ireduce, root == rank() ? IST_IN_PLACE : mine, mine, count, type, op, root, comm()));
      }
      // A part for each rank, of a vector that is as many times as long.
      Words parts = functions_of(rank(), pairs * ranks);
      IST_OK_OR_FAIL(calls(ist_reduce_scatter_block, ist_ireduce_scatter_block, IST_IN_PLACE, ist_host(parts.data()), count,
                           type, op, comm()));
      IST_OK_OR_FAIL(calls.finish());
      EXPECT_TRUE(expected == all) << "allreduce";
      EXPECT_TRUE(expected == at[static_cast<std::size_t>(rank())]) << "reduce";
      const Words of_parts = combined(pairs * ranks, in_order);
      const auto place = static_cast<std::ptrdiff_t>(2 * pairs * static_cast<std::size_t>(rank()));
      EXPECT_TRUE(
          std::equal(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(2 * pairs), of_parts.begin() + place))
          << "reduce_scatter_block";
    }
}

// On one rank in turn; the others hear of it.
TEST_P(InPlace, ABufferThatIsNoneIsAnErrorOfTheCall) {
  for (const std::int64_t count : {4, 1000, 2000})
    for (int wrong = 0; wrong < size(); ++wrong)
      for (const bool in_order : {true, false})
        for (const bool in_parts : {true, false}) {
          SCOPED_TRACE(std::to_string(count) + " of rank " + std::to_string(wrong));
          Words words(static_cast<std::size_t>(2 * count * size()), 3);
          const ist_buffer mine = rank() == wrong ? ist_host(nullptr) : ist_host(words.data());
          const ist_op op = in_order ? ordered_ : IST_SUM;
          const ist_type type = in_order ? IST_INT64_INT64 : IST_UINT64;
          Calls calls{GetParam()};
          int code = in_parts ? calls(ist_reduce_scatter_block, ist_ireduce_scatter_block, IST_IN_PLACE, mine, count, type,
                                      op, comm())
                              : calls(ist_allreduce, ist_iallreduce, IST_IN_PLACE, mine, count, type, op, comm());
          if (code == IST_OK) code = calls.finish();
          EXPECT_NE(IST_OK, code);
          IST_OK_OR_FAIL(ist_barrier(comm()));
        }
}

}  // namespace
