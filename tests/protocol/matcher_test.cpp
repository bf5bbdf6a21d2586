// MPI's rules of matching, one by one, and then all of them against a model that is too simple to be wrong.
#include "match/matcher.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace ist {
namespace {

Envelope envelope(std::int32_t tag, std::uint32_t context = 0, EnvelopeType type = EnvelopeType::eager) {
  Envelope made;
  made.tag = tag;
  made.context = context;
  made.type = type;
  return made;
}

// A message that can be told from all others by its sequence and its byte.
Unexpected message(int source, const Envelope& about, std::uint32_t number) {
  Unexpected made{Rank{source}, about, {static_cast<std::byte>(number)}};
  made.envelope.sequence = number;
  return made;
}

// As the engine does: the first kept message that the pattern takes, or the receive is posted.
std::optional<Unexpected> match_or_post(Matcher& matcher, const Pattern& pattern, std::uint32_t operation) {
  const auto kept = matcher.find(pattern);
  if (!kept) {
    matcher.post(pattern, operation);
    return std::nullopt;
  }
  std::optional<Unexpected> found = **kept;
  matcher.drop(*kept);
  return found;
}

TEST(Matcher, APeekLeavesTheMessageAndAClaimTakesItOutOfTheOrder) {
  Matcher matcher;
  EXPECT_EQ(matcher.peek({0, kAnySource, kAnyTag}), nullptr);
  EXPECT_FALSE(matcher.claim({0, kAnySource, kAnyTag}).has_value());
  matcher.keep(message(1, envelope(5), 100));
  matcher.keep(message(1, envelope(5), 101));
  EXPECT_EQ(matcher.peek({0, 1, 6}), nullptr);
  EXPECT_EQ(matcher.peek({3, 1, 5}), nullptr);
  for (int twice = 0; twice < 2; ++twice) EXPECT_EQ(matcher.peek({0, 1, kAnyTag})->envelope.sequence, 100U);
  EXPECT_EQ(matcher.claim({0, kAnySource, 5})->envelope.sequence, 100U);
  EXPECT_EQ(matcher.peek({0, 1, 5})->envelope.sequence, 101U);
  EXPECT_EQ(match_or_post(matcher, {0, 1, 5}, 10)->envelope.sequence, 101U);
  EXPECT_EQ(matcher.unexpected(), 0U);
}

TEST(Matcher, OfTwoPostedReceivesTheFirstGetsTheMessage) {
  Matcher matcher;
  EXPECT_FALSE(match_or_post(matcher, {0, 1, 5}, 10));
  EXPECT_FALSE(match_or_post(matcher, {0, 1, 5}, 11));
  EXPECT_EQ(matcher.match(Rank{1}, envelope(5)), 10U);
  EXPECT_EQ(matcher.match(Rank{1}, envelope(5)), 11U);
  EXPECT_EQ(matcher.match(Rank{1}, envelope(5)), std::nullopt);
  EXPECT_EQ(matcher.posted(), 0U);
}

TEST(Matcher, AWildcardPostedFirstComesBeforeTheExactReceiveAndAfterItOtherwise) {
  Matcher matcher;
  EXPECT_FALSE(match_or_post(matcher, {0, kAnySource, kAnyTag}, 10));
  EXPECT_FALSE(match_or_post(matcher, {0, 1, 5}, 11));
  EXPECT_FALSE(match_or_post(matcher, {0, kAnySource, 5}, 12));
  EXPECT_FALSE(match_or_post(matcher, {0, 1, kAnyTag}, 13));
  for (const std::uint32_t operation : {10U, 11U, 12U, 13U}) EXPECT_EQ(matcher.match(Rank{1}, envelope(5)), operation);
}

TEST(Matcher, OfTwoKeptMessagesTheReceiveTakesTheOneSentFirst) {
  Matcher matcher;
  for (std::uint32_t i = 0; i < 4; ++i) matcher.keep(message(static_cast<int>(i % 2), envelope(5), i));
  EXPECT_EQ(match_or_post(matcher, {0, 1, 5}, 10)->envelope.sequence, 1U);
  EXPECT_EQ(match_or_post(matcher, {0, kAnySource, 5}, 10)->envelope.sequence, 0U);
  EXPECT_EQ(match_or_post(matcher, {0, kAnySource, kAnyTag}, 10)->envelope.sequence, 2U);
  const auto last = match_or_post(matcher, {0, 1, kAnyTag}, 10);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->envelope.sequence, 3U);
  EXPECT_EQ(last->source, Rank{1});
  ASSERT_EQ(last->bytes.size(), 1U);
  EXPECT_EQ(last->bytes.front(), std::byte{3});
  EXPECT_EQ(matcher.unexpected(), 0U);
  EXPECT_EQ(matcher.posted(), 0U);
}

