// The kernels by which in_kernel.cu compares every byte before anything is timed: data that says which epoch it is of, and delays that
// differ by thread and epoch.
//
// Who calls this : in_kernel.cu, one launch for each of two PEs, at once; in_kernel_team.cu for what they begin with.
// Threads        : one block, or a grid.
// Ownership      : none.
// Errors         : counted in Result; a wait ends after kDeadline.
#pragma once

#include <new>

#include "isthmus/device.cuh"
#include "isthmus/device/bulk.cuh"

using namespace ist::device;

constexpr std::uint64_t kDeadline = 4000000000;  // ns
constexpr std::uint64_t kRoom = 128 << 10;       // each of the areas behind the synchronisation area

// Mapped host memory.
struct Result {
  unsigned long long wrong;
  unsigned long long first;  // epoch + 1
  long long nanoseconds;
  int status;
};

struct Side {
  ist_team_view view;
  Result* result;
  std::uint32_t iterations;
  std::uint32_t sequence;  // the last one that was used
  std::uint32_t bytes;
  __device__ int other() const { return 1 - view.pe; }
  __device__ unsigned char* area(int n) const { return part_of(view, view.pe) + view.sync + view.sync_bytes + n * kRoom; }
};

__device__ __forceinline__ std::uint64_t mixed(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15U ^ b * 0xbf58476d1ce4e5b9U ^ c * 0x94d049bb133111ebU;
  x ^= x >> 31;
  x *= 0xff51afd7ed558ccdU;
  return x ^ x >> 29;
}
__device__ __forceinline__ unsigned char byte_of(int pe, std::uint32_t epoch, std::uint32_t at) {
  return static_cast<unsigned char>(mixed(pe + 1, epoch, at));
}
__device__ __forceinline__ void dawdle(int pe, std::uint32_t epoch) {
  const std::uint64_t dice = mixed(pe + 7, epoch, threadIdx.x + 1000 * blockIdx.x);
  if (dice % 64 == 0) __nanosleep(static_cast<unsigned>(dice >> 40) % 4000);
}
__device__ __forceinline__ void count_wrong(const Side& side, std::uint32_t epoch) {
  if (atomicAdd_system(&side.result->wrong, 1ULL) == 0) side.result->first = epoch + 1ULL;
}
__device__ __forceinline__ bool fails(const Side& side, Status status) {
  if (status != Status::ok) side.result->status = static_cast<int>(status);
  return status != Status::ok;
}
// Odd sizes and odd addresses among them.
__device__ __forceinline__ std::uint32_t size_of(std::uint32_t epoch, std::uint32_t most) {
  const std::uint64_t dice = mixed(99, epoch, 0);
  const std::uint32_t bound = dice % 8 == 0 ? most : dice % 8 < 4 ? 64 : 600;
  return static_cast<std::uint32_t>(dice >> 20) % (bound + 1);
}
__device__ __forceinline__ std::uint32_t shift_of(std::uint32_t epoch) {
  const std::uint64_t dice = mixed(98, epoch, 0);
  return dice % 2 == 0 ? 0 : static_cast<std::uint32_t>(dice >> 8) % 16;
}
// All blocks of a grid, too; one that did not come would be missed in what is compared next.
template <class Crew>
__device__ __forceinline__ void meet(const Crew& crew, const Side& side) {
  (void)agreed(crew, side.view, Status::ok, kDeadline);
}
// By all threads of the crew, which meet afterwards.
template <class Crew>
__device__ __forceinline__ void fill(const Crew& crew, const Side& side, unsigned char* to, std::uint32_t bytes,
                                     std::uint32_t epoch) {
  for (std::uint32_t i = thread_of(crew); i < bytes; i += threads_of(crew)) to[i] = byte_of(side.view.pe, epoch, i);
  meet(crew, side);
}
// By other threads than those that have copied or received it.
template <class Crew>
__device__ __forceinline__ void compare(const Crew& crew, const Side& side, const unsigned char* found, std::uint32_t bytes,
                                        int pe, std::uint32_t epoch) {
  for (std::uint32_t i = threads_of(crew) - 1 - thread_of(crew); i < bytes; i += threads_of(crew))
    if (const_cast<const volatile unsigned char*>(found)[i] != byte_of(pe, epoch, i)) count_wrong(side, epoch);
}

