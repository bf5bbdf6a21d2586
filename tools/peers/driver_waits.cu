// Which calls of the CUDA driver wait for a kernel that runs, and whether a launch of another thread gets onto the device while they do.
// The kernel runs in a stream that is ordered with nothing. What belongs to another process is that of a second one, on the last GPU.
//
//   driver_waits      prints one JSON object: rows of {call, us, waits, launch}; launch: what a launch did meanwhile, of calls that wait
//
// A call that has not returned after 60 ms counts as one that waits; then the kernel is ended. An error of a call ends the program.
#include <cuda.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kBytes = 2 << 20;
constexpr auto kDescriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
constexpr std::chrono::milliseconds kPatience{60};

void must(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "driver_waits: %s returned %d\n", call, static_cast<int>(result));
  std::_Exit(1);
}
#define MUST(call) must(call, #call)

__global__ void wait_for(const volatile unsigned* word) {
  while (*word == 0) {
  }
}
__global__ void nothing() {}

double microseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

CUcontext use_device(int device) {
  CUcontext context = nullptr;
  MUST(cuInit(0));
  MUST(cuDevicePrimaryCtxRetain(&context, device));
  MUST(cuCtxSetCurrent(context));
  return context;
}

CUmemAllocationProp properties(int device) {
  CUmemAllocationProp wanted{};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.requestedHandleTypes = kDescriptor;
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  wanted.location.id = device;
  return wanted;
}

CUmemoryPool make_pool(int device) {
  CUmemPoolProps wanted{};
  wanted.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.handleTypes = kDescriptor;
  wanted.location = properties(device).location;
  CUmemoryPool pool = nullptr;
  MUST(cuMemPoolCreate(&pool, &wanted));
  return pool;
}

void* as_handle(int descriptor) { return reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor)); }

// What the other process gives: its bytes, and with them descriptors.
struct Given {
  CUipcMemHandle memory;
  CUipcEventHandle event;
  CUmemPoolPtrExportData piece;
  int mapping;
  int pool;
};

msghdr message_of(Given& given, iovec& bytes, char* control, std::size_t size) {
  bytes = {&given, sizeof given};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = size;
  return message;
}

void give(int socket, int device) {
  Given given{};
  use_device(device);
  CUdeviceptr address = 0;
  CUevent event = nullptr;
  CUmemGenericAllocationHandle mapping = 0;
  const CUmemAllocationProp wanted = properties(device);
  MUST(cuMemAlloc(&address, kBytes));
  MUST(cuIpcGetMemHandle(&given.memory, address));
  MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
  MUST(cuIpcGetEventHandle(&given.event, event));
  MUST(cuMemCreate(&mapping, kBytes, &wanted, 0));
  MUST(cuMemExportToShareableHandle(&given.mapping, mapping, kDescriptor, 0));
  CUmemoryPool pool = make_pool(device);
  MUST(cuMemAllocFromPoolAsync(&address, kBytes, pool, nullptr));
  MUST(cuStreamSynchronize(nullptr));
  MUST(cuMemPoolExportToShareableHandle(&given.pool, pool, kDescriptor, 0));
  MUST(cuMemPoolExportPointer(&given.piece, address));
  iovec bytes{};
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))]{};
  msghdr message = message_of(given, bytes, control, sizeof control);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(2 * sizeof(int));
  const int descriptors[2] = {given.mapping, given.pool};
  std::memcpy(CMSG_DATA(header), descriptors, sizeof descriptors);
  char over = 0;
  if (::sendmsg(socket, &message, 0) < 0 || ::read(socket, &over, 1) < 0) std::_Exit(1);
  std::_Exit(0);
}

Given take(int socket) {
  Given given{};
  iovec bytes{};
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))]{};
  msghdr message = message_of(given, bytes, control, sizeof control);
  if (::recvmsg(socket, &message, 0) != static_cast<ssize_t>(sizeof given)) std::_Exit(1);
  int descriptors[2];
  std::memcpy(descriptors, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptors);
  given.mapping = descriptors[0];
  given.pool = descriptors[1];
  return given;
}

