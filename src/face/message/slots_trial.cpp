#include "face/message/slots_trial.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>

#include "base/log.hpp"
#include "collective/learned_copies.hpp"
#include "path/shm/pair_slot.hpp"
#include "protocol/copy_beliefs.hpp"
#include "protocol/copy_choice.hpp"

namespace ist {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTag = 1;  // nobody else sends between these two yet
constexpr int kInARow = 16;
constexpr std::size_t kTrialRoom = kInARow * kPairPayload;
// In which either way of one copy or two is tried as often as it is at first (copy_choice.hpp); and of each half, both of which have to agree.
constexpr int kWarmRounds = 24;
static_assert(kWarmRounds * (1 + kInARow) >= 2 * CopyChoice::first_trials(kibibytes(64)));
// And once round a pair's room by the shortest that are tried, whose pages nobody has touched: 24 KiB took 20 us in place of 2.5 while these were new.
static_assert(std::uint64_t{kWarmRounds} * (1 + kInARow) * kibibytes(24).value >= kFirstPart * kBlock);
constexpr int kRounds = 12;
constexpr std::chrono::milliseconds kLongest{300};

// What the first one says comes next. No bytes: it is over, and so much was found; 0: nothing.
struct SlotsOrder {
  std::uint64_t bytes = 0;
  std::uint64_t rounds = 0;
  std::uint64_t both_ways = 0;  // rows go from the other one, too
  std::uint64_t up_to = 0;
};

class SlotsTrial {
 public:
  SlotsTrial(ist_comm comm, int other)
      : comm_(comm),
        other_(other),
        out_(new (std::nothrow) std::byte[kTrialRoom]()),
        in_(new (std::nothrow) std::byte[kTrialRoom]()) {}
  // Up to which size slots are no slower, at least what another world found. 0: that could not be told. On the rank that leads, of sizes from there on.
  double lead(std::size_t from, double found_before, bool may) {
    int other_may = 0;
    call([&] { return ist_recv(ist_host(&other_may), 1, IST_INT, other_, kTag, comm_, IST_STATUS_IGNORE); });
    if (!may || other_may == 0 || !out_ || !in_) return end(0);
    until_ = Clock::now() + kLongest;
    const auto announcing_is_quicker = [&](std::size_t bytes) { return compare(bytes) || !goes_on(); };
    const auto up_to = last_in_slots(from, kPairPayload, announcing_is_quicker);
    return end(goes_on() && up_to ? std::max(static_cast<double>(*up_to), found_before) : 0);
  }
  // IST_OK: none, or that the other one is gone, which whatever is called next tells.
  int failure() const { return code_ == IST_ERR_PEER_DEAD || code_ == IST_ERR_PEER_LEFT ? IST_OK : code_; }
  double follow() {
    const int may = out_ && in_ ? 1 : 0;
    call([&] { return ist_send(ist_host(&may), 1, IST_INT, other_, kTag, comm_); });
    for (;;) {
      SlotsOrder order;
      call([&] { return ist_recv(ist_host(&order), sizeof order, IST_BYTE, other_, kTag, comm_, IST_STATUS_IGNORE); });
      if (code_ != IST_OK || order.bytes == 0) return static_cast<double>(order.up_to);
      for (std::uint64_t round = 0; round < order.rounds; ++round)
        for (const bool announced : {false, true}) {
          receive(order.bytes);
          send(order.bytes, announced);
          receive_row(order.bytes);
          if (order.both_ways != 0) send_row(order.bytes, announced);
        }
    }
  }

 private:
  using Seconds = std::array<std::array<double, kRounds>, 2>;  // in slots, announced; of the last rounds

  double end(double found) {
    const auto up_to = static_cast<std::uint64_t>(found);
    SlotsOrder order{.up_to = up_to};
    tell(order);
    return code_ == IST_OK ? static_cast<double>(up_to) : 0;
  }
  bool compare(std::size_t bytes) {
    run({.bytes = bytes, .rounds = kWarmRounds, .both_ways = 1});
    return std::max(ratio(bytes), ratio(bytes)) < kSurelyQuicker;
  }
  // Of the times when messages are announced to those when they go in slots: the mean of both shapes.
  double ratio(std::size_t bytes) {
    const auto [alone, row] = run({.bytes = bytes, .rounds = kRounds});
    return goes_on() ? std::sqrt(median(alone[1]) / median(alone[0]) * median(row[1]) / median(row[0])) : 1;
  }
  bool goes_on() const { return code_ == IST_OK && Clock::now() < until_; }
  // In few rounds at a time: where something else has the processors each of them takes long.
  std::array<Seconds, 2> run(const SlotsOrder& order) {
    constexpr std::uint64_t kAtOnce = 2;
    static_assert(kRounds % kAtOnce == 0 && kWarmRounds % kAtOnce == 0);
    std::array<Seconds, 2> taken{};
    for (std::uint64_t round = 0; round < order.rounds && goes_on(); round += kAtOnce) {
      SlotsOrder some = order;
      some.rounds = kAtOnce;
      tell(some);
      for (std::uint64_t one = round; one < round + kAtOnce; ++one)
        for (const bool announced : {false, true}) time_round(order, announced, one % kRounds, taken);
    }
    return taken;
  }
  void time_round(const SlotsOrder& order, bool announced, std::uint64_t round, std::array<Seconds, 2>& taken) {
    const auto start = Clock::now();
    send(order.bytes, announced);
    receive(order.bytes);
    const auto between = Clock::now();
    send_row(order.bytes, announced);
    if (order.both_ways != 0) receive_row(order.bytes);
    const auto stop = Clock::now();
    taken[0][announced ? 1 : 0][round] = std::chrono::duration<double>(between - start).count();
    taken[1][announced ? 1 : 0][round] = std::chrono::duration<double>(stop - between).count();
  }
  static double median(std::array<double, kRounds> times) {
    std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
    return times[kRounds / 2];
  }

