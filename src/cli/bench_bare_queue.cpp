#include "cli/bench_bare_queue.hpp"

#include <algorithm>
#include <vector>

#include "cli/bench_timing.hpp"
#include "cli/failure.hpp"
#include "memory/opencl/opencl_api.hpp"

namespace ist::cli {
namespace {

void must_cl(cl_int error, const std::string& call) {
  if (const Status found = opencl_status(error, call); !found.ok()) throw Failure(found);
}

// Memory of one end: a buffer with a queue of its device, or bytes of the host.
class QueueEnd {
 public:
  QueueEnd(const OpenclApi& api, MemoryKind& kind, const Place& place, std::size_t bytes) : api_(api), kind_(kind) {
    if (place.kind != IST_KIND_OPENCL) {
      host_.assign(bytes, std::byte{1});
      return;
    }
    auto piece = kind_.allocate(std::max(place.device, 0), Bytes{bytes});
    if (!piece.ok()) throw Failure(piece.status());
    piece_ = *piece;
    try {
      cl_device_id device = nullptr;
      must_cl(api_.clGetCommandQueueInfo(queue_of(piece_), CL_QUEUE_CONTEXT, sizeof context, &context, nullptr),
              "clGetCommandQueueInfo");
      must_cl(api_.clGetCommandQueueInfo(queue_of(piece_), CL_QUEUE_DEVICE, sizeof device, &device, nullptr),
              "clGetCommandQueueInfo");
      cl_int error = CL_SUCCESS;
      queue = api_.clCreateCommandQueue(context, device, 0, &error);
      must_cl(error, "clCreateCommandQueue");
      // Touched, as the host's is.
      const std::vector<std::byte> ones(bytes, std::byte{1});
      must_cl(api_.clEnqueueWriteBuffer(queue, memory(), CL_TRUE, 0, bytes, ones.data(), 0, nullptr, nullptr),
              "clEnqueueWriteBuffer");
    } catch (...) {
      release();
      throw;
    }
  }
  QueueEnd(const QueueEnd&) = delete;
  QueueEnd& operator=(const QueueEnd&) = delete;
  ~QueueEnd() { release(); }

  bool on_device() const { return piece_.object != 0; }
  cl_mem memory() const { return memory_of(piece_); }
  std::byte* host() { return host_.data(); }
  const std::byte* host() const { return host_.data(); }
  void finish() const { must_cl(api_.clFinish(queue), "clFinish"); }

  cl_context context = nullptr;
  cl_command_queue queue = nullptr;

 private:
  void release() {
    if (queue != nullptr) api_.clReleaseCommandQueue(queue);
    if (piece_.object != 0) static_cast<void>(kind_.release(piece_));
  }

  const OpenclApi& api_;
  MemoryKind& kind_;
  Piece piece_{};
  std::vector<std::byte> host_;
};

// From one end to the other, in a queue of the one that is a device; between contexts out of the one's and into the other's.
class QueueWay {
 public:
  QueueWay(const OpenclApi& api, MemoryKind& kind, const Place& from, const Place& to, std::size_t most)
      : api_(api), from_(api, kind, from, most), to_(api, kind, to, most) {
    if (two_contexts()) between_.assign(most, std::byte{1});
  }
  bool two_contexts() const { return from_.on_device() && to_.on_device() && from_.context != to_.context; }
  // Behind what the queue holds. Through the host the first part is over when the second begins.
  void put(std::size_t bytes) {
    if (two_contexts()) {
      read(from_, between_.data(), bytes, CL_TRUE);
      return write(to_, between_.data(), bytes);
    }
    if (!from_.on_device()) return write(to_, from_.host(), bytes);
    if (!to_.on_device()) return read(from_, to_.host(), bytes, CL_FALSE);
    must_cl(api_.clEnqueueCopyBuffer(from_.queue, from_.memory(), to_.memory(), 0, 0, bytes, 0, nullptr, nullptr),
            "clEnqueueCopyBuffer");
  }
  void flush() const { must_cl(api_.clFlush(last().queue), "clFlush"); }
  void finish() const { last().finish(); }

 private:
  const QueueEnd& last() const { return two_contexts() || !from_.on_device() ? to_ : from_; }
  void read(const QueueEnd& from, std::byte* into, std::size_t bytes, cl_bool blocking) const {
    must_cl(api_.clEnqueueReadBuffer(from.queue, from.memory(), blocking, 0, bytes, into, 0, nullptr, nullptr),
            "clEnqueueReadBuffer");
  }
  void write(const QueueEnd& to, const std::byte* from, std::size_t bytes) const {
    must_cl(api_.clEnqueueWriteBuffer(to.queue, to.memory(), CL_FALSE, 0, bytes, from, 0, nullptr, nullptr),
            "clEnqueueWriteBuffer");
  }

  const OpenclApi& api_;
  QueueEnd from_;
  QueueEnd to_;
  std::vector<std::byte> between_;
};

class QueueLink final : public BareLink {
 public:
  QueueLink(const OpenclApi& api, MemoryKind& kind, const BareEnds& ends)
      : ends_(ends), there_(api, kind, ends.from, ends.to, ends.most) {
    if (ends.both_ways) back_ = std::make_unique<QueueWay>(api, kind, ends.to, ends.from, ends.most);
  }
  double us(std::size_t bytes, BareForm form) override {
    const int count = form == BareForm::single ? 1 : window_of(bytes);
    const bool back = form == BareForm::both_ways && back_;
    return bare_median_us([&] {
             for (int n = 0; n < count; ++n) {
               there_.put(bytes);
               if (back) back_->put(bytes);
             }
             there_.flush();
             if (back) back_->finish();
             there_.finish();
           }) /
           count;
  }
  std::string words(BareForm form) const override {
    const std::string call = there_.two_contexts()                ? "clEnqueueReadBuffer and clEnqueueWriteBuffer"
                             : ends_.from.kind != IST_KIND_OPENCL ? "clEnqueueWriteBuffer"
                             : ends_.to.kind != IST_KIND_OPENCL   ? "clEnqueueReadBuffer"
                                                                  : "clEnqueueCopyBuffer";
    const std::string where = ", " + ends_.from.text() + " to " + ends_.to.text();
    if (form == BareForm::single) return "one " + call + " of that size and clFinish" + where;
    return "one of 64 times " + call + " of that size in a queue" +
           (form == BareForm::both_ways ? ", and 64 back in another one" : "") + where;
  }

 private:
  const BareEnds ends_;
  QueueWay there_;
  std::unique_ptr<QueueWay> back_;
};

}  // namespace

std::unique_ptr<BareLink> open_queue_link(const BareEnds& ends, const Kinds& kinds) {
  const auto api = OpenclApi::get();
  if (!api.ok()) throw Failure(api.status());
  MemoryKind* const kind = kinds.find(KindId::opencl);
  if (kind == nullptr) throw Failure(2, "memory of kind opencl was not loaded here: see isthmus info");
  return std::make_unique<QueueLink>(**api, *kind, ends);
}

}  // namespace ist::cli
