// Modules and kernels: of the library's own image, and a kernel does on the fake memory what its name says, with the
// processor's arithmetic.
#include <algorithm>
#include <cstring>

#include "fake_channel.hpp"
#include "fake_world.hpp"
#include "memory/reduction.hpp"

using fake::current;
using fake::Lock;
using fake::world;

struct CUmod_st {
  CUcontext context = nullptr;
  bool unloaded = false;
  std::vector<std::unique_ptr<CUfunc_st>> functions;
};

struct CUfunc_st {
  CUmodule module = nullptr;
  ist::Reduction reduction = ist::Reduction::sum;
  ist_type type = IST_BYTE;
  std::optional<int> channel = std::nullopt;  // one of the kernels of channels
  std::optional<int> limit = std::nullopt;    // one of the limits'
  std::optional<int> one_sided = std::nullopt;
  std::optional<int> pack = std::nullopt;  // one of those that pack
  std::optional<fake::MeetingKernel> meeting = std::nullopt;
  std::optional<fake::WordKernel> word;
  bool worker = false;
  bool there = false;  // its code is on the device
};

namespace {

constexpr std::string_view kMeeting = "isthmus_meet_";

// Some type of the kernel's element; any will do.
bool find_reduction(std::string_view name, CUfunc_st& found) {
  for (std::size_t reduction = 1; reduction <= ist::kReductions; ++reduction) {
    for (int type = 0; ist::element_of(static_cast<ist_type>(type)); ++type) {
      found.reduction = static_cast<ist::Reduction>(reduction);
      found.type = static_cast<ist_type>(type);
      const bool applies = ist::applicable(found.reduction, found.type).ok();
      if (applies && ist::kernel_name(found.reduction, *ist::element_of(found.type)) == name) return true;
    }
  }
  return false;
}

bool find_kernel(std::string_view name, CUfunc_st& found) {
  using What = fake::MeetingKernel::What;
  if (found.worker = fake::worker_kernel(name); found.worker) return true;
  if (found.channel = fake::channel_kernel(name); found.channel) return true;
  if (found.limit = fake::limit_kernel(name); found.limit) return true;
  if (found.one_sided = fake::one_sided_kernel(name); found.one_sided) return true;
  if (found.pack = fake::pack_kernel(name); found.pack) return true;
  if (found.word = fake::word_kernel(name); found.word) return true;
  if (!name.starts_with(kMeeting)) return find_reduction(name, found);
  const std::string_view which = name.substr(kMeeting.size());
  const What what = which == "barrier" ? What::barrier : which == "bcast" ? What::bcast : What::reduce;
  if (what == What::reduce && !find_reduction("isthmus_" + std::string{which}, found)) return false;
  found.meeting = fake::MeetingKernel{what, found.reduction, found.type};
  return true;
}

// What a kernel of that context can reach.
std::byte* reached_by(CUcontext context, std::uint64_t address, std::uint64_t size) {
  const fake::Allocation* found = fake::find(address);
  if (found == nullptr) return nullptr;
  const bool foreign = found->context != nullptr && found->context != context && found->kind != fake::Class::managed;
  return foreign ? nullptr : fake::place(address, size);
}

}  // namespace

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  FAKE_ENTER(cuModuleLoadData);
  Lock lock(world().lock);
  if (const CUresult result = fake::usable(current()); result != CUDA_SUCCESS) return result;
  fake::wait_for_device(lock);
  constexpr std::uint32_t kFatbin = 0xba55ed50;
  if (std::memcmp(image, &kFatbin, sizeof kFatbin) != 0) return CUDA_ERROR_INVALID_IMAGE;
  world().modules.push_back(new CUmod_st);
  *module = world().modules.back();
  (*module)->context = current();
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  FAKE_ENTER(cuModuleGetFunction);
  const Lock lock(world().lock);
  if (module->context->destroyed) fake::misused("cuModuleGetFunction");
  if (module->unloaded || module->context != current()) return CUDA_ERROR_INVALID_HANDLE;
  auto made = std::make_unique<CUfunc_st>();
  made->module = module;
  if (!find_kernel(name, *made)) return CUDA_ERROR_NOT_FOUND;
  *function = made.get();
  module->functions.push_back(std::move(made));
  return CUDA_SUCCESS;
}

