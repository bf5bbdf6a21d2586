// Variables that come onto shared memory and off it while others store into them, and what happens where that cannot be done.
#include "face/shmem/shared_variables.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <thread>

#include "../sanitized.hpp"
#include "base/file_descriptor.hpp"
#include "face/shmem/held_stores.hpp"
#include "globals_support.hpp"

namespace rank_test {
namespace {

constexpr std::size_t kPages = 200;
constexpr std::size_t kWordsOfPage = 4096 / sizeof(std::uint64_t);
// Every thread has a word of its own in every page.
volatile std::uint64_t words[kPages * kWordsOfPage];
volatile std::uint64_t signals_here = 0;
volatile std::uint64_t* signals_there = nullptr;

void count_signal(int) {
  signals_here = signals_here + 1;
  *signals_there = *signals_there + 1;
}

// Plain stores, as those of any program.
std::uint64_t store_until(const std::atomic<bool>& over, std::size_t thread) {
  std::uint64_t rounds = 0;
  do {
    for (std::size_t page = 0; page < kPages; ++page) {
      volatile std::uint64_t& word = words[page * kWordsOfPage + thread];
      word = word + 1;
    }
    ++rounds;
  } while (!over.load(std::memory_order_relaxed));
  return rounds;
}

TEST(SharedVariables, NoStoreOfAnotherThreadOrOfASignalIsLost) {
  constexpr std::size_t kThreads = 3;
  for (volatile std::uint64_t& word : words) word = 0;
  signals_here = 0;
  const auto there = std::make_unique<std::uint64_t>(0);
  signals_there = there.get();
  struct sigaction action {};
  action.sa_handler = count_signal;
  struct sigaction before {};
  ASSERT_EQ(0, ::sigaction(SIGALRM, &action, &before));
  const auto over = std::make_unique<std::atomic<bool>>(false);
  std::array<std::uint64_t, kThreads> rounds{};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) threads.emplace_back([&, i] { rounds[i] = store_until(*over, i); });
  // To this thread alone: two handlers at once would lose each other's counts.
  threads.emplace_back([&, to = ::pthread_self()] {
    while (!over->load()) {
      ::usleep(200);
      ::pthread_kill(to, SIGALRM);
    }
  });
  for (int i = 0; i < 10; ++i) {
    TestGlobals globals;
    EXPECT_TRUE(globals->symmetric()) << globals->why();
  }
  over->store(true);
  for (std::thread& each : threads) each.join();
  ASSERT_EQ(0, ::sigaction(SIGALRM, &before, nullptr));
  for (std::size_t i = 0; i < kThreads; ++i)
    for (std::size_t page = 0; page < kPages; ++page)
      ASSERT_EQ(rounds[i], words[page * kWordsOfPage + i]) << "page " << page;
  EXPECT_EQ(*there, signals_here);
  EXPECT_LT(0U, signals_here);
}

ist::Bytes size_of(const ist::Executable& program) {
  ist::Bytes all;
  for (const ist::VariableSegment& each : program.segments) all += each.bytes;
  return all;
}

// Of memory that is not shared a second mapping cannot be made, which is found out at the first part or in the middle.
TEST(SharedVariables, AreAsTheyWereIfSomethingGoesWrong) {
  const ist::Executable program = ist::this_executable();
  const ist::Bytes size = size_of(program);
  for (const std::uint64_t good : {std::uint64_t{0}, std::uint64_t{1} << 16U, std::uint64_t{3} << 16U}) {
    for (std::size_t i = 0; i < std::size(words); ++i) words[i] = i * 31 + good;
    auto* const memory = static_cast<std::byte*>(
        ::mmap(nullptr, size.value, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    ASSERT_NE(MAP_FAILED, static_cast<void*>(memory));
    ASSERT_LT(good, size.value);
    if (good != 0) {
      ASSERT_NE(MAP_FAILED, ::mmap(memory, good, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    }
    const ist::Status failed = ist::share_variables(program.segments, memory);
    EXPECT_EQ(IST_ERR_SYSTEM, failed.code());
    EXPECT_NE(std::string::npos, failed.text().find("mremap")) << failed.text();
    EXPECT_FALSE(ist::variables_are_shared());
    ASSERT_EQ(0, ::munmap(memory, size.value));
    for (std::size_t i = 0; i < std::size(words); ++i) ASSERT_EQ(i * 31 + good, words[i]);
    words[0] = 1;
    EXPECT_EQ(1U, words[0]);
  }
  // And nothing of it is in the way.
  TestGlobals globals;
  EXPECT_TRUE(globals->symmetric()) << globals->why();
}

TEST(SharedVariables, AreSharedOnceAtATime) {
  const ist::Executable program = ist::this_executable();
  auto memory = ist::SharedMemory::create("variables", size_of(program));
  ASSERT_TRUE(memory.ok()) << memory.status().text();
  ASSERT_TRUE(ist::share_variables(program.segments, memory->data()).ok());
  EXPECT_TRUE(ist::variables_are_shared());
  EXPECT_EQ(IST_ERR_INTERNAL, ist::share_variables(program.segments, memory->data()).code());
  words[5] = 55;
  EXPECT_TRUE(ist::make_variables_private().ok());
  EXPECT_FALSE(ist::variables_are_shared());
  EXPECT_TRUE(ist::make_variables_private().ok());
  EXPECT_EQ(55U, words[5]);
  const std::vector<ist::VariableSegment> many(ist::ExecutableCard::kMostSegments + 1, program.segments.front());
  EXPECT_EQ(IST_ERR_INTERNAL, ist::share_variables(many, memory->data()).code());
}

void end_with_42(int) { ::_exit(42); }
void end_with_43(int) { ::_exit(43); }

// In a child: stores where nobody may, while variables come and go.
[[noreturn]] void fault_meanwhile(bool own_handler) {
  if (own_handler) ::signal(SIGSEGV, end_with_42);
  void* const closed = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::thread([closed] {
    ::usleep(20000);
    *static_cast<volatile int*>(closed) = 1;
  }).detach();
  const ist::Executable program = ist::this_executable();
  auto memory = ist::SharedMemory::create("variables", size_of(program));
  for (int i = 0; i < 2000; ++i) {
    if (!ist::share_variables(program.segments, memory->data()).ok() || !ist::make_variables_private().ok()) ::_exit(2);
    std::memset(memory->data(), 0, memory->size().value);
  }
  ::_exit(3);
}

TEST(SharedVariables, AFaultThatIsNoneOfTheirsGoesWhereItAlwaysWent) {
  if (kSanitized)
    GTEST_SKIP() << "not covered here: forked children of programs whose variables are shared; the sanitizers have handlers "
                    "of their own, and threads of a forked child are not for them";
  for (const bool own_handler : {false, true}) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) fault_meanwhile(own_handler);
    int status = -1;
    ASSERT_EQ(child, ::waitpid(child, &status, 0));
    if (own_handler) {
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 42) << status;
    } else {
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) << status;
    }
  }
}

int status_of(const std::function<void()>& what) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    what();
    ::_exit(0);
  }
  int status = -1;
  EXPECT_EQ(child, ::waitpid(child, &status, 0));
  return status;
}

