// Global and static variables of the program that every rank reaches at every other.
#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "globals_support.hpp"

namespace rank_test {
namespace {

// Sizes 0, 1, odd, around a page and across several; odd places, with guards around what is written.
constexpr std::size_t kRoom = 3 * 4096 + 123;
unsigned char zeroed[kRoom];                                   // .bss
unsigned char given[kRoom] = {'g', 'i', 'v', 'e', 'n', 1, 2};  // .data
std::uint64_t counter = 0;
std::uint32_t small_counter = 7;
std::uint64_t flag = 0;
const int constant = 4;
thread_local int own_of_thread = 5;
constexpr std::size_t kSizes[] = {0, 1, 3, 8, 4095, 4096, 4097, 2 * 4096 + 1};

std::vector<unsigned char> bytes_of(const unsigned char* from, std::size_t count) { return {from, from + count}; }
void store(unsigned char* to, const std::vector<unsigned char>& bytes) { std::copy(bytes.begin(), bytes.end(), to); }

TEST(Globals, AreWhereTheyWereWithWhatWasInThemAtEveryStartAndEnd) {
  for (std::uint64_t round = 0; round < 3; ++round) {
    const auto in_bss = random_bytes(kRoom, 10 * round + static_cast<std::uint64_t>(rank()));
    const auto in_data = random_bytes(kRoom, 10 * round + 5 + static_cast<std::uint64_t>(rank()));
    store(zeroed, in_bss);
    store(given, in_data);
    TestGlobals globals;
    ASSERT_TRUE(globals->symmetric()) << globals->why();
    EXPECT_EQ(-1, first_difference(in_bss, bytes_of(zeroed, kRoom)));
    EXPECT_EQ(-1, first_difference(in_data, bytes_of(given, kRoom)));
    EXPECT_EQ(-1, first_difference(in_data, globals.get(given, kRoom, rank())));
    const auto from_left = random_bytes(kRoom, 1000 + round * 10 + static_cast<std::uint64_t>(left()));
    globals.barrier();
    globals.put(zeroed, random_bytes(kRoom, 1000 + round * 10 + static_cast<std::uint64_t>(rank())), right());
    globals.end();
    EXPECT_EQ(-1, first_difference(from_left, bytes_of(zeroed, kRoom)));
    EXPECT_EQ(-1, first_difference(in_data, bytes_of(given, kRoom)));
    zeroed[0] = 1;
    given[kRoom - 1] = 2;
    EXPECT_EQ(1, zeroed[0]);
  }
}

TEST(Globals, EveryRankPutsIntoAndGetsFromThoseOfEveryOther) {
  TestGlobals globals;
  ASSERT_TRUE(globals->symmetric()) << globals->why();
  for (unsigned char* const variable : {zeroed, given}) {
    for (const std::size_t count : kSizes) {
      for (int step = 0; step < size(); ++step) {
        const int to = (rank() + step) % size();
        const int from = (rank() + size() - step) % size();
        const auto seed = [&](int pe) { return count * 100 + static_cast<std::uint64_t>(pe * 10 + step); };
        std::memset(variable, 0xa5, kRoom);
        globals.barrier();
        globals.put(variable + 7, random_bytes(count, seed(rank())), to);
        globals.barrier();
        std::vector<unsigned char> expected(kRoom, 0xa5);
        const auto sent = random_bytes(count, seed(from));
        std::copy(sent.begin(), sent.end(), expected.begin() + 7);
        EXPECT_EQ(-1, first_difference(expected, bytes_of(variable, kRoom)));
        EXPECT_EQ(-1, first_difference(random_bytes(count, seed(rank())), globals.get(variable + 7, count, to)));
        globals.barrier();
      }
    }
  }
}

TEST(Globals, LoadsAndStoresReachThoseOfAPeer) {
  TestGlobals globals;
  ASSERT_TRUE(globals->symmetric()) << globals->why();
  std::memset(zeroed, 0xa5, kRoom);
  globals.barrier();
  auto* const theirs = static_cast<unsigned char*>(globals->at_peer(zeroed, right()));
  ASSERT_NE(nullptr, theirs);
  store(theirs, random_bytes(kRoom, 70 + static_cast<std::uint64_t>(rank())));
  globals.barrier();
  EXPECT_EQ(-1, first_difference(random_bytes(kRoom, 70 + static_cast<std::uint64_t>(left())), bytes_of(zeroed, kRoom)));
  EXPECT_EQ(zeroed, globals->at_peer(zeroed, rank()));
  EXPECT_EQ(nullptr, globals->at_peer(zeroed, -1));
  EXPECT_EQ(nullptr, globals->at_peer(zeroed, size()));
}

// With the variable's own atomic operations of the program among them.
TEST(Globals, NoneOfManyAtomicAdditionsIsLost) {
  constexpr int kAdditions = 20000;
  counter = 0;
  small_counter = 7;
  TestGlobals globals;
  ASSERT_TRUE(globals->symmetric()) << globals->why();
  std::uint64_t* const wide = globals.own(&counter);
  std::uint32_t* const narrow = globals.own(&small_counter);
  for (int i = 0; i < kAdditions; ++i) {
    const int pe = i % size();
    std::uint64_t before = 0;
    IST_OK_OR_FAIL(ist_heap_atomic64(globals->heap(), IST_ATOMIC_ADD, wide, 3, &before, pe));
    IST_OK_OR_FAIL(ist_heap_atomic32(globals->heap(), IST_ATOMIC_INC, narrow, 0, nullptr, pe));
    std::atomic_ref(counter).fetch_add(1);
  }
  globals.barrier();
  // Where the additions do not divide evenly, the first ranks got one more of each.
  std::uint64_t mine = 0;
  for (int i = 0; i < kAdditions; ++i) mine += i % size() == rank() ? 1U : 0U;
  EXPECT_EQ(3 * mine * static_cast<std::uint64_t>(size()) + kAdditions, counter);
  EXPECT_EQ(7 + mine * static_cast<std::uint64_t>(size()), small_counter);
}

TEST(Globals, AWordIsWaitedForAndSignalledWithItsBytes) {
  flag = 0;
  TestGlobals globals;
  ASSERT_TRUE(globals->symmetric()) << globals->why();
  for (std::uint64_t round = 1; round <= 50; ++round) {
    const auto sent = random_bytes(kRoom, round * 10 + static_cast<std::uint64_t>(rank()));
    IST_OK_OR_FAIL(ist_heap_put_signal(globals->heap(), globals->in_heap(given, kRoom), ist_host(sent.data()), kRoom,
                                       globals.own(&flag), round, IST_SIGNAL_SET, right()));
    IST_OK_OR_FAIL(ist_heap_wait_until(globals->heap(), globals.own(&flag), IST_UINT64, IST_COMPARE_GE,
                                       static_cast<std::int64_t>(round)));
    EXPECT_EQ(
        -1, first_difference(random_bytes(kRoom, round * 10 + static_cast<std::uint64_t>(left())), bytes_of(given, kRoom)));
    globals.barrier();
  }
}

TEST(Globals, NothingElseIsSymmetric) {
  TestGlobals globals;
  ASSERT_TRUE(globals->symmetric()) << globals->why();
  static int within = 1;
  EXPECT_NE(nullptr, globals->in_heap(&within));
  const int on_stack = 1;
  const auto allocated = std::make_unique<int>(1);
  EXPECT_EQ(nullptr, globals->in_heap(&on_stack));
  EXPECT_EQ(nullptr, globals->in_heap(allocated.get()));
  EXPECT_EQ(nullptr, globals->in_heap(&constant));
  EXPECT_EQ(nullptr, globals->in_heap(&own_of_thread));
  EXPECT_EQ(nullptr, globals->in_heap(nullptr));
  EXPECT_EQ(nullptr, globals->in_heap(reinterpret_cast<const void*>(&::ist_heap_put)));
  EXPECT_EQ(nullptr, globals->in_heap(globals->in_heap(&within)));
  void* const library = ::dlopen(GLOBALS_OF_A_LIBRARY, RTLD_NOW);
  ASSERT_NE(nullptr, library) << ::dlerror();
  for (const char* name : {"of_library_given", "of_library_zeroed"}) {
    void* const variable = ::dlsym(library, name);
    ASSERT_NE(nullptr, variable);
    EXPECT_EQ(nullptr, globals->in_heap(variable)) << name;
  }
  ::dlclose(library);
}

TEST(Globals, OnesThatGoPastTheirEndAreNone) {
  TestGlobals globals;
  ASSERT_TRUE(globals->symmetric()) << globals->why();
  ASSERT_FALSE(globals->segments().empty());
  for (const auto& each : globals->segments()) {
    const std::byte* const last = each.begin + each.bytes.value - 1;
    EXPECT_EQ(each.memory, globals->in_heap(each.begin, each.bytes.value));
    EXPECT_EQ(each.memory + each.bytes.value - 1, globals->in_heap(last));
    EXPECT_EQ(nullptr, globals->in_heap(last, 2));
    EXPECT_EQ(nullptr, globals->in_heap(last + 1));
    EXPECT_EQ(nullptr, globals->in_heap(each.begin, each.bytes.value + 1));
    EXPECT_EQ(nullptr, globals->in_heap(each.begin, ~std::uint64_t{0}));
    EXPECT_EQ(nullptr, globals->in_heap(each.begin - 1));
  }
}

TEST(Globals, ASecondTimeAtOnceIsRefusedAtEveryRank) {
  TestGlobals globals;
  ASSERT_TRUE(globals->symmetric()) << globals->why();
  auto second = ist::SymmetricGlobals::create(comm());
  ASSERT_TRUE(second.ok()) << second.status().text();
  EXPECT_FALSE((*second)->symmetric());
  EXPECT_NE(std::string::npos, (*second)->why().find("another world")) << (*second)->why();
  EXPECT_EQ(nullptr, (*second)->in_heap(&counter));
  EXPECT_EQ(nullptr, (*second)->at_peer(&counter, 0));
  second->reset();
  EXPECT_NE(nullptr, globals->in_heap(&counter));
  globals.barrier();
}

// Locks are words in memory that is another one now, at the same address.
TEST(Globals, ThreadsOfTheProgramShareLocksAmongThem) {
  static std::mutex mutex;
  static std::condition_variable changed;
  static int turn = 0;
  turn = 0;
  const auto play = [](int mine) {
    for (int i = 0; i < 500; ++i) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [mine] { return turn % 2 == mine; });
      ++turn;
      changed.notify_all();
    }
  };
  for (int round = 1; round <= 2; ++round) {
    TestGlobals globals;
    ASSERT_TRUE(globals->symmetric()) << globals->why();
    std::thread other{play, 1};
    play(0);
    other.join();
    EXPECT_EQ(1000 * round, turn);
  }
}

// Some of what the C library has lies among the program's variables, where the linker has put a copy of it.
TEST(Globals, TheCLibrarysOwnGoOnWorking) {
  TestGlobals globals;
  ASSERT_TRUE(globals->symmetric()) << globals->why();
  ASSERT_EQ(0, ::setenv("ISTHMUS_TEST_GLOBALS", "there", 1));
  bool found = false;
  for (char** each = ::environ; *each != nullptr; ++each)
    found = found || std::string{*each} == "ISTHMUS_TEST_GLOBALS=there";
  EXPECT_TRUE(found);
  EXPECT_EQ(0, ::unsetenv("ISTHMUS_TEST_GLOBALS"));
  EXPECT_EQ(0, std::fflush(stdout));
}

}  // namespace
}  // namespace rank_test
