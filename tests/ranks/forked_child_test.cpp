// A forked child is no rank: its calls on what its parent had are errors, and leave no trace at the other ranks. Run on 1 and 2 ranks.
#include <isthmus/collective.h>
#include <isthmus/heap.h>
#include <isthmus/window.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include "rank_test.hpp"

namespace {

using namespace rank_test;

constexpr int kTag = 2;
constexpr int kNever = 3;
constexpr int kFromChild = 77;

// What the child has copies of.
struct Had {
  ist_heap heap = IST_HEAP_NULL;
  void* in_heap = nullptr;
  ist_window window = IST_WINDOW_NULL;
  ist_request receive = IST_REQUEST_NULL;
};

// In the child: 1 where it is not refused with words that say why.
int wrong(const char* name, int code) {
  if (code == IST_ERR_HANDLE && std::strstr(ist_error_text(), "forked from") != nullptr) return 0;
  std::fprintf(stderr, "%s in the child: %s (%s)\n", name, ist_code_name(code), ist_error_text());
  return 1;
}

int wrong_in_child(Had had) {
  const int value = kFromChild;
  int got = 0;
  int other = size() - 1;
  ist_comm made = IST_COMM_NULL;
  ist_request request = IST_REQUEST_NULL;
  ist_buffer memory{};
  int bad = wrong("ist_send", ist_send(ist_host(&value), 1, IST_INT, other, kTag, comm()));
  bad += wrong("ist_recv", ist_recv(ist_host(&got), 1, IST_INT, other, kTag, comm(), IST_STATUS_IGNORE));
  bad += wrong("ist_isend", ist_isend(ist_host(&value), 1, IST_INT, other, kTag, comm(), &request));
  bad += wrong("ist_wait", ist_wait(&had.receive, IST_STATUS_IGNORE));
  bad += wrong("ist_barrier", ist_barrier(comm()));
  bad += wrong("ist_iallreduce", ist_iallreduce(ist_host(&value), ist_host(&got), 1, IST_INT, IST_SUM, comm(), &request));
  bad += wrong("ist_comm_dup", ist_comm_dup(comm(), &made));
  bad += wrong("ist_world_comm", ist_world_comm(world(), &made));
  bad += wrong("ist_memory_alloc", ist_memory_alloc(world(), IST_KIND_HOST, 0, 4096, &memory));
  bad += wrong("ist_heap_put", ist_heap_put(had.heap, had.in_heap, ist_host(&value), sizeof value, other));
  bad += wrong("ist_heap_barrier", ist_heap_barrier(had.heap));
  bad += wrong("ist_window_put", ist_window_put(had.window, 0, ist_host(&value), sizeof value, other));
  // It may let go of its copy, once and for all.
  ist_world mine = world();
  bad += ist_world_leave(mine) == IST_OK ? 0 : 1;
  bad += ist_world_destroy(&mine) == IST_OK && mine == IST_WORLD_NULL ? 0 : 1;
  mine = world();
  bad += ist_world_destroy(&mine) == IST_OK ? 0 : 1;
  return bad;
}

class ForkedChild : public ::testing::Test {
 protected:
  void SetUp() override {
    IST_OK_OR_FAIL(ist_heap_create(comm(), IST_KIND_HOST, IST_OWN_DEVICE, 1 << 16, 0, &had_.heap));
    IST_OK_OR_FAIL(ist_heap_calloc(had_.heap, 1, sizeof(int), &had_.in_heap));
    IST_OK_OR_FAIL(ist_memory_alloc(world(), IST_KIND_HOST, 0, 1 << 16, &memory_));
    IST_OK_OR_FAIL(ist_window_create(comm(), memory_, 1 << 16, &had_.window));
    IST_OK_OR_FAIL(ist_irecv(ist_host(&late_), 1, IST_INT, IST_ANY_SOURCE, kNever, comm(), &had_.receive));
  }
  void TearDown() override {
    IST_OK_OR_FAIL(ist_cancel(had_.receive));
    IST_OK_OR_FAIL(ist_wait(&had_.receive, IST_STATUS_IGNORE));
    IST_OK_OR_FAIL(ist_window_free(&had_.window));
    IST_OK_OR_FAIL(ist_memory_free(world(), memory_));
    IST_OK_OR_FAIL(ist_heap_destroy(&had_.heap));
  }
  Had had_;
  ist_buffer memory_{};
  int late_ = 0;
};

// The parent sends before and behind it.
TEST_F(ForkedChild, IsRefusedAndDisturbsNothing) {
  const int to = size() - 1;
  for (int n = 0; n < 5; ++n) {
    std::array<ist_request, 2> sends{IST_REQUEST_NULL, IST_REQUEST_NULL};
    const std::array<int, 2> values{2 * n, 2 * n + 1};
    if (rank() == 0) {
      IST_OK_OR_FAIL(ist_isend(ist_host(&values[0]), 1, IST_INT, to, kTag, comm(), &sends[0]));
      const pid_t child = ::fork();
      if (child == 0) ::_exit(wrong_in_child(had_));
      int status = 0;
      ASSERT_EQ(child, ::waitpid(child, &status, 0));
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
      IST_OK_OR_FAIL(ist_isend(ist_host(&values[1]), 1, IST_INT, to, kTag, comm(), &sends[1]));
    }
    for (int i = 0; i < 2 && rank() == to; ++i) {
      int got = -1;
      IST_OK_OR_FAIL(ist_recv(ist_host(&got), 1, IST_INT, 0, kTag, comm(), IST_STATUS_IGNORE));
      EXPECT_EQ(2 * n + i, got);
    }
    if (rank() == 0) IST_OK_OR_FAIL(ist_waitall(2, sends.data(), IST_STATUSES_IGNORE));
  }
  int found = 1;
  IST_OK_OR_FAIL(ist_barrier(comm()));
  IST_OK_OR_FAIL(ist_iprobe(IST_ANY_SOURCE, IST_ANY_TAG, comm(), &found, IST_STATUS_IGNORE));
  EXPECT_EQ(0, found);
  EXPECT_EQ(0, *static_cast<int*>(had_.in_heap));
  EXPECT_EQ(0, late_);
}

// A child of a child, too.
TEST_F(ForkedChild, OfAForkedChildIsRefusedAllTheSame) {
  const pid_t child = ::fork();
  if (child == 0) {
    const pid_t inner = ::fork();
    if (inner == 0) ::_exit(wrong_in_child(had_));
    int status = 1;
    ::waitpid(inner, &status, 0);
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
  }
  int status = 0;
  ASSERT_EQ(child, ::waitpid(child, &status, 0));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
