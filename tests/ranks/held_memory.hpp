// Memory of which a page cannot be read at first: whoever copies it is held up there, in the middle of the copy.
//
// Who calls this : pieces_test.cpp, deaths_test.cpp.
// Threads        : one object at a time in a process; any thread may read it.
// Ownership      : owns its pages, and the process's handler of SIGSEGV while it is there.
// Errors         : none; a fault anywhere else ends the process, as ever.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace held_memory {

class HeldMemory {
 public:
  static std::size_t page_size() {
    static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return bytes;
  }
  explicit HeldMemory(const std::vector<unsigned char>& bytes) : size_((bytes.size() / page_size() + 1) * page_size()) {
    void* const pages = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(MAP_FAILED, pages);
    bytes_ = static_cast<unsigned char*>(pages);
    std::memcpy(bytes_, bytes.data(), bytes.size());
    struct sigaction handler = {};
    handler.sa_sigaction = on_fault;
    handler.sa_flags = SA_SIGINFO;
    EXPECT_EQ(0, ::sigaction(SIGSEGV, &handler, &before));
  }
  ~HeldMemory() {
    ::sigaction(SIGSEGV, &before, nullptr);
    ::munmap(bytes_, size_);
  }
  HeldMemory(const HeldMemory&) = delete;
  HeldMemory& operator=(const HeldMemory&) = delete;

  unsigned char* data() const { return bytes_; }
  // Whoever reads that page waits so long once, and then goes on; or ends with the process, if that `kills`.
  // By number; the last one where there are not so many.
  void hold(std::size_t page, long milliseconds, bool kills = false) {
    length = page_size();
    held = bytes_ + std::min(page, size_ / length - 1) * length;
    pause = {0, milliseconds * 1000000};
    ends = kills;
    EXPECT_EQ(0, ::mprotect(held, length, PROT_NONE));
  }

 private:
  static void on_fault(int /*signal*/, siginfo_t* fault, void* /*context*/) {
    const auto at = reinterpret_cast<std::uintptr_t>(fault->si_addr);
    const auto page = reinterpret_cast<std::uintptr_t>(held);
    if (at < page || at >= page + length) {
      ::sigaction(SIGSEGV, &before, nullptr);  // which hears of it as the read is tried again
      return;
    }
    ::nanosleep(&pause, nullptr);
    if (ends) ::raise(SIGKILL);
    ::mprotect(held, length, PROT_READ | PROT_WRITE);
  }
  inline static unsigned char* held = nullptr;
  inline static timespec pause{};
  inline static bool ends = false;
  inline static std::size_t length = 0;
  inline static struct sigaction before = {};
  std::size_t size_;
  unsigned char* bytes_ = nullptr;
};

}  // namespace held_memory
