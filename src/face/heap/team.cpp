#include "face/heap/team.hpp"

#include <cstring>

#include "base/pause.hpp"
#include "face/message/world.hpp"
#include "heap/word.hpp"
#include "memory/stream_order.hpp"
#include "path/shm/doorbell.hpp"

namespace ist {
namespace {

// Descriptors of a team are told from all others by the context of its communicator, which has 30 bits.
constexpr std::uint32_t kTeamDescriptors = 0x80000000U;
// Looks at a word, of some nanoseconds each, before anything else is done: what comes at all mostly comes at once.
constexpr int kLooksAtOnce = 200;
constexpr int kLooksBetween = 16;

}  // namespace

std::string pe_text(int pe) { return "PE " + std::to_string(pe); }

Team::~Team() = default;

Status Team::all_local(const char* noun) const {
  for (int pe = 0; pe < comm_->size(); ++pe)
    if (const Peer& peer = world_.peers().at(comm_->to_world(pe)); !peer.local)
      return {IST_ERR_UNREACHABLE, pe_text(pe) + " is on " + peer.host + "; all PEs of a " + noun +
                                       " must be on one host (ist_comm_split_local)"};
  return {};
}

Status Team::make_abort_page(KindId kind) {
  world_.kinds().mark_used(kind);
  auto page = world_.pool().take_locked(Bytes{sizeof(std::uint32_t)}, kind);
  if (!page.ok()) return page.status();
  abort_page_ = std::move(*page);
  std::memset(abort_page_.data(), 0, sizeof(std::uint32_t));
  return {};
}

const volatile std::uint32_t* Team::abort_word() const {
  if (abort_page_.empty()) return engine().parts().board.abort_word();
  return reinterpret_cast<const volatile std::uint32_t*>(abort_page_.data());
}

const volatile std::uint32_t* Team::abort_word_for_kernels() const {
  MemoryKind* const cuda = world_.kinds().find(KindId::cuda);
  if (StreamOrder* const order = cuda != nullptr ? cuda->stream_order() : nullptr) order->let_kernels_wait();
  return abort_word();
}

void Team::look_at_board() {
  if (abort_page_.empty() || engine().parts().board.first_dead() == kNobody) return;
  std::atomic_ref(*reinterpret_cast<std::uint32_t*>(abort_page_.data())).store(1, std::memory_order_release);
}

Status Team::agree(const char* call, std::initializer_list<AgreedNumber> values, const Status& own) {
  const std::span<const AgreedNumber> alike{values.begin(), values.size()};
  std::vector<Said> all;
  IST_TRY(say(*comm_, label_, call, own, alike, all));
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

Status Team::extend(Space& space, Offset from, Bytes size, const std::function<bool(Pe)>& takes) {
  const std::string made_by = std::string{label_} + ": make", mapped_by = std::string{label_} + ": map";
  const Result<FileDescriptor> made = space.make(from, size);
  Status status = agree(made_by.c_str(), {}, made.status());
  std::vector<FileDescriptor> all(static_cast<std::size_t>(comm_->size()));
  // What fails here is said when all have passed theirs on: nobody waits for one that has gone, and no descriptor is left behind.
  Status mapped = status.ok() && made->valid() ? pass_around(*made, all) : Status{};
  for (int pe = 0; status.ok() && pe < comm_->size(); ++pe)
    if (pe != comm_->rank() && takes(Pe{pe}) && mapped.ok())
      mapped = space.attach(Pe{pe}, from, size, all[static_cast<std::size_t>(pe)]);
  if (status.ok()) status = agree(mapped_by.c_str(), {}, mapped);
  if (!status.ok()) space.take_back(from, size);
  return status;
}

// Both ways at once: of descriptors that nobody has taken yet the system allows a process no more than it may open.
Status Team::pass_around(const FileDescriptor& own, std::vector<FileDescriptor>& all) {
  const std::uint32_t purpose = kTeamDescriptors | comm_->scope().context;
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
Status Team::pass_once(int pe, std::uint32_t purpose, const FileDescriptor& own, std::vector<bool>& sent,
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

// The fence puts stores of copies that this thread has made before whatever comes.
Status Team::quiet() {
  Status failed;
  while (started_.any()) {
    started_.step();
    if (auto over = started_.settle(); over && failed.ok()) failed = std::move(*over);
    const std::lock_guard lock(engine().lock());
    engine().progress();
  }
  full_fence();
  return failed;
}

Status Team::anyone_lost() const {
  const AbortBoard& board = engine().parts().board;
  if (board.changes() == 0) return {};
  if (const Rank dead = board.first_dead(); dead != kNobody) return engine().died(dead);
  for (int pe = 0; pe < comm_->size(); ++pe)
    if (const Rank rank = comm_->to_world(pe); board.fate(rank) != AbortBoard::Fate::present) return engine().gone(rank);
  return {};
}

Status Team::nobody_left() const {
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

Status Team::wait(const Ready& ready, const Lost& lost) {
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
    patience.after_look_at_words(moved);
  }
}

}  // namespace ist
