// What PEs say to each other about a part that only its owner reaches.
//
// Who calls this : part_service.hpp.
// Threads        : values.
// Ownership      : none.
// Errors         : none.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/status.hpp"
#include "memory/word_changes.hpp"

namespace ist {

struct PartRequest {
  enum class What : std::uint32_t {
    put,     // a message of the bytes follows, and an answer comes back
    get,     // a message of the bytes comes back
    change,  // of a word; an answer comes back
    signal   // as put, and then as change
  };
  What what = What::put;
  std::int32_t tag = 0;  // of what follows and comes back
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t word = 0;  // offset of it
  std::uint64_t word_size = 0;
  WordChange change;
};
static_assert(std::is_trivially_copyable_v<PartRequest>);

struct PartAnswer {
  std::int32_t code = IST_OK;
  std::array<char, 188> text{};  // of an error, as much of it as fits
  std::uint64_t before = 0;      // what the word was
  void tell(const Status& status) {
    code = status.code();
    text = {};
    if (!status.ok()) std::strncpy(text.data(), status.text().c_str(), text.size() - 1);
  }
  Status status() const { return code == IST_OK ? Status{} : Status{static_cast<Code>(code), text.data()}; }
};
static_assert(std::is_trivially_copyable_v<PartAnswer>);

}  // namespace ist
