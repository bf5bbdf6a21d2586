#include "collective/nccl.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <set>
#include <utility>

#include "base/log.hpp"
#include "base/quiet_thread.hpp"
#include "boot/blob.hpp"
#include "collective/communicator.hpp"
#include "collective/nccl_team.hpp"
#include "memory/guests.hpp"
#include "request/schedule.hpp"

namespace ist {
namespace {

// FNV-1a: the same in every process.
std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3ULL;
  return hash;
}

const MemoryKind* cuda_of(const Kinds& kinds) {
  const MemoryKind* cuda = kinds.find(KindId::cuda);
  return cuda != nullptr && !cuda->devices().empty() ? cuda : nullptr;
}

std::string in_us(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f us", seconds * 1e6);
  return text.data();
}

}  // namespace

Result<nccl::Api> find_nccl(const Settings& settings, const Kinds& kinds) {
  if (settings.nccl == "never") return Status{IST_ERR_KIND, "ISTHMUS_NCCL is never"};
  if (cuda_of(kinds) == nullptr)
    return Status{IST_ERR_KIND, "the kind cuda has no device here, and NCCL carries nothing else"};
  return nccl::load_api(settings.nccl == "auto" ? "libnccl.so.2" : settings.nccl);
}

Nccl::Nccl(const Settings& settings, const Kinds& kinds, int ranks)
    : kinds_(kinds), patience_(settings.boot_timeout), opens_(settings.device_ipc != "never") {
  if (ranks < 2) {
    off_ = {IST_ERR_KIND, "this world has one rank"};
    return;
  }
  auto found = find_nccl(settings, kinds);
  if (!found.ok()) {
    off_ = found.status();
    if (settings.nccl != "never" && cuda_of(kinds) != nullptr) log::once(log::Level::info, "NCCL is off: " + off_.text());
    return;
  }
  api_ = std::move(*found);
}

Nccl::~Nccl() {
  for (Worker& worker : workers_) worker.thread.join();
}

std::uint64_t Nccl::identity(int device) const {
  for (const DeviceInfo& one : kinds_.find(KindId::cuda)->devices())
    if (one.ordinal == device) return hash_of(one.uuid);
  return 0;
}

std::string Nccl::card() const {
  BlobWriter blob;
  const MemoryKind* cuda = cuda_of(kinds_);
  blob.number(static_cast<std::uint64_t>(cuda != nullptr && off_.ok() ? api_.version : 0));
  blob.number(cuda != nullptr ? cuda->devices().size() : 0);
  if (cuda != nullptr)
    for (const DeviceInfo& device : cuda->devices()) blob.number(hash_of(device.uuid));
  blob.number(opens_ ? 1 : 0);
  return blob.take();
}

void Nccl::learn(const std::vector<std::string>& cards) {
  facts_.clear();
  for (const std::string& card : cards) {
    BlobReader blob{card};
    Facts facts;
    facts.version = blob.number();
    const std::uint64_t count = blob.number();
    for (std::uint64_t i = 0; i < count && !blob.bad(); ++i) facts.devices.push_back(blob.number());
    facts.opens = blob.number() != 0;
    if (blob.bad()) facts = {};
    facts_.push_back(std::move(facts));
  }
}

Status Nccl::installed(const Group* group) const {
  if (!off_.ok()) return off_;
  const int size = group != nullptr ? group->size() : static_cast<int>(facts_.size());
  if (size < 2) return {IST_ERR_KIND, "this communicator has one rank"};
  const auto world_rank = [&](int member) { return group != nullptr ? group->to_world(member).value : member; };
  for (int member = 0; member < size; ++member) {
    const Facts& facts = facts_[static_cast<std::size_t>(world_rank(member))];
    if (facts.version == 0)
      return {IST_ERR_KIND, "it is off on rank " + std::to_string(world_rank(member)) + "; isthmus info says why there"};
    if (facts.version != facts_[static_cast<std::size_t>(world_rank(0))].version)
      return {IST_ERR_KIND, "ranks " + std::to_string(world_rank(0)) + " and " + std::to_string(world_rank(member)) +
                                " found different versions of it; name one for all in ISTHMUS_NCCL"};
  }
  return {};
}

int Nccl::devices(const Group* group) const {
  const int size = group != nullptr ? group->size() : static_cast<int>(facts_.size());
  std::set<std::uint64_t> devices;
  for (int member = 0; member < size; ++member) {
    const int rank = group != nullptr ? group->to_world(member).value : member;
    const Facts& facts = facts_[static_cast<std::size_t>(rank)];
    devices.insert(facts.devices.begin(), facts.devices.end());
  }
  return static_cast<int>(devices.size());
}

bool Nccl::opens(const Group* group) const {
  const int size = group != nullptr ? group->size() : static_cast<int>(facts_.size());
  for (int member = 0; member < size; ++member)
    if (!facts_[static_cast<std::size_t>(group != nullptr ? group->to_world(member).value : member)].opens) return false;
  return true;
}