// Both send, then both receive; or, `one_way`, PE 0 sends and PE 1 receives, and nothing but the credit holds it back. Most by one
// Channel, some by calls of their own in between.
template <class Crew, Reuse kReuse, bool kOneWay>
__global__ void check_packets(Side side) {
  const Crew crew;
  const int channel = side.bytes > kShortest ? 0 : kOneWay ? 3 : 2;
  Channel<Crew, kReuse> lasting(crew, side.view, side.other(), channel);
  unsigned char* const source = side.area(0);
  unsigned char* const found = side.area(1);
  for (std::uint32_t n = 1; n <= side.iterations; ++n) {
    const std::uint32_t epoch = side.sequence + n;
    const std::uint32_t bytes = size_of(epoch, side.bytes), shift = shift_of(epoch);
    const bool alone = epoch % 5 == 0;
    if (!kOneWay || side.view.pe == 0) {
      fill(crew, side, source + shift, bytes, epoch);
      dawdle(side.view.pe, epoch);
      if (fails(side, alone ? send<kReuse>(crew, side.view, side.other(), channel, source + shift, bytes, epoch, kDeadline)
                            : lasting.send(source + shift, bytes, epoch, kDeadline)))
        return;
    }
    if (!kOneWay || side.view.pe == 1) {
      dawdle(side.view.pe + 2, epoch);
      if (fails(side, alone ? receive<kReuse>(crew, side.view, side.other(), channel, found + shift, bytes, epoch, kDeadline)
                            : lasting.receive(found + shift, bytes, epoch, kDeadline)))
        return;
      compare(crew, side, found + shift, bytes, side.other(), epoch);
      meet(crew, side);
    }
  }
}

// PE 0 puts, and spoils what it has put; PE 1 compares and answers with its own.
template <class Crew>
__global__ void check_put_signal(Side side) {
  const Crew crew;
  auto* const signal_word = reinterpret_cast<std::uint64_t*>(side.area(4));
  for (std::uint32_t n = 1; n <= side.iterations; ++n) {
    const std::uint32_t bytes = size_of(n, side.bytes), shift = shift_of(n);
    for (int turn = 0; turn < 2; ++turn) {
      if (turn == side.view.pe) {
        fill(crew, side, side.area(0) + shift, bytes, n);
        dawdle(side.view.pe, n);
        if (fails(side, put_signal(crew, side.view, side.area(1) + shift_of(n + 1), side.area(0) + shift, bytes, signal_word,
                                   1, Signal::add, side.other(), kDeadline)))
          return;
        for (std::uint32_t i = thread_of(crew); i < bytes; i += threads_of(crew)) side.area(0)[shift + i] = 0x5a;
      } else {
        Status status = Status::ok;
        if (is_first(crew))
          status = wait_until(side.view, signal_word, Compare::equal, std::uint64_t{n} + side.sequence, kDeadline);
        if (fails(side, agreed(crew, side.view, status, kDeadline))) return;
        compare(crew, side, side.area(1) + shift_of(n + 1), bytes, side.other(), n);
        meet(crew, side);
      }
    }
  }
}

