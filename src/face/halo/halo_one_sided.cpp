// Packed cells into the neighbours' symmetric heaps, with a flag behind them and no handshake.
//
// Every rank's part of the heap holds two halves, which take turns, each with room for what all its neighbours send. For each of them it has
// a flag, which counts exchanges and lies in host memory, so that nobody asks a device. Between two neighbours a flag goes both ways in
// every exchange, also where no cells do. So whoever sends the cells of one exchange has seen the neighbour's flag of the one before, which
// the neighbour set after it had unpacked the one before that, and that one's half is what is written to now.
//
// A flag follows its own neighbour's cells alone, and nobody waits for another one's. It is set by this processor, with release, where
//  - the processor itself has copied the cells, or helpers that it has waited for: their stores come before it in the order of memory;
//  - a device's copy is over, as the driver says of it: then the cells are in the memory that the neighbour's next kernel reads;
//  - the owner of memory that is not reached has answered that they are there.
// The neighbour reads its flag with acquire before it unpacks, and so finds the cells behind a flag that says so. A copy that fails has no flag
// behind it: neighbours that have theirs by then go on, the others hear of it when the exchange is freed.
//
// Who frees an exchange marks his flags before he waits for the others to do so, and leaves the number of his last exchange there: a neighbour
// that waits for a later one hears of it, and one that waits for this one finds it.
#include <isthmus/collective.h>
#include <isthmus/heap.h>

#include <algorithm>
#include <list>

#include "base/outcome.hpp"
#include "face/halo/halo_grid.hpp"
#include "face/halo/halo_way.hpp"
#include "face/heap/heap_calls.hpp"
#include "heap/word.hpp"

namespace ist::halo {
namespace {

constexpr std::int64_t kLine = 64;
constexpr std::uint64_t kFreed = std::uint64_t{1} << 63U;

class OneSided : public Way {
 public:
  OneSided(World& world, const std::vector<Lane>& lanes, int rank) : world_(world), lanes_(lanes), rank_(rank) {}

  // Collective, whatever goes wrong at one rank: all find out before there is a heap, which is destroyed by all together.
  Status open(const WayWanted& wanted) {
    std::int64_t sizes[3] = {0, wanted.beside.kind == KindId::opencl ? 1 : 0, 0};
    std::int64_t outs = 0;
    for (const Lane& lane : lanes_) {
      outs = std::max(outs, lane.out_at + lane.out_bytes);
      sizes[0] = std::max(sizes[0], lane.in_at + lane.in_bytes);
    }
    auto out = allocate(world_, wanted.beside, outs);
    if (out.ok())
      out_ = *out;
    else
      sizes[2] = 1;
    int ranks = 1;
    std::int64_t most[3] = {};
    int code = ist_comm_size(wanted.comm, &ranks);
    if (code == IST_OK) code = ist_allreduce(ist_host(sizes), ist_host(most), 3, IST_INT64, IST_MAX, wanted.comm);
    if (code != IST_OK) return told(code);
    if (most[1] != 0)
      return {IST_ERR_UNSUPPORTED,
              "one-sided exchanges are of host or CUDA memory, and a field lies in OpenCL's; "
              "exchange it by messages"};
    if (!out.ok()) return out.status();
    if (most[2] != 0) return {IST_ERR_MEMORY, "another rank has no memory for what it sends"};
    half_ = (most[0] + kLine - 1) / kLine * kLine;
    IST_TRY(make_heaps(wanted, ranks));
    IST_TRY(tell_places(wanted, ranks));
    for (const std::int64_t half : {std::int64_t{0}, half_}) {
      Piece in = wanted.beside;
      in.object = reinterpret_cast<std::uint64_t>(base_ + half);
      in.offset = Offset{};
      in.size = Bytes{static_cast<std::uint64_t>(half_)};
      in.queue = 0;
      in.ready = true;
      ins_.push_back(in);
    }
    return {};
  }

  // Returns when all copies are over, and all flags set: each one as soon as its neighbour's cells are there.
  Status start() override {
    ++step_;
    Status outcome;
    for (const Neighbour& to : neighbours_)
      if (outcome.ok()) outcome = outcome_of([&] { return put(to); });
    bool cut_short = false;  // where memory runs out, answers may still come
    const auto end = [&](const auto& what) {
      const Status ended = outcome_of([&] {
        cut_short = true;
        Status its = what();
        cut_short = false;
        return its;
      });
      if (outcome.ok()) outcome = ended;
      return ended.ok();
    };
    bool kept = false;
    for (auto each = served_.begin(); each != served_.end();) {
      PartService& service = *cells_->service_for(Pe{each->to.lane->rank});
      if (end([&] { return service.end(each->batch); }) && each->whole) set(each->to, step_);
      kept |= cut_short;
      each = each->batch.asked.empty() ? served_.erase(each) : std::next(each);
    }
    end([&] { return cells_->quiet(); });
    kept |= cut_short;
    told_ = kept || std::any_of(neighbours_.begin(), neighbours_.end(),
                                [&](const Neighbour& to) { return outcome.ok() || last_told(to) == step_; });
    if (!outcome.ok() && !told_) --step_;
    return outcome;
  }

