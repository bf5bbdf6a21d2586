#include "face/message/handles.hpp"

#include <pthread.h>

#include <cstdio>
#include <mutex>

namespace ist {
namespace {

struct Place {
  std::unique_ptr<World> owner;
  std::atomic<std::uint64_t> generation{1};
};

struct Registry {
  std::mutex mutex;
  std::array<Place, kMostWorlds> places;
};

// Never destroyed: a world that was not destroyed ends with the process, and its peers are told by its hang-up. There from the
// start, so that no call asks whether it is.
union Forever {
  constexpr Forever() : registry{} {}
  ~Forever() {}  // NOLINT(modernize-use-equals-default): the member's is not called
  Registry registry;
};
constinit Forever forever;  // NOLINT(bugprone-throwing-static-initialization): nothing runs
Registry& registry() { return forever.registry; }

std::uint64_t pack(HandleType type, std::size_t slot, std::uint64_t generation) {
  return kNotRequest | static_cast<std::uint64_t>(type) << 59 | static_cast<std::uint64_t>(slot + 1) << 51 | generation;
}

// A copy of the parent's, in a forked child, whose calls find none of them: what it sent would take the place of what the parent sends.
bool is_parents(std::size_t slot) {
  if (slot >= kMostWorlds) return false;
  const std::lock_guard lock(registry().mutex);
  const Place& place = registry().places[slot];
  return place.owner != nullptr && place.owner->of_another_process();
}

Status bad_handle(const char* expected, std::uint64_t value) {
  if (value == 0) return {IST_ERR_HANDLE, std::string{"the "} + expected + " is null"};
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(value));
  if (is_parents(((value & kNotRequest) != 0 ? value >> 51 & 0xff : value >> 56) - 1))
    return {IST_ERR_HANDLE, std::string{text.data()} + " is a " + expected +
                                " of the process that this one was forked from; a forked child is no rank, so let the "
                                "parent make the call"};
  return {IST_ERR_HANDLE, std::string{text.data()} + " is no " + expected + " of this process; was it released?"};
}

// fork() holds the registry's lock until parent and child go on, so that no other thread has it in a child that has no such thread.
void before_fork() { registry().mutex.lock(); }
void in_parent() { registry().mutex.unlock(); }
void in_child() {
  comms_gone.fetch_add(1, std::memory_order_relaxed);
  for (std::atomic<World*>& world : worlds_by_slot) world.store(nullptr, std::memory_order_relaxed);
  registry().mutex.unlock();
}

struct Found {
  Place* place = nullptr;
  World* world = nullptr;
  std::uint64_t rest = 0;  // 51 bits
};

// The place that the handle names, if it is of that type.
Found find_place(HandleType type, std::uint64_t value) {
  const std::size_t slot = ((value >> 51) & 0xff) - 1;
  if ((value & kNotRequest) == 0 || ((value >> 59) & 0xf) != static_cast<std::uint64_t>(type) || slot >= kMostWorlds)
    return {};
  Place& place = registry().places[slot];
  return {&place, worlds_by_slot[slot].load(std::memory_order_acquire), value & ((std::uint64_t{1} << 51) - 1)};
}

Result<InWorld> find_operation(const char* expected, bool message, std::uint64_t value) {
  const auto [world, id] = operation_named(reinterpret_cast<ist_request>(value));
  if (world == nullptr) return bad_handle(expected, value);
  const std::lock_guard lock(world->engine().lock());
  const Operation* operation = world->engine().find(id);
  if (operation == nullptr || operation->released || operation->message != message) return bad_handle(expected, value);
  return InWorld{world, nullptr, id, operation->in<state::Persistent>()};
}

template <class Handle>
std::uint64_t value_of(Handle handle) {
  return reinterpret_cast<std::uint64_t>(handle);
}

}  // namespace

// Not destroyed either: there is nothing to do.
constinit std::array<std::atomic<World*>, kMostWorlds> worlds_by_slot{};

Result<ist_world> add_world(std::unique_ptr<World> world) {
  static const bool prepared = ::pthread_atfork(before_fork, in_parent, in_child) == 0;
  static_cast<void>(prepared);
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (std::size_t slot = 0; slot < kMostWorlds; ++slot) {
    Place& place = all.places[slot];
    if (place.owner) continue;
    place.owner = std::move(world);
    worlds_by_slot[slot].store(place.owner.get(), std::memory_order_release);
    return reinterpret_cast<ist_world>(pack(HandleType::world, slot, place.generation.load()));
  }
  return Status{IST_ERR_MEMORY, "this process already has " + std::to_string(kMostWorlds) + " worlds; destroy one first"};
}

