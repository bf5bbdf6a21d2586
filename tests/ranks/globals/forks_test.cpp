// What a forked child stores into variables is its own, although its parent's are shared with the other ranks.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "globals_support.hpp"

namespace rank_test {
namespace {

constexpr std::size_t kRoom = 3 * 4096 + 77;
unsigned char bytes[kRoom] = {1, 2, 3};
std::uint64_t word = 1;
std::uint64_t handled = 0;

// Of the program's own handlers, as of those of libraries that it starts with.
void note_in_child() { handled += 1; }
const int registered = ::pthread_atfork(nullptr, nullptr, note_in_child);

std::vector<unsigned char> now() { return {bytes, bytes + kRoom}; }

// The child's body says how many things were not as they should be.
void in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(body());
  int status = -1;
  ASSERT_EQ(child, ::waitpid(child, &status, 0));
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(0, WEXITSTATUS(status));
}

TEST(GlobalsAndForks, AChildHasCopiesOfItsOwn) {
  ASSERT_EQ(0, registered);
  TestGlobals globals;
  ASSERT_TRUE(globals->symmetric()) << globals->why();
  const auto before = random_bytes(kRoom, 3 + static_cast<std::uint64_t>(rank()));
  std::copy(before.begin(), before.end(), bytes);
  word = 77;
  handled = 0;
  globals.barrier();
  in_child([&] {
    int wrong = now() == before && word == 77 && handled == 1 ? 0 : 1;
    std::fill_n(bytes, kRoom, static_cast<unsigned char>(0xee));
    word = 99;
    wrong += bytes[kRoom - 1] == 0xee && word == 99 ? 0 : 1;
    return wrong;
  });
  EXPECT_EQ(-1, first_difference(before, now()));
  EXPECT_EQ(77U, word);
  EXPECT_EQ(0U, handled);
  globals.barrier();
  // And the parent's are as symmetric as they were.
  globals.put(bytes, random_bytes(kRoom, 50 + static_cast<std::uint64_t>(rank())), right());
  globals.barrier();
  EXPECT_EQ(-1, first_difference(random_bytes(kRoom, 50 + static_cast<std::uint64_t>(left())), now()));
}

TEST(GlobalsAndForks, AChildDoesNotSeeWhatOthersPutAfterwards) {
  TestGlobals globals;
  ASSERT_TRUE(globals->symmetric()) << globals->why();
  word = 5;
  globals.barrier();
  int pipe_ends[2];
  ASSERT_EQ(0, ::pipe(pipe_ends));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    char go = 0;
    const bool told = ::read(pipe_ends[0], &go, 1) == 1;
    ::_exit(told && word == 5 ? 0 : 1);
  }
  globals.barrier();
  IST_OK_OR_FAIL(ist_heap_atomic64(globals->heap(), IST_ATOMIC_ADD, globals.own(&word), 1, nullptr, right()));
  globals.barrier();
  EXPECT_EQ(6U, word);
  ASSERT_EQ(1, ::write(pipe_ends[1], "x", 1));
  int status = -1;
  ASSERT_EQ(child, ::waitpid(child, &status, 0));
  EXPECT_EQ(0, status);
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);
}

TEST(GlobalsAndForks, AChildOfAChildHasItsOwnToo) {
  TestGlobals globals;
  ASSERT_TRUE(globals->symmetric()) << globals->why();
  word = 10;
  in_child([&] {
    word = 11;
    const pid_t inner = ::fork();
    if (inner == 0) ::_exit(word++ == 11 ? 0 : 1);
    int status = -1;
    return ::waitpid(inner, &status, 0) == inner && status == 0 && word == 11 ? 0 : 1;
  });
  EXPECT_EQ(10U, word);
}

// What a child does to end, by itself or by way of exit(), is not its parent's end.
TEST(GlobalsAndForks, AChildThatEndsItsGlobalsEndsNobodys) {
  TestGlobals globals;
  ASSERT_TRUE(globals->symmetric()) << globals->why();
  word = 20;
  in_child([&] {
    word = 21;
    const bool ended = (*globals.operator->()).end().ok();
    return ended && word == 21 ? 0 : 1;
  });
  EXPECT_EQ(20U, word);
  globals.barrier();
  IST_OK_OR_FAIL(ist_heap_atomic64(globals->heap(), IST_ATOMIC_ADD, globals.own(&word), 1, nullptr, right()));
  globals.barrier();
  EXPECT_EQ(21U, word);
}

TEST(GlobalsAndForks, ThreadsForkAtOnce) {
  TestGlobals globals;
  ASSERT_TRUE(globals->symmetric()) << globals->why();
  word = 30;
  const auto fork_often = [] {
    for (int i = 0; i < 5; ++i) in_child([] { return word++ == 30 ? 0 : 1; });
  };
  std::thread other{fork_often};
  fork_often();
  other.join();
  EXPECT_EQ(30U, word);
}

TEST(GlobalsAndForks, AChildExecutesAnotherProgram) {
  TestGlobals globals;
  ASSERT_TRUE(globals->symmetric()) << globals->why();
  word = 40;
  EXPECT_EQ(0, std::system("true"));
  in_child([] {
    word = 41;
    ::execl("/bin/true", "true", nullptr);
    return 1;
  });
  EXPECT_EQ(40U, word);
}

}  // namespace
}  // namespace rank_test