// Sets the library's handler, on top of whatever there is.
void come_and_go() {
  const ist::Executable program = ist::this_executable();
  auto memory = ist::SharedMemory::create("variables", size_of(program));
  if (!memory.ok() || !ist::share_variables(program.segments, memory->data()).ok() || !ist::make_variables_private().ok())
    ::_exit(2);
}

// Of a signal that somebody sends no instruction is tried again.
TEST(SharedVariables, ASegmentationFaultThatWasSentGoesWhereItAlwaysWent) {
  if (kSanitized)
    GTEST_SKIP() << "not covered here: segmentation faults that are sent; the sanitizers have handlers of their own";
  const int usual = status_of([] {
    ::signal(SIGSEGV, SIG_DFL);
    come_and_go();
    ::kill(::getpid(), SIGSEGV);
    ::usleep(100000);
  });
  EXPECT_TRUE(WIFSIGNALED(usual) && WTERMSIG(usual) == SIGSEGV) << usual;
  const int handled = status_of([] {
    ::signal(SIGSEGV, end_with_42);
    come_and_go();
    ::kill(::getpid(), SIGSEGV);
    ::usleep(100000);
  });
  EXPECT_TRUE(WIFEXITED(handled) && WEXITSTATUS(handled) == 42) << handled;
  const int ignored = status_of([] {
    ::signal(SIGSEGV, SIG_IGN);
    come_and_go();
    for (int i = 0; i < 3; ++i) ::kill(::getpid(), SIGSEGV);
    come_and_go();
    ::_exit(43);
  });
  EXPECT_TRUE(WIFEXITED(ignored) && WEXITSTATUS(ignored) == 43) << ignored;
}

// A program's own handlers: one calls what was there before, the other puts it back and has the instruction tried again.
struct sigaction called_next {};
volatile int handled_here = 0;
void call_what_was_before(int signal, siginfo_t* info, void* context) {
  handled_here = handled_here + 1;
  if (handled_here > 1) ::_exit(9);
  if ((called_next.sa_flags & SA_SIGINFO) != 0) return called_next.sa_sigaction(signal, info, context);
  if (called_next.sa_handler == SIG_DFL) ::_exit(44);
  called_next.sa_handler(signal);
}
void put_back_what_was_before(int, siginfo_t*, void*) {
  handled_here = handled_here + 1;
  if (handled_here > 1) ::_exit(9);
  ::sigaction(SIGSEGV, &called_next, nullptr);
}
void set_own(void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  ::sigaction(SIGSEGV, &action, &called_next);
}
void fault() {
  void* const closed = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *static_cast<volatile int*>(closed) = 1;
}

