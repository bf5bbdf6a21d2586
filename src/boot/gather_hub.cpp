#include "boot/gather_hub.hpp"

#include <algorithm>
#include <utility>

#include "boot/blob.hpp"

namespace ist {

std::string ranks_text(const std::vector<int>& ranks) {
  constexpr std::size_t kMost = 16;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  const std::size_t shown = std::min(ranks.size(), kMost);
  for (std::size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == ranks.size();
    if (i > 0) text += last ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  if (ranks.size() > shown) text += " and " + std::to_string(ranks.size() - shown) + " more";
  return text;
}

void GatherHub::attach(Rank rank, FrameSocket socket) {
  at(rank) = Member{};
  at(rank).socket.emplace(std::move(socket));
}

bool GatherHub::hung_up(Rank rank) {
  Member& member = at(rank);
  if (member.socket) read_from(member, rank);
  return !member.lost.empty();
}

void GatherHub::lost(Rank rank, std::string how) {
  Member& member = at(rank);
  // The last blob of a rank that has just ended may still be on its way through the socket.
  if (member.socket) read_from(member, rank);
  member.lost = std::move(how);
  member.blamed = Deadline::after(0);
}

std::optional<Frame> GatherHub::take_answer(Rank rank) { return std::exchange(at(rank).answer, std::nullopt); }

void GatherHub::watch(std::vector<pollfd>& entries) const {
  for (const Member& member : members_) {
    // A closed one would make poll() return at once for ever.
    if (!member.socket || member.socket->closed()) continue;
    const short write = member.socket->has_to_write() ? POLLOUT : 0;
    entries.push_back({member.socket->descriptor(), static_cast<short>(POLLIN | write), 0});
  }
}

void GatherHub::serve() {
  read_all();
  settle();
  for (Member& member : members_) {
    if (!member.socket) continue;
    member.socket->write_some();
    if (member.socket->closed()) member.socket.reset();
  }
}

void GatherHub::read_all() {
  for (std::size_t i = 0; i < members_.size(); ++i)
    if (members_[i].socket) read_from(members_[i], Rank{static_cast<std::int32_t>(i)});
}

void GatherHub::read_from(Member& member, Rank rank) {
  FrameSocket& socket = *member.socket;
  socket.read_some();
  while (auto frame = socket.next()) {
    if (frame->token != token_) continue;
    if (frame->type == FrameType::contribution) take_in(rank, std::move(*frame));
    if (frame->type == FrameType::withdrawal) take_back(rank, *frame);
  }
  if (!member.lost.empty()) return;
  if (socket.closed()) member.lost = "closed its connection";
  if (!socket.malformed().empty()) member.lost = "cannot be understood: " + socket.malformed();
  // A process that ends closes its sockets a little before its parent hears how it ended: leave time for lost() to say it.
  if (!member.lost.empty()) member.blamed = Deadline::after(0.1);
  if (socket.malformed().empty()) return;
  if (!misunderstood_) misunderstood_ = "rank " + std::to_string(rank.value) + " " + member.lost;
  member.socket.reset();
}

std::optional<std::string> GatherHub::read_misunderstanding() {
  if (!misunderstood_ || misunderstood_->empty()) return std::nullopt;
  return std::exchange(*misunderstood_, {});
}

std::optional<std::string> GatherHub::read_withdrawal() {
  read_all();
  return std::exchange(withdrawn_, std::nullopt);
}

// Ranks count their worlds, and one that nobody else has heard of does not count: the rank may come again, and meets the others
// at the same one.
std::uint32_t GatherHub::counted(const Member& member, std::uint32_t world) {
  const auto before = std::count_if(member.uncounted.begin(), member.uncounted.end(),
                                    [world](std::uint32_t uncounted) { return uncounted < world; });
  return world - static_cast<std::uint32_t>(before);
}

void GatherHub::take_in(Rank rank, Frame contribution) {
  const auto place = static_cast<std::size_t>(rank.value);
  meet(place, contribution);
  Member& member = at(rank);
  // Of a process that does not say which one it is, the first exchange tells that it is another one.
  const bool first = contribution.program == 0 && contribution.world == 1 && contribution.round == 1;
  if (first && member.answered.world > 0) member.uncounted.clear();
  member.answered = Frame{};
  member.world = counted(member, contribution.world);
  member.patience = Deadline::after(contribution.milliseconds / 1000.0);
  member.waiting = std::move(contribution);
  // Who was told of the first world's failure, and comes to it again, is another one, too: what failed before was of the last.
  if (const auto last = failed_.find(member.world); first && last != failed_.end() && last->second.told[place])
    failed_.clear();
  if (const auto failed = failed_.find(member.world); failed != failed_.end() && !failed->second.told[place])
    tell_of(failed->second, place);
  forget_what_all_know();
}

// A rank may be a shell, whose programs come one after the other. Each counts from the beginning, and was not meant by a world that had
// failed before it began: its rank had never come there.
void GatherHub::meet(std::size_t rank, const Frame& frame) {
  Member& member = members_[rank];
  if (frame.program == 0 || frame.program == member.program) return;
  member.program = frame.program;
  member.uncounted.clear();
  member.answered = Frame{};
  const auto began = Deadline::Clock::now() - std::chrono::milliseconds{frame.age};
  for (auto& [world, failed] : failed_)
    if (began > failed.when) failed.told[rank] = true;
}

void GatherHub::forget_what_all_know() {
  std::erase_if(failed_, [](const auto& one) {
    return std::all_of(one.second.told.begin(), one.second.told.end(), [](bool told) { return told; });
  });
}

// What its rank had contributed to the round is not given to anybody. A round that is complete stays so: its answer is on its
// way, and the rank finds that first.
void GatherHub::take_back(Rank rank, const Frame& withdrawal) {
  meet(static_cast<std::size_t>(rank.value), withdrawal);
  Member& member = at(rank);
  if (member.answered.world == withdrawal.world && member.answered.round == withdrawal.round) return;
  const std::uint32_t world = counted(member, withdrawal.world);
  const std::string text = "rank " + std::to_string(rank.value) + " gave up creating its world number " +
                           std::to_string(withdrawal.world) + " with the others at " + place_ + ": " + withdrawal.payload;
  withdrawn_ = text;
  member.waiting = withdrawal;  // this is answered, too: the rank then knows that it was heard
  member.waiting->payload.clear();
  member.world = world;
  const bool unknown = withdrawal.round == 1 && failed_.count(world) == 0 &&
                       std::none_of(members_.begin(), members_.end(), [&](const Member& other) {
                         return &other != &member && other.waiting && other.world == world;
                       });
  if (!unknown || serves_ == Serves::one_world) return fail_world(world, text);
  member.uncounted.push_back(withdrawal.world);
  answer(member, FrameType::failure, text);
}

// What `waiting` asks for.
void GatherHub::answer(Member& member, FrameType type, const std::string& payload) {
  Frame frame;
  frame.type = type;
  frame.token = token_;
  frame.world = member.waiting->world;
  frame.round = member.waiting->round;
  member.answered = frame;
  frame.payload = payload;
  member.waiting.reset();
  if (member.socket) {
    member.socket->queue(frame);
  } else {
    member.answer = std::move(frame);
  }
}

void GatherHub::settle() {
  const auto differing = disagreement();
  const bool complete = std::all_of(members_.begin(), members_.end(), [](const Member& m) { return m.waiting.has_value(); });
  // A round that is complete is complete, also where the last rank came as the patience of the first one ended.
  if (!differing && complete) {
    finish_round();
  } else if (const auto text = differing ? differing : absence()) {
    fail_round(*text);
  }
}

// Ranks that came, each for another round, if so.
std::optional<std::string> GatherHub::disagreement() const {
  const Member* first = nullptr;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Member& member = members_[i];
    if (!member.waiting) continue;
    if (!first) first = &member;
    if (member.world == first->world && member.waiting->round == first->waiting->round) continue;
    return "rank " + std::to_string(first - members_.data()) + " creates its world number " + std::to_string(first->world) +
           " (step " + std::to_string(first->waiting->round) + ") while rank " + std::to_string(i) + " creates its number " +
           std::to_string(member.world) + " (step " + std::to_string(member.waiting->round) +
           "); all ranks must create the same worlds in the same order";
  }
  return std::nullopt;
}

// Ranks that others wait for and that will not come any more, or not in time.
std::optional<std::string> GatherHub::absence() const {
  std::vector<int> absent;
  for (std::size_t i = 0; i < members_.size(); ++i)
    if (!members_[i].waiting) absent.push_back(static_cast<int>(i));
  if (absent.size() == members_.size()) return std::nullopt;  // nobody waits
  for (const int rank : absent) {
    const Member& member = members_[static_cast<std::size_t>(rank)];
    if (member.lost.empty() || !member.blamed->over()) continue;
    return "rank " + std::to_string(rank) + " " + member.lost + " before it joined the others at " + place_ +
           "; look at that rank's own output for the reason";
  }
  for (const Member& member : members_) {
    if (!member.waiting || !member.patience->over()) continue;
    return ranks_text(absent) + " did not come to " + place_ + " within " +
           seconds_text(member.waiting->milliseconds / 1000.0) +
           "; are they running, and does every rank create the same worlds? ISTHMUS_BOOT_TIMEOUT sets how long to wait";
  }
  return std::nullopt;
}

void GatherHub::finish_round() {
  BlobWriter all;
  for (const Member& member : members_) all.text(member.waiting->payload);
  const std::string gathered = all.take();
  for (Member& member : members_) answer(member, FrameType::gathered, gathered);
}

void GatherHub::fail_round(const std::string& text) {
  const auto first = std::find_if(members_.begin(), members_.end(), [](const Member& m) { return m.waiting.has_value(); });
  fail_world(first->world, text);
  // Where ranks were at different worlds.
  for (Member& member : members_)
    if (member.waiting) answer(member, FrameType::failure, text);
}

// Those that have not come to it yet hear the same when they do.
void GatherHub::fail_world(std::uint32_t world, const std::string& text) {
  Failed& failed = failed_[world];
  // Whoever waits here although it was told is another program.
  bool of_the_last_program = failed.told.empty();
  for (std::size_t rank = 0; rank < failed.told.size(); ++rank)
    of_the_last_program |= failed.told[rank] && members_[rank].waiting && members_[rank].world == world;
  if (of_the_last_program) failed = {text, std::vector<bool>(members_.size()), Deadline::Clock::now()};
  for (std::size_t rank = 0; rank < members_.size(); ++rank)
    if (members_[rank].waiting && members_[rank].world == world) tell_of(failed, rank);
  forget_what_all_know();
}

void GatherHub::tell_of(Failed& failed, std::size_t rank) {
  failed.told[rank] = true;
  answer(members_[rank], FrameType::failure, failed.text);
}

void GatherHub::give_up(const std::string& text) {
  read_all();
  Frame failure;
  failure.type = FrameType::failure;
  failure.token = token_;
  failure.payload = text;
  for (Member& member : members_) {
    if (!member.socket) continue;
    member.socket->queue(failure);
    member.socket->write_some();
  }
}

bool GatherHub::flushed() const {
  return std::none_of(members_.begin(), members_.end(),
                      [](const Member& m) { return m.socket && m.socket->has_to_write(); });
}

std::optional<Deadline> GatherHub::deadline() const {
  std::optional<Deadline> earliest;
  const auto consider = [&](Deadline moment) { earliest = earliest ? earliest->earlier_of(moment) : moment; };
  for (const Member& member : members_)
    if (member.waiting) consider(*member.patience);
  if (!earliest) return earliest;  // nobody waits, so nobody is to be told anything
  for (const Member& member : members_)
    if (!member.lost.empty()) consider(*member.blamed);
  return earliest;
}

}  // namespace ist
