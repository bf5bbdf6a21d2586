#include "cli/bench_mapped.hpp"

#include <cstdlib>
#include <thread>

#include "cli/failure.hpp"
#include "layout/constructors.hpp"
#include "memory/opencl/opencl_api.hpp"
#include "memory/packing.hpp"

namespace ist::cli {
namespace {

template <class T>
T good(Result<T> made) {
  if (!made.ok()) throw Failure(made.status());
  return std::move(*made);
}
void must(const Status& status) {
  if (!status.ok()) throw Failure(status);
}

SharedForm form_of_nodes(const std::vector<std::int64_t>& numbers) {
  const auto node = good(Layout::basic(IST_DOUBLE));
  const auto all = good(indexed_block_layout(1, numbers, Unit::extents, node));
  return std::make_shared<const Form>(good(all->form()));
}

Bytes bytes_of(const std::vector<std::int64_t>& numbers) { return Bytes{numbers.size() * sizeof(double)}; }

void wait_for(MemoryKind& kind, Ticket ticket) {
  while (!ticket.empty() && !good(kind.finished(ticket))) std::this_thread::yield();
}

// One list of nodes with the memory that they are packed in.
PackWork work_of(const Piece& nodes, const std::vector<std::int64_t>& numbers, const Piece& packed, bool unpacks) {
  const SharedForm form = form_of_nodes(numbers);
  return {form, nodes, 0, packed, 0, form->size, unpacks};
}

// Host memory that is page-locked for kernels of one device of CUDA.
class LockedRoom {
 public:
  LockedRoom(Pins* pins, int device, Bytes size) : pins_(pins) {
    constexpr std::uint64_t kPage = 4096;
    if (pins_ == nullptr)
      throw Failure(1, "no host memory is page-locked for cuda devices here, so that none can be mapped");
    memory_ = std::aligned_alloc(kPage, (size.value + kPage - 1) / kPage * kPage);
    if (memory_ == nullptr) throw Failure(1, "no " + std::to_string(size.value) + " bytes of host memory are left");
    try {
      must(pins_->pin(memory_, size));
      locked_ = true;
      piece_.kind = KindId::cuda;
      piece_.device = device;
      piece_.object = reinterpret_cast<std::uint64_t>(good(pins_->mapped(memory_, device)));
      piece_.size = size;
    } catch (...) {
      release();
      throw;
    }
  }
  LockedRoom(const LockedRoom&) = delete;
  LockedRoom& operator=(const LockedRoom&) = delete;
  ~LockedRoom() { release(); }
  // As the device's kernels have it.
  const Piece& piece() const { return piece_; }
  double* host() const { return static_cast<double*>(memory_); }

 private:
  void release() {
    if (locked_) pins_->unpin(memory_);
    std::free(memory_);
  }

  Pins* pins_;
  void* memory_ = nullptr;
  bool locked_ = false;
  Piece piece_;
};

// A stream of the device's, which comes with memory of it.
class DeviceStream {
 public:
  DeviceStream(MemoryKind& kind, int device) : kind_(kind), piece_(good(kind.allocate(device, Bytes{8}))) {}
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;
  ~DeviceStream() { static_cast<void>(kind_.release(piece_)); }
  std::uint64_t handle() const { return piece_.queue; }
  void wait() const { wait_for(kind_, good(kind_.streams()->ready(piece_))); }

 private:
  MemoryKind& kind_;
  const Piece piece_;
};

class CudaNodes final : public MappedNodes {
 public:
  CudaNodes(MemoryKind& kind, const Piece& nodes, const Lists& lists)
      : packing_(*kind.box_packing()),
        device_(nodes.device),
        stream_(kind, device_),
        out_(kind.pins(), device_, bytes_of(lists.sends)),
        in_(kind.pins(), device_, bytes_of(lists.receives)),
        sends_(work_of(nodes, lists.sends, out_.piece(), false)),
        receives_(work_of(nodes, lists.receives, in_.piece(), true)) {
    must(kind.packing()->can_pack(device_));
  }
  const double* pack() override {
    run(sends_);
    return out_.host();
  }
  double* room() override { return in_.host(); }
  void unpack() override { run(receives_); }

 private:
  void run(const PackWork& work) {
    must(packing_.pack_at(device_, stream_.handle(), work, 0));
    stream_.wait();
  }

