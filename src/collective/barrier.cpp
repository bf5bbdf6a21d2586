#include "collective/barrier.hpp"

#include <mutex>

#include "request/wait.hpp"

namespace ist {
namespace {

// One round; sends to `to` and waits to hear from `from`.
Status exchange_token(Engine& engine, std::uint32_t context, std::int32_t round, Rank to, Rank from) {
  OperationId receive;
  OperationId send;
  bool sent = false;
  {
    const std::lock_guard lock(engine.lock());
    auto heard = engine.start_receive(Piece{}, from.value, round, context);
    if (!heard.ok()) return heard.status();
    receive = *heard;
    const auto told = engine.start_send(Piece{}, to, round, context, &sent);
    if (!told.ok()) {
      // A token that has come already is complete: it had no bytes to wait for.
      if (!engine.cancel_receive(receive)) engine.take(receive);
      return told.status();
    }
    send = *told;
  }
  Status status;
  if (!sent) status = wait_for(engine, send).status;
  const Status heard = wait_for(engine, receive).status;
  return status.ok() ? heard : status;
}

}  // namespace

Status barrier(Engine& engine, std::uint32_t context) {
  const std::int32_t size = engine.size();
  const std::int32_t rank = engine.rank().value;
  std::int32_t round = 0;
  for (std::int32_t distance = 1; distance < size; distance *= 2, ++round) {
    IST_TRY(exchange_token(engine, context | kInternalContext, round, Rank{(rank + distance) % size},
                           Rank{(rank - distance + size) % size}));
  }
  return {};
}

}  // namespace ist
