#include "fake_channel.hpp"

#include <cstring>
#include <type_traits>

#include "cli/bench_stream_bare.hpp"
#include "memory/cuda/channel_parts.hpp"

namespace fake {
namespace {

using namespace ist::channel;

struct Crew {
  unsigned thread = 0;
  unsigned threads = 1;
  unsigned block = 0;
  unsigned blocks = 1;
  void barrier() const {}
  bool any(bool mine) const { return mine; }
  std::uint64_t first(std::uint64_t value) const { return value; }
};

constexpr std::string_view kNames[] = {"send_small",   "receive_small", "send", "receive",
                                       "send_receive", "put",           "take", "let_go"};

// Those of the benchmark.
constexpr int kBareSend = 100;
constexpr int kBareReceive = 101;

// Puts the place where the bytes are in place of a device address; clears `reached` where a kernel of that context has none.
class Places {
 public:
  explicit Places(CUcontext context) : context_(context) {}
  template <class T>
  void find(T*& address, std::uint64_t size) {
    if (address == nullptr || size == 0) return;
    const auto wanted = reinterpret_cast<std::uint64_t>(address);
    const Allocation* found = fake::find(wanted);
    const bool foreign = found != nullptr && !found->host() && found->context != nullptr && found->context != context_ &&
                         found->kind != Class::managed && found->context->device == context_->device;
    std::byte* const there = found == nullptr || foreign ? nullptr : place(wanted, size);
    if (there == nullptr) reached_ = false;
    address = reinterpret_cast<T*>(there);
  }
  template <class T>
  void find(T*& address) {
    find(address, sizeof(T));
  }
  void find(SendWork& work) {
    find(work.own);
    find(work.peer);
    find(work.from, work.bytes);
    find(work.gone);
    find(work.report);
  }
  void find(ReceiveWork& work) {
    find(work.own);
    find(work.peer);
    find(work.to, work.room);
    find(work.gone);
    find(work.report);
  }
  void find(SendReceiveWork& work) {
    find(work.send);
    find(work.receive);
  }
  void find(PutWork& work) { find(work.send); }
  void find(TakeWork& work) { find(work.receive); }
  void find(LetGoWork& work) { find(work.word); }
  void find(ist::cli::BareWork& work) {
    find(work.packets, work.vectors * sizeof(Quad));
    find(work.bytes, work.vectors * 8);
    find(work.sequence);
  }
  bool reached() const { return reached_; }

 private:
  CUcontext context_;
  bool reached_ = true;
};

template <class Body>
void each_block(unsigned blocks, const Body& body) {
  for (unsigned block = 0; block < blocks; ++block) body(Crew{0, 1, block, blocks});
}

// Both halves run at once on a device.
void run_both(const SendReceiveWork& work, unsigned blocks) {
  std::thread sends([&] { each_block(work.send_blocks, [&](const Crew& crew) { send(crew, work.send); }); });
  each_block(blocks - work.send_blocks, [&](const Crew& crew) { receive(crew, work.receive); });
  sends.join();
}

template <class Work, class Run>
std::optional<std::function<void()>> made(CUcontext context, const void* argument, const Run& run) {
  Work work;
  std::memcpy(&work, argument, sizeof work);
  Places places(context);
  places.find(work);
  if (!places.reached()) return std::nullopt;
  return [work, run] { run(work); };
}

template <class Work>
bool without_work(const void* argument) {
  std::uint64_t first = 0;
  static_assert(sizeof(Work) >= sizeof first);
  std::memcpy(&first, argument, sizeof first);
  return first == 0;
}

}  // namespace

std::optional<int> channel_kernel(std::string_view name) {
  if (name == "isthmus_bare_send") return kBareSend;
  if (name == "isthmus_bare_receive") return kBareReceive;
  constexpr std::string_view kPrefix = "isthmus_channel_";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  for (int i = 0; i < static_cast<int>(std::size(kNames)); ++i)
    if (name.substr(kPrefix.size()) == kNames[i]) return i;
  return std::nullopt;
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
    case 3:
      return made<ReceiveWork>(context, argument, blockwise([](const Crew& c, const ReceiveWork& w) { receive(c, w); }));
    case 4:
      return made<SendReceiveWork>(context, argument, [blocks](const SendReceiveWork& w) { run_both(w, blocks); });
    case 5:
      return made<PutWork>(context, argument, blockwise([](const Crew& c, const PutWork& w) { put(c, w); }));
    case 6:
      return made<TakeWork>(context, argument, blockwise([](const Crew& c, const TakeWork& w) { take(c, w); }));
    case kBareSend:
      return made<ist::cli::BareWork>(context, argument, [](const auto& w) { ist::cli::send_bare(w, 0, 1, [] {}); });
    case kBareReceive:
      return made<ist::cli::BareWork>(context, argument, [](const auto& w) { ist::cli::receive_bare(w, 0, 1, [] {}); });
    default:
      return made<LetGoWork>(context, argument, [](const LetGoWork& w) { let_go(w); });
  }
}

}  // namespace fake
