// One-sided exchanges whose ranks are late by turns, and whose neighbours get long and short parts: every flag follows its own neighbour's
// cells, and waits for no other's. Run on 1, 2, 3, 4, 5 and 8 ranks.
#include <dlfcn.h>
#include <isthmus/collective.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "halo_support.hpp"

namespace {

using namespace rank_test;
using Clock = std::chrono::steady_clock;

// What this rank sends to and receives from each, in one field: elements to send first, and behind them room for what comes.
struct Listed {
  std::vector<int> ranks;
  std::vector<std::vector<std::int64_t>> sends, receives;
  std::int64_t elements = 0;

  void add(int to, std::int64_t out, std::int64_t in) {
    ranks.push_back(to);
    for (auto* const list : {&sends, &receives}) {
      list->emplace_back(static_cast<std::size_t>(list == &sends ? out : in));
      for (std::int64_t& number : list->back()) number = elements++;
    }
  }
  ist_halo make(ist_buffer buffer, std::int64_t element) const {
    std::vector<std::int64_t> out, in;
    std::vector<const std::int64_t*> outs, ins;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      out.push_back(static_cast<std::int64_t>(sends[i].size())), outs.push_back(sends[i].data());
      in.push_back(static_cast<std::int64_t>(receives[i].size())), ins.push_back(receives[i].data());
    }
    const ist_halo_lists lists{static_cast<int>(ranks.size()), ranks.data(), out.data(), outs.data(), in.data(), ins.data()};
    const ist_halo_field field{buffer, element, nullptr, nullptr};
    const ist_halo_options options{sizeof options, 0, IST_HALO_LAYOUTS, IST_HALO_ONE_SIDED, 0};
    ist_halo halo = IST_HALO_NULL;
    EXPECT_EQ(IST_OK, ist_halo_create_lists(comm(), &lists, 1, &field, &options, &halo)) << ist_error_text();
    return halo;
  }
};

std::uint64_t word_of(int from, int to, int step, std::size_t number) {
  const auto pair = static_cast<std::uint64_t>(from * 100 + to), when = static_cast<std::uint64_t>(step);
  return (pair * 0x9e3779b97f4a7c15ULL + when) * 0xd1b54a32d192ed03ULL + number;
}

// Words between two ranks, the other way as many others: some go as one copy by the caller, some are long.
std::int64_t words_between(int from, int to) { return (from * 7 + to * 3) % 4 == 0 ? 40000 : 1 + (from * 5 + to) % 700; }

void play_late(ist_kind kind) {
  Listed listed;
  for (int r = 0; r < size(); ++r)
    if (r != rank()) listed.add(r, words_between(rank(), r), words_between(r, rank()));
  const auto words = static_cast<std::size_t>(listed.elements);
  GuardedBuffer field(kind, 8 * std::max<std::size_t>(words, 1));
  ist_halo halo = listed.make(field.get(), 8);
  if (testing::Test::HasFailure()) return;
  std::mt19937_64 random{static_cast<std::uint64_t>(rank()) + 77};
  const auto delay = [&] {
    if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
  };
  std::vector<unsigned char> bytes(8 * std::max<std::size_t>(words, 1));
  auto* const values = reinterpret_cast<std::uint64_t*>(bytes.data());
  for (int step = 1; step <= 40 && !testing::Test::HasFailure(); ++step) {
    std::fill(values, values + words, 0);
    for (std::size_t i = 0; i < listed.ranks.size(); ++i)
      for (std::size_t n = 0; n < listed.sends[i].size(); ++n)
        values[listed.sends[i][n]] = word_of(rank(), listed.ranks[i], step, n);
    field.fill(bytes);
    delay();
    IST_OK_OR_FAIL(ist_halo_pack(halo));
    delay();
    IST_OK_OR_FAIL(ist_halo_start_exchange(halo));
    delay();
    int over = 0;
    while (step % 2 == 0 && over == 0) IST_OK_OR_FAIL(ist_halo_test(halo, &over));
    if (over == 0) IST_OK_OR_FAIL(ist_halo_wait(halo));
    delay();
    IST_OK_OR_FAIL(ist_halo_unpack(halo));
    for (std::size_t i = 0; i < listed.ranks.size(); ++i)
      for (std::size_t n = 0; n < listed.receives[i].size(); ++n)
        values[listed.receives[i][n]] = word_of(listed.ranks[i], rank(), step, n);
    field.expect(bytes, "step " + std::to_string(step));
  }
  IST_OK_OR_FAIL(ist_halo_free(&halo));
}

TEST(HaloOneSided, brings_the_cells_of_its_own_step_however_late_ranks_are) {
  for (const ist_kind kind : all_kinds())
    if (kind != IST_KIND_OPENCL) play_late(kind);
}

