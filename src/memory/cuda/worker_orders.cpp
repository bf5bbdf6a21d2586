#include "memory/cuda/worker_orders.hpp"

#include "memory/cuda/channel_protocol.hpp"

namespace ist {

using channel::Quad;
using worker::Answer;
using worker::kSlots;
using worker::Order;

std::optional<WorkerOrders::Name> WorkerOrders::bring(std::uint64_t address, std::byte* to, std::uint32_t bytes) {
  return give({Place::State::asked, 0, false, false, 0, bytes, 0, to}, {address});
}

std::optional<WorkerOrders::Name> WorkerOrders::put(std::uint64_t address, const std::byte* from, std::uint32_t bytes) {
  return give({Place::State::asked, worker::kIntoDevice, false, false, 0, bytes, 0, nullptr}, {address, from});
}

std::optional<WorkerOrders::Name> WorkerOrders::post(std::uint64_t address, std::uint64_t place, std::uint32_t letter,
                                                     std::uint32_t bytes) {
  return give({Place::State::asked, worker::kPosts, false, false, 0, bytes, 0, nullptr}, {address, nullptr, place, letter});
}

std::optional<WorkerOrders::Name> WorkerOrders::take(std::uint64_t address, std::uint64_t place, std::uint32_t letter,
                                                     std::uint32_t bytes, bool cleans) {
  const std::uint32_t what = worker::kTakes | (cleans ? worker::kCleans : 0U);
  return give({Place::State::asked, what, false, false, 0, bytes, 0, nullptr}, {address, nullptr, place, letter});
}

// Guard SLOT_FREE of models/worker.pml: the order that was here before is done, so that the worker neither reads it nor stores its
// answer any more. The first word goes last, not for the order, since packets say whether they are there, but so that the worker waits
// for nothing but the bus.
std::optional<WorkerOrders::Name> WorkerOrders::give(Place place, const Where& where) {
  const auto slot = static_cast<std::uint32_t>(next_ % kSlots);
  if (places_[slot].state == Place::State::dropped && look(slot)) places_[slot].state = Place::State::free;
  if (places_[slot].state != Place::State::free) return std::nullopt;
  place.number = channel::number_of(next_);
  if ((next_ & channel::kCleaning) < kSlots) clean(slot);
  Order& order = board_.orders[slot];
  if (where.from != nullptr)
    for (std::uint32_t at = 0; at < place.bytes; at += 8)
      channel::store_relaxed(&order.packets[at / 8],
                             channel::packed(place.number, channel::bytes_at(where.from + at, place.bytes - at)));
  channel::store_relaxed(&order.where, channel::packed(place.number, where.address));
  if ((place.what & (worker::kPosts | worker::kTakes)) != 0) {
    channel::store_relaxed(&order.place, channel::packed(place.number, where.place));
    channel::store_relaxed(&order.letter, channel::packed(place.number, where.letter));
  }
  const std::uint64_t what = place.bytes | place.what;
  channel::store_release(&order.head, static_cast<std::uint64_t>(place.number) << 32 | what);
  places_[slot] = place;
  ++next_;
  return Name{slot, place.number};
}

unsigned WorkerOrders::waits() const {
  unsigned found = 0;
  for (const Place& place : places_)
    found += place.state != Place::State::free && (place.what & worker::kTakes) != 0 && !place.over ? 1 : 0;
  return found;
}

// Guard CLEAN. Before numbers come again after 2^31 orders, what is left of them is cleared twice (channel_layout.hpp).
void WorkerOrders::clean(std::uint32_t slot) {
  Order& order = board_.orders[slot];
  Answer& answer = board_.answers[slot];
  channel::store_relaxed(&order.head, std::uint64_t{0});
  for (Quad* const words : {&order.where, &order.place, &order.letter}) channel::store_relaxed(words, Quad{0, 0});
  channel::store_relaxed(&answer.done, std::uint64_t{0});
  for (Quad& packets : order.packets) channel::store_relaxed(&packets, Quad{0, 0});
  for (Quad& packets : answer.packets) channel::store_relaxed(&packets, Quad{0, 0});
}

bool WorkerOrders::knows(Name name) const {
  return name.slot < kSlots && places_[name.slot].state == Place::State::asked && places_[name.slot].number == name.number;
}

bool WorkerOrders::over(Name name) { return knows(name) && look(name.slot); }

bool WorkerOrders::done(Name name) {
  if (!over(name)) return false;
  places_[name.slot].state = Place::State::free;
  return true;
}

void WorkerOrders::drop(Name name) {
  if (!knows(name)) return;
  Place& place = places_[name.slot];
  place.to = nullptr;
  place.state = look(name.slot) ? Place::State::free : Place::State::dropped;
}

// Acquire, of each packet: the worker's loads of the device's memory are over, which somebody may write now. Guard ANSWER.
bool WorkerOrders::look(std::uint32_t slot) {
  Place& place = places_[slot];
  if (place.over) return true;
  const Answer& answer = board_.answers[slot];
  if (place.what != 0) {
    const std::uint64_t done = channel::load_acquire(&answer.done);
    place.missing = done == (place.number | worker::kNotThere);
    return place.over = place.missing || done == place.number;
  }
  for (; place.taken * 8 < place.bytes; ++place.taken) {
    const Quad* const at = &answer.packets[place.taken];
    const Quad found{channel::load_acquire(&at->low), channel::load_acquire(&at->high)};
    if (!channel::has_come(found, place.number)) return false;
    const std::uint32_t from = place.taken * 8;
    if (place.to != nullptr) channel::put_bytes(place.to + from, channel::bytes_in(found), place.bytes - from);
  }
  return place.over = true;
}

// Those about mailboxes are their owners' to give up.
std::optional<WorkerOrders::Untaken> WorkerOrders::untaken() {
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
    const Place& place = places_[slot];
    const bool copies = place.what == 0 || place.what == worker::kIntoDevice;
    if (place.state != Place::State::asked || !copies || look(slot)) continue;
    const Order& order = board_.orders[slot];
    Untaken found{{slot, place.number}, channel::bytes_in(order.where), place.to, std::vector<std::byte>(place.bytes)};
    for (std::uint32_t at = 0; place.what != 0 && at < place.bytes; at += 8)
      channel::put_bytes(found.bytes.data() + at, channel::bytes_in(order.packets[at / 8]), place.bytes - at);
    return found;
  }
  return std::nullopt;
}

void WorkerOrders::made(Name name) { places_[name.slot].over = true; }

bool WorkerOrders::begun(std::uint64_t launch) const { return channel::load_relaxed(&board_.begun) == launch; }

// Acquire: `next` was stored before. Guard NEXT_FIRST.
std::optional<std::uint64_t> WorkerOrders::ended(std::uint64_t launch) const {
  if (channel::load_acquire(&board_.left) != launch) return std::nullopt;
  return channel::load_relaxed(&board_.next);
}

}  // namespace ist
