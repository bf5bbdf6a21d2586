// What every invented kind of memory of these tests has: a device that owns no memory, and takes any piece.
//
// Who calls this : late_kind.hpp, staged_kind.hpp.
// Threads        : one.
// Ownership      : nothing.
// Errors         : none.
#pragma once

#include <vector>

#include "memory/kinds.hpp"

namespace ist::test {

class InventedKind : public MemoryKind {
 public:
  static constexpr KindId kId = KindId::opencl;
  explicit InventedKind(KindId id = kId) : id_(id) {}
  KindId id() const final { return id_; }
  const std::vector<DeviceInfo>& devices() const final { return devices_; }
  bool copies(KindId to, KindId from) const final { return to == id_ || from == id_; }
  std::optional<Recognised> recognise(const void*) final { return std::nullopt; }
  Status check(Piece&) final { return {}; }
  Result<Piece> allocate(int, Bytes) final { return Status{IST_ERR_MEMORY, "an invented kind has no memory"}; }
  Status release(const Piece&) final { return {}; }

 private:
  const KindId id_;
  std::vector<DeviceInfo> devices_{DeviceInfo{0, "invented", "", mebibytes(1), ""}};
};

}  // namespace ist::test
