// Symmetric heaps of devices where the driver, a link or a PE fails: all PEs hear of it, by name, and the next heap is as it should be.
#include <isthmus/heap.h>
#include <isthmus/heap_stream.h>
#include <isthmus/device/host_words.cuh>

#include <array>

#include "broken_driver.hpp"

namespace {

using namespace forked_ranks;

constexpr std::uint64_t kMost = std::uint64_t{1} << 30U;

int create(const Here& here, ist_heap* heap, std::uint64_t bytes = 1 << 20) {
  return ist_heap_create(here.comm, IST_KIND_CUDA, IST_OWN_DEVICE, bytes, kMost, heap);
}

// Every byte of a put to the next PE arrives.
void check_heap(const Here& here, Checks& check) {
  ist_heap heap = IST_HEAP_NULL;
  check.ok(create(here, &heap), "a heap");
  void* address = nullptr;
  check.ok(ist_heap_alloc(heap, 5001, &address), "memory");
  const Data mine = random_bytes(5001, static_cast<std::uint64_t>(here.rank) + 1);
  check.ok(ist_heap_put(heap, address, ist_host(mine.data()), mine.size(), (here.rank + 1) % here.size), "put");
  check.ok(ist_heap_barrier(heap), "barrier");
  Data found(5001, 0xa5);
  check.ok(ist_heap_get(heap, ist_host(found.data()), address, found.size(), here.rank), "get");
  const int from = (here.rank + here.size - 1) % here.size;
  check.that(found == random_bytes(5001, static_cast<std::uint64_t>(from) + 1), "the bytes of the PE before");
  check.ok(ist_heap_destroy(&heap), "destroy");
}

struct Broken {
  const char* call;
  CUresult result;
  int code;
};

class OneSidedFailures : public testing::TestWithParam<Broken> {};
// At one PE: the other one quotes it.
TEST_P(OneSidedFailures, OfADriversCallAreHeardByAllAndLeaveNothing) {
  NEEDS_FAKE_DRIVER();
  const Broken broken = GetParam();
  expect_all(run_ranks(2, "host,cuda", [&](const Here& here) {
    Checks check{here};
    check_heap(here, check);
    ist_heap heap = IST_HEAP_NULL;
    if (here.rank == 1) break_call(broken.call, 0, broken.result);
    const int code = create(here, &heap);
    check.fails(code, broken.code, {here.rank == 1 ? broken.call : "PE 1: ", broken.call}, "create");
    check.that(heap == IST_HEAP_NULL, "no heap");
    heal();
    check_heap(here, check);
    return check.wrong();
  }));
}

INSTANTIATE_TEST_SUITE_P(Calls, OneSidedFailures,
                         testing::Values(Broken{"cuMemCreate", CUDA_ERROR_OUT_OF_MEMORY, IST_ERR_MEMORY},
                                         Broken{"cuMemCreate", CUDA_ERROR_UNKNOWN, IST_ERR_DEVICE},
                                         Broken{"cuMemExportToShareableHandle", CUDA_ERROR_UNKNOWN, IST_ERR_DEVICE},
                                         Broken{"cuMemImportFromShareableHandle", CUDA_ERROR_UNKNOWN, IST_ERR_DEVICE},
                                         Broken{"cuMemMap", CUDA_ERROR_UNKNOWN, IST_ERR_DEVICE},
                                         Broken{"cuMemSetAccess", CUDA_ERROR_UNKNOWN, IST_ERR_DEVICE},
                                         Broken{"cuMemsetD8Async", CUDA_ERROR_UNKNOWN, IST_ERR_DEVICE},
                                         Broken{"cuMemAddressReserve", CUDA_ERROR_OUT_OF_MEMORY, IST_ERR_MEMORY}),
                         [](const auto& one) { return one.param.call + ("_" + std::to_string(one.param.result)); });

// Two ranks do something with a word of each, 0 at first, in a heap of the device.
template <class Body>
void with_words(const Body& body) {
  expect_all(run_ranks(2, "host,cuda", [&](const Here& here) {
    Checks check{here};
    ist_heap heap = IST_HEAP_NULL;
    void* address = nullptr;
    check.ok(create(here, &heap), "a heap");
    check.ok(ist_heap_calloc(heap, 1, 8, &address), "a word");
    body(here, check, heap, static_cast<std::uint64_t*>(address));
    check.ok(ist_heap_barrier(heap), "barrier");
    check.ok(ist_heap_destroy(&heap), "destroy");
    return check.wrong();
  }));
}

// Over PCI Express devices reach each other's memory, and may have no atomic operations there: the PE that has the word has its device change
// it, for others as for itself, and nothing is lost. The target makes no call.
TEST(OneSidedDevices, HaveTheOwnerChangeWordsWhereNoAtomicsCrossTheLink) {
  NEEDS_FAKE_DRIVER();
  const Variables links{{"FAKE_CUDA_ATOMICS", "0"}, {"FAKE_CUDA_DEVICES", "2"}};
  with_words([](const Here& here, Checks& check, ist_heap heap, std::uint64_t* word) {
    constexpr std::uint64_t kTimes = 40;
    const int other = 1 - here.rank;
    std::uint64_t before = 99;
    for (std::uint64_t n = 0; n < kTimes; ++n)
      for (int pe = 0; pe < 2; ++pe) check.ok(ist_heap_atomic64(heap, IST_ATOMIC_ADD, word, 3, nullptr, pe), "add");
    check.ok(ist_heap_barrier(heap), "barrier");
    check.ok(ist_heap_atomic64(heap, IST_ATOMIC_FETCH, word, 0, &before, other), "fetch");
    check.that(before == 6 * kTimes, "the sum is " + std::to_string(before));
    check.ok(ist_heap_barrier(heap), "all have seen it");
    if (here.rank == 1) return here.wait_for(0, 1);
    check.ok(ist_heap_compare_swap64(heap, word, before, 5, &before, 1), "compare and swap");
    check.that(before == 6 * kTimes, "what was swapped out");
    check.ok(ist_heap_atomic32(heap, IST_ATOMIC_OR, reinterpret_cast<std::uint32_t*>(word), 8, nullptr, 1), "32 bits");
    check.ok(ist_heap_atomic64(heap, IST_ATOMIC_SWAP, word, 100, &before, 1), "swap");
    check.that(before == 13, "both were done");
    here.has_come_to(1);
  });
}

// Signals that add go there behind their bytes, whether or not the call waits; those that are set are stored by this PE as ever.
TEST(OneSidedDevices, HaveTheOwnerAddSignalsWhereNoAtomicsCrossTheLink) {
  NEEDS_FAKE_DRIVER();
  const Variables links{{"FAKE_CUDA_ATOMICS", "0"}, {"FAKE_CUDA_DEVICES", "2"}};
  expect_all(run_ranks(2, "host,cuda", [&](const Here& here) {
    Checks check{here};
    constexpr std::size_t kBytes = 300007;
    const int other = 1 - here.rank;
    ist_heap heap = IST_HEAP_NULL;
    void *part = nullptr, *zeroed = nullptr;
    check.ok(create(here, &heap, 4 << 20), "a heap");
    check.ok(ist_heap_alloc(heap, kBytes, &part), "memory");
    check.ok(ist_heap_calloc(heap, 2, 8, &zeroed), "words");
    auto* const words = static_cast<std::uint64_t*>(zeroed);
    for (std::uint64_t round = 1; round <= 4; ++round) {
      const bool adds = round > 1;
      const Data bytes = random_bytes(kBytes, round * 10 + static_cast<std::uint64_t>(here.rank));
      const auto put = round % 2 == 0 ? ist_heap_put_signal : ist_heap_put_signal_nbi;
      check.ok(put(heap, part, ist_host(bytes.data()), kBytes, words, 1, adds ? IST_SIGNAL_ADD : IST_SIGNAL_SET, other),
               "put_signal");
      check.ok(ist_heap_wait_until(heap, words, IST_UINT64, IST_COMPARE_EQ, static_cast<std::int64_t>(round)), "wait");
      Data found(kBytes);
      check.ok(ist_heap_get(heap, ist_host(found.data()), part, kBytes, here.rank), "what came");
      check.that(found == random_bytes(kBytes, round * 10 + static_cast<std::uint64_t>(other)), "the other PE's bytes");
      check.ok(ist_heap_barrier(heap), "barrier");
    }
    check.ok(ist_heap_put_signal(heap, part, ist_host(nullptr), 0, words + 1, 7, IST_SIGNAL_ADD, other), "a signal alone");
    check.ok(ist_heap_wait_until(heap, words + 1, IST_UINT64, IST_COMPARE_EQ, 7), "it comes");
    const Buffer own(here, 64, IST_KIND_CUDA, here.rank);
    check.fails(ist_heap_put_signal_on(heap, own.stream(), part, own.get(), 8, words, 1, IST_SIGNAL_ADD, other),
                IST_ERR_UNSUPPORTED, {"atomic operations do not cross the link"}, "a signal that a stream would add");
    check.ok(ist_heap_put_signal_on(heap, own.stream(), part, own.get(), 8, words, 9, IST_SIGNAL_SET, other),
             "one that it stores");
    check.ok(ist_heap_wait_until(heap, words, IST_UINT64, IST_COMPARE_EQ, 9), "which comes");
    check.ok(ist_heap_barrier(heap), "barrier");
    check.ok(ist_heap_destroy(&heap), "destroy");
    return check.wrong();
  }));
}

// A crew of one thread of the processor.
struct Alone {
  static constexpr unsigned thread = 0, threads = 1, block = 0, blocks = 1;
  void sync() const {}
  bool any(bool mine) const { return mine; }
};

// Kernels would change such words piece by piece: they get no view, or one whose calls say so.
TEST(OneSidedDevices, TellKernelsWhereNoAtomicsCrossTheLink) {
  NEEDS_FAKE_DRIVER();
  const Variables links{{"FAKE_CUDA_ATOMICS", "0"}, {"FAKE_CUDA_DEVICES", "2"}};
  with_words([](const Here& here, Checks& check, ist_heap heap, std::uint64_t* word) {
    namespace device = ist::device;
    const int other = 1 - here.rank;
    ist_team_view team{};
    ist_device_view view{};
    check.fails(
        ist_heap_view(heap, &team), IST_ERR_UNSUPPORTED,
        {"words of PE " + std::to_string(other), "do not cross the link between cuda device", "ist_heap_device_view"},
        "a view for all calls");
    check.that(team.base == nullptr, "no view");
    check.ok(ist_heap_device_view(heap, IST_OWN_DEVICE, &view), "a view whose calls tell");
    check.that(view.team.base != nullptr && view.ring == nullptr && view.desk != nullptr, "it has a table");
    std::array<unsigned char, 2> lacks{9, 9};
    check.ok(ist_memory_copy(here.world, ist_host(lacks.data()), ist_cuda(view.desk, nullptr), lacks.size()), "the table");
    check.that(lacks[static_cast<std::size_t>(here.rank)] == 0 && lacks[static_cast<std::size_t>(other)] != 0,
               "who is in it");
    ist_device_view again{};
    check.ok(ist_heap_device_view(heap, IST_OWN_DEVICE, &again), "the same once more");
    check.that(again.desk == view.desk, "one table");
    // A processor plays the kernel, on memory of its own.
    std::array<std::uint64_t, 4> parts{};
    view.desk = lacks.data();
    view.team.base = reinterpret_cast<unsigned char*>(parts.data());
    view.team.stride = 16;
    std::uint64_t* const mine = &parts[static_cast<std::size_t>(2 * here.rank)];
    const std::uint64_t one = 1;
    device::Status status = device::Status::late;
    const auto is_misuse = [&](const char* what) {
      check.that(status == device::Status::misuse, what);
      status = device::Status::late;
    };
    status = device::signal(view, mine, 1, device::Signal::add, other), is_misuse("signal");
    status = device::put_signal(Alone(), view, mine, &one, 8, mine, 1, device::Signal::add, other), is_misuse("put_signal");
    status = device::atomic_add(view, mine, one, other), is_misuse("add");
    status = device::atomic_inc(view, mine, other), is_misuse("inc");
    check.that(device::atomic_fetch_xor(view, mine, one, other, 0, &status) == 0, "0"), is_misuse("fetch and xor");
    check.that(device::atomic_swap(view, mine, one, other, 0, &status) == 0, "0"), is_misuse("swap");
    check.that(device::atomic_compare_swap(view, mine, one - 1, one, other, 0, &status) == 0, "0"), is_misuse("compare");
    check.that(device::atomic_swap(view, mine, one, 2, 0, &status) == 0, "0"), is_misuse("a PE that there is none");
    check.that(parts == std::array<std::uint64_t, 4>{}, "nothing was done");
    check.that(
        device::atomic_fetch_add(view, mine, one, here.rank, 0, &status) == 0 && status == device::Status::ok && *mine == 1,
        "its own word");
    check.that(device::signal(view, mine, 5, device::Signal::set, other) == device::Status::ok, "a store gets there");
    check.that(device::atomic_fetch(view, mine, other) == 5, "and a load");
    check.ok(ist_heap_barrier(heap), "barrier");
    check.ok(ist_heap_atomic64(heap, IST_ATOMIC_ADD, word, 1, nullptr, other), "the host's call");
  });
}

// Where the program promised that there is no other thread there is none to change words: as before, their change alone is refused.
TEST(OneSidedDevices, RefuseSuchAtomicsWhereTheProgramPromisedOneThread) {
  NEEDS_FAKE_DRIVER();
  const Variables links{{"FAKE_CUDA_ATOMICS", "0"}, {"FAKE_CUDA_DEVICES", "2"}, {"ISTHMUS_THREADS", "single"}};
  with_words([](const Here& here, Checks& check, ist_heap heap, std::uint64_t* word) {
    const int other = 1 - here.rank;
    const std::vector<std::string> says{"atomic operations do not cross the link between cuda device", "IST_KIND_HOST"};
    check.fails(ist_heap_atomic64(heap, IST_ATOMIC_ADD, word, 1, nullptr, other), IST_ERR_UNSUPPORTED, says, "atomic");
    check.fails(ist_heap_put_signal(heap, word, ist_host(nullptr), 0, word, 1, IST_SIGNAL_ADD, other), IST_ERR_UNSUPPORTED,
                says, "a signal that is added");
    // Nothing is copied where the word cannot follow: the word here stays as it was.
    const std::uint64_t bytes = 0x1111;
    check.fails(ist_heap_put_signal(heap, word, ist_host(&bytes), 8, word, 1, IST_SIGNAL_ADD, other), IST_ERR_UNSUPPORTED,
                says, "a put whose signal is added");
    check.ok(ist_heap_barrier(heap), "nothing was left behind");
    std::uint64_t before = 99;
    check.ok(ist_heap_atomic64(heap, IST_ATOMIC_ADD, word, 5, &before, here.rank), "its own word");
    check.that(before == 0, "what was there");
  });
}

// Behind the call that put it: the word stays, and both a wait for it and quiet say why.
TEST(OneSidedDevices, LeaveTheSignalOfAPutWhoseCopyFails) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check{here};
    constexpr std::uint64_t kBytes = 1 << 19;
    ist_heap heap = IST_HEAP_NULL;
    void *part = nullptr, *zeroed = nullptr;
    Gate gate;  // so that the copy is under way when its query fails
    const Buffer mine(here, kBytes);
    check.ok(ist_heap_create(here.comm, IST_KIND_HOST, 0, 1 << 20, 0, &heap), "a heap of the host");
    check.ok(ist_heap_alloc(heap, kBytes, &part), "memory");
    check.ok(ist_heap_calloc(heap, 1, 8, &zeroed), "a word");
    auto* const word = static_cast<std::uint64_t*>(zeroed);
    const auto put = [&] {
      return ist_heap_put_signal_nbi(heap, part, mine.get(), kBytes, word, 1, IST_SIGNAL_SET, here.rank);
    };
    fill_behind(gate, mine, kBytes, 0x3c);
    check.ok(put(), "a put whose copy fails");
    // What waits no more for the kernel may be asked about first, which fails nothing.
    for (int n = 0; n < 8; ++n) break_call("cuEventQuery", 0);
    check.fails(ist_heap_wait_until(heap, word, IST_UINT64, IST_COMPARE_EQ, 1), IST_ERR_DEVICE, {"cuEventQuery"}, "wait");
    heal();
    int is = 1;
    check.fails(ist_heap_test(heap, word, IST_UINT64, IST_COMPARE_EQ, 1, &is), IST_ERR_DEVICE, {"cuEventQuery"}, "test");
    check.fails(ist_heap_quiet(heap), IST_ERR_DEVICE, {"cuEventQuery"}, "quiet");
    check.that(__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0, "the word stayed");
    gate.open();
    check.ok(put(), "the next one");
    check.ok(ist_heap_wait_until(heap, word, IST_UINT64, IST_COMPARE_EQ, 1), "its signal");
    check.ok(ist_heap_quiet(heap), "quiet behind it");
    check.ok(ist_heap_destroy(&heap), "destroy");
    return check.wrong();
  }));
}

