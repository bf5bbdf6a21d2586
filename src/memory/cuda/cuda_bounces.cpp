#include "memory/cuda/cuda_bounces.hpp"

#include <utility>

#include "base/log.hpp"

namespace ist {
namespace {

// One message takes a block, in two halves. A half of 32 MiB is on its way for 85 us between two GPUs with NVLink, beside which the
// handshake for the next one, about 8 us, is little.
constexpr Bytes kBlock = mebibytes(64);
// Parts that are shorter than this half are not worth their handshakes.
constexpr Bytes kLeast{64 << 10};

}  // namespace

CudaBounces::~CudaBounces() {
  for (const auto& [number, device] : devices_)
    for (const Piece& piece : device.spare) release_(piece);
}

void CudaBounces::set_limit(Bytes limit) {
  const std::lock_guard lock(mutex_);
  limit_ = limit;
}

std::shared_ptr<const Piece> CudaBounces::hold(const Piece& piece) {
  return {new Piece(piece), [this](const Piece* block) {
            {
              const std::lock_guard lock(mutex_);
              devices_[block->device].spare.push_back(*block);
            }
            delete block;
          }};
}

std::shared_ptr<const Piece> CudaBounces::take(int number) {
  const std::lock_guard lock(mutex_);
  Device& device = devices_[number];
  if (!device.spare.empty()) {
    const Piece piece = device.spare.back();
    device.spare.pop_back();
    return hold(piece);
  }
  const Bytes size = limit_ < kBlock ? limit_ : kBlock;
  if (size < kLeast)
    log::once(log::Level::warning,
              "messages into device memory that no other process can open go through host memory, which is slower, because "
              "ISTHMUS_BOUNCE_LIMIT is " +
                  std::to_string(limit_.value) + "; 64KiB or more makes a block for them");
  if (size < kLeast || Bytes{device.taken.value + size.value} > limit_) return nullptr;
  const auto made = allocate_(number, size);
  if (!made.ok()) {
    log::once(log::Level::warning,
              "messages into device memory that no other process can open go through host memory: " + made.status().text());
    return nullptr;
  }
  device.taken = Bytes{device.taken.value + size.value};
  return hold(*made);
}

bool CudaBounces::all_in_use(int number) {
  const std::lock_guard lock(mutex_);
  const Device& device = devices_[number];
  return device.taken > Bytes{} && device.spare.empty();
}

}  // namespace ist
