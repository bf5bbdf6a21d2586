// Memory of another process, opened in this one, and how it is closed again: by a handle of the driver's, by a descriptor, or a pool
// and the pieces of it.
//
// Who calls this : cuda_borrowing.cpp, from its own thread; pieces of a pool also from those that start and end messages.
// Threads        : any.
// Ownership      : what is open is closed by whoever opened it, in the same context.
// Errors         : returned, naming the driver's call.
#pragma once

#include <atomic>

#include "memory/cuda/cuda_context.hpp"
#include "memory/lending.hpp"

namespace ist {

// What handles of memory and of pools travel as.
inline constexpr auto kPosixDescriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

class CudaBorrowed : public Borrowed {
 public:
  CudaBorrowed(CudaContext& in, Loan::Way by) : context(in), way(by) {}
  std::byte* base() const override { return reinterpret_cast<std::byte*>(address); }
  CudaContext& context;
  const Loan::Way way;
  CUdeviceptr address = 0;  // none of a pool, which nothing can be copied to
  Bytes size;               // mapped, and kept so
  CUmemoryPool pool = nullptr;
  std::shared_ptr<CudaBorrowed> within;  // of a piece: the pool
  std::uint64_t allocation = 0;          // the lender's number for it
  Rank lender = kNobody;
  std::uint64_t start = 0;  // in the lender's process; none of a pool
};

// Can this driver open what is lent that way?
bool opens(const CudaApi& api, Loan::Way way);
// Asks the lender for what it needs, and tells it if it comes to nothing. Takes milliseconds.
Result<std::unique_ptr<CudaBorrowed>> open_mapping(const CudaApi& api, CudaContext& context, const Loan& loan,
                                                   const std::atomic<bool>& ends);
// The address of one piece of an opened pool.
Result<CUdeviceptr> import_piece(const CudaApi& api, const CudaBorrowed& pool, const Loan& loan);
void close_mapping(const CudaApi& api, const CudaBorrowed& memory);
// Lets go of an imported piece: nothing may be copying it.
void close_piece(const CudaApi& api, CudaContext& context, CUdeviceptr address);

}  // namespace ist
