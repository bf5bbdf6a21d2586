// Messages and machines that tests of the choice invent.
//
// Who calls this : tests/protocol.
// Threads        : values.
// Ownership      : none.
// Errors         : none.
#pragma once

#include "protocol/choose.hpp"

namespace ist {

inline constexpr Bytes kSlotLimit{216};
inline constexpr Bytes kCellLimit = kibibytes(64);

inline MessageShape shape(std::uint64_t bytes, KindId kind = KindId::host, bool same_process = false) {
  return {Bytes{bytes}, kind, same_process, kSlotLimit, kCellLimit};
}

inline MessageShape lent(std::uint64_t bytes) {
  MessageShape made = shape(bytes, KindId::cuda);
  made.lent = true;
  return made;
}

// In memory from which the receiver copies.
inline MessageShape shown(std::uint64_t bytes) {
  MessageShape made = shape(bytes);
  made.slot_limit = kCellLimit;
  made.shown = true;
  return made;
}

inline MessageShape with_worker(std::uint64_t bytes, std::uint64_t limit = 2048) {
  MessageShape made = lent(bytes);
  made.worker_limit = Bytes{limit};
  return made;
}

inline MessageShape with_mailbox(std::uint64_t bytes, std::uint64_t limit = 2048) {
  MessageShape made = with_worker(bytes);
  made.mailbox_limit = Bytes{limit};
  return made;
}

// The same with one thing else.
template <class Change>
MessageShape with(MessageShape made, const Change& change) {
  change(made);
  return made;
}

inline MessageShape to_device(std::uint64_t bytes, MemoryClass from, KindId to = KindId::cuda) {
  return with(shape(bytes), [&](MessageShape& made) {
    made.lent = true;
    made.memory = from;
    made.to = {to, to == KindId::host ? MemoryClass::pageable : MemoryClass::device};
  });
}

inline MessageShape into(std::uint64_t bytes, MemoryClass to) {
  return with(lent(bytes), [&](MessageShape& made) { made.to = {KindId::cuda, to}; });
}

inline MessageShape in_mode(MessageShape made, SendMode mode) {
  made.mode = mode;
  return made;
}
inline constexpr SendMode kSynchronous{true, false};
inline constexpr SendMode kBlocking{false, true};

inline MessageShape on_one_device(std::uint64_t bytes) {
  return with(lent(bytes), [](MessageShape& made) { made.same_device = true; });
}

inline MessageShape in_layout(MessageShape made, MemoryLayout layout) {
  made.layout = layout;
  return made;
}

inline MessageShape on_two_nodes(MessageShape made) {
  made.same_node = false;
  return made;
}

inline MachineProfile dear_mail() {
  MachineProfile machine;
  machine.mailbox_alpha = 12e-6;
  return machine;
}

inline MachineProfile slow_link() {
  MachineProfile machine;
  machine.device_link_beta = 1e-9;
  return machine;
}

inline MachineProfile dear_copies() {
  MachineProfile machine;
  machine.device_copy_alpha = 20e-6;
  return machine;
}

// A copy from one device to another takes longer than one over the bus, or less.
inline MachineProfile with_link_alpha(double seconds) {
  MachineProfile machine;
  machine.device_link_alpha = seconds;
  return machine;
}

inline MachineProfile with_turn(double seconds) {
  MachineProfile machine;
  machine.device_turn = seconds;
  return machine;
}

// Cells cost next to nothing here, slots a lot.
inline MachineProfile cheap_cells() {
  MachineProfile machine;
  machine.slot_alpha = 5e-6;
  machine.cell_alpha = 0.01e-6;
  return machine;
}

// Announcing costs nothing, and everything else does.
inline MachineProfile free_handshake() {
  MachineProfile machine;
  machine.slot_alpha = 1e-3;
  machine.cell_alpha = 1e-3;
  machine.handshake_alpha = 0;
  return machine;
}

// What is taken for a message on a machine, and why that is told apart.
struct Case {
  const char* why;
  MachineProfile machine;
  MessageShape message;
  ist_carrier carrier;
};

}  // namespace ist
