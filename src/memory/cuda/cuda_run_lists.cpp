#include "memory/cuda/cuda_run_lists.hpp"

namespace ist {

void CudaRunLists::let_go(bool all) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [this, all](const Entry& entry) {
    if (!all && !entry.form.expired()) return false;
    calls_.release(entry.memory);
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
  auto memory = calls_.allocate(context, Bytes{runs.numbers.size() * sizeof(std::int64_t)});
  if (!memory.ok()) return memory.status();
  const Status there = calls_.bring(*memory, reinterpret_cast<const std::byte*>(runs.numbers.data()));
  if (!there.ok()) {
    calls_.release(*memory);
    return there;
  }
  const std::uint64_t begins = memory->object + runs.runs * sizeof(std::int64_t);
  const std::lock_guard lock(mutex_);
  const List list{memory->object, runs.each == 0 ? begins : 0, runs.runs, runs.each, pack_width(*form, 0)};
  entries_.push_back({form, &context, *memory, list});
  return list;
}

}  // namespace ist
