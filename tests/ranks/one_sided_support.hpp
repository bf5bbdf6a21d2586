// What tests of symmetric heaps share: a heap of any kind for as long as a test, and its memory written and read from here.
#pragma once

#include <isthmus/heap.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "rank_test.hpp"

namespace rank_test {

// Collective, as the heap.
class TestHeap {
 public:
  explicit TestHeap(ist_kind kind, std::uint64_t bytes = 8 << 20, std::uint64_t most = 1 << 30) {
    EXPECT_EQ(IST_OK, ist_heap_create(comm(), kind, IST_OWN_DEVICE, bytes, most, &heap_)) << ist_error_text();
  }
  ~TestHeap() {
    if (heap_ == IST_HEAP_NULL) return;
    EXPECT_EQ(IST_OK, ist_heap_destroy(&heap_)) << ist_error_text();
  }
  TestHeap(const TestHeap&) = delete;
  TestHeap& operator=(const TestHeap&) = delete;
  ist_heap get() const { return heap_; }
  operator ist_heap() const { return heap_; }  // NOLINT(google-explicit-constructor)

  unsigned char* alloc(std::uint64_t bytes) const {
    void* address = nullptr;
    EXPECT_EQ(IST_OK, ist_heap_alloc(heap_, bytes, &address)) << ist_error_text();
    return static_cast<unsigned char*>(address);
  }
  // The caller's own copy.
  void store(unsigned char* address, const std::vector<unsigned char>& bytes) const {
    EXPECT_EQ(IST_OK, ist_heap_put(heap_, address, ist_host(bytes.data()), bytes.size(), rank())) << ist_error_text();
  }
  std::vector<unsigned char> load(const unsigned char* address, std::size_t bytes) const {
    std::vector<unsigned char> found(bytes, 0x11);
    EXPECT_EQ(IST_OK, ist_heap_get(heap_, ist_host(found.data()), address, bytes, rank())) << ist_error_text();
    return found;
  }
  void barrier() const { EXPECT_EQ(IST_OK, ist_heap_barrier(heap_)) << ist_error_text(); }

 private:
  ist_heap heap_ = IST_HEAP_NULL;
};

inline std::vector<KindName> heap_kinds() { return usable_kinds(); }
// Does the driver work in memory of the program's, so that all PEs map such heaps? Not all versions of PoCL do. Collective the first time.
inline bool maps_opencl() {
  static const bool found = [] {
    const TestHeap heap{IST_KIND_OPENCL, 1 << 16};
    ist_team_view view{};
    const bool is = ist_heap_view(heap, &view) == IST_OK;
    if (!is && rank() == 0)
      std::printf("not covered here: heaps of OpenCL memory that all PEs map; this driver keeps buffers elsewhere\n");
    return is;
  }();
  return found;
}
// Does a PE serve its part of such a heap, which another one does not reach? Where the driver could do otherwise, a test asks for it, and has the
// driver that needs no GPU refuse links.
inline bool is_served(ist_kind kind) {
  const char* const ipc = std::getenv("ISTHMUS_DEVICE_IPC");
  const char* const links = std::getenv("FAKE_CUDA_LINKS");
  const bool never = ipc != nullptr && std::string{ipc} == "never";
  return kind == IST_KIND_OPENCL ? never || !maps_opencl() : kind == IST_KIND_CUDA && (never || links != nullptr);
}
// Those whose addresses lead to every part.
inline std::vector<KindName> mapped_heap_kinds() {
  std::vector<KindName> kinds;
  for (const KindName& each : heap_kinds())
    if (!is_served(each.kind)) kinds.push_back(each);
  return kinds;
}

inline int right() { return (rank() + 1) % size(); }
inline int left() { return (rank() + size() - 1) % size(); }

// A call that must fail so, and say so.
inline void expect_error(int code, const char* part, int found) {
  EXPECT_EQ(code, found) << ist_error_text();
  EXPECT_NE(std::string::npos, std::string{ist_error_text()}.find(part)) << ist_error_text();
}

}  // namespace rank_test