// Rank 0 gives one element to one neighbour and very many to the other. The first one has its own long before all of the other's are copied.
void play_uneven(ist_kind kind, int much) {
  constexpr std::int64_t kElement = 65536, kMany = 512;
  const int few = 3 - much;
  Listed listed;
  if (rank() == 0) {
    listed.add(much, kMany, 1);
    listed.add(few, 1, 1);
  } else {
    listed.add(0, 1, rank() == much ? kMany : 1);
  }
  GuardedBuffer field(kind, static_cast<std::size_t>(kElement * listed.elements));
  ist_halo halo = listed.make(field.get(), kElement);
  if (testing::Test::HasFailure()) return;
  // Of what rank 0 takes to copy all; once is enough, and other programs may hold a rank up. All ranks find the same.
  double best = 2;
  for (int turn = 0; turn < 60 && best > 0.8; ++turn) {
    IST_OK_OR_FAIL(ist_halo_pack(halo));
    IST_OK_OR_FAIL(ist_barrier(comm()));
    // The clock is the host's, and so the same for all ranks.
    const std::int64_t from = Clock::now().time_since_epoch().count();
    IST_OK_OR_FAIL(ist_halo_start_exchange(halo));
    const std::int64_t copied = Clock::now().time_since_epoch().count();
    IST_OK_OR_FAIL(ist_halo_wait(halo));
    std::int64_t here = Clock::now().time_since_epoch().count();
    IST_OK_OR_FAIL(ist_halo_unpack(halo));
    IST_OK_OR_FAIL(ist_bcast(ist_host(&here), 1, IST_INT64, few, comm()));
    double part = static_cast<double>(here - from) / static_cast<double>(copied - from);
    IST_OK_OR_FAIL(ist_bcast(ist_host(&part), 1, IST_DOUBLE, 0, comm()));
    best = std::min(best, part);
  }
  EXPECT_LT(best, 0.9) << "the flag of the short part came with the end of the long one";
  IST_OK_OR_FAIL(ist_halo_free(&halo));
}

TEST(HaloOneSided, flags_of_short_parts_do_not_wait_for_long_ones) {
  if (size() != 3) GTEST_SKIP() << "not covered here: of three ranks";
  // Processes that share a real GPU take turns on it of milliseconds: what both copies of one turn did is found together.
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  const bool real = driver != nullptr && ::dlsym(driver, "fake_cuda_fail") == nullptr;
  for (const ist_kind kind : all_kinds())
    for (const int much : {1, 2})
      if (kind == IST_KIND_HOST || (kind == IST_KIND_CUDA && !real)) play_uneven(kind, much);
}

// The second copy fails: who has got the first one goes on, the other neighbour hears of it, and neither takes what is not there.
TEST(HaloOneSided, of_a_copy_that_fails_sets_the_flags_of_the_others_alone) {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  const auto find = [&](const char* name) { return driver == nullptr ? nullptr : ::dlsym(driver, name); };
  auto* const fail = reinterpret_cast<void (*)(const char*, int, int)>(find("fake_cuda_fail"));
  auto* const heal = reinterpret_cast<void (*)()>(find("fake_cuda_heal"));
  if (size() != 3 || fail == nullptr || heal == nullptr)
    GTEST_SKIP() << "not covered here: of three ranks on devices whose copies fail on demand";
  Listed listed;
  if (rank() == 0) {
    listed.add(1, 1, 1);
    listed.add(2, 5, 1);
  } else {
    listed.add(0, 1, rank() == 1 ? 1 : 5);
  }
  GuardedBuffer field(IST_KIND_CUDA, static_cast<std::size_t>(4096 * listed.elements));
  ist_halo halo = listed.make(field.get(), 4096);
  if (testing::Test::HasFailure()) return;
  IST_OK_OR_FAIL(ist_halo_pack(halo));
  IST_OK_OR_FAIL(ist_halo_exchange(halo));
  IST_OK_OR_FAIL(ist_halo_unpack(halo));
  IST_OK_OR_FAIL(ist_halo_pack(halo));
  if (rank() == 0) {
    fail("cuMemcpyAsync", 1, 700);
    EXPECT_EQ(IST_ERR_DEVICE, ist_halo_start_exchange(halo)) << ist_error_text();
    heal();
    EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_start_exchange(halo)) << "half of it cannot be done again";
  } else if (rank() == 1) {
    IST_OK_OR_FAIL(ist_halo_exchange(halo));
    IST_OK_OR_FAIL(ist_halo_unpack(halo));
  } else {
    EXPECT_EQ(IST_ERR_PEER_LEFT, ist_halo_exchange(halo));
    EXPECT_NE(std::string{ist_error_text()}.find("rank 0 has freed the exchange after 1 times"), std::string::npos)
        << ist_error_text();
  }
  IST_OK_OR_FAIL(ist_halo_free(&halo));
}

}  // namespace
