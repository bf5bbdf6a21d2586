#include "collective/communicator.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>

#include "base/log.hpp"
#include "collective/nccl_team.hpp"
#include "request/wait.hpp"

namespace ist {
namespace {

// Tags in a communicator's internal context: rounds of the barrier are below, user's tags of create_group above.
constexpr std::int32_t kChoiceTag = 1 << 16;
constexpr std::int32_t kAnswerTag = kChoiceTag + 1;
constexpr std::int32_t kGroupTag = 1 << 17;
static_assert(kMostGroupTag <= IST_TAG_MAX - kGroupTag);

// What the first rank tells a member: the ranks of the world follow. lost >= 0: that rank of the parent did not take part, and why.
struct Answer {
  std::int32_t lost = -1;
  std::int32_t code = IST_OK;
  std::uint32_t context = 0;  // 0: in no new communicator
  std::int32_t count = 0;
  std::int32_t lane = LanePool::kNone;
};

// What the first rank is told by each.
struct ChoiceTold {
  Choice choice;
  std::uint32_t lanes = 0;        // that this rank offers
  std::int32_t refused = IST_OK;  // else: why it cannot take part
};

Status send_host(const Communicator& comm, int to, std::int32_t tag, const void* data, std::size_t size) {
  Engine& engine = comm.engine();
  bool done = false;
  OperationId id;
  {
    const std::lock_guard lock(engine.lock());
    const auto started = engine.start_send(host_piece(data, Bytes{size}), comm.to_world(to), tag, comm.internal(), &done);
    if (!started.ok()) return started.status();
    id = *started;
  }
  return done ? Status{} : wait_for_own(engine, id).status;
}

// Bytes received, of at most `size`.
Result<std::size_t> receive_host(const Communicator& comm, int from, std::int32_t tag, void* data, std::size_t size) {
  Engine& engine = comm.engine();
  OperationId id;
  {
    const std::lock_guard lock(engine.lock());
    const auto started =
        engine.start_receive(host_piece(data, Bytes{size}), comm.to_world(from).value, tag, comm.internal());
    if (!started.ok()) return started.status();
    id = *started;
  }
  const Outcome outcome = wait_for_own(engine, id);
  if (!outcome.status.ok()) return outcome.status;
  return static_cast<std::size_t>(outcome.bytes.value);
}

std::vector<std::byte> pack(const Answer& answer, const std::vector<Rank>& members) {
  std::vector<std::byte> bytes(sizeof answer + members.size() * sizeof(Rank));
  std::memcpy(bytes.data(), &answer, sizeof answer);
  if (!members.empty()) std::memcpy(bytes.data() + sizeof answer, members.data(), members.size() * sizeof(Rank));
  return bytes;
}

Status took_no_part(const Communicator& parent, int first, const Answer& answer) {
  const auto code = static_cast<Code>(answer.code);
  const std::string who = "rank " + std::to_string(answer.lost) + " of " + parent.name();
  const auto& names = parent.engine().parts().names;
  const auto name = [&](int rank) { return names[static_cast<std::size_t>(parent.to_world(rank).value)]; };
  if (code == IST_ERR_UNREACHABLE)
    return {code, "no path connects " + name(first) + " and " + name(answer.lost) + ", which is " + who +
                      "; ranks on different hosts cannot exchange messages in this version, and ist_comm_split_local gives "
                      "those of one"};
  if (code == IST_ERR_PEER_LEFT) return {code, who + " left the world before it came to the call"};
  return {code, who + " could not take part in the call; its own error says why"};
}

Result<std::unique_ptr<Communicator>> unpack(const Communicator& parent, int first, const std::vector<std::byte>& bytes,
                                             const std::string& name) {
  Answer answer;
  std::memcpy(&answer, bytes.data(), sizeof answer);
  if (answer.lost >= 0) return took_no_part(parent, first, answer);
  if (answer.count < 0)
    return Status{IST_ERR_MEMORY, "no number is left for another communicator of " + parent.name() +
                                      "; destroy the world and create it again"};
  if (answer.context == 0) return std::unique_ptr<Communicator>{};
  std::vector<Rank> members(static_cast<std::size_t>(answer.count));
  std::memcpy(members.data(), bytes.data() + sizeof answer, members.size() * sizeof(Rank));
  auto group = std::make_shared<const Group>(std::move(members), parent.engine().size(), name);
  Scope scope{answer.context, std::move(group)};
  LanePool* const lanes = parent.with_world().lanes;
  auto lane = lanes == nullptr ? nullptr : lanes->make(scope, answer.lane);
  return std::make_unique<Communicator>(parent.engine(), std::move(scope), name, parent.machine_of_world(),
                                        parent.with_world(), std::move(lane));
}

std::vector<std::byte> receive_answer(const Communicator& parent, int from, std::int32_t tag, Status& status) {
  std::vector<std::byte> bytes(sizeof(Answer) + static_cast<std::size_t>(parent.size()) * sizeof(Rank));
  const auto received = receive_host(parent, from, tag, bytes.data(), bytes.size());
  status = received.ok() ? Status{} : received.status();
  return bytes;
}

bool reaches(const Communicator& parent, int rank) {
  const auto& paths = parent.engine().parts().paths;
  return std::any_of(paths.begin(), paths.end(),
                     [&](const auto& path) { return path->link(parent.to_world(rank)) != nullptr; });
}

// All choices, in the order of those who take part; one that never came is refused, too, and `status` says why.
std::vector<ChoiceTold> gather_choices(const Communicator& parent, const std::vector<int>& ranks, const ChoiceTold& mine,
                                       Status& status) {
  std::vector<ChoiceTold> all(ranks.size());
  all[0] = mine;
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    const auto received = receive_host(parent, ranks[i], kChoiceTag, &all[i], sizeof all[i]);
    if (received.ok()) continue;
    all[i].refused = received.status().code();
    if (status.ok()) status = received.status();
  }
  return all;
}

struct Plan {
  Answer answer;
  std::vector<Rank> members;
  std::uint32_t lanes = ~std::uint32_t{0};  // that all of them offer
};

// One plan per colour.
std::map<std::int32_t, Plan> sort_choices(const Communicator& parent, const std::vector<int>& ranks,
                                          const std::vector<ChoiceTold>& all, ContextSource& contexts) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t one, std::size_t other) {
    return std::pair{all[one].choice.key, one} < std::pair{all[other].choice.key, other};
  });
  std::map<std::int32_t, Plan> plans;
  for (const std::size_t i : order) {
    if (all[i].choice.colour == kNoColour) continue;
    Plan& plan = plans[all[i].choice.colour];
    plan.members.push_back(parent.to_world(ranks[i]));
    plan.lanes &= all[i].lanes;
  }
  for (auto& [colour, plan] : plans) {
    plan.answer.context = contexts.next();
    plan.answer.lane = LanePool::first_of(plan.lanes);
    plan.answer.count = plan.answer.context == 0 ? -1 : static_cast<std::int32_t>(plan.members.size());
  }
  return plans;
}

