#include "face/message/stream_channels.hpp"

#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "face/message/stream_notes.hpp"
#include "memory/memory_kind.hpp"
#include "request/wait.hpp"

namespace ist {
namespace {

constexpr const char* kBytesCame =
    "; its bytes were delivered. Name the same types on both sides, or IST_BYTE on one (found by ISTHMUS_CHECK)";

ChannelSide other(ChannelSide side) { return side == ChannelSide::sends ? ChannelSide::receives : ChannelSide::sends; }

Status mixed(const std::string& words) {
  return {IST_ERR_KIND,
          words +
              " is used in CUDA streams at one end and in OpenCL queues at the other, and these do not meet; use "
              "one of them at both ends, or ist_send and ist_recv"};
}

ChannelCard card_of_queues(ChannelSide side, ist_code refused = IST_OK) {
  ChannelCard card;
  card.side = side;
  card.use = ChannelUse::queues;
  card.refused = static_cast<std::uint8_t>(refused);
  return card;
}

ChannelCard refusal_of(ChannelSide side, ist_code why) {
  ChannelCard card;
  card.side = side;
  card.refused = static_cast<std::uint8_t>(why);
  return card;
}

// `where`: the link as this rank knows it, and why nothing goes over it; none: the other rank has found it so.
Status no_way(const std::string& words, const std::string& where) {
  return {
      IST_ERR_DEVICE,
      words + " cannot be made: " +
          (where.empty() ? "the other rank has found that the link between the two devices is off, and says why" : where) +
          "; use ist_send and ist_recv, whose messages go through host memory then"};
}

}  // namespace

std::string words_for(const ChannelName& name) {
  return std::string{name.side == ChannelSide::sends ? "the channel to rank " : "the channel from rank "} +
         std::to_string(name.comm->from_world(name.peer)) + " with tag " + std::to_string(name.tag) + " of communicator \"" +
         name.comm->name() + "\"" + (name.internal ? ", for collective calls" : "");
}

StreamChannels::Key StreamChannels::key_of(const ChannelName& name) {
  return {(name.internal ? name.comm->internal() : name.comm->scope()).context, name.peer.value, name.tag, name.side};
}

std::size_t StreamChannels::Hash::operator()(const Key& key) const {
  const std::uint64_t who = std::uint64_t{key.context} << 32 | static_cast<std::uint32_t>(key.peer);
  const std::uint64_t what = std::uint64_t{static_cast<std::uint32_t>(key.tag)} << 1 | static_cast<std::uint64_t>(key.side);
  return static_cast<std::size_t>((who * 0x9e3779b97f4a7c15ULL ^ what) * 0xff51afd7ed558ccdULL >> 7);
}

StreamChannels::StreamChannels(Engine& engine, int device) : engine_(engine), device_(device) {
  MemoryKind* const cuda = engine.parts().kinds.find(KindId::cuda);
  if (cuda != nullptr) channels_ = cuda->channels();
  engine_.listen(
      [this](Rank from, const Envelope& envelope, std::span<const std::byte> payload) { hear(from, envelope, payload); });
}

StreamChannels::~StreamChannels() {
  const std::lock_guard lock(engine_.lock());
  engine_.listen({});
}

Result<Channels*> StreamChannels::kind() const {
  if (channels_ != nullptr) return channels_;
  const auto cuda = engine_.parts().kinds.usable(IST_KIND_CUDA);
  if (!cuda.ok()) return cuda.status();
  return Status{IST_ERR_KIND, "this CUDA driver lacks a call that messages in streams need; install a newer one"};
}

// ---- how the two ends find each other ----

StreamChannels::Entry& StreamChannels::entry(const Key& key) {
  auto& found = entries_[key];
  if (!found) found = std::make_unique<Entry>();
  return *found;
}

Status StreamChannels::tell(const Key& key, const ChannelCard& card) {
  if (Rank{key.peer} != engine_.rank())
    return engine_.tell(Rank{key.peer}, key.context, key.tag, {reinterpret_cast<const std::byte*>(&card), sizeof card});
  // The other end is this rank's, too.
  const Key theirs{key.context, key.peer, key.tag, other(key.side)};
  Entry& peers = entry(theirs);
  if (card.use == ChannelUse::queues || peers.by_queues) {
    hear_of_queues(peers, theirs, card);
    return {};
  }
  peers.theirs = card;
  return (peers.end && peers.told) || card.refused != 0 ? Status{} : open(peers, theirs, entry(key).end->device());
}

// Once: whoever is gone needs no telling. Where memory runs out, the next call tells it, or the other one's card when it is shown again.
Status StreamChannels::tell_of_own(Entry& mine, const Key& key, const ChannelCard& card) try {
  mine.told = true;  // before: a rank that tells itself comes back here
  return tell(key, card);
} catch (...) {
  mine.told = false;
  throw;
}

// Opens this rank's end, where it is not open yet, and tells the other one of it.
Status StreamChannels::open(Entry& entry, const Key& key, int device) {
  if (entry.end) return tell_of_own(entry, key, entry.end->card());
  Status status{IST_ERR_KIND, "rank " + std::to_string(engine_.rank().value) + " has no device for it"};
  if (channels_ != nullptr && device >= 0) {
    const bool compares = key.side == ChannelSide::receives && engine_.types() != nullptr;
    auto end = channels_->open(key.side, device, engine_.rank(), Rank{key.peer}, compares);
    status = end.status();
    if (end.ok()) entry.end = std::move(*end);
  }
  return status.ok() ? tell_of_own(entry, key, entry.end->card()) : status;
}

// Where an end is opened without the program's help: on the device that is current in the thread that looks just now, if one is.
int StreamChannels::likely_device() const {
  const Result<StreamPlace> current = channels_ != nullptr ? channels_->find_stream(0, nullptr, false)
                                                           : Result<StreamPlace>{Status{IST_ERR_KIND, "no CUDA"}};
  return current.ok() && current->device >= 0 ? current->device : device_;
}

// The other end's card.
void StreamChannels::hear(Rank from, const Envelope& envelope, std::span<const std::byte> payload) {
  ChannelCard card;
  if (payload.size() != sizeof card) return;
  std::memcpy(&card, payload.data(), sizeof card);
  const Key key{envelope.context, from.value, envelope.tag, other(card.side)};
  Entry& mine = entry(key);
  if (card.use == ChannelUse::queues || mine.by_queues) return hear_of_queues(mine, key, card);
  mine.theirs = card;
  if ((mine.end && mine.told) || card.refused != 0) return;
  const Status opened = open(mine, key, likely_device());
  if (mine.end) return;
  static_cast<void>(tell(key, refusal_of(key.side, opened.code())));
}

// ---- what OpenCL queues use ----

// From a rank that uses queues, or to one. A refusal says that the other rank has found the clash.
void StreamChannels::hear_of_queues(Entry& mine, const Key& key, const ChannelCard& card) {
  mine.theirs = card;
  if (mine.end || card.use == ChannelUse::streams || card.refused != 0) {
    mine.clash = true;
    ++clashes_;
  } else if (!std::exchange(mine.by_queues, true) || !mine.told) {
    static_cast<void>(tell_of_own(mine, key, card_of_queues(key.side)));
  }
}

Status StreamChannels::use_in_queues(const ChannelName& name) {
  const Key key = key_of(name);
  Entry& mine = entry(key);
  // An end that is there was opened for this rank's streams, or for the other one's.
  const bool in_streams = mine.end || (mine.theirs && mine.theirs->use == ChannelUse::streams && mine.theirs->refused == 0);
  if (!mine.clash && !in_streams) {
    // Whoever is gone needs not be told, and may have sent before.
    if (!std::exchange(mine.by_queues, true) || !mine.told)
      static_cast<void>(tell_of_own(mine, key, card_of_queues(key.side)));
    return {};
  }
  if (!std::exchange(mine.clash, true)) ++clashes_;
  static_cast<void>(tell(key, card_of_queues(key.side, IST_ERR_KIND)));
  return mixed(words_for(name));
}

Status StreamChannels::clash_at(const Key& key) { return entry(key).clash ? mixed("it") : Status{}; }

bool StreamChannels::both_use_queues(const ChannelName& name) {
  const Entry& mine = entry(key_of(name));
  return mine.clash || (mine.theirs && mine.theirs->use == ChannelUse::queues);
}

// The same from the other side.
Status StreamChannels::use_in_streams(Entry& entry, const Key& key, const ChannelName& name) {
  if (!entry.clash && !entry.by_queues) return {};
  if (!std::exchange(entry.clash, true)) ++clashes_;
  static_cast<void>(tell(key, refusal_of(key.side, IST_ERR_KIND)));
  return mixed(words_for(name));
}

// The other rank will not store over the link, whatever this one has found.
bool StreamChannels::off_there(const Entry& entry) {
  return entry.theirs && entry.theirs->refused == static_cast<std::uint8_t>(IST_ERR_UNREACHABLE);
}

// A refusal is taken out: the other rank may have an end by the next time, and is asked again.
Status StreamChannels::wait_for_card(Entry& entry, const ChannelName& name, ChannelCard& card) {
  const auto here = [&entry] { return entry.theirs.has_value(); };
  Patience patience{engine_, here};
  while (true) {
    bool moved = false;
    bool polls = false;
    {
      const std::lock_guard lock(engine_.lock());
      moved = engine_.progress();
      if (here()) {
        card = *entry.theirs;
        entry.refused = card.refused != 0;
        if (entry.refused && !off_there(entry)) entry.theirs.reset();
        return {};
      }
      IST_TRY(peer_is_there(name));
      polls = engine_.must_poll();
    }
    patience.after_look(moved, polls);
  }
}

// The word of a rank that was ready may be all that is left of it: its messages are here, too. What is sent to it is another error.
Status StreamChannels::may_connect(const Entry& entry, const ChannelName& name) const {
  const bool came = entry.end && entry.theirs && entry.theirs->refused == 0;
  return came && engine_.parts().board.first_dead() == kNobody ? Status{} : peer_is_there(name);
}

// What a rank had is gone a moment after its word that it leaves, and that word needs a moment.
bool StreamChannels::has_left(Rank peer) const {
  const AbortBoard& board = engine_.parts().board;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (board.first_dead() == kNobody && std::chrono::steady_clock::now() < until) {
    if (board.fate(peer) == AbortBoard::Fate::left) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

Status StreamChannels::connect(Entry& entry, const Key& key, const ChannelCard& theirs) {
  Status connected = entry.end->connect(theirs);
  if (connected.code() == IST_ERR_UNREACHABLE) {
    const std::lock_guard lock(engine_.lock());
    static_cast<void>(tell(key, refusal_of(key.side, IST_ERR_UNREACHABLE)));
    return no_way(entry.words, connected.text());
  }
  if (connected.ok() || !has_left(Rank{key.peer})) return connected;
  return entry.end->connect_to_nobody(theirs);
}

// Another library's setting up ends with the help of all ranks, and of this one's progress.
void StreamChannels::settle() {
  progress_until(engine_, [this] { return channels_->settled(); });
}

Status StreamChannels::prepare(Entry& entry, const Key& key, const ChannelName& name, int device) {
  const std::lock_guard one(entry.connecting);
  if (entry.ready.load()) return {};
  if (channels_ != nullptr) channels_->use_streams();
  {
    const std::lock_guard lock(engine_.lock());
    IST_TRY(may_connect(entry, name));
    IST_TRY(use_in_streams(entry, key, name));
    entry.words = words_for(name);
    entry.internal = name.internal;
    if (!entry.end || !entry.told || std::exchange(entry.refused, false)) IST_TRY(open(entry, key, device));
  }
  ChannelCard theirs;
  IST_TRY(wait_for_card(entry, name, theirs));
  if (theirs.use == ChannelUse::queues) return mixed(entry.words);
  if (const auto code = static_cast<ist_code>(theirs.refused); code != IST_OK) {
    if (code == IST_ERR_UNREACHABLE) return no_way(entry.words, "");
    return {code, entry.words + " cannot be made: the other rank has no end for it (" +
                      (code == IST_ERR_KIND ? "CUDA is not available there" : "its device has no memory, or refused") +
                      "); use ist_send and ist_recv"};
  }
  IST_TRY(connect(entry, key, theirs));
  // Whoever is gone by now may have gone before there was a word to tell it to.
  look_at_board();
  settle();
  entry.ready.store(true);
  return {};
}

Result<ChannelEnd*> StreamChannels::ready(const ChannelName& name, std::uint64_t stream, const Piece* beside) {
  const auto channels = kind();
  if (!channels.ok()) return channels.status();
  const Key key = key_of(name);
  Entry* found = nullptr;
  {
    const std::lock_guard lock(engine_.lock());
    found = &entry(key);
    IST_TRY(use_in_streams(*found, key, name));
    if (off_there(*found)) return no_way(words_for(name), "");
  }
  const bool is_ready = found->ready.load();
  // A handle that the driver has given to another stream since, on another device, is refused by the driver.
  if (is_ready && stream != 0 && found->end->last_stream == stream) return found->end.get();
  auto place = (*channels)->find_stream(stream, beside, !is_ready);
  if (!place.ok()) return place.status();
  if (place->device < 0) place->device = device_;
  if (!is_ready) {
    if (place->capturing)
      return Status{IST_ERR_NOT_CAPTURABLE,
                    words_for(name) +
                        " is not prepared, and nothing can be prepared while its stream is captured; call "
                        "ist_prepare_on before the capture begins"};
    IST_TRY(prepare(*found, key, name, place->device));
  }
  if (place->device == found->end->device()) {
    if (place->own) found->end->last_stream = stream;
    return found->end.get();
  }
  return Status{IST_ERR_ARGUMENT, words_for(name) + " is on cuda device " + std::to_string(found->end->device()) +
                                      " and the stream on device " + std::to_string(place->device) +
                                      "; the first call on it, or ist_prepare_on, chooses the device; where the other rank "
                                      "was first, it is the one current in "
                                      "the thread that heard of it, or else this rank's own one (ISTHMUS_DEVICE)"};
}

StreamPacking& StreamChannels::packing(const ChannelName& name) {
  const std::lock_guard lock(engine_.lock());
  return entry(key_of(name)).packing;
}

// ---- what has gone wrong ----

Status StreamChannels::peer_is_there(const ChannelName& name) const {
  const AbortBoard& board = engine_.parts().board;
  if (const Rank dead = board.first_dead(); dead != kNobody) return engine_.died(dead);
  return board.fate(name.peer) == AbortBoard::Fate::present ? Status{} : engine_.gone(name.peer);
}

Status StreamChannels::ended(const std::string& words, Rank peer) const {
  const AbortBoard& board = engine_.parts().board;
  const Rank dead = board.first_dead();
  if (dead == kNobody && board.fate(peer) == AbortBoard::Fate::present)
    return {IST_ERR_PENDING, "work in a stream still waited at " + words +
                                 " when the world was destroyed, and was given up; wait for the stream before"};
  const Status why = dead != kNobody ? engine_.died(dead) : engine_.gone(peer);
  return {why.code(), why.text() + "; work in a stream that waited at " + words + " was given up"};
}

// What messages are made of that were received as something else; of the library's own whoever sends them tells.
std::string StreamChannels::unlike(ChannelEnd& end, bool internal) const {
  return engine_.types() == nullptr || internal ? "" : unlike_messages(end.unlike());
}

Status StreamChannels::trouble(const ChannelName& name, ChannelEnd& end) const {
  const AbortBoard& board = engine_.parts().board;
  const std::string types = unlike(end, name.internal);
  if (const auto found = end.trouble()) {
    if (found->failed) return ended(words_for(name), name.peer);
    return {IST_ERR_TRUNCATE, words_for(name) + ": its message " + std::to_string(found->message) +
                                  ", counted from 0, had " + std::to_string(found->bytes.value) +
                                  " bytes and found room for " + std::to_string(found->room.value) +
                                  ", which it filled; this call has put nothing into the stream, and the next one will" +
                                  (types.empty() ? "" : "; and " + types + " (found by ISTHMUS_CHECK)")};
  }
  if (!types.empty())
    return {IST_ERR_ARGUMENT, words_for(name) + ": " + types + kBytesCame +
                                  "; this call has put nothing into the stream, and the next one will"};
  if (board.changes() == 0) return {};
  if (const Rank dead = board.first_dead(); dead != kNobody) return engine_.died(dead);
  // What a rank had sent when it left is still there to be received.
  return name.side == ChannelSide::sends ? peer_is_there(name) : Status{};
}

void StreamChannels::look_at_board() {
  if (channels_ == nullptr) return;
  const AbortBoard& board = engine_.parts().board;
  const bool all = board.first_dead() != kNobody;
  for (std::int32_t rank = 0; rank < engine_.size(); ++rank)
    if (all || board.fate(Rank{rank}) != AbortBoard::Fate::present) channels_->interrupt(Rank{rank});
}

Status StreamChannels::close() {
  bool any = false;
  for (const auto& [key, entry] : entries_) any = any || entry->end;
  if (!any) return {};
  Status status = channels_->close_all();
  for (const auto& [key, entry] : entries_) {
    const auto found = entry->ready.load() ? entry->end->trouble() : std::nullopt;
    if (!status.ok()) continue;
    const std::string types = entry->ready.load() ? unlike(*entry->end, entry->internal) : "";
    if (!found && !types.empty()) status = {IST_ERR_ARGUMENT, entry->words + ": " + types + kBytesCame};
    if (!found) continue;
    if (found->failed)
      status = ended(entry->words, Rank{key.peer});
    else
      status = {IST_ERR_TRUNCATE, entry->words + ": a message of " + std::to_string(found->bytes.value) +
                                      " bytes found room for " + std::to_string(found->room.value)};
  }
  return status;
}

}  // namespace ist
