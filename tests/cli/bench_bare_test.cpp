// The bare kernels of the limits, played by threads on plain memory: that none waits without end, and that wrong bytes are found.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <thread>
#include <vector>

#include "../fake_cuda/lone_crew.hpp"
#include "cli/bench_limit_bare.hpp"

namespace ist::cli {
namespace {

using fake::Crew;
using Body = std::function<void(const TripWork&)>;

constexpr std::uint64_t kTrips = 50;
constexpr std::uint64_t kSecond = 1000000000;

// Two ends, and what they write to each other.
struct TwoEnds {
  std::uint64_t stop = 0;
  std::array<std::uint64_t, 2> words{};
  std::array<std::array<channel::Quad, 64>, 2> packets{};
  std::array<KernelEnd, 2> ends{};
  std::vector<std::byte> from = std::vector<std::byte>(512);
  std::vector<std::byte> to = std::vector<std::byte>(512);

  TripWork work(std::size_t end) {
    TripWork one{};
    one.end = &ends[end];
    one.tell = &words[1 - end];
    one.await = &words[end];
    one.theirs = packets[1 - end].data();
    one.mine = packets[end].data();
    one.from = from.data();
    one.to = to.data();
    one.bytes = 512;
    one.trips = kTrips;
    one.first_ones = 5;
    one.leads = end == 0 ? 1 : 0;
    one.stop = &stop;
    one.most = 60 * kSecond;
    return one;
  }
  void run_both(const Body& body) {
    std::thread other([&] { body(work(1)); });
    body(work(0));
    other.join();
  }
};

void flags(const TripWork& work) { trade_flags(Crew{}, work); }
void packets(const TripWork& work) { trade_packets(Crew{}, work); }
void meet(const TripWork& work) { meet_in_pairs(Crew{}, work); }
void answer(const TripWork& work) { answer_words(Crew{}, work); }
void copy(const TripWork& work) { copy_on_command(Crew{}, work); }
void post(const TripWork& work) { post_on_command(Crew{}, work); }
void take(const TripWork& work) { take_and_tell(Crew{}, work); }

TEST(BareKernels, TwoThatWaitForEachOtherBothComeToTheirEnd) {
  for (const auto& body : {flags, packets, meet}) {
    TwoEnds two;
    two.run_both(body);
    for (const KernelEnd& end : two.ends) {
      EXPECT_EQ(end.over, 1U);
      EXPECT_EQ(end.wrong, 0U);
    }
    EXPECT_GT(two.ends[0].nanoseconds, 0U);
  }
}

// Alone, and told to leave or out of time.
TEST(BareKernels, NoneWaitsWithoutEnd) {
  for (const auto& body : {flags, packets, meet, answer, copy, post, take}) {
    TwoEnds told;
    told.stop = 1;
    body(told.work(1));
    EXPECT_EQ(told.ends[1].over, 0U);
    TwoEnds late;
    TripWork work = late.work(1);
    work.most = kSecond / 1000;
    body(work);
    EXPECT_EQ(late.ends[1].over, 0U);
  }
}

TEST(BareKernels, PacketsWithOtherBytesAreCounted) {
  TwoEnds two;
  TripWork work = two.work(1);
  work.bytes = 8;
  work.trips = 1;
  two.packets[1][0] = channel::packed(channel::number_of(1), 12345);
  packets(work);
  EXPECT_EQ(two.ends[1].over, 1U);
  EXPECT_EQ(two.ends[1].wrong, 1U);
}

// Every size to three packets, and what lies behind stays as it was.
TEST(BareKernels, ResidentOnesBringWhatTheProcessorOrders) {
  for (std::uint64_t bytes = 1; bytes <= 40; ++bytes) {
    TwoEnds two;
    for (std::size_t n = 0; n < two.from.size(); ++n) two.from[n] = static_cast<std::byte>(n * 37 + 1);
    std::vector<std::byte> wanted(two.to.size(), std::byte{0xee});
    const bool as_words = bytes == 4 || bytes % 8 == 0;  // what is posted
    for (const bool posted : {false, true}) {
      if (posted && !as_words) continue;
      two.to = std::vector<std::byte>(two.to.size(), std::byte{0xee});
      std::uint64_t command = std::uint64_t{1} << 32 | bytes;
      std::uint64_t done = 0;
      TripWork work = two.work(0);
      work.await = &command;
      work.tell = &done;
      work.trips = 1;
      work.bytes = bytes;
      if (posted) {
        TripWork taker = two.work(1);
        taker.tell = &done;
        taker.trips = 1;
        taker.bytes = bytes;
        post(work);
        take(taker);
      } else {
        copy(work);
      }
      EXPECT_EQ(done, 1U);
      std::copy_n(two.from.begin(), bytes, wanted.begin());
      EXPECT_EQ(two.to, wanted) << bytes << (posted ? " posted" : " copied");
    }
  }
}

// A block's part is smaller, as long as, and longer than a copy; copies overlap nothing but their own place.
TEST(BareKernels, StoreKernelsBringEveryByteToItsPlace) {
  for (const std::uint64_t bytes : {1U, 15U, 16U, 17U, 48U, 1000U}) {
    for (const std::uint64_t part : {16U, 64U, 4096U}) {
      const std::uint64_t stride = (bytes + 15) / 16 * 16;
      constexpr std::uint64_t kPlaces = 3;
      std::vector<channel::Quad> from(stride / 16 * kPlaces);
      std::vector<channel::Quad> to(from.size());
      auto* const sent = reinterpret_cast<std::byte*>(from.data());
      auto* const found = reinterpret_cast<std::byte*>(to.data());
      for (std::uint64_t n = 0; n < stride * kPlaces; ++n) sent[n] = static_cast<std::byte>(n * 37 + 1);
      std::fill_n(found, stride * kPlaces, std::byte{0xee});
      const StoreWork work{found, sent, bytes, stride, kPlaces, 5, part};
      for (unsigned block = 0; block < 4; ++block) store_copies(Crew{0, 1, block, 4}, work);
      for (std::uint64_t n = 0; n < stride * kPlaces; ++n)
        EXPECT_EQ(found[n], n % stride < bytes ? sent[n] : std::byte{0xee}) << bytes << ' ' << part << ' ' << n;
    }
  }
}

}  // namespace
}  // namespace ist::cli
