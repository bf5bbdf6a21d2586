// Does the process's heap outlive contexts of a program's own that are destroyed with copies under way? By the driver's calls alone, round after
// round, with many allocations of all sizes between, so that what is written where it should not be is found.
//
//   context_ends [ROUNDS]      prints one JSON object for each of the ways below that ended well: {"way", "rounds"}; the C library ends the
//                              program where its heap is in disorder, so that each way runs in a process of its own
#include <cuda.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr std::size_t kBytes = 4096;

void must(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "context_ends: %s returned %d\n", call, static_cast<int>(result));
  std::_Exit(1);
}
#define MUST(call) must(call, #call)

struct Way {
  const char* name;
  bool pageable;    // copies from the heap, else from page-locked memory
  bool waits;       // for the copies, before the context is destroyed
  bool tells;       // destroys its stream and event before
  bool asks_after;  // for the number of the context that is gone
};

// As the library does it: lanes and events are made in the context, and go with it.
void one_round(const Way& way, std::vector<char*>& litter) {
  CUcontext context = nullptr;
  CUcontext popped = nullptr;
  using Create = CUresult (*)(CUcontext*, unsigned, CUdevice);
  void* create = nullptr;
  MUST(cuGetProcAddress("cuCtxCreate", &create, 3020, CU_GET_PROC_ADDRESS_DEFAULT, nullptr));
  must(reinterpret_cast<Create>(create)(&context, 0, 0), "cuCtxCreate");
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  void* locked = nullptr;
  MUST(cuMemAlloc(&memory, kBytes));
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  if (!way.pageable) MUST(cuMemHostAlloc(&locked, kBytes, 0));
  std::vector<char> heap(kBytes, 'x');
  const void* const from = way.pageable ? heap.data() : locked;
  for (int n = 0; n < 2; ++n) {
    MUST(cuMemcpyAsync(memory, reinterpret_cast<CUdeviceptr>(from), kBytes, stream));
    MUST(cuEventRecord(event, stream));
  }
  if (way.waits) MUST(cuStreamSynchronize(stream));
  if (way.tells) {
    MUST(cuEventDestroy(event));
    MUST(cuStreamDestroy(stream));
  }
  MUST(cuCtxPopCurrent(&popped));
  MUST(cuCtxDestroy(context));
  unsigned long long identity = 0;
  if (way.asks_after) static_cast<void>(cuCtxGetId(context, &identity));
  for (char*& one : litter) {
    std::free(one);
    one = static_cast<char*>(std::malloc(std::size_t{16} << (std::rand() % 14)));
    std::memset(one, 0x5a, 16);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 30;
  int failed = 0;
  for (const Way& way :
       {Way{"pageable", true, false, false, false}, Way{"pageable, waited for", true, true, false, false},
        Way{"pageable, waited for, stream and event destroyed", true, true, true, false},
        Way{"page-locked", false, false, false, false}, Way{"page-locked, waited for", false, true, false, false},
        Way{"pageable, waited for, all destroyed, asked after", true, true, true, true}}) {
    std::fflush(stdout);
    if (const pid_t child = fork(); child == 0) {
      std::vector<char*> litter(64, nullptr);
      MUST(cuInit(0));
      for (int n = 0; n < rounds; ++n) one_round(way, litter);
      std::printf("{\"way\": \"%s\", \"rounds\": %d}\n", way.name, rounds);
      std::fflush(stdout);
      std::_Exit(0);
    }
    int status = 0;
    wait(&status);
    if (status == 0) continue;
    ++failed;
    std::printf("{\"way\": \"%s\", \"ended_by\": %d}\n", way.name,
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  }
  return failed == 0 ? 0 : 1;
}
