#include "memory/opencl/opencl_spaces.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "memory/host/host_space.hpp"

namespace ist {
namespace {

constexpr std::size_t kTried = HostSpace::kPage;

struct alignas(HostSpace::kPage) Page {
  std::array<std::byte, kTried> bytes{};
};

}  // namespace

// ---- all spaces ----

SpaceReach OpenclSpaces::reach(int device) {
  const std::lock_guard lock(mutex_);
  const auto known = reach_.find(device);
  if (known != reach_.end()) return known->second;
  const SpaceReach found = shares_memory(device).ok() ? SpaceReach::processor : SpaceReach::owner;
  reach_[device] = found;
  return found;
}

Status OpenclSpaces::shares_memory(int device) const {
  const cl_device_id id = contexts_.device(device);
  cl_bool unified = CL_FALSE;
  api_.clGetDeviceInfo(id, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof unified, &unified, nullptr);
  if (!contexts_.is_processor(device) || unified == CL_FALSE)
    return {IST_ERR_UNSUPPORTED, "the device is not the processor"};
  const auto own = contexts_.own(device);
  if (!own.ok()) return own.status();
  const auto page = std::make_unique<Page>();
  cl_int error = CL_SUCCESS;
  const cl_mem shared =
      api_.clCreateBuffer(own->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, kTried, page->bytes.data(), &error);
  IST_TRY(opencl_status(error, "clCreateBuffer in memory of the program's"));
  const cl_mem beside = api_.clCreateBuffer(own->context, CL_MEM_READ_WRITE, kTried, nullptr, &error);
  Status tried = opencl_status(error, "clCreateBuffer");
  if (tried.ok()) {
    tried = try_sharing(device, shared, beside, page->bytes.data());
    api_.clReleaseMemObject(beside);
  }
  api_.clReleaseMemObject(shared);
  return tried;
}

// Both ways, twice: a copy that the driver keeps would be an old one the second time.
Status OpenclSpaces::try_sharing(int device, cl_mem shared, cl_mem beside, std::byte* bytes) const {
  const auto own = contexts_.own(device);
  if (!own.ok()) return own.status();
  const auto queue = contexts_.queue(own->context, device);
  if (!queue.ok()) return queue.status();
  std::array<std::byte, kTried> pattern{};
  std::array<std::byte, kTried> found{};
  const auto copies = [&](cl_mem from, cl_mem to) {
    IST_TRY(
        opencl_status(api_.clEnqueueCopyBuffer(*queue, from, to, 0, 0, kTried, 0, nullptr, nullptr), "clEnqueueCopyBuffer"));
    return opencl_status(api_.clFinish(*queue), "clFinish");
  };
  for (int turn = 0; turn < 4; ++turn) {
    for (std::size_t i = 0; i < kTried; ++i)
      pattern[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(turn) * 59 + 1);
    const bool device_stores = turn % 2 == 1;
    if (device_stores) {
      IST_TRY(
          opencl_status(api_.clEnqueueWriteBuffer(*queue, beside, CL_TRUE, 0, kTried, pattern.data(), 0, nullptr, nullptr),
                        "clEnqueueWriteBuffer"));
      IST_TRY(copies(beside, shared));
      std::memcpy(found.data(), bytes, kTried);
    } else {
      std::memcpy(bytes, pattern.data(), kTried);
      IST_TRY(copies(shared, beside));
      IST_TRY(opencl_status(api_.clEnqueueReadBuffer(*queue, beside, CL_TRUE, 0, kTried, found.data(), 0, nullptr, nullptr),
                            "clEnqueueReadBuffer"));
    }
    if (found != pattern) return {IST_ERR_UNSUPPORTED, "the driver keeps a buffer elsewhere than in the program's memory"};
  }
  return {};
}

Result<std::unique_ptr<Space>> OpenclSpaces::open(const SpaceShape& shape) {
  const auto own = contexts_.own(shape.device);
  if (!own.ok()) return own.status();
  auto addresses = HostSpace::open(shape);
  if (!addresses.ok()) return addresses.status();
  return std::unique_ptr<Space>{std::make_unique<OpenclSpace>(*this, *own, shape, std::move(*addresses))};
}

// ---- one space ----

OpenclSpace::~OpenclSpace() {
  for (const auto& [from, buffer] : buffers_) release(buffer);
}

Space::Named OpenclSpace::named(Offset offset) const {
  const std::lock_guard lock(mutex_);
  auto found = buffers_.upper_bound(offset.value);
  if (found == buffers_.begin()) return {};
  --found;
  const std::uint64_t in = offset.value - found->first;
  const Bytes left{in < found->second.size.value ? found->second.size.value - in : 0};
  return {reinterpret_cast<std::uint64_t>(found->second.memory), Offset{in}, left};
}

Result<FileDescriptor> OpenclSpace::make(Offset from, Bytes size) {
  if (size > home_.largest)
    return Status{IST_ERR_MEMORY, "an OpenCL buffer of " + std::to_string(size.value) + " bytes was asked for; device " +
                                      std::to_string(shape_.device) + " makes buffers of at most " +
                                      std::to_string(home_.largest.value) +
                                      " bytes; make a smaller heap, and let it grow by less at a time"};
  if (shape_.reach == SpaceReach::owner) {
    const auto memory = create(nullptr, from, size);
    if (!memory.ok()) return memory.status();
    IST_TRY(zero(*memory, size));
    return FileDescriptor{};
  }
  auto made = addresses_->make(from, size);
  if (!made.ok()) return made;
  std::byte* const own = base() + static_cast<std::uint64_t>(shape_.pe.value) * shape_.stride.value;
  IST_TRY(create(own + from.value, from, size).status());
  return made;
}

Status OpenclSpace::attach(Pe pe, Offset from, Bytes size, const FileDescriptor& descriptor) {
  return shape_.reach == SpaceReach::owner ? Status{} : addresses_->attach(pe, from, size, descriptor);
}

// The buffer lets go of the memory before that goes.
void OpenclSpace::take_back(Offset from, Bytes size) {
  Buffer gone;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = buffers_.extract(from.value);
    if (!entry.empty()) gone = entry.mapped();
  }
  release(gone);
  addresses_->take_back(from, size);
}

