// The bare kernels of `isthmus bench limits` on the fake memory, one thread to a block. Those that wait for each other are in streams of
// their own, and so on threads of their own.
#include "fake_channel.hpp"
#include "fake_places.hpp"

namespace fake {
namespace {

constexpr std::string_view kLimitKernels[] = {"empty",  "store", "flags", "packets", "meet",
                                              "answer", "copy",  "once",  "post",    "take"};

}  // namespace

std::optional<int> limit_kernel(std::string_view name) { return kernel_named(name, "isthmus_limit_", kLimitKernels); }

std::optional<std::function<void()>> limit_work(int kernel, CUcontext context, unsigned blocks, const void* argument) {
  using ist::cli::StoreWork;
  using ist::cli::TripWork;
  if (argument == nullptr || without_work<TripWork>(argument)) return [] {};
  const auto trips = [=](auto body) {
    return made<TripWork>(context, argument, [body](const TripWork& work) { body(Crew{}, work); });
  };
  switch (kernel) {
    case 1:
      return made<StoreWork>(context, argument, [blocks](const StoreWork& work) {
        each_block(blocks, [&](const Crew& crew) { ist::cli::store_copies(crew, work); });
      });
    case 2:
      return trips([](const Crew& c, const TripWork& w) { ist::cli::trade_flags(c, w); });
    case 3:
      return trips([](const Crew& c, const TripWork& w) { ist::cli::trade_packets(c, w); });
    case 4:
      return trips([](const Crew& c, const TripWork& w) { ist::cli::meet_in_pairs(c, w); });
    case 5:
      return trips([](const Crew& c, const TripWork& w) { ist::cli::answer_words(c, w); });
    case 6:
      return trips([](const Crew& c, const TripWork& w) { ist::cli::copy_on_command(c, w); });
    case 7:
      return trips([](const Crew& c, const TripWork& w) { ist::cli::copy_once(c, w); });
    case 8:
      return trips([](const Crew& c, const TripWork& w) { ist::cli::post_on_command(c, w); });
    case 9:
      return trips([](const Crew& c, const TripWork& w) { ist::cli::take_and_tell(c, w); });
    default:
      return [] {};
  }
}

}  // namespace fake
