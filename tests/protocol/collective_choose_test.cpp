// Which algorithm carries a collective call: what is small goes in few messages, what is large in few bytes; and on invented
// machines every algorithm wins somewhere.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "collective/choose.hpp"
#include "collective/collectives.hpp"

namespace ist {
namespace {

constexpr std::array kCalls{ChosenCall::bcast,          ChosenCall::reduce,   ChosenCall::allreduce, ChosenCall::allgather,
                            ChosenCall::reduce_scatter, ChosenCall::alltoall, ChosenCall::barrier,   ChosenCall::scan,
                            ChosenCall::gather,         ChosenCall::scatter};
static_assert(kCalls.size() == kChosenCalls);

// Where ranks do not see each other's memory, or must not use it.
CollectiveProfile by_messages() {
  CollectiveProfile machine;
  machine.shared_up_to = 0;
  return machine;
}

Algorithm choose_bcast(const CollectiveShape& shape, const CollectiveProfile& machine) {
  return choose(ChosenCall::bcast, shape, true, machine);
}
Algorithm choose_allreduce(const CollectiveShape& shape, bool commutative, const CollectiveProfile& machine) {
  return choose(ChosenCall::allreduce, shape, commutative, machine);
}
Algorithm choose_reduce(const CollectiveShape& shape, const CollectiveProfile& machine) {
  return choose(ChosenCall::reduce, shape, true, machine);
}
Algorithm choose_allgather(const CollectiveShape& shape, const CollectiveProfile& machine) {
  return choose(ChosenCall::allgather, shape, true, machine);
}

TEST(CollectiveChoose, small_calls_take_one_message_time_and_large_ones_few_bytes) {
  for (const int ranks : {2, 3, 4, 6, 8}) {
    const CollectiveShape small{ranks, Bytes{8}};
    const CollectiveShape large{ranks, mebibytes(64)};
    EXPECT_EQ(choose_allreduce(small, true, by_messages()), Algorithm::flat) << ranks;
    EXPECT_EQ(choose_allreduce(small, false, by_messages()), Algorithm::flat) << ranks;
    EXPECT_EQ(choose_allreduce(large, true, by_messages()), Algorithm::direct) << ranks;
    EXPECT_EQ(choose_reduce(small, by_messages()), Algorithm::flat) << ranks;
    EXPECT_EQ(choose_bcast(small, by_messages()), Algorithm::flat) << ranks;
    EXPECT_EQ(choose_allgather(small, by_messages()), Algorithm::direct) << ranks;
    if (ranks == 2) continue;  // where a tree and a chain are the same
    EXPECT_EQ(choose_bcast(large, by_messages()), Algorithm::chain) << ranks;
    EXPECT_EQ(choose_reduce(large, by_messages()), Algorithm::direct) << ranks;
  }
}

TEST(CollectiveChoose, many_ranks_with_little_to_say_use_trees) {
  const CollectiveShape small{64, Bytes{8}};
  EXPECT_EQ(choose_bcast(small, by_messages()), Algorithm::binomial);
  EXPECT_EQ(choose_reduce(small, by_messages()), Algorithm::binomial);
  EXPECT_EQ(choose_allreduce(small, true, by_messages()), Algorithm::recursive_doubling);
}

TEST(CollectiveChoose, many_ranks_with_much_to_say_go_round_a_ring_unless_the_order_of_operands_matters) {
  const CollectiveShape large{12, mebibytes(64)};
  EXPECT_EQ(choose_allreduce(large, true, by_messages()), Algorithm::ring);
  EXPECT_EQ(choose_allreduce(large, false, by_messages()), Algorithm::direct);
  EXPECT_EQ(choose_allgather(large, by_messages()), Algorithm::ring);
}

TEST(CollectiveChoose, rounds_are_dear_where_their_messages_are_announced) {
  CollectiveProfile machine = by_messages();
  machine.announced_above = 4096;
  EXPECT_EQ(choose_bcast({4, Bytes{4096}}, machine), Algorithm::binomial);
  machine.announced_above = 4095;
  EXPECT_EQ(choose_bcast({4, Bytes{4096}}, machine), Algorithm::flat);
}

// Another message beside one that is under way costs nothing here.
CollectiveProfile free_posting() {
  CollectiveProfile machine = by_messages();
  machine.post = machine.fixed_order = 0;
  machine.beta = machine.gamma = 1e-15;
  return machine;
}
// Every message beside another one costs as much as a message and a half.
CollectiveProfile to_thousand() {
  CollectiveProfile machine;
  machine.shared_up_to = 1000;
  return machine;
}
CollectiveProfile dear_posting() {
  CollectiveProfile machine = by_messages();
  machine.post = 1.5 * machine.alpha;
  machine.fixed_order = 0;
  return machine;
}
// Bytes cost everything, and peers at once disturb each other from the first on.
CollectiveProfile dear_bytes() {
  CollectiveProfile machine = by_messages();
  machine.alpha = machine.alpha_large = machine.post = 1e-12;
  machine.crowd_from = machine.fixed_order = 0;
  machine.crowd = 2;
  return machine;
}

struct Case {
  const char* why;
  CollectiveProfile machine = by_messages();
  ChosenCall call;
  CollectiveShape shape;
  bool commutative;
  Algorithm algorithm;
};

// In memory that all ranks see.
std::vector<Case> shared_table() {
  const CollectiveProfile shared;
  return {
      {"little, in memory that all see", shared, ChosenCall::bcast, {4, Bytes{64}}, true, Algorithm::shared},
      {"little from one to the other", shared, ChosenCall::bcast, {2, Bytes{8192}}, true, Algorithm::shared},
      {"more from one to the other", shared, ChosenCall::bcast, {2, Bytes{8193}}, true, Algorithm::flat},
      {"combined by one of two where it is said", shared, ChosenCall::reduce, {2, kibibytes(64)}, true, Algorithm::shared},
      {"combined by one of two beside GPUs", by_gpus(shared), ChosenCall::reduce, {2, Bytes{8}}, true, Algorithm::shared},
      {"each of two combines a part", shared, ChosenCall::allreduce, {2, Bytes{10008}}, true, Algorithm::shared_parts},
      {"of any size", shared, ChosenCall::allreduce, {2, Bytes{49152}}, true, Algorithm::shared_parts},
      {"up to the longest", shared, ChosenCall::allreduce, {2, kibibytes(64)}, true, Algorithm::shared_parts},
      {"up to there beside GPUs", by_gpus(shared), ChosenCall::allreduce, {2, kibibytes(16)}, true, Algorithm::shared_parts},
      {"but no longer", by_gpus(shared), ChosenCall::allreduce, {2, Bytes{16385}}, true, Algorithm::direct},
      {"little of two", shared, ChosenCall::allreduce, {2, Bytes{8}}, true, Algorithm::shared},
      {"more of two", shared, ChosenCall::allreduce, {2, Bytes{4097}}, true, Algorithm::shared},
      {"what is just short enough", shared, ChosenCall::bcast, {8, kibibytes(64)}, true, Algorithm::shared},
      {"what is longer than a rank may write there",
       shared,
       ChosenCall::bcast,
       {8, Bytes{65537}},
       true,
       Algorithm::binomial},
      {"little, combined there", shared, ChosenCall::reduce, {4, Bytes{64}}, false, Algorithm::shared},
      {"little for all, combined there", shared, ChosenCall::allreduce, {4, Bytes{64}}, false, Algorithm::shared},
      {"more, of which each combines a part",
       shared,
       ChosenCall::allreduce,
       {8, kibibytes(32)},
       false,
       Algorithm::shared_parts},
      {"parts there", shared, ChosenCall::allgather, {4, Bytes{256}}, true, Algorithm::shared},
      {"parts combined there", shared, ChosenCall::reduce_scatter, {4, Bytes{256}}, true, Algorithm::shared},
      {"little from one to the other beside GPUs", by_gpus(shared), ChosenCall::bcast, {2, Bytes{8}}, true, Algorithm::flat},
      {"little of two beside GPUs", by_gpus(shared), ChosenCall::allreduce, {2, Bytes{8}}, true, Algorithm::shared},
      {"little exchanged by two beside GPUs", by_gpus(shared), ChosenCall::alltoall, {2, Bytes{8}}, true, Algorithm::shared},
      {"what a rank says has its own part", to_thousand(), ChosenCall::alltoall, {2, Bytes{1500}}, true, Algorithm::direct},
      {"what a rank says is just short enough",
       to_thousand(),
       ChosenCall::alltoall,
       {2, Bytes{1000}},
       true,
       Algorithm::shared},
      {"little exchanged by two", shared, ChosenCall::alltoall, {2, Bytes{16384}}, true, Algorithm::shared},
      {"more exchanged by two", shared, ChosenCall::alltoall, {2, Bytes{16386}}, true, Algorithm::direct},
      {"more parts of two", shared, ChosenCall::allgather, {2, Bytes{16386}}, true, Algorithm::direct},
      {"more parts of two beside GPUs", by_gpus(shared), ChosenCall::allgather, {2, Bytes{16386}}, true, Algorithm::shared},
      {"little of those before", shared, ChosenCall::scan, {2, Bytes{8192}}, true, Algorithm::shared},
      {"more of those before", shared, ChosenCall::scan, {2, Bytes{8193}}, true, Algorithm::flat},
      {"a meeting there", shared, ChosenCall::barrier, {4, Bytes{0}}, true, Algorithm::shared},
      {"parts to one, there", shared, ChosenCall::gather, {4, Bytes{64}}, true, Algorithm::shared},
      {"parts from one, there", shared, ChosenCall::scatter, {4, Bytes{64}}, true, Algorithm::shared},
      {"parts exchanged there", shared, ChosenCall::alltoall, {4, Bytes{256}}, true, Algorithm::shared},
  };
}

std::vector<Case> table() {
  const CollectiveProfile usual = by_messages();
  return {
      {"little for few", usual, ChosenCall::bcast, {6, Bytes{64}}, true, Algorithm::flat},
      {"little for everybody, where posting is free",
       free_posting(),
       ChosenCall::bcast,
       {512, Bytes{64}},
       true,
       Algorithm::flat},
      {"little for few, where posting is dear",
       dear_posting(),
       ChosenCall::bcast,
       {4, Bytes{64}},
       true,
       Algorithm::binomial},
      {"little for three, where a tree posts as often",
       dear_posting(),
       ChosenCall::bcast,
       {3, Bytes{64}},
       true,
       Algorithm::binomial},
      {"much, where bytes are dear", dear_bytes(), ChosenCall::bcast, {4, mebibytes(8)}, true, Algorithm::chain},
      {"nothing at all", usual, ChosenCall::reduce, {5, Bytes{0}}, true, Algorithm::flat},
      {"little from few, where posting is dear",
       dear_posting(),
       ChosenCall::reduce,
       {4, Bytes{8}},
       false,
       Algorithm::binomial},
      {"much", usual, ChosenCall::reduce, {4, mebibytes(8)}, false, Algorithm::direct},
      {"no vector longer than 64 KiB is flat, even where that is free",
       free_posting(),
       ChosenCall::reduce,
       {6, Bytes{65537}},
       true,
       Algorithm::direct},
      {"one of 16 KiB may be", free_posting(), ChosenCall::reduce, {6, Bytes{16384}}, true, Algorithm::flat},
      {"nothing at all, for all", usual, ChosenCall::allreduce, {5, Bytes{0}}, true, Algorithm::flat},
      {"little for all, in the order of ranks", usual, ChosenCall::allreduce, {5, Bytes{8}}, false, Algorithm::flat},
      {"little for all, where posting is dear",
       dear_posting(),
       ChosenCall::allreduce,
       {4, Bytes{8}},
       true,
       Algorithm::recursive_doubling},
      {"much for all", usual, ChosenCall::allreduce, {4, mebibytes(8)}, true, Algorithm::direct},
      {"much for all, where bytes are dear", dear_bytes(), ChosenCall::allreduce, {4, mebibytes(8)}, true, Algorithm::ring},
      {"a ring would change the order",
       dear_bytes(),
       ChosenCall::allreduce,
       {4, mebibytes(8)},
       false,
       Algorithm::recursive_doubling},
      {"parts of few", usual, ChosenCall::allgather, {6, kibibytes(6)}, true, Algorithm::direct},
      {"parts combined", usual, ChosenCall::reduce_scatter, {6, mebibytes(6)}, true, Algorithm::direct},
      {"parts exchanged", usual, ChosenCall::alltoall, {6, mebibytes(6)}, true, Algorithm::direct},
      {"parts, where bytes are dear", dear_bytes(), ChosenCall::allgather, {4, mebibytes(8)}, true, Algorithm::ring},
  };
}

// What has one way by messages, or combines in rounds.
std::vector<Case> other_table() {
  const CollectiveProfile usual = by_messages();
  return {
      {"nothing but a meeting", usual, ChosenCall::barrier, {4, Bytes{0}}, true, Algorithm::recursive_doubling},
      {"little of those before, by messages", usual, ChosenCall::scan, {4, Bytes{64}}, true, Algorithm::flat},
      {"much of those before", usual, ChosenCall::scan, {4, mebibytes(1)}, true, Algorithm::recursive_doubling},
      {"parts to one", usual, ChosenCall::gather, {4, Bytes{64}}, true, Algorithm::flat},
      {"parts from one", usual, ChosenCall::scatter, {4, Bytes{64}}, true, Algorithm::flat},
  };
}

std::vector<Case> all_cases() {
  std::vector<Case> all = table();
  for (const auto& more : {shared_table(), other_table()}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(CollectiveChoose, on_invented_machines_the_cheapest_wins) {
  for (const Case& one : all_cases())
    EXPECT_EQ(name_of(choose(one.call, one.shape, one.commutative, one.machine)), name_of(one.algorithm)) << one.why;
}

TEST(CollectiveChoose, every_algorithm_of_every_call_wins_somewhere) {
  for (const ChosenCall call : kCalls) {
    for (const Offered& offer : offers(call, {4, Bytes{8}}, true, {})) {
      int wins = 0;
      for (const Case& one : all_cases())
        if (one.call == call) wins += choose(call, one.shape, one.commutative, one.machine) == offer.algorithm ? 1 : 0;
      EXPECT_GT(wins, 0) << name_of(offer.algorithm) << " of call " << static_cast<int>(call);
    }
  }
}

TEST(CollectiveChoose, a_longer_call_never_goes_back_to_the_algorithm_of_shorter_ones) {
  for (const int ranks : {2, 3, 5, 6, 7, 12}) {
    bool left = false;
    for (std::uint64_t bytes = 1; bytes <= std::uint64_t{1} << 28; bytes *= 2) {
      const bool flat = choose_allreduce({ranks, Bytes{bytes}}, true, by_messages()) == Algorithm::flat;
      EXPECT_FALSE(left && flat) << ranks << " ranks, " << bytes << " bytes";
      left |= !flat;
    }
  }
}

// With other numbers, by messages alone, beside GPUs, and where messages are announced from fewer bytes on.
TEST(CollectiveChoose, a_call_keeps_its_order_on_every_machine_and_its_choice_is_of_that_order) {
  std::vector<CollectiveProfile> machines{CollectiveProfile{}, by_messages(), free_posting(), dear_posting(), dear_bytes()};
  machines.emplace_back().shared_up_to = kSharedUpToByGpus;
  machines.emplace_back().announced_above = 8192;
  std::set<CombiningOrder> orders;
  for (CollectiveProfile& machine : machines) {
    machine.fixed_order = 1;
    for (const int ranks : {2, 3, 4, 5, 6, 12, 17, 64})
      for (const std::uint64_t bytes :
           {8ULL, 216ULL, 224ULL, 8200ULL, 24000ULL, 64000ULL, 65544ULL, 1ULL << 20, 1ULL << 26}) {
        const CollectiveShape shape{ranks, Bytes{bytes}};
        for (const ChosenCall call : {ChosenCall::reduce, ChosenCall::allreduce, ChosenCall::scan})
          for (const bool commutative : {true, false}) {
            const CombiningOrder order = order_of(choose(call, shape, commutative, {}));
            EXPECT_EQ(order, order_of(choose(call, shape, commutative, machine)))
                << ranks << " ranks, " << bytes << " bytes";
            orders.insert(order);
          }
      }
  }
  EXPECT_EQ(orders.size(), 4U) << "each has its calls";
}

// What people are shown is what was chosen by.
TEST(CollectiveChoose, the_terms_add_up_to_the_price_and_the_choice_is_the_first_of_the_cheapest) {
  for (const CollectiveProfile& machine :
       {CollectiveProfile{}, by_messages(), free_posting(), dear_posting(), dear_bytes()}) {
    for (const ChosenCall call : kCalls) {
      for (const int ranks : {2, 3, 4, 7, 12, 100}) {
        for (const std::uint64_t bytes : {0ULL, 8ULL, 4096ULL, 65536ULL, 65537ULL, 1ULL << 22, 1ULL << 33}) {
          for (const bool commutative : {true, false}) {
            const auto all = offers(call, {ranks, Bytes{bytes}}, commutative, machine);
            const Offered* best = nullptr;
            for (const Offered& offer : all) {
              double sum = 0;
              for (const Term& term : offer.price.terms()) {
                EXPECT_GE(term.seconds, 0) << term.name;
                sum += term.seconds;
              }
              if (offer.price.refused() != nullptr) {
                EXPECT_TRUE(std::isinf(offer.price.seconds())) << name_of(offer.algorithm);
              } else {
                EXPECT_EQ(sum, offer.price.seconds()) << name_of(offer.algorithm);
              }
              if (best == nullptr || offer.price.seconds() < best->price.seconds()) best = &offer;
            }
            ASSERT_NE(best, nullptr);
            EXPECT_EQ(choose(call, {ranks, Bytes{bytes}}, commutative, machine), best->algorithm)
                << ranks << " ranks, " << bytes << " bytes";
          }
        }
      }
    }
  }
}

TEST(Names, of_algorithms_differ_and_have_a_meaning) {
  std::set<std::string> names;
  for (const ChosenCall call : kCalls)
    for (const Offered& offer : offers(call, {4, Bytes{8}}, true, {})) {
      EXPECT_FALSE(meaning_of(offer.algorithm).empty()) << name_of(offer.algorithm);
      names.insert(std::string{name_of(offer.algorithm)});
    }
  EXPECT_EQ(names.size(), 8U);
  for (const Algorithm other : {Algorithm::none, Algorithm::nccl}) {
    EXPECT_FALSE(meaning_of(other).empty()) << name_of(other);
    EXPECT_TRUE(names.insert(std::string{name_of(other)}).second) << name_of(other);
  }
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(CollectiveChoose, few_ranks_meet_and_scan_where_all_see_it_and_many_by_messages) {
  const auto barrier = [](int ranks, const CollectiveProfile& machine) {
    return choose(ChosenCall::barrier, {ranks, Bytes{}}, true, machine);
  };
  EXPECT_EQ(barrier(2, {}), Algorithm::shared);
  EXPECT_EQ(barrier(16, {}), Algorithm::shared);
  EXPECT_EQ(barrier(128, {}), Algorithm::recursive_doubling);
  EXPECT_EQ(barrier(2, by_messages()), Algorithm::recursive_doubling);
  const auto scan = [](const CollectiveShape& shape, const CollectiveProfile& machine) {
    return choose(ChosenCall::scan, shape, true, machine);
  };
  EXPECT_EQ(scan({4, Bytes{64}}, {}), Algorithm::shared);
  EXPECT_EQ(scan({4, Bytes{64}}, by_messages()), Algorithm::flat);
  EXPECT_EQ(scan({64, kibibytes(64)}, {}), Algorithm::recursive_doubling);
  EXPECT_EQ(scan({2, Bytes{65537}}, {}), Algorithm::recursive_doubling);
}

TEST(CollectiveChoose, short_parts_of_a_root_lie_where_all_see_them_and_those_that_may_be_on_gpus_go_by_messages) {
  const auto shares = [](ChosenCall call, int ranks, Bytes all, const CollectiveProfile& machine) {
    return choose(call, {ranks, all}, true, machine) == Algorithm::shared;
  };
  for (const ChosenCall call : {ChosenCall::gather, ChosenCall::scatter}) {
    for (const int ranks : {2, 3, 8, 16}) {
      const Bytes few{8ULL * static_cast<unsigned>(ranks)};
      EXPECT_TRUE(shares(call, ranks, few, {})) << ranks;
      EXPECT_FALSE(shares(call, ranks, few, by_messages())) << ranks;
      EXPECT_FALSE(shares(call, ranks, few, by_gpus({}))) << ranks;
    }
    EXPECT_FALSE(shares(call, 2, mebibytes(1), {}));
  }
  // All that a root gives at a time has room in one place; what it gets has one for each.
  EXPECT_TRUE(shares(ChosenCall::scatter, 4, kibibytes(64), {}));
  EXPECT_FALSE(shares(ChosenCall::scatter, 4, Bytes{65540}, {}));
  EXPECT_TRUE(shares(ChosenCall::gather, 4, kibibytes(256), {}));
  EXPECT_FALSE(shares(ChosenCall::gather, 4, Bytes{(256 << 10) + 4}, {}));
  // Between two a message does without what all are told, which counts beyond few bytes.
  EXPECT_TRUE(shares(ChosenCall::gather, 2, kibibytes(16), {}));
  EXPECT_FALSE(shares(ChosenCall::gather, 2, Bytes{16386}, {}));
}

}  // namespace
}  // namespace ist
