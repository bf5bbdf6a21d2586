// One message beyond 4 GiB out of and into CUDA memory, where sizes and offsets no longer fit 32 bits. Run on 2 ranks. Needs a
// device with room for it; on the fake driver the same steps run with a message that is small.
#include <dlfcn.h>

#include "rank_test.hpp"

namespace {

using namespace rank_test;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr std::uint64_t kGuard = 4096;  // bytes behind the message that nobody may touch

// Bytes of a message, and of the pieces it is filled and compared in. The pieces' size is odd in pages: an offset that has
// lost its upper bits lands on other bytes.
struct Size {
  std::uint64_t message;
  std::uint64_t piece;
};
constexpr Size kHuge{4 * kGiB + 4099, 16411 * std::uint64_t{4096}};
constexpr Size kSmall{(5 << 20) + 4099, 67 * std::uint64_t{4096}};
constexpr std::uint64_t kNeeded = 12 * kGiB;  // on one device, which may have to hold both ranks' buffers

template <class Function>
Function driver_call(const char* name) {
  static void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : reinterpret_cast<Function>(::dlsym(library, name));
}
bool is_fake() { return driver_call<void (*)()>("fake_cuda_calls") != nullptr; }

// What the driver says is free on a device; 0 if it cannot be asked.
std::uint64_t free_bytes(int ordinal) {
  const auto get = driver_call<int (*)(int*, int)>("cuDeviceGet");
  const auto retain = driver_call<int (*)(void**, int)>("cuDevicePrimaryCtxRetain");
  const auto release = driver_call<int (*)(int)>("cuDevicePrimaryCtxRelease_v2");
  const auto push = driver_call<int (*)(void*)>("cuCtxPushCurrent_v2");
  const auto pop = driver_call<int (*)(void**)>("cuCtxPopCurrent_v2");
  const auto ask = driver_call<int (*)(std::size_t*, std::size_t*)>("cuMemGetInfo_v2");
  if (!get || !retain || !release || !push || !pop || !ask) return 0;
  int device = 0;
  void* context = nullptr;
  if (get(&device, ordinal) != 0 || retain(&context, device) != 0) return 0;
  std::size_t free = 0;
  std::size_t all = 0;
  if (push(context) == 0) {
    if (ask(&free, &all) != 0) free = 0;
    pop(&context);
  }
  release(device);
  return free;
}

// Empty if every device has room; the ranks of a test may use any of them.
std::string why_not() {
  int devices = 0;
  EXPECT_EQ(IST_OK, ist_kind_devices(world(), IST_KIND_CUDA, &devices)) << ist_error_text();
  if (devices == 0) return "there is no CUDA device here";
  if (is_fake()) return {};
  for (int device = 0; device < devices; ++device)
    if (const std::uint64_t found = free_bytes(device); found < kNeeded)
      return "CUDA device " + std::to_string(device) + " has " + std::to_string(found >> 20) + " MiB free of the " +
             std::to_string(kNeeded >> 20) + " MiB needed";
  return {};
}

// Both ranks look before either allocates, and neither runs alone.
bool both_can(bool mine) {
  const int32_t own = mine ? 1 : 0;
  int32_t other = 0;
  EXPECT_EQ(IST_OK, ist_sendrecv(ist_host(&own), 1, IST_INT32, 1 - rank(), 9, ist_host(&other), 1, IST_INT32, 1 - rank(), 9,
                                 comm(), IST_STATUS_IGNORE))
      << ist_error_text();
  return mine && other == 1;
}

// A message and the guard behind it, on this rank's own device or in pageable host memory.
class Huge {
 public:
  Huge(ist_kind kind, const Size& size) : kind_(kind), size_(size), pattern_(random_bytes(size.piece, 4242)) {
    if (kind == IST_KIND_HOST) {
      pages_.reset(new unsigned char[size.message + kGuard]);
      whole_ = ist_host(pages_.get());
      return;
    }
    EXPECT_EQ(IST_OK, ist_memory_alloc(world(), kind, IST_OWN_DEVICE, size.message + kGuard, &whole_)) << ist_error_text();
  }
  ~Huge() {
    if (kind_ == IST_KIND_HOST) return;
    EXPECT_EQ(IST_OK, ist_memory_free(world(), whole_)) << ist_error_text();
  }
  Huge(const Huge&) = delete;
  Huge& operator=(const Huge&) = delete;

