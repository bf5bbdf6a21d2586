// Copies and fills, in stream order.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "fake_world.hpp"

using fake::Lock;
using fake::world;

namespace {

// Pageable host memory: the driver stages it. Reading waits for everything before it; a small write is taken at once.
bool pageable(std::uint64_t address) { return fake::find(address) == nullptr; }

constexpr std::size_t kTakenAtOnce = 65536;

// Does what goes this way come wrong?
bool spoiled(CUcontext context, std::uint64_t address) {
  const fake::Allocation* found = fake::find(address);
  if (found == nullptr || found->host() || found->physical < 0) return false;
  const bool far = found->ipc || found->physical != fake::physical(context->device);
  return far && fake::link(context->device, found->physical) == fake::Link::spoiled;
}

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

// So much from there on lies in one piece: mappings side by side are each their own.
std::size_t in_one_piece(std::uint64_t address, std::size_t size) {
  const fake::Allocation* found = fake::find(address);
  if (found == nullptr || found->kind != fake::Class::vmm) return size;
  return std::min<std::size_t>(size, found->start + found->size - address);
}

struct Part {
  std::byte* to;
  const std::byte* from;
  std::size_t size;
  bool wrong;
  CUdeviceptr to_address;
  CUdeviceptr from_address;
  unsigned slower_us = 0;
  bool watched = false;
};

// What a copy touches is in flight until it has happened; copies of a graph are put in flight by nobody.
void begin(CUstream stream, Part& part) {
  part.watched = world().strict && stream->capture == CU_STREAM_CAPTURE_STATUS_NONE;
  if (!part.watched) return;
  world().in_flight.emplace(part.to_address, part.size);
  world().in_flight.emplace(part.from_address, part.size);
}

void end(const Part& part, const Lock&) {
  if (!part.watched) return;
  auto& all = world().in_flight;
  for (const CUdeviceptr start : {part.to_address, part.from_address}) {
    const auto [first, last] = all.equal_range(start);
    all.erase(std::find_if(first, last, [&](const auto& entry) { return entry.second == part.size; }));
  }
}

void end(const Part& part) {
  if (part.watched) end(part, Lock{world().lock});
}

// Who sees that few bytes have come may free what they came from.
void move(const Part& part) {
  constexpr std::size_t kFew = 4096;
  const auto bytes = [&part] { std::memmove(part.to, part.from, part.size); };
  if (!part.watched || part.size > kFew) {
    bytes();
    return end(part);
  }
  const Lock lock(world().lock);
  bytes();
  end(part, lock);
}

// None if a part of it is nowhere.
std::vector<Part> parts_of(CUcontext context, CUdeviceptr to, CUdeviceptr from, std::size_t size) {
  std::vector<Part> parts;
  while (size > 0) {
    const std::size_t length = std::min(in_one_piece(to, size), in_one_piece(from, size));
    std::byte* target = fake::place(to, length);
    const std::byte* source = fake::place(from, length);
    if (target == nullptr || source == nullptr) return {};
    parts.push_back({target, source, length, spoiled(context, to) || spoiled(context, from), to, from});
    to += length;
    from += length;
    size -= length;
  }
  return parts;
}

CUresult copy(Lock& lock, CUdeviceptr to, CUdeviceptr from, std::size_t size, CUstream stream) {
  if (size == 0) return CUDA_SUCCESS;
  std::vector<Part> parts = parts_of(stream->context, to, from, size);
  if (parts.empty()) return CUDA_ERROR_INVALID_VALUE;
  for (Part& part : parts) {
    if (pageable(from)) {
      if (const CUresult result = copy_pageable_in(lock, stream, part.to, part.from, part.size); result != CUDA_SUCCESS)
        return result;
      continue;
    }
    begin(stream, part);
    const fake::Allocation* const into = fake::find(to);
    if (into != nullptr && into->host()) part.slower_us = world().out_us;
    const auto work = [part] {
      if (part.slower_us > 0) ::usleep(part.slower_us);
      if (part.wrong) {
        std::memmove(part.to, part.from, part.size);
        part.to[part.size / 2] = ~part.to[part.size / 2];
        return end(part);
      }
      move(part);
    };
    fake::enqueue(stream, work, {}, [part] { end(part); });
  }
  if (pageable(to)) fake::wait_for(lock, stream);
  return stream->context->lost;
}

// One side's row: where it begins.
CUdeviceptr row_at(CUdeviceptr start, std::size_t pitch, std::size_t heights, std::size_t plane, std::size_t row) {
  return start + (plane * heights + row) * pitch;
}

template <class Value>
CUresult write_value(const char* call, CUstream handle, CUdeviceptr to, Value value, unsigned flags) {
  const Lock lock(world().lock);
  CUstream stream = nullptr;
  if (const CUresult result = fake::resolve(handle, stream); result != CUDA_SUCCESS) return result;
  std::byte* target = fake::place(to, sizeof value);
  if (target == nullptr || pageable(to) || to % sizeof value != 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (call != nullptr) fake::note(call, stream);
  fake::enqueue(stream, [=] { std::atomic_ref(*reinterpret_cast<Value*>(target)).store(value, std::memory_order_release); });
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream handle) {
  FAKE_ENTER(cuMemcpyAsync);
  Lock lock(world().lock);
  CUstream stream = nullptr;
  if (const CUresult result = fake::resolve(handle, stream); result != CUDA_SUCCESS) return result;
  fake::note("cuMemcpyAsync", stream);
  return copy(lock, to, from, size, stream);
}

CUresult cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count, CUmemcpyAttributes* attributes,
                            size_t* first, size_t kinds, CUstream handle) {
  FAKE_ENTER(cuMemcpyBatchAsync_v2);
  Lock lock(world().lock);
  CUstream stream = nullptr;
  if (const CUresult result = fake::resolve(handle, stream); result != CUDA_SUCCESS) return result;
  if (stream->legacy || count == 0 || kinds != 1 || first[0] != 0 ||
      attributes[0].srcAccessOrder != CU_MEMCPY_SRC_ACCESS_ORDER_STREAM)
    return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i)
    if (sizes[i] == 0 || parts_of(stream->context, to[i], from[i], sizes[i]).empty()) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i)
    if (const CUresult result = copy(lock, to[i], from[i], sizes[i], stream); result != CUDA_SUCCESS) return result;
  return CUDA_SUCCESS;
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* rows, CUstream handle) {
  FAKE_ENTER(cuMemcpy3DAsync_v2);
  Lock lock(world().lock);
  CUstream stream = nullptr;
  if (const CUresult result = fake::resolve(handle, stream); result != CUDA_SUCCESS) return result;
  const auto linear = [](CUmemorytype type) { return type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE; };
  const auto longest = static_cast<std::size_t>(fake::longest_pitch());
  if (!linear(rows->srcMemoryType) || !linear(rows->dstMemoryType) || rows->WidthInBytes > rows->srcPitch ||
      rows->WidthInBytes > rows->dstPitch || rows->srcPitch > longest || rows->dstPitch > longest ||
      rows->Height > rows->srcHeight || rows->Height > rows->dstHeight || rows->Height == 0 || rows->Depth == 0)
    return CUDA_ERROR_INVALID_VALUE;
  const bool from_host = rows->srcMemoryType == CU_MEMORYTYPE_HOST, to_host = rows->dstMemoryType == CU_MEMORYTYPE_HOST;
  const auto from = from_host ? reinterpret_cast<CUdeviceptr>(rows->srcHost) : rows->srcDevice;
  const auto to = to_host ? reinterpret_cast<CUdeviceptr>(rows->dstHost) : rows->dstDevice;
  // What is said to be a device's is no host memory of anybody's.
  if ((!from_host && pageable(from)) || (!to_host && pageable(to))) return CUDA_ERROR_INVALID_VALUE;
  fake::note("cuMemcpy3DAsync", stream);
  const bool staged = pageable(from) || pageable(to);
  auto all = std::make_shared<std::vector<Part>>();
  for (std::size_t plane = 0; plane < rows->Depth; ++plane)
    for (std::size_t row = 0; row < rows->Height; ++row) {
      const CUdeviceptr target = row_at(to, rows->dstPitch, rows->dstHeight, plane, row);
      const CUdeviceptr source = row_at(from, rows->srcPitch, rows->srcHeight, plane, row);
      if (staged) {
        if (const CUresult result = copy(lock, target, source, rows->WidthInBytes, stream); result != CUDA_SUCCESS)
          return result;
        continue;
      }
      const std::vector<Part> parts = parts_of(stream->context, target, source, rows->WidthInBytes);
      if (parts.empty() && rows->WidthInBytes > 0) return CUDA_ERROR_INVALID_VALUE;
      all->insert(all->end(), parts.begin(), parts.end());
    }
  if (all->empty()) return CUDA_SUCCESS;
  for (Part& part : *all) begin(stream, part);
  const fake::Allocation* const into = fake::find(to);
  const unsigned slower_us = into != nullptr && into->host() ? world().out_us : 0;
  const auto ended = [all] {
    for (const Part& part : *all) end(part);
  };
  const auto work = [all, slower_us, ended] {
    if (slower_us > 0) ::usleep(slower_us);
    for (const Part& part : *all) {
      std::memmove(part.to, part.from, part.size);
      if (part.wrong) part.to[part.size / 2] = ~part.to[part.size / 2];
    }
    ended();
  };
  fake::enqueue(stream, work, {}, ended);
  return stream->context->lost;
}