// The same by one thread and its copy unit, in pieces that the sizes end in, while the block's other threads wait; what was put goes back by a get, into a third
// place whose bytes around it stay what they are.
__global__ void check_bulk(Side side) {
  using Room = BulkRoom<1024, 3>;
  __shared__ Room room;
  const Block crew;
  auto* const signal_word = reinterpret_cast<std::uint64_t*>(side.area(4) + 6144);
  std::uint64_t made[sizeof(Bulk<Room>) / 8 + 1];
  auto* const bulk = reinterpret_cast<Bulk<Room>*>(made);
  if (crew.thread == 0) new (bulk) Bulk<Room>(room);
  for (std::uint32_t n = 1; n <= side.iterations; ++n) {
    // Another object in the same room.
    if (crew.thread == 0 && n % 50 == 0) bulk->~Bulk<Room>(), new (bulk) Bulk<Room>(room);
    // Whole pieces, and one byte or one unit more and less, too.
    const std::uint32_t beside[] = {0, 1, 1024, 15, 16, 2048, 17, 1008};
    const std::uint32_t bytes = n % 3 == 0 ? n % 5 * 1024 + beside[n % 8] : size_of(n, side.bytes), shift = shift_of(n);
    const std::uint32_t there = n % 4 == 0 ? shift_of(n + 1) : shift;
    for (int turn = 0; turn < 2; ++turn) {
      if (turn == side.view.pe) {
        fill(crew, side, side.area(0) + shift, bytes, n);
        for (std::uint32_t i = crew.thread; i < bytes + 32; i += crew.threads) side.area(2)[i] = 0xa5;
        __syncthreads();
        dawdle(side.view.pe, n);
        if (crew.thread == 0) {
          bulk->put_signal(side.view, side.area(1) + there, side.area(0) + shift, bytes, signal_word, 1, Signal::add,
                           side.other());
          bulk->get(side.view, side.area(2) + there, side.area(1) + there, bytes, side.other());
        }
        __syncthreads();
        compare(crew, side, side.area(2) + there, bytes, side.view.pe, n);
        for (std::uint32_t i = crew.thread; i < 32; i += crew.threads)
          if (side.area(2)[i < there ? i : bytes + i] != 0xa5) count_wrong(side, n);
        __syncthreads();
      } else {
        Status status = Status::ok;
        if (crew.thread == 0) status = wait_until(side.view, signal_word, Compare::equal, std::uint64_t{n}, kDeadline);
        if (fails(side, agreed(crew, status))) return;
        compare(crew, side, side.area(1) + there, bytes, side.other(), n);
        __syncthreads();
      }
    }
  }
}

// Planes that say which epoch they are of, put into the other's memory; a barrier; compared. Two planes: the next but one is put after
// the next barrier, before which this one was compared.
template <class Crew>
__global__ void check_barrier(Side side) {
  const Crew crew;
  const std::uint32_t words = 64;
  for (std::uint32_t n = 1; n <= side.iterations; ++n) {
    auto* const plane = reinterpret_cast<std::uint64_t*>(side.area(2)) + n % 2 * 8192;
    std::uint64_t* const theirs = peer_ptr(side.view, plane, side.other());
    dawdle(side.view.pe, n);
    for (std::uint32_t i = threadIdx.x; i < words; i += blockDim.x)
      theirs[crew.block * words + i] = mixed(side.view.pe, n, crew.block * words + i);
    // An object of its own each time: its number is read from the area.
    if (fails(side, barrier(crew, side.view, kDeadline))) return;
    // Another block's plane than the own one's.
    const std::uint32_t block = (crew.block + 1) % crew.blocks;
    for (std::uint32_t i = threadIdx.x; i < words; i += blockDim.x)
      if (const_cast<volatile std::uint64_t*>(plane)[block * words + i] != mixed(side.other(), n, block * words + i))
        count_wrong(side, n);
  }
}

// Every thread of both PEs adds to PE 0's word, and PE 1's is exchanged under a lock by comparison.
__global__ void check_atomics(Side side) {
  auto* const sum = reinterpret_cast<std::uint32_t*>(side.area(4) + 1024);
  auto* const locked = reinterpret_cast<std::uint64_t*>(side.area(4) + 2048);
  auto* const bits = reinterpret_cast<std::uint64_t*>(side.area(4) + 3072);
  for (std::uint32_t n = 0; n < side.iterations; ++n) {
    if (n % 2 == 0)
      atomic_inc(side.view, sum, 0);
    else
      (void)atomic_fetch_add(side.view, sum, 1U, 0);
    std::uint64_t before = atomic_fetch(side.view, locked, 1), found;
    while ((found = atomic_compare_swap(side.view, locked, before, before + 1, 1)) != before) before = found;
  }
  if (threadIdx.x < 32) atomic_or(side.view, bits, std::uint64_t{1} << (threadIdx.x + 32 * side.view.pe), 0);
}

