// What tests of windows share: memory of any kind that is registered for as long as a test, and read and written from here.
#pragma once

#include <isthmus/window.h>

#include "one_sided_support.hpp"

namespace rank_test {

// OpenCL hands no memory of the program's to others.
inline std::vector<KindName> window_kinds() {
  std::vector<KindName> kinds;
  for (const KindName& each : usable_kinds())
    if (each.kind != IST_KIND_OPENCL) kinds.push_back(each);
  return kinds;
}

// Collective: so much at this PE, at an offset in what was allocated, between bytes that nobody may touch. 0 bytes: none.
class TestWindow {
 public:
  static constexpr std::size_t kGuard = 61;
  TestWindow(ist_kind kind, std::size_t bytes) : kind_(kind), bytes_(bytes) {
    // Of shorter host memory nothing is shared.
    whole_bytes_ = std::max<std::size_t>(bytes + 2 * kGuard, 16384);
    EXPECT_EQ(IST_OK, ist_memory_alloc(world(), kind, IST_OWN_DEVICE, whole_bytes_, &memory_)) << ist_error_text();
    poison();
    EXPECT_EQ(IST_OK, ist_window_create(comm(), ist_buffer_at(memory_, kGuard), bytes, &window_)) << ist_error_text();
    barrier();
  }
  ~TestWindow() {
    if (window_ != IST_WINDOW_NULL) {
      EXPECT_EQ(IST_OK, ist_window_free(&window_)) << ist_error_text();
    }
    EXPECT_EQ(IST_WINDOW_NULL, window_);
    EXPECT_EQ(IST_OK, ist_memory_free(world(), memory_)) << ist_error_text();
  }
  TestWindow(const TestWindow&) = delete;
  TestWindow& operator=(const TestWindow&) = delete;
  operator ist_window() const { return window_; }  // NOLINT(google-explicit-constructor)
  ist_window_view view() const {
    ist_window_view view{};
    EXPECT_EQ(IST_OK, ist_window_view_of(window_, &view)) << ist_error_text();
    return view;
  }
  // The caller's own.
  ist_buffer own(std::size_t offset = 0) const { return ist_buffer_at(memory_, kGuard + offset); }
  void store(const std::vector<unsigned char>& bytes, std::size_t offset = 0) const {
    EXPECT_EQ(IST_OK, ist_memory_copy(world(), own(offset), ist_host(bytes.data()), bytes.size())) << ist_error_text();
  }
  void poison() const {
    const std::vector<unsigned char> bytes(whole_bytes_, 0xa5);
    EXPECT_EQ(IST_OK, ist_memory_copy(world(), memory_, ist_host(bytes.data()), bytes.size())) << ist_error_text();
  }
  // Of all that was allocated `bytes` are there from `offset` on, and everything else is poisoned.
  void expect(const std::vector<unsigned char>& bytes, std::size_t offset, const std::string& what) const {
    std::vector<unsigned char> found(whole_bytes_), wanted(whole_bytes_, 0xa5);
    ASSERT_EQ(IST_OK, ist_memory_copy(world(), ist_host(found.data()), memory_, found.size())) << ist_error_text();
    std::copy(bytes.begin(), bytes.end(), wanted.begin() + static_cast<std::ptrdiff_t>(kGuard + offset));
    EXPECT_EQ(-1, first_difference(wanted, found)) << what;
  }
  void barrier() const {
    if (window_ != IST_WINDOW_NULL) {
      EXPECT_EQ(IST_OK, ist_window_quiet(window_)) << ist_error_text();
    }
    EXPECT_EQ(IST_OK, ist_barrier(comm())) << ist_error_text();
  }
  ist_kind kind() const { return kind_; }
  std::size_t bytes() const { return bytes_; }

 private:
  ist_kind kind_;
  std::size_t bytes_;
  std::size_t whole_bytes_ = 0;
  ist_buffer memory_{};
  ist_window window_ = IST_WINDOW_NULL;
};

// So many at that PE: another number at each, and odd.
inline std::size_t bytes_of(int pe) { return 1100001 + 978 * static_cast<std::size_t>(pe); }

// Every PE fails alike, and says so.
inline void expect_refused(ist_buffer memory, std::uint64_t bytes, int code, const std::string& part) {
  ist_window window = reinterpret_cast<ist_window>(1);  // NOLINT(performance-no-int-to-ptr): anything but null
  expect_error(code, part.c_str(), ist_window_create(comm(), memory, bytes, &window));
  EXPECT_EQ(IST_WINDOW_NULL, window);
}

}  // namespace rank_test