  BoxPacking& packing_;
  const int device_;
  const DeviceStream stream_;
  const LockedRoom out_, in_;
  const PackWork sends_, receives_;
};

// A buffer that lies in host memory, and belongs either to kernels or, while it is mapped, to the processor.
class HostBuffer {
 public:
  HostBuffer(const OpenclApi& api, const Piece& beside, Bytes size) : api_(api), queue_(queue_of(beside)) {
    cl_context context = nullptr;
    call(api_.clGetMemObjectInfo(memory_of(beside), CL_MEM_CONTEXT, sizeof context, &context, nullptr),
         "clGetMemObjectInfo");
    cl_int error = CL_SUCCESS;
    cl_mem memory = api_.clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, size.value, nullptr, &error);
    call(error, "clCreateBuffer in host memory");
    piece_.kind = KindId::opencl;
    piece_.device = beside.device;
    piece_.object = reinterpret_cast<std::uint64_t>(memory);
    piece_.size = size;
  }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;
  ~HostBuffer() {
    if (host_ != nullptr) api_.clEnqueueUnmapMemObject(queue_, memory_of(piece_), host_, 0, nullptr, nullptr);
    api_.clFinish(queue_);
    api_.clReleaseMemObject(memory_of(piece_));
  }
  const Piece& piece() const { return piece_; }
  double* to_processor(cl_map_flags flags) {
    if (host_ == nullptr) {
      cl_int error = CL_SUCCESS;
      host_ = api_.clEnqueueMapBuffer(queue_, memory_of(piece_), CL_TRUE, flags, 0, piece_.size.value, 0, nullptr, nullptr,
                                      &error);
      call(error, "clEnqueueMapBuffer");
    }
    return static_cast<double*>(host_);
  }
  void to_kernels() {
    if (host_ == nullptr) return;
    call(api_.clEnqueueUnmapMemObject(queue_, memory_of(piece_), host_, 0, nullptr, nullptr), "clEnqueueUnmapMemObject");
    host_ = nullptr;
    call(api_.clFinish(queue_), "clFinish");
  }

 private:
  static void call(cl_int error, const char* name) { must(opencl_status(error, name)); }

  const OpenclApi& api_;
  cl_command_queue queue_;
  Piece piece_;
  void* host_ = nullptr;
};

class OpenclNodes final : public MappedNodes {
 public:
  OpenclNodes(MemoryKind& kind, const OpenclApi& api, const Piece& nodes, const Lists& lists)
      : kind_(kind),
        out_(api, nodes, bytes_of(lists.sends)),
        in_(api, nodes, bytes_of(lists.receives)),
        sends_(work_of(nodes, lists.sends, out_.piece(), false)),
        receives_(work_of(nodes, lists.receives, in_.piece(), true)) {
    must(kind.packing()->can_pack(nodes.device));
  }
  const double* pack() override {
    out_.to_kernels();
    run(sends_);
    return out_.to_processor(CL_MAP_READ);
  }
  double* room() override { return in_.to_processor(CL_MAP_WRITE); }
  void unpack() override {
    in_.to_kernels();
    run(receives_);
  }

 private:
  void run(const PackWork& work) { wait_for(kind_, good(kind_.packing()->pack_bytes(work, {}))); }

  MemoryKind& kind_;
  HostBuffer out_, in_;
  const PackWork sends_, receives_;
};

}  // namespace

std::unique_ptr<MappedNodes> MappedNodes::open(const Kinds& kinds, const Lists& lists) {
  const Piece nodes = good(kinds.resolve(lists.nodes, Bytes{static_cast<std::uint64_t>(lists.count) * sizeof(double)}));
  MemoryKind& kind = *kinds.find(nodes.kind);
  const bool packs = nodes.kind == KindId::cuda ? kind.box_packing() != nullptr : kind.packing() != nullptr;
  if (nodes.kind != KindId::host && !packs)
    throw Failure(1, "kernels of kind " + std::string{kind.name()} + " cannot pack here, so that none gathers nodes");
  if (nodes.kind == KindId::cuda) return std::make_unique<CudaNodes>(kind, nodes, lists);
  if (nodes.kind == KindId::opencl) return std::make_unique<OpenclNodes>(kind, *good(OpenclApi::get()), nodes, lists);
  throw Failure(1, "nodes of host memory are mapped by no device; name memory of kind cuda or opencl");
}

}  // namespace ist::cli
