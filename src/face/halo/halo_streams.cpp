// An exchange in a CUDA stream: a launch that packs, messages in the stream, a launch that unpacks.
#include <isthmus/stream.h>

#include "face/halo/halo_exchange.hpp"
#include "memory/channels.hpp"

namespace ist::halo {
namespace {

std::uint64_t number_of(void* stream) { return reinterpret_cast<std::uint64_t>(stream); }

ist_buffer part_of(const Piece& piece, std::int64_t at, std::int64_t bytes) {
  return buffer_of(piece.part(Offset{static_cast<std::uint64_t>(at)}, Bytes{static_cast<std::uint64_t>(bytes)}));
}

}  // namespace

Status Exchange::can_be_in_streams() const {
  IST_TRY(expect(State::idle));
  if (options_.way != IST_HALO_MESSAGES)
    return {IST_ERR_UNSUPPORTED,
            "the exchange is one-sided; in streams there are exchanges by messages (IST_HALO_MESSAGES)"};
  for (const Share& share : plan_.shares)
    if (share.beside.kind != KindId::cuda)
      return {IST_ERR_KIND, "field " + std::to_string(share.fields.front()) + " lies in " +
                                std::string{world_.kinds().find(share.beside.kind)->name()} +
                                " memory; in a CUDA stream all fields are CUDA memory"};
  return {};
}

Status Exchange::prepare_on(void* stream) {
  IST_TRY(can_be_in_streams());
  for (std::size_t s = 0; s < plan_.shares.size(); ++s) {
    Share& share = plan_.shares[s];
    if (share.in_streams) continue;
    for (const Lane& lane : share.lanes.in_turn) {
      const int sides = (lane.out_bytes > 0 ? IST_SENDS : 0) | (lane.in_bytes > 0 ? IST_RECEIVES : 0);
      const int code = ist_prepare_on(stream, lane.rank, static_cast<int>(s), sides, comm());
      if (code != IST_OK) return told(code);
    }
    share.in_streams = true;
  }
  Binding& binding = plan_.bindings.back();
  if (binding.in_streams) return {};
  BoxPacking* const packing = world_.kinds().find(KindId::cuda)->box_packing();
  for (const auto* packers : {&binding.packs, &binding.unpacks})
    for (const Packer& packer : *packers)
      if (!packer.tasks.empty()) IST_TRY(packing->prepare_packing(packer.works.front()));
  binding.in_streams = true;
  return {};
}

// A binding with lists of runs on the device stays for the graphs that may hold them.
Status Exchange::note_capture(Binding& binding, void* stream) const {
  if (binding.captured || !binding.has_lists()) return {};
  const auto place =
      world_.kinds().find(KindId::cuda)->channels()->find_stream(number_of(stream), &binding.fields.front().memory, true);
  if (!place.ok()) return place.status();
  binding.captured = place->capturing;
  return {};
}

// Where all that this rank sends is under way at once, it is sent first, and nobody waits for this rank any more.
Status Exchange::move_in(const Share& share, std::size_t number, void* stream) const {
  const auto& lanes = share.lanes.in_turn;
  const Piece &out = share.way->out(), &in = share.way->ins().front();
  const auto tag = static_cast<int>(number);
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
  if (share.ahead)
    for (const Lane& lane : lanes)
      if (const int code = send(lane); code != IST_OK) return told(code);
  for (const Lane& lane : lanes) {
    int code = IST_OK;
    if (share.ahead || lane.out_bytes == 0)
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
  Binding& binding = plan_.bindings.back();
  IST_TRY(note_capture(binding, stream));
  const auto put = [&](const std::vector<Packer>& packers) -> Status {
    for (const Packer& packer : packers)
      if (!packer.tasks.empty()) IST_TRY(packing->pack_in(number_of(stream), packer.works.front()));
    return {};
  };
  IST_TRY(put(binding.packs));
  for (std::size_t s = 0; s < plan_.shares.size(); ++s) IST_TRY(move_in(plan_.shares[s], s, stream));
  return put(binding.unpacks);
}

}  // namespace ist::halo
