#include "memory/door.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>

#include "base/log.hpp"
#include "base/quiet_thread.hpp"

namespace ist {
namespace {

using Clock = std::chrono::steady_clock;

// So often the keeper's things are tidied, while there are any.
constexpr int kTidyMs = 1000;
// So often a caller looks whether it is to give up.
constexpr int kLookMs = 50;
// Two for each other rank of a host; the others wait in the listener's queue.
constexpr std::size_t kMostCallers = 256;

struct Address {
  sockaddr_un data{};
  socklen_t length = 0;
};

// A leading zero byte makes the address abstract: no file, and gone with the listener.
Address abstract_address(const DoorAddress& door) {
  Address address;
  address.data.sun_family = AF_UNIX;
  const int length =
      std::snprintf(address.data.sun_path + 1, sizeof address.data.sun_path - 1, "isthmus-door-%016llx%016llx",
                    static_cast<unsigned long long>(door.name[0]), static_cast<unsigned long long>(door.name[1]));
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<std::size_t>(length));
  return address;
}

std::uint64_t random_number() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

// Of the calling thread. Abstract sockets are seen within one network namespace only. 0: not known.
std::uint64_t own_network() {
  struct stat found {};
  return ::stat("/proc/thread-self/ns/net", &found) == 0 ? found.st_ino : 0;
}

// Records stay whole, and come whole or not at all.
FileDescriptor record_socket() {
  return FileDescriptor{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
}

bool of_this_user(int socket) {
  ucred other{};
  socklen_t length = sizeof other;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &length) == 0 && other.uid == ::geteuid();
}

struct Message {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};  // room for one descriptor
  iovec part{};
  msghdr header{};
  explicit Message(DoorNote& note) {
    part = {&note, sizeof note};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
  void with_control() {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
};

bool send_note(int socket, DoorNote& note, int descriptor) {
  Message message{note};
  if (descriptor >= 0) {
    message.with_control();
    cmsghdr* control = CMSG_FIRSTHDR(&message.header);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(control), &descriptor, sizeof descriptor);
  }
  return ::sendmsg(socket, &message.header, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(sizeof note);
}

}  // namespace

DoorNote DoorNote::refusal(const Status& why) {
  DoorNote note;
  note.refused = static_cast<std::uint32_t>(why.code());
  const std::size_t length = std::min(why.text().size(), note.text.size() - 1);
  std::memcpy(note.text.data(), why.text().data(), length);
  return note;
}

Status DoorNote::status() const {
  if (refused == 0) return {};
  return {static_cast<Code>(refused), std::string{text.data(), ::strnlen(text.data(), text.size())}};
}

Result<std::unique_ptr<Door>> Door::open(Keeper keeper, Tidier tidier) {
  std::unique_ptr<Door> door{new Door{std::move(keeper), std::move(tidier)}};
  door->listener_ = record_socket();
  if (!door->listener_.valid()) return system_error("socket(AF_UNIX)");
  door->address_ = {{own_network(), random_number()}, random_number()};
  const Address address = abstract_address(door->address_);
  if (::bind(door->listener_.get(), reinterpret_cast<const sockaddr*>(&address.data), address.length) != 0)
    return system_error("bind of an abstract Unix socket");
  if (::listen(door->listener_.get(), 1024) != 0) return system_error("listen on a Unix socket");
  door->wake_ = FileDescriptor{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  if (!door->wake_.valid()) return system_error("eventfd");
  auto thread = quiet_thread("handing out device memory", [self = door.get()] { self->run(); });
  if (!thread.ok()) return thread.status();
  door->thread_ = std::move(*thread);
  return door;
}

Door::~Door() {
  ends_ = true;
  wake();
  if (thread_.joinable()) thread_.join();
}

void Door::wake() const {
  const std::uint64_t one = 1;
  while (::write(wake_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void Door::will_tidy() {
  if (!tidies_.exchange(true)) wake();
}

void Door::let_in(std::vector<Caller>& callers) {
  FileDescriptor fresh{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
  if (fresh.valid() && of_this_user(fresh.get())) {
    callers.push_back({std::move(fresh), nullptr});
  } else if (!fresh.valid() && (errno == EMFILE || errno == ENFILE)) {
    // It stays in the queue, and poll() would say so at once.
    log::once(log::Level::warning, "no descriptor is left to lend device memory with; raise ulimit -n");
    ::poll(nullptr, 0, kLookMs);
  }
}

bool Door::hear(Caller& caller) {
  DoorNote asked;
  const ssize_t got = ::recv(caller.socket.get(), &asked, sizeof asked, MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got != static_cast<ssize_t>(sizeof asked) || asked.token != address_.token) return false;
  auto answer = keeper_(asked, caller.kept);
  return !answer || send_note(caller.socket.get(), answer->note, answer->descriptor.get());
}

void Door::run() {
  std::vector<Caller> callers;
  auto next_tidy = Clock::now();
  for (;;) {
    std::vector<pollfd> entries{{wake_.get(), POLLIN, 0}, {callers.size() < kMostCallers ? listener_.get() : -1, POLLIN, 0}};
    for (const Caller& caller : callers) entries.push_back({caller.socket.get(), POLLIN, 0});
    const int ready = ::poll(entries.data(), entries.size(), tidies_ ? kTidyMs : -1);
    if (ends_) return;
    if (ready < 0 && errno != EINTR) {
      log::warning(system_error("poll on who borrows device memory").text() + "; none is lent from here on");
      return;
    }
    if (entries[0].revents != 0) {
      std::uint64_t times = 0;
      while (::read(wake_.get(), &times, sizeof times) < 0 && errno == EINTR) {
      }
    }
    // Asked before it tidies: what comes meanwhile is for the next time.
    if (tidies_ && Clock::now() >= next_tidy) {
      next_tidy = Clock::now() + std::chrono::milliseconds{kTidyMs};
      tidies_ = false;
      if (tidier_ && tidier_()) tidies_ = true;
    }
    if (ready <= 0) continue;
    for (std::size_t i = 0; i < callers.size(); ++i)
      if (entries[i + 2].revents != 0 && !hear(callers[i])) callers[i].socket = FileDescriptor{};
    std::erase_if(callers, [](const Caller& caller) { return !caller.socket.valid(); });
    if (entries[1].revents != 0) let_in(callers);
  }
}

Result<DoorCall> DoorCall::connect(const DoorAddress& address, const std::atomic<bool>& ends) {
  FileDescriptor socket = record_socket();
  if (!socket.valid()) return system_error("socket(AF_UNIX)");
  const std::uint64_t network = own_network();
  if (network != 0 && address.name[0] != 0 && network != address.name[0])
    return Status{IST_ERR_UNREACHABLE, "the lender is in another network namespace, where its socket cannot be seen"};
  const Address where = abstract_address(address);
  const auto limit = Clock::now() + kPatience;
  while (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&where.data), where.length) != 0) {
    // EAGAIN: the queue is full for the moment.
    if ((errno != EAGAIN && errno != EINTR) || ends || Clock::now() > limit)
      return Status{errno == ECONNREFUSED ? IST_ERR_PEER_LEFT : IST_ERR_SYSTEM,
                    system_error("connect to the socket of the lender").text() + "; it may have ended"};
    ::poll(nullptr, 0, 1);
  }
  if (!of_this_user(socket.get())) return Status{IST_ERR_SYSTEM, "the lender's socket belongs to another user"};
  return DoorCall{std::move(socket), address.token, ends};
}

void DoorCall::tell(DoorNote note) {
  note.token = token_;
  send_note(socket_.get(), note, -1);
}

Result<DoorNote> DoorCall::ask(const DoorNote& question, FileDescriptor* taken, std::chrono::milliseconds patience) {
  tell(question);
  const auto limit = Clock::now() + patience;
  DoorNote answer;
  Message message{answer};
  for (;;) {
    message.with_control();
    const ssize_t got = ::recvmsg(socket_.get(), &message.header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const bool nothing = got < 0 && (errno == EAGAIN || errno == EINTR);
    if (!nothing && got != static_cast<ssize_t>(sizeof answer))
      return Status{IST_ERR_SYSTEM, "the lender hung up; it may have ended"};
    if (!nothing) break;
    if (*ends_) return Status{IST_ERR_SYSTEM, "this rank leaves"};
    if (Clock::now() > limit)
      return Status{IST_ERR_SYSTEM,
                    "the lender has not answered for " + std::to_string(patience.count()) + " ms; is it stopped?"};
    pollfd entry{socket_.get(), POLLIN, 0};
    ::poll(&entry, 1, kLookMs);
  }
  FileDescriptor came;
  const cmsghdr* control = CMSG_FIRSTHDR(&message.header);
  if (control != nullptr && control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_RIGHTS) {
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(control), sizeof descriptor);
    came = FileDescriptor{descriptor};
  }
  if (!answer.status().ok()) return answer.status();
  if (taken == nullptr) return answer;
  if (!came.valid())
    return Status{IST_ERR_DEVICE, (message.header.msg_flags & MSG_CTRUNC) != 0
                                      ? "this process has too many open files; raise ulimit -n"
                                      : "the lender sent no descriptor"};
  *taken = std::move(came);
  return answer;
}

}  // namespace ist
