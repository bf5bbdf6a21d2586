#include "face/shmem/world.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "base/quiet_thread.hpp"
#include "face/shmem/errors.hpp"
#include "face/shmem/groups.hpp"
#include "face/shmem/heap_size.hpp"
#include "face/shmem/memory.hpp"
#include "face/shmem/ordering.hpp"
#include "face/shmem/patience.hpp"
#include "face/shmem/regions.hpp"
#include "face/shmem/teams.hpp"
#include "memory/host/host_space.hpp"

namespace ist::shmem {
namespace {

constexpr std::uint64_t kUsualBytes = std::uint64_t{256} << 20U;
constexpr std::uint64_t kUsualMost = std::uint64_t{64} << 30U;
constexpr std::size_t kLine = 64;
constexpr std::uint32_t kStop = 1;  // the watcher is no longer needed
constexpr std::uint32_t kEnd = 0x100;

// Each asks for a heap of that kind from the start.
constexpr std::array kDeviceSizes{"SHMEMX_SYMMETRIC_SIZE_CUDA", "SHMEMX_SYMMETRIC_SIZE_OPENCL"};

// An allocation takes a little more than was asked for.
std::uint64_t with_room_beside(std::uint64_t bytes) { return sum(bytes, std::uint64_t{1} << 20U); }

// A word that other processes map, so not the private kind.
void sleep_on(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, 0, nullptr, nullptr, 0);
}
void wake(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// Whoever holds a stream's lock may never let go of it; what was printed before is tried for a moment.
[[noreturn]] void end_process(int status) {
  std::atomic<bool> written{false};
  try {
    auto writing = quiet_thread("what was printed", [&] {
      std::fflush(nullptr);
      written = true;
    });
    if (writing.ok()) {
      writing->detach();
      for (int i = 0; i < 300 && !written; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  } catch (const std::bad_alloc&) {
    ::_exit(status);  // perhaps that is why the process ends: then without what was printed
  }
  ::_exit(status);
}

void leave_at_exit() { world().leave(); }

}  // namespace

// In each part of the heap, in a line; behind it the counters, a line each, the posted words and the board of slots.
struct World::Control {
  std::atomic<std::uint32_t> end;  // 0, kStop, or kEnd and a status
  std::atomic<std::uint32_t> left;
  std::atomic<std::uint32_t> closing;  // kWritesNoMore, then kMetTheOthers, of shmem_finalize
};

const void* this_thread() {
  static thread_local char own = 0;
  return &own;
}

World& world() {
  // Never destroyed: other threads may be inside calls when the process ends.
  static World* const only = new World;
  return *only;
}

namespace {
std::size_t lines(int pes) { return 1 + static_cast<std::size_t>(kSlots) * (static_cast<std::size_t>(pes) + 1); }
}  // namespace

World::Control& World::control(int pe) const { return *reinterpret_cast<Control*>(reach(control_, sizeof(Control), pe)); }

std::atomic_ref<std::uint64_t> World::arrivals(int at, int from, int slot) const {
  const auto line = static_cast<std::size_t>(slot) * static_cast<std::size_t>(hot.pes) + static_cast<std::size_t>(from) + 1;
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::byte*>(&control(at)) + line * kLine));
}

std::uint64_t& World::posted(int at, int slot) const {
  const auto line = kSlots * static_cast<std::size_t>(hot.pes) + static_cast<std::size_t>(slot) + 1;
  return *reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::byte*>(&control(at)) + line * kLine);
}

SlotBoard& World::slots() const {
  return *reinterpret_cast<SlotBoard*>(reinterpret_cast<std::byte*>(&control(0)) + lines(hot.pes) * kLine);
}

bool World::left(int pe) const { return control(pe).left.load(std::memory_order_acquire) != 0; }
bool World::writes_no_more(int pe) const {
  return left(pe) || control(pe).closing.load(std::memory_order_acquire) >= kWritesNoMore;
}
bool World::arrives_no_more(int pe) const {
  return left(pe) || control(pe).closing.load(std::memory_order_acquire) >= kMetTheOthers;
}

