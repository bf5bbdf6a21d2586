// The kind where there is no driver, an old one, none that works, or no device.
#include <cstdlib>

#include "cuda_support.hpp"

namespace ist::test {
namespace {

// A variable of the fake driver for one scope, and a driver that has not been initialised before and after.
class FakeMachine {
 public:
  FakeMachine(const char* name, const char* value) : name_(name) {
    fake_reset();
    ::setenv(name, value, 1);
  }
  FakeMachine(const FakeMachine&) = delete;
  FakeMachine& operator=(const FakeMachine&) = delete;
  ~FakeMachine() {
    ::unsetenv(name_);
    fake_reset();
  }

 private:
  const char* name_;
};

void expect_reason(const Status& status, const std::string& part) {
  EXPECT_EQ(status.code(), IST_ERR_KIND);
  EXPECT_NE(status.text().find(part), std::string::npos) << status.text();
  EXPECT_EQ(status.text().find('\n'), std::string::npos) << status.text();
}

TEST(CudaLoad, without_the_library_the_reason_names_it_and_what_to_install) {
  const Result<CudaApi> api = load_cuda_api("libcuda_that_is_not_there.so.1");
  ASSERT_FALSE(api.ok());
  expect_reason(api.status(), "libcuda_that_is_not_there.so.1: cannot open shared object file");
  expect_reason(api.status(), "install the NVIDIA driver");
}

TEST(CudaLoad, a_driver_without_a_needed_call_is_too_old_and_said_so) {
  const Result<CudaApi> api = load_cuda_api("libm.so.6");
  ASSERT_FALSE(api.ok());
  expect_reason(api.status(), "libm.so.6 has no cuInit; install an NVIDIA driver for CUDA 12 or newer");
}

TEST(CudaLoad, without_a_device_the_reason_says_so) {
  NEEDS_FAKE("pretend to have no device");
  const FakeMachine machine("FAKE_CUDA_DEVICES", "0");
  const auto kind = make_cuda_kind();
  ASSERT_FALSE(kind.ok());
  expect_reason(kind.status(), "CUDA_ERROR_NO_DEVICE");
}

TEST(CudaLoad, a_driver_that_cannot_start_is_reported_with_its_own_words) {
  NEEDS_FAKE("fail to start");
  const FakeMachine machine("FAKE_CUDA_INIT", "802");
  const auto kind = make_cuda_kind();
  ASSERT_FALSE(kind.ok());
  expect_reason(kind.status(), "cuInit: CUDA_ERROR_SYSTEM_NOT_READY, system not yet initialized");
}

TEST(CudaLoad, an_error_in_any_question_about_devices_is_a_reason_and_not_a_crash) {
  NEEDS_FAKE("inject errors");
  for (const char* call : {"cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetUuid_v2",
                           "cuDeviceTotalMem_v2"}) {
    fake_fail(call, 0, CUDA_ERROR_UNKNOWN);
    const auto kind = make_cuda_kind();
    ASSERT_FALSE(kind.ok()) << call;
    expect_reason(kind.status(), std::string(call).substr(0, std::string(call).find('_')));
    expect_reason(kind.status(), "CUDA_ERROR_UNKNOWN, unknown error");
  }
}

TEST(CudaLoad, several_devices_have_names_and_different_uuids) {
  NEEDS_FAKE("pretend to have three devices");
  const FakeMachine machine("FAKE_CUDA_DEVICES", "3");
  const auto kind = must(make_cuda_kind());
  ASSERT_EQ(kind->devices().size(), 3u);
  for (int i = 0; i < 3; ++i) {
    const DeviceInfo& device = kind->devices()[static_cast<std::size_t>(i)];
    EXPECT_EQ(device.ordinal, i);
    EXPECT_EQ(device.name, "Fake GPU " + std::to_string(i));
    EXPECT_EQ(device.uuid, "GPU-fafafafa-fafa-fafa-fafa-fafafafafa0" + std::to_string(i));
    const std::string version = std::to_string(CUDA_VERSION / 1000) + "." + std::to_string(CUDA_VERSION % 1000 / 10);
    EXPECT_EQ(device.detail, "driver for CUDA " + version);
  }
}

class CudaListing : public CudaTest {};

TEST_F(CudaListing, asking_for_devices_and_host_addresses_touches_no_device) {
  unsigned flags = 0;
  int active = 1;
  const std::vector<char> host(4096);
  EXPECT_FALSE(kind->devices().empty());
  EXPECT_FALSE(kind->recognise(host.data()).has_value());
  Piece piece = host_piece(host.data(), Bytes{16});
  piece.kind = KindId::cuda;
  EXPECT_FALSE(kind->check(piece).ok());
  must(api, api.cuDevicePrimaryCtxGetState(0, &flags, &active), "cuDevicePrimaryCtxGetState");
  EXPECT_EQ(active, 0);
  EXPECT_EQ(current(), nullptr);
}

TEST_F(CudaListing, locking_host_memory_before_any_device_is_used_takes_no_device) {
  constexpr std::uint64_t kSize = 64 << 10;
  void* memory = std::aligned_alloc(4096, kSize);
  must(kind->pins()->pin(memory, Bytes{kSize}));
  unsigned flags = 0;
  int active = 1;
  must(api, api.cuDevicePrimaryCtxGetState(0, &flags, &active), "cuDevicePrimaryCtxGetState");
  EXPECT_EQ(active, 0);
  EXPECT_FALSE(kind->recognise(memory).has_value());
  // The first use of a device does what was put off.
  const Piece piece = must(kind->allocate(static_cast<int>(kind->devices().size()) - 1, Bytes{16}));
  const auto found = kind->recognise(memory);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->memory_class, MemoryClass::registered);
  EXPECT_EQ(found->kind, KindId::host);
  EXPECT_FALSE(kind->pins()->pin(memory, Bytes{kSize}).ok()) << "locked twice";
  kind->pins()->unpin(memory);
  EXPECT_FALSE(kind->recognise(memory).has_value());
  must(kind->pins()->pin(memory, Bytes{kSize}));
  EXPECT_TRUE(kind->recognise(memory).has_value());
  kind->pins()->unpin(memory);
  must(kind->release(piece));
  std::free(memory);
}

TEST_F(CudaListing, locked_memory_has_an_address_for_kernels_of_every_device_until_it_is_unlocked) {
  constexpr std::uint64_t kSize = 64 << 10;
  auto* const memory = static_cast<std::byte*>(std::aligned_alloc(4096, kSize));
  const Piece piece = must(kind->allocate(0, Bytes{16}));
  EXPECT_FALSE(kind->pins()->mapped(memory, 0).ok()) << "not locked yet";
  must(kind->pins()->pin(memory, Bytes{kSize}));
  for (const DeviceInfo& device : kind->devices()) {
    const std::byte* const found = must(kind->pins()->mapped(memory, device.ordinal));
    EXPECT_NE(found, nullptr);
    EXPECT_EQ(must(kind->pins()->mapped(memory + 4096, device.ordinal)), found + 4096);
  }
  kind->pins()->unpin(memory);
  const Status refused = kind->pins()->mapped(memory, 0).status();
  EXPECT_EQ(refused.code(), IST_ERR_DEVICE);
  EXPECT_NE(refused.text().find("cuMemHostGetDevicePointer of 0x"), std::string::npos) << refused.text();
  must(kind->release(piece));
  // A driver that has no such call.
  CudaApi old = api;
  old.cuMemHostGetDevicePointer_v2 = nullptr;
  const auto older = must(make_cuda_kind(old));
  const Status missing = older->pins()->mapped(memory, 0).status();
  EXPECT_EQ(missing.code(), IST_ERR_UNSUPPORTED);
  EXPECT_NE(missing.text().find("this driver has no such call"), std::string::npos) << missing.text();
  std::free(memory);
}

TEST_F(CudaListing, a_lock_taken_back_before_any_device_is_used_never_happens) {
  constexpr std::uint64_t kSize = 4096;
  void* memory = std::aligned_alloc(4096, kSize);
  must(kind->pins()->pin(memory, Bytes{kSize}));
  kind->pins()->unpin(memory);
  kind->pins()->unpin(memory);
  const Piece piece = must(kind->allocate(0, Bytes{16}));
  EXPECT_FALSE(kind->recognise(memory).has_value());
  must(kind->release(piece));
  std::free(memory);
}

}  // namespace
}  // namespace ist::test
