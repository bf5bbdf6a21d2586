#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>
#include <vector>

#include "backend.hpp"
#include "opencl_api.hpp"

namespace stencil {
namespace {

// One work-item per point; the global size is rounded up, because a size with no small divisor makes poor work-groups.
constexpr const char* kernels = R"(
#ifdef USE_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
kernel void step_points(global const REAL* restrict from, global REAL* restrict to, const int rows, const int columns,
                 const REAL centre, const REAL cardinal, const REAL diagonal) {
  const int column = (int)get_global_id(0) + 1, row = (int)get_global_id(1) + 1;
  if (row + 1 >= rows || column + 1 >= columns) return;
  const size_t here = (size_t)row * (size_t)columns + (size_t)column, above = here - columns, below = here + columns;
  to[here] = centre * from[here] + cardinal * (from[above] + from[below] + from[here - 1] + from[here + 1]) +
             diagonal * (from[above - 1] + from[above + 1] + from[below - 1] + from[below + 1]);
}
kernel void pack_columns(global const REAL* restrict field, global REAL* restrict box, const int rows, const int columns,
                 const int first, const int halo, const ulong begin) {
  const int row = (int)get_global_id(0);
  if (row >= rows) return;
  for (int i = 0; i < halo; ++i) box[begin + row * halo + i] = field[(size_t)row * (size_t)columns + (size_t)(first + i)];
}
kernel void unpack_columns(global REAL* restrict field, global const REAL* restrict box, const int rows, const int columns,
                   const int first, const int halo, const ulong begin) {
  const int row = (int)get_global_id(0);
  if (row >= rows) return;
  for (int i = 0; i < halo; ++i) field[(size_t)row * (size_t)columns + (size_t)(first + i)] = box[begin + row * halo + i];
}
)";

void check(cl_int code, const char* call) {
  if (code != CL_SUCCESS)
    throw std::runtime_error(std::string("OpenCL: ") + call + " failed with code " + std::to_string(code));
}

std::size_t round_up(std::int64_t value, std::size_t multiple) {
  return (static_cast<std::size_t>(value) + multiple - 1) / multiple * multiple;
}

// Every OpenCL handle, released once.
template <class T>
class Handle {
 public:
  Handle() = default;
  Handle(T handle, cl_int (*release)(T)) : handle_(handle), release_(release) {}
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)), release_(other.release_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~Handle() {
    if (handle_) release_(handle_);
  }
  T get() const { return handle_; }

 private:
  T handle_ = nullptr;
  cl_int (*release_)(T) = nullptr;
};

class OpenclBackend final : public Backend {
 public:
  OpenclBackend(const OpenclApi& api, cl_device_id device, Precision precision) : api_(api), device_(device) {
    cl_int code = 0;
    context_ = {api_.CreateContext(nullptr, 1, &device, nullptr, nullptr, &code), api_.ReleaseContext};
    check(code, "clCreateContext");
    queue_ = {api_.CreateCommandQueue(context_.get(), device, 0, &code), api_.ReleaseCommandQueue};
    check(code, "clCreateCommandQueue");
    build(precision);
  }
  ~OpenclBackend() override { api_.Finish(queue_.get()); }
  OpenclBackend(const OpenclBackend&) = delete;
  OpenclBackend& operator=(const OpenclBackend&) = delete;

  std::string kind() const override { return "opencl"; }
  std::string device() const override {
    std::array<char, 256> name{};
    check(api_.GetDeviceInfo(device_, CL_DEVICE_NAME, name.size() - 1, name.data(), nullptr), "clGetDeviceInfo");
    return name.data();
  }

