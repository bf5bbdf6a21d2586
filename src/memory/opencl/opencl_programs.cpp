#include "memory/opencl/opencl_programs.hpp"

#include <algorithm>
#include <array>

#include "memory/opencl/opencl_source.hpp"

namespace ist {
namespace {

// Enough to fill a device; each takes an element, and then the one that is as many further on.
constexpr std::size_t kMostItems = std::size_t{1} << 17U;
// Of a processor, for every count: PoCL keeps a kernel once more for each wider range it meets, and up to version 5 it mixes
// the two up when both run at once (pocl_release_dlhandle_cache aborts).
constexpr std::size_t kItemsOfProcessors = std::size_t{1} << 12U;
constexpr std::size_t kGroup = 64;

std::string first_lines(std::string text) {
  constexpr std::size_t kMost = 300;
  if (text.size() > kMost) text.resize(kMost);
  for (char& each : text)
    if (each == '\n' || each == '\0') each = ' ';
  return text;
}

}  // namespace

Status enqueue_items(const OpenclApi& api, const Items& what, cl_event after, cl_event* done, const std::string& purpose) {
  const auto groups = static_cast<std::size_t>((what.count + kGroup - 1) / kGroup);
  cl_device_type type = CL_DEVICE_TYPE_DEFAULT;
  IST_TRY(opencl_status(api.clGetDeviceInfo(what.device, CL_DEVICE_TYPE, sizeof type, &type, nullptr), "clGetDeviceInfo"));
  const std::size_t items = (type & CL_DEVICE_TYPE_CPU) != 0 ? kItemsOfProcessors : std::min(groups * kGroup, kMostItems);
  const auto enqueue = [&](const std::size_t* group) {
    return api.clEnqueueNDRangeKernel(what.queue, what.kernel, 1, nullptr, &items, group, after ? 1 : 0,
                                      after ? &after : nullptr, done);
  };
  // Always the same group: some drivers compile a kernel again for each size. Few devices take only smaller ones.
  cl_int error = enqueue(&kGroup);
  if (error == CL_INVALID_WORK_GROUP_SIZE || error == CL_INVALID_WORK_ITEM_SIZE) error = enqueue(nullptr);
  return opencl_status(error, "clEnqueueNDRangeKernel of " + purpose);
}

OpenclPrograms::~OpenclPrograms() {
  for (const auto& each : kernels_) api_.clReleaseKernel(each.second);
  for (const auto& each : programs_) api_.clReleaseProgram(each.second);
}

Result<cl_program> OpenclPrograms::build(cl_context context, cl_device_id device, Element element) const {
  cl_int error = CL_SUCCESS;
  const char* source = kOpenclSource;
  cl_program program = api_.clCreateProgramWithSource(context, 1, &source, nullptr, &error);
  IST_TRY(opencl_status(error, "clCreateProgramWithSource for a reduction"));
  const std::string options = opencl_options(element);
  error = api_.clBuildProgram(program, 1, &device, options.c_str(), nullptr, nullptr);
  if (error == CL_SUCCESS) return program;
  std::size_t size = 0;
  api_.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, ' ');
  api_.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  api_.clReleaseProgram(program);
  return opencl_status(error, "clBuildProgram for a reduction with " + options, IST_ERR_DEVICE, first_lines(log));
}

Result<cl_kernel> OpenclPrograms::find(cl_context context, cl_device_id device, Reduction reduction, Element element) {
  const std::lock_guard lock(mutex_);
  const auto known = kernels_.find({context, device, element, reduction});
  if (known != kernels_.end()) return known->second;
  auto program = programs_.find({context, device, element});
  if (program == programs_.end()) {
    const auto built = build(context, device, element);
    if (!built.ok()) return built.status();
    program = programs_.emplace(std::tuple{context, device, element}, *built).first;
  }
  const std::string name = "isthmus_" + std::string{name_of(reduction)};
  cl_int error = CL_SUCCESS;
  cl_kernel kernel = api_.clCreateKernel(program->second, name.c_str(), &error);
  IST_TRY(opencl_status(error, "clCreateKernel of " + name));
  kernels_.emplace(std::tuple{context, device, element, reduction}, kernel);
  return kernel;
}

Status OpenclPrograms::launch(cl_command_queue queue, const Work& work, cl_event after, cl_event* done) {
  const cl_mem into = memory_of(work.into);
  const cl_mem with = memory_of(work.with);
  const std::array<cl_ulong, 3> numbers{work.into.offset.value, work.with.offset.value, work.count};
  const std::array<std::pair<std::size_t, const void*>, 5> arguments{{{sizeof into, &into},
                                                                      {sizeof numbers[0], &numbers[0]},
                                                                      {sizeof with, &with},
                                                                      {sizeof numbers[1], &numbers[1]},
                                                                      {sizeof numbers[2], &numbers[2]}}};
  const std::lock_guard lock(mutex_);
  for (cl_uint i = 0; i < arguments.size(); ++i)
    IST_TRY(opencl_status(api_.clSetKernelArg(work.kernel, i, arguments[i].first, arguments[i].second),
                          "clSetKernelArg of a reduction"));
  return enqueue_items(api_, {queue, work.kernel, work.device, work.count}, after, done,
                       "a reduction of " + std::to_string(work.into.size.value) + " bytes");
}

}  // namespace ist
