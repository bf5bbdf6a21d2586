#include "cli/bench_driver_copies.hpp"

#include "cli/failure.hpp"

#ifdef ISTHMUS_CUDA_COMPILED

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "cli/bench_driver.hpp"
#include "cli/bench_timing.hpp"

namespace ist::cli {
namespace {

class DeviceCopies final : public DriverCopies {
 public:
  DeviceCopies(const Driver& driver, const Place& from, const Place& to, std::size_t most)
      : driver_(driver), pair_(driver, from, to, most) {}

  void copy(std::size_t bytes, int stream, bool back) override {
    const DriverSide& side = back ? pair_.there : pair_.here;
    side.use();
    const CUresult result =
        driver_.api().cuMemcpyAsync((back ? pair_.back_target : pair_.target).address(),
                                    (back ? pair_.back_source : pair_.source).address(), bytes, side.stream(stream));
    side.leave();
    driver_.must(result, "cuMemcpyAsync of " + std::to_string(bytes) + " bytes");
  }
  bool copies_together() const override { return pair_.between_devices() && has_joint_copies(driver_.api()); }
  void copy_together(std::size_t bytes, int count, int stream, bool back) override;
  void wait() override {
    pair_.here.wait();
    pair_.there.wait();
  }
  std::vector<std::pair<std::string, std::function<void(std::size_t)>>> ways() override;
  LimitWays<LimitCall> calls() override;
  std::unique_ptr<KernelLimits> kernels() override { return open_kernel_limits(pair_); }

 private:
  std::shared_ptr<CUevent_st> passed_event() const;
  std::shared_ptr<std::uint32_t> word() const;
  void await(std::uint32_t& word, std::uint32_t wanted, CUstream stream) const;
  void add_passage(LimitWays<LimitCall>& ways) const;
  void add_memory(LimitWays<LimitCall>& ways) const;