TEST(OneSidedDevices, TellWhichCallAWordFailedBy) {
  NEEDS_FAKE_DRIVER();
  with_words([](const Here& here, Checks& check, ist_heap heap, std::uint64_t* word) {
    for (const char* const call : {"cuLaunchKernel", "cuEventRecord"}) {
      break_call(call, 0, CUDA_ERROR_UNKNOWN);
      check.fails(ist_heap_atomic64(heap, IST_ATOMIC_ADD, word, 1, nullptr, here.rank), IST_ERR_DEVICE, {call}, call);
      heal();
    }
    std::uint64_t before = 99;
    check.ok(ist_heap_atomic64(heap, IST_ATOMIC_SET, word, 7, nullptr, here.rank), "the next one");
    check.ok(ist_heap_compare_swap64(heap, word, 7, 8, &before, here.rank), "and the one behind it");
    check.that(before == 7, "what was set");
  });
}

// The kernel is loaded with the heap, which stands also where it cannot be: a call that needs it tries again, and says why not.
TEST(OneSidedDevices, TellAtAWordThatItsKernelCannotBeLoaded) {
  NEEDS_FAKE_DRIVER();
  for (const char* const call : {"cuModuleLoadData", "cuModuleGetFunction"})
    expect_all(run_ranks(2, "host,cuda", [call](const Here& here) {
      Checks check{here};
      ist_heap heap = IST_HEAP_NULL;
      void* word = nullptr;
      break_call(call, 0, CUDA_ERROR_UNKNOWN);
      check.ok(create(here, &heap), "a heap");
      check.ok(ist_heap_calloc(heap, 1, 8, &word), "a word");
      auto* const number = static_cast<std::uint64_t*>(word);
      break_call(call, 0, CUDA_ERROR_UNKNOWN);
      check.fails(ist_heap_atomic64(heap, IST_ATOMIC_ADD, number, 1, nullptr, here.rank), IST_ERR_DEVICE, {call}, call);
      heal();
      check.ok(ist_heap_atomic64(heap, IST_ATOMIC_ADD, number, 1, nullptr, here.rank), "the next one");
      check.ok(ist_heap_destroy(&heap), "destroy");
      return check.wrong();
    }));
}

