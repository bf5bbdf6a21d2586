// The life of a worker: how it is loaded and launched, and what becomes of its orders where it cannot be.
#include <cstring>
#include <utility>

#include "base/log.hpp"
#include "memory/cuda/cuda_workers.hpp"
#include "memory/worker_blocks.hpp"

namespace ist {
namespace {

// So many vain looks at an order lie between two questions to the driver whether the worker lives: some hundred microseconds.
constexpr unsigned kLooks = 4096;

std::uint64_t nanoseconds(std::chrono::nanoseconds time) { return static_cast<std::uint64_t>(time.count()); }

std::string of_device(int device) { return " on cuda device " + std::to_string(device); }

}  // namespace

// Once; what fails is said, and the worker is off.
Status CudaWorkers::start(Worker& worker, int device) const {
  if (worker.prepared) return worker.broken;
  worker.prepared = true;
  if (const Status loaded = load(worker, device); !loaded.ok()) fail(worker, loaded);
  return worker.broken;
}

Status CudaWorkers::load(Worker& worker, int device) const {
  const auto home = contexts_.primary(device);
  if (!home.ok()) return home.status();
  const ContextScope scope(api_, **home);
  IST_TRY(scope.status());
  worker.context = *home;
  int least = 0;
  int greatest = 0;
  const char* call = "cuStreamCreateWithPriority";
  const bool ranked = api_.cuStreamCreateWithPriority != nullptr && api_.cuCtxGetStreamPriorityRange != nullptr &&
                      api_.cuCtxGetStreamPriorityRange(&least, &greatest) == CUDA_SUCCESS;
  CUresult result = ranked ? api_.cuStreamCreateWithPriority(&worker.stream, CU_STREAM_NON_BLOCKING, greatest)
                           : api_.cuStreamCreate(&worker.stream, CU_STREAM_NON_BLOCKING);
  if (result == CUDA_SUCCESS) {
    call = "cuModuleLoadData";
    result = api_.cuModuleLoadData(&worker.module, isthmus_cuda_worker_kernels);
  }
  if (result == CUDA_SUCCESS) {
    call = "cuModuleGetFunction";
    result = api_.cuModuleGetFunction(&worker.kernel, worker.module, "isthmus_worker");
  }
  void* board = nullptr;
  if (result == CUDA_SUCCESS) {
    call = "cuMemHostAlloc";
    result = api_.cuMemHostAlloc(&board, sizeof(worker::Board), CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
  }
  if (result != CUDA_SUCCESS) return cuda_error(api_, result, call + std::string{" for the worker"} + of_device(device));
  std::memset(board, 0, sizeof(worker::Board));
  worker.board = static_cast<worker::Board*>(board);
  worker.orders = std::make_unique<WorkerOrders>(*worker.board);
  // Without a board it ends at once.
  IST_TRY(launch(worker, nullptr));
  result = api_.cuStreamSynchronize(worker.stream);
  return result == CUDA_SUCCESS ? count(worker)
                                : cuda_error(api_, result, "cuStreamSynchronize for the worker" + of_device(device));
}

// From now on it may be on the device at any moment, of which whoever fills it with blocks is to know. Its context must be current.
Status CudaWorkers::count(Worker& worker) const {
  constexpr int kMostRegisters = 255;  // of a thread; where the driver does not say how many
  WorkerBlock block{worker::kThreads, kMostRegisters, 0};
  CUresult result = CUDA_SUCCESS;
  if (api_.cuFuncGetAttribute != nullptr) {
    result = api_.cuFuncGetAttribute(&block.registers, CU_FUNC_ATTRIBUTE_NUM_REGS, worker.kernel);
    if (result == CUDA_SUCCESS)
      result = api_.cuFuncGetAttribute(&block.shared_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, worker.kernel);
  }
  if (result != CUDA_SUCCESS)
    return cuda_error(api_, result, "cuFuncGetAttribute for the worker" + of_device(worker.context->device));
  worker_comes(worker.context->device, block);
  worker.counted = true;
  return {};
}

// Its context must be current.
Status CudaWorkers::launch(Worker& worker, worker::Board* board) const {
  worker::Work work{
      board, worker.begin, worker.launches, nanoseconds(times_.idle), nanoseconds(times_.most), nanoseconds(times_.wait)};
  void* arguments[] = {&work};
  const CUresult result =
      api_.cuLaunchKernel(worker.kernel, 1, 1, 1, worker::kThreads, 1, 1, 0, worker.stream, arguments, nullptr);
  return result == CUDA_SUCCESS
             ? Status{}
             : cuda_error(api_, result, "cuLaunchKernel of the worker" + of_device(worker.context->device));
}

void CudaWorkers::fail(Worker& worker, const Status& why) const {
  worker.broken = why;
  worker.allowed.store(false);
  if (std::exchange(worker.counted, false)) worker_goes(worker.context->device);
  log::once(log::Level::warning, "ISTHMUS_WORKER",
            "the worker for small messages is off from now on, and the driver copies them: " + why.text());
}

// The last launch has ended, or there was none.
bool CudaWorkers::has_left(Worker& worker) const {
  if (!worker.running) return true;
  const auto next = worker.orders->ended(worker.launches);
  if (next) worker.begin = *next;
  worker.running = !next;
  return !worker.running;
}

// Once it has left: guard ONCE.
bool CudaWorkers::begin(Worker& worker) const {
  const ContextScope scope(api_, *worker.context);
  ++worker.launches;
  worker.launched = worker.given = Clock::now();
  const Status launched = scope.status().ok() ? launch(worker, worker.board) : scope.status();
  worker.looks = 0;
  worker.running = launched.ok();
  if (launched.ok()) return true;
  fail(worker, launched);
  copy_by_driver(worker);
  return false;
}

// What the last launch has not taken, and no other will. Of what fails here, whoever asks is told why there is no worker.
void CudaWorkers::copy_by_driver(Worker& worker) const {
  const ContextScope scope(api_, *worker.context);
  while (scope.status().ok()) {
    auto order = worker.orders->untaken();
    if (!order) return;
    const auto host = reinterpret_cast<CUdeviceptr>(order->bytes.data());
    const bool into = order->to == nullptr;
    CUresult result =
        api_.cuMemcpyAsync(into ? order->address : host, into ? host : order->address, order->bytes.size(), worker.stream);
    if (result == CUDA_SUCCESS) result = api_.cuStreamSynchronize(worker.stream);
    if (result != CUDA_SUCCESS) return;
    if (!into) std::memcpy(order->to, order->bytes.data(), order->bytes.size());
    worker.orders->made(order->name);
  }
}

// Of an order that waits. Where the worker has left after all, it is launched again: guard AGAIN. False: it cannot be.
bool CudaWorkers::keeps_running(Worker& worker) const {
  if (!worker.broken.ok()) return false;
  if (has_left(worker)) return begin(worker);
  if (++worker.looks >= kLooks) look_at_stream(worker);
  return worker.broken.ok();
}

void CudaWorkers::look_at_stream(Worker& worker) const {
  worker.looks = 0;
  const ContextScope scope(api_, *worker.context);
  if (!scope.status().ok()) return;
  const CUresult result = api_.cuStreamQuery(worker.stream);
  if (result == CUDA_ERROR_NOT_READY) return;
  // Of one that has ended, everything that it stored is there.
  if (result == CUDA_SUCCESS && worker.orders->ended(worker.launches)) return;
  fail(worker, cuda_error(api_, result == CUDA_SUCCESS ? CUDA_ERROR_UNKNOWN : result,
                          "the worker" + of_device(worker.context->device) + " has ended: cuStreamQuery"));
}

}  // namespace ist
