// Loans that end without a word: their owner has freed the memory, and lends nothing more to those that have it open, which would take up
// the device for ever. So a borrower's thread asks after what it has not used for a while, at the lender's door.
#include <algorithm>
#include <new>

#include "memory/cuda/cuda_borrowing.hpp"
#include "memory/cuda/cuda_lending.hpp"

namespace ist {
namespace {

// So many pieces of a pool are looked at for one question: once all that were lent are freed, it has ended.
constexpr std::size_t kPiecesAtOnce = 64;
// After so many mappings of all lenders is asked at a time; the others get their turn.
constexpr std::size_t kAskedInARound = 16 * EndQuestion::kMost;
// Who does not answer in this time is asked again in the next round: meanwhile nothing is opened.
constexpr std::chrono::milliseconds kEndPatience{100};

}  // namespace

// ---- the lender, in the thread of its door ----

void CudaLending::add_witnesses(std::uint64_t number, std::vector<Witness>& witnesses) {
  if (const auto found = lent_.find(number); found != lent_.end()) witnesses.push_back({number, found->second.start});
  if (!pools_.contains(number)) return;
  std::size_t pieces = 0;
  for (auto at = lent_.begin(); at != lent_.end() && pieces < kPiecesAtOnce; ++at) {
    if (at->second.pool != number) continue;
    witnesses.push_back({at->first, at->second.start});
    ++pieces;
  }
}

// The driver is asked without the lock, which messages take.
void CudaLending::look_at(const EndQuestion& question) {
  std::vector<Witness> witnesses;
  {
    const std::lock_guard lock(mutex_);
    for (const std::uint64_t number : question.numbers)
      if (number != 0) add_witnesses(number, witnesses);
  }
  for (const Witness& witness : witnesses) {
    const PointerFacts facts = ask_driver(api_, witness.start);
    if (facts.known && facts.buffer_id == witness.allocation) continue;
    const std::lock_guard lock(mutex_);
    const auto found = lent_.find(witness.allocation);
    if (found != lent_.end() && found->second.start == witness.start) end_loan(found);
  }
}

// What is not among the loans has ended. Who asked needs not be told of it with a loan.
Door::Answer CudaLending::which_ended(const DoorNote& asked) {
  auto question = taken_from<EndQuestion>(asked);
  DoorNote note;
  try {
    look_at(question);
  } catch (const std::bad_alloc&) {
    return {DoorNote::refusal({IST_ERR_MEMORY, "the lender has no memory left to look"}), {}};
  }
  const std::lock_guard lock(mutex_);
  const auto news = ended_.find(Rank{question.borrower});
  for (std::uint64_t& number : question.numbers) {
    if (number == 0) continue;
    if (lent_.contains(number) || pools_.contains(number))
      number = 0;
    else if (news != ended_.end())
      std::erase(news->second, number);
  }
  if (news != ended_.end() && news->second.empty()) ended_.erase(news);
  put_into(note, question);
  return {note, {}};
}

// ---- the borrower, in the thread that opens and closes ----

bool CudaBorrowing::keeps_any() const {
  return std::any_of(mappings_.begin(), mappings_.end(),
                     [](const auto& entry) { return entry.second.state == Mapping::State::mapped; });
}

// What was not used since the last look, in turn, and is kept for nobody but later messages.
std::vector<CudaBorrowing::Idle> CudaBorrowing::idle() {
  std::vector<Idle> found;
  found.reserve(kAskedInARound);
  const std::lock_guard lock(mutex_);
  auto at = asked_to_ ? mappings_.upper_bound(*asked_to_) : mappings_.begin();
  for (std::size_t left = mappings_.size(); left > 0 && found.size() < kAskedInARound; --left, ++at) {
    if (at == mappings_.end()) at = mappings_.begin();
    const auto& [key, mapping] = *at;
    asked_to_ = key;
    // The driver closes a handle when the device is done, and holds up all launches meanwhile, for which a kernel may wait. With the next loan, then.
    const auto stays = [&] { return mapping.memory->way == Loan::Way::handle && quiet_.kernels_may_wait(); };
    const bool kept = mapping.state != Mapping::State::mapped || mapping.keepers > 0 || stays();
    if (!kept && mapping.used <= idle_since_) found.push_back({key, mapping.ordered, mapping.door, mapping.borrower});
  }
  idle_since_ = borrows_;
  return found;
}

// Behind a door that is not there any more is nobody who lends.
void CudaBorrowing::ask_lender(std::span<Idle> of_one) const {
  auto call = DoorCall::connect(of_one.front().door, ends_);
  if (!call.ok()) {
    for (Idle& one : of_one) one.ended = call.status().code() == IST_ERR_PEER_LEFT;
    return;
  }
  for (std::size_t at = 0; at < of_one.size(); at += EndQuestion::kMost) {
    const auto some = of_one.subspan(at, std::min(EndQuestion::kMost, of_one.size() - at));
    EndQuestion question;
    question.borrower = some.front().borrower;
    for (std::size_t i = 0; i < some.size(); ++i) question.numbers[i] = some[i].key.number;
    DoorNote note = door_note(DoorSubject::ended, 0);
    put_into(note, question);
    const auto answer = call->ask(note, nullptr, kEndPatience);
    if (!answer.ok()) return;
    const auto ended = taken_from<EndQuestion>(*answer);
    for (std::size_t i = 0; i < some.size(); ++i) some[i].ended = ended.numbers[i] == some[i].key.number;
  }
}

// Where memory runs out, the next round does it.
void CudaBorrowing::let_go_of_ended() try {
  std::vector<Idle> asked = idle();
  for (std::size_t from = 0, to = 0; from < asked.size(); from = to) {
    const auto same = [&](const Idle& one) {
      return one.key.lender == asked[from].key.lender && one.door.name == asked[from].door.name;
    };
    while (to < asked.size() && same(asked[to])) ++to;
    ask_lender(std::span{asked}.subspan(from, to - from));
  }
  std::vector<Dropped> dropped;  // outlives the lock
  dropped.reserve(asked.size());
  const std::lock_guard lock(mutex_);
  for (const Idle& one : asked) {
    const auto known = one.ended ? mappings_.find(one.key) : mappings_.end();
    if (known != mappings_.end() && known->second.ordered == one.ordered && known->second.keepers == 0)
      dropped.push_back(drop(known));
  }
} catch (const std::bad_alloc&) {
  return;
}

}  // namespace ist
