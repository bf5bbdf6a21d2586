#include "face/message/world.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

#include "base/log.hpp"
#include "base/ranges.hpp"
#include "boot/blob.hpp"
#include "boot/interrupt.hpp"
#include "collective/learned_copies.hpp"
#include "collective/profile.hpp"
#include "memory/workers.hpp"
#include "path/shm/pair_slots.hpp"
#include "request/wait.hpp"

namespace ist {
namespace {

// This rank's numbers, with what follows from its settings. Rank 0's are the ones that count for all.
Profile profile_for(const Settings& settings, const Kinds& kinds, const Boot& boot) {
  Profile profile = load_profile(settings, boot.rank() == Rank{0} ? log::Level::warning : log::Level::info,
                                 [&kinds] { return devices_of(kinds); });
  know_slots(profile, settings, boot.size());
  return profile;
}

}  // namespace

Result<std::unique_ptr<World>> World::create(std::unique_ptr<Boot> given, std::string_view own_settings) {
  std::unique_ptr<World> world{new World};
  auto settings = Settings::read(own_settings);
  if (!settings.ok()) return settings.status();
  world->settings_ = std::move(*settings);
  log::set_level(world->settings_.log);
  ranges::look_for_tool();
  const Range range("ist_world_create");
  world->boot_ = std::move(given);
  const interrupt::Scope scope;
  const Status connected = world->connect();
  if (!connected.ok() && world->boot_) world->boot_->withdraw(scope.happened() ? interrupt::kReason : connected.text());
  // What the others have already made with this rank stands.
  if (scope.happened() && !connected.ok())
    return Status{
        IST_CANCELLED,
        "ist_world_create: the program had the wait for the other ranks end (ist_interrupt_with); create the world again, "
        "on every rank"};
  if (!connected.ok()) return connected;
  return world;
}

Status World::open_trace() {
  if (settings_.trace == "off") return {};
  auto trace = Trace::open(settings_.trace, boot_->rank());
  if (!trace.ok()) return trace.status();
  trace_ = std::move(*trace);
  return {};
}

// What each rank said of itself; gives their names.
std::vector<std::string> World::hear_cards() {
  std::vector<std::string> names;
  std::vector<std::string> nccl_cards;
  std::vector<std::string> device_cards;
  std::vector<Rank> lacking;
  for (std::int32_t r = 0; r < peers_->size(); ++r) {
    const Peer& peer = peers_->at(Rank{r});
    names.push_back("rank " + std::to_string(r) + " (process " + std::to_string(peer.pid) + " on " + peer.host + ")");
    BlobReader said{peer.about};
    nccl_cards.push_back(said.text());
    device_cards.push_back(said.text());
    settings_.check |= !said.text().empty();
    if (!said.text().empty()) lacking.push_back(peer.rank);
  }
  choose_slots_trial(lacking);
  nccl_->learn(nccl_cards);
  neighbours_->learn(*peers_, device_cards);
  return names;
}

Status World::connect() {
  auto kinds = Kinds::load(settings_, settings_.shared_heap);
  if (!kinds.ok()) return kinds.status();
  kinds_ = std::move(*kinds);
  pool_ = std::make_unique<PinnedPool>(*kinds_, settings_.pinned_pool_limit);
  registrations_ = std::make_unique<Registrations>(*kinds_, *pool_);
  if (!boot_) {
    auto boot = join_job(settings_);
    if (!boot.ok()) return boot.status();
    boot_ = std::move(*boot);
  }
  log::set_rank(boot_->rank().value);
  IST_TRY(open_trace());
  nccl_ = std::make_unique<Nccl>(settings_, *kinds_, boot_->size());
  Profile profile = profile_for(settings_, *kinds_, *boot_);
  numbers_ = in_words(profile);
  neighbours_ = std::make_unique<Neighbours>(settings_, *kinds_);
  const std::string card = BlobWriter{}
                               .text(nccl_->card())
                               .text(neighbours_->card())
                               .text(settings_.check ? "check" : "")
                               .text(lacks_slots(profile.message) ? "slots" : "")
                               .take();
  auto peers = Peers::connect(*boot_, settings_, {.about = card, .for_all = pack(profile.collective)});
  if (!peers.ok()) return peers.status();
  peers_ = std::move(*peers);
  kinds_->host().use_helpers(settings_.copy_helpers(peers_->processors()));
  const auto machine = unpack_profile(peers_->heard());  // rank 0's: algorithms must be the same everywhere
  if (!machine.ok()) return machine.status();
  board_ = std::make_unique<AbortBoard>(peers_->size());
  PathContext context{*boot_, *peers_, settings_, *pool_, kinds_->host().shared_heap()};
  auto paths = make_paths(context);
  if (!paths.ok()) return paths.status();
  paths_ = std::move(*paths);

  std::vector<std::string> names = hear_cards();
  tell_cuda_of_sharers();
  tell_of_sharers(profile.message);
  engine_ = std::make_unique<Engine>(Engine::Parts{peers_->rank(), settings_, *kinds_, *pool_, paths_, *board_,
                                                   std::move(names), profile.message, trace_.get(), peers_->processors()});
  make_channels();
  auto watcher = Watcher::start(*peers_, *board_, watcher_hooks());
  if (!watcher.ok()) return watcher.status();
  watcher_ = std::move(*watcher);
  make_communicators(*machine);
  log_pairs(*engine_, *peers_, *neighbours_);
  if (!settings_.progress_thread) return {};
  auto thread = ProgressThread::start(*engine_, peers_->processors());
  if (!thread.ok()) return thread.status();
  progress_thread_ = std::move(*thread);
  return {};
}

// Where waits spin, nothing else moves messages on, nobody looks on, and slots are as long as they are built in.
bool World::lacks_slots(const MachineProfile& machine) const {
  const bool as_usual = settings_.profile == "auto" && settings_.single_copy == "auto" && settings_.wait != "sleep" &&
                        settings_.eager_limit == Settings{}.eager_limit && settings_.trace == "off" && !settings_.check &&
                        !settings_.progress_thread && !Range::told();
  const auto ranks = static_cast<std::uint32_t>(boot_->size());
  if (pair_slot_limit(settings_.eager_limit, ranks).value < kPairPayload) return false;
  return as_usual && ist::lacks_slots(learned_copies_path(), machine);
}

// The first two ranks of a host do, if both can, and both come to the same answer. Ranks without a processor of their own would find out how they wait.
void World::choose_slots_trial(const std::vector<Rank>& lacking) {
  const auto& local = peers_->local();
  if (settings_.check || peers_->oversubscribed() || local.size() < 2 || peers_->rank() > local[1]) return;
  const auto lacks = [&lacking](Rank rank) { return std::find(lacking.begin(), lacking.end(), rank) != lacking.end(); };
  if (lacks(local[0]) && lacks(local[1])) slots_trial_with_ = peers_->rank() == local[0] ? local[1] : local[0];
}

void World::tell_of_sharers(MachineProfile& machine) const {
  machine.shares_device = neighbours_->sharer(peers_->rank()).value >= 0;
  machine.shares_opencl = neighbours_->shares_opencl();
}

void World::make_channels() {
  const MemoryKind* const cuda = kinds_->find(KindId::cuda);
  stream_channels_ = std::make_unique<StreamChannels>(*engine_, cuda != nullptr ? own_device(*cuda) : -1);
  stream_meetings_ = std::make_unique<StreamMeetings>(*engine_, *stream_channels_);
  queue_channels_ = std::make_unique<QueueChannels>(*engine_, *stream_channels_);
}

// Two processes take turns on a device: some copies go another way then, and while the one's worker waits for orders, the other's would
// wait for its turn.
void World::tell_cuda_of_sharers() {
  MemoryKind* const cuda = kinds_->find(KindId::cuda);
  if (cuda == nullptr) return;
  for (const DeviceInfo& device : cuda->devices())
    if (neighbours_->other_with(device.uuid, peers_->rank()).value >= 0) cuda->share(device.ordinal);
  if (!settings_.worker || cuda->workers() == nullptr) return;
  const Rank sharer = neighbours_->sharer(peers_->rank());
  const Status known =
      sharer.value < 0
          ? Status{}
          : Status{IST_ERR_KIND, "rank " + std::to_string(sharer.value) + " has the same GPU, " +
                                     neighbours_->device(peers_->rank()) + "; start no more ranks than there are GPUs"};
  const Status against = cuda->workers()->allow(own_device(*cuda), known);
  if (!against.ok())
    log::once(log::Level::warning,
              "the setting worker is 1, but the driver copies small messages, not a worker: " + against.text());
}

Watcher::Hooks World::watcher_hooks() {
  Watcher::Hooks hooks;
  hooks.has_left = [this](Rank rank) {
    for (const auto& path : paths_)
      if (path->has_left(rank)) return true;
    return false;
  };
  hooks.death_told_by = [this](Rank rank) {
    for (const auto& path : paths_)
      if (const Rank dead = path->death_told_by(rank); dead > kNobody && dead.value < peers_->size()) return dead;
    return kNobody;
  };
  hooks.wake = [this] {
    stream_channels_->look_at_board();
    stream_meetings_->look_at_board();
    heaps_.for_each([](CollectiveHeap& heap) { heap.look_at_board(); });
    windows_.for_each([](Window& window) { window.look_at_board(); });
    for (const auto& path : paths_) path->wake();
  };
  return hooks;
}

void World::make_communicators(CollectiveProfile machine) {
  const int size = engine_->size();
  contexts_ = std::make_unique<ContextSource>(engine_->rank(), size);
  lanes_ = std::make_unique<LanePool>(*engine_);
  // Every rank knows who has a device.
  machine.shared_up_to = std::min(machine.shared_up_to, static_cast<double>(kLaneRoom.value));
  if (neighbours_->any_device()) machine = by_gpus(machine);
  const Scope everybody{kWorldContext, nullptr};
  whole_ = *comms_.add(std::make_unique<Communicator>(*engine_, everybody, name_of(nullptr), machine,
                                                      WithWorld{nccl_.get(), lanes_.get()},
                                                      machine.shared_up_to > 0 ? lanes_->make(everybody, 0) : nullptr));
  auto alone = std::make_shared<const Group>(std::vector<Rank>{engine_->rank()}, size, "self");
  self_ = *comms_.add(std::make_unique<Communicator>(*engine_, Scope{kSelfContext, std::move(alone)}, "self", machine));
}

// Eager sends that found no room yet go out as the peers make some; peers that are gone free theirs.
void World::hand_over_sends() {
  Patience patience{*engine_, [] { return false; }};
  for (;;) {
    bool moved = false;
    {
      const std::lock_guard lock(engine_->lock());
      if (!engine_->sends_pending()) return;
      moved = look_for_nobody(*engine_);
    }
    patience.after_look_at_words(moved);
  }
}

// What NCCL still runs on other ranks may reach into memory of this one: they have a moment to end it.
void World::part() {
  constexpr std::chrono::seconds kMoment{1};
  const auto limit = std::chrono::steady_clock::now() + kMoment;
  {
    const std::lock_guard lock(engine_->lock());
    nccl_->farewell();
  }
  Patience patience{*engine_, [] { return false; }};
  for (;;) {
    bool moved = false;
    {
      const std::lock_guard lock(engine_->lock());
      if (nccl_->parted() || std::chrono::steady_clock::now() > limit) return;
      moved = look_for_nobody(*engine_);
    }
    patience.after_look_at_words(moved);
  }
}

int World::own_device(const MemoryKind& kind) const {
  int before = 0;
  for (const Rank other : peers_->local()) before += other < peers_->rank() ? 1 : 0;
  return settings_.own_device(before, static_cast<int>(kind.devices().size()));
}

World::World() : owner_(::getpid()) {}

bool World::of_another_process() const { return owner_ != ::getpid(); }

Status World::end() {
  if (std::exchange(ended_, true)) return {};
  progress_thread_.reset();
  if (!engine_) return {};
  if (queue_channels_) queue_channels_->stop();
  heaps_.for_each([](CollectiveHeap& heap) { heap.stop_serving(); });
  windows_.for_each([](Window& window) { window.stop_serving(); });
  part();
  hand_over_sends();
  // All before the others see this rank leave: then they know that nothing more comes of it. Streams go on before copies of messages are
  // waited for, which may stand behind what waits in them.
  Status met = stream_meetings_ ? stream_meetings_->close() : Status{};
  const Status streamed = stream_channels_ ? stream_channels_->close() : Status{};
  {
    const std::lock_guard lock(engine_->lock());
    engine_->abandon_all({IST_ERR_PEER_LEFT, "this rank destroyed its world"});
  }
  const Status queued = queue_channels_ ? queue_channels_->close() : Status{};
  if (!met.ok()) return met;
  return queued.ok() ? streamed : queued;
}

// Two ranks of each host are enough, of which the second one may be who receives. Ranks without a processor of their own measure how they
// wait. What cannot be kept is found out again.
void World::keep_learned_copies() try {
  if (!engine_ || settings_.profile != "auto" || settings_.single_copy != "auto" || peers_->oversubscribed()) return;
  const auto& local = peers_->local();
  const bool keeps = local.size() > 1 && peers_->rank() <= local[1];
  const std::string file = keeps ? learned_copies_path() : "";
  if (file.empty()) return;
  const CopyChoice found = [this] {
    const std::lock_guard lock(engine_->lock());
    return engine_->copies();
  }();
  static_cast<void>(ist::keep_learned_copies(file, found, engine_->parts().machine));
} catch (const std::exception&) {
  return;
}

Status World::leave() {
  const Status ended = end();
  for (const auto& path : paths_) path->leave(board_->first_dead());
  keep_learned_copies();  // when the others know that this rank has left: a file may take its time
  watcher_.reset();
  if (trace_) trace_->end();
  return ended;
}

World::~World() {
  static_cast<void>(leave());
  if (nccl_) nccl_->let_go_of_teams();  // while there is an engine
}

}  // namespace ist
