#include "face/message/handles.hpp"

#include <array>
#include <atomic>
#include <cstdio>
#include <mutex>

namespace ist {
namespace {

// A world or communicator: type, 4 bits; slot, 8; generation, 51. A request has no type bits of its own to spare: slot of
// the world, 8; its operation's generation, 36; its index, 20. The slot is counted from 1, so that no handle is null, and
// requests use slots 1 to 63, worlds and communicators have the top bit set.
constexpr std::uint64_t kNotRequest = std::uint64_t{1} << 63;
constexpr std::size_t kMostWorlds = 63;

struct Place {
  std::unique_ptr<World> owner;
  std::atomic<World*> world{nullptr};
  std::atomic<std::uint64_t> generation{1};
};

struct Registry {
  std::mutex mutex;
  std::array<Place, kMostWorlds> places;
};

// Never destroyed: a world that was not destroyed ends with the process, and its peers are told by its hang-up.
Registry& registry() {
  static auto* made = new Registry;
  return *made;
}

std::uint64_t pack(HandleType type, std::size_t slot, std::uint64_t generation) {
  return kNotRequest | static_cast<std::uint64_t>(type) << 59 | static_cast<std::uint64_t>(slot + 1) << 51 | generation;
}

Status bad_handle(const char* expected, std::uint64_t value) {
  if (value == 0) return {IST_ERR_HANDLE, std::string{"the "} + expected + " is null"};
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(value));
  return {IST_ERR_HANDLE, std::string{text.data()} + " is no " + expected + " of this process; was it released?"};
}

Result<InWorld> find_place(HandleType type, const char* expected, std::uint64_t value) {
  const std::size_t slot = ((value >> 51) & 0xff) - 1;
  const std::uint64_t generation = value & ((std::uint64_t{1} << 51) - 1);
  if ((value & kNotRequest) == 0 || ((value >> 59) & 0xf) != static_cast<std::uint64_t>(type) || slot >= kMostWorlds)
    return bad_handle(expected, value);
  Place& place = registry().places[slot];
  World* world = place.world.load(std::memory_order_acquire);
  if (world == nullptr || place.generation.load(std::memory_order_relaxed) != generation) return bad_handle(expected, value);
  return InWorld{world, 0, {}};
}

template <class Handle>
std::uint64_t value_of(Handle handle) {
  return reinterpret_cast<std::uint64_t>(handle);
}

}  // namespace

Result<ist_world> add_world(std::unique_ptr<World> world) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (std::size_t slot = 0; slot < kMostWorlds; ++slot) {
    Place& place = all.places[slot];
    if (place.owner) continue;
    place.owner = std::move(world);
    place.world.store(place.owner.get(), std::memory_order_release);
    return reinterpret_cast<ist_world>(pack(HandleType::world, slot, place.generation.load()));
  }
  return Status{IST_ERR_MEMORY, "this process already has " + std::to_string(kMostWorlds) + " worlds; destroy one first"};
}

std::unique_ptr<World> remove_world(ist_world handle) {
  if (!look_up(handle).ok()) return nullptr;
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  Place& place = all.places[((value_of(handle) >> 51) & 0xff) - 1];
  place.world.store(nullptr, std::memory_order_release);
  place.generation.fetch_add(1);
  return std::move(place.owner);
}

Result<InWorld> look_up(ist_world handle) { return find_place(HandleType::world, "world", value_of(handle)); }

Result<InWorld> look_up(ist_comm handle) { return find_place(HandleType::comm, "communicator", value_of(handle)); }

Result<InWorld> look_up(ist_request handle) {
  const std::uint64_t value = value_of(handle);
  const std::size_t slot = (value >> 56) - 1;
  if (value == 0 || (value & kNotRequest) != 0 || slot >= kMostWorlds) return bad_handle("request", value);
  World* world = registry().places[slot].world.load(std::memory_order_acquire);
  if (world == nullptr) return bad_handle("request", value);
  const OperationId id{value & ((std::uint64_t{1} << 56) - 1)};
  const std::lock_guard lock(world->engine().lock());
  if (world->engine().find(id) == nullptr) return bad_handle("request", value);
  return InWorld{world, 0, id};
}

ist_comm world_comm(ist_world handle) {
  const std::uint64_t type_bits = std::uint64_t{0xf} << 59;
  return reinterpret_cast<ist_comm>((value_of(handle) & ~type_bits) | static_cast<std::uint64_t>(HandleType::comm) << 59);
}

ist_request request_handle(ist_comm comm, OperationId id) {
  return reinterpret_cast<ist_request>(((value_of(comm) >> 51) & 0xff) << 56 | id.value);
}

}  // namespace ist
