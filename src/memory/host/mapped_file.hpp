// Host memory that other processes can map: which part of which file it is a shared mapping of, and that part mapped in another process.
//
// Who calls this : face/heap, for windows.
// Threads        : any.
// Ownership      : a descriptor belongs to whoever gets it; a MappedPart owns its mapping, and the memory lives as long as any process maps it.
// Errors         : IST_ERR_UNSUPPORTED of memory that is no such mapping, naming whose it is and what to use instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/file_descriptor.hpp"

namespace ist {

struct FilePart {
  FileDescriptor file;
  std::uint64_t offset = 0;  // of the first byte in it
};
// Of `size` bytes, at least one.
Result<FilePart> file_part_of(const void* address, Bytes size);

class MappedPart {
 public:
  static Result<MappedPart> map(const FileDescriptor& file, std::uint64_t offset, Bytes size);
  MappedPart() = default;
  MappedPart(MappedPart&& other) noexcept
      : start_(std::exchange(other.start_, nullptr)), length_(other.length_), first_(std::exchange(other.first_, nullptr)) {}
  MappedPart& operator=(MappedPart&& other) noexcept;
  ~MappedPart() { unmap(); }
  // Of the part's first byte; null: nothing is mapped.
  std::byte* address() const { return first_; }

 private:
  MappedPart(void* start, std::uint64_t length, std::byte* first) : start_(start), length_(length), first_(first) {}
  void unmap();
  void* start_ = nullptr;
  std::uint64_t length_ = 0;
  std::byte* first_ = nullptr;
};

}  // namespace ist
