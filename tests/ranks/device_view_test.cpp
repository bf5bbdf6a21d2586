// Heaps in host memory as kernels use them: threads of the processor that play kernels ask each rank's proxy, by the ring that the view names,
// while hosts change the same words. Kernels themselves: tests/device/heap_view_test.cpp. Run as messages_test.cpp is.
#include <dlfcn.h>
#include <isthmus/device/host_words.cuh>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>

#include "one_sided_support.hpp"

namespace {

using namespace rank_test;
namespace device = ist::device;

constexpr std::uint64_t kDeadline = 20000000000;  // ns

bool has_cuda() {
  int devices = 0;
  return ist_kind_devices(world(), IST_KIND_CUDA, &devices) == IST_OK && devices > 0;
}

bool has_fake_driver() {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return driver != nullptr && ::dlsym(driver, "fake_cuda_calls") != nullptr;
}

// A view whose desk a processor reaches, who plays the device.
class Played {
 public:
  explicit Played(ist_heap heap) : desk_(std::make_unique<device::ProxyDesk>()) { make(heap); }
  void make(ist_heap heap) {
    EXPECT_EQ(IST_OK, ist_heap_device_view(heap, IST_OWN_DEVICE, &view_)) << ist_error_text();
    view_.desk = reinterpret_cast<unsigned char*>(desk_.get());
  }
  const ist_device_view& view() const { return view_; }

