#include "memory/cuda/cuda_turns.hpp"

namespace ist {
namespace {

CUDA_MEMCPY3D two_rows(CUdeviceptr to, const std::byte* from, std::size_t width) {
  CUDA_MEMCPY3D rows{};
  rows.srcMemoryType = CU_MEMORYTYPE_HOST;
  rows.srcHost = from;
  rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.dstDevice = to;
  rows.WidthInBytes = rows.srcPitch = rows.dstPitch = width;
  rows.Height = rows.srcHeight = rows.dstHeight = 2;
  rows.Depth = 1;
  return rows;
}

}  // namespace

CUresult CudaTurns::copy(int device, const Piece& to, const Piece& from, CUstream stream) const {
  if (in_rows(device, to, from)) return copy_in_rows(to.object + to.offset.value, from.address(), to.size.value, stream);
  return api_.cuMemcpyAsync(to.object + to.offset.value, from.object + from.offset.value, to.size.value, stream);
}

// Of an odd number the last byte goes in rows of one byte, the one before it once more: the same byte to the same place. After an error
// nothing may touch the memory any more, so that what was begun is waited for.
CUresult CudaTurns::copy_in_rows(CUdeviceptr to, const std::byte* from, std::size_t bytes, CUstream stream) const {
  const CUDA_MEMCPY3D most = two_rows(to, from, bytes / 2);
  const CUresult result = api_.cuMemcpy3DAsync_v2(&most, stream);
  if (result != CUDA_SUCCESS || bytes % 2 == 0) return result;
  const CUDA_MEMCPY3D last = two_rows(to + bytes - 2, from + bytes - 2, 1);
  const CUresult ended = api_.cuMemcpy3DAsync_v2(&last, stream);
  if (ended != CUDA_SUCCESS) api_.cuStreamSynchronize(stream);
  return ended;
}

}  // namespace ist
