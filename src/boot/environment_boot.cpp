#include "boot/environment_boot.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "boot/gathered.hpp"
#include "boot/interrupt.hpp"
#include "boot/rendezvous.hpp"
#include "boot/variables.hpp"

namespace ist {
namespace {

constexpr long kMostRanks = 65536;
constexpr long kLastPort = 65535;
constexpr std::array kVariables{"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"};

Status check_all_set() {
  std::string set;
  std::string unset;
  for (const char* name : kVariables) {
    std::string& list = std::getenv(name) ? set : unset;
    list += (list.empty() ? "" : ", ") + std::string{name};
  }
  if (unset.empty()) return {};
  return {IST_ERR_BOOT, "the environment has " + set + " but not " + unset +
                            ": set all four for a job of several processes, or none for a world of one"};
}

// torchrun's agent keeps a store of its own at MASTER_PORT, says so, and gives the workers that address: the ranks meet beside it.
bool agent_has_port() {
  const char* const said = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  return said != nullptr && std::string_view{said} == "True";
}

Result<Meeting> read_meeting(const Settings& settings) {
  IST_TRY(check_all_set());
  const auto size = number_variable("WORLD_SIZE", 1, kMostRanks);
  if (!size.ok()) return size.status();
  const auto rank = number_variable("RANK", 0, *size - 1);
  if (!rank.ok())
    return Status{IST_ERR_BOOT,
                  rank.status().text() + " (RANK=" + text_variable("RANK") + ", WORLD_SIZE=" + std::to_string(*size) + ")"};
  const auto port = number_variable("MASTER_PORT", 1, kLastPort);
  if (!port.ok()) return port.status();
  Meeting meeting;
  meeting.address = std::getenv("MASTER_ADDR");
  if (meeting.address.empty())
    return Status{IST_ERR_BOOT, "MASTER_ADDR=\"\" cannot be used: expected the name or address of rank 0's host"};
  meeting.port = static_cast<int>(*port);
  if (agent_has_port()) meeting.port += *port < kLastPort ? 1 : -1;
  meeting.rank = static_cast<int>(*rank);
  meeting.size = static_cast<int>(*size);
  meeting.seconds = settings.boot_timeout;
  meeting.job = text_variable("TORCHELASTIC_RUN_ID");
  return meeting;
}

std::uint64_t random_token() {
  std::random_device device;
  return (std::uint64_t{device()} << 32 | device()) | 1;  // never 0, which means "no job yet"
}

Exchange first_exchange(const Meeting& meeting, std::uint64_t token) {
  Exchange exchange;
  exchange.world = meeting.world;
  exchange.token = token;
  exchange.seconds = meeting.seconds;
  exchange.size = meeting.size;
  exchange.hub = "rank 0 at " + meeting.place();
  return exchange;
}

// Counts whether or not a world is made, as on the other ranks, unless no other rank has heard of it.
struct Count {
  std::mutex mutex;
  std::uint32_t worlds = 0;
  std::map<std::uint32_t, std::string> failed;  // rank 0: why those could not be made, for ranks that come late
};

Count& count() {
  static auto* only = new Count;
  return *only;
}

void note_failed(std::uint32_t world, const std::string& text) {
  const std::lock_guard lock(count().mutex);
  count().failed[world] = text;
}

void take_number_back(std::uint32_t world) {
  const std::lock_guard lock(count().mutex);
  if (count().worlds == world) --count().worlds;
}

// The process that holds the hub.
class EnvironmentHost final : public Boot {
 public:
  EnvironmentHost(const Meeting& meeting, std::uint64_t token, std::unique_ptr<GatherHub> hub)
      : place_(meeting.place()), exchange_(first_exchange(meeting, token)), hub_(std::move(hub)) {}
  std::string_view name() const override { return "environment"; }
  Rank rank() const override { return Rank{0}; }
  int size() const override { return exchange_.size; }
  Result<std::vector<std::string>> all_gather(const std::string& mine) override {
    ++exchange_.round;
    hub_->contribute(Rank{0}, contribution_of(exchange_, mine));
    hub_->serve();
    std::optional<Frame> answer;
    while (!(answer = hub_->take_answer(Rank{0}))) {
      if (interrupt::wanted()) {
        withdraw(interrupt::kReason);
        return Status{IST_CANCELLED, interrupt::kReason};
      }
      sleep();
      hub_->serve();
    }
    if (answer->type == FrameType::failure) end(answer->payload);
    // This process may close the connections right after: the others must have their answers. One that does not read is
    // not waited for long.
    for (const Deadline patience = Deadline::after(5.0); !hub_->flushed() && !interrupt::over(patience); hub_->serve())
      sleep();
    return open_answer(exchange_, *answer);
  }
  void withdraw(const std::string& reason) override {
    if (!over_) end(given_up(exchange_.world, place_, reason));
  }

