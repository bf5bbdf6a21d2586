// Numbers and texts packed into one blob, and out of it again.
//
// Who calls this : peers, gather_hub and the boots, for what they say to each other.
// Threads        : values.
// Ownership      : the reader looks at the blob it was given.
// Errors         : a blob that is too short makes the reader bad(); its further values are zero and empty.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace ist {

class BlobWriter {
 public:
  BlobWriter& number(std::uint64_t value) {
    blob_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  BlobWriter& text(std::string_view value) {
    number(value.size());
    blob_.append(value);
    return *this;
  }
  std::string take() { return std::move(blob_); }

 private:
  std::string blob_;
};

class BlobReader {
 public:
  explicit BlobReader(std::string_view blob) : rest_(blob) {}
  std::uint64_t number() {
    std::uint64_t value = 0;
    const std::string_view bytes = cut(sizeof value);
    if (!bad_) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string text() { return std::string{cut(number())}; }
  bool bad() const { return bad_; }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view cut(std::uint64_t length) {
    if (bad_ || length > rest_.size()) {
      bad_ = true;
      return {};
    }
    const std::string_view front = rest_.substr(0, static_cast<std::size_t>(length));
    rest_.remove_prefix(static_cast<std::size_t>(length));
    return front;
  }
  std::string_view rest_;
  bool bad_ = false;
};

}  // namespace ist
