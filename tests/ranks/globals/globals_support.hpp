// What tests of symmetric globals share: variables that are symmetric for as long as a test.
#pragma once

#include "face/shmem/globals.hpp"
#include "rank_test.hpp"

namespace rank_test {

// Collective.
class TestGlobals {
 public:
  TestGlobals() {
    auto made = ist::SymmetricGlobals::create(comm());
    EXPECT_TRUE(made.ok()) << made.status().text();
    if (made.ok()) globals_ = std::move(*made);
  }
  ~TestGlobals() { end(); }
  TestGlobals(const TestGlobals&) = delete;
  TestGlobals& operator=(const TestGlobals&) = delete;
  void end() {
    if (globals_ == nullptr) return;
    const ist::Status ended = globals_->end();
    EXPECT_TRUE(ended.ok()) << ended.text();
    globals_.reset();
  }
  ist::SymmetricGlobals* operator->() const { return globals_.get(); }

  template <class T>
  T* own(T* variable) const {
    void* const found = globals_->in_heap(variable, sizeof *variable);
    EXPECT_NE(nullptr, found);
    return static_cast<T*>(found);
  }
  void put(unsigned char* dest, const std::vector<unsigned char>& bytes, int pe) const {
    void* const found = globals_->in_heap(dest, bytes.size());
    EXPECT_EQ(IST_OK, ist_heap_put(globals_->heap(), found, ist_host(bytes.data()), bytes.size(), pe)) << ist_error_text();
  }
  std::vector<unsigned char> get(const unsigned char* source, std::size_t bytes, int pe) const {
    std::vector<unsigned char> found(bytes, 0x11);
    EXPECT_EQ(IST_OK, ist_heap_get(globals_->heap(), ist_host(found.data()), globals_->in_heap(source, bytes), bytes, pe))
        << ist_error_text();
    return found;
  }
  void barrier() const { EXPECT_EQ(IST_OK, ist_heap_barrier(globals_->heap())) << ist_error_text(); }

 private:
  std::unique_ptr<ist::SymmetricGlobals> globals_;
};

inline int right() { return (rank() + 1) % size(); }
inline int left() { return (rank() + size() - 1) % size(); }

}  // namespace rank_test
