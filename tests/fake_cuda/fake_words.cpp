// The kernel that changes a word, on the fake memory.
#include "fake_channel.hpp"
#include "fake_places.hpp"

namespace fake {

bool word_kernel(std::string_view name) { return name == "isthmus_change_word"; }

std::optional<std::function<void()>> word_work(CUcontext context, const void* argument) {
  return made<ist::words::Work>(context, argument, [](const ist::words::Work& work) { ist::words::change(work); });
}

}  // namespace fake
