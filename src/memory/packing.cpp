#include "memory/packing.hpp"

#include <numeric>
#include <utility>

namespace ist {

LentForm lent_form(const PackWork& work) {
  const Form& form = *work.form;
  return {work.origin, work.memory.size.value, form.offset, form.block, form.size, form.dimensions, form.dimension};
}

bool lies_apart(const PackWork& work) {
  constexpr std::int64_t kShortest = 64;
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  return work.memory.kind == KindId::cuda && work.form->strided() && work.form->block >= kShortest && work.to < kMost;
}

PackWork lent_work(const LentForm& lent, const Piece& memory, std::int64_t from, std::int64_t to) {
  Form form;
  form.offset = lent.offset;
  form.block = lent.block;
  form.size = lent.size;
  form.dimensions = lent.dimensions;
  form.dimension = lent.dimension;
  PackWork work;
  work.form = std::make_shared<const Form>(std::move(form));
  work.memory = memory;
  work.origin = lent.origin;
  work.from = from;
  work.to = to;
  return work;
}

RunList run_list(const Form& form) {
  RunList list;
  for (const Run& run : form.runs) list.each = std::gcd(list.each, run.bytes);
  const auto runs = static_cast<std::int64_t>(form.runs.size());
  if (list.each == 0 || form.list_bytes() / list.each > 2 * runs) {
    list.each = 0;
    list.numbers.reserve(2 * form.runs.size());
    for (const Run& run : form.runs) list.numbers.push_back(run.offset);
    list.runs = list.numbers.size();
    list.numbers.insert(list.numbers.end(), form.begins.begin(), form.begins.end());
    return list;
  }
  list.numbers.reserve(static_cast<std::size_t>(form.list_bytes() / list.each));
  for (const Run& run : form.runs)
    for (std::int64_t at = 0; at < run.bytes; at += list.each) list.numbers.push_back(run.offset + at);
  list.runs = list.numbers.size();
  return list;
}

std::vector<std::int32_t> short_offsets(const RunList& list, std::int64_t unit) {
  std::vector<std::int32_t> offsets;
  if (list.each == 0) return offsets;
  offsets.reserve(list.numbers.size());
  for (const std::int64_t number : list.numbers) {
    if (!std::in_range<std::int32_t>(number / unit)) return {};
    offsets.push_back(static_cast<std::int32_t>(number / unit));
  }
  return offsets;
}

std::int64_t pack_width(const Form& form, std::uint64_t more) {
  constexpr std::uint64_t kWidest = 16;
  std::uint64_t all = more | kWidest;
  const auto add = [&all](std::int64_t number) { all |= static_cast<std::uint64_t>(number); };
  add(form.block);
  if (form.strided()) add(form.offset);
  for (std::size_t d = 0; d < form.dimensions; ++d) add(form.dimension[d].stride);
  for (const Run& run : form.runs) add(run.offset), add(run.bytes);
  return static_cast<std::int64_t>(all & (~all + 1));
}

std::int64_t width_of(const PackWork& work) {
  const std::uint64_t numbers = work.memory.object | work.memory.offset.value | static_cast<std::uint64_t>(work.origin);
  return work.form->strided() ? pack_width(*work.form, numbers) : std::int64_t{sizeof(std::uint32_t)};
}

}  // namespace ist