// The first rank: hears all, tells all. Its own answer is returned.
std::vector<std::byte> decide(const Communicator& parent, const std::vector<int>& ranks, const ChoiceTold& mine,
                              ContextSource& contexts, Status& status) {
  const std::vector<ChoiceTold> all = gather_choices(parent, ranks, mine, status);
  const auto lost = std::find_if(all.begin(), all.end(), [](const ChoiceTold& one) { return one.refused != IST_OK; });
  Answer none;
  if (lost != all.end()) none = {ranks[static_cast<std::size_t>(lost - all.begin())], lost->refused};
  const auto plans = lost == all.end() ? sort_choices(parent, ranks, all, contexts) : std::map<std::int32_t, Plan>{};
  std::vector<std::byte> own;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto found = plans.find(all[i].choice.colour);
    const Plan plan = found == plans.end() ? Plan{none, {}, 0} : found->second;
    auto bytes = pack(plan.answer, plan.members);
    if (i == 0) {
      own = std::move(bytes);
    } else if (all[i].refused == IST_OK) {
      const Status told = send_host(parent, ranks[i], kAnswerTag, bytes.data(), bytes.size());
      if (status.ok() && !told.ok()) status = told;
    }
  }
  return own;
}

// Those that this rank has left, for as long as a communicator is being made: no other one is offered them meanwhile.
struct LanesOffered {
  explicit LanesOffered(LanePool* from) : pool(from), lanes(from != nullptr ? from->offer() : 0) {}
  ~LanesOffered() {
    if (pool != nullptr) pool->settle(lanes);
  }
  LanesOffered(const LanesOffered&) = delete;
  LanesOffered& operator=(const LanesOffered&) = delete;
  LanePool* pool;
  std::uint32_t lanes;
};