// Once, and what comes then is the system's affair.
TEST(SharedVariables, AHandlerThatIsForOneSignalIsCalledOnce) {
  if (kSanitized)
    GTEST_SKIP() << "not covered here: handlers that are for one signal; the sanitizers have handlers of their own";
  const int status = status_of([] {
    struct sigaction action {};
    action.sa_handler = [](int) {
      handled_here = handled_here + 1;
      if (handled_here > 1) ::_exit(9);
    };
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
    ::sigaction(SIGSEGV, &action, nullptr);
    come_and_go();
    fault();
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) << status;
}

// Of the pages of a segment one is not there, so that it is held as far as that.
TEST(SharedVariables, WhatCouldNotBeHeldToItsEndCanBeStoredTo) {
  if (kSanitized)
    GTEST_SKIP() << "not covered here: stores where memory could not be held; the sanitizers have handlers of their own";
  const int status = status_of([] {
    constexpr std::size_t kPage = 4096;
    void* const pages = ::mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    auto* const begin = static_cast<std::byte*>(pages);
    ::munmap(begin + kPage, kPage);
    const ist::VariableSegment segment{begin, ist::Bytes{3 * kPage}, begin, begin + 3 * kPage};
    ist::HeldStores stores{{&segment, 1}};
    const ist::Status failed = stores.hold(begin, segment.bytes);
    if (failed.ok() || failed.text().find("mprotect") == std::string::npos) ::_exit(46);
    *static_cast<volatile std::byte*>(begin) = std::byte{1};
    ::_exit(45);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 45) << status;
}

// However often the program's handler is set on top of the library's, and the library's on top of that, each sees a fault once.
TEST(SharedVariables, HandlersOnTopOfEachOtherAreNoCircle) {
  if (kSanitized)
    GTEST_SKIP() << "not covered here: segmentation faults that are sent; the sanitizers have handlers of their own";
  for (const auto own : {call_what_was_before, put_back_what_was_before})
    for (const int times : {1, 2, 3, 20}) {
      const int status = status_of([&] {
        ::signal(SIGSEGV, end_with_42);  // there before all
        come_and_go();
        for (int i = 0; i < times; ++i) {
          set_own(own);
          come_and_go();
        }
        fault();
      });
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 42) << times << " times: " << status;
    }
  // Others of the program's own in turn, of which none passes on; the last one does, and that to the one before it.
  for (const int others : {1, 5, 9, 30}) {
    const int status = status_of([&] {
      ::signal(SIGSEGV, end_with_42);
      come_and_go();
      for (int i = 0; i < others; ++i) {
        ::signal(SIGSEGV, i % 2 == 0 ? end_with_43 : end_with_42);
        come_and_go();
      }
      set_own(call_what_was_before);
      come_and_go();
      fault();
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == (others % 2 == 0 ? 42 : 43)) << others << ": " << status;
  }
  const int without = status_of([] {
    ::signal(SIGSEGV, SIG_DFL);
    come_and_go();
    set_own(put_back_what_was_before);
    come_and_go();
    fault();
  });
  EXPECT_TRUE(WIFSIGNALED(without) && WTERMSIG(without) == SIGSEGV) << without;
}

// Rather than into its parent's.
TEST(SharedVariables, AChildThatFindsNoMemoryForItsOwnCannotStoreIntoThem) {
  if (kSanitized) GTEST_SKIP() << "the sanitizers need addresses at all times";
  TestGlobals globals;
  ASSERT_TRUE(globals->symmetric()) << globals->why();
  words[7] = 77;
  rlimit before{};
  ASSERT_EQ(0, ::getrlimit(RLIMIT_AS, &before));
  const rlimit none{4096, before.rlim_max};
  ASSERT_EQ(0, ::setrlimit(RLIMIT_AS, &none));
  const pid_t child = ::fork();
  if (child == 0) {
    if (words[7] != 77) ::_exit(1);
    words[7] = 78;
    ::_exit(2);
  }
  ASSERT_EQ(0, ::setrlimit(RLIMIT_AS, &before));
  ASSERT_GE(child, 0);
  int status = -1;
  ASSERT_EQ(child, ::waitpid(child, &status, 0));
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) << status;
  EXPECT_EQ(77U, words[7]);
}

// One rank may not make files of that length: no rank has symmetric variables, all know why, and go on.
TEST(SharedVariables, AreNotSymmetricWhereOneRankHasNoRoom) {
  rlimit before{};
  ASSERT_EQ(0, ::getrlimit(RLIMIT_FSIZE, &before));
  const rlimit little{1 << 16, before.rlim_max};
  if (rank() == size() - 1) {
    ASSERT_EQ(0, ::setrlimit(RLIMIT_FSIZE, &little));
  }
  {
    TestGlobals globals;
    EXPECT_FALSE(globals->symmetric());
    EXPECT_NE(std::string::npos, globals->why().find("have no room")) << globals->why();
    EXPECT_NE(std::string::npos, globals->why().find("ulimit -f")) << globals->why();
    const volatile auto* const word = &words[3];
    EXPECT_EQ(nullptr, globals->in_heap(const_cast<const std::uint64_t*>(word)));
  }
  ASSERT_EQ(0, ::setrlimit(RLIMIT_FSIZE, &before));
  TestGlobals globals;
  EXPECT_TRUE(globals->symmetric()) << globals->why();
}

}  // namespace
}  // namespace rank_test
