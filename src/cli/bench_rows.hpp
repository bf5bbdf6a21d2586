// A layout's bytes by one copy of rows, in two or three dimensions, by whatever copies on the device: cuMemcpy3DAsync, and
// clEnqueueCopyBufferRect.
//
// Who calls this : bench_pack.
// Threads        : one.
// Ownership      : a stream; the memory and the kinds are the caller's, and stay as long.
// Errors         : a Failure that names the call.
#pragma once

#include <isthmus/isthmus.h>

#include <memory>

#include "layout/form.hpp"
#include "memory/kinds.hpp"

namespace ist::cli {

class RowsCopy {
 public:
  // Between the memory that the form describes and as many bytes in a row, both of one device. Null: these are no rows that such a call
  // takes, or memory of the host, which has none.
  static std::unique_ptr<RowsCopy> open(const Kinds& kinds, const Form& form, const ist_buffer& spread,
                                        const ist_buffer& packed);
  RowsCopy() = default;
  RowsCopy(const RowsCopy&) = delete;
  RowsCopy& operator=(const RowsCopy&) = delete;
  virtual ~RowsCopy() = default;
  // Out of the memory into the row; over when it returns.
  virtual void pack() = 0;
};

}  // namespace ist::cli