TEST(Matcher, NothingMatchesAcrossContextsNotEvenWildcards) {
  Matcher matcher;
  EXPECT_FALSE(match_or_post(matcher, {1, kAnySource, kAnyTag}, 10));
  EXPECT_EQ(matcher.match(Rank{0}, envelope(5, 2)), std::nullopt);
  matcher.keep(message(0, envelope(5, 2), 0));
  EXPECT_FALSE(match_or_post(matcher, {3, kAnySource, kAnyTag}, 11));
  EXPECT_TRUE(match_or_post(matcher, {2, kAnySource, kAnyTag}, 12));
  EXPECT_EQ(matcher.match(Rank{0}, envelope(5, 1)), 10U);
  EXPECT_EQ(matcher.match(Rank{0}, envelope(5, 3)), 11U);
}

TEST(Matcher, TagsAndSourcesMustAgree) {
  Matcher matcher;
  EXPECT_FALSE(match_or_post(matcher, {0, 1, 5}, 10));
  EXPECT_EQ(matcher.match(Rank{1}, envelope(4)), std::nullopt);
  EXPECT_EQ(matcher.match(Rank{2}, envelope(5)), std::nullopt);
  EXPECT_EQ(matcher.posted(), 1U);
  EXPECT_EQ(matcher.match(Rank{1}, envelope(5)), 10U);
}

TEST(Matcher, AWithdrawnReceiveIsGoneOnceAndTheOthersKeepTheirOrder) {
  Matcher matcher;
  for (const std::uint32_t operation : {10U, 11U, 12U}) EXPECT_FALSE(match_or_post(matcher, {0, 1, 5}, operation));
  EXPECT_TRUE(matcher.withdraw(11));
  EXPECT_FALSE(matcher.withdraw(11));
  EXPECT_FALSE(matcher.withdraw(99));
  EXPECT_FALSE(match_or_post(matcher, {0, 1, 5}, 13));
  for (const std::uint32_t operation : {10U, 12U, 13U}) EXPECT_EQ(matcher.match(Rank{1}, envelope(5)), operation);
  EXPECT_FALSE(matcher.withdraw(12)) << "matched, so no longer posted";
}

TEST(Matcher, OfALostRankOnlyWhatItHadAnnouncedIsForgotten) {
  Matcher matcher;
  matcher.keep(message(1, envelope(5, 0, EnvelopeType::announce), 0));
  matcher.keep(message(1, envelope(5), 1));
  matcher.keep(message(2, envelope(5, 0, EnvelopeType::announce), 2));
  matcher.keep(message(1, envelope(6, 7, EnvelopeType::announce), 3));
  matcher.forget_announced(Rank{1});
  EXPECT_EQ(matcher.unexpected(), 2U);
  EXPECT_EQ(match_or_post(matcher, {0, kAnySource, kAnyTag}, 10)->envelope.sequence, 1U);
  EXPECT_EQ(match_or_post(matcher, {0, kAnySource, kAnyTag}, 10)->envelope.sequence, 2U);
}

TEST(Matcher, WhatItsSenderHasTakenBackIsForgottenAloneAndOnce) {
  Matcher matcher;
  const auto announced = [](std::uint32_t sequence, std::uint32_t sender_op) {
    Envelope about = envelope(5, 0, EnvelopeType::announce);
    about.sequence = sequence;
    about.sender_op = sender_op;
    return about;
  };
  matcher.keep({Rank{1}, announced(0, 7), {}});
  matcher.keep({Rank{1}, announced(1, 8), {}});
  matcher.keep({Rank{2}, announced(2, 8), {}});
  for (int times = 0; times < 2; ++times) matcher.forget_announced(Rank{1}, 8);
  EXPECT_EQ(matcher.unexpected(), 2U);
  EXPECT_EQ(match_or_post(matcher, {0, kAnySource, kAnyTag}, 10)->envelope.sequence, 0U);
  EXPECT_EQ(match_or_post(matcher, {0, kAnySource, kAnyTag}, 10)->envelope.sequence, 2U);
}

// Two vectors, searched from the front.
class Model {
 public:
  std::optional<std::uint32_t> match(Rank source, const Envelope& about) {
    const auto taker = std::find_if(posted_.begin(), posted_.end(),
                                    [&](const auto& receive) { return fits(receive.first, source, about); });
    if (taker == posted_.end()) return std::nullopt;
    const std::uint32_t operation = taker->second;
    posted_.erase(taker);
    return operation;
  }
  void keep(const Unexpected& kept) { unexpected_.push_back(kept); }
  std::optional<Unexpected> match_or_post(const Pattern& pattern, std::uint32_t operation) {
    const auto first = std::find_if(unexpected_.begin(), unexpected_.end(),
                                    [&](const Unexpected& kept) { return fits(pattern, kept.source, kept.envelope); });
    if (first == unexpected_.end()) {
      posted_.emplace_back(pattern, operation);
      return std::nullopt;
    }
    std::optional<Unexpected> found = *first;
    unexpected_.erase(first);
    return found;
  }
  bool withdraw(std::uint32_t operation) {
    return std::erase_if(posted_, [&](const auto& receive) { return receive.second == operation; }) > 0;
  }
  void forget_announced(Rank source) {
    std::erase_if(unexpected_, [&](const Unexpected& kept) {
      return kept.source == source && kept.envelope.type == EnvelopeType::announce;
    });
  }
  std::size_t posted() const { return posted_.size(); }
  std::size_t unexpected() const { return unexpected_.size(); }

