// The CUDA driver as the limits use it: devices with streams, memory of two places, written once, and nothing of the library.
//
// Who calls this : bench_driver_copies, bench_kernel_limits and what it is made of, where CUDA was compiled in.
// Threads        : one.
// Ownership      : contexts, streams and memory, which go with their objects; memory goes before its side.
// Errors         : a Failure that names the driver's call.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "cli/bench_options.hpp"
#include "memory/cuda/cuda_api.hpp"

namespace ist::cli {

class Driver {
 public:
  static const Driver& get();
  const CudaApi& api() const { return api_; }
  const std::string& reason() const { return reason_; }
  int devices() const { return devices_; }
  void must(CUresult result, const std::string& what) const;

 private:
  Driver();
  CudaApi api_{};
  std::string reason_;
  int devices_ = 0;
};

// One device's own context and streams, current while it is used.
class DriverSide {
 public:
  static constexpr int kStreams = 4;
  DriverSide(const Driver& driver, int number);
  DriverSide(const DriverSide&) = delete;
  DriverSide& operator=(const DriverSide&) = delete;
  ~DriverSide();
  void use() const { driver_.api().cuCtxPushCurrent_v2(context_); }
  void leave() const {
    CUcontext before = nullptr;
    driver_.api().cuCtxPopCurrent_v2(&before);
  }
  int number() const { return number_; }
  CUstream stream(int number) const { return streams_[static_cast<std::size_t>(number)]; }
  void wait() const;
  // That this device writes into the other's memory; false: there is no way to it.
  bool reach(const DriverSide& other) const;
  // 0: not known.
  unsigned multiprocessors() const;

 private:
  const Driver& driver_;
  int number_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  std::array<CUstream, kStreams> streams_{};
};

// Memory of one place.
class DriverMemory {
 public:
  DriverMemory(const Driver& driver, const Place& place, const DriverSide& side, std::size_t bytes);
  DriverMemory(const DriverMemory&) = delete;
  DriverMemory& operator=(const DriverMemory&) = delete;
  ~DriverMemory();
  CUdeviceptr address() const { return address_; }
  // Its first bytes, over when this returns. Nobody else touches them meanwhile.
  void write(std::span<const std::byte> bytes) const;
  void read(std::span<std::byte> bytes) const;

 private:
  void copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) const;

  const Driver& driver_;
  Place place_;
  const DriverSide& side_;
  CUdeviceptr address_ = 0;
};

// Two places, at least one of them CUDA memory, with memory of `most` bytes at each for the way there, and as much for the way back.
struct DriverPair {
  DriverPair(const Driver& driver, const Place& from, const Place& to, std::size_t most);
  bool between_devices() const { return from.on_device() && to.on_device(); }
  bool two_devices() const { return between_devices() && here.number() != there.number(); }
  std::string out_of_reach() const { return from.text() + " and " + to.text() + " do not reach each other's memory"; }

  const Driver& driver;
  const Place from;
  const Place to;
  const std::size_t most;
  const DriverSide here;   // of the device that copies there, and
  const DriverSide there;  // of that which copies back
  const DriverMemory source;
  const DriverMemory target;
  const DriverMemory back_source;
  const DriverMemory back_target;
  bool reached = true;  // each device writes into the other's memory
};

}  // namespace ist::cli
