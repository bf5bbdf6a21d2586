// The kernels of channels, of meetings and the worker's on the fake memory: the very code that a device runs, one thread to a block and
// block after block.
//
// Who calls this : fake_kernel.cpp.
// Threads        : prepare() under the lock; what it gives is run by a stream, without the lock.
// Ownership      : none.
// Errors         : no work: the kernel would touch what it cannot reach.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "fake_world.hpp"
#include "memory/reduction.hpp"

namespace fake {

// Its place in the list of such kernels; none: another kernel.
std::optional<int> channel_kernel(std::string_view name);
// What that kernel does in that context, given its argument.
std::optional<std::function<void()>> channel_work(int kernel, CUcontext context, unsigned blocks, const void* argument);

// The same of the benchmark's limits (fake_limits.cpp). `argument` is null where the kernel has none.
std::optional<int> limit_kernel(std::string_view name);
std::optional<std::function<void()>> limit_work(int kernel, CUcontext context, unsigned blocks, const void* argument);

// The same of those of one-sided calls (fake_one_sided.cpp).
std::optional<int> one_sided_kernel(std::string_view name);
std::optional<std::function<void()>> one_sided_work(int kernel, CUcontext context, unsigned blocks, const void* argument);

// The same of those that pack (fake_pack.cpp).
std::optional<int> pack_kernel(std::string_view name);
enum class WordKernel : std::uint8_t { change, wait, meet, put_signal };
std::optional<WordKernel> word_kernel(std::string_view name);
std::optional<std::function<void()>> word_work(WordKernel kernel, CUcontext context, const void* argument);
std::optional<std::function<void()>> pack_work(int kernel, CUcontext context, unsigned blocks, const void* argument);

// A kernel of meetings, and what it does.
struct MeetingKernel {
  enum class What : std::uint8_t { barrier, bcast, reduce };
  What what = What::barrier;
  ist::Reduction reduction = ist::Reduction::sum;
  ist_type type = IST_BYTE;
};
std::optional<std::function<void()>> meeting_work(const MeetingKernel& kernel, CUcontext context, unsigned blocks,
                                                  const void* argument);

// The worker's kernel (fake_worker.cpp), which finds out only while it runs what it is to touch: what it cannot reach costs the context.
bool worker_kernel(std::string_view name);
std::function<void()> worker_work(CUcontext context, const void* argument);

}  // namespace fake