CollectiveProfile without_sharing(CollectiveProfile machine) {
  machine.shared_up_to = 0;
  return machine;
}

}  // namespace

Communicator::Communicator(Engine& engine, Scope scope, std::string name, const CollectiveProfile& machine,
                           const WithWorld& world, std::shared_ptr<SharedLane> lane)
    : engine_(&engine),
      scope_(std::move(scope)),
      size_(scope_.group ? scope_.group->size() : engine_->size()),
      internal_{scope_.context | kInternalContext, scope_.group},
      name_(std::move(name)),
      machine_of_world_(machine),
      machine_(lane ? machine : without_sharing(machine)),
      world_(world),
      lane_(std::move(lane)),
      brief_(lane_ != nullptr && engine.parts().trace == nullptr && !engine.parts().settings.check) {
  if (world_.nccl != nullptr) machine_ = with_copies_if(world_.nccl->opens(scope_.group.get()), machine_);
  if (world_.nccl != nullptr && world_.nccl->serves(scope_.group.get()).ok())
    nccl_team_ = std::make_shared<NcclTeam>(*world_.nccl, engine, scope_, name_, machine_, 0);
}

CollectiveProfile Communicator::by_messages() const { return without_sharing(machine_); }

Communicator::~Communicator() {
  if (lane_ && world_.lanes != nullptr) world_.lanes->drop(std::move(lane_));
  end();
}

void Communicator::end() {
  if (ended_ || (!nccl_team_ && !scope_.group)) return;
  const std::lock_guard lock(engine_->lock());
  ended_ = true;
  engine_->keep(scope_.group.get());
  if (nccl_team_) nccl_team_->retire();
}

bool Communicator::nccl_pays_for(ChosenCall call, Bytes bytes) const {
  if (!nccl_may_carry(call)) return false;
  const CollectiveShape shape{size(), bytes};
  if (bytes.value >> 62U != 0) return nccl_pays(call, shape, machine_);
  std::atomic<std::uint64_t>& last = nccl_answers_[static_cast<std::size_t>(call)];
  const std::uint64_t asked = bytes.value << 2U | 1U;
  const std::uint64_t known = last.load(std::memory_order_relaxed);
  if ((known & ~std::uint64_t{2}) == asked) return (known & 2U) != 0;
  const bool pays = nccl_pays(call, shape, machine_);
  last.store(asked | (pays ? 2U : 0U), std::memory_order_relaxed);
  return pays;
}

void Communicator::say_without_nccl(ChosenCall call, Bytes bytes) const {
  const Status there = nccl()->installed(scope_.group.get());
  if (!there.ok() && nccl()->devices(scope_.group.get()) >= size() && nccl_pays_for(call, bytes))
    log::once(log::Level::warning, "nccl",
              "long collective calls on CUDA memory go by messages, which takes longer: " + there.text());
}

// A call that was offered to NCCL says at its twin how it went.
Algorithm Communicator::last_algorithm() const {
  const Algorithm last = last_.load(std::memory_order_relaxed);
  return last == Algorithm::nccl && nccl_team_ ? nccl_team_->twin().last_algorithm() : last;
}

std::vector<int> Grid::coords_of(int rank) const {
  std::vector<int> coords(dims.size());
  for (std::size_t d = dims.size(); d-- > 0; rank /= dims[d]) coords[d] = rank % dims[d];
  return coords;
}

