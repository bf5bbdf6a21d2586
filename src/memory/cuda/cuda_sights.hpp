// What shows that a copy is over sooner than its event: memory of the host's, which it writes last.
//
// Who calls this : cuda_memory.cpp and cuda_asking.cpp; tickets hold a sight each.
// Threads        : a sight is used by whoever holds its ticket; the rest by any.
// Ownership      : owns a page of words, which is page-locked with the library's other memory.
// Errors         : the driver's results. A sight never lies: where it says nothing the event is asked.
//
// An event of a copy is answered with yes about 2 us after its bytes are there, and that answer takes 1.5 us of the processor (H200, driver 580.159.04,
// 2026-11-29, tools/peers/small_copies.cu, us: 8 B out of a device 6.3 by the event, 4.3 by the bytes; 1 KiB 6.5 and 4.7; 4 KiB 6.6 and 6.0).
// So the place where bytes come is filled before with what none of them is likely to be, and they are there when no 8 of them are what they
// were. 8 bytes that begin on a multiple of 8 at both ends lie in one sector of the device and one line of the host, and are taken to come at once. No vendor
// writes that of copies; of 8 bytes that a kernel stores NCCL's LL and the channels here rely on it. So the first copies out of each device are on trial: they
// are over by their event, and what was seen before must be what is there then, or none out of that device is seen again. With ISTHMUS_CHECK
// they all are. Of copies before this one nothing is known: writes over the bus may overtake each other.
//
// Few bytes into a device are values that the stream writes itself, and a word in page-locked memory after them: 8 B 4.7 us, 16 B 5.4, 24 B 5.8, where a
// copy and its event take 5.5 to 6.2; and where processes share a device neither values nor word wait for a turn (cuda_turns.hpp; 5 to 6 us where
// two rows take 8 to 9). A value is written behind a fence for all that the stream did before, so that the word tells of that, too.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "memory/cuda/cuda_api.hpp"
#include "memory/piece.hpp"

namespace ist {

// Empty: nothing shows it but the event.
class CudaSight {
 public:
  using Clock = std::chrono::steady_clock;
  // After so long the event is asked, too, at each look: by then it is answered with yes, should the bytes be what stood there; and there may be work
  // before the copy, or none will come.
  static constexpr std::chrono::microseconds kPatience{8};

  CudaSight() = default;
  // `bytes` from `at` on, each 8 of which are `before`, and of what is left as many of its first bytes. is_word: what comes there comes after all that was put
  // into the stream before.
  CudaSight(const std::byte* at, std::size_t bytes, std::uint64_t before, bool is_word = false)
      : at_(at), bytes_(bytes), before_(before), begun_(Clock::now()), is_word_(is_word) {}
  bool empty() const { return at_ == nullptr; }
  bool is_word() const { return is_word_; }
  // Are all of them there? If so, what they are may be read, unless they are on trial.
  bool came();
  // Empty where memory runs out: then the event alone tells.
  void put_on_trial();
  bool on_trial() const { return trial_ != nullptr; }
  // Keeps what is there now, the first time.
  void note();
  // Is that what is there still? Nothing if none was kept.
  std::optional<bool> was_right() const;
  bool should_ask() const { return Clock::now() - begun_ > kPatience; }

 private:
  const std::byte* at_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint64_t before_ = 0;
  Clock::time_point begun_{};
  bool is_word_ = false;
  struct Trial {
    const std::byte* at;
    std::size_t bytes;
    bool kept = false;
    std::array<std::byte, 1024> seen;
  };
  std::shared_ptr<Trial> trial_;  // sights are copied
};

class CudaSights {
 public:
  // Most bytes that are looked for: of more the last come late enough for the event.
  static constexpr Bytes kMostSeen{1024};
  // Most that are written as values, each of which takes as long again as a quarter of a copy.
  static constexpr Bytes kMostInValues{24};

  // What the first copy's place is filled with, in every process: of that, too, a copy has to come to its end.
  static constexpr std::uint64_t kFirstFilling = 0x9e3779b97f4a7c15;

  // Copies out of each device that were seen and whose event is waited for, too.
  static constexpr std::uint8_t kTrials = 64;

  // `check`: all are on trial.
  explicit CudaSights(const CudaApi& api, bool check = false);
  CudaSights(const CudaSights&) = delete;
  CudaSights& operator=(const CudaSights&) = delete;

  // Fills what a copy out of that device is about to write with something else, if that is memory of our own. Empty where that cannot be looked for.
  CudaSight expect(int device, const Piece& to, const Piece& from);
  // Of a copy on trial, once its event said that it is over.
  void judge(int device, const CudaSight& sight);
  // Can these bytes be values, on that device? No longer where the driver said that it has none, or refused them several times in a row.
  bool writes(int device, const Piece& to) const;
  // The page, to be page-locked.
  std::span<std::byte> page() { return std::as_writable_bytes(std::span{words_}); }
  // A word that nobody has, until it is given back; none: all are taken.
  std::optional<std::uint16_t> take_word();
  void give_back(std::uint16_t word);
  // Puts values and the word into the stream of that device, which finds the page at `page`. Not CUDA_SUCCESS: what of them was put in is over.
  CUresult write(int device, CUstream stream, const Piece& to, const std::byte* from, std::uint16_t word, CUdeviceptr page,
                 CudaSight& sight);

 private:
  const CudaApi& api_;
  std::atomic<std::uint64_t> unlikely_{kFirstFilling};
  static constexpr int kDevices = 64;
  static constexpr std::uint8_t kMostRefused = 3;  // in a row
  static constexpr std::uint8_t kNever = 255;
  static bool is_known(int device) { return device >= 0 && device < kDevices; }
  struct Device {
    std::atomic<std::uint8_t> refused{0};
    std::atomic<std::uint8_t> to_try{kTrials};  // kNever: what was seen was wrong
  };
  Device& of(int device) { return by_device_[static_cast<std::size_t>(device)]; }
  const Device& of(int device) const { return by_device_[static_cast<std::size_t>(device)]; }
  const bool check_;
  std::array<Device, kDevices> by_device_{};
  std::mutex mutex_;
  std::vector<std::uint16_t> free_;  // words
  alignas(4096) std::array<std::uint64_t, 512> words_{};
};

}  // namespace ist
