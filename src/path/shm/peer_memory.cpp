#include "path/shm/peer_memory.hpp"

#include <sys/uio.h>

#include <cerrno>

namespace ist {

Result<PeerMemory> PeerMemory::open(int process, const Proof& proof) {
  if (process <= 0) return Status{IST_ERR_SYSTEM, "it runs in another process namespace"};
  const PeerMemory peer{process};
  std::uint64_t found = 0;
  if (Status seen = peer.read(reinterpret_cast<std::byte*>(&found), proof.address, Bytes{sizeof found}); !seen.ok())
    return seen.code() == IST_ERR_SYSTEM && errno == EPERM
               ? Status{IST_ERR_SYSTEM, seen.text() + "; kernel.yama.ptrace_scope=0, or the container's permission for "
                                                      "process_vm_readv, would allow it"}
               : seen;
  if (found != proof.value) return Status{IST_ERR_SYSTEM, "process " + std::to_string(process) + " is another one"};
  return peer;
}

Status PeerMemory::read(std::byte* into, std::uint64_t address, Bytes size) const {
  std::uint64_t done = 0;
  while (done < size.value) {
    const iovec here{into + done, size.value - done};
    const iovec there{reinterpret_cast<void*>(address + done), size.value - done};
    const ssize_t moved = ::process_vm_readv(process_, &here, 1, &there, 1, 0);
    if (moved <= 0) return system_error("process_vm_readv from process " + std::to_string(process_));
    done += static_cast<std::uint64_t>(moved);
  }
  return {};
}

}  // namespace ist
