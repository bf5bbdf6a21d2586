// Isthmus, for programs with kernels whose blocks meet: launches a grid only if all of its blocks are resident at once.
//
// Who calls this : host code of programs, compiled by nvcc, with the CUDA runtime that they use anyway.
// Threads        : as the runtime's launches.
// Ownership      : none.
// Errors         : a Launch that is not ok, with a text that has the numbers and says what to do. Nothing was launched then.
#ifndef ISTHMUS_LAUNCH_CUH
#define ISTHMUS_LAUNCH_CUH

#include <cuda_runtime.h>

#include <string>

#include "isthmus/worker.h"

// Nothing of the library has to be linked: where it is not there is no worker.
extern "C" __attribute__((weak)) int ist_worker_blocks_on(int device, ist_worker_blocks* found);

namespace ist::device {

struct Launch {
  cudaError_t error = cudaSuccess;
  std::string text;
  bool ok() const { return error == cudaSuccess; }
};

// What the library starts on a device for calls of the host (atomics on words of a heap in device memory, signals, waits in streams) are kernels
// of at most one small block each. A grid that fills the device and waits for one of them, or for somebody who does,
// waits for ever: they begin when it ends. So a launch keeps one multiprocessor's worth of blocks free, beside what its caller reserves. Blocks of
// the grid may lie on every multiprocessor all the same; wherever one more of them would fit, a smaller block does (see divide_for_calls()). Workers of this process
// (ISTHMUS_WORKER=1) take what they take beside that.
inline constexpr int kKeptForCalls = 1;
// As `reserved`: not even that one, for a grid that waits for nothing but kernels like itself, which are all there.
inline constexpr int kReserveNone = -1;
constexpr int kept_beside(int reserved) { return reserved < 0 ? 0 : reserved + kKeptForCalls; }

// What a block takes, as the runtime and the driver tell it, registers of each thread; and what a multiprocessor has.
struct BlockNeeds {
  int threads = 0;
  int registers = 0;
  int shared_bytes = 0;
};
struct Multiprocessor {
  int threads = 0;
  int registers = 0;
  int shared_bytes = 0;
  int blocks = 0;
};
// As the device hands them out: threads in warps, registers of a warp 256 at a time, and 1 KiB of shared memory of each block for itself.
inline constexpr int kOfDevice = 1024;
constexpr int warps_of(const BlockNeeds& block) { return (block.threads + 31) / 32; }
constexpr int registers_of(const BlockNeeds& block) { return warps_of(block) * ((block.registers * 32 + 255) / 256 * 256); }
constexpr int shared_of(const BlockNeeds& block) { return block.shared_bytes + kOfDevice; }

// Of `per_multiprocessor` blocks, how many begin no more on a multiprocessor where `other` is.
constexpr int lost_to(const BlockNeeds& other, const BlockNeeds& block, const Multiprocessor& has, int per_multiprocessor) {
  const int left[] = {(has.threads / 32 - warps_of(other)) / (warps_of(block) > 0 ? warps_of(block) : 1),
                      (has.registers - registers_of(other)) / (registers_of(block) > 0 ? registers_of(block) : 1),
                      (has.shared_bytes - shared_of(other)) / shared_of(block), has.blocks - 1};
  int beside = per_multiprocessor;
  for (const int each : left) beside = each < beside ? (each < 0 ? 0 : each) : beside;
  return per_multiprocessor - beside;
}

// What fits: `per_multiprocessor` blocks of this kernel on each multiprocessor, of which `reserved` are left to other kernels on the device:
// those above, and those that stay there, such as another library's. Each worker may be on a multiprocessor of its own.
struct Room {
  int per_multiprocessor = 0;
  int multiprocessors = 0;
  int reserved = 0;
  int workers = 0;       // of this process
  BlockNeeds worker{};   // each of them
  int lost_to_each = 0;  // blocks
  long long blocks() const {
    const long long left = static_cast<long long>(multiprocessors - reserved) * per_multiprocessor - lost_to_workers();
    return left <= 0 ? 0 : left;
  }
  long long lost_to_workers() const { return static_cast<long long>(workers) * lost_to_each; }
};

inline std::string taken_by_workers(const Room& room) {
  if (room.workers == 0) return {};
  return ", and " + std::to_string(room.lost_to_workers()) + " fewer beside " + std::to_string(room.workers) +
         (room.workers == 1 ? " worker" : " workers") + " of this process (ISTHMUS_WORKER), of " +
         std::to_string(room.worker.threads) + " threads with " + std::to_string(room.worker.registers) + " registers and " +
         std::to_string(room.worker.shared_bytes) + " bytes of shared memory" + (room.workers == 1 ? "" : " each");
}

// Nothing to say where the grid fits.
inline std::string refusal_of(const Room& room, long long blocks, long long threads) {
  if (blocks >= 1 && blocks <= room.blocks()) return {};
  return "a grid of " + std::to_string(blocks) + " blocks of " + std::to_string(threads) +
         " threads was to meet in a barrier, but only " + std::to_string(room.blocks()) + " are resident at once (" +
         std::to_string(room.per_multiprocessor) + " on each of " + std::to_string(room.multiprocessors) +
         " multiprocessors, " + std::to_string(room.reserved) +
         " of which are kept free, also for kernels that calls of the host start" + taken_by_workers(room) +
         "): the others would begin when these end, "
         "which they never do. " +
         (room.blocks() > 0 ? "Launch 1 to " + std::to_string(room.blocks()) + " blocks"
                            : "Keep fewer multiprocessors free (kReserveNone: none)") +
         ", or use less memory and fewer registers for each";
}

// The workers of this process on the device that is current, if there are any, beside blocks of the kernel.
template <class... Parameters>
cudaError_t count_workers(void (*kernel)(Parameters...), int device, unsigned threads, std::size_t shared_bytes,
                          Room* room) {
  ist_worker_blocks there{};
  if (&ist_worker_blocks_on == nullptr || ist_worker_blocks_on(device, &there) != IST_OK || there.blocks == 0)
    return cudaSuccess;
  Multiprocessor has;
  cudaFuncAttributes is{};
  cudaError_t error = cudaFuncGetAttributes(&is, reinterpret_cast<const void*>(kernel));
  const auto ask = [&](int* value, cudaDeviceAttr attribute) {
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(value, attribute, device);
  };
  ask(&has.threads, cudaDevAttrMaxThreadsPerMultiProcessor);
  ask(&has.registers, cudaDevAttrMaxRegistersPerMultiprocessor);
  ask(&has.shared_bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  ask(&has.blocks, cudaDevAttrMaxBlocksPerMultiprocessor);
  if (error != cudaSuccess) return error;
  room->workers = there.blocks;
  room->worker = {there.threads, there.registers, there.shared_bytes};
  const BlockNeeds block{static_cast<int>(threads), is.numRegs, static_cast<int>(is.sharedSizeBytes + shared_bytes)};
  room->lost_to_each = lost_to(room->worker, block, has, room->per_multiprocessor);
  return cudaSuccess;
}

// For the current device, as launch_grid() counts. It counts a device where workers of this process are, and nothing else: what else stays
// there takes its part away, so say how many
// multiprocessors: 0 where nothing does, kReserveNone as above.
template <class... Parameters>
Launch room_for(void (*kernel)(Parameters...), unsigned threads, std::size_t shared_bytes, int reserved, Room* room) {
  int device = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&room->multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (error == cudaSuccess)
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&room->per_multiprocessor, kernel, static_cast<int>(threads),
                                                          shared_bytes);
  room->reserved = kept_beside(reserved);
  if (error == cudaSuccess) error = count_workers(kernel, device, threads, shared_bytes, room);
  if (error == cudaSuccess) return {};
  return {error,
          std::string("how many blocks fit on the device was asked, and the runtime says: ") + cudaGetErrorString(error)};
}

// A multiprocessor's memory is part cache and part shared, and how it is divided changes only while no block is there. Blocks of few kilobytes (their
// kernel uses no shared memory, and few of them fill a multiprocessor) have all but 8 KiB for their cache, and there no block of another kernel
// begins that goes by the driver's own choice, however much room there is: on an H100 (132 multiprocessors, CUDA 13.0, 2026-11-26) beside 262 blocks
// of 1024 threads, and beside 524 of 512; with 32 KiB set aside it begins beside all shapes that were tried. So a kernel that wanted less asks for so
// much, from here on.
inline constexpr std::size_t kSharedForCalls = 32 << 10;
// `shared_bytes` of each block, of which `per_multiprocessor` fit: where those take as much, it is there already.
template <class... Parameters>
cudaError_t divide_for_calls(void (*kernel)(Parameters...), std::size_t shared_bytes, int per_multiprocessor) {
  const void* const function = reinterpret_cast<const void*>(kernel);
  int device = 0;
  int most = 0;
  cudaFuncAttributes is{};
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
  if (error == cudaSuccess) error = cudaFuncGetAttributes(&is, function);
  if (error != cudaSuccess) return error;
  const std::size_t used = static_cast<std::size_t>(per_multiprocessor) * (is.sharedSizeBytes + shared_bytes + kOfDevice);
  const int percent = most > 0 ? static_cast<int>(100 * kSharedForCalls / static_cast<std::size_t>(most)) : 0;
  if (used >= kSharedForCalls || is.preferredShmemCarveout >= percent) return error;
  return cudaFuncSetAttribute(function, cudaFuncAttributePreferredSharedMemoryCarveout, percent > 100 ? 100 : percent);
}

// Not checked: launch_grid() does.
template <class... Parameters>
Launch launch_resident(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, std::size_t shared_bytes,
                       cudaStream_t stream, Parameters... arguments) {
  void* pointers[] = {static_cast<void*>(&arguments)..., nullptr};
  const cudaError_t error = cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(kernel), dim3(blocks), dim3(threads),
                                                        pointers, shared_bytes, stream);
  if (error == cudaSuccess) return {};
  return {error, "the launch of " + std::to_string(blocks) + " blocks of " + std::to_string(threads) +
                     " threads that meet was refused by the runtime: " + cudaGetErrorString(error)};
}

// Blocks and threads in one dimension, as Grid counts them; `reserved` as for room_for(). A cooperative launch: the device begins all blocks together or none.
// Unless nothing is reserved, a kernel whose blocks take less prefers 32 KiB of shared memory for each multiprocessor from then on (divide_for_calls()).
template <class... Parameters, class... Arguments>
Launch launch_grid(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, std::size_t shared_bytes,
                   cudaStream_t stream, int reserved, const Arguments&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments), "the kernel takes another number of arguments");
  Room room;
  Launch launch = room_for(kernel, threads, shared_bytes, reserved, &room);
  if (!launch.ok()) return launch;
  launch.text = refusal_of(room, blocks, threads);
  if (!launch.text.empty()) {
    launch.error = cudaErrorCooperativeLaunchTooLarge;
    return launch;
  }
  if (room.reserved > 0) launch.error = divide_for_calls(kernel, shared_bytes, room.per_multiprocessor);
  if (!launch.ok()) {
    launch.text =
        std::string("room for calls of the host was to be kept, and the runtime says: ") + cudaGetErrorString(launch.error);
    return launch;
  }
  return launch_resident(kernel, blocks, threads, shared_bytes, stream, static_cast<Parameters>(arguments)...);
}

}  // namespace ist::device

#endif