void World::read_view(const char* call) {
  if (failed(call, ist_heap_view(heap_, &view_))) return;
  Span& heap = hot.spans[0];
  heap.first = reinterpret_cast<std::byte*>(view_.base);
  heap.stride = view_.stride;
  heap.begin = reinterpret_cast<std::uintptr_t>(view_.base) + static_cast<std::uint64_t>(view_.pe) * view_.stride;
  set_size(view_.bytes);
}

// All that ever changes while others are inside calls.
void World::set_size(std::uint64_t bytes) {
  hot.spans[0].bytes.store(bytes, std::memory_order_release);
  hot.spans[0].direct.store(hot.devices ? 0 : bytes, std::memory_order_release);
}

void World::make_heap(const char* call) {
  const auto asked = heap_size_from_environment(call);
  int pes = 0;
  if (failed(call, ist_comm_size(comm_, &pes))) return;
  const std::uint64_t own = lines(pes) * kLine + sizeof(SlotBoard);
  // What the standard's variable names is what there is; without it the heap grows as it is needed.
  const std::uint64_t sync = IST_TEAM_SYNC_BYTES(static_cast<std::uint64_t>(pes));
  most_ = asked != 0 ? asked + own : kUsualMost - sync;
  constexpr std::uint64_t kMostAligned = HostSpace::kMostAligned;
  const std::uint64_t addresses = (most_ + sync + kMostAligned - 1) / kMostAligned * kMostAligned - sync;
  if (failed(call,
             ist_heap_create(comm_, IST_KIND_HOST, IST_OWN_DEVICE, asked != 0 ? most_ : kUsualBytes, addresses, &heap_)))
    return;
  // The first of a new heap is zero. Nobody writes that, so that words of slots that nobody uses take no memory.
  void* memory = nullptr;
  if (failed(call, ist_heap_alloc(heap_, own, &memory))) return;
  control_ = static_cast<std::byte*>(memory);
}

// The variables of the program are spans beside the heap.
void World::share_globals(const char* call) {
  auto made = SymmetricGlobals::create(comm_);
  if (!made.ok()) return fail(call, made.status().text());
  globals_ = std::move(*made);
  static_assert(kMostSpans == 1 + ExecutableCard::kMostSegments);
  Span* next = &hot.spans[1];
  for (const auto& each : globals_->segments()) {
    next->begin = reinterpret_cast<std::uintptr_t>(each.begin);
    next->stride = globals_->stride().value;
    next->first = each.memory - static_cast<std::size_t>(hot.pe) * next->stride;
    next->bytes = each.bytes.value;
    next->direct = each.bytes.value;
    ++next;
  }
}

void World::forget_spans() {
  for (Span& each : hot.spans) {
    each.begin = 0;
    each.bytes = 0;
    each.direct = 0;
  }
}

void World::open(const char* call, int threads) {
  // Every level is there: who asks for more later gets it, too.
  threads_ = opened_ > 0 ? std::max(threads_.load(), threads) : threads;
  if (opened_++ > 0) return;
  ++number_;
  process_ = ::getpid();
  if (failed(call, ist_world_create(&world_)) || failed(call, ist_world_comm(world_, &comm_))) return;
  make_heap(call);
  if (control_ == nullptr) return;
  read_view(call);
  hot.pe = view_.pe;
  hot.pes = view_.pes;
  share_globals(call);
  reset_groups();
  make_own_teams();
  choose_how_to_wait(call, comm_);
  open_heaps_asked_for(call);
  static const bool registered = std::atexit(leave_at_exit) == 0;
  static_cast<void>(registered);
  // The others wait for this PE in any case.
  if (auto watcher = quiet_thread("the end that another PE may call for", [this] { watch(); }); watcher.ok())
    watcher_ = std::move(*watcher);
  else
    fail(call, watcher.status().text());
  barrier_all(call);
}

bool World::is_child() const { return process_ != 0 && process_ != ::getpid(); }

