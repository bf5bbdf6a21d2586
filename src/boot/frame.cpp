#include "boot/frame.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <type_traits>

#include "boot/interrupt.hpp"

namespace ist {
namespace {

// Also tells byte orders apart: a rank of the other order is refused as a stranger.
constexpr std::uint32_t kMagic = 0x49735442;  // "IsTB"

struct Header {
  std::uint32_t magic = kMagic;
  std::uint16_t version = kFrameVersion;
  std::uint16_t type = 0;
  std::uint32_t world = 0;
  std::uint32_t round = 0;
  std::uint32_t milliseconds = 0;
  std::uint32_t age = 0;
  std::uint64_t token = 0;
  std::uint64_t length = 0;
  std::uint64_t program = 0;
};
static_assert(sizeof(Header) == 48 && std::is_trivially_copyable_v<Header>);

}  // namespace

void FrameSocket::queue(const Frame& frame) {
  Header header;
  header.type = static_cast<std::uint16_t>(frame.type);
  header.world = frame.world;
  header.round = frame.round;
  header.milliseconds = frame.milliseconds;
  header.age = frame.age;
  header.program = frame.program;
  header.token = frame.token;
  header.length = frame.payload.size();
  outgoing_.append(reinterpret_cast<const char*>(&header), sizeof header);
  outgoing_.append(frame.payload);
}

void FrameSocket::write_some() {
  while (!closed_ && has_to_write()) {
    const ssize_t sent =
        ::send(socket_.get(), outgoing_.data() + written_, outgoing_.size() - written_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (sent < 0) {
      closed_ = true;
      return;
    }
    written_ += static_cast<std::size_t>(sent);
  }
  outgoing_.clear();
  written_ = 0;
}

// The flag and not the descriptor's mode says "do not wait": the mode belongs to everyone who inherited the socket.
void FrameSocket::read_some() {
  std::array<char, 16384> piece;
  while (!closed_ && malformed_.empty() && incoming_.size() <= limit_ + sizeof(Header)) {
    const ssize_t got = ::recv(socket_.get(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got <= 0) {
      closed_ = true;
      return;
    }
    incoming_.append(piece.data(), static_cast<std::size_t>(got));
  }
}

std::optional<Frame> FrameSocket::next() {
  Header header;
  // A stranger may never send a whole header: its first bytes are enough to know.
  if (malformed_.empty() && incoming_.size() >= sizeof header.magic) {
    std::memcpy(&header.magic, incoming_.data(), sizeof header.magic);
    if (header.magic != kMagic) malformed_ = "what it sent does not come from an Isthmus rank";
  }
  if (!malformed_.empty() || incoming_.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, incoming_.data(), sizeof header);
  if (header.version != kFrameVersion) {
    malformed_ = "it speaks version " + std::to_string(header.version) +
                 " of the start-up protocol where this process speaks " + std::to_string(kFrameVersion) +
                 "; all ranks must use the same Isthmus";
  } else if (header.length > limit_) {
    malformed_ = "it announced " + std::to_string(header.length) + " bytes where at most " + std::to_string(limit_) +
                 " were expected";
  }
  if (!malformed_.empty() || incoming_.size() - sizeof header < header.length) return std::nullopt;
  const auto length = static_cast<std::size_t>(header.length);
  Frame frame{static_cast<FrameType>(header.type),     header.world, header.round,  header.milliseconds, header.token,
              incoming_.substr(sizeof header, length), header.age,   header.program};
  incoming_.erase(0, sizeof header + length);
  return frame;
}

bool FrameSocket::wait_for(short events, Deadline deadline) {
  pollfd entry{socket_.get(), events, 0};
  return ::poll(&entry, 1, interrupt::milliseconds(deadline)) > 0;
}

bool FrameSocket::flush(Deadline deadline) {
  for (write_some(); has_to_write() && !closed_; write_some()) {
    if (interrupt::over(deadline)) return false;
    wait_for(POLLOUT, deadline);
  }
  return !closed_;
}

std::optional<Frame> FrameSocket::receive(Deadline deadline) {
  for (;;) {
    read_some();
    if (auto frame = next()) return frame;
    if (closed_ || !malformed_.empty() || interrupt::over(deadline)) return std::nullopt;
    wait_for(POLLIN, deadline);
  }
}

}  // namespace ist
