#include "face/message/stream_meetings.hpp"

#include <algorithm>
#include <set>

#include "base/log.hpp"
#include "base/quiet_thread.hpp"
#include "collective/exchange.hpp"
#include "face/message/stream_notes.hpp"

namespace ist {
namespace {

constexpr const char* kPreparing = "ist_prepare_collectives_on";
// Of the channels, which are in the communicator's internal context.
constexpr std::int32_t kSpokeTag = 0;

bool on_devices_of_their_own(const std::vector<ChannelCard>& cards) {
  std::set<std::array<std::byte, 16>> devices;
  for (const ChannelCard& card : cards) devices.insert(card.device);
  return devices.size() == cards.size();
}

std::string of(const std::string& comm) { return "collective calls in streams of communicator \"" + comm + "\""; }

std::string not_alike(const std::string& comm, const std::string& differs) {
  return of(comm) + ": the ranks gave different values where all must give the same: " + differs +
         " (found by ISTHMUS_CHECK)";
}

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
    found->own_ = comm.rank();
    for (int member = 0; member < comm.size(); ++member) found->members_.push_back(comm.to_world(member));
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
  Channels& channels = **channels_.kind();
  channels.use_streams();
  auto seat = channels.meetings().take_seat(place->device, {table.members_, comm.rank()}, engine_.types() != nullptr);
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

// Could all open what they need, and does any of them want NCCL?
Status StreamMeetings::agree(const Communicator& comm, const StreamTable& table, const Status& opened,
                             bool& long_calls) const {
  struct Word {
    std::uint32_t code = 0;
    std::uint32_t long_calls = 0;
  };
  const Word mine{static_cast<std::uint32_t>(opened.code()), long_calls ? 1U : 0U};
  std::vector<Word> words;
  IST_TRY(exchange(comm, kPreparing, mine, words));
  IST_TRY(opened);
  for (std::size_t member = 0; member < words.size(); ++member) {
    long_calls = long_calls || words[member].long_calls != 0;
    if (const auto code = static_cast<ist_code>(words[member].code); code != IST_OK)
      return {code, of(table.name_) + " cannot be prepared: rank " + std::to_string(member) +
                        " could not open the others' memory (" + remedy(code) + ")"};
  }
  return {};
}

// Where NCCL cannot be opened kernels carry long calls, too. What is known of it, all ranks know.
Status StreamMeetings::open_nccl(const Communicator& comm, StreamTable& table) {
  if (table.by_channels_ || comm.nccl_team() == nullptr || !table.nccl_.fresh()) return {};
  IST_TRY(table.nccl_.open(comm, table.device()));
  start_breaking_off();
  look_at_board();
  return {};
}

// Whatever goes wrong here is told to the others, who would wait for ever.
Status StreamMeetings::prepare(const Communicator& comm, StreamTable& table, const Result<StreamPlace>& place,
                               std::uint64_t stream, bool long_calls) {
  const std::lock_guard one(table.preparing_);
  if (table.ready_.load()) return long_calls ? open_nccl(comm, table) : Status{};
  const auto mine = take_seat(comm, table, place);
  ChannelCard card;
  if (mine.ok())
    card = *mine;
  else
    card.refused = static_cast<std::uint8_t>(mine.status().code());
  std::vector<ChannelCard> cards;
  IST_TRY(exchange(comm, kPreparing, card, cards));
  if (!mine.ok()) return mine.status();
  for (std::size_t member = 0; member < cards.size(); ++member)
    if (const auto code = static_cast<ist_code>(cards[member].refused); code != IST_OK)
      return {code, of(comm.name()) + " cannot be prepared: rank " + std::to_string(member) + " has no place for them (" +
                        remedy(code) + ")"};
  table.by_channels_ = comm.size() > kMostAtMeeting || !on_devices_of_their_own(cards);
  Status opened = table.by_channels_ ? open_spokes(comm, table, stream) : table.seat_->connect(cards);
  if (opened.code() == IST_ERR_UNREACHABLE)
    opened = {IST_ERR_DEVICE, of(comm.name()) + " cannot be prepared: " + opened.text() +
                                  "; use the calls without _on, which go through host memory then"};
  IST_TRY(agree(comm, table, opened, long_calls));
  log::write(log::Level::info,
             of(comm.name()) + (table.by_channels_ ? " go through rank 0, since ranks share a device or are many"
                                                   : " meet in kernels, one on each rank's device"));
  // Whoever is gone by now may have gone before there was a word to tell it to.
  channels_.look_at_board();
  channels_.settle();
  if (long_calls) IST_TRY(open_nccl(comm, table));
  table.ready_.store(true);
  return {};
}

Result<StreamTable*> StreamMeetings::ready(const Communicator& comm, std::uint64_t stream, const Piece* beside,
                                           bool long_calls) {
  StreamTable& found = table(comm);
  long_calls = long_calls && engine_.types() == nullptr;  // NCCL may wait for ever for ranks that differ
  const bool first = !found.ready_.load();
  const bool is_ready = !first && !(long_calls && !found.by_channels_ && comm.nccl_team() != nullptr && found.nccl_.fresh());
  if (is_ready && stream != 0 && found.seat_->last_stream == stream) return &found;
  const auto kind = channels_.kind();
  auto place = kind.ok() ? (*kind)->find_stream(stream, beside, !is_ready) : Result<StreamPlace>{kind.status()};
  if (place.ok() && place->device < 0) place->device = channels_.device();
  if (!is_ready) {
    if (place.ok() && place->capturing && !first)
      return Status{
          IST_ERR_NOT_CAPTURABLE,
          of(comm.name()) +
              " are not prepared for NCCL, which carries long ones, and whose captured calls do not meet plain ones; "
              "set ISTHMUS_NCCL=never on every rank, and kernels carry them, in graphs too"};
    if (place.ok() && place->capturing)
      return Status{IST_ERR_NOT_CAPTURABLE,
                    of(comm.name()) +
                        " are not prepared, and nothing can be prepared while a stream is captured; call "
                        "ist_prepare_collectives_on, on every rank, before the capture begins"};
    IST_TRY(prepare(comm, found, place, stream, long_calls));
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

Status StreamMeetings::everyone_is_there(const std::vector<Rank>& members) const {
  const AbortBoard& board = engine_.parts().board;
  if (board.changes() == 0) return {};
  if (const Rank dead = board.first_dead(); dead != kNobody) return engine_.died(dead);
  for (const Rank member : members)
    if (board.fate(member) != AbortBoard::Fate::present) return engine_.gone(member);
  return {};
}

StreamMeetings::~StreamMeetings() {
  ends_.store(true);
  look_at_board();
  if (breaking_off_.joinable()) breaking_off_.join();
}

void StreamMeetings::look_at_board() {
  changes_.fetch_add(1);
  changes_.notify_all();
}

void StreamMeetings::break_off() {
  const std::lock_guard lock(mutex_);
  for (const auto& [context, each] : tables_)
    if (const Status there = everyone_is_there(each->members_); !there.ok()) each->nccl_.break_off(engine_, there);
}

void StreamMeetings::start_breaking_off() {
  const std::lock_guard lock(mutex_);
  if (breaking_off_.joinable()) return;
  auto thread = quiet_thread("NCCL's calls in streams", [this] {
    for (std::uint32_t seen = 0; !ends_.load();) {
      changes_.wait(seen);
      seen = changes_.load();
      if (!ends_.load()) break_off();
    }
  });
  if (thread.ok())
    breaking_off_ = std::move(*thread);
  else
    log::once(log::Level::warning, "NCCL's calls in streams are not ended if a rank dies: " + thread.status().text());
}

// What others gave that is not what this rank gave, since it was asked last.
std::string StreamMeetings::unlike(StreamTable& table) const {
  if (engine_.types() == nullptr || !table.ready_.load()) return {};
  if (!table.by_channels_) return unlike_calls(table.seat_->unlike(), {}, table.own_);
  std::string all;
  for (const auto& each : table.spokes_)
    if (std::string one = unlike_calls(each.receives->unlike(), each.member, table.own_); !one.empty())
      all += (all.empty() ? "" : "; ") + one;
  return all;
}

Status StreamMeetings::trouble(const Communicator& comm, StreamTable& table) const {
  const std::string differs = unlike(table);
  Status alike = differs.empty() ? Status{}
                                 : Status{IST_ERR_ARGUMENT, not_alike(comm.name(), differs) +
                                                                "; it is over, as far as it could be carried out, this call "
                                                                "has put nothing into the stream, and the next one will"};
  if (table.by_channels_) {
    IST_TRY(alike);
    for (const auto& each : table.spokes_) {
      IST_TRY(channels_.trouble(spoke(comm, each.member, ChannelSide::sends), *each.sends));
      IST_TRY(channels_.trouble(spoke(comm, each.member, ChannelSide::receives), *each.receives));
    }
    return everyone_is_there(table.members_);
  }
  const auto found = table.seat_->trouble();
  if (found && !differs.empty()) table.differs_ = differs;
  if (found && !table.differs_.empty())
    return {IST_ERR_ARGUMENT, not_alike(comm.name(), table.differs_) + "; none can be made any more"};
  if (found && found->other_call >= 0)
    return {IST_ERR_ARGUMENT, of(comm.name()) + ": rank " + std::to_string(found->other_call) +
                                  " made another call than this rank, or with another count, type, operation or root; they "
                                  "must be alike, and none can be made any more"};
  IST_TRY(alike);
  IST_TRY(everyone_is_there(table.members_));
  if (found)
    return {IST_ERR_PENDING,
            of(comm.name()) + " were given up, since another rank could not go on; none can be made any more"};
  return {};
}

// The mailbox stays until the world ends, since others may still store to it.
void StreamMeetings::forget(const Communicator& comm) {
  std::vector<StreamTable*> freed;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = tables_.find(comm.scope().context); found != tables_.end()) found->second->freed_ = true;
    for (const auto& [context, each] : tables_)
      if (each->freed_) freed.push_back(each.get());
  }
  for (StreamTable* each : freed) each->nccl_.retire(engine_);
}

Status StreamMeetings::close() {
  // Without the lock, which whoever ends NCCL's kernels takes, while the driver is waited for.
  std::vector<StreamTable*> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [context, each] : tables_)
      if (each->seat_) all.push_back(each.get());
  }
  if (all.empty()) return {};
  // The driver waits for NCCL's kernels, too, which know nothing of our words.
  Status ended;
  for (StreamTable* each : all)
    if (const Status given_up = each->nccl_.end(engine_); !given_up.ok() && ended.ok())
      ended = {given_up.code(), given_up.text() + "; work in a stream that waited in " + of(each->name_) + " was given up"};
  Status status = (*channels_.kind())->close_all();
  if (status.ok()) status = ended;
  const Rank dead = engine_.parts().board.first_dead();
  for (StreamTable* each : all) {
    if (!status.ok() || !each->ready_.load()) continue;
    const std::string lost = "; work in a stream that waited in " + of(each->name_) + " was given up";
    const auto found = each->by_channels_ ? std::nullopt : each->seat_->trouble();
    const int other = found ? found->other_call : -1;
    if (const std::string differs = unlike(*each); !differs.empty() && dead == kNobody) {
      status = {IST_ERR_ARGUMENT, not_alike(each->name_, differs)};
      continue;
    }
    // What comes through rank 0 is not known to be whole by who waited for rank 0 alone.
    if (dead != kNobody && (found || (each->by_channels_ && each->used_))) {
      status = {engine_.died(dead).code(), engine_.died(dead).text() + lost};
    } else if (found && !each->differs_.empty()) {
      status = {IST_ERR_ARGUMENT, not_alike(each->name_, each->differs_) + lost};
    } else if (found) {
      const bool another = other >= 0;
      status = {another ? IST_ERR_ARGUMENT : IST_ERR_PENDING,
                (another ? "rank " + std::to_string(other) + " made another call"
                         : std::string{"another rank had left, or this one's stream was not waited for"}) +
                    lost};
    }
  }
  return status;
}

}  // namespace ist