  bool take_back() override { return !std::exchange(told_, false); }

  Result<bool> over() override {
    {
      const std::lock_guard lock(world_.engine().lock());
      world_.engine().progress();
    }
    for (const Neighbour& from : neighbours_) {
      const Status why = lost(from);
      if (!has_ended(from) && why.ok()) return false;
    }
    return true;
  }

  Status wait() override {
    told_ = false;
    for (const Neighbour& from : neighbours_) {
      IST_TRY(waits_->wait([&]() -> Result<bool> { return has_ended(from); }, [&] { return lost(from); }));
      const std::uint64_t found = count(from) & ~kFreed;
      if (found < step_)
        return {IST_ERR_PEER_LEFT, "rank " + std::to_string(from.lane->rank) + " has freed the exchange after " +
                                       std::to_string(found) + " times, and this rank is at time " + std::to_string(step_) +
                                       "; all ranks exchange as often before they free it"};
    }
    return {};
  }

  const Piece& out() const override { return out_.piece(); }
  const std::vector<Piece>& ins() const override { return ins_; }
  std::size_t arrived() const override { return step_ % 2; }

  Status close() override {
    for (const Neighbour& to : neighbours_) set(to, last_told(to) | kFreed);
    Status outcome;
    for (ist_heap* const heap : {&flags_heap_, &heap_}) {
      if (*heap != IST_HEAP_NULL)
        if (const int code = ist_heap_destroy(heap); code != IST_OK && outcome.ok()) outcome = told(code);
      *heap = IST_HEAP_NULL;
    }
    neighbours_.clear();
    out_.release_later();
    out_ = {};
    return outcome;
  }

 private:
  struct Neighbour {
    const Lane* lane;
    std::int64_t place;     // where in its halves this rank's cells arrive
    std::byte* mine;        // its flag here
    std::uint64_t* theirs;  // and this rank's there
    Rank rank;              // of the world
  };
  // Cells that a neighbour itself brings into its memory.
  struct Served {
    const Neighbour& to;
    PartService::Batch batch;
    bool whole = false;  // all of them are asked for
  };

  std::int64_t half() const { return static_cast<std::int64_t>(step_ % 2); }
  static std::uint64_t count(const Neighbour& of) { return read_word(of.mine, sizeof(std::uint64_t)); }
  static void set(const Neighbour& to, std::uint64_t count) {
    change<std::uint64_t>(reinterpret_cast<std::byte*>(to.theirs), IST_ATOMIC_SET, count);
  }
  // What it was told last; nobody else writes that word.
  static std::uint64_t last_told(const Neighbour& to) {
    return read_word(reinterpret_cast<std::byte*>(to.theirs), sizeof(std::uint64_t));
  }
  // Its cells are here, or never will be.
  bool has_ended(const Neighbour& from) const {
    const std::uint64_t found = count(from);
    return (found & ~kFreed) >= step_ || (found & kFreed) != 0;
  }
  Status lost(const Neighbour& from) const {
    const AbortBoard& board = world_.engine().parts().board;
    if (board.changes() == 0) return {};
    if (const Rank dead = board.first_dead(); dead != kNobody) return world_.engine().died(dead);
    return board.fate(from.rank) == AbortBoard::Fate::present ? Status{} : world_.engine().gone(from.rank);
  }

