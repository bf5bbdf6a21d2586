// The resident worker on the fake memory: the very code that a device runs, with one thread.
#include <cstring>

#include "fake_channel.hpp"
#include "memory/cuda/worker_protocol.hpp"

namespace fake {
namespace {

struct Unreachable {};

struct WorkerCrew {
  CUcontext context;
  unsigned thread = 0;
  unsigned threads = 1;
  void barrier() const {}
  bool any(bool value) const { return value; }
  template <class T>
  T first(const T& value) const {
    return value;
  }
  std::byte* reach(std::uint64_t address, std::uint64_t size) const {
    const Lock lock(world().lock);
    const Allocation* found = find(address);
    const bool own = found != nullptr && (found->context == context || found->context == nullptr);
    std::byte* const there = own ? place(address, size) : nullptr;
    // Of a lost context no kernel goes on.
    if (there == nullptr || context->lost != CUDA_SUCCESS) throw Unreachable{};
    return there;
  }
};

}  // namespace

bool worker_kernel(std::string_view name) { return name == "isthmus_worker"; }

std::function<void()> worker_work(CUcontext context, const void* argument) {
  ist::worker::Work work;
  std::memcpy(&work, argument, sizeof work);
  if (work.board == nullptr) return [] {};
  return [context, work] {
    try {
      ist::worker::run(WorkerCrew{context}, work);
    } catch (const Unreachable&) {
      const Lock lock(world().lock);
      if (context->lost == CUDA_SUCCESS) context->lost = CUDA_ERROR_ILLEGAL_ADDRESS;
    }
  };
}

}  // namespace fake
