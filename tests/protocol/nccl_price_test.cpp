// Where a collective call is worth an agreement on NCCL: beside what GPUs took, and on invented machines.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "collective/choose.hpp"

namespace ist {
namespace {

constexpr std::array kCarried{ChosenCall::bcast,     ChosenCall::reduce,         ChosenCall::allreduce,
                              ChosenCall::allgather, ChosenCall::reduce_scatter, ChosenCall::alltoall};
static_assert(kCarried.size() == kNcclCalls);

struct Taken {
  ChosenCall call;
  int ranks;
  std::uint64_t bytes;  // of all parts that one rank has
  double messages_us;
  double nccl_us;
};

// Medians of isthmus bench collective, two and four H100, 59bf8b1, 2026-11-27; by messages, and by NCCL alone.
constexpr std::uint64_t kKi = 1024;
constexpr std::uint64_t kMi = 1024 * kKi;
constexpr std::array kTaken{
    Taken{ChosenCall::allreduce, 2, 8, 19.8, 28.2},         Taken{ChosenCall::allreduce, 2, 8 * kKi, 25.6, 27.8},
    Taken{ChosenCall::allreduce, 2, 64 * kKi, 37.5, 29.4},  Taken{ChosenCall::allreduce, 2, kMi, 46.2, 40.4},
    Taken{ChosenCall::allreduce, 2, 16 * kMi, 482.4, 98.4}, Taken{ChosenCall::allreduce, 4, 8 * kKi, 33.2, 36.0},
    Taken{ChosenCall::allreduce, 4, 32 * kKi, 120.8, 39.2}, Taken{ChosenCall::allreduce, 4, kMi, 135.9, 44.5},
    Taken{ChosenCall::reduce, 2, 8 * kKi, 17.4, 23.2},      Taken{ChosenCall::reduce, 2, 64 * kKi, 42.6, 25.8},
    Taken{ChosenCall::reduce, 4, kKi, 16.7, 32.2},          Taken{ChosenCall::reduce, 4, 64 * kKi, 117.0, 34.7},
    Taken{ChosenCall::reduce_scatter, 2, kMi, 37.8, 33.0},  Taken{ChosenCall::reduce_scatter, 2, 32 * kMi, 483.6, 84.7},
    Taken{ChosenCall::reduce_scatter, 4, kMi, 78.8, 36.9},  Taken{ChosenCall::bcast, 2, 64 * kKi, 13.8, 25.9},
    Taken{ChosenCall::bcast, 2, 16 * kMi, 59.8, 89.4},      Taken{ChosenCall::bcast, 4, 64 * kKi, 24.1, 32.4},
    Taken{ChosenCall::bcast, 4, kMi, 29.3, 40.0},           Taken{ChosenCall::bcast, 4, 4 * kMi, 100.1, 71.3},
    Taken{ChosenCall::bcast, 4, 16 * kMi, 263.8, 143.4},    Taken{ChosenCall::allgather, 2, 2 * kMi, 23.3, 40.3},
    Taken{ChosenCall::allgather, 2, 32 * kMi, 77.6, 116.9}, Taken{ChosenCall::allgather, 4, 4 * kMi, 48.3, 70.1},
    Taken{ChosenCall::allgather, 4, 8 * kMi, 61.7, 80.2},   Taken{ChosenCall::allgather, 4, 64 * kMi, 284.8, 230.9},
    Taken{ChosenCall::allgather, 4, 256 * kKi, 44.0, 41.4}, Taken{ChosenCall::alltoall, 2, 2 * kMi, 26.8, 42.2},
    Taken{ChosenCall::alltoall, 4, 4 * kMi, 49.5, 53.9},    Taken{ChosenCall::alltoall, 4, 64 * kMi, 280.1, 223.7}};

// As where a process has a GPU.
CollectiveProfile beside_gpus() {
  CollectiveProfile machine;
  machine.shared_up_to = kSharedUpToByGpus;
  return machine;
}

TEST(NcclPrice, the_quicker_way_is_chosen_where_both_were_measured) {
  for (const Taken& one : kTaken) {
    // What differs by a tenth or less may go either way.
    if (std::abs(one.nccl_us - one.messages_us) <= 0.1 * std::max(one.nccl_us, one.messages_us)) continue;
    const CollectiveShape shape{one.ranks, Bytes{one.bytes}};
    EXPECT_EQ(nccl_pays(one.call, shape, beside_gpus()), one.nccl_us < one.messages_us)
        << "call " << static_cast<int>(one.call) << " of " << one.ranks << " ranks, " << one.bytes << " bytes: NCCL "
        << 1e6 * nccl_offer(one.call, shape).price.seconds() << " us, messages "
        << 1e6 * seconds_between_gpus(one.call, shape, beside_gpus());
  }
}

TEST(NcclPrice, it_is_asked_about_from_a_size_on_and_never_for_short_calls) {
  CollectiveProfile no_shared_memory;
  no_shared_memory.shared_up_to = 0;
  for (const CollectiveProfile& machine : {beside_gpus(), no_shared_memory, with_copies_if(false, beside_gpus())})
    for (const ChosenCall call : kCarried)
      for (const int ranks : {2, 3, 4, 5, 8, 12}) {
        bool paid = false;
        for (double bytes = 1; bytes <= 1 << 28; bytes *= 1.5) {
          const bool pays = nccl_pays(call, {ranks, Bytes{static_cast<std::uint64_t>(bytes)}}, machine);
          EXPECT_FALSE(paid && !pays) << static_cast<int>(call) << " of " << ranks << " ranks, " << bytes << " bytes";
          EXPECT_FALSE(pays && bytes <= 8192)
              << static_cast<int>(call) << " of " << ranks << " ranks, " << bytes << " bytes";
          paid |= pays;
        }
        const bool moves = call == ChosenCall::bcast || call == ChosenCall::allgather;
        EXPECT_EQ(paid, ranks > 2 || !moves || machine.gpu_beta > 1e-11)
            << static_cast<int>(call) << " of " << ranks << " ranks";
      }
}

TEST(NcclPrice, a_rank_by_itself_asks_nobody) {
  for (const ChosenCall call : kCarried) EXPECT_FALSE(nccl_pays(call, {1, mebibytes(64)}, beside_gpus()));
}

struct Threshold {
  ChosenCall call;
  int ranks;
  std::uint64_t stays, pays;  // bytes
};

TEST(NcclPrice, the_sizes_from_which_on_it_carries_calls) {
  constexpr std::array kThresholds{
      Threshold{ChosenCall::reduce, 2, 19900, 20100},         Threshold{ChosenCall::reduce, 4, 18600, 18700},
      Threshold{ChosenCall::allreduce, 2, 19900, 20100},      Threshold{ChosenCall::allreduce, 4, 18600, 18700},
      Threshold{ChosenCall::reduce_scatter, 2, 34900, 35100}, Threshold{ChosenCall::reduce_scatter, 4, 32600, 32700},
      Threshold{ChosenCall::bcast, 4, 1143000, 1145000},      Threshold{ChosenCall::allgather, 4, 24200000, 24300000},
      Threshold{ChosenCall::alltoall, 2, 62400000, 62600000}, Threshold{ChosenCall::alltoall, 4, 65200, 65400}};
  for (const Threshold& one : kThresholds) {
    EXPECT_FALSE(nccl_pays(one.call, {one.ranks, Bytes{one.stays}}, beside_gpus()))
        << static_cast<int>(one.call) << one.ranks;
    EXPECT_TRUE(nccl_pays(one.call, {one.ranks, Bytes{one.pays}}, beside_gpus())) << static_cast<int>(one.call) << one.ranks;
  }
}

TEST(NcclPrice, its_terms_are_its_price_and_a_machine_with_dear_messages_asks_where_that_costs_little) {
  for (const ChosenCall call : kCarried)
    for (const int ranks : {2, 4}) {
      const Offered nccl = nccl_offer(call, {ranks, mebibytes(1)});
      EXPECT_EQ(nccl.algorithm, Algorithm::nccl);
      double sum = 0;
      for (const Term& term : nccl.price.terms()) sum += term.seconds;
      EXPECT_DOUBLE_EQ(sum, nccl.price.seconds());
    }
  CollectiveProfile dear_messages;
  dear_messages.gpu_alpha = 1;
  dear_messages.shared_up_to = 0;
  EXPECT_TRUE(nccl_pays(ChosenCall::bcast, {2, kibibytes(64)}, dear_messages));
  // Were all buffers in host memory, asking would double what short calls take.
  EXPECT_FALSE(nccl_pays(ChosenCall::bcast, {2, Bytes{8}}, dear_messages));
  dear_messages.beta = dear_messages.gamma = 1e-15;
  EXPECT_FALSE(nccl_pays(ChosenCall::allgather, {2, kibibytes(64)}, dear_messages));
}

TEST(NcclPrice, where_no_memory_can_be_opened_messages_go_through_the_host_and_nccl_pays_sooner) {
  const CollectiveShape shape{2, mebibytes(1)};
  const CollectiveProfile opens = with_copies_if(true, beside_gpus());
  const CollectiveProfile closed = with_copies_if(false, beside_gpus());
  EXPECT_FALSE(nccl_pays(ChosenCall::bcast, shape, opens));
  EXPECT_TRUE(nccl_pays(ChosenCall::bcast, shape, closed));
  // Two H200, 59bf8b1: a message of 1 MiB through the ring in 53 us, of 64 KiB in 19 to 23.
  EXPECT_NEAR(seconds_between_gpus(ChosenCall::bcast, shape, closed), 53e-6, 3e-6);
  EXPECT_FALSE(nccl_pays(ChosenCall::bcast, {2, kibibytes(64)}, closed));
  // What a profile says to be slower stays so.
  CollectiveProfile slow;
  slow.gpu_alpha = 1;
  slow.gpu_beta = 1e-6;
  EXPECT_EQ(with_copies_if(false, slow).gpu_alpha, 1);
  EXPECT_EQ(with_copies_if(false, slow).gpu_beta, 1e-6);
}

}  // namespace
}  // namespace ist
