#include "fake_channel.hpp"

#include <cstring>

#include "fake_places.hpp"
#include "memory/cuda/channel_parts.hpp"
#include "memory/cuda/note_protocol.hpp"

namespace fake {
namespace {

using namespace ist::channel;

constexpr std::string_view kNames[] = {"send_small", "receive_small", "send", "receive", "send_receive", "put",
                                       "take",       "let_go",        "tell", "compare", "tell_meeting", "compare_meeting"};

// Those of the benchmark.
constexpr int kBareSend = 100;
constexpr int kBareReceive = 101;

// Both halves run at once on a device.
void run_both(const SendReceiveWork& work, unsigned blocks) {
  std::thread sends([&] { each_block(work.send_blocks, [&](const Crew& crew) { send(crew, work.send); }); });
  each_block(blocks - work.send_blocks, [&](const Crew& crew) { receive(crew, work.receive); });
  sends.join();
}

}  // namespace

std::optional<int> channel_kernel(std::string_view name) {
  if (name == "isthmus_bare_send") return kBareSend;
  if (name == "isthmus_bare_receive") return kBareReceive;
  return kernel_named(name, "isthmus_channel_", kNames);
}

std::optional<std::function<void()>> channel_work(int kernel, CUcontext context, unsigned blocks, const void* argument) {
  if (without_work<LetGoWork>(argument)) return [] {};
  const auto blockwise = [blocks](auto body) {
    return [blocks, body](const auto& work) { each_block(blocks, [&](const Crew& crew) { body(crew, work); }); };
  };
  switch (kernel) {
    case 0:
      return made<SendWork>(context, argument, blockwise([](const Crew& c, const SendWork& w) { send_packets(c, w); }));
    case 2:
      return made<SendWork>(context, argument, blockwise([](const Crew& c, const SendWork& w) { send(c, w); }));
    case 1:
      return made<ReceiveWork>(context, argument,
                               blockwise([](const Crew& c, const ReceiveWork& w) { receive_packets(c, w); }));
    case 3:
      return made<ReceiveWork>(context, argument, blockwise([](const Crew& c, const ReceiveWork& w) { receive(c, w); }));
    case 4:
      return made<SendReceiveWork>(context, argument, [blocks](const SendReceiveWork& w) { run_both(w, blocks); });
    case 5:
      return made<PutWork>(context, argument, blockwise([](const Crew& c, const PutWork& w) { put(c, w); }));
    case 6:
      return made<TakeWork>(context, argument, blockwise([](const Crew& c, const TakeWork& w) { take(c, w); }));
    case 8:
      return made<TellWork>(context, argument, [](const TellWork& w) { tell(w); });
    case 9:
      return made<CompareWork>(context, argument, [](const CompareWork& w) { compare(w); });
    case 10:
      return made<ist::meeting::TellWork>(context, argument, [](const auto& w) { ist::meeting::tell(w); });
    case 11:
      return made<ist::meeting::CompareWork>(context, argument, [](const auto& w) { ist::meeting::compare(w); });
    case kBareSend:
      return made<ist::cli::BareWork>(context, argument, [](const auto& w) { ist::cli::send_bare(w, 0, 1, [] {}); });
    case kBareReceive:
      return made<ist::cli::BareWork>(context, argument, [](const auto& w) { ist::cli::receive_bare(w, 0, 1, [] {}); });
    default:
      return made<LetGoWork>(context, argument, [](const LetGoWork& w) { let_go(w); });
  }
}

}  // namespace fake
