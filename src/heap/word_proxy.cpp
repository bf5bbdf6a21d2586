#include "heap/word_proxy.hpp"

#include <algorithm>
#include <string>

#include "base/log.hpp"
#include "base/pause.hpp"
#include "base/quiet_thread.hpp"
#include "heap/word.hpp"

namespace ist {
namespace {

using device::Change;
using device::Pair;

static_assert(static_cast<int>(Change::fetch) == IST_ATOMIC_FETCH && static_cast<int>(Change::set) == IST_ATOMIC_SET &&
              static_cast<int>(Change::add) == IST_ATOMIC_ADD && static_cast<int>(Change::swap) == IST_ATOMIC_SWAP &&
              static_cast<int>(Change::bitwise_and) == IST_ATOMIC_AND &&
              static_cast<int>(Change::bitwise_or) == IST_ATOMIC_OR &&
              static_cast<int>(Change::bitwise_xor) == IST_ATOMIC_XOR);

// Vain looks, each of some nanoseconds, before the processor is given away, and before the thread sleeps.
constexpr unsigned kLooks = 4000;
constexpr unsigned kTurns = 4200;
constexpr std::chrono::microseconds kShortestSleep{20};

// What the kernel's thread had stored before its fence is there for whoever finds the packets behind it.
Pair load(const Pair& from) { return {device::load_acquire(&from.low), device::load_acquire(&from.high)}; }

template <class T>
T change_as(std::byte* word, const device::Wanted& wanted) {
  if (wanted.change == Change::compare_swap) {
    T found = static_cast<T>(wanted.expected);
    std::atomic_ref(*reinterpret_cast<T*>(word)).compare_exchange_strong(found, static_cast<T>(wanted.operand));
    return found;
  }
  return change<T>(word, static_cast<ist_atomic>(wanted.change), static_cast<T>(wanted.operand));
}

bool is_known(Change change) { return change <= Change::compare_swap && change != static_cast<Change>(IST_ATOMIC_INC); }

void rest(unsigned vain) {
  if (vain < kLooks)
    pause_briefly();
  else if (vain < kTurns)
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(std::min(kShortestSleep * (1 + (vain - kTurns) / 256), WordProxy::kLongestSleep));
}

}  // namespace

WordProxy::~WordProxy() {
  ends_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
}

Status WordProxy::start() {
  auto thread = quiet_thread("words of a heap that kernels change", [this] { run(); });
  if (thread.ok()) thread_ = std::move(*thread);
  return thread.status();
}

void WordProxy::run() {
  for (unsigned vain = 0; !ends_.load(std::memory_order_relaxed);) {
    if (step()) {
      vain = 0;
    } else {
      rest(vain);
      vain += vain < ~0U ? 1 : 0;
    }
  }
}

bool WordProxy::is_there(std::uint64_t ticket) const {
  const device::ProxyRequest& place = ring_.requests[ticket % device::kProxyPlaces];
  const std::uint32_t number = device::proxy_number(ticket);
  return has_come(load(place.what), number) && has_come(load(place.offset), number) &&
         has_come(load(place.operand), number) && has_come(load(place.expected), number);
}

// Every packet is looked at: they come in any order.
bool WordProxy::step() {
  const device::ProxyRequest& place = ring_.requests[next_ % device::kProxyPlaces];
  const std::uint32_t number = device::proxy_number(next_);
  const Pair what = load(place.what);
  if (!has_come(what, number)) return false;
  const Pair offset = load(place.offset), operand = load(place.operand), expected = load(place.expected);
  if (!has_come(offset, number) || !has_come(operand, number) || !has_come(expected, number)) return false;
  const std::uint64_t words = bytes_in(what);
  const auto lower = static_cast<std::uint32_t>(words);
  const std::uint64_t before =
      change_word({static_cast<Change>(lower & 0xffU), lower & ~0xffU, static_cast<std::int32_t>(words >> 32U),
                   bytes_in(offset), bytes_in(operand), bytes_in(expected)});
  // Also where nobody waits for it: what lies there then is of the last use of the place, and never has the number of the next one.
  Pair& answer = ring_.answers[next_ % device::kProxyPlaces];
  const Pair packets = device::packed(number, before);
  device::store_release(&answer.low, packets.low);
  device::store_release(&answer.high, packets.high);
  // Last: whoever finds it may overwrite the request, and takes the word for changed.
  device::store_release(&ring_.done, ++next_);
  return true;
}

std::uint64_t WordProxy::change_word(const device::Wanted& wanted) {
  const std::uint64_t size = (wanted.flags & device::kHalfWord) != 0 ? 4 : 8;
  const std::uint64_t there = bytes_.load(std::memory_order_relaxed);
  if (wanted.pe < 0 || wanted.pe >= parts_.pes || wanted.offset >= there || there - wanted.offset < size ||
      wanted.offset % size != 0 || !is_known(wanted.change)) {
    log::once(log::Level::warning, "a kernel asked for a change of no word",
              "a kernel asked for change " + std::to_string(static_cast<unsigned>(wanted.change)) + " of the " +
                  std::to_string(size) + " bytes at offset " + std::to_string(wanted.offset) + " of PE " +
                  std::to_string(wanted.pe) + "; the heap has PEs 0 to " + std::to_string(parts_.pes - 1) + " with " +
                  std::to_string(there) + " bytes each, and nothing was changed: look at what the kernel was given");
    return 0;
  }
  std::byte* const word = parts_.base + static_cast<std::uint64_t>(wanted.pe) * parts_.stride.value + wanted.offset;
  return size == 4 ? change_as<std::uint32_t>(word, wanted) : change_as<std::uint64_t>(word, wanted);
}

// A kernel that has ended has written all its packets. Younger tickets may be there before older ones, which other kernels have taken and
// not written yet: the last one that is there counts. One whose place holds a younger ticket's packets is done.
bool WordProxy::drain(std::chrono::milliseconds patience) const {
  using Clock = std::chrono::steady_clock;
  const std::uint64_t first = done();
  std::uint64_t until = first;
  for (std::uint64_t ticket = first; ticket < first + device::kProxyPlaces; ++ticket)
    if (is_there(ticket) || done() > ticket) until = ticket + 1;
  std::uint64_t before = first;
  for (auto moved = Clock::now(); done() < until;) {
    if (done() != before || is_there(before)) {
      before = done();
      moved = Clock::now();
    }
    if (Clock::now() - moved > patience) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace ist