TEST(OneSidedDevices, AreCheckedBeforeAHeapIsMade) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check{here};
    ist_heap heap = IST_HEAP_NULL;
    int device = 0;
    check.ok(ist_kind_devices(here.world, IST_KIND_CUDA, &device), "devices");
    check.fails(ist_heap_create(here.comm, IST_KIND_CUDA, device, 4096, kMost, &heap), IST_ERR_ARGUMENT, {"device is"},
                "a device that is not");
    return check.wrong();
  }));
}

// A view's abort word is in memory that a device reads, and the watcher writes it.
TEST(OneSidedDevices, HearOfAPeThatDies) {
  NEEDS_FAKE_DRIVER();
  expect_all_but(run_ranks(3, "host,cuda",
                           [](const Here& here) {
                             ist_heap heap = IST_HEAP_NULL;
                             void* word = nullptr;
                             if (create(here, &heap) != IST_OK || ist_heap_calloc(heap, 1, 8, &word) != IST_OK) return 50;
                             ist_team_view view{};
                             if (ist_heap_view(heap, &view) != IST_OK) return 51;
                             const auto aborted = [&] { return __atomic_load_n(view.abort_word, __ATOMIC_ACQUIRE) != 0; };
                             if (aborted()) return 52;
                             if (here.rank == 1) die_soon();
                             const auto killed = Clock::now() + kBefore;
                             int wrong = expect_death("wait", here, 1, killed, [&] {
                               return here.rank == 0 ? ist_heap_wait_until(heap, word, IST_UINT64, IST_COMPARE_NE, 0)
                                                     : ist_heap_barrier(heap);
                             });
                             const auto limit = Clock::now() + std::chrono::seconds(1);
                             while (!aborted() && Clock::now() < limit) std::this_thread::yield();
                             wrong += aborted() ? 0 : 1;
                             return wrong;
                           }),
                 1);
}

