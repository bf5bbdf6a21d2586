#include "boot/pmi_boot.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <mutex>

#include "boot/pmi_wire.hpp"
#include "boot/variables.hpp"

namespace ist {
namespace {

constexpr const char* kSocket = "PMI_FD";
constexpr double kPatienceAtEnd = 2.0;
constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

// What this process knows of its PMI server. Made by the first world, never destroyed: a later world needs it.
struct Connection {
  std::mutex mutex;
  std::unique_ptr<PmiWire> wire;
  pid_t owner = 0;
  int rank = 0;
  int size = 0;
  std::uint32_t worlds = 0;
  Status broken;  // why there can be no further exchange
};

Connection& connection() {
  static auto* only = new Connection;
  return *only;
}

// A forked child is not the rank: it must not say that the rank ends.
void finish() {
  Connection& process = connection();
  if (process.owner == ::getpid() && process.broken.ok()) process.wire->finalize(Deadline::after(kPatienceAtEnd));
}

std::string who() {
  const char* rank = std::getenv("PMI_RANK");
  return "rank " + std::string{rank ? rank : "?"} + " of a job with PMI (descriptor " + std::getenv(kSocket) + ")";
}

int is_mpi(dl_phdr_info* info, std::size_t, void* found) {
  const std::string_view path = info->dlpi_name ? info->dlpi_name : "";
  if (path.substr(path.rfind('/') + 1).starts_with("libmpi")) *static_cast<bool*>(found) = true;
  return 0;
}

// Also one that Python loaded for itself alone, and one that is part of the program.
bool mpi_is_loaded() {
  bool found = ::dlsym(RTLD_DEFAULT, "MPI_Initialized") != nullptr;
  ::dl_iterate_phdr(is_mpi, &found);
  return found;
}

Status connect(Connection& process, double seconds) {
  const auto descriptor = number_variable(kSocket, 0, INT_MAX);
  if (!descriptor.ok()) return descriptor.status();
  if (mpi_is_loaded())
    return {IST_ERR_BOOT, who() +
                              ": an MPI library is in this process, and PMI serves one of the two only; call MPI_Init "
                              "first, and then ist_world_from_mpi(MPI_COMM_WORLD, ...) of isthmus/mpi.h"};
  const int socket = static_cast<int>(*descriptor);
  struct stat info {};
  if (::fstat(socket, &info) != 0 || !S_ISSOCK(info.st_mode))
    return {IST_ERR_BOOT, who() + ": that descriptor is " + (S_ISREG(info.st_mode) ? "a file" : "no socket") +
                              " here; only the program that the job's launcher starts can create worlds. Unset PMI_FD for "
                              "a world of one"};
  // From here on a program that this one starts does not get the socket.
  if (::fcntl(socket, F_SETFD, FD_CLOEXEC) != 0) return system_error("fcntl on the PMI socket");
  auto wire = PmiWire::open(FileDescriptor{socket}, Deadline::after(seconds));
  if (!wire.ok()) return {IST_ERR_BOOT, who() + ": " + wire.status().text()};
  process.wire = std::move(*wire);
  process.owner = ::getpid();
  std::atexit(finish);
  const auto size = process.wire->size() ? Result<long>{*process.wire->size()} : number_variable("PMI_SIZE", 1, INT_MAX);
  if (!size.ok()) return size.status();
  const auto rank = process.wire->rank() ? Result<long>{*process.wire->rank()} : number_variable("PMI_RANK", 0, *size - 1);
  if (!rank.ok()) return rank.status();
  if (*rank < 0 || *rank >= *size || *size > INT_MAX)
    return {IST_ERR_BOOT,
            "the PMI server tells of rank " + std::to_string(*rank) + " in a job of " + std::to_string(*size) + " ranks"};
  process.size = static_cast<int>(*size);
  process.rank = static_cast<int>(*rank);
  return {};
}

Status forked_from(pid_t owner) {
  return {IST_ERR_BOOT, "this process (pid " + std::to_string(::getpid()) + ") was forked from pid " +
                            std::to_string(owner) + ", which is " + who() +
                            "; only the process that the job's launcher started can create worlds"};
}

class PmiBoot final : public Boot {
 public:
  PmiBoot(std::uint32_t world, double seconds) : world_(world), seconds_(seconds) {}
  std::string_view name() const override { return "pmi"; }
  Rank rank() const override { return Rank{connection().rank}; }
  int size() const override { return connection().size; }
  Result<std::vector<std::string>> all_gather(const std::string& mine) override {
    Connection& process = connection();
    const std::lock_guard lock(process.mutex);
    if (process.owner != ::getpid()) return forked_from(process.owner);
    IST_TRY(process.broken);
    ++round_;
    auto all = exchange(process, mine);
    if (all.ok()) return all;
    const std::string text = who() + ": " + all.status().text();
    process.broken = {IST_ERR_BOOT, "an earlier exchange of this process failed, and its ranks may be out of step: " + text};
    return Status{all.status().code(), text};
  }

