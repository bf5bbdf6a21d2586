// Copies and fills, in stream order.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>

#include "fake_world.hpp"

using fake::Lock;
using fake::world;

namespace {

// Pageable host memory: the driver stages it. Reading waits for everything before it; a small write is taken at once.
bool pageable(std::uint64_t address) { return fake::find(address) == nullptr; }

constexpr std::size_t kTakenAtOnce = 65536;

CUresult copy_pageable_in(Lock& lock, CUstream stream, std::byte* to, const std::byte* from, std::size_t size) {
  if (size <= kTakenAtOnce) {
    auto taken = std::make_shared<std::vector<std::byte>>(from, from + size);
    fake::enqueue(stream, [to, taken] { std::memcpy(to, taken->data(), taken->size()); });
    return CUDA_SUCCESS;
  }
  fake::enqueue(stream, [=] { std::memcpy(to, from, size); });
  fake::wait_for(lock, stream);
  return stream->context->lost;
}

}  // namespace

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream handle) {
  FAKE_ENTER(cuMemcpyAsync);
  Lock lock(world().lock);
  CUstream stream = nullptr;
  if (const CUresult result = fake::resolve(handle, stream); result != CUDA_SUCCESS) return result;
  if (size == 0) return CUDA_SUCCESS;
  std::byte* target = fake::place(to, size);
  const std::byte* source = fake::place(from, size);
  if (target == nullptr || source == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (pageable(from)) return copy_pageable_in(lock, stream, target, source, size);
  fake::enqueue(stream, [=] { std::memmove(target, source, size); });
  if (pageable(to)) fake::wait_for(lock, stream);
  return stream->context->lost;
}

CUresult cuStreamWriteValue32_v2(CUstream handle, CUdeviceptr to, cuuint32_t value, unsigned flags) {
  FAKE_ENTER(cuStreamWriteValue32_v2);
  const Lock lock(world().lock);
  CUstream stream = nullptr;
  if (const CUresult result = fake::resolve(handle, stream); result != CUDA_SUCCESS) return result;
  std::byte* target = fake::place(to, sizeof value);
  if (target == nullptr || pageable(to) || to % sizeof value != 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  fake::enqueue(stream,
                [=] { std::atomic_ref(*reinterpret_cast<cuuint32_t*>(target)).store(value, std::memory_order_release); });
  return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t size, CUstream handle) {
  FAKE_ENTER(cuMemsetD8Async);
  const Lock lock(world().lock);
  CUstream stream = nullptr;
  if (const CUresult result = fake::resolve(handle, stream); result != CUDA_SUCCESS) return result;
  std::byte* target = fake::place(to, size);
  if (target == nullptr || pageable(to)) return CUDA_ERROR_INVALID_VALUE;
  fake::enqueue(stream, [=] { std::memset(target, value, size); });
  return CUDA_SUCCESS;
}
