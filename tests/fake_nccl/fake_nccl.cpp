#include "fake_nccl.hpp"

#include <cuda.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace {

using namespace fake_nccl;

constexpr std::uint64_t kMagic = 0x66616b656e63636c;
constexpr Code kCudaError{1};
constexpr Code kSystemError{2};
constexpr Code kInvalidArgument{4};
constexpr Code kInvalidUsage{5};

std::atomic<std::uint64_t> launches{0};
std::atomic<std::uint64_t> living{0};

// The value that is meant for this rank; -1 without one: of calls that know no rank.
std::string variable(const char* name, int rank) {
  const char* text = std::getenv(name);
  if (text == nullptr) return {};
  const std::string all = text;
  const auto colon = all.find(':');
  if (colon == std::string::npos) return all;
  return std::atoi(all.c_str()) == rank ? all.substr(colon + 1) : std::string{};
}
long number(const char* name, int rank, long otherwise) {
  const std::string text = variable(name, rank);
  return text.empty() ? otherwise : std::strtol(text.c_str(), nullptr, 10);
}

void dawdle(int rank) {
  static thread_local std::minstd_rand random{std::random_device{}()};
  const long most = number("FAKE_NCCL_DELAY_US", rank, 100);
  if (most > 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % static_cast<unsigned long>(most)));
}

template <class Function>
Function driver(const char* name) {
  static void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  auto* const found = library == nullptr ? nullptr : ::dlsym(library, name);
  if (found == nullptr) {
    std::fprintf(stderr, "fake NCCL: the fake CUDA driver has no %s\n", name);
    std::abort();
  }
  return reinterpret_cast<Function>(found);
}

CUcontext current_context() {
  CUcontext context = nullptr;
  driver<CUresult (*)(CUcontext*)>("cuCtxGetCurrent")(&context);
  return context;
}

std::byte* bytes_at(const void* address) {
  const auto found = driver<void* (*)(std::uint64_t)>("fake_cuda_bytes")(reinterpret_cast<std::uint64_t>(address));
  return static_cast<std::byte*>(found);
}

Shared* map_shared(int process, int descriptor) {
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(descriptor);
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return nullptr;
  void* mapped = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  return mapped == MAP_FAILED ? nullptr : static_cast<Shared*>(mapped);
}

struct Group {
  int depth = 0;
  ist::nccl::Comm comm = nullptr;
  CUstream stream = nullptr;
  std::vector<Call> sends;
  std::vector<Call> receives;
};
Group& group() {
  thread_local Group open;
  return open;
}

}  // namespace

struct ist::nccl::CommObject {
  int rank = 0;
  int ranks = 0;
  CUcontext context = nullptr;
  Ticket ticket;
  bool waits = false;
  std::set<std::tuple<int, std::size_t, int, int>> known;  // shapes of calls
  std::atomic<Code> state{Code::in_progress};
  std::atomic<bool> aborted{false};
  std::atomic<bool> dead{false};
  std::unique_ptr<Wire> wire;
  std::mutex mutex;
  std::condition_variable idle;
  int busy = 0;  // threads and kernels of this communicator
  long taken = 0;

  void begin() {
    const std::lock_guard lock(mutex);
    ++busy;
  }
  void end() {
    const std::lock_guard lock(mutex);
    --busy;
    idle.notify_all();
  }
};

