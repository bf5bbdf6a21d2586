// Isthmus in kernels: how they ask their process's proxy, a thread of a processor, to change words of host memory. models/word_proxy.pml has
// it.
//
// Who calls this : host_words.cuh; the proxy itself (src/heap/word_proxy.hpp) for what lies where. Tests play kernels with it.
// Threads        : any number of threads of kernels on one device ask at once; one thread of one processor answers.
// Ownership      : none. Ring and desk belong to the heap, zeroed when they are made, never reset.
// Errors         : a Status. After one that is not ok no more is to be asked for: a ticket that was taken and not written holds up all behind it.
//
// A processor's atomics and a device's on one word are not atomic together where the bus between them carries none, so that host memory has
// one executor: processors. Who asks takes a ticket; the proxy serves tickets in their order, which keeps what one thread asks for in
// order, too. Ticket t lies in place t % kProxyPlaces, in packets (packet.cuh) numbered by how often the place was used: a store of eight
// bytes comes whole, in whichever order, so that asking takes no fence. Nothing that a kernel waits for before its packets are written is a
// younger ticket's, so that somebody can always go on; threads of one warp run on past each other, as on every device from Volta on.
#ifndef ISTHMUS_DEVICE_PROXY_CUH
#define ISTHMUS_DEVICE_PROXY_CUH

#include "isthmus/device/packet.cuh"
#include "isthmus/device/wait.cuh"

