// An owned file descriptor, and memory shared between processes through one.
//
// Who calls this : boot (sockets), path/shm (segments, rings), cli (launcher).
// Threads        : one owner at a time.
// Ownership      : closes, unmaps.
// Errors         : returned; a failed map says how many bytes were asked for.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "base/status.hpp"
#include "base/units.hpp"

namespace ist {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~FileDescriptor() { close(); }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void close();

 private:
  int fd_ = -1;
};

// Anonymous memory that another process can map once it has been handed the descriptor. It has no name, so that nothing is
// left behind, and does not count against the size of any shared-memory mount.
class SharedMemory {
 public:
  static Result<SharedMemory> create(const std::string& label, Bytes size);
  // Addresses alone: of its first bytes grant() makes memory. The rest costs nothing, also where a program locks all of its memory or
  // a core file is written.
  static Result<SharedMemory> reserve(const std::string& label, Bytes size);
  Status grant(Bytes first);
  // Maps what a peer created; fails if the object is smaller than `size`.
  static Result<SharedMemory> open(FileDescriptor descriptor, Bytes size);
  // The same for reading alone, and never part of a core file; look_further() maps more of it, perhaps elsewhere.
  static Result<SharedMemory> look_at(FileDescriptor descriptor, Bytes size);
  Status look_further(Bytes size);
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  std::byte* data() const { return data_; }
  Bytes size() const { return size_; }
  int descriptor() const { return descriptor_.get(); }

 private:
  static Result<SharedMemory> create(const std::string& label, Bytes size, int access);
  static Result<SharedMemory> open(FileDescriptor descriptor, Bytes size, int access);
  SharedMemory(FileDescriptor descriptor, std::byte* data, Bytes size)
      : descriptor_(std::move(descriptor)), data_(data), size_(size) {}
  FileDescriptor descriptor_;
  std::byte* data_ = nullptr;
  Bytes size_;
};

}  // namespace ist