  // The flag follows at once, or when quiet() or the service has the copy over.
  Status put(const Neighbour& to) {
    const Bytes size{static_cast<std::uint64_t>(to.lane->out_bytes)};
    const ist_buffer source =
        ist_buffer_ready(buffer_of(out_.piece().part(Offset{static_cast<std::uint64_t>(to.lane->out_at)}, size)));
    const Named there{base_ + half() * half_ + to.place, size, to.lane->rank};
    if (PartService* const service = cells_->service_for(Pe{there.pe}); service != nullptr && size != Bytes{}) {
      const auto place = place_in(*cells_, there);
      if (!place.ok()) return place.status();
      const auto near = world_.kinds().resolve(source, size);
      if (!near.ok()) return near.status();
      Served& mine = served_.emplace_back(Served{to, {}});
      IST_TRY(service->put({place->pe, place->offset}, *near, nullptr, {false, &mine.batch}));
      mine.whole = true;
      return {};
    }
    bool goes_on = false;
    IST_TRY(copy(*cells_, ist::Direction::put, there, source, Completes::at_quiet, [&](Transfer rest) {
      goes_on = true;
      cells_->add(std::move(rest), [to, step = step_]() -> Status {
        set(to, step);
        return {};
      });
    }));
    if (!goes_on) set(to, step_);
    return {};
  }

  Status make_heaps(const WayWanted& wanted, int ranks) {
    const auto flags = static_cast<std::uint64_t>(ranks * kLine), cells = 2 * static_cast<std::uint64_t>(half_);
    void* address = nullptr;
    int code = make(wanted, static_cast<ist_kind>(wanted.beside.kind), cells, heap_, address);
    base_ = static_cast<std::byte*>(address);
    if (code == IST_OK) code = make(wanted, IST_KIND_HOST, flags, flags_heap_, address);
    flags_ = static_cast<std::byte*>(address);
    return code == IST_OK ? Status{} : told(code);
  }
  static int make(const WayWanted& wanted, ist_kind kind, std::uint64_t bytes, ist_heap& heap, void*& address) {
    const int device = kind == IST_KIND_HOST ? 0 : std::max(wanted.beside.device, 0);
    const std::uint64_t room = bytes + 4096;
    const int code = ist_heap_create(wanted.comm, kind, device, room, room, &heap);
    return code == IST_OK ? ist_heap_calloc(heap, std::max<std::uint64_t>(bytes, 1), 1, &address) : code;
  }

  // Every rank says to each other where in a half that one's cells arrive.
  Status tell_places(const WayWanted& wanted, int ranks) {
    std::vector<std::int64_t> mine(static_cast<std::size_t>(ranks), 0), theirs(mine.size(), 0);
    for (const Lane& lane : lanes_) mine[static_cast<std::size_t>(lane.rank)] = lane.in_at;
    int code = ist_alltoall(ist_host(mine.data()), ist_host(theirs.data()), 1, IST_INT64, wanted.comm);
    if (code != IST_OK) return told(code);
    auto found = look_up(flags_heap_);
    if (!found.ok()) return found.status();
    waits_ = *found;
    found = look_up(heap_);
    if (!found.ok()) return found.status();
    cells_ = *found;
    for (const Lane& lane : lanes_) {
      if (lane.rank == rank_) continue;
      void* there = nullptr;
      code = ist_heap_pointer(flags_heap_, flags_ + rank_ * kLine, lane.rank, &there);
      if (code != IST_OK) return told(code);
      neighbours_.push_back({&lane, theirs[static_cast<std::size_t>(lane.rank)], flags_ + lane.rank * kLine,
                             static_cast<std::uint64_t*>(there), waits_->rank_of(Pe{lane.rank})});
    }
    // Short ones first: who gets little need not wait until this processor has copied what others get.
    std::sort(neighbours_.begin(), neighbours_.end(), [](const Neighbour& a, const Neighbour& b) {
      return std::pair{a.lane->out_bytes, a.lane->rank} < std::pair{b.lane->out_bytes, b.lane->rank};
    });
    return {};
  }

  World& world_;
  const std::vector<Lane>& lanes_;
  const int rank_;
  ist_heap heap_ = IST_HEAP_NULL, flags_heap_ = IST_HEAP_NULL;
  CollectiveHeap *waits_ = nullptr, *cells_ = nullptr;  // of flags, and of the halves
  std::byte *base_ = nullptr, *flags_ = nullptr;
  std::int64_t half_ = 0;  // bytes
  std::vector<Neighbour> neighbours_;
  std::list<Served> served_;  // those that are not over outlive their start
  std::uint64_t step_ = 0;
  bool told_ = false;  // of the exchange that is under way
  Allocated out_;
  std::vector<Piece> ins_;
};

}  // namespace

Result<std::unique_ptr<Way>> one_sided(const WayWanted& wanted) {
  auto made = std::make_unique<OneSided>(wanted.world, wanted.lanes, wanted.rank);
  if (const Status opened = made->open(wanted); !opened.ok()) {
    static_cast<void>(made->close());
    return opened;
  }
  return std::unique_ptr<Way>{std::move(made)};
}

}  // namespace ist::halo
