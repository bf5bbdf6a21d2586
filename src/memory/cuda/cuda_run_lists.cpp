#include "memory/cuda/cuda_run_lists.hpp"

#include <bit>
#include <span>

namespace ist {

void CudaRunLists::let_go(bool all) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [all](const Entry& entry) {
    if (!all && !entry.form.expired()) return false;
    entry.memory.release_later();
    return true;
  });
}

Result<CudaRunLists::List> CudaRunLists::of(const SharedForm& form, CudaContext& context) {
  {
    const std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_)
      if (entry.context == &context && entry.form.lock() == form) return entry.list;
  }
  let_go(false);
  const RunList runs = run_list(*form);
  const std::int64_t width = pack_width(*form, 0);
  const std::vector<std::int32_t> near = short_offsets(runs, width);
  const auto bytes = near.empty() ? std::as_bytes(std::span{runs.numbers}) : std::as_bytes(std::span{near});
  auto memory = calls_.allocate(context, Bytes{bytes.size()});
  if (!memory.ok()) return memory.status();
  const Status there = calls_.bring(*memory, bytes.data());
  if (!there.ok()) {
    calls_.release(*memory);
    return there;
  }
  List list{.runs = runs.runs, .each = runs.each, .width = width};
  list.scale = static_cast<std::uint32_t>(std::countr_zero(static_cast<std::uint64_t>(width)));
  (near.empty() ? list.offsets : list.places) = memory->object;
  if (runs.each == 0) list.begins = memory->object + runs.runs * sizeof(std::int64_t);
  const std::lock_guard lock(mutex_);
  entries_.push_back({form, &context, calls_.keep(*memory), list});
  return list;
}

}  // namespace ist
