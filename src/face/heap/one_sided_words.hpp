// Words of PEs' memory that are waited for and changed atomically: written once, for symmetric heaps and for windows.
//
// Who calls this : api_heap_words.cpp, api_window.cpp.
// Threads        : any.
// Ownership      : none.
// Errors         : returned, without the call's name.
//
// `Memory` is as one_sided_copies.hpp says.
#pragma once

#include <atomic>
#include <string>

#include "face/heap/one_sided_copies.hpp"

namespace ist {

struct Condition {
  ist_type type;
  ist_compare compare;
  std::int64_t value;
};

// `place`: the word's address or offset.
Status check_aligned(std::uint64_t place, std::uint64_t size);
// Also that the type is one of a word.
Status check_condition(const Condition& wanted, std::uint64_t place);
Status check_atomic(ist_atomic operation);
WordChange::What of_device(ist_atomic operation);

// A word of this PE's own. On a device it takes a copy of its own.
template <class Memory>
Result<std::uint64_t> read_own(Memory& memory, const PlaceInHeap& word, std::uint64_t size) {
  if (memory.on_host()) return read_word(memory.at(word.pe, word.offset), size);
  std::uint64_t bits = 0;
  IST_TRY(copy_pieces(memory.world(), host_piece(&bits, Bytes{size}), memory.piece(word.pe, word.offset, Bytes{size})));
  return bits;
}

template <class Memory>
Result<bool> holds(Memory& memory, const PlaceInHeap& word, const Condition& wanted) {
  const WordType type = word_type(wanted.type);
  const auto bits = read_own(memory, word, type.size);
  if (!bits.ok()) return bits.status();
  return compares(*bits, type, wanted.compare, wanted.value);
}

template <class Memory>
Status wait_until(Memory& memory, const PlaceInHeap& word, const Condition& wanted) {
  return memory.wait([&] { return holds(memory, word, wanted); }, [&] { return memory.word_lost(); });
}

// Who tests again and again relies on it to move the world's messages on, and to hear of a death.
template <class Memory>
Status test_word(Memory& memory, const PlaceInHeap& word, const Condition& wanted, int& is) {
  Status lost = memory.word_lost();
  const auto found = holds(memory, word, wanted);
  if (!found.ok()) return found.status();
  is = *found ? 1 : 0;
  if (*found) return {};
  memory.move_on();
  const std::lock_guard lock(memory.engine().lock());
  memory.engine().progress();
  return lost;
}

// Not by this processor: by the PE whose part it is, or by this one's device.
template <class Memory>
Result<std::uint64_t> change_elsewhere(Memory& memory, const PlaceInHeap& word, Bytes size, const WordChange& change) {
  if (PartService* const service = memory.service_of_words(word.pe); service != nullptr)
    return service->change({word.pe, word.offset}, size, change);
  IST_TRY(can_change_on_device(memory, word.pe));
  return change_on_device(memory.world(), memory.piece(word.pe, word.offset, size), change);
}

// What was there.
template <class T, class Memory>
Result<T> change_atomically(Memory& memory, const PlaceInHeap& word, ist_atomic operation, T operand, bool wants_before) {
  IST_TRY(check_atomic(operation));
  if (memory.on_host()) {
    // Only an exchange says what a store has overwritten.
    const bool swaps = operation == IST_ATOMIC_SET && wants_before;
    return change<T>(memory.at(word.pe, word.offset), swaps ? IST_ATOMIC_SWAP : operation, operand);
  }
  const WordChange change{of_device(operation), operation == IST_ATOMIC_INC ? 1 : std::uint64_t{operand}, 0};
  const auto found = change_elsewhere(memory, word, Bytes{sizeof operand}, change);
  if (!found.ok()) return found.status();
  return static_cast<T>(*found);
}

template <class T, class Memory>
Result<T> compare_swap_word(Memory& memory, const PlaceInHeap& word, T expected, T wanted) {
  if (memory.on_host()) {
    std::atomic_ref(*reinterpret_cast<T*>(memory.at(word.pe, word.offset))).compare_exchange_strong(expected, wanted);
    return expected;
  }
  const auto found =
      change_elsewhere(memory, word, Bytes{sizeof wanted}, {WordChange::What::compare_swap, wanted, expected});
  if (!found.ok()) return found.status();
  return static_cast<T>(*found);
}

// Both for calls that look for the word by their own arguments: what was there goes to `before`, where that is wanted.
template <class T, class Memory>
Status change_word(Memory& memory, const Result<PlaceInHeap>& word, ist_atomic operation, T operand, T* before) {
  if (!word.ok()) return word.status();
  const auto found = change_atomically(memory, *word, operation, operand, before != nullptr);
  if (found.ok() && before != nullptr) *before = *found;
  return found.status();
}

template <class T, class Memory>
Status compare_swap_word(Memory& memory, const Result<PlaceInHeap>& word, T expected, T wanted, T* before) {
  if (!word.ok()) return word.status();
  const auto found = compare_swap_word(memory, *word, expected, wanted);
  if (found.ok() && before != nullptr) *before = *found;
  return found.status();
}

}  // namespace ist