  void allocate(const Layout& layout, const Weights& weights) override {
    layout_ = layout;
    weights_ = weights;
    now_ = memory(layout.field_bytes());
    next_ = memory(layout.field_bytes());
    boxes_ = memory(layout.boxes_bytes());
  }
  void upload(const std::vector<std::byte>& field) override {
    for (const cl_mem target : {now_.get(), next_.get()})
      check(api_.EnqueueWriteBuffer(queue_.get(), target, CL_TRUE, 0, field.size(), field.data(), 0, nullptr, nullptr),
            "clEnqueueWriteBuffer");
  }
  std::vector<std::byte> download() override {
    std::vector<std::byte> field(layout_.field_bytes());
    read({false, 0, field.size()}, field.data());
    return field;
  }

  void step() override {
    const Extent padded = layout_.padded();
    if (layout_.precision == Precision::single_precision)
      set_step_arguments<cl_float>(padded);
    else
      set_step_arguments<cl_double>(padded);
    launch(step_.get(), {round_up(padded.columns - 2, 64), round_up(padded.rows - 2, 4)}, {64, 4}, 2);
    std::swap(now_, next_);
  }
  void pack(Side side) override { move_columns(pack_.get(), side, Direction::out); }
  void unpack(Side side) override { move_columns(unpack_.get(), side, Direction::in); }

  isthmus::Buffer at(const Place& place) override {
    return isthmus::Buffer::opencl(memory_of(place), place.offset, queue_.get());
  }
  void read(const Place& place, void* to) override {
    check(
        api_.EnqueueReadBuffer(queue_.get(), memory_of(place), CL_TRUE, place.offset, place.bytes, to, 0, nullptr, nullptr),
        "clEnqueueReadBuffer");
  }
  void write(const Place& place, const void* from) override {
    check(api_.EnqueueWriteBuffer(queue_.get(), memory_of(place), CL_TRUE, place.offset, place.bytes, from, 0, nullptr,
                                  nullptr),
          "clEnqueueWriteBuffer");
  }
  std::shared_ptr<std::byte> staging(std::size_t bytes) override {
    return {new std::byte[bytes + 1], [](std::byte* address) { delete[] address; }};
  }
  void finish() override { check(api_.Finish(queue_.get()), "clFinish"); }

 private:
  cl_mem memory_of(const Place& place) const { return place.in_boxes ? boxes_.get() : now_.get(); }

  Handle<cl_mem> memory(std::size_t bytes) {
    cl_int code = 0;
    Handle<cl_mem> made(api_.CreateBuffer(context_.get(), CL_MEM_READ_WRITE, bytes, nullptr, &code), api_.ReleaseMemObject);
    check(code, "clCreateBuffer");
    return made;
  }

  void build(Precision precision) {
    cl_int code = 0;
    const char* source = kernels;
    program_ = {api_.CreateProgramWithSource(context_.get(), 1, &source, nullptr, &code), api_.ReleaseProgram};
    check(code, "clCreateProgramWithSource");
    const bool single = precision == Precision::single_precision;
    code = api_.BuildProgram(program_.get(), 1, &device_, single ? "-DREAL=float" : "-DREAL=double -DUSE_DOUBLE", nullptr,
                             nullptr);
    if (code != CL_SUCCESS) {
      std::array<char, 2000> log{};
      api_.GetProgramBuildInfo(program_.get(), device_, CL_PROGRAM_BUILD_LOG, log.size() - 1, log.data(), nullptr);
      throw std::runtime_error("OpenCL: the kernels do not compile: " + std::string(log.data()));
    }
    step_ = kernel("step_points");
    pack_ = kernel("pack_columns");
    unpack_ = kernel("unpack_columns");
  }
  Handle<cl_kernel> kernel(const char* name) {
    cl_int code = 0;
    Handle<cl_kernel> made(api_.CreateKernel(program_.get(), name, &code), api_.ReleaseKernel);
    check(code, "clCreateKernel");
    return made;
  }

