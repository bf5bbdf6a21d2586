#include "layout/form.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace ist {
namespace {

constexpr std::int64_t kMostSorted = 1 << 20;

// From the first block of a group to the first block of the last one, over all dimensions.
std::int64_t reach(const Form& form) {
  std::int64_t sum = 0;
  for (std::size_t d = 0; d < form.dimensions; ++d) sum += (form.dimension[d].count - 1) * form.dimension[d].stride;
  return sum;
}

std::int64_t first_of_list(const Form& form) { return form.strided() ? form.offset : form.runs.front().offset; }
// Behind the last byte of the pack order, if it came once.
std::int64_t behind_list(const Form& form) {
  return form.strided() ? form.offset + form.block : form.runs.back().offset + form.runs.back().bytes;
}

// Whether all runs are repetitions of the first so many of them.
bool come_again(std::span<const Run> runs, std::size_t period) {
  const std::int64_t stride = runs[period].offset - runs[0].offset;
  for (std::size_t i = period; i < runs.size(); ++i)
    if (runs[i].offset - runs[i - period].offset != stride || runs[i].bytes != runs[i - period].bytes) return false;
  return true;
}

// Of how many of the first runs all are repetitions. Periods that divide the number of runs have a common divisor that is one, too, so
// that the shortest is what is left when no prime can be taken off any more. What is known to have a period is looked at no further than
// one step beyond it.
std::size_t shortest_period(std::span<const Run> runs) {
  std::size_t period = runs.size();
  const auto take_off = [&](std::size_t prime) {
    while (period % prime == 0) {
      const std::size_t shorter = period / prime;
      if (!come_again(runs.first(std::min(runs.size(), period + shorter)), shorter)) return;
      period = shorter;
    }
  };
  std::size_t left = runs.size();
  for (std::size_t prime = 2; prime * prime <= left; ++prime) {
    if (left % prime != 0) continue;
    while (left % prime == 0) left /= prime;
    take_off(prime);
  }
  if (left > 1) take_off(left);
  return period;
}

// Takes dimensions off, the outermost first, and leaves what they repeat.
void take_dimensions(std::vector<Run>& runs, Form& form) {
  std::size_t length = runs.size();
  while (form.dimensions < kMostDimensions) {
    const std::size_t period = shortest_period(std::span{runs}.first(length));
    if (period == length) break;
    form.dimension[form.dimensions++] = {static_cast<std::int64_t>(length / period), runs[period].offset - runs[0].offset};
    length = period;
  }
  std::reverse(form.dimension.begin(), form.dimension.begin() + static_cast<std::ptrdiff_t>(form.dimensions));
  if (length == runs.size()) return;
  runs.resize(length);
  runs.shrink_to_fit();
}

std::int64_t set_list(Form& form, std::vector<Run> runs) {
  form.begins.reserve(runs.size());
  std::int64_t begin = 0;
  for (const Run& run : runs) {
    form.begins.push_back(begin);
    begin += run.bytes;
  }
  form.runs = std::move(runs);
  return begin;
}

bool by_offset(const Run& a, const Run& b) { return a.offset < b.offset; }

// What the dimensions make of sorted runs that are apart from each other: those that stay between two neighbours first, then those that
// step over all. False: their strides alone do not show that no byte is there twice.
bool apart(const Form& form, std::span<const Run> sorted) {
  std::vector<Dimension> dimensions(form.dimension.begin(),
                                    form.dimension.begin() + static_cast<std::ptrdiff_t>(form.dimensions));
  for (auto& dimension : dimensions) dimension.stride = std::abs(dimension.stride);
  std::sort(dimensions.begin(), dimensions.end(),
            [](const Dimension& a, const Dimension& b) { return a.stride < b.stride; });
  std::int64_t span = sorted.front().bytes;
  std::int64_t pitch = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    span = std::max(span, sorted[i].bytes);
    pitch = std::min(pitch, sorted[i].offset - sorted[i - 1].offset);
  }
  bool among = true;
  for (const Dimension& dimension : dimensions) {
    const std::int64_t further = (dimension.count - 1) * dimension.stride;
    if (among && further > pitch - span) {
      among = false;
      span += sorted.back().offset - sorted.front().offset;
    }
    if (dimension.stride < span) return false;
    span += further;
  }
  return true;
}

bool overlap(std::span<const Run> sorted) {
  for (std::size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i - 1].offset + sorted[i - 1].bytes > sorted[i].offset) return true;
  return false;
}

std::string in_number(std::int64_t number, const char* one, const char* several) {
  return std::to_string(number) + (number == 1 ? one : several);
}

}  // namespace

