#include "memory/cuda/cuda_borrowing.hpp"

#include <algorithm>
#include <chrono>

#include "base/log.hpp"
#include "base/quiet_thread.hpp"

namespace ist {
namespace {

// For who waits for an opening; the closing of what lay there before may be ahead of it.
constexpr std::chrono::seconds kOpeningPatience{30};
// So often lenders are asked after what is open and was not used since the time before: a few microseconds of a thread of its own.
constexpr std::chrono::seconds kIdleLook{1};

bool overlap(const Loan& loan, std::uint64_t start, std::uint64_t size) {
  return loan.start < start + size && start < loan.start + loan.size;
}

}  // namespace

CudaBorrowing::~CudaBorrowing() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    orders_.clear();
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  mappings_.clear();
  for (const auto& memory : unused_) close_mapping(api_, *memory);
}

void CudaBorrowing::set_limit(Bytes limit) {
  const std::lock_guard lock(mutex_);
  limit_ = limit;
}

bool CudaBorrowing::same_device(const Loan& loan, const Piece& own) const {
  return own.device >= 0 && contexts_.uuid(own.device) == loan.device;
}

CudaBorrowing::Key CudaBorrowing::key_of(const Loan& loan, Rank lender, CudaContext& context) {
  return {lender, loan.way == Loan::Way::pool ? loan.pool : loan.allocation, &context};
}

// Closed by the thread, once nobody holds it any more.
std::shared_ptr<CudaBorrowed> CudaBorrowing::hold(std::unique_ptr<CudaBorrowed> memory) {
  return {memory.release(), [this](CudaBorrowed* last) {
            {
              const std::lock_guard lock(mutex_);
              unused_.emplace_back(last);
            }
            wake_.notify_all();
          }};
}

CudaBorrowing::Dropped CudaBorrowing::drop(std::map<Key, Mapping>::iterator mapping) {
  Dropped memory = std::move(mapping->second.memory);
  if (memory != nullptr) mapped_ = Bytes{mapped_.value - memory->size.value};
  mappings_.erase(mapping);
  return memory;
}

// What the lender has freed: what it says, and what lay where another allocation is now.
void CudaBorrowing::forget_ended(const Loan& loan, Rank lender, std::vector<Dropped>& dropped) {
  for (auto at = mappings_.lower_bound({lender, 0, nullptr}); at != mappings_.end() && at->first.lender == lender;) {
    const auto here = at++;
    const std::uint64_t number = here->first.number;
    const bool ended = std::find(loan.ended.begin(), loan.ended.end(), number) != loan.ended.end();
    const bool replaced = number != loan.allocation && overlap(loan, here->second.start, here->second.size);
    if (ended || replaced) dropped.push_back(drop(here));
  }
}

void CudaBorrowing::hear(const Loan& loan, Rank lender) {
  if (loan.ended.front() == 0) return;
  std::vector<Dropped> dropped;  // outlives the lock
  const std::lock_guard lock(mutex_);
  forget_ended(loan, lender, dropped);
}

void CudaBorrowing::forget_least_used(std::vector<Dropped>& dropped) {
  while (mapped_ > limit_) {
    auto least = mappings_.end();
    Bytes for_later;
    for (auto at = mappings_.begin(); at != mappings_.end(); ++at) {
      if (at->second.memory == nullptr || at->second.memory->size == Bytes{} || at->second.keepers > 0) continue;
      for_later += at->second.memory->size;
      if (least == mappings_.end() || at->second.used < least->second.used) least = at;
    }
    if (for_later <= limit_) return;
    dropped.push_back(drop(least));
  }
}

// ---- pieces of pools ----

// Under the lock, so that a piece is not imported again while it is being let go of.
std::shared_ptr<CudaBorrowed> CudaBorrowing::piece_of(const std::shared_ptr<CudaBorrowed>& pool, const Loan& loan) {
  OpenPiece& open = pieces_[{pool.get(), loan.allocation}];
  if (open.users == 0) {
    const auto address = import_piece(api_, *pool, loan);
    if (!address.ok()) {
      pieces_.erase({pool.get(), loan.allocation});
      log::once(log::Level::warning,
                "messages into a pool of another rank go through host memory: " + address.status().text());
      return nullptr;
    }
    open.address = *address;
  }
  ++open.users;
  auto piece = std::make_unique<CudaBorrowed>(pool->context, Loan::Way::pool);
  piece->address = open.address;
  piece->within = pool;
  piece->allocation = loan.allocation;
  return {piece.release(), [this](CudaBorrowed* last) {
            const std::unique_ptr<CudaBorrowed> owned{last};  // the pool is let go of without the lock
            let_go(*last);
          }};
}