// Sums of whole numbers, a broadcast, and blocks for all.
template <class Crew>
__global__ void check_calls(Side side) {
  const Crew crew;
  Calls<Crew> calls(crew, side.view);
  auto* const mine = reinterpret_cast<std::int32_t*>(side.area(0));
  auto* const all = reinterpret_cast<std::int32_t*>(side.area(1));
  for (std::uint32_t n = 1; n <= side.iterations; ++n) {
    const std::uint32_t count = 2 * (1 + size_of(n, 1999) / 8);
    const auto value = [&](int pe, std::uint32_t i) { return static_cast<std::int32_t>(mixed(pe, n, i) % 100000) - 50000; };
    for (std::uint32_t i = thread_of(crew); i < count; i += threads_of(crew)) mine[i] = value(side.view.pe, i);
    meet(crew, side);
    dawdle(side.view.pe, n);
    Status status = Status::ok;
    if (n % 3 == 0) status = calls.template allreduce<Sum>(all, mine, count, kDeadline);
    if (n % 3 == 1) status = calls.broadcast(all, mine, count * 4, n / 3 % 2, kDeadline);
    if (n % 3 == 2) status = calls.alltoall(all, mine, count * 2, kDeadline);
    if (fails(side, status)) return;
    for (std::uint32_t i = threads_of(crew) - 1 - thread_of(crew); i < count; i += threads_of(crew)) {
      mine[i] = -1;  // all have read it
      std::int32_t wanted = value(0, i) + value(1, i);
      if (n % 3 == 1) wanted = value(n / 3 % 2, i);
      if (n % 3 == 2) wanted = value(i < count / 2 ? 0 : 1, i % (count / 2) + (side.view.pe == 1 ? count / 2 : 0));
      if (const_cast<const volatile std::int32_t*>(all)[i] != wanted) count_wrong(side, n);
    }
    meet(crew, side);
  }
}

// Waits for what never comes: until the deadline, or until the host sets the abort word.
__global__ void wait_in_vain(Side side, std::uint64_t deadline) {
  const std::uint64_t begun = nanoseconds();
  const Status status = wait_until(side.view, reinterpret_cast<std::uint64_t*>(side.area(4) + 4096), Compare::not_equal,
                                   std::uint64_t{0}, deadline);
  side.result->nanoseconds = static_cast<long long>(nanoseconds() - begun);
  side.result->status = static_cast<int>(status);
}

// A message that never comes whole: the first thread has its unit, the others are late, and all learn it; after that they meet as before.
// Without a deadline they wait for the abort word.
__global__ void receive_in_vain(Side side, std::uint64_t deadline) {
  const Grid crew;
  const std::uint32_t sequence = side.sequence + 1;
  if (is_first(crew))
    store_relaxed(slot_of(side.view, side.view.pe, side.other(), 1, sequence), packed(number_of(sequence), 7));
  const std::uint64_t begun = nanoseconds();
  const Status status = receive(crew, side.view, side.other(), 1, side.area(1), threads_of(crew) * 8, sequence, deadline);
  const std::uint64_t ended = nanoseconds();
  if (status != (deadline != 0 ? Status::late : Status::peer_dead)) count_wrong(side, sequence);
  if (deadline != 0 && agreed(crew, side.view, Status::ok, kDeadline) != Status::ok) count_wrong(side, sequence);
  if (!is_first(crew)) return;
  side.result->nanoseconds = static_cast<long long>(ended - begun);
  side.result->status = static_cast<int>(status);
}

// ---- what both programs time ----

__device__ bool begins_to_count(const Side& side, std::uint32_t n) { return n == side.iterations / 10; }
__device__ void report(const Side& side, bool went, std::uint64_t begun) {
  if (threadIdx.x != 0 || blockIdx.x != 0) return;
  side.result->nanoseconds = static_cast<long long>(nanoseconds() - begun);
  if (!went) side.result->status = 2;
}
// Every iteration; the first tenth warms up. `step` says whether it went well.
template <class Step>
__device__ __forceinline__ void timed(const Side& side, const Step& step) {
  std::uint64_t begun = 0;
  bool went = true;
  for (std::uint32_t n = 1; n <= side.iterations && went; ++n) {
    if (begins_to_count(side, n)) begun = nanoseconds();
    went = step(n);
  }
  report(side, went, begun);
}

template <class Crew, Order kOrder>
__global__ void barriers(Side side) {
  Meeting<Crew> meeting(Crew(), side.view);
  timed(side, [&](std::uint32_t) { return meeting.template meet<kOrder>(kDeadline) == Status::ok; });
}
