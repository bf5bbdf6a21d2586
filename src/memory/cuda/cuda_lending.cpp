#include "memory/cuda/cuda_lending.hpp"

#include <algorithm>
#include <cstring>

#include "base/log.hpp"
#include "base/quiet_thread.hpp"

namespace ist {
namespace {

// Allocations that were lent are asked after, so many in turn whenever a new one is lent: whether they are freed meanwhile.
constexpr std::size_t kAskedAtOnce = 64;

bool overlap(const Loan& loan, std::uint64_t start, std::uint64_t size) {
  return loan.start < start + size && start < loan.start + loan.size;
}

}  // namespace

CudaLending::~CudaLending() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    orders_.clear();
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  mappings_.clear();
  for (const auto& memory : unused_) close(*memory);
}

void CudaLending::set_limit(Bytes limit) {
  const std::lock_guard lock(mutex_);
  limit_ = limit;
}

// ---- lending ----

// Those that are freed are told to each borrower with the next loan, so that their memory returns to the device.
void CudaLending::look_for_ended() {
  auto at = lent_.upper_bound(last_looked_);
  for (std::size_t left = std::min(kAskedAtOnce, lent_.size()); left > 0; --left) {
    if (at == lent_.end()) at = lent_.begin();
    last_looked_ = at->first;
    const PointerFacts facts = ask_driver(api_, at->second.start);
    if (facts.known && facts.buffer_id == last_looked_) {
      ++at;
      continue;
    }
    for (const Rank borrower : at->second.borrowers) ended_[borrower].push_back(last_looked_);
    at = lent_.erase(at);
  }
}

CudaLending::Lent& CudaLending::lent(const PointerFacts& facts) {
  if (const auto known = lent_.find(facts.buffer_id); known != lent_.end()) return known->second;
  look_for_ended();
  Lent& made = lent_[facts.buffer_id];
  made.start = facts.start;
  const auto context = contexts_.find(facts.context, facts.device);
  if (!context.ok()) return made;
  const DriverScope scope(api_, (*context)->handle);
  const CUresult result =
      scope.status().ok() ? api_.cuIpcGetMemHandle(&made.handle, facts.start) : CUDA_ERROR_INVALID_CONTEXT;
  made.possible = result == CUDA_SUCCESS;
  if (!made.possible)
    log::once(log::Level::info,
              "messages between devices go through host memory: " + cuda_error(api_, result, "cuIpcGetMemHandle").text());
  return made;
}

std::optional<Loan> CudaLending::lend(const Piece& piece, Rank borrower) {
  if (api_.cuIpcGetMemHandle == nullptr) return std::nullopt;
  const std::uint64_t address = piece.object + piece.offset.value;
  const PointerFacts facts = ask_driver(api_, address);
  if (!facts.known || facts.memory_class != MemoryClass::device || facts.buffer_id == 0) return std::nullopt;
  const std::lock_guard lock(mutex_);
  Lent& found = lent(facts);
  if (!found.possible) return std::nullopt;
  found.borrowers.insert(borrower);
  Loan loan;
  static_assert(sizeof(loan.handle) == sizeof(found.handle));
  std::memcpy(loan.handle.data(), &found.handle, sizeof found.handle);
  loan.device = contexts_.uuid(facts.device);
  loan.allocation = facts.buffer_id;
  loan.start = facts.start;
  loan.size = facts.size;
  loan.offset = address - facts.start;
  if (const auto news = ended_.find(borrower); news != ended_.end()) {
    for (std::uint64_t& ended : loan.ended) {
      if (news->second.empty()) break;
      ended = news->second.front();
      news->second.pop_front();
    }
    if (news->second.empty()) ended_.erase(news);
  }
  return loan;
}

// ---- borrowing ----

bool CudaLending::same_device(const Loan& loan, const Piece& own) const {
  return own.device >= 0 && contexts_.uuid(own.device) == loan.device;
}

// Unmapped by the thread, once nobody holds it any more.
std::shared_ptr<CudaBorrowed> CudaLending::hold(CudaContext& context, CUdeviceptr address, Bytes size) {
  return {new CudaBorrowed{context, address, size}, [this](CudaBorrowed* memory) {
            {
              const std::lock_guard lock(mutex_);
              unused_.emplace_back(memory);
            }
            wake_.notify_all();
          }};
}

void CudaLending::close(const CudaBorrowed& memory) const {
  const DriverScope scope(api_, memory.context.handle);
  if (scope.status().ok() && lives(api_, memory.context)) api_.cuIpcCloseMemHandle(memory.address);
}

CudaLending::Dropped CudaLending::drop(std::map<Key, Mapping>::iterator mapping) {
  if (mapping->second.state == Mapping::State::mapped) mapped_ = Bytes{mapped_.value - mapping->second.size};
  Dropped memory = std::move(mapping->second.memory);
  mappings_.erase(mapping);
  return memory;
}

