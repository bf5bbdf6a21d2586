#include "boot/rendezvous.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "base/log.hpp"
#include "boot/addresses.hpp"
#include "boot/blob.hpp"
#include "boot/interrupt.hpp"

namespace ist {
namespace {

constexpr std::uint64_t kLongestHello = 4096;
constexpr std::size_t kMostUnknown = 512;  // connections that have not said who they are
constexpr double kUnknownPatience = 10.0;

struct Knocking {
  FrameSocket socket;
  std::string from;
  Deadline patience;
};

// Rank 0 at the door.
class Reception {
 public:
  Reception(const Meeting& meeting, std::uint64_t token, std::vector<FileDescriptor> listeners)
      : meeting_(meeting),
        token_(token),
        listeners_(std::move(listeners)),
        hub_(std::make_unique<GatherHub>(meeting.size, meeting.place(), token, GatherHub::Serves::one_world)) {}

  Result<std::unique_ptr<GatherHub>> run() {
    const Deadline deadline = Deadline::after(meeting_.seconds);
    while (!missing().empty()) {
      if (deadline.over()) return missed();
      if (interrupt::wanted()) return interrupted();
      wait(deadline);
      if (const auto gone = hub_->read_withdrawal()) return give_up(*gone);
      for (const FileDescriptor& listener : listeners_) accept_from(listener);
      for (Knocking& knocking : unknown_) ask(knocking);
      std::erase_if(unknown_, [](const Knocking& knocking) { return knocking.socket.descriptor() < 0; });
    }
    return std::move(hub_);
  }

 private:
  std::vector<int> missing() {
    std::vector<int> ranks;
    for (int rank = 1; rank < meeting_.size; ++rank)
      if (!hub_->attached(Rank{rank})) ranks.push_back(rank);
    return ranks;
  }
  Status missed();
  Status interrupted();
  Status give_up(const std::string& text);
  void wait(Deadline deadline);
  void accept_from(const FileDescriptor& listener);
  void ask(Knocking& knocking);
  void decide(Knocking& knocking, const Frame& hello);
  void turn_away(Knocking& knocking, FrameType type, const std::string& reason);

