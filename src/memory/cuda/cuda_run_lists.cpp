#include "memory/cuda/cuda_run_lists.hpp"

#include <algorithm>

namespace ist {
namespace {

bool as_long(const std::vector<Run>& runs) {
  return std::all_of(runs.begin(), runs.end(), [&](const Run& run) { return run.bytes == runs.front().bytes; });
}

}  // namespace

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
  const bool equal = as_long(form->runs);
  std::vector<std::int64_t> numbers;
  numbers.reserve(form->runs.size() * 2);
  for (const Run& run : form->runs) numbers.push_back(run.offset);
  if (!equal) numbers.insert(numbers.end(), form->begins.begin(), form->begins.end());
  auto memory = calls_.allocate(context, Bytes{numbers.size() * sizeof(std::int64_t)});
  if (!memory.ok()) return memory.status();
  const Status there = calls_.bring(*memory, reinterpret_cast<const std::byte*>(numbers.data()));
  if (!there.ok()) {
    calls_.release(*memory);
    return there;
  }
  const std::uint64_t begins = memory->object + form->runs.size() * sizeof(std::int64_t);
  const std::lock_guard lock(mutex_);
  const List list{memory->object, equal ? 0 : begins, pack_width(*form, 0)};
  entries_.push_back({form, &context, *memory, list});
  return list;
}

}  // namespace ist