// What the lender has freed: what it says, and what lay where another allocation is now.
void CudaLending::forget_ended(const Loan& loan, Rank lender, std::vector<Dropped>& dropped) {
  for (auto at = mappings_.lower_bound({lender, 0, nullptr}); at != mappings_.end() && at->first.lender == lender;) {
    const auto here = at++;
    const std::uint64_t allocation = here->first.allocation;
    const bool ended = std::find(loan.ended.begin(), loan.ended.end(), allocation) != loan.ended.end();
    const bool replaced = allocation != loan.allocation && overlap(loan, here->second.start, here->second.size);
    if (ended || replaced) dropped.push_back(drop(here));
  }
}

void CudaLending::hear(const Loan& loan, Rank lender) {
  if (loan.ended.front() == 0) return;
  std::vector<Dropped> dropped;  // outlives the lock
  const std::lock_guard lock(mutex_);
  forget_ended(loan, lender, dropped);
}

void CudaLending::forget_least_used(std::vector<Dropped>& dropped) {
  while (mapped_ > limit_) {
    auto least = mappings_.end();
    for (auto at = mappings_.begin(); at != mappings_.end(); ++at)
      if (at->second.state == Mapping::State::mapped && (least == mappings_.end() || at->second.used < least->second.used))
        least = at;
    if (least == mappings_.end()) return;
    dropped.push_back(drop(least));
  }
}

std::shared_ptr<Borrowed> CudaLending::borrow(const Loan& loan, Rank lender, const Piece& own) {
  if (api_.cuIpcOpenMemHandle_v2 == nullptr || api_.cuIpcCloseMemHandle == nullptr) return nullptr;
  if (loan.allocation == 0 || loan.offset > loan.size || own.size.value > loan.size - loan.offset) return nullptr;
  const auto context = context_of_(own);
  if (!context.ok()) return nullptr;
  std::vector<Dropped> dropped;  // outlives the lock: who drops the last one takes it, too
  const std::lock_guard lock(mutex_);
  if (Bytes{loan.size} > limit_) return nullptr;
  const Key key{lender, loan.allocation, *context};
  const auto known = mappings_.find(key);
  if (known == mappings_.end()) forget_ended(loan, lender, dropped);
  if (known != mappings_.end()) {
    known->second.used = ++borrows_;
    return known->second.memory;
  }
  if (!thread_.joinable()) {
    auto thread = quiet_thread("the mapping of other processes' device memory", [this] { work(); });
    if (!thread.ok()) {
      log::once(log::Level::warning, "messages between devices go through host memory: " + thread.status().text());
      return nullptr;
    }
    thread_ = std::move(*thread);
  }
  Mapping& mapping = mappings_[key];
  mapping.start = loan.start;
  mapping.size = loan.size;
  mapping.used = ++borrows_;
  Order order{key, {}, Bytes{loan.size}};
  std::memcpy(&order.handle, loan.handle.data(), sizeof order.handle);
  orders_.push_back(order);
  wake_.notify_all();
  return nullptr;
}

void CudaLending::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return ends_ || !orders_.empty() || !unused_.empty(); });
    if (ends_) return;
    if (!unused_.empty()) {
      const auto closing = std::move(unused_);
      unused_.clear();
      lock.unlock();
      for (const auto& memory : closing) close(*memory);
      lock.lock();
      continue;
    }
    const Order order = orders_.front();
    orders_.pop_front();
    lock.unlock();
    open(order);
    lock.lock();
  }
}

void CudaLending::open(const Order& order) {
  CUdeviceptr address = 0;
  CUresult result = CUDA_ERROR_INVALID_CONTEXT;
  {
    const DriverScope scope(api_, order.key.context->handle);
    if (scope.status().ok()) result = api_.cuIpcOpenMemHandle_v2(&address, order.handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
  }
  if (result != CUDA_SUCCESS)
    log::once(log::Level::warning,
              "messages between rank " + std::to_string(order.key.lender.value) + " and cuda device " +
                  std::to_string(order.key.context->device) +
                  " go through host memory, which is slower: " + cuda_error(api_, result, "cuIpcOpenMemHandle").text() +
                  " (expected where that memory was freed right after its first message)");
  Dropped made = result == CUDA_SUCCESS ? hold(*order.key.context, address, order.size) : nullptr;
  std::vector<Dropped> dropped;
  const std::lock_guard lock(mutex_);
  const auto mapping = mappings_.find(order.key);
  if (mapping == mappings_.end()) {  // forgotten meanwhile
    dropped.push_back(std::move(made));
    return;
  }
  mapping->second.state = made ? Mapping::State::mapped : Mapping::State::refused;
  if (made) mapped_ = Bytes{mapped_.value + order.size.value};
  mapping->second.memory = std::move(made);
  forget_least_used(dropped);
}

}  // namespace ist
