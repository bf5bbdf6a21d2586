// A rank for launchers that are not ours: exchanges random bytes of many sizes and prints what it found itself to be.
//
//   foreign_rank exchange | worlds | forked | order | again | away | version-1 | late | die
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "boot/boot.hpp"
#include "boot/interrupt.hpp"
#include "boot/peers.hpp"
#include "boot/pmi_wire.hpp"

namespace {

using namespace ist;

int fail(const Status& status) {
  std::printf("error %s\n", status.text().c_str());
  std::fflush(stdout);
  return 5;
}

// Fresh on every run of the test, and known to every rank.
std::string blob_of(int rank, int round, std::size_t length) {
  const char* salt = std::getenv("ISTHMUS_TEST_SALT");
  std::seed_seq seed{salt ? std::atoi(salt) : 0, rank, round, static_cast<int>(length)};
  std::mt19937_64 engine{seed};
  std::string blob(length, '\0');
  for (char& byte : blob) byte = static_cast<char>(engine());
  return blob;
}

// Rank r gives r bytes more, so that the lengths differ.
Status exchange(Boot& boot, int round, std::size_t length) {
  const auto length_of = [&](int rank) { return length + static_cast<std::size_t>(rank); };
  const int mine = boot.rank().value;
  const auto all = boot.all_gather(blob_of(mine, round, length_of(mine)));
  if (!all.ok()) return all.status();
  if (all->size() != static_cast<std::size_t>(boot.size())) return {IST_ERR_INTERNAL, "a wrong number of blobs"};
  for (int rank = 0; rank < boot.size(); ++rank)
    if ((*all)[static_cast<std::size_t>(rank)] != blob_of(rank, round, length_of(rank)))
      return {IST_ERR_INTERNAL, "the blob of rank " + std::to_string(rank) + " of length " + std::to_string(length) +
                                    " came out as something else"};
  return {};
}

// Around nothing, the piece that a value of PMI holds, and a page; the last is more than a socket's buffer takes.
Status exchange_all_sizes(Boot& boot) {
  int round = 0;
  for (const std::size_t length :
       {0UL, 1UL, 2UL, 3UL, 359UL, 360UL, 361UL, 383UL, 384UL, 385UL, 4095UL, 4096UL, 4097UL, 70001UL, 0UL})
    IST_TRY(exchange(boot, ++round, length));
  return {};
}

Status check_world(const Settings& settings, std::string& line) {
  auto boot = join_job(settings);
  if (!boot.ok()) return boot.status();
  IST_TRY(exchange_all_sizes(**boot));
  auto peers = Peers::connect(**boot, settings);
  if (!peers.ok()) return peers.status();
  line = std::string{(*boot)->name()} + " rank " + std::to_string((*boot)->rank().value) + " of " +
         std::to_string((*boot)->size()) + ", " + std::to_string((*peers)->local().size()) + " on this host";
  return {};
}

// A child that a rank forks is no rank, and leaves the rank's connection alone.
Status check_forked(const Settings& settings) {
  auto boot = join_job(settings);
  if (!boot.ok()) return boot.status();
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto world = join_job(settings);
    const auto exchanged = (*boot)->all_gather("x");
    const bool refused = world.status().text().find("forked from pid") != std::string::npos &&
                         exchanged.status().text().find("forked from pid") != std::string::npos;
    std::exit(refused ? 0 : 1);  // with the handlers of exit(), as a careless child would
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0) return {IST_ERR_INTERNAL, "the child was not refused"};
  return exchange(**boot, 1, 100);
}

// Rank 1 is one world ahead: an error on every rank, and no mixture.
Status check_order(const Settings& settings) {
  auto boot = join_job(settings);
  if (boot.ok() && (*boot)->rank().value == 1) boot = join_job(settings);
  if (!boot.ok()) return boot.status();
  const auto all = (*boot)->all_gather("x");
  if (all.status().text().find("All ranks must create the same worlds in the same order") == std::string::npos)
    return {IST_ERR_INTERNAL, "no error of the order: " + all.status().text()};
  if (join_job(settings).status().text().find("may be out of step") == std::string::npos)
    return {IST_ERR_INTERNAL, "a further world was not refused"};
  return {};
}