  void tell(SlotsOrder& order) {
    call([&] { return ist_send(ist_host(&order), sizeof order, IST_BYTE, other_, kTag, comm_); });
  }
  void send(std::size_t bytes, bool announced) {
    write_lines(bytes);
    const auto send = announced ? ist_ssend : ist_send;
    call([&] { return send(ist_host(out_.get()), count(bytes), IST_BYTE, other_, kTag, comm_); });
  }
  void receive(std::size_t bytes) {
    call([&] { return ist_recv(ist_host(in_.get()), count(bytes), IST_BYTE, other_, kTag, comm_, IST_STATUS_IGNORE); });
  }
  void send_row(std::size_t bytes, bool announced) {
    write_lines(kInARow * bytes);
    const auto start = announced ? ist_issend : ist_isend;
    in_a_row([&](std::size_t n, ist_request* request) {
      return start(ist_host(&out_[n * bytes]), count(bytes), IST_BYTE, other_, kTag, comm_, request);
    });
    receive(0);
  }
  void receive_row(std::size_t bytes) {
    in_a_row([&](std::size_t n, ist_request* request) {
      return ist_irecv(ist_host(&in_[n * bytes]), count(bytes), IST_BYTE, other_, kTag, comm_, request);
    });
    call([&] { return ist_send(ist_host(out_.get()), 0, IST_BYTE, other_, kTag, comm_); });
  }
  // As programs write what they send.
  void write_lines(std::size_t bytes) {
    constexpr std::size_t kLine = 64;
    for (std::size_t at = 0; at < bytes; at += kLine) out_[at] = static_cast<std::byte>(static_cast<unsigned>(out_[at]) + 1);
  }
  // What was started is waited for, whatever went wrong meanwhile.
  template <class Start>
  void in_a_row(const Start& start) {
    std::array<ist_request, kInARow> requests{};
    for (std::size_t n = 0; n < kInARow; ++n) call([&] { return start(n, &requests[n]); });
    std::array<ist_status, kInARow> statuses{};
    int waited = ist_waitall(kInARow, requests.data(), statuses.data());
    for (const ist_status& status : statuses)
      if (waited == IST_ERR_IN_STATUS && status.code != IST_OK) waited = status.code;
    call([&] { return waited; });
  }
  // The first failure ends it: nothing is called behind that.
  template <class Call>
  void call(const Call& one) {
    if (code_ == IST_OK) code_ = one();
  }
  static std::int64_t count(std::size_t bytes) { return static_cast<std::int64_t>(bytes); }

  ist_comm comm_;
  int other_;
  int code_ = IST_OK;
  Clock::time_point until_;
  std::unique_ptr<std::byte[]> out_, in_;  // null: there is no memory
};

// Slots as long as they are built in, and one copy.
bool can_try(const World& world, Rank other) {
  for (const auto& path : world.paths())
    if (Link* const link = path->link(other); link != nullptr)
      return link->slot_limit.value == kPairPayload && link->could_read_peer();
  return false;
}

// What is kept of it, by the first of the two.
void keep(double up_to, double milliseconds) try {
  const std::string file = learned_copies_path();
  const bool kept = keep_learned_slots(file, up_to);
  const bool again = lacks_slots(file, MachineProfile{});
  const std::string took = std::to_string(static_cast<int>(milliseconds)) + " ms";
  const std::string more = "; isthmus model fit measures it, too, and longer";
  if (up_to > 0)
    log::info("messages between host buffers go in slots up to " + std::to_string(static_cast<std::uint64_t>(up_to)) +
              " bytes, found out in " + took +
              (again  ? "; the next world tries once more"
               : kept ? ", once for this machine"
                      : ", and it could not be kept") +
              more);
  else
    log::info(
        "up to which size messages between host buffers are quicker in slots could not be told in " + took +
        ", as where processors have much else to do, or ranks may not read each other's memory: they go so as far as they "
        "can, and the next worlds try again, three in all" +
        more);
} catch (const std::exception&) {  // it is found out again
  return;
}

}  // namespace

Status try_slots(ist_world world) {
  const auto found = look_up(world);
  if (!found.ok()) return found.status();
  World& with = *found->world;
  const Rank other = with.slots_trial_with();
  if (other == kNobody) return {};
  SlotsTrial trial(comm_handle(world, with.whole()), other.value);
  const auto start = Clock::now();
  const bool leads = with.engine().rank() < other;
  const bool may = leads && can_try(with, other);
  const std::size_t from = std::max(with.settings().eager_limit, kAlwaysInSlots).value;
  const double up_to = leads ? trial.lead(from, slots_of_one_world(learned_copies_path()), may) : trial.follow();
  if (leads) keep(up_to, std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  if (trial.failure() != IST_OK) {
    remove_world(world).reset();  // before anything else that takes memory, or the other one would wait
    return {static_cast<Code>(trial.failure()), ist_error_text()};
  }
  const std::lock_guard lock(with.engine().lock());
  with.engine().end_trial(other, up_to);
  return {};
}

}  // namespace ist
