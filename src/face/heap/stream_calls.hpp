// A heap and a stream of the user's that may be used together.
//
// Who calls this : api_heap_streams.cpp, api_heap_layouts.cpp.
// Threads        : any.
// Ownership      : none.
// Errors         : enter() returns why they may not.
#pragma once

#include "face/heap/heap_calls.hpp"

namespace ist {

class StreamOrder;

class InStream {
 public:
  static Result<InStream> enter(CollectiveHeap& heap, void* stream);
  CollectiveHeap& heap() const { return heap_; }
  StreamOrder& order() const { return order_; }
  std::uint64_t stream() const { return stream_; }
  Status copy(const Piece& to, const Piece& from) const;
  // Before anything that waits for other PEs is put in: another library's setting up, which might wait for it, is over then.
  void settle() const;
  // Memory of the device whose stream it is.
  Piece own_word() const;

 private:
  InStream(CollectiveHeap& heap, StreamOrder& order, std::uint64_t stream) : heap_(heap), order_(order), stream_(stream) {}
  CollectiveHeap& heap_;
  StreamOrder& order_;
  std::uint64_t stream_;
};

}  // namespace ist
