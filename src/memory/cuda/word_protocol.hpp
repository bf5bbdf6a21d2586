// What the kernel does that changes one word, by one thread.
//
// Who calls this : cuda_kernels.cu; cuda_words.cpp, which fills the work in; the invented driver of tests, on a processor.
// Threads        : one does it; atomic with every other one, at the scope of the system.
// Ownership      : none.
// Errors         : none.
#pragma once

#include <atomic>
#include <cstdint>

#include "memory/cuda/channel_memory.hpp"
#include "memory/word_changes.hpp"

namespace ist::words {

struct Work {
  void* word = nullptr;
  std::uint64_t* before = nullptr;  // null: nobody wants to know
  WordChange change;
  std::uint32_t bytes = 8;
};

// CUDA's own names for it, and the processor's: `Word` is unsigned, and as long as the word.
template <class Word>
struct At {
  Word* word;
#ifdef __CUDA_ARCH__
  __device__ Word add(Word by) const { return atomicAdd_system(word, by); }
  __device__ Word swap(Word by) const { return atomicExch_system(word, by); }
  __device__ Word bits_of_both(Word by) const { return atomicAnd_system(word, by); }
  __device__ Word bits_of_either(Word by) const { return atomicOr_system(word, by); }
  __device__ Word bits_that_differ(Word by) const { return atomicXor_system(word, by); }
  __device__ Word compare_swap(Word expected, Word by) const { return atomicCAS_system(word, expected, by); }
  __device__ void store(Word value) const { *static_cast<volatile Word*>(word) = value; }
  __device__ static void fence() { __threadfence_system(); }
#else
  Word add(Word by) const { return std::atomic_ref(*word).fetch_add(by); }
  Word swap(Word by) const { return std::atomic_ref(*word).exchange(by); }
  Word bits_of_both(Word by) const { return std::atomic_ref(*word).fetch_and(by); }
  Word bits_of_either(Word by) const { return std::atomic_ref(*word).fetch_or(by); }
  Word bits_that_differ(Word by) const { return std::atomic_ref(*word).fetch_xor(by); }
  Word compare_swap(Word expected, Word by) const {
    std::atomic_ref(*word).compare_exchange_strong(expected, by);
    return expected;
  }
  void store(Word value) const { std::atomic_ref(*word).store(value); }
  static void fence() {}
#endif
};

template <class Word>
IST_KERNEL_CODE Word changed(const Work& work) {
  using What = WordChange::What;
  const At<Word> at{static_cast<Word*>(work.word)};
  const auto operand = static_cast<Word>(work.change.operand);
  switch (work.change.what) {
    case What::fetch:
      return at.add(0);
    case What::add:
      return at.add(operand);
    case What::store:
      at.store(operand);
      return 0;
    case What::set:
    case What::swap:
      return at.swap(operand);
    case What::bitwise_and:
      return at.bits_of_both(operand);
    case What::bitwise_or:
      return at.bits_of_either(operand);
    case What::bitwise_xor:
      return at.bits_that_differ(operand);
    case What::compare_swap:
      return at.compare_swap(static_cast<Word>(work.change.expected), operand);
  }
  return 0;
}

// The atomic operations of a device are relaxed: the fences make this one a release of what came before, and an acquire.
IST_KERNEL_CODE void change(const Work& work) {
  At<unsigned>::fence();
  const std::uint64_t before = work.bytes == 4 ? changed<unsigned>(work) : changed<unsigned long long>(work);
  if (work.before != nullptr) *work.before = before;
  At<unsigned>::fence();
}

}  // namespace ist::words