void World::watch() {
  auto& word = control(hot.pe).end;
  std::uint32_t said = 0;
  while ((said = word.load(std::memory_order_acquire)) == 0) sleep_on(word);
  if (said != kStop) end_process(static_cast<int>(said & 0xffU));
}

void World::stop_watching() {
  std::uint32_t none = 0;
  auto& word = control(hot.pe).end;
  word.compare_exchange_strong(none, kStop);
  wake(word);
  if (watcher_.joinable()) watcher_.join();
}

void World::close(const char* call) {
  if (opened_ == 0) return;
  --opened_;
  if (opened_ > 0 || control_ == nullptr || is_child()) return;
  quiet(call);
  control(hot.pe).closing.store(kWritesNoMore, std::memory_order_release);
  sync_all(call);
  // Behind all that it has told the others that it came.
  control(hot.pe).closing.store(kMetTheOthers, std::memory_order_release);
  stop_watching();
  drop_groups();
  if (globals_ != nullptr) {
    if (const Status ended = globals_->end(); !ended.ok()) fail(call, ended.text());
    globals_.reset();
  }
  for (std::size_t number = 0; number < devices_.size(); ++number) {
    device_bytes_[number] = 0;
    if (devices_[number].heap != nullptr) failed(call, ist_heap_destroy(&devices_[number].heap));
    devices_[number] = {};
  }
  hot.devices = false;
  hot.pes = 0;
  hot.pe = -1;
  forget_spans();
  forget_sizes();
  control_ = nullptr;
  failed(call, ist_heap_destroy(&heap_));
  failed(call, ist_world_destroy(&world_));
  closed_ = true;
}

// Other threads may be inside calls until the process is gone: all stays mapped, and what they look at stays as it is.
void World::leave() {
  if (opened_ == 0 || control_ == nullptr || is_child()) return;
  opened_ = 0;
  leaver_.store(this_thread(), std::memory_order_release);
  quiet();
  control(hot.pe).left.store(1, std::memory_order_release);
  stop_watching();
  static_cast<void>(ist_world_leave(world_));
}

void World::stay_behind() const {
  const void* const leaver = leaver_.load(std::memory_order_acquire);
  if (leaver == nullptr || leaver == this_thread() || is_child()) return;
  for (;;) ::pause();
}

void World::end_job(int status) {
  if (is_child()) {  // where the C library has let go of every stream, and threads need not work
    std::fflush(nullptr);
    ::_exit(status);
  }
  if (control_ != nullptr)
    for (int i = 1; i < hot.pes; ++i) {
      auto& word = control((hot.pe + i) % hot.pes).end;
      std::uint32_t none = 0;
      word.compare_exchange_strong(none, kEnd | (static_cast<std::uint32_t>(status) & 0xffU));
      wake(word);
    }
  end_process(status);
}

