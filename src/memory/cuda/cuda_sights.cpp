#include "memory/cuda/cuda_sights.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "base/log.hpp"

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

void CudaSight::put_on_trial() try {
  trial_ = std::make_shared<Trial>();
  trial_->at = at_;
  trial_->bytes = bytes_;
} catch (const std::bad_alloc&) {
  *this = {};
}

void CudaSight::note() {
  if (!std::exchange(trial_->kept, true)) std::memcpy(trial_->seen.data(), trial_->at, trial_->bytes);
}

std::optional<bool> CudaSight::was_right() const {
  if (trial_ == nullptr || !trial_->kept) return std::nullopt;
  return std::memcmp(trial_->seen.data(), trial_->at, trial_->bytes) == 0;
}

CudaSights::CudaSights(const CudaApi& api, bool check) : api_(api), check_(check) {
  for (std::size_t word = words_.size(); word > 0; --word) free_.push_back(static_cast<std::uint16_t>(word - 1));
}

CudaSight CudaSights::expect(int device, const Piece& to, const Piece& from) {
  const auto is_apart = [](const Piece& piece) { return (piece.object + piece.offset.value) % kUnit != 0; };
  if (!to.own || to.size > kMostSeen || to.size == Bytes{} || is_apart(to) || is_apart(from)) return {};
  if (!is_known(device)) return {};
  const std::uint8_t to_try = of(device).to_try.load(std::memory_order_relaxed);
  if (to_try == kNever) return {};
  // Other bytes each time: what came there last is likely to come again.
  const std::uint64_t unlikely = unlikely_.fetch_add(0xd1342543de82ef95, std::memory_order_relaxed);
  for (std::size_t i = 0; i < to.size.value; i += kUnit)
    std::memcpy(to.address() + i, &unlikely, std::min(kUnit, to.size.value - i));
  CudaSight sight{to.address(), to.size.value, unlikely};
  if (to_try > 0 || check_) sight.put_on_trial();
  return sight;
}

void CudaSights::judge(int device, const CudaSight& sight) {
  const std::optional<bool> right = sight.was_right();
  if (!right) return;
  std::atomic<std::uint8_t>& to_try = of(device).to_try;
  std::uint8_t left = to_try.load(std::memory_order_relaxed);
  if (*right) {
    while (left != kNever && left > 0 && !to_try.compare_exchange_weak(left, static_cast<std::uint8_t>(left - 1))) {
    }
    return;
  }
  to_try.store(kNever, std::memory_order_relaxed);
  log::once(
      log::Level::warning,
      "short copies out of cuda device " + std::to_string(device) +
          " are over by the driver's events: bytes of one came after all of them had changed; short messages take some 2 us "
          "more, and nothing was lost");
}

bool CudaSights::writes(int device, const Piece& to) const {
  constexpr std::uint64_t kWord = sizeof(cuuint32_t);
  return to.size <= kMostInValues && to.size > Bytes{} && to.size.value % kWord == 0 &&
         (to.object + to.offset.value) % kWord == 0 && api_.cuStreamBatchMemOp_v2 != nullptr && is_known(device) &&
         of(device).refused.load(std::memory_order_relaxed) < kMostRefused;
}

std::optional<std::uint16_t> CudaSights::take_word() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return std::nullopt;
  const std::uint16_t word = free_.back();
  free_.pop_back();
  return word;
}

void CudaSights::give_back(std::uint16_t word) {
  const std::lock_guard lock(mutex_);
  free_.push_back(word);
}

CUresult CudaSights::write(int device, CUstream stream, const Piece& to, const std::byte* from, std::uint16_t word,
                           CUdeviceptr page, CudaSight& sight) {
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
  const auto* const at = reinterpret_cast<const std::byte*>(&words_[word]);
  const std::uint64_t before = unit_at(at, kUnit);
  add(page + word * kUnit, before + 1, kUnit);
  const CUresult result = api_.cuStreamBatchMemOp_v2(stream, count, values.data(), 0);
  std::atomic<std::uint8_t>& refused = of(device).refused;
  if (result == CUDA_SUCCESS) {
    sight = {at, kUnit, before, true};
    refused.store(0, std::memory_order_relaxed);
    return result;
  }
  // The driver does not say that it takes all of them or none.
  api_.cuStreamSynchronize(stream);
  const int times = result == CUDA_ERROR_NOT_SUPPORTED ? kMostRefused : refused.load(std::memory_order_relaxed) + 1;
  refused.store(static_cast<std::uint8_t>(std::min<int>(times, kMostRefused)), std::memory_order_relaxed);
  if (times >= kMostRefused)
    log::once(log::Level::info, "few bytes into cuda device " + std::to_string(device) +
                                    " are copied: " + cuda_error(api_, result, "cuStreamBatchMemOp").text());
  return result;
}

}  // namespace ist
