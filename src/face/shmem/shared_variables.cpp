#include "face/shmem/shared_variables.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <new>
#include <string>
#include <string_view>

#include "base/log.hpp"
#include "face/shmem/held_stores.hpp"

namespace ist {
namespace {

constexpr std::uint64_t kPagesAtOnce = 16;
constexpr std::uint64_t kAtOnce = kPagesAtOnce * kPage;

struct Shared {
  VariableSegment segment;
  std::byte* copy = nullptr;  // between the beginning and the end of a fork()
};

struct State {
  std::mutex mutex;
  std::array<Shared, ExecutableCard::kMostSegments> all{};
  std::size_t count = 0;
  std::span<Shared> shared() { return std::span{all}.first(count); }
};
constinit State state;

// Not memcpy: the sanitizers have red zones between variables, which go along.
[[gnu::noinline, gnu::no_sanitize_address, gnu::no_sanitize_thread]] void copy_page_unless_zero(std::byte* to,
                                                                                                const std::byte* from) {
  constexpr std::size_t kWords = kPage / sizeof(std::uint64_t);
  const auto* const source = reinterpret_cast<const volatile std::uint64_t*>(from);
  auto* const target = reinterpret_cast<volatile std::uint64_t*>(to);
  std::uint64_t any = 0;
  for (std::size_t i = 0; i < kWords; ++i) any |= source[i];
  if (any == 0) return;
  for (std::size_t i = 0; i < kWords; ++i) target[i] = source[i];
}

// Of shared memory a page that was never touched comes to be when it is read. mincore() tells it from others where none can have been
// written out.
bool nothing_is_written_out() {
  struct sysinfo info {};
  return ::sysinfo(&info) == 0 && info.totalswap == 0;
}

// Into fresh memory, at most kAtOnce.
void copy_touched(std::byte* to, std::byte* from, Bytes size, bool ask) {
  std::array<unsigned char, kPagesAtOnce> touched;
  touched.fill(1);
  if (ask && ::syscall(SYS_mincore, from, size.value, touched.data()) != 0) touched.fill(1);
  for (std::uint64_t page = 0; page * kPage < size.value; ++page)
    if ((touched[page] & 1U) != 0) copy_page_unless_zero(to + page * kPage, from + page * kPage);
}

std::byte* fresh_memory(Bytes size) {
  void* const made = ::mmap(nullptr, size.value, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return made == MAP_FAILED ? nullptr : static_cast<std::byte*>(made);
}

// Here and in copy_touched() by the system call itself: a program may have a function of its own between, which counts calls, say, while
// nobody may store into its variables.
//
// Pages of `memory`, or, where `moved` is 0, a second mapping of them, take the place of what is at `where`, in one step.
bool put_in_place(std::byte* where, std::byte* memory, Bytes size, std::uint64_t moved) {
  return ::syscall(SYS_mremap, memory, moved, size.value, MREMAP_MAYMOVE | MREMAP_FIXED, where) != -1;
}

Status make_private(const VariableSegment& segment, HeldStores& stores) {
  std::byte* const fresh = fresh_memory(segment.bytes);
  if (fresh == nullptr) return system_error("mmap of " + std::to_string(segment.bytes.value) + " bytes for variables");
  const bool ask = nothing_is_written_out();
  for (std::uint64_t done = 0; done < segment.bytes.value; done += kAtOnce) {
    const Bytes part = smaller(segment.bytes - Bytes{done}, Bytes{kAtOnce});
    Status failed = stores.hold(segment.begin + done, part);
    if (failed.ok()) {
      copy_touched(fresh + done, segment.begin + done, part, ask);
      if (put_in_place(segment.begin + done, fresh + done, part, part.value)) {
        stores.replaced();
        continue;
      }
      stores.put_back();
      failed = system_error("mremap of variables to private memory");
    }
    ::munmap(fresh + done, segment.bytes.value - done);
    return failed;
  }
  return {};
}

Status share_part(std::byte* begin, std::byte* memory, Bytes part, HeldStores& stores) {
  IST_TRY(stores.hold(begin, part));
  for (std::uint64_t at = 0; at < part.value; at += kPage) copy_page_unless_zero(memory + at, begin + at);
  if (put_in_place(begin, memory, part, 0)) {
    stores.replaced();
    return {};
  }
  stores.put_back();
  return system_error("mremap of " + std::to_string(part.value) + " bytes of variables to shared memory");
}

Status share(const VariableSegment& segment, std::byte* memory, HeldStores& stores) {
  for (std::uint64_t done = 0; done < segment.bytes.value; done += kAtOnce) {
    const Bytes part = smaller(segment.bytes - Bytes{done}, Bytes{kAtOnce});
    Status shared = share_part(segment.begin + done, memory + done, part, stores);
    if (shared.ok()) continue;
    VariableSegment begun = segment;
    begun.bytes = Bytes{done};
    if (done != 0) static_cast<void>(make_private(begun, stores));
    return shared;
  }
  return {};
}

// fork() holds this lock from before() to where parent and child go on.
void before_fork() {
  state.mutex.lock();
  const bool ask = state.count != 0 && nothing_is_written_out();
  for (Shared& each : state.shared()) {
    each.copy = fresh_memory(each.segment.bytes);
    if (each.copy == nullptr) continue;
    for (std::uint64_t done = 0; done < each.segment.bytes.value; done += kAtOnce)
      copy_touched(each.copy + done, each.segment.begin + done, smaller(each.segment.bytes - Bytes{done}, Bytes{kAtOnce}),
                   ask);
  }
}

// Where memory is short there may be none for the log's words.
void say_that_a_child_has_none() {
  static constexpr std::string_view kText =
      "there was no memory for a forked process's own variables: it cannot store into them";
  try {
    log::once(log::Level::warning, std::string{kText});
  } catch (const std::bad_alloc&) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kText.data(), kText.size());
  }
}

void in_parent() {
  bool all_copied = true;
  for (Shared& each : state.shared()) {
    all_copied = all_copied && each.copy != nullptr;
    if (each.copy != nullptr) ::munmap(each.copy, each.segment.bytes.value);
    each.copy = nullptr;
  }
  state.mutex.unlock();
  if (!all_copied) say_that_a_child_has_none();
}

// Where there was no memory for a copy, a store ends the child instead of changing its parent.
void in_child() {
  for (Shared& each : state.shared()) {
    const bool own =
        each.copy != nullptr && put_in_place(each.segment.begin, each.copy, each.segment.bytes, each.segment.bytes.value);
    if (!own) ::mprotect(each.segment.begin, each.segment.bytes.value, PROT_READ);
    each.copy = nullptr;
  }
  state.count = 0;
  state.mutex.unlock();
}

// When the library is loaded, before the program can register handlers of its own: those run earlier in the parent, so that what they
// store is copied, and later in the child, so that they store into its own variables.
[[gnu::constructor]] void look_after_forks() { ::pthread_atfork(before_fork, in_parent, in_child); }

}  // namespace

