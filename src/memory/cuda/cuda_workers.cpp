#include "memory/cuda/cuda_workers.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "base/log.hpp"
#include "memory/cuda/cuda_pointer.hpp"
#include "memory/worker_blocks.hpp"

namespace ist {
namespace {

std::string on_cuda(int device) { return " on cuda device " + std::to_string(device); }

// An order takes a few microseconds; a worker that leaves sooner than this gets no more.
constexpr std::chrono::microseconds kMargin{25};

// A ticket's number: the order's above, then whose it is, its device and its place.
std::uint64_t ticket_of(std::uint64_t own, int device, WorkerOrders::Name name) {
  return static_cast<std::uint64_t>(name.number) << 32 | own | static_cast<std::uint64_t>(device) << 8 | name.slot;
}
WorkerOrders::Name name_of(std::uint64_t ticket) {
  return {static_cast<std::uint32_t>(ticket & 0xff), static_cast<std::uint32_t>(ticket >> 32)};
}

// As many as a device has. With more streams than connections one that shares the worker's waits for it.
constexpr long kConnections = 32;
constexpr long kConnectionsByItself = 8;

long connections() {
  const char* const said = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  return said == nullptr ? kConnectionsByItself : std::strtol(said, nullptr, 10);
}

}  // namespace

static_assert(worker::kSlots <= 256 && worker::kMost == kWorkerLimit.value);

CudaWorkers::CudaWorkers(const CudaApi& api, CudaContexts& contexts, const CudaKernels& kernels)
    : api_(api), contexts_(contexts), kernels_(kernels) {
  for (int device = 0; device < contexts.count(); ++device) workers_.push_back(std::make_unique<Worker>());
}

CudaWorkers::~CudaWorkers() {
  for (auto& worker : workers_) close(*worker);
}

// Waits for the worker, which leaves by itself if there is no place to tell it so.
void CudaWorkers::close(Worker& worker) const {
  if (worker.context == nullptr) return;
  const ContextScope scope(api_, *worker.context);
  if (!scope.status().ok()) return;
  if (worker.orders != nullptr && worker.running) worker.orders->dismiss();
  if (worker.stream != nullptr) api_.cuStreamSynchronize(worker.stream);
  if (std::exchange(worker.counted, false)) worker_goes(worker.context->device);
  if (worker.stream != nullptr) api_.cuStreamDestroy_v2(worker.stream);
  if (worker.module != nullptr) api_.cuModuleUnload(worker.module);
  if (worker.board != nullptr) api_.cuMemFreeHost(worker.board);
  worker.stream = nullptr;
  worker.module = nullptr;
  worker.board = nullptr;
}

// The program's own words stay.
void CudaWorkers::before_start(const CudaApi& api) {
  CUcontext current = nullptr;
  if (api.cuCtxGetCurrent(&current) != CUDA_ERROR_NOT_INITIALIZED) return;
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", std::to_string(kConnections).c_str(), 0);
}

Status CudaWorkers::against(int device) {
  const std::string place = "cuda device " + std::to_string(device);
  if (device < 0 || device >= contexts_.count())
    return {IST_ERR_ARGUMENT, place + " was asked for a worker, but this machine has " + std::to_string(contexts_.count())};
  if (!kernels_.present() || api_.cuMemHostAlloc == nullptr || api_.cuMemFreeHost == nullptr ||
      api_.cuModuleGetLoadingMode == nullptr)
    return {IST_ERR_KIND, "the driver lacks calls that a worker needs; install an NVIDIA driver for CUDA 12 or newer"};
  CUmoduleLoadingMode mode{};
  if (const CUresult result = api_.cuModuleGetLoadingMode(&mode); result != CUDA_SUCCESS)
    return cuda_error(api_, result, "cuModuleGetLoadingMode");
  if (mode == CU_MODULE_LAZY_LOADING)
    return {IST_ERR_KIND,
            "kernels are loaded lazily, when they are first launched, which waits for kernels that run: CUDA was started "
            "before this world, or CUDA_MODULE_LOADING says so; set CUDA_MODULE_LOADING=EAGER in the environment"};
  if (const long found = connections(); found < kConnections)
    return {IST_ERR_KIND,
            "streams share " + std::to_string(found) +
                " connections to the device, so that some would wait for the worker: CUDA was started before this "
                "world, or CUDA_DEVICE_MAX_CONNECTIONS says so; set it to " +
                std::to_string(kConnections) + " in the environment"};
  const char* const blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  if (blocking != nullptr && std::strcmp(blocking, "0") != 0)
    return {IST_ERR_KIND, "CUDA_LAUNCH_BLOCKING is set, and a launch waits until its kernel is over; unset it"};
  int maps = 0;
  CUdevice handle = contexts_.device(device);
  if (api_.cuDeviceGetAttribute != nullptr &&
      api_.cuDeviceGetAttribute(&maps, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, handle) == CUDA_SUCCESS && maps == 0)
    return {IST_ERR_KIND, place + " cannot read host memory"};
  return kernels_.runs_on(device, "workers");
}

Status CudaWorkers::allow(int device, const Status& known) {
  Status found = known.ok() ? against(device) : known;
  if (found.ok()) {
    workers_[static_cast<std::size_t>(device)]->allowed.store(true);
    allowed_.store(device);
  }
  return found;
}

Bytes CudaWorkers::limit(int device) const {
  if (device < 0) device = allowed_.load(std::memory_order_relaxed);
  const bool runs = device >= 0 && static_cast<std::size_t>(device) < workers_.size() &&
                    workers_[static_cast<std::size_t>(device)]->allowed.load(std::memory_order_relaxed);
  return runs ? kWorkerLimit : Bytes{};
}

bool CudaWorkers::takes(const Piece& piece) const {
  return piece.size > Bytes{} && piece.device >= 0 && piece.size <= limit(piece.device);
}

// A kernel that touches what it cannot reach costs the program its context, where a copy would be refused: so only memory of which the
// driver knows that it is there, whole, and the device's own. Not managed memory, which may have to come over first, nor mappings, of
// which it does not tell what may reach them.
Status CudaWorkers::reaches(const Piece& piece) const {
  const std::uint64_t address = piece.object + piece.offset.value;
  const PointerFacts facts = ask_driver(api_, address);
  const bool own = facts.result == CUDA_SUCCESS && facts.known && !facts.on_host && facts.device == piece.device &&
                   Workers::copies(facts.memory_class);
  if (!own || piece.size.value > facts.size - (address - facts.start))
    return {IST_ERR_KIND, describe_piece(piece) + " is not for a worker"};
  const auto home = contexts_.find(facts.context, facts.device);
  if (!home.ok()) return home.status();
  return (*home)->primary ? Status{} : Status{IST_ERR_KIND, describe_piece(piece) + " is of another context"};
}

std::optional<std::uint64_t> CudaWorkers::copy(const Piece& to, const Piece& from) {
  const bool into = from.kind == KindId::host;
  const Piece& own = into ? to : from;
  const std::uint64_t address = own.object + own.offset.value;
  if (into == (to.kind == KindId::host) || !takes(own)) return std::nullopt;
  Worker& worker = *workers_[static_cast<std::size_t>(own.device)];
  const std::lock_guard lock(worker.mutex);
  if (!may_have(worker, own)) return std::nullopt;
  const auto bytes = static_cast<std::uint32_t>(own.size.value);
  const auto name =
      into ? worker.orders->put(address, from.address(), bytes) : worker.orders->bring(address, to.address(), bytes);
  if (!name) return std::nullopt;
  worker.given = Clock::now();
  return ticket_of(kOwn, own.device, *name);
}

std::optional<std::uint64_t> CudaWorkers::give(const Piece& own, const Mail& mail, Give order) {
  if (!takes(own)) return std::nullopt;
  Worker& worker = *workers_[static_cast<std::size_t>(own.device)];
  const std::lock_guard lock(worker.mutex);
  if (!may_have(worker, own)) return std::nullopt;
  const auto name = order(*worker.orders, own.object + own.offset.value, static_cast<std::uint32_t>(own.size.value), mail);
  if (!name) return std::nullopt;
  worker.given = Clock::now();
  return ticket_of(kOwn, own.device, *name);
}

std::optional<std::uint64_t> CudaWorkers::post(const Piece& from, const Mail& mail) {
  return give(from, mail, [](WorkerOrders& orders, std::uint64_t address, std::uint32_t bytes, const Mail& to) {
    return orders.post(address, to.place, to.number, bytes);
  });
}

std::optional<std::uint64_t> CudaWorkers::take(const Piece& to, const Mail& mail) {
  return give(to, mail, [](WorkerOrders& orders, std::uint64_t address, std::uint32_t bytes, const Mail& from) {
    return orders.take(address, from.place, from.number, bytes, from.cleans);
  });
}

Result<std::optional<bool>> CudaWorkers::taken(std::uint64_t ticket) {
  Worker* const worker = find(ticket);
  if (worker == nullptr)
    return Status{IST_ERR_INTERNAL, "a device was asked about an order to its worker that it never had"};
  const std::lock_guard lock(worker->mutex);
  const auto over = look(*worker, name_of(ticket));
  if (over.ok() && !*over) return std::optional<bool>{};
  const bool missing = over.ok() && worker->orders->missing(name_of(ticket));
  if (worker->orders != nullptr) worker->orders->drop(name_of(ticket));
  if (!over.ok()) return over.status();
  return std::optional<bool>{!missing};
}

// The time is looked at last: the driver may take some.
bool CudaWorkers::may_have(const Worker& worker, const Piece& own) const {
  return worker.allowed.load() && stays(worker) && reaches(own).ok() && stays(worker);
}

// Whatever it did began on the device after this process had asked for it: so it stays for longer than this process's clock says.
bool CudaWorkers::stays(const Worker& worker) const {
  if (!worker.running || !worker.orders->begun(worker.launches)) return false;
  const auto soon = Clock::now() + kMargin;
  // What it was told to take before may let it wait, each time.
  return soon < worker.given + times_.idle && soon + worker.orders->waits() * times_.wait < worker.launched + times_.most;
}

bool CudaWorkers::runs(int device) const {
  Worker& worker = *workers_[static_cast<std::size_t>(device)];
  const std::lock_guard lock(worker.mutex);
  return stays(worker);
}

void CudaWorkers::wake(const CudaContext& context, Bytes size) {
  if (!context.primary || size == Bytes{} || size > limit(context.device)) return;
  Worker& worker = *workers_[static_cast<std::size_t>(context.device)];
  const std::lock_guard lock(worker.mutex);
  // Where small messages are rare, a worker would be gone before the next one, and others would wait for it in vain.
  const auto now = Clock::now();
  const auto before = std::max(worker.given, worker.by_driver[1]);
  worker.by_driver = {now, worker.by_driver[0]};
  if (now - before > times_.most) return;
  if (start(worker, context.device).ok() && has_left(worker)) begin(worker);
}

void CudaWorkers::prepare(int device) {
  if (limit(device) == Bytes{}) return;
  Worker& worker = *workers_[static_cast<std::size_t>(device)];
  const std::lock_guard lock(worker.mutex);
  static_cast<void>(start(worker, device));
}

// ---- tickets ----

CudaWorkers::Worker* CudaWorkers::find(std::uint64_t ticket) const {
  const std::uint64_t device = (ticket & (kOwn - 1)) >> 8;
  return device < workers_.size() ? workers_[device].get() : nullptr;
}

Result<bool> CudaWorkers::look(Worker& worker, WorkerOrders::Name name) {
  if (worker.orders == nullptr || !worker.orders->knows(name))
    return Status{IST_ERR_INTERNAL, "a worker was asked about an order that it never had"};
  if (worker.orders->over(name)) return true;
  if (keeps_running(worker)) return false;
  if (worker.orders->over(name)) return true;  // by the driver
  return Status{IST_ERR_DEVICE, "few bytes given to the worker" + on_cuda(worker.context->device) +
                                    " to copy have not arrived: " + worker.broken.text()};
}

Result<bool> CudaWorkers::finished(std::uint64_t ticket) {
  Worker* const worker = find(ticket);
  if (worker == nullptr)
    return Status{IST_ERR_INTERNAL, "a device was asked about an order to its worker that it never had"};
  const std::lock_guard lock(worker->mutex);
  auto over = look(*worker, name_of(ticket));
  if (over.ok() && *over) static_cast<void>(worker->orders->done(name_of(ticket)));
  // Its bytes must not come any more: their owner takes the memory back.
  if (!over.ok() && worker->orders != nullptr) worker->orders->drop(name_of(ticket));
  return over;
}

Status CudaWorkers::wait(std::uint64_t ticket) {
  Worker* const worker = find(ticket);
  if (worker == nullptr)
    return {IST_ERR_INTERNAL, "a device was asked to wait for an order to its worker that it never had"};
  for (;;) {
    {
      const std::lock_guard lock(worker->mutex);
      const auto over = look(*worker, name_of(ticket));
      if (!over.ok() || *over) return over.status();
    }
    channel::between_looks();
  }
}

// Not before it is over, as a rule: its memory may be freed next, and a kernel that reads what is gone costs the program its context.
void CudaWorkers::drop(std::uint64_t ticket) {
  Worker* const worker = find(ticket);
  if (worker == nullptr) return;
  const auto limit = Clock::now() + times_.most;
  for (;;) {
    {
      const std::lock_guard lock(worker->mutex);
      if (worker->orders == nullptr) return;
      const auto over = look(*worker, name_of(ticket));
      if (!over.ok() || *over || Clock::now() > limit) return worker->orders->drop(name_of(ticket));
    }
    channel::between_looks();
  }
}

std::uint64_t CudaWorkers::launches(int device) {
  Worker& worker = *workers_[static_cast<std::size_t>(device)];
  const std::lock_guard lock(worker.mutex);
  return worker.launches;
}

}  // namespace ist
