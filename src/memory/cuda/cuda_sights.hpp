// What shows that a copy is over sooner than its event: memory of the host's, which it writes last.
//
// Who calls this : cuda_memory.cpp.
// Threads        : a sight is used by whoever holds its ticket; the rest by any.
// Ownership      : owns a page of words, which is page-locked with the library's other memory.
// Errors         : the driver's results. A sight never lies: where it says nothing the event is asked.
//
// An event of a copy is answered with yes about 2 us after its bytes are there, and that answer takes 1.5 us of the processor (H200, driver 580.159.04,
// 2026-11-29, tools/peers/small_copies.cu, us: 8 B out of a device 6.3 by the event, 4.3 by the bytes; 1 KiB 6.5 and 4.7; 4 KiB 6.6 and 6.0).
// So the place where bytes come is filled before with what none of them is likely to be, and they are there when no 8 of them are what they
// were: those that lie on a multiple of 8 come at once. Bytes that are by chance what stood there are told of by the event.
//
// Few bytes into a device are values that the stream writes itself, and a word in page-locked memory after them: 8 B 4.7 us, 16 B 5.4, 24 B 5.8, where a
// copy and its event take 5.5 to 6.2; and where processes share a device neither values nor word wait for a turn (cuda_turns.hpp; 5 to 6 us where
// two rows take 8 to 9). The word comes behind the values, since a written value comes behind what the stream did before.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "memory/cuda/cuda_api.hpp"
#include "memory/piece.hpp"

namespace ist {

// Empty: nothing shows it but the event.
class CudaSight {
 public:
  CudaSight() = default;
  // `bytes` from `at` on, each 8 of which are `before`, and of what is left as many of its first bytes.
  CudaSight(const std::byte* at, std::size_t bytes, std::uint64_t before) : at_(at), bytes_(bytes), before_(before) {}
  bool empty() const { return at_ == nullptr; }
  // Are all of them there? If so, what they are may be read.
  bool came();
  // Is it time to ask the event, too? It may be that bytes are what stood there, or that nothing will come.
  bool should_ask() { return ++looks_ % kAskEvery == 0; }

 private:
  static constexpr unsigned kAskEvery = 64;
  const std::byte* at_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint64_t before_ = 0;
  unsigned looks_ = 0;
};

class CudaSights {
 public:
  // Most bytes that are looked for: of more the last come late enough for the event.
  static constexpr Bytes kMostSeen = kibibytes(1);
  // Most that are written as values, each of which takes as long again as a quarter of a copy.
  static constexpr Bytes kMostInValues{24};

  // What the first copy's place is filled with, in every process: of that, too, a copy has to come to its end.
  static constexpr std::uint64_t kFirstFilling = 0x9e3779b97f4a7c15;

  explicit CudaSights(const CudaApi& api) : api_(api) {}
  CudaSights(const CudaSights&) = delete;
  CudaSights& operator=(const CudaSights&) = delete;

  // Fills what a copy is about to write with something else, if that is memory of our own. Empty where that cannot be looked for.
  CudaSight expect(const Piece& to);
  // Can these bytes be values?
  bool writes(const Piece& to) const;
  // The page, to be page-locked, and the word of the ticket with that number; empty: it has none.
  std::span<std::byte> page() { return std::as_writable_bytes(std::span{words_}); }
  std::span<const std::byte> word(std::uint32_t ticket) const;
  // Puts values and word, which the device finds at `there`, into the stream. Not CUDA_SUCCESS: nothing was put in, and nothing will be again.
  CUresult write(CUstream stream, const Piece& to, const std::byte* from, std::uint32_t ticket, CUdeviceptr there,
                 CudaSight& sight);

 private:
  const CudaApi& api_;
  std::atomic<std::uint64_t> unlikely_{kFirstFilling};
  std::atomic<bool> refused_{false};
  alignas(4096) std::array<std::uint64_t, 512> words_{};
};

}  // namespace ist
