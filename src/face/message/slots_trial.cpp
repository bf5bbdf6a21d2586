#include "face/message/slots_trial.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "collective/learned_copies.hpp"
#include "path/shm/pair_slot.hpp"
#include "protocol/copy_beliefs.hpp"

namespace ist {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTag = 1;  // nobody else sends between these two yet
constexpr int kInARow = 16;
constexpr int kWarmRounds =
    10;                      // in which either way of one copy or two is tried as often as it is at first (copy_choice.hpp)
constexpr int kRounds = 12;  // of each half, both of which have to agree
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
  SlotsTrial(ist_comm comm, int other) : comm_(comm), other_(other), out_(kInARow * kPairPayload), in_(out_.size()) {}
  // Up to which size slots are no slower. 0: that could not be told. On the rank that leads, of sizes from there on.
  double lead(std::size_t from) {
    const auto start = Clock::now();
    bool told = true;
    const auto announcing_is_quicker = [&](std::size_t bytes) {
      told = told && code_ == IST_OK && Clock::now() - start < kLongest;
      return !told || compare(bytes);
    };
    const auto up_to = last_in_slots(from, kPairPayload, announcing_is_quicker);
    return end(told && code_ == IST_OK && up_to ? *up_to : 0);
  }
  double end(std::uint64_t up_to) {
    SlotsOrder order{.up_to = up_to};
    tell(order);
    return code_ == IST_OK ? static_cast<double>(up_to) : 0;
  }
  double follow() {
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
  using Seconds = std::array<std::vector<double>, 2>;  // in slots, announced

  bool compare(std::size_t bytes) {
    run({.bytes = bytes, .rounds = kWarmRounds, .both_ways = 1});
    return std::max(ratio(bytes), ratio(bytes)) < kSurelyQuicker;
  }
  // Of the times when messages are announced to those when they go in slots: the mean of both shapes.
  double ratio(std::size_t bytes) {
    const auto [alone, row] = run({.bytes = bytes, .rounds = kRounds});
    return code_ == IST_OK ? std::sqrt(median(alone[1]) / median(alone[0]) * median(row[1]) / median(row[0])) : 1;
  }
  std::array<Seconds, 2> run(SlotsOrder order) {
    Seconds alone;
    Seconds row;
    tell(order);
    for (std::uint64_t round = 0; round < order.rounds; ++round)
      for (const bool announced : {false, true}) {
        const auto start = Clock::now();
        send(order.bytes, announced);
        receive(order.bytes);
        const auto between = Clock::now();
        send_row(order.bytes, announced);
        if (order.both_ways != 0) receive_row(order.bytes);
        const auto stop = Clock::now();
        alone[announced ? 1 : 0].push_back(std::chrono::duration<double>(between - start).count());
        row[announced ? 1 : 0].push_back(std::chrono::duration<double>(stop - between).count());
      }
    return {alone, row};
  }
  static double median(std::vector<double> times) {
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    return *middle;
  }

  void tell(SlotsOrder& order) {
    call([&] { return ist_send(ist_host(&order), sizeof order, IST_BYTE, other_, kTag, comm_); });
  }
  void send(std::size_t bytes, bool announced) {
    write_lines(bytes);
    const auto send = announced ? ist_ssend : ist_send;
    call([&] { return send(ist_host(out_.data()), count(bytes), IST_BYTE, other_, kTag, comm_); });
  }
  void receive(std::size_t bytes) {
    call([&] { return ist_recv(ist_host(in_.data()), count(bytes), IST_BYTE, other_, kTag, comm_, IST_STATUS_IGNORE); });
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
    call([&] { return ist_send(ist_host(out_.data()), 0, IST_BYTE, other_, kTag, comm_); });
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
    const int waited = ist_waitall(kInARow, requests.data(), IST_STATUSES_IGNORE);
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
  std::vector<std::byte> out_, in_;
};

// Slots as long as they are built in, and one copy.
bool can_try(const World& world, Rank other) {
  for (const auto& path : world.paths())
    if (Link* const link = path->link(other); link != nullptr)
      return link->slot_limit.value == kPairPayload && link->reads_peer();
  return false;
}

// What is kept of it, by the first of the two.
void tell(double up_to, double milliseconds) {
  const bool kept = keep_learned_slots(learned_copies_path(), up_to);
  log::info("messages between host buffers go in slots " +
            (up_to > 0 ? "up to " + std::to_string(static_cast<std::uint64_t>(up_to)) + " bytes"
                       : std::string("as far as they can, since nothing could be told")) +
            " by trying, " + std::to_string(static_cast<int>(milliseconds)) + " ms, once for this machine" +
            (kept ? "" : "; it could not be kept") + "; isthmus model fit measures more, and longer");
}

}  // namespace

void try_slots(ist_world world) {
  const auto found = look_up(world);
  if (!found.ok()) return;
  World& with = *found->world;
  const Rank other = with.slots_trial_with();
  if (other == kNobody) return;
  SlotsTrial trial(comm_handle(world, with.whole()), other.value);
  const auto start = Clock::now();
  const bool leads = with.engine().rank() < other;
  double up_to = 0;
  if (leads && !can_try(with, other)) {
    trial.end(0);
  } else if (leads) {
    up_to = trial.lead(std::max(with.settings().eager_limit, kAlwaysInSlots).value);
    tell(up_to, std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  } else {
    up_to = trial.follow();
  }
  {
    const std::lock_guard lock(with.engine().lock());
    with.engine().end_trial(other, up_to);
  }
}

}  // namespace ist