TEST(OneSidedDevices, HearOfAPeThatDiesInViewsOfHostHeapsToo) {
  NEEDS_FAKE_DRIVER();
  expect_all_but(run_ranks(3, "host,cuda",
                           [](const Here& here) {
                             ist_heap heap = IST_HEAP_NULL;
                             ist_device_view early{}, late{};
                             if (ist_heap_create(here.comm, IST_KIND_HOST, 0, 4096, 0, &heap) != IST_OK) return 50;
                             if (here.rank == 0 && ist_heap_device_view(heap, IST_OWN_DEVICE, &early) != IST_OK) return 51;
                             if (here.rank == 1) die_soon();
                             const auto killed = Clock::now() + kBefore;
                             const int wrong =
                                 expect_death("barrier", here, 1, killed, [&] { return ist_heap_barrier(heap); });
                             // Rank 2 makes its own only now.
                             if (ist_heap_device_view(heap, IST_OWN_DEVICE, &late) != IST_OK) return 52;
                             const auto aborted = [&] {
                               return __atomic_load_n(late.team.abort_word, __ATOMIC_ACQUIRE) != 0 &&
                                      (here.rank != 0 || __atomic_load_n(early.team.abort_word, __ATOMIC_ACQUIRE) != 0);
                             };
                             const auto limit = Clock::now() + std::chrono::seconds(1);
                             while (!aborted() && Clock::now() < limit) std::this_thread::yield();
                             return wrong + (aborted() ? 0 : 1);
                           }),
                 1);
}

