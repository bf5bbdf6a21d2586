#include "memory/cuda/cuda_sights.hpp"

#include <algorithm>
#include <cstring>

namespace ist {
namespace {

constexpr std::size_t kUnit = sizeof(std::uint64_t);

// A device writes it, so that the compiler must read it each time.
std::uint64_t unit_at(const std::byte* at, std::size_t bytes) {
  std::uint64_t unit = 0;
  if (bytes >= kUnit) return *reinterpret_cast<const volatile std::uint64_t*>(at);
  for (std::size_t i = 0; i < bytes; ++i)
    unit |= static_cast<std::uint64_t>(reinterpret_cast<const volatile unsigned char*>(at)[i]) << 8U * i;
  return unit;
}

std::uint64_t first_of(std::uint64_t unit, std::size_t bytes) {
  return bytes >= kUnit ? unit : unit & ((std::uint64_t{1} << 8U * bytes) - 1);
}

}  // namespace

bool CudaSight::came() {
  while (bytes_ > 0) {
    if (unit_at(at_, bytes_) == first_of(before_, bytes_)) return false;
    const std::size_t seen = std::min(bytes_, kUnit);
    at_ += seen;
    bytes_ -= seen;
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  return true;
}

CudaSight CudaSights::expect(const Piece& to) {
  if (!to.own || to.size > kMostSeen || to.size == Bytes{} || reinterpret_cast<std::uintptr_t>(to.address()) % kUnit != 0)
    return {};
  // Other bytes each time: what came there last is likely to come again.
  const std::uint64_t unlikely = unlikely_.fetch_add(0xd1342543de82ef95, std::memory_order_relaxed);
  for (std::size_t i = 0; i < to.size.value; i += kUnit)
    std::memcpy(to.address() + i, &unlikely, std::min(kUnit, to.size.value - i));
  return {to.address(), to.size.value, unlikely};
}

bool CudaSights::writes(const Piece& to) const {
  constexpr std::uint64_t kWord = sizeof(cuuint32_t);
  return to.size <= kMostInValues && to.size > Bytes{} && to.size.value % kWord == 0 &&
         (to.object + to.offset.value) % kWord == 0 && api_.cuStreamBatchMemOp_v2 != nullptr &&
         !refused_.load(std::memory_order_relaxed);
}

std::span<const std::byte> CudaSights::word(std::uint32_t ticket) const {
  if (ticket >= words_.size()) return {};
  return std::as_bytes(std::span{words_}.subspan(ticket, 1));
}

CUresult CudaSights::write(CUstream stream, const Piece& to, const std::byte* from, std::uint32_t ticket, CUdeviceptr there,
                           CudaSight& sight) {
  std::array<CUstreamBatchMemOpParams, kMostInValues.value / sizeof(cuuint32_t) + 1> values{};
  unsigned count = 0;
  const auto add = [&](CUdeviceptr at, std::uint64_t value, std::size_t bytes) {
    auto& one = values[count++].writeValue;
    one.operation = bytes == kUnit ? CU_STREAM_MEM_OP_WRITE_VALUE_64 : CU_STREAM_MEM_OP_WRITE_VALUE_32;
    one.address = at;
    one.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
    if (bytes == kUnit)
      one.value64 = value;
    else
      one.value = static_cast<cuuint32_t>(value);
  };
  const CUdeviceptr place = to.object + to.offset.value;
  for (std::size_t done = 0; done < to.size.value;) {
    const bool whole = to.size.value - done >= kUnit && (place + done) % kUnit == 0;
    const std::size_t bytes = whole ? kUnit : sizeof(cuuint32_t);
    std::uint64_t value = 0;
    std::memcpy(&value, from + done, bytes);
    add(place + done, value, bytes);
    done += bytes;
  }
  const auto* const word = reinterpret_cast<const std::byte*>(&words_[ticket]);
  const std::uint64_t before = unit_at(word, kUnit);
  add(there, before + 1, kUnit);
  const CUresult result = api_.cuStreamBatchMemOp_v2(stream, count, values.data(), 0);
  if (result == CUDA_SUCCESS)
    sight = {word, kUnit, before};
  else
    refused_.store(true, std::memory_order_relaxed);
  return result;
}

}  // namespace ist