// As of the worker on some device.
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  FAKE_ENTER(cuFuncGetAttribute);
  const Lock lock(world().lock);
  if (function->module->unloaded) return CUDA_ERROR_INVALID_HANDLE;
  if (attribute != CU_FUNC_ATTRIBUTE_NUM_REGS && attribute != CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)
    return CUDA_ERROR_INVALID_VALUE;
  *value = attribute == CU_FUNC_ATTRIBUTE_NUM_REGS ? 72 : 640;
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module) {
  FAKE_ENTER(cuModuleUnload);
  const Lock lock(world().lock);
  if (module->context->destroyed) fake::misused("cuModuleUnload");
  if (module->unloaded) return CUDA_ERROR_INVALID_HANDLE;
  module->unloaded = true;
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned blocks, unsigned blocks_y, unsigned blocks_z, unsigned threads,
                        unsigned threads_y, unsigned threads_z, unsigned, CUstream handle, void** arguments, void**) {
  FAKE_ENTER(cuLaunchKernel);
  Lock lock(world().lock);
  CUstream stream = nullptr;
  if (const CUresult result = fake::resolve(handle, stream); result != CUDA_SUCCESS) return result;
  fake::note("cuLaunchKernel", stream);
  CUcontext context = stream->context;
  if (function->module->context != context || function->module->unloaded) return CUDA_ERROR_INVALID_HANDLE;
  const unsigned sizes[] = {blocks, blocks_y, blocks_z, threads, threads_y, threads_z};
  if (std::count(std::begin(sizes), std::end(sizes), 0U) != 0 || threads > 1024) return CUDA_ERROR_INVALID_VALUE;
  // Loaded lazily, the code comes with the first launch, and not before all that runs in the context is over.
  if (world().lazy && !function->there)
    for (CUstream each : std::vector<CUstream>(context->streams)) fake::wait_for(lock, each);
  function->there = true;
  if (function->worker) {
    fake::enqueue(stream, fake::worker_work(context, arguments[0]));
    return CUDA_SUCCESS;
  }
  if (function->channel || function->meeting || function->limit || function->one_sided || function->pack || function->word) {
    const void* const argument = arguments == nullptr ? nullptr : arguments[0];
    auto work = function->channel     ? fake::channel_work(*function->channel, context, blocks, argument)
                : function->limit     ? fake::limit_work(*function->limit, context, blocks, argument)
                : function->one_sided ? fake::one_sided_work(*function->one_sided, context, blocks, argument)
                : function->pack      ? fake::pack_work(*function->pack, context, blocks, argument)
                : function->word      ? fake::word_work(*function->word, context, argument)
                                      : fake::meeting_work(*function->meeting, context, blocks, argument);
    if (!work)
      work = [context] {
        const Lock inner(world().lock);
        context->lost = CUDA_ERROR_ILLEGAL_ADDRESS;
      };
    fake::enqueue(stream, std::move(*work));
    return CUDA_SUCCESS;
  }
  std::uint64_t numbers[3];
  for (int i = 0; i < 3; ++i) std::memcpy(&numbers[i], arguments[i], sizeof numbers[i]);
  const auto [into, with, count] = numbers;
  const std::uint64_t alignment = ist::alignment_of(*ist::element_of(function->type)).value;
  const std::uint64_t size = count * ist::size_of(function->type).value;
  std::byte* target = reached_by(context, into, size);
  const std::byte* source = reached_by(context, with, size);
  const CUresult fault = (into | with) % alignment != 0 ? CUDA_ERROR_MISALIGNED_ADDRESS : CUDA_ERROR_ILLEGAL_ADDRESS;
  const bool wrong = target == nullptr || source == nullptr || (into | with) % alignment != 0;
  fake::enqueue(stream, [=, reduction = function->reduction, type = function->type, elements = count] {
    if (!wrong) return ist::combine_on_host(reduction, type, target, source, static_cast<std::int64_t>(elements));
    const Lock inner(world().lock);
    context->lost = fault;
  });
  return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  FAKE_ENTER(cuModuleGetLoadingMode);
  const Lock lock(world().lock);
  *mode = world().lazy ? CU_MODULE_LAZY_LOADING : CU_MODULE_EAGER_LOADING;
  return CUDA_SUCCESS;
}