namespace {

using ist::nccl::Comm;

// Communicators stay after their end, so that a call on one is seen; here, so that they do not count as leaked.
void keep(Comm comm) {
  static std::mutex mutex;
  static auto* const all = new std::vector<std::unique_ptr<ist::nccl::CommObject>>;
  const std::lock_guard lock(mutex);
  all->emplace_back(comm);
}

void must_live(Comm comm, const char* call) {
  if (comm != nullptr && !comm->dead.load()) return;
  std::fprintf(stderr, "fake NCCL: %s on a communicator that is no more; the real one may crash\n", call);
  std::abort();
}

struct Kernel {
  Comm comm;
  Call call;
};

void CUDA_CB run_kernel(void* argument) {
  const std::unique_ptr<Kernel> kernel(static_cast<Kernel*>(argument));
  Comm comm = kernel->comm;
  dawdle(comm->rank);
  if (!comm->aborted.load()) {
    Call call = kernel->call;
    call.send = bytes_at(call.send);
    if (call.recv != nullptr) call.recv = bytes_at(call.recv);
    if (call.send == nullptr) std::abort();
    comm->wire->run(call);
  }
  comm->end();
}

// What the real library does in a thread of its own where a communicator must not block.
void put_into_stream(Comm comm, CUstream stream, const Call& call, bool late) {
  dawdle(comm->rank);
  driver<CUresult (*)(CUcontext)>("cuCtxPushCurrent_v2")(comm->context);
  if (late) {
    comm->state = kSystemError;
  } else {
    comm->begin();
    const auto launch = driver<CUresult (*)(CUstream, CUhostFn, void*)>("cuLaunchHostFunc");
    const bool launched = launch(stream, run_kernel, new Kernel{comm, call}) == CUDA_SUCCESS;
    if (!launched) comm->end();
    launches.fetch_add(1);
    comm->state = launched ? Code::success : kCudaError;
  }
  comm->end();
}

// On a communicator that waits: in the caller's thread, and what a call of another shape goes through is connected first.
Code take_and_wait(Comm comm, CUstream stream, const Call& call, bool late) {
  comm->begin();
  bool connected = true;
  if (comm->known.emplace(static_cast<int>(call.what), call.count, static_cast<int>(call.type), call.root).second) {
    std::this_thread::sleep_for(std::chrono::milliseconds(number("FAKE_NCCL_CONNECT_MS", comm->rank, 0)));
    connected = comm->wire->connect();
  }
  if (!connected) {
    comm->end();
    return kSystemError;
  }
  put_into_stream(comm, stream, call, late);
  CUcontext pushed = nullptr;
  driver<CUresult (*)(CUcontext*)>("cuCtxPopCurrent_v2")(&pushed);
  return comm->state.load();
}

Code take(Comm comm, ist::nccl::Stream stream, const Call& call) {
  must_live(comm, "a collective call");
  if (comm->state.load() != Code::success) return kInvalidUsage;
  if (current_context() != comm->context || call.send == nullptr) return kInvalidArgument;
  ++comm->taken;
  if (comm->taken == number("FAKE_NCCL_LAUNCH", comm->rank, 0)) return kCudaError;
  const bool late = comm->taken == number("FAKE_NCCL_LATE", comm->rank, 0);
  if (comm->waits) return take_and_wait(comm, static_cast<CUstream>(stream), call, late);
  comm->state = Code::in_progress;
  comm->begin();
  std::thread(put_into_stream, comm, static_cast<CUstream>(stream), call, late).detach();
  return Code::in_progress;
}

void make(Comm comm, int descriptor, const char* fault) {
  const std::string how = variable(fault, comm->rank);
  dawdle(comm->rank);
  Shared* shared = map_shared(comm->ticket.process, descriptor);
  if (how == "fail" || shared == nullptr) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    comm->state = kSystemError;
  } else if (how == "hang") {
    while (!comm->aborted.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } else {
    comm->wire = std::make_unique<Wire>(shared, comm->rank, comm->ranks, comm->aborted);
    if (comm->wire->join()) comm->state = Code::success;
  }
  comm->end();
}

Comm new_comm(int rank, int ranks, const Ticket& ticket, CUcontext context) {
  auto* comm = new ist::nccl::CommObject;
  comm->rank = rank;
  comm->ranks = ranks;
  comm->context = context;
  comm->ticket = ticket;
  comm->begin();
  keep(comm);
  living.fetch_add(1);
  return comm;
}

}  // namespace

#define FAKE_NCCL extern "C" __attribute__((visibility("default")))

FAKE_NCCL std::uint64_t fake_nccl_launches() { return launches.load(); }

FAKE_NCCL std::uint64_t fake_nccl_living() { return living.load(); }

FAKE_NCCL Code ncclGetVersion(int* version) {
  *version = static_cast<int>(number("FAKE_NCCL_VERSION", -1, 22703));
  return Code::success;
}

FAKE_NCCL const char* ncclGetErrorString(Code code) {
  if (code == kSystemError) return "unhandled system error (the fake's)";
  if (code == kCudaError) return "unhandled cuda error (the fake's)";
  return code == Code::success ? "no error" : "invalid usage (the fake's)";
}

FAKE_NCCL const char* ncclGetLastError(Comm) { return ""; }

FAKE_NCCL Code ncclGetUniqueId(UniqueId* id) {
  Ticket ticket;
  ticket.magic = kMagic;
  ticket.process = ::getpid();
  for (std::int32_t* descriptor : {&ticket.descriptor, &ticket.of_child}) {
    *descriptor = ::memfd_create("fake_nccl", MFD_CLOEXEC);
    if (*descriptor < 0 || ::ftruncate(*descriptor, sizeof(Shared)) != 0) return kSystemError;
  }
  std::memset(id, 0, sizeof *id);
  std::memcpy(id, &ticket, sizeof ticket);
  return Code::success;
}

FAKE_NCCL Code ncclCommInitRankConfig(Comm* made, int ranks, UniqueId id, int rank, ist::nccl::Config* config) {
  Ticket ticket;
  std::memcpy(static_cast<void*>(&ticket), &id, sizeof ticket);
  const bool right = config->size == sizeof(*config) && config->magic == 0xcafebeef && config->blocking == 0;
  if (!right || ticket.magic != kMagic || ranks > kMostRanks || rank >= ranks) return kInvalidArgument;
  if (current_context() == nullptr) return kCudaError;
  if (variable("FAKE_NCCL_INIT", rank) == "refuse") return kSystemError;
  *made = new_comm(rank, ranks, ticket, current_context());
  std::thread(make, *made, ticket.descriptor, "FAKE_NCCL_INIT").detach();
  return Code::in_progress;
}