  const Meeting& meeting_;
  std::uint64_t token_;
  std::vector<FileDescriptor> listeners_;
  std::vector<Knocking> unknown_;
  std::unique_ptr<GatherHub> hub_;
  std::string last_refusal_;
};

Status Reception::missed() {
  const auto ranks = missing();
  std::string text = ranks_text(ranks) + " of " + std::to_string(meeting_.size) + " did not come to " + meeting_.place() +
                     " within " + seconds_text(meeting_.seconds) +
                     "; are they running, and do they have the same MASTER_ADDR and MASTER_PORT? ISTHMUS_BOOT_TIMEOUT sets "
                     "how long to wait";
  if (!last_refusal_.empty()) text += ". The last one turned away: " + last_refusal_;
  return give_up(text);
}

Status Reception::interrupted() {
  if (static_cast<int>(missing().size()) + 1 == meeting_.size) return {IST_CANCELLED, interrupt::kReason};
  return give_up(given_up(meeting_.world, meeting_.place(), interrupt::kReason));
}

Status Reception::give_up(const std::string& text) {
  hub_->give_up(text);
  return {IST_ERR_BOOT, text};
}

void Reception::wait(Deadline deadline) {
  std::vector<pollfd> entries;
  for (const FileDescriptor& listener : listeners_) entries.push_back({listener.get(), POLLIN, 0});
  for (const Knocking& knocking : unknown_) {
    entries.push_back({knocking.socket.descriptor(), POLLIN, 0});
    deadline = deadline.earlier_of(knocking.patience);
  }
  hub_->watch(entries);
  ::poll(entries.data(), entries.size(), interrupt::milliseconds(deadline));
}

void Reception::accept_from(const FileDescriptor& listener) {
  for (;;) {
    FileDescriptor socket{::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
    if (!socket.valid()) return;
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (unknown_.size() >= kMostUnknown) unknown_.erase(unknown_.begin());
    std::string from = other_end(socket.get());
    unknown_.push_back({FrameSocket{std::move(socket), kLongestHello}, std::move(from), Deadline::after(kUnknownPatience)});
  }
}

void Reception::ask(Knocking& knocking) {
  knocking.socket.read_some();
  if (const auto hello = knocking.socket.next()) return decide(knocking, *hello);
  std::string what = knocking.socket.malformed();
  if (what.empty() && knocking.socket.closed()) what = "it hung up without a word";
  if (what.empty() && knocking.patience.over()) what = "it said nothing";
  if (what.empty()) return;
  turn_away(knocking, FrameType::refused, what);
}

void Reception::decide(Knocking& knocking, const Frame& hello) {
  BlobReader reader{hello.payload};
  const std::uint64_t size = reader.number();
  const std::uint64_t number = reader.number();
  const std::string job = reader.text();
  const std::string who = "rank " + std::to_string(number) + " (" + reader.text() + ")";
  const auto refuse = [&](const std::string& why) { turn_away(knocking, FrameType::refused, who + " " + why); };
  if (hello.type != FrameType::hello || reader.bad()) return refuse("did not say who it is");
  if (!job.empty() && !meeting_.job.empty() && job != meeting_.job)
    return refuse("belongs to job \"" + job + "\", rank 0 to job \"" + meeting_.job + "\"");
  if (size != static_cast<std::uint64_t>(meeting_.size))
    return refuse("has WORLD_SIZE=" + std::to_string(size) + ", rank 0 has " + std::to_string(meeting_.size));
  if (number == 0 || number >= size) return refuse("has no place in a job of " + std::to_string(size) + " ranks");
  // The ranks that were quick are already at their next world: they come back when rank 0 is there too.
  if (hello.world > meeting_.world) return turn_away(knocking, FrameType::later, "");
  if (const auto before = meeting_.failed.find(hello.world); before != meeting_.failed.end())
    return refuse("comes late to its world number " + std::to_string(hello.world) +
                  ", which could not be made: " + before->second);
  if (hello.world < meeting_.world)
    return refuse("creates its world number " + std::to_string(hello.world) + ", rank 0 its number " +
                  std::to_string(meeting_.world) + "; all ranks must create the same worlds in the same order");
  const Rank rank{static_cast<std::int32_t>(number)};
  if (hub_->attached(rank) && !hub_->hung_up(rank))
    return refuse("is already here; two processes have RANK=" + std::to_string(number));
  Frame welcome;
  welcome.type = FrameType::welcome;
  welcome.world = meeting_.world;
  welcome.token = token_;
  knocking.socket.queue(welcome);
  knocking.socket.write_some();
  knocking.socket.set_limit(FrameSocket::kLargest);
  hub_->attach(rank, std::move(knocking.socket));
}

void Reception::turn_away(Knocking& knocking, FrameType type, const std::string& reason) {
  Frame answer;
  answer.type = type;
  answer.payload = reason;
  if (type == FrameType::refused) {
    last_refusal_ = knocking.from + ": " + reason;
    log::info("turned away " + last_refusal_);
  }
  // A stranger who does not speak our language gets no answer that it could mistake for its own.
  if (knocking.socket.malformed().empty()) {
    knocking.socket.queue(answer);
    knocking.socket.write_some();
  }
  knocking.socket = FrameSocket{FileDescriptor{}};
}

// One attempt. None: try again; `reason` says why.
Result<std::optional<Admission>> knock_once(const Meeting& meeting, Deadline deadline, std::string& reason) {
  auto connection = connect_to(meeting.address, meeting.port, deadline);
  if (!connection.ok()) {
    reason = connection.status().text();
    return std::optional<Admission>{};
  }
  FrameSocket socket{std::move(*connection), kLongestHello};
  socket.queue(hello_of(meeting));
  socket.flush(deadline);
  const auto answer = socket.receive(deadline);
  if (answer && answer->type == FrameType::refused)
    return Status{IST_ERR_BOOT, "rank 0 at " + meeting.place() + " turned this process away: " + answer->payload};
  if (answer && answer->type == FrameType::welcome) {
    socket.set_limit(FrameSocket::kLargest);
    return std::optional<Admission>{Admission{std::move(socket), answer->token}};
  }
  reason = answer ? "rank 0 is still at an earlier world" : "no rank 0 of an Isthmus job answered there";
  if (!socket.malformed().empty()) reason = "another program answered there: " + socket.malformed();
  return std::optional<Admission>{};
}

}  // namespace

std::string given_up(std::uint32_t world, const std::string& place, const std::string& reason) {
  return "rank 0 gave up creating its world number " + std::to_string(world) + " with the others at " + place + ": " +
         reason;
}

Frame hello_of(const Meeting& meeting) {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  BlobWriter who;
  who.number(static_cast<std::uint64_t>(meeting.size)).number(static_cast<std::uint64_t>(meeting.rank));
  who.text(meeting.job).text(std::string{host} + ", pid " + std::to_string(::getpid()));
  Frame frame;
  frame.type = FrameType::hello;
  frame.world = meeting.world;
  frame.payload = who.take();
  return frame;
}

Result<std::unique_ptr<GatherHub>> receive_ranks(const Meeting& meeting, std::uint64_t token) {
  // Nobody is to come: the port may be another's, such as that of a store of the program's own.
  if (meeting.size == 1) return Reception{meeting, token, {}}.run();
  // The program that had the port before may be about to end; a few seconds are worth waiting, not the whole time.
  const Deadline deadline = Deadline::after(std::min(meeting.seconds, 5.0));
  auto listeners = listen_at(meeting.address, meeting.port);
  while (!listeners.ok() && !interrupt::over(deadline)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    listeners = listen_at(meeting.address, meeting.port);
  }
  if (interrupt::wanted()) return Status{IST_CANCELLED, interrupt::kReason};
  if (!listeners.ok()) return listeners.status();
  return Reception{meeting, token, std::move(*listeners)}.run();
}

Result<Admission> knock(const Meeting& meeting) {
  const Deadline deadline = Deadline::after(meeting.seconds);
  std::string reason;
  for (std::chrono::milliseconds pause{2}; !interrupt::over(deadline);
       pause = std::min(pause * 2, std::chrono::milliseconds{100})) {
    auto admission = knock_once(meeting, deadline, reason);
    if (!admission.ok()) return admission.status();
    if (*admission) return std::move(**admission);
    std::this_thread::sleep_for(std::min(pause, std::chrono::milliseconds{deadline.milliseconds_left()}));
  }
  if (interrupt::wanted()) return Status{IST_CANCELLED, interrupt::kReason};
  return Status{IST_ERR_BOOT, "rank " + std::to_string(meeting.rank) + " did not reach rank 0 at " + meeting.place() +
                                  " within " + seconds_text(meeting.seconds) + " (" + reason +
                                  "); is rank 0 running, and are MASTER_ADDR and MASTER_PORT those of its host? "
                                  "ISTHMUS_BOOT_TIMEOUT sets how long to wait"};
}

}  // namespace ist
