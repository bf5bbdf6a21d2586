// How a message is carried: the cheapest of what is possible, from values alone.
//
// Who calls this : request/engine, once per send; cli/explain.
// Threads        : pure functions.
// Ownership      : none.
// Errors         : none; what no carrier can take is IST_CARRIER_NONE, with a reason at each.
#pragma once

#include <isthmus/isthmus.h>

#include <vector>

#include "base/price.hpp"
#include "base/settings.hpp"
#include "base/units.hpp"
#include "memory/memory_kind.hpp"

namespace ist {

// A size that no vector has: whatever is combined, the host does it.
inline constexpr double kNeverOnDevice = 1e15;

// alpha in seconds, beta in seconds per byte, per step of a message's way.
struct MachineProfile {
  double slot_alpha = 0.10e-6;         // one slot: written and seen
  double cell_alpha = 0.25e-6;         // one cell: taken, posted and returned
  double handshake_alpha = 0.60e-6;    // announce and clear
  double host_copy_beta = 0.10e-9;     // memcpy
  double device_copy_alpha = 6.0e-6;   // driver call and completion
  double device_copy_beta = 0.02e-9;   // over the bus
  double device_link_beta = 0.003e-9;  // from one device to another
  double device_link_alpha = 0;  // a copy from one to another, call and completion; 0: not measured, as device_copy_alpha
  double device_pack_beta = 0.001e-9;  // a kernel that packs or unpacks within a device's memory
  double device_load_factor = 1.1;     // a kernel's loads over a link, beside its stores
  // A kernel's stores into page-locked host memory that is mapped for its device, and its loads from there. They move 128 bytes at once, as a
  // copy engine does 128 or 256: built in they are charged rather too much, and the loads more, since each is waited for. Not measured yet.
  double device_mapped_beta = 0.025e-9;
  double device_mapped_load_beta = 0.03e-9;
  // Copies of rows by a copy engine. Beginning one takes 2.6 us more than a copy of one row does (H200, 2026-11-24, memory/cuda/cuda_turns.hpp). What
  // each row and each byte take is not measured yet, and charged rather too much: so far such copies are for few long rows.
  double device_rows_alpha = 8.6e-6;   // call and completion
  double device_row_each = 5e-9;       // one row
  double device_rows_beta = 0.003e-9;  // within a device's memory
  // What a copy within a device takes whose processes take turns, whatever its size up to 16 MiB (H200, 2026-11-22).
  double device_turn = 150e-6;
  double worker_alpha = 4.7e-6;  // an order to a device's resident worker, until it is done: the mean of out and into
  double worker_beta = 0.6e-9;   // in packets
  double mailbox_alpha =
      5.0e-6;  // orders to both workers, which overlap: 1.5 to 2.4 us less than a copy from device to device
  double mailbox_beta = 0.3e-9;  // in packets, over the link
  // One copy or two of a long message between host buffers: what the receiver's own copies take, seconds per byte, for messages of
  // half that size up to twice it. 0: not measured on this machine, so that each run tries both (copy_choice.hpp).
  double two_copies_128k = 0, one_copy_128k = 0;
  double two_copies_512k = 0, one_copy_512k = 0;
  double two_copies_2m = 0, one_copy_2m = 0;
  double two_copies_8m = 0, one_copy_8m = 0;
  // Bytes up to which two copies through a slot take no longer than an announcement and one copy. 0: not measured on this machine, and slots go
  // to their end. Of bytes that were just written, as programs pack what they send, 64 KiB one way take 9.5 us through a slot and 18.4 in one
  // copy; of bytes that nobody writes between two messages, as in OSU's loops, 8.5 and 5.9 (two Xeon processors, 2026-11-27).
  double slots_up_to = 0;
  // Bytes of a device's memory up to which a rank computes its part of a reduction on the host: a copy each way costs less than
  // kernels do. Where another rank has the device for its own, too, a kernel waits for its turn (without MPS): two ranks on one
  // H200 took for an allreduce of 1 MiB 570 us with arithmetic on the device and 190 with it on the host, of 8 MiB 2300 and 1100;
  // for a reduce_scatter 505 and 160, 1370 and 925 (docs/measured/README.md).
  double device_arithmetic_above = 128 << 10;
  double device_arithmetic_above_shared = 8 << 20;
  // Of an OpenCL device that is the processor: never, since two ranks took 1.1 to 5.8 times as long with its kernels for allreduce and
  // reduce_scatter of 256 KiB to 64 MiB, and 0.94 to 1.9 times of less (PoCL, two Xeon processors, 2026-11-27;
  // docs/measured/README.md).
  double device_arithmetic_above_processor = kNeverOnDevice;
  // Of another device of OpenCL: where a rank has it to itself, a reduce_scatter of less takes 0.97 to 1.24 of the time by its kernels, and
  // 0.66 to 0.84 with parts of 256 KiB to 32 MiB, an allreduce 1.03 to 1.47 and 0.94 to 1.09. Where ranks share it, never: with its kernels vectors of 16 KiB to
  // 64 MiB take 1.2 to 2.2 times as long (NVIDIA's driver, H200, 2026-11-27; docs/measured/README.md).
  double device_arithmetic_above_opencl = 128 << 10;
  double device_arithmetic_above_opencl_shared = kNeverOnDevice;
  bool shares_device = false;  // another rank has the CUDA device that is this one's own
  bool shares_opencl = false;  // the ranks of this host are more than the OpenCL devices they see, but for processors
};

// One side's buffer.
struct MessageEnd {
  KindId kind = KindId::host;
  MemoryClass memory = MemoryClass::pageable;
};

// Can another process open memory of that class as it is? Else it comes through a block.
inline bool opens_whole(MemoryClass memory) { return memory == MemoryClass::device; }

struct SendMode {
  bool synchronous = false;  // complete only when its receive has begun
  bool blocking = false;     // until it is over, the caller does nothing else
  bool stays_eager = false;  // what fits a cell is over without its receive, however late its bytes come
  // What lies in memory that the two share is copied from there, whether or not its place was sent from lately.
  bool shows = false;
  bool in_windows = false;  // others may follow before it is waited for, and out of the same place
};

// How the bytes lie in the buffer.
enum class MemoryLayout : std::uint8_t {
  contiguous,
  strided,  // in blocks of one length, at one distance
  listed    // in blocks of any length, anywhere
};

inline constexpr Bytes kNoLimit{~std::uint64_t{0}};

// What is unknown stands in nobody's way: `lent` says what was heard.
struct MessageShape {
  Bytes bytes;
  KindId kind = KindId::host;  // of the sender's buffer
  bool same_process = false;
  Bytes slot_limit;
  Bytes cell_limit;
  bool lent = false;             // does the receiver probably lend device memory to copy to?
  Bytes worker_limit = {};       // a worker of the sender's device copies as much; 0: it has none
  Bytes mailbox_limit = {};      // and stores as much into an open mailbox of the receiver's; 0: there is none
  bool shown = false;            // does the receiver copy the bytes from where they lie, in memory that the two share?
  Bytes slots_up_to = kNoLimit;  // longer ones it copies from the sender's own memory sooner than a slot carries them
  MemoryClass memory = MemoryClass::unknown;  // of the sender's buffer
  MessageEnd to = {KindId::none,
                   MemoryClass::unknown};  // what is known of the receiver's; none: taken to be as the sender's
  SendMode mode = {};
  MemoryLayout layout = MemoryLayout::contiguous;
  bool same_device = false;  // are both buffers on one, which the two processes share?
  bool same_node = true;
};

namespace price {
double slot(const MessageShape& message, const MachineProfile& machine);
double cell(const MessageShape& message, const MachineProfile& machine);
double ring(const MessageShape& message, const MachineProfile& machine);
double direct(const MessageShape& message, const MachineProfile& machine);
double device(const MessageShape& message, const MachineProfile& machine);
double mailbox(const MessageShape& message, const MachineProfile& machine);
// By that one of those above.
double of(ist_carrier carrier, const MessageShape& message, const MachineProfile& machine);
}  // namespace price

// What it takes to begin a copy from one device to another one.
double link_start(const MachineProfile& machine);
// Are bytes that a stream puts into another device's memory, with a word behind them, stored by the kernel that changes the word, and not by a
// copy engine in front of it? `apart`: the two addresses, exclusive or; it says how wide the words are that both allow.
bool stores_in_stream(Bytes bytes, std::uint64_t apart, const MachineProfile& machine);

// Every carrier with its price, or why it cannot carry the message.
struct OfferedCarrier {
  ist_carrier carrier;
  Bill price;
};
std::vector<OfferedCarrier> offers(const MessageShape& message, const MachineProfile& machine);

// IST_CARRIER_SLOT, _CELL, _RING, _DIRECT, _DEVICE or _MAILBOX; ring, direct and device are announced first. _NONE: every carrier refuses
// it.
ist_carrier choose(const MessageShape& message, const MachineProfile& machine);

// Of so many bytes that lie on one device of two processes: does one copy within it cost less than the ring, which needs no turn?
bool pays_within_device(Bytes bytes, const MachineProfile& machine);

// How much of a ring's slot to fill: few bytes end the first copy early, so that both directions overlap; many pay for the
// driver's calls. Between two hosts it is the setting, of which a ring's sender fills twice as much in windows and of long
// messages (RingSender::most_in_slot). With a device, half the message, from 256 KiB up
// to the setting: 1 MiB then takes 49 us instead of 55, 4 MiB 121 instead of 140 (two H200, 2026-11-21; the sweep is in
// docs/measured).
Bytes ring_fill(Bytes message, bool between_hosts, const Settings& settings);

}  // namespace ist