// This rank's program ends its wait for the others after a moment.
Status check_given_up(const Settings& settings) {
  Deadline until = Deadline::after(0.3);
  interrupt::set([](void* moment) { return static_cast<Deadline*>(moment)->over() ? 1 : 0; }, &until);
  const interrupt::Scope scope;
  auto boot = join_job(settings);
  if (!boot.ok()) return boot.status();
  const auto all = (*boot)->all_gather("x");
  interrupt::set(nullptr, nullptr);
  if (!scope.happened() || all.status().code() != IST_CANCELLED)
    return {IST_ERR_INTERNAL, "it went on waiting: " + all.status().text()};
  if (until.later_by(1).over()) return {IST_ERR_INTERNAL, "the wait ended late"};
  return {};
}

// Rank 1 gives up twice before rank 2 is there, and comes again; or it stays away until the others were told.
Status check_gives_up(const Settings& settings, bool comes_again) {
  const char* named = std::getenv("PMIX_RANK");
  const int rank = std::atoi(named ? named : std::getenv("PMI_RANK"));
  if (rank == 1) IST_TRY(check_given_up(settings));
  if (rank == 1 && comes_again) IST_TRY(check_given_up(settings));
  if (rank == 2) ::usleep(1'200'000);
  if (!comes_again && rank == 1) ::usleep(4'000'000);
  if (!comes_again && rank != 1) {
    const Deadline soon = Deadline::after(rank == 2 ? 2 : 3.5);
    auto boot = join_job(settings);
    if (!boot.ok()) return boot.status();
    const auto all = (*boot)->all_gather("x");
    if (all.status().text().find("rank 1 gave up creating its world number 1") == std::string::npos)
      return {IST_ERR_INTERNAL, "not told who gave up: " + all.status().text()};
    if (soon.over()) return {IST_ERR_INTERNAL, "told late"};
  }
  std::string line;
  for (int world = 0; world < 2; ++world) IST_TRY(check_world(settings, line));
  return {};
}

// A server that knows both versions would never be asked for the older one.
Status check_version_1() {
  const Deadline deadline = Deadline::after(20);
  auto opened = PmiWire::open(FileDescriptor{std::atoi(std::getenv("PMI_FD"))}, deadline, 1);
  if (!opened.ok()) return opened.status();
  PmiWire& wire = **opened;
  const int rank = std::atoi(std::getenv("PMI_RANK"));
  const int size = std::atoi(std::getenv("PMI_SIZE"));
  const auto key = [](int r) { return "key-" + std::to_string(r); };
  const auto value = [](int r) { return std::string(PmiWire::kLongestValue, static_cast<char>('a' + r)); };
  IST_TRY(wire.put(key(rank), value(rank), deadline));
  IST_TRY(wire.fence(deadline));
  for (int r = 0; r < size; ++r) {
    const auto got = wire.get(key(r), deadline);
    if (!got.ok()) return got.status();
    if (*got != value(r))
      return {IST_ERR_INTERNAL, "the value of rank " + std::to_string(r) + " came out as something else"};
  }
  const auto none = wire.get(key(size), deadline);
  if (!none.ok()) return none.status();
  if (*none) return {IST_ERR_INTERNAL, "a value that nobody has put is there"};
  IST_TRY(wire.fence(deadline));
  wire.finalize(deadline);
  return wire.version() == 1 ? Status{} : Status{IST_ERR_INTERNAL, "another version"};
}

int act(const std::string& action) {
  auto settings = Settings::read();
  if (!settings.ok()) return fail(settings.status());
  std::string line;
  Status status;
  if (action == "exchange") {
    status = check_world(*settings, line);
  } else if (action == "worlds") {
    for (int world = 0; world < 3 && status.ok(); ++world) status = check_world(*settings, line);
  } else if (action == "forked") {
    status = check_forked(*settings);
    line = "the child was refused";
  } else if (action == "order") {
    status = check_order(*settings);
    line = "the order was found wrong";
  } else if (action == "again" || action == "away") {
    status = check_gives_up(*settings, action == "again");
    line = "the world was made in the end";
  } else if (action == "version-1") {
    status = check_version_1();
    line = "by version 1";
  } else if (action == "late" || action == "die") {
    auto boot = join_job(*settings);
    if (!boot.ok()) return fail(boot.status());
    if ((*boot)->rank().value == 1 && action == "die") ::_exit(3);
    if ((*boot)->rank().value == 1) ::usleep(5'000'000);
    status = (*boot)->all_gather("x").status();
  } else {
    return 8;
  }
  if (!status.ok()) return fail(status);
  std::printf("%s\n", line.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return argc == 2 ? act(argv[1]) : 8; }
