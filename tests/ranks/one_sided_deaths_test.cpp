// A PE that is killed ends every wait of the others on a symmetric heap, by name and within a second.
#include <isthmus/heap.h>
#include <sys/resource.h>

#include "forked_ranks.hpp"

namespace {

using namespace forked_ranks;

struct Waiting {
  const char* name;
  std::function<int(ist_heap, void*)> call;
};

const std::vector<Waiting>& waits() {
  static const std::vector<Waiting> all{
      {"barrier", [](ist_heap heap, void*) { return ist_heap_barrier(heap); }},
      {"wait", [](ist_heap heap, void* word) { return ist_heap_wait_until(heap, word, IST_UINT64, IST_COMPARE_NE, 0); }},
      {"test",
       [](ist_heap heap, void* word) {
         int is = 0;
         int code = IST_OK;
         while (code == IST_OK && is == 0) code = ist_heap_test(heap, word, IST_UINT64, IST_COMPARE_NE, 0, &is);
         return code;
       }},
      {"alloc",
       [](ist_heap heap, void*) {
         void* more = nullptr;
         return ist_heap_alloc(heap, 100, &more);
       }},
      {"grow", [](ist_heap heap, void*) { return ist_heap_grow(heap, 2 << 20); }},
      {"destroy", [](ist_heap heap, void*) { return ist_heap_destroy(&heap); }}};
  return all;
}

class OneSidedDeaths : public testing::TestWithParam<std::size_t> {};

TEST_P(OneSidedDeaths, EndEveryWait) {
  const Waiting& waiting = waits()[GetParam()];
  for (const int victim : {0, 2})
    expect_all_but(run_ranks(3, "host",
                             [&](const Here& here) {
                               ist_heap heap = IST_HEAP_NULL;
                               void* word = nullptr;
                               if (ist_heap_create(here.comm, IST_KIND_HOST, 0, 1 << 20, 0, &heap) != IST_OK) return 50;
                               if (ist_heap_calloc(heap, 1, 8, &word) != IST_OK) return 51;
                               ist_team_view view{};
                               if (ist_heap_view(heap, &view) != IST_OK || *view.abort_word != 0) return 52;
                               if (here.rank == victim) die_soon();
                               const auto killed = Clock::now() + kBefore;
                               const int wrong = expect_death(waiting.name, here, victim, killed,
                                                              [&] { return waiting.call(heap, word); });
                               return wrong + (*view.abort_word != 0 ? 0 : 1);
                             }),
                   victim);
}

INSTANTIATE_TEST_SUITE_P(Calls, OneSidedDeaths, testing::Range(std::size_t{0}, waits().size()),
                         [](const testing::TestParamInfo<std::size_t>& which) { return waits()[which.param].name; });

struct Limit {
  const char* name;
  decltype(RLIMIT_AS) resource;
  rlim_t most;
  const char* advice;
};

class OneSidedLimits : public testing::TestWithParam<Limit> {};

// Of one PE's process: the other one hears of it, and nothing is left that the next heap would trip over.
TEST_P(OneSidedLimits, AreSaidByAllAndEndNobody) {
  const Limit limit = GetParam();
  if (kSanitized && limit.resource == RLIMIT_AS)
    GTEST_SKIP() << "not covered here: sanitizers need more addresses than any limit";
  expect_all(run_ranks(2, "host", [&](const Here& here) {
    ist_heap heap = IST_HEAP_NULL;
    rlimit before{};
    ::getrlimit(limit.resource, &before);
    const rlimit low{limit.most, before.rlim_max};
    if (here.rank == 1) ::setrlimit(limit.resource, &low);
    const int code = ist_heap_create(here.comm, IST_KIND_HOST, 0, 256 << 20, 0, &heap);
    ::setrlimit(limit.resource, &before);
    const std::string text = ist_error_text();
    const bool said = code == IST_ERR_MEMORY && heap == IST_HEAP_NULL && text.find(limit.advice) != std::string::npos &&
                      (here.rank == 1 || text.find("PE 1: ") != std::string::npos);
    if (!said) std::fprintf(stderr, "[%d] %s: %s\n", here.rank, ist_code_name(code), text.c_str());
    if (ist_heap_create(here.comm, IST_KIND_HOST, 0, 1 << 20, 0, &heap) != IST_OK) return 50;
    return (said ? 0 : 1) + (ist_heap_barrier(heap) == IST_OK ? 0 : 1);
  }));
}

INSTANTIATE_TEST_SUITE_P(Of, OneSidedLimits,
                         testing::Values(Limit{"files", RLIMIT_FSIZE, 64 << 20, "ulimit -f"},
                                         Limit{"addresses", RLIMIT_AS, rlim_t{8} << 30, "ulimit -v"}),
                         [](const testing::TestParamInfo<Limit>& which) { return which.param.name; });

// It can make its own memory, and has no descriptor left for the other's.
TEST(OneSidedDescriptors, ThatOnePeCannotTakeAreSaidByAllAndNobodyWaits) {
  expect_all(run_ranks(3, "host", [](const Here& here) {
    ist_heap heap = IST_HEAP_NULL;
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    const int next = ::dup(0);
    ::close(next);
    const rlimit low{static_cast<rlim_t>(next) + 1, before.rlim_max};
    if (here.rank == 1) ::setrlimit(RLIMIT_NOFILE, &low);
    const int code = ist_heap_create(here.comm, IST_KIND_HOST, 0, 1 << 20, 0, &heap);
    ::setrlimit(RLIMIT_NOFILE, &before);
    const std::string text = ist_error_text();
    const bool said = code == IST_ERR_SYSTEM && heap == IST_HEAP_NULL && text.find("ulimit -n") != std::string::npos &&
                      (here.rank == 1 || text.find("PE 1: ") != std::string::npos);
    if (!said) std::fprintf(stderr, "[%d] %s: %s\n", here.rank, ist_code_name(code), text.c_str());
    if (ist_heap_create(here.comm, IST_KIND_HOST, 0, 1 << 20, 0, &heap) != IST_OK) return 50;
    return (said ? 0 : 1) + (ist_heap_barrier(heap) == IST_OK ? 0 : 1);
  }));
}

// A heap of OpenCL memory that its PEs serve; 50 and more: not made.
int make_served(const Here& here, ist_heap& heap, void*& words) {
  if (ist_heap_create(here.comm, IST_KIND_OPENCL, 0, 1 << 20, 0, &heap) != IST_OK) return 50;
  if (ist_heap_calloc(heap, 1 << 14, 8, &words) != IST_OK) return 51;
  ist_team_view view{};
  return ist_heap_view(heap, &view) == IST_ERR_UNSUPPORTED ? 0 : 52;
}

bool has_opencl(const Here& here) {
  int devices = 0;
  if (ist_kind_devices(here.world, IST_KIND_OPENCL, &devices) == IST_OK && devices > 0) return true;
  if (here.rank == 0) std::printf("not covered here: kind opencl has no device on this machine\n");
  return false;
}

struct Asking {
  const char* name;
  std::function<int(ist_heap, std::uint64_t*, int pe)> call;
};

// Nobody is left to serve them.
TEST(OneSidedServed, ADeathEndsWhatIsAskedOfTheDead) {
  const Variables served{{"ISTHMUS_DEVICE_IPC", "never"}};
  static std::uint64_t bytes[1 << 13];
  const std::vector<Asking> all{{"put", [](ist_heap heap, std::uint64_t* to,
                                           int pe) { return ist_heap_put(heap, to, ist_host(bytes), sizeof bytes, pe); }},
                                {"get", [](ist_heap heap, std::uint64_t* from,
                                           int pe) { return ist_heap_get(heap, ist_host(bytes), from, sizeof bytes, pe); }},
                                {"put and quiet",
                                 [](ist_heap heap, std::uint64_t* to, int pe) {
                                   const int code = ist_heap_put_nbi(heap, to, ist_host(bytes), sizeof bytes, pe);
                                   return code == IST_OK ? ist_heap_quiet(heap) : code;
                                 }},
                                {"atomic", [](ist_heap heap, std::uint64_t* word, int pe) {
                                   return ist_heap_atomic64(heap, IST_ATOMIC_INC, word, 0, nullptr, pe);
                                 }}};
  for (const Asking& asking : all)
    expect_all_but(run_ranks(3, "host,opencl",
                             [&](const Here& here) {
                               if (here.rank == 2 && !has_opencl(here)) die_soon();
                               if (!has_opencl(here)) return 0;
                               ist_heap heap = IST_HEAP_NULL;
                               void* words = nullptr;
                               if (const int wrong = make_served(here, heap, words); wrong != 0) return wrong;
                               if (here.rank == 2) die_soon();
                               const auto killed = Clock::now() + kBefore;
                               return expect_death(asking.name, here, 2, killed, [&] {
                                 int code = IST_OK;
                                 while (code == IST_OK) code = asking.call(heap, static_cast<std::uint64_t*>(words), 2);
                                 return code;
                               });
                             }),
                   2);
}

// The others serve each other on.
TEST(OneSidedServed, WhoLeavesIsNamedAndTheOthersGoOn) {
  const Variables served{{"ISTHMUS_DEVICE_IPC", "never"}};
  expect_all(run_ranks(3, "host,opencl", [](const Here& here) {
    if (!has_opencl(here)) return 0;
    ist_heap heap = IST_HEAP_NULL;
    void* words = nullptr;
    if (const int wrong = make_served(here, heap, words); wrong != 0) return wrong;
    if (ist_heap_barrier(heap) != IST_OK) return 53;
    if (here.rank == 1) return 0;
    if (here.rank == 2) {
      here.wait_for(0, 1);
      return 0;
    }
    int code = IST_OK;
    const std::uint64_t value = 4711;
    while (code == IST_OK) code = ist_heap_put(heap, words, ist_host(&value), 8, 1);
    int wrong = code == IST_ERR_PEER_LEFT ? 0 : 1;
    if (wrong != 0) std::fprintf(stderr, "put: %s %s\n", ist_code_name(code), ist_error_text());
    std::uint64_t found = 0;
    if (ist_heap_put(heap, words, ist_host(&value), 8, 2) != IST_OK) ++wrong;
    if (ist_heap_get(heap, ist_host(&found), words, 8, 2) != IST_OK || found != value) ++wrong;
    here.has_come_to(1);
    return wrong;
  }));
}

// Bytes that are on their way, at who asked and at who is asked, hold up no world that is destroyed.
TEST(OneSidedServed, AWorldIsDestroyedWithBytesUnderWay) {
  const Variables served{{"ISTHMUS_DEVICE_IPC", "never"}};
  expect_all(run_ranks(2, "host,opencl", [](const Here& here) {
    if (!has_opencl(here)) return 0;
    constexpr std::size_t kMany = 48 << 20;
    ist_heap heap = IST_HEAP_NULL;
    void* data = nullptr;
    if (ist_heap_create(here.comm, IST_KIND_OPENCL, 0, kMany + (1 << 20), 0, &heap) != IST_OK) return 50;
    if (ist_heap_calloc(heap, kMany, 1, &data) != IST_OK || ist_heap_barrier(heap) != IST_OK) return 51;
    static const std::vector<unsigned char> bytes(kMany, 0x5a);
    if (here.rank == 0 && ist_heap_put_nbi(heap, data, ist_host(bytes.data()), kMany, 1) != IST_OK) return 52;
    // Or the other one would have left before.
    here.has_come_to(1);
    here.wait_for(1 - here.rank, 1);
    return 0;
  }));
}

// No thread of the library's own is allowed then.
TEST(OneSidedServed, IsRefusedWhereTheProgramPromisedOneThread) {
  const Variables served{{"ISTHMUS_DEVICE_IPC", "never"}, {"ISTHMUS_THREADS", "single"}};
  expect_all(run_ranks(2, "host,opencl", [](const Here& here) {
    if (!has_opencl(here)) return 0;
    ist_heap heap = IST_HEAP_NULL;
    const int code = ist_heap_create(here.comm, IST_KIND_OPENCL, 0, 1 << 20, 0, &heap);
    const bool said = code == IST_ERR_SETTING && std::string{ist_error_text()}.find("ISTHMUS_THREADS") != std::string::npos;
    if (!said) std::fprintf(stderr, "[%d] %s: %s\n", here.rank, ist_code_name(code), ist_error_text());
    return said ? 0 : 1;
  }));
}

// Who has come to a barrier and leaves then has been there; who leaves before is named.
TEST(OneSidedLeaving, EndsTheWaitsOfThoseThatStay) {
  expect_all(run_ranks(3, "host", [](const Here& here) {
    ist_heap heap = IST_HEAP_NULL;
    void* word = nullptr;
    if (ist_heap_create(here.comm, IST_KIND_HOST, 0, 1 << 20, 0, &heap) != IST_OK) return 50;
    if (ist_heap_calloc(heap, 1, 8, &word) != IST_OK) return 51;
    if (here.rank == 1) std::this_thread::sleep_for(kBefore);
    if (ist_heap_barrier(heap) != IST_OK) return 52;
    if (here.rank == 2) return 0;
    if (here.rank == 0) {
      const int code = ist_heap_barrier(heap);
      if (code != IST_ERR_PEER_LEFT) std::fprintf(stderr, "barrier: %s %s\n", ist_code_name(code), ist_error_text());
      return code == IST_ERR_PEER_LEFT ? 0 : 1;
    }
    const int code = ist_heap_wait_until(heap, word, IST_UINT64, IST_COMPARE_NE, 0);
    if (code != IST_ERR_PEER_LEFT) std::fprintf(stderr, "wait: %s %s\n", ist_code_name(code), ist_error_text());
    return code == IST_ERR_PEER_LEFT ? 0 : 1;
  }));
}

}  // namespace
