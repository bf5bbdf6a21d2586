#include <cuda_runtime.h>

#include "heap_kernels.hpp"
#include "heap_kernels_run.cuh"
#include "isthmus/device/crew.cuh"
#include "isthmus/device/host_words.cuh"

namespace heap_kernels {
namespace {

// Every thread adds to the words of every PE, in both heaps at once: 1 to both, and from a counter of PE 0's numbers that nobody else gets.
__global__ void add_both_kernel(ist_device_view host, std::uint64_t* host_words, ist_device_view cuda,
                                std::uint64_t* cuda_words, std::uint32_t times, Result* result) {
  std::uint64_t last = 0;
  for (std::uint32_t n = 0; n < times; ++n) {
    for (int pe = 0; pe < host.team.pes; ++pe) {
      if (fails(result, atomic_add(host, &host_words[0], std::uint64_t{1}, pe, kDeadline))) return;
      atomic_add(cuda, &cuda_words[2], std::uint64_t{1}, pe);
    }
    if (n % 8 != 0) continue;
    Status status = Status::ok;
    const std::uint64_t mine = atomic_fetch_add(host, &host_words[1], std::uint64_t{1}, 0, kDeadline, &status);
    if (fails(result, status)) return;
    if (n > 0 && mine <= last) atomicAdd_system(&result->wrong, 1ULL);
    last = mine;
  }
  fails(result, quiet(host, kDeadline));
}

// Every change of both widths by the last thread of the last block, each on its own word, after which it is what it has to be; all others
// fight for a lock by comparison, and swap.
template <class T>
__device__ unsigned long long change_all(const ist_device_view& view, T* word, Status& status) {
  unsigned long long wrong = 0;
  const auto expect = [&](T found, T wanted) { wrong += status != Status::ok || found != wanted ? 1 : 0; };
  if (status == Status::ok) status = atomic_set(view, word, T{40}, view.team.pe, kDeadline);
  expect(atomic_fetch(view, word, view.team.pe, kDeadline, &status), T{40});
  expect(atomic_fetch_add(view, word, static_cast<T>(-50), view.team.pe, kDeadline, &status), T{40});
  expect(atomic_swap(view, word, T{0x0f}, view.team.pe, kDeadline, &status), static_cast<T>(-10));
  expect(atomic_fetch_or(view, word, T{0x70}, view.team.pe, kDeadline, &status), T{0x0f});
  expect(atomic_fetch_and(view, word, T{0x3c}, view.team.pe, kDeadline, &status), T{0x7f});
  expect(atomic_fetch_xor(view, word, T{0x01}, view.team.pe, kDeadline, &status), T{0x3c});
  expect(atomic_fetch_inc(view, word, view.team.pe, kDeadline, &status), T{0x3d});
  expect(atomic_compare_swap(view, word, T{0x3d}, T{1}, view.team.pe, kDeadline, &status), T{0x3e});
  expect(atomic_compare_swap(view, word, T{0x3e}, static_cast<T>(-2), view.team.pe, kDeadline, &status), T{0x3e});
  if (status == Status::ok) status = atomic_inc(view, word, view.team.pe, kDeadline);
  if (status == Status::ok) status = atomic_or(view, word, T{0}, view.team.pe, kDeadline);
  if (status == Status::ok) status = atomic_and(view, word, static_cast<T>(~T{}), view.team.pe, kDeadline);
  if (status == Status::ok) status = atomic_xor(view, word, T{0}, view.team.pe, kDeadline);
  expect(atomic_fetch(view, word, view.team.pe, kDeadline, &status), static_cast<T>(-1));
  return wrong;
}
__global__ void change_kernel(ist_device_view view, std::uint64_t* words, std::uint32_t times, Result* result) {
  const std::uint32_t me = blockIdx.x * blockDim.x + threadIdx.x;
  Status status = Status::ok;
  if (me == gridDim.x * blockDim.x - 1) {
    unsigned long long wrong = change_all(view, reinterpret_cast<std::int32_t*>(&words[16]), status);
    if (status == Status::ok) wrong += change_all(view, reinterpret_cast<std::int64_t*>(&words[17]), status);
    if (wrong != 0) atomicAdd_system(&result->wrong, wrong);
    fails(result, status);
    return;
  }
  for (std::uint32_t n = 0; n < times && status == Status::ok; ++n) {
    std::uint64_t before = atomic_fetch(view, &words[2], 0, kDeadline, &status);
    for (bool ours = false; !ours && status == Status::ok;) {
      const std::uint64_t found = atomic_compare_swap(view, &words[2], before, before + 1, 0, kDeadline, &status);
      ours = found == before;
      before = found;
    }
  }
  fails(result, status);
}

// To the right, with a word that adds or is set behind the bytes; answered by the left one's.
__global__ void signal_kernel(ist_device_view view, unsigned char* data, std::uint64_t* words, std::uint32_t epochs,
                              Result* result) {
  const Block crew;
  const int right = (view.team.pe + 1) % view.team.pes, left = (view.team.pe + view.team.pes - 1) % view.team.pes;
  unsigned char *const source = data, *const put_here = data + kRoom;
  for (std::uint32_t n = 1; n <= epochs; ++n) {
    const auto bytes = static_cast<std::uint32_t>(mixed(7, n, 0) % 4096), shift = n % 3 == 0 ? n % 16 : 0;
    fill(source, bytes, view.team.pe, n);
    if (crew.thread == 0 && n % 4 == 0) fails(result, atomic_add(view, &words[4], std::uint64_t{1}, right, kDeadline));
    Status status = put_signal(crew, view, put_here + shift, source, bytes, &words[3], n % 3 == 0 ? n : 1,
                               n % 3 == 0 ? Signal::set : Signal::add, right, kDeadline);
    if (crew.thread == 0 && status == Status::ok)
      status = wait_until(view.team, &words[3], Compare::greater_equal, std::uint64_t{n}, kDeadline);
    if (fails_together(crew, result, status)) return;
    compare(result, put_here + shift, bytes, left, n);
    // What was asked for before the signal is there behind it.
    if (crew.thread == 0 && g(view.team, &words[4], view.team.pe) != n / 4) atomicAdd_system(&result->wrong, 1ULL);
    __syncthreads();
    // The left one puts again once it was told; what it was told by is behind this fence.
    if (crew.thread == 0) {
      status = fence(view, kDeadline);
      if (status == Status::ok) status = signal(view, &words[5], 1, Signal::add, left, kDeadline);
      if (status == Status::ok)
        status = wait_until(view.team, &words[5], Compare::greater_equal, std::uint64_t{n}, kDeadline);
    }
    if (fails_together(crew, result, status)) return;
  }
  // Every thread asks, and a barrier covers all of it.
  fails(result, atomic_add(view, &words[7], std::uint64_t{1}, right, kDeadline));
  if (fails(result, barrier(crew, view, kDeadline))) return;
  if (crew.thread == 0 && g(view.team, &words[7], view.team.pe) != crew.threads) atomicAdd_system(&result->wrong, 1ULL);
}

// One thread: nanoseconds of so many that answer, one after the other, and of so many that do not, with a quiet.
__global__ void time_kernel(ist_device_view view, std::uint64_t* words, std::uint32_t times, Result* result) {
  Status status = Status::ok;
  std::uint64_t begun = 0;
  for (std::uint32_t n = 0; n < times && status == Status::ok; ++n) {
    if (n == times / 10) begun = nanoseconds();
    (void)atomic_fetch_add(view, &words[6], std::uint64_t{1}, view.team.pe, kDeadline, &status);
  }
  const std::uint64_t between = nanoseconds();
  result->first_ns = static_cast<long long>(between - begun) / (times - times / 10);
  for (std::uint32_t n = 0; n < times && status == Status::ok; ++n)
    status = atomic_add(view, &words[6], std::uint64_t{1}, view.team.pe, kDeadline);
  if (status == Status::ok) status = quiet(view, kDeadline);
  result->second_ns = static_cast<long long>(nanoseconds() - between) / times;
  fails(result, status);
}

}  // namespace

Found add_in_both(const ist_device_view& host, std::uint64_t* host_words, const ist_device_view& cuda,
                  std::uint64_t* cuda_words, int device, std::uint32_t times) {
  return found_by(device, [&](cudaStream_t stream, Result* result, std::string&) {
    add_both_kernel<<<kAddingBlocks, kAdders, 0, stream>>>(host, host_words, cuda, cuda_words, times, result);
  });
}

Found change_in_host_heap(const ist_device_view& view, std::uint64_t* words, int device, std::uint32_t times) {
  return found_by(device, [&](cudaStream_t stream, Result* result, std::string&) {
    change_kernel<<<2, 33, 0, stream>>>(view, words, times, result);
  });
}

Found signal_in_host_heap(const ist_device_view& view, unsigned char* data, std::uint64_t* words, int device,
                          std::uint32_t epochs) {
  return found_by(device, [&](cudaStream_t stream, Result* result, std::string&) {
    signal_kernel<<<1, 128, 0, stream>>>(view, data, words, epochs, result);
  });
}

Found time_in_host_heap(const ist_device_view& view, std::uint64_t* words, int device, std::uint32_t times) {
  return found_by(device, [&](cudaStream_t stream, Result* result, std::string&) {
    time_kernel<<<1, 1, 0, stream>>>(view, words, times, result);
  });
}

}  // namespace heap_kernels
