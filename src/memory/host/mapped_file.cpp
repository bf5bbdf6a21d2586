#include "memory/host/mapped_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "base/hexadecimal.hpp"

namespace ist {
namespace {

constexpr const char* kInstead =
    "; register what ist_memory_alloc gives of IST_KIND_HOST (16 KiB or more, unless ISTHMUS_SHARED_HEAP is 0), or a "
    "shared, writable "
    "mapping (MAP_SHARED) of a file or of memfd_create whose descriptor is open";

// One line of the system's list of what is mapped.
struct FileMapping {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;
  std::uint64_t inode = 0;
  dev_t device = 0;
  std::array<char, 5> rights{};
  std::string path;
  bool shared() const { return rights[3] == 's'; }
  bool writable() const { return rights[0] == 'r' && rights[1] == 'w'; }
  bool same_file(const FileMapping& other) const { return inode == other.inode && device == other.device; }
};

std::optional<FileMapping> parse(const std::string& line) {
  FileMapping found;
  unsigned major_number = 0;
  unsigned minor_number = 0;
  int path = 0;
  // NOLINTBEGIN(bugprone-unchecked-string-to-number-conversion): the kernel writes these numbers
  const int fields =
      std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &found.start, &found.end,
                  found.rights.data(), &found.offset, &major_number, &minor_number, &found.inode, &path);
  // NOLINTEND(bugprone-unchecked-string-to-number-conversion)
  if (fields < 7) return std::nullopt;
  found.device = makedev(major_number, minor_number);
  found.path = line.substr(static_cast<std::size_t>(path));
  return found;
}

// Whose memory it is, as its program knows it.
std::string owner_of(const FileMapping& mapping) {
  if (mapping.shared() && !mapping.writable()) return "a mapping of " + mapping.path + " for reading alone";
  if (mapping.shared()) return "a shared mapping without a file (MAP_SHARED | MAP_ANONYMOUS)";
  if (mapping.path == "[heap]") return "malloc's or new's, and private to this process";
  if (mapping.path == "[stack]") return "the stack's, and private to this process";
  if (mapping.inode != 0) return "a private mapping of " + mapping.path + ", as static variables are";
  return "private memory of this process, as malloc, new and mmap give it";
}

Status refused(std::uint64_t begin, const std::string& why) {
  return {IST_ERR_UNSUPPORTED,
          "the host memory at " + hexadecimal(begin) + " cannot be mapped by other processes: it is " + why + kInstead};
}

bool is_file(const struct stat& info, const FileMapping& mapping) {
  return S_ISREG(info.st_mode) && info.st_ino == mapping.inode && info.st_dev == mapping.device;
}

bool is_of(int descriptor, const FileMapping& mapping) {
  struct stat info {};
  return descriptor >= 0 && ::fstat(descriptor, &info) == 0 && is_file(info, mapping) &&
         (::fcntl(descriptor, F_GETFL) & O_ACCMODE) == O_RDWR;
}

// One that is open in this process: files without a name have no other way in.
FileDescriptor open_already(const FileMapping& mapping) {
  const std::unique_ptr<DIR, int (*)(DIR*)> all{::opendir("/proc/self/fd"), &::closedir};
  if (!all) return FileDescriptor{};
  while (const dirent* const each = ::readdir(all.get())) {  // NOLINT(concurrency-mt-unsafe): a list of this call's own
    char* end = nullptr;
    const long number = std::strtol(each->d_name, &end, 10);
    if (*end != '\0' || !is_of(static_cast<int>(number), mapping)) continue;
    FileDescriptor copy{::fcntl(static_cast<int>(number), F_DUPFD_CLOEXEC, 0)};
    if (is_of(copy.get(), mapping)) return copy;  // another thread may have closed the one that it was
  }
  return FileDescriptor{};
}

// What is a device and no file is not opened, since that may do something.
FileDescriptor open_file(const FileMapping& mapping) {
  struct stat info {};
  FileDescriptor named;
  if (mapping.path.starts_with('/') && ::stat(mapping.path.c_str(), &info) == 0 && is_file(info, mapping))
    named = FileDescriptor{::open(mapping.path.c_str(), O_RDWR | O_CLOEXEC)};
  return is_of(named.get(), mapping) ? std::move(named) : open_already(mapping);
}

// Pages of a mapping begin at multiples of it.
std::uint64_t page_of(const FileDescriptor& file) {
  constexpr std::uint64_t kHugePages = 0x958458f6;  // hugetlbfs
  struct statfs info {};
  if (::fstatfs(file.get(), &info) == 0 && static_cast<std::uint64_t>(info.f_type) == kHugePages)
    return static_cast<std::uint64_t>(info.f_bsize);
  return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

// It may lie in several mappings that continue each other, as where the rights of some pages were once others.
Result<FilePart> file_part_of(const void* address, Bytes size) {
  const auto begin = reinterpret_cast<std::uint64_t>(address);
  std::ifstream maps("/proc/self/maps");
  std::optional<FileMapping> first;
  std::uint64_t at = begin;
  for (std::string line; at - begin < size.value && std::getline(maps, line);) {
    const auto mapping = parse(line);
    if (!mapping || mapping->end <= at) continue;
    if (mapping->start > at) break;
    if (!mapping->shared() || !mapping->writable() || mapping->inode == 0) return refused(begin, owner_of(*mapping));
    if (first && (!mapping->same_file(*first) || mapping->offset - first->offset != mapping->start - first->start))
      return refused(begin, "several mappings, which do not continue each other");
    if (!first) first = mapping;
    at = mapping->end;
  }
  if (!first || at - begin < size.value)
    return Status{IST_ERR_ARGUMENT, std::to_string(size.value) + " bytes at " + hexadecimal(begin) +
                                        " are not mapped in this process; check the address and the number of bytes"};
  FilePart part{open_file(*first), begin - first->start + first->offset};
  if (part.file.valid()) return part;
  if (first->path.starts_with("/dev/zero")) return refused(begin, owner_of(*first));
  return refused(begin, "a mapping of " + first->path + ", of which no descriptor for reading and writing is open");
}

Result<MappedPart> MappedPart::map(const FileDescriptor& file, std::uint64_t offset, Bytes size) {
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return system_error("fstat of another process's memory");
  if (static_cast<std::uint64_t>(info.st_size) < offset + size.value)
    return Status{IST_ERR_ARGUMENT, "its file has " + std::to_string(info.st_size) +
                                        " bytes, and the memory to be mapped ends at " +
                                        std::to_string(offset + size.value)};
  const std::uint64_t page = page_of(file);
  const std::uint64_t before = offset % page;
  const std::uint64_t length = (before + size.value + page - 1) / page * page;
  void* const start = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.get(),
                             static_cast<off_t>(offset - before));
  if (start == MAP_FAILED)
    return system_error("mmap of " + std::to_string(size.value) + " bytes of another process's memory");
  return MappedPart{start, length, static_cast<std::byte*>(start) + before};
}

MappedPart& MappedPart::operator=(MappedPart&& other) noexcept {
  if (this == &other) return *this;
  unmap();
  start_ = std::exchange(other.start_, nullptr);
  length_ = other.length_;
  first_ = std::exchange(other.first_, nullptr);
  return *this;
}

void MappedPart::unmap() {
  if (start_ != nullptr) ::munmap(start_, length_);
}

}  // namespace ist