 private:
  ist_device_view view_{};
  std::unique_ptr<device::ProxyDesk> desk_;
};

TEST(DeviceView, HostsAndWhatPlaysKernelsCountTogether) {
  if (!has_cuda()) GTEST_SKIP() << "not covered here: views of host heaps for kernels; they need a CUDA device";
  constexpr std::uint64_t kTimes = 1500, kHostAdds = 1000003;
  constexpr int kThreads = 2;
  const TestHeap heap{IST_KIND_HOST};
  void* zeroed = nullptr;
  IST_OK_OR_FAIL(ist_heap_calloc(heap, 2, 8, &zeroed));
  auto* const words = static_cast<std::uint64_t*>(zeroed);
  const Played played(heap);
  const ist_device_view& view = played.view();
  ASSERT_NE(nullptr, view.ring);
  EXPECT_EQ(rank(), view.team.pe);
  std::atomic<int> wrong{0};
  std::vector<std::thread> kernel;
  for (int thread = 0; thread < kThreads; ++thread)
    kernel.emplace_back([&] {
      for (std::uint64_t n = 0; n < kTimes; ++n)
        for (int pe = 0; pe < view.team.pes; ++pe)
          if (device::atomic_add(view, device::for_kernel(view, words), std::uint64_t{1}, pe, kDeadline) !=
              device::Status::ok)
            ++wrong;
    });
  for (std::uint64_t n = 0; n < kTimes; ++n)
    for (int pe = 0; pe < size(); ++pe)
      IST_OK_OR_FAIL(ist_heap_atomic64(heap, IST_ATOMIC_ADD, words, kHostAdds, nullptr, pe));
  for (std::thread& each : kernel) each.join();
  EXPECT_EQ(0, wrong);
  // The kernels have ended: a barrier of the hosts covers what they asked for.
  heap.barrier();
  std::uint64_t sum = 0;
  IST_OK_OR_FAIL(ist_heap_signal_fetch(heap, words, &sum));
  EXPECT_EQ(static_cast<std::uint64_t>(size()) * kTimes * (kHostAdds + kThreads), sum);
  heap.barrier();
}

TEST(DeviceView, SignalsAndAnswersReachEveryPe) {
  if (!has_cuda()) GTEST_SKIP() << "not covered here: views of host heaps for kernels; they need a CUDA device";
  const TestHeap heap{IST_KIND_HOST};
  void* zeroed = nullptr;
  IST_OK_OR_FAIL(ist_heap_calloc(heap, 4, 8, &zeroed));
  auto* const words = static_cast<std::uint64_t*>(zeroed);
  const Played played(heap);
  std::uint64_t* const mine = device::for_kernel(played.view(), words);
  for (std::uint64_t n = 1; n <= 100; ++n) {
    const std::uint64_t data = n * 1000 + static_cast<std::uint64_t>(rank());
    device::p(played.view().team, mine + 1, data, right());
    ASSERT_EQ(device::Status::ok, device::signal(played.view(), mine, 1, device::Signal::add, right(), kDeadline));
    IST_OK_OR_FAIL(ist_heap_wait_until(heap, words, IST_UINT64, IST_COMPARE_EQ, static_cast<std::int64_t>(n)));
    ASSERT_EQ(n * 1000 + static_cast<std::uint64_t>(left()), words[1]);
    device::Status status = device::Status::misuse;
    ASSERT_EQ(n - 1, device::atomic_fetch_inc(played.view(), mine + 2, right(), kDeadline, &status));
    ASSERT_EQ(device::Status::ok, status);
    heap.barrier();
  }
}

// Who plays a kernel alone.
struct Alone {
  unsigned thread = 0, threads = 1, block = 0, blocks = 1;
  void sync() const {}
  bool any(bool mine) const { return mine; }
};

TEST(DeviceView, ABarrierOfKernelsCoversWhatTheyAskedFor) {
  if (!has_cuda()) GTEST_SKIP() << "not covered here: views of host heaps for kernels; they need a CUDA device";
  const TestHeap heap{IST_KIND_HOST};
  void* zeroed = nullptr;
  IST_OK_OR_FAIL(ist_heap_calloc(heap, 1, 8, &zeroed));
  const Played played(heap);
  std::uint64_t* const mine = device::for_kernel(played.view(), static_cast<std::uint64_t*>(zeroed));
  for (std::uint64_t n = 1; n <= 100; ++n) {
    for (int i = 0; i < 10; ++i)
      ASSERT_EQ(device::Status::ok, device::atomic_add(played.view(), mine, std::uint64_t{1}, right(), kDeadline));
    ASSERT_EQ(device::Status::ok, device::barrier(Alone(), played.view(), kDeadline));
    ASSERT_EQ(10 * n, device::g(played.view().team, mine, rank()));
    ASSERT_EQ(device::Status::ok, device::barrier(Alone(), played.view(), kDeadline));
  }
}

TEST(DeviceView, TellsOfWhatHasGrown) {
  if (!has_cuda()) GTEST_SKIP() << "not covered here: views of host heaps for kernels; they need a CUDA device";
  const TestHeap heap{IST_KIND_HOST, 1 << 20};
  Played played(heap);
  const ist_device_view before = played.view();
  void* some = nullptr;
  IST_OK_OR_FAIL(ist_heap_alloc(heap, 900 << 10, &some));
  IST_OK_OR_FAIL(ist_heap_grow(heap, 3 << 20));
  void* behind = nullptr;
  IST_OK_OR_FAIL(ist_heap_calloc(heap, 1 << 18, 8, &behind));
  auto* const word = static_cast<std::uint64_t*>(behind) + (1 << 18) - 1;
  const auto add = [&](const ist_device_view& view) {
    return device::atomic_add(view, device::for_kernel(view, word), std::uint64_t{5}, right(), kDeadline);
  };
  EXPECT_EQ(device::Status::misuse, add(played.view())) << "a view knows what there was when it was made";
  played.make(heap);
  EXPECT_EQ(before.ring, played.view().ring);
  EXPECT_EQ(before.team.base, played.view().team.base);
  EXPECT_EQ(device::Status::ok, add(played.view()));
  heap.barrier();
  EXPECT_EQ(5U, *word);
  heap.barrier();
}

TEST(DeviceView, OfACudaHeapChangesWordsItself) {
  if (!has_cuda()) GTEST_SKIP() << "not covered here: views of CUDA heaps for kernels; they need a CUDA device";
  const TestHeap heap{IST_KIND_CUDA};
  ist_team_view team{};
  ist_device_view view{};
  if (is_served(IST_KIND_CUDA) && size() > 1) {
    expect_error(IST_ERR_UNREACHABLE, "does not reach", ist_heap_view(heap, &team));
    return;
  }
  IST_OK_OR_FAIL(ist_heap_view(heap, &team));
  IST_OK_OR_FAIL(ist_heap_device_view(heap, IST_OWN_DEVICE, &view));
  EXPECT_EQ(nullptr, view.ring);
  EXPECT_EQ(nullptr, view.desk);
  EXPECT_EQ(0, view.shift);
  EXPECT_EQ(team.base, view.team.base);
  EXPECT_EQ(team.bytes, view.team.bytes);
  EXPECT_EQ(team.abort_word, view.team.abort_word);
  int devices = 0;
  IST_OK_OR_FAIL(ist_kind_devices(world(), IST_KIND_CUDA, &devices));
  if (devices > 1)
    expect_error(IST_ERR_ARGUMENT, "name that one", ist_heap_device_view(heap, (rank() + 1) % devices, &view));
}

TEST(DeviceView, SaysWhatItCannotDo) {
  const TestHeap heap{IST_KIND_HOST, 1 << 16};
  ist_device_view view{};
  expect_error(IST_ERR_ARGUMENT, "view is null", ist_heap_device_view(heap, IST_OWN_DEVICE, nullptr));
  if (!has_cuda()) {
    expect_error(IST_ERR_KIND, "kernels need a CUDA device", ist_heap_device_view(heap, IST_OWN_DEVICE, &view));
    EXPECT_EQ(nullptr, view.team.base);
    return;
  }
  expect_error(IST_ERR_ARGUMENT, "has devices 0 to", ist_heap_device_view(heap, 4096, &view));
  IST_OK_OR_FAIL(ist_heap_device_view(heap, 0, &view));
  int devices = 0;
  IST_OK_OR_FAIL(ist_kind_devices(world(), IST_KIND_CUDA, &devices));
  if (devices > 1) expect_error(IST_ERR_ARGUMENT, "for device 0", ist_heap_device_view(heap, 1, &view));
}

// On some machines kernels find host memory elsewhere than hosts do.
TEST(DeviceView, HasAddressesForKernels) {
  if (!has_cuda() || !has_fake_driver())
    GTEST_SKIP() << "not covered here: a device that finds host memory elsewhere; the driver that needs no GPU plays one";
  constexpr std::uint64_t kShift = std::uint64_t{1} << 45U;
  const TestHeap heap{IST_KIND_HOST, 1 << 16};
  ist_team_view team{};
  IST_OK_OR_FAIL(ist_heap_view(heap, &team));
  ist_device_view view{};
  ::setenv("FAKE_CUDA_HOST_SHIFT", std::to_string(kShift).c_str(), 1);
  const int code = ist_heap_device_view(heap, IST_OWN_DEVICE, &view);
  ::unsetenv("FAKE_CUDA_HOST_SHIFT");
  ASSERT_EQ(IST_OK, code) << ist_error_text();
  EXPECT_EQ(static_cast<std::int64_t>(kShift), view.shift);
  EXPECT_EQ(team.base + kShift, view.team.base);
  EXPECT_EQ(team.stride, view.team.stride);
  EXPECT_EQ(team.base + kShift + 8, device::for_kernel(view, team.base + 8));
  // What was the ring's address, the proxy's own thread reads without the shift.
  const auto desk = std::make_unique<device::ProxyDesk>();
  view.ring -= kShift;
  view.desk = reinterpret_cast<unsigned char*>(desk.get());
  view.team.abort_word = nullptr;
  void* zeroed = nullptr;
  IST_OK_OR_FAIL(ist_heap_calloc(heap, 1, 8, &zeroed));
  auto* const word = static_cast<std::uint64_t*>(zeroed);
  EXPECT_EQ(device::Status::ok,
            device::atomic_add(view, device::for_kernel(view, word), std::uint64_t{3}, right(), kDeadline));
  EXPECT_EQ(device::Status::ok, device::quiet(view, kDeadline));
  heap.barrier();
  EXPECT_EQ(3U, *word);
  heap.barrier();
}

TEST(DeviceView, RefusesPartsThatKernelsFindAtOtherDistances) {
  if (!has_cuda() || !has_fake_driver())
    GTEST_SKIP() << "not covered here: a device that finds host memory elsewhere; the driver that needs no GPU plays one";
  const TestHeap heap{IST_KIND_HOST, 1 << 16};
  IST_OK_OR_FAIL(ist_heap_grow(heap, 1 << 20));  // two stretches, also of one PE
  ist_device_view view{};
  ::setenv("FAKE_CUDA_HOST_SHIFT", "each", 1);
  const int code = ist_heap_device_view(heap, IST_OWN_DEVICE, &view);
  ::unsetenv("FAKE_CUDA_HOST_SHIFT");
  expect_error(IST_ERR_UNSUPPORTED, "bytes behind its address", code);
  EXPECT_EQ(nullptr, view.team.base);
  IST_OK_OR_FAIL(ist_heap_device_view(heap, IST_OWN_DEVICE, &view));
  EXPECT_EQ(0, view.shift);
}

// A kernel that has taken its ticket and ended: hosts hear of it, and nobody waits for ever.
TEST(DeviceView, TellsHostsOfAKernelThatGaveUp) {
  if (!has_cuda()) GTEST_SKIP() << "not covered here: views of host heaps for kernels; they need a CUDA device";
  ist_heap heap = IST_HEAP_NULL;
  void* zeroed = nullptr;
  IST_OK_OR_FAIL(ist_heap_create(comm(), IST_KIND_HOST, 0, 1 << 16, 0, &heap));
  IST_OK_OR_FAIL(ist_heap_calloc(heap, 1, 8, &zeroed));
  {
    const Played played(heap);
    auto* const word = static_cast<std::uint64_t*>(zeroed);
    static_cast<void>(device::take_ticket(played.view()));
    EXPECT_EQ(device::Status::ok, device::atomic_add(played.view(), device::for_kernel(played.view(), word),
                                                     std::uint64_t{1}, right(), kDeadline));
    expect_error(IST_ERR_DEVICE, "has given up asking", ist_heap_quiet(heap));
    EXPECT_EQ(0U, *word);
  }
  expect_error(IST_ERR_DEVICE, "has given up asking", ist_heap_destroy(&heap));
  EXPECT_EQ(IST_HEAP_NULL, heap);
}

}  // namespace
