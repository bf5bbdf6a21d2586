#include "collective/barrier.hpp"

#include <mutex>
#include <utility>

#include "request/wait.hpp"

namespace ist {
namespace {

// What travels in a round: the rank that will never come, if the teller knows of one. Everybody hears, directly or through
// others, from everybody, so that either all pass the barrier or all fail; nobody stops telling because something failed.
struct Token {
  std::int32_t lost = -1;
};

struct Round {
  const Communicator& comm;
  std::int32_t number;
  int to;
  int from;
};

// Tells one rank and hears another; a rank that cannot be heard or told is the lost one.
Status exchange_tokens(const Round& round, const Token& mine, Token& theirs) {
  Engine& engine = round.comm.engine();
  OperationId receive;
  OperationId send;
  bool sent = false;
  Status told;
  Status heard;
  {
    const std::lock_guard lock(engine.lock());
    auto hearing = engine.start_receive(host_piece(&theirs, Bytes{sizeof theirs}), round.comm.to_world(round.from).value,
                                        round.number, round.comm.internal());
    if (hearing.ok()) receive = *hearing;
    heard = hearing.status();
    const auto telling = engine.start_send(host_piece(&mine, Bytes{sizeof mine}), round.comm.to_world(round.to),
                                           round.number, round.comm.internal(), &sent);
    if (telling.ok()) send = *telling;
    told = telling.status();
  }
  if (told.ok() && !sent) told = wait_for(engine, send).status;
  if (heard.ok()) heard = wait_for(engine, receive).status;
  if (!heard.ok()) theirs.lost = round.from;
  if (heard.ok() && !told.ok()) theirs.lost = round.to;
  return heard.ok() ? told : heard;
}

}  // namespace

Status barrier(const Communicator& comm) {
  const int size = comm.size();
  const int rank = comm.rank();
  Token mine;
  Status status;
  std::int32_t number = 0;
  for (std::int32_t distance = 1; distance < size; distance *= 2, ++number) {
    Token theirs;
    const Round round{comm, number, (rank + distance) % size, (rank - distance + size) % size};
    const Status exchanged = exchange_tokens(round, mine, theirs);
    if (status.ok() && !exchanged.ok()) status = exchanged;
    if (mine.lost < 0) mine.lost = theirs.lost;
    // A death ends everything for everybody; there is nobody to tell.
    if (exchanged.code() == IST_ERR_PEER_DEAD) return exchanged;
  }
  if (!status.ok() || mine.lost < 0) return status;
  return {IST_ERR_PEER_LEFT,
          "rank " + std::to_string(mine.lost) + " of " + comm.name() + " left the world before it came to the barrier"};
}

}  // namespace ist
