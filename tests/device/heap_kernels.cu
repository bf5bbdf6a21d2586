#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "heap_kernels.hpp"
#include "heap_kernels_run.cuh"
#include "isthmus/device.cuh"
#include "isthmus/device/halo.cuh"
#include "isthmus/launch.cuh"

namespace heap_kernels {
namespace {

constexpr unsigned kBlocks = 8;

// In a sum of numbers: somebody was told to end.
constexpr std::int64_t kTold = std::int64_t{1} << 48;

template <class Crew>
__global__ void exchange_kernel(ist_team_view view, Places places, std::uint32_t before, std::uint32_t epochs, Told* told,
                                Result* result) {
  const Crew crew;
  const int right = (view.pe + 1) % view.pes, left = (view.pe + view.pes - 1) % view.pes;
  unsigned char *const source = places.data, *const put_here = places.data + kRoom,
                       *const received = places.data + 2 * kRoom;
  auto* const numbers = reinterpret_cast<std::int64_t*>(places.data + 3 * kRoom);
  Meeting<Crew> meeting(crew, view);
  Channel<Crew> to_right(crew, view, right, 0), from_left(crew, view, left, 0);
  bool ends = false;
  std::uint32_t n = before;
  while (n < before + epochs && !ends) {
    ++n;
    const auto bytes = static_cast<std::uint32_t>(mixed(7, n, 0) % (kRoom - 16)), shift = n % 3 == 0 ? n % 16 : 0;
    const auto few = static_cast<std::uint32_t>(mixed(8, n, 0) % (n % 8 == 0 ? 16385 : 65));
    fill(crew, view, source, bytes, n);
    Status status =
        put_signal(crew, view, put_here + shift, source, bytes, &places.words[0], n, Signal::set, right, kDeadline);
    if (status == Status::ok && is_first(crew))
      status = wait_until(view, &places.words[0], Compare::greater_equal, std::uint64_t{n}, kDeadline);
    if (fails(result, agreed(crew, view, status, kDeadline))) return;
    compare(crew, result, put_here + shift, bytes, left, n);
    fill(crew, view, source, few, n + 1000000);
    if (fails(result, to_right.send(source, few, n, kDeadline))) return;
    if (fails(result, from_left.receive(received, few, n, kDeadline))) return;
    compare(crew, result, received, few, left, n + 1000000);
    if (is_first(crew)) {
      numbers[0] = view.pe + n;
      if (told != nullptr && *static_cast<volatile unsigned*>(&told->end) != 0) numbers[0] += kTold;
    }
    if (fails(result, agreed(crew, view, Status::ok, kDeadline))) return;
    if (fails(result, allreduce<Sum>(crew, view, numbers + 1, numbers, 1, kDeadline))) return;
    ends = static_cast<const volatile std::int64_t*>(numbers)[1] >= kTold;
    if (is_first(crew)) {
      if (numbers[1] % kTold != std::int64_t{view.pes} * n + view.pes * (view.pes - 1) / 2)
        atomicAdd_system(&result->wrong, 1ULL);
      atomic_add(view, &places.words[1], std::uint64_t{3}, 0);
    }
    if (fails(result, meeting.meet(kDeadline))) return;
    if (is_first(crew) && told != nullptr) *static_cast<volatile unsigned*>(&told->epoch) = n;
  }
  if (!is_first(crew)) return;
  if (g(view, &places.words[1], 0) != std::uint64_t{3} * n * static_cast<unsigned>(view.pes))
    atomicAdd_system(&result->wrong, 1ULL);
  result->first_ns = n - before;
  result->second_ns = ends ? 1 : 0;
}

__global__ void grid_kernel(ist_team_view view, Places places, std::uint32_t epochs, Result* result) {
  const Grid crew;
  const int right = (view.pe + 1) % view.pes, left = (view.pe + view.pes - 1) % view.pes;
  Meeting<Grid> meeting(crew, view);
  for (std::uint32_t n = 1; n <= epochs; ++n) {
    // Two planes: the next but one is put after the next barrier, before which this one was compared.
    auto* const plane = reinterpret_cast<std::uint64_t*>(places.data + (4 + n % 2) * kRoom);
    const std::uint32_t at = crew.block * crew.threads + crew.thread;
    peer_ptr(view, plane, right)[at] = mixed(static_cast<std::uint64_t>(view.pe), n, at);
    if (fails(result, meeting.meet(kDeadline))) return;
    // What another block's neighbour put.
    const std::uint32_t other = (crew.block + 1) % crew.blocks * crew.threads + crew.thread;
    if (const_cast<const volatile std::uint64_t*>(plane)[other] != mixed(static_cast<std::uint64_t>(left), n, other))
      atomicAdd_system(&result->wrong, 1ULL);
  }
}

__global__ void replayed_kernel(ist_team_view view, Places places, Result* result) {
  constexpr std::uint32_t kPlane = kRoom / 8;
  const Block crew;
  const int right = (view.pe + 1) % view.pes, left = (view.pe + view.pes - 1) % view.pes;
  // After a replay that went wrong no other one waits for its deadline.
  if (__syncthreads_or(*static_cast<const volatile int*>(&result->status)) != 0) return;
  const std::uint64_t before = *static_cast<const volatile std::uint64_t*>(&places.words[0]);
  Meeting<Block> meeting(crew, view);
  for (std::uint64_t n = before + 1; n <= before + kMeetings; ++n) {
    // Two planes, as of grid_kernel().
    auto* const plane = reinterpret_cast<std::uint64_t*>(places.data + (4 + n % 2) * kRoom);
    for (std::uint32_t i = crew.thread; i < kPlane; i += crew.threads)
      peer_ptr(view, plane, right)[i] = mixed(static_cast<std::uint64_t>(view.pe) + 1, n, i);
    if (fails(result, meeting.meet(kDeadline))) return;
    // What another thread of the left neighbour's put.
    for (std::uint32_t i = crew.threads - 1 - crew.thread; i < kPlane; i += crew.threads)
      if (static_cast<const volatile std::uint64_t*>(plane)[i] != mixed(static_cast<std::uint64_t>(left) + 1, n, i))
        atomicAdd_system(&result->wrong, 1ULL);
  }
  // All have read it before they met.
  if (crew.thread == 0) places.words[0] = before + kMeetings;
}

__global__ void wait_for_host_kernel(ist_team_view view, Places places, std::uint32_t epochs, Result* result) {
  const Block crew;
  const int other = 1 - view.pe;
  for (std::uint32_t n = 1; n <= epochs; ++n) {
    Status status = Status::ok;
    if (crew.thread == 0) status = wait_until(view, &places.words[2], Compare::greater_equal, std::uint64_t{n}, kDeadline);
    if (fails(result, agreed(crew, status))) return;
    compare(result, places.data, kFromHost, other, n);
    if (crew.thread == 0 && *static_cast<const volatile std::uint64_t*>(&places.words[0]) != std::uint64_t{n} << kHeldShift)
      atomicAdd_system(&result->wrong, 1ULL);
    fill(places.data + kAnswered, kFromHost, view.pe, n);  // all have read before the host puts again
    if (crew.thread == 0) signal(view, &places.words[3], std::uint64_t{n}, Signal::set, other);
  }
}

__global__ void add_kernel(ist_team_view view, Places places, std::uint32_t times) {
  for (std::uint32_t n = 0; n < times; ++n)
    for (int pe = 0; pe < view.pes; ++pe) atomic_add(view, &places.words[2], std::uint64_t{1}, pe);
}

// Of the field's cell: which one of all it is, and of which step.
__device__ std::uint64_t cell_of(const ist_team_view& view, int row, int column, std::uint32_t step) {
  const int rows = kRows * view.pes;
  const int global = (view.pe * kRows + row - kMinus + rows) % rows;
  return mixed(static_cast<std::uint64_t>(global), static_cast<std::uint64_t>((column - kMinus + kColumns) % kColumns),
               step);
}

__global__ void halo_kernel(ist_team_view view, Places places, const __grid_constant__ ist_halo_sides sides,
                            std::uint32_t steps, Result* result) {
  constexpr int kWide = kColumns + kMinus + kPlus, kCells = (kRows + kMinus + kPlus) * kWide;
  const auto grid = cooperative_groups::this_grid();
  auto* const flags = reinterpret_cast<std::uint64_t*>(places.data + 5 * kRoom);
  const auto mine = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), all = static_cast<int>(gridDim.x * blockDim.x);
  Status status = Status::ok;
  for (std::uint32_t n = 1; n <= steps; ++n) {
    auto* const field = reinterpret_cast<std::uint64_t*>(places.data + n % 2 * kRoom);
    for (int i = mine; i < kCells; i += all) {
      const int row = i / kWide - kMinus, column = i % kWide - kMinus;
      if (row >= 0 && row < kRows && column >= 0 && column < kColumns) field[i] = cell_of(view, i / kWide, i % kWide, n);
    }
    grid.sync();
    // Each side by a block of its own, and in every third step by all of them.
    if (n % 3 == 0) {
      for (int side = 0; side < sides.count && status == Status::ok; ++side)
        status = put_side(Grid(), view, sides.side[side], field, flags, n, kDeadline);
      for (int side = 0; side < sides.count && status == Status::ok; ++side)
        status = wait_side(Grid(), view, sides.side[side], flags, n, kDeadline);
      fails(result, status);
    } else if (blockIdx.x < static_cast<unsigned>(sides.count) && status == Status::ok) {
      put_side(Block(), view, sides.side[blockIdx.x], field, flags, n);
      status = wait_side(Block(), view, sides.side[blockIdx.x], flags, n, kDeadline);
      fails(result, status);
    }
    grid.sync();
    for (int i = mine; i < kCells; i += all)
      if (static_cast<const volatile std::uint64_t*>(field)[i] != cell_of(view, i / kWide, i % kWide, n))
        atomicAdd_system(&result->wrong, 1ULL);
    grid.sync();
  }
}

// The same of the i-th cell in four dimensions. `inner`: it is the PE's own.
__device__ std::uint64_t cell_in_four(const ist_team_view& view, int i, std::uint32_t step, bool& inner) {
  constexpr int kWide = kLong + 2;
  const int all[] = {kLong * view.pes, kLong, kLong, kLong};
  std::uint64_t cell = 0;
  inner = true;
  int rest = i;
  for (int d = 3; d >= 0; --d, rest /= kWide) {
    const int index = rest % kWide - 1;
    inner = inner && index >= 0 && index < kLong;
    const int first = d == 0 ? view.pe * kLong : 0;
    cell = cell * 1000 + static_cast<std::uint64_t>((first + index + all[d]) % all[d]);
  }
  return mixed(cell, 4, step);
}

__global__ void all_halos_kernel(ist_team_view view, Places places, const __grid_constant__ ist_halo_all_sides sides,
                                 std::uint32_t steps, Result* result) {
  constexpr int kCells = (kLong + 2) * (kLong + 2) * (kLong + 2) * (kLong + 2);
  const auto grid = cooperative_groups::this_grid();
  auto* const flags = reinterpret_cast<std::uint64_t*>(places.data + 5 * kRoom);
  const auto mine = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), all = static_cast<int>(gridDim.x * blockDim.x);
  const auto block = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);
  bool inner = false;
  Status status = Status::ok;
  for (std::uint32_t n = 1; n <= steps; ++n) {
    auto* const field = reinterpret_cast<std::uint64_t*>(places.data + n % 2 * kRoom);
    for (int i = mine; i < kCells; i += all) {
      const std::uint64_t value = cell_in_four(view, i, n, inner);
      if (inner) field[i] = value;
    }
    grid.sync();
    for (int s = block; s < sides.count && status == Status::ok; s += blocks)
      put_side(Block(), view, side_of(sides, s), field, flags, n);
    for (int s = block; s < sides.count && status == Status::ok; s += blocks) {
      status = wait_side(Block(), view, side_of(sides, s), flags, n, kDeadline);
      fails(result, status);
    }
    grid.sync();
    for (int i = mine; i < kCells; i += all)
      if (static_cast<const volatile std::uint64_t*>(field)[i] != cell_in_four(view, i, n, inner))
        atomicAdd_system(&result->wrong, 1ULL);
    grid.sync();
  }
}