  const Driver& driver_;
  const DriverPair pair_;
};

void DeviceCopies::copy_together(std::size_t bytes, int count, int stream, bool back) {
  CudaCopies copies;
  for (int n = 0; n < count; ++n) {
    const std::size_t place = static_cast<std::size_t>(n) * bytes;
    const std::size_t offset = place + bytes <= pair_.most ? place : 0;
    copies.to.push_back((back ? pair_.back_target : pair_.target).address() + offset);
    copies.from.push_back((back ? pair_.back_source : pair_.source).address() + offset);
    copies.sizes.push_back(bytes);
  }
  const DriverSide& side = back ? pair_.there : pair_.here;
  side.use();
  const CUresult result = copy_jointly(driver_.api(), copies, side.stream(stream));
  side.leave();
  driver_.must(result, "cuMemcpyBatchAsync of " + std::to_string(count) + " times " + std::to_string(bytes) + " bytes");
}

// Goes with the last that holds it.
std::shared_ptr<CUevent_st> DeviceCopies::passed_event() const {
  const CudaApi& api = driver_.api();
  pair_.here.use();
  CUevent made = nullptr;
  driver_.must(api.cuEventCreate(&made, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  driver_.must(api.cuEventRecord(made, pair_.here.stream(0)), "cuEventRecord");
  pair_.here.leave();
  driver_.must(api.cuStreamSynchronize(pair_.here.stream(0)), "cuStreamSynchronize");
  return {made, [&api](CUevent last) { api.cuEventDestroy_v2(last); }};
}

// Page-locked, where every device reaches it by the processor's address.
std::shared_ptr<std::uint32_t> DeviceCopies::word() const {
  const CudaApi& api = driver_.api();
  pair_.here.use();
  void* made = nullptr;
  const CUresult result =
      api.cuMemHostAlloc(&made, sizeof(std::uint32_t), CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
  pair_.here.leave();
  driver_.must(result, "cuMemHostAlloc of a word");
  return {new (made) std::uint32_t{0}, [&api](std::uint32_t* last) { api.cuMemFreeHost(last); }};
}

// That the stream writes. Where something before it fails the word never comes; the stream says so, or time is up.
void DeviceCopies::await(std::uint32_t& word, std::uint32_t wanted, CUstream stream) const {
  const std::atomic_ref<std::uint32_t> now(word);
  const auto begun = Clock::now();
  for (std::uint64_t looks = 1; now.load(std::memory_order_acquire) != wanted; ++looks) {
    if (looks % 1000000 != 0) continue;
    const bool idle = driver_.api().cuStreamQuery(stream) != CUDA_ERROR_NOT_READY;
    if ((idle || Clock::now() - begun > kKernelPatience) && now.load() != wanted)
      throw Failure(1, std::string{"a stream "} + (idle ? "is idle and" : "runs, but") + " has not written its word");
  }
}

std::vector<std::pair<std::string, std::function<void(std::size_t)>>> DeviceCopies::ways() {
  const CudaApi& api = driver_.api();
  const CUstream stream = pair_.here.stream(0);
  std::vector<std::pair<std::string, std::function<void(std::size_t)>>> all;
  all.emplace_back("copy and wait", [this, &api, stream](std::size_t bytes) {
    copy(bytes, 0, false);
    driver_.must(api.cuStreamSynchronize(stream), "cuStreamSynchronize");
  });
  all.emplace_back("copy, and its event asked", [this, &api, stream, event = passed_event()](std::size_t bytes) {
    copy(bytes, 0, false);
    pair_.here.use();
    driver_.must(api.cuEventRecord(event.get(), stream), "cuEventRecord");
    pair_.here.leave();
    CUresult result = CUDA_ERROR_NOT_READY;
    while (result == CUDA_ERROR_NOT_READY) result = api.cuEventQuery(event.get());
    driver_.must(result, "cuEventQuery");
  });
  if (api.cuStreamWriteValue32_v2 == nullptr) return all;
  all.emplace_back(
      "copy, and a word by the stream", [this, &api, stream, seen = word(), next = 0U](std::size_t bytes) mutable {
        ++next;
        copy(bytes, 0, false);
        pair_.here.use();
        const CUresult result = api.cuStreamWriteValue32_v2(stream, reinterpret_cast<CUdeviceptr>(seen.get()), next, 0);
        pair_.here.leave();
        driver_.must(result, "cuStreamWriteValue32");
        await(*seen, next, stream);
      });
  return all;
}

LimitWays<LimitCall> DeviceCopies::calls() {
  const CudaApi& api = driver_.api();
  const std::shared_ptr<CUevent_st> event = passed_event();
  const CUstream stream = pair_.here.stream(0);
  const CUdeviceptr address = pair_.source.address();
  const auto query = [&api, address] {
    CUmemorytype type{};
    CUcontext context = nullptr;
    std::array<CUpointer_attribute, 2> which{CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_CONTEXT};
    std::array<void*, 2> values{&type, &context};
    api.cuPointerGetAttributes(2, which.data(), values.data(), address);
  };
  LimitWays<LimitCall> ways;
  ways.all = {{"cuPointerGetAttributes", query},
              {"cuStreamQuery, idle", [&api, stream] { api.cuStreamQuery(stream); }},
              {"cuEventQuery, passed", [&api, event] { api.cuEventQuery(event.get()); }},
              {"cuEventRecord", [&api, event, this] {
                 pair_.here.use();
                 api.cuEventRecord(event.get(), pair_.here.stream(0));
                 pair_.here.leave();
               }}};
  add_passage(ways);
  add_memory(ways);
  return ways;
}

// A word of the processor's that a stream waits for, and one that it writes then. What was put into the stream is through it again when
// the call is over: nothing else may wait for the device meanwhile.
void DeviceCopies::add_passage(LimitWays<LimitCall>& ways) const {
  const CudaApi& api = driver_.api();
  if (api.cuStreamWaitValue32_v2 == nullptr || api.cuStreamWriteValue32_v2 == nullptr) {
    ways.left_out.emplace_back("a word through a stream that waits for it: this driver's streams wait for none");
    return;
  }
  constexpr std::chrono::microseconds kUntilItWaits{20};
  const auto trip = std::make_shared<std::uint32_t>(0);
  const auto go = word();
  const auto back = word();
  const CUstream stream = pair_.here.stream(0);
  const auto put = [=, this, &api] {
    ++*trip;
    pair_.here.use();
    CUresult result =
        api.cuStreamWaitValue32_v2(stream, reinterpret_cast<CUdeviceptr>(go.get()), *trip, CU_STREAM_WAIT_VALUE_GEQ);
    if (result == CUDA_SUCCESS)
      result = api.cuStreamWriteValue32_v2(stream, reinterpret_cast<CUdeviceptr>(back.get()), *trip, 0);
    pair_.here.leave();
    if (result != CUDA_SUCCESS) std::atomic_ref<std::uint32_t>(*go).store(*trip);
    driver_.must(result, "cuStreamWaitValue32 and cuStreamWriteValue32");
    for (const auto begun = Clock::now(); Clock::now() - begun < kUntilItWaits;) {
    }
  };
  ways.all.push_back({"a word through a stream that waits for it, and one back",
                      [=, this] {
                        std::atomic_ref<std::uint32_t>(*go).store(*trip, std::memory_order_release);
                        await(*back, *trip, stream);
                      },
                      put});
}

void DeviceCopies::add_memory(LimitWays<LimitCall>& ways) const {
  const CudaApi& api = driver_.api();
  constexpr std::size_t kBytes = 1 << 20;
  constexpr std::size_t kPage = 4096;
  const auto call = [&ways, this](const std::string& name, const std::function<CUresult()>& make) {
    ways.all.push_back({name, [this, name, make] {
                          pair_.here.use();
                          const CUresult result = make();
                          pair_.here.leave();
                          driver_.must(result, name);
                        }});
  };
  call("cuMemAlloc and cuMemFree of 1 MiB", [&api] {
    CUdeviceptr made = 0;
    const CUresult result = api.cuMemAlloc_v2(&made, kBytes);
    return result == CUDA_SUCCESS ? api.cuMemFree_v2(made) : result;
  });
  const std::shared_ptr<void> pages(std::aligned_alloc(kPage, kBytes), std::free);
  if (pages) {
    std::memset(pages.get(), 1, kBytes);
    call("cuMemHostRegister and cuMemHostUnregister of 1 MiB", [&api, pages] {
      const CUresult result = api.cuMemHostRegister_v2(pages.get(), kBytes, CU_MEMHOSTREGISTER_PORTABLE);
      return result == CUDA_SUCCESS ? api.cuMemHostUnregister(pages.get()) : result;
    });
  }
  if (api.cuMemHostAlloc == nullptr || api.cuMemFreeHost == nullptr) return;
  call("cuMemHostAlloc and cuMemFreeHost of 1 MiB", [&api] {
    void* made = nullptr;
    const CUresult result = api.cuMemHostAlloc(&made, kBytes, CU_MEMHOSTALLOC_PORTABLE);
    return result == CUDA_SUCCESS ? api.cuMemFreeHost(made) : result;
  });
}

}  // namespace

std::unique_ptr<DriverCopies> DriverCopies::open(const Place& from, const Place& to, std::size_t most) {
  return std::make_unique<DeviceCopies>(Driver::get(), from, to, most);
}

std::pair<int, std::string> driver_devices() {
  const Driver& driver = Driver::get();
  return {driver.devices(), driver.reason()};
}

DriverUuid driver_uuid(int device) {
  const Driver& driver = Driver::get();
  CUdevice found = 0;
  CUuuid uuid{};
  DriverUuid name{};
  if (device < 0 || device >= driver.devices() || driver.api().cuDeviceGet(&found, device) != CUDA_SUCCESS) return name;
  if (driver.api().cuDeviceGetUuid_v2(&uuid, found) != CUDA_SUCCESS) return name;
  std::memcpy(name.data(), &uuid, sizeof uuid);
  return name;
}

int driver_device(const DriverUuid& uuid) {
  for (int device = 0; uuid != DriverUuid{} && device < Driver::get().devices(); ++device)
    if (driver_uuid(device) == uuid) return device;
  return Place::kAnyDevice;
}

}  // namespace ist::cli

#else

namespace ist::cli {

std::unique_ptr<DriverCopies> DriverCopies::open(const Place& /*from*/, const Place& /*to*/, std::size_t /*most*/) {
  throw Failure(2, "this isthmus was built without CUDA");
}

std::pair<int, std::string> driver_devices() { return {0, "this isthmus was built without CUDA"}; }

DriverUuid driver_uuid(int /*device*/) { return {}; }

int driver_device(const DriverUuid& /*uuid*/) { return Place::kAnyDevice; }

}  // namespace ist::cli

#endif