class Bench {
 public:
  explicit Bench(CUcontext context) : context_(context) {
    for (CUstream* stream : {&waits, &launches, &other}) MUST(cuStreamCreate(stream, CU_STREAM_NON_BLOCKING));
    void* word = nullptr;
    MUST(cuMemHostAlloc(&word, sizeof(unsigned), CU_MEMHOSTALLOC_DEVICEMAP));
    word_ = static_cast<volatile unsigned*>(word);
    *word_ = 1;
    wait_for<<<1, 1, 0, waits>>>(word_);
    nothing<<<1, 1, 0, launches>>>();
    MUST(cuCtxSynchronize());
  }
  void look(const char* name, const std::function<void()>& call) {
    MUST(cuCtxSynchronize());
    *word_ = 0;
    wait_for<<<1, 1, 0, waits>>>(word_);
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
    std::atomic<bool> returned{false};
    std::atomic<bool> launched{false};
    std::atomic<bool> ran{false};
    double took = 0;
    std::thread caller([&] {
      MUST(cuCtxSetCurrent(context_));
      const auto begin = Clock::now();
      call();
      took = microseconds_since(begin);
      returned = true;
    });
    wait(returned);
    const bool waited = !returned;
    std::thread launcher;
    if (waited) {
      launcher = std::thread([&] {
        MUST(cuCtxSetCurrent(context_));
        nothing<<<1, 1, 0, launches>>>();
        launched = true;
        MUST(cuStreamSynchronize(launches));
        ran = true;
      });
      wait(ran);
    }
    const char* const launch = !waited ? "" : ran ? "runs" : launched ? "returns" : "waits";
    *word_ = 1;
    caller.join();
    if (launcher.joinable()) launcher.join();
    std::printf("%s{\"call\": \"%s\", \"us\": %.1f, \"waits\": %s, \"launch\": \"%s\"}", rows_++ == 0 ? "" : ",\n ", name,
                took, waited ? "true" : "false", launch);
    std::fflush(stdout);
  }

  CUstream waits = nullptr;
  CUstream launches = nullptr;
  CUstream other = nullptr;

 private:
  static void wait(const std::atomic<bool>& word) {
    for (const auto begin = Clock::now(); !word && Clock::now() - begin < kPatience;)
      std::this_thread::sleep_for(std::chrono::microseconds{50});
  }
  CUcontext context_;
  volatile unsigned* word_ = nullptr;
  int rows_ = 0;
};

void look_at_own(Bench& bench) {
  CUdeviceptr address = 0;
  CUdeviceptr managed = 0;
  void* locked = nullptr;
  std::vector<char> pageable(kBytes);
  bench.look("cuMemAlloc", [&] { MUST(cuMemAlloc(&address, kBytes)); });
  bench.look("cuMemFree", [&] { MUST(cuMemFree(address)); });
  bench.look("cuMemAllocManaged", [&] { MUST(cuMemAllocManaged(&managed, kBytes, CU_MEM_ATTACH_GLOBAL)); });
  bench.look("cuMemFree of managed memory", [&] { MUST(cuMemFree(managed)); });
  bench.look("cuMemHostAlloc", [&] { MUST(cuMemHostAlloc(&locked, kBytes, 0)); });
  bench.look("cuMemFreeHost", [&] { MUST(cuMemFreeHost(locked)); });
  bench.look("cuMemHostRegister", [&] { MUST(cuMemHostRegister(pageable.data(), kBytes, 0)); });
  bench.look("cuMemHostUnregister", [&] { MUST(cuMemHostUnregister(pageable.data())); });
  CUmemoryPool pool = make_pool(0);
  bench.look("cuMemAllocFromPoolAsync", [&] { MUST(cuMemAllocFromPoolAsync(&address, kBytes, pool, bench.other)); });
  bench.look("cuMemcpyAsync of pageable memory", [&] {
    MUST(cuMemcpyAsync(address, reinterpret_cast<CUdeviceptr>(pageable.data()), kBytes, bench.other));
    MUST(cuStreamSynchronize(bench.other));
  });
  bench.look("cuMemFreeAsync", [&] { MUST(cuMemFreeAsync(address, bench.other)); });
  bench.look("cuMemPoolDestroy", [&] { MUST(cuMemPoolDestroy(pool)); });
  CUstream stream = nullptr;
  CUevent event = nullptr;
  bench.look("cuStreamCreate", [&] { MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)); });
  bench.look("cuStreamDestroy", [&] { MUST(cuStreamDestroy(stream)); });
  bench.look("cuEventCreate", [&] { MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING)); });
  bench.look("cuEventDestroy", [&] { MUST(cuEventDestroy(event)); });
  bench.look("cuLaunchHostFunc", [&] {
    MUST(cuLaunchHostFunc(
        bench.other, [](void*) {}, nullptr));
    MUST(cuStreamSynchronize(bench.other));
  });
  CUmodule module = nullptr;
  constexpr const char* kText = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n";
  bench.look("cuModuleLoadData", [&] { MUST(cuModuleLoadData(&module, kText)); });
  bench.look("cuModuleUnload", [&] { MUST(cuModuleUnload(module)); });
}

