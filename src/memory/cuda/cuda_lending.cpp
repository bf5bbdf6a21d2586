#include "memory/cuda/cuda_lending.hpp"

#include <algorithm>
#include <cstring>

#include "base/log.hpp"
#include "memory/cuda/cuda_mapping.hpp"

namespace ist {
namespace {

// Allocations that were lent are asked after, so many in turn whenever a new one is lent: whether they are freed meanwhile.
constexpr std::size_t kAskedAtOnce = 64;
// So many pieces of a pool are asked whether it is still the same, of those that were lent last.
constexpr int kWitnesses = 64;
// A borrower asks for its descriptor right after the loan; else that is closed.
constexpr std::chrono::seconds kExportPatience{10};
// Who is to keep the memory opens it when its program comes to that.
constexpr std::chrono::seconds kKeepingPatience{60};
// To open a pool takes a borrower milliseconds in the driver's locks. One of which all was freed again, so many times in turn after no
// more loans to anybody than these, is opened by a borrower only after so many.
constexpr int kShortLives = 4;
constexpr std::uint64_t kLoansOfALife = 32;
constexpr std::size_t kHandlesKnown = 256;
// Numbers of pools, which the driver gives none, are no numbers of allocations.
constexpr std::uint64_t kPoolNumbers = std::uint64_t{1} << 63;

}  // namespace

// The door first: its thread asks for what follows.
CudaLending::~CudaLending() { door_.reset(); }

bool CudaLending::open_door() {
  if (door_tried_) return door_ != nullptr;
  door_tried_ = true;
  auto door = Door::open([this](const DoorNote& asked, std::shared_ptr<void>& kept) { return answer(asked, kept); },
                         [this] { return close_old_exports(); });
  if (door.ok())
    door_ = std::move(*door);
  else
    log::once(log::Level::warning,
              "messages between devices go through host memory, which is slower: " + door.status().text());
  return door_ != nullptr;
}

DoorAddress CudaLending::door() {
  const std::lock_guard lock(mutex_);
  return open_door() ? door_->address() : DoorAddress{};
}

// ---- what has ended ----

bool CudaLending::is_alive(std::uint64_t allocation, const Lent& lent, CUmemoryPool pool) const {
  const PointerFacts facts = ask_driver(api_, lent.start);
  return facts.known && facts.buffer_id == allocation && (pool == nullptr || facts.pool == pool);
}

// Those that are freed are told to each borrower with the next loan, so that their memory returns to the device. (Who gets no loan
// any more asks by itself: cuda_ends.cpp.)
void CudaLending::look_for_ended() {
  auto at = lent_.upper_bound(last_looked_);
  for (std::size_t left = std::min(kAskedAtOnce, lent_.size()); left > 0; --left) {
    if (at == lent_.end()) at = lent_.begin();
    last_looked_ = at->first;
    at = is_alive(last_looked_, at->second, nullptr) ? std::next(at) : end_loan(at);
  }
}

std::map<std::uint64_t, CudaLending::Lent>::iterator CudaLending::end_loan(std::map<std::uint64_t, Lent>::iterator ended) {
  const std::uint64_t pool = ended->second.pool;
  // Nobody keeps a piece of a pool.
  if (pool == 0)
    for (const Rank borrower : ended->second.borrowers) ended_[borrower].push_back(ended->first);
  const auto next = lent_.erase(ended);
  const auto of_it = [&](const auto& entry) { return entry.second.pool == pool; };
  if (pool != 0 && std::none_of(lent_.begin(), lent_.end(), of_it)) end_pool(pool);
  return next;
}

void CudaLending::end_pool(std::uint64_t pool) {
  const auto found = pools_.find(pool);
  if (found == pools_.end()) return;
  for (const Rank borrower : found->second.borrowers) ended_[borrower].push_back(pool);
  if (short_lives_.size() > kHandlesKnown) short_lives_.clear();
  const auto& asked = found->second.asked;
  if (std::all_of(asked.begin(), asked.end(), [](const auto& entry) { return entry.second <= kLoansOfALife; }))
    ++short_lives_[found->second.handle];
  else
    short_lives_.erase(found->second.handle);
  pools_.erase(found);
}

bool CudaLending::is_worth_opening(const LentPool& pool, Rank borrower) const {
  const auto found = short_lives_.find(pool.handle);
  return found == short_lives_.end() || found->second < kShortLives || pool.asked.at(borrower) > kLoansOfALife;
}

void CudaLending::tell_ended(Loan& loan, Rank borrower) {
  const auto news = ended_.find(borrower);
  if (news == ended_.end()) return;
  for (std::uint64_t& ended : loan.ended) {
    if (news->second.empty()) break;
    ended = news->second.front();
    news->second.pop_front();
  }
  if (news->second.empty()) ended_.erase(news);
}

// ---- lending ----

void CudaLending::share_handle(const PointerFacts& facts, Lent& made) const {
  if (api_.cuIpcGetMemHandle == nullptr) return;
  const auto context = contexts_.find(facts.context, facts.device);
  if (!context.ok()) return;
  CUipcMemHandle handle{};
  static_assert(sizeof handle == sizeof made.handle);
  const ContextScope scope(api_, **context);
  const CUresult result = scope.status().ok() ? api_.cuIpcGetMemHandle(&handle, facts.start) : CUDA_ERROR_INVALID_CONTEXT;
  std::memcpy(made.handle.data(), &handle, sizeof handle);
  made.possible = result == CUDA_SUCCESS;
  if (!made.possible)
    log::once(log::Level::warning, "cuIpcGetMemHandle",
              "messages into memory of cuda device " + std::to_string(facts.device) +
                  " go through host memory, which is slower: " + cuda_error(api_, result, "cuIpcGetMemHandle").text() +
                  kNamespaces);
}

// Memory that was created for other processes, too, on a device.
void CudaLending::share_mapping(const PointerFacts& facts, Lent& made) const {
  made.way = Loan::Way::descriptor;
  if (api_.cuMemRetainAllocationHandle == nullptr || api_.cuMemGetAllocationPropertiesFromHandle == nullptr ||
      api_.cuMemExportToShareableHandle == nullptr || api_.cuMemRelease == nullptr)
    return;
  const DriverScope scope(api_, nullptr);
  CUmemGenericAllocationHandle memory = 0;
  if (api_.cuMemRetainAllocationHandle(&memory, reinterpret_cast<void*>(made.start)) != CUDA_SUCCESS) return;
  CUmemAllocationProp properties{};
  const CUresult result = api_.cuMemGetAllocationPropertiesFromHandle(&properties, memory);
  api_.cuMemRelease(memory);
  made.possible = result == CUDA_SUCCESS && properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                  (properties.requestedHandleTypes & kPosixDescriptor) != 0 && facts.device >= 0;
}

// The driver has no number for a pool, and may give its handle to the next one. But as long as something that was lent of it is
// alive, it is the same. (Something of our own in it would be a surer witness, but the driver does not bear it: a pool that its
// program destroys before that is freed keeps its memory and a descriptor, and later crashes cuStreamSynchronize, of any stream;
// seen with 580.159.04.)
bool CudaLending::has_witness(std::uint64_t pool) const {
  int asked = 0;
  for (auto at = lent_.rbegin(); at != lent_.rend(); ++at) {
    if (at->second.pool != pool) continue;
    if (is_alive(at->first, at->second, pools_.at(pool).handle)) return true;
    if (++asked == kWitnesses) return false;
  }
  return false;
}

// Of the pool that it comes from; 0: that cannot be exported.
std::uint64_t CudaLending::number_of(const PointerFacts& facts) {
  for (const auto& [number, pool] : pools_)
    if (pool.handle == facts.pool && has_witness(number)) return number;
  if (!export_pool(facts.pool).ok()) return 0;
  const std::uint64_t number = kPoolNumbers | ++pools_numbered_;
  pools_[number].handle = facts.pool;
  return number;
}

void CudaLending::share_piece(const PointerFacts& facts, Lent& made) {
  made.way = Loan::Way::pool;
  if (api_.cuMemPoolExportToShareableHandle == nullptr || api_.cuMemPoolExportPointer == nullptr) return;
  const DriverScope scope(api_, nullptr);
  const std::uint64_t number = number_of(facts);
  if (number == 0) return;
  CUmemPoolPtrExportData data{};
  static_assert(sizeof data == sizeof made.handle);
  made.possible = api_.cuMemPoolExportPointer(&data, facts.start) == CUDA_SUCCESS;
  made.pool = number;
  std::memcpy(made.handle.data(), &data, sizeof data);
}

// While a message of this loan keeps both alive.
Result<FileDescriptor> CudaLending::export_mapping(std::uint64_t start) const {
  const DriverScope scope(api_, nullptr);
  CUmemGenericAllocationHandle memory = 0;
  CUresult result = api_.cuMemRetainAllocationHandle(&memory, reinterpret_cast<void*>(start));
  if (result != CUDA_SUCCESS) return cuda_error(api_, result, "cuMemRetainAllocationHandle");
  int descriptor = -1;
  result = api_.cuMemExportToShareableHandle(&descriptor, memory, kPosixDescriptor, 0);
  api_.cuMemRelease(memory);
  if (result != CUDA_SUCCESS) return cuda_error(api_, result, "cuMemExportToShareableHandle");
  return FileDescriptor{descriptor};
}

Result<FileDescriptor> CudaLending::export_pool(CUmemoryPool pool) const {
  int descriptor = -1;
  const CUresult result = api_.cuMemPoolExportToShareableHandle(&descriptor, pool, kPosixDescriptor, 0);
  if (result != CUDA_SUCCESS) return cuda_error(api_, result, "cuMemPoolExportToShareableHandle");
  return FileDescriptor{descriptor};
}

void CudaLending::export_for(Lent& lent, Rank borrower, LoanFor use) {
  LentPool* const pool = lent.way == Loan::Way::pool ? &pools_.at(lent.pool) : nullptr;
  Exports& exports = pool == nullptr ? lent.exports : pool->exports;
  if (!exports.made_for.insert(borrower).second && use != LoanFor::keeping) return;
  auto descriptor = pool == nullptr ? export_mapping(lent.start) : export_pool(pool->handle);
  const auto until = std::chrono::steady_clock::now() + (use == LoanFor::keeping ? kKeepingPatience : kExportPatience);
  exports.waiting.insert_or_assign(borrower, Export{std::move(descriptor), until});
  door_->will_tidy();
}

CudaLending::Lent& CudaLending::lent(const PointerFacts& facts) {
  const bool mapped = facts.memory_class == MemoryClass::vmm;
  const std::uint64_t start = mapped ? facts.mapping_start : facts.start;
  const std::uint64_t size = mapped ? facts.mapping_size : facts.size;
  if (const auto known = lent_.find(facts.buffer_id); known != lent_.end() && known->second.start == start)
    return known->second;
  look_for_ended();
  Lent& made = lent_[facts.buffer_id];
  std::set<Rank> borrowers = std::move(made.borrowers);
  made = {};
  made.borrowers = std::move(borrowers);
  made.start = start;
  made.size = size;
  if (facts.memory_class == MemoryClass::device) share_handle(facts, made);
  if (mapped) share_mapping(facts, made);
  if (facts.memory_class == MemoryClass::pool) share_piece(facts, made);
  return made;
}

std::optional<Loan> CudaLending::lend(const Piece& piece, Rank borrower, LoanFor use) {
  const std::uint64_t address = piece.object + piece.offset.value;
  const PointerFacts facts = facts_.of(piece);
  if (!facts.known || facts.on_host || facts.memory_class == MemoryClass::managed || facts.buffer_id == 0)
    return std::nullopt;
  const std::lock_guard lock(mutex_);
  Lent& found = lent(facts);
  // What the program mapped piece by piece is lent piece by piece: a message that lies in several is not.
  const bool inside = address - found.start <= found.size && piece.size.value <= found.size - (address - found.start);
  if (!found.possible || !inside || found.unable.contains(borrower)) return std::nullopt;
  if (use == LoanFor::invitation && (found.way != Loan::Way::handle || ended_.contains(borrower))) return std::nullopt;
  if (found.pool != 0) {
    LentPool& pool = pools_.at(found.pool);
    pool.asked[borrower] += use != LoanFor::message ? kLoansOfALife + 1 : 1;
    if (pool.unable.contains(borrower) || !is_worth_opening(pool, borrower)) return std::nullopt;
  }
  if (!open_door()) return std::nullopt;
  if (found.way != Loan::Way::handle) export_for(found, borrower, use);
  (found.pool == 0 ? found.borrowers : pools_.at(found.pool).borrowers).insert(borrower);
  Loan loan;
  loan.handle = found.handle;
  loan.device = contexts_.uuid(facts.device);
  loan.door = door_->address();
  loan.way = found.way;
  loan.borrower = borrower.value;
  loan.pool = found.pool;
  loan.allocation = facts.buffer_id;
  loan.start = found.start;
  loan.size = found.size;
  loan.offset = address - found.start;
  tell_ended(loan, borrower);
  return loan;
}

NotLent CudaLending::why_not(const PointerFacts& facts, Rank borrower) {
  const std::lock_guard lock(mutex_);
  const auto found = lent_.find(facts.buffer_id);
  if (found == lent_.end() || !found->second.possible) return NotLent::not_exportable;
  const auto pool = pools_.find(found->second.pool);
  if (found->second.unable.contains(borrower) || (pool != pools_.end() && pool->second.unable.contains(borrower)))
    return NotLent::not_opened;
  return pool == pools_.end() ? NotLent::in_pieces : NotLent::short_lived;
}

// ---- at the door ----

std::optional<Door::Answer> CudaLending::answer(const DoorNote& asked, std::shared_ptr<void>& kept) {
  const auto subject = static_cast<DoorSubject>(asked.subject);
  if (subject == DoorSubject::cannot) {
    note_unable(asked);
    return std::nullopt;
  }
  if (subject == DoorSubject::ended) return which_ended(asked);
  if (subject != DoorSubject::memory && subject != DoorSubject::pool) return links_.answer(asked, kept);
  auto found = take_export(asked);
  if (!found.ok()) return Door::Answer{DoorNote::refusal(found.status()), {}};
  return Door::Answer{DoorNote{}, std::move(*found)};
}

// What was exported with a loan, once.
Result<FileDescriptor> CudaLending::take_export(const DoorNote& asked) {
  const Rank borrower{taken_from<std::int32_t>(asked)};
  const std::lock_guard lock(mutex_);
  Exports* exports = nullptr;
  if (const auto found = lent_.find(asked.number); found != lent_.end()) exports = &found->second.exports;
  if (const auto found = pools_.find(asked.number); found != pools_.end()) exports = &found->second.exports;
  if (exports == nullptr) return Status{IST_ERR_HANDLE, "its memory was freed meanwhile"};
  exports->made_for.erase(borrower);
  auto waiting = exports->waiting.extract(borrower);
  if (waiting.empty()) return Status{IST_ERR_HANDLE, "its descriptor comes with the next message"};
  if (waiting.mapped().descriptor.ok()) exports->made_for.insert(borrower);
  return std::move(waiting.mapped().descriptor);
}

// They hold the memory, whether or not the program has freed it.
bool CudaLending::close_old_exports() {
  const auto now = std::chrono::steady_clock::now();
  const std::lock_guard lock(mutex_);
  bool left = false;
  const auto close_old = [&](Exports& exports) {
    std::erase_if(exports.waiting, [&](const auto& entry) {
      const bool old = entry.second.until < now;
      if (old) exports.made_for.erase(entry.first);
      return old;
    });
    left = left || !exports.waiting.empty();
  };
  for (auto& entry : lent_) close_old(entry.second.exports);
  for (auto& entry : pools_) close_old(entry.second.exports);
  return left;
}

// Of one that cannot open it the messages come through a block from now on.
void CudaLending::note_unable(const DoorNote& note) {
  const Rank borrower{taken_from<std::int32_t>(note)};
  const std::lock_guard lock(mutex_);
  if (const auto found = lent_.find(note.number); found != lent_.end()) found->second.unable.insert(borrower);
  if (const auto found = pools_.find(note.number); found != pools_.end()) found->second.unable.insert(borrower);
}

}  // namespace ist
