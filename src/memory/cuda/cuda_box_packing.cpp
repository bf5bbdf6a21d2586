// Packing of many boxes and lists at once, ordered like a copy or put into a user's stream.
#include <algorithm>

#include "base/ranges.hpp"
#include "memory/cuda/box_protocol.hpp"
#include "memory/cuda/cuda_packer.hpp"

namespace ist {
namespace {

// Whole forms with few dimensions and not beyond 2^31 units, and of lists those that do not come alone; the rest has a launch of its own.
bool is_box(const PackWork& work, std::size_t works) {
  const Form& form = *work.form;
  if (form.dimensions > (form.strided() ? 3 : 2) || work.from != 0 || work.to != form.size) return false;
  if (!form.strided() && (works == 1 || form.runs.size() >= packing::kNear)) return false;
  for (std::size_t d = 0; d < form.dimensions; ++d)
    if (static_cast<std::uint64_t>(form.dimension[d].count) >= packing::kNear) return false;
  return static_cast<std::uint64_t>(form.size) < packing::kNear;
}

std::uint64_t addresses_of(const packing::Box& box) {
  return reinterpret_cast<std::uint64_t>(box.memory) | reinterpret_cast<std::uint64_t>(box.packed);
}

void fill_in_blocks(packing::Box& box, const Form& form) {
  Form shape = form;
  shape.offset = 0;
  const std::int64_t width = pack_width(shape, addresses_of(box));
  box.width = static_cast<std::uint8_t>(width);
  box.block = static_cast<std::uint32_t>(form.block / width);
  for (std::size_t d = 0; d < std::min<std::size_t>(form.dimensions, 2); ++d)
    box.count[d] = static_cast<std::uint32_t>(form.dimension[d].count);
}

void fill_in_runs(packing::Box& box, const Form& form, const CudaRunLists::List& list) {
  using packing::RunsAre;
  const std::int64_t width = pack_width(Form{}, addresses_of(box) | static_cast<std::uint64_t>(list.width));
  box.width = static_cast<std::uint8_t>(width);
  box.scale = static_cast<std::uint8_t>(list.scale);
  box.count[0] = static_cast<std::uint32_t>(form.list_bytes() / width);
  if (form.dimensions > 0) box.count[1] = static_cast<std::uint32_t>(form.dimension[0].count);
  box.list = list.begins != 0 ? RunsAre::unequal : (list.places != 0 ? RunsAre::near : RunsAre::far);
  box.block = static_cast<std::uint32_t>(list.begins != 0 ? static_cast<std::int64_t>(list.runs) : list.each / width);
  box.runs = reinterpret_cast<const void*>(list.places != 0 ? list.places : list.offsets);
}

}  // namespace

// The context must be current. Runs of a list are brought to it the first time, which waits for them.
Result<packing::Box> CudaKind::box_of(const PackWork& work, CudaContext& context) {
  const Form& form = *work.form;
  packing::Box box;
  box.memory = work.memory.address() + work.origin + form.offset;
  box.packed = work.packed.address();
  for (std::size_t d = 0; d < form.dimensions; ++d) box.stride[d] = form.dimension[d].stride;
  if (form.strided()) {
    fill_in_blocks(box, form);
  } else {
    const auto list = run_lists_.of(work.form, context);
    if (!list.ok()) return list.status();
    fill_in_runs(box, form, *list);
  }
  box.units = static_cast<std::uint32_t>(form.size / box.width);
  return box;
}

// The context must be current.
Status CudaKind::launch_packing(CudaContext& context, CUstream stream, std::span<const PackWork> works, std::uint64_t came) {
  const Range range("isthmus: cuda pack boxes");
  const bool unpacks = works.front().unpacks;
  const auto kernel = kernels_.find_boxes(context, unpacks);
  if (!kernel.ok()) return kernel.status();
  packing::Boxes boxes;
  boxes.came = reinterpret_cast<const std::uint64_t*>(came);
  CUresult result = CUDA_SUCCESS;
  const auto launch = [&] {
    if (boxes.count == 0) return;
    result = kernels_.launch_blocks(*kernel, &boxes, boxes.box[boxes.count - 1].end, stream);
    boxes.count = 0;
  };
  for (const PackWork& work : works) {
    if (!is_box(work, works.size())) {
      auto packer = packer_of(work, context);
      if (!packer.ok()) return packer.status();
      packer->work.came = boxes.came;
      result = kernels_.launch_blocks(packer->kernel, &packer->work, packer->blocks, stream);
    } else {
      auto made = box_of(work, context);
      if (!made.ok()) return made.status();
      packing::Box box = *made;
      const std::uint32_t begin = boxes.count == 0 ? 0 : boxes.box[boxes.count - 1].end;
      // Of a large box every thread takes its turn more often; few blocks more than a device holds at once.
      const unsigned most = static_cast<unsigned>(std::max(1, context.multiprocessors)) * 8;
      box.end = begin + std::min(CudaKernels::blocks_for(box.units, packing::kUnitsOfBoxes), most);
      boxes.box[boxes.count++] = box;
      if (boxes.count == packing::kMostBoxes) launch();
    }
    if (result != CUDA_SUCCESS) break;
  }
  if (result == CUDA_SUCCESS) launch();
  if (result == CUDA_SUCCESS) return {};
  return cuda_error(api_, result,
                    std::string{"cuLaunchKernel for "} + (unpacks ? "unpacking " : "packing ") +
                        std::to_string(works.size()) + " boxes, the first of them of " +
                        describe_piece(works.front().memory));
}

Result<Ticket> CudaKind::pack_boxes(std::span<const PackWork> works, const Ticket& after) {
  IST_TRY(settle_order(after));
  Result<CudaContext*> context = context_of_both(works.front().memory, works.front().packed);
  if (!context.ok()) return context.status();
  const ContextScope scope(api_, **context);
  IST_TRY(scope.status());
  IST_TRY(prepare_packing(works, **context));
  Result<Route> route = plan(**context, CopyDirection::between_devices, after);
  if (!route.ok()) return route.status();
  const std::uint64_t id = route->ticket->id();
  CUresult result = enter(*route);
  Status started = result == CUDA_SUCCESS ? launch_packing(**context, route->stream, works, 0)
                                          : cuda_error(api_, result, "cuStreamWaitEvent before boxes are packed");
  // Where some were launched and one was not, nothing touches the pieces any more when the error is told.
  if (!started.ok()) api_.cuStreamSynchronize(route->stream);
  if (started.ok()) {
    result = leave(*route, true);
    if (result == CUDA_SUCCESS) return under_way(*route->ticket, id);
    started = cuda_error(api_, result, "cuEventRecord behind boxes that are packed");
  }
  give_back(*route->ticket);
  return started;
}

Status CudaKind::pack_in(std::uint64_t stream, std::span<const PackWork> works) {
  Result<CudaContext*> context = context_of_both(works.front().memory, works.front().packed);
  if (!context.ok()) return context.status();
  const ContextScope scope(api_, **context);
  IST_TRY(scope.status());
  return launch_packing(**context, reinterpret_cast<CUstream>(stream), works, 0);
}

Status CudaKind::relay_in(std::uint64_t stream, const PackWork& from, const PackWork& to) {
  Result<CudaContext*> context = context_of_both(from.memory, to.memory);
  if (!context.ok()) return context.status();
  const ContextScope scope(api_, **context);
  IST_TRY(scope.status());
  auto relayer = relayer_of(from, to, **context);
  if (!relayer.ok()) return relayer.status();
  const CUresult result =
      kernels_.launch_blocks(relayer->kernel, &relayer->work, relayer->blocks, reinterpret_cast<CUstream>(stream));
  if (result == CUDA_SUCCESS) return {};
  return cuda_error(api_, result,
                    "cuLaunchKernel from " + describe_piece(from.memory) + " to the layout of " + describe_piece(to.memory));
}

Status CudaKind::pack_at(int device, std::uint64_t stream, const PackWork& work, std::uint64_t came) {
  Result<CudaContext*> context = contexts_.primary(device);
  if (!context.ok()) return context.status();
  const ContextScope scope(api_, **context);
  IST_TRY(scope.status());
  return launch_packing(**context, reinterpret_cast<CUstream>(stream), std::span{&work, 1}, came);
}

Status CudaKind::prepare_at(int device, const PackWork& work) {
  Result<CudaContext*> context = contexts_.primary(device);
  if (!context.ok()) return context.status();
  const ContextScope scope(api_, **context);
  IST_TRY(scope.status());
  return prepare_packing(std::span{&work, 1}, **context);
}

Status CudaKind::prepare_packing(std::span<const PackWork> works) {
  Result<CudaContext*> context = context_of_both(works.front().memory, works.front().packed);
  if (!context.ok()) return context.status();
  const ContextScope scope(api_, **context);
  IST_TRY(scope.status());
  return prepare_packing(works, **context);
}

// The context must be current.
Status CudaKind::prepare_packing(std::span<const PackWork> works, CudaContext& context) {
  if (const auto kernel = kernels_.find_boxes(context, works.front().unpacks); !kernel.ok()) return kernel.status();
  for (const PackWork& work : works) {
    if (is_box(work, works.size())) {
      if (const auto box = box_of(work, context); !box.ok()) return box.status();
    } else if (const auto packer = packer_of(work, context); !packer.ok()) {
      return packer.status();
    }
  }
  return {};
}

}  // namespace ist