namespace ist::device {

inline constexpr std::uint64_t kProxyPlaces = 1024;

// Numbers as those of ist_atomic (isthmus/heap.h).
enum class Change : std::uint32_t {
  fetch = 0,
  set = 1,
  add = 2,
  swap = 4,
  bitwise_and = 5,
  bitwise_or = 6,
  bitwise_xor = 7,
  compare_swap = 8
};

// In the lower half of `what`, beside the change; the PE is the upper half.
inline constexpr std::uint32_t kHalfWord = 1U << 8;  // of 4 bytes
inline constexpr std::uint32_t kAnswered = 1U << 9;  // whoever asked waits for the answer

// A line, written by the device alone.
struct alignas(64) ProxyRequest {
  Pair what;
  Pair offset;  // in that PE's part
  Pair operand;
  Pair expected;
};
// In host memory, page-locked.
struct ProxyRing {
  ProxyRequest requests[kProxyPlaces];
  Pair answers[kProxyPlaces];       // by the proxy: what was there before; numbered as the request
  alignas(128) std::uint64_t done;  // by the proxy: so many tickets, from the first one on
};
// In memory of the device that asks.
struct ProxyDesk {
  std::uint64_t claimed;                             // tickets that somebody has taken
  alignas(128) std::uint64_t known;                  // so many, or more, are done, as somebody has seen
  alignas(128) std::uint64_t through[kProxyPlaces];  // by place: how many of those who had it are through with its answer
};

// The upper bit tells it from what was zeroed. A place holds what the ticket kProxyPlaces before has left there, whose number is another one.
IST_DEVICE_NUMBER std::uint32_t proxy_number(std::uint64_t ticket) {
  return static_cast<std::uint32_t>(ticket / kProxyPlaces) | 0x80000000U;
}

// What a thread asks for.
struct Wanted {
  Change change;
  std::uint32_t flags;
  int pe;
  std::uint64_t offset;
  std::uint64_t operand;
  std::uint64_t expected;
};

IST_DEVICE_CODE ProxyRing& ring_of(const ist_device_view& view) { return *reinterpret_cast<ProxyRing*>(view.ring); }
IST_DEVICE_CODE ProxyDesk& desk_of(const ist_device_view& view) { return *reinterpret_cast<ProxyDesk*>(view.desk); }

// On a device in any order; a processor that plays one shows what it did before, as the fence in front of a signal does there.
IST_DEVICE_CODE void store_packets(Pair* to, std::uint32_t number, std::uint64_t data) {
  const Pair packets = packed(number, data);
#if defined(__CUDA_ARCH__)
  store_relaxed(to, packets);
#else
  store_release(&to->low, packets.low);
  store_release(&to->high, packets.high);
#endif
}

// Are so many tickets done? The bus is asked at every `every`-th look, and only where nobody is known to have seen it: many that wait at
// once share what each of them finds, and their questions do not hold up the proxy, whose line it is. What is loaded says that the proxy
// has read packets, and orders nothing that was stored: load_taken. What somebody stores in `known` may be less than another has stored
// meanwhile; that is true as well, and only costs a look.
IST_DEVICE_CODE bool are_done(const ist_device_view& view, std::uint64_t tickets, unsigned look, unsigned every) {
  std::uint64_t* const known = &desk_of(view).known;
  const std::uint64_t seen = load_taken(known);
  if (seen >= tickets) return true;
  if (look % every != 0) return false;
  const std::uint64_t done = load_taken(&ring_of(view).done);
  if (done > seen) store_taken(known, done);
  return done >= tickets;
}

// The place is free once the ticket before was served, or its packets would be overwritten unread, and once whoever waits for its answer
// has it, or the next one would overwrite that.
IST_DEVICE_CODE bool has_place(const ist_device_view& view, std::uint64_t ticket, unsigned look) {
  const std::uint64_t uses = ticket / kProxyPlaces;
  if (uses == 0) return true;
  return load_taken(&desk_of(view).through[ticket % kProxyPlaces]) == uses &&
         are_done(view, ticket - kProxyPlaces + 1, look, 8);
}

IST_DEVICE_CODE std::uint64_t take_ticket(const ist_device_view& view) {
  return fetch_sum(&desk_of(view).claimed, std::uint64_t{1});
}

// Puts it where the proxy will find it. The ticket has its place.
IST_DEVICE_CODE void write_request(const ist_device_view& view, std::uint64_t ticket, const Wanted& wanted) {
  ProxyRequest& place = ring_of(view).requests[ticket % kProxyPlaces];
  const std::uint32_t number = proxy_number(ticket);
  store_packets(&place.offset, number, wanted.offset);
  store_packets(&place.operand, number, wanted.operand);
  store_packets(&place.expected, number, wanted.expected);
  store_packets(&place.what, number,
                static_cast<std::uint64_t>(static_cast<std::uint32_t>(wanted.pe)) << 32 |
                    (static_cast<std::uint32_t>(wanted.change) | wanted.flags));
}

IST_DEVICE_CODE bool has_answer(const ist_device_view& view, std::uint64_t ticket, std::uint64_t& before) {
  const Pair found = load_relaxed(&ring_of(view).answers[ticket % kProxyPlaces]);
  before = bytes_in(found);
  return has_come(found, proxy_number(ticket));
}

// After the answer was loaded; or, where nobody waits for one, after the packets were written, in no order with them, since the next one
// in this place waits for `done`, too.
IST_DEVICE_CODE void end_use(const ist_device_view& view, std::uint64_t ticket) {
  store_taken(&desk_of(view).through[ticket % kProxyPlaces], ticket / kProxyPlaces + 1);
}

// Asks; and, with kAnswered, waits for what was there before. Who gives up waiting for its answer gives the place back all the same: the next
// one waits for `done`. Who gives up before it has a place leaves a ticket behind which nothing is ever served. One loop, in which a thread does all that others may wait for: no thread of a warp waits for another one to leave it before that.
IST_DEVICE_CODE Status ask(const ist_device_view& view, const Wanted& wanted, Waiter& waiter, std::uint64_t& before) {
  const std::uint64_t ticket = take_ticket(view);
  const bool answered = (wanted.flags & kAnswered) != 0;
  bool written = false, over = false;
  Status status = Status::ok;
  for (auto look = static_cast<unsigned>(ticket); !over && status == Status::ok; ++look) {
    if (!written && has_place(view, ticket, look)) {
      write_request(view, ticket, wanted);
      written = true;
    }
    if (written && (!answered || has_answer(view, ticket, before))) {
      end_use(view, ticket);
      over = true;
    }
    if (!over) {
      status = waiter.vain();
      if (written && status != Status::ok) end_use(view, ticket);
      rest_briefly();
    }
  }
  return status;
}

// Until so many tickets are done.
IST_DEVICE_CODE Status wait_for_done(const ist_device_view& view, std::uint64_t tickets, Waiter& waiter) {
  Status status = Status::ok;
  while (status == Status::ok && !are_done(view, tickets, 0, 1)) {
    status = waiter.vain();
    rest_briefly();
  }
  return status;
}

// Is all done that was asked for so far, as far as that is known without asking the bus?
IST_DEVICE_CODE bool is_settled(const ist_device_view& view) {
  const ProxyDesk& desk = desk_of(view);
  const std::uint64_t claimed = load_taken(&desk.claimed);
  return load_taken(&desk.known) >= claimed;
}

}  // namespace ist::device

#endif
