// Copies for another processor: every byte arrives by every way, and the quickest is found and left as the machine changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "memory/host/handing_copy.hpp"

namespace ist {
namespace {

using Way = CopyPace::Way;

// Ticks per byte on machines that there are: through the caches by loops, past them and by strings; where processors are near, and where they are far
// apart, and where strings take several lines at a time.
using Machine = std::array<double, 3>;
constexpr Machine kNear{1, 2, 3};
constexpr Machine kFar{9, 2, 5};
constexpr Machine kStrings{9, 4, 2};

// So many copies; how many of them went that way.
int copy(CopyPace& pace, const Machine& machine, int copies, Way counted = Way::past) {
  int times = 0;
  for (int i = 0; i < copies; ++i) {
    const auto [way, timed] = pace.next();
    times += way == counted ? 1 : 0;
    if (timed) pace.took(way, machine.at(static_cast<std::size_t>(way)));
  }
  return times;
}

TEST(CopyPace, BeginsThroughTheCaches) {
  CopyPace pace;
  EXPECT_EQ(0, copy(pace, kFar, static_cast<int>(CopyPace::kFirstPause)));
}

TEST(CopyPace, BeginsWithTheWayThatIsNamed) {
  CopyPace pace{Way::string};
  EXPECT_EQ(static_cast<int>(CopyPace::kFirstPause), copy(pace, kFar, static_cast<int>(CopyPace::kFirstPause), Way::string));
}

TEST(HandingCopy, LongCopiesBeginWithStringsWhereTheProcessorPrefersThem) {
  for (const std::size_t size : {HandingCopy::kLeast, HandingCopy::kLeastByStrings - 1})
    EXPECT_EQ(Way::through, HandingCopy::first_way(size)) << size;
  for (const std::size_t size : {HandingCopy::kLeastByStrings, std::size_t{262144}, std::size_t{1} << 30})
    EXPECT_EQ(prefers_strings() ? Way::string : Way::through, HandingCopy::first_way(size)) << size;
}

TEST(CopyPace, TheQuickestWayStaysAndTheOthersAreTriedNowAndThen) {
  CopyPace pace;
  const int trials = copy(pace, kNear, 20000);
  EXPECT_EQ(Way::through, pace.way());
  EXPECT_GE(trials, 2 * 20000 / 600);
  EXPECT_LE(trials, 2 * 20000 / 400);
}

TEST(CopyPace, WhereProcessorsAreFarApartItGoesPastTheCaches) {
  CopyPace pace;
  copy(pace, kFar, static_cast<int>(CopyPace::kFirstPause) + 1);
  EXPECT_EQ(Way::past, pace.way());
  EXPECT_GE(copy(pace, kFar, 20000), 20000 - 4 * 20000 / 400);
}

TEST(CopyPace, EachOfTheOtherWaysIsTried) {
  CopyPace pace;
  copy(pace, kStrings, static_cast<int>(CopyPace::kFirstPause) + 1);
  EXPECT_EQ(Way::past, pace.way()) << "the first that is tried";
  copy(pace, kStrings, static_cast<int>(CopyPace::kFirstPause + CopyPace::kTrials));
  EXPECT_EQ(Way::string, pace.way());
  EXPECT_GE(copy(pace, kStrings, 20000, Way::string), 20000 - 4 * 20000 / 400);
}

// Behind each pause, of which each is twice as long, so many copies go each of the other ways.
TEST(CopyPace, AWayWhoseFirstTrialIsHopelessIsSparedTheSecondOne) {
  static_assert(CopyPace::kTrials == 2 && CopyPace::kHopeless > 3 && CopyPace::kHopeless < 5);
  constexpr int kFirstPause = CopyPace::kFirstPause;
  for (const auto& [machine, trials] : {std::pair{Machine{1, 5, 6}, 1}, std::pair{Machine{1, 2, 3}, 2}}) {
    CopyPace pace;
    for (int pause = kFirstPause; pause <= 8 * kFirstPause; pause *= 2) {
      EXPECT_EQ(pause, copy(pace, machine, pause, Way::through));
      EXPECT_EQ(trials, copy(pace, machine, trials, Way::past)) << "after " << pause;
      EXPECT_EQ(trials, copy(pace, machine, trials, Way::string)) << "after " << pause;
    }
    EXPECT_EQ(Way::through, pace.way());
  }
}

TEST(CopyPace, AMachineThatChangesIsFollowed) {
  CopyPace pace;
  copy(pace, kNear, 20000);
  copy(pace, kFar, 4 * static_cast<int>(CopyPace::kTimedOf));
  EXPECT_EQ(Way::past, pace.way()) << "a processor went away";
  copy(pace, kNear, 2 * static_cast<int>(CopyPace::kLongestPause));
  EXPECT_EQ(Way::through, pace.way()) << "it came back";
}

TEST(CopyPace, ACopyThatWasHeldUpChangesNothing) {
  CopyPace pace;
  copy(pace, kNear, 2000);
  pace.took(Way::through, 1000);
  EXPECT_EQ(Way::through, pace.way());
  pace.took(Way::through, 1);
  pace.took(Way::past, 1000);
  EXPECT_EQ(Way::through, pace.way());
}

constexpr std::byte kUntouched{0xa5};

// A place for so many bytes that begins a line, with a line behind it.
class Place {
 public:
  explicit Place(std::size_t size) : size_(size), memory_(size + 128 + 64, kUntouched) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    begin_ = memory_.data() + (64 - address % 64) % 64;
  }
  std::byte* begin() { return begin_; }
  void expect(const std::byte* wanted) const {
    EXPECT_TRUE(std::equal(wanted, wanted + size_, begin_)) << size_ << " bytes";
    EXPECT_TRUE(std::all_of(begin_ + size_, begin_ + size_ + 64, [](std::byte byte) { return byte == kUntouched; }))
        << size_;
  }

