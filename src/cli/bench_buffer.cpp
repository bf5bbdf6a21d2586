#include "cli/bench_buffer.hpp"

#include <string>
#include <utility>

#include "cli/failure.hpp"

namespace ist::cli {
namespace {

// A kind page-locks nothing before it has used a device: it has not been told which one.
void start_device(Kinds& kinds, MemoryKind& kind, int device) {
  auto piece = kind.allocate(device, Bytes{1});
  if (!piece.ok()) throw Failure(piece.status());
  if (const Status released = kind.release(*piece); !released.ok()) throw Failure(released);
  kinds.mark_used(kind.id());
}

}  // namespace

void fail(int code, const char* call) {
  throw Failure(1, std::string{call} + ": " + ist_code_name(code) + ": " + ist_error_text());
}

RankBuffer::RankBuffer(ist_world world, Kinds& kinds, const Place& place, std::size_t bytes, int local_rank)
    : world_(world), place_(place) {
  if (place_.classed()) {
    classed_ = ClassedMemory::take(place_, bytes);
    buffer_ = classed_->buffer();
  } else {
    must(ist_memory_alloc(world_, place_.kind, place_.device, bytes, &buffer_), "ist_memory_alloc");
    taken_ = true;
  }
  try {
    if (place_.on_device()) start_device(kinds, *kinds.find(static_cast<KindId>(place_.kind)), place_.device);
    if (place_.pinned()) pin(kinds, bytes, local_rank);
  } catch (...) {
    give_back();
    throw;
  }
}

RankBuffer::~RankBuffer() { give_back(); }

void RankBuffer::give_back() {
  if (pins_) std::exchange(pins_, nullptr)->unpin(reinterpret_cast<void*>(buffer_.object));
  if (std::exchange(taken_, false)) ist_memory_free(world_, buffer_);
}

void RankBuffer::pin(Kinds& kinds, std::size_t bytes, int local_rank) {
  for (const auto& kind : kinds.all()) {
    Pins* const pins = kind->pins();
    if (!pins || kind->devices().empty()) continue;
    start_device(kinds, *kind, local_rank % static_cast<int>(kind->devices().size()));
    if (const Status status = pins->pin(reinterpret_cast<void*>(buffer_.object), Bytes{bytes}); !status.ok())
      throw Failure(status);
    pins_ = pins;
    return;
  }
  throw Failure(
      2, "pinned memory needs a device that host memory can be page-locked for, and none was found: see isthmus info");
}

ist_buffer RankBuffer::named(const BenchOptions& options) const {
  ist_buffer named = buffer_;
  if (options.automatic) {
    if (place_.kind == IST_KIND_OPENCL)
      throw Failure(2, "--auto is for memory with addresses; a buffer of opencl is an object and must be named");
    named = ist_auto(reinterpret_cast<const void*>(buffer_.object));  // NOLINT(performance-no-int-to-ptr)
    named.queue = buffer_.queue;
  }
  return options.ready ? ist_buffer_ready(named) : named;
}

}  // namespace ist::cli
