// Messages between neighbours, by every call that there is for them.
#include <algorithm>

#include "lane.hpp"

namespace soak {
namespace {

enum class Manner { exchange, burst, any, some, synchronous, persistent, probed, unexpected, replaced, cancelled };
constexpr const char* kManners[] = {"sendrecv",   "waitall", "waitany",    "testsome", "ssend",
                                    "persistent", "mprobe",  "unexpected", "replace",  "cancel"};

// What both ends know of a message.
struct Message {
  std::size_t bytes;
  Class from;
  Class to;
  std::size_t spare;  // room beyond its length
  bool later_from;    // the buffer has pending work when the call is made
  bool later_to;
  std::uint64_t seed;
};

class MessageLane final : public Lane {
 public:
  MessageLane(Rank& rank, Tally& tally, int number) : Lane(rank, tally, number, "message") {}

 private:
  // Every other lane has a communicator of its own, made and freed each round; the others share one and have tags of their own.
  bool own() const { return number_ % 2 == 0; }
  void open() override {
    if (own()) SOAK_IST(ist_comm_dup, rank_.comm, &comm_);
  }
  void close() override {
    if (own()) SOAK_IST(ist_comm_free, &comm_);
  }
  ist_comm comm() const { return own() ? comm_ : rank_.comm; }
  int tag(std::uint64_t message) const { return number_ * 1000 + static_cast<int>(message); }

  void step(std::uint64_t step) override;
  Message message(int sender, std::uint64_t number) const;
  void start_receives(std::vector<Held>& into);
  void start_sends(std::vector<Held>& from, bool synchronous);
  void wait_in(Manner manner);
  void persistent(std::vector<Held>& from, std::vector<Held>& into);
  void probed(std::vector<Held>& from, std::vector<Held>& into);
  void unexpected(std::vector<Held>& from, std::vector<Held>& into);
  void replaced();
  void cancelled();
  void exchange(const Held& from, const Held& into);
  void check_all(const std::vector<Held>& into, std::uint64_t again = 0);
  Held sending(std::uint64_t number, std::uint64_t again = 0);
  Held receiving(std::uint64_t number);
  static std::int64_t count(std::size_t bytes) { return static_cast<std::int64_t>(bytes); }

