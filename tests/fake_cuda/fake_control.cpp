#include "fake_cuda.h"

#include <algorithm>
#include <string_view>

#include "fake_world.hpp"

using fake::Lock;
using fake::world;

void fake_cuda_reset(void) {
  auto& w = world();
  Lock lock(w.lock);
  fake::wait_for_all(lock);
  w.initialised = false;
  w.failures.clear();
  w.calls.clear();
}

void fake_cuda_delay(unsigned most_us) {
  const Lock lock(world().lock);
  world().delay_us = most_us;
}

void fake_cuda_fail(const char* call, int skip, int result) {
  const Lock lock(world().lock);
  world().failures.emplace(call, fake::Failure{skip, static_cast<CUresult>(result)});
}

void fake_cuda_heal(void) {
  const Lock lock(world().lock);
  world().failures.clear();
}

uint64_t fake_cuda_calls(const char* call) {
  const Lock lock(world().lock);
  const auto found = world().calls.find(std::string_view(call));
  return found == world().calls.end() ? 0 : found->second;
}

void fake_cuda_note(int on) {
  const Lock lock(world().lock);
  world().notes = on != 0;
  world().noted.clear();
}

int fake_cuda_noted(int number, const char** call, const void** of) {
  const Lock lock(world().lock);
  const auto at = static_cast<std::size_t>(number);
  if (number < 0 || at >= world().noted.size()) return 0;
  *call = world().noted[at].call;
  *of = world().noted[at].of;
  return 1;
}

int fake_cuda_count(const char* what) {
  auto& w = world();
  const Lock lock(w.lock);
  const std::string_view name = what;
  const auto alive = [](CUcontext context) { return !context->destroyed; };
  if (name == "contexts") return static_cast<int>(std::count_if(w.contexts.begin(), w.contexts.end(), alive));
  if (name == "events") return w.live_events;
  if (name == "allocations") return static_cast<int>(w.allocations.size());
  if (name == "pools") return w.live_pools;
  if (name == "captures") return static_cast<int>(w.captures.size());
  int streams = 0;
  for (CUcontext context : w.contexts) {
    for (CUstream stream : context->streams) streams += !stream->destroyed && !stream->legacy;
  }
  return streams;
}

void fake_cuda_bad_kernel(void* stream) {
  const Lock lock(world().lock);
  CUstream found = nullptr;
  if (fake::resolve(static_cast<CUstream>(stream), found) != CUDA_SUCCESS) return;
  fake::enqueue(found, [found] {
    const Lock inner(world().lock);
    found->context->lost = CUDA_ERROR_ILLEGAL_ADDRESS;
  });
}

void* fake_cuda_bytes(uint64_t address) {
  const Lock lock(world().lock);
  return fake::find(address) == nullptr ? nullptr : fake::place(address, 1);
}
