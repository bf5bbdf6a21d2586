// A libnccl.so.2 without a GPU, over the fake CUDA driver: its kernels are host functions in the fake's streams, and its network
// is memory that the ranks' processes share. As in the real one, who waits for a rank that does not come waits until abort.
//
// Who calls this : the library, which finds it by LD_LIBRARY_PATH; tests count its calls by fake_nccl_launches(), and its
//                  communicators that are not aborted by fake_nccl_living().
// Threads        : as the real one: one at a time per communicator, beside its own.
// Ownership      : communicators are kept after their end and know it, so that using a dead one ends the process.
// Errors         : those of the real library, as its codes.
//
// Variables, read at each use, of this process or, as "RANK:VALUE", of that rank of the communicator alone:
//   FAKE_NCCL_VERSION (22703)  what ncclGetVersion tells
//   FAKE_NCCL_INIT    fail: making a communicator fails after a while; refuse: at once; hang: it waits for ever
//   FAKE_NCCL_SPLIT   the same of splitting one off
//   FAKE_NCCL_CONNECT_MS (0)  how long the first call of a shape takes to come where it waits for the others, on one that may wait
//   FAKE_NCCL_LAUNCH  the number, from 1, of the call that fails when it is handed over
//   FAKE_NCCL_LATE    the same for a call that fails in NCCL's own thread, after it was taken
//   FAKE_NCCL_DELAY_US (100)  most time that a hand-over takes, and a kernel
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "collective/nccl_api.hpp"

namespace fake_nccl {

using ist::nccl::Code;
using ist::nccl::Operation;
using ist::nccl::Type;
using ist::nccl::UniqueId;

constexpr int kMostRanks = 16;

// In memory that all processes map.
struct Shared {
  struct Rank {
    std::atomic<int> joined{0};
    std::atomic<int> process{0};
    std::atomic<int> descriptor{0};  // of what it gives to the others
    std::atomic<std::uint64_t> given{0};
    std::atomic<std::uint64_t> taken{0};
    std::atomic<std::uint64_t> connected{0};  // shapes of calls, on a communicator that waits
  };
  Rank ranks[kMostRanks];
};

// Names the process and descriptor of the shared memory.
struct Ticket {
  std::uint64_t magic = 0;
  std::int32_t process = 0;
  std::int32_t descriptor = -1;
  std::int32_t of_child = -1;  // the same for the communicator that is split off
};

struct Call {
  enum class What { all_reduce, reduce, broadcast, all_gather, reduce_scatter, exchange };
  What what = What::all_reduce;
  const void* send = nullptr;
  void* recv = nullptr;
  std::size_t count = 0;
  Type type = Type::uint8;
  Operation operation = Operation::sum;
  int root = 0;
};

// One rank's side of the wire; both wait for the others, and give up when `aborted` says so.
class Wire {
 public:
  Wire(Shared* shared, int rank, int ranks, const std::atomic<bool>& aborted);
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  bool join();
  // Before the first call of a shape: when all ranks are here.
  bool connect();
  // Does the call with everybody's input; false: aborted.
  bool run(const Call& call);

 private:
  bool wait_for(const std::atomic<std::uint64_t>& word, std::uint64_t value) const;
  void give(const std::byte* bytes, std::size_t size);
  void combine(const Call& call, std::size_t first, std::size_t count, std::byte* into) const;

  Shared* shared_;
  int rank_;
  int ranks_;
  const std::atomic<bool>& aborted_;
  int descriptor_ = -1;
  std::uint64_t round_ = 0;
  std::uint64_t connected_ = 0;
  // During a call, by rank.
  const std::byte* inputs_[kMostRanks] = {};
};

std::size_t size_of(Type type);

}  // namespace fake_nccl
