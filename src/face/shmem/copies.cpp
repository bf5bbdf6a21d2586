#include "face/shmem/copies.hpp"

#include <optional>
#include <string>

#include "face/shmem/also.hpp"
#include "face/shmem/atomics.hpp"
#include "face/shmem/errors.hpp"
#include "face/shmem/ordering.hpp"
#include "face/shmem/regions.hpp"
#include "face/shmem/waits.hpp"
#include "face/shmem/world.hpp"

namespace ist::shmem {
namespace {

// Where there is device memory, the drivers know what an address of the caller's is; in the host's heap it is the host's, and in one of a
// device that heap knows.
ist_buffer local_buffer(const void* address, std::size_t bytes) {
  if (reach(address, bytes, hot.pe) != nullptr) return ist_host(address);
  ist_buffer own{};
  const Place place = look(address, bytes, hot.pe);
  if (place.device != nullptr && ist_heap_buffer(place.device, address, &own) == IST_OK) return own;
  return ist_auto(address);
}

}  // namespace

bool put_elsewhere(const char* call, void* dest, const void* source, std::size_t bytes, int pe, bool wait) {
  if (bytes == 0) return check_pe(call, pe);
  const Place to = find(call, dest, bytes, pe);
  if (to.at == nullptr) return false;
  if (on_hosts()) {
    copy_bytes(to.at, source, bytes);
    return true;
  }
  const ist_buffer from = local_buffer(source, bytes);
  if (to.device == nullptr) return !failed(call, ist_memory_copy(world().handle(), ist_host(to.at), from, bytes));
  return !failed(call,
                 wait ? ist_heap_put(to.device, dest, from, bytes, pe) : ist_heap_put_nbi(to.device, dest, from, bytes, pe));
}

void get_elsewhere(const char* call, void* dest, const void* source, std::size_t bytes, int pe, bool wait) {
  if (bytes == 0) {
    check_pe(call, pe);
    return;
  }
  const Place from = find(call, source, bytes, pe);
  if (from.at == nullptr) return;
  if (on_hosts()) return copy_bytes(dest, from.at, bytes);
  const ist_buffer to = local_buffer(dest, bytes);
  if (from.device == nullptr)
    failed(call, ist_memory_copy(world().handle(), to, ist_host(from.at), bytes));
  else if (wait)
    failed(call, ist_heap_get(from.device, to, source, bytes, pe));
  else
    failed(call, ist_heap_get_nbi(from.device, to, source, bytes, pe));
}

namespace {

template <class Copy>
void each_block(const Strided& what, const Copy& copy) {
  const std::size_t bytes = what.block * what.size;
  auto* to = static_cast<std::byte*>(what.dest);
  const auto* from = static_cast<const std::byte*>(what.source);
  for (std::size_t i = 0; i < what.count; ++i) {
    copy(to, from, bytes);
    to += what.dest_stride * static_cast<std::ptrdiff_t>(what.size);
    from += what.source_stride * static_cast<std::ptrdiff_t>(what.size);
  }
}

// All blocks together: where they begin, which is the last one where they go backwards, and how many bytes there are to the end.
struct Extent {
  const std::byte* begin;
  std::size_t bytes;
  std::size_t before;  // the first block
};
// Nothing: they end behind the last address that there is.
std::optional<Extent> extent_of(const void* first, std::ptrdiff_t stride, const Strided& what) {
  std::size_t block = 0;
  std::size_t between = 0;
  std::size_t bytes = 0;
  const std::size_t step = stride < 0 ? 0 - static_cast<std::size_t>(stride) : static_cast<std::size_t>(stride);
  if (__builtin_mul_overflow(what.block, what.size, &block) || __builtin_mul_overflow(step, what.size, &between) ||
      __builtin_mul_overflow(between, what.count - 1, &between) || __builtin_add_overflow(between, block, &bytes))
    return std::nullopt;
  const std::size_t before = stride < 0 ? between : 0;
  return Extent{static_cast<const std::byte*>(first) - before, bytes, before};
}

// As reach_directly(), of the first block: where all of them are to be found so.
std::byte* reach_all(const void* first, std::ptrdiff_t stride, const Strided& what, int pe) {
  const auto extent = extent_of(first, stride, what);
  std::byte* const at = extent ? reach_directly(extent->begin, extent->bytes, pe) : nullptr;
  return at != nullptr ? at + extent->before : nullptr;
}

bool is_empty(const Strided& what) { return what.count == 0 || what.block == 0; }

}  // namespace

bool find_all(const char* call, const void* first, std::ptrdiff_t stride, const Strided& what, int pe) {
  if (is_empty(what)) return true;
  if (const auto extent = extent_of(first, stride, what)) return find(call, extent->begin, extent->bytes, pe).at != nullptr;
  fail(call, std::to_string(what.count) + " blocks of " + std::to_string(what.block) + " elements, " +
                 std::to_string(stride) + " apart, are more than there are addresses");
  return false;
}

// Nothing is copied where not all of it may be.
void strided_put(const char* call, shmem_ctx_t context, const Strided& what, int pe) {
  if (!to_world(call, context, pe) || !check_pe(call, pe) || is_empty(what)) return;
  if (std::byte* const to = reach_all(what.dest, what.dest_stride, what, pe); to != nullptr) {
    Strided there = what;
    there.dest = to;
    each_block(there, copy_bytes);
    return;
  }
  if (!find_all(call, what.dest, what.dest_stride, what, pe)) return;
  each_block(what,
             [&](void* to, const void* from, std::size_t bytes) { put(call, SHMEM_CTX_DEFAULT, to, from, bytes, pe); });
}

void strided_get(const char* call, shmem_ctx_t context, const Strided& what, int pe) {
  if (!to_world(call, context, pe) || !check_pe(call, pe) || is_empty(what)) return;
  if (const std::byte* const from = reach_all(what.source, what.source_stride, what, pe); from != nullptr) {
    Strided there = what;
    there.source = from;
    each_block(there, copy_bytes);
    return;
  }
  if (!find_all(call, what.source, what.source_stride, what, pe)) return;
  each_block(what,
             [&](void* to, const void* from, std::size_t bytes) { get(call, SHMEM_CTX_DEFAULT, to, from, bytes, pe); });
}

std::string no_signal_operation(int operation) {
  return "the signal's operation is " + std::to_string(operation) + "; it must be SHMEM_SIGNAL_SET or SHMEM_SIGNAL_ADD";
}

namespace {

// Where the signal's word is; null, and fail() was called, where it cannot be sent.
Place place_of(const char* call, int pe, const Signal& signal) {
  if (signal.operation != SHMEM_SIGNAL_SET && signal.operation != SHMEM_SIGNAL_ADD) {
    fail(call, no_signal_operation(signal.operation));
    return {};
  }
  if (std::byte* const at = reach(signal.word, sizeof signal.value, pe); at != nullptr) [[likely]]
    return {at, nullptr};
  return find(call, signal.word, sizeof signal.value, pe);
}

// On a heap of devices, bytes and signal at once; there may be no bytes.
void put_on_device(const char* call, ist_heap heap, const Sent& sent, const Signal& signal, int pe) {
  failed(call,
         ist_heap_put_signal(heap, sent.dest, local_buffer(sent.source, sent.bytes), sent.bytes, signal.word, signal.value,
                             signal.operation == SHMEM_SIGNAL_SET ? IST_SIGNAL_SET : IST_SIGNAL_ADD, pe));
}

void send(const char* call, int pe, const Place& place, const Signal& signal) {
  if (place.device != nullptr) return put_on_device(call, place.device, {signal.word, &signal.value, 0, pe}, signal, pe);
  const std::atomic_ref word(*reinterpret_cast<std::uint64_t*>(place.at));
  if (signal.operation == SHMEM_SIGNAL_SET)
    word.store(signal.value, std::memory_order_release);
  else
    word.fetch_add(signal.value, std::memory_order_acq_rel);
}

}  // namespace

void send_signal(const char* call, int pe, const Signal& signal) {
  if (const Place place = place_of(call, pe, signal); place.at != nullptr) send(call, pe, place, signal);
}

// Nothing is put where the signal cannot be sent, and no signal is sent where nothing can be put.
void put_signal(const char* call, shmem_ctx_t context, const Sent& sent, const Signal& signal) {
  int pe = sent.pe;
  if (context != SHMEM_CTX_DEFAULT && !to_world(call, context, pe)) return;
  const Place place = place_of(call, pe, signal);
  if (place.at == nullptr) return;
  if (std::byte* const to = reach_directly(sent.dest, sent.bytes, pe); to != nullptr) [[likely]] {
    copy_bytes(to, sent.source, sent.bytes);
  } else if (sent.bytes != 0 && place.device != nullptr) {
    const Place dest = find(call, sent.dest, sent.bytes, pe);
    if (dest.at == nullptr) return;
    if (dest.device == place.device) return put_on_device(call, place.device, sent, signal, pe);
    if (!put_elsewhere(call, sent.dest, sent.source, sent.bytes, pe)) return;
  } else if (sent.bytes != 0 && !put_elsewhere(call, sent.dest, sent.source, sent.bytes, pe)) {
    return;
  }
  if (!on_hosts() && !fence_devices(call)) return;
  send(call, pe, place, signal);
}

namespace {
void signal_from(const char* call, shmem_ctx_t context, int pe, const Signal& signal) {
  guarded(call, [&] {
    if (to_world(call, context, pe)) send_signal(call, pe, signal);
  });
}
}  // namespace

}  // namespace ist::shmem