CUresult cuStreamWriteValue32_v2(CUstream handle, CUdeviceptr to, cuuint32_t value, unsigned flags) {
  FAKE_ENTER(cuStreamWriteValue32_v2);
  return write_value("cuStreamWriteValue32", handle, to, value, flags);
}

CUresult cuStreamWriteValue64_v2(CUstream handle, CUdeviceptr to, cuuint64_t value, unsigned flags) {
  FAKE_ENTER(cuStreamWriteValue64_v2);
  return write_value("cuStreamWriteValue64", handle, to, value, flags);
}

CUresult cuStreamBatchMemOp_v2(CUstream handle, unsigned count, CUstreamBatchMemOpParams* operations, unsigned flags) {
  FAKE_ENTER(cuStreamBatchMemOp_v2);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    const auto& one = operations[i].writeValue;
    const bool whole = one.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
    if (!whole && one.operation != CU_STREAM_MEM_OP_WRITE_VALUE_32) return CUDA_ERROR_NOT_SUPPORTED;
    const char* const call = i == 0 ? "cuStreamBatchMemOp" : nullptr;
    const CUresult result = whole ? write_value(call, handle, one.address, one.value64, one.flags)
                                  : write_value(call, handle, one.address, one.value, one.flags);
    if (result != CUDA_SUCCESS) return result;
  }
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
