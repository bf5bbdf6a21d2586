// Packed cells in messages: requests that are made once, and started for each exchange.
#include <algorithm>

#include "face/halo/halo_grid.hpp"
#include "face/halo/halo_way.hpp"

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
    for (const Lane& lane : lanes_) {
      if (lane.rank == wanted.rank) continue;
      if (lane.in_bytes > 0) IST_TRY(add(in_, lane.in_at, lane.in_bytes, lane.rank, wanted, ist_recv_init));
      expected_.resize(requests_.size(), lane.in_bytes);
      if (lane.out_bytes > 0) IST_TRY(add(out_, lane.out_at, lane.out_bytes, lane.rank, wanted, ist_send_init));
      expected_.resize(requests_.size(), -1);
    }
    statuses_.resize(requests_.size());
    return {};
  }
  ~Messages() override = default;

  Status start() override {
    if (requests_.empty()) return {};
    const int code = ist_startall(static_cast<int>(requests_.size()), requests_.data());
    return code == IST_OK ? Status{} : told(code);
  }

  Status wait() override {
    if (requests_.empty()) return {};
    const int code = ist_waitall(static_cast<int>(requests_.size()), requests_.data(), statuses_.data());
    if (code == IST_OK) return check_lengths();
    const std::string text = ist_error_text();
    for (const ist_status& status : statuses_)
      if (code == IST_ERR_IN_STATUS && status.code != IST_OK) return {static_cast<Code>(status.code), text};
    return {static_cast<Code>(code), text};
  }

  const Piece& out() const override { return out_; }
  const Piece& in() const override { return in_; }

  Status close() override {
    for (ist_request& request : requests_) ist_request_free(&request);
    requests_.clear();
    for (Piece* const piece : {&out_, &in_}) {
      if (piece->object != 0) world_.kinds().find(piece->kind)->release_later(*piece);
      *piece = {};
    }
    return {};
  }

 private:
  Status take(Piece& piece, const Piece& beside, std::int64_t bytes) {
    auto made = allocate(world_, beside, bytes);
    if (made.ok()) piece = *made;
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

  Status check_lengths() const {
    for (std::size_t i = 0; i < statuses_.size(); ++i)
      if (expected_[i] >= 0 && statuses_[i].bytes != expected_[i])
        return {IST_ERR_ARGUMENT, "rank " + std::to_string(statuses_[i].source) + " sent " +
                                      std::to_string(statuses_[i].bytes) + " bytes, and this rank expects " +
                                      std::to_string(expected_[i]) + " of it; all ranks set the same fields"};
    return {};
  }

  World& world_;
  const std::vector<Lane>& lanes_;
  Piece out_, in_;
  std::vector<ist_request> requests_;
  std::vector<std::int64_t> expected_;  // bytes; -1: a send
  std::vector<ist_status> statuses_;
};

}  // namespace

ist_buffer buffer_of(const Piece& piece) {
  ist_buffer buffer = ist_make_buffer(static_cast<std::uint32_t>(piece.kind), piece.object, piece.offset.value, piece.queue);
  buffer.device = piece.device;
  return buffer;
}

Result<Piece> allocate(World& world, const Piece& beside, std::int64_t bytes) {
  const Bytes size{static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 1))};
  auto made = world.kinds().find(beside.kind)->allocate_beside(beside, size);
  if (made.ok()) made->ready = true;
  return made;
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
