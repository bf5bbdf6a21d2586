// Graphs of the example programs, captured over the fake driver.
#include <gtest/gtest.h>

#include <optional>
#include <type_traits>

#include "common/cuda.hpp"
#include "played_driver.hpp"

namespace {

using example::cuda::captured, example::cuda::Graph, example::cuda::Stream;

static_assert(!std::is_copy_constructible_v<Graph> && !std::is_copy_assignable_v<Graph>);

class Captured : public testing::Test {
 protected:
  Captured() {
    int devices = 0;
    example::cuda::check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
    example::cuda::check(cudaSetDevice(0), "cudaSetDevice");
    stream_.emplace();
  }
  Graph counting() {
    return captured(stream_->get(), [&] { played::post(stream_->get(), [&] { ++times_; }); });
  }
  int times() const {
    stream_->wait();
    return times_;
  }

  std::optional<Stream> stream_;
  int times_ = 0;
};

TEST_F(Captured, runs_at_each_launch_and_moves) {
  Graph graph = counting();
  EXPECT_EQ(times(), 0);
  graph.launch(stream_->get());
  graph.launch(stream_->get());
  EXPECT_EQ(times(), 2);
  Graph other;
  EXPECT_FALSE(other);
  other = std::move(graph);
  const Graph last(std::move(other));
  EXPECT_TRUE(last);
  last.launch(stream_->get());
  EXPECT_EQ(times(), 3);
}

// The stream can be used and captured as before.
TEST_F(Captured, ends_where_a_call_inside_throws) {
  EXPECT_THROW(captured(stream_->get(),
                        [&] {
                          played::post(stream_->get(), [&] { times_ = 100; });
                          throw std::runtime_error("inside");
                        }),
               std::runtime_error);
  played::post(stream_->get(), [&] { ++times_; });
  EXPECT_EQ(times(), 1);
  counting().launch(stream_->get());
  EXPECT_EQ(times(), 2);
}

}  // namespace
