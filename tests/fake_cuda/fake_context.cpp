// Contexts: primary ones, created ones, and each thread's stack of current ones.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "fake_world.hpp"

using fake::context_stack;
using fake::current;
using fake::Lock;
using fake::world;

namespace fake {

CUcontext make_context(CUdevice device, bool primary) {
  World& w = world();
  auto* context = new CUctx_st;
  context->device = device;
  context->id = w.next_id++;
  context->primary = primary;
  context->legacy = make_stream(context, false);
  context->legacy->legacy = true;
  w.contexts.push_back(context);
  return context;
}

namespace {
void destroy(Lock& lock, CUcontext context) {
  wait_for_all(lock);
  context->destroyed = true;
  for (CUstream stream : context->streams) {
    stream->destroyed = true;
    stream->wake.notify_all();
  }
  for (CUevent event : world().events) {
    if (event->context == context && !event->destroyed) --world().live_events;
  }
  std::vector<std::uint64_t> dead;
  for (const auto& [start, allocation] : world().allocations) {
    if (allocation.context == context) dead.push_back(start);
  }
  for (const std::uint64_t start : dead) forget(start);
}
}  // namespace

}  // namespace fake

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  FAKE_ENTER(cuDevicePrimaryCtxRetain);
  auto& w = world();
  const Lock lock(w.lock);
  if (device < 0 || device >= w.devices) return CUDA_ERROR_INVALID_DEVICE;
  auto& [handle, owners] = w.primary[device];
  if (owners++ == 0) handle = fake::make_context(device, true);
  *context = handle;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  FAKE_ENTER(cuDevicePrimaryCtxRelease_v2);
  auto& w = world();
  Lock lock(w.lock);
  const auto found = w.primary.find(device);
  if (found == w.primary.end() || found->second.second == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--found->second.second == 0) fake::destroy(lock, found->second.first);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  FAKE_ENTER(cuDevicePrimaryCtxGetState);
  auto& w = world();
  const Lock lock(w.lock);
  if (device < 0 || device >= w.devices) return CUDA_ERROR_INVALID_DEVICE;
  *flags = 0;
  *active = w.primary[device].second > 0 ? 1 : 0;
  return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext* context, unsigned, CUdevice device) {
  FAKE_ENTER(cuCtxCreate_v2);
  const Lock lock(world().lock);
  if (device < 0 || device >= world().devices) return CUDA_ERROR_INVALID_DEVICE;
  *context = fake::make_context(device, false);
  context_stack().push_back(*context);
  return CUDA_SUCCESS;
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  FAKE_ENTER(cuCtxDestroy_v2);
  Lock lock(world().lock);
  if (context == nullptr || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  if (context->destroyed) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  fake::destroy(lock, context);
  if (current() == context) context_stack().pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  FAKE_ENTER(cuCtxPushCurrent_v2);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (context->destroyed) {
    // A real one takes it, and frees it a second time when it is popped.
    std::fprintf(stderr, "fake driver: cuCtxPushCurrent was given a context that has been destroyed\n");
    std::abort();
  }
  context_stack().push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  FAKE_ENTER(cuCtxPopCurrent_v2);
  if (context_stack().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context != nullptr) *context = context_stack().back();
  context_stack().pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  FAKE_ENTER(cuCtxSetCurrent);
  if (!context_stack().empty()) context_stack().pop_back();
  if (context != nullptr) context_stack().push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  FAKE_ENTER(cuCtxGetCurrent);
  *context = current();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  FAKE_ENTER(cuCtxGetDevice);
  const Lock lock(world().lock);
  if (current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *device = current()->device;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  FAKE_ENTER(cuCtxGetId);
  const Lock lock(world().lock);
  if (context == nullptr) context = current();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (context->destroyed) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  *id = context->id;
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void) {
  FAKE_ENTER_UNSAFE(cuCtxSynchronize);
  Lock lock(world().lock);
  if (current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  for (CUstream stream : std::vector<CUstream>(current()->streams)) fake::wait_for(lock, stream);
  return fake::usable(current());
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned) {
  FAKE_ENTER(cuCtxEnablePeerAccess);
  const Lock lock(world().lock);
  if (peer == nullptr || current() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const bool refused = fake::link(current()->device, fake::physical(peer->device)) == fake::Link::refused;
  return refused ? CUDA_ERROR_PEER_ACCESS_UNSUPPORTED : CUDA_SUCCESS;
}