// The words were written before anybody ended, but for a moment.
void World::end_with_the_others() const {
  if (control_ == nullptr || is_child()) return;
  for (int i = 0; i < 20; ++i) {
    if (const auto said = control(hot.pe).end.load(std::memory_order_acquire); said >= kEnd) {
      if (!watcher_.joinable()) end_process(static_cast<int>(said & 0xffU));
      for (;;) ::pause();  // the watcher ends the process
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

// To twice as much; where the machine has not so much, to what is asked for.
bool World::grow_heap(const char* call, std::size_t more) {
  const std::uint64_t now = hot.heap().bytes.load() - IST_TEAM_SYNC_BYTES(static_cast<std::uint64_t>(hot.pes));
  if (more > most_) return false;
  const std::uint64_t enough = now + with_room_beside(more);
  if (enough > most_) return false;
  for (const std::uint64_t wanted : {std::clamp(2 * now, enough, most_), enough}) {
    const int code = ist_heap_grow(heap_, wanted);
    if (code == IST_OK) {
      ist_team_view view{};
      if (failed(call, ist_heap_view(heap_, &view))) return false;
      set_size(view.bytes);
      return true;
    }
    remember(ist_error_text());
    if (code != IST_ERR_MEMORY && code != IST_ERR_SYSTEM) return !failed(call, code);
  }
  return false;
}

std::string no_kind(int kind) {
  return "the kind is " + std::to_string(kind) + "; it must be SHMEMX_KIND_HOST, SHMEMX_KIND_CUDA or SHMEMX_KIND_OPENCL";
}

// Collective: `see` gets the word of each PE.
bool World::tell_all(const char* call, std::uint64_t own, const std::function<void(int pe, std::uint64_t word)>& see) const {
  posted(hot.pe, kWorldSlot) = own;
  if (!sync_all(call)) return false;
  for (int pe = 0; pe < hot.pes; ++pe) see(pe, posted(pe, kWorldSlot));
  return sync_all(call);
}

bool World::all_say(const char* call, bool own) const {
  bool all = true;
  return tell_all(call, own ? 1 : 0, [&](int, std::uint64_t word) { all = all && word != 0; }) && all;
}

// The first thing in a heap lies where what programs may have of it begins, and all of that is free then.
bool World::open_device_heap(const char* call, std::size_t number, std::size_t bytes, std::uint64_t least) {
  DeviceHeap& made = devices_[number];
  if (made.heap != nullptr) return true;
  device_asked_[number] = std::max(least, with_room_beside(bytes));
  ist_heap heap = nullptr;
  std::uint64_t room = 0;
  void* first = nullptr;
  if (ist_heap_create(comm_, kDeviceKinds[number], IST_OWN_DEVICE, device_asked_[number], 0, &heap) != IST_OK ||
      ist_heap_room(heap, &room, nullptr) != IST_OK || ist_heap_alloc(heap, 1, &first) != IST_OK ||
      ist_heap_free(heap, first) != IST_OK) {
    remember(ist_error_text());
    return false;
  }
  made = {heap, reinterpret_cast<std::uintptr_t>(first), room};
  // A PE that reaches all parts may be beside one that does not. A barrier only stores, so that atomic operations need not get there.
  ist_device_view view{};
  meets_[number] = number == kOnCuda && all_say(call, ist_heap_device_view(heap, IST_OWN_DEVICE, &view) == IST_OK);
  device_bytes_[number].store(room, std::memory_order_release);
  hot.devices.store(true, std::memory_order_release);
  for (Span& each : hot.spans) each.direct.store(0, std::memory_order_release);
  return true;
}

// Where PEs are started with other values, all hear so: a heap is made by all of them.
void World::open_heaps_asked_for(const char* call) {
  for (std::size_t number = 0; number < kDeviceKinds.size(); ++number) {
    const std::uint64_t asked = size_from_environment(call, kDeviceSizes[number]);
    std::uint64_t first = 0, others = 0;
    int other = 0;  // the last PE with another value than PE 0
    const auto compare = [&](int pe, std::uint64_t bytes) {
      if (pe == 0) first = bytes;
      if (bytes != first) others = bytes, other = pe;
    };
    if (!tell_all(call, asked, compare)) return;
    const std::string what = std::string{kDeviceSizes[number]} + " asks for ";
    if (other != 0)
      return fail(call, what + std::to_string(first) + " bytes at PE 0 and for " + std::to_string(others) + " at PE " +
                            std::to_string(other) + "; give all PEs the same");
    if (asked != 0 && !open_device_heap(call, number, asked, 0))
      return fail(call, what + std::to_string(asked) + " bytes of each PE's device: " + shmemx_error_text());
  }
}

bool World::grow_device_heap(std::size_t number, std::size_t more) {
  const std::uint64_t asked = device_asked_[number];
  const std::uint64_t wanted = sum(asked, std::max(asked, with_room_beside(more)));
  ist_heap heap = devices_[number].heap;
  std::uint64_t before = 0, after = 0;
  if (ist_heap_room(heap, &before, nullptr) != IST_OK || ist_heap_grow(heap, wanted) != IST_OK ||
      ist_heap_room(heap, &after, nullptr) != IST_OK) {
    remember(ist_error_text());
    return false;
  }
  device_asked_[number] = wanted;
  device_bytes_[number].fetch_add(after - before, std::memory_order_release);
  return true;
}

}  // namespace ist::shmem
