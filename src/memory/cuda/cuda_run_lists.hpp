// Lists of runs on devices: where each run of a form lies, brought there once for each form and context.
//
// Who calls this : cuda_packing.cpp.
// Threads        : any; one short lock. Two that bring the same list at once each have their own.
// Ownership      : lists go after the form did, when the next one is made, and with the kind.
// Errors         : of allocation and copy.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "memory/allocated.hpp"
#include "memory/cuda/cuda_context.hpp"
#include "memory/packing.hpp"

namespace ist {

class CudaRunLists {
 public:
  // What the kind does for it. `bring` returns when the bytes are there.
  struct Calls {
    std::function<Result<Piece>(CudaContext& context, Bytes size)> allocate;
    std::function<Status(const Piece& to, const std::byte* from)> bring;
    std::function<void(const Piece& piece)> release;
    std::function<Allocated(const Piece& piece)> keep;
  };
  struct List {
    std::uint64_t places = 0;   // device address: short_offsets(); or
    std::uint64_t offsets = 0;  // of each run, in bytes, and
    std::uint64_t begins = 0;   // of each run in the stream; 0: all runs are as long
    std::uint64_t runs = 0;
    std::int64_t each = 0;    // bytes of every run, if all are as long
    std::int64_t width = 1;   // pack_width() of the form alone
    std::uint32_t scale = 0;  // `places` count 1 << scale bytes, which are that width
  };
  explicit CudaRunLists(Calls calls) : calls_(std::move(calls)) {}
  Result<List> of(const SharedForm& form, CudaContext& context);
  // Lists whose forms are gone, or all.
  void let_go(bool all);

 private:
  struct Entry {
    std::weak_ptr<const Form> form;
    CudaContext* context;
    Allocated memory;
    List list;
  };

  const Calls calls_;
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace ist