// At once, not by the thread: the next thing its holder does is to tell the lender, who may free it.
void CudaBorrowing::let_go(const CudaBorrowed& piece) {
  const std::lock_guard lock(mutex_);
  const auto open = pieces_.find({piece.within.get(), piece.allocation});
  if (--open->second.users > 0) return;
  close_piece(api_, piece.context, open->second.address);
  pieces_.erase(open);
}

// ---- borrowing ----

bool CudaBorrowing::start_thread() {
  if (thread_.joinable()) return true;
  auto thread = quiet_thread("the mapping of other processes' device memory", [this] { work(); });
  if (!thread.ok()) {
    log::once(log::Level::warning, "messages between devices go through host memory: " + thread.status().text());
    return false;
  }
  thread_ = std::move(*thread);
  return true;
}

void CudaBorrowing::order(const Key& key, const Loan& loan) {
  Mapping& mapping = mappings_[key];
  if (loan.way != Loan::Way::pool) {
    mapping.start = loan.start;
    mapping.size = loan.size;
  }
  mapping.door = loan.door;
  mapping.borrower = loan.borrower;
  mapping.used = mapping.ordered = ++borrows_;
  orders_.push_back({key, loan, mapping.ordered});
  wake_.notify_all();
}

std::shared_ptr<Borrowed> CudaBorrowing::borrow(const Loan& loan, Rank lender, const Piece& own) {
  if (loan.allocation == 0 || loan.offset > loan.size || own.size.value > loan.size - loan.offset) return nullptr;
  if (!opens(api_, loan.way)) return nullptr;
  const auto context = context_of_(own);
  if (!context.ok()) return nullptr;
  const Key key = key_of(loan, lender, **context);
  {
    std::vector<Dropped> dropped;  // outlives the lock: who drops the last one takes it, too
    const std::lock_guard lock(mutex_);
    if (const auto known = look_up(key, loan, dropped)) return *known;
    forget_ended(loan, lender, dropped);
  }
  // Only now: what is not used any more is closed before another one is opened, which may be the same to the driver.
  const std::lock_guard lock(mutex_);
  if (closing_bytes_.value + loan.size > limit_.value) return nullptr;
  if (!mappings_.contains(key) && !links_.off(**context, loan.device) && start_thread()) order(key, loan);
  return nullptr;
}

// Null for what is not open (yet) and is not to be ordered either; none for what is not known.
std::optional<std::shared_ptr<CudaBorrowed>> CudaBorrowing::look_up(const Key& key, const Loan& loan,
                                                                    std::vector<Dropped>& dropped) {
  if (Bytes{loan.size} > limit_) {
    log::once(log::Level::warning, "ISTHMUS_MAPPED_LIMIT",
              "messages into an allocation of " + std::to_string(loan.size) + " bytes of rank " +
                  std::to_string(key.lender.value) + " go through host memory, which is slower: ISTHMUS_MAPPED_LIMIT is " +
                  std::to_string(limit_.value) + "; raise it above the largest allocation");
    return nullptr;
  }
  const auto known = find(key, loan, dropped);
  if (known == mappings_.end()) return std::nullopt;
  known->second.used = ++borrows_;
  const auto& memory = known->second.memory;
  return loan.way == Loan::Way::pool && memory != nullptr ? piece_of(memory, loan) : memory;
}

std::map<CudaBorrowing::Key, CudaBorrowing::Mapping>::iterator CudaBorrowing::find(const Key& key, const Loan& loan,
                                                                                   std::vector<Dropped>& dropped) {
  const auto known = mappings_.find(key);
  if (known == mappings_.end() || loan.way == Loan::Way::pool) return known;
  if (known->second.start == loan.start && known->second.size == loan.size) return known;
  // Another mapping of the same memory, by a driver that counts it as the same.
  dropped.push_back(drop(known));
  return mappings_.end();
}

// ---- keeping ----