// What was locked before the driver refused is neither locked again nor left behind.
TEST(OneSidedDevices, ALockThatIsRefusedNamesThePartAndMayBeTriedAgain) {
  NEEDS_FAKE_DRIVER();
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    Checks check{here};
    for (int round = 0; round < 2; ++round) {
      ist_heap heap = IST_HEAP_NULL;
      ist_device_view view{};
      check.ok(ist_heap_create(here.comm, IST_KIND_HOST, 0, 4096, 0, &heap), "a heap of the host");
      if (round == 1) {
        break_call("cuMemHostRegister_v2", 1);
        check.fails(ist_heap_device_view(heap, IST_OWN_DEVICE, &view), IST_ERR_DEVICE,
                    {"the part of PE 1", "cannot be page-locked for kernels", "cuMemHostRegister", "make a smaller heap"},
                    "a view");
        check.that(view.ring == nullptr && view.team.base == nullptr, "no view");
        heal();
        break_call("cuMemHostGetDevicePointer_v2", 0);
        check.fails(ist_heap_device_view(heap, IST_OWN_DEVICE, &view), IST_ERR_DEVICE, {"cuMemHostGetDevicePointer"},
                    "again");
        heal();
      }
      check.ok(ist_heap_device_view(heap, IST_OWN_DEVICE, &view), "a view in the end");
      check.that(view.ring != nullptr, "the ring");
      check.ok(ist_heap_destroy(&heap), "destroy");
    }
    return check.wrong();
  }));
}

}  // namespace