// All ranks in one, once, and of a communicator that waits for nothing.
FAKE_NCCL Code ncclCommSplit(Comm comm, int color, int key, Comm* made, ist::nccl::Config* config) {
  must_live(comm, "ncclCommSplit");
  const bool right = config->size == sizeof(*config) && config->magic == 0xcafebeef && !comm->waits;
  if (!right || color != 0 || key != comm->rank || comm->state.load() != Code::success) return kInvalidArgument;
  if (variable("FAKE_NCCL_SPLIT", comm->rank) == "refuse") return kSystemError;
  Comm child = new_comm(comm->rank, comm->ranks, comm->ticket, comm->context);
  child->waits = config->blocking != 0;
  comm->state = Code::in_progress;
  comm->begin();
  // As the real one does, the child is written down when it is made, or has failed, or its parent is aborted.
  std::thread([parent = comm, child, made] {
    std::thread([parent, child] {
      while (child->state.load() == Code::in_progress && !child->aborted.load()) {
        if (parent->aborted.load()) child->aborted = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }).detach();
    make(child, child->ticket.of_child, "FAKE_NCCL_SPLIT");
    parent->state = child->state.load() == Code::in_progress ? kSystemError : child->state.load();
    *made = child;
    parent->end();
  }).detach();
  return Code::in_progress;
}

FAKE_NCCL Code ncclCommGetAsyncError(Comm comm, Code* error) {
  must_live(comm, "ncclCommGetAsyncError");
  *error = comm->state.load();
  return Code::success;
}

FAKE_NCCL Code ncclCommAbort(Comm comm) {
  must_live(comm, "ncclCommAbort");
  comm->aborted = true;
  std::unique_lock lock(comm->mutex);
  comm->idle.wait(lock, [comm] { return comm->busy == 0; });
  comm->dead = true;
  living.fetch_sub(1);
  return Code::success;
}

FAKE_NCCL Code ncclAllReduce(const void* send, void* recv, std::size_t count, Type type, Operation operation, Comm comm,
                             ist::nccl::Stream stream) {
  return take(comm, stream, {Call::What::all_reduce, send, recv, count, type, operation, 0});
}

FAKE_NCCL Code ncclReduce(const void* send, void* recv, std::size_t count, Type type, Operation operation, int root,
                          Comm comm, ist::nccl::Stream stream) {
  return take(comm, stream, {Call::What::reduce, send, recv, count, type, operation, root});
}

FAKE_NCCL Code ncclBroadcast(const void* send, void* recv, std::size_t count, Type type, int root, Comm comm,
                             ist::nccl::Stream stream) {
  return take(comm, stream, {Call::What::broadcast, send, recv, count, type, Operation::sum, root});
}

FAKE_NCCL Code ncclAllGather(const void* send, void* recv, std::size_t count, Type type, Comm comm,
                             ist::nccl::Stream stream) {
  return take(comm, stream, {Call::What::all_gather, send, recv, count, type, Operation::sum, 0});
}

FAKE_NCCL Code ncclReduceScatter(const void* send, void* recv, std::size_t count, Type type, Operation operation, Comm comm,
                                 ist::nccl::Stream stream) {
  return take(comm, stream, {Call::What::reduce_scatter, send, recv, count, type, operation, 0});
}

FAKE_NCCL Code ncclGroupStart() {
  ++group().depth;
  return Code::success;
}

FAKE_NCCL Code ncclSend(const void* buffer, std::size_t count, Type type, int, Comm comm, ist::nccl::Stream stream) {
  if (group().depth == 0) return kInvalidUsage;  // alone the fake knows none
  group().comm = comm;
  group().stream = static_cast<CUstream>(stream);
  group().sends.push_back({Call::What::exchange, buffer, nullptr, count, type, Operation::sum, 0});
  return Code::success;
}

FAKE_NCCL Code ncclRecv(void* buffer, std::size_t count, Type type, int, Comm, ist::nccl::Stream) {
  if (group().depth == 0) return kInvalidUsage;
  group().receives.push_back({Call::What::exchange, nullptr, buffer, count, type, Operation::sum, 0});
  return Code::success;
}

// A group is an exchange of equal parts between all, one after the other, and nothing else.
FAKE_NCCL Code ncclGroupEnd() {
  Group open = std::exchange(group(), {});
  if (open.depth != 1) return kInvalidUsage;
  if (open.sends.empty()) return Code::success;
  const auto ranks = static_cast<std::size_t>(open.comm->ranks);
  if (open.sends.size() != ranks || open.receives.size() != ranks) return kInvalidUsage;
  Call call = open.sends.front();
  call.recv = open.receives.front().recv;
  for (std::size_t r = 0; r < ranks; ++r) {
    const std::size_t place = r * call.count * size_of(call.type);
    if (open.sends[r].send != static_cast<const std::byte*>(call.send) + place) return kInvalidArgument;
    if (open.receives[r].recv != static_cast<std::byte*>(call.recv) + place) return kInvalidArgument;
  }
  return take(open.comm, open.stream, call);
}
