#include "face/message/stream_packing.hpp"

#include <algorithm>

#include "request/engine.hpp"

namespace ist {
namespace {

// So many lists of runs are kept of messages that no graph has; what goes is freed when the device has come past it.
constexpr std::ptrdiff_t kMostLists = 32;

Piece beside(const ChannelEnd& end) { return {KindId::cuda, end.device(), end.card().address, Offset{}, Bytes{1}}; }

Result<bool> captures(const StreamPacking::Place& place) {
  const Piece own = beside(place.end);
  const auto found = place.channels.find_stream(place.stream, &own, true);
  return found.ok() ? Result<bool>{found->capturing} : found.status();
}

Status not_prepared(const char* what) {
  return {IST_ERR_NOT_CAPTURABLE, std::string{what} +
                                      ", which cannot be made while the stream is captured; make this very call, with this "
                                      "layout and count, once before the capture begins, or ist_prepare_layout_on"};
}

}  // namespace

// A form that is known already, perhaps of another layout, stands in for one that is equal: its list is on the device.
StreamPacking::Listed* StreamPacking::find(const SharedShape& shape) {
  auto known = std::find_if(lists_.begin(), lists_.end(), [&](const Listed& each) { return each.shape == shape; });
  if (known == lists_.end())
    known = std::find_if(lists_.begin(), lists_.end(), [&](const Listed& each) { return each.shape->form == shape->form; });
  return known == lists_.end() ? nullptr : &*known;
}

Result<PackWork> StreamPacking::work_for(const Place& place, Wanted wanted) {
  const Form& form = wanted.shape->form;
  const Bytes size{static_cast<std::uint64_t>(form.size)};
  const bool room = !blocks_.empty() && blocks_.back().piece().size >= size;
  if (room && form.strided()) return work_through_block(place.end, wanted);
  const auto capturing = captures(place);
  if (!capturing.ok()) return capturing.status();
  if (!room && *capturing)
    return not_prepared("the channel has no memory yet in which so long a message could lie in a row");
  if (!room) IST_TRY(make_block(place, size));
  if (!form.strided()) {
    Listed* known = find(wanted.shape);
    if (known == nullptr && *capturing)
      return not_prepared("the layout is no regular one, and the device has no list of its runs yet");
    if (known == nullptr) IST_TRY(bring_list(place, wanted));
    if (known == nullptr) known = &lists_.back();
    known->captured = known->captured || *capturing;
    wanted.shape = known->shape;
  }
  return work_through_block(place.end, wanted);
}

// What is there already stays: a graph may have been made with it.
Status StreamPacking::make_block(const Place& place, Bytes size) {
  auto block = place.engine.scratch().take(beside(place.end), size);
  if (!block.ok()) return block.status();
  blocks_.push_back(std::move(*block));
  return {};
}

Status StreamPacking::bring_list(const Place& place, const Wanted& wanted) {
  BoxPacking& packing = *place.engine.parts().kinds.find(KindId::cuda)->box_packing();
  IST_TRY(packing.prepare_at(place.end.device(), work_through_block(place.end, wanted)));
  const auto passing = [](const Listed& each) { return !each.captured; };
  if (std::count_if(lists_.begin(), lists_.end(), passing) >= kMostLists)
    lists_.erase(std::find_if(lists_.begin(), lists_.end(), passing));
  lists_.push_back({wanted.shape});
  return {};
}

PackWork StreamPacking::work_through_block(const ChannelEnd& end, const Wanted& wanted) const {
  const Bytes size{static_cast<std::uint64_t>(wanted.shape->form.size)};
  const Piece memory{KindId::cuda, end.device(), wanted.address, Offset{}, wanted.extent};
  const Piece packed = blocks_.back().piece().part(Offset{}, size);
  return {form_of(wanted.shape), memory, wanted.origin, packed, 0, wanted.shape->form.size, wanted.unpacks};
}

}  // namespace ist
