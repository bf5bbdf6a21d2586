#include "boot/gathered.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fstream>
#include <iterator>
#include <sstream>

#include "boot/blob.hpp"
#include "boot/interrupt.hpp"

namespace ist {
namespace {

// The hub answers in time with the ranks that are missing; only a hub that is itself stuck is waited for longer.
constexpr double kHubSlack = 3.0;
// For words at parting, and the hub's answer to them.
constexpr double kParting = 0.5;

Status lost_hub(const FrameSocket& socket, const Exchange& exchange) {
  const std::string step = "while exchanging addresses with the other ranks through " + exchange.hub + ": ";
  if (!socket.malformed().empty()) return {IST_ERR_BOOT, step + socket.malformed()};
  if (socket.closed())
    return {IST_ERR_BOOT, step + "the connection was closed; look for the first error among the ranks of this job"};
  return {IST_ERR_BOOT, step + "no answer within " + seconds_text(exchange.seconds + kHubSlack) +
                            "; is that process stopped? ISTHMUS_BOOT_TIMEOUT sets how long to wait"};
}

// None: what came is meant for an exchange that was given up before. World 0 is meant for every exchange.
std::optional<Frame> next_answer(FrameSocket& socket, const Exchange& exchange, Deadline deadline) {
  while (auto answer = socket.receive(deadline))
    if (answer->world == 0 || (answer->world == exchange.world && answer->round == exchange.round)) return answer;
  return std::nullopt;
}

// Linux says in ticks since it was started, of which there are a hundred a second, when a process began (proc_pid_stat(5), field 22).
void sign(Frame& frame) {
  std::ifstream file("/proc/self/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::istringstream fields(text.substr(std::min(text.rfind(')') + 1, text.size())));  // the name before may have spaces
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  std::uint64_t began = 0;
  timespec now{};
  if (!(fields >> began) || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0) return;
  const double seconds = static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 -
                         static_cast<double>(began) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  frame.age = static_cast<std::uint32_t>(std::clamp(seconds * 1e3, 1.0, 4e9));
  constexpr unsigned kBitsOfProcesses = 22;  // the most that Linux numbers
  frame.program = began << kBitsOfProcesses | static_cast<std::uint64_t>(::getpid());
}

void queue_withdrawal(FrameSocket& socket, const Exchange& exchange, const std::string& reason) {
  Frame frame;
  frame.type = FrameType::withdrawal;
  frame.world = exchange.world;
  frame.round = exchange.round;
  frame.token = exchange.token;
  frame.payload = reason;
  sign(frame);
  socket.queue(frame);
  socket.flush(Deadline::after(kParting));
}

}  // namespace

Frame contribution_of(const Exchange& exchange, const std::string& blob) {
  Frame frame;
  frame.type = FrameType::contribution;
  frame.world = exchange.world;
  frame.round = exchange.round;
  frame.milliseconds = static_cast<std::uint32_t>(std::fmin(exchange.seconds * 1000.0, 4e9));
  sign(frame);
  frame.token = exchange.token;
  frame.payload = blob;
  return frame;
}

Result<std::vector<std::string>> open_answer(const Exchange& exchange, const Frame& answer) {
  if (answer.type == FrameType::failure) return Status{IST_ERR_BOOT, answer.payload};
  BlobReader reader{answer.payload};
  std::vector<std::string> blobs;
  for (int rank = 0; rank < exchange.size; ++rank) blobs.push_back(reader.text());
  if (answer.type != FrameType::gathered || answer.token != exchange.token || reader.bad() || !reader.at_end())
    return Status{IST_ERR_BOOT, "the answer of " + exchange.hub + " does not belong to this job of " +
                                    std::to_string(exchange.size) + " ranks; do two jobs use the same address?"};
  return blobs;
}

Result<std::vector<std::string>> gather_through(FrameSocket& socket, const Exchange& exchange, const std::string& blob) {
  const Deadline deadline = Deadline::after(exchange.seconds).later_by(kHubSlack);
  socket.queue(contribution_of(exchange, blob));
  socket.flush(deadline);  // also where that fails: the reason may already have arrived
  if (const auto answer = next_answer(socket, exchange, deadline)) return open_answer(exchange, *answer);
  if (!interrupt::wanted()) return lost_hub(socket, exchange);
  const interrupt::Unheard last_words;
  queue_withdrawal(socket, exchange, interrupt::kReason);
  const auto answer = next_answer(socket, exchange, Deadline::after(kParting));
  if (answer && answer->type == FrameType::gathered) return open_answer(exchange, *answer);
  return Status{IST_CANCELLED, interrupt::kReason};
}

void withdraw_through(FrameSocket& socket, Exchange exchange, const std::string& reason) {
  const interrupt::Unheard last_words;
  ++exchange.round;
  queue_withdrawal(socket, exchange, reason);
}

}  // namespace ist
