// Changes words of a heap in host memory for kernels of this process, which ask for it in a ring (isthmus/device/proxy.cuh), so that every
// change of such a word is a processor's, and they are atomic with each other.
//
// Who calls this : face/heap/device_view, for a heap that has given a view to kernels; tests.
// Threads        : one of its own, which looks all the time while it is asked, and sleeps up to kLongestSleep at a time where it is not.
//                  drain() and tell_bytes() from any.
// Ownership      : none of ring and parts, which outlive it; the thread ends with it.
// Errors         : a request that names no word of the parts is answered with 0, changes nothing, and is logged once.
#pragma once

#include <isthmus/device/proxy.cuh>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>

#include "base/status.hpp"
#include "base/units.hpp"

namespace ist {

class WordProxy {
 public:
  static constexpr std::chrono::microseconds kLongestSleep{100};
  struct Parts {
    std::byte* base = nullptr;  // of PE 0
    Bytes stride;
    int pes = 0;
    Bytes bytes;  // of each that are there
  };
  WordProxy(device::ProxyRing& ring, const Parts& parts) : ring_(ring), parts_(parts), bytes_(parts.bytes.value) {}
  ~WordProxy();
  WordProxy(const WordProxy&) = delete;
  WordProxy& operator=(const WordProxy&) = delete;

  Status start();
  // The parts have grown.
  void tell_bytes(Bytes bytes) { bytes_.store(bytes.value, std::memory_order_relaxed); }
  // Returns when all is done that kernels asked for which have ended. Others may go on asking. False: for so long nothing was done, since a
  // ticket before the others was taken and never written.
  bool drain(std::chrono::milliseconds patience) const;
  // Serves the next ticket if it is there; in one thread at a time, which is the proxy's own once it was started.
  bool step();

 private:
  void run();
  bool is_there(std::uint64_t ticket) const;
  std::uint64_t done() const { return device::load_acquire(&ring_.done); }
  std::uint64_t change_word(const device::Wanted& wanted);

  device::ProxyRing& ring_;
  const Parts parts_;
  std::atomic<std::uint64_t> bytes_;
  std::uint64_t next_ = 0;  // ticket
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace ist
