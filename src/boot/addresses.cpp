#include "boot/addresses.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>

#include "boot/interrupt.hpp"

namespace ist {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Result<AddressList> look_up(const char* address, int port, int flags) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(address, std::to_string(port).c_str(), &wanted, &found);
  if (error != 0)
    return Status{IST_ERR_BOOT, std::string{"the address \""} + (address ? address : "*") +
                                    "\" cannot be looked up: " + ::gai_strerror(error)};
  return AddressList{found, &::freeaddrinfo};
}

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

Result<FileDescriptor> listen_on(const addrinfo& where) {
  FileDescriptor socket{::socket(where.ai_family, where.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, where.ai_protocol)};
  if (!socket.valid()) return system_error("socket");
  const int on = 1;
  // A connection of an earlier job that is still fading away must not keep us out; a live listener does.
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (where.ai_family == AF_INET6) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (::bind(socket.get(), where.ai_addr, where.ai_addrlen) != 0) return system_error("bind");
  if (::listen(socket.get(), 4096) != 0) return system_error("listen");
  return socket;
}

Result<FileDescriptor> connect_one(const addrinfo& where, Deadline deadline) {
  FileDescriptor socket{::socket(where.ai_family, where.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, where.ai_protocol)};
  if (!socket.valid()) return system_error("socket");
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(socket.get(), where.ai_addr, where.ai_addrlen) == 0) return socket;
  if (errno != EINPROGRESS) return system_error("connect");
  pollfd entry{socket.get(), POLLOUT, 0};
  int ready = 0;
  do {
    ready = ::poll(&entry, 1, interrupt::milliseconds(deadline));
  } while (ready <= 0 && !interrupt::over(deadline));
  int error = ETIMEDOUT;
  socklen_t length = sizeof error;
  if (ready > 0) ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  errno = error;
  if (error != 0) return system_error("connect");
  return socket;
}

}  // namespace

Result<std::vector<FileDescriptor>> listen_at(const std::string& address, int port) {
  auto places = look_up(is_loopback(address) ? address.c_str() : nullptr, port, AI_PASSIVE);
  if (!places.ok()) return places.status();
  std::vector<FileDescriptor> listeners;
  Status last;
  for (const addrinfo* place = places->get(); place; place = place->ai_next) {
    auto listener = listen_on(*place);
    if (listener.ok()) {
      listeners.push_back(std::move(*listener));
    } else if (last.ok()) {
      last = listener.status();
    }
  }
  if (listeners.empty())
    return Status{IST_ERR_BOOT, "rank 0 cannot listen at " + address + ":" + std::to_string(port) + ": " + last.text() +
                                    "; choose another MASTER_PORT, or end the program that uses this one"};
  return listeners;
}

Result<FileDescriptor> connect_to(const std::string& address, int port, Deadline deadline) {
  auto places = look_up(address.c_str(), port, 0);
  if (!places.ok()) return places.status();
  Status last{IST_ERR_BOOT, "no address"};
  for (const addrinfo* place = places->get(); place; place = place->ai_next) {
    // One unreachable address must not use up the time of the others.
    auto socket = connect_one(*place, deadline.earlier_of(Deadline::after(5.0)));
    if (socket.ok()) return socket;
    last = socket.status();
  }
  return last;
}

std::string other_end(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  char host[NI_MAXHOST] = "";
  char port[NI_MAXSERV] = "";
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr*>(&address), length, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "an unknown address";
  return std::string{host} + ":" + port;
}

}  // namespace ist
