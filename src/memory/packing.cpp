#include "memory/packing.hpp"

namespace ist {

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

}  // namespace ist
