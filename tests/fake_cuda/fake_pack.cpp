// The kernels that pack, on the fake memory, one thread to a block.
#include "fake_channel.hpp"
#include "fake_places.hpp"
#include "memory/cuda/box_protocol.hpp"
#include "memory/cuda/pack_protocol.hpp"

namespace fake {
namespace {

constexpr std::string_view kWays[] = {"pack_strided_",     "unpack_strided_",     "pack_listed_",     "unpack_listed_",
                                      "pack_far_strided_", "unpack_far_strided_", "pack_far_listed_", "unpack_far_listed_"};
constexpr int kWayCount = std::size(kWays);
constexpr std::string_view kWidths[] = {"1", "2", "4", "8", "16"};
constexpr int kEach = 5;
constexpr int kPackBoxes = kWayCount * kEach;
constexpr int kUnpackBoxes = kPackBoxes + 1;
constexpr int kRelays = kUnpackBoxes + 1;

template <class Word>
void run_relay(bool any, const Crew& crew, const ist::packing::Relay& work) {
  if (any) return ist::packing::relay_any<Word>(crew, work);
  ist::packing::relay<Word>(crew, work);
}
void run_relay(int kernel, unsigned blocks, const ist::packing::Relay& work) {
  const bool any = kernel >= kEach;
  const int width = kernel % kEach;
  each_block(blocks, [&](const Crew& crew) {
    if (width == 0) return run_relay<std::uint8_t>(any, crew, work);
    if (width == 1) return run_relay<std::uint16_t>(any, crew, work);
    if (width == 2) return run_relay<std::uint32_t>(any, crew, work);
    if (width == 3) return run_relay<std::uint64_t>(any, crew, work);
    run_relay<ist::packing::Sixteen>(any, crew, work);
  });
}

void run_boxes(bool unpacks, unsigned blocks, const ist::packing::Boxes& boxes) {
  each_block(blocks, [&](const Crew& crew) {
    if (unpacks) return ist::packing::move_boxes<true>(crew, boxes);
    ist::packing::move_boxes<false>(crew, boxes);
  });
}

template <class Word, bool far>
void run(int way, const Crew& crew, const ist::packing::Work& work) {
  if (way == 0) return ist::packing::move<Word, false, false, far>(crew, work);
  if (way == 1) return ist::packing::move<Word, true, false, far>(crew, work);
  if (way == 2) return ist::packing::move<Word, false, true, far>(crew, work);
  ist::packing::move<Word, true, true, far>(crew, work);
}
template <class Word>
void run(int way, const Crew& crew, const ist::packing::Work& work) {
  if (way < 4) return run<Word, false>(way, crew, work);
  run<Word, true>(way - 4, crew, work);
}

void run(int kernel, unsigned blocks, const ist::packing::Work& work) {
  each_block(blocks, [&](const Crew& crew) {
    const int way = kernel / kEach;
    switch (kernel % kEach) {
      case 0:
        return run<std::uint8_t>(way, crew, work);
      case 1:
        return run<std::uint16_t>(way, crew, work);
      case 2:
        return run<std::uint32_t>(way, crew, work);
      case 3:
        return run<std::uint64_t>(way, crew, work);
      default:
        return run<ist::packing::Sixteen>(way, crew, work);
    }
  });
}

}  // namespace

std::optional<int> pack_kernel(std::string_view name) {
  if (name == "isthmus_pack_boxes") return kPackBoxes;
  if (name == "isthmus_unpack_boxes") return kUnpackBoxes;
  if (const auto width = kernel_named(name, "isthmus_relay_strided_", kWidths)) return kRelays + *width;
  if (const auto width = kernel_named(name, "isthmus_relay_any_", kWidths)) return kRelays + kEach + *width;
  for (int way = 0; way < kWayCount; ++way)
    if (const auto width = kernel_named(name, std::string{"isthmus_"} + std::string{kWays[way]}, kWidths))
      return way * kEach + *width;
  return std::nullopt;
}

std::optional<std::function<void()>> pack_work(int kernel, CUcontext context, unsigned blocks, const void* argument) {
  if (kernel >= kRelays)
    return made<ist::packing::Relay>(
        context, argument, [kernel, blocks](const ist::packing::Relay& work) { run_relay(kernel - kRelays, blocks, work); });
  if (kernel >= kPackBoxes)
    return made<ist::packing::Boxes>(context, argument, [kernel, blocks](const ist::packing::Boxes& boxes) {
      run_boxes(kernel == kUnpackBoxes, blocks, boxes);
    });
  return made<ist::packing::Work>(context, argument,
                                  [kernel, blocks](const ist::packing::Work& work) { run(kernel, blocks, work); });
}

}  // namespace fake
