// particles' kernels, played by the processor over the fake driver: each launch is a host function in its stream, so that lists, messages out of
// device memory and holes are run where there is no GPU. The kernels' own code is not.
#include "particles/kernels.hpp"
#include "played_driver.hpp"

namespace {

using played::host, played::post;

particles::Span on_host(particles::Span span) {
  span.first = host(span.first);
  return span;
}

}  // namespace

namespace particles {

void launch_move(const Span& particles, const Cut& cut, const Search& search, cudaStream_t stream) {
  post(stream, [=, of = on_host(particles), part = host(search.part)] {
    std::int64_t found = 0;
    for (std::int64_t i = 0; i < of.count; ++i) {
      double* const now = of.first + i * of.particle;
      double at[3];
      for (int d = 0; d < 3; ++d)
        now[(position + d) * of.word] = at[d] = moved(now[(position + d) * of.word], now[(velocity + d) * of.word]);
      part[i] = part_at(cut.parts, at);
      if (part[i] == cut.own) part[i] = kStays;
      if (part[i] != kStays) ++found;
    }
    *search.found = found;
  });
}

void launch_list(std::int64_t count, const Search& search, cudaStream_t stream) {
  post(stream, [=, part = host(search.part)] {
    std::int64_t place = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      if (part[i] == kStays) continue;
      if (place < search.limit) search.list[place] = {static_cast<std::int32_t>(i), part[i]};
      ++place;
    }
  });
}

void launch_fill(const Span& particles, const Fill* fills, std::int64_t count, cudaStream_t stream) {
  post(stream, [=, of = on_host(particles), all = host(const_cast<Fill*>(fills))] {
    for (std::int64_t n = 0; n < count; ++n)
      for (std::int64_t w = 0; w < words; ++w)
        of.first[all[n].to * of.particle + w * of.word] = of.first[all[n].from * of.particle + w * of.word];
  });
}

}  // namespace particles
