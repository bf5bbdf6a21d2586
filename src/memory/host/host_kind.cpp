#include "memory/host/host_kind.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "memory/host/handing_copy.hpp"

namespace ist {
namespace {

// Of shorter pieces nobody would be shown anything, unless ISTHMUS_EAGER_LIMIT is lower than it is by default.
constexpr Bytes kLeastShared = kibibytes(16);

}  // namespace

HostKind::HostKind(Bytes shared) : heap_(shared) {
  DeviceInfo info;
  info.name = "processor";
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) info.memory = Bytes{static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page)};
  if (utsname system{}; ::uname(&system) == 0) info.detail = std::string{system.sysname} + " " + system.release;
  devices_.push_back(std::move(info));
}

HostKind::~HostKind() {
  for (const std::uint64_t address : allocated_) std::free(reinterpret_cast<void*>(address));
}

// Everything is host memory that no driver claims; the list of kinds falls back on that by itself.
std::optional<Recognised> HostKind::recognise(const void*) { return Recognised{}; }

Status HostKind::check(Piece& piece) {
  const std::uint64_t start = piece.object + piece.offset.value;
  if (start < piece.object || start + piece.size.value < start)
    return {IST_ERR_ARGUMENT, "host buffer of " + std::to_string(piece.size.value) + " bytes at offset " +
                                  std::to_string(piece.offset.value) +
                                  " runs past the end of the address space; check the pointer and the count"};
  piece.device = 0;
  return {};
}

Result<Piece> HostKind::allocate(int device, Bytes size) {
  if (device != 0)
    return Status{IST_ERR_ARGUMENT,
                  "host memory was asked for on device " + std::to_string(device) + "; host has device 0 only"};
  if (size >= kLeastShared)
    if (void* const shared = heap_.allocate(size); shared != nullptr) {
      Piece piece = host_piece(shared, size);
      piece.device = 0;
      return piece;
    }
  constexpr std::uint64_t kPage = 4096;
  const std::uint64_t rounded = size.value == 0 ? kPage : (size.value + kPage - 1) / kPage * kPage;
  // More than a processor addresses is not worth a question to the system, which would take it for a defect.
  constexpr std::uint64_t kMost = std::uint64_t{1} << 47U;
  void* address = size.value > kMost ? nullptr : std::aligned_alloc(kPage, rounded);
  if (!address) return Status{IST_ERR_MEMORY, "no " + std::to_string(size.value) + " bytes of host memory are free"};
  Piece piece = host_piece(address, size);
  piece.device = 0;
  const std::lock_guard lock(mutex_);
  allocated_.insert(piece.object);
  return piece;
}

Status HostKind::release(const Piece& piece) {
  if (heap_.release(reinterpret_cast<const void*>(piece.object))) return {};
  {
    const std::lock_guard lock(mutex_);
    if (allocated_.erase(piece.object) == 0)
      return {IST_ERR_ARGUMENT,
              "the host memory to be freed does not begin where memory was allocated here, or was freed before"};
  }
  std::free(reinterpret_cast<void*>(piece.object));
  return {};
}

// memmove, since a program that sends to itself may name overlapping bytes.
Result<Ticket> HostKind::copy(const Piece& to, const Piece& from, const Ticket& after) {
  if (after.kind() == this) crew_.wait(after.id());
  const bool apart = to.address() + to.size.value <= from.address() || from.address() + to.size.value <= to.address();
  if (apart && crew_.takes(to.size))
    if (const std::uint64_t id = crew_.start(to.address(), from.address(), to.size); id != 0) return Ticket{this, id};
  if (to.size.value != 0) move_across(to.address(), from.address(), to.size.value);
  return Ticket{};
}

Status HostKind::can(Reduction reduction, ist_type type, int device) {
  if (device != 0)
    return {IST_ERR_ARGUMENT,
            "a reduction on host device " + std::to_string(device) + " was asked for; host has device 0 only"};
  return applicable(reduction, type);
}

Result<Ticket> HostKind::combine(Reduction reduction, ist_type type, const Piece& into, const Piece& with, const Ticket&) {
  const auto operands = operands_of(reduction, type, into, with, false);
  if (!operands.ok()) return operands.status();
  combine_on_host(reduction, type, into.address(), with.address(), static_cast<std::int64_t>(operands->count));
  return Ticket{};
}

Result<bool> HostKind::finished(Ticket& ticket) {
  if (!ticket.empty() && !crew_.finish(ticket.id())) return false;
  ticket.forget();
  return true;
}

}  // namespace ist
