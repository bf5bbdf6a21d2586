// Memory lent to another process by a handle: it names the owner's descriptor.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "fake_world.hpp"

using fake::Allocation;
using fake::current;
using fake::Lock;
using fake::world;

namespace {
constexpr std::uint64_t kMagic = 0x66616b6563756461;
struct Ticket {
  std::uint64_t magic;
  std::int32_t owner;
  std::int32_t descriptor;
  std::uint64_t size;
  std::uint64_t file;  // its number: the descriptor's is another memory's after a while
  std::int32_t device;
};
static_assert(sizeof(Ticket) <= sizeof(CUipcMemHandle));
}  // namespace

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  FAKE_ENTER(cuIpcGetMemHandle);
  const Lock lock(world().lock);
  const Allocation* found = fake::find(address);
  if (found == nullptr || found->kind != fake::Class::device || found->ipc) return CUDA_ERROR_INVALID_VALUE;
  Ticket ticket{};
  ticket.magic = kMagic;
  ticket.owner = ::getpid();
  ticket.descriptor = found->storage->descriptor;
  struct stat facts {};
  if (::fstat(ticket.descriptor, &facts) != 0) return CUDA_ERROR_INVALID_HANDLE;
  ticket.file = facts.st_ino;
  ticket.size = found->size;
  ticket.device = found->physical;
  std::memset(handle, 0, sizeof(*handle));
  std::memcpy(handle, &ticket, sizeof(ticket));
  return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle, unsigned) {
  FAKE_ENTER(cuIpcOpenMemHandle_v2);
  auto& w = world();
  const Lock lock(w.lock);
  if (const CUresult result = fake::usable(current()); result != CUDA_SUCCESS) return result;
  Ticket ticket{};
  std::memcpy(&ticket, &handle, sizeof(ticket));
  if (ticket.magic != kMagic) return CUDA_ERROR_INVALID_VALUE;
  if (ticket.owner == ::getpid()) return CUDA_ERROR_INVALID_CONTEXT;
  if (fake::link(current()->device, ticket.device) == fake::Link::refused) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  const std::string path = "/proc/" + std::to_string(ticket.owner) + "/fd/" + std::to_string(ticket.descriptor);
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat facts {};
  // Its owner may have freed the memory meanwhile, and the descriptor's number may be something else's by now.
  if (descriptor < 0 || ::fstat(descriptor, &facts) != 0 || facts.st_ino != ticket.file ||
      facts.st_size < static_cast<off_t>(ticket.size)) {
    if (descriptor >= 0) ::close(descriptor);
    return CUDA_ERROR_INVALID_HANDLE;
  }
  Allocation made;
  made.ipc = true;
  made.start = made.range_start = fake::reserve(ticket.size);
  made.size = made.range_size = ticket.size;
  made.device = fake::logical(ticket.device);
  made.physical = ticket.device;
  made.context = current();
  made.id = w.next_id++;
  made.storage = std::make_shared<fake::Storage>(descriptor, static_cast<std::size_t>(facts.st_size));
  *address = made.start;
  w.allocations[made.start] = std::move(made);
  return CUDA_SUCCESS;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  FAKE_ENTER(cuIpcCloseMemHandle);
  auto& w = world();
  Lock lock(w.lock);
  fake::check_at_rest(address, "cuIpcCloseMemHandle");
  fake::wait_for_device(lock);
  const auto found = w.allocations.find(address);
  if (found == w.allocations.end() || !found->second.ipc || found->second.kind != fake::Class::device)
    return CUDA_ERROR_INVALID_VALUE;
  fake::forget(address);
  return CUDA_SUCCESS;
}
