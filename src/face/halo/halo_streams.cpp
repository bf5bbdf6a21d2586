// An exchange in a CUDA stream: a launch that packs, messages in the stream, a launch that unpacks.
#include <isthmus/stream.h>

#include <algorithm>

#include "face/halo/halo_exchange.hpp"

namespace ist::halo {
namespace {

// So long a message is under way before its receive, whatever the two devices are; of a longer one the send waits.
constexpr std::int64_t kUnderWay = std::int64_t{1} << 20;

std::uint64_t number_of(void* stream) { return reinterpret_cast<std::uint64_t>(stream); }

// Pairs of ranks in one order for all of them: whoever waits for a partner waits for one that is at this pair, or will be when pairs
// before it are over.
std::vector<Lane> by_pairs(const std::vector<Lane>& lanes, int rank) {
  std::vector<Lane> sorted;
  for (const Lane& lane : lanes)
    if (lane.rank != rank && lane.out_bytes + lane.in_bytes > 0) sorted.push_back(lane);
  const auto pair = [rank](const Lane& lane) { return std::pair{std::min(rank, lane.rank), std::max(rank, lane.rank)}; };
  std::sort(sorted.begin(), sorted.end(), [&](const Lane& one, const Lane& other) { return pair(one) < pair(other); });
  return sorted;
}

ist_buffer part_of(const Piece& piece, std::int64_t at, std::int64_t bytes) {
  return buffer_of(piece.part(Offset{static_cast<std::uint64_t>(at)}, Bytes{static_cast<std::uint64_t>(bytes)}));
}

}  // namespace

Status Exchange::can_be_in_streams() const {
  IST_TRY(expect(State::idle, "an exchange in a stream"));
  IST_TRY(expect_fields());
  if (options_.way != IST_HALO_MESSAGES)
    return {IST_ERR_UNSUPPORTED,
            "the exchange is one-sided; in streams there are exchanges by messages (IST_HALO_MESSAGES)"};
  for (const Share& share : shares_)
    if (share.beside.kind != KindId::cuda)
      return {IST_ERR_KIND, "field " + std::to_string(share.fields.front()) + " lies in " +
                                std::string{world_.kinds().find(share.beside.kind)->name()} +
                                " memory; in a CUDA stream all fields are CUDA memory"};
  return {};
}

Status Exchange::prepare_on(void* stream) {
  IST_TRY(can_be_in_streams());
  for (std::size_t s = 0; s < shares_.size(); ++s) {
    Share& share = shares_[s];
    if (share.in_streams) continue;
    for (const Lane& lane : by_pairs(share.lanes, rank_)) {
      const int sides = (lane.out_bytes > 0 ? IST_SENDS : 0) | (lane.in_bytes > 0 ? IST_RECEIVES : 0);
      const int code = ist_prepare_on(stream, lane.rank, static_cast<int>(s), sides, comm());
      if (code != IST_OK) return told(code);
    }
    share.in_streams = true;
  }
  Binding& binding = bindings_.back();
  if (binding.in_streams) return {};
  BoxPacking* const packing = world_.kinds().find(KindId::cuda)->box_packing();
  for (std::size_t s = 0; s < shares_.size(); ++s) {
    const Piece &out = shares_[s].way->out(), &in = shares_[s].way->in();
    if (const auto works = works_of(binding.packs[s], out, out); !works.empty()) IST_TRY(packing->prepare_packing(works));
    if (const auto works = works_of(binding.unpacks[s], out, in); !works.empty()) IST_TRY(packing->prepare_packing(works));
  }
  binding.in_streams = true;
  return {};
}

// Where all that this rank sends is under way at once, it is sent first, and nobody waits for this rank any more.
Status Exchange::move_in(const Share& share, std::size_t number, void* stream) const {
  const auto lanes = by_pairs(share.lanes, rank_);
  const Piece &out = share.way->out(), &in = share.way->in();
  const auto tag = static_cast<int>(number);
  const bool ahead = std::all_of(lanes.begin(), lanes.end(), [](const Lane& lane) { return lane.out_bytes <= kUnderWay; });
  const auto send = [&](const Lane& lane) {
    return lane.out_bytes == 0 ? int{IST_OK}
                               : ist_send_on(stream, part_of(out, lane.out_at, lane.out_bytes), lane.out_bytes, IST_BYTE,
                                             lane.rank, tag, comm());
  };
  const auto receive = [&](const Lane& lane) {
    return lane.in_bytes == 0 ? int{IST_OK}
                              : ist_recv_on(stream, part_of(in, lane.in_at, lane.in_bytes), lane.in_bytes, IST_BYTE,
                                            lane.rank, tag, comm());
  };
  if (ahead)
    for (const Lane& lane : lanes)
      if (const int code = send(lane); code != IST_OK) return told(code);
  for (const Lane& lane : lanes) {
    int code = IST_OK;
    if (ahead || lane.out_bytes == 0)
      code = receive(lane);
    else if (lane.in_bytes == 0)
      code = send(lane);
    else
      code = ist_sendrecv_on(stream, part_of(out, lane.out_at, lane.out_bytes), lane.out_bytes, IST_BYTE, lane.rank, tag,
                             part_of(in, lane.in_at, lane.in_bytes), lane.in_bytes, IST_BYTE, lane.rank, tag, comm());
    if (code != IST_OK) return told(code);
  }
  return {};
}

Status Exchange::exchange_on(void* stream) {
  IST_TRY(prepare_on(stream));
  BoxPacking* const packing = world_.kinds().find(KindId::cuda)->box_packing();
  const Binding& binding = bindings_.back();
  for (std::size_t s = 0; s < shares_.size(); ++s) {
    const Piece& out = shares_[s].way->out();
    if (const auto works = works_of(binding.packs[s], out, out); !works.empty())
      IST_TRY(packing->pack_in(number_of(stream), works));
  }
  for (std::size_t s = 0; s < shares_.size(); ++s) IST_TRY(move_in(shares_[s], s, stream));
  for (std::size_t s = 0; s < shares_.size(); ++s) {
    const Piece &out = shares_[s].way->out(), &in = shares_[s].way->in();
    if (const auto works = works_of(binding.unpacks[s], out, in); !works.empty())
      IST_TRY(packing->pack_in(number_of(stream), works));
  }
  return {};
}

}  // namespace ist::halo
