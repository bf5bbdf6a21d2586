// Packed cells in messages: requests that are made once, and started for each exchange.
#include <algorithm>
#include <utility>

#include "face/halo/halo_grid.hpp"
#include "face/halo/halo_way.hpp"
#include "face/message/request_set.hpp"

namespace ist::halo {
namespace {

class Messages : public Way {
 public:
  Messages(World& world, const std::vector<Lane>& lanes) : world_(world), lanes_(lanes) {}

  Status open(const WayWanted& wanted) {
    std::int64_t outs = 0, ins = 0;
    for (const Lane& lane : lanes_) {
      outs = std::max(outs, lane.out_at + lane.out_bytes);
      ins = std::max(ins, lane.in_at + lane.in_bytes);
    }
    IST_TRY(take(out_, wanted.beside, outs));
    IST_TRY(take(in_, wanted.beside, ins));
    ins_.front() = in_.piece();
    for (const Lane& lane : lanes_) {
      if (lane.rank == wanted.rank) continue;
      if (lane.in_bytes > 0) IST_TRY(add(ins_.front(), lane.in_at, lane.in_bytes, lane.rank, wanted, ist_recv_init));
      expected_.resize(requests_.size(), {lane.rank, lane.in_bytes});
      if (lane.out_bytes > 0) IST_TRY(add(out_.piece(), lane.out_at, lane.out_bytes, lane.rank, wanted, ist_send_init));
      expected_.resize(requests_.size(), {lane.rank, -1});
    }
    return {};
  }
  ~Messages() override = default;

  Status start() override {
    if (requests_.empty()) return {};
    over_ = false;
    outcome_ = {};
    const int code = ist_startall(count(), requests_.data());
    if (code == IST_OK) return {};
    const Status why = told(code);
    whole_ = give_up();
    return why;
  }

  bool take_back() override { return over_ ? std::exchange(whole_, true) : give_up(); }

  Result<bool> over() override {
    if (!over_) take(false);
    return over_;
  }

  Status wait() override {
    while (!over_) take(true);
    return outcome_;
  }

  const Piece& out() const override { return out_.piece(); }
  const std::vector<Piece>& ins() const override { return ins_; }
  std::size_t arrived() const override { return 0; }

  Status close() override {
    for (ist_request& request : requests_) ist_request_free(&request);
    requests_.clear();
    for (Allocated* const memory : {&out_, &in_}) {
      memory->release_later();
      *memory = {};
    }
    ins_.front() = {};
    return {};
  }

 private:
  Status take(Allocated& memory, const Piece& beside, std::int64_t bytes) {
    auto made = allocate(world_, beside, bytes);
    if (made.ok()) memory = *made;
    return made.status();
  }

  template <class Init>
  Status add(const Piece& piece, std::int64_t at, std::int64_t bytes, int rank, const WayWanted& wanted, const Init& init) {
    const Piece part = piece.part(Offset{static_cast<std::uint64_t>(at)}, Bytes{static_cast<std::uint64_t>(bytes)});
    ist_request request = IST_REQUEST_NULL;
    // Packing has ended when messages start, and they when unpacking does.
    const int code = init(ist_buffer_ready(buffer_of(part)), bytes, IST_BYTE, rank, wanted.tag, wanted.comm, &request);
    if (code != IST_OK) return told(code);
    requests_.push_back(request);
    return {};
  }

  int count() const { return static_cast<int>(requests_.size()); }

  // Takes what is complete, and waits until something is.
  void take(bool waits) {
    auto set = RequestSet::of(count(), requests_.data());
    if (!set.ok() || set->nothing()) {
      if (outcome_.ok()) outcome_ = set.status();
      over_ = true;
      return;
    }
    bool lost = false;
    for (const int at : waits ? set->wait_for_some(count()) : set->look(count())) {
      const Status ended = check(set->take(at), expected_[static_cast<std::size_t>(at)]);
      lost = lost || ended.code() == IST_ERR_PEER_LEFT || ended.code() == IST_ERR_PEER_DEAD;
      if (outcome_.ok()) outcome_ = ended;
    }
    // A neighbour that was told of the same loss before it started sends nothing.
    if (lost) static_cast<void>(give_up());
  }

  // Requests that are not active have nothing to cancel, and are not waited for. What cannot be cancelled has met its partner, and ends.
  bool give_up() {
    for (const ist_request request : requests_) static_cast<void>(ist_cancel(request));
    bool whole = true;
    for (auto set = RequestSet::of(count(), requests_.data()); set.ok() && !set->nothing();
         set = RequestSet::of(count(), requests_.data()))
      for (const int at : set->wait_for_some(count())) {
        const Outcome ended = set->take(at);
        whole = whole && (ended.cancelled || !ended.status.ok());
      }
    over_ = true;
    return whole;
  }

  struct Expected {
    int rank;
    std::int64_t bytes;  // -1: a send
  };
  static Status check(const Outcome& ended, const Expected& expected) {
    const auto came = static_cast<std::int64_t>(ended.bytes.value);
    if (!ended.status.ok() || expected.bytes < 0 || came == expected.bytes) return ended.status;
    return {IST_ERR_ARGUMENT, "rank " + std::to_string(expected.rank) + " sent " + std::to_string(came) +
                                  " bytes, and this rank expects " + std::to_string(expected.bytes) +
                                  " of it; all ranks set the same fields"};
  }

  World& world_;
  const std::vector<Lane>& lanes_;
  Allocated out_;
  Allocated in_;
  std::vector<Piece> ins_{Piece{}};
  std::vector<ist_request> requests_;
  std::vector<Expected> expected_;
  bool over_ = true;   // what was started last
  bool whole_ = true;  // what a start that failed had begun could all be taken back
  Status outcome_;
};

}  // namespace

ist_buffer buffer_of(const Piece& piece) {
  ist_buffer buffer = ist_make_buffer(static_cast<std::uint32_t>(piece.kind), piece.object, piece.offset.value, piece.queue);
  buffer.device = piece.device;
  return buffer;
}

Result<Allocated> allocate(World& world, const Piece& beside, std::int64_t bytes) {
  const Bytes size{static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 1))};
  MemoryKind& kind = *world.kinds().find(beside.kind);
  auto made = beside.size == Bytes{} ? kind.allocate(std::max(beside.device, 0), size) : kind.allocate_beside(beside, size);
  if (!made.ok()) return made.status();
  made->ready = true;
  return Allocated{kind, *made};
}

Result<std::unique_ptr<Way>> by_messages(const WayWanted& wanted) {
  auto made = std::make_unique<Messages>(wanted.world, wanted.lanes);
  if (const Status opened = made->open(wanted); !opened.ok()) {
    static_cast<void>(made->close());
    return opened;
  }
  return std::unique_ptr<Way>{std::move(made)};
}

}  // namespace ist::halo
