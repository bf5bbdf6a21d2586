#include "memory/host/host_space.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace ist {
namespace {

// Addresses without memory: whoever goes past what is there ends with a signal, and not in another PE's part.
void* reserve_addresses(void* where, std::uint64_t size, int fixed) {
  return ::mmap(where, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
}

std::uint64_t largest_power(std::uint64_t stride) { return std::min(stride & (~stride + 1), HostSpace::kMostAligned); }

void* reserve_aligned(std::uint64_t size, std::uint64_t alignment) {
  void* const base = reserve_addresses(nullptr, size + alignment, 0);
  if (base == MAP_FAILED) return base;
  const auto begin = reinterpret_cast<std::uintptr_t>(base);
  const std::uint64_t before = (alignment - begin % alignment) % alignment;
  auto* const aligned = static_cast<std::byte*>(base) + before;
  if (before != 0) ::munmap(base, before);
  ::munmap(aligned + size, alignment - before);
  return aligned;
}

// The system promises more memory than it has, and ends with a signal who touches what it cannot give; and who makes a file longer than
// its own limit.
Status may_make(Bytes size) {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  const std::uint64_t there =
      pages > 0 && page > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page) : 0;
  if (there != 0 && size.value > there)
    return {IST_ERR_MEMORY, std::to_string(size.value) + " bytes of host memory were asked for, and this machine has " +
                                std::to_string(there) + " in all; ask for less"};
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && size.value > limit.rlim_cur)
    return {IST_ERR_MEMORY, std::to_string(size.value) +
                                " bytes of host memory were asked for, and files of this process may have " +
                                std::to_string(limit.rlim_cur) + "; raise ulimit -f"};
  return {};
}

}  // namespace

Result<std::unique_ptr<Space>> HostSpace::open(const SpaceShape& shape) {
  const auto pes = static_cast<std::uint64_t>(shape.pes);
  constexpr std::uint64_t kMost = std::uint64_t{1} << 46U;  // of 47 bits of addresses
  void* base = MAP_FAILED;
  if (shape.stride.value <= kMost / pes) base = reserve_aligned(shape.stride.value * pes, largest_power(shape.stride.value));
  if (base == MAP_FAILED)
    return Status{IST_ERR_MEMORY, "no addresses for " + std::to_string(shape.pes) + " parts of " +
                                      std::to_string(shape.stride.value) +
                                      " bytes each; let the heap grow to less, or raise ulimit -v"};
  return std::unique_ptr<Space>{new HostSpace{static_cast<std::byte*>(base), shape}};
}

HostSpace::~HostSpace() { ::munmap(base_, whole().value); }

Result<FileDescriptor> HostSpace::make(Offset from, Bytes size) {
  IST_TRY(may_make(size));
  FileDescriptor file{::memfd_create("isthmus-symmetric", MFD_CLOEXEC)};
  if (!file.valid()) return system_error("memfd_create of a part of a symmetric heap");
  if (::ftruncate(file.get(), static_cast<off_t>(size.value)) != 0)
    return system_error("ftruncate of a part of a symmetric heap to " + std::to_string(size.value) + " bytes");
  IST_TRY(attach(shape_.pe, from, size, file));
  return file;
}

Status HostSpace::attach(Pe pe, Offset from, Bytes size, const FileDescriptor& descriptor) {
  struct stat info {};
  if (::fstat(descriptor.get(), &info) != 0) return system_error("fstat of PE " + std::to_string(pe.value) + "'s part");
  if (static_cast<std::uint64_t>(info.st_size) != size.value)
    return {IST_ERR_INTERNAL, "PE " + std::to_string(pe.value) + "'s part has " + std::to_string(info.st_size) +
                                  " bytes where " + std::to_string(size.value) + " were expected"};
  void* const mapped =
      ::mmap(at(pe, from), size.value, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, descriptor.get(), 0);
  if (mapped != MAP_FAILED) return {};
  return system_error("mmap of " + std::to_string(size.value) + " bytes of PE " + std::to_string(pe.value) + "'s part");
}

void HostSpace::take_back(Offset from, Bytes size) {
  for (int pe = 0; pe < shape_.pes; ++pe) reserve_addresses(at(Pe{pe}, from), size.value, MAP_FIXED);
}

}  // namespace ist
