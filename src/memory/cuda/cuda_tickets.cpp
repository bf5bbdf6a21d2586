#include "memory/cuda/cuda_tickets.hpp"

#include <algorithm>
#include <utility>

namespace ist {
namespace {

// How long "not yet" is believed of the copies behind one that was asked after: about twice as long as asking takes (1.3 us on the
// machines of docs/measured), so that of many copies in flight one is asked after in each round and not all.
constexpr std::chrono::microseconds kBelieved{3};
// With fewer in flight it is not worth asking after the last one first.
constexpr std::uint32_t kWorthALeap = 4;

}  // namespace

CudaTickets::~CudaTickets() {
  // One that has not happened yet may be destroyed: the driver keeps what it needs.
  for (CudaTicket& ticket : table_) {
    if (lives(api_, *ticket.context)) api_.cuEventDestroy_v2(ticket.event);
  }
}

Result<CudaTicket*> CudaTickets::take(CudaContext& context, CudaLane* lane) {
  if (context.spare.empty() && !dropped_.empty()) sweep();
  CudaTicket* ticket = nullptr;
  if (!context.spare.empty()) {
    ticket = context.spare.back();
    context.spare.pop_back();
  } else {
    CUevent event = nullptr;
    const CUresult result = api_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    if (result != CUDA_SUCCESS) {
      return cuda_error(api_, result, "cuEventCreate on cuda device " + std::to_string(context.device));
    }
    ticket = &table_.emplace_back();
    ticket->event = event;
    ticket->context = &context;
    ticket->index = static_cast<std::uint32_t>(table_.size() - 1);
    // Room for all of them, so that recycling and dropping never allocate.
    context.spare.reserve(table_.size());
    dropped_.reserve(table_.size());
  }
  ticket->lane = lane;
  ticket->state = CudaTicket::State::live;
  ticket->unasked = false;
  ticket->queued = false;
  ticket->sight = {};
  ticket->begun_after = lane != nullptr ? lane->recorded : 0;
  ticket->number = 0;
  ++ticket->generation;
  if (lane != nullptr) ++lane->unfinished;
  return ticket;
}

CudaTicket* CudaTickets::find(std::uint64_t id) {
  const std::uint64_t index = id & 0xffffffffu;
  if (index >= table_.size()) return nullptr;
  CudaTicket& ticket = table_[index];
  return ticket.id() == id && ticket.state == CudaTicket::State::live ? &ticket : nullptr;
}

void CudaTickets::recorded(CudaTicket& ticket) {
  if (ticket.lane == nullptr) return;
  ticket.number = ++ticket.lane->recorded;
  ticket.lane->last = &ticket;
}

// Threads may put copies into one lane at a time, so that the numbers are not quite the order of the stream. But whatever was
// recorded before another was begun is before that in the stream.
CudaTickets::Known CudaTickets::known(const CudaTicket& ticket) {
  if (ticket.lane == nullptr || ticket.number == 0) return Known::nothing;
  const CudaLane& lane = *ticket.lane;
  if (ticket.number <= lane.passed) return Known::over;
  const bool behind = lane.blocked != 0 && lane.blocked <= ticket.begun_after;
  return behind && CudaLane::Clock::now() - lane.asked < kBelieved ? Known::not_yet : Known::nothing;
}

// Somebody may finish that one meanwhile, and its event may be recorded anew: an answer that it is over is true of it all the same.
std::optional<CudaRecord> CudaTickets::last_behind(const CudaTicket& ticket) {
  if (ticket.lane == nullptr || ticket.number == 0) return std::nullopt;
  const CudaLane& lane = *ticket.lane;
  if (lane.unfinished < kWorthALeap || lane.last == nullptr || lane.last->lane != &lane) return std::nullopt;
  if (ticket.number > lane.last->begun_after || lane.last->number == 0) return std::nullopt;
  if (CudaLane::Clock::now() - lane.leapt < kBelieved) return std::nullopt;
  return CudaRecord{*lane.last};
}

void CudaTickets::is_over(const CudaRecord& ticket) {
  if (ticket.lane == nullptr || ticket.number == 0) return;
  CudaLane& lane = *ticket.lane;
  lane.passed = std::max(lane.passed, ticket.begun_after);
  if (lane.blocked <= ticket.number) lane.blocked = 0;
}

void CudaTickets::is_not_over(const CudaRecord& ticket) {
  if (ticket.lane == nullptr || ticket.number == 0) return;
  CudaLane& lane = *ticket.lane;
  const auto now = CudaLane::Clock::now();
  if (ticket.number == lane.recorded) lane.leapt = now;
  // The first of those that are not over says most.
  if (lane.blocked != 0 && lane.blocked < ticket.number && now - lane.asked < kBelieved) return;
  lane.blocked = ticket.number;
  lane.asked = now;
}

CUresult CudaTickets::ask(const CudaRecord& ticket) const {
  if (!lives(api_, *ticket.context)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return api_.cuEventQuery(ticket.event);
}

void CudaTickets::recycle(CudaTicket& ticket) {
  if (ticket.word) sights_.give_back(*std::exchange(ticket.word, std::nullopt));
  if (ticket.lane != nullptr) --ticket.lane->unfinished;
  ticket.lane = nullptr;
  ticket.state = CudaTicket::State::spare;
  ticket.context->spare.push_back(&ticket);
}

void CudaTickets::drop(CudaTicket& ticket) {
  if (ticket.unasked) return recycle(ticket);
  ticket.state = CudaTicket::State::dropped;
  dropped_.push_back(&ticket);
}

void CudaTickets::sweep() {
  std::erase_if(dropped_, [this](CudaTicket* ticket) {
    if (ask(*ticket) == CUDA_ERROR_NOT_READY) return false;
    recycle(*ticket);  // an error counts as the end: nobody is left to hear of it
    return true;
  });
}

Result<CudaLane*> CudaTickets::choose_lane(CudaContext& context, CopyDirection direction) {
  auto& lanes = context.lanes[static_cast<std::size_t>(direction)];
  const auto less = [](const auto& a, const auto& b) { return a->unfinished < b->unfinished; };
  auto least = std::min_element(lanes.begin(), lanes.end(), less);
  if (least != lanes.end() && (*least)->unfinished > 0 && !dropped_.empty()) {
    sweep();
    least = std::min_element(lanes.begin(), lanes.end(), less);
  }
  if (least != lanes.end() && ((*least)->unfinished == 0 || lanes.size() >= kMostLanes)) return least->get();
  auto lane = std::make_unique<CudaLane>();
  const CUresult result = api_.cuStreamCreate(&lane->stream, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) {
    return cuda_error(api_, result, "cuStreamCreate on cuda device " + std::to_string(context.device));
  }
  lanes.push_back(std::move(lane));
  return lanes.back().get();
}

}  // namespace ist
