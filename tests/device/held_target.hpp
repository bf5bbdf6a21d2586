// What rank 0's processor does to the memory of rank 1, whose processor is in no call of the library meanwhile: it waits for a kernel, and the
// kernel for rank 0 (wait_for_host() of heap_kernels.hpp).
//
// Who calls this : heap_view_test.cpp, host_heap_test.cpp, in ranks that they forked.
// Threads        : one.
// Ownership      : looks at the heap; `data` and `words` are the addresses for code of the host.
// Errors         : counted, and told.
#pragma once

#include <isthmus/heap.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "../ranks/forked_ranks.hpp"
#include "heap_kernels.hpp"

namespace heap_kernels {

class HeldTarget {
 public:
  HeldTarget(const forked_ranks::Here& here, ist_heap heap, unsigned char* data, std::uint64_t* words)
      : here_(here), heap_(heap), data_(data), words_(words), bytes_(kFromHost) {}

  // By all ranks, before the kernel: each call once, so that nothing is loaded while one waits; word 0 is 0 then.
  int begin() {
    fine("put_signal", ist_heap_put_signal(heap_, data_, ist_host(bytes_.data()), 0, words_ + 2, 0, IST_SIGNAL_ADD, 1));
    fine("get", ist_heap_get(heap_, ist_host(bytes_.data()), data_ + kAnswered, kFromHost, 1));
    fine("set", ist_heap_atomic64(heap_, IST_ATOMIC_SET, words_, 0, nullptr, 1));
    found("swap", change(IST_ATOMIC_SWAP, 0), 0);
    found("add", change(IST_ATOMIC_ADD, 0), 0);
    found("fetch", change(IST_ATOMIC_FETCH, 0), 0);
    found("compare_swap", compare_swap(0, 0), 0);
    fine("barrier", ist_heap_barrier(heap_));
    return wrong_;
  }
  // By rank 0: every epoch's fetching atomics, put and signal, and what its kernel has answered. Ends with the first that goes wrong.
  int use(std::uint32_t epochs) {
    for (std::uint32_t n = 1; n <= epochs && wrong_ == 0; ++n) {
      const std::uint64_t before = n == 1 ? 0 : held_word(n - 1), now = held_word(n);
      found("add", change(IST_ATOMIC_ADD, 3), before);
      found("swap", change(IST_ATOMIC_SWAP, now + 0x100), before + 3);
      found("xor", change(IST_ATOMIC_XOR, 0x100), now + 0x100);
      found("compare_swap of another value", compare_swap(now + 1, 0), now);
      found("compare_swap", compare_swap(now, now + 1), now);
      found("add of -1", change(IST_ATOMIC_ADD, ~std::uint64_t{}), now + 1);
      found("fetch", change(IST_ATOMIC_FETCH, 0), now);
      fill_on_host(bytes_.data(), kFromHost, 0, n);
      const bool adds = n % 2 == 0;
      fine("put_signal", ist_heap_put_signal(heap_, data_, ist_host(bytes_.data()), kFromHost, words_ + 2, adds ? 1 : n,
                                             adds ? IST_SIGNAL_ADD : IST_SIGNAL_SET, 1));
      if (wrong_ == 0) answered(n);
    }
    return wrong_;
  }

 private:
  bool fine(const char* call, int code) {
    if (code == IST_OK) return true;
    ++wrong_;
    std::fprintf(stderr, "[%d] %s: %s\n", here_.rank, call, ist_error_text());
    return false;
  }
  void found(const char* call, std::uint64_t is, std::uint64_t wanted) {
    if (is == wanted) return;
    ++wrong_;
    std::fprintf(stderr, "[%d] %s found %llu instead of %llu\n", here_.rank, call, static_cast<unsigned long long>(is),
                 static_cast<unsigned long long>(wanted));
  }
  std::uint64_t change(ist_atomic operation, std::uint64_t operand) {
    std::uint64_t before = 0;
    fine("atomic", ist_heap_atomic64(heap_, operation, words_, operand, &before, 1));
    return before;
  }
  std::uint64_t compare_swap(std::uint64_t expected, std::uint64_t wanted) {
    std::uint64_t before = 0;
    fine("compare_swap", ist_heap_compare_swap64(heap_, words_, expected, wanted, &before, 1));
    return before;
  }
  // Within 10 s; the kernel waits for the next epoch while its bytes are got.
  void answered(std::uint32_t n) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    int is = 0;
    while (is == 0 && std::chrono::steady_clock::now() < end)
      if (!fine("test", ist_heap_test(heap_, words_ + 3, IST_UINT64, IST_COMPARE_GE, n, &is))) return;
    if (is == 0) {
      ++wrong_;
      std::fprintf(stderr, "[%d] no answer to epoch %u\n", here_.rank, n);
      return;
    }
    std::vector<unsigned char> wanted(kFromHost);
    fill_on_host(wanted.data(), kFromHost, 1, n);
    if (!fine("get", ist_heap_get(heap_, ist_host(bytes_.data()), data_ + kAnswered, kFromHost, 1))) return;
    if (bytes_ == wanted) return;
    ++wrong_;
    std::fprintf(stderr, "[%d] epoch %u got other bytes than its kernel wrote\n", here_.rank, n);
  }

  const forked_ranks::Here& here_;
  ist_heap heap_;
  unsigned char* data_;
  std::uint64_t* words_;
  std::vector<unsigned char> bytes_;
  int wrong_ = 0;
};

}  // namespace heap_kernels
