#include "memory/opencl/opencl_packing.hpp"

#include <algorithm>
#include <array>

#include "memory/opencl/opencl_programs.hpp"

namespace ist {
namespace {

// As cuda/pack_protocol.hpp. WORD: a unit. INDEX: counts units, and is the wider one only where there are so many.
constexpr const char* kSource = R"(
#define JOIN(a, b) a##b
#define JOINED(a, b) JOIN(a, b)

long further(ulong index, int dimensions, ulong4 count, long4 stride) {
  const ulong counts[4] = {count.x, count.y, count.z, count.w};
  const long strides[4] = {stride.x, stride.y, stride.z, stride.w};
  long place = 0;
  for (int d = 0; d + 1 < dimensions; ++d) {
    place += (long)(index % counts[d]) * strides[d];
    index /= counts[d];
  }
  return dimensions > 0 ? place + (long)index * strides[dimensions - 1] : place;
}
long strided(ulong unit, long origin, ulong block, int dimensions, ulong4 count, long4 stride) {
  return origin + (long)(unit % block * sizeof(WORD)) + further(unit / block, dimensions, count, stride);
}
long listed(ulong unit, long origin, ulong block, int as_long, ulong runs, global const long* offsets) {
  if (as_long) return origin + offsets[unit / block] + (long)(unit % block * sizeof(WORD));
  global const long* begins = offsets + runs;
  const long byte = (long)(unit * sizeof(WORD));
  ulong low = 0;
  ulong high = runs;
  while (high - low > 1) {
    const ulong middle = (low + high) / 2;
    if (begins[middle] <= byte) low = middle; else high = middle;
  }
  return origin + offsets[low] + (byte - begins[low]);
}

#define PACK *(global WORD*)(packed + at) = *(global const WORD*)(memory + place)
#define UNPACK *(global WORD*)(memory + place) = *(global const WORD*)(packed + at)
#define KERNELS(name, move)                                                                                            \
  kernel void JOINED(name, strided)(global uchar* memory, long origin, global uchar* packed, ulong packed_at,          \
                                    ulong first, ulong units, ulong block, int dimensions, ulong4 count,               \
                                    long4 stride) {                                                                    \
    for (ulong i = get_global_id(0); i < units; i += get_global_size(0)) {                                             \
      const ulong at = packed_at + i * sizeof(WORD);                                                                   \
      const long place = strided(first + i, origin, block, dimensions, count, stride);                                 \
      move;                                                                                                            \
    }                                                                                                                  \
  }                                                                                                                    \
  kernel void JOINED(name, listed)(global uchar* memory, long origin, global uchar* packed, ulong packed_at,           \
                                   ulong first, ulong units, ulong block, int dimensions, ulong4 count,                \
                                   long4 stride, int as_long, ulong runs, global const long* offsets, ulong list) {    \
    for (ulong i = get_global_id(0); i < units; i += get_global_size(0)) {                                             \
      const ulong at = packed_at + i * sizeof(WORD);                                                                   \
      const ulong again = dimensions > 0 ? (first + i) / list : 0;                                                     \
      const long place = listed(first + i - again * list, origin, block, as_long, runs, offsets) +                     \
                         further(again, dimensions, count, stride);                                                    \
      move;                                                                                                            \
    }                                                                                                                  \
  }
KERNELS(pack_, PACK)
KERNELS(unpack_, UNPACK)
)";

const char* word_of(std::int64_t width) {
  switch (width) {
    case 1:
      return "-DWORD=uchar";
    case 2:
      return "-DWORD=ushort";
    case 4:
      return "-DWORD=uint";
    case 8:
      return "-DWORD=ulong";
    default:
      return "-DWORD=ulong2";
  }
}

}  // namespace

OpenclPacks::~OpenclPacks() {
  for (const auto& each : kernels_) api_.clReleaseKernel(each.second);
  for (const auto& each : programs_) api_.clReleaseProgram(each.second);
  for (const List& each : lists_) api_.clReleaseMemObject(each.memory);
}

Result<cl_program> OpenclPacks::build(const Where& where, std::int64_t width) const {
  cl_int error = CL_SUCCESS;
  const char* source = kSource;
  cl_program program = api_.clCreateProgramWithSource(where.context, 1, &source, nullptr, &error);
  IST_TRY(opencl_status(error, "clCreateProgramWithSource for packing"));
  error = api_.clBuildProgram(program, 1, &where.device, word_of(width), nullptr, nullptr);
  if (error == CL_SUCCESS) return program;
  std::array<char, 300> log{};
  api_.clGetProgramBuildInfo(program, where.device, CL_PROGRAM_BUILD_LOG, log.size() - 1, log.data(), nullptr);
  api_.clReleaseProgram(program);
  return opencl_status(error, std::string{"clBuildProgram for packing with "} + word_of(width), IST_ERR_DEVICE, log.data());
}