 private:
  // Numbered, since PMI keeps every value until the job ends.
  std::string key(int rank, std::size_t piece) const {
    return "ist-" + std::to_string(world_) + "-" + std::to_string(round_) + "-" + std::to_string(rank) + "-" +
           std::to_string(piece);
  }

  Result<std::vector<std::string>> exchange(Connection& process, const std::string& mine) {
    const Deadline deadline = Deadline::after(seconds_);
    IST_TRY(offer(process, mine, deadline));
    IST_TRY(process.wire->fence(deadline));
    std::vector<std::string> blobs;
    for (int rank = 0; rank < process.size; ++rank) {
      auto blob = rank == process.rank ? Result<std::string>{mine} : collect(process, rank, deadline);
      if (!blob.ok()) return blob.status();
      blobs.push_back(std::move(*blob));
    }
    return blobs;
  }

  // The number of letters, and the letters in pieces; the first piece has room for most blobs.
  Status offer(Connection& process, const std::string& mine, Deadline deadline) const {
    const std::string letters = in_letters(mine);
    const std::string text = std::to_string(letters.size()) + "." + letters;
    for (std::size_t at = 0; at < text.size(); at += PmiWire::kLongestValue)
      IST_TRY(process.wire->put(key(process.rank, at / PmiWire::kLongestValue), text.substr(at, PmiWire::kLongestValue),
                                deadline));
    return {};
  }

  Result<std::string> collect(Connection& process, int rank, Deadline deadline) const {
    std::string text;
    std::size_t wanted = 1;  // not known before the first piece is there
    for (std::size_t piece = 0; text.size() < wanted; ++piece) {
      const auto value = process.wire->get(key(rank, piece), deadline);
      if (!value.ok()) return value.status();
      if (!*value)
        return Status{IST_ERR_BOOT, "rank " + std::to_string(rank) + " offered nothing for exchange " +
                                        std::to_string(round_) + " of world number " + std::to_string(world_) +
                                        "; has it ended? All ranks must create the same worlds in the same order"};
      text += **value;
      if (const auto point = text.find('.'); piece == 0 && point != std::string::npos)
        wanted = point + 1 + std::strtoul(text.c_str(), nullptr, 10);
      if ((*value)->empty()) break;
    }
    auto bytes = out_of_letters(std::string_view{text}.substr(std::min(text.size(), text.find('.') + 1)));
    if (text.size() != wanted || !bytes)
      return Status{IST_ERR_BOOT, "what rank " + std::to_string(rank) +
                                      " offered cannot be read; do all ranks use the "
                                      "same Isthmus?"};
    return *bytes;
  }

  std::uint32_t world_;
  std::uint32_t round_ = 0;
  double seconds_;
};

}  // namespace

std::string in_letters(std::string_view bytes) {
  std::string letters;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char byte : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(byte);
    for (held += 8; held >= 6; held -= 6) letters += kLetters[bits >> (held - 6) & 63];
  }
  if (held > 0) letters += kLetters[bits << (6 - held) & 63];
  return letters;
}

std::optional<std::string> out_of_letters(std::string_view letters) {
  std::string bytes;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char letter : letters) {
    const auto value = kLetters.find(letter);
    if (value == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes += static_cast<char>(bits >> held & 255);
  }
  return bytes;
}

bool pmi_environment() { return std::getenv(kSocket) != nullptr; }

Result<std::unique_ptr<Boot>> join_pmi(const Settings& settings) {
  Connection& process = connection();
  const std::lock_guard lock(process.mutex);
  if (process.owner != 0 && process.owner != ::getpid()) return forked_from(process.owner);
  IST_TRY(process.broken);
  if (process.size == 0) {
    process.broken = connect(process, settings.boot_timeout);
    IST_TRY(process.broken);
  }
  return std::unique_ptr<Boot>{std::make_unique<PmiBoot>(++process.worlds, settings.boot_timeout)};
}

}  // namespace ist