std::optional<int> Grid::rank_of(const std::vector<int>& coords) const {
  int rank = 0;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    int at = coords[d];
    if (periods[d]) at = (at % dims[d] + dims[d]) % dims[d];
    if (at < 0 || at >= dims[d]) return std::nullopt;
    rank = rank * dims[d] + at;
  }
  return rank;
}

// 30 bits: the rank in the upper ones, as many as the world needs; the first two numbers of rank 0 are the world's and self's.
ContextSource::ContextSource(Rank rank, int size) {
  const int bits = 30 - static_cast<int>(std::bit_width(static_cast<unsigned>(std::max(size - 1, 0))));
  first_ = static_cast<std::uint32_t>(rank.value) << bits;
  end_ = first_ + ((std::uint32_t{1} << bits) - 1);
  next_ = first_ + 2;
}

std::uint32_t ContextSource::next() {
  // Past the end it stops counting, so that it never begins again.
  if (next_.load(std::memory_order_relaxed) > end_) return 0;
  const std::uint32_t number = next_.fetch_add(1, std::memory_order_relaxed);
  return number <= end_ ? number : 0;
}

Result<std::unique_ptr<Communicator>> split(const Communicator& parent, const Choice& choice, ContextSource& contexts,
                                            const std::string& what, const Status& wrong) {
  std::vector<int> everybody(static_cast<std::size_t>(parent.size()));
  std::iota(everybody.begin(), everybody.end(), 0);
  return split_among(parent, everybody, choice, contexts, what, wrong);
}

Result<std::unique_ptr<Communicator>> split_among(const Communicator& parent, const std::vector<int>& ranks,
                                                  const Choice& choice, ContextSource& contexts, const std::string& what,
                                                  const Status& wrong) {
  Status status;
  std::vector<std::byte> answer;
  const int first = ranks.front();
  const LanesOffered offered{parent.with_world().lanes};
  const ChoiceTold mine{choice, offered.lanes, wrong.code()};
  if (parent.rank() == first) {
    answer = decide(parent, ranks, mine, contexts, status);
  } else {
    status = send_host(parent, first, kChoiceTag, &mine, sizeof mine);
    if (wrong.ok() && status.ok()) answer = receive_answer(parent, first, kAnswerTag, status);
  }
  if (!wrong.ok()) return wrong;
  if (!status.ok()) return status;
  return unpack(parent, first, answer, what + " of " + parent.name());
}

Result<std::unique_ptr<Communicator>> create_group(const Communicator& parent, const std::vector<int>& members,
                                                   std::int32_t tag, ContextSource& contexts) {
  const std::int32_t where = kGroupTag + tag;
  Status status;
  std::vector<std::byte> answer;
  if (members.front() == parent.rank()) {
    std::vector<Rank> ranks;
    for (const int member : members) ranks.push_back(parent.to_world(member));
    Answer mine{-1, IST_OK, contexts.next(), static_cast<std::int32_t>(members.size())};
    if (mine.context == 0) mine.count = -1;
    const auto beyond =
        std::find_if_not(members.begin(), members.end(), [&](int member) { return reaches(parent, member); });
    if (beyond != members.end()) mine = {*beyond, IST_ERR_UNREACHABLE, 0, 0};
    answer = pack(mine, ranks);
    for (std::size_t i = 1; i < members.size(); ++i) {
      if (!reaches(parent, members[i])) continue;
      const Status told = send_host(parent, members[i], where, answer.data(), answer.size());
      if (status.ok() && !told.ok()) status = told;
    }
  } else {
    answer = receive_answer(parent, members.front(), where, status);
  }
  if (!status.ok()) return status;
  return unpack(parent, members.front(), answer,
                "group of " + std::to_string(members.size()) + " ranks of " + parent.name());
}

void refuse_group(const Communicator& parent, const std::vector<int>& members, std::int32_t tag, Code why) {
  const auto answer = pack({parent.rank(), why}, {});
  for (const int member : members)
    if (member != parent.rank() && reaches(parent, member))
      static_cast<void>(send_host(parent, member, kGroupTag + tag, answer.data(), answer.size()));
}

}  // namespace ist
