// C call that reads the counters.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <mutex>

#include "face/message/calls.hpp"
#include "face/message/errors.hpp"

namespace ist {
namespace {

constexpr const char* kTrafficCall = "ist_world_traffic";

Status check(const Engine& engine, int peer, int carrier, const ist_traffic* traffic) {
  constexpr std::size_t kLeast = offsetof(ist_traffic, messages_sent);
  if (traffic == nullptr) return {IST_ERR_ARGUMENT, "traffic is null; pass the address of a variable"};
  if (traffic->size < kLeast)
    return {IST_ERR_ARGUMENT,
            "traffic->size is " + std::to_string(traffic->size) + "; set it to sizeof(ist_traffic) before the call"};
  if (peer != IST_ALL_PEERS && (peer < 0 || peer >= engine.size()))
    return {IST_ERR_RANK, "peer is " + std::to_string(peer) + "; the world has ranks 0 to " +
                              std::to_string(engine.size() - 1) + " and IST_ALL_PEERS"};
  if (carrier != IST_CARRIER_NONE && !way_of(carrier))
    return {IST_ERR_ARGUMENT, "carrier is " + std::to_string(carrier) +
                                  ", which is none: pass an ist_carrier, or IST_CARRIER_NONE for all of them together"};
  return {};
}

PeerTraffic between(Engine& engine, int peer) {
  const std::lock_guard lock(engine.lock());
  if (peer != IST_ALL_PEERS) return engine.traffic(Rank{peer});
  PeerTraffic sum = engine.nccl_traffic();
  for (std::int32_t r = 0; r < engine.size(); ++r) sum += engine.traffic(Rank{r});
  return sum;
}

void fill(ist_traffic& into, const PeerTraffic& found, int carrier) {
  Counted sent;
  Counted received;
  for (std::size_t way = 0; way < kWays; ++way) {
    if (carrier != IST_CARRIER_NONE && way_of(carrier) != static_cast<Way>(way)) continue;
    sent += found.sent[way];
    received += found.received[way];
  }
  ist_traffic known{into.size, sent.messages, sent.bytes, received.messages, received.bytes};
  // The caller's may be shorter, or of a later version, whose further members stay as they are.
  std::memcpy(&into, &known, std::min<std::size_t>(into.size, sizeof known));
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_world_traffic(ist_world world, int peer, ist_carrier carrier, ist_traffic* traffic) try {
  const auto found = ist::look_up(world);
  if (!found.ok()) return ist::report(ist::in_call(ist::kTrafficCall, found.status()));
  ist::Engine& engine = found->world->engine();
  if (const ist::Status wrong = ist::check(engine, peer, carrier, traffic); !wrong.ok())
    return ist::report(ist::in_call(ist::kTrafficCall, wrong));
  ist::fill(*traffic, ist::between(engine, peer), carrier);
  return IST_OK;
} catch (...) {
  return ist::report_exception(ist::kTrafficCall);
}
}