__global__ void wait_kernel(ist_team_view view, Places places, std::uint64_t deadline, Result* result) {
  fails(result, wait_until(view, &places.words[3], Compare::not_equal, std::uint64_t{0}, deadline));
}

// Each block says that it is there, and stays until the word comes.
__global__ void fill_kernel(ist_team_view view, Places places, Result* result) {
  if (threadIdx.x == 0) {
    atomicAdd_system(reinterpret_cast<unsigned long long*>(&result->first_ns), 1ULL);
    fails(result, wait_until(view, &places.words[0], Compare::equal, kAwaited, kDeadline));
  }
  __syncthreads();
}

// All blocks of the grid within two seconds, or what is wrong.
std::string wait_for_blocks(const Result* result, long long blocks) {
  const auto* const there = const_cast<const volatile long long*>(&result->first_ns);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (*there < blocks)
    if (std::chrono::steady_clock::now() > limit)
      return std::to_string(*there) + " of " + std::to_string(blocks) + " blocks were on the device after two seconds";
  return {};
}

}  // namespace

int devices() {
  const pid_t child = fork();
  if (child == 0) {
    int count = 0;
    _exit(cudaGetDeviceCount(&count) == cudaSuccess ? std::min(count, 100) : 0);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

Found exchange(const ist_team_view& view, int device, const Places& places, std::uint32_t epochs) {
  return exchange_until_told(view, device, places, 0, epochs, nullptr);
}

Told* told_memory(int device) {
  Told* told = nullptr;
  if (cudaSetDevice(device) != cudaSuccess || cudaHostAlloc(&told, sizeof *told, cudaHostAllocMapped) != cudaSuccess)
    return nullptr;
  *told = {};
  return told;
}

Found exchange_until_told(const ist_team_view& view, int device, const Places& places, std::uint32_t before,
                          std::uint32_t epochs, Told* told) {
  return found_by(device, [&](cudaStream_t stream, Result* result, std::string&) {
    exchange_kernel<Block><<<1, 256, 0, stream>>>(view, places, before, epochs, told, result);
  });
}

Found exchange_as_grids(const ist_team_view& view, int device, const Places& places, std::uint32_t before,
                        std::uint32_t epochs) {
  return found_by(device, [&](cudaStream_t stream, Result* result, std::string& refused) {
    const Launch launch = launch_grid(exchange_kernel<Grid>, kBlocks, 128, 0, stream, 0, view, places, before, epochs,
                                      static_cast<Told*>(nullptr), result);
    if (!launch.ok()) refused = launch.text;
  });
}

Found meet_as_grids(const ist_team_view& view, int device, const Places& places, std::uint32_t epochs) {
  return found_by(device, [&](cudaStream_t stream, Result* result, std::string& refused) {
    const Launch launch = launch_grid(grid_kernel, kBlocks, 256, 0, stream, 0, view, places, epochs, result);
    if (!launch.ok()) refused = launch.text;
  });
}

Found meet_in_replays(const ist_team_view& view, int device, const Places& places, std::uint32_t replays) {
  return found_by(device, [&](cudaStream_t stream, Result* result, std::string& refused) {
    const auto fine = [&](cudaError_t error, const char* call) {
      if (error != cudaSuccess && refused.empty()) refused = std::string(call) + ": " + cudaGetErrorString(error);
      return error == cudaSuccess;
    };
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    if (!fine(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture")) return;
    replayed_kernel<<<1, 256, 0, stream>>>(view, places, result);
    if (!fine(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture")) return;
    if (fine(cudaGraphInstantiateWithFlags(&ready, graph, 0), "cudaGraphInstantiateWithFlags")) {
      for (std::uint32_t n = 0; n < replays && refused.empty(); ++n) fine(cudaGraphLaunch(ready, stream), "cudaGraphLaunch");
      fine(cudaStreamSynchronize(stream), "cudaStreamSynchronize of the replays");
      fine(cudaGraphExecDestroy(ready), "cudaGraphExecDestroy");
    }
    fine(cudaGraphDestroy(graph), "cudaGraphDestroy");
  });
}

Found add_everywhere(const ist_team_view& view, int device, const Places& places, std::uint32_t times) {
  return found_by(device, [&](cudaStream_t stream, Result*, std::string&) {
    add_kernel<<<1, kAdders, 0, stream>>>(view, places, times);
  });
}

Found exchange_halos(const ist_team_view& view, int device, const Places& places, const ist_halo_sides& sides,
                     std::uint32_t steps) {
  return found_by(device, [&](cudaStream_t stream, Result* result, std::string& refused) {
    const Launch launch = launch_grid(halo_kernel, kBlocks, 256, 0, stream, 0, view, places, sides, steps, result);
    if (!launch.ok()) refused = launch.text;
  });
}

Found exchange_all_halos(const ist_team_view& view, int device, const Places& places, const ist_halo_all_sides& sides,
                         std::uint32_t steps) {
  return found_by(device, [&](cudaStream_t stream, Result* result, std::string& refused) {
    const Launch launch = launch_grid(all_halos_kernel, kBlocks, 256, 0, stream, 0, view, places, sides, steps, result);
    if (!launch.ok()) refused = launch.text;
  });
}

Found wait_for_host(const ist_team_view& view, int device, const Places& places, std::uint32_t epochs) {
  return found_by(device, [&](cudaStream_t stream, Result* result, std::string&) {
    wait_for_host_kernel<<<1, 256, 0, stream>>>(view, places, epochs, result);
  });
}
void fill_on_host(unsigned char* to, std::uint32_t bytes, int pe, std::uint32_t epoch) {
  for (std::uint32_t i = 0; i < bytes; ++i)
    to[i] = static_cast<unsigned char>(mixed(static_cast<std::uint64_t>(pe) + 1, epoch, i));
}

Found wait_for_ever(const ist_team_view& view, int device, const Places& places, std::uint64_t deadline) {
  return found_by(device, [&](cudaStream_t stream, Result* result, std::string&) {
    wait_kernel<<<1, 32, 0, stream>>>(view, places, deadline, result);
  });
}

std::string fit_beside_a_worker(int device) {
  Room room, alone;
  cudaError_t error = cudaSetDevice(device);
  const Launch asked = room_for(fill_kernel, 1024, 0, kReserveNone, &room);
  if (error != cudaSuccess || !asked.ok()) return "room_for: " + asked.text;
  alone.multiprocessors = room.multiprocessors;
  alone.per_multiprocessor = room.per_multiprocessor;
  if (room.workers != 1 || room.worker.threads != 256 || room.blocks() != alone.blocks() - room.lost_to_each)
    return std::to_string(room.blocks()) + " of " + std::to_string(alone.blocks()) + " blocks fit beside " +
           std::to_string(room.workers) + " workers of " + std::to_string(room.worker.threads) + " threads";
  if (room.lost_to_each == 0) return {};  // what no block of the grid takes is enough for it on this device
  const Launch refused = launch_grid(fill_kernel, static_cast<unsigned>(alone.blocks()), 1024, 0, cudaStream_t{},
                                     kReserveNone, ist_team_view{}, Places{}, static_cast<Result*>(nullptr));
  return refused.error == cudaErrorCooperativeLaunchTooLarge && refused.text.find("beside 1 worker") != std::string::npos
             ? ""
             : "refused: " + refused.text;
}

Found wait_as_the_largest_grid(const ist_team_view& view, int device, const Places& places, const Blocks& of,
                               const std::function<void()>& change) {
  return found_by(device, [&](cudaStream_t stream, Result* result, std::string& refused) {
    Room room;
    int allowed = 0;  // of shared memory; smaller devices have less than is asked for
    cudaError_t set = cudaDeviceGetAttribute(&allowed, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    const int bytes = std::min(static_cast<int>(of.shared_bytes), allowed);
    if (set == cudaSuccess) set = cudaFuncSetAttribute(fill_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (set != cudaSuccess) return void(refused = cudaGetErrorString(set));
    const auto shared = static_cast<std::size_t>(bytes);
    Launch launch = room_for(fill_kernel, of.threads, shared, 0, &room);
    const auto most = static_cast<unsigned>(room.blocks());
    if (launch.ok() && launch_grid(fill_kernel, most + 1, of.threads, shared, stream, 0, view, places, result).ok())
      ++result->wrong;
    if (launch.ok()) launch = launch_grid(fill_kernel, most, of.threads, shared, stream, 0, view, places, result);
    if (!launch.ok()) return void(refused = launch.text);
    refused = wait_for_blocks(result, room.blocks());
    change();
  });
}

}  // namespace heap_kernels
