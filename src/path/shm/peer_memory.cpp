#include "path/shm/peer_memory.hpp"

#include <signal.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

namespace ist {
namespace {

constexpr const char* kRemedy =
    "kernel.yama.ptrace_scope=0, or the container's permission for process_vm_readv, would allow it";

// Ends with 0 if `process` shows `value` at the address, otherwise with an errno. Allocates nothing: other threads of the
// parent may have held the allocator's lock as this process was forked.
[[noreturn]] void try_to_read(pid_t process, std::uint64_t* address, std::uint64_t value) {
  std::uint64_t found = 0;
  *address = 0;  // in this process alone
  const iovec here{&found, sizeof found};
  const iovec there{address, sizeof found};
  const ssize_t moved = ::process_vm_readv(process, &here, 1, &there, 1, 0);
  ::_exit(moved == sizeof found && found == value ? 0 : errno);
}

}  // namespace

Status PeerMemory::possible() {
  constexpr std::uint64_t kValue = 0x1571234567;
  std::uint64_t word = kValue;
  const pid_t read = ::fork();
  if (read == 0)
    for (;;) ::pause();
  const pid_t reader = read < 0 ? -1 : ::fork();
  if (reader == 0) try_to_read(read, &word, kValue);
  int status = 0;
  if (reader > 0) ::waitpid(reader, &status, 0);
  if (read > 0) {
    ::kill(read, SIGKILL);
    ::waitpid(read, nullptr, 0);
  }
  if (reader < 0) return system_error("fork");
  errno = WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
  if (errno == 0) return {};
  const Status failed = system_error("process_vm_readv");
  return {failed.code(), failed.text() + "; " + kRemedy};
}

Result<PeerMemory> PeerMemory::open(int process, const Proof& proof) {
  if (process <= 0)
    return Status{
        IST_ERR_SYSTEM,
        "it runs in another process namespace; start all ranks in one container, or with the same one (docker run --pid)"};
  const PeerMemory peer{process};
  std::uint64_t found = 0;
  if (const Status seen = peer.read(std::as_writable_bytes(std::span{&found, 1}), proof.address); !seen.ok())
    return Status{seen.code(), seen.text() + "; " + kRemedy};
  if (found != proof.value) return Status{IST_ERR_SYSTEM, "process " + std::to_string(process) + " is another one"};
  return peer;
}

Status PeerMemory::read(std::span<std::byte> into, std::uint64_t address) const {
  for (std::size_t done = 0; done < into.size();) {
    const iovec here{into.data() + done, into.size() - done};
    const iovec there{reinterpret_cast<void*>(address + done), into.size() - done};
    const ssize_t moved = ::process_vm_readv(process_, &here, 1, &there, 1, 0);
    if (moved <= 0) return system_error("process_vm_readv from process " + std::to_string(process_));
    done += static_cast<std::size_t>(moved);
  }
  return {};
}

bool PeerMemory::read(std::span<const Part> parts) const {
  std::array<iovec, kMostParts> here{};
  std::array<iovec, kMostParts> there{};
  if (parts.size() > here.size()) return false;
  std::size_t wanted = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    here[i] = {parts[i].into.data(), parts[i].into.size()};
    there[i] = {reinterpret_cast<void*>(parts[i].address), parts[i].into.size()};
    wanted += parts[i].into.size();
  }
  return ::process_vm_readv(process_, here.data(), parts.size(), there.data(), parts.size(), 0) ==
         static_cast<ssize_t>(wanted);
}

}  // namespace ist
