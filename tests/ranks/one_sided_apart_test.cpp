// Symmetric heaps of devices that do not reach each other's memory, or whose link is not to be believed: what the host asks for, the PE whose part
// it is does, while its program makes no call; kernels and streams are told beforehand that they do not get there.
#include <isthmus/heap.h>
#include <isthmus/heap_stream.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <thread>

#include "broken_driver.hpp"
#include "idle_use.hpp"

namespace {

using namespace forked_ranks;

constexpr std::size_t kBytes = 300007;

// Of each of two ranks: a heap of its own device, with a part for bytes and four words.
struct Apart {
  Apart(const Here& here, Checks& check) : other(1 - here.rank) {
    void *some = nullptr, *zeroed = nullptr;
    check.ok(ist_heap_create(here.comm, IST_KIND_CUDA, IST_OWN_DEVICE, 4 << 20, 64 << 20, &heap), "a heap");
    check.ok(ist_heap_alloc(heap, kBytes, &some), "memory");
    check.ok(ist_heap_calloc(heap, 4, 8, &zeroed), "words");
    part = static_cast<unsigned char*>(some);
    words = static_cast<std::uint64_t*>(zeroed);
  }
  int other;
  ist_heap heap = IST_HEAP_NULL;
  unsigned char* part = nullptr;
  std::uint64_t* words = nullptr;
};

std::uint64_t seed_of(int rank, std::uint64_t round) { return round * 10 + static_cast<std::uint64_t>(rank) + 1; }

class OneSidedApart : public testing::TestWithParam<const char*> {
 protected:
  template <class Body>
  void with_two(const Body& body) {
    const Variables links{{"FAKE_CUDA_LINKS", GetParam()}, {"FAKE_CUDA_DEVICES", "2"}};
    expect_all(run_ranks(2, "host,cuda", [&](const Here& here) {
      Checks check{here};
      Apart mine{here, check};
      if (check.wrong() == 0) body(here, check, mine);
      check.ok(ist_heap_barrier(mine.heap), "barrier");
      check.ok(ist_heap_destroy(&mine.heap), "destroy");
      return check.wrong();
    }));
  }
};

// Puts with signals of both kinds, waited for and not, from either memory, there and back by gets; and the heap grows in between.
TEST_P(OneSidedApart, BytesAndSignalsGoByTheOtherPe) {
  NEEDS_FAKE_DRIVER();
  with_two([](const Here& here, Checks& check, Apart& mine) {
    Buffer on_device(here, kBytes, IST_KIND_CUDA, here.rank);
    for (std::uint64_t round = 1; round <= 4; ++round) {
      const Data bytes = random_bytes(kBytes, seed_of(here.rank, round));
      on_device.fill(bytes);
      const auto put = round % 2 == 0 ? ist_heap_put_signal : ist_heap_put_signal_nbi;
      const ist_buffer from = round <= 2 ? ist_host(bytes.data()) : on_device.get();
      check.ok(put(mine.heap, mine.part, from, kBytes, mine.words, round % 2 == 0 ? 1 : round,
                   round % 2 == 0 ? IST_SIGNAL_ADD : IST_SIGNAL_SET, mine.other),
               "put_signal");
      check.ok(ist_heap_wait_until(mine.heap, mine.words, IST_UINT64, IST_COMPARE_EQ, static_cast<std::int64_t>(round)),
               "wait");
      Data found(kBytes);
      check.ok(ist_heap_get(mine.heap, ist_host(found.data()), mine.part, kBytes, here.rank), "what came");
      check.that(found == random_bytes(kBytes, seed_of(mine.other, round)), "the other PE's bytes are here");
      check.ok(ist_heap_get(mine.heap, ist_host(found.data()), mine.part, kBytes, mine.other), "get");
      check.that(found == bytes, "its own bytes come back");
      check.ok(ist_heap_get_nbi(mine.heap, on_device.get(), mine.part, kBytes, mine.other), "get into a device");
      check.ok(ist_heap_quiet(mine.heap), "quiet");
      check.that(on_device.holds(bytes), "its own bytes come back into a device");
      if (round == 2) check.ok(ist_heap_grow(mine.heap, 16 << 20), "grow");
      check.ok(ist_heap_barrier(mine.heap), "barrier");
    }
  });
}

// Both change both words at once, each its own by its device: nothing is lost.
TEST_P(OneSidedApart, AtomicsOfBothSidesLoseNothing) {
  NEEDS_FAKE_DRIVER();
  with_two([](const Here& here, Checks& check, Apart& mine) {
    constexpr std::uint64_t kTimes = 60;
    for (std::uint64_t n = 0; n < kTimes; ++n)
      for (int pe = 0; pe < 2; ++pe) {
        check.ok(ist_heap_atomic64(mine.heap, IST_ATOMIC_ADD, &mine.words[1], 3, nullptr, pe), "add");
        std::uint64_t before = 0, seen = 0;
        check.ok(ist_heap_atomic64(mine.heap, IST_ATOMIC_FETCH, &mine.words[2], 0, &before, pe), "fetch");
        do {
          seen = before;
          check.ok(ist_heap_compare_swap64(mine.heap, &mine.words[2], seen, seen + 1, &before, pe), "compare and swap");
        } while (before != seen);
      }
    check.ok(ist_heap_barrier(mine.heap), "barrier");
    std::array<std::uint64_t, 4> found{};
    check.ok(ist_heap_get(mine.heap, ist_host(found.data()), mine.words, sizeof found, here.rank), "get");
    check.that(found[1] == 6 * kTimes, "sum " + std::to_string(found[1]));
    check.that(found[2] == 2 * kTimes, "compared and swapped " + std::to_string(found[2]));
    std::uint64_t before = 0;
    check.ok(ist_heap_atomic64(mine.heap, IST_ATOMIC_SWAP, &mine.words[3], 7, &before, mine.other), "swap");
    check.that(before == 0, "what was swapped out");
  });
}

// PE 1 makes no call while the other one works on its part.
TEST_P(OneSidedApart, TheTargetNeedsNoCall) {
  NEEDS_FAKE_DRIVER();
  with_two([](const Here& here, Checks& check, Apart& mine) {
    check.ok(ist_heap_barrier(mine.heap), "barrier");
    if (here.rank == 1) {
      here.wait_for(0, 1);
      std::uint64_t sum = 0;
      check.ok(ist_heap_signal_fetch(mine.heap, mine.words, &sum), "fetch");
      check.that(sum == 5, "the words are changed");
      return;
    }
    const Data bytes = random_bytes(kBytes, 99);
    Data found(kBytes);
    for (int n = 0; n < 5; ++n)
      check.ok(ist_heap_put_signal(mine.heap, mine.part, ist_host(bytes.data()), kBytes, mine.words, 1, IST_SIGNAL_ADD, 1),
               "put_signal");
    check.ok(ist_heap_get(mine.heap, ist_host(found.data()), mine.part, kBytes, 1), "get");
    check.that(found == bytes, "what was put");
    here.has_come_to(1);
  });
}

// A program that would store there is told before it starts a kernel, with both PEs and the link.
TEST_P(OneSidedApart, KernelsAndStreamsAreRefused) {
  NEEDS_FAKE_DRIVER();
  with_two([](const Here& here, Checks& check, Apart& mine) {
    const std::vector<std::string> why{"does not reach the part of PE " + std::to_string(mine.other),
                                       "the link between cuda device", "is off", "IST_KIND_HOST"};
    ist_team_view view{};
    ist_device_view device_view{};
    void* remote = &view;
    check.fails(ist_heap_view(mine.heap, &view), IST_ERR_UNREACHABLE, why, "a view");
    check.fails(ist_heap_device_view(mine.heap, IST_OWN_DEVICE, &device_view), IST_ERR_UNREACHABLE, why,
                "a view for kernels");
    check.that(device_view.team.base == nullptr, "a view that leads nowhere");
    check.fails(ist_heap_pointer(mine.heap, mine.part, mine.other, &remote), IST_ERR_UNREACHABLE, why, "a pointer");
    check.that(remote == nullptr, "null");
    check.ok(ist_heap_pointer(mine.heap, mine.part, here.rank, &remote), "the own part's");
    check.that(remote == mine.part, "its address");
    int is = 0;
    check.ok(ist_heap_accessible(mine.heap, mine.part, mine.other, &is), "accessible");
    check.that(is == 1, "copies get there");
    const Buffer own(here, 64, IST_KIND_CUDA, here.rank);
    void* const stream = own.stream();
    check.fails(ist_heap_put_on(mine.heap, stream, mine.part, own.get(), 8, mine.other), IST_ERR_UNREACHABLE, why, "put_on");
    check.fails(ist_heap_get_on(mine.heap, stream, own.get(), mine.part, 8, mine.other), IST_ERR_UNREACHABLE, why, "get_on");
    check.fails(
        ist_heap_put_signal_on(mine.heap, stream, mine.part, own.get(), 8, mine.words, 1, IST_SIGNAL_SET, mine.other),
        IST_ERR_UNREACHABLE, why, "put_signal_on");
    check.fails(ist_heap_barrier_on(mine.heap, stream), IST_ERR_UNREACHABLE, why, "barrier_on");
    check.ok(ist_heap_put_on(mine.heap, stream, mine.part, own.get(), 8, here.rank), "put_on into the own part");
    const auto synchronise = driver_call<CUresult (*)(CUstream)>("cuStreamSynchronize");
    check.that(synchronise(static_cast<CUstream>(stream)) == CUDA_SUCCESS, "what is in the stream is done");
  });
}

// With looks every 0.15 ms or so it would be 1300.
TEST_P(OneSidedApart, TheServiceSleepsUntilSomebodyAsks) {
  NEEDS_FAKE_DRIVER();
  with_two([](const Here& here, Checks& check, Apart& mine) {
    check.ok(ist_heap_barrier(mine.heap), "barrier");
    const IdleUse use = IdleUse::settled(250);
    check.that(use.naps < 250, use.text() + " in 200 ms in which nobody asked");
    for (std::uint64_t round = 1; round <= 3; ++round) {
      const Data bytes = random_bytes(kBytes, seed_of(here.rank, round));
      check.ok(ist_heap_put_signal(mine.heap, mine.part, ist_host(bytes.data()), kBytes, mine.words, round, IST_SIGNAL_SET,
                                   mine.other),
               "put_signal");
      check.ok(ist_heap_wait_until(mine.heap, mine.words, IST_UINT64, IST_COMPARE_EQ, static_cast<std::int64_t>(round)),
               "wait");
      check.ok(ist_heap_barrier(mine.heap), "barrier");
    }
  });
}

// A PE that all others reach, and that reaches them, has no thread for it.
TEST(OneSidedApartOfThree, OnlyWhoMayBeAskedServes) {
  NEEDS_FAKE_DRIVER();
  const Variables set{{"FAKE_CUDA_LINKS", "0-1:refused"}, {"FAKE_CUDA_DEVICES", "3"}};
  expect_all(run_ranks(3, "host,cuda", [&](const Here& here) {
    Checks check{here};
    // As many for 200 ms: those that begin or end are waited for.
    const auto threads = [] {
      const auto now = [] {
        const std::filesystem::directory_iterator all("/proc/self/task");
        return std::distance(begin(all), end(all));
      };
      auto found = now();
      for (int alike = 0; alike < 20;) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        const auto again = now();
        alike = again == found ? alike + 1 : 0;
        found = again;
      }
      return found;
    };
    std::array<ist_heap, 3> heaps{};
    const auto make = [&](ist_heap& heap) {
      check.ok(ist_heap_create(here.comm, IST_KIND_CUDA, IST_OWN_DEVICE, 1 << 20, 4 << 20, &heap), "a heap");
    };
    make(heaps[0]);  // and all that the first use of the device begins
    const auto before = threads();
    make(heaps[1]);
    make(heaps[2]);
    const auto more = threads() - before;
    check.that(more == (here.rank == 2 ? 0 : 2), std::to_string(more) + " more threads");
    for (ist_heap& heap : heaps) {
      check.ok(ist_heap_barrier(heap), "barrier");
      check.ok(ist_heap_destroy(&heap), "destroy");
    }
    return check.wrong();
  }));
}