Result<std::shared_ptr<CudaBorrowed>> CudaBorrowing::keep(const Loan& loan, Rank lender, const Piece& own) {
  if (!opens(api_, loan.way))
    return Status{IST_ERR_UNSUPPORTED,
                  "this CUDA driver lacks calls that open memory of other processes; install a newer one"};
  const auto context = context_of_(own);
  if (!context.ok()) return context.status();
  const Key key = key_of(loan, lender, **context);
  const auto deadline = std::chrono::steady_clock::now() + kOpeningPatience;
  for (int orders = 0; std::chrono::steady_clock::now() < deadline;) {
    std::vector<Dropped> dropped;  // outlives the lock
    std::unique_lock lock(mutex_);
    forget_ended(loan, lender, dropped);
    auto known = find(key, loan, dropped);
    if (known == mappings_.end()) {
      // Memory that is not there any more is forgotten, and may yet be there with the next order.
      if (++orders > 2) return Status{IST_ERR_HANDLE, "it could not be opened twice in turn; was it freed meanwhile?"};
      if (!start_thread()) return Status{IST_ERR_SYSTEM, "no thread could be started that opens it"};
      order(key, loan);
      known = mappings_.find(key);
    }
    if (known->second.state == Mapping::State::refused) return known->second.why;
    if (known->second.state == Mapping::State::mapped) return take(key, known->second, loan);
    const std::uint64_t ordered = known->second.ordered;
    ++known->second.keepers;
    settled_.wait_for(lock, std::chrono::milliseconds(100));
    known = mappings_.find(key);
    if (known != mappings_.end() && known->second.ordered == ordered) --known->second.keepers;
  }
  return Status{IST_ERR_DEVICE, "it was not opened within " + std::to_string(kOpeningPatience.count()) + " seconds"};
}

// Under the lock.
Result<std::shared_ptr<CudaBorrowed>> CudaBorrowing::take(const Key& key, Mapping& mapping, const Loan& loan) {
  mapping.used = ++borrows_;
  auto memory = loan.way == Loan::Way::pool ? piece_of(mapping.memory, loan) : mapping.memory;
  if (memory == nullptr)
    return Status{IST_ERR_DEVICE, "its pool was opened, and a piece of that was not; ISTHMUS_LOG=warning tells why"};
  ++mapping.keepers;
  CudaBorrowed* const seen = memory.get();
  return std::shared_ptr<CudaBorrowed>{seen, [this, key, pool = mapping.memory, memory](CudaBorrowed*) mutable {
                                         stop_keeping(key, *pool);
                                         memory.reset();
                                         pool.reset();
                                       }};
}

void CudaBorrowing::stop_keeping(const Key& key, const CudaBorrowed& memory) {
  Dropped dropped;  // outlives the lock
  const std::lock_guard lock(mutex_);
  const auto known = mappings_.find(key);
  if (known != mappings_.end() && known->second.memory.get() == &memory && --known->second.keepers == 0)
    dropped = drop(known);
}

bool CudaBorrowing::opening(const Loan& loan, Rank lender, const Piece& own) {
  const auto context = context_of_(own);
  if (!context.ok()) return false;
  const std::lock_guard lock(mutex_);
  const auto known = mappings_.find(key_of(loan, lender, **context));
  // What waits until it is quiet may wait for whoever asks.
  return known != mappings_.end() && known->second.state == Mapping::State::opening && !closing(loan, lender);
}

// Is what lies where the loan does, or lay there before the lender freed it, still open?
bool CudaBorrowing::closing(const Loan& loan, Rank lender) const {
  return loan.way != Loan::Way::pool && std::any_of(closing_.begin(), closing_.end(), [&](const CudaBorrowed* one) {
           return one->lender == lender && overlap(loan, one->start, one->size.value);
         });
}

std::deque<CudaBorrowing::Order>::iterator CudaBorrowing::next_order() {
  return std::find_if(orders_.begin(), orders_.end(),
                      [this](const Order& one) { return !closing(one.loan, one.key.lender); });
}

