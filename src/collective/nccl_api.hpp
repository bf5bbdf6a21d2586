// NCCL as a table of functions, found at run time. The only file that touches the vendor's library.
//
// Who calls this : the other nccl_* files; cli/ for `isthmus info`.
// Threads        : a table is read-only once loaded.
// Ownership      : the library stays loaded until the process ends.
// Errors         : load_nccl_api says in one line what is missing and what would help.
//
// Its interface is declared here as far as it is used, so that nothing of the vendor's is needed to build: names, values and
// the configuration are those of NCCL 2.18, which later versions keep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.hpp"

namespace ist::nccl {

struct CommObject;
using Comm = CommObject*;
using Stream = void*;  // cudaStream_t, which is a CUstream

struct UniqueId {
  char bytes[128];
};

enum class Code : int { success = 0, invalid_argument = 4, in_progress = 7 };
enum class Operation : int { sum = 0, product = 1, maximum = 2, minimum = 3 };
enum class Type : int {
  int8 = 0,
  uint8 = 1,
  int32 = 2,
  uint32 = 3,
  int64 = 4,
  uint64 = 5,
  float16 = 6,
  float32 = 7,
  float64 = 8,
  bfloat16 = 9
};

// ncclConfig_t of 2.18; NCCL reads as much of it as `size` says.
struct Config {
  static constexpr int kUndefined = -2147483647 - 1;
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21800;
  int blocking = 0;
  int cga_cluster_size = kUndefined;
  int min_ctas = kUndefined;
  int max_ctas = kUndefined;
  const char* net_name = nullptr;
  int split_share = kUndefined;
};

// The oldest that takes this configuration.
inline constexpr int kOldest = 21800;

struct Api {
  std::string file;  // where the loader found it
  int version = 0;   // 21803 is 2.18.3
  Code (*ncclGetVersion)(int* version) = nullptr;
  const char* (*ncclGetErrorString)(Code code) = nullptr;
  const char* (*ncclGetLastError)(Comm comm) = nullptr;
  Code (*ncclGetUniqueId)(UniqueId* id) = nullptr;
  Code (*ncclCommInitRankConfig)(Comm* comm, int ranks, UniqueId id, int rank, Config* config) = nullptr;
  Code (*ncclCommSplit)(Comm comm, int color, int key, Comm* made, Config* config) = nullptr;
  Code (*ncclCommGetAsyncError)(Comm comm, Code* error) = nullptr;
  Code (*ncclCommAbort)(Comm comm) = nullptr;
  Code (*ncclGroupStart)() = nullptr;
  Code (*ncclGroupEnd)() = nullptr;
  Code (*ncclAllReduce)(const void* send, void* recv, std::size_t count, Type type, Operation operation, Comm comm,
                        Stream stream) = nullptr;
  Code (*ncclReduce)(const void* send, void* recv, std::size_t count, Type type, Operation operation, int root, Comm comm,
                     Stream stream) = nullptr;
  Code (*ncclBroadcast)(const void* send, void* recv, std::size_t count, Type type, int root, Comm comm,
                        Stream stream) = nullptr;
  Code (*ncclAllGather)(const void* send, void* recv, std::size_t send_count, Type type, Comm comm, Stream stream) = nullptr;
  Code (*ncclReduceScatter)(const void* send, void* recv, std::size_t recv_count, Type type, Operation operation, Comm comm,
                            Stream stream) = nullptr;
  Code (*ncclSend)(const void* buffer, std::size_t count, Type type, int peer, Comm comm, Stream stream) = nullptr;
  Code (*ncclRecv)(void* buffer, std::size_t count, Type type, int peer, Comm comm, Stream stream) = nullptr;

  // "2.18.3"
  std::string version_text() const;
  // NCCL's own words for what happened last.
  std::string words(Code code, Comm comm) const;
};

Result<Api> load_api(const std::string& file);

}  // namespace ist::nccl
