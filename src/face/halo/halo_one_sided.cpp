// Packed cells into the neighbours' symmetric heaps, with a flag behind them and no handshake.
//
// Every rank's part of the heap holds two halves, which take turns, each with room for what all its neighbours send, and one flag for each
// of them, which counts exchanges. Between two neighbours a flag goes both ways in every exchange, also where no cells do. So whoever sends
// the cells of one exchange has seen the neighbour's flag of the one before, which the neighbour set after it had unpacked the one
// before that, and that one's half is what is written to now.
#include <isthmus/collective.h>
#include <isthmus/heap.h>

#include <algorithm>

#include "face/halo/halo_grid.hpp"
#include "face/halo/halo_way.hpp"

namespace ist::halo {
namespace {

constexpr std::int64_t kLine = 64;

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
    const auto flags = static_cast<std::uint64_t>(ranks * kLine);
    const std::uint64_t bytes = 2 * static_cast<std::uint64_t>(half_) + flags;
    code = ist_heap_create(wanted.comm, static_cast<ist_kind>(wanted.beside.kind), std::max(wanted.beside.device, 0),
                           bytes + 4096, bytes + 4096, &heap_);
    void* address = nullptr;
    if (code == IST_OK) code = ist_heap_calloc(heap_, bytes, 1, &address);
    if (code != IST_OK) return told(code);
    base_ = static_cast<std::byte*>(address);
    IST_TRY(tell_places(wanted, ranks));
    in_ = wanted.beside;
    in_.object = reinterpret_cast<std::uint64_t>(base_);
    in_.offset = Offset{};
    in_.size = Bytes{static_cast<std::uint64_t>(half_)};
    in_.queue = 0;
    in_.ready = true;
    return {};
  }

  Status start() override {
    ++step_;
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      const Lane& lane = lanes_[i];
      if (lane.rank == rank_) continue;
      const Piece part =
          out_.part(Offset{static_cast<std::uint64_t>(lane.out_at)}, Bytes{static_cast<std::uint64_t>(lane.out_bytes)});
      const int code =
          ist_heap_put_signal(heap_, base_ + half() * half_ + theirs_[i], ist_buffer_ready(buffer_of(part)),
                              static_cast<std::uint64_t>(lane.out_bytes), flag_of(rank_), step_, IST_SIGNAL_SET, lane.rank);
      if (code != IST_OK) return told(code);
    }
    return {};
  }

  Status wait() override {
    for (const Lane& lane : lanes_) {
      if (lane.rank == rank_) continue;
      const int code =
          ist_heap_wait_until(heap_, flag_of(lane.rank), IST_UINT64, IST_COMPARE_GE, static_cast<std::int64_t>(step_));
      if (code != IST_OK) return told(code);
    }
    in_.object = reinterpret_cast<std::uint64_t>(base_ + half() * half_);
    return {};
  }

  const Piece& out() const override { return out_; }
  const Piece& in() const override { return in_; }

  Status close() override {
    Status outcome;
    if (heap_ != IST_HEAP_NULL)
      if (const int code = ist_heap_destroy(&heap_); code != IST_OK) outcome = told(code);
    heap_ = IST_HEAP_NULL;
    if (out_.object != 0) world_.kinds().find(out_.kind)->release_later(out_);
    out_ = {};
    return outcome;
  }

 private:
  std::int64_t half() const { return static_cast<std::int64_t>(step_ % 2); }
  // Of that rank, in this rank's part; at the offset of this rank's own in that one's.
  std::uint64_t* flag_of(int rank) const { return reinterpret_cast<std::uint64_t*>(base_ + 2 * half_ + rank * kLine); }

  // Every rank says to each other where in a half that one's cells arrive.
  Status tell_places(const WayWanted& wanted, int ranks) {
    std::vector<std::int64_t> mine(static_cast<std::size_t>(ranks), 0), theirs(mine.size(), 0);
    for (const Lane& lane : lanes_) mine[static_cast<std::size_t>(lane.rank)] = lane.in_at;
    const int code = ist_alltoall(ist_host(mine.data()), ist_host(theirs.data()), 1, IST_INT64, wanted.comm);
    if (code != IST_OK) return told(code);
    for (const Lane& lane : lanes_) theirs_.push_back(theirs[static_cast<std::size_t>(lane.rank)]);
    return {};
  }

  World& world_;
  const std::vector<Lane>& lanes_;
  const int rank_;
  ist_heap heap_ = IST_HEAP_NULL;
  std::byte* base_ = nullptr;
  std::int64_t half_ = 0;  // bytes
  std::vector<std::int64_t> theirs_;
  std::uint64_t step_ = 0;
  Piece out_, in_;
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
