#include "base/file_descriptor.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ist {

void FileDescriptor::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

namespace {

constexpr int kReadAndWrite = PROT_READ | PROT_WRITE;

Result<std::byte*> map_shared(int fd, Bytes size, int access) {
  void* address = ::mmap(nullptr, size.value, access, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (address == MAP_FAILED) return system_error("mmap of " + std::to_string(size.value) + " shared bytes");
  // Writing a core file would give memory to every page of it.
  if (access != kReadAndWrite) ::madvise(address, size.value, MADV_DONTDUMP);
  return static_cast<std::byte*>(address);
}

}  // namespace

Result<SharedMemory> SharedMemory::create(const std::string& label, Bytes size) {
  return create(label, size, kReadAndWrite);
}

Result<SharedMemory> SharedMemory::reserve(const std::string& label, Bytes size) { return create(label, size, PROT_NONE); }

Result<SharedMemory> SharedMemory::create(const std::string& label, Bytes size, int access) {
  FileDescriptor descriptor{::memfd_create(label.c_str(), MFD_CLOEXEC)};
  if (!descriptor.valid()) return system_error("memfd_create(" + label + ")");
  if (::ftruncate(descriptor.get(), static_cast<off_t>(size.value)) != 0)
    return system_error("ftruncate of " + label + " to " + std::to_string(size.value) + " bytes");
  auto address = map_shared(descriptor.get(), size, access);
  if (!address.ok()) return address.status();
  return SharedMemory{std::move(descriptor), *address, size};
}

Status SharedMemory::grant(Bytes first) {
  if (::mprotect(data_, first.value, kReadAndWrite) != 0)
    return system_error("mprotect of " + std::to_string(first.value) + " shared bytes");
  ::madvise(data_, first.value, MADV_DODUMP);
  return {};
}

Status SharedMemory::look_further(Bytes size) {
  void* const address = ::mremap(data_, size_.value, size.value, MREMAP_MAYMOVE);
  if (address == MAP_FAILED) return system_error("mremap to " + std::to_string(size.value) + " shared bytes");
  data_ = static_cast<std::byte*>(address);
  size_ = size;
  return {};
}

Result<SharedMemory> SharedMemory::open(FileDescriptor descriptor, Bytes size) {
  return open(std::move(descriptor), size, kReadAndWrite);
}

Result<SharedMemory> SharedMemory::look_at(FileDescriptor descriptor, Bytes size) {
  return open(std::move(descriptor), size, PROT_READ);
}

Result<SharedMemory> SharedMemory::open(FileDescriptor descriptor, Bytes size, int access) {
  struct stat info {};
  if (::fstat(descriptor.get(), &info) != 0) return system_error("fstat of a peer's shared memory");
  if (static_cast<std::uint64_t>(info.st_size) < size.value)
    return Status{IST_ERR_SYSTEM, "a peer's shared memory has " + std::to_string(info.st_size) + " bytes where " +
                                      std::to_string(size.value) + " were expected; do all ranks run the same version?"};
  auto address = map_shared(descriptor.get(), size, access);
  if (!address.ok()) return address.status();
  return SharedMemory{std::move(descriptor), *address, size};
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : descriptor_(std::move(other.descriptor_)), data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  if (this != &other) {
    if (data_) ::munmap(data_, size_.value);
    descriptor_ = std::move(other.descriptor_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = other.size_;
  }
  return *this;
}

SharedMemory::~SharedMemory() {
  if (data_) ::munmap(data_, size_.value);
}

}  // namespace ist
