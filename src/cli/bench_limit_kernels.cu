// The bare kernels of bench_limit_bare.hpp. Without work they only have to be there: each is run once so that its code is on the device
// before one of them waits.
#include "cli/bench_limit_bare.hpp"
#include "memory/cuda/channel_crew.hpp"

using ist::channel::DeviceCrew;
using ist::channel::OneBlock;
using ist::cli::StoreWork;
using ist::cli::TripWork;

extern "C" __global__ void isthmus_limit_empty() {}
extern "C" __global__ void __launch_bounds__(512) isthmus_limit_store(StoreWork work) {
  if (work.copies != 0) ist::cli::store_copies(DeviceCrew{0, gridDim.x}, work);
}
extern "C" __global__ void isthmus_limit_flags(TripWork work) {
  if (work.end != nullptr) ist::cli::trade_flags(OneBlock{}, work);
}
extern "C" __global__ void __launch_bounds__(1024) isthmus_limit_packets(TripWork work) {
  if (work.end != nullptr) ist::cli::trade_packets(OneBlock{}, work);
}
extern "C" __global__ void __launch_bounds__(256) isthmus_limit_meet(TripWork work) {
  if (work.end != nullptr) ist::cli::meet_in_pairs(OneBlock{}, work);
}
extern "C" __global__ void isthmus_limit_answer(TripWork work) {
  if (work.end != nullptr) ist::cli::answer_words(OneBlock{}, work);
}
extern "C" __global__ void __launch_bounds__(512) isthmus_limit_copy(TripWork work) {
  if (work.end != nullptr) ist::cli::copy_on_command(OneBlock{}, work);
}
extern "C" __global__ void __launch_bounds__(512) isthmus_limit_once(TripWork work) {
  if (work.end != nullptr) ist::cli::copy_once(OneBlock{}, work);
}
extern "C" __global__ void __launch_bounds__(32) isthmus_limit_post(TripWork work) {
  if (work.end != nullptr) ist::cli::post_on_command(OneBlock{}, work);
}
extern "C" __global__ void __launch_bounds__(32) isthmus_limit_take(TripWork work) {
  if (work.end != nullptr) ist::cli::take_and_tell(OneBlock{}, work);
}