bool is_parents_world(ist_world handle) {
  const Found found = find_place(HandleType::world, value_of(handle));
  return found.place != nullptr && found.place->generation.load() == found.rest &&
         is_parents(((value_of(handle) >> 51) & 0xff) - 1);
}

std::unique_ptr<World> remove_world(ist_world handle) {
  if (!look_up(handle).ok()) return nullptr;
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const std::size_t slot = ((value_of(handle) >> 51) & 0xff) - 1;
  Place& place = all.places[slot];
  comms_gone.fetch_add(1, std::memory_order_relaxed);
  worlds_by_slot[slot].store(nullptr, std::memory_order_release);
  place.generation.fetch_add(1);
  comms_gone.fetch_add(1, std::memory_order_relaxed);  // again: as in ist_comm_free
  return std::move(place.owner);
}

Result<InWorld> look_up(ist_world handle) {
  const Found found = find_place(HandleType::world, value_of(handle));
  if (found.world == nullptr || found.place->generation.load(std::memory_order_relaxed) != found.rest)
    return bad_handle("world", value_of(handle));
  return InWorld{found.world, nullptr, {}, false};
}

[[gnu::tls_model("initial-exec")]] constinit thread_local std::array<NamedLast, 2> named_last;
std::atomic<std::uint32_t> comms_gone{0};

// Calls may name two in turn.
Communicator* find_other(ist_comm handle) {
  const std::uint32_t gone = comms_gone.load(std::memory_order_relaxed);
  auto& [last, before] = named_last;
  if (before.handle == reinterpret_cast<std::uint64_t>(handle) && before.gone == gone) return before.comm;
  World* world = nullptr;
  Communicator* const comm = find(handle, world);
  before = last;
  last = {reinterpret_cast<std::uint64_t>(handle), comm, gone};
  return comm;
}

Result<InWorld> look_up(ist_comm handle) {
  World* world = nullptr;
  Communicator* comm = find(handle, world);
  if (comm == nullptr) return bad_handle("communicator", value_of(handle));
  return InWorld{world, comm, {}, false};
}

Result<CollectiveHeap*> look_up(ist_heap handle) {
  World* world = nullptr;
  CollectiveHeap* heap = find(handle, world);
  if (heap == nullptr) return bad_handle("heap", value_of(handle));
  return heap;
}

Result<Window*> look_up(ist_window handle) {
  const Found found = find_place(HandleType::window, value_of(handle));
  Window* const window = found.world != nullptr ? found.world->windows().find(comm_name_of(value_of(handle))) : nullptr;
  if (window == nullptr) return bad_handle("window", value_of(handle));
  return window;
}

ist_window window_handle(ist_comm of, const CommName& name) {
  const std::size_t slot = ((value_of(of) >> 51) & 0xff) - 1;
  return reinterpret_cast<ist_window>(pack(HandleType::window, slot, std::uint64_t{name.index} << 35 | name.serial));
}

CommName name_in(ist_window handle) { return comm_name_of(value_of(handle)); }

ist_heap heap_handle(ist_comm of, const CommName& name) {
  const std::size_t slot = ((value_of(of) >> 51) & 0xff) - 1;
  return reinterpret_cast<ist_heap>(pack(HandleType::heap, slot, std::uint64_t{name.index} << 35 | name.serial));
}

Result<InWorld> look_up(ist_request handle) { return find_operation("request", false, value_of(handle)); }

Result<InWorld> look_up(ist_message handle) { return find_operation("message", true, value_of(handle)); }

CommName name_in(ist_heap handle) { return comm_name_of(value_of(handle)); }

CommName name_in(ist_comm handle) { return comm_name_of(value_of(handle)); }

ist_comm comm_handle(ist_world of, const CommName& name) {
  const std::size_t slot = ((value_of(of) >> 51) & 0xff) - 1;
  return reinterpret_cast<ist_comm>(pack(HandleType::comm, slot, std::uint64_t{name.index} << 35 | name.serial));
}

ist_comm comm_handle(ist_comm of, const CommName& name) {
  return comm_handle(reinterpret_cast<ist_world>(value_of(of)), name);
}

ist_request request_handle(ist_message of, OperationId id) {
  return reinterpret_cast<ist_request>((value_of(of) >> 56) << 56 | id.value);
}

ist_message message_handle(ist_comm of, OperationId id) {
  return reinterpret_cast<ist_message>(value_of(request_handle(of, id)));
}

}  // namespace ist
