// The kernels that change a word, and that hold a stream until one is changed, on the fake memory.
#include "fake_channel.hpp"
#include "fake_places.hpp"

namespace fake {

std::optional<WordKernel> word_kernel(std::string_view name) {
  if (name == "isthmus_change_word") return WordKernel::change;
  if (name == "isthmus_wait_for_word") return WordKernel::wait;
  if (name == "isthmus_meet") return WordKernel::meet;
  if (name == "isthmus_put_signal") return WordKernel::put_signal;
  return std::nullopt;
}

std::optional<std::function<void()>> word_work(WordKernel kernel, CUcontext context, const void* argument) {
  using namespace ist::words;
  if (kernel == WordKernel::wait) return made<Wait>(context, argument, [](const Wait& work) { ist::words::wait(work); });
  if (kernel == WordKernel::meet)
    return made<Meet>(context, argument, [](const Meet& work) { ist::words::meet(Crew{}, work); });
  if (kernel == WordKernel::put_signal)
    return made<PutSignal>(context, argument, [](const PutSignal& work) { ist::words::put_signal(Crew{}, work); });
  return made<Work>(context, argument, [](const Work& work) { change(work); });
}

}  // namespace fake