 private:
  std::size_t size_;
  std::vector<std::byte> memory_;
  std::byte* begin_;
};

std::vector<std::byte> random_bytes(std::size_t size) {
  std::vector<std::byte> bytes(size);
  std::mt19937 random{std::random_device{}()};
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

constexpr std::size_t kSizes[] = {0,    1,    63,   64,   65,   1023, 1024,  1025,  2047,  2048,  2049,
                                  4095, 4096, 4097, 8191, 8192, 8193, 65535, 65536, 65537, 300000};

TEST(HandingCopy, EveryByteArrivesByEveryWayFromAnyAddress) {
  for (const std::size_t size : kSizes)
    for (const std::size_t first : {0, 1, 7, 32}) {
      const auto bytes = random_bytes(size + first);
      for (const Way way : {Way::through, Way::past, Way::string}) {
        Place place{size};
        HandingCopy::copy(way, place.begin(), bytes.data() + first, size);
        place.expect(bytes.data() + first);
      }
    }
}

TEST(HandingCopy, EveryByteIsTakenOutAgain) {
  for (const auto& copy :
       {copy_across, copy_by_lines, copy_by_string, move_across})  // by_lines: whatever this processor prefers
    for (const std::size_t size : kSizes)
      for (const std::size_t first : {0, 1, 8, 63}) {
        const auto bytes = random_bytes(size);
        std::vector<std::byte> place(size + first + 64, kUntouched);
        copy(place.data() + first, bytes.data(), size);
        EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), place.begin() + static_cast<std::ptrdiff_t>(first))) << size;
        EXPECT_EQ(64 + static_cast<std::ptrdiff_t>(first),
                  std::count(place.begin(), place.begin() + static_cast<std::ptrdiff_t>(first), kUntouched) +
                      std::count(place.end() - 64, place.end(), kUntouched));
      }
}