INSTANTIATE_TEST_SUITE_P(Links, OneSidedApart, testing::Values("0-1:spoiled", "0-1:refused"));

// No thread of the library's own is allowed then.
TEST(OneSidedApartAlone, IsRefusedWhereTheProgramPromisedOneThread) {
  NEEDS_FAKE_DRIVER();
  const Variables set{{"FAKE_CUDA_LINKS", "0-1:refused"}, {"FAKE_CUDA_DEVICES", "2"}, {"ISTHMUS_THREADS", "single"}};
  expect_all(run_ranks(2, "host,cuda", [&](const Here& here) {
    Checks check{here};
    ist_heap heap = IST_HEAP_NULL;
    check.fails(ist_heap_create(here.comm, IST_KIND_CUDA, IST_OWN_DEVICE, 1 << 20, 0, &heap), IST_ERR_SETTING,
                {"ISTHMUS_THREADS"}, "create");
    return check.wrong();
  }));
}

// Nobody is left to serve it.
TEST(OneSidedApartAlone, ADeathEndsWhatIsAskedOfTheDead) {
  NEEDS_FAKE_DRIVER();
  const Variables set{{"FAKE_CUDA_LINKS", "0-1:refused"}, {"FAKE_CUDA_DEVICES", "2"}};
  static const Data bytes = random_bytes(kBytes, 5);
  expect_all_but(run_ranks(2, "host,cuda",
                           [&](const Here& here) {
                             Checks check{here};
                             const Apart mine{here, check};
                             if (check.wrong() != 0) return check.wrong();
                             if (here.rank == 1) die_soon();
                             const auto killed = Clock::now() + kBefore;
                             return expect_death("put", here, 1, killed, [&] {
                               int code = IST_OK;
                               while (code == IST_OK)
                                 code = ist_heap_put(mine.heap, mine.part, ist_host(bytes.data()), kBytes, 1);
                               return code;
                             });
                           }),
                 1);
}

}  // namespace