Result<cl_mem> OpenclSpace::create(void* bytes, Offset from, Bytes size) {
  cl_int error = CL_SUCCESS;
  const cl_mem_flags where = bytes == nullptr ? 0 : CL_MEM_USE_HOST_PTR;
  const cl_mem made = spaces_.api_.clCreateBuffer(home_.context, CL_MEM_READ_WRITE | where, size.value, bytes, &error);
  IST_TRY(opencl_status(error,
                        "clCreateBuffer of " + std::to_string(size.value) + " bytes for a symmetric heap on OpenCL device " +
                            std::to_string(shape_.device),
                        IST_ERR_MEMORY));
  spaces_.contexts_.released().remove(made);
  const std::lock_guard lock(mutex_);
  buffers_[from.value] = {made, size};
  return made;
}

Status OpenclSpace::zero(cl_mem memory, Bytes size) const {
  const auto queue = spaces_.contexts_.queue(home_.context, shape_.device);
  if (!queue.ok()) return queue.status();
  const std::uint8_t nothing = 0;
  IST_TRY(opencl_status(
      spaces_.api_.clEnqueueFillBuffer(*queue, memory, &nothing, sizeof nothing, 0, size.value, 0, nullptr, nullptr),
      "clEnqueueFillBuffer of a part of a symmetric heap"));
  return opencl_status(spaces_.api_.clFinish(*queue), "clFinish");
}

void OpenclSpace::release(const Buffer& buffer) const {
  if (buffer.memory == nullptr) return;
  spaces_.contexts_.released().add(buffer.memory);
  spaces_.api_.clReleaseMemObject(buffer.memory);
}

}  // namespace ist
