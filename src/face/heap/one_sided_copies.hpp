// Copies into and out of another PE's memory, and the signal behind one: written once, for symmetric heaps and for windows.
//
// Who calls this : api_heap_copies.cpp, api_window.cpp.
// Threads        : any.
// Ownership      : none; what goes on behind a call the team keeps.
// Errors         : returned, without the call's name.
//
// `Memory` is a Team that has check(pe), at(pe, offset), piece(pe, offset, size), kind(), on_host(), changes_words_of(pe), service_for(pe),
// service_of_words(pe) and service_of_stores(pe); `Where` has a size and a pe, and place_in(memory, where) finds where it is.
#pragma once

#include <string>

#include "face/heap/device_words.hpp"
#include "face/heap/part_service.hpp"
#include "face/message/calls.hpp"
#include "heap/word.hpp"
#include "memory/host/handing_copy.hpp"

namespace ist {

// Between host memory. What is longer is copied by several threads, as other long copies are.
inline constexpr Bytes kCopiedByCaller = kibibytes(256);

struct PlaceInHeap {
  Pe pe;
  Offset offset;
};

enum class Direction { put, get };
enum class Completes { now, at_quiet };

inline Status null_buffer(Bytes size) {
  return {IST_ERR_ARGUMENT, "the local buffer is null, and " + std::to_string(size.value) + " bytes were to be copied"};
}

// add(Transfer): of a copy that may go on behind its call, what is left to do; not called where the bytes are there.
template <class Memory, class Where, class Add>
Status copy(Memory& memory, Direction direction, const Where& where, const ist_buffer& local, Completes completes,
            const Add& add) {
  if (where.size == Bytes{}) return memory.check(where.pe);
  const auto place = place_in(memory, where);
  if (!place.ok()) return place.status();
  if (local.object == 0 && local.kind != IST_KIND_OPENCL) return null_buffer(where.size);
  if (memory.on_host() && local.kind == IST_KIND_HOST && where.size <= kCopiedByCaller) {
    auto* const far = static_cast<std::byte*>(memory.at(place->pe, place->offset));
    auto* const near = reinterpret_cast<std::byte*>(local.object + local.offset);
    move_across(direction == Direction::put ? far : near, direction == Direction::put ? near : far, where.size.value);
    return {};
  }
  World& world = memory.world();
  const auto near = world.kinds().resolve(local, where.size);
  if (!near.ok()) return near.status();
  if (PartService* const service = memory.service_for(place->pe); service != nullptr) [[unlikely]] {
    const PartService::Far at{place->pe, place->offset};
    const bool now = completes == Completes::now;
    return direction == Direction::put ? service->put(at, *near, nullptr, {now}) : service->get(*near, at, {now});
  }
  const Piece far = memory.piece(place->pe, place->offset, where.size);
  const Piece& to = direction == Direction::put ? far : *near;
  const Piece& from = direction == Direction::put ? *near : far;
  if (completes == Completes::now) return copy_pieces(world, to, from);
  Transfer transfer{world.kinds(), world.pool(), to, from};
  const auto done = transfer.step();
  if (!done.ok()) return done.status();
  if (!*done) add(std::move(transfer));
  return {};
}

template <class Memory, class Where>
Status copy(Memory& memory, Direction direction, const Where& where, const ist_buffer& local, Completes completes) {
  return copy(memory, direction, where, local, completes, [&memory](Transfer rest) { memory.add(std::move(rest)); });
}

// What a word of another PE's becomes once the bytes are there.
struct SignalChange {
  std::uint64_t value;
  ist_signal operation;
};

inline Status check_signal(const SignalChange& signal, std::uint64_t place) {
  if (signal.operation != IST_SIGNAL_SET && signal.operation != IST_SIGNAL_ADD)
    return {IST_ERR_ARGUMENT,
            "operation is " + std::to_string(static_cast<int>(signal.operation)) + "; it must be IST_SIGNAL_SET or _ADD"};
  if (place % sizeof(std::uint64_t) != 0) return {IST_ERR_ARGUMENT, "the signal's address is no multiple of 8"};
  return {};
}

// Stored, since nothing has to be read for it: atomic operations may not get there.
inline WordChange change_of(const SignalChange& signal) {
  return {signal.operation == IST_SIGNAL_ADD ? WordChange::What::add : WordChange::What::store, signal.value, 0};
}

// Who changes that word; null: this PE's processor or device.
template <class Memory>
PartService* service_of_signal(const Memory& memory, Pe pe, const SignalChange& signal) {
  return signal.operation == IST_SIGNAL_ADD ? memory.service_of_words(pe) : memory.service_of_stores(pe);
}

template <class Memory>
Status set_signal(Memory& memory, const PlaceInHeap& place, const SignalChange& signal) {
  constexpr Bytes kSize{sizeof signal.value};
  if (memory.on_host()) {
    change<std::uint64_t>(memory.at(place.pe, place.offset),
                          signal.operation == IST_SIGNAL_ADD ? IST_ATOMIC_ADD : IST_ATOMIC_SET, signal.value);
    return {};
  }
  if (PartService* const service = service_of_signal(memory, place.pe, signal); service != nullptr)
    return service->change({place.pe, place.offset}, kSize, change_of(signal)).status();
  const Piece word = memory.piece(place.pe, place.offset, kSize);
  if (signal.operation == IST_SIGNAL_ADD)
    return change_on_device(memory.world(), word, {WordChange::What::add, signal.value, 0}).status();
  return copy_pieces(memory.world(), word, host_piece(&signal.value, kSize));
}

// Before anything is copied: who waits for the word would not hear of it.
template <class Memory, class Where>
Result<PlaceInHeap> place_of_signal(Memory& memory, const Where& word, const SignalChange& signal) {
  auto place = place_in(memory, word);
  if (place.ok() && signal.operation == IST_SIGNAL_ADD && !memory.on_host() && memory.service_of_words(place->pe) == nullptr)
    IST_TRY(can_change_on_device(memory, place->pe));
  return place;
}

// Bytes and word are asked for together, and the other PE changes the word when it has the bytes.
template <class Memory, class Where>
Status put_signal_served(Memory& memory, const Where& where, const ist_buffer& source, const PlaceInHeap& word,
                         const SignalChange& change, Completes completes) {
  const auto place = place_in(memory, where);
  if (!place.ok()) return place.status();
  if (source.object == 0 && source.kind != IST_KIND_OPENCL) return null_buffer(where.size);
  const auto near = memory.world().kinds().resolve(source, where.size);
  if (!near.ok()) return near.status();
  const PartService::Signal signal{word.offset, change_of(change)};
  return memory.service_for(place->pe)->put({place->pe, place->offset}, *near, &signal, {completes == Completes::now});
}

// Into a device's memory: the word changes behind the bytes in the order of that device, and both are waited for at once.
template <class Memory, class Where>
Status put_signal_on_device(Memory& memory, const Where& where, const ist_buffer& source, const PlaceInHeap& word,
                            const SignalChange& signal, Completes completes) {
  const auto place = place_in(memory, where);
  if (!place.ok()) return place.status();
  if (source.object == 0 && source.kind != IST_KIND_OPENCL) return null_buffer(where.size);
  World& world = memory.world();
  const auto near = world.kinds().resolve(source, where.size);
  if (!near.ok()) return near.status();
  Transfer transfer{world.kinds(), world.pool(), memory.piece(place->pe, place->offset, where.size), *near};
  transfer.then_change(memory.piece(word.pe, word.offset, Bytes{sizeof signal.value}), change_of(signal));
  bool over = true;
  if (completes == Completes::now) {
    IST_TRY(finish_transfer(world, transfer));
  } else {
    const auto done = transfer.step();
    if (!done.ok()) return done.status();
    over = *done;
  }
  const bool changed = transfer.has_changed();
  if (!over) memory.add(std::move(transfer), [&memory, word, signal] { return set_signal(memory, word, signal); });
  return over && !changed ? set_signal(memory, word, signal) : Status{};
}

template <class Memory, class Where>
Status put_signal(Memory& memory, const Where& where, const ist_buffer& source, const Where& word,
                  const SignalChange& signal, Completes completes) {
  const auto place = place_of_signal(memory, word, signal);
  if (!place.ok()) return place.status();
  if (memory.service_for(place->pe) != nullptr && where.size != Bytes{}) [[unlikely]]
    return put_signal_served(memory, where, source, *place, signal, completes);
  if (!memory.on_host() && service_of_signal(memory, place->pe, signal) == nullptr && where.size != Bytes{})
    return put_signal_on_device(memory, where, source, *place, signal, completes);
  bool goes_on = false;
  IST_TRY(copy(memory, Direction::put, where, source, completes, [&](Transfer rest) {
    goes_on = true;
    memory.add(std::move(rest), [&memory, at = *place, signal] { return set_signal(memory, at, signal); });
  }));
  return goes_on ? Status{} : set_signal(memory, *place, signal);
}

}  // namespace ist