TEST(HandingCopy, WhatOverlapsMovesAsThroughASecondBuffer) {
  constexpr std::ptrdiff_t kFarthest = 9000;
  for (const std::ptrdiff_t size : {0, 1, 2047, 2048, 4096, 8193, 20000})
    for (const std::ptrdiff_t far : {-kFarthest, std::ptrdiff_t{-64}, std::ptrdiff_t{-1}, std::ptrdiff_t{0},
                                     std::ptrdiff_t{1}, std::ptrdiff_t{64}, kFarthest}) {
      auto bytes = random_bytes(static_cast<std::size_t>(size + 2 * kFarthest));
      auto wanted = bytes;
      const std::vector<std::byte> second(bytes.begin() + kFarthest, bytes.begin() + kFarthest + size);
      std::copy(second.begin(), second.end(), wanted.begin() + kFarthest + far);
      move_across(bytes.data() + kFarthest + far, bytes.data() + kFarthest, static_cast<std::size_t>(size));
      EXPECT_EQ(wanted, bytes) << size << " bytes moved by " << far;
    }
}

// Nobody who calls so gives such a place; its bytes must not depend on that.
TEST(HandingCopy, AlsoToWhereNoLineBegins) {
  const auto bytes = random_bytes(5000);
  std::vector<std::byte> place(5001, kUntouched);
  HandingCopy::copy(Way::past, place.data() + 1, bytes.data(), bytes.size());
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), place.begin() + 1));
  EXPECT_EQ(kUntouched, place.front());
}

TEST(HandingCopy, EveryByteArrivesWhileWaysAreTried) {
  HandingCopy handing;
  for (int round = 0; round < 100; ++round)
    for (const std::size_t size : kSizes) {
      if (size > 5000 && round % 10 != 0) continue;
      const auto bytes = random_bytes(size);
      Place place{size};
      handing.copy(place.begin(), bytes.data(), size);
      place.expect(bytes.data());
      if (HasFailure()) return;
    }
}

// Each way, and whichever is quickest, from any place to any other; nothing beside it is touched.
TEST(TakingCopy, CopiesEveryByteWhicheverWayItGoes) {
  using Forced = std::optional<TakingCopy::Way>;
  std::mt19937_64 random{std::random_device{}()};
  constexpr std::size_t kMargin = 64;
  for (const Forced way : {Forced{}, Forced{TakingCopy::Way::lines}, Forced{TakingCopy::Way::string}}) {
    TakingCopy::force(way);
    TakingCopy copier;
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, TakingCopy::kLeast - 1, TakingCopy::kLeast, TakingCopy::kLeast + 1,
          std::size_t{49153}, std::size_t{65535}, std::size_t{65536}, std::size_t{131071}, std::size_t{131072}})
      for (int i = 0; i < 100; ++i) {
        std::vector<std::byte> from(size + 2 * kMargin);
        for (std::byte& byte : from) byte = static_cast<std::byte>(random());
        std::vector<std::byte> to(from.size(), std::byte{0x5a});
        const std::size_t at = random() % kMargin;
        const std::size_t there = random() % kMargin;
        copier.copy(to.data() + there, from.data() + at, size);
        ASSERT_TRUE(std::equal(to.begin() + static_cast<std::ptrdiff_t>(there),
                               to.begin() + static_cast<std::ptrdiff_t>(there + size),
                               from.begin() + static_cast<std::ptrdiff_t>(at)))
            << size;
        const auto untouched = [](std::byte byte) { return byte == std::byte{0x5a}; };
        ASSERT_TRUE(std::all_of(to.begin(), to.begin() + static_cast<std::ptrdiff_t>(there), untouched)) << size;
        ASSERT_TRUE(std::all_of(to.begin() + static_cast<std::ptrdiff_t>(there + size), to.end(), untouched)) << size;
      }
  }
  TakingCopy::force(std::nullopt);
}

TEST(PrefersStrings, WhereTheProcessorIsSaidToBeQuickWithThem) {
  std::ifstream processors{"/proc/cpuinfo"};
  std::string word;
  bool listed = false;
  while (processors >> word) listed = listed || word == "fsrm";
  // A kernel may have been told not to list it.
  EXPECT_TRUE(prefers_strings() || !listed);
}

}  // namespace
}  // namespace ist
