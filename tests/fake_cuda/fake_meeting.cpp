#include "fake_channel.hpp"
#include "fake_places.hpp"
#include "memory/cuda/meeting_protocol.hpp"

namespace fake {
namespace {

using ist::meeting::MeetWork;

// a (op) b on the bits of whole elements, by the processor's arithmetic.
struct Combine {
  ist::Reduction reduction;
  ist_type type;
  Quad operator()(const Quad& with, const Quad& into) const {
    Quad result = into;
    const auto count = static_cast<std::int64_t>(sizeof result / ist::size_of(type).value);
    ist::combine_on_host(reduction, type, &result, &with, count);
    return result;
  }
};

}  // namespace

std::optional<std::function<void()>> meeting_work(const MeetingKernel& kernel, CUcontext context, unsigned blocks,
                                                  const void* argument) {
  std::uint64_t own = 0;
  std::memcpy(&own, argument, sizeof own);
  if (own == 0) return [] {};
  const auto run = [kernel, blocks](const MeetWork& work) {
    each_block(blocks, [&](const Crew& crew) {
      if (kernel.what == MeetingKernel::What::barrier) return ist::meeting::barrier(crew, work);
      if (kernel.what == MeetingKernel::What::bcast) return ist::meeting::bcast(crew, work);
      ist::meeting::reduce(crew, work, Combine{kernel.reduction, kernel.type});
    });
  };
  return made<MeetWork>(context, argument, run);
}

}  // namespace fake