 private:
  // Also those hear it that have not come yet to the exchange in which it shows.
  void end(const std::string& text) {
    over_ = true;
    note_failed(exchange_.world, text);
    hub_->give_up(text);
  }
  void sleep() {
    std::vector<pollfd> entries;
    hub_->watch(entries);
    const auto deadline = hub_->deadline();
    ::poll(entries.data(), entries.size(), deadline ? interrupt::milliseconds(*deadline) : 100);
  }
  std::string place_;
  Exchange exchange_;
  std::unique_ptr<GatherHub> hub_;
  bool over_ = false;
};

class EnvironmentGuest final : public Boot {
 public:
  EnvironmentGuest(const Meeting& meeting, Admission admission)
      : rank_(meeting.rank), exchange_(first_exchange(meeting, admission.token)), socket_(std::move(admission.socket)) {}
  std::string_view name() const override { return "environment"; }
  Rank rank() const override { return rank_; }
  int size() const override { return exchange_.size; }
  Result<std::vector<std::string>> all_gather(const std::string& mine) override {
    ++exchange_.round;
    auto all = gather_through(socket_, exchange_, mine);
    over_ = !all.ok();
    return all;
  }
  void withdraw(const std::string& reason) override {
    if (!std::exchange(over_, true)) withdraw_through(socket_, exchange_, reason);
  }

 private:
  Rank rank_;
  Exchange exchange_;
  FrameSocket socket_;
  bool over_ = false;  // whoever is to know does
};

}  // namespace

bool job_environment() {
  for (const char* name : kVariables)
    if (std::getenv(name)) return true;
  return false;
}

bool complete_job_environment() {
  return std::all_of(kVariables.begin(), kVariables.end(), [](const char* name) { return std::getenv(name) != nullptr; });
}

Result<std::unique_ptr<Boot>> join_environment(const Settings& settings) {
  auto meeting = read_meeting(settings);
  if (!meeting.ok()) return meeting.status();
  {
    const std::lock_guard lock(count().mutex);
    meeting->world = ++count().worlds;
    meeting->failed = count().failed;
  }
  const auto fail = [&](const Status& why) {
    if (why.code() == IST_CANCELLED) take_number_back(meeting->world);
    if (why.code() != IST_CANCELLED && meeting->rank == 0) note_failed(meeting->world, why.text());
    return why;
  };
  if (meeting->rank == 0) {
    const std::uint64_t token = random_token();
    auto hub = receive_ranks(*meeting, token);
    if (!hub.ok()) return fail(hub.status());
    return std::unique_ptr<Boot>{std::make_unique<EnvironmentHost>(*meeting, token, std::move(*hub))};
  }
  auto admission = knock(*meeting);
  if (!admission.ok()) return fail(admission.status());
  return std::unique_ptr<Boot>{std::make_unique<EnvironmentGuest>(*meeting, std::move(*admission))};
}

}  // namespace ist
