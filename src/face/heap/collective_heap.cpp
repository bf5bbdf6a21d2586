#include "face/heap/collective_heap.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/pause.hpp"
#include "collective/agreement.hpp"
#include "face/message/calls.hpp"
#include "memory/word_changes.hpp"
#include "path/shm/doorbell.hpp"

namespace ist {
namespace {

constexpr std::uint64_t kUsualMost = std::uint64_t{64} << 30U;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 46U;  // beyond it there are no addresses
// Descriptors of a heap are told from all others by the context of its communicator, which has 30 bits.
constexpr std::uint32_t kHeapDescriptors = 0x80000000U;
// Looks at a word, of some nanoseconds each, before anything else is done: what comes at all mostly comes at once.
constexpr int kLooksAtOnce = 200;
constexpr int kLooksBetween = 16;

std::uint64_t rounded(std::uint64_t bytes, Bytes page) { return (bytes + page.value - 1) / page.value * page.value; }

std::string pe_text(int pe) { return "PE " + std::to_string(pe); }

}  // namespace

Result<std::unique_ptr<CollectiveHeap>> CollectiveHeap::create(World& world, const Communicator& parent,
                                                               const Wanted& wanted) {
  auto comm = split(parent, {0, parent.rank()}, world.contexts(), "heap");
  if (!comm.ok()) return comm.status();
  std::unique_ptr<CollectiveHeap> made{new CollectiveHeap{world, std::move(*comm)}};
  IST_TRY(made->open(wanted));
  return made;
}

CollectiveHeap::~CollectiveHeap() = default;

Status CollectiveHeap::check(const Wanted& wanted, int& device) const {
  const auto kind = world_.kinds().usable(static_cast<std::uint32_t>(wanted.kind));
  if (!kind.ok()) return kind.status();
  if ((*kind)->spaces() == nullptr)
    return {IST_ERR_KIND, "memory of kind " + std::string{(*kind)->name()} +
                              " cannot be mapped by other processes here; make a heap of IST_KIND_HOST, and copy"};
  if (device == IST_OWN_DEVICE) device = world_.own_device(**kind);
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
  for (int pe = 0; pe < comm_->size(); ++pe)
    if (const Peer& peer = world_.peers().at(comm_->to_world(pe)); !peer.local)
      return {IST_ERR_UNREACHABLE,
              pe_text(pe) + " is on " + peer.host + "; all PEs of a heap must be on one host (ist_comm_split_local)"};
  return {};
}

Status CollectiveHeap::open(const Wanted& wanted) {
  int device = wanted.device;
  Status own = check(wanted, device);
  IST_TRY(agree("ist_heap_create",
                {{"kind", static_cast<std::uint64_t>(wanted.kind)}, {"bytes", wanted.bytes}, {"most", wanted.most}}, own));
  MemoryKind& kind = **world_.kinds().usable(static_cast<std::uint32_t>(wanted.kind));
  page_ = kind.spaces()->page();
  const Pe pe{comm_->rank()};
  const int pes = comm_->size();
  const std::uint64_t sync = IST_TEAM_SYNC_BYTES(static_cast<std::uint64_t>(pes));
  const Bytes bytes{rounded(wanted.bytes + sync, page_)};
  const std::uint64_t most = wanted.most != 0 ? wanted.most : std::max(kUsualMost, wanted.bytes);
  const Bytes stride{rounded(most + sync, page_)};
  auto space = kind.spaces()->open({pe, pes, device, stride});
  const Bytes words{rounded(FlagBarrier::size(pes).value, page_)};
  auto control = world_.kinds().host().spaces()->open({pe, pes, 0, words});
  own = !space.ok() ? space.status() : control.status();
  if (own.ok() && kind.id() != KindId::host) own = make_abort_page(kind.id());
  // Now, since a kernel is loaded only when nothing runs on the device, and a word may be changed for one that waits for it.
  if (WordChanges* const changes = kind.word_changes(); changes != nullptr) changes->load_words(device);
  if (control.ok()) control_ = std::move(*control);
  if (space.ok())
    memory_ =
        std::make_unique<SymmetricHeap>(SymmetricHeap::Shape{kind.id(), device, pe, pes, bytes, stride}, std::move(*space));
  IST_TRY(agree("ist_heap_create", {}, own));
  IST_TRY(meet(memory_->space()));
  IST_TRY(extend(*control_, Offset{}, words, {}));
  IST_TRY(extend(memory_->space(), Offset{}, bytes, {}));
  device_view_.add(Offset{}, bytes);
  barrier_ = std::make_unique<FlagBarrier>(control_->base(), words, pe, pes);
  return {};
}

Status CollectiveHeap::make_abort_page(KindId kind) {
  world_.kinds().mark_used(kind);
  auto page = world_.pool().take_locked(Bytes{sizeof(std::uint32_t)}, kind);
  if (!page.ok()) return page.status();
  abort_page_ = std::move(*page);
  std::memset(abort_page_.data(), 0, sizeof(std::uint32_t));
  return {};
}

const volatile std::uint32_t* CollectiveHeap::abort_word() const {
  if (abort_page_.empty()) return engine().parts().board.abort_word();
  return reinterpret_cast<const volatile std::uint32_t*>(abort_page_.data());
}

void CollectiveHeap::look_at_board() {
  if (engine().parts().board.first_dead() == kNobody) return;
  device_view_.tell_dead();
  if (abort_page_.empty()) return;
  std::atomic_ref(*reinterpret_cast<std::uint32_t*>(abort_page_.data())).store(1, std::memory_order_release);
}

// The others help with it: a link is tried by both of its ends.
Status CollectiveHeap::meet(Space& space) {
  const SpaceCard mine = space.card();
  std::vector<SpaceCard> all;
  IST_TRY(exchange(*comm_, "ist_heap_create", mine, all));
  Status own;
  for (int i = 1; own.ok() && i < comm_->size(); ++i) {
    const int pe = (comm_->rank() + i) % comm_->size();
    const Status met = space.meet(comm_->to_world(pe), all[static_cast<std::size_t>(pe)]);
    if (!met.ok())
      own = {met.code(), pe_text(comm_->rank()) + " cannot reach memory of " + pe_text(pe) + ": " + met.text() +
                             "; put these PEs on devices that reach each other, or make a heap of IST_KIND_HOST"};
  }
  return agree("ist_heap_create: meet", {}, own);
}

Status CollectiveHeap::agree(const char* call, std::initializer_list<AgreedNumber> values, const Status& own) {
  const std::span<const AgreedNumber> alike{values.begin(), values.size()};
  std::vector<Said> all;
  IST_TRY(say(*comm_, "ist_heap", call, own, alike, all));
  IST_TRY(own);
  if (const auto pe = first_unable(all))
    return {static_cast<Code>(all[*pe].code), pe_text(static_cast<int>(*pe)) + ": " + all[*pe].text.data()};
  for (std::size_t pe = 1; pe < all.size(); ++pe)
    if (all[pe].call != all[0].call)
      return {IST_ERR_ARGUMENT, "PE 0 called " + std::string{all[0].call.data()} + " where " +
                                    pe_text(static_cast<int>(pe)) + " called " + all[pe].call.data() +
                                    "; all PEs make the same calls in the same order"};
  if (const auto other = first_difference(all, alike.size())) {
    const auto given = [&](std::size_t pe) {
      return std::to_string(static_cast<std::uint64_t>(all[pe].numbers[other->number]));
    };
    return {IST_ERR_ARGUMENT, "PE 0 gave " + given(0) + " for " + alike[other->number].name + ", and " +
                                  pe_text(static_cast<int>(other->rank)) + " " + given(other->rank) +
                                  "; all PEs give the same"};
  }
  return {};
}

Status CollectiveHeap::extend(Space& space, Offset from, Bytes size, const Status& own) {
  Result<FileDescriptor> made = own.ok() ? space.make(from, size) : own;
  Status status = agree("ist_heap: make", {}, made.status());
  std::vector<FileDescriptor> all(static_cast<std::size_t>(comm_->size()));
  // What fails here is said when all have passed theirs on: nobody waits for one that has gone, and no descriptor is left behind.
  Status mapped = status.ok() ? pass_around(*made, all) : Status{};
  for (int pe = 0; status.ok() && pe < comm_->size(); ++pe)
    if (pe != comm_->rank() && mapped.ok()) mapped = space.attach(Pe{pe}, from, size, all[static_cast<std::size_t>(pe)]);
  if (status.ok()) status = agree("ist_heap: map", {}, mapped);
  if (!status.ok()) space.take_back(from, size);
  return status;
}

// Both ways at once: of descriptors that nobody has taken yet the system allows a process no more than it may open.
Status CollectiveHeap::pass_around(const FileDescriptor& own, std::vector<FileDescriptor>& all) {
  const std::uint32_t purpose = kHeapDescriptors | comm_->scope().context;
  std::vector<bool> sent(all.size(), false);
  std::vector<bool> came(all.size(), false);
  Status failed;
  IST_TRY(wait(
      [&]() -> Result<bool> {
        bool over = true;
        const std::lock_guard lock(engine().lock());
        for (int pe = 0; pe < comm_->size(); ++pe) {
          if (pe == comm_->rank()) continue;
          const auto p = static_cast<std::size_t>(pe);
          const Status passed = pass_once(pe, purpose, own, sent, came, all[p]);
          if (!passed.ok() && failed.ok()) failed = passed;
          over = over && sent[p] && came[p];
        }
        return over;
      },
      [this] { return anyone_lost(); }));
  return failed;
}

// A descriptor that cannot be sent or taken counts as if it had been.
Status CollectiveHeap::pass_once(int pe, std::uint32_t purpose, const FileDescriptor& own, std::vector<bool>& sent,
                                 std::vector<bool>& came, FileDescriptor& theirs) {
  const auto p = static_cast<std::size_t>(pe);
  const Rank rank = comm_->to_world(pe);
  Status failed;
  if (!sent[p]) {
    const auto gone = world_.peers().try_send_descriptor(rank, purpose, own.get());
    sent[p] = !gone.ok() || *gone;
    if (!gone.ok()) failed = gone.status();
  }
  if (!came[p]) {
    auto taken = world_.peers().take_descriptor(rank, purpose, 0.0);
    came[p] = !taken.ok() || *taken;
    if (!taken.ok()) return taken.status();
    if (*taken) theirs = std::move(**taken);
  }
  return failed;
}

Status CollectiveHeap::grow(std::uint64_t bytes) {
  const std::uint64_t sync = IST_TEAM_SYNC_BYTES(static_cast<std::uint64_t>(comm_->size()));
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
  IST_TRY(extend(memory_->space(), Offset{now.value}, wanted - now, {}));
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
    IST_TRY(copy_pieces(world_, memory_->piece(pe, offset + done, part), host_piece(zeros.data(), part)));
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
  return wait([&]() -> Result<bool> { return (missing = barrier_->first_missing(missing)) == comm_->size(); },
              [this] { return lost_in_barrier(); });
}

Status CollectiveHeap::end() {
  const Status copied = quiet();
  const Status all = agree("ist_heap_destroy", {});
  return copied.ok() ? all : copied;
}

// The fence puts stores of copies that this thread has made before whatever comes.
Status CollectiveHeap::quiet() {
  Status failed;
  while (started_.any()) {
    started_.step();
    if (auto over = started_.settle(); over && failed.ok()) failed = std::move(*over);
    const std::lock_guard lock(engine().lock());
    engine().progress();
  }
  if (device_view_.has_proxy()) {
    Status drained = device_view_.drain(engine().parts().board.first_dead() != kNobody);
    if (failed.ok()) failed = std::move(drained);
  }
  full_fence();
  return failed;
}

Status CollectiveHeap::anyone_lost() const {
  const AbortBoard& board = engine().parts().board;
  if (board.changes() == 0) return {};
  if (const Rank dead = board.first_dead(); dead != kNobody) return engine().died(dead);
  for (int pe = 0; pe < comm_->size(); ++pe)
    if (const Rank rank = comm_->to_world(pe); board.fate(rank) != AbortBoard::Fate::present) return engine().gone(rank);
  return {};
}

// Who has come and then left is no loss.
Status CollectiveHeap::lost_in_barrier() const {
  const AbortBoard& board = engine().parts().board;
  if (board.changes() == 0) return {};
  if (const Rank dead = board.first_dead(); dead != kNobody) return engine().died(dead);
  for (int pe = 0; pe < comm_->size(); ++pe) {
    const Rank rank = comm_->to_world(pe);
    if (board.fate(rank) != AbortBoard::Fate::present && !barrier_->arrived(Pe{pe})) return engine().gone(rank);
  }
  return {};
}

Status CollectiveHeap::nobody_left() const {
  const AbortBoard& board = engine().parts().board;
  if (board.changes() == 0) return {};
  if (const Rank dead = board.first_dead(); dead != kNobody) return engine().died(dead);
  Rank last = kNobody;
  for (int pe = 0; pe < comm_->size(); ++pe) {
    if (pe == comm_->rank()) continue;
    last = comm_->to_world(pe);
    if (board.fate(last) == AbortBoard::Fate::present) return {};
  }
  return last == kNobody ? Status{} : engine().gone(last);
}

Status CollectiveHeap::wait(const Ready& ready, const Lost& lost) {
  for (int i = 0; i < kLooksAtOnce; ++i) {
    const auto is = ready();
    if (!is.ok() || *is) return is.status();
    pause_briefly();
  }
  // Nobody rings a bell for a word: who sleeps does so for a moment.
  Patience patience{engine(), [] { return false; }};
  for (;;) {
    bool moved = false;
    {
      const std::lock_guard lock(engine().lock());
      moved = engine().progress();
    }
    move_on();
    // Asked before the look: what a PE did before it was lost is seen first.
    const Status why = lost();
    for (int i = 0; i < kLooksBetween; ++i) {
      const auto is = ready();
      if (!is.ok() || *is) return is.status();
    }
    IST_TRY(why);
    patience.after_look(moved, true);
  }
}

}  // namespace ist
