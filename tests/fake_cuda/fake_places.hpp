// What kernels that are played on the processor have in common: their threads, and where the bytes of device addresses are.
//
// Who calls this : fake_channel.cpp, fake_limits.cpp, fake_meeting.cpp, fake_one_sided.cpp, fake_pack.cpp, fake_words.cpp.
// Threads        : Places under the lock; the rest without it.
// Ownership      : none.
// Errors         : Places::reached().
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <optional>
#include <string_view>
#include <type_traits>

#include "cli/bench_limit_bare.hpp"
#include "cli/bench_stream_bare.hpp"
#include "fake_world.hpp"
#include "lone_crew.hpp"
#include "memory/cuda/box_protocol.hpp"
#include "memory/cuda/channel_layout.hpp"
#include "memory/cuda/meeting_layout.hpp"
#include "memory/cuda/pack_protocol.hpp"
#include "memory/cuda/stream_protocol.hpp"

namespace fake {

using namespace ist::channel;

// Which of the names comes behind that prefix.
template <class Names>
std::optional<int> kernel_named(std::string_view name, std::string_view prefix, const Names& names) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const auto found = std::find(std::begin(names), std::end(names), name.substr(prefix.size()));
  return found == std::end(names) ? std::nullopt : std::optional<int>{static_cast<int>(found - std::begin(names))};
}

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
  void find(TellWork& work) {
    find(work.own);
    find(work.peer);
  }
  void find(CompareWork& work) {
    find(work.own);
    find(work.log);
  }
  void find(ist::meeting::TellWork& work) {
    find(work.own);
    for (ist::meeting::Mailbox*& member : work.members) find(member);
  }
  void find(ist::meeting::CompareWork& work) {
    find(work.own);
    find(work.log);
  }
  void find(ist::meeting::MeetWork& work) {
    using namespace ist::meeting;
    const std::uint64_t size = size_for(work.ranks);
    find(work.own, size);
    find(work.from, work.bytes);
    find(work.to, work.bytes);
    find(work.gone);
    find(work.report);
    find(work.parts, work.ranks * work.stride);
    for (Mailbox*& member : work.members) find(member, size);
  }
  void find(ist::cli::BareWork& work) {
    find(work.packets, work.vectors * sizeof(Quad));
    find(work.bytes, work.vectors * 8);
    find(work.sequence);
  }
  void find(ist::cli::TripWork& work) {
    const std::uint64_t packets = (work.bytes + 7) / 8 * sizeof(Quad);
    find(work.end);
    find(work.tell);
    find(work.await);
    find(work.theirs, packets);
    find(work.mine, packets);
    find(work.from, work.bytes);
    find(work.to, work.bytes);
    find(work.stop);
  }
  void find(ist::cli::StoreWork& work) {
    const std::uint64_t size = (work.places - 1) * work.stride + work.bytes;
    find(work.to, size);
    find(work.from, size);
  }
  void find(ist::packing::Work& work) {
    find(work.memory, work.room);
    find(work.packed, work.bytes);
    find(work.places, work.runs * sizeof(std::int32_t));
    find(work.offsets, work.runs * sizeof(std::int64_t));
    find(work.begins, work.runs * sizeof(std::int64_t));
    find(work.came);
  }
  void find(ist::packing::Relay& work) {
    find(work.from);
    find(work.to);
  }
  void find(ist::words::Work& work) {
    find(work.word, work.bytes);
    find(work.before);
  }
  void find(ist::words::Wait& work) {
    find(work.word, work.bytes);
    find(work.what.abort_word);
    find(work.over);
  }
  void find(ist::words::Meet& work) {
    find(work.barriers);
    find(work.abort_word);
    find(work.over);
    for (std::uint64_t*& there : work.there) find(there);
    for (const std::uint64_t*& here : work.here) find(here);
  }
  void find(ist::words::PutSignal& work) {
    find(work.word);
    find(work.to, work.bytes);
    find(work.from, work.bytes);
  }
  void find(ist::packing::Boxes& boxes) {
    find(boxes.came);
    for (std::uint32_t i = 0; i < boxes.count; ++i) {
      ist::packing::Box& box = boxes.box[i];
      if (box.list != ist::packing::RunsAre::none) {
        find_list(box);
        continue;
      }
      // Strides of lists may be negative: the first unit need not lie lowest.
      const std::uint32_t blocks = box.units / box.block;
      const std::uint32_t counts[] = {box.count[0], box.count[1], blocks / box.count[0] / box.count[1]};
      std::int64_t lowest = 0, highest = std::int64_t{box.block} * box.width;
      for (int d = 0; d < 3; ++d) (box.stride[d] < 0 ? lowest : highest) += (counts[d] - std::int64_t{1}) * box.stride[d];
      box.memory += lowest;
      find(box.memory, static_cast<std::uint64_t>(highest - lowest));
      box.memory -= lowest;
      find(box.packed, std::uint64_t{box.units} * box.width);
    }
  }
  bool reached() const { return reached_; }

 private:
  // From the lowest run of all repetitions to the highest.
  void find_list(ist::packing::Box& box) {
    using ist::packing::RunsAre;
    const bool unequal = box.list == RunsAre::unequal;
    const std::uint64_t runs = unequal ? box.block : box.count[0] / box.block;
    find(box.runs, runs * (unequal ? 16 : (box.list == RunsAre::far ? 8 : 4)));
    find(box.packed, std::uint64_t{box.units} * box.width);
    if (!reached_) return;
    const auto* const offsets = static_cast<const std::int64_t*>(box.runs);
    std::int64_t lowest = 0, highest = 0;
    for (std::uint64_t run = 0; run < runs; ++run) {
      const bool near = box.list == RunsAre::near;
      const std::int64_t at =
          near ? std::int64_t{static_cast<const std::int32_t*>(box.runs)[run]} * (1 << box.scale) : offsets[run];
      const std::int64_t all = std::int64_t{box.count[0]} * box.width;
      const std::int64_t ends = !unequal ? 0 : (run + 1 < runs ? offsets[runs + run + 1] : all) - offsets[runs + run];
      const std::int64_t end = at + (unequal ? ends : std::int64_t{box.block} * box.width);
      lowest = run == 0 ? at : std::min(lowest, at);
      highest = run == 0 ? end : std::max(highest, end);
    }
    const std::int64_t times[] = {box.count[1], std::int64_t{box.units} / box.count[0] / box.count[1]};
    for (int d = 0; d < 2; ++d) (box.stride[d] < 0 ? lowest : highest) += (times[d] - 1) * box.stride[d];
    box.memory += lowest;
    find(box.memory, static_cast<std::uint64_t>(highest - lowest));
    box.memory -= lowest;
  }

  CUcontext context_;
  bool reached_ = true;
};

template <class Body>
void each_block(unsigned blocks, const Body& body) {
  for (unsigned block = 0; block < blocks; ++block) body(Crew{0, 1, block, blocks});
}

template <class Work>
bool without_work(const void* argument) {
  std::uint64_t first = 0;
  static_assert(sizeof(Work) >= sizeof first);
  std::memcpy(&first, argument, sizeof first);
  return first == 0;
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

}  // namespace fake
