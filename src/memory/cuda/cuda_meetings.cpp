#include "memory/cuda/cuda_meetings.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace ist {
namespace {

// Behind those of reductions, by operation and element.
constexpr std::size_t kBarrier = kReductions * kElements;
constexpr std::size_t kBcast = kBarrier + 1;
static_assert(kBcast < CudaChannelHome::kMeetingKernels);
static_assert(kMostAtMeeting == meeting::kMost);
static_assert(meeting_piece(4).value == meeting::piece_for(4) && meeting_piece(5).value == meeting::piece_for(5));

std::size_t place_of(Reduction reduction, Element element) {
  return (static_cast<std::size_t>(reduction) - 1) * kElements + static_cast<std::size_t>(element);
}

// FNV-1a over what all ranks must give alike; never the number of who has given up.
std::uint32_t number_for(const MeetingCall& call) {
  const bool reduces = call.what == MeetingCall::What::reduce;
  std::uint32_t hash = 0x811c9dc5U;
  const auto mix = [&hash](std::uint64_t value) {
    for (int i = 0; i < 8; ++i) hash = (hash ^ static_cast<std::uint8_t>(value >> 8 * i)) * 0x01000193U;
  };
  mix(static_cast<std::uint64_t>(call.what));
  mix(call.size.value);
  mix(static_cast<std::uint64_t>(static_cast<std::int64_t>(call.root)));
  if (reduces) mix(place_of(call.reduction, call.element));
  return hash == meeting::kGaveUp ? 0 : hash;
}

}  // namespace

// ---- a seat ----

CudaSeat::~CudaSeat() {
  {
    const std::lock_guard lock(meetings_.mutex_);
    std::erase(meetings_.seats_, this);
  }
  CudaChannels& channels = meetings_.channels_;
  const std::lock_guard lock(channels.mutex_);
  if (channels.unfinished_) return;
  if (report_ != nullptr) channels.reports_.push_back(report_);
  if (gone_ != nullptr) channels.gone_of_seats_.push_back(gone_);
}

Status CudaSeat::connect(const std::vector<ChannelCard>& cards) {
  CudaChannels& channels = meetings_.channels_;
  for (std::size_t member = 0; member < cards.size(); ++member)
    if (static_cast<int>(member) != circle_.own) IST_TRY(channels.believe(circle_.members[member], home_, cards[member]));
  const std::lock_guard lock(channels.mutex_);
  std::vector<std::uint64_t> found;
  for (std::size_t member = 0; member < cards.size(); ++member) {
    if (static_cast<int>(member) == circle_.own) {
      found.push_back(own_);
      continue;
    }
    const auto mapped = channels.map(circle_.members[member], home_, cards[member]);
    if (!mapped.ok()) return mapped.status();
    found.push_back(*mapped);
  }
  mailboxes_ = std::move(found);
  return {};
}

std::optional<MeetingTrouble> CudaSeat::trouble() const {
  if (__atomic_load_n(&report_->failed, __ATOMIC_ACQUIRE) == 0) return std::nullopt;
  return MeetingTrouble{static_cast<int>(channel::load_relaxed(&report_->message)) - 1};
}

Bytes CudaSeat::part_size() const { return Bytes{meeting::room_for(ranks()) / ranks() / meeting::kUnit * meeting::kUnit}; }

std::uint64_t CudaSeat::part(int member) const {
  return own_ + sizeof(meeting::Mailbox) + static_cast<std::uint64_t>(member) * part_size().value;
}

meeting::MeetWork CudaSeat::work(const MeetingCall& call) const {
  meeting::MeetWork work{};
  work.own = reinterpret_cast<meeting::Mailbox*>(own_);
  work.from = reinterpret_cast<const std::byte*>(call.from);
  work.to = reinterpret_cast<std::byte*>(call.to);
  work.bytes = call.size.value;
  work.ranks = ranks();
  work.rank = static_cast<std::uint32_t>(circle_.own);
  work.root = call.root < 0 ? meeting::kEverybody : static_cast<std::uint32_t>(call.root);
  work.what = number_for(call);
  work.gone = gone_;
  work.report = report_;
  for (std::size_t member = 0; member < mailboxes_.size(); ++member)
    work.members[member] = reinterpret_cast<meeting::Mailbox*>(mailboxes_[member]);
  return work;
}

// ---- all of them ----

