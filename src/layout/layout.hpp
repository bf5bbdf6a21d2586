// Layouts: which bytes of a buffer, of which basic types, in which order, with the meaning of MPI's derived types.
//
// Who calls this : constructors.hpp, and face/, whose handles share layouts.
// Threads        : a layout never changes after it was made.
// Ownership      : a layout shares those it is made of.
// Errors         : IST_ERR_OVERFLOW beyond 2^60 bytes, IST_ERR_MEMORY for more runs than a form may have.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "layout/form.hpp"
#include "memory/element.hpp"

namespace ist {

class Layout;
using SharedLayout = std::shared_ptr<const Layout>;

// `count` times `layout`, `stride` bytes apart, from `offset` on; or where `places` say, so many bytes behind `offset`.
struct Part {
  std::int64_t offset = 0;
  std::int64_t count = 0;
  std::int64_t stride = 0;
  SharedLayout layout;
  std::vector<std::int64_t> places = {};  // as many as `count`, or none
};

// From the first byte to behind the last one.
struct Bounds {
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  std::int64_t extent() const { return upper - lower; }
};

// The sequence of basic types. Two that differ have the same one by an accident of one in 10^18.
struct Signature {
  std::int64_t types = 0;
  std::uint64_t hash = 0;
  std::uint64_t power = 1;  // what a hash before it is multiplied by
  bool operator==(const Signature&) const = default;
};
Signature one_after_other(const Signature& first, const Signature& second);
Signature again_and_again(Signature one, std::int64_t count);
// Of one element. Types of one representation are the same; IST_BYTE is one of its own.
Signature signature_of(ist_type type);

// So many elements of one type in a row.
struct TypeRun {
  ist_type type;
  std::int64_t count;
};

// No number of a layout lies beyond, so that sums of a few of them fit 64 bits.
inline constexpr std::int64_t kFarthest = std::int64_t{1} << 60;

class Layout {
 public:
  static Result<SharedLayout> basic(ist_type type);
  // `marked`: the bounds that a resized layout or a subarray has in place of those of its bytes.
  static Result<SharedLayout> of(std::vector<Part> parts, const Bounds* marked = nullptr);

  std::int64_t size() const { return size_; }
  const Bounds& bounds() const { return bounds_; }
  const Bounds& true_bounds() const { return true_bounds_; }
  const Signature& signature() const { return signature_; }
  // Of its first so many types; of all of them where there are no more.
  Signature first(std::int64_t types) const;
  // One of them, from 0 on.
  ist_type type_at(std::int64_t index) const;
  // Adds its types to the runs, of which there are `most` then at most. False: not all of them.
  bool add_types(std::vector<TypeRun>& runs, std::size_t most) const;
  // What it is several times, where it is only that; null: it is a basic type, or has several parts.
  const Part* only_part() const { return parts_.size() == 1 ? &parts_.front() : nullptr; }
  // Walks through all runs of a list once, unless the form was known from the start.
  Result<Form> form() const;

 private:
  Status measure();
  void find_form();
  std::optional<Form> form_of_only_part() const;
  Status emit(std::int64_t offset, std::vector<Run>& runs) const;
  Status emit_block(std::int64_t offset, const Part& part, std::vector<Run>& runs) const;

  std::vector<Part> parts_;  // none: a basic type, or empty
  std::int64_t size_ = 0;
  Bounds bounds_;
  Bounds true_bounds_;
  bool marked_ = false;  // bounds are the user's own, or follow from such ones
  std::int64_t alignment_ = 1;
  Signature signature_;
  ist_type type_ = IST_BYTE;  // of a basic one
  bool known_ = false;        // form_ is the canonical one
  Form form_;
};

}  // namespace ist