Status share_variables(std::span<const VariableSegment> segments, std::byte* memory) {
  const std::lock_guard lock(state.mutex);
  if (state.count != 0 || segments.size() > state.all.size())
    return {IST_ERR_INTERNAL, state.count != 0 ? "variables are shared already"
                                               : std::to_string(segments.size()) + " segments of variables are too many"};
  HeldStores stores{segments};
  Status failed;
  for (const VariableSegment& each : segments) {
    failed = share(each, memory, stores);
    if (!failed.ok()) break;
    memory += each.bytes.value;
    state.all[state.count++] = {each, nullptr};
  }
  if (failed.ok()) return {};
  for (const Shared& each : state.shared()) static_cast<void>(make_private(each.segment, stores));
  state.count = 0;
  return failed;
}

Status make_variables_private() {
  const std::lock_guard lock(state.mutex);
  if (state.count == 0) return {};
  std::array<VariableSegment, ExecutableCard::kMostSegments> segments;
  for (std::size_t i = 0; i < state.count; ++i) segments[i] = state.all[i].segment;
  HeldStores stores{std::span{segments}.first(state.count)};
  while (state.count != 0) {
    IST_TRY(make_private(state.all[state.count - 1].segment, stores));
    --state.count;
  }
  return {};
}

bool variables_are_shared() {
  const std::lock_guard lock(state.mutex);
  return state.count != 0;
}

}  // namespace ist
