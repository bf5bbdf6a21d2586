#include "path/shm/shm_path.hpp"

#include <algorithm>
#include <utility>

namespace ist {
namespace {

// The word that a rank leaves behind, plus one for each rank up to the one whose death it tells of.
constexpr std::uint32_t kLeft = 1;

// The segments of all ranks of this host, by place: ours made, the others' taken from their sockets.
Result<std::vector<Segment>> exchange_segments(const Surroundings& around, const SegmentShape& shape, std::size_t my_place,
                                               bool may_sleep) {
  auto mine = Segment::create(shape, my_place, may_sleep);
  if (!mine.ok()) return mine.status();
  for (Rank peer : around.local)
    if (peer != around.rank) IST_TRY(around.send_descriptor(peer, kSegmentPurpose, mine->descriptor()));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(around.settings.boot_timeout);
  std::vector<Segment> segments;
  for (std::size_t place = 0; place < around.local.size(); ++place) {
    if (place == my_place) {
      segments.push_back(mine->share());
      continue;
    }
    const Rank peer = around.local[place];
    const std::chrono::duration<double> left = deadline - std::chrono::steady_clock::now();
    auto descriptor = around.take_descriptor(peer, kSegmentPurpose, std::max(left.count(), 0.0));
    if (!descriptor.ok()) return descriptor.status();
    if (!descriptor.value())
      return Status{IST_ERR_BOOT, "rank " + std::to_string(peer.value) + " did not send its shared-memory segment within " +
                                      std::to_string(around.settings.boot_timeout) +
                                      " s; is it running? ISTHMUS_BOOT_TIMEOUT allows more time"};
    auto segment = Segment::open(std::move(*descriptor.value()), shape.ranks, place);
    if (!segment.ok())
      return Status{segment.status().code(), "rank " + std::to_string(peer.value) + ": " + segment.status().text()};
    segments.push_back(std::move(segment).value());
  }
  return segments;
}

}  // namespace

bool ShmPath::may_sleep(const Surroundings& surroundings) {
  if (surroundings.settings.wait == "auto") return surroundings.oversubscribed;
  return surroundings.settings.wait == "sleep";
}

SegmentShape ShmPath::shape(const Surroundings& surroundings) {
  return {static_cast<std::uint32_t>(surroundings.local.size()), static_cast<std::uint32_t>(surroundings.settings.cells),
          surroundings.settings.eager_limit.value};
}

std::size_t ShmPath::place_in(const Surroundings& surroundings) {
  const auto& local = surroundings.local;
  return static_cast<std::size_t>(std::find(local.begin(), local.end(), surroundings.rank) - local.begin());
}

Result<std::unique_ptr<ShmPath>> ShmPath::connect(Surroundings surroundings) {
  auto segments = exchange_segments(surroundings, shape(surroundings), place_in(surroundings), may_sleep(surroundings));
  if (!segments.ok()) return segments.status();
  return std::make_unique<ShmPath>(std::move(surroundings), std::move(segments).value());
}

CellTable ShmPath::make_table(const std::vector<Segment>& segments) {
  std::vector<CellTable::Cells> cells;
  for (const Segment& segment : segments) cells.push_back(segment.cells());
  return CellTable{std::move(cells)};
}

ShmPath::ShmPath(Surroundings surroundings, std::vector<Segment> segments)
    : surroundings_(std::move(surroundings)),
      my_place_(place_in(surroundings_)),
      segments_(std::move(segments)),
      table_(make_table(segments_)),
      mine_(segments_[my_place_].shared()),
      pool_(segments_[my_place_], table_),
      arrivals_(&mine_.arrivals, &table_) {
  const Segment& mine = segments_[my_place_];
  for (std::size_t peer = 0; peer < segments_.size(); ++peer) {
    links_.emplace_back();
    if (peer == my_place_) continue;
    links_.back() = std::make_unique<ShmLink>(
        ShmLink::Ends{&surroundings_, &mine, &segments_[peer], my_place_, peer, &pool_, &table_, &locked_});
    sources_.push_back({peer, PairSlotReader{mine.slots(peer), &mine.pair(peer).consumed, mine.shape().pair_slots(),
                                             mine_.may_sleep == 0}});
  }
  for (Source& source : sources_) links_[source.place]->slots = &source.slots;
}

ShmPath::~ShmPath() {
  if (!locked_) return;
  for (const Segment& segment : segments_) surroundings_.unlock(segment.cell_data());
}

std::size_t ShmPath::place(Rank rank) const {
  const auto& local = surroundings_.local;
  const auto found = std::lower_bound(local.begin(), local.end(), rank);
  return found != local.end() && *found == rank ? static_cast<std::size_t>(found - local.begin()) : kNone;
}

Link* ShmPath::link(Rank peer) {
  const std::size_t found = place(peer);
  return found == kNone ? nullptr : links_[found].get();
}

// The payload of the last arrival was shown until now.
void ShmPath::drop_held() {
  if (held_ == kNone) return;
  Source& source = sources_[held_];
  held_ = kNone;
  if (source.slots.pop()) links_[source.place]->ring();
}

std::optional<Arrival> ShmPath::next() {
  drop_held();
  const std::size_t queue = sources_.size();
  for (std::size_t looked = 0; looked <= queue; ++looked) {
    auto arrival = turn_ == queue ? take_cell() : take_slot(turn_);
    if (arrival && ++in_a_row_ < kInARow) return arrival;
    ShmPath::pass_turn();
    if (arrival) return arrival;
  }
  return std::nullopt;
}

void ShmPath::pass_turn() {
  turn_ = turn_ == sources_.size() ? 0 : turn_ + 1;
  in_a_row_ = 0;
}

std::optional<Arrival> ShmPath::take_slot(std::size_t source) {
  PairSlotReader& slots = sources_[source].slots;
  const PairSlot* slot = slots.front();
  if (!slot) return std::nullopt;
  held_ = source;
  return Arrival{surroundings_.local[sources_[source].place], slots.envelope(*slot), slots.payload(*slot), false, 0};
}

std::optional<Arrival> ShmPath::take_cell() {
  const CellName name = returned_ != kNoCell ? std::exchange(returned_, kNoCell) : arrivals_.take();
  if (name == kNoCell) return std::nullopt;
  const CellHeader& header = table_.header(name);
  const std::size_t owner = place_of(name);
  const std::uint64_t length = std::min(header.length, segments_[owner].shape().cell_bytes);
  return Arrival{surroundings_.local[owner], header.envelope, {table_.data(name), length}, true, name};
}

bool ShmPath::arrival_within(int looks) {
  drop_held();
  for (; looks > 0; --looks) {
    if (cells_ready()) return true;
    for (const Source& source : sources_)
      if (source.slots.ready()) return true;
  }
  return false;
}

// A slot is still there: it was only shown.
void ShmPath::put_back(const Arrival& arrival) {
  if (arrival.in_cell)
    returned_ = arrival.cell;
  else
    held_ = kNone;
}

void ShmPath::release(const Arrival& arrival) {
  if (!arrival.in_cell) return;
  // Guard RELEASE_LAST of models/cell_queue.pml: the releases in put_cell() keep our reads of the cell before its return.
  const std::size_t owner = place_of(arrival.cell);
  put_cell(segments_[owner].shared().free_cells, table_, arrival.cell);
  links_[owner]->ring();
}

// What one driver refuses does not keep the rest from being locked.
Status ShmPath::lock_memory() {
  locked_ = true;
  Status first;
  const auto note = [&first](Status status) {
    if (first.ok()) first = std::move(status);
  };
  for (const Segment& segment : segments_) note(surroundings_.lock(segment.cell_data(), segment.cell_data_size()));
  for (const auto& link : links_)
    if (link) note(link->lock_rings());
  return first;
}

// Everything a sleeper could be waiting for. Must find whatever a doorbell is rung for, or a wake-up is lost.
bool ShmPath::news() {
  if (woken_.exchange(false, std::memory_order_acq_rel)) return true;
  if (cells_ready() || pool_.news()) return true;
  for (Source& source : sources_)
    if (source.slots.front()) return true;
  return std::any_of(links_.begin(), links_.end(), [](const auto& link) { return link && link->news(); });
}

bool ShmPath::announce_sleep() {
  // A slot still shown as the last arrival would count as news; whoever sleeps has no use for it any more.
  drop_held();
  // Guard ANNOUNCE_FIRST, LOOK_AGAIN.
  mine_.bell.announce();
  if (!news()) return true;
  mine_.bell.retract();
  return false;
}

void ShmPath::sleep_announced(std::chrono::microseconds longest) {
  mine_.bell.wait(longest);
  mine_.bell.retract();
}

void ShmPath::wake() {
  // Guard STICKY of models/doorbell.pml: kept until the next sleep(), because the owner may be on its way there.
  woken_.store(true, std::memory_order_release);
  if (mine_.may_sleep != 0) mine_.bell.ring();
}

Lane* ShmPath::lane(Rank owner, std::size_t index) const {
  const std::size_t found = place(owner);
  return found == kNone || index >= kLanes ? nullptr : segments_[found].lanes() + index;
}

void ShmPath::leave(Rank dead) {
  // Release: a peer that sees it, and then finds nothing more, has seen all that was published before.
  mine_.left.store(kLeft + static_cast<std::uint32_t>(dead.value - kNobody.value), std::memory_order_release);
}

bool ShmPath::has_left(Rank peer) const {
  const std::size_t found = place(peer);
  return found != kNone && segments_[found].shared().left.load(std::memory_order_acquire) != 0;
}

Rank ShmPath::death_told_by(Rank peer) const {
  const std::size_t found = place(peer);
  const std::uint32_t word = found == kNone ? 0 : segments_[found].shared().left.load(std::memory_order_acquire);
  return word <= kLeft ? kNobody : Rank{static_cast<std::int32_t>(word - kLeft) + kNobody.value};
}

}  // namespace ist
