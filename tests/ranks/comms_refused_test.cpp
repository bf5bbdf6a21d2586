// One rank cannot take part in making a communicator: it has its own error, and all others hear of it. Run on 1 to 5 ranks.
#include <isthmus/collective.h>

#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "rank_test.hpp"

namespace {

using namespace rank_test;

// Makes one, wrongly where `bad`; says whether the rank was told its own mistake by these words.
struct Way {
  const char* name;
  const char* own_words;
  std::function<int(bool bad, ist_comm* created)> make;
};

std::vector<Way> ways() {
  return {
      {"duplicate", "the place for the new communicator is null",
       [](bool bad, ist_comm* created) { return ist_comm_dup(comm(), bad ? nullptr : created); }},
      {"split", "color is -9", [](bool bad, ist_comm* created) { return ist_comm_split(comm(), bad ? -9 : 1, 0, created); }},
      {"one host", "the place for the new communicator is null",
       [](bool bad, ist_comm* created) { return ist_comm_split_local(comm(), 0, bad ? nullptr : created); }},
      {"grid", "the grid has",
       [](bool bad, ist_comm* created) {
         const int places = bad ? size() + 1 : size();
         const int periods = 0;
         return ist_cart_create(comm(), 1, &places, &periods, 0, created);
       }},
      {"grid without dimensions", "ndims is 0", [](bool bad, ist_comm* created) {
         const int places = size();
         const int periods = 0;
         return ist_cart_create(comm(), bad ? 0 : 1, &places, &periods, 0, created);
       }}};
}

// Everybody makes one, all the same, and its ranks exchange something.
void expect_to_work(const char* after) {
  ist_comm made = IST_COMM_NULL;
  ASSERT_EQ(IST_OK, ist_comm_dup(comm(), &made)) << after << ": " << ist_error_text();
  const int one = 1;
  int sum = 0;
  EXPECT_EQ(IST_OK, ist_allreduce(ist_host(&one), ist_host(&sum), 1, IST_INT, IST_SUM, made)) << ist_error_text();
  EXPECT_EQ(size(), sum) << after;
  IST_OK_OR_FAIL(ist_comm_free(&made));
}

void expect_all_to_hear(const Way& way, int wrong) {
  SCOPED_TRACE(std::string{way.name} + ", wrong at rank " + std::to_string(wrong));
  ist_comm made = IST_COMM_NULL;
  EXPECT_EQ(IST_ERR_ARGUMENT, way.make(rank() == wrong, &made));
  const std::string text = ist_error_text();
  EXPECT_EQ(IST_COMM_NULL, made);
  if (rank() == wrong)
    EXPECT_NE(std::string::npos, text.find(way.own_words)) << text;
  else
    EXPECT_NE(std::string::npos, text.find("rank " + std::to_string(wrong) + " of world could not take part")) << text;
}

TEST(RefusedComms, AreToldToAllMembersWhicheverRankIsWrong) {
  for (const Way& way : ways())
    for (int wrong = 0; wrong < size(); ++wrong) {
      expect_all_to_hear(way, wrong);
      expect_to_work(way.name);
    }
}

TEST(RefusedComms, ASubgridToo) {
  const int places = size();
  const int periods = 1;
  ist_comm grid = IST_COMM_NULL;
  IST_OK_OR_FAIL(ist_cart_create(comm(), 1, &places, &periods, 0, &grid));
  for (int wrong = 0; wrong < size(); ++wrong) {
    const int remain = 1;
    ist_comm part = IST_COMM_NULL;
    EXPECT_EQ(IST_ERR_ARGUMENT, ist_cart_sub(grid, rank() == wrong ? 2 : 1, &remain, &part)) << ist_error_text();
    EXPECT_EQ(IST_COMM_NULL, part);
    IST_OK_OR_FAIL(ist_cart_sub(grid, 1, &remain, &part));
    IST_OK_OR_FAIL(ist_comm_free(&part));
  }
  // Where all are wrong each has its own words, and the next call is not disturbed.
  ist_comm part = IST_COMM_NULL;
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_cart_sub(grid, 1, nullptr, &part));
  EXPECT_NE(nullptr, std::strstr(ist_error_text(), "remain is null")) << ist_error_text();
  IST_OK_OR_FAIL(ist_comm_free(&grid));
  expect_to_work("all were wrong");
}

// Several at once: the first is named.
TEST(RefusedComms, NameTheFirstOfSeveral) {
  if (size() < 3) GTEST_SKIP() << "not covered here: two ranks that are wrong and a third; run it on 3 or more";
  ist_comm made = IST_COMM_NULL;
  const bool own = rank() == 1 || rank() == size() - 1;
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_comm_split(comm(), own ? -10 - rank() : 1, 0, &made));
  EXPECT_NE(nullptr, std::strstr(ist_error_text(), own ? "color is -" : "rank 1 of world could not take part"))
      << ist_error_text();
  expect_to_work("several were wrong");
}

// Members of a group wait for the first alone, which tells those that it has in its list.
TEST(RefusedComms, TheFirstOfAGroupTellsThoseItLists) {
  if (size() < 2) GTEST_SKIP() << "not covered here: a group of two; run it on 2 or more ranks";
  std::vector<int> all(static_cast<std::size_t>(size()));
  std::iota(all.begin(), all.end(), 0);
  std::vector<int> twice = all;
  twice.push_back(1);
  const std::vector<int>& list = rank() == 0 ? twice : all;
  ist_comm made = IST_COMM_NULL;
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_comm_create_group(comm(), static_cast<int>(list.size()), list.data(), 5, &made));
  EXPECT_NE(nullptr, std::strstr(ist_error_text(),
                                 rank() == 0 ? "rank 1 is in the list twice" : "rank 0 of world could not take part"))
      << ist_error_text();
  IST_OK_OR_FAIL(ist_comm_create_group(comm(), size(), all.data(), 5, &made));
  IST_OK_OR_FAIL(ist_comm_free(&made));
}

}  // namespace