Result<cl_kernel> OpenclPacks::find(const Where& where, const PackWork& work, std::int64_t width) {
  const int which = (work.unpacks ? 1 : 0) + (work.form->strided() ? 0 : 2);
  const auto known = kernels_.find({where.context, where.device, width, which});
  if (known != kernels_.end()) return known->second;
  auto program = programs_.find({where.context, where.device, width});
  if (program == programs_.end()) {
    const auto built = build(where, width);
    if (!built.ok()) return built.status();
    program = programs_.emplace(std::tuple{where.context, where.device, width}, *built).first;
  }
  const std::string name = std::string{work.unpacks ? "unpack_" : "pack_"} + (work.form->strided() ? "strided" : "listed");
  cl_int error = CL_SUCCESS;
  cl_kernel kernel = api_.clCreateKernel(program->second, name.c_str(), &error);
  IST_TRY(opencl_status(error, "clCreateKernel of " + name));
  kernels_.emplace(std::tuple{where.context, where.device, width, which}, kernel);
  return kernel;
}

Result<OpenclPacks::List> OpenclPacks::list_of(const Where& where, const SharedForm& form) {
  for (const List& each : lists_)
    if (each.context == where.context && each.form.lock() == form) return each;
  std::erase_if(lists_, [this](const List& each) {
    if (!each.form.expired()) return false;
    api_.clReleaseMemObject(each.memory);
    return true;
  });
  const RunList runs = run_list(*form);
  std::vector<cl_long> numbers(runs.numbers.begin(), runs.numbers.end());
  cl_int error = CL_SUCCESS;
  const std::size_t bytes = numbers.size() * sizeof(cl_long);
  cl_mem memory = api_.clCreateBuffer(where.context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, bytes, numbers.data(), &error);
  IST_TRY(opencl_status(error, "clCreateBuffer of " + std::to_string(bytes) + " bytes for the runs of a layout",
                        IST_ERR_MEMORY));
  lists_.push_back({form, where.context, memory, runs.runs, runs.each, pack_width(*form, 0)});
  return lists_.back();
}

// Every number that addresses of the memory are made of, or-ed together.
std::uint64_t OpenclPacks::numbers_of(const PackWork& work) const {
  std::uint64_t numbers =
      work.memory.offset.value | static_cast<std::uint64_t>(work.origin | work.from | work.to) | work.packed.offset.value;
  // Memory of the user's own may begin anywhere.
  for (cl_mem each : {memory_of(work.memory), memory_of(work.packed)}) {
    void* host = nullptr;
    if (api_.clGetMemObjectInfo(each, CL_MEM_HOST_PTR, sizeof host, &host, nullptr) == CL_SUCCESS)
      numbers |= reinterpret_cast<std::uint64_t>(host);
  }
  return numbers;
}

Status OpenclPacks::set_arguments(cl_kernel kernel, const PackWork& work, std::int64_t width, const List& list) const {
  const Form& form = *work.form;
  const bool strided = form.strided();
  const cl_mem memory = memory_of(work.memory);
  const cl_mem packed = memory_of(work.packed);
  const cl_long origin = static_cast<cl_long>(work.memory.offset.value) + work.origin + form.offset;
  const cl_ulong packed_at = work.packed.offset.value;
  const auto first = static_cast<cl_ulong>(work.from / width);
  const auto units = static_cast<cl_ulong>((work.to - work.from) / width);
  const auto block = static_cast<cl_ulong>((strided ? form.block : list.each) / width);
  const auto dimensions = static_cast<cl_int>(form.dimensions);
  const auto as_long = static_cast<cl_int>(list.each != 0);
  const auto runs = static_cast<cl_ulong>(list.runs);
  const auto of_list = static_cast<cl_ulong>(form.list_bytes() / width);
  std::array<cl_ulong, kMostDimensions> counts{1, 1, 1, 1};
  std::array<cl_long, kMostDimensions> strides{};
  for (std::size_t d = 0; d < form.dimensions; ++d) {
    counts[d] = static_cast<cl_ulong>(form.dimension[d].count);
    strides[d] = form.dimension[d].stride;
  }
  const auto pointer = [](const auto& value) { return std::pair<std::size_t, const void*>{sizeof value, &value}; };
  const std::array<std::pair<std::size_t, const void*>, 14> arguments{
      {pointer(memory), pointer(origin), pointer(packed), pointer(packed_at), pointer(first), pointer(units), pointer(block),
       pointer(dimensions), pointer(counts), pointer(strides), pointer(as_long), pointer(runs), pointer(list.memory),
       pointer(of_list)}};
  constexpr cl_uint kOfLists = 4;  // the last ones
  for (cl_uint i = 0; i < arguments.size() - (strided ? kOfLists : 0); ++i)
    IST_TRY(opencl_status(api_.clSetKernelArg(kernel, i, arguments[i].first, arguments[i].second),
                          "clSetKernelArg for packing"));
  return {};
}

Status OpenclPacks::launch(const Where& where, const PackWork& work, cl_event after, cl_event* done) {
  const std::lock_guard lock(mutex_);
  std::uint64_t numbers = numbers_of(work);
  List list{};
  if (!work.form->strided()) {
    const auto found = list_of(where, work.form);
    if (!found.ok()) return found.status();
    list = *found;
    numbers |= static_cast<std::uint64_t>(list.width);
  }
  const std::int64_t width = pack_width(work.form->strided() ? *work.form : Form{}, numbers);
  const auto kernel = find(where, work, width);
  if (!kernel.ok()) return kernel.status();
  IST_TRY(set_arguments(*kernel, work, width, list));
  return enqueue_items(api_, {where.queue, *kernel, where.device, static_cast<std::uint64_t>((work.to - work.from) / width)},
                       after, done, "packing " + std::to_string(work.to - work.from) + " bytes");
}

}  // namespace ist
