#include "cli/run_guardian.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "boot/gather_hub.hpp"
#include "cli/run_output.hpp"
#include "cli/run_processes.hpp"
#include "cli/run_rank.hpp"
#include "cli/run_signals.hpp"

namespace ist::cli {
namespace {

// From the first failure to the last reaped process must pass less than 2 s: grace, this, and what killing takes.
constexpr double kTermSeconds = 0.3;
constexpr double kSweepSeconds = 1.5;
// Of a signal that was sent to all processes of a job the launcher tells within that.
constexpr double kGroupSeconds = 0.5;
// For a reader of the output who has stopped reading, where the job was to end.
constexpr double kReaderSeconds = 1.0;

bool asks_to_end(int signal) { return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT; }

class Guardian {
 public:
  Guardian(const RunOptions& options, const FileDescriptor& lifeline, pid_t launcher)
      : options_(options), lifeline_(lifeline), launcher_(launcher), hub_(options.ranks, "the launcher", 0) {}

  int run(const std::vector<std::vector<int>>& shares, const sigset_t& signals);

 private:
  enum class Phase {
    running,      // no rank has failed
    grace,        // one has: the others may end by themselves
    terminating,  // the others were asked to end
    killing       // the others are made to end
  };
  struct RankProcess {
    pid_t process = -1;
    bool running = false;
  };
  struct Ended {
    int rank = -1;
    pid_t process = -1;
    int status = 0;
  };

  bool take_signals_from_descriptor();
  int start(int rank, const std::vector<int>& processors, const sigset_t& signals);
  int serve_until_all_ended();
  void wait_for_something();
  bool launcher_is_gone() const;
  void pass_signals_on();
  void reap();
  void fail(const Ended& first);
  void step();
  void write_out();
  void tell(const std::string& text);
  std::vector<int> still_running() const;

  const RunOptions& options_;
  const FileDescriptor& lifeline_;
  pid_t launcher_;
  GatherHub hub_;
  std::optional<PrefixedOutput> output_;
  FileDescriptor signals_;
  std::vector<RankProcess> ranks_;
  std::map<std::pair<int, pid_t>, Deadline> to_group_;  // signals that came here, too, by their senders
  Phase phase_ = Phase::running;
  std::optional<Deadline> next_phase_;
  int exit_status_ = 0;
};

bool Guardian::take_signals_from_descriptor() {
  sigset_t taken = job_signals();  // blocked by the launcher already
  sigset_t silenced;
  ::sigemptyset(&silenced);
  // Writing must neither end nor stop this process: it is told by the call's result.
  ::sigaddset(&silenced, SIGPIPE);
  ::sigaddset(&silenced, SIGTTOU);
  ::sigprocmask(SIG_BLOCK, &silenced, nullptr);
  signals_ = FileDescriptor{::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK)};
  return signals_.valid();
}

int Guardian::run(const std::vector<std::vector<int>>& shares, const sigset_t& signals) {
  ::prctl(PR_SET_NAME, "isthmus-guard", 0, 0, 0);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  if (!take_signals_from_descriptor()) return say_and_fail(system_error("signalfd"));
  if (options_.prefix_output) output_.emplace();
  for (int rank = 0; rank < options_.ranks && !launcher_is_gone(); ++rank) {
    const auto share = static_cast<std::size_t>(rank);
    const int failure = start(rank, share < shares.size() ? shares[share] : std::vector<int>{}, signals);
    if (failure == 0) continue;
    end_descendants({}, kSweepSeconds);
    return failure;
  }
  return serve_until_all_ended();
}

int Guardian::start(int rank, const std::vector<int>& processors, const sigset_t& signals) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return say_and_fail(
        system_error("socketpair for rank " + std::to_string(rank) + " (if it is the number of open files: ulimit -n)"));
  hub_.attach(Rank{rank}, FrameSocket{FileDescriptor{ends[0]}});
  const FileDescriptor boot{ends[1]};
  PrefixedOutput::Ends writing;
  if (output_) {
    auto opened = output_->open(rank);
    if (!opened.ok()) return say_and_fail(opened.status());
    writing = std::move(*opened);
  }
  const RankStart how{rank, boot.get(), writing.output.get(), writing.errors.get(), processors, signals, lifeline_.get()};
  const auto started = start_rank(options_, how);
  if (!started.ok()) return say_and_fail(started.status());
  ranks_.push_back({started->process, true});
  if (started->error == 0) return 0;
  say("cannot start \"" + options_.program.front() + "\": " + std::strerror(started->error) +
      (started->error == ENOENT   ? "; is the name right, and is its folder in PATH?"
       : started->error == EMFILE ? "; raise ulimit -n"
                                  : ""));
  return started->error == ENOENT || started->error == ENOTDIR ? 127 : 126;
}

int Guardian::serve_until_all_ended() {
  while (!still_running().empty()) {
    wait_for_something();
    if (launcher_is_gone()) break;
    pass_signals_on();
    reap();
    hub_.serve();
    // Where no rank understands the command, there is none that could be told.
    if (const auto text = hub_.read_misunderstanding()) tell(*text);
    if (output_) output_->serve();
    step();
  }
  if (launcher_is_gone()) exit_status_ = 128 + SIGKILL;
  if (!end_descendants({}, kSweepSeconds)) tell("some processes that the ranks started could not be ended");
  write_out();
  return exit_status_;
}