Status Nccl::serves(const Group* group) const {
  IST_TRY(installed(group));
  const int size = group != nullptr ? group->size() : static_cast<int>(facts_.size());
  const int seen = devices(group);
  if (seen < size)
    return {IST_ERR_KIND,
            std::to_string(size) + " ranks see " + std::to_string(seen) + " GPU(s), and NCCL wants one for each"};
  return {};
}

Status Nccl::in_background(std::function<void()> body) {
  auto over = std::make_shared<std::atomic<bool>>(false);
  const std::lock_guard lock(mutex_);
  std::erase_if(workers_, [](Worker& worker) {
    if (!worker.over->load()) return false;
    worker.thread.join();
    return true;
  });
  auto thread = quiet_thread("NCCL", [body, over] {
    body();
    over->store(true);
  });
  if (!thread.ok()) return thread.status();
  workers_.push_back({std::move(*thread), std::move(over)});
  return {};
}

std::vector<NcclTeam*> Nccl::teams() {
  const std::lock_guard lock(mutex_);
  return teams_;
}

void Nccl::farewell() {
  for (NcclTeam* team : teams()) {
    team->farewell();
    team->retire();
  }
}

bool Nccl::parted() {
  bool all = true;
  // Each is asked, since it begins to part when its work is over.
  for (NcclTeam* team : teams()) all = team->parted() && all;
  return all;
}

void Nccl::add(NcclTeam* team) {
  std::vector<std::shared_ptr<NcclTeam>> ended;
  const std::lock_guard lock(mutex_);
  const auto unused = std::partition(kept_.begin(), kept_.end(), [](const auto& one) { return one.use_count() > 1; });
  ended.assign(std::make_move_iterator(unused), std::make_move_iterator(kept_.end()));
  kept_.erase(unused, kept_.end());
  kept_.reserve(teams_.size() + 1);  // keep() must not fail
  teams_.push_back(team);
}

void Nccl::keep(std::shared_ptr<NcclTeam> team) {
  const std::lock_guard lock(mutex_);
  kept_.push_back(std::move(team));
}

void Nccl::let_go_of_teams() {
  for (NcclTeam* team : teams()) team->end_twin();
  std::vector<std::shared_ptr<NcclTeam>> all;
  const std::lock_guard lock(mutex_);
  all.swap(kept_);
}

void Nccl::remove(NcclTeam* team) {
  const std::lock_guard lock(mutex_);
  std::erase(teams_, team);
}

// What the program knows by now it goes on to know.
void Nccl::stop_making() {
  const bool streams_used = kinds_.find(KindId::cuda)->guests()->streams_used();
  const std::lock_guard lock(mutex_);  // no team of the list ends meanwhile
  for (NcclTeam* team : teams_) static_cast<void>(team->learn(streams_used));
  any_let_go_ = true;
}

void Nccl::let_go(Engine& engine, OperationId operation) {
  if (!known_.any()) return;
  known_.hear(engine);
  if (known_.let_go(operation)) stop_making();
}

std::uint64_t Nccl::offered(Engine& engine, NcclKnown::Call call) {
  if (!known_.has_room()) {
    stop_making();
    known_.drop_those_over(engine);
  }
  return known_.offered(std::move(call));
}

NcclAnswer Nccl::explain(const Group* group, ChosenCall what, const Combiner* combiner, Bytes bytes,
                         const CollectiveProfile& machine) const {
  if (const Status able = serves(group); !able.ok()) return {false, "NCCL is off: " + able.text()};
  if (combiner != nullptr && !nccl_knows(*combiner)) return {false, "NCCL has no such operation on that type"};
  const CollectiveShape shape{group != nullptr ? group->size() : static_cast<int>(facts_.size()), bytes};
  const double messages = cheapest_seconds(what, shape, true, machine);
  const CollectiveProfile numbers = with_copies_if(opens(group), machine);
  const std::string prices = "NCCL would take " + in_us(nccl_offer(what, shape).price.seconds()) +
                             ", messages between GPUs " + in_us(seconds_between_gpus(what, shape, numbers)) +
                             ", between host memories " + in_us(messages);
  if (!worth_asking(what, shape, numbers))
    return {
        false,
        prices + "; the ranks do not ask each other for it, which would take too much of such a call between host memories"};
  if (!nccl_pays(what, shape, numbers)) return {false, prices};
  return {true, prices + "; it carries the call if all buffers are CUDA memory, on a GPU for each rank"};
}

NcclAnswer explain_nccl(const Communicator& comm, ChosenCall what, const Combiner* combiner, Bytes bytes) {
  const Nccl* nccl = comm.nccl();
  if (nccl == nullptr) return {false, "NCCL is not used by this communicator"};
  return nccl->explain(comm.scope().group.get(), what, combiner, bytes, comm.machine());
}

}  // namespace ist
