// A stretch of some memory. Never a bare pointer: OpenCL and GL objects have no address.
//
// Who calls this : every room from memory/ upwards.
// Threads        : a value.
// Ownership      : a view; never frees.
// Errors         : none.
#pragma once

#include <isthmus/isthmus.h>

#include <cstdint>

#include "base/units.hpp"

namespace ist {

enum class KindId : std::uint8_t { none = 0, host = IST_KIND_HOST, cuda = IST_KIND_CUDA, opencl = IST_KIND_OPENCL };

struct Piece {
  KindId kind = KindId::host;
  std::int32_t device = -1;  // ordinal of the kind; -1: the kind finds out from the object
  std::uint64_t object = 0;  // host address, CUdeviceptr, cl_mem
  Offset offset;             // from the start of the object
  Bytes size;
  std::uint64_t queue = 0;  // the user's CUstream or cl_command_queue
  bool ready = false;       // the user's word that no queue holds work on it
  // Memory of the library's own, where nobody looks before a copy into it is over: something else may be written there first, as soon as the copy
  // is put in, whatever that comes after.
  bool own = false;
  // Under which its kind keeps what check() learned, for as long as one operation; 0: nothing is kept.
  std::uint32_t facts = 0;

  // The same memory from `from` on, `length` bytes of it.
  Piece part(Offset from, Bytes length) const {
    Piece piece = *this;
    piece.offset = Offset{offset.value + from.value};
    piece.size = length;
    return piece;
  }
  // Address of the first byte, for kinds that have addresses.
  std::byte* address() const { return reinterpret_cast<std::byte*>(object + offset.value); }
};

inline Piece host_piece(const void* address, Bytes size) {
  Piece piece;
  piece.object = reinterpret_cast<std::uint64_t>(address);
  piece.size = size;
  return piece;
}

inline Piece own_host_piece(const void* address, Bytes size) {
  Piece piece = host_piece(address, size);
  piece.own = true;
  return piece;
}

}  // namespace ist
