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
    if (!member.socket) continue;
    const short write = member.socket->has_to_write() ? POLLOUT : 0;
    entries.push_back({member.socket->descriptor(), static_cast<short>(POLLIN | write), 0});
  }
}

void GatherHub::serve() {
  for (std::size_t i = 0; i < members_.size(); ++i)
    if (members_[i].socket) read_from(members_[i], Rank{static_cast<std::int32_t>(i)});
  settle();
  for (Member& member : members_) {
    if (!member.socket) continue;
    member.socket->write_some();
    // A closed socket would make poll() return at once for ever.
    if (member.socket->closed()) member.socket.reset();
  }
}

void GatherHub::read_from(Member& member, Rank rank) {
  FrameSocket& socket = *member.socket;
  socket.read_some();
  while (auto frame = socket.next()) {
    if (frame->type == FrameType::contribution && frame->token == token_) take_in(rank, std::move(*frame));
  }
  if (!member.lost.empty()) return;
  if (socket.closed()) member.lost = "closed its connection";
  if (!socket.malformed().empty()) member.lost = "cannot be understood: " + socket.malformed();
  // A process that ends closes its sockets a little before its parent hears how it ended: leave time for lost() to say it.
  if (!member.lost.empty()) member.blamed = Deadline::after(0.1);
  if (!socket.malformed().empty()) member.socket.reset();
}

void GatherHub::take_in(Rank rank, Frame contribution) {
  Member& member = at(rank);
  if (member.missed && member.missed->world == contribution.world && member.missed->round == contribution.round) {
    answer(member, *std::exchange(member.missed, std::nullopt));
    return;
  }
  member.missed.reset();
  member.patience = Deadline::after(contribution.milliseconds / 1000.0);
  member.waiting = std::move(contribution);
}

void GatherHub::answer(Member& member, Frame frame) {
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
    if (member.waiting->world == first->waiting->world && member.waiting->round == first->waiting->round) continue;
    return "rank " + std::to_string(first - members_.data()) + " creates its world number " +
           std::to_string(first->waiting->world) + " (step " + std::to_string(first->waiting->round) + ") while rank " +
           std::to_string(i) + " creates its number " + std::to_string(member.waiting->world) + " (step " +
           std::to_string(member.waiting->round) + "); all ranks must create the same worlds in the same order";
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
  Frame gathered;
  gathered.type = FrameType::gathered;
  gathered.token = token_;
  gathered.payload = all.take();
  for (Member& member : members_) {
    gathered.world = member.waiting->world;
    gathered.round = member.waiting->round;
    member.waiting.reset();
    answer(member, gathered);
  }
}

void GatherHub::fail_round(const std::string& text) {
  Frame failure;
  failure.type = FrameType::failure;
  failure.token = token_;
  failure.payload = text;
  for (const Member& member : members_) {
    if (!member.waiting) continue;
    failure.world = member.waiting->world;
    failure.round = member.waiting->round;
    break;
  }
  for (Member& member : members_) {
    if (!member.waiting) {
      member.missed = failure;  // it will come late, and hears the same
      continue;
    }
    failure.world = member.waiting->world;
    failure.round = member.waiting->round;
    member.waiting.reset();
    answer(member, failure);
  }
}

void GatherHub::give_up(const std::string& text) {
  serve();
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