// Where it fails the home's maker unloads them.
Status CudaMeetings::load(CudaChannelHome& home) const {
  const CudaApi& api = channels_.api_;
  const std::string place = " on cuda device " + std::to_string(home.context->device);
  CUresult result = api.cuModuleLoadData(&home.meetings, isthmus_cuda_meeting_kernels);
  if (result != CUDA_SUCCESS) {
    home.meetings = nullptr;  // whatever the driver left there
    return cuda_error(api, result, "cuModuleLoadData of the kernels of meetings" + place);
  }
  const auto find = [&](std::size_t kernel, const std::string& name) -> Status {
    const CUresult found = api.cuModuleGetFunction(&home.meeting_kernels[kernel], home.meetings, name.c_str());
    if (found != CUDA_SUCCESS) return cuda_error(api, found, "cuModuleGetFunction of " + name + place);
    // Once without work, so that its code is there before any kernel waits.
    meeting::MeetWork nothing{};
    return channels_.launch(home.meeting_kernels[kernel], reinterpret_cast<std::uint64_t>(home.stream), 1, 32, &nothing);
  };
  IST_TRY(find(kBarrier, "isthmus_meet_barrier"));
  IST_TRY(find(kBcast, "isthmus_meet_bcast"));
  for (std::size_t reduction = 1; reduction <= kReductions; ++reduction)
    for (int type = 0; element_of(static_cast<ist_type>(type)); ++type) {
      const auto operation = static_cast<Reduction>(reduction);
      const Element element = *element_of(static_cast<ist_type>(type));
      const std::size_t kernel = place_of(operation, element);
      if (home.meeting_kernels[kernel] != nullptr || !applicable(operation, static_cast<ist_type>(type)).ok()) continue;
      IST_TRY(find(kernel, "isthmus_meet_" + kernel_name(operation, element).substr(std::strlen("isthmus_"))));
    }
  result = api.cuStreamSynchronize(home.stream);
  return result == CUDA_SUCCESS ? Status{} : cuda_error(api, result, "cuStreamSynchronize for meetings" + place);
}

// With the channels' lock.
Status CudaMeetings::open(CudaSeat& seat, bool compares) {
  CudaChannelHome& home = seat.home_;
  const ContextScope scope(channels_.api_, *home.context);
  IST_TRY(scope.status());
  const auto gone = channels_.gone_of_seat();
  if (!gone.ok()) return gone.status();
  seat.gone_ = *gone;
  const auto words = channels_.report();
  if (!words.ok()) return words.status();
  seat.report_ = *words;
  if (compares) {
    const auto log = channels_.note_log();
    if (!log.ok()) return log.status();
    seat.notes_.log = *log;
  }
  // So many do not meet, and of what goes by channels only rank 0 has parts.
  const bool apart = seat.ranks() > meeting::kMost && seat.circle_.own != 0;
  const auto half = channels_.take_half(home, apart ? sizeof(meeting::Mailbox) : meeting::size_for(seat.ranks()));
  if (!half.ok()) return half.status();
  seat.card_ = *half;
  seat.own_ = half->address;
  return {};
}

Result<std::unique_ptr<MeetingSeat>> CudaMeetings::take_seat(int device, const Circle& circle, bool compares) {
  std::unique_ptr<CudaSeat> made;  // outlives the lock, which its end takes
  {
    const std::lock_guard lock(channels_.mutex_);
    const auto home = channels_.home(device);
    if (!home.ok()) return home.status();
    made = std::make_unique<CudaSeat>(*this, **home, circle);
    if (Status opened = open(*made, compares); !opened.ok()) return opened;
  }
  const std::lock_guard lock(mutex_);
  seats_.push_back(made.get());
  return std::unique_ptr<MeetingSeat>(std::move(made));
}

CUfunction CudaMeetings::kernel_for(const CudaChannelHome& home, const MeetingCall& call) const {
  if (call.what == MeetingCall::What::barrier) return home.meeting_kernels[kBarrier];
  if (call.what == MeetingCall::What::bcast) return home.meeting_kernels[kBcast];
  return home.meeting_kernels[place_of(call.reduction, call.element)];
}