 private:
  static bool fits(const Pattern& pattern, Rank source, const Envelope& about) {
    if (pattern.context != about.context) return false;
    if (pattern.source != -1 && pattern.source != source.value) return false;
    return pattern.tag == -1 || pattern.tag == about.tag;
  }
  std::vector<std::pair<Pattern, std::uint32_t>> posted_;
  std::vector<Unexpected> unexpected_;
};

class RandomTraffic {
 public:
  explicit RandomTraffic(unsigned seed) : random_(seed) {}

  void step() {
    const int kind = below(100);
    if (kind < 48) {
      arrive();
    } else if (kind < 96) {
      receive();
    } else if (kind < 99) {
      const auto operation = static_cast<std::uint32_t>(below(static_cast<int>(next_operation_) + 1));
      EXPECT_EQ(matcher_.withdraw(operation), model_.withdraw(operation));
    } else {
      const Rank lost{below(3)};
      matcher_.forget_announced(lost);
      model_.forget_announced(lost);
    }
    EXPECT_EQ(matcher_.posted(), model_.posted());
    EXPECT_EQ(matcher_.unexpected(), model_.unexpected());
  }

 private:
  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }

  void arrive() {
    const auto type = below(3) == 0 ? EnvelopeType::announce : EnvelopeType::eager;
    const Unexpected arrived =
        message(below(3), envelope(below(3), static_cast<std::uint32_t>(below(2)), type), next_message_++);
    const auto found = matcher_.match(arrived.source, arrived.envelope);
    EXPECT_EQ(found, model_.match(arrived.source, arrived.envelope));
    if (found) return;
    matcher_.keep(arrived);
    model_.keep(arrived);
  }

  void receive() {
    const Pattern pattern{static_cast<std::uint32_t>(below(2)), below(4) - 1, below(4) - 1};
    const std::uint32_t operation = next_operation_++;
    const auto found = match_or_post(matcher_, pattern, operation);
    const auto wanted = model_.match_or_post(pattern, operation);
    ASSERT_EQ(found.has_value(), wanted.has_value());
    if (!found) return;
    EXPECT_EQ(found->envelope.sequence, wanted->envelope.sequence);
    EXPECT_EQ(found->source, wanted->source);
    EXPECT_EQ(found->bytes, wanted->bytes);
  }

  std::mt19937 random_;
  Matcher matcher_;
  Model model_;
  std::uint32_t next_message_ = 0;
  std::uint32_t next_operation_ = 0;
};

TEST(Matcher, AgreesWithTheSimplestModelOverThousandsOfRandomOperations) {
  const unsigned seed = std::random_device{}();
  for (unsigned round = 0; round < 20; ++round) {
    RandomTraffic traffic{seed + round};
    for (int i = 0; i < 2000 && !testing::Test::HasFailure(); ++i) traffic.step();
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed + round;
  }
}

// Of one rank's messages: only receives before it that could take one of them stand in its way, and gaps do not.
TEST(Matcher, the_last_receive_comes_first_if_none_before_it_takes_its_source) {
  Matcher matcher;
  matcher.post({0, 2, 7}, 1);
  EXPECT_TRUE(matcher.last_comes_first(Rank{2}));
  matcher.post({0, 1, 7}, 2);
  EXPECT_TRUE(matcher.last_comes_first(Rank{1}));
  matcher.post({5, 1, 9}, 3);
  EXPECT_FALSE(matcher.last_comes_first(Rank{1}));
  EXPECT_TRUE(matcher.withdraw(2));
  EXPECT_TRUE(matcher.last_comes_first(Rank{1}));
  matcher.post({0, kAnySource, 7}, 4);
  EXPECT_FALSE(matcher.last_comes_first(Rank{3}) && matcher.last_comes_first(Rank{1}));
  matcher.post({0, 3, 7}, 5);
  EXPECT_FALSE(matcher.last_comes_first(Rank{3}));
  EXPECT_TRUE(matcher.withdraw(4));
  EXPECT_TRUE(matcher.last_comes_first(Rank{3}));
}

// Nobody looks through many.
TEST(Matcher, behind_many_receives_none_is_said_to_come_first) {
  Matcher matcher;
  for (std::uint32_t i = 0; i < 20; ++i) matcher.post({0, 1, 7}, i);
  matcher.post({0, 2, 7}, 20);
  EXPECT_FALSE(matcher.last_comes_first(Rank{2}));
}

}  // namespace
}  // namespace ist
