// The list of paths, made as a world makes it.
#include "path/paths.hpp"

#include <gtest/gtest.h>

namespace ist::test {
namespace {

TEST(Paths, AloneThereAreSelfAndShmAndSelfReachesThisRank) {
  const Settings settings;
  auto boot = join_job(settings);
  ASSERT_TRUE(boot.ok()) << boot.status().text();
  if ((*boot)->size() != 1) GTEST_SKIP() << "started as one rank of several";
  auto peers = Peers::connect(**boot, settings);
  ASSERT_TRUE(peers.ok()) << peers.status().text();
  auto kinds = Kinds::load("host");
  ASSERT_TRUE(kinds.ok()) << kinds.status().text();
  PinnedPool pool{**kinds, mebibytes(1)};
  PathContext context{**boot, **peers, settings, pool};
  auto paths = make_paths(context);
  ASSERT_TRUE(paths.ok()) << paths.status().text();
  ASSERT_EQ(paths->size(), 2U);
  EXPECT_EQ((*paths)[0]->name(), "self");
  EXPECT_EQ((*paths)[1]->name(), "shm");
  Link* link = (*paths)[0]->link(Rank{0});
  ASSERT_NE(link, nullptr);
  EXPECT_TRUE(link->same_process());
  EXPECT_EQ((*paths)[1]->link(Rank{0}), nullptr);
  for (const auto& path : *paths) EXPECT_TRUE(path->lock_memory().ok());
  EXPECT_EQ(*link->outgoing(), nullptr);
  EXPECT_EQ(*link->incoming(), nullptr);
}

}  // namespace
}  // namespace ist::test
