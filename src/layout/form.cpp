#include "layout/form.hpp"

#include <algorithm>
#include <cstdlib>

namespace ist {
namespace {

constexpr std::int64_t kMostSorted = 1 << 20;

// From the first block of a group to the first block of the last one, over the innermost so many dimensions.
std::int64_t reach(const Form& form, std::size_t dimensions) {
  std::int64_t sum = 0;
  for (std::size_t d = 0; d < dimensions; ++d) sum += (form.dimension[d].count - 1) * form.dimension[d].stride;
  return sum;
}

std::int64_t blocks_of(const Form& form) { return form.block == 0 ? 0 : form.size / form.block; }

// How many of the starts are equidistant from the first on.
std::size_t equidistant(std::span<const std::int64_t> starts) {
  std::size_t n = std::min<std::size_t>(starts.size(), 2);
  while (n < starts.size() && starts[n] - starts[n - 1] == starts[1] - starts[0]) ++n;
  return n;
}

// Takes the innermost dimension off; false: the starts are no groups of one shape.
bool take_dimension(std::vector<std::int64_t>& starts, Dimension& dimension) {
  const std::size_t length = equidistant(starts);
  if (starts.size() % length != 0) return false;
  const std::int64_t stride = starts[1] - starts[0];
  std::vector<std::int64_t> groups;
  for (std::size_t at = 0; at < starts.size(); at += length) {
    for (std::size_t i = 1; i < length; ++i)
      if (starts[at + i] - starts[at + i - 1] != stride) return false;
    groups.push_back(starts[at]);
  }
  dimension = {static_cast<std::int64_t>(length), stride};
  starts = std::move(groups);
  return true;
}

bool take_dimensions(const std::vector<Run>& runs, Form& form) {
  std::vector<std::int64_t> starts;
  starts.reserve(runs.size());
  for (const Run& run : runs) {
    if (run.bytes != runs.front().bytes) return false;
    starts.push_back(run.offset);
  }
  form.offset = starts.front();
  form.block = runs.front().bytes;
  while (starts.size() > 1) {
    if (form.dimensions == kMostDimensions || !take_dimension(starts, form.dimension[form.dimensions])) return false;
    ++form.dimensions;
  }
  return true;
}

}  // namespace

void append(std::vector<Run>& runs, Run next) {
  if (next.bytes == 0) return;
  if (!runs.empty() && runs.back().offset + runs.back().bytes == next.offset)
    runs.back().bytes += next.bytes;
  else
    runs.push_back(next);
}

std::optional<Form> repeated(const Form& form, std::int64_t count, std::int64_t stride) {
  if (form.size == 0 || count == 0) return Form{};
  if (count == 1) return form;
  if (!form.strided()) return {};
  Form made = form;
  made.size = form.size * count;
  const std::int64_t step =
      stride - reach(form, form.dimensions);  // from the last block to the first of the next repetition
  if (step == form.block) {
    // Blocks melt together: into longer ones, or, where there were several, into ones of two lengths.
    if (form.dimensions > 0) return {};
    made.block *= count;
    return made;
  }
  if (form.dimensions > 0) {
    Dimension& outermost = made.dimension[form.dimensions - 1];
    if (stride == outermost.count * outermost.stride) {
      outermost.count *= count;
      return made;
    }
  }
  if (form.dimensions == kMostDimensions) return {};
  made.dimension[made.dimensions++] = {count, stride};
  return made;
}

Form form_of(std::vector<Run> runs) {
  Form form;
  if (runs.empty()) return form;
  Form strided;
  for (const Run& run : runs) form.size += run.bytes;
  strided.size = form.size;
  if (take_dimensions(runs, strided)) return strided;
  form.begins.reserve(runs.size());
  std::int64_t begin = 0;
  for (const Run& run : runs) {
    form.begins.push_back(begin);
    begin += run.bytes;
  }
  form.runs = std::move(runs);
  return form;
}

Overlap overlap_of(const Form& form) {
  std::vector<Run> sorted = form.runs;
  if (form.strided()) {
    // Each dimension that steps over all that the shorter ones reach keeps its blocks apart.
    std::vector<Dimension> dimensions(form.dimension.begin(),
                                      form.dimension.begin() + static_cast<std::ptrdiff_t>(form.dimensions));
    for (auto& dimension : dimensions) dimension.stride = std::abs(dimension.stride);
    std::sort(dimensions.begin(), dimensions.end(),
              [](const Dimension& a, const Dimension& b) { return a.stride < b.stride; });
    std::int64_t span = form.block;
    bool apart = true;
    for (const Dimension& dimension : dimensions) {
      apart = apart && dimension.stride >= span;
      span += (dimension.count - 1) * dimension.stride;
    }
    if (apart) return Overlap::none;
    if (blocks_of(form) > kMostSorted) return Overlap::unknown;
    each_block(form, [&](std::int64_t offset) { sorted.push_back({offset, form.block}); });
  }
  std::sort(sorted.begin(), sorted.end(), [](const Run& a, const Run& b) { return a.offset < b.offset; });
  for (std::size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i - 1].offset + sorted[i - 1].bytes > sorted[i].offset) return Overlap::some;
  return Overlap::none;
}

std::string described(const Form& form) {
  if (form.size == 0) return "no bytes";
  if (!form.strided()) return std::to_string(form.size) + " bytes in " + std::to_string(form.runs.size()) + " runs";
  std::string text = std::to_string(blocks_of(form)) + (blocks_of(form) == 1 ? " block of " : " blocks of ") +
                     std::to_string(form.block) + " bytes from " + std::to_string(form.offset);
  for (std::size_t d = 0; d < form.dimensions; ++d)
    text += (d == 0 ? ": " : ", ") + std::to_string(form.dimension[d].count) + " every " +
            std::to_string(form.dimension[d].stride);
  return text;
}

}  // namespace ist
