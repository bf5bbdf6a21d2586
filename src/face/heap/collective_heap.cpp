#include "face/heap/collective_heap.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "face/message/calls.hpp"
#include "memory/word_changes.hpp"
#include "path/shm/doorbell.hpp"

namespace ist {
namespace {

constexpr std::uint64_t kUsualMost = std::uint64_t{64} << 30U;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 46U;  // beyond it there are no addresses

std::uint64_t rounded(std::uint64_t bytes, Bytes page) { return (bytes + page.value - 1) / page.value * page.value; }

// The barrier's words, and behind them the bell of the part's service.
Bytes control_stride(int pes, Bytes page) {
  return Bytes{rounded((FlagBarrier::size(pes) + PartService::Bells::kSize).value, page)};
}

}  // namespace

Result<std::unique_ptr<CollectiveHeap>> CollectiveHeap::create(World& world, const Communicator& parent,
                                                               const Wanted& wanted) {
  auto comm = split(parent, {0, parent.rank()}, world.contexts(), "heap");
  if (!comm.ok()) return comm.status();
  std::unique_ptr<CollectiveHeap> made{new CollectiveHeap{world, std::move(*comm)}};
  IST_TRY(made->open(wanted));
  return made;
}

CollectiveHeap::~CollectiveHeap() { give_up_copies(); }

Status CollectiveHeap::check(const Wanted& wanted, int& device) const {
  const auto kind = world().kinds().usable(static_cast<std::uint32_t>(wanted.kind));
  if (!kind.ok()) return kind.status();
  if ((*kind)->spaces() == nullptr)
    return {IST_ERR_KIND, "memory of kind " + std::string{(*kind)->name()} +
                              " cannot be mapped by other processes here; make a heap of IST_KIND_HOST, and copy"};
  if (device == IST_OWN_DEVICE) device = world().own_device(**kind);
  const auto devices = static_cast<int>((*kind)->devices().size());
  if (device < 0 || device >= devices)
    return {IST_ERR_ARGUMENT,
            "device is " + std::to_string(device) + "; the kind has devices 0 to " + std::to_string(devices - 1)};
  if (wanted.bytes == 0 || wanted.bytes > kMostBytes || wanted.most > kMostBytes)
    return {IST_ERR_ARGUMENT, "bytes is " + std::to_string(wanted.bytes) + " and most " + std::to_string(wanted.most) +
                                  "; a heap has 1 to " + std::to_string(kMostBytes) + " bytes at each PE"};
  if (wanted.most != 0 && wanted.most < wanted.bytes)
    return {IST_ERR_ARGUMENT, "most is " + std::to_string(wanted.most) + ", less than the " + std::to_string(wanted.bytes) +
                                  " bytes that the heap begins with"};
  return all_local("heap");
}

Status CollectiveHeap::open(const Wanted& wanted) {
  int device = wanted.device;
  Status own = check(wanted, device);
  IST_TRY(agree("ist_heap_create",
                {{"kind", static_cast<std::uint64_t>(wanted.kind)}, {"bytes", wanted.bytes}, {"most", wanted.most}}, own));
  MemoryKind& kind = **world().kinds().usable(static_cast<std::uint32_t>(wanted.kind));
  page_ = kind.spaces()->page();
  const Pe pe{comm().rank()};
  const int pes = comm().size();
  const std::uint64_t sync = IST_TEAM_SYNC_BYTES(static_cast<std::uint64_t>(pes));
  const Bytes bytes{rounded(wanted.bytes + sync, page_)};
  const std::uint64_t most = wanted.most != 0 ? wanted.most : std::max(kUsualMost, wanted.bytes);
  const Bytes stride{rounded(most + sync, page_)};
  const auto reach = agree_on_reach(kind, device);
  IST_TRY(reach.status());
  auto space = kind.spaces()->open({pe, pes, device, stride, *reach});
  const Bytes words = control_stride(pes, page_);
  auto control = world().kinds().host().spaces()->open({pe, pes, 0, words});
  own = !space.ok() ? space.status() : control.status();
  if (own.ok() && *reach == SpaceReach::device) own = make_abort_page(kind.id());
  // Now, since a kernel is loaded only when nothing runs on the device, and a word may be changed for one that waits for it.
  if (WordChanges* const changes = kind.word_changes(); changes != nullptr) changes->load_words(device);
  if (control.ok()) control_ = std::move(*control);
  if (space.ok())
    memory_ = std::make_unique<SymmetricHeap>(SymmetricHeap::Shape{kind.id(), device, pe, pes, bytes, stride, *reach},
                                              std::move(*space));
  IST_TRY(agree("ist_heap_create", {}, own));
  unreached_.resize(static_cast<std::size_t>(pes));
  IST_TRY(meet(memory_->space()));
  const auto served = is_anyone_served(*reach == SpaceReach::owner);
  IST_TRY(served.status());
  IST_TRY(extend(*control_, Offset{}, words, [](Pe) { return true; }));
  IST_TRY(extend_memory(Offset{}, bytes));
  device_view_.add(Offset{}, bytes);
  barrier_ = std::make_unique<FlagBarrier>(control_->base(), words, pe, pes);
  return *served ? start_serving() : Status{};
}

// Words alone are not worth a refusal of the heap: where a PE may have no thread for it, changes of those words are refused, by name.
Result<bool> CollectiveHeap::is_anyone_served(bool by_owners) {
  asked_by_.assign(static_cast<std::size_t>(comm().size()), true);
  if (by_owners) return true;
  struct Needs {
    std::uint32_t parts = 0, words = 0, has_no_thread = 0;
    std::int32_t beside = -1;
    std::array<std::uint64_t, 16> asks{};  // a bit for each PE that this one asks; of PEs beyond them anybody may
  };
  const auto bit = [](int pe) { return std::uint64_t{1} << static_cast<unsigned>(pe % 64); };
  Needs mine;
  mine.has_no_thread = world().settings().single_threaded() ? 1 : 0;
  for (int pe = 0; pe < comm().size(); ++pe) {
    if (!unreached_of(Pe{pe}).ok()) mine.parts = 1;
    if (!changes_words_of(Pe{pe}).ok()) mine.words = 1;
    if (const auto at = static_cast<std::size_t>(pe / 64);
        at < mine.asks.size() && !(unreached_of(Pe{pe}).ok() && changes_words_of(Pe{pe}).ok()))
      mine.asks[at] |= bit(pe);
    if (mine.beside < 0 && pe != comm().rank() && memory_->space().shares_device_with(rank_of(Pe{pe}))) mine.beside = pe;
  }
  std::vector<Needs> all;
  IST_TRY(exchange(comm(), "ist_heap_create", mine, all));
  for (const Needs& each : all) beside_.push_back(each.beside);
  if (const auto own = static_cast<std::size_t>(comm().rank() / 64); own < mine.asks.size())
    for (std::size_t pe = 0; pe < all.size(); ++pe) asked_by_[pe] = (all[pe].asks[own] & bit(comm().rank())) != 0;
  const auto any = [&](std::uint32_t Needs::*what) {
    return std::any_of(all.begin(), all.end(), [&](const Needs& each) { return each.*what != 0; });
  };
  return any(&Needs::parts) || (any(&Needs::words) && !any(&Needs::has_no_thread));
}

Status CollectiveHeap::start_serving() {
  Status own;
  const bool asked = std::find(asked_by_.begin(), asked_by_.end(), true) != asked_by_.end();
  if (asked && world().settings().single_threaded())
    own = {IST_ERR_SETTING,
           "a thread of the library's own serves this PE's part of the heap, which ISTHMUS_THREADS=\"single\" does not "
           "allow: leave that out, or make a heap of IST_KIND_HOST"};
  if (own.ok()) {
    const Bytes barrier = FlagBarrier::size(comm().size());
    const SymmetricHeap::Shape& shape = memory_->shape();
    const auto piece = [this](Offset offset, Bytes size) { return memory_->piece(memory_->shape().pe, offset, size); };
    service_ = std::make_unique<PartService>(
        world(), comm(), PartService::Part{shape.pe, shape.kind, shape.reach, piece},
        PartService::Bells{control_->base() + barrier.value, control_stride(comm().size(), page_)});
    own = service_->start(asked_by_);
  }
  return agree("ist_heap_create: serve", {}, own);
}

// PEs of one heap may have devices of several drivers: what one of them cannot, none does.
Result<SpaceReach> CollectiveHeap::agree_on_reach(MemoryKind& kind, int device) const {
  SpaceReach reach = kind.spaces()->reach(device);
  if (kind.id() == KindId::host) return reach;
  const bool mapped = reach == SpaceReach::processor && world().settings().device_ipc != "never";
  const SpaceReach mine = reach == SpaceReach::device || mapped ? reach : SpaceReach::owner;
  std::vector<SpaceReach> all;
  IST_TRY(exchange(comm(), "ist_heap_create", mine, all));
  return *std::max_element(all.begin(), all.end());
}

void CollectiveHeap::look_at_board() {
  if (engine().parts().board.first_dead() != kNobody) device_view_.tell_dead();
  Team::look_at_board();
}

// Addresses that lead nowhere are for nobody's loads and stores.
Status CollectiveHeap::has_addresses(Pe pe) const {
  if (memory_->shape().reach == SpaceReach::owner)
    return {
        IST_ERR_UNSUPPORTED,
        "no processor reaches the parts of this heap, whose PEs serve each other; use puts and gets, and of the own part "
        "ist_heap_buffer"};
  const Status& why = unreached_of(pe);
  if (why.ok()) return {};
  return {IST_ERR_UNREACHABLE,
          "the device of " + pe_text(comm().rank()) + " does not reach the part of " + pe_text(pe.value) + ", which " +
              pe_text(pe.value) + " serves to the host's calls alone: " + why.text() +
              "; make that call without kernels and streams, put these PEs on devices that reach each other, or make a heap "
              "of IST_KIND_HOST"};
}

Status CollectiveHeap::has_addresses() const {
  for (int pe = 0; pe < comm().size(); ++pe) IST_TRY(has_addresses(Pe{pe}));
  return {};
}

Status CollectiveHeap::one_device(int pe) const {
  const int other = beside_.empty() ? -1 : beside_[static_cast<std::size_t>(pe)];
  if (other < 0) return {};
  return {IST_ERR_UNSUPPORTED,
          pe_text(pe) + " and " + pe_text(other) +
              " have one device, where kernels of two processes need not run at once, so that they cannot meet in streams; "
              "meet on the host (ist_heap_barrier), or give each PE a device of its own (ISTHMUS_DEVICE)"};
}

Status CollectiveHeap::kernels_meet() const {
  for (int pe = 0; pe < comm().size(); ++pe) IST_TRY(one_device(pe));
  return {};
}

Status CollectiveHeap::kernels_change_words() const {
  for (int pe = 0; pe < comm().size(); ++pe)
    if (const Status lack = kernels_change_words_of(Pe{pe}); !lack.ok())
      return {lack.code(),
              "kernels with this view would change words of " + pe_text(pe) + " piece by piece: " + lack.text() +
                  " (ist_heap_atomic64 has it do so); ist_heap_device_view gives a view whose calls that change words say "
                  "so (isthmus/device/host_words.cuh), and whose `team` is for all others"};
  return {};
}

Status CollectiveHeap::view_from(int device, ist_device_view& view) {
  if (memory_->shape().kind == KindId::opencl)
    return {IST_ERR_KIND,
            "the heap is of OpenCL memory, of which kernels have the own part (ist_heap_buffer); views are of heaps of "
            "IST_KIND_CUDA and IST_KIND_HOST"};
  IST_TRY(has_addresses());
  IST_TRY(device_view_.fill(*this, device, view));
  look_at_board();  // who died before it had an abort word
  return {};
}

// The others help with it: a link is tried by both of its ends.
Status CollectiveHeap::meet(Space& space) {
  const SpaceCard mine = space.card();
  std::vector<SpaceCard> all;
  IST_TRY(exchange(comm(), "ist_heap_create", mine, all));
  Status own;
  for (int i = 1; own.ok() && i < comm().size(); ++i) {
    const int pe = (comm().rank() + i) % comm().size();
    own = meet(space, pe, all[static_cast<std::size_t>(pe)]);
  }
  return agree("ist_heap_create: meet", {}, own);
}

Status CollectiveHeap::meet(Space& space, int pe, const SpaceCard& card) {
  const bool never = memory_->shape().reach == SpaceReach::device && world().settings().device_ipc == "never";
  Status met = never ? Status{IST_ERR_UNREACHABLE, "ISTHMUS_DEVICE_IPC is never"} : space.meet(comm().to_world(pe), card);
  if (met.code() == IST_ERR_UNREACHABLE) {
    unreached_[static_cast<std::size_t>(pe)] = std::move(met);
    return {};
  }
  if (met.ok()) return {};
  return {met.code(), pe_text(comm().rank()) + " cannot reach memory of " + pe_text(pe) + ": " + met.text() +
                          "; put these PEs on devices that reach each other, or make a heap of IST_KIND_HOST"};
}

Status CollectiveHeap::extend_memory(Offset from, Bytes size) {
  return extend(memory_->space(), from, size, [this](Pe pe) { return unreached_of(pe).ok(); });
}

Status CollectiveHeap::grow(std::uint64_t bytes) {
  const std::uint64_t sync = IST_TEAM_SYNC_BYTES(static_cast<std::uint64_t>(comm().size()));
  const Bytes now = memory_->bytes();
  const Bytes stride = memory_->shape().stride;
  const Bytes wanted{bytes > kMostBytes ? ~std::uint64_t{0} : rounded(bytes + sync, page_)};
  Status own;
  if (wanted < now || wanted > stride)
    own = {IST_ERR_ARGUMENT, std::to_string(bytes) + " bytes were asked for; the heap has " +
                                 std::to_string(now.value - sync) + " and may grow to " +
                                 std::to_string(stride.value - sync) + " (`most` of ist_heap_create)"};
  IST_TRY(agree("ist_heap_grow", {{"bytes", bytes}}, own));
  if (wanted == now) return {};
  IST_TRY(extend_memory(Offset{now.value}, wanted - now));
  device_view_.add(Offset{now.value}, wanted - now);
  memory_->grow(wanted);
  return {};
}

Result<void*> CollectiveHeap::allocate(const char* call, std::uint64_t bytes, std::uint64_t alignment, bool zeroed,
                                       const Status& own) {
  IST_TRY(agree(call, {{"bytes", bytes}, {"alignment", alignment}}, own));
  if (bytes == 0) return nullptr;
  const auto offset = memory_->allocate(Bytes{bytes}, alignment);
  if (!offset.ok()) return offset.status();
  if (zeroed) {
    const Status filled = zero(*offset, Bytes{bytes});
    if (const Status all = agree("ist_heap_calloc: zero", {}, filled); !all.ok()) {
      static_cast<void>(memory_->release(*offset));
      return all;
    }
  }
  return static_cast<void*>(memory_->at(memory_->shape().pe, *offset));
}

Status CollectiveHeap::zero(Offset offset, Bytes size) {
  const Pe pe = memory_->shape().pe;
  if (on_host()) {
    std::memset(memory_->at(pe, offset), 0, size.value);
    return {};
  }
  const std::vector<std::byte> zeros(smaller(size, mebibytes(1)).value);
  for (Bytes done; done < size;) {
    const Bytes part = smaller(size - done, Bytes{zeros.size()});
    IST_TRY(copy_pieces(world(), memory_->piece(pe, offset + done, part), host_piece(zeros.data(), part)));
    done += part;
  }
  return {};
}

Status CollectiveHeap::release(const void* address) {
  const auto offset = memory_->locate(address, Bytes{1});
  Status own = quiet();
  if (own.ok()) own = offset.status();
  if (own.ok() && !memory_->begins_at(*offset))
    own = {IST_ERR_ARGUMENT, "nothing was allocated at the address; was it freed before, or is it the middle of something?"};
  IST_TRY(agree("ist_heap_free", {{"the offset of address", own.ok() ? offset->value : 0}}, own));
  return memory_->release(*offset);
}

Status CollectiveHeap::barrier() {
  IST_TRY(quiet());
  barrier_->check_in();
  int missing = 0;
  return wait([&]() -> Result<bool> { return (missing = barrier_->first_missing(missing)) == comm().size(); },
              [this] { return lost_in_barrier(); });
}

Status CollectiveHeap::end() {
  const Status copied = quiet();
  const Status all = agree("ist_heap_destroy", {});
  return copied.ok() ? all : copied;
}

bool CollectiveHeap::keep(const SharedShape& shape, bool only_ask) {
  const std::lock_guard lock(kept_mutex_);
  const bool kept = std::find(kept_.begin(), kept_.end(), shape) != kept_.end();
  if (!kept && !only_ask) kept_.push_back(shape);
  return kept;
}

Status CollectiveHeap::quiet() {
  Status failed = Team::quiet();
  if (service_) {
    Status served = service_->quiet();
    if (failed.ok()) failed = std::move(served);
  }
  if (!device_view_.has_proxy()) return failed;
  Status drained = device_view_.drain(engine().parts().board.first_dead() != kNobody);
  full_fence();
  return failed.ok() ? drained : failed;
}

// Who has come and then left is no loss.
Status CollectiveHeap::lost_in_barrier() const {
  const AbortBoard& board = engine().parts().board;
  if (board.changes() == 0) return {};
  if (const Rank dead = board.first_dead(); dead != kNobody) return engine().died(dead);
  for (int pe = 0; pe < comm().size(); ++pe) {
    const Rank rank = comm().to_world(pe);
    if (board.fate(rank) != AbortBoard::Fate::present && !barrier_->arrived(Pe{pe})) return engine().gone(rank);
  }
  return {};
}

}  // namespace ist
