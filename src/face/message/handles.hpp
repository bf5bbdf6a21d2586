// Tokens for the C interface: never dereferenced, so that a released, foreign or made-up one is an error and not a crash.
//
// Who calls this : the api_*.cpp files.
// Threads        : any; a world must not be destroyed while another thread is inside a call on it, as in MPI.
// Ownership      : the registry owns the worlds of this process. It holds no other state: worlds know nothing of each other.
// Errors         : IST_ERR_HANDLE with what was given and what was expected; so in a forked child, of all that its parent had.
#pragma once

#include <isthmus/heap.h>
#include <isthmus/window.h>

#include <array>
#include <atomic>

#include "face/message/world.hpp"

namespace ist {

enum class HandleType : std::uint8_t { world = 1, comm = 2, heap = 3, window = 4 };

// A world with one of its communicators or operations.
struct InWorld {
  World* world = nullptr;
  Communicator* comm = nullptr;
  OperationId operation;
  bool persistent = false;  // the operation is a persistent request
};

Result<ist_world> add_world(std::unique_ptr<World> world);
// In a forked child: is this its copy of a world of the parent's?
bool is_parents_world(ist_world handle);
// Takes the world out of the registry; null if the handle is none.
std::unique_ptr<World> remove_world(ist_world handle);

// A world: type, 4 bits; slot, 8; generation, 51. A communicator: type, slot, its index, 16; its serial, 35; so a heap and a window. A request or
// message has no type bits of its own to spare: slot of the world, 8; its operation's generation, 36; its index, 20. The slot
// is counted from 1, so that no handle is null, and requests use slots 1 to 63, worlds and communicators have the top bit set.
inline constexpr std::uint64_t kNotRequest = std::uint64_t{1} << 63;
inline constexpr std::size_t kMostWorlds = 63;
// By slot; null: none. Handles are found by every call.
extern std::array<std::atomic<World*>, kMostWorlds> worlds_by_slot;

// What stands in a communicator's handle before its name, of the first slot.
inline constexpr std::uint64_t kFirstComm = (kNotRequest >> 51) | static_cast<std::uint64_t>(HandleType::comm) << 8 | 1;

inline constexpr std::uint64_t kFirstHeap = (kNotRequest >> 51) | static_cast<std::uint64_t>(HandleType::heap) << 8 | 1;

inline CommName comm_name_of(std::uint64_t value) {
  return {static_cast<std::uint32_t>(value >> 35 & 0xffff), value & ((std::uint64_t{1} << 35) - 1)};
}

// Null: no communicator of this process. `world`: its world.
inline Communicator* find(ist_comm handle, World*& world) {
  const auto value = reinterpret_cast<std::uint64_t>(handle);
  const std::uint64_t slot = (value >> 51) - kFirstComm;
  world = slot < kMostWorlds ? worlds_by_slot[slot].load(std::memory_order_acquire) : nullptr;
  return world != nullptr ? world->comms().find(comm_name_of(value)) : nullptr;
}

// The communicators that this thread named last, of which nearly every call names the first one again.
struct NamedLast {
  std::uint64_t handle = 0;
  Communicator* comm = nullptr;
  std::uint32_t gone = 0;  // comms_gone, from before it was found
};
// At a place that is known when the thread begins: found without a call.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local std::array<NamedLast, 2> named_last;
// Grows before the handle of a communicator or world is released. Relaxed: who may still name it has been told of its release, or races with it.
extern std::atomic<std::uint32_t> comms_gone;
[[gnu::noinline]] Communicator* find_other(ist_comm handle);
// As find(), of one that this thread's last call named, too.
[[gnu::always_inline]] inline Communicator* find_again(ist_comm handle) {
  const NamedLast& last = named_last.front();
  if (last.handle == reinterpret_cast<std::uint64_t>(handle) && last.gone == comms_gone.load(std::memory_order_relaxed))
      [[likely]]
    return last.comm;
  return find_other(handle);
}

// The same of a symmetric heap, whose handle is made like a communicator's.
inline CollectiveHeap* find(ist_heap handle, World*& world) {
  const auto value = reinterpret_cast<std::uint64_t>(handle);
  const std::uint64_t slot = (value >> 51) - kFirstHeap;
  world = slot < kMostWorlds ? worlds_by_slot[slot].load(std::memory_order_acquire) : nullptr;
  return world != nullptr ? world->heaps().find(comm_name_of(value)) : nullptr;
}

Result<InWorld> look_up(ist_world handle);
Result<InWorld> look_up(ist_comm handle);
Result<InWorld> look_up(ist_request handle);
Result<InWorld> look_up(ist_message handle);

// What a request says of itself; whether there is such an operation, its engine knows.
struct OperationName {
  World* world = nullptr;  // null: of no world that is there
  OperationId id;
};
inline OperationName operation_named(ist_request handle) {
  const auto value = reinterpret_cast<std::uint64_t>(handle);
  const std::uint64_t slot = (value >> 56) - 1;  // of the null handle, and of what is no request, too large
  if (slot >= kMostWorlds) return {};
  return {worlds_by_slot[slot].load(std::memory_order_acquire), OperationId{value & ((std::uint64_t{1} << 56) - 1)}};
}

// `of`: any handle of the same world.
ist_comm comm_handle(ist_world of, const CommName& name);
ist_comm comm_handle(ist_comm of, const CommName& name);
CommName name_in(ist_comm handle);
CommName name_in(ist_heap handle);
CommName name_in(ist_window handle);
ist_heap heap_handle(ist_comm of, const CommName& name);
ist_window window_handle(ist_comm of, const CommName& name);
Result<CollectiveHeap*> look_up(ist_heap handle);
Result<Window*> look_up(ist_window handle);
inline ist_request request_handle(ist_comm of, OperationId id) {
  return reinterpret_cast<ist_request>(((reinterpret_cast<std::uint64_t>(of) >> 51) & 0xff) << 56 | id.value);
}
ist_request request_handle(ist_message of, OperationId id);
ist_message message_handle(ist_comm of, OperationId id);

}  // namespace ist