  ist_comm comm_ = IST_COMM_NULL;
  Manner manner_ = Manner::exchange;
  std::uint64_t messages_ = 0;
  std::vector<ist_request> requests_;
  Dice dice_{std::initializer_list<std::uint64_t>{0}};  // of this rank's own choices: where memory comes from
};

Message MessageLane::message(int sender, std::uint64_t number) const {
  Dice dice{seed_of(step_, sender, number), 1};
  Message found{};
  found.bytes = some_size(dice, rank_.options.most);
  found.from = dice.of(rank_.classes);
  found.to = dice.of(rank_.classes);
  found.spare = dice.one_in(3) ? dice.below(5000) : 0;
  found.later_from = dice.one_in(3);
  found.later_to = dice.one_in(3);
  found.seed = dice.next();
  return found;
}

Lane::Held MessageLane::sending(std::uint64_t number, std::uint64_t again) {
  const Message out = message(rank_.rank, number);
  Held held = hold(out.from, out.bytes, dice_);
  fill(held, out.bytes, out.seed + again, out.later_from);
  return held;
}

Lane::Held MessageLane::receiving(std::uint64_t number) {
  const Message in = message(rank_.left(), number);
  Held held = hold(in.to, in.bytes + in.spare, dice_);
  poison(held, in.later_to);
  return held;
}

void MessageLane::start_receives(std::vector<Held>& into) {
  for (std::uint64_t n = 0; n < messages_; ++n)
    SOAK_IST(ist_irecv, into[n].get(stream()), count(into[n].room), IST_BYTE, rank_.left(), tag(n), comm(),
             &requests_.emplace_back());
}

void MessageLane::start_sends(std::vector<Held>& from, bool synchronous) {
  for (std::uint64_t n = 0; n < messages_; ++n) {
    ist_request& request = requests_.emplace_back();
    const ist_buffer buffer = from[n].get(stream());
    if (synchronous)
      SOAK_IST(ist_issend, buffer, count(from[n].room), IST_BYTE, rank_.right(), tag(n), comm(), &request);
    else
      SOAK_IST(ist_isend, buffer, count(from[n].room), IST_BYTE, rank_.right(), tag(n), comm(), &request);
  }
}

void MessageLane::wait_in(Manner manner) {
  const int all = static_cast<int>(requests_.size());
  if (manner == Manner::any) {
    for (int index = 0; index != IST_UNDEFINED;) SOAK_IST(ist_waitany, all, requests_.data(), &index, IST_STATUS_IGNORE);
  } else if (manner == Manner::some) {
    std::vector<int> indices(requests_.size());
    for (int completed = 0; completed != IST_UNDEFINED;)
      SOAK_IST(ist_testsome, all, requests_.data(), &completed, indices.data(), IST_STATUSES_IGNORE);
  } else {
    SOAK_IST(ist_waitall, all, requests_.data(), IST_STATUSES_IGNORE);
  }
  requests_.clear();
}

void MessageLane::exchange(const Held& from, const Held& into) {
  ist_status status{};
  SOAK_IST(ist_sendrecv, from.get(stream()), count(from.room), IST_BYTE, rank_.right(), tag(0), into.get(stream()),
           count(into.room), IST_BYTE, rank_.left(), tag(0), comm(), &status);
  if (status.bytes != count(message(rank_.left(), 0).bytes) || status.source != rank_.left())
    throw std::runtime_error("the status of a sendrecv has " + std::to_string(status.bytes) + " bytes from rank " +
                             std::to_string(status.source));
}

// Started three times, with other bytes each time.
void MessageLane::persistent(std::vector<Held>& from, std::vector<Held>& into) {
  for (std::uint64_t n = 0; n < messages_; ++n) {
    SOAK_IST(ist_recv_init, into[n].get(stream()), count(into[n].room), IST_BYTE, rank_.left(), tag(n), comm(),
             &requests_.emplace_back());
    SOAK_IST(ist_send_init, from[n].get(stream()), count(from[n].room), IST_BYTE, rank_.right(), tag(n), comm(),
             &requests_.emplace_back());
  }
  const int all = static_cast<int>(requests_.size());
  for (std::uint64_t again = 0; again < 3; ++again) {
    for (std::uint64_t n = 0; n < messages_ && again > 0; ++n) {
      fill(from[n], from[n].room, message(rank_.rank, n).seed + again, again == 2);
      poison(into[n], again == 2);
    }
    SOAK_IST(ist_startall, all, requests_.data());
    SOAK_IST(ist_waitall, all, requests_.data(), IST_STATUSES_IGNORE);
    check_all(into, again);
  }
  for (ist_request& request : requests_) SOAK_IST(ist_request_free, &request);
  requests_.clear();
}

void MessageLane::probed(std::vector<Held>& from, std::vector<Held>& into) {
  start_sends(from, false);
  // In another order than they were sent.
  for (std::uint64_t n = messages_; n-- > 0;) {
    ist_message found = IST_MESSAGE_NULL;
    ist_status status{};
    SOAK_IST(ist_mprobe, rank_.left(), tag(n), comm(), &found, &status);
    if (status.bytes != count(message(rank_.left(), n).bytes))
      throw std::runtime_error("a probe found " + std::to_string(status.bytes) + " bytes, not " +
                               std::to_string(message(rank_.left(), n).bytes));
    SOAK_IST(ist_mrecv, into[n].get(stream()), count(into[n].room), IST_BYTE, &found, IST_STATUS_IGNORE);
  }
  wait_in(Manner::burst);
}

// Sent before there is a receive; in a communicator of its own by whatever comes next.
void MessageLane::unexpected(std::vector<Held>& from, std::vector<Held>& into) {
  start_sends(from, false);
  for (std::uint64_t n = 0; n < messages_; ++n) {
    ist_status status{};
    SOAK_IST(ist_recv, into[n].get(stream()), count(into[n].room), IST_BYTE, own() ? IST_ANY_SOURCE : rank_.left(),
             own() ? IST_ANY_TAG : tag(n), comm(), &status);
    if (status.tag != tag(n))
      throw std::runtime_error("tag " + std::to_string(status.tag) + " came in place of " + std::to_string(tag(n)));
  }
  wait_in(Manner::burst);
}

// As long on every rank, out of and into one buffer.
void MessageLane::replaced() {
  Dice dice{seed_of(step_, 0, 0), 2};
  const std::size_t bytes = some_size(dice, rank_.options.most);
  const Class here = message(rank_.rank, 0).from;
  Held held = hold(here, bytes, dice_);
  poison(held, false);
  fill(held, bytes, seed_of(step_, rank_.rank, 3), message(rank_.rank, 0).later_from);
  SOAK_IST(ist_sendrecv_replace, held.get(stream()), count(bytes), IST_BYTE, rank_.right(), tag(0), rank_.left(), tag(0),
           comm(), IST_STATUS_IGNORE);
  check(held, bytes, seed_of(step_, rank_.left(), 3), "sendrecv_replace from rank " + std::to_string(rank_.left()),
        std::string{"replace, "} + name_of(here));
  give_back(std::move(held), dice_);
}

// A receive that nobody sends to is taken back, and its buffer stays as it was.
void MessageLane::cancelled() {
  Held held = receiving(0);
  ist_request request = IST_REQUEST_NULL;
  ist_status status{};
  SOAK_IST(ist_irecv, held.get(stream()), count(held.room), IST_BYTE, rank_.left(), tag(999), comm(), &request);
  SOAK_IST(ist_cancel, request);
  const int code = ist_wait(&request, &status);
  if (code != IST_OK && code != IST_CANCELLED) ok(code, "ist_wait");
  if (status.code != IST_CANCELLED)
    throw std::runtime_error("a receive that was cancelled says " + std::to_string(status.code));
  check(held, 0, 0, "a cancelled receive", "cancel");
  give_back(std::move(held), dice_);
}

void MessageLane::check_all(const std::vector<Held>& into, std::uint64_t again) {
  for (std::uint64_t n = 0; n < messages_; ++n) {
    const Message in = message(rank_.left(), n);
    const std::string between = std::string{name_of(in.from)} + " to " + name_of(in.to);
    check(into[n], in.bytes, in.seed + again,
          std::string{kManners[static_cast<int>(manner_)]} + ", message " + std::to_string(n) + " of " +
              std::to_string(messages_) + " from rank " + std::to_string(rank_.left()) + ", " + between +
              (in.later_from ? ", pending work at the sender" : "") + (in.later_to ? ", pending work at the receiver" : ""),
          between);
    if (again == 0) tally_.add(std::string{"by "} + kManners[static_cast<int>(manner_)], in.bytes);
  }
}

void MessageLane::step(std::uint64_t step) {
  Dice shared{seed_of(step, 0, 0), 4};
  manner_ = static_cast<Manner>(shared.below(10));
  const bool one = manner_ == Manner::exchange;
  messages_ = one ? 1 : 1 + shared.below(manner_ == Manner::persistent ? 3 : 9);
  dice_ = Dice{seed_of(step, rank_.rank, 0), 5};
  std::string what = std::string{kManners[static_cast<int>(manner_)]} + ", open:";
  for (std::uint64_t n = 0; n < messages_; ++n) {
    const Message in = message(rank_.left(), n);
    const Message out = message(rank_.rank, n);
    what += " [" + std::to_string(in.bytes) + " B from rank " + std::to_string(rank_.left()) + " into " + name_of(in.to) +
            ", " + std::to_string(out.bytes) + " B of " + name_of(out.from) + " to rank " + std::to_string(rank_.right()) +
            "]";
  }
  working(what);
  if (manner_ == Manner::replaced) return replaced();
  if (manner_ == Manner::cancelled) return cancelled();
  std::vector<Held> from;
  std::vector<Held> into;
  for (std::uint64_t n = 0; n < messages_; ++n) {
    from.push_back(sending(n));
    into.push_back(receiving(n));
  }
  switch (manner_) {
    case Manner::exchange:
      exchange(from[0], into[0]);
      break;
    case Manner::persistent:
      persistent(from, into);
      break;
    case Manner::probed:
      probed(from, into);
      break;
    case Manner::unexpected:
      unexpected(from, into);
      break;
    default:
      start_receives(into);
      start_sends(from, manner_ == Manner::synchronous);
      wait_in(manner_);
  }
  if (manner_ != Manner::persistent) check_all(into);
  for (Held& held : from) give_back(std::move(held), dice_);
  for (Held& held : into) give_back(std::move(held), dice_);
}

}  // namespace

std::unique_ptr<Lane> make_message_lane(Rank& rank, Tally& tally, int number) {
  return std::make_unique<MessageLane>(rank, tally, number);
}

}  // namespace soak
