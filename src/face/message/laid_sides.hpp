// One side of a collective call with layouts: which bytes of a buffer are which rank's part, and the same packed.
//
// Who calls this : api_layout_collective.cpp.
// Threads        : one.
// Ownership      : shares the form; the call's plan gets the block.
// Errors         : find() returns what is wrong with counts and layouts; bytes() fails the call, and the other ranks hear of it.
#pragma once

#include "face/message/collective_calls.hpp"
#include "face/message/layout_calls.hpp"

namespace ist {

class LaidSide {
 public:
  enum class Parts : std::uint8_t { one, equal, varied, each };
  // What the user gave.
  struct Given {
    const char* name;
    const ist_buffer& buffer;
    Parts parts = Parts::one;
    std::int64_t count = 0;                // one, equal
    ist_layout layout = IST_LAYOUT_NULL;   // all but each
    const std::int64_t* counts = nullptr;  // varied, each
    const std::int64_t* displs = nullptr;  // varied: in extents; each: in bytes
    const ist_layout* layouts = nullptr;   // each
  };
  explicit LaidSide(const Given& given) : given_(given) {}

  const ist_buffer& buffer() const { return given_.buffer; }
  bool varies() const { return given_.parts == Parts::varied || given_.parts == Parts::each; }
  Status find(int ranks, bool written);
  // After find(): the parts of the packed bytes, and all of them; nothing where it failed.
  const Division& division() const { return division_; }
  Bytes size() const { return Bytes{shape_ == nullptr ? 0 : static_cast<std::uint64_t>(shape_->form.size)}; }
  // The packed bytes: where they lie, or in a block. `kept`: those that are packed before the call; `comes`: the block is unpacked behind it.
  struct Range {
    std::int64_t from = 0;
    std::int64_t to = 0;
  };
  Piece bytes(CollectiveCall& call, Range kept, bool comes) const;
  Range all() const { return {0, shape_->form.size}; }
  Range part(int rank) const {
    const auto from = static_cast<std::int64_t>(division_.place(rank).value);
    return {from, from + static_cast<std::int64_t>(division_.elements(rank).bytes().value)};
  }

 private:
  Status find_list(int ranks, bool written);
  Result<SharedLayout> joined(int ranks, std::vector<Division::Part>& parts) const;
  Result<Piece> in_block(CollectiveCall& call, const Laid& laid, Range kept, bool comes) const;
  Given given_;
  SharedShape shape_;
  Division division_;
};

}  // namespace ist
