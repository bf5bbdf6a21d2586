#include "boot/pmi_boot.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <climits>
#include <cstdlib>

#include "boot/pmi_wire.hpp"
#include "boot/served_boot.hpp"
#include "boot/variables.hpp"

namespace ist {
namespace {

constexpr const char* kSocket = "PMI_FD";
constexpr double kPatienceAtStart = 2.0;  // for a server that takes no request
constexpr double kPatienceAtEnd = 2.0;
constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

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

std::string key_of(const ServedRound& round, int rank, std::size_t piece) {
  return "ist-" + std::to_string(round.world) + "-" + std::to_string(round.number) + "-" + std::to_string(rank) + "-" +
         std::to_string(piece);
}

class PmiServer final : public JobServer {
 public:
  std::string_view name() const override { return "pmi"; }

 private:
  std::string who() const override {
    return "rank " + text_variable("PMI_RANK", "?") + " of a job with PMI (descriptor " + text_variable(kSocket) + ")";
  }

  Status connect(double seconds) override {
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
    wire_ = std::move(*wire);
    return {};
  }

  Status find_place(double) override {
    const auto size = wire_->size() ? Result<long>{*wire_->size()} : number_variable("PMI_SIZE", 1, INT_MAX);
    if (!size.ok()) return size.status();
    const auto rank = wire_->rank() ? Result<long>{*wire_->rank()} : number_variable("PMI_RANK", 0, *size - 1);
    if (!rank.ok()) return rank.status();
    return take_place(*rank, *size, "the PMI server");
  }

  Status begin_meeting() override { return named(wire_->begin_meeting(Deadline::after(kPatienceAtStart))); }

  Result<bool> met(Deadline deadline) override {
    auto all_there = wire_->met(deadline);
    if (!all_there.ok()) return named(all_there.status());
    return all_there;
  }

  Status named(const Status& status) const {
    return status.ok() ? status : Status{status.code(), who() + ": " + status.text()};
  }

  Result<std::vector<std::string>> exchange(const ServedRound& round, const std::string& mine) override {
    auto all = try_exchange(round, mine);
    if (!all.ok()) return named(all.status());
    return all;
  }

  // Out of step, no answer would be the one to this.
  void leave(bool in_step) override {
    if (in_step) wire_->finalize(Deadline::after(kPatienceAtEnd));
  }

  Result<std::vector<std::string>> try_exchange(const ServedRound& round, const std::string& mine) {
    const Deadline deadline = Deadline::after(round.seconds);
    IST_TRY(offer(round, mine, deadline));
    IST_TRY(wire_->fence(deadline));
    std::vector<std::string> blobs;
    for (int rank = 0; rank < round.size; ++rank) {
      auto blob = rank == round.rank ? Result<std::string>{mine} : collect(round, rank, deadline);
      if (!blob.ok()) return blob.status();
      blobs.push_back(std::move(*blob));
    }
    return blobs;
  }

  // The number of letters, and the letters in pieces; the first piece has room for most blobs.
  Status offer(const ServedRound& round, const std::string& mine, Deadline deadline) {
    const std::string letters = in_letters(mine);
    const std::string text = std::to_string(letters.size()) + "." + letters;
    for (std::size_t at = 0; at < text.size(); at += PmiWire::kLongestValue)
      IST_TRY(wire_->put(key_of(round, round.rank, at / PmiWire::kLongestValue), text.substr(at, PmiWire::kLongestValue),
                         deadline));
    return {};
  }

  Result<std::string> collect(const ServedRound& round, int rank, Deadline deadline) {
    std::string text;
    std::size_t wanted = 1;  // not known before the first piece is there
    for (std::size_t piece = 0; text.size() < wanted; ++piece) {
      const auto value = wire_->get(key_of(round, rank, piece), deadline);
      if (!value.ok()) return value.status();
      if (!*value) return offered_nothing(rank, round, "");
      text += **value;
      if (const auto point = text.find('.'); piece == 0 && point != std::string::npos)
        wanted = point + 1 + std::strtoul(text.c_str(), nullptr, 10);
      if ((*value)->empty()) break;
    }
    auto bytes = out_of_letters(std::string_view{text}.substr(std::min(text.size(), text.find('.') + 1)));
    if (text.size() != wanted || !bytes)
      return Status{IST_ERR_BOOT,
                    "what rank " + std::to_string(rank) + " offered cannot be read; do all ranks use the same Isthmus?"};
    return *bytes;
  }

  std::unique_ptr<PmiWire> wire_;
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

Result<std::unique_ptr<Boot>> join_pmi(const Settings& settings) { return join_served<PmiServer>(settings); }

}  // namespace ist