  template <class T>
  void argument(cl_kernel kernel, cl_uint index, const T& value) {
    check(api_.SetKernelArg(kernel, index, sizeof value, &value), "clSetKernelArg");
  }
  template <class T>
  void set_step_arguments(const Extent& padded) {
    argument(step_.get(), 0, now_.get());
    argument(step_.get(), 1, next_.get());
    argument(step_.get(), 2, static_cast<cl_int>(padded.rows));
    argument(step_.get(), 3, static_cast<cl_int>(padded.columns));
    argument(step_.get(), 4, static_cast<T>(weights_.centre));
    argument(step_.get(), 5, static_cast<T>(weights_.cardinal));
    argument(step_.get(), 6, static_cast<T>(weights_.diagonal));
  }
  void move_columns(cl_kernel kernel, Side side, Direction direction) {
    const Place strip = layout_.strip(side, direction);
    argument(kernel, 0, now_.get());
    argument(kernel, 1, boxes_.get());
    argument(kernel, 2, static_cast<cl_int>(layout_.padded().rows));
    argument(kernel, 3, static_cast<cl_int>(layout_.padded().columns));
    argument(kernel, 4, static_cast<cl_int>(layout_.box_column(side, direction)));
    argument(kernel, 5, static_cast<cl_int>(layout_.halo));
    argument(kernel, 6, static_cast<cl_ulong>(strip.offset / layout_.element()));
    launch(kernel, {round_up(layout_.padded().rows, 64), 1}, {64, 1}, 1);
  }
  void launch(cl_kernel kernel, std::array<std::size_t, 2> global, std::array<std::size_t, 2> local, cl_uint dimensions) {
    check(api_.EnqueueNDRangeKernel(queue_.get(), kernel, dimensions, nullptr, global.data(), local.data(), 0, nullptr,
                                    nullptr),
          "clEnqueueNDRangeKernel");
  }

  const OpenclApi& api_;
  cl_device_id device_;
  Layout layout_;
  Weights weights_;
  Handle<cl_context> context_;
  Handle<cl_command_queue> queue_;
  Handle<cl_program> program_;
  Handle<cl_kernel> step_, pack_, unpack_;
  Handle<cl_mem> now_, next_, boxes_;
};

// GPUs if there are any, otherwise whatever else there is.
std::vector<cl_device_id> usable_devices(const OpenclApi& api) {
  cl_uint platform_count = 0;
  if (api.GetPlatformIDs(0, nullptr, &platform_count) != CL_SUCCESS) return {};
  std::vector<cl_platform_id> platforms(platform_count);
  api.GetPlatformIDs(platform_count, platforms.data(), nullptr);
  for (const cl_device_type type : {cl_device_type{CL_DEVICE_TYPE_GPU}, cl_device_type{CL_DEVICE_TYPE_ALL}}) {
    std::vector<cl_device_id> devices;
    for (const cl_platform_id platform : platforms) {
      cl_uint count = 0;
      if (api.GetDeviceIDs(platform, type, 0, nullptr, &count) != CL_SUCCESS) continue;
      devices.resize(devices.size() + count);
      api.GetDeviceIDs(platform, type, count, devices.data() + devices.size() - count, nullptr);
    }
    if (!devices.empty()) return devices;
  }
  return {};
}

}  // namespace

std::unique_ptr<Backend> make_opencl_backend(int local_rank, Precision precision, std::string& reason) {
  const OpenclApi* const api = OpenclApi::load(reason);
  if (!api) return nullptr;
  const auto devices = usable_devices(*api);
  if (devices.empty()) {
    reason = "no OpenCL platform has a device";
    return nullptr;
  }
  const cl_device_id device = devices[static_cast<std::size_t>(local_rank) % devices.size()];
  cl_device_fp_config doubles = 0;
  api->GetDeviceInfo(device, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof doubles, &doubles, nullptr);
  if (precision == Precision::double_precision && doubles == 0) {
    reason = "the OpenCL device has no double precision";
    return nullptr;
  }
  return std::make_unique<OpenclBackend>(*api, device, precision);
}

}  // namespace stencil
