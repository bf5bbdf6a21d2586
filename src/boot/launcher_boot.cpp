#include "boot/launcher_boot.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <mutex>

#include "base/release.hpp"
#include "boot/gathered.hpp"
#include "boot/variables.hpp"

namespace ist {
namespace {

// What this process knows about the socket it inherited. Made by the first world, never destroyed: a later world needs it.
struct Inheritance {
  std::mutex mutex;
  std::unique_ptr<FrameSocket> socket;
  pid_t owner = 0;
  int rank = 0;
  int size = 0;
  std::uint32_t worlds = 0;
};

Inheritance& inheritance() {
  static auto* only = new Inheritance;
  return *only;
}

Status not_a_rank(const std::string& found) {
  return {IST_ERR_BOOT, "ISTHMUS_RANK and " + std::string{kBootDescriptor} + " are set, but this process (pid " +
                            std::to_string(::getpid()) + ") is not a rank of that job: " + found +
                            ". Only the program that `isthmus run` starts can create worlds, not a program that it starts "
                            "in turn; start that one with `isthmus run`, or unset " +
                            kBootDescriptor + " in its environment for a world of one"};
}

// The descriptor may be closed, or be anything else by now, if another program stands between the launcher and this one.
Status check_socket(int descriptor, unsigned long inode) {
  struct stat info {};
  if (::fstat(descriptor, &info) != 0) return not_a_rank("descriptor " + std::to_string(descriptor) + " is closed here");
  if (!S_ISSOCK(info.st_mode) || info.st_ino != inode)
    return not_a_rank("descriptor " + std::to_string(descriptor) + " is something else here");
  return {};
}

// A shell may start several programs that all inherit the one socket of its rank. They may use it one after another, and
// not at once: a record lock, which the kernel drops when the process ends and fork() does not inherit, says whose it is.
Status claim(int descriptor) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (::fcntl(descriptor, F_SETLK, &lock) == 0) return {};
  if (errno != EAGAIN && errno != EACCES) return {};  // no locks on sockets here: go on without this check
  struct flock holder {};
  holder.l_type = F_WRLCK;
  holder.l_whence = SEEK_SET;
  std::string who = "another process";
  if (::fcntl(descriptor, F_GETLK, &holder) == 0 && holder.l_type != F_UNLCK) who = "pid " + std::to_string(holder.l_pid);
  return not_a_rank(who + " is already using the connection of this rank to the launcher");
}

// Before anything is sent that the other side could not read.
Status check_version() {
  constexpr long kUnsaid = 1;
  Result<long> spoken = kUnsaid;
  if (std::getenv(kBootVersion) != nullptr) spoken = number_variable(kBootVersion, 1, USHRT_MAX);
  if (!spoken.ok()) return spoken.status();
  if (*spoken == kFrameVersion) return {};
  return {IST_ERR_BOOT, "`isthmus run`, which started this process, speaks version " + std::to_string(*spoken) +
                            " of the start-up protocol, and the library of this program (" + kRelease + ") version " +
                            std::to_string(kFrameVersion) +
                            ": they belong to two installations of Isthmus; start the program with the command of the "
                            "library that it loads, or build it with the command's library"};
}

Status inherit(Inheritance& mine) {
  const auto descriptor = number_variable(kBootDescriptor, 0, INT_MAX);
  if (!descriptor.ok()) return descriptor.status();
  const auto inode = number_variable(kBootInode, 0, LONG_MAX);
  if (!inode.ok()) return inode.status();
  const auto size = number_variable(kSize, 1, INT_MAX);
  if (!size.ok()) return size.status();
  const auto rank = number_variable(kRank, 0, *size - 1);
  if (!rank.ok()) return rank.status();
  const int socket = static_cast<int>(*descriptor);
  IST_TRY(check_version());
  IST_TRY(check_socket(socket, static_cast<unsigned long>(*inode)));
  IST_TRY(claim(socket));
  // From here on a program that this one starts does not get the socket.
  if (::fcntl(socket, F_SETFD, FD_CLOEXEC) != 0) return system_error("fcntl on the launcher's socket");
  mine.socket = std::make_unique<FrameSocket>(FileDescriptor{socket});
  mine.owner = ::getpid();
  mine.rank = static_cast<int>(*rank);
  mine.size = static_cast<int>(*size);
  return {};
}

class LauncherBoot final : public Boot {
 public:
  LauncherBoot(std::uint32_t world, double seconds) {
    exchange_.world = world;
    exchange_.seconds = seconds;
    exchange_.size = inheritance().size;
    exchange_.hub = "the launcher";
  }
  std::string_view name() const override { return "launcher"; }
  Rank rank() const override { return Rank{inheritance().rank}; }
  int size() const override { return exchange_.size; }
  Result<std::vector<std::string>> all_gather(const std::string& mine) override {
    Inheritance& process = inheritance();
    const std::lock_guard lock(process.mutex);
    if (process.owner != ::getpid()) return not_a_rank("it was forked from pid " + std::to_string(process.owner));
    ++exchange_.round;
    auto all = gather_through(*process.socket, exchange_, mine);
    over_ = !all.ok();
    return all;
  }
  void withdraw(const std::string& reason) override {
    Inheritance& process = inheritance();
    const std::lock_guard lock(process.mutex);
    if (over_ || process.owner != ::getpid()) return;
    withdraw_through(*process.socket, exchange_, reason);
    over_ = true;
  }

 private:
  Exchange exchange_;
  bool over_ = false;  // whoever is to know does
};

}  // namespace

bool launcher_environment() { return std::getenv(kBootDescriptor) != nullptr; }

Result<std::unique_ptr<Boot>> join_launcher(const Settings& settings) {
  Inheritance& process = inheritance();
  const std::lock_guard lock(process.mutex);
  if (process.socket && process.owner != ::getpid())
    return not_a_rank("it was forked from pid " + std::to_string(process.owner));
  if (!process.socket) IST_TRY(inherit(process));
  return std::unique_ptr<Boot>{std::make_unique<LauncherBoot>(++process.worlds, settings.boot_timeout)};
}

}  // namespace ist