std::int64_t runs_of(const Form& form) {
  std::int64_t runs = form.size == 0 ? 0 : form.strided() ? 1 : static_cast<std::int64_t>(form.runs.size());
  for (std::size_t d = 0; d < form.dimensions; ++d) runs *= form.dimension[d].count;
  return runs;
}

std::optional<Form> repeated(Form form, std::int64_t count, std::int64_t stride) {
  if (form.size == 0 || count == 0) return Form{};
  if (count == 1) return form;
  form.size *= count;
  if (behind_list(form) + reach(form) == first_of_list(form) + stride) {
    // Blocks melt together: into longer ones, or, where there were several, into ones of two lengths.
    if (form.dimensions > 0 || !form.strided()) return {};
    form.block *= count;
    return form;
  }
  if (form.dimensions > 0) {
    Dimension& outermost = form.dimension[form.dimensions - 1];
    if (stride == outermost.count * outermost.stride) {
      outermost.count *= count;
      return form;
    }
  }
  if (form.dimensions == kMostDimensions) return {};
  form.dimension[form.dimensions++] = {count, stride};
  return form;
}

std::optional<Form> unrolled(const Form& form) {
  const Dimension innermost = form.dimension[0];
  const auto each = static_cast<std::int64_t>(form.strided() ? 1 : form.runs.size());
  if (innermost.count > kMostRuns / each) return {};
  std::vector<Run> runs;
  runs.reserve(static_cast<std::size_t>(innermost.count * each));
  for (std::int64_t i = 0; i < innermost.count; ++i) {
    if (form.strided()) runs.push_back({form.offset + i * innermost.stride, form.block});
    for (const Run& run : form.runs) runs.push_back({run.offset + i * innermost.stride, run.bytes});
  }
  Form made;
  made.size = form.size;
  made.dimensions = form.dimensions - 1;
  std::copy(form.dimension.begin() + 1, form.dimension.end(), made.dimension.begin());
  set_list(made, std::move(runs));
  return made;
}

Form form_of(std::vector<Run> runs) {
  Form form;
  if (runs.empty()) return form;
  take_dimensions(runs, form);
  if (runs.size() == 1) {
    form.offset = runs.front().offset;
    form.size = form.block = runs.front().bytes;
  } else {
    form.size = set_list(form, std::move(runs));
  }
  for (std::size_t d = 0; d < form.dimensions; ++d) form.size *= form.dimension[d].count;
  return form;
}

// From the first byte to the last one.
std::int64_t reach_of(const Form& form, std::span<const Run> sorted) {
  std::int64_t end = sorted.front().offset;
  for (const Run& run : sorted) end = std::max(end, run.offset + run.bytes);
  std::int64_t reach = end - sorted.front().offset;
  for (std::size_t d = 0; d < form.dimensions; ++d)
    reach += (form.dimension[d].count - 1) * std::abs(form.dimension[d].stride);
  return reach;
}

Overlap overlap_of(const Form& form) {
  if (form.size == 0) return Overlap::none;
  const Run block{form.offset, form.block};
  std::vector<Run> sorted;
  std::span<const Run> list = form.strided() ? std::span{&block, 1} : std::span{form.runs};
  if (!std::is_sorted(list.begin(), list.end(), by_offset)) {
    sorted.assign(list.begin(), list.end());
    std::sort(sorted.begin(), sorted.end(), by_offset);
    list = sorted;
  }
  if (overlap(list) || form.size > reach_of(form, list)) return Overlap::some;
  if (form.dimensions == 0 || apart(form, list)) return Overlap::none;
  if (runs_of(form) > kMostSorted) return Overlap::unknown;
  std::vector<Run> all;
  all.reserve(static_cast<std::size_t>(runs_of(form)));
  each_run(form, [&](const Run& run) { all.push_back(run); });
  std::sort(all.begin(), all.end(), by_offset);
  return overlap(all) ? Overlap::some : Overlap::none;
}

std::string described(const Form& form) {
  if (form.size == 0) return "no bytes";
  const std::int64_t runs = runs_of(form);
  std::string text;
  if (form.strided())
    text = in_number(runs, " block of ", " blocks of ") + std::to_string(form.block) + " bytes from " +
           std::to_string(form.offset);
  else
    text = std::to_string(form.size) + " bytes in " + std::to_string(runs) + " runs";
  if (!form.strided() && form.dimensions > 0) text += ", a list of " + std::to_string(form.runs.size());
  for (std::size_t d = 0; d < form.dimensions; ++d)
    text += (d == 0 ? ": " : ", ") + std::to_string(form.dimension[d].count) + " every " +
            std::to_string(form.dimension[d].stride);
  return text;
}

}  // namespace ist