// What was opened by a handle the driver closes only after waiting for the device.
void CudaBorrowing::close(std::unique_ptr<CudaBorrowed> memory) {
  if (memory->way != Loan::Way::handle) return close_mapping(api_, *memory);
  if (quiet_.now([&] { close_mapping(api_, *memory); })) return;
  {
    const std::lock_guard lock(mutex_);
    closing_.push_back(memory.get());
    closing_bytes_ += memory->size;
  }
  quiet_.later([this, closed = std::shared_ptr<CudaBorrowed>(std::move(memory))] {
    close_mapping(api_, *closed);
    const std::lock_guard lock(mutex_);
    std::erase(closing_, closed.get());
    closing_bytes_ = closing_bytes_ - closed->size;
    wake_.notify_all();
  });
}

void CudaBorrowing::work() {
  const auto is_due = [this] { return ends_ || next_order() != orders_.end() || !unused_.empty(); };
  std::unique_lock lock(mutex_);
  auto next_look = std::chrono::steady_clock::now() + kIdleLook;
  while (true) {
    if (!keeps_any())
      wake_.wait(lock, is_due);
    else
      wake_.wait_until(lock, next_look, is_due);
    if (ends_) return;
    if (std::chrono::steady_clock::now() >= next_look) {
      lock.unlock();
      let_go_of_ended();
      lock.lock();
      next_look = std::chrono::steady_clock::now() + kIdleLook;
      continue;
    }
    if (!unused_.empty()) {
      auto unused = std::exchange(unused_, {});
      lock.unlock();
      for (auto& memory : unused) close(std::move(memory));
      lock.lock();
      continue;
    }
    const auto next = next_order();
    const Order order = *next;
    orders_.erase(next);
    lock.unlock();
    open(order);
    lock.lock();
  }
}

// Where the lender has ended, or has freed the memory right after its first message, nothing is wrong.
void CudaBorrowing::say_refused(const Order& order, const Status& why) const {
  if (ends_) return;
  const bool gone = why.code() == IST_ERR_PEER_LEFT || why.code() == IST_ERR_SYSTEM || why.code() == IST_ERR_HANDLE;
  log::once(gone ? log::Level::info : log::Level::warning, gone ? "memory that has ended" : "memory that cannot be opened",
            "messages between rank " + std::to_string(order.key.lender.value) + " and cuda device " +
                std::to_string(order.key.context->device) + " go through host memory, which is slower: " + why.text() +
                kNamespaces);
}

// Memory whose handle names nothing has most likely been freed right after its message. If it is lent once more, it has not.
bool CudaBorrowing::names_nothing_again(const Key& key) {
  constexpr std::size_t kMost = 1024;
  const std::lock_guard lock(mutex_);
  if (named_nothing_.size() == kMost) named_nothing_.clear();
  return !named_nothing_.insert(key).second;
}

void CudaBorrowing::open(const Order& order) {
  const Status believed = links_.believe(*order.key.context, order.loan, order.key.lender, ends_);
  Dropped made;
  Status why = believed;
  bool not_at_hand = false;
  if (believed.ok()) {
    auto opened = open_mapping(api_, *order.key.context, order.loan, ends_);
    if (opened.ok()) {
      (*opened)->lender = order.key.lender;
      (*opened)->start = order.loan.start;
      made = hold(std::move(*opened));
    } else {
      why = opened.status();
      if (why.code() == IST_ERR_HANDLE && order.loan.way == Loan::Way::handle && names_nothing_again(order.key))
        why = {IST_ERR_DEVICE, why.text()};
      say_refused(order, why);
      not_at_hand = why.code() == IST_ERR_HANDLE;
    }
  } else if (!links_.off(*order.key.context, order.loan.device)) {
    say_refused(order, {believed.code(), "the link could not be tried: " + believed.text()});
  }
  std::vector<Dropped> dropped;
  const std::lock_guard lock(mutex_);
  const auto mapping = mappings_.find(order.key);
  if (mapping == mappings_.end() || mapping->second.ordered != order.number) {  // forgotten meanwhile
    dropped.push_back(std::move(made));
    return;
  }
  settled_.notify_all();
  if (not_at_hand) {  // the next loan orders it once more
    mappings_.erase(mapping);
    return;
  }
  mapping->second.state = made ? Mapping::State::mapped : Mapping::State::refused;
  mapping->second.why = why;
  if (made) mapped_ = Bytes{mapped_.value + made->size.value};
  mapping->second.memory = std::move(made);
  forget_least_used(dropped);
}

}  // namespace ist
