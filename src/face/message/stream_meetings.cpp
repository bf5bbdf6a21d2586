#include "face/message/stream_meetings.hpp"

#include <algorithm>
#include <set>

#include "base/log.hpp"
#include "collective/collectives.hpp"
#include "request/wait.hpp"

namespace ist {
namespace {

constexpr const char* kPreparing = "ist_prepare_collectives_on";
// Of the channels, which are in the communicator's internal context.
constexpr std::int32_t kSpokeTag = 0;

// What each rank has, for all of them; collective, by ordinary messages.
template <class T>
Status exchange(const Communicator& comm, const T& mine, std::vector<T>& all) {
  all.resize(static_cast<std::size_t>(comm.size()));
  const Bytes size{sizeof(T)};
  Plan plan{comm, kPreparing, true};
  plan_allgather(plan, host_piece(&mine, size), host_piece(all.data(), Bytes{size.value * all.size()}),
                 Layout::even({1, size}, comm.size()), false);
  if (plan.walks()) return plan.end_walk();
  const auto id = plan.start();
  return id.ok() ? wait_for(comm.engine(), *id).status : id.status();
}

bool on_devices_of_their_own(const std::vector<ChannelCard>& cards) {
  std::set<std::array<std::byte, 16>> devices;
  for (const ChannelCard& card : cards) devices.insert(card.device);
  return devices.size() == cards.size();
}

std::string of(const std::string& comm) { return "collective calls in streams of communicator \"" + comm + "\""; }

std::string remedy(ist_code code) {
  return code == IST_ERR_KIND
             ? "CUDA is not available there, or its driver lacks a call that they need; use the calls without _on"
             : "its error says why; use the calls without _on";
}

ChannelName spoke(const Communicator& comm, int member, ChannelSide side) {
  return {&comm, comm.to_world(member), kSpokeTag, side, true};
}

}  // namespace

StreamTable& StreamMeetings::table(const Communicator& comm) {
  const std::lock_guard lock(mutex_);
  auto& found = tables_[comm.scope().context];
  if (!found) {
    found = std::make_unique<StreamTable>();
    found->name_ = comm.name();
  }
  return *found;
}

// ---- preparing ----

Result<ChannelCard> StreamMeetings::take_seat(const Communicator& comm, StreamTable& table,
                                              const Result<StreamPlace>& place) {
  if (!place.ok()) return place.status();
  if (table.seat_ && table.seat_->device() == place->device) return table.seat_->card();
  if (place->device < 0)
    return Status{IST_ERR_KIND, "rank " + std::to_string(comm.rank()) + " has no device for " + of(comm.name())};
  Circle circle;
  for (int member = 0; member < comm.size(); ++member) circle.members.push_back(comm.to_world(member));
  circle.own = comm.rank();
  auto seat = (*channels_.kind())->meetings().take_seat(place->device, circle);
  if (!seat.ok()) return seat.status();
  table.seat_ = std::move(*seat);
  return table.seat_->card();
}

Status StreamMeetings::open_spokes(const Communicator& comm, StreamTable& table, std::uint64_t stream) {
  table.spokes_.clear();
  for (int member = 0; member < comm.size(); ++member) {
    if (member == comm.rank() || (comm.rank() != 0 && member != 0)) continue;
    StreamTable::Spoke made{member};
    for (const ChannelSide side : {ChannelSide::sends, ChannelSide::receives}) {
      const auto end = channels_.ready(spoke(comm, member, side), stream, nullptr);
      if (!end.ok()) return end.status();
      (side == ChannelSide::sends ? made.sends : made.receives) = *end;
    }
    table.spokes_.push_back(made);
  }
  return {};
}

// Whatever goes wrong here is told to the others, who would wait for ever.
Status StreamMeetings::prepare(const Communicator& comm, StreamTable& table, const Result<StreamPlace>& place,
                               std::uint64_t stream) {
  const std::lock_guard one(table.preparing_);
  if (table.ready_.load()) return {};
  const auto mine = take_seat(comm, table, place);
  ChannelCard card;
  if (mine.ok())
    card = *mine;
  else
    card.refused = static_cast<std::uint8_t>(mine.status().code());
  std::vector<ChannelCard> cards;
  IST_TRY(exchange(comm, card, cards));
  if (!mine.ok()) return mine.status();
  for (std::size_t member = 0; member < cards.size(); ++member)
    if (const auto code = static_cast<ist_code>(cards[member].refused); code != IST_OK)
      return {code, of(comm.name()) + " cannot be prepared: rank " + std::to_string(member) + " has no place for them (" +
                        remedy(code) + ")"};
  table.by_channels_ = comm.size() > kMostAtMeeting || !on_devices_of_their_own(cards);
  const Status opened = table.by_channels_ ? open_spokes(comm, table, stream) : table.seat_->connect(cards);
  std::vector<std::uint32_t> codes;
  IST_TRY(exchange(comm, static_cast<std::uint32_t>(opened.code()), codes));
  IST_TRY(opened);
  for (std::size_t member = 0; member < codes.size(); ++member)
    if (const auto code = static_cast<ist_code>(codes[member]); code != IST_OK)
      return {code, of(comm.name()) + " cannot be prepared: rank " + std::to_string(member) +
                        " could not open the others' memory (" + remedy(code) + ")"};
  log::write(log::Level::info,
             of(comm.name()) + (table.by_channels_ ? " go through rank 0, since ranks share a device or are many"
                                                   : " meet in kernels, one on each rank's device"));
  // Whoever is gone by now may have gone before there was a word to tell it to.
  channels_.look_at_board();
  table.ready_.store(true);
  return {};
}

Result<StreamTable*> StreamMeetings::ready(const Communicator& comm, std::uint64_t stream, const Piece* beside) {
  StreamTable& found = table(comm);
  const bool is_ready = found.ready_.load();
  if (is_ready && stream != 0 && found.seat_->last_stream == stream) return &found;
  const auto kind = channels_.kind();
  auto place = kind.ok() ? (*kind)->find_stream(stream, beside, !is_ready) : Result<StreamPlace>{kind.status()};
  if (place.ok() && place->device < 0) place->device = channels_.device();
  if (!is_ready) {
    if (place.ok() && place->capturing)
      return Status{IST_ERR_NOT_CAPTURABLE,
                    of(comm.name()) +
                        " are not prepared, and nothing can be prepared while a stream is captured; call "
                        "ist_prepare_collectives_on, on every rank, before the capture begins"};
    IST_TRY(prepare(comm, found, place, stream));
  }
  if (!place.ok()) return place.status();
  if (place->device != found.device())
    return Status{IST_ERR_ARGUMENT, of(comm.name()) + " are on cuda device " + std::to_string(found.device()) +
                                        " and the stream on device " + std::to_string(place->device) +
                                        "; the first one, or ist_prepare_collectives_on, chooses the device"};
  if (place->own) found.seat_->last_stream = stream;
  return &found;
}

// ---- what has gone wrong ----

Status StreamMeetings::everyone_is_there(const Communicator& comm) const {
  const AbortBoard& board = engine_.parts().board;
  if (board.changes() == 0) return {};
  if (const Rank dead = board.first_dead(); dead != kNobody) return engine_.died(dead);
  for (int member = 0; member < comm.size(); ++member)
    if (board.fate(comm.to_world(member)) != AbortBoard::Fate::present) return engine_.gone(comm.to_world(member));
  return {};
}

Status StreamMeetings::trouble(const Communicator& comm, StreamTable& table) const {
  if (table.by_channels_) {
    for (const auto& each : table.spokes_) {
      IST_TRY(channels_.trouble(spoke(comm, each.member, ChannelSide::sends), *each.sends));
      IST_TRY(channels_.trouble(spoke(comm, each.member, ChannelSide::receives), *each.receives));
    }
    return everyone_is_there(comm);
  }
  const auto found = table.seat_->trouble();
  if (found && found->other_call >= 0)
    return {IST_ERR_ARGUMENT, of(comm.name()) + ": rank " + std::to_string(found->other_call) +
                                  " made another call than this rank, or with another count, type, operation or root; they "
                                  "must be alike, and none can be made any more"};
  IST_TRY(everyone_is_there(comm));
  if (found)
    return {IST_ERR_PENDING,
            of(comm.name()) + " were given up, since another rank could not go on; none can be made any more"};
  return {};
}

Status StreamMeetings::close() {
  const std::lock_guard lock(mutex_);
  bool any = false;
  for (const auto& [context, each] : tables_) any = any || each->seat_;
  if (!any) return {};
  Status status = (*channels_.kind())->close_all();
  for (const auto& [context, each] : tables_) {
    if (!status.ok() || !each->ready_.load() || each->by_channels_) continue;
    const auto found = each->seat_->trouble();
    if (!found) continue;
    const AbortBoard& board = engine_.parts().board;
    const Rank dead = board.first_dead();
    const std::string lost = "; work in a stream that waited in " + of(each->name_) + " was given up";
    if (dead != kNobody)
      status = {engine_.died(dead).code(), engine_.died(dead).text() + lost};
    else
      status = {found->other_call >= 0 ? IST_ERR_ARGUMENT : IST_ERR_PENDING,
                (found->other_call >= 0 ? "rank " + std::to_string(found->other_call) + " made another call"
                                        : std::string{"another rank had left, or this one's stream was not waited for"}) +
                    lost};
  }
  return status;
}

// ---- the calls ----

Status StreamMeetings::send(const StreamTable::Spoke& spoke, std::uint64_t stream, std::uint64_t address, Bytes size) {
  return (*channels_.kind())->send(*spoke.sends, stream, address, size);
}

Status StreamMeetings::receive(const StreamTable::Spoke& spoke, std::uint64_t stream, std::uint64_t address, Bytes size) {
  return (*channels_.kind())->receive(*spoke.receives, stream, address, size);
}

// One piece of a call. Whatever rank 0 sends, the others receive last; so nobody waits for who waits for it.
Status StreamMeetings::through_rank_0(const Communicator& comm, StreamTable& table, std::uint64_t stream,
                                      const MeetingCall& call) {
  const bool reduces = call.what == MeetingCall::What::reduce;
  const bool all = call.root < 0;
  // Does that member tell what it has, and is it told?
  const auto gives = [&](int member) { return reduces || all || call.root == member; };
  const auto gets = [&](int member) { return all || (reduces ? call.root == member : call.root != member); };
  if (comm.rank() != 0) {
    const auto& hub = table.spokes_.front();
    if (gives(comm.rank())) IST_TRY(send(hub, stream, call.from, call.size));
    return gets(comm.rank()) ? receive(hub, stream, call.to, call.size) : Status{};
  }
  MeetingCall here = call;
  if (reduces && !gets(0)) here.to = table.seat_->part(0);
  for (const auto& each : table.spokes_)
    if (gives(each.member)) IST_TRY(receive(each, stream, reduces ? table.seat_->part(each.member) : here.to, call.size));
  if (reduces && call.size.value > 0) IST_TRY((*channels_.kind())->meetings().combine_parts(*table.seat_, stream, here));
  for (const auto& each : table.spokes_)
    if (gets(each.member)) IST_TRY(send(each, stream, here.to, call.size));
  return {};
}

Status StreamMeetings::put(const Communicator& comm, StreamTable& table, std::uint64_t stream, const MeetingCall& call) {
  if (!table.by_channels_) return (*channels_.kind())->meetings().meet(*table.seat_, stream, call);
  MeetingCall piece = call;
  std::uint64_t done = 0;
  do {
    piece.size = std::min(table.seat_->part_size(), Bytes{call.size.value - done});
    IST_TRY(through_rank_0(comm, table, stream, piece));
    done += piece.size.value;
    if (call.from != 0) piece.from = call.from + done;
    if (call.to != 0) piece.to = call.to + done;
  } while (done < call.size.value);
  return {};
}

}  // namespace ist