using namespace ist::shmem;
extern "C" {

std::uint64_t pshmem_signal_fetch(const std::uint64_t* word) {
  return guarded("shmem_signal_fetch", 0U, [&] { return own_word("shmem_signal_fetch", word).look(); });
}
SHMEM_ALSO(signal_fetch);
std::uint64_t pshmem_signal_wait_until(std::uint64_t* word, int compare, std::uint64_t value) {
  return guarded("shmem_signal_wait_until", 0U,
                 [&] { return wait_for_word("shmem_signal_wait_until", word, compare, value); });
}
SHMEM_ALSO(signal_wait_until);
void pshmem_ctx_signal_add(shmem_ctx_t context, std::uint64_t* word, std::uint64_t value, int pe) {
  signal_from("shmem_ctx_signal_add", context, pe, {word, value, SHMEM_SIGNAL_ADD});
}
SHMEM_ALSO(ctx_signal_add);
void pshmem_signal_add(std::uint64_t* word, std::uint64_t value, int pe) {
  signal_from("shmem_signal_add", SHMEM_CTX_DEFAULT, pe, {word, value, SHMEM_SIGNAL_ADD});
}
SHMEM_ALSO(signal_add);
void pshmem_ctx_signal_set(shmem_ctx_t context, std::uint64_t* word, std::uint64_t value, int pe) {
  signal_from("shmem_ctx_signal_set", context, pe, {word, value, SHMEM_SIGNAL_SET});
}
SHMEM_ALSO(ctx_signal_set);
void pshmem_signal_set(std::uint64_t* word, std::uint64_t value, int pe) {
  signal_from("shmem_signal_set", SHMEM_CTX_DEFAULT, pe, {word, value, SHMEM_SIGNAL_SET});
}
SHMEM_ALSO(signal_set);
}
