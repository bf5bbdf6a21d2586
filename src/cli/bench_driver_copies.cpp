#include "cli/bench_driver_copies.hpp"

#include "cli/failure.hpp"

#ifdef ISTHMUS_CUDA_COMPILED

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "memory/cuda/cuda_api.hpp"

namespace ist::cli {
namespace {

class Driver {
 public:
  static const Driver& get() {
    static const Driver driver;
    return driver;
  }
  const CudaApi& api() const { return api_; }
  const std::string& reason() const { return reason_; }
  int devices() const { return devices_; }
  void must(CUresult result, const std::string& what) const {
    if (result != CUDA_SUCCESS) throw Failure(cuda_error(api_, result, what));
  }

 private:
  Driver() {
    auto api = load_cuda_api();
    if (!api.ok()) {
      reason_ = api.status().text();
      return;
    }
    api_ = *api;
    CUresult result = api_.cuInit(0);
    if (result == CUDA_SUCCESS) result = api_.cuDeviceGetCount(&devices_);
    if (result != CUDA_SUCCESS) reason_ = cuda_error(api_, result, "cuInit").text();
  }
  CudaApi api_{};
  std::string reason_;
  int devices_ = 0;
};

// One device's own context and streams, current while it is used.
class Side {
 public:
  Side(const Driver& driver, int number) : driver_(driver) {
    driver_.must(driver_.api().cuDeviceGet(&device_, number), "cuDeviceGet of " + std::to_string(number));
    driver_.must(driver_.api().cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
    use();
    for (CUstream& stream : streams_)
      driver_.must(driver_.api().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    leave();
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
  ~Side() {
    use();
    for (CUstream stream : streams_) driver_.api().cuStreamDestroy_v2(stream);
    leave();
    driver_.api().cuDevicePrimaryCtxRelease_v2(device_);
  }
  void use() const { driver_.api().cuCtxPushCurrent_v2(context_); }
  void leave() const {
    CUcontext before = nullptr;
    driver_.api().cuCtxPopCurrent_v2(&before);
  }
  CUstream stream(int number) const { return streams_[static_cast<std::size_t>(number)]; }
  void wait() const {
    for (CUstream stream : streams_) driver_.must(driver_.api().cuStreamSynchronize(stream), "cuStreamSynchronize");
  }
  // That this device writes into the other's memory.
  void reach(const Side& other) const {
    if (!driver_.api().cuCtxEnablePeerAccess) throw Failure(1, "this driver has no cuCtxEnablePeerAccess");
    use();
    const CUresult result = driver_.api().cuCtxEnablePeerAccess(other.context_, 0);
    leave();
    if (result != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) driver_.must(result, "cuCtxEnablePeerAccess");
  }

 private:
  const Driver& driver_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  std::array<CUstream, DriverCopies::kStreams> streams_{};
};

// Memory of one place, written once.
class Piece {
 public:
  Piece(const Driver& driver, const Place& place, const Side& side, std::size_t bytes)
      : driver_(driver), place_(place), side_(side) {
    if (place.on_device()) {
      side_.use();
      driver_.must(driver_.api().cuMemAlloc_v2(&address_, bytes), "cuMemAlloc of " + std::to_string(bytes) + " bytes");
      driver_.must(driver_.api().cuMemsetD8Async(address_, 1, bytes, side_.stream(0)), "cuMemsetD8Async");
      driver_.must(driver_.api().cuStreamSynchronize(side_.stream(0)), "cuStreamSynchronize");
      side_.leave();
      return;
    }
    void* host = nullptr;
    if (place.pinned()) {
      side_.use();
      driver_.must(driver_.api().cuMemHostAlloc(&host, bytes, CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc");
      side_.leave();
    } else {
      constexpr std::size_t kPage = 4096;
      host = std::aligned_alloc(kPage, (bytes / kPage + 1) * kPage);
      if (host == nullptr) throw Failure(1, "no " + std::to_string(bytes) + " bytes of host memory");
    }
    std::memset(host, 1, bytes);
    address_ = reinterpret_cast<CUdeviceptr>(host);
  }
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;
  ~Piece() {
    side_.use();
    if (place_.on_device())
      driver_.api().cuMemFree_v2(address_);
    else if (place_.pinned())
      driver_.api().cuMemFreeHost(reinterpret_cast<void*>(address_));
    else
      std::free(reinterpret_cast<void*>(address_));
    side_.leave();
  }
  CUdeviceptr address() const { return address_; }

 private:
  const Driver& driver_;
  Place place_;
  const Side& side_;
  CUdeviceptr address_ = 0;
};

int device_of(const Place& place, const Place& other) {
  return std::max(0, place.on_device() ? place.device : other.device);
}

class DeviceCopies final : public DriverCopies {
 public:
  DeviceCopies(const Driver& driver, const Place& from, const Place& to, std::size_t most)
      : driver_(driver),
        most_(most),
        between_devices_(from.on_device() && to.on_device()),
        here_(driver, device_of(from, to)),
        there_(driver, device_of(to, from)),
        source_(driver, from, here_, most),
        target_(driver, to, there_, most),
        back_source_(driver, to, there_, most),
        back_target_(driver, from, here_, most) {
    if (!from.on_device() || !to.on_device() || from.device == to.device) return;
    here_.reach(there_);
    there_.reach(here_);
  }

  void copy(std::size_t bytes, int stream, bool back) override {
    const Side& side = back ? there_ : here_;
    side.use();
    const CUresult result = driver_.api().cuMemcpyAsync(
        (back ? back_target_ : target_).address(), (back ? back_source_ : source_).address(), bytes, side.stream(stream));
    side.leave();
    driver_.must(result, "cuMemcpyAsync of " + std::to_string(bytes) + " bytes");
  }
  bool copies_together() const override { return between_devices_ && has_joint_copies(driver_.api()); }
  void copy_together(std::size_t bytes, int count, int stream, bool back) override;
  void wait() override {
    here_.wait();
    there_.wait();
  }
  std::vector<std::pair<std::string, std::function<void(std::size_t)>>> ways() override;
  std::vector<std::pair<std::string, std::function<void()>>> calls() override;

 private:
  std::shared_ptr<CUevent_st> passed_event() const;
  std::shared_ptr<std::uint32_t> word() const;

  const Driver& driver_;
  const std::size_t most_;
  const bool between_devices_;
  Side here_;
  Side there_;
  Piece source_;
  Piece target_;
  Piece back_source_;
  Piece back_target_;
};

void DeviceCopies::copy_together(std::size_t bytes, int count, int stream, bool back) {
  CudaCopies copies;
  for (int n = 0; n < count; ++n) {
    const std::size_t place = static_cast<std::size_t>(n) * bytes;
    const std::size_t offset = place + bytes <= most_ ? place : 0;
    copies.to.push_back((back ? back_target_ : target_).address() + offset);
    copies.from.push_back((back ? back_source_ : source_).address() + offset);
    copies.sizes.push_back(bytes);
  }
  const Side& side = back ? there_ : here_;
  side.use();
  const CUresult result = copy_jointly(driver_.api(), copies, side.stream(stream));
  side.leave();
  driver_.must(result, "cuMemcpyBatchAsync of " + std::to_string(count) + " times " + std::to_string(bytes) + " bytes");
}

// Goes with the last that holds it.
std::shared_ptr<CUevent_st> DeviceCopies::passed_event() const {
  const CudaApi& api = driver_.api();
  here_.use();
  CUevent made = nullptr;
  driver_.must(api.cuEventCreate(&made, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  driver_.must(api.cuEventRecord(made, here_.stream(0)), "cuEventRecord");
  here_.leave();
  driver_.must(api.cuStreamSynchronize(here_.stream(0)), "cuStreamSynchronize");
  return {made, [&api](CUevent last) { api.cuEventDestroy_v2(last); }};
}

// Page-locked, where every device reaches it by the processor's address.
std::shared_ptr<std::uint32_t> DeviceCopies::word() const {
  const CudaApi& api = driver_.api();
  here_.use();
  void* made = nullptr;
  const CUresult result =
      api.cuMemHostAlloc(&made, sizeof(std::uint32_t), CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
  here_.leave();
  driver_.must(result, "cuMemHostAlloc of a word");
  return {new (made) std::uint32_t{0}, [&api](std::uint32_t* last) { api.cuMemFreeHost(last); }};
}

std::vector<std::pair<std::string, std::function<void(std::size_t)>>> DeviceCopies::ways() {
  const CudaApi& api = driver_.api();
  const CUstream stream = here_.stream(0);
  std::vector<std::pair<std::string, std::function<void(std::size_t)>>> all;
  all.emplace_back("copy and wait", [this, &api, stream](std::size_t bytes) {
    copy(bytes, 0, false);
    driver_.must(api.cuStreamSynchronize(stream), "cuStreamSynchronize");
  });
  all.emplace_back("copy, and its event asked", [this, &api, stream, event = passed_event()](std::size_t bytes) {
    copy(bytes, 0, false);
    here_.use();
    driver_.must(api.cuEventRecord(event.get(), stream), "cuEventRecord");
    here_.leave();
    CUresult result = CUDA_ERROR_NOT_READY;
    while (result == CUDA_ERROR_NOT_READY) result = api.cuEventQuery(event.get());
    driver_.must(result, "cuEventQuery");
  });
  if (api.cuStreamWriteValue32_v2 == nullptr) return all;
  all.emplace_back(
      "copy, and a word by the stream", [this, &api, stream, seen = word(), next = 0U](std::size_t bytes) mutable {
        ++next;
        copy(bytes, 0, false);
        here_.use();
        const CUresult result = api.cuStreamWriteValue32_v2(stream, reinterpret_cast<CUdeviceptr>(seen.get()), next, 0);
        here_.leave();
        driver_.must(result, "cuStreamWriteValue32");
        const std::atomic_ref<std::uint32_t> now(*seen);
        // Where the copy fails the word never comes; the stream says so.
        for (std::uint64_t looks = 1; now.load(std::memory_order_acquire) != next; ++looks)
          if (looks % 1000000 == 0 && api.cuStreamQuery(stream) != CUDA_ERROR_NOT_READY && now.load() != next)
            throw Failure(1, "a stream is idle and has not written its word");
      });
  return all;
}

std::vector<std::pair<std::string, std::function<void()>>> DeviceCopies::calls() {
  const CudaApi& api = driver_.api();
  const std::shared_ptr<CUevent_st> event = passed_event();
  const CUstream stream = here_.stream(0);
  const CUdeviceptr address = source_.address();
  const auto query = [&api, address] {
    CUmemorytype type{};
    CUcontext context = nullptr;
    std::array<CUpointer_attribute, 2> which{CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_CONTEXT};
    std::array<void*, 2> values{&type, &context};
    api.cuPointerGetAttributes(2, which.data(), values.data(), address);
  };
  return {{"cuPointerGetAttributes", query},
          {"cuStreamQuery, idle", [&api, stream] { api.cuStreamQuery(stream); }},
          {"cuEventQuery, passed", [&api, event] { api.cuEventQuery(event.get()); }},
          {"cuEventRecord", [&api, event, this] {
             here_.use();
             api.cuEventRecord(event.get(), here_.stream(0));
             here_.leave();
           }}};
}

}  // namespace

std::unique_ptr<DriverCopies> DriverCopies::open(const Place& from, const Place& to, std::size_t most) {
  return std::make_unique<DeviceCopies>(Driver::get(), from, to, most);
}

std::pair<int, std::string> driver_devices() {
  const Driver& driver = Driver::get();
  return {driver.devices(), driver.reason()};
}

}  // namespace ist::cli

#else

namespace ist::cli {

std::unique_ptr<DriverCopies> DriverCopies::open(const Place& /*from*/, const Place& /*to*/, std::size_t /*most*/) {
  throw Failure(2, "this isthmus was built without CUDA");
}

std::pair<int, std::string> driver_devices() { return {0, "this isthmus was built without CUDA"}; }

}  // namespace ist::cli

#endif