std::vector<int> Guardian::still_running() const {
  std::vector<int> running;
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (ranks_[rank].running) running.push_back(static_cast<int>(rank));
  return running;
}

void Guardian::wait_for_something() {
  std::vector<pollfd> entries{{signals_.get(), POLLIN, 0}, {lifeline_.get(), POLLIN, 0}};
  hub_.watch(entries);
  if (output_) output_->watch(entries);
  auto wake = hub_.deadline();
  if (next_phase_) wake = wake ? wake->earlier_of(*next_phase_) : next_phase_;
  ::poll(entries.data(), entries.size(), wake ? wake->milliseconds_left() : -1);
}

bool Guardian::launcher_is_gone() const {
  pollfd entry{lifeline_.get(), POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

void Guardian::pass_signals_on() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGCHLD) continue;  // reap() looks in any case
    const int signal = static_cast<int>(info.ssi_signo);
    // What did not come through the launcher was sent to the whole group, and who is in it has it. A terminal that ends the job means also those
    // that have made groups of their own (timeout, setsid); nobody would continue them if they were stopped.
    if (!sent_by_a_process(info.ssi_code)) {
      if (asks_to_end(signal)) signal_descendants(signal, Among::other_groups);
      continue;
    }
    const auto sender = static_cast<pid_t>(info.ssi_pid);
    if (sender != launcher_) {
      to_group_.insert_or_assign({signal, sender}, Deadline::after(kGroupSeconds));
      continue;
    }
    const auto known = to_group_.extract({signal, info.ssi_int});
    signal_descendants(signal, known.empty() || known.mapped().over() ? Among::all : Among::other_groups);
  }
}

void Guardian::reap() {
  std::vector<Ended> failed;
  int status = 0;
  for (pid_t process = 0; (process = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    const auto found =
        std::find_if(ranks_.begin(), ranks_.end(), [&](const RankProcess& one) { return one.process == process; });
    if (found == ranks_.end()) continue;  // adopted
    found->running = false;
    const Ended ended{static_cast<int>(found - ranks_.begin()), process, status};
    hub_.lost(Rank{ended.rank}, how_it_ended(status));
    if (exit_status_of(status) != 0) failed.push_back(ended);
  }
  if (failed.empty() || phase_ != Phase::running) return;
  // Of several that are found at the same moment, one that a signal ended is the likelier cause of the others.
  const auto killed = std::find_if(failed.begin(), failed.end(), [](const Ended& one) { return WIFSIGNALED(one.status); });
  fail(killed != failed.end() ? *killed : failed.front());
}

void Guardian::fail(const Ended& first) {
  exit_status_ = exit_status_of(first.status);
  tell("rank " + std::to_string(first.rank) + " (pid " + std::to_string(first.process) + ") " + how_it_ended(first.status));
  phase_ = Phase::grace;
  next_phase_ = Deadline::after(options_.grace);
}

void Guardian::step() {
  if (!next_phase_ || !next_phase_->over()) return;
  const auto running = still_running();
  if (running.empty()) return;
  if (phase_ == Phase::grace) {
    tell(ranks_text(running) + " did not end within " + seconds_text(options_.grace) + " after that and " +
         (running.size() == 1 ? "is" : "are") + " terminated");
    signal_descendants(SIGTERM);
    signal_descendants(SIGCONT);  // a stopped process cannot end
    phase_ = Phase::terminating;
    next_phase_ = Deadline::after(kTermSeconds);
    return;
  }
  phase_ = Phase::killing;
  signal_descendants(SIGKILL);
  next_phase_ = Deadline::after(0.02);  // again: something may have been started meanwhile
}

// Waits for a slow reader, but not for ever where a signal ended the job, or comes now.
void Guardian::write_out() {
  if (!output_) return;
  output_->close_all();
  std::optional<Deadline> last;
  if (asks_to_end(exit_status_ - 128)) last = Deadline::after(kReaderSeconds);
  while (!output_->flushed() && !launcher_is_gone() && !(last && last->over())) {
    std::vector<pollfd> entries{{signals_.get(), POLLIN, 0}, {lifeline_.get(), POLLIN, 0}};
    output_->watch(entries);
    ::poll(entries.data(), entries.size(), last ? last->milliseconds_left() : -1);
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
      const int signal = static_cast<int>(info.ssi_signo);
      if (last || !asks_to_end(signal)) continue;
      last = Deadline::after(kReaderSeconds);
      if (exit_status_ == 0) exit_status_ = 128 + signal;
    }
    output_->serve();
  }
  if (exit_status_ == 0 && output_->lost()) exit_status_ = 1;
}

void Guardian::tell(const std::string& text) {
  if (output_) {
    output_->say("isthmus run: " + text);
  } else {
    say(text);
  }
}

}  // namespace

int guard(const RunOptions& options, const std::vector<std::vector<int>>& shares, const FileDescriptor& lifeline,
          pid_t launcher, const sigset_t& signals) {
  return Guardian{options, lifeline, launcher}.run(shares, signals);
}

}  // namespace ist::cli
