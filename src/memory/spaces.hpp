// Symmetric memory of one kind: of each PE of a team one part, all of them mapped in this process at a fixed stride.
//
// Who calls this : face/heap, which has the PEs hand each other the descriptors. Who implements it: host/, cuda/, opencl/.
// Threads        : one at a time makes and attaches; what is mapped is anybody's.
// Ownership      : a space owns its addresses and what is mapped there; memory lives as long as some process maps it.
// Errors         : returned; they say how many bytes were asked for, and of whom.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/file_descriptor.hpp"
#include "base/status.hpp"
#include "base/units.hpp"

namespace ist {

// How a PE comes to the part of another one, from the nearest way on.
enum class SpaceReach : std::uint8_t {
  processor,  // by loads and stores
  device,     // by its device, at the addresses of the space
  owner       // not at all: addresses are names, and the PE whose part it is does what others ask for
};

struct SpaceShape {
  Pe pe;
  int pes = 0;
  int device = 0;                            // of this PE
  Bytes stride;                              // a whole number of pages
  SpaceReach reach = SpaceReach::processor;  // the same at all PEs
};

// What the other PEs are told of a PE's memory before they reach for it.
using SpaceCard = std::array<std::byte, 64>;

class Space {
 public:
  virtual ~Space() = default;
  virtual SpaceCard card() { return {}; }
  // Can the memory of that rank, another one, be reached from here, as its card says? While it lets itself be met. IST_ERR_UNREACHABLE: not by
  // this device, and why; attach() is not called for it, and its PE does what is asked of it.
  virtual Status meet(Rank, const SpaceCard&) { return {}; }
  // Are words of that rank's part changed as a whole from here (word_changes.hpp), for whoever else changes them? Of ranks that were met.
  virtual Status changes_words_of(Rank) const { return {}; }
  // The same for kernels of this device, as far as it is known: ok where nobody knows that theirs are torn.
  virtual Status kernels_change_words_of(Rank) const { return {}; }
  // Is that rank's part on the same device as the own one? Two processes' kernels need not run there at once. Of ranks that were met.
  virtual bool shares_device_with(Rank) const { return false; }
  // A place of the own part where kinds name memory by objects: each stretch that was made is one, and nothing goes on from one to the next.
  struct Named {
    std::uint64_t object = 0;  // 0: memory is named by addresses
    Offset offset;             // in it
    Bytes left;                // of it, from there on
  };
  virtual Named named(Offset) const { return {}; }
  virtual bool in_objects() const { return false; }
  virtual std::uint64_t queue() const { return 0; }  // one in which the objects may be used
  // The part of PE p begins p strides further on.
  virtual std::byte* base() const = 0;
  // Makes memory, all zero, for that stretch of the own part, and gives what others need to map it.
  virtual Result<FileDescriptor> make(Offset from, Bytes size) = 0;
  // Maps what make() gave another PE for the same stretch.
  virtual Status attach(Pe pe, Offset from, Bytes size, const FileDescriptor& descriptor) = 0;
  // That stretch of every part is addresses alone again, whether or not it was made or attached.
  virtual void take_back(Offset from, Bytes size) = 0;
};

class Spaces {
 public:
  virtual ~Spaces() = default;
  // Strides and stretches are multiples of it, on every device.
  virtual Bytes page() const = 0;
  // Of a space whose part is on that device, as far as this PE alone can tell.
  virtual SpaceReach reach(int device) = 0;
  // Does the driver say that neither of two devices of this process reaches the other's memory? What a heap finds when it tries the link counts.
  virtual bool apart(int, int) { return false; }
  // Does it say that they reach it, but not by atomic operations, so that the PE whose part it is changes words of it?
  virtual bool words_apart(int, int) { return false; }
  // Reserves the addresses.
  virtual Result<std::unique_ptr<Space>> open(const SpaceShape& shape) = 0;
};

}  // namespace ist
