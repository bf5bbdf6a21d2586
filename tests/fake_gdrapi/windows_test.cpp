// Small copies through windows onto device memory: which go that way, that every byte is right, that no window outlives its memory, and
// that the driver copies where there is none.
#include <dlfcn.h>

#include <cstdlib>

#include "cuda_support.hpp"

namespace ist::test {
namespace {

template <class Function>
Function gdr_call(const char* name) {
  void* const library = ::dlopen("libgdrapi.so.2", RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : reinterpret_cast<Function>(::dlsym(library, name));
}
int counted(const char* what) { return gdr_call<int (*)(const char*)>("fake_gdr_count")(what); }
void break_call(const char* call, int result) { gdr_call<void (*)(const char*, int)>("fake_gdr_fail")(call, result); }

// A variable of the fake's for one scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

class Windows : public testing::Test {
 protected:
  void SetUp() override {
    NEEDS_FAKE("stand behind a gdrcopy that is none");
    ASSERT_NE(nullptr, gdr_call<void*>("fake_gdr_count"));
    kind_ = must(make_cuda_kind());
  }
  void TearDown() override {
    kind_.reset();
    if (gdr_call<void*>("fake_gdr_count") == nullptr) return;
    for (const char* what : {"sessions", "pins", "maps", "stale"}) EXPECT_EQ(0, counted(what)) << what;
    for (const char* call : {"gdr_pin_buffer", "gdr_map", "gdr_get_info_v2", "gdr_copy_to_mapping", "gdr_copy_from_mapping"})
      break_call(call, 0);
    fake_heal();
  }
  CudaKind& kind() const { return static_cast<CudaKind&>(*kind_); }
  // True if it was over at once.
  bool copy(const Piece& to, const Piece& from, const Ticket& after = {}) const {
    Ticket ticket = must(kind_->copy(to, from, after));
    const bool at_once = ticket.empty();
    while (!must(kind_->finished(ticket))) {
    }
    return at_once;
  }
  // Into the device and out again, with guards on both sides; how each way went is compared with what is wanted.
  void there_and_back(const Piece& memory, std::uint64_t offset, std::uint64_t size, bool into, bool out) const {
    constexpr std::uint64_t kGuard = 16;
    const Piece part = memory.part(Offset{offset}, Bytes{size});
    const Data before = fake_bytes(memory.object, memory.size.value);
    const Data sent = random_bytes(size);
    EXPECT_EQ(into, copy(part, host_piece(sent.data(), Bytes{size}))) << size;
    Data wanted = before;
    std::copy(sent.begin(), sent.end(), wanted.begin() + static_cast<std::ptrdiff_t>(offset));
    EXPECT_EQ(wanted, fake_bytes(memory.object, memory.size.value)) << size << " bytes at " << offset;
    Data back(size + 2 * kGuard, 0xee);
    Data expected = back;
    std::copy(sent.begin(), sent.end(), expected.begin() + kGuard);
    EXPECT_EQ(out, copy(host_piece(back.data() + kGuard, Bytes{size}), part)) << size;
    EXPECT_EQ(expected, back) << size << " bytes at " << offset;
  }

  std::unique_ptr<MemoryKind> kind_;
};

TEST_F(Windows, carry_small_copies_of_every_size_and_the_driver_carries_the_others) {
  const Piece memory = must(kind_->allocate(0, Bytes{400000}));
  for (const std::uint64_t offset : {0U, 1U, 4095U, 65535U, 65536U, 131000U, 391807U})
    for (const std::uint64_t size : {1U, 2U, 3U, 7U, 8U, 63U, 511U, 512U, 513U, 4096U, 8191U, 8192U, 8193U})
      there_and_back(memory, offset, size, size <= 8192, size <= 512);
  EXPECT_LE(kind().open_windows(), 16U);
  EXPECT_GT(fake_calls("cuPointerSetAttribute"), 0U);
  must(kind_->release(memory));
}

TEST_F(Windows, wait_for_what_is_to_come_before) {
  const Piece memory = must(kind_->allocate(0, Bytes{4096}));
  const Data first = random_bytes(100);
  const Data second = random_bytes(100);
  const auto api = must(load_cuda_api());
  {
    Gate gate;
    gate.close(api, reinterpret_cast<CUstream>(memory.queue));
    Ticket ready = must(kind().ready(memory));
    ASSERT_FALSE(ready.empty());
    const int into = counted("into");
    Ticket ticket = must(kind_->copy(memory.part(Offset{}, Bytes{100}), host_piece(second.data(), Bytes{100}), ready));
    EXPECT_FALSE(ticket.empty());
    EXPECT_EQ(into, counted("into"));
    EXPECT_FALSE(must(kind_->finished(ticket)));
    gate.open();
    while (!must(kind_->finished(ticket))) {
    }
    while (!must(kind_->finished(ready))) {
    }
  }
  EXPECT_EQ(second, fake_bytes(memory.object, 100));
  // What is over need not be waited for.
  Ticket over = must(kind().in_order(memory));
  EXPECT_TRUE(copy(memory.part(Offset{100}, Bytes{100}), host_piece(first.data(), Bytes{100}), over));
  EXPECT_EQ(first, fake_bytes(memory.object + 100, 100));
  must(kind_->release(memory));
}

TEST_F(Windows, end_with_their_memory) {
  std::uint64_t last = 0;
  int again = 0;
  for (int round = 0; round < 200; ++round) {
    const Piece memory = must(kind_->allocate(0, Bytes{3000}));
    again += memory.object == last ? 1 : 0;
    last = memory.object;
    there_and_back(memory, 17, 300, true, true);
    must(kind_->release(memory));
  }
  EXPECT_GT(again, 0) << "no address came back, and nothing was tried";
  EXPECT_LE(kind().open_windows(), 1U);
  EXPECT_EQ(0, counted("stale"));
}

TEST_F(Windows, are_few_and_the_least_recently_used_go) {
  std::vector<Piece> all;
  for (int n = 0; n < 100; ++n) {
    all.push_back(must(kind_->allocate(n % 2, Bytes{2000})));
    there_and_back(all.back(), 0, 100, true, true);
  }
  EXPECT_EQ(64U, kind().open_windows());
  EXPECT_EQ(64, counted("maps"));
  for (const Piece& each : all) there_and_back(each, 1000, 200, true, true);
  for (const Piece& each : all) must(kind_->release(each));
}

TEST_F(Windows, open_onto_what_the_driver_allocated_alone) {
  const auto api = must(load_cuda_api());
  const Piece own = must(kind_->allocate(0, Bytes{64}));
  CUdeviceptr managed = 0;
  CUdeviceptr pooled = 0;
  {
    CUcontext context = nullptr;
    must(api, api.cuDevicePrimaryCtxRetain(&context, 0), "retain");
    const Current current(api, context);
    must(api, api.cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL), "managed");
    must(api, api.cuMemAllocAsync(&pooled, 4096, nullptr), "pool");
    must(api, api.cuStreamSynchronize(nullptr), "synchronize");
    for (const CUdeviceptr address : {managed, pooled}) {
      Piece piece = own;
      piece.object = address;
      piece.size = Bytes{4096};
      piece.queue = 0;
      there_and_back(piece, 5, 100, false, false);
    }
    must(api, api.cuMemFree_v2(managed), "free");
    must(api, api.cuMemFreeAsync(pooled, nullptr), "free");
    must(api, api.cuStreamSynchronize(nullptr), "synchronize");
    must(api, api.cuDevicePrimaryCtxRelease_v2(0), "release");
  }
  EXPECT_EQ(0U, kind().open_windows());
  must(kind_->release(own));
}

// Nothing is left of what failed halfway, and the allocation is not tried again; the next one is.
TEST_F(Windows, that_cannot_be_opened_leave_the_copy_to_the_driver) {
  for (const char* call : {"gdr_pin_buffer", "gdr_get_info_v2", "gdr_map", "gdr_copy_to_mapping"}) {
    const Piece memory = must(kind_->allocate(0, Bytes{3000}));
    break_call(call, 12);
    const bool copies = std::string{call} == "gdr_copy_to_mapping";
    there_and_back(memory, 3, 200, false, copies);
    break_call(call, 0);
    there_and_back(memory, 3, 200, copies, copies);
    must(kind_->release(memory));
    EXPECT_EQ(static_cast<int>(kind().open_windows()), counted("pins")) << call;
  }
  const Piece memory = must(kind_->allocate(0, Bytes{3000}));
  fake_fail("cuPointerSetAttribute", 0, CUDA_ERROR_NOT_SUPPORTED);
  there_and_back(memory, 3, 200, false, false);
  must(kind_->release(memory));
  const Piece later = must(kind_->allocate(0, Bytes{3000}));
  there_and_back(later, 3, 200, true, true);
  must(kind_->release(later));
}

TEST_F(Windows, are_absent_with_a_reason_where_library_or_driver_will_not_do) {
  struct Case {
    const char* variable;
    const char* value;
    const char* words;
  };
  for (const Case& each : {Case{"FAKE_GDR_DRIVER", "0", "load the kernel module gdrdrv"},
                           Case{"FAKE_GDR_VERSION", "1", "is gdrcopy 1.5; a version 2 is needed"},
                           Case{"FAKE_GDR_DRIVER_VERSION", "1", "gdrdrv is of version 1.4"}}) {
    const Variable variable(each.variable, each.value);
    const auto kind = must(make_cuda_kind());
    const auto additions = kind->additions();
    ASSERT_EQ(1U, additions.size());
    EXPECT_NE(std::string::npos, additions[0].off.find(each.words)) << additions[0].off;
    kind_ = must(make_cuda_kind());
    const Piece memory = must(kind_->allocate(0, Bytes{3000}));
    there_and_back(memory, 3, 200, false, false);
    must(kind_->release(memory));
  }
  kind_ = must(make_cuda_kind());
  const auto additions = kind_->additions();
  ASSERT_EQ(1U, additions.size());
  EXPECT_EQ("", additions[0].off);
  EXPECT_EQ("2.5, driver 2.4", additions[0].detail);
}

TEST(GdrLoad, without_the_library_or_with_another_the_reason_says_what_to_install) {
  const auto absent = gdr::load_api("libgdrapi_that_is_not_there.so.2");
  ASSERT_FALSE(absent.ok());
  EXPECT_NE(std::string::npos, absent.status().text().find("libgdrapi_that_is_not_there.so.2")) << absent.status().text();
  EXPECT_NE(std::string::npos, absent.status().text().find("install gdrcopy")) << absent.status().text();
  const auto other = gdr::load_api("libm.so.6");
  ASSERT_FALSE(other.ok());
  EXPECT_NE(std::string::npos, other.status().text().find("libm.so.6 has no gdr_open")) << other.status().text();
}

}  // namespace
}  // namespace ist::test
