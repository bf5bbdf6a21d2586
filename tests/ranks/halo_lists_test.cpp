// Exchanges of elements that are listed, in all kinds of memory. Run on 1, 2, 4, 6 and 8 ranks.
#include "halo_support.hpp"

namespace {

using namespace rank_test;

// Every rank has 40 elements of its own, and behind them three from each rank: those with numbers 7, 3 and 30 there.
TEST(HaloLists, of_every_kind_by_every_packing_and_way_bring_the_elements_that_were_named) {
  constexpr std::int64_t kSend[] = {7, 3, 30};
  const auto all = static_cast<std::size_t>(size()), elements = 40 + 3 * all;
  std::vector<std::array<std::int64_t, 3>> places(all);
  std::vector<int> ranks;
  std::vector<std::int64_t> counts(all, 3);
  std::vector<const std::int64_t*> sends(all, kSend), receives;
  for (std::size_t r = 0; r < all; ++r) {
    const auto at = static_cast<std::int64_t>(40 + 3 * r);
    places[r] = {at + 2, at, at + 1};  // in another order
    ranks.push_back(static_cast<int>(all - 1 - r));
    receives.push_back(places[r].data());
  }
  const ist_halo_lists lists{size(), ranks.data(), counts.data(), sends.data(), counts.data(), receives.data()};
  for (const ist_kind kind : all_kinds())
    for (const ist_halo_packing packing : {IST_HALO_AUTO, IST_HALO_CALLS, IST_HALO_LAYOUTS, IST_HALO_LOOPS})
      for (const ist_halo_way way : {IST_HALO_MESSAGES, IST_HALO_ONE_SIDED}) {
        if (kind == IST_KIND_OPENCL && way == IST_HALO_ONE_SIDED) continue;
        GuardedBuffer eights(kind, 8 * elements), threes(kind, 3 * elements);
        const ist_halo_field fields[] = {{threes.get(), 3, nullptr, nullptr}, {eights.get(), 8, nullptr, nullptr}};
        const ist_halo_options options{sizeof options, 0, packing, way, 0};
        ist_halo halo = IST_HALO_NULL;
        IST_OK_OR_FAIL(ist_halo_create_lists(comm(), &lists, 2, fields, &options, &halo));
        for (int step = 0; step < 2; ++step) {
          const auto seed = [&](std::size_t from, std::size_t element) {
            return from * 100 + element * 10 + static_cast<std::size_t>(step);
          };
          eights.poison(), threes.poison();
          eights.fill(random_bytes(8 * 40, seed(at(rank()), 8))), threes.fill(random_bytes(3 * 40, seed(at(rank()), 3)));
          IST_OK_OR_FAIL(ist_halo_pack(halo));
          IST_OK_OR_FAIL(ist_halo_exchange(halo));
          IST_OK_OR_FAIL(ist_halo_unpack(halo));
          for (const std::size_t element : {std::size_t{8}, std::size_t{3}}) {
            auto expected = random_bytes(element * 40, seed(at(rank()), element));
            expected.resize(element * elements, 0xa5);
            for (std::size_t r = 0; r < all; ++r) {
              const auto theirs = random_bytes(element * 40, seed(at(ranks[r]), element));
              for (std::size_t i = 0; i < 3; ++i)
                std::copy_n(theirs.begin() + static_cast<std::ptrdiff_t>(element) * kSend[i], element,
                            expected.begin() + static_cast<std::ptrdiff_t>(element) * places[r][i]);
            }
            (element == 8 ? eights : threes).expect(expected, "elements of " + std::to_string(element));
          }
        }
        IST_OK_OR_FAIL(ist_halo_free(&halo));
        if (HasFailure()) FAIL() << "kind " << kind << ", packing " << packing << ", way " << way;
      }
}

TEST(HaloLists, that_cannot_be_are_refused_at_all_ranks) {
  std::vector<double> field(10);
  const ist_halo_field given{ist_host(field.data()), 8, nullptr, nullptr};
  std::int64_t numbers[] = {1, 2}, places[] = {3, 4}, two = 2, none = 0;
  const std::int64_t *send = numbers, *receive = places;
  int other = rank();
  ist_halo_lists lists{1, &other, &two, &send, &two, &receive};
  const auto refused = [&](int code, const char* words) {
    ist_halo halo = IST_HALO_NULL;
    EXPECT_EQ(code, ist_halo_create_lists(comm(), &lists, 1, &given, nullptr, &halo));
    EXPECT_NE(std::string{ist_error_text()}.find(words), std::string::npos) << words << " in: " << ist_error_text();
  };
  places[1] = 3;
  refused(IST_ERR_ARGUMENT, "element 3 is received twice");
  places[1] = -4;
  refused(IST_ERR_ARGUMENT, "has element -4 at 1");
  places[1] = 4, other = size();
  refused(IST_ERR_RANK, "the communicator has ranks 0 to");
  other = rank(), lists.send_counts = &none;
  refused(IST_ERR_ARGUMENT, "would send 0 bytes of field 0, and this rank has room for 16 of it");
  lists.send_counts = &two;
  // The last of five elements is number 4, for whoever says that there are five.
  ist_halo_range length{0, 0, 0, 3, 4};
  ist_halo_field known = given;
  known.ranges = &length;
  ist_halo halo = IST_HALO_NULL;
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_create_lists(comm(), &lists, 1, rank() == 0 ? &known : &given, nullptr, &halo));
  EXPECT_NE(std::string{ist_error_text()}.find("rank 0: field 0 has 4 elements, and element 4 is listed"), std::string::npos)
      << ist_error_text();
  length.total_length = 5;
  IST_OK_OR_FAIL(ist_halo_create_lists(comm(), &lists, 1, &known, nullptr, &halo));
  length.total_length = 4;
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_set_fields(halo, 1, &known));
  IST_OK_OR_FAIL(ist_halo_set_fields(halo, 1, &given));
  IST_OK_OR_FAIL(ist_halo_free(&halo));
  lists.sends = nullptr;
  refused(IST_ERR_ARGUMENT, "is null; give one for each neighbour");
}

}  // namespace
