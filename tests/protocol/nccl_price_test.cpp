// Where a collective call is worth an agreement on NCCL: beside what GPUs took, and on invented machines.
#include <gtest/gtest.h>

#include <array>
#include <tuple>

#include "collective/choose.hpp"

namespace ist {
namespace {

constexpr std::array kNcclCalls{ChosenCall::bcast,     ChosenCall::reduce,         ChosenCall::allreduce,
                                ChosenCall::allgather, ChosenCall::reduce_scatter, ChosenCall::alltoall};
static_assert(kNcclCalls.size() == kChosenCalls);

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
    Taken{ChosenCall::alltoall, 2, 2 * kMi, 26.8, 42.2},    Taken{ChosenCall::alltoall, 4, 64 * kMi, 280.1, 223.7}};

// As where a process has a GPU.
CollectiveProfile beside_gpus() {
  CollectiveProfile machine;
  machine.shared_up_to = kSharedUpToByGpus;
  return machine;
}

TEST(NcclPrice, the_quicker_way_is_chosen_where_both_were_measured) {
  for (const Taken& one : kTaken) {
    const CollectiveShape shape{one.ranks, Bytes{one.bytes}};
    EXPECT_EQ(nccl_pays(one.call, shape, beside_gpus()), one.nccl_us < one.messages_us)
        << "call " << static_cast<int>(one.call) << " of " << one.ranks << " ranks, " << one.bytes << " bytes: NCCL "
        << 1e6 * nccl_offer(one.call, shape).price.seconds() << " us, messages "
        << 1e6 * seconds_between_gpus(one.call, shape, beside_gpus());
  }
}

TEST(NcclPrice, it_is_asked_about_from_a_size_on_and_never_for_short_calls) {
  for (const ChosenCall call : kNcclCalls)
    for (const int ranks : {2, 3, 4, 5, 8}) {
      bool paid = false;
      for (std::uint64_t bytes = 1; bytes <= std::uint64_t{1} << 28; bytes *= 2) {
        const bool pays = nccl_pays(call, {ranks, Bytes{bytes}}, beside_gpus());
        EXPECT_FALSE(paid && !pays) << static_cast<int>(call) << " of " << ranks << " ranks, " << bytes << " bytes";
        EXPECT_FALSE(pays && bytes <= 2048) << static_cast<int>(call) << " of " << ranks << " ranks, " << bytes << " bytes";
        paid |= pays;
      }
      EXPECT_EQ(paid, ranks > 2 || (call != ChosenCall::bcast && call != ChosenCall::allgather))
          << static_cast<int>(call) << " of " << ranks << " ranks";
    }
}

TEST(NcclPrice, it_pays_where_it_is_below_messages_between_gpus_and_asking_costs_little) {
  CollectiveProfile dear_messages;
  dear_messages.gpu_alpha = 1;
  CollectiveProfile quick_hosts;
  quick_hosts.beta = quick_hosts.gamma = 1e-15;
  for (const CollectiveProfile& machine : {CollectiveProfile{}, beside_gpus(), dear_messages, quick_hosts})
    for (const ChosenCall call : kNcclCalls)
      for (const int ranks : {2, 4})
        for (const std::uint64_t bytes : {8ULL, 65536ULL, 1ULL << 20, 1ULL << 27}) {
          const CollectiveShape shape{ranks, Bytes{bytes}};
          const Offered nccl = nccl_offer(call, shape);
          EXPECT_EQ(nccl.algorithm, Algorithm::nccl);
          double sum = 0;
          for (const Term& term : nccl.price.terms()) sum += term.seconds;
          EXPECT_DOUBLE_EQ(sum, nccl.price.seconds());
          const double asking = machine.alpha + (ranks - 2) * machine.post;
          const bool pays =
              sum < seconds_between_gpus(call, shape, machine) && 4 * asking <= cheapest_seconds(call, shape, true, machine);
          EXPECT_EQ(nccl_pays(call, shape, machine), pays) << static_cast<int>(call) << ", " << bytes << " bytes";
        }
  EXPECT_TRUE(nccl_pays(ChosenCall::bcast, {2, kibibytes(64)}, dear_messages));
  // Were all buffers in host memory, asking would double what short calls take.
  EXPECT_FALSE(nccl_pays(ChosenCall::bcast, {2, Bytes{8}}, dear_messages));
  EXPECT_FALSE(nccl_pays(ChosenCall::allgather, {2, kibibytes(64)}, quick_hosts));
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
  EXPECT_EQ(with_copies_if(false, slow).gpu_alpha, 1);
}

}  // namespace
}  // namespace ist