Status CudaMeetings::meet(MeetingSeat& given, std::uint64_t stream, const MeetingCall& call) {
  auto& seat = static_cast<CudaSeat&>(given);
  const CudaChannels::Current current(channels_.api_, seat.home_.context->handle);
  if (current.result() != CUDA_SUCCESS) return channels_.not_put(current.result(), "cuCtxPushCurrent", stream);
  const CUfunction kernel = kernel_for(seat.home_, call);
  meeting::MeetWork work = seat.work(call);
  const auto held = channels_.putting(stream);
  std::uint64_t done = 0;
  do {
    work.bytes = std::min(meeting::piece_for(seat.ranks()), call.size.value - done);
    const unsigned blocks = call.what == MeetingCall::What::barrier ? 1 : meeting::blocks_for(work.bytes);
    IST_TRY(channels_.launch(kernel, stream, blocks, meeting::threads_for(work.bytes), &work));
    ++seat.put_;
    done += work.bytes;
    if (call.from != 0) work.from += work.bytes;
    if (call.to != 0) work.to += work.bytes;
  } while (done < call.size.value);
  return {};
}

Status CudaMeetings::combine_parts(MeetingSeat& given, std::uint64_t stream, const MeetingCall& call) {
  auto& seat = static_cast<CudaSeat&>(given);
  const CudaChannels::Current current(channels_.api_, seat.home_.context->handle);
  if (current.result() != CUDA_SUCCESS) return channels_.not_put(current.result(), "cuCtxPushCurrent", stream);
  meeting::MeetWork work = seat.work(call);
  work.parts = reinterpret_cast<const std::byte*>(seat.part(0));
  work.stride = seat.part_size().value;
  return channels_.launch(kernel_for(seat.home_, call), stream, meeting::blocks_for(work.bytes),
                          meeting::threads_for(work.bytes), &work);
}

Status CudaMeetings::tell(MeetingSeat& given, std::uint64_t stream, const StreamNote& note) {
  const auto& seat = static_cast<CudaSeat&>(given);
  const CudaChannels::Current current(channels_.api_, seat.home_.context->handle);
  if (current.result() != CUDA_SUCCESS) return channels_.not_put(current.result(), "cuCtxPushCurrent", stream);
  const meeting::MeetWork all = seat.work({});
  meeting::TellWork work{all.own, all.ranks, all.rank, note, {}};
  std::copy(std::begin(all.members), std::end(all.members), std::begin(work.members));
  return channels_.launch(seat.home_, stream, {CudaChannelHome::tell_meeting, 1, 32, &work});
}

// Of a broadcast the root's was there before its bytes were, of other calls with a root that one has heard all.
Status CudaMeetings::compare(MeetingSeat& given, std::uint64_t stream, const MeetingCall& call) {
  const auto& seat = static_cast<CudaSeat&>(given);
  if (seat.notes_.log == nullptr) return {};
  const CudaChannels::Current current(channels_.api_, seat.home_.context->handle);
  if (current.result() != CUDA_SUCCESS) return channels_.not_put(current.result(), "cuCtxPushCurrent", stream);
  const bool root = call.root == seat.circle_.own;
  std::uint32_t heard = ~0U;
  if (call.what == MeetingCall::What::bcast) heard = root ? 0 : 1U << static_cast<unsigned>(call.root);
  if (call.what == MeetingCall::What::reduce && call.root >= 0 && !root) heard = 0;
  const meeting::MeetWork all = seat.work({});
  meeting::CompareWork work{all.own, seat.notes_.log, all.ranks, all.rank, heard};
  return channels_.launch(seat.home_, stream, {CudaChannelHome::compare_meeting, 1, 32, &work});
}

void CudaMeetings::add_looks(const CudaChannelHome& home, std::vector<CudaLook>& looks) {
  const std::lock_guard lock(mutex_);
  for (CudaSeat* seat : seats_)
    if (const std::uint64_t put = seat->put_.load(); &seat->home_ == &home && put != seat->over_)
      looks.push_back({seat->own_ + offsetof(meeting::Mailbox, met), offsetof(meeting::Mailbox, broken), put, &seat->over_});
}

void CudaMeetings::interrupt(Rank member) {
  const std::lock_guard lock(mutex_);
  for (CudaSeat* seat : seats_) {
    const auto& members = seat->circle_.members;
    if (std::find(members.begin(), members.end(), member) != members.end())
      __atomic_store_n(seat->gone_, 1U, __ATOMIC_RELEASE);
  }
}

void CudaMeetings::interrupt_all() {
  const std::lock_guard lock(mutex_);
  for (CudaSeat* seat : seats_) __atomic_store_n(seat->gone_, 1U, __ATOMIC_RELEASE);
}

}  // namespace ist
