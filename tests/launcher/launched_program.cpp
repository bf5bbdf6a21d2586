// A rank for the launcher's tests: does the actions named by its arguments, one after another.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "boot/boot.hpp"
#include "boot/peers.hpp"
#include "boot/watcher.hpp"

namespace {

using namespace ist;

int fail(const Status& status) {
  std::printf("error %s\n", status.text().c_str());
  std::fflush(stdout);
  return 5;
}

// A world as far as boot makes it: exchange, pair sockets, watcher. Optionally waits until some rank died.
int world(bool wait_for_death) {
  const auto settings = Settings::read();
  if (!settings.ok()) return fail(settings.status());
  auto boot = join_job(*settings);
  if (!boot.ok()) return fail(boot.status());
  const auto blobs = (*boot)->all_gather("blob of " + std::to_string((*boot)->rank().value));
  if (!blobs.ok()) return fail(blobs.status());
  for (int rank = 0; rank < (*boot)->size(); ++rank)
    if ((*blobs)[static_cast<std::size_t>(rank)] != "blob of " + std::to_string(rank)) return 6;
  auto peers = Peers::connect(**boot, *settings);
  if (!peers.ok()) return fail(peers.status());
  AbortBoard board{(*peers)->size()};
  auto watcher = Watcher::start(**peers, board, {[](Rank) { return false; }, [](Rank) { return kNobody; }, [] {}});
  if (!watcher.ok()) return fail(watcher.status());
  std::printf("world of %d\n", (*boot)->size());
  std::fflush(stdout);
  if (!wait_for_death) return (*boot)->all_gather("done").ok() ? 0 : 7;
  while (board.changes() == 0) ::usleep(1000);
  std::printf("rank %d died\n", board.first_dead().value);
  std::fflush(stdout);
  return 9;
}

volatile sig_atomic_t last_signal = 0;
void remember(int signal) { last_signal = signal; }

int await_signal() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT}) ::signal(signal, remember);
  std::printf("ready\n");
  std::fflush(stdout);
  while (last_signal == 0) ::usleep(1000);
  std::printf("got %s\n", ::sigabbrev_np(last_signal));
  std::fflush(stdout);
  return 0;
}

int act(const std::string& action) {
  const char* rank_text = std::getenv("ISTHMUS_RANK");
  const int rank = rank_text ? std::atoi(rank_text) : 0;
  if (action == "world") return world(false);
  if (action == "world-until-death") return world(true);
  if (action == "await-signal") return await_signal();
  if (action == "stay") {
    std::printf("staying\n");
    std::fflush(stdout);
    for (;;) ::pause();
  }
  if (action == "stubborn") {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_IGN);
    return act("stay");
  }
  if (action == "rank-1-exits-3") return rank == 1 ? 3 : act("stay");
  if (action == "rank-1-leaves") return rank == 1 ? 0 : act("world");
  if (action == "rank-1-crashes") {
    if (rank != 1) return act("stay");
    ::signal(SIGSEGV, SIG_DFL);  // a sanitizer would turn it into an exit status
    ::raise(SIGSEGV);
  }
  return 8;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (const int status = act(argv[i]); status != 0) return status;
  return 0;
}