  ist_buffer get() const { return whole_; }
  void poison() {
    const std::vector<unsigned char> bytes(size_.piece, 0xa5);
    for_each_piece(size_.message + kGuard, [&](std::uint64_t at, std::uint64_t count) { store(bytes, at, count); });
  }
  void fill(std::uint64_t seed) {
    for_each_piece(size_.message, [&](std::uint64_t at, std::uint64_t count) {
      stamp(seed, at);
      store(pattern_, at, count);
    });
  }
  void expect(std::uint64_t seed, const std::string& what) {
    std::vector<unsigned char> found(size_.piece);
    std::uint64_t compared = 0;
    for_each_piece(size_.message, [&](std::uint64_t at, std::uint64_t count) {
      stamp(seed, at);
      load(found, at, count);
      ASSERT_EQ(0, std::memcmp(found.data(), pattern_.data(), count)) << what << ", in the piece at " << at;
      compared += count;
    });
    EXPECT_EQ(size_.message, compared) << what;
    load(found, size_.message, kGuard);
    for (std::uint64_t i = 0; i < kGuard; ++i) ASSERT_EQ(0xa5, found[i]) << what << ", " << i << " bytes behind the message";
  }

 private:
  template <class Do>
  void for_each_piece(std::uint64_t bytes, const Do& step) const {
    for (std::uint64_t at = 0; at < bytes && !testing::Test::HasFatalFailure(); at += size_.piece)
      step(at, std::min(size_.piece, bytes - at));
  }
  // Every piece begins with its own place, so that no two are alike.
  void stamp(std::uint64_t seed, std::uint64_t at) {
    const std::uint64_t words[] = {seed, at};
    std::memcpy(pattern_.data(), words, sizeof words);
  }
  void store(const std::vector<unsigned char>& bytes, std::uint64_t at, std::uint64_t count) {
    IST_OK_OR_FAIL(ist_memory_copy(world(), ist_buffer_at(whole_, at), ist_host(bytes.data()), count));
  }
  void load(std::vector<unsigned char>& bytes, std::uint64_t at, std::uint64_t count) {
    IST_OK_OR_FAIL(ist_memory_copy(world(), ist_host(bytes.data()), ist_buffer_at(whole_, at), count));
  }
  ist_kind kind_;
  Size size_;
  std::vector<unsigned char> pattern_;
  std::unique_ptr<unsigned char[]> pages_;
  ist_buffer whole_{};
};

// From the sender's memory into the receiver's, every byte compared, and nothing behind the end touched.
void send_one(int sender, Huge& buffer, const Size& size, std::uint64_t seed, const std::string& what) {
  const auto count = static_cast<int64_t>(size.message);
  if (rank() == sender) {
    buffer.fill(seed);
    IST_OK_OR_FAIL(ist_send(buffer.get(), count, IST_BYTE, 1 - sender, 1, comm()));
  } else {
    buffer.poison();
    ist_status status{};
    IST_OK_OR_FAIL(ist_recv(buffer.get(), count, IST_BYTE, sender, 1, comm(), &status));
    EXPECT_EQ(count, status.bytes) << what;
    buffer.expect(seed, what);
  }
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

TEST(HugeDevice, AMessageBeyond4GiBTravelsBetweenDevicesAndToAndFromTheHostByteForByte) {
  ASSERT_EQ(2, size());
  const std::string reason = why_not();
  if (!both_can(reason.empty())) GTEST_SKIP() << "SKIPPED: " << (reason.empty() ? "the other rank cannot" : reason);
  const Size size = is_fake() ? kSmall : kHuge;
  if (rank() == 0) std::printf("messages of %llu bytes\n", static_cast<unsigned long long>(size.message));
  {
    Huge device{IST_KIND_CUDA, size};
    send_one(0, device, size, 1, "device to device");
    if (rank() == 0) send_one(0, device, size, 2, "device to host");
    if (rank() == 0) send_one(1, device, size, 3, "host to device");
  }
  if (rank() == 0) return;
  Huge host{IST_KIND_HOST, size};
  send_one(0, host, size, 2, "device to host");
  send_one(1, host, size, 3, "host to device");
}

}  // namespace