void look_at_given(Bench& bench, const Given& given) {
  CUdeviceptr address = 0;
  CUevent event = nullptr;
  CUmemGenericAllocationHandle mapping = 0;
  CUmemoryPool pool = nullptr;
  CUmemPoolPtrExportData piece = given.piece;
  CUmemAccessDesc access{};
  access.location = properties(0).location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  bench.look("cuIpcOpenMemHandle",
             [&] { MUST(cuIpcOpenMemHandle(&address, given.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)); });
  bench.look("cuIpcCloseMemHandle", [&] { MUST(cuIpcCloseMemHandle(address)); });
  bench.look("cuIpcOpenEventHandle", [&] { MUST(cuIpcOpenEventHandle(&event, given.event)); });
  bench.look("cuEventDestroy of another process's", [&] { MUST(cuEventDestroy(event)); });
  bench.look("cuMemImportFromShareableHandle",
             [&] { MUST(cuMemImportFromShareableHandle(&mapping, as_handle(given.mapping), kDescriptor)); });
  bench.look("cuMemAddressReserve", [&] { MUST(cuMemAddressReserve(&address, kBytes, 0, 0, 0)); });
  bench.look("cuMemMap", [&] { MUST(cuMemMap(address, kBytes, 0, mapping, 0)); });
  bench.look("cuMemSetAccess", [&] { MUST(cuMemSetAccess(address, kBytes, &access, 1)); });
  bench.look("cuMemUnmap", [&] { MUST(cuMemUnmap(address, kBytes)); });
  bench.look("cuMemAddressFree", [&] { MUST(cuMemAddressFree(address, kBytes)); });
  bench.look("cuMemRelease", [&] { MUST(cuMemRelease(mapping)); });
  bench.look("cuMemPoolImportFromShareableHandle",
             [&] { MUST(cuMemPoolImportFromShareableHandle(&pool, as_handle(given.pool), kDescriptor, 0)); });
  bench.look("cuMemPoolSetAccess", [&] { MUST(cuMemPoolSetAccess(pool, &access, 1)); });
  bench.look("cuMemPoolImportPointer", [&] { MUST(cuMemPoolImportPointer(&address, pool, &piece)); });
  bench.look("cuMemFree of a pool's imported memory", [&] { MUST(cuMemFree(address)); });
  bench.look("cuMemPoolDestroy of an imported pool", [&] { MUST(cuMemPoolDestroy(pool)); });
}

}  // namespace

int main() {
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) return 1;
  // Before this process knows the driver, which no child may share.
  const pid_t child = ::fork();
  if (child == 0) {
    int devices = 0;
    MUST(cuInit(0));
    MUST(cuDeviceGetCount(&devices));
    give(sockets[1], devices - 1);
  }
  Bench bench(use_device(0));
  int version = 0;
  int devices = 0;
  char name[100] = "";
  MUST(cuDriverGetVersion(&version));
  MUST(cuDeviceGetCount(&devices));
  MUST(cuDeviceGetName(name, sizeof name, 0));
  std::printf("{\"benchmark\": \"driver waits\", \"device\": \"%s\", \"devices\": %d, \"cuda\": %d, \"rows\": [\n ", name,
              devices, version);
  const Given given = take(sockets[0]);
  look_at_own(bench);
  look_at_given(bench, given);
  std::printf("]}\n");
  if (::write(sockets[0], "x", 1) != 1) return 1;
  return ::waitpid(child, nullptr, 0) == child ? 0 : 1;
}
